"""Every way to decode a column gives the rows of the single machine: UDFs, frames, table functions, Python and SQL."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import expr

from msmqwire import formatname, mqcn, mqqb, mqsd
from msmqwire import spark as msmq
from msmqwire.columns import Batch
from msmqwire.spark import functions
from msmqwire.spark.functions import decode_frame, decoder_udtf
from msmqwire.spark.schema import convert, spark_columns
from tests.reference import formatname_cases, mqcn_cases, mqqb_cases, mqsd_cases

ROWS = 300
BATCH_SIZE = "spark.sql.execution.arrow.maxRecordsPerBatch"

#: By table: half of them faulty, the rest as varied as the reference can make them
CASES: dict[str, Callable[[], Iterator[Any]]] = {
    "topology": lambda: mqsd_cases.cases(ROWS, seed=30),
    "notifications": lambda: mqcn_cases.cases(ROWS, seed=31),
    "messages": lambda: mqqb_cases.cases(ROWS, 32, "messages"),
    "sessions": lambda: mqqb_cases.cases(ROWS, 33, "sessions"),
    "format_names": lambda: filter(str.isprintable, formatname_cases.cases(ROWS, seed=34)),
}
DECODE: dict[str, Callable[..., Batch]] = {
    "topology": mqsd.decode_batch,
    "notifications": mqcn.decode_batch,
    "messages": mqqb.decode_batch,
    "sessions": mqqb.decode_session_batch,
    "format_names": formatname.parse_batch,
}
FUNCTIONS: dict[str, Callable[..., Column]] = {
    "topology": functions.msmq_decode_topology,
    "notifications": functions.msmq_decode_notification,
    "messages": functions.msmq_decode_message,
    "format_names": functions.msmq_parse_format_name,
}
SOME_COLUMNS = {
    "topology": ["request_id", "fault"],
    "notifications": ["object_guid", "properties", "index"],
    "messages": ["body", "message_id", "connector_type"],
    "sessions": ["fault"],
    "format_names": ["guid", "kind"],
}


def given(table: str) -> list[Any]:
    rng = random.Random(table)
    return [None, *(None if rng.random() < 0.05 else payload for payload in CASES[table]()), None]


def single_machine(table: str, payloads: list[Any], guid: Any = "text") -> tuple[list[dict[str, Any]], list[int]]:
    """The rows of payloads as Spark shows them, and the payload that each comes from."""
    batch = DECODE[table](payloads)
    columns = spark_columns(batch.table.all_columns, guid)
    counts = np.diff(batch.messages) if isinstance(batch, mqcn.NotificationBatch) else np.ones(len(payloads), int)
    rows = convert(batch.to_arrow(guid=guid), columns).to_pylist()
    assert len(rows) > 200
    return rows, np.repeat(np.arange(len(payloads)), counts).tolist()


@pytest.fixture
def small_batches(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(BATCH_SIZE)
    spark.conf.set(BATCH_SIZE, "64")
    msmq.register(spark)
    yield spark
    spark.conf.set(BATCH_SIZE, before or "10000")


def payload_frame(spark: SparkSession, table: str, payloads: list[Any]) -> DataFrame:
    type_ = "string" if table == "format_names" else "binary"
    frame = spark.createDataFrame(list(enumerate(payloads)), f"row int, payload {type_}")
    frame.createOrReplaceTempView("payloads")
    return frame


@pytest.mark.parametrize("table", FUNCTIONS)
def test_functions_give_the_rows_of_the_single_machine(small_batches: SparkSession, table: str) -> None:
    payloads = given(table)
    function = FUNCTIONS[table]
    values = payload_frame(small_batches, table, payloads).select(
        function("payload").alias("arrow"),
        function("payload", form="pandas").alias("pandas"),
        expr(f"{function.__name__}(payload)").alias("sql"),
    )
    expected: list[Any] = [None] * len(payloads)
    for row, payload in zip(*single_machine(table, payloads), strict=True):
        if payloads[payload] is None:
            continue
        if table == "notifications":
            expected[payload] = [*(expected[payload] or ()), row]
        else:
            expected[payload] = row
    collected = values.toArrow()
    for form in values.columns:
        assert collected[form].to_pylist() == expected, form


@pytest.mark.parametrize("table", DECODE)
def test_rows_are_those_of_the_single_machine(small_batches: SparkSession, table: str) -> None:
    payloads = given(table)
    frame = payload_frame(small_batches, table, payloads)
    rows, origins = single_machine(table, payloads)
    numbered = [{"row": origin, **row} for row, origin in zip(rows, origins, strict=True)]
    assert decode_frame(frame, "payload", table, keep="row").toArrow().to_pylist() == numbered
    in_sql = small_batches.sql(f"SELECT * FROM msmq_{table}(TABLE(SELECT payload FROM payloads))")
    assert in_sql.toArrow().to_pylist() == rows


@pytest.mark.parametrize("table", DECODE)
def test_some_columns_and_binary_guids(small_batches: SparkSession, table: str) -> None:
    payloads = given(table)
    frame = payload_frame(small_batches, table, payloads)
    settings: dict[str, Any] = {"columns": SOME_COLUMNS[table], "guid": "binary"}
    rows, origins = single_machine(table, payloads, "binary")
    # In the table's order
    names = [name for name in rows[0] if name in SOME_COLUMNS[table]]
    assert len(names) == len(SOME_COLUMNS[table])
    expected = [
        {"row": origin, **{name: row[name] for name in names}} for row, origin in zip(rows, origins, strict=True)
    ]
    assert decode_frame(frame, "payload", table, keep="row", **settings).toArrow().to_pylist() == expected
    small_batches.udtf.register("some_columns", decoder_udtf(table, keep="row int", **settings))
    in_sql = small_batches.sql("SELECT * FROM some_columns(TABLE(payloads))")
    assert in_sql.toArrow().to_pylist() == expected
