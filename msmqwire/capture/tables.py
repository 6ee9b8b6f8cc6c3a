"""Tables read from captures: the capture columns, then the columns of a protocol, as Arrow record batches."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack

import numpy as np

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.files.sources import Source
from msmqwire.capture.notification_rows import JUDGED, OF_MESSAGES, OF_SENDERS, judged_columns, with_columns
from msmqwire.capture.options import ReadKeywords, ReadOptions
from msmqwire.capture.ordered_calls import OrderedCalls
from msmqwire.capture.reader import ArrowReader, Capture, ClosingIterator
from msmqwire.capture.schema import (
    CAPTURE,
    MESSAGE_PORTS,
    PING_PORTS,
    TOPOLOGY_PORTS,
    TOPOLOGY_SOCKETS,
)
from msmqwire.capture.tcp._packets import PACKET_KINDS
from msmqwire.capture.tcp._streams import packet_kinds
from msmqwire.capture.unrecognized import CAPTURED_MESSAGES, UNRECOGNIZED, unrecognized_columns
from msmqwire.columns import Batch, Payloads, Table
from msmqwire.columns._batch import joined, take_rows
from msmqwire.columns.schema import GuidForm
from msmqwire.errors import require
from msmqwire.notification import judgement
from msmqwire.notification.schema import CAPTURED_NOTIFICATIONS
from msmqwire.wire._transport import Transport
from msmqwire.wire.codes import FAULT_NAMES

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from msmqwire.capture.files._blocks import Block

# Of the senders and of the receivers of payloads
PortColumns: TypeAlias = "tuple[NDArray[np.uint16], NDArray[np.uint16]]"
MOST_BATCHES = 4
# Not the members of the enumeration: numpy asks those for attributes, and drops the exception of a signal meanwhile
_UDP, _TCP = int(Transport.UDP), int(Transport.TCP)
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


def _kind(name: str) -> TableKind:
    if name not in TABLES:
        raise ValueError(f"unknown table {name!r}; known: {', '.join(TABLES)}")
    return TABLES[name]


def table_columns(name: str) -> tuple[str, ...]:
    """Names of the columns of a table that is read from captures."""
    return (*CAPTURE.names, *_kind(name).table.names)


def _ports_of(name: str, options: ReadOptions, tables: Collection[str]) -> dict[str, frozenset[int]]:
    """The ports to read for one of several tables: those of the options, of the transports that the table has."""
    own = _kind(name).ports
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
        Some of ``TABLES``.
    options, **keywords
        As for ``read_tables``, which reads with the same payloads.
    """
    options = ReadOptions.of(options, keywords, unused=("packets",))
    ports: dict[str, frozenset[int]] = {}
    packets: set[str] = set()
    names = (tables,) if isinstance(tables, str) else tuple(tables)
    for name in names:
        packets.update(_kind(name).packets)
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
        tuple(column for column in _kind(name).table.names if column in chosen),
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

    table = _kind(name).table.arrow_schema(last, guid=guid, dictionaries=dictionaries)
    return pa.schema([*CAPTURE.arrow_schema(first, dictionaries=dictionaries), *table])


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
        self.kind = _kind(name)
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
            if transport == _TCP:
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


class TablesReader(ClosingIterator[tuple[str, "pa.RecordBatch"]]):
    """The rows of several tables in one pass: pairs of a table's name and a record batch.

    A context manager that closes its files.

    Attributes
    ----------
    tables : dict of str to TableRows
        The tables, in the order of ``TABLES``.
    stats : CaptureStats
        The counts of the frames read so far.
    source, options
        The captures, and how they are read.
    payloads : int
        The payloads read so far: datagrams, and packets in TCP streams. A payload counts once, though a message is read
        for ``messages`` and ``notifications``, and with given ports a datagram for more than one table as well.
    """

    def __init__(self, source: Source, tables: Iterable[str], options: ReadOptions) -> None:
        require("pyarrow", "reading tables")
        wanted = set(tables)
        for name in wanted:
            _kind(name)
        if not wanted:
            raise ValueError(f"no table given; known: {', '.join(TABLES)}")
        chosen = options.columns
        if chosen is not None and not isinstance(chosen, Mapping):
            raise TypeError("columns: read_tables takes a mapping of tables to columns")
        self.tables = {
            name: TableRows(name, None if chosen is None else chosen.get(name), options, wanted)
            for name in TABLES
            if name in wanted
        }
        self.source, self.options = source, options
        self._decoders = dict(self.tables)
        notifications, messages = self.tables.get("notifications"), self.tables.get("messages")
        if notifications and messages and messages.share(notifications.of_messages):
            self._decoders["notifications"] = messages  # the same payloads, decoded once
        self.payloads = 0
        self._counting = Lock()
        self._jobs = options.jobs
        self._calls = OrderedCalls(self._jobs, 2 * self._jobs)
        self._ready: deque[tuple[str, pa.RecordBatch]] = deque()
        self._end: Exception | None = None  # of the blocks, once the rows before it were returned
        columns = {name for table in self.tables.values() for name in table.first}
        if len(self.tables) > 1:  # ports tell which table a payload belongs to
            columns |= {"src_port", "dst_port"}
        self._capture = Capture(source, table_options(self.tables, ReadOptions.of(options, {"columns": columns})))
        self.stats = self._capture.stats

    def __next__(self) -> tuple[str, pa.RecordBatch]:
        while not self._ready:
            self._read_ahead()
            if len(self._calls):
                self._calls.settle()
            elif self._end is not None:
                self._calls.close()
                try:
                    raise self._end
                finally:
                    self._end = None  # its traceback holds this reader
        return self._ready.popleft()

    def _read_ahead(self) -> None:
        """Have blocks decoded: one, or as many as there may be while the next one need not wait for data."""
        calls = self._calls
        self._capture.check_process()
        while not (self._ready or self._end) and (not len(calls) or (not calls.is_full and self._capture.is_ready())):
            try:
                block = next(self._capture)
            except Exception as end:
                self._end = end
            else:
                calls.submit(self._ready.extend, self._rows_of, block)

    def _rows_of(self, block: Block) -> list[tuple[str, pa.RecordBatch]]:
        return list(self._read(block))

    def close(self) -> None:
        """Close the file that is being read. Record batches stay valid; there are no more of them."""
        self._ready.clear()
        self._calls.close()
        self._end = None
        self._capture.close()

    def _has_ended(self) -> bool:
        return self._capture._has_ended() and not self._ready and not len(self._calls)

    def _contents(self) -> str:
        return ", ".join(f"{table.rows:,} rows of {name}" for name, table in self.tables.items())

    def checkpoint(self) -> Checkpoint:
        """The place where reading ended, after the last record batch: as ``Capture.checkpoint``."""
        return self._capture.checkpoint()

    def finish(self) -> None:
        """Take a capture that may grow for ended: as ``Capture.finish``."""
        self._capture.finish()
        self._calls = OrderedCalls(self._jobs, 2 * self._jobs)

    def _read(self, block: Block) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of a block; called in a thread where there are several jobs."""
        lost = block.payloads.lost
        complete = None if lost is None else lost == 0
        if len(self.tables) == 1:
            (table,) = self.tables.values()
            self._count(len(block) if complete is None else int(np.count_nonzero(complete)))
            batch = table.decode(block.payloads, block.transports)
            yield table.name, table.rows_of(batch, block.capture)
            table.give_back(batch)
            return
        transports = np.full(len(block), _UDP, np.uint8) if block.transports is None else block.transports
        kinds = packet_kinds(block.payloads)
        ports = (block.capture["src_port"], block.capture["dst_port"])
        claimed = np.zeros(len(block), np.bool_)
        decoded: dict[str, Batch] = {}
        for table in self.tables.values():
            chosen = table.chosen(transports, kinds, ports)
            claimed |= chosen
            if not chosen.any():
                continue
            rows = np.flatnonzero(chosen).astype(np.uint32)
            capture, payloads, carriers = take_rows(block.capture, rows, table.first), block.payloads, block.transports
            if len(rows) < len(block):
                payloads, carriers = payloads.take(rows), transports[rows]
            decoder = self._decoders[table.name]
            if decoder.name not in decoded:
                decoded[decoder.name] = decoder.decode(payloads, carriers)
            yield table.name, table.rows_of(decoded[decoder.name], capture)
        for name, batch in decoded.items():
            self.tables[name].give_back(batch)
        self._count(int(np.count_nonzero(claimed if complete is None else claimed & complete)))

    def _count(self, payloads: int) -> None:
        with self._counting:
            self.payloads += payloads


class TableReader(ArrowReader):
    """The rows of one table, a record batch for each block of a capture; a context manager that closes its files.

    It is an Arrow stream that ``pyarrow.table``, polars and DuckDB read, and has ``to_table``, ``to_pandas`` and
    ``to_polars``. Rows are read once: to read them again raises ``RuntimeError``.

    Attributes
    ----------
    schema : pyarrow.Schema
        Known before anything is read.
    stats : CaptureStats
        The counts of the frames read so far.
    rows, faults, encrypted, unread
        As in ``TableRows``.
    """

    def __init__(self, reader: TablesReader, columns: Iterable[str] | None = None) -> None:
        self._inner = self._reader = reader
        (self._table,) = reader.tables.values()
        self._names = self._table.schema.names if columns is None else list(dict.fromkeys(columns))
        self._is_in_order = self._names == self._table.schema.names
        self.schema = self._ordered_schema()
        self.faults = self._table.faults
        self.stats = reader.stats

    @property
    def rows(self) -> int:
        """The rows so far."""
        return self._table.rows

    @property
    def encrypted(self) -> int:
        """Notifications: messages to the notify queue that are encrypted."""
        return self._table.encrypted

    @property
    def unread(self) -> int:
        """Notifications: messages with a fault."""
        return self._table.unread

    def __next__(self) -> pa.RecordBatch:
        _, batch = next(self._reader)
        return batch if self._is_in_order else batch.select(self._names)

    def _ordered_schema(self) -> pa.Schema:
        import pyarrow as pa

        return pa.schema([self._table.schema.field(name) for name in self._names])

    def to_table(self) -> pa.Table:
        """The rows that are left, in memory.

        Raises
        ------
        RuntimeError
            The rows were read.
        """
        import pyarrow as pa

        return pa.Table.from_batches(iter(self), self.schema)

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """All rows as a DataFrame of pandas, GUIDs as text.

        Parameters
        ----------
        **options
            Those of ``pyarrow.Table.to_pandas``.

        Raises
        ------
        RuntimeError
            Rows were read.
        """
        require("pandas", "to_pandas")
        return self._with_text_guids().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """All rows as a DataFrame of polars, GUIDs as text.

        Raises
        ------
        RuntimeError
            Rows were read.
        """
        require("polars", "to_polars")
        import polars as pl

        found = pl.from_arrow(self._with_text_guids())
        assert isinstance(found, pl.DataFrame)
        return found

    def _with_text_guids(self) -> pa.Table:
        if self.rows:
            raise RuntimeError("rows were read with other GUIDs: open the capture again")
        self._table.use_text_guids()
        self.schema = self._ordered_schema()
        return self.to_table()

    def _contents(self) -> str:
        return f"{self.rows:,} rows of {self._table.name}, {len(self.schema)} columns,"

    def checkpoint(self) -> Checkpoint:
        """The place where reading ended, after the last record batch: as ``Capture.checkpoint``."""
        return self._reader.checkpoint()


def read_tables(
    source: Source,
    tables: Iterable[str] = tuple(TABLES),
    options: ReadOptions | None = None,
    **keywords: Unpack[ReadKeywords],
) -> TablesReader:
    """Read captures as several tables in one pass: pairs of a table's name and a record batch; needs pyarrow.

    Each table has the rows that ``read_table`` returns, in the same order.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these
        As for ``open``.
    tables : iterable of str
        Some of ``TABLES``; default: all.
    options : ReadOptions, optional
        What to read, and how. ``columns`` maps tables to their columns; a table it does not name has them all.
    **keywords
        Fields of ``ReadOptions``, except ``packets``; they replace the fields of ``options``.

    Raises
    ------
    CaptureError
        A file is not a capture.
    ValueError
        A table or a column is unknown, or an option has a value that it cannot have.
    """
    names = (tables,) if isinstance(tables, str) else tables
    return TablesReader(source, names, ReadOptions.of(options, keywords, unused=("packets",)))


def read_table(
    source: Source, table: str = "topology", options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> TableReader:
    """Read captures as a table: record batches with the capture columns first; needs pyarrow.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these
        As for ``open``.
    table : str
        One of ``TABLES``.
    options : ReadOptions, optional
        What to read, and how. Checkpoints for ``resume`` and ``stop`` are made with
        ``checkpoints(source, size, table_options(table))``.
    **keywords
        Fields of ``ReadOptions``, except ``packets``; they replace the fields of ``options``.

    Raises
    ------
    CaptureError
        A file is not a capture.
    ValueError
        The table or a column is unknown, or an option has a value that it cannot have.
    """
    read = ReadOptions.of(options, keywords, unused=("packets",))
    columns = read.columns
    if read.columns is not None:
        read = ReadOptions.of(read, {"columns": {table: read.columns}})
    return TableReader(TablesReader(source, (table,), read), columns)
