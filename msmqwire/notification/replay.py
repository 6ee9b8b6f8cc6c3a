"""What queues machines were told to have: change notifications from captures, told again in the order of time.

The rules are those of [MS-MQCN] 3.2.5 as far as a message has what they need. Whether its receiver could authenticate
it, and what the directory answered, no capture says; so this is what machines were told and not what they did.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

import numpy as np

from msmqwire.directory.elements import Queue
from msmqwire.notification.attributes import CREATED_QUEUE, UPDATED_QUEUE, attribute_value
from msmqwire.properties import PROPID_Q_QMID

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COLUMNS", "Event", "Replay", "ToldQueue", "replay"]

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
)

_VALUE_MEMBERS = ("int", "text", "guid", "bytes")
#: What a queue keeps for life, whatever else changes.
_LASTING = ("identifier", "pathname")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A notification in the history of a queue.

    Attributes
    ----------
    operation : str
        ``"create"``, ``"change"`` or ``"delete"``.
    applied : bool
        False where the queue had been deleted before, or where a deletion does not name it by its GUID.
    time : int
        Nanoseconds since 1970, UTC.
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
    time: int
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


def replay(batches: Iterable[pa.RecordBatch], *, at: int | None = None) -> Replay:
    """Rebuild the queues that machines were told to have.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The notifications table with at least ``COLUMNS``, as ``read_table(..., strict=True)`` reads it. The rows of a
        message stand together; messages may come in any order.
    at : int, optional
        Nanoseconds since 1970, UTC: tell nothing that was captured later.

    Examples
    --------
    >>> from msmqwire.capture import read_table
    >>> found = replay(read_table("examples/message-session.pcap", "notifications", columns=COLUMNS, strict=True))
    >>> [(queue.machine, str(queue.queue.identifier)[:8], queue.exists) for queue in found.queues]
    [('10.20.1.25', '5f1c2a34', False), ('10.20.1.10', '5f1c2a34', None)]
    >>> [event.operation for event in found.queues[0].history]
    ['change', 'change', 'delete']
    """
    machines = _Machines()
    messages = disregarded = machine_changes = 0
    kept: list[list[_Update]] = []
    for rows in _messages(batches):
        if at is not None and rows[0]["time"] > at:
            continue
        messages += 1
        try:
            if rows[0]["fault"] is not None:
                raise ValueError("it cannot be decoded")
            kept.append([_update(row) for row in rows if row["index"] is not None])
        except ValueError:
            disregarded += 1
    # A message without updates tells nothing
    for updates in sorted(filter(None, kept), key=lambda each: each[0].event.time):
        for update in updates:
            if update.object == "machine":
                machine_changes += 1
            else:
                machines.tell(update)
    return Replay(
        queues=tuple(known.told() for known in machines.queues),
        messages=messages,
        disregarded=disregarded,
        machine_changes=machine_changes,
    )


def _messages(batches: Iterable[pa.RecordBatch]) -> Iterator[list[Row]]:
    """The rows of each message: all but its first have a position above 0 in it."""
    held: list[Row] = []
    for batch in batches:
        # Python's own times have no nanoseconds
        times: list[int] = np.asarray(batch.column("time")).astype("M8[ns]").astype(np.int64).tolist()
        for row, time in zip(batch.drop_columns(["time"]).to_pylist(), times, strict=True):
            if held and not row["index"]:
                yield held
                held = []
            held.append({**row, "time": time})
    if held:
        yield held


@dataclass(frozen=True, slots=True, kw_only=True)
class _Update:
    """A row in the terms of the directory."""

    version: int
    machine: str
    object: str
    guid: UUID | None
    path: str | None
    queue_manager: UUID | None
    event: Event


def _update(row: Row) -> _Update:
    """What a row says; ValueError where its whole message is disregarded ([MS-MQCN] 3.2.5.1)."""
    operation = row["operation"]
    if row["object"] is None or (row["object"] == "machine" and operation == "delete"):
        raise ValueError("it is of neither a queue nor a machine")
    guid, path, queue_manager, told = row["object_guid"], row["path_name"], None, dict[str, Any]()
    if row["version"] == 1 and row["object"] == "queue" and operation != "delete":
        values = _first_values(row["properties"])
        table = CREATED_QUEUE if operation == "create" else UPDATED_QUEUE
        told = {
            attribute: attribute_value(Queue, attribute, values[propid])
            for propid, attribute in table.items()
            if propid in values
        }
        queue_manager = values.get(PROPID_Q_QMID)
        if operation == "create":
            path = told["pathname"] = told.get("pathname") or path
            if "identifier" not in told or not path:
                raise ValueError("it creates a queue without a name")
            guid = told["identifier"]
    return _Update(
        version=row["version"],
        machine=row["dst"],
        object=row["object"],
        guid=_guid(guid),
        path=path,
        queue_manager=queue_manager,
        event=Event(
            operation=operation,
            applied=True,
            time=row["time"],
            file=row["file"],
            frame=row["frame"],
            source=row["src"],
            origin=UUID(row["master_guid"]) if row["version"] == 1 else row["domain_controller"],
            told=told,
        ),
    )


def _guid(value: UUID | str | None) -> UUID | None:
    return UUID(value) if isinstance(value, str) else value


def _first_values(properties: Iterable[Row]) -> dict[int, Any]:
    """Values by PROPID; of several of one PROPID the first counts, as IndexOf has it."""
    found: dict[int, Any] = {}
    for item in properties:
        value = next((item[member] for member in _VALUE_MEMBERS if item[member] is not None), None)
        found.setdefault(item["id"], UUID(value) if item["guid"] is not None else value)
    return found


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

    def apply(self, update: _Update) -> bool:
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


class _Machines:
    """The queues of all machines, found by Identifier, or by Pathname without regard to case while they exist."""

    def __init__(self) -> None:
        self.queues: list[_Known] = []
        self._by_guid: dict[tuple[str, UUID], _Known] = {}
        self._by_path: dict[tuple[str, str], _Known] = {}

    def tell(self, update: _Update) -> None:
        """One notification."""
        known = self._find(update)
        if known is None:
            known = _Known(update.machine)
            if update.path is not None:
                known.values["pathname"] = update.path
            self.queues.append(known)
        applied = known.apply(update)
        known.history.append(update.event if applied else replace(update.event, applied=False))
        self._index(known, update)

    def _find(self, update: _Update) -> _Known | None:
        machine, guid, path = update.machine, update.guid, update.path
        known = None if guid is None else self._by_guid.get((machine, guid))
        return known if known or path is None else self._by_path.get((machine, path.lower()))

    def _index(self, known: _Known, update: _Update) -> None:
        if update.guid is not None:
            self._by_guid[known.machine, update.guid] = known
        path = known.values.get("pathname")
        if path is not None and known.exists is not False:
            self._by_path[known.machine, path.lower()] = known
        elif path is not None and self._by_path.get((known.machine, path.lower())) is known:
            del self._by_path[known.machine, path.lower()]
