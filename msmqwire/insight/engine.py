"""Queries over rows that are read once: rows go into a database block by block, with the columns that queries name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from msmqwire.capture import TABLES
from msmqwire.columns.plain import plain
from msmqwire.insight.database import Database, OutOfMemoryError, QueryError, SqlError, Statement, parse
from msmqwire.insight.query_files import Query
from msmqwire.insight.sql_functions import (
    DIFFERENT_PLACES,
    FUNCTIONS,
    LOWEST,
    LOWEST_PLACES,
    MACROS,
    MOST_FRAMES,
    ONE_PLACE,
)
from msmqwire.insight.tables import (
    ALL_ROWS,
    FINDINGS,
    NAMES,
    UNREAD,
    UNREAD_COLUMNS,
    VIEWS,
    StoredTable,
    columns_of,
    common_columns,
    pc,
    places_as_frames,
    views_of,
    wanted_columns,
)

#: The memory of DuckDB; rows beyond it go to temporary files.
_MEMORY = "128MB"
_MOST_ROWS = 1 << 16  # that wait, so that one statement stores many
_MOST_BYTES = 16 << 20
_ROWS_OF_A_BATCH = 1 << 14  # of a result: larger ones take memory, smaller ones time
_ROWS_OF_A_THREAD = 122_880  # of one row group of DuckDB

#: The type of the places of a row of a result.
FRAMES = pa.list_(pa.struct([("file", pa.string()), ("frame", pa.int64())]))
_TIME = pa.timestamp("ns", "UTC")
#: Columns of results that have nanoseconds since 1970.
TIMES = frozenset({"first_seen", "last_seen", "minute"})


def checked(query: Query) -> Statement:
    """Return what a query names.

    Raises
    ------
    QueryFileError
        It is no SELECT over the tables, or calls a function that is not on the list.
    """
    try:
        statement = parse(query.text)
        if statement is None:
            raise QueryError("only a SELECT is allowed")
        statement.check(frozenset(NAMES), FUNCTIONS, query.text)
    except QueryError as error:
        raise query.error(str(error), error.line or 1, error.column or 1) from None
    return statement


# By their text: a process uses the same queries again and again
_described: dict[str, tuple[str, ...]] = {}


class Answers(Protocol):
    """What answers queries over rows: ``Engine`` on one machine, or Spark.

    Attributes
    ----------
    columns, rows
        As of ``Engine``.
    """

    columns: dict[str, tuple[str, ...]]
    rows: Counter[str]

    def columns_of_result(self, query: Query) -> tuple[str, ...]:
        """Return the columns of the result of a query."""

    @property
    def files(self) -> int:
        """The number of files of the rows."""

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table."""

    def first_rows(self, text: str, limit: int, count: str | None) -> tuple[pa.Table, int, int]:
        """Return the first rows of a result; the number of further rows, and the sum of their column ``count``."""

    def match(self, query: Query) -> int:
        """Keep the result of a query as the table ``matched``; the number of its rows."""

    def close(self) -> None:
        """Release the rows."""


class Engine:
    """The tables that queries read, and the queries.

    Parameters
    ----------
    queries : iterable of Query
    expected : iterable of str
        The addresses and networks of the directory servers.
    threads : int
        The threads of a query.
    common : iterable of str
        Columns of ``all_rows`` that further statements use.

    Attributes
    ----------
    columns : dict of str to tuple of str
        The columns of each table to read.
    rows : Counter of str
        The rows of each table that were added.
    stored : dict of str to StoredTable
        The tables with the columns that queries need.
    common : frozenset of str
        The columns of ``all_rows`` that statements use; empty where none reads it.
    views : tuple of str
        The views that queries read, each after those that it reads itself.

    Raises
    ------
    QueryFileError
        As ``checked``; or a query that is not one of the package has a mistake that the parser does not find.
    SqlError
        DuckDB is not installed.
    """

    def __init__(
        self,
        queries: Iterable[Query],
        expected: Iterable[str] = (),
        threads: int = 2,
        common: Iterable[str] = (),
    ) -> None:
        wanted: dict[str, set[str]] = {table: set(common) for table in TABLES if common}
        used = set(common)
        queries = tuple(queries)
        views: dict[str, Statement] = {}
        for query in queries:
            statement = checked(query)
            for table, names in wanted_columns(statement).items():
                wanted.setdefault(table, set()).update(names)
            views |= views_of(statement)
            for each in (statement, *views_of(statement).values()):
                if ALL_ROWS in {name.text.lower() for name in each.tables}:
                    known = set(columns_of(ALL_ROWS))
                    used |= known if ALL_ROWS in each.stars else known & each.columns
        self.common = frozenset(used)
        self._expected = tuple(expected)
        # Threads that store rows wait for each other
        self._database = Database(memory=_MEMORY, threads=1, locked=False)
        self._threads: int | None = threads
        self.stored = {table: StoredTable(table, names) for table, names in wanted.items()}
        self.columns = {table: each.read for table, each in self.stored.items()}
        self.rows: Counter[str] = Counter()
        self._files: dict[str | None, int] = {}
        self._waiting: dict[str, list[pa.RecordBatch]] = {table: [] for table in self.stored}
        self._waiting_rows: Counter[str] = Counter()
        self._waiting_bytes: Counter[str] = Counter()
        columns = ", ".join(f"{name} {kind}" for name, kind in UNREAD_COLUMNS.items())
        self.views = tuple(views)
        self._views_are_made = False
        # The rules of the package that find something, where a query reads their findings
        self._found: set[str] | None = None
        self._run_all(
            [
                *(stored.creation() for stored in self.stored.values()),
                *([_all_rows(self.common)] if self.common else []),
                f"CREATE TABLE {UNREAD} ({columns})",
                *MACROS,
            ]
        )
        for query in queries:
            # The tests describe those of the package, which takes as long as to answer a small capture
            if not query.packaged:
                self.columns_of_result(query)

    def columns_of_result(self, query: Query) -> tuple[str, ...]:
        """Return the columns of the result of a query, which DuckDB checks without running it.

        Raises
        ------
        QueryFileError
            The query has a mistake.
        """
        if query.text in _described:
            return _described[query.text]
        prefix = "DESCRIBE "
        self._make_views()
        try:
            found = tuple(row[0] for row in self._database.execute(prefix + query.text))
            return _described.setdefault(query.text, found)
        except SqlError as error:
            place = QueryError("", query.text, error.offset - len(prefix))
            raise query.error(str(error), place.line or 1, place.column or 1) from None

    def _make_views(self) -> None:
        """Let the views have the answers over the rows that are stored: several queries read them."""
        if not self._views_are_made:
            self._run_all(f"CREATE OR REPLACE TABLE {name} AS {VIEWS[name]}" for name in self.views)
            if FINDINGS in self.views:
                self._found = {name for (name,) in self.execute(f"SELECT DISTINCT rule FROM {FINDINGS}")}
            self._views_are_made = True

    def _run_all(self, statements: Iterable[str]) -> None:
        def run(connection: Any) -> None:
            for statement in statements:
                connection.execute(statement).fetchall()

        self._database.run(run)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table, with at least its ``columns``; other tables are ignored.

        Enumerations, addresses and texts may be dictionaries, GUIDs text or 16 bytes; times may be Spark's.

        Raises
        ------
        KeyError
            A column is missing.
        """
        if table == UNREAD:
            self._insert(f"INSERT INTO {UNREAD} BY NAME FROM waiting", pa.Table.from_batches([batch]))
            return
        self.rows[table] += batch.num_rows
        stored = self.stored.get(table)
        if stored is None or not batch.num_rows:
            return
        names = set(batch.schema.names)
        missing = [name for name in stored.read if name not in names]
        if missing:
            raise KeyError(f"{table}: no column {', '.join(missing)}")
        prepared = stored.prepared(batch, self._file_numbers(batch.column("file")), self._expected)
        waiting = self._waiting[table]
        if waiting and waiting[0].schema != prepared.schema:
            self._store(table)
        waiting.append(prepared)
        self._waiting_rows[table] += prepared.num_rows
        self._waiting_bytes[table] += prepared.get_total_buffer_size()
        if self._waiting_rows[table] >= _MOST_ROWS or self._waiting_bytes[table] >= _MOST_BYTES:
            self._store(table)

    @property
    def files(self) -> int:
        """The number of files of the rows."""
        return len(self._files)

    def _file_numbers(self, file: Any) -> Any:
        """The number of the file of each row: files are numbered in the order of their appearance."""
        encoded = file if pa.types.is_dictionary(file.type) else plain(file).dictionary_encode()
        known = [self._files.setdefault(name, len(self._files)) for name in encoded.dictionary.to_pylist()] or [0]
        at = encoded.indices
        if at.null_count:
            self._files.setdefault(None, len(self._files))
            known.append(self._files[None])
            at = at.fill_null(len(known) - 1)
        return np.array(known, np.int64)[at.to_numpy(zero_copy_only=False)]

    def _store(self, table: str) -> None:
        waiting, self._waiting[table] = self._waiting[table], []
        self._waiting_rows[table] = self._waiting_bytes[table] = 0
        if not waiting:
            return
        self._insert(self.stored[table].insertion("waiting"), pa.Table.from_batches(waiting))

    def _insert(self, statement: str, rows: pa.Table) -> None:
        def store(connection: Any) -> None:
            connection.register("waiting", rows)
            connection.execute(statement).fetchall()
            connection.unregister("waiting")

        self._views_are_made = False
        self._database.run(store)

    def finish(self) -> None:
        """Store the rows that wait."""
        for table in self.stored:
            self._store(table)
        self._make_views()
        if self._threads is not None:
            # More threads than there are parts of a table only share its groups, which costs half as much again
            self._database.lock(min(self._threads, 1 + self.rows.total() // _ROWS_OF_A_THREAD))
            self._threads = None

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Return the rows of a statement; errors as in ``Database.run``."""
        return self._database.execute(statement)

    def match(self, query: Query) -> int:
        """Keep the result of a query as the table ``matched``; the number of its rows."""
        self.finish()
        if query.packaged and self._found is not None and query.name not in self._found:
            return 0
        self.execute(f"CREATE OR REPLACE TEMP TABLE matched AS {query.text}")
        ((count,),) = self.execute("SELECT count(*) FROM matched")
        return int(count)

    def first_rows(self, text: str, limit: int, count: str | None) -> tuple[pa.Table, int, int]:
        """Return the first rows of a result; the number of further rows, and the sum of their column ``count``."""
        self.finish()
        try:
            table, omitted, packets, few = self._read(text, limit, count)
            if few:
                table, omitted, packets, _ = self._read_with(DIFFERENT_PLACES, text, limit, count)
        except OutOfMemoryError:
            # Lists of places cannot go to files as other values of groups can
            table, omitted, packets, _ = self._read_with(ONE_PLACE, text, limit, count)
        return table, omitted, packets

    def _read_with(self, places: str, text: str, limit: int, count: str | None) -> tuple[pa.Table, int, int, bool]:
        self._database.execute(places)
        try:
            return self._read(text, limit, count)
        finally:
            self._database.execute(LOWEST_PLACES)

    def _read(self, text: str, limit: int, count: str | None) -> tuple[pa.Table, int, int, bool]:
        """What ``first_rows`` returns, and whether a row has too few places for the frames that it shows."""

        def read(connection: Any) -> tuple[pa.Table, int, int]:
            reader = connection.sql(text).to_arrow_reader(_ROWS_OF_A_BATCH)
            found: list[pa.RecordBatch] = []
            rows = omitted = packets = 0
            for batch in reader:
                kept = batch.slice(0, max(limit - rows, 0))
                rest = batch.slice(kept.num_rows)
                rows += kept.num_rows
                # A part without rows would hold the memory of its batch
                if kept.num_rows:
                    found.append(kept)
                if rest.num_rows:
                    omitted += rest.num_rows
                    packets += sum(filter(None, rest.column(count).to_pylist())) if count else rest.num_rows
            return pa.Table.from_batches(found, reader.schema), omitted, int(packets)

        table, omitted, packets = self._database.run(read)
        few = False

        def frames(places: Any) -> Any:
            nonlocal few
            found = places_as_frames(places, list(self._files), MOST_FRAMES)
            full = pc.equal(pc.list_value_length(places), LOWEST)
            few = pc.any(pc.and_(full, pc.less(pc.list_value_length(found), MOST_FRAMES))).as_py() is True
            return found

        return readable(table, frames), omitted, packets, few

    def close(self) -> None:
        """Close the database."""
        self._database.close()


def readable(table: pa.Table, frames: Callable[[Any], Any]) -> pa.Table:
    """Return a result with whole numbers as int64, and times with their zone; ``frames`` makes frames of its places."""
    columns: dict[str, Any] = {}
    for field in table.schema:
        column: Any = table[field.name].combine_chunks()
        kind = field.type
        if field.name == "frames" and pa.types.is_list(kind):
            column = frames(column).cast(FRAMES)
        elif pa.types.is_integer(kind) or (pa.types.is_decimal(kind) and kind.scale == 0):
            # Identifiers of 64 bits are unsigned
            column = column if kind == pa.uint64() else column.cast(pa.int64())
            column = column.cast(_TIME) if field.name in TIMES else column
        elif pa.types.is_timestamp(kind):
            column = column.cast(_TIME)
        elif pa.types.is_list(kind):
            column = column.cast(pa.list_(kind.value_type))
        columns[field.name] = plain(column)
    return pa.table(columns)


def _all_rows(columns: Iterable[str]) -> str:
    """The statement that makes the view of the rows of all tables."""
    shown = ", ".join(f'"{name}"' for name in common_columns(columns))
    parts = (f"SELECT '{table}' AS in_table, {shown} FROM {table}" for table in TABLES)
    return f"CREATE VIEW {ALL_ROWS} AS " + " UNION ALL ".join(parts)


def columns_needed(queries: Iterable[Query]) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of each table that queries need."""
    wanted: dict[str, set[str]] = {}
    for query in queries:
        for table, names in wanted_columns(checked(query)).items():
            wanted.setdefault(table, set()).update(names)
    return {table: StoredTable(table, names).read for table, names in wanted.items()}
