"""Table functions in SQL: what they take, what goes along, what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from msmqwire import spark as msmq
from msmqwire.spark.functions import decoder_udtf
from tests import vectors
from tests.spark.rows import as_dicts, notification_rows, topology_rows

PACKETS: list[bytes | None] = [*(vector.data for vector in vectors.load("mqsd")), None]
THREE = vectors.get("mqcn", "three-updates").data


@pytest.fixture
def payloads(spark: SparkSession) -> SparkSession:
    msmq.register(spark)
    for name, values in (("packets", PACKETS), ("bodies", [THREE, None, THREE[:30]])):
        rows = [(number, f"at {number}", data) for number, data in enumerate(values)]
        spark.createDataFrame(rows, "id int, place string, payload binary").createOrReplaceTempView(name)
    return spark


def test_a_table_of_payloads_and_one_payload(payloads: SparkSession) -> None:
    rows = payloads.sql("SELECT * FROM msmq_topology(TABLE(SELECT payload FROM packets))")
    nothing = dict.fromkeys(rows.columns)
    assert as_dicts(rows) == [row or nothing for row in topology_rows(PACKETS)]
    changes = payloads.sql(f"SELECT * FROM msmq_notifications(X'{THREE.hex()}')")
    assert as_dicts(changes) == notification_rows([THREE])[0]


def test_what_goes_along_stands_in_front_of_each_row(payloads: SparkSession) -> None:
    keep = StructType([StructField("place", StringType()), StructField("id", IntegerType())])
    payloads.udtf.register("changes", decoder_udtf("notifications", keep=keep, columns=["index", "fault"]))
    rows = payloads.sql("SELECT *, fault.code FROM changes(TABLE(bodies))").drop("fault")
    assert [tuple(row) for row in rows.collect()] == [
        ("at 0", 0, 0, None),
        ("at 0", 0, 1, None),
        ("at 0", 0, 2, None),
        ("at 1", 1, None, None),
        ("at 2", 2, None, "truncated"),
    ]


@pytest.mark.parametrize(
    ("keep", "table", "message"),
    [
        ("", "packets", "the table has id, place, payload; this function takes payloads alone"),
        ("id int", "packets", "the table has id, place, payload; this function takes id and payloads"),
        ("id int, time timestamp", "(SELECT id, payload FROM packets)", "time"),
        ("id int", "(SELECT id FROM packets)", "the table has id; this function takes id and payloads"),
    ],
)
def test_other_tables_are_refused(payloads: SparkSession, keep: str, table: str, message: str) -> None:
    payloads.udtf.register("types", decoder_udtf("topology", keep=keep, columns=["type"]))
    with pytest.raises(PythonException, match=message):
        payloads.sql(f"SELECT * FROM types(TABLE({table.strip('()')}))").collect()


def test_failfast_names_the_row_of_the_payload(payloads: SparkSession) -> None:
    msmq.register(payloads, mode="FAILFAST")
    # In one task, or the row would be the first of its own
    in_order = "SELECT payload FROM bodies ORDER BY id"
    with pytest.raises(PythonException, match="row 2 of its partition, 30 bytes"):
        payloads.sql(f"SELECT * FROM msmq_notifications(TABLE({in_order}) WITH SINGLE PARTITION)").collect()


@pytest.mark.parametrize(
    ("table", "settings", "message"),
    [
        ("topology", {"keep": "Type string"}, "two columns called 'type'"),
        ("topology", {"columns": ["queue"]}, "'queue': no such column of topology"),
        ("topology", {"columns": []}, "columns names no column"),
        ("queues", {}, "'queues' is no table"),
    ],
)
def test_settings_are_checked_on_the_driver(
    spark: SparkSession, table: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        decoder_udtf(table, **settings)
