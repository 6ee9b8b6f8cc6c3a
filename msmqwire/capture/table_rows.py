"""The tables that captures are read as, and how the payloads of a block become the rows of one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack

import numpy as np

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.capture.notification_rows import JUDGED, OF_MESSAGES, OF_SENDERS, judged_columns, with_columns
from msmqwire.capture.options import ReadKeywords, ReadOptions, options_of
from msmqwire.capture.schema import (
    CAPTURE,
    CONNECTIONS,
    MESSAGE_PORTS,
    PING_PORTS,
    TOPOLOGY_PORTS,
    TOPOLOGY_SOCKETS,
)
from msmqwire.capture.tcp._connections import decode_connections
from msmqwire.capture.tcp._packets import PACKET_KINDS
from msmqwire.capture.unrecognized import CAPTURED_MESSAGES, UNRECOGNIZED, unrecognized_columns
from msmqwire.columns import Batch, Payloads, Table
from msmqwire.columns._batch import concat_columns, take_rows
from msmqwire.columns.schema import FORMER_NAMES, GuidForm, current_names
from msmqwire.notification import judgement
from msmqwire.notification.schema import CAPTURED_NOTIFICATIONS
from msmqwire.wire._transport import Transport
from msmqwire.wire.codes import FAULT_NAMES

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from msmqwire.capture.files._blocks import Block

# Of the senders and of the receivers of payloads
PortColumns: TypeAlias = "tuple[NDArray[np.uint16], NDArray[np.uint16]]"
MOST_BATCHES = 4
# Not the members of the enumeration: numpy asks those for attributes, and drops the exception of a signal meanwhile
UDP, TCP = int(Transport.UDP), int(Transport.TCP)
_BAD_SIGNATURE = FAULT_NAMES.index("bad_signature")


@dataclass(frozen=True)
class TableKind:
    """How payloads become a table.

    Attributes
    ----------
    table : Table
        Its columns.
    decode_batch : callable
        What decodes its payloads; those of notifications are bodies of messages.
    ports : mapping of str to frozenset of int
        The ports where they are found, for each transport.
    packets : tuple of str
        The kinds of packets in TCP streams among them.
    takes_transport : bool
        ``decode_batch`` has the argument ``transport``.
    carried_in_messages : bool
        They are bodies of messages.
    """

    table: Table
    decode_batch: Callable[..., Batch]
    ports: Mapping[str, frozenset[int]]
    packets: tuple[str, ...] = ()
    takes_transport: bool = False
    carried_in_messages: bool = False


TABLES: dict[str, TableKind] = {
    "topology": TableKind(
        mqsd.TOPOLOGY,
        mqsd.decode_batch,
        {"udp": TOPOLOGY_PORTS, "ipx": TOPOLOGY_SOCKETS},
        takes_transport=True,
    ),
    "notifications": TableKind(
        CAPTURED_NOTIFICATIONS, mqcn.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",), carried_in_messages=True
    ),
    "messages": TableKind(CAPTURED_MESSAGES, mqqb.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",)),
    "sessions": TableKind(
        mqqb.SESSIONS,
        mqqb.decode_session_batch,
        {"udp": PING_PORTS, "tcp": MESSAGE_PORTS},
        ("session",),
        takes_transport=True,
    ),
}


#: The tables of packets, which are read where no table is named, and the tables that are read where they are named.
ALL_TABLES: dict[str, TableKind] = {
    **TABLES,
    "connections": TableKind(CONNECTIONS, decode_connections, {"tcp": MESSAGE_PORTS}, ("connection",)),
}


def table_kind(name: str) -> TableKind:
    """The member of ``ALL_TABLES``; raises ValueError."""
    if name not in ALL_TABLES:
        raise ValueError(f"unknown table {name!r}; known: {', '.join(ALL_TABLES)}")
    return ALL_TABLES[name]


def table_columns(name: str) -> tuple[str, ...]:
    """Names of the columns of a table that is read from captures."""
    return (*CAPTURE.names, *table_kind(name).table.names)


def requested_names(name: str, columns: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the requested columns of a table and of its capture, in the given order."""
    return current_names(name, current_names(CAPTURE.name, (columns,) if isinstance(columns, str) else columns))


def former_names(name: str) -> dict[str, str]:
    """The former names of columns of a table that is read from captures, and their names now."""
    return {**FORMER_NAMES.get(CAPTURE.name, {}), **FORMER_NAMES.get(name, {})}


def _ports_of(name: str, options: ReadOptions, tables: Collection[str]) -> dict[str, frozenset[int]]:
    """Return the ports to read for a table: the ports in the options, for the transports of the table."""
    own = table_kind(name).ports
    if options.ports is None:
        return dict(own)
    chosen = {transport: options.ports[transport] for transport in own}
    if {"topology", "sessions"} <= set(tables):
        # A datagram is discovery or a ping by its port alone
        if name == "sessions":
            chosen["udp"] = own["udp"]
        elif name == "topology":
            chosen["udp"] -= PING_PORTS
    return chosen


def table_options(
    tables: Iterable[str], options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> ReadOptions:
    """The options with which ``open`` and ``checkpoints`` read the payloads of tables, and no others.

    Parameters
    ----------
    tables : iterable of str
        Some of ``ALL_TABLES``.
    options, **keywords
        As for ``read_tables``, which reads with the same payloads.
    """
    options = options_of(options, keywords, unused=("packets",))
    ports: dict[str, frozenset[int]] = {}
    packets: set[str] = set()
    names = (tables,) if isinstance(tables, str) else tuple(tables)
    for name in names:
        packets.update(table_kind(name).packets)
        for transport, numbers in _ports_of(name, options, names).items():
            ports[transport] = ports.get(transport, frozenset()) | numbers
    return options_of(options, {"ports": ports, "packets": packets})


def _split(name: str, columns: Iterable[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the requested columns in the order of the table: first of the capture, then of the protocol."""
    return _columns(name, None if columns is None else requested_names(name, columns))


@lru_cache(maxsize=64)
def _columns(name: str, chosen_names: tuple[str, ...] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    known = table_columns(name)
    wanted = known if chosen_names is None else chosen_names
    names, chosen = frozenset(known), frozenset(wanted)
    unknown = [column for column in wanted if column not in names]
    if unknown:
        raise ValueError(f"{name} has no column {', '.join(map(repr, unknown))}; it has {', '.join(known)}")
    return (
        tuple(column for column in CAPTURE.names if column in chosen),
        tuple(column for column in table_kind(name).table.names if column in chosen),
    )


def arrow_schema(
    name: str, columns: Iterable[str] | None = None, guid: GuidForm = "binary", dictionaries: bool = True
) -> pa.Schema:
    """The Arrow schema of a table that is read from captures, or of some of its columns; needs pyarrow."""
    return _arrow_schema(name, *_split(name, columns), guid, dictionaries)


@lru_cache(maxsize=64)
def _arrow_schema(
    name: str, first: tuple[str, ...], last: tuple[str, ...], guid: GuidForm, dictionaries: bool
) -> pa.Schema:
    import pyarrow as pa

    table = table_kind(name).table.arrow_schema(last, guid=guid, dictionaries=dictionaries)
    return pa.schema([*CAPTURE.arrow_schema(first, dictionaries=dictionaries), *table])


@lru_cache(maxsize=64)
def _no_rows(
    name: str, first: tuple[str, ...], last: tuple[str, ...], guid: GuidForm, dictionaries: bool
) -> pa.RecordBatch:
    import pyarrow as pa

    schema = _arrow_schema(name, first, last, guid, dictionaries)
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


@lru_cache(maxsize=16)
def _is_among(ports: frozenset[int]) -> NDArray[np.bool_]:
    """For each port whether it is one of these."""
    found = np.zeros(1 << 16, np.bool_)
    found[list(ports)] = True
    return found


class _ReusedBatches:
    """Decodes into an earlier batch that no Arrow consumer and no other thread uses, or into a new one."""

    def __init__(self, decode_batch: Callable[..., Batch], **options: Any) -> None:
        self._decode_batch = decode_batch
        self._options = options
        self._free: deque[Batch] = deque(maxlen=MOST_BATCHES)

    def decode(self, stack: ExitStack, payloads: Payloads, **options: Any) -> Batch:
        """Decode payloads; the batch is not decoded into again before the stack is left."""
        batch = self._decoded(payloads, options | self._options)
        stack.callback(self._free.append, batch)
        return batch

    def _decoded(self, payloads: Payloads, options: dict[str, Any]) -> Batch:
        for _ in range(MOST_BATCHES):
            try:
                out = self._free.popleft()
            except IndexError:
                break
            try:
                return self._decode_batch(payloads, out=out, **options)
            except BufferError:
                self._free.append(out)
        return self._decode_batch(payloads, **options)


class TableRows:
    """One table of a reader: its columns, and the counts of its rows.

    Attributes
    ----------
    name : str
    kind : TableKind
    schema : pyarrow.Schema
        Of its record batches; known before anything is read.
    payloads : int
        The payloads read so far. Except for notifications, each is one row.
    rows : int
        The rows so far.
    faults : Counter
        The rows with a fault, by its code.
    encrypted : int
        Notifications: messages to the notify queue that are encrypted, so that their notifications are unknown.
    unread : int
        Notifications: messages to any queue that have a fault. Bytes in which no packet begins do not count.
    """

    def __init__(self, name: str, columns: Iterable[str] | None, options: ReadOptions) -> None:
        self.name = name
        self.kind = table_kind(name)
        self.first, self._last = _split(name, columns)
        self._guid: GuidForm = options.guid
        self._dictionaries = options.dictionaries
        self.schema = _arrow_schema(name, self.first, self._last, self._guid, self._dictionaries)
        self.payloads = self.rows = self.encrypted = self.unread = 0
        self.faults: Counter[str] = Counter()
        self.counting = Lock()
        #: The columns that are made here, and those of decoded batches.
        self.added = frozenset(self._last) & (JUDGED | OF_SENDERS if self.kind.carried_in_messages else UNRECOGNIZED)
        self.decoded = tuple(column for column in self._last if column not in self.added)

    def _use_text_guids(self) -> None:
        """Make rows with canonical text as GUIDs; before anything is read."""
        self._guid = "text"
        self.schema = _arrow_schema(self.name, self.first, self._last, self._guid, self._dictionaries)

    def _rows_of(self, batch: Batch, capture: Batch, added: dict[str, pa.Array[Any]]) -> pa.RecordBatch:
        """The rows of a decoded batch, which forgets its payloads: rows that are kept do not keep what was read."""
        faults = list(map(FAULT_NAMES.__getitem__, batch.faults["code"].tolist()))
        with self.counting:
            self.rows += len(batch)
            self.faults.update(faults)
        rows = concat_columns(capture, batch, guid=self._guid, dictionaries=self._dictionaries)
        if len(batch.columns) > len(self.decoded):
            rows = rows.select([*self.first, *self.decoded])
        batch.forget_payloads()
        return with_columns(rows, added, self.schema)

    def _no_rows(self) -> pa.RecordBatch:
        """A record batch without rows."""
        return _no_rows(self.name, self.first, self._last, self._guid, self._dictionaries)


class PayloadRows:
    """The rows of a table that has a row for each payload: which payloads of a block these are, and their rows."""

    def __init__(self, tables: Sequence[TableRows], options: ReadOptions, names: Collection[str]) -> None:
        """``names``: all tables that are read."""
        self.tables = tables
        table = self._table = tables[0]
        self._ports = {
            int(Transport[name.upper()]): ports for name, ports in _ports_of(table.name, options, names).items()
        }
        self._packets = sum(PACKET_KINDS[packet] for packet in table.kind.packets)
        self._batches = _ReusedBatches(table.kind.decode_batch, strict=options.strict, columns=table.decoded)

    def chosen(self, transports: NDArray[np.uint8], kinds: NDArray[np.uint8], ports: PortColumns) -> NDArray[np.bool_]:
        """Which payloads of a block have rows."""
        wanted = np.zeros(len(transports), np.bool_)
        for transport, numbers in self._ports.items():
            here = transports == transport
            if not here.any():
                continue
            is_ours = _is_among(numbers)
            here &= is_ours[ports[0]] | is_ours[ports[1]]
            if transport == TCP:
                here &= kinds & self._packets != 0
            wanted |= here
        return wanted

    def rows_of(self, block: Block, places: NDArray[np.uint32] | None) -> list[tuple[str, pa.RecordBatch]]:
        """The rows of the payloads of a block, or of those at ``places``; several threads may call it."""
        payloads, transports = block.payloads, block.transports
        if places is not None and len(places) < len(block):
            payloads = payloads.take(places)
            transports = None if transports is None else transports[places]
        with ExitStack() as stack:
            for table in self.tables:
                with table.counting:
                    table.payloads += len(payloads)
            return self._rows(payloads, transports, partial(_capture_columns, block, places), stack)

    def _rows(
        self, payloads: Payloads, transports: NDArray[np.uint8] | None, capture: _CaptureColumns, stack: ExitStack
    ) -> list[tuple[str, pa.RecordBatch]]:
        options = {}
        if self._table.kind.takes_transport:
            options["transport"] = "udp" if transports is None else transports
        batch = self._batches.decode(stack, payloads, **options)
        return [(self._table.name, self._table._rows_of(batch, capture(self._table), {}))]


class MessageRows(PayloadRows):
    """The rows of ``messages``, of the ``notifications`` in their bodies, or of both from one decoded batch."""

    def __init__(self, tables: Sequence[TableRows], options: ReadOptions, names: Collection[str]) -> None:
        super().__init__(tables, options, names)
        by_name = {table.name: table for table in tables}
        self._messages, self._notifications = by_name.get("messages"), by_name.get("notifications")
        needed: frozenset[str] = frozenset()
        if notifications := self._notifications:
            needed = OF_MESSAGES | (OF_SENDERS if notifications.added else frozenset())
            self._bodies = self._judged = _ReusedBatches(
                mqcn.decode_batch, strict=options.strict, columns=notifications.decoded
            )
            if notifications.added & JUDGED and not set(notifications.decoded) >= set(judgement.COLUMNS):
                self._judged = _ReusedBatches(mqcn.decode_batch, strict=options.strict, columns=judgement.COLUMNS)
            self._envelopes = _ReusedBatches(mqqb.decode_batch, columns=tuple(needed))
        if messages := self._messages:
            decoded = set(messages.decoded)
            # Rows without bodies would be made with a copy of every body
            if needed and not options.strict and "body" in decoded:
                decoded |= needed
            columns = tuple(name for name in mqqb.MESSAGES.names if name in decoded)
            self._batches = _ReusedBatches(mqqb.decode_batch, strict=options.strict, columns=columns)
            if needed and needed <= decoded and not options.strict:
                self._envelopes = self._batches

    def _rows(
        self, payloads: Payloads, transports: NDArray[np.uint8] | None, capture: _CaptureColumns, stack: ExitStack
    ) -> list[tuple[str, pa.RecordBatch]]:
        found = []
        messages, envelopes = None, None
        if self._messages is not None:
            messages = envelopes = self._batches.decode(stack, payloads)
        if self._notifications is not None:
            if envelopes is None or self._envelopes is not self._batches:
                envelopes = self._envelopes.decode(stack, payloads)
            # First, since rows of messages forget their payloads, which have the notifications
            found.append(("notifications", self._notification_rows(self._notifications, envelopes, capture, stack)))
        if self._messages is not None and messages is not None:
            added = unrecognized_columns(self._messages.added, messages.payloads)
            found.append(("messages", self._messages._rows_of(messages, capture(self._messages), added)))
        return found

    def _notification_rows(
        self, table: TableRows, envelopes: Batch, capture: _CaptureColumns, stack: ExitStack
    ) -> pa.RecordBatch:
        assert isinstance(envelopes, mqqb.MessageBatch)
        found = envelopes.notifications()
        with table.counting:
            table.encrypted += len(found.encrypted)
            table.unread += int(np.count_nonzero(envelopes.faults["code"] != _BAD_SIGNATURE))  # of no message
        if not len(found.payloads):
            return table._no_rows()
        batch = self._bodies.decode(stack, found.payloads)
        judged = batch if self._judged is self._bodies else self._judged.decode(stack, found.payloads)
        assert isinstance(batch, mqcn.NotificationBatch)
        assert isinstance(judged, mqcn.NotificationBatch)
        added = judged_columns(table.added, table.schema, envelopes, found.rows, judged)
        changes = np.repeat(found.rows, np.diff(batch.messages)).astype(np.uint32)
        return table._rows_of(batch, capture(table, changes), added)


class _CaptureColumns(Protocol):
    """The capture columns of payloads, or of some of them, for a table."""

    def __call__(self, table: TableRows, rows: NDArray[np.uint32] | None = None) -> Batch: ...


def _capture_columns(
    block: Block, places: NDArray[np.uint32] | None, table: TableRows, rows: NDArray[np.uint32] | None = None
) -> Batch:
    if places is not None:
        rows = places if rows is None else places[rows]
    return block.capture if rows is None else take_rows(block.capture, rows, table.first)


def rows_of_tables(tables: Mapping[str, TableRows], options: ReadOptions) -> list[PayloadRows]:
    """Return the makers of rows in the order of the tables; one maker serves all tables of messages."""
    found: list[PayloadRows] = []
    message_tables = [table for table in tables.values() if table.kind.packets == ("message",)]
    for table in tables.values():
        if table not in message_tables:
            found.append(PayloadRows([table], options, tables))
        elif table is message_tables[0]:
            found.append(MessageRows(message_tables, options, tables))
    return found
