"""What queues machines were told to have: change notifications from captures, told again in the order of time.

The rules are those of [MS-MQCN] 3.2.5 as far as a message has what they need. Whether its receiver could authenticate
it, and what the directory answered, no capture says; so this is what machines were told and not what they did.

``replay`` does it for captures of any order, and has the messages of all of them in memory to sort them. Whoever has
them in order (of each machine; machines do not matter to each other) reads them with ``messages_of`` and hands one
after the other to ``ToldQueues``, as ``msmqwire.spark.replay`` does for those of a lake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from msmqwire.directory.base import Directory, Equal
from msmqwire.directory.elements import Queue
from msmqwire.mqcn import Violation
from msmqwire.notification.attributes import CREATED_QUEUE, first_values, judge
from msmqwire.notification.audit import Rule
from msmqwire.properties import PROPID_Q_QMID

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "COLUMNS",
    "DISCARDED",
    "Event",
    "Message",
    "Replay",
    "ToldQueue",
    "ToldQueues",
    "Update",
    "messages_of",
    "replay",
]

Row: TypeAlias = Mapping[str, Any]

#: The columns of the notifications table, read from captures, that a replay needs.
COLUMNS = (
    "file",
    "frame",
    "time",
    "src",
    "dst",
    "version",
    "index",
    "operation",
    "object",
    "object_guid",
    "path_name",
    "master_guid",
    "domain_controller",
    "properties",
    "fault",
    "violations",
)

_VALUE_MEMBERS = ("id", "int", "text", "bytes", "guid")
#: The violations for which a message is disregarded, as the table names them.
DISCARDED = frozenset(
    str(each.name).lower() for each in (Violation.TRAILING_BYTES, Violation.PATH_NAME_SYNTAX, Violation.PROPERTY_COUNT)
)
#: What a queue keeps for life, whatever else changes.
_LASTING = ("identifier", "pathname")
_TOLD = tuple(CREATED_QUEUE.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A notification in the history of a queue.

    Attributes
    ----------
    operation : str
        ``"create"``, ``"change"`` or ``"delete"``.
    applied : bool
        False where the queue had been deleted before, or where a deletion does not name it by its GUID.
    time : int or None
        Nanoseconds since 1970, UTC; None if the capture does not say.
    file, frame : str, int
        Where the message ended; frames are numbered as Wireshark does.
    source : str
        The address that it came from.
    origin : UUID or str
        The directory service that the change comes from (version 1), or the server where it was made (version 2).
    told : mapping of str to value
        The attributes that it says, by name.
    """

    operation: str
    applied: bool
    time: int | None
    file: str
    frame: int
    source: str
    origin: UUID | str
    told: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldQueue:
    """A queue as a machine was told of it.

    Attributes
    ----------
    machine : str
        The address that the notifications went to.
    queue_manager : UUID or None
        The queue manager that hosts the queue, where a notification says.
    exists : bool or None
        None where only changes were seen: they do not say whether the machine has the queue.
    queue : Queue
        With the attributes that were told, and no others. After a change of version 2, which does not say what
        changed, it has its Identifier and Pathname only.
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
    """What a replay came to.

    Attributes
    ----------
    queues : tuple of ToldQueue
        In the order in which they were first heard of.
    messages : int
        How many there were.
    disregarded : int
        Of these, messages of which nothing counts: they cannot be decoded, or say what no receiver may apply.
    machine_changes : int
        Changes of queue managers, which are no part of the table.
    """

    queues: tuple[ToldQueue, ...]
    messages: int
    disregarded: int
    machine_changes: int


def replay(batches: Iterable[pa.RecordBatch], *, at: int | None = None, directory: Directory | None = None) -> Replay:
    """Rebuild the queues that machines were told to have.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The notifications table with at least ``COLUMNS``, as ``read_table`` reads it. The rows of a message stand
        together; messages may come in any order. Those of one time are told by files, in the order in which these came,
        and by frames.
    at : int, optional
        Nanoseconds since 1970, UTC: tell nothing that was captured later.
    directory : Directory, optional
        Where to look for what version 2 does not say; see ``ToldQueues``.

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
    for message in messages_of(batches):
        number = files.setdefault(message.file, len(files))
        if at is None or message.time is None or message.time <= at:
            messages.append(((message.time is not None, message.time or 0, number, message.frame), message))
    messages.sort(key=itemgetter(0))
    queues = ToldQueues(directory)
    for _, message in messages:
        queues.tell(message)
    return Replay(
        queues=tuple(queues),
        messages=len(messages),
        disregarded=sum(message.disregarded for _, message in messages),
        machine_changes=sum(message.machine_changes for _, message in messages),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """A change of a queue, in the terms of the directory."""

    version: int
    guid: UUID | None
    path: str | None
    queue_manager: UUID | None
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to a machine, with what counts of it.

    Attributes
    ----------
    machine : str
        The address that it went to.
    time : int or None
        Nanoseconds since 1970, UTC; None if the capture does not say.
    file, frame : str, int
        Where it ended.
    updates : tuple of Update
        Those of queues.
    machine_changes : int
        How many there are of queue managers.
    disregarded : bool
        Nothing of it counts: it cannot be decoded, or says what no receiver may apply.
    """

    machine: str
    time: int | None
    file: str
    frame: int
    updates: tuple[Update, ...] = ()
    machine_changes: int = 0
    disregarded: bool = False


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Message]:
    """The messages of a notifications table, in its order.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        With at least ``COLUMNS``, times in nanoseconds since 1970. The rows of a message stand together.
    """
    held: list[Row] = []
    for batch in batches:
        for row in _rows(batch):
            # All rows of a message but its first have a position above 0 in it
            if held and not row["index"]:
                yield _message(held)
                held = []
            held.append(row)
    if held:
        yield _message(held)


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch, with the properties as a mapping of PROPID to value."""
    time: Any = batch.column("time")
    properties: Any = batch.column("properties")
    # Python's own times have no nanoseconds
    times = time.cast("int64").to_pylist()
    members = dict(zip((each.name for each in properties.type.value_type), properties.flatten().flatten(), strict=True))
    items = zip(*(members[name].to_pylist() for name in _VALUE_MEMBERS), strict=True)
    counts = properties.value_lengths().to_pylist()
    rows = batch.drop_columns(["time", "properties"]).to_pylist()
    for row, at, count in zip(rows, times, counts, strict=True):
        yield {**row, "time": at, "properties": first_values(map(_value, islice(items, count or 0)))}


def _value(item: tuple[Any, ...]) -> tuple[int, Any]:
    propid, number, text, data, guid = item
    if guid is not None:
        return propid, _guid(guid)
    return propid, number if number is not None else text if text is not None else data


def _message(rows: list[Row]) -> Message:
    first = rows[0]
    where = {"machine": first["dst"], "time": first["time"], "file": first["file"], "frame": first["frame"]}
    if any(row["fault"] is not None or not DISCARDED.isdisjoint(row["violations"] or ()) for row in rows):
        return Message(**where, disregarded=True)
    updates, machine_changes = [], 0
    for row in rows:
        if row["index"] is None:
            continue
        values: dict[str, Any] | Rule = {}
        if row["version"] == 1:
            values = judge(row["object"], row["operation"], row["path_name"], row["properties"])
        if isinstance(values, Rule):
            return Message(**where, disregarded=True)
        if row["object"] == "machine":
            machine_changes += 1
        else:
            updates.append(_update(row, values))
    return Message(**where, updates=tuple(updates), machine_changes=machine_changes)


def _guid(value: Any) -> Any:
    """A GUID of whichever form the table has them in."""
    if isinstance(value, bytes):
        return UUID(bytes=value)
    return UUID(value) if isinstance(value, str) else value


def _update(row: Row, told: dict[str, Any]) -> Update:
    created = row["operation"] == "create" and row["version"] == 1
    return Update(
        version=row["version"],
        guid=told["identifier"] if created else _guid(row["object_guid"]),
        path=told["pathname"] if created else row["path_name"],
        queue_manager=row["properties"].get(PROPID_Q_QMID),
        event=Event(
            operation=row["operation"],
            applied=True,
            time=row["time"],
            file=row["file"],
            frame=row["frame"],
            source=row["src"],
            origin=row["domain_controller"] if row["version"] == 2 else _guid(row["master_guid"]),
            told=told,
        ),
    )


@dataclass(slots=True)
class _Known:
    """What has been told of a queue so far."""

    machine: str
    exists: bool | None = None
    queue_manager: UUID | None = None
    values: dict[str, Any] = field(default_factory=dict)
    history: list[Event] = field(default_factory=list)

    def told(self) -> ToldQueue:
        return ToldQueue(
            machine=self.machine,
            queue_manager=self.queue_manager,
            exists=self.exists,
            queue=Queue.of(self.values),
            history=tuple(self.history),
        )

    def apply(self, update: Update) -> bool:
        """Take in what a notification says, unless it comes to nothing."""
        operation = update.event.operation
        if operation != "create" and self.exists is False:
            return False
        if operation == "delete" and update.guid is None:
            return False
        if update.version == 2 or (operation == "create" and not self.exists):
            self.values = {name: self.values[name] for name in _LASTING if name in self.values}
        if operation != "change":
            self.exists = operation == "create"
        identifier = self.values.get("identifier", update.guid)
        self.values |= update.event.told
        if identifier is not None:
            self.values["identifier"] = identifier
        self.queue_manager = update.queue_manager or self.queue_manager
        return True


class ToldQueues:
    """The queues that machines are told of, one message after the other in the order of time.

    Parameters
    ----------
    directory : Directory, optional
        Where machines look after a creation or a change of version 2, which does not say what there is now. It answers
        with what it holds now, which need not be what it held then. Without it, or where it does not have the queue,
        nothing is known of a queue after such a notification but its names.
    """

    def __init__(self, directory: Directory | None = None) -> None:
        self._directory = directory
        self._queues: list[_Known] = []
        # By machine, and by Identifier, or by Pathname without regard to case while they exist
        self._by_guid: dict[tuple[str, UUID], _Known] = {}
        self._by_path: dict[tuple[str, str], _Known] = {}

    def __iter__(self) -> Iterator[ToldQueue]:
        """The queues as they are now, in the order in which they were first heard of."""
        return (known.told() for known in self._queues)

    def tell(self, message: Message) -> None:
        """One message.

        Raises
        ------
        DirectoryError
            The directory cannot be read.
        """
        for update in message.updates:
            known = self._find(message.machine, update)
            if known is None:
                known = _Known(message.machine)
                if update.path is not None:
                    known.values["pathname"] = update.path
                self._queues.append(known)
            self._unplace(known)
            applied = known.apply(update)
            if applied and update.version == 2 and known.exists is not False:
                known.values |= self._held(update)
            known.history.append(update.event if applied else replace(update.event, applied=False))
            self._place(known, update.guid)

    def _held(self, update: Update) -> dict[str, Any]:
        if self._directory is None:
            return {}
        found = self._directory.read_directory(Queue, [Equal("identifier", update.guid)], _TOLD)
        return {} if found is None else found.attributes()

    def _find(self, machine: str, update: Update) -> _Known | None:
        guid, path = update.guid, update.path
        known = None if guid is None else self._by_guid.get((machine, guid))
        return known if known or path is None else self._by_path.get((machine, path.lower()))

    def _unplace(self, known: _Known) -> None:
        path = known.values.get("pathname")
        if path is not None and self._by_path.get((known.machine, path.lower())) is known:
            del self._by_path[known.machine, path.lower()]

    def _place(self, known: _Known, guid: UUID | None) -> None:
        if guid is not None:
            self._by_guid[known.machine, guid] = known
        path = known.values.get("pathname")
        if path is not None and known.exists is not False:
            self._by_path[known.machine, path.lower()] = known
