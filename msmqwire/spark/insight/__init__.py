"""Summaries and findings by Spark: the queries of ``msmqwire.insight`` over captures, a lake, or DataFrames."""

from __future__ import annotations

from msmqwire.errors import require

require("pyspark", "msmqwire.spark.insight")

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from msmqwire.capture import TABLES
from msmqwire.insight.findings import Detector, detection_engine
from msmqwire.insight.query_files import SECTIONS, Section
from msmqwire.insight.rules import RULES, Rule
from msmqwire.insight.summary import Summary
from msmqwire.spark.insight.engine import Load, SparkEngine
from msmqwire.spark.schema import struct_type, table_columns
from msmqwire.spark.source.options import is_lake

__all__ = ["detect", "summarize"]

#: Captures as the data source takes them; or DataFrames by the names of their tables.
Rows: TypeAlias = "str | list[str] | Mapping[str, DataFrame] | None"


def summarize(
    spark: SparkSession,
    source: Rows = None,
    *,
    limits: dict[str, int] | None = None,
    sections: Mapping[str, Section] = SECTIONS,
    **options: str,
) -> Summary:
    """Summarize captures, a lake or DataFrames, on Spark.

    Parameters
    ----------
    spark : SparkSession
    source : str, list of str, or mapping of str to DataFrame, optional
        Captures: files, folders, globs and URIs; or DataFrames of the tables that they are named by, with the columns
        of the data source and GUIDs as text. None with the option ``lake``.
    limits : dict of str to int, optional
        The most rows of sections, in place of those of the sections.
    sections : mapping of str to Section, optional
        Other sections than ``SECTIONS``.
    **options : str
        Options of the data source, such as ``lake`` and ``since``.

    Raises
    ------
    QueryFileError
        A section has a mistake, or no form on Spark.
    SqlError
        DuckDB, which checks the queries, is not installed; or the session has a setting that changes answers.

    Examples
    --------
    >>> summary = summarize(spark, "examples/*.pcap*")  # doctest: +SKIP
    """
    engine = SparkEngine(spark, _loader(spark, source, options), sections.values())
    return Summary(limits, sections, engine)


def detect(
    spark: SparkSession,
    source: Rows = None,
    *,
    expected: Iterable[str] = (),
    rules: Iterable[Rule] = RULES,
    **options: str,
) -> Detector:
    """Apply rules to captures, a lake or DataFrames, on Spark; ``findings()`` of the result has the findings.

    Parameters
    ----------
    spark, source, **options
        As for ``summarize``.
    expected : iterable of str
        The addresses and networks of the directory servers.
    rules : iterable of msmqwire.insight.findings.Rule, optional
        Other rules than ``RULES``.

    Raises
    ------
    QueryFileError, SqlError
        As ``summarize``.
    """
    rules = tuple(rules)
    make = partial(SparkEngine, spark, _loader(spark, source, options))
    return Detector(rules=rules, engine=detection_engine(rules, expected, make=make))


def _loader(spark: SparkSession, source: Rows, options: Mapping[str, str]) -> Load:
    """Return a function that reads columns of a table."""
    if isinstance(source, Mapping):
        if options:
            raise ValueError("options are for captures and lakes; DataFrames are read as they are")
        return partial(_of_frames, spark, source)
    return partial(_of_data_source, spark, source, options)


def _with_nanoseconds(table: str, columns: Iterable[str]) -> list[str]:
    wanted = {*columns, "time"}
    return [
        column.name
        for column in table_columns(table)
        if column.name in columns or (column.source in wanted and column.name != column.source)
    ]


def _of_frames(spark: SparkSession, frames: Mapping[str, DataFrame], table: str, columns: tuple[str, ...]) -> DataFrame:
    if table in frames:
        names = _with_nanoseconds(table, columns)
        missing = [name for name in names if name not in frames[table].columns]
        if missing:
            raise KeyError(f"{table}: no column {', '.join(missing)}")
        return frames[table].select(*names)
    return spark.createDataFrame([], _schema(table, columns))


def _schema(table: str, columns: tuple[str, ...]) -> StructType:
    names = _with_nanoseconds(table, columns)
    return struct_type(column for column in table_columns(table) if column.name in names)


def _of_data_source(
    spark: SparkSession,
    source: str | list[str] | None,
    options: Mapping[str, str],
    table: str,
    columns: tuple[str, ...],
) -> DataFrame:
    if is_lake(options) and table not in TABLES:
        return spark.createDataFrame([], _schema(table, columns))
    reader = spark.read.format("msmq").options(**options).option("table", table)
    # Only the columns of its schema are built
    reader = reader.schema(_schema(table, columns))
    return reader.load(source) if source is not None else reader.load()
