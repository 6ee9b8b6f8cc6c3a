"""Frames of payloads decoded in one pass: what goes along, what stands twice, what stays null."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array, col, expr, lit

from msmqwire.spark.functions import decode_frame
from tests import vectors
from tests.spark.rows import as_dicts, notification_rows, topology_rows

PACKETS = [vector.data for vector in vectors.load("mqsd")]
BODIES = [vector.data for vector in vectors.load("mqcn")]
THREE = vectors.get("mqcn", "three-updates").data


def payload_frame(spark: SparkSession, payloads: list[bytes | None], partitions: int = 2) -> DataFrame:
    return spark.createDataFrame(list(enumerate(payloads)), "row int, payload binary").repartition(partitions)


@pytest.mark.parametrize("settings", [{}, {"guid": "binary"}, {"strict": True}, {"transport": "udp"}], ids=str)
def test_packets_are_the_rows_of_the_oracle(spark: SparkSession, settings: dict[str, Any]) -> None:
    payloads = [*PACKETS, None, b""]
    decoded = decode_frame(payload_frame(spark, payloads), "payload", "topology", keep="row", **settings)
    expected = topology_rows(payloads, **settings)
    nothing = dict.fromkeys(decoded.columns[1:])
    rows = as_dicts(decoded.orderBy("row"))
    assert rows == [{"row": number, **(row or nothing)} for number, row in enumerate(expected)]


def test_a_notification_gives_its_changes_and_what_is_kept_goes_with_each(spark: SparkSession) -> None:
    payloads = [*BODIES, None, b"", THREE, None]
    decoded = decode_frame(payload_frame(spark, payloads), col("payload"), "notifications", keep=["row"])
    nothing = dict.fromkeys(decoded.columns[1:])
    expected = [
        {"row": number, **change}
        for number, changes in enumerate(notification_rows(payloads))
        for change in (changes or [nothing])
    ]
    assert len(expected) > len(payloads)
    # A row without changes has no place in its message
    rows = as_dicts(decoded.orderBy("row", "index"))
    assert rows == sorted(expected, key=lambda row: (row["row"], -1 if row["index"] is None else row["index"]))


def test_columns_of_any_type_go_along_unchanged(spark: SparkSession) -> None:
    frame = payload_frame(spark, [THREE, None]).withColumn("a.b", lit(1.5))
    kept = [
        "payload",
        "`a.b`",
        col("row").cast("decimal(30, 3)").alias("number"),
        expr("TIMESTAMP '2024-03-04 08:00:00.123456'").alias("seen"),
        expr("TIMESTAMP_NTZ '2024-03-04 08:00:00'").alias("local"),
        expr("INTERVAL '1 02:03:04' DAY TO SECOND").alias("lasting"),
        expr("map('a', array(1, NULL))").alias("map"),
        array(lit(1), lit(2)).alias("numbers"),
        expr("struct(1 AS x, '\u00e9' AS y)").alias("pair"),
    ]
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        wanted = frame.select(*kept)
        decoded = decode_frame(frame, "payload", "notifications", keep=kept, columns=["index"])
        assert decoded.schema.fields[:-1] == wanted.schema.fields
        assert decoded.schema.names[-1] == "index"
        three, one = wanted.orderBy("number").collect()
        rows = decoded.orderBy("number", "index").collect()
        assert [tuple(row) for row in rows] == [*((*three, index) for index in range(3)), (*one, None)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert isinstance(rows[0].seen, datetime.datetime)


def test_all_columns_go_along(spark: SparkSession) -> None:
    frame = payload_frame(spark, [PACKETS[0]])
    decoded = decode_frame(frame, "payload", "topology", keep="*", columns="type")
    assert as_dicts(decoded) == [{"row": 0, "payload": PACKETS[0], "type": "request"}]


def test_no_rows_and_empty_partitions(spark: SparkSession) -> None:
    frame = payload_frame(spark, [PACKETS[0]], partitions=4)
    decoded = decode_frame(frame, "payload", "topology", columns=["type"])
    assert decoded.columns == ["type"]
    assert decoded.count() == 1
    nobody = decode_frame(frame.where("row > 5"), "payload", "topology", keep=["row"])
    assert nobody.count() == 0


def test_a_filter_on_a_decoded_column_decodes_once(spark: SparkSession) -> None:
    decoded = decode_frame(payload_frame(spark, [*PACKETS]), "payload", "topology", columns=["type"])
    plan = decoded.where("type = 'reply'")._jdf.queryExecution().toString()  # type: ignore[operator]
    physical = plan[plan.index("== Physical Plan ==") :]
    assert physical.count("MapInArrow") == 1


def test_failfast_names_the_row_of_the_payload(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(data,) for data in (THREE, None, THREE[:30])], "payload binary").coalesce(1)
    with pytest.raises(PythonException, match="row 2 of its partition, 30 bytes"):
        decode_frame(frame, "payload", "notifications", mode="FAILFAST").collect()


@pytest.mark.parametrize(
    ("table", "settings", "error", "message"),
    [
        ("queues", {}, ValueError, "'queues' is no table; there is topology, notifications, messages, sessions, form"),
        ("topology", {"columns": ["queue"]}, ValueError, "'queue': no such column of topology"),
        ("topology", {"strikt": True}, TypeError, "unexpected keyword argument 'strikt'"),
        ("messages", {"transport": "udp"}, TypeError, "unexpected keyword argument 'transport'"),
        ("topology", {"transport": "tcp"}, ValueError, "transport"),
        ("format_names", {}, TypeError, "payloads of format_names are string, and this column is binary"),
        ("topology", {"keep": ["row", "row"]}, ValueError, "two columns called 'row': keep one under an alias"),
        ("format_names", {"payload": "Fault", "keep": "Fault"}, ValueError, "two columns called 'fault'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    spark: SparkSession, table: str, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    frame = payload_frame(spark, [None]).withColumn("Fault", lit(""))
    with pytest.raises(error, match=message):
        decode_frame(frame, table=table, **{"payload": "payload", **settings})
