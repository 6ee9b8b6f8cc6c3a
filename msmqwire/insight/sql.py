"""SQL over captures, by DuckDB: a statement reads the tables of captures once, with the columns that it names."""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.insight.sql")

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from msmqwire.capture import ALL_TABLES, ReadOptions, arrow_schema, read_tables, table_columns
from msmqwire.capture.options import ReadKeywords, options_of
from msmqwire.capture.table_rows import former_names, requested_names
from msmqwire.columns.plain import plain
from msmqwire.insight.database import MEMORY, Database, Name, QueryError, SqlError, Statement, parse, table_names

if TYPE_CHECKING:
    import duckdb

    from msmqwire.capture import TablesReader
    from msmqwire.capture.files.sources import Source

__all__ = [
    "Condition",
    "Connection",
    "SqlError",
    "connect",
]

# Of messages, and the columns that it is made of
_IDENTIFIER = "message_identifier"
_IDENTIFYING = {"source_queue_manager", "message_id"}
# Nanoseconds since 1970: DuckDB computes with times in microseconds only
_NANOSECONDS = "time_ns"
_MICROSECONDS = pa.timestamp("us", "UTC")
# Names of queues, and of what they belong to
_NAMES = frozenset({"destination_queue", "admin_queue", "response_queue", "path_name", _IDENTIFIER})
_FUNCTIONS = "CREATE MACRO same_name(one, other) AS lower(one) = lower(other)"
_UNKNOWN_TABLE = re.compile(r"Table with name (.+?) does not exist!")


class Connection:
    """A database whose tables are those of captures.

    Attributes
    ----------
    readers : list of TablesReader
        The readers that queries have opened, one for each query, with their counts.
    """

    def __init__(self, source: Source, options: ReadOptions, *, memory: str = MEMORY, files: bool = False) -> None:
        self.readers: list[TablesReader] = []
        self._source, self._options = source, options
        self._files = files
        self._stored: set[str] = set()
        self._database = Database(memory=memory, files=files)
        self._schemas = {name: _schema(name, _columns_of(name)) for name in ALL_TABLES}
        self._database.run(self._register_empty)
        self._database.execute(_FUNCTIONS)

    def _register_empty(self, connection: duckdb.DuckDBPyConnection) -> None:
        for name, schema in self._schemas.items():
            if name in self._stored:
                connection.execute(f"DROP TABLE {name}").fetchall()
            connection.register(name, schema.empty_table())
        self._stored.clear()

    def _fill(self, connection: duckdb.DuckDBPyConnection, statement: str) -> None:
        """Let the statement find its rows in the tables that it names."""
        self._register_empty(connection)
        try:
            parsed = parse(statement)
        except QueryError:
            if not self._files:
                raise
            parsed = None
        if parsed is None and self._files:
            parsed = _unknown(statement)
        if parsed is None:
            return
        names = {each.text.lower() for each in parsed.tables}
        wanted = {name: _columns_named(parsed, name) for name in ALL_TABLES if name in names}
        if not wanted:
            return
        columns = {name: tuple(_needed(name, chosen)) for name, chosen in wanted.items()}
        reader = read_tables(self._source, columns, options_of(self._options, {"columns": columns}))
        self.readers.append(reader)
        schemas = {name: _schema(name, chosen) for name, chosen in wanted.items()}
        if parsed.simple and len(parsed.tables) == 1:
            # Rows are used as they are read
            ((name, schema),) = schemas.items()
            connection.register(
                name, pa.RecordBatchReader.from_batches(schema, (_shown(name, batch, schema) for _, batch in reader))
            )
            return
        for name, schema in schemas.items():
            connection.unregister(name)
            connection.register("rows_of_captures", schema.empty_table())
            connection.execute(f"CREATE TABLE {name} AS FROM rows_of_captures").fetchall()
            self._stored.add(name)
        for name, batch in reader:
            connection.register("rows_of_captures", pa.Table.from_batches([_shown(name, batch, schemas[name])]))
            connection.execute(f"INSERT INTO {name} FROM rows_of_captures").fetchall()
        connection.unregister("rows_of_captures")

    def query(self, statement: str) -> pa.RecordBatchReader:
        """The result of a statement, read as it is made. Of columns with one name, as of a join, others get a number.

        Raises
        ------
        SqlError
            DuckDB refuses it. Reading the result raises it where DuckDB cannot go on.
        """
        return pa.RecordBatchReader.from_batches(*self.batches(statement))

    def _result(self, connection: duckdb.DuckDBPyConnection, statement: str) -> pa.RecordBatchReader:
        self._fill(connection, statement)
        relation = connection.sql(statement)
        if relation is None:
            raise SqlError("the statement has no result; write a SELECT")
        return pa.RecordBatchReader.from_stream(_readable(relation))

    def batches(self, statement: str) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """The schema of a result, and its batches; errors as in ``query``."""
        try:
            reader = self._database.run(lambda connection: self._result(connection, statement))
        except SqlError as error:
            # DuckDB suggests tables of its own
            unknown = _UNKNOWN_TABLE.search(str(error))
            if unknown is None:
                raise
            raise SqlError(f"no table is called {unknown[1]}; there is {', '.join(ALL_TABLES)}") from None

        def rows() -> Iterator[pa.RecordBatch]:
            while (batch := self._database.run(lambda _: next(reader, None))) is not None:
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


def _unknown(text: str) -> Statement:
    """What statements of any kind name, such as COPY: the parser shows only their tables."""
    return Statement([Name(name, -1) for name in table_names(text)], stars=set(ALL_TABLES), simple=False)


def _columns_named(statement: Statement, table: str) -> tuple[str, ...]:
    """The columns of a table that a statement names; one for a statement that counts rows."""
    known = _columns_of(table)
    named = statement.columns.union(known) if table in statement.stars else statement.columns
    return tuple(name for name in (*known, *former_names(table)) if name in named) or ("frame",)


def _columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table in SQL: those of captures, and the nanoseconds of their time."""
    return tuple(
        each for name in table_columns(table) for each in ((name, _NANOSECONDS) if name == "time" else (name,))
    )


def _needed(table: str, columns: Iterable[str]) -> set[str]:
    """The columns to read of captures."""
    return {"time" if name == _NANOSECONDS else name for name in requested_names(table, columns)}


def _schema(table: str, columns: tuple[str, ...]) -> pa.Schema:
    needed = arrow_schema(table, _needed(table, columns), guid="text", dictionaries=False)
    known = {field.name: field for field in needed} | {_NANOSECONDS: pa.field(_NANOSECONDS, pa.int64())}
    known |= {former: known[name].with_name(former) for former, name in former_names(table).items() if name in known}
    return pa.schema(
        [
            known[name].with_type(_MICROSECONDS) if pa.types.is_timestamp(known[name].type) else known[name]
            for name in columns
        ]
    )


def _shown(table: str, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The columns of a schema from rows of captures."""
    former = former_names(table)

    def column(field: pa.Field[Any]) -> Any:
        if field.name == _NANOSECONDS:
            return plain(batch.column("time")).cast(pa.int64())
        found = batch.column(former.get(field.name, field.name))
        return found.cast(field.type, safe=False) if pa.types.is_timestamp(field.type) else found

    return pa.RecordBatch.from_arrays([column(field) for field in schema], schema=schema)


@cache
def _without_case() -> frozenset[str]:
    """The columns of names of queues and of GUIDs."""
    fields = (field for table in ALL_TABLES for field in arrow_schema(table, guid="uuid", dictionaries=False))
    return _NAMES | {field.name for field in fields if isinstance(field.type, pa.BaseExtensionType)}


def rows_without_case(rows: str, schema: pa.Schema) -> str:
    """Return a part of a statement, after FROM: rows whose names of queues and GUIDs compare without case."""
    texts = [field.name for field in schema if pa.types.is_string(field.type) and field.name in _without_case()]
    if not texts:
        return rows
    replaced = ", ".join(f'"{name}" COLLATE NOCASE AS "{name}"' for name in texts)
    return f"(SELECT * REPLACE ({replaced}) FROM {rows})"


def _readable(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """A relation with durations in milliseconds, whose columns differ in their names: ``frame``, ``frame_1``."""
    names: list[str] = []
    for name in relation.columns:
        others = (f"{name}_{number}" for number in count(1))
        names.append(next(each for each in chain([name], others) if each not in names))
    durations = [str(kind) == "INTERVAL" for kind in relation.types]
    if names == relation.columns and not any(durations):
        return relation
    columns = (f"epoch_us(#{at}) / 1000" if duration else f"#{at}" for at, duration in enumerate(durations, 1))
    quoted = (name.replace('"', '""') for name in names)
    return relation.project(", ".join(f'{column} AS "{name}"' for column, name in zip(columns, quoted, strict=True)))


def connect(
    source: Source, options: ReadOptions | None = None, *, memory: str = MEMORY, files: bool = False,
    **keywords: Unpack[ReadKeywords],
) -> Connection:  # fmt: skip
    """Open captures for SQL; their tables have the names of ``capture.ALL_TABLES``.

    Times are in microseconds, and ``time_ns`` has the nanoseconds of ``time`` since 1970; durations in a result are
    milliseconds. ``same_name(one, other)`` compares names of queues without case.

    A query reads the captures once, and only the columns that it names. Rows of several tables, or of a table that is
    used more than once, are kept for the query: what is larger than ``memory`` in temporary files.

    Parameters
    ----------
    source : str, path or file object, or a list of them
        As for ``capture.read_table``.
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
    how = options_of(options, keywords, unused=("columns",))
    how = options_of(how, {"guid": "text", "dictionaries": False})
    return Connection(source, how, memory=memory, files=files)


class Condition:
    """A condition in SQL on the rows of tables of captures.

    Parameters
    ----------
    text : str
        What stands after WHERE, such as ``"label LIKE 'Order%' AND dst = '10.1.1.10'"``. Names of queues and GUIDs
        compare without case; times are as in ``connect``.

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
        statement = _condition_names(text)
        words = statement.columns
        self._identified = _IDENTIFIER in words
        if self._identified:
            words = words | _IDENTIFYING
        if _NANOSECONDS in words:
            words = words | {"time"}
        known = {table: words & {*table_columns(table), *former_names(table)} for table in ALL_TABLES}
        named = set().union(*known.values())
        self.tables = tuple(table for table in ALL_TABLES if named == known[table])
        if not self.tables:
            raise SqlError(f"no table has all of these columns: {', '.join(sorted(named))}")
        self._columns = frozenset(named)
        self._former = {
            former: name for table in self.tables for former, name in former_names(table).items() if former in named
        }
        self._database = Database()
        self._checked: pa.Schema | None = None

    def columns(self, table: str) -> tuple[str, ...]:
        """The columns of a table that the condition needs."""
        needed = requested_names(table, self._columns)
        return tuple(name for name in table_columns(table) if name in needed)

    def check(self, schema: pa.Schema) -> None:
        """Refuse a condition that DuckDB cannot judge on single rows of a schema, as with an aggregate.

        Raises
        ------
        SqlError
        """
        (empty,) = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
        known = self._known(empty)
        self._found(f"SELECT 1 FROM {self._rows(known.schema)} WHERE ({self.text}\n)", known)
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
        known = self._known(batch)
        rows = self._rows(known.schema)
        mask = self._found(f"SELECT CAST(({self.text}\n) AS BOOLEAN) AS found FROM {rows}", known)["found"]
        return batch.filter(mask.combine_chunks(), null_selection_behavior="drop")

    def _rows(self, schema: pa.Schema) -> str:
        """What stands after FROM: the rows, also with the former names of columns that the condition has."""
        rows = rows_without_case("rows", schema)
        former = "".join(f', "{name}" AS "{former}"' for former, name in self._former.items() if name in schema.names)
        return f"(SELECT *{former} FROM {rows})" if former else rows

    def _known(self, batch: pa.RecordBatch) -> pa.Table:
        """The rows with times in microseconds, and the columns that a condition may name beside those of its table."""
        table = pa.Table.from_batches([batch])
        for at, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                table = table.set_column(at, field.name, table[field.name].cast(_MICROSECONDS, safe=False))
        if "time" in batch.schema.names:
            table = table.append_column(_NANOSECONDS, plain(batch.column("time")).cast(pa.int64()))
        if not self._identified:
            return table
        from msmqwire.insight.bodies import message_identifiers

        return table.append_column(_IDENTIFIER, message_identifiers(batch))

    def _found(self, statement: str, table: pa.Table) -> pa.Table:
        def found(connection: duckdb.DuckDBPyConnection) -> pa.Table:
            connection.register("rows", table)
            rows = pa.RecordBatchReader.from_stream(connection.sql(statement)).read_all()
            connection.unregister("rows")
            return rows

        return self._database.run(found)


def _condition_names(text: str) -> Statement:
    """What a condition names; nothing if it is not one, which ``check`` says."""
    try:
        return parse(f"SELECT 1 FROM rows WHERE ({text}\n)") or Statement()
    except QueryError:
        return Statement()
