"""Tables read from captures: the capture columns, then the columns of a protocol, as Arrow record batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Set
from threading import Lock
from typing import TYPE_CHECKING, Unpack

import numpy as np

from msmqwire.capture.checkpoint import Checkpoint
from msmqwire.capture.files.sources import Source
from msmqwire.capture.options import ReadKeywords, ReadOptions, options_of
from msmqwire.capture.ordered_calls import OrderedCalls
from msmqwire.capture.reader import ArrowReader, Capture, ClosingIterator
from msmqwire.capture.table_rows import (
    ALL_TABLES,
    TABLES,
    UDP,
    TableRows,
    requested_names,
    rows_of_tables,
    table_kind,
    table_options,
)
from msmqwire.capture.tcp._streams import packet_kinds
from msmqwire.errors import require

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.capture.files._blocks import Block


class TablesReader(ClosingIterator[tuple[str, "pa.RecordBatch"]]):
    """The rows of several tables in one pass: pairs of a table's name and a record batch.

    A context manager that closes its files.

    Attributes
    ----------
    tables : dict of str to TableRows
        The tables, in the order of ``ALL_TABLES``.
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
            table_kind(name)
        if not wanted:
            raise ValueError(f"no table given; known: {', '.join(ALL_TABLES)}")
        chosen = options.columns
        if chosen is not None and not isinstance(chosen, Mapping):
            raise TypeError("columns: read_tables takes a mapping of tables to columns")
        self.tables = {
            name: TableRows(name, None if chosen is None else chosen.get(name), options)
            for name in ALL_TABLES
            if name in wanted
        }
        self.source, self.options = source, options
        self._rows = rows_of_tables(self.tables, options)
        self.payloads = 0
        self._counting = Lock()
        self._jobs = options.jobs
        self._calls = OrderedCalls(self._jobs, 2 * self._jobs)
        self._ready: deque[tuple[str, pa.RecordBatch]] = deque()
        self._end: Exception | None = None  # of the blocks, once the rows before it were returned
        columns = {name for table in self.tables.values() for name in table.first}
        if len(self.tables) > 1:  # ports tell which table a payload belongs to
            columns |= {"src_port", "dst_port"}
        self._capture = Capture(source, table_options(self.tables, options_of(options, {"columns": columns})))
        self.stats = self._capture.stats

    def __next__(self) -> tuple[str, pa.RecordBatch]:
        while not self._ready:
            self._read_ahead()
            if len(self._calls):
                self._calls.handle_oldest()
            elif self._end is not None:
                self._calls.close()
                try:
                    raise self._end
                finally:
                    self._end = None  # its traceback holds this reader
        return self._ready.popleft()

    def _read_ahead(self) -> None:
        """Submit blocks to the decoding threads until the pool is full or the file would block."""
        calls = self._calls
        self._capture._check_process()
        while not (self._ready or self._end) and (not len(calls) or (not calls.is_full and self._capture._is_ready())):
            try:
                block = next(self._capture)
            except Exception as end:
                self._end = end
            else:
                calls.submit(self._ready.extend, self._rows_of, block)

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

    def _rows_of(self, block: Block) -> list[tuple[str, pa.RecordBatch]]:
        """The rows of a block, to which a subclass may add columns; called in a thread where there are several jobs."""
        if len(self.tables) == 1:
            claimed = np.ones(len(block), np.bool_)
            found = self._rows[0].rows_of(block, None)
        else:
            transports = np.full(len(block), UDP, np.uint8) if block.transports is None else block.transports
            kinds = packet_kinds(block.payloads)
            ports = (block.capture["src_port"], block.capture["dst_port"])
            claimed = np.zeros(len(block), np.bool_)
            found = []
            for rows in self._rows:
                chosen = rows.chosen(transports, kinds, ports)
                claimed |= chosen
                if chosen.any():
                    found += rows.rows_of(block, np.flatnonzero(chosen).astype(np.uint32))
        lost = block.payloads.lost
        with self._counting:
            self.payloads += int(np.count_nonzero(claimed if lost is None else claimed & (lost == 0)))
        return found


class TableReader(ArrowReader):
    """The rows of one table, a record batch for each block of a capture; a context manager that closes its files.

    It is an Arrow stream that ``pyarrow.table``, polars and DuckDB read, and has ``to_arrow``, ``to_pylist``,
    ``to_pandas`` and ``to_polars``. Rows are read once: to read them again raises ``RuntimeError``.

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
        self._names = self._table.schema.names
        if not (columns is None or isinstance(columns, Set)):
            self._names = list(dict.fromkeys(requested_names(self._table.name, columns)))
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

    def _with_text_guids(self) -> pa.Table:
        if self.rows:
            raise RuntimeError("rows were read with other GUIDs: open the capture again")
        self._table._use_text_guids()
        self.schema = self._ordered_schema()
        return self.to_arrow()

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
        Some of ``ALL_TABLES``; default: those of ``TABLES``, without ``connections``.
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
    return TablesReader(source, names, options_of(options, keywords, unused=("packets",)))


def read_table(
    source: Source, table: str = "topology", options: ReadOptions | None = None, **keywords: Unpack[ReadKeywords]
) -> TableReader:
    """Read captures as a table: record batches with the capture columns first; needs pyarrow.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these
        As for ``open``.
    table : str
        One of ``ALL_TABLES``.
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
    read = options_of(options, keywords, unused=("packets",))
    columns = read.columns
    if read.columns is not None:
        read = options_of(read, {"columns": {table: read.columns}})
    return TableReader(TablesReader(source, (table,), read), columns)
