"""SQL over captures, by DuckDB: the tables of captures as views that are read as a query needs them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, count
from threading import Event, Lock
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import pyarrow as pa
import pyarrow.dataset as ds

from msmqwire.capture import ALL_TABLES, ReadOptions, arrow_schema, read_tables, table_columns
from msmqwire.capture.options import ReadKeywords
from msmqwire.errors import MsmqWireError, require

if TYPE_CHECKING:
    import duckdb

    from msmqwire.capture import TablesReader
    from msmqwire.capture.files.sources import Source

__all__ = ["Condition", "SqlError", "connect"]

_MEMORY = "1GB"
_INTERRUPT_SECONDS = 0.1  # until a query that had not begun is interrupted again
_TEXTS = re.compile(r"'(?:[^']|'')*'")
_WORDS = re.compile(r"\w+")
_Result = TypeVar("_Result")
# Of messages, and the columns that it is made of
_IDENTIFIER = "message_identifier"
_IDENTIFYING = {"source_queue_manager", "message_id"}
_UNKNOWN_TABLE = re.compile(r"Table with name (.+) does not exist!")


class SqlError(MsmqWireError):
    """DuckDB refuses a statement, or cannot finish it; the message is one line."""


def _duckdb(purpose: str) -> Any:
    try:
        return require("duckdb", purpose)
    except ModuleNotFoundError as error:
        raise SqlError(str(error)) from None


def sandboxed(*, memory: str = _MEMORY, files: bool = False) -> duckdb.DuckDBPyConnection:
    """A database in memory that cannot open files or the network, unless ``files``, nor change that.

    Parameters
    ----------
    memory : str
        What DuckDB may use; larger sorts and groups go to temporary files.
    """
    database = _duckdb("SQL")
    try:
        connection = database.connect(config={"memory_limit": memory, "threads": "2"})
        connection.execute("SET python_enable_replacements = false")
        if not files:
            connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
    except database.Error as error:
        raise SqlError(one_line(error)) from None
    return connection  # type: ignore[no-any-return]


def one_line(error: Exception) -> str:
    """The message of an error of DuckDB as one line, without the statement that it repeats."""
    lines = str(error).partition("\n\nLINE")[0].split("\n")
    return " ".join(line.strip() for line in lines if line.strip())


class _Captured(ds.InMemoryDataset):
    """A table of captures, read again by each scan; a scan decodes the columns that it needs."""

    def __init__(self, schema: pa.Schema, read: Callable[[tuple[str, ...]], TablesReader]) -> None:
        super().__init__(schema.empty_table())  # type: ignore[call-arg]
        self._read = read

    def scanner(  # type: ignore[override]
        self, columns: list[str] | None = None, filter: ds.Expression | None = None, **_: Any
    ) -> ds.Scanner:
        """What DuckDB calls for each use of the table in a query."""
        names = tuple(self.schema.names if columns is None else columns)
        needed = {*names, *_columns_in(filter, self.schema.names)}
        reader = self._read(tuple(name for name in self.schema.names if name in needed) or ("frame",))
        (table,) = reader.tables.values()
        rows: Any = pa.RecordBatchReader.from_batches(table.schema, (batch for _, batch in reader))
        return ds.Scanner.from_batches(rows, columns=list(names), filter=filter)


def _columns_in(expression: ds.Expression | None, names: Iterable[str]) -> Iterator[str]:
    """The columns that an expression of Arrow may name: all whose names are words of its text."""
    words = set() if expression is None else set(_WORDS.findall(str(expression)))
    return (name for name in names if name in words)


class Connection:
    """A database whose views are the tables of captures.

    Attributes
    ----------
    readers : list of TablesReader
        The readers that queries have opened, one for each use of a table, with their counts.
    """

    def __init__(self, source: Source, options: ReadOptions, *, memory: str = _MEMORY, files: bool = False) -> None:
        self.readers: list[TablesReader] = []
        self._source, self._options = source, options
        self._database = _interruptible(lambda: self._opened(memory, files))

    def _opened(self, memory: str, files: bool) -> duckdb.DuckDBPyConnection:
        database = sandboxed(memory=memory, files=files)
        for name in ALL_TABLES:
            schema = arrow_schema(name, guid="text", dictionaries=False)
            database.register(name, _Captured(schema, partial(self._read, name)))
        return database

    def _read(self, name: str, columns: tuple[str, ...]) -> TablesReader:
        reader = read_tables(self._source, [name], ReadOptions.of(self._options, {"columns": {name: columns}}))
        self.readers.append(reader)
        return reader

    def query(self, statement: str) -> pa.RecordBatchReader:
        """The result of a statement, read as it is made. Of columns with one name, as of a join, others get a number.

        Raises
        ------
        SqlError
            DuckDB refuses it. Reading the result raises it where DuckDB cannot go on.
        """
        return pa.RecordBatchReader.from_batches(*self.batches(statement))

    def _result(self, statement: str) -> pa.RecordBatchReader:
        with _errors():
            try:
                relation = self._database.sql(statement)
            except _duckdb("SQL").CatalogException as error:
                # DuckDB suggests tables of its own
                unknown = _UNKNOWN_TABLE.search(str(error))
                if unknown is None:
                    raise
                raise SqlError(f"no table is called {unknown[1]}; there is {', '.join(ALL_TABLES)}") from None
            if relation is None:
                raise SqlError("the statement has no result; write a SELECT")
            return pa.RecordBatchReader.from_stream(_with_distinct_names(relation))

    def batches(self, statement: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The schema of a result, and its batches; errors as in ``query``."""
        reader = _interruptible(lambda: self._result(statement), self._database)

        def rows() -> Iterator[pa.RecordBatch]:
            with _errors():
                while (batch := _interruptible(lambda: next(reader, None), self._database)) is not None:
                    yield batch

        return reader.schema, rows()

    def close(self) -> None:
        """Close the database and the captures."""
        self._database.close()
        for reader in self.readers:
            reader.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_distinct_names(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A relation whose columns differ in their names: ``frame``, ``frame_1``."""
    names: list[str] = []
    for name in relation.columns:
        others = (f"{name}_{number}" for number in count(1))
        names.append(next(each for each in chain([name], others) if each not in names))
    if names == relation.columns:
        return relation
    quoted = (name.replace('"', '""') for name in names)
    return relation.project(", ".join(f'#{at} AS "{name}"' for at, name in enumerate(quoted, 1)))


def _interruptible(work: Callable[[], _Result], database: duckdb.DuckDBPyConnection | None = None) -> _Result:
    """What DuckDB makes in another thread: in the main thread it holds signals back, and loses their exceptions."""
    working, left = Lock(), Event()

    def run() -> _Result:
        with working:
            if left.is_set():
                raise KeyboardInterrupt
            return work()

    with ThreadPoolExecutor(1) as threads:
        try:
            return threads.submit(run).result()
        finally:
            # An interrupt may come while the thread is started: then the executor does not wait for it
            left.set()
            while not working.acquire(timeout=_INTERRUPT_SECONDS):
                if database is not None:
                    database.interrupt()
            working.release()


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    """Errors of DuckDB, and of Arrow that reads its result, as ``SqlError``."""
    try:
        yield
    except (_duckdb("SQL").Error, pa.ArrowException) as error:
        raise SqlError(one_line(error)) from None


def connect(
    source: Source, options: ReadOptions | None = None, *, memory: str = _MEMORY, files: bool = False,
    **keywords: Unpack[ReadKeywords],
) -> Connection:  # fmt: skip
    """Open captures for SQL: ``topology``, ``notifications``, ``messages`` and ``sessions`` are tables.

    Each use of a table in a query reads the captures again, and only the columns that the query needs.

    Parameters
    ----------
    source : str, path or file object, or a list of them
        As for ``capture.read_table``; standard input can be read once only.
    options, **keywords
        As for ``capture.read_table``. GUIDs are text.
    memory : str
        What DuckDB may use, as "1GB"; larger sorts and groups go to temporary files.
    files : bool
        Let statements read and write files, and use the network.

    Raises
    ------
    SqlError
        DuckDB is not installed.

    Examples
    --------
    >>> with connect("examples/message-session.pcap") as database:
    ...     found = database.query("SELECT label FROM messages WHERE label <> '' ORDER BY message_id").read_all()
    >>> found["label"].to_pylist()
    ['QM Ordering Ack', 'Order 4711']
    """
    how = ReadOptions.of(options, keywords, unused=("columns",))
    how = ReadOptions.of(how, {"guid": "text", "dictionaries": False})
    return Connection(source, how, memory=memory, files=files)


class Condition:
    """A condition in SQL on the rows of tables of captures.

    Parameters
    ----------
    text : str
        What stands after WHERE, such as ``"label LIKE 'Order%' AND dst = '10.1.1.10'"``.

    Attributes
    ----------
    tables : tuple of str
        The tables that have all of its columns.

    Raises
    ------
    SqlError
        It is empty, no table has its columns, or DuckDB is not installed.

    Examples
    --------
    >>> Condition("label LIKE 'Order%'").tables
    ('messages',)
    """

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise SqlError("the condition is empty")
        self.text = text
        words = {word.lower() for word in _WORDS.findall(_TEXTS.sub("", text))}
        self._identified = _IDENTIFIER in words
        if self._identified:
            words |= _IDENTIFYING
        named = {name for table in ALL_TABLES for name in table_columns(table) if name in words}
        self.tables = tuple(table for table in ALL_TABLES if named <= set(table_columns(table)))
        if not self.tables:
            raise SqlError(f"no table has all of these columns: {', '.join(sorted(named))}")
        self._columns = frozenset(named)
        self._database = _interruptible(sandboxed)
        self._checked: pa.Schema | None = None

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table that the condition needs."""
        return tuple(name for name in table_columns(table) if name in self._columns)

    def check(self, schema: pa.Schema) -> None:
        """Refuse a condition that DuckDB cannot judge on single rows of a schema, as with an aggregate.

        Raises
        ------
        SqlError
        """
        (empty,) = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
        self._found(f"SELECT 1 FROM rows WHERE ({self.text}\n)", self._known(empty))
        self._checked = schema

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which it is true.

        Raises
        ------
        SqlError
            DuckDB cannot judge a row.
        """
        if batch.schema != self._checked:
            self.check(batch.schema)
        if not batch.num_rows:
            return batch
        statement = f"SELECT CAST(({self.text}\n) AS BOOLEAN) AS found FROM rows"
        mask = self._found(statement, self._known(batch))["found"]
        return batch.filter(mask.combine_chunks(), null_selection_behavior="drop")

    def _known(self, batch: pa.RecordBatch) -> pa.Table:
        """The rows with the column that a condition may name beside those of its table."""
        table = pa.Table.from_batches([batch])
        if not self._identified:
            return table
        from msmqwire.insight.bodies import message_identifiers

        return table.append_column(_IDENTIFIER, message_identifiers(batch))

    def _found(self, statement: str, table: pa.Table) -> pa.Table:
        def found() -> pa.Table:
            self._database.register("rows", table)
            rows = pa.RecordBatchReader.from_stream(self._database.sql(statement)).read_all()
            self._database.unregister("rows")
            return rows

        with _errors():
            return _interruptible(found, self._database)
