"""The function over change notifications, in SQL and in Python, as Arrow and as pandas UDF, against the oracle."""

from __future__ import annotations

import random
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, explode

from msmqwire import spark as msmq
from msmqwire.spark.functions import msmq_decode_notification
from tests import vectors
from tests.reference import mqcn_cases
from tests.spark.rows import as_dicts, notification_rows

FORMS = ("arrow", "pandas")
VECTORS = [vector.data for vector in vectors.load("mqcn")]
C1, C2, C3 = (vectors.get("mqcn", name).data for name in ("C1-delete", "C2-change-queue", "C3-body"))
THREE = vectors.get("mqcn", "three-updates").data


def payload_frame(spark: SparkSession, payloads: list[bytes | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(payloads)), "row int, payload binary").repartition(2)


def decoded(frame: DataFrame, **settings: Any) -> list[list[dict[str, Any]] | None]:
    messages = frame.select("row", msmq_decode_notification("payload", **settings).alias("changes"))
    return [row["changes"] for row in as_dicts(messages.orderBy("row"))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", [{}, {"guid": "binary"}, {"strict": True}], ids=str)
def test_every_vector_is_the_rows_of_the_oracle(spark: SparkSession, form: str, settings: dict[str, Any]) -> None:
    payloads = [*VECTORS, None, b"", THREE, None]
    assert decoded(payload_frame(spark, payloads), form=form, **settings) == notification_rows(payloads, **settings)


@pytest.mark.parametrize("form", FORMS)
def test_delete_change_and_body_in_sql(spark: SparkSession, form: Any) -> None:
    msmq.register(spark, form=form)
    payload_frame(spark, [C1, C2, C3, None]).createOrReplaceTempView("bodies")
    rows = spark.sql("SELECT msmq_decode_notification(payload) AS changes FROM bodies ORDER BY row")
    assert [row["changes"] for row in as_dicts(rows)] == notification_rows([C1, C2, C3, None])
    changes = spark.sql(
        "SELECT change.operation, change.domain_controller, size(change.properties) AS properties FROM bodies"
        " LATERAL VIEW explode(msmq_decode_notification(payload)) AS change ORDER BY row"
    )
    assert [tuple(row) for row in changes.collect()] == [
        ("delete", None, 2),
        ("change", None, 2),
        ("change", "dc1", None),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_both_forms_agree_with_the_oracle_on_many_batches(spark: SparkSession, form: str) -> None:
    """Many batches in one call, some payloads null."""
    rng = random.Random(21)
    payloads = [None if rng.random() < 0.05 else data for data in mqcn_cases.cases(1_500, seed=21)]
    batch_size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(batch_size)
    spark.conf.set(batch_size, "200")
    try:
        assert decoded(payload_frame(spark, payloads), form=form) == notification_rows(payloads)
    finally:
        spark.conf.set(batch_size, before or "10000")


@pytest.mark.parametrize("form", FORMS)
def test_only_the_columns_asked_for(spark: SparkSession, form: str) -> None:
    changes = explode(msmq_decode_notification(col("payload"), columns=["operation", "index"], form=form))
    rows = payload_frame(spark, [THREE]).select(changes.alias("change")).select("change.*")
    assert rows.columns == ["index", "operation"]
    expected = [{"index": row["index"], "operation": row["operation"]} for row in notification_rows([THREE])[0] or ()]
    assert len(expected) == 3
    assert as_dicts(rows) == expected


@pytest.mark.parametrize("form", FORMS)
def test_failfast_names_the_message_and_not_the_change(spark: SparkSession, form: str) -> None:
    payloads = [THREE, None, C3, C2[:30], C1]
    frame = spark.createDataFrame([(data,) for data in payloads], "payload binary").coalesce(1)
    with pytest.raises(PythonException) as caught:
        frame.select(msmq_decode_notification("payload", form=form, mode="FAILFAST")).collect()
    message = str(caught.value)
    assert "truncated: GuidMasterId at byte 20" in message
    assert "row 3 of its partition, 30 bytes: 0101 01013322 11005544" in message


def test_settings_are_checked_on_the_driver() -> None:
    with pytest.raises(ValueError, match="'servers': no such column of notifications"):
        msmq_decode_notification("payload", columns=["servers"])
