"""The function over message packets, in SQL and in Python, as Arrow and as pandas UDF, against the single machine."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from msmqwire import mqqb
from msmqwire import spark as msmq
from msmqwire.spark.functions import msmq_decode_message, msmq_decode_notification
from msmqwire.spark.schema import convert, spark_columns
from tests import vectors
from tests.mqqb.messages import FULL, GUIDS, some
from tests.spark.rows import as_dicts

FORMS = ("arrow", "pandas")
PAYLOADS: list[bytes | None] = [
    *(vector.data for vector in vectors.load("mqqb") if len(vector.data) < 10_000),
    None,
    mqqb.encode(FULL),
    *some("messages", 200),
]
DELETE = vectors.get("mqcn", "C1-delete").data


def payload_frame(spark: SparkSession, payloads: list[bytes | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(payloads)), "row int, payload binary").repartition(2)


def single_machine_rows(payloads: list[bytes | None], guid: Any = "text", **options: Any) -> list[Any]:
    table = mqqb.decode_batch(payloads, **options).to_arrow(guid=guid)
    rows = convert(table, spark_columns(mqqb.MESSAGES.all_columns, guid)).to_pylist()
    return [None if data is None else row for data, row in zip(payloads, rows, strict=True)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", [{}, {"guid": "binary", "strict": True}], ids=str)
def test_every_row_is_that_of_the_single_machine(spark: SparkSession, form: str, settings: dict[str, Any]) -> None:
    messages = payload_frame(spark, PAYLOADS).select(
        "row",
        msmq_decode_message("payload", form=form, **settings).alias("message"),  # type: ignore[arg-type]
    )
    rows = [row["message"] for row in as_dicts(messages.orderBy("row"))]
    expected = single_machine_rows(PAYLOADS, **settings)
    for row in (*rows, *expected):
        # Spark hands a time to Python in the machine's own zone; its nanoseconds are compared
        if row is not None:
            row.pop("sent_time")
    assert rows == expected


@pytest.mark.parametrize("form", FORMS)
def test_from_a_message_to_its_notification(spark: SparkSession, form: Any) -> None:
    msmq.register(spark, form=form)
    payloads = [
        mqqb.encode(mqqb.UserMessage(destination_queue=f"PRIVATE={GUIDS[0]}\\{number}", message_id=number, body=DELETE))
        for number in (3, 4)
    ]
    payload_frame(spark, [*payloads, None]).createOrReplaceTempView("packets")
    messages = spark.sql("SELECT msmq_decode_message(payload) AS message FROM packets")
    told = messages.where("message.notification = 'plain'").select(
        col("message.message_id"), msmq_decode_notification("message.body", form=form)[0].operation.alias("operation")
    )
    assert [tuple(row) for row in told.collect()] == [(3, "delete")]


def test_settings_are_checked_on_the_driver() -> None:
    with pytest.raises(ValueError, match="'servers': no such column of messages"):
        msmq_decode_message("payload", columns=["servers"])
