"""Rebuilds the queues of machines from the change notifications in captures, in the order of time.

The rules are those of [MS-MQCN] 3.2.5, as far as captures allow: each change has the judgement of the table. Whether a
receiver could authenticate a message, and what the directory answered, is unknown. The result is what machines were
notified of, not what they did.

``replay`` sorts the messages of all captures in memory. Machines are independent: those of a large lake can be replayed
one after the other.
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.notification.replay")

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.columns.plain import guid_values
from msmqwire.directory.base import Directory, Equal
from msmqwire.directory.elements import Queue
from msmqwire.mqcn.schema import begins_message
from msmqwire.notification.attributes import notified_attributes
from msmqwire.notification.carried_attributes import NOTIFIED, UPDATED_QUEUE
from msmqwire.notification.judgement import Outcome, Rule, first_values, rule_against_pathname
from msmqwire.notification.schema import CAPTURED_NOTIFICATIONS
from msmqwire.properties import PROPID_Q_QMID

__all__ = ["COLUMNS", "Event", "NotifiedQueue", "Replay", "Rule", "in_order", "replay"]

Row: TypeAlias = Mapping[str, Any]

#: The columns of the notifications table, read from captures, that a replay needs.
COLUMNS = ("file", "frame", "time", "src", "dst", *CAPTURED_NOTIFICATIONS.names)

_GUIDS = ("object_guid", "master_guid")
_VALUE_MEMBERS = ("id", "int", "text", "bytes", "guid")
#: Rows made into Python objects at once: each may have 255 properties, and a batch thousands of rows.
_ROWS_AT_ONCE = 256
#: The attributes of a queue that no change sets.
_NAMES = ("identifier", "pathname")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A notification in the history of a queue.

    Attributes
    ----------
    version : int
        The version of the message, 1 or 2.
    operation : str
        ``"create"``, ``"change"``, ``"delete"``, or ``"replaced"`` if a new queue took the Pathname of this one.
    identifier, pathname : UUID or None, str or None
        The queue that the notification names, by one or both; after ``"replaced"`` the new one.
    queue_manager : UUID or None
        The queue manager that hosts it, if the notification names it.
    rule : Rule or None
        Why the change was not applied, by the judgement of the table and the notifications before it; None if it was.
    time : int or None
        Nanoseconds since 1970, UTC; None if the capture has no time.
    file, frame : str, int
        The frame that ends the message; frames are numbered as in Wireshark.
    source : str
        The address of the sender.
    origin : UUID or str
        The directory service that the change comes from (version 1), or the server where it was made (version 2).
    notified : mapping of str to value
        The attributes in the notification, by name.
    """

    version: int
    operation: str
    identifier: UUID | None
    pathname: str | None
    queue_manager: UUID | None
    rule: Rule | None
    time: int | None
    file: str
    frame: int
    source: str
    origin: UUID | str
    notified: Mapping[str, Any] = field(hash=False)

    @property
    def applied(self) -> bool:
        """True if the change was applied."""
        return self.rule is None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedQueue:
    """A queue as a machine was notified of it.

    Attributes
    ----------
    machine : str
        The address that the notifications went to.
    queue_manager : UUID or None
        The queue manager that hosts the queue, if a notification names it.
    exists : bool or None
        None if there were only changes, which do not show whether the machine has the queue.
    queue : Queue
        With the notified attributes only. After a change of version 2, which carries no values, it has its Identifier
        and Pathname only.
    history : tuple of Event
        In the order of time.
    """

    machine: str
    queue_manager: UUID | None
    exists: bool | None
    queue: Queue
    history: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The result of a replay.

    Attributes
    ----------
    queues : tuple of NotifiedQueue
        In the order of their first notifications.
    messages : int
        The number of messages.
    rules : mapping of Rule to int
        The number of disregarded messages by the rule; ``disregarded`` is the sum.
    machine_changes : int
        The number of changes of queue managers that are not ignored; they are not replayed.
    """

    queues: tuple[NotifiedQueue, ...]
    messages: int
    rules: Mapping[Rule, int] = field(hash=False)
    machine_changes: int

    @property
    def disregarded(self) -> int:
        """The number of messages that no receiver applies."""
        return sum(self.rules.values())


def replay(batches: Iterable[pa.RecordBatch], *, at: int | None = None, directory: Directory | None = None) -> Replay:
    """Rebuild the queues that machines were notified of.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The notifications table with at least ``COLUMNS``, as ``read_table`` reads it; in place of ``time`` it may have
        ``time_ns``, as a lake has. The rows of a message are adjacent, see ``in_order``; messages may come in any
        order. Those of the same time are ordered by file, in the order of their first rows, then by frame.
    at : int, optional
        Nanoseconds since 1970, UTC: leave out messages captured later.
    directory : Directory, optional
        Read after a creation or a change of version 2, which carries no values, as machines do. Its answers are those
        of today, not of the time of the notification. If it is not given or does not have the queue, only Identifier
        and Pathname are known after such a notification.

    Raises
    ------
    DirectoryError
        The directory cannot be read.

    Examples
    --------
    >>> from msmqwire.capture import read_table
    >>> found = replay(read_table("examples/message-session.pcap", "notifications", columns=COLUMNS))
    >>> [(queue.machine, str(queue.queue.identifier)[:8], queue.exists) for queue in found.queues]
    [('10.20.1.25', '5f1c2a34', False), ('10.20.1.10', '5f1c2a34', None)]
    >>> [event.operation for event in found.queues[0].history]
    ['change', 'change', 'delete']
    """
    files: dict[str | None, int] = {}
    messages = []
    for message in _messages(batches):
        number = files.setdefault(message.file, len(files))
        if at is None or message.time is None or message.time <= at:
            messages.append(((message.time is not None, message.time or 0, number, message.frame), message))
    messages.sort(key=itemgetter(0))
    queues = _Queues(directory)
    for _, message in messages:
        for event in message.events:
            queues.apply(message.machine, event)
    return Replay(
        queues=queues.notified(),
        messages=len(messages),
        rules=Counter(message.rule for _, message in messages if message.rule is not None),
        machine_changes=sum(message.machine_changes for _, message in messages),
    )


def in_order(rows: pa.Table) -> pa.Table:
    """The rows of a lake in the order of their files and frames, with the rows of each message adjacent.

    Parameters
    ----------
    rows : pyarrow.Table
        Of the notifications table, with ``COLUMNS`` and ``stream_offset``.
    """
    # Two messages of a stream may end in the same frame
    keys: Any = [(name, "ascending") for name in ("file", "frame", "stream_offset", "index")]
    return rows.take(pc.sort_indices(rows, keys))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A message to a machine; nothing of it is applied if there is a ``rule``."""

    machine: str
    time: int | None
    file: str
    frame: int
    events: tuple[Event, ...] = ()
    machine_changes: int = 0
    rule: Rule | None = None


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[_Message]:
    """The messages of a notifications table, in the order of its rows."""
    rows: list[Row] = []
    for batch in batches:
        parts = (batch.slice(at, _ROWS_AT_ONCE) for at in range(0, batch.num_rows, _ROWS_AT_ONCE))
        for row in chain.from_iterable(map(_rows, parts)):
            if rows and begins_message(row):
                yield _message(rows)
                rows = []
            rows.append(row)
    if rows:
        yield _message(rows)


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch, with the properties as a mapping of PROPID to value."""
    names = batch.schema.names
    # The time of a lake has microseconds, the datetime of Python as well
    time: Any = batch.column("time_ns" if "time_ns" in names else "time")
    properties: Any = batch.column("properties")
    times = time.cast("int64").to_pylist()
    members = dict(zip((each.name for each in properties.type.value_type), properties.flatten().flatten(), strict=True))
    values = [guid_values(members[name]) if name == "guid" else members[name].to_pylist() for name in _VALUE_MEMBERS]
    items = zip(*values, strict=True)
    counts = properties.value_lengths().to_pylist()
    others = batch.drop_columns([name for name in ("time", "time_ns", "properties", *_GUIDS) if name in names])
    guids = zip(*(guid_values(batch.column(name)) for name in _GUIDS), strict=True)
    for row, at, count, found in zip(others.to_pylist(), times, counts, guids, strict=True):
        by_propid = first_values(map(_value, islice(items, count or 0)))
        yield {**row, **dict(zip(_GUIDS, found, strict=True)), "time": at, "properties": by_propid}


def _value(item: tuple[Any, ...]) -> tuple[int, Any]:
    propid, number, text, data, guid = item
    return propid, next((each for each in (guid, number, text, data) if each is not None), None)


def _message(rows: list[Row]) -> _Message:
    first = rows[0]
    where = {"machine": first["dst"], "time": first["time"], "file": first["file"], "frame": first["frame"]}
    if first["outcome"] == Outcome.DISREGARDED:
        return _Message(**where, rule=Rule(first["rule"]))
    changes = [row for row in rows if row["index"] is not None]
    events = tuple(_event(row) for row in changes if row["object"] == "queue")
    of_machines = [row for row in changes if row["object"] == "machine" and row["rule"] is None]
    return _Message(**where, events=events, machine_changes=len(of_machines))


def _event(row: Row) -> Event:
    version, operation = row["version"], row["operation"]
    identifier, pathname = row["object_guid"], row["path_name"]
    notified: dict[str, Any] = {}
    if version == 1:
        notified = notified_attributes(row["object"], operation, pathname, row["properties"])
        if operation == "create":
            identifier, pathname = notified["identifier"], notified["pathname"]
    return Event(
        version=version,
        operation=operation,
        identifier=identifier,
        pathname=pathname,
        queue_manager=row["properties"].get(PROPID_Q_QMID),
        rule=None if row["rule"] is None else Rule(row["rule"]),
        time=row["time"],
        file=row["file"],
        frame=row["frame"],
        source=row["src"],
        origin=row["master_guid"] if version == 1 else row["domain_controller"],
        notified=notified,
    )


@dataclass(slots=True)
class _Queue:
    """The current state of a queue of a machine."""

    machine: str
    exists: bool | None = None
    is_known: bool = False  # not by ignored notifications alone
    queue_manager: UUID | None = None
    values: dict[str, Any] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)

    def notified(self) -> NotifiedQueue:
        return NotifiedQueue(
            machine=self.machine,
            queue_manager=self.queue_manager,
            exists=self.exists,
            queue=Queue.of(self.values),
            history=tuple(self.history),
        )

    def apply(self, event: Event) -> None:
        self.is_known = True
        notified = event.notified
        if event.operation == "create" and self.exists:
            notified = {name: notified[name] for name in UPDATED_QUEUE.values() if name in notified}
        if event.version == 2 or (event.operation == "create" and not self.exists):
            self.values = {name: self.values[name] for name in _NAMES if name in self.values}
        if event.operation != "change":
            self.exists = event.operation == "create"
        identifier = self.values.get("identifier", event.identifier)
        self.values |= notified
        if identifier is not None:
            self.values["identifier"] = identifier
        self.queue_manager = event.queue_manager or self.queue_manager


class _Queues:
    """The queues of all machines; events are applied in the order of time."""

    def __init__(self, directory: Directory | None) -> None:
        self._directory = directory
        self._queues: list[_Queue] = []
        # By machine, and by Identifier, or by Pathname without regard to case while they exist
        self._by_guid: dict[tuple[str, UUID], _Queue] = {}
        self._by_path: dict[tuple[str, str], _Queue] = {}

    def notified(self) -> tuple[NotifiedQueue, ...]:
        """The queues in the order of their first notifications."""
        return tuple(queue.notified() for queue in self._queues)

    def apply(self, machine: str, event: Event) -> None:
        queue = self._find(machine, event) or self._add(machine, event)
        read = self._read(event)
        occupant = self._occupant(queue, event, read)
        self._forget_path(queue)
        rule = event.rule or self._rule_against(queue, event, read, occupant)
        if rule is None:
            queue.apply(event)
            if queue.exists is not False:
                queue.values |= read
        queue.history.append(replace(event, rule=rule))
        if rule is None and occupant is not None and event.operation == "create":
            self._forget_path(occupant)
            occupant.exists = False
            occupant.history.append(replace(event, operation="replaced", notified={}))
        self._index(queue, event.identifier)

    def _add(self, machine: str, event: Event) -> _Queue:
        """A new queue; also for an ignored event, since another Identifier at the path is another queue."""
        names = {"pathname": event.pathname, "identifier": event.identifier}
        queue = _Queue(machine, values={name: value for name, value in names.items() if value is not None})
        self._queues.append(queue)
        return queue

    def _read(self, event: Event) -> dict[str, Any]:
        """The attributes that the directory has for a creation or a change of version 2."""
        if self._directory is None or event.version == 1 or event.operation == "delete":
            return {}
        found = self._directory.read_directory(Queue, [Equal("identifier", event.identifier)], NOTIFIED)
        return {} if found is None else found.attributes()

    def _occupant(self, queue: _Queue, event: Event, read: Mapping[str, Any]) -> _Queue | None:
        """The other queue at the path that a queue gets by an event; None if the event sets no path."""
        path = read.get("pathname", event.pathname)
        if path is None or (event.version == 1 and (event.operation != "create" or queue.exists)):
            return None
        found = self._by_path.get((queue.machine, path.lower()))
        return None if found is None or found is queue or not found.is_known else found

    @staticmethod
    def _rule_against(queue: _Queue, event: Event, read: Mapping[str, Any], occupant: _Queue | None) -> Rule | None:
        """The rule by which a receiver with these queues ignores an event that is judged to be applied."""
        path = read.get("pathname")
        rule = None if path is None else rule_against_pathname(path)
        if rule is not None or (event.operation == "create" and not queue.exists):
            return rule
        if queue.exists is False:
            return Rule.NOT_FOUND
        is_taken = occupant is not None and occupant.exists and event.operation != "delete"
        return Rule.PATHNAME_TAKEN if is_taken else None

    def _find(self, machine: str, event: Event) -> _Queue | None:
        guid, path = event.identifier, event.pathname
        queue = None if guid is None else self._by_guid.get((machine, guid))
        if queue is not None or path is None:
            return queue
        queue = self._by_path.get((machine, path.lower()))
        # A new Identifier at the path is another queue, unless the Identifier of the queue is unknown
        return None if queue is not None and guid is not None and "identifier" in queue.values else queue

    def _forget_path(self, queue: _Queue) -> None:
        path = queue.values.get("pathname")
        if path is not None and self._by_path.get((queue.machine, path.lower())) is queue:
            del self._by_path[queue.machine, path.lower()]

    def _index(self, queue: _Queue, guid: UUID | None) -> None:
        if guid is not None:
            # Also by an ignored event, or a second Identifier at the path would be taken for this queue's
            queue.values.setdefault("identifier", guid)
            self._by_guid[queue.machine, guid] = queue
        path = queue.values.get("pathname")
        if path is not None and queue.exists is not False:
            self._by_path[queue.machine, path.lower()] = queue
