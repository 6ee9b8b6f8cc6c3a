"""From captures to tables: each protocol's table with the capture columns in front, as Arrow record batches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

import numpy as np

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.reader import ClosingIterator
from msmqwire.capture.reader import open as open_capture
from msmqwire.capture.schema import (
    CAPTURE,
    MESSAGE_PORTS,
    PACKET_KINDS,
    PING_PORTS,
    TOPOLOGY_PORTS,
    TOPOLOGY_SOCKETS,
    TRANSPORTS,
)
from msmqwire.capture.sources import Source
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.streams import packet_kinds
from msmqwire.columns import Batch, Payloads, Table
from msmqwire.columns.schema import GuidForm
from msmqwire.wire.fault import FAULT_NAMES
from msmqwire.wire.transport import Transport

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from msmqwire.capture.blocks import Block

__all__ = [
    "TABLES",
    "TableKind",
    "TableReader",
    "TableRows",
    "TablesReader",
    "arrow_schema",
    "read_table",
    "read_tables",
    "table_columns",
    "table_payloads",
]

# Of the senders and of the receivers of payloads
PortColumns: TypeAlias = "tuple[NDArray[np.uint16], NDArray[np.uint16]]"
MOST_BATCHES = 4
GUID_FORMS = get_args(GuidForm)
_IN_MESSAGES = {"body", "notification"}  # the columns of messages that notifications are found by


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
    transports : tuple of int
        What ``decode_batch(transport=)`` calls each of ``TRANSPORTS``; empty where it has no such argument.
    in_messages : bool
        They are bodies of messages.
    """

    table: Table
    decode_batch: Callable[..., Batch]
    ports: Mapping[str, frozenset[int]]
    packets: tuple[str, ...] = ()
    transports: tuple[int, ...] = ()
    in_messages: bool = False


TABLES: dict[str, TableKind] = {
    "topology": TableKind(
        mqsd.TOPOLOGY,
        mqsd.decode_batch,
        {"udp": TOPOLOGY_PORTS, "ipx": TOPOLOGY_SOCKETS},
        transports=(Transport.UDP, Transport.UNKNOWN, Transport.IPX),
    ),
    "notifications": TableKind(
        mqcn.NOTIFICATIONS, mqcn.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",), in_messages=True
    ),
    "messages": TableKind(mqqb.MESSAGES, mqqb.decode_batch, {"tcp": MESSAGE_PORTS}, ("message",)),
    "sessions": TableKind(
        mqqb.SESSIONS,
        mqqb.decode_session_batch,
        {"udp": PING_PORTS, "tcp": MESSAGE_PORTS},
        ("session",),
        transports=(Transport.UDP, Transport.TCP, Transport.UNKNOWN),
    ),
}


def _kind(name: str) -> TableKind:
    if name not in TABLES:
        raise ValueError(f"{name!r} is no table; there is {', '.join(TABLES)}")
    return TABLES[name]


def table_columns(name: str) -> tuple[str, ...]:
    """Names of the columns of a table that is read from captures."""
    return (*CAPTURE.names, *_kind(name).table.names)


def table_payloads(tables: Iterable[str], ports: Iterable[int] | None = None) -> dict[str, Any]:
    """Which payloads tables are read from: the arguments ``ports`` and ``packets`` of ``open`` and ``checkpoints``.

    ``ports`` are those that ``read_tables`` is given.
    """
    given = None if ports is None else frozenset(ports)
    found: dict[str, frozenset[int]] = {}
    packets: set[str] = set()
    for kind in map(_kind, (tables,) if isinstance(tables, str) else tables):
        packets.update(kind.packets)
        for transport, numbers in kind.ports.items():
            found[transport] = found.get(transport, frozenset()) | (numbers if given is None else given)
    return {"ports": found, "packets": packets}


def _split(name: str, columns: Iterable[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns asked for, in the table's order: those of the capture, and those of the table."""
    known = table_columns(name)
    wanted = known if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
    unknown = [column for column in wanted if column not in known]
    if unknown:
        raise ValueError(f"{', '.join(map(repr, unknown))}: no such column of {name}; it has {', '.join(known)}")
    return (
        tuple(column for column in CAPTURE.names if column in wanted),
        tuple(column for column in _kind(name).table.names if column in wanted),
    )


def arrow_schema(name: str, columns: Iterable[str] | None = None, guid: GuidForm = "text") -> pa.Schema:
    """The Arrow schema of a table that is read from captures, or of some of its columns; needs pyarrow."""
    return _arrow_schema(name, *_split(name, columns), guid)


# Of many small captures each has a reader of its own
@lru_cache(maxsize=64)
def _arrow_schema(name: str, first: tuple[str, ...], last: tuple[str, ...], guid: GuidForm) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([*CAPTURE.arrow_schema(first), *_kind(name).table.arrow_schema(last, guid=guid)])


@lru_cache(maxsize=16)
def _is_among(ports: frozenset[int]) -> NDArray[np.bool_]:
    """For each port whether it is one of these."""
    found = np.zeros(1 << 16, np.bool_)
    found[list(ports)] = True
    return found


class TableRows:
    """What a reader knows of one of its tables.

    Attributes
    ----------
    name : str
    kind : TableKind
    schema : pyarrow.Schema
        Of its record batches; known before anything is read.
    payloads : int
        How many payloads it was given so far. But for notifications, each gave a row.
    rows : int
        How many rows there were so far.
    faults : Counter
        How many rows have a fault, by its code.
    encrypted : int
        Of notifications: messages to the notify queue that cannot be read because they are encrypted.
    unread : int
        Of notifications: messages that cannot be decoded, whatever queue they were for.
    """

    def __init__(
        self, name: str, columns: Iterable[str] | None, guid: GuidForm, strict: bool, ports: frozenset[int] | None
    ) -> None:
        self.name = name
        self.kind = _kind(name)
        self.first, self._last = _split(name, columns)
        self.schema = _arrow_schema(name, self.first, self._last, guid)
        self._ports: dict[str, frozenset[int]] = table_payloads(name, ports)["ports"]
        self._packets = sum(1 << PACKET_KINDS.index(packet) for packet in self.kind.packets)
        self.payloads = self.rows = self.encrypted = self.unread = 0
        self.faults: Counter[str] = Counter()
        self._strict = strict
        self._guid = guid
        self._batches: list[Batch] = []
        self._messages: mqqb.MessageBatch | None = None

    def chosen(self, transports: NDArray[np.uint8], kinds: NDArray[np.uint8], ports: PortColumns) -> NDArray[np.bool_]:
        """Which payloads of a block belong to this table."""
        wanted = np.zeros(len(transports), np.bool_)
        for transport, numbers in self._ports.items():
            is_ours = _is_among(numbers)
            here = transports == TRANSPORTS.index(transport)
            here &= is_ours[ports[0]] | is_ours[ports[1]]
            if transport == "tcp":
                here &= kinds & self._packets != 0
            wanted |= here
        return wanted

    def gives_messages(self) -> bool:
        """Whether notifications can be found in what ``decode`` gives."""
        return self.name == "messages" and not self._strict and set(self._last) >= _IN_MESSAGES

    def decode(self, payloads: Payloads, transports: NDArray[np.uint8] | None) -> Batch:
        """The payloads, decoded; those of notifications as messages."""
        if self.kind.in_messages:
            self._messages = mqqb.decode_batch(payloads, columns=tuple(_IN_MESSAGES), out=self._messages)
            return self._messages
        return self._decoded(payloads, **self._transport(transports))

    def rows_of(self, decoded: Batch, first: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of what ``decode`` gave; ``first`` are the capture columns of its payloads."""
        import pyarrow as pa

        self.payloads += len(decoded)
        batch = decoded
        if self.kind.in_messages:
            assert isinstance(decoded, mqqb.MessageBatch)
            batch, rows = self._notifications(decoded)
            first = first.take(rows)
        self.rows += len(batch)
        self.faults.update(map(FAULT_NAMES.__getitem__, batch.faults["code"].tolist()))
        if not self._last:
            return first
        last = batch.to_arrow(guid=self._guid)
        return pa.RecordBatch.from_arrays([*first.columns, *last.columns], schema=self.schema)

    def _transport(self, transports: NDArray[np.uint8] | None) -> dict[str, Any]:
        """What carried the payloads, in the decoder's own numbers."""
        if not self.kind.transports:
            return {}
        if transports is None:
            return {"transport": "udp"}
        return {"transport": np.array(self.kind.transports, np.uint8)[transports]}

    def _notifications(self, messages: mqqb.MessageBatch) -> tuple[Batch, NDArray[np.uint32]]:
        """The changes in messages, and the number of the message that each of them belongs to."""
        found = messages.notifications()
        self.encrypted += len(found.encrypted)
        self.unread += len(messages.faults)
        batch = self._decoded(found.payloads)
        assert isinstance(batch, mqcn.NotificationBatch)
        return batch, np.repeat(found.rows, np.diff(batch.messages))

    def _decoded(self, payloads: Payloads, **transport: Any) -> Batch:
        """Decode payloads into a batch that no Arrow consumer holds any more, or into a new one."""
        decode = partial(self.kind.decode_batch, payloads, strict=self._strict, columns=self._last, **transport)
        for out in self._batches:
            try:
                return decode(out=out)
            except BufferError:
                continue
        batch = decode()
        if len(self._batches) < MOST_BATCHES:
            self._batches.append(batch)
        return batch


class TablesReader(ClosingIterator[tuple[str, "pa.RecordBatch"]]):
    """The rows of several tables in one pass: for each block, the tables with payloads in it and their record batches.

    A context manager that closes its files.

    Attributes
    ----------
    tables : dict of str to TableRows
        The tables, in the order of ``TABLES``.
    stats : CaptureStats
        What became of the frames read so far.
    payloads : int
        How many payloads were read so far: datagrams, and packets out of streams. A payload counts once, though a
        message belongs to ``messages`` and ``notifications``, and where ports are given a datagram to more than one
        table as well.
    """

    def __init__(
        self,
        source: Source,
        tables: Iterable[str],
        columns: Mapping[str, Iterable[str]],
        guid: GuidForm,
        strict: bool,
        ports: Iterable[int] | None,
        *,
        addresses: Iterable[str] = (),
        since: datetime | int | None = None,
        until: datetime | int | None = None,
        resume: Checkpoint | None = None,
        stop: Checkpoint | None = None,
        final: bool = True,
    ) -> None:
        if guid not in GUID_FORMS:
            raise ValueError(f"guid={guid!r} is not one of {', '.join(map(repr, GUID_FORMS))}")
        wanted = set(tables)
        for name in wanted:
            _kind(name)
        if not wanted:
            raise ValueError(f"no table; there is {', '.join(TABLES)}")
        ports = None if ports is None else frozenset(ports)
        self.tables = {
            name: TableRows(name, columns.get(name), guid, strict, ports) for name in TABLES if name in wanted
        }
        self._decoders = dict(self.tables)
        if "notifications" in self.tables and "messages" in self.tables and self.tables["messages"].gives_messages():
            self._decoders["notifications"] = self.tables["messages"]  # the same payloads, decoded once
        self.payloads = 0
        self._ready: deque[tuple[str, pa.RecordBatch]] = deque()
        # Two tables are told apart by ports
        needed = {name for table in self.tables.values() for name in table.first}
        needed |= {"src_port", "dst_port"} if len(self.tables) > 1 else set()
        self._capture = open_capture(
            source,
            **table_payloads(self.tables, ports),
            columns=needed,
            addresses=addresses,
            since=since,
            until=until,
            resume=resume,
            stop=stop,
            final=final,
        )

    @property
    def stats(self) -> CaptureStats:
        """What became of the frames read so far."""
        return self._capture.stats

    def __next__(self) -> tuple[str, pa.RecordBatch]:
        while not self._ready:
            self._ready.extend(self._read(next(self._capture)))
        return self._ready.popleft()

    def close(self) -> None:
        """Close the file that is being read; record batches stay good, and there are no more of them."""
        self._ready.clear()
        self._capture.close()

    def checkpoint(self) -> Checkpoint:
        """The place where reading ended, once there are no more record batches: as ``Capture.checkpoint``."""
        return self._capture.checkpoint()

    def _read(self, block: Block) -> Iterator[tuple[str, pa.RecordBatch]]:
        first = block.capture.to_arrow()
        if len(self.tables) == 1:
            (table,) = self.tables.values()
            self.payloads += len(block)
            yield table.name, table.rows_of(table.decode(block.payloads, block.transports), first)
            return
        transports = np.zeros(len(block), np.uint8) if block.transports is None else block.transports
        kinds = packet_kinds(block.payloads)
        ports = (block.capture["src_port"], block.capture["dst_port"])
        claimed = np.zeros(len(block), np.bool_)
        decoded: dict[str, Batch] = {}
        for table in self.tables.values():
            chosen = table.chosen(transports, kinds, ports)
            claimed |= chosen
            if not chosen.any():
                continue
            columns, payloads, carriers = first.select(table.first), block.payloads, block.transports
            if not chosen.all():
                rows = np.flatnonzero(chosen).astype(np.uint32)
                columns, payloads, carriers = columns.take(rows), payloads.take(rows), transports[rows]
            decoder = self._decoders[table.name]
            if decoder.name not in decoded:
                decoded[decoder.name] = decoder.decode(payloads, carriers)
            yield table.name, table.rows_of(decoded[decoder.name], columns)
        self.payloads += int(np.count_nonzero(claimed))


class TableReader(ClosingIterator["pa.RecordBatch"]):
    """The rows of a table, a record batch for each block of a capture; a context manager that closes its files.

    Attributes
    ----------
    schema : pyarrow.Schema
        Known before anything is read.
    stats : CaptureStats
        What became of the frames read so far.
    rows, faults, encrypted, unread
        As in ``TableRows``.
    """

    def __init__(self, reader: TablesReader) -> None:
        self._reader = reader
        (self._table,) = reader.tables.values()
        self.schema = self._table.schema
        self.faults = self._table.faults

    @property
    def stats(self) -> CaptureStats:
        """What became of the frames read so far."""
        return self._reader.stats

    @property
    def rows(self) -> int:
        """How many rows there were so far."""
        return self._table.rows

    @property
    def encrypted(self) -> int:
        """Of notifications: messages to the notify queue that are encrypted."""
        return self._table.encrypted

    @property
    def unread(self) -> int:
        """Of notifications: messages that cannot be decoded."""
        return self._table.unread

    def __next__(self) -> pa.RecordBatch:
        return next(self._reader)[1]

    def close(self) -> None:
        """Close the file that is being read; record batches stay good, and there are no more of them."""
        self._reader.close()

    def checkpoint(self) -> Checkpoint:
        """The place where reading ended, once there are no more record batches: as ``Capture.checkpoint``."""
        return self._reader.checkpoint()


def read_tables(
    source: Source,
    tables: Iterable[str] = tuple(TABLES),
    *,
    columns: Mapping[str, Iterable[str]] | None = None,
    guid: GuidForm = "text",
    strict: bool = False,
    ports: Iterable[int] | None = None,
    addresses: Iterable[str] = (),
    since: datetime | int | None = None,
    until: datetime | int | None = None,
    resume: Checkpoint | None = None,
    stop: Checkpoint | None = None,
    final: bool = True,
) -> TablesReader:
    """Read captures as several tables in one pass: pairs of a table's name and a record batch; needs pyarrow.

    Each table has the rows that ``read_table`` gives, in the same order.

    Parameters
    ----------
    tables : iterable of str
        Some of ``TABLES``, all of them by default.
    columns : mapping of str to iterables of str, optional
        The columns to build for each table, all of them where it has none.
    source, guid, strict, ports, addresses, since, until, resume, stop, final
        As for ``read_table``.

    Raises
    ------
    CaptureError
        A file is no capture, or a glob matches nothing.
    ValueError
        There is no such table, column, address or time.
    """
    names = (tables,) if isinstance(tables, str) else tables
    return TablesReader(
        source,
        names,
        columns or {},
        guid,
        strict,
        ports,
        addresses=addresses,
        since=since,
        until=until,
        resume=resume,
        stop=stop,
        final=final,
    )


def read_table(
    source: Source,
    table: str = "topology",
    *,
    columns: Iterable[str] | None = None,
    guid: GuidForm = "text",
    strict: bool = False,
    ports: Iterable[int] | None = None,
    addresses: Iterable[str] = (),
    since: datetime | int | None = None,
    until: datetime | int | None = None,
    resume: Checkpoint | None = None,
    stop: Checkpoint | None = None,
    final: bool = True,
) -> TableReader:
    """Read captures as a table: record batches with the capture columns in front; needs pyarrow.

    Parameters
    ----------
    source : path, glob, binary file object, or a list of these
        As for ``capture.open``.
    table : str
        One of ``TABLES``.
    columns : iterable of str, optional
        The columns to build, all of them by default; they come in the table's order.
    guid : {"text", "uuid", "binary"}
        The Arrow form of GUIDs.
    strict : bool
        Make violations faults.
    ports : iterable of int, optional
        Read payloads of these ports in place of the table's own, of the same transports.
    addresses, since, until, resume, stop, final
        As for ``capture.open``; ``checkpoints(source, size, **table_payloads(table))`` makes such checkpoints.

    Raises
    ------
    CaptureError
        A file is no capture, or a glob matches nothing.
    ValueError
        There is no such table, column, address or time.
    """
    chosen = {} if columns is None else {table: columns}
    reader = read_tables(
        source,
        (table,),
        columns=chosen,
        guid=guid,
        strict=strict,
        ports=ports,
        addresses=addresses,
        since=since,
        until=until,
        resume=resume,
        stop=stop,
        final=final,
    )
    return TableReader(reader)
