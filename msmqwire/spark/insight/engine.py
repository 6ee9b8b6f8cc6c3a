"""Queries over rows in Spark: each table is read once, with the columns that queries name, and kept for all of them."""

from __future__ import annotations

import contextlib
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from msmqwire.capture import TABLES
from msmqwire.insight.database import QueryError, SqlError
from msmqwire.insight.engine import Engine, readable
from msmqwire.insight.query_files import Query
from msmqwire.insight.sql_functions import MOST_FRAMES
from msmqwire.insight.tables import ALL_ROWS, UNREAD, VIEWS, StoredTable, common_columns
from msmqwire.spark.executors import Sent, map_in_arrow
from msmqwire.spark.insight.translation import MOST_PLACES, translate, translate_expression
from msmqwire.spark.schema import SparkColumn, arrow_schema, struct_type, table_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Returns the rows of a table, with these columns.
Load = Callable[[str, tuple[str, ...]], DataFrame]

_UNSIGNED = pa.decimal128(20, 0)
_TYPES: dict[str, pa.DataType] = {
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "UUID": pa.string(),
    "VARCHAR": pa.string(),
}
# The most that min_by takes, where more rows than usual have one place
_ALL_PLACES = 100_000
# Settings of a session by which an answer would be another one
_SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
}
_ZONE = {"spark.sql.session.timeZone": "UTC"}


@dataclass(frozen=True)
class _Computing(Sent):
    """Computes columns from bytes in the tasks, which send neither bodies nor properties to Spark."""

    table: str
    columns: frozenset[str]
    networks: tuple[str, ...]
    made: tuple[SparkColumn, ...]

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The columns of batches that are kept."""
        stored, schema = StoredTable(self.table, self.columns), arrow_schema(self.made)
        for batch in batches:
            computed, names = stored.computed(batch, self.networks), set(batch.schema.names)
            columns = [
                # Some are a column of Spark
                batch.column(field.name) if field.name in names else computed[field.name].cast(field.type)
                for field in schema
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


class SparkEngine:
    """The tables that queries read, as views of a session, and the queries, which DuckDB checks first.

    Parameters
    ----------
    spark : SparkSession
    load : callable
        Returns a DataFrame of a table: its columns, of which GUIDs are text.
    queries, expected, common
        As of ``Engine``; ``threads`` are Spark's own.

    Attributes
    ----------
    columns, rows
        As of ``Engine``.

    Raises
    ------
    QueryFileError
        As ``Engine``; or a query has no form on Spark.
    SqlError
        DuckDB is not installed, or the session has a setting that changes answers.
    """

    def __init__(
        self,
        spark: SparkSession,
        load: Load,
        queries: Iterable[Query],
        expected: Iterable[str] = (),
        threads: int = 1,
        common: Iterable[str] = (),
    ) -> None:
        queries, expected = tuple(queries), tuple(expected)
        checked = Engine(queries, expected, threads, common)
        self.columns = checked.columns
        self._results = {query.name: checked.columns_of_result(query) for query in queries}
        checked.close()
        self.rows: Counter[str] = Counter()
        self._spark = spark
        prefix = f"msmqwire_{uuid4().hex}"
        names = [*checked.stored, UNREAD, *((ALL_ROWS,) if checked.common else ()), *checked.views]
        self._views = {name: f"{prefix}_{name}" for name in names}
        for query in queries:
            try:
                translate(query.text, self._views)
            except QueryError as error:
                raise query.error(str(error), error.line or 1, error.column or 1) from None
        wanted = {name for stored in checked.stored.values() for name, _ in stored.derived}
        _check_settings(spark, _SETTINGS | (_ZONE if "time" in wanted else {}))
        self._kept: list[DataFrame] = []
        self._matched: DataFrame | None = None
        self._close = weakref.finalize(self, _release, spark, self._views, self._kept)
        # The end of a process ends its session as well
        self._close.atexit = False
        frames = {name: self._view(stored, load, expected) for name, stored in checked.stored.items()}
        if checked.common:
            self._make_all_rows(frames, common_columns(checked.common))
        # Its rows are counts of a reader of captures
        no_streams = spark.createDataFrame([], "protocol string, port bigint, streams bigint")
        no_streams.createOrReplaceTempView(self._views[UNREAD])
        for name in checked.views:
            self._query(VIEWS[name]).createOrReplaceTempView(self._views[name])
        for query in queries:
            self._analyze(query)
        self._files = self._count(frames)
        self._views["matched"] = f"{prefix}_matched"

    def _analyze(self, query: Query) -> None:
        """Have Spark check a query without running it."""
        try:
            assert self._query(query.text).schema
        except PySparkException as error:
            raise query.error(f"Spark: {str(error).splitlines()[0]}") from None

    def _view(self, stored: StoredTable, load: Load, expected: tuple[str, ...]) -> DataFrame:
        """Make a table a view, with the columns in the order that they have in DuckDB."""
        rows = load(stored.name, stored.read)
        own = {column.name: column for column in table_columns(stored.name)}
        derived = stored.derived
        # The place is a file and a frame
        kept = [name for name in dict.fromkeys(("file", "frame", *stored.types)) if name != "place"]
        if "time" in dict(derived):
            kept.append("time")
        made = tuple(own[name] if name in own else SparkColumn(name, name, _TYPES[stored.types[name]]) for name in kept)
        if stored.is_computed:
            computing = _Computing(stored.name, frozenset(stored.types), expected, made)
            rows = map_in_arrow(rows, computing.batches, struct_type(made))
        rows = rows.select(*kept).persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(rows)
        rows = rows.withColumn("place", sql.struct("file", "frame"))
        for name, each in derived:
            if name != "time":
                rows = rows.withColumn(name, sql.expr(translate_expression(each.text)))
        rows = rows.select(*dict.fromkeys(("file", *stored.types)), *(name for name, _ in derived))
        rows.createOrReplaceTempView(self._views[stored.name])
        return rows

    def _make_all_rows(self, frames: dict[str, DataFrame], columns: list[str]) -> None:
        parts = (
            rows.select(sql.lit(name).alias("in_table"), *columns) for name, rows in frames.items() if name in TABLES
        )
        reduce(DataFrame.union, parts).createOrReplaceTempView(self._views[ALL_ROWS])

    def _count(self, frames: dict[str, DataFrame]) -> int:
        """Count the rows of each table, for which all are read, and their files."""
        if not frames:
            return 0
        parts = (rows.select(sql.lit(name).alias("name"), "file") for name, rows in frames.items())
        counts = reduce(DataFrame.union, parts).groupBy("name", "file").count().toArrow().to_pylist()
        for row in counts:
            self.rows[row["name"]] += row["count"]
        return len({row["file"] for row in counts})

    def columns_of_result(self, query: Query) -> tuple[str, ...]:
        """Return the columns of the result of one of the queries."""
        return self._results[query.name]

    @property
    def files(self) -> int:
        """The number of files of the rows."""
        return self._files

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Refuse rows: those of Spark are the rows of its DataFrames.

        Raises
        ------
        SqlError
        """
        raise SqlError(f"{table}: rows that Spark answers for are in its DataFrames")

    def match(self, query: Query) -> int:
        """Keep the result of a query as the table ``matched``; the number of its rows."""
        if self._matched is not None:
            self._kept.remove(self._matched)
            self._matched.unpersist()
        self._matched = self._query(query.text).persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(self._matched)
        self._matched.createOrReplaceTempView(self._views["matched"])
        return self._matched.count()

    def first_rows(self, text: str, limit: int, count: str | None) -> tuple[pa.Table, int, int]:
        """Return the first rows of a result; the number of further rows, and the sum of their column ``count``."""
        found, most = self._first(text, limit + 1, MOST_PLACES), MOST_PLACES
        if found is None:
            most = _ALL_PLACES
            found = self._first(text, limit + 1, most)
            if found is None:
                raise SqlError(f"more than {_ALL_PLACES:,} rows of a group are of one packet")
        kept = found.slice(0, limit)
        omitted = packets = 0
        if found.num_rows > limit:
            counted = sql.coalesce(sql.sum(count), sql.lit(0)) if count else sql.count("*")
            (all_of,) = self._query(text, most).agg(sql.count("*").alias("rows"), counted.alias("packets")).collect()
            shown = sum(filter(None, kept[count].to_pylist())) if count else kept.num_rows
            omitted, packets = all_of["rows"] - kept.num_rows, all_of["packets"] - shown
        return readable(_with_unsigned(kept), lambda frames: frames), omitted, int(packets)

    def _first(self, text: str, rows: int, places: int) -> pa.Table | None:
        """The first rows of a result; None if ``places`` of a row are too few to find those that it shows."""
        frame = self._query(text, places).limit(rows)
        if "frames" not in frame.columns:
            return frame.toArrow()
        differing = sql.array_distinct("frames")
        few = (sql.size("frames") == places) & (sql.size(differing) < MOST_FRAMES)
        found = frame.select(
            *(sql.slice(differing, 1, MOST_FRAMES).alias(name) if name == "frames" else name for name in frame.columns),
            few.alias("few_places"),
        ).toArrow()
        if True in found["few_places"].unique().to_pylist():
            return None
        return found.drop_columns("few_places")

    def _query(self, text: str, places: int = MOST_PLACES) -> DataFrame:
        return self._spark.sql(translate(text, self._views, places))

    def close(self) -> None:
        """Drop the views, and the rows that are kept."""
        self._close()


def _with_unsigned(table: pa.Table) -> pa.Table:
    """A result with unsigned numbers of 64 bits, which are decimals in Spark."""
    kinds = {field.name: pa.uint64() if field.type == _UNSIGNED else field.type for field in table.schema}
    return table.cast(pa.schema(kinds.items()))


def _check_settings(spark: SparkSession, needed: dict[str, str]) -> None:
    for name, value in needed.items():
        found = str(spark.conf.get(name, value))
        if found.lower() != value.lower():
            raise SqlError(f"{name} is {found} in this session; queries need {value}")


def _release(spark: SparkSession, views: dict[str, str], kept: list[DataFrame]) -> None:
    # The session may have ended
    with contextlib.suppress(Exception):
        for name in views.values():
            spark.catalog.dropTempView(name)
        for frame in kept:
            frame.unpersist()
