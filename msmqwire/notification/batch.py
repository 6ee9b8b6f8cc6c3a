"""Change notifications by the million: what changes queues that exist is applied as columns ([MS-MQCN] 3.2.5.1).

An update of a queue touches no other, so updates may be applied in another order than that of their messages, as long
as those of one queue keep theirs. Rows are sorted out into those that can be judged or applied as columns, and those
that go one by one: creations, deletions, what is named by its path, all updates of queues that one of these may touch,
and the local queue manager. An event of version 2 may touch any queue, so it parts the rows before it from those behind
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from msmqwire.directory.elements import Queue, QueueManager
from msmqwire.mqcn import (
    ChangeNotificationMessage,
    NotificationBatch,
    NotificationBody,
    NotificationUpdate,
    PropertyColumn,
    decode,
)
from msmqwire.notification.attributes import CREATED_QUEUE, UPDATED_QUEUE, enumeration
from msmqwire.notification.audit import (
    DISPATCH,
    VERSION_1,
    VERSION_2,
    Changed,
    Disregarded,
    Ignored,
    Place,
    Record,
    Rule,
)
from msmqwire.notification.envelope import Envelope
from msmqwire.notification.queues import QueueCollection, to_python
from msmqwire.notification.updates import DISCARDABLE, INSTANCE, PATHNAME, first_values, pathname_of

__all__ = ["AttributeChanges", "BatchAudit", "apply_batch"]

_Rows = NDArray[np.int64]

_CREATE, _CHANGE, _DELETE = 0, 1, 2
_QUEUE, _MACHINE = 0, 1

# What became of a row, or of a message: the place of a rule, or one of these
_RULES = tuple(Rule)
_CODE = {rule: code for code, rule in enumerate(_RULES)}
_CHANGED, _RECORDED, _NOTHING = 253, 254, 255

#: How many values the attributes have that are enumerations.
_ENUMERATED = {name: len(values) for name in CREATED_QUEUE.values() if (values := enumeration(Queue, name))}


class Receiver(Protocol):
    """Whose queues a batch is applied to, message by message where columns do not do; a ``NotificationProcessor``."""

    queue_manager: QueueManager
    queues: QueueCollection
    processed: int

    @property
    def profile(self) -> str:
        """``"nt_2000"`` or ``"later"``."""

    def envelope_refusal(self, envelope: Envelope) -> Rule | None:
        """The rule by which a message of version 1 is disregarded for whom it comes from."""

    def is_local(self, pathname: str) -> bool:
        """Whether a path is that of a queue on this computer."""

    def apply_update(self, place: Place, update: NotificationUpdate) -> Record:
        """Apply an update of version 1."""

    def apply_event(self, place: Place, body: NotificationBody) -> Record:
        """Apply an event of version 2."""


@dataclass(frozen=True, slots=True)
class AttributeChanges:
    """The updates of one batch that gave an attribute of a queue another value, in columns.

    Attributes
    ----------
    rows : ndarray of int64
        Of the batch, ascending.
    before, after : ndarray
        Numbers as the wire has them; ``bytes`` for security descriptors.
    """

    rows: _Rows
    before: NDArray[Any]
    after: NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Write:
    """Values that were written to the column of an attribute: by row, for which queue, over what."""

    rows: _Rows
    slots: _Rows
    before: NDArray[Any]
    places: _Rows
    """Of the values, among all that the batch has of the property."""


class _Reader:
    """The columns of a batch as its application needs them, each made once."""

    def __init__(self, batch: NotificationBatch) -> None:
        self.batch = batch
        self.messages = batch.messages.astype(np.int64)
        self.message_of = np.repeat(np.arange(len(self.messages) - 1), np.diff(self.messages))
        self.operation = batch["operation"]
        self.guids = np.ascontiguousarray(batch["object_guid"]).view("V16").ravel()
        self.has_guid = batch.is_present("object_guid")
        self._firsts: dict[int, tuple[PropertyColumn, _Rows]] = {}
        self._first_rows: dict[int, _Rows] = {}
        self._decoded: tuple[int, ChangeNotificationMessage] | None = None

    def first(self, propid: int) -> tuple[PropertyColumn, _Rows]:
        """All values of a property, and which of them are the first in their row."""
        if propid not in self._firsts:
            column = self.batch.property(propid)
            rows = column.rows
            first = np.flatnonzero(np.concatenate([np.ones(min(len(rows), 1), bool), rows[1:] != rows[:-1]]))
            self._firsts[propid] = column, first
        return self._firsts[propid]

    def first_rows(self, propid: int) -> _Rows:
        """The rows that have a property, ascending."""
        if propid not in self._first_rows:
            column, first = self.first(propid)
            self._first_rows[propid] = column.rows[first].astype(np.int64)
        return self._first_rows[propid]

    def message(self, row: int) -> ChangeNotificationMessage:
        """The message that a row belongs to, as an object."""
        number = int(self.message_of[row])
        if self._decoded is None or self._decoded[0] != number:
            self._decoded = number, decode(self._payload(number), strict=True)
        return self._decoded[1]

    def update(self, row: int) -> NotificationUpdate:
        """The update of version 1 that a row is, as an object."""
        return self.message(row).updates[row - int(self.messages[self.message_of[row]])]

    def values(self, propid: int, places: _Rows) -> NDArray[Any]:
        """Some of the values of a property: numbers, or ``bytes``."""
        column, _ = self.first(propid)
        if isinstance(column.values, np.ndarray):
            return column.values[places].astype(np.int64)
        messages = self.message_of[column.rows[places]].tolist()
        spans = zip(column.values.offset[places].tolist(), column.values.length[places].tolist(), strict=True)
        made = np.empty(len(places), object)
        for i, (number, (offset, length)) in enumerate(zip(messages, spans, strict=True)):
            made[i] = bytes(self._payload(number)[offset : offset + length])
        return made

    def _payload(self, number: int) -> memoryview:
        payload = self.batch.payloads[number]
        assert payload is not None, "a message with a change is not null"
        return payload


class BatchAudit:
    """What became of the messages of a batch: the records, made when they are asked for.

    Iterating gives what ``NotificationProcessor.process`` would have returned for each message, one after the other.
    """

    def __init__(self, reader: _Reader, first: int, message_rules: NDArray[np.uint8], blamed: _Rows) -> None:
        self._reader = reader
        self._first = first
        self._message_rules = message_rules
        self._blamed = blamed
        self._outcomes = np.full(len(reader.batch), _NOTHING, np.uint8)
        self._records: dict[int, Record] = {}
        self._writes: dict[str, list[_Write]] = {name: [] for name in UPDATED_QUEUE.values()}
        self._changes: dict[str, AttributeChanges] = {}

    @property
    def disregarded(self) -> NDArray[np.int64]:
        """The messages of the batch of which nothing was applied."""
        return np.flatnonzero(self._message_rules != _NOTHING)

    def changes(self, attribute: str) -> AttributeChanges:
        """What was changed of one attribute of queues by updates that were applied as columns.

        Raises
        ------
        KeyError
            No update of a queue changes this attribute.
        """
        if attribute not in self._changes:
            self._changes[attribute] = self._compared(attribute)
        return self._changes[attribute]

    def __iter__(self) -> Iterator[Record]:
        starts = self._reader.messages.tolist()
        cursors = dict.fromkeys(UPDATED_QUEUE.values(), 0)
        for number, rule in enumerate(self._message_rules.tolist()):
            if rule != _NOTHING:
                yield self._disregarded(number, _RULES[rule])
                continue
            for row in range(starts[number], starts[number + 1]):
                outcome = int(self._outcomes[row])
                if outcome == _RECORDED:
                    yield self._records[row]
                elif outcome == _CHANGED:
                    yield self._changed(row, cursors)
                elif outcome != _NOTHING:
                    yield self._ignored(row, _RULES[outcome])

    def place(self, row: int) -> Place:
        """Where a row of version 1 stands."""
        number = int(self._reader.message_of[row])
        return Place(self._first + number, row - int(self._reader.messages[number]), VERSION_1)

    def put(self, rows: _Rows, outcome: int) -> None:
        """Note what became of rows."""
        self._outcomes[rows] = outcome

    def record(self, row: int, record: Record) -> None:
        """Note the record of a row."""
        self._outcomes[row] = _RECORDED
        self._records[row] = record

    def written(self, attribute: str, write: _Write) -> None:
        """Note values that were written."""
        self._writes[attribute].append(write)

    def _compared(self, attribute: str) -> AttributeChanges:
        propid = _PROPIDS[attribute]
        kind = object if attribute == "security" else np.int64
        rows, before, after = [np.empty(0, np.int64)], [np.empty(0, kind)], [np.empty(0, kind)]
        for write in self._writes[attribute]:
            values = self._reader.values(propid, write.places)
            order = np.argsort(write.slots, kind="stable")
            same = np.flatnonzero(np.diff(write.slots[order]) == 0)
            old = write.before.copy()
            old[order[same + 1]] = values[order[same]]
            changed = np.flatnonzero(old != values)
            rows.append(write.rows[changed])
            before.append(old[changed])
            after.append(values[changed])
        return AttributeChanges(np.concatenate(rows), np.concatenate(before), np.concatenate(after))

    def _changed(self, row: int, cursors: dict[str, int]) -> Changed:
        """The record of a row; ``cursors`` are where rows before it have left off in the changes."""
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        for name in UPDATED_QUEUE.values():
            changes, at = self.changes(name), cursors[name]
            if at < len(changes.rows) and changes.rows[at] == row:
                cursors[name] += 1
                before[name], after[name] = (to_python(name, each[at]) for each in (changes.before, changes.after))
        guid = self._guid(row)
        assert guid is not None, "what is named by its path is applied by itself"
        return self.place(row).changed("queue", guid, before, after)

    def _ignored(self, row: int, rule: Rule) -> Ignored:
        place = self.place(row)
        if rule is not Rule.OTHER_COMPUTER:
            return place.ignored(rule, self._guid(row))
        update = self._reader.update(row)
        values = first_values(update.properties)
        return place.ignored(rule, values[INSTANCE], pathname_of(update.path_name, values))

    def _guid(self, row: int) -> UUID | None:
        return UUID(bytes_le=self._reader.guids[row].item()) if self._reader.has_guid[row] else None

    def _disregarded(self, number: int, rule: Rule) -> Disregarded:
        row, blamed = int(self._reader.messages[number]), int(self._blamed[number])
        if blamed >= 0:
            return self.place(blamed).disregarded(rule)
        fault = self._reader.batch.fault(row)
        if fault is not None:
            detail = f"{fault.code}: {fault.field} at byte {fault.offset}"
            return Place(self._first + number, None, DISPATCH).disregarded(rule, detail)
        section = DISPATCH if rule in (Rule.MALFORMED, Rule.VERSION) else VERSION_1
        return Place(self._first + number, None, section).disregarded(rule)


_PROPIDS = {name: propid for propid, name in CREATED_QUEUE.items()}


def apply_batch(receiver: Receiver, batch: NotificationBatch, envelopes: Envelope | Sequence[Envelope]) -> BatchAudit:
    """Apply a batch; see ``NotificationProcessor.process_batch``."""
    if np.any(batch.violations & np.uint32(DISCARDABLE)):
        raise ValueError("the batch was not decoded with strict=True")
    count = len(batch.messages) - 1
    if not isinstance(envelopes, Envelope) and len(envelopes) != count:
        raise ValueError(f"{len(envelopes)} envelopes for {count} messages")
    reader = _Reader(batch)
    version = batch["version"]
    first = receiver.processed
    receiver.processed += count
    rules = np.full(count, _NOTHING, np.uint8)
    _judge_dispatch(receiver, reader, rules)
    _judge_envelopes(receiver, envelopes, rules, version[reader.messages[:-1]] == 1)
    blamed = _judge_updates(reader, rules, version == 1)
    audit = BatchAudit(reader, first, rules, blamed)
    accepted = (rules[reader.message_of] == _NOTHING) & batch.is_present("operation")
    run = _Run(receiver, reader, audit)
    at = 0
    for event in np.flatnonzero(accepted & (version == 2)).tolist():
        run.apply_updates(at + np.flatnonzero(accepted[at:event]))
        body = reader.message(event).body
        assert body is not None, "version 2 has a body"
        place = Place(first + int(reader.message_of[event]), 0, VERSION_2)
        audit.record(event, receiver.apply_event(place, body))
        at = event + 1
    run.apply_updates(at + np.flatnonzero(accepted[at:]))
    return audit


def _judge_dispatch(receiver: Receiver, reader: _Reader, rules: NDArray[np.uint8]) -> None:
    """Disregard what cannot be decoded, and what the profile does not know."""
    batch, starts = reader.batch, reader.messages[:-1]
    rules[~batch.is_present("version")[starts]] = _CODE[Rule.MALFORMED]
    for row, rule in ((int(each["row"]), batch.fault(int(each["row"]))) for each in batch.faults):
        assert rule is not None
        code = Rule.VERSION if rule.code == "bad_version" else Rule.MALFORMED
        rules[reader.message_of[row]] = _CODE[code]
    if receiver.profile == "nt_2000":
        rules[batch["version"][starts] == 2] = _CODE[Rule.VERSION]


def _judge_envelopes(
    receiver: Receiver,
    envelopes: Envelope | Sequence[Envelope],
    rules: NDArray[np.uint8],
    version_1: NDArray[np.bool_],
) -> None:
    """Disregard messages of version 1 for whom they come from."""
    due = np.flatnonzero((rules == _NOTHING) & version_1)
    if isinstance(envelopes, Envelope):
        refused = receiver.envelope_refusal(envelopes) if len(due) else None
        if refused is not None:
            rules[due] = _CODE[refused]
        return
    for number in due.tolist():
        refused = receiver.envelope_refusal(envelopes[number])
        if refused is not None:
            rules[number] = _CODE[refused]


def _judge_updates(reader: _Reader, rules: NDArray[np.uint8], version_1: NDArray[np.bool_]) -> _Rows:
    """Disregard messages of version 1 for one of their updates; the row to blame in each, or -1."""
    batch = reader.batch
    rows = version_1 & batch.is_present("operation") & (rules[reader.message_of] == _NOTHING)
    operation, kind = reader.operation, np.where(batch.is_present("object"), batch["object"], _NOTHING)
    queue_written = rows & (kind == _QUEUE) & (operation != _DELETE)
    created = queue_written & (operation == _CREATE)
    verdicts = np.full(len(batch), _NOTHING, np.uint8)
    for attribute, values in _ENUMERATED.items():
        column, first = reader.first(_PROPIDS[attribute])
        wrong = column.rows[first[column.values[first] >= values]]
        told = queue_written if attribute in UPDATED_QUEUE.values() else created
        verdicts[wrong[told[wrong]]] = _CODE[Rule.VALUE]
    path, first = reader.first(PATHNAME)
    with_path = batch["path_name"].length > 0
    with_path[path.rows[first[path.values.length[first] > 0]]] = True
    verdicts[created & ~with_path] = _CODE[Rule.NO_PATHNAME]
    with_identifier = np.zeros(len(batch), bool)
    with_identifier[reader.first(INSTANCE)[0].rows] = True
    verdicts[created & ~with_identifier] = _CODE[Rule.NO_IDENTIFIER]
    known = (kind == _QUEUE) | ((kind == _MACHINE) & (operation != _DELETE))
    verdicts[rows & ~known] = _CODE[Rule.OBJECT_TYPE]

    blamed = np.full(len(rules), -1, np.int64)
    wrong = np.flatnonzero(verdicts != _NOTHING)[::-1]
    blamed[reader.message_of[wrong]] = wrong  # the first of a message is written last
    judged = np.flatnonzero(blamed >= 0)
    rules[judged] = verdicts[blamed[judged]]
    return blamed


class _Run:
    """The application of the updates of a batch to the queues of a receiver."""

    def __init__(self, receiver: Receiver, reader: _Reader, audit: BatchAudit) -> None:
        self._receiver = receiver
        self._reader = reader
        self._audit = audit
        self._kind = reader.batch["object"]

    def apply_updates(self, rows: _Rows) -> None:
        """Apply rows of version 1 between two events of version 2."""
        if not len(rows):
            return
        apart = self._apply_machines(rows[self._kind[rows] == _MACHINE])
        rows = rows[self._kind[rows] == _QUEUE]
        operation = self._reader.operation[rows]
        created, hot = self._sort_creations(rows[operation == _CREATE])
        deleted = rows[operation == _DELETE]
        deleted = self._sort_deletions(deleted, hot)
        changed = rows[operation == _CHANGE]
        named = changed[~self._reader.has_guid[changed]]
        hot |= self._at_paths(named)
        changed = changed[self._reader.has_guid[changed]]
        guids = self._reader.guids[changed].tolist()
        if hot:
            one_by_one = np.fromiter((each in hot for each in guids), bool, len(guids))
            apart = np.concatenate([apart, changed[one_by_one]])
            changed = changed[~one_by_one]
            guids = self._reader.guids[changed].tolist()
        for row in np.sort(np.concatenate([apart, created, deleted, named])).tolist():
            record = self._receiver.apply_update(self._audit.place(row), self._reader.update(row))
            self._audit.record(row, record)
        self._apply_changes(changed, self._receiver.queues.slots_of(guids))

    def _apply_machines(self, rows: _Rows) -> _Rows:
        """Judge what is not for the local queue manager; the other rows."""
        created = self._reader.operation[rows] == _CREATE
        self._audit.put(rows[created], _CODE[Rule.MACHINE_CREATED])
        rows = rows[~created]
        local = np.frombuffer(self._receiver.queue_manager.identifier.bytes_le, np.uint8)
        ours = self._reader.has_guid[rows] & (self._reader.batch["object_guid"][rows] == local).all(axis=1)
        self._audit.put(rows[~ours], _CODE[Rule.OTHER_MACHINE])
        mine: _Rows = rows[ours]
        return mine

    def _sort_creations(self, rows: _Rows) -> tuple[_Rows, set[bytes]]:
        """The creations on this computer, and the Identifiers of queues that they may touch."""
        hot: set[bytes] = set()
        local = []
        queues = self._receiver.queues
        for row in rows.tolist():
            update = self._reader.update(row)
            values = first_values(update.properties)
            pathname = pathname_of(update.path_name, values)
            if not self._receiver.is_local(pathname):
                self._audit.put(np.array([row]), _CODE[Rule.OTHER_COMPUTER])
                continue
            local.append(row)
            hot.add(values[INSTANCE].bytes_le)
            slot = queues.slot_at(pathname)
            if slot is not None:
                hot.add(queues.identifier(slot).bytes_le)
        return np.array(local, np.int64), hot

    def _sort_deletions(self, rows: _Rows, hot: set[bytes]) -> _Rows:
        """The deletions of queues that there are or may be; their Identifiers are added to ``hot``."""
        named = self._reader.has_guid[rows]
        self._audit.put(rows[~named], _CODE[Rule.NO_GUID])
        rows = rows[named]
        guids = self._reader.guids[rows].tolist()
        slots = self._receiver.queues.slots_of(guids)
        found = np.fromiter(
            (slot >= 0 or guid in hot for slot, guid in zip(slots.tolist(), guids, strict=True)), bool, len(guids)
        )
        self._audit.put(rows[~found], _CODE[Rule.NOT_FOUND])
        hot.update(self._reader.guids[rows[found]].tolist())
        kept: _Rows = rows[found]
        return kept

    def _at_paths(self, rows: _Rows) -> set[bytes]:
        """The Identifiers of the queues that rows name by their paths."""
        found = set()
        queues = self._receiver.queues
        for row in rows.tolist():
            slot = queues.slot_at(self._reader.batch["path_name"].text(row))
            if slot is not None:
                found.add(queues.identifier(slot).bytes_le)
        return found

    def _apply_changes(self, rows: _Rows, slots: _Rows) -> None:
        """Write the columns; of several values for one queue the last stays."""
        self._audit.put(rows, _CODE[Rule.NOT_FOUND])
        rows, slots = rows[slots >= 0], slots[slots >= 0]
        if not len(rows):
            return
        self._audit.put(rows, _CHANGED)
        # Nothing here is as long as the batch: between two events there may be one row
        start, stop = int(rows[0]), int(rows[-1]) + 1
        slot_of = np.full(stop - start, -1, np.int64)
        slot_of[rows - start] = slots
        for propid, attribute in UPDATED_QUEUE.items():
            column, first = self._reader.first(propid)
            places = first[slice(*np.searchsorted(self._reader.first_rows(propid), (start, stop)))]
            places = places[slot_of[column.rows[places] - start] >= 0]
            if not len(places):
                continue
            written = column.rows[places].astype(np.int64)
            target, at = self._receiver.queues.column(attribute), slot_of[written - start]
            self._audit.written(attribute, _Write(written, at, target[at], places))
            last = np.empty(len(target), np.int64)
            last[at] = np.arange(len(at))
            kept = last[at] == np.arange(len(at))
            target[at[kept]] = self._reader.values(propid, places[kept])
