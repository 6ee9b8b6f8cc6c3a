"""The tables that captures are read as, and how the payloads of a block become the rows of one."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.capture.notification_rows import JUDGED, OF_MESSAGES, OF_SENDERS, judged_columns, with_columns
from msmqwire.capture.options import ReadKeywords, ReadOptions
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
from msmqwire.columns._batch import joined, take_rows
from msmqwire.columns.schema import GuidForm
from msmqwire.notification import judgement
from msmqwire.notification.schema import CAPTURED_NOTIFICATIONS
from msmqwire.wire._transport import Transport
from msmqwire.wire.codes import FAULT_NAMES

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

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
    in_messages : bool
        They are bodies of messages.
    """

    table: Table
    decode_batch: Callable[..., Batch]
    ports: Mapping[str, frozenset[int]]
    packets: tuple[str, ...] = ()
    takes_transport: bool = False
    in_messages: bool = False


TABLES: dict[str, TableKind] = {
    "topology": TableKind(
        mqsd.TOPOLOGY,
        mqsd.decode_batch,
        {"udp": TOPOLOGY_PORTS, "ipx": TOPOLOGY_SOCKETS},
        takes_transport=True,
    ),
    "notifications": TableKind(
        CAPTURED_NOTIFICATIONS, mqcn.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",), in_messages=True
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


def _ports_of(name: str, options: ReadOptions, tables: Collection[str]) -> dict[str, frozenset[int]]:
    """The ports to read for one of several tables: those of the options, of the transports that the table has."""
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
    options = ReadOptions.of(options, keywords, unused=("packets",))
    ports: dict[str, frozenset[int]] = {}
    packets: set[str] = set()
    names = (tables,) if isinstance(tables, str) else tuple(tables)
    for name in names:
        packets.update(table_kind(name).packets)
        for transport, numbers in _ports_of(name, options, names).items():
            ports[transport] = ports.get(transport, frozenset()) | numbers
    return ReadOptions.of(options, {"ports": ports, "packets": packets})


def _split(name: str, columns: Iterable[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The requested columns in the order of the table: those of the capture, and those of the protocol."""
    return _columns(name, None if columns is None else (columns,) if isinstance(columns, str) else tuple(columns))


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

    def decode(self, payloads: Payloads, **options: Any) -> Batch:
        """Decode payloads; the batch is used by one thread until it is given back."""
        options |= self._options
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

    def give_back(self, batch: Batch) -> None:
        """Let the batch be decoded into again."""
        self._free.append(batch)


class TableRows:
    """One table of a reader: how its payloads become rows, and the counts of them.

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

    def __init__(self, name: str, columns: Iterable[str] | None, options: ReadOptions, tables: Collection[str]) -> None:
        self.name = name
        self.kind = table_kind(name)
        self.first, self._last = _split(name, columns)
        self.schema = _arrow_schema(name, self.first, self._last, options.guid, options.dictionaries)
        self._ports = {
            int(Transport[name.upper()]): ports for name, ports in _ports_of(self.name, options, tables).items()
        }
        self._packets = sum(PACKET_KINDS[packet] for packet in self.kind.packets)
        self.payloads = self.rows = self.encrypted = self.unread = 0
        self.faults: Counter[str] = Counter()
        self._strict = options.strict
        self._guid: GuidForm = options.guid
        self._dictionaries = options.dictionaries
        self._counting = Lock()
        self._is_sharing = False
        added = JUDGED | OF_SENDERS if self.kind.in_messages else UNRECOGNIZED
        self._added = frozenset(self._last) & added
        decoded = tuple(column for column in self._last if column not in self._added)
        self._batches = _ReusedBatches(self.kind.decode_batch, strict=self._strict, columns=decoded)
        #: The columns that are needed of the messages that have its payloads.
        self.of_messages = OF_MESSAGES | (OF_SENDERS if self._added else frozenset())
        self._messages = _ReusedBatches(mqqb.decode_batch, columns=tuple(self.of_messages))
        judging = judgement.COLUMNS if self._added & JUDGED else ()
        self._judging = self._batches
        if not set(decoded) >= set(judging):
            self._judging = _ReusedBatches(self.kind.decode_batch, strict=self._strict, columns=judging)

    def use_text_guids(self) -> None:
        """Make rows with canonical text as GUIDs; before anything is read."""
        self._guid = "text"
        self.schema = _arrow_schema(self.name, self.first, self._last, self._guid, self._dictionaries)

    def chosen(self, transports: NDArray[np.uint8], kinds: NDArray[np.uint8], ports: PortColumns) -> NDArray[np.bool_]:
        """Which payloads of a block belong to this table."""
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

    def share(self, columns: frozenset[str]) -> bool:
        """Let the batch that ``decode`` returns have these columns of messages as well; whether it does.

        A table without ``body`` does not: its rows would be made with a copy of every body.
        """
        if self._strict or "body" not in self._last:
            return False
        if not columns <= set(self._last):
            names = tuple(name for name in self.kind.table.names if name not in self._added)
            decoded = tuple(name for name in names if name in columns or name in self._last)
            self._batches = _ReusedBatches(self.kind.decode_batch, strict=self._strict, columns=decoded)
            self._is_sharing = True
        return True

    def decode(self, payloads: Payloads, transports: NDArray[np.uint8] | None) -> Batch:
        """Decode payloads; those of notifications are decoded as messages. ``give_back`` ends the use of the batch."""
        if self.kind.in_messages:
            return self._messages.decode(payloads)
        return self._batches.decode(payloads, **self._transport(transports))

    def give_back(self, decoded: Batch) -> None:
        """Let ``decode`` write the batch again, once no Arrow consumer holds it."""
        (self._messages if self.kind.in_messages else self._batches).give_back(decoded)

    def rows_of(self, decoded: Batch, capture: Batch) -> pa.RecordBatch:
        """The rows of a batch that ``decode`` returned; ``capture`` has the capture columns of its payloads."""
        if not self.kind.in_messages:
            with self._counting:
                self.payloads += len(decoded)
            added = unrecognized_columns(self._added, decoded.payloads)
            return with_columns(self._rows_of(decoded, capture), added, self.schema)
        assert isinstance(decoded, mqqb.MessageBatch)
        found = decoded.notifications()
        with self._counting:
            self.payloads += len(decoded)
            self.encrypted += len(found.encrypted)
            self.unread += int(np.count_nonzero(decoded.faults["code"] != _BAD_SIGNATURE))  # of no message
        if not len(found.payloads):
            return _no_rows(self.name, self.first, self._last, self._guid, self._dictionaries)
        batch = self._batches.decode(found.payloads)
        assert isinstance(batch, mqcn.NotificationBatch)
        changes = np.repeat(found.rows, np.diff(batch.messages)).astype(np.uint32)
        judged = batch if self._judging is self._batches else self._judging.decode(found.payloads)
        assert isinstance(judged, mqcn.NotificationBatch)
        columns = judged_columns(self._added, self.schema, decoded, found.rows, judged)
        rows = with_columns(self._rows_of(batch, take_rows(capture, changes, self.first)), columns, self.schema)
        self._batches.give_back(batch)
        if judged is not batch:
            self._judging.give_back(judged)
        return rows

    def _rows_of(self, batch: Batch, capture: Batch) -> pa.RecordBatch:
        faults = list(map(FAULT_NAMES.__getitem__, batch.faults["code"].tolist()))
        with self._counting:
            self.rows += len(batch)
            self.faults.update(faults)
        rows = joined(capture, batch, guid=self._guid, dictionaries=self._dictionaries)
        if self._is_sharing:
            rows = rows.select([name for name in self.schema.names if name not in self._added])
        batch.forget_payloads()  # rows that are kept do not keep what was read
        return rows

    def _transport(self, transports: NDArray[np.uint8] | None) -> dict[str, Any]:
        """The argument of the decoder, if it has one."""
        if not self.kind.takes_transport:
            return {}
        return {"transport": "udp" if transports is None else transports}
