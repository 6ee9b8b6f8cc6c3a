"""The functions, in SQL and in Python, as Arrow and as pandas UDF, against the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from msmqwire import mqsd
from msmqwire import spark as msmq
from msmqwire.columns import Batch, Payloads, allocated_bytes
from msmqwire.spark.functions import decoder, msmq_decode_topology
from tests import vectors
from tests.reference import mqsd_cases
from tests.spark.rows import as_dicts, topology_rows

FORMS = ("arrow", "pandas")
VECTORS = [vector.data for vector in vectors.load("mqsd")]
#: The packets printed in [MS-MQSD] 4
PRINTED = [vector.data for vector in vectors.load("mqsd") if vector.section == "[MS-MQSD] 4"]


def payload_frame(spark: SparkSession, payloads: list[bytes | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(payloads)), "row int, payload binary").repartition(2)


def decoded(frame: DataFrame, **settings: Any) -> list[dict[str, Any] | None]:
    packets = frame.select("row", msmq_decode_topology("payload", **settings).alias("packet"))
    return [row["packet"] for row in as_dicts(packets.orderBy("row"))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", [{}, {"guid": "binary"}, {"strict": True}, {"transport": "udp"}], ids=str)
def test_every_vector_is_the_row_of_the_oracle(spark: SparkSession, form: str, settings: dict[str, Any]) -> None:
    payloads = [*VECTORS, None, b""]
    assert decoded(payload_frame(spark, payloads), form=form, **settings) == topology_rows(payloads, **settings)


@pytest.mark.parametrize("form", FORMS)
def test_the_printed_packets_in_sql(spark: SparkSession, form: Any) -> None:
    assert len(PRINTED) == 3
    msmq.register(spark, form=form)
    payload_frame(spark, [*PRINTED]).createOrReplaceTempView("printed")
    rows = spark.sql("SELECT msmq_decode_topology(payload) AS packet FROM printed ORDER BY row")
    assert [row["packet"] for row in as_dicts(rows)] == topology_rows(PRINTED)
    names = spark.sql(
        "SELECT server.name FROM printed LATERAL VIEW explode(msmq_decode_topology(payload).servers) AS server"
    )
    assert as_dicts(names) == [{"name": "nt4pec"}]


def test_a_null_payload_is_null_in_sql(spark: SparkSession) -> None:
    msmq.register(spark)
    rows = spark.sql("SELECT msmq_decode_topology(CAST(NULL AS BINARY)) AS packet, msmq_decode_topology(X'') AS empty")
    (row,) = as_dicts(rows)
    assert row["packet"] is None
    assert row["empty"]["fault"] == {"code": "truncated", "field": "Version", "offset": 0}


@pytest.mark.parametrize("form", FORMS)
def test_both_forms_agree_with_the_oracle_on_many_batches(spark: SparkSession, form: str) -> None:
    """Many batches in one call, some payloads null."""
    rng = random.Random(20)
    payloads = [None if rng.random() < 0.05 else data for data in mqsd_cases.cases(6_000, seed=20)]
    batch_size = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(batch_size)
    spark.conf.set(batch_size, "700")
    try:
        assert decoded(payload_frame(spark, payloads), form=form) == topology_rows(payloads)
    finally:
        spark.conf.set(batch_size, before or "10000")


@pytest.mark.parametrize("form", FORMS)
def test_only_the_columns_asked_for(spark: SparkSession, form: str) -> None:
    frame = payload_frame(spark, [*PRINTED])
    packets = frame.select("row", msmq_decode_topology("payload", columns=["servers", "type"], form=form).alias("p"))
    assert packets.select("p.*").columns == ["type", "servers"]
    expected = [{"type": row["type"], "servers": row["servers"]} for row in topology_rows(PRINTED) if row]
    assert as_dicts(packets.orderBy("row").select("p.*")) == expected


def test_what_is_not_asked_for_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = Payloads.of([mqsd_cases.reply(random.Random(22), 20, 20)] * 1000)
    made: list[Batch] = []

    def decode_batch(*args: Any, **options: Any) -> Batch:
        made.append(mqsd.decode_batch(*args, **options))
        return made[-1]

    def built(**settings: Any) -> int:
        """Bytes of the columns of a batch and of its rows."""
        watching = decoder.Decoder("topology", **settings)
        before = allocated_bytes()
        rows, _ = watching.decode(replies)
        assert rows.num_rows == len(replies)
        return allocated_bytes() - before

    monkeypatch.setitem(decoder._SOURCES, "topology", replace(decoder._SOURCES["topology"], decode_batch=decode_batch))
    # A text of 36 bytes, and what a batch has for each row whatever its columns
    assert built(columns=["correlation_id"]) < 120 * len(replies) < built() / 10
    assert made[1].columns == ("correlation_id",)
    with pytest.raises(KeyError):
        made[1]["servers"]


def test_what_is_not_asked_for_is_not_shipped(spark: SparkSession) -> None:
    """Spark does not tell a function which members are used: it says what it makes, and all of that is shipped."""
    for columns, members in ((["request_id"], ["request_id"]), (None, list(mqsd.TOPOLOGY.names))):
        packet = msmq_decode_topology("payload", columns=columns).alias("packet")
        ids = payload_frame(spark, []).select(packet).select("packet.request_id")
        plan = ids._jdf.queryExecution().optimizedPlan()  # type: ignore[operator]
        (evaluated,) = (node for node in _nodes(plan) if node.nodeName() == "ArrowEvalPython")
        assert list(evaluated.resultAttrs().head().dataType().fieldNames()) == members


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def test_an_untyped_null_is_null(spark: SparkSession) -> None:
    msmq.register(spark)
    functions = ("decode_topology", "decode_message", "decode_notification", "parse_format_name", "guid_text")
    row = spark.sql("SELECT " + ", ".join(f"msmq_{function}(NULL)" for function in functions)).first()
    assert row is not None
    assert list(row) == [None] * len(functions)


def test_functions_stand_beside_each_other_and_under_filters(spark: SparkSession) -> None:
    arrow = msmq_decode_topology(col("payload")).alias("arrow")
    pandas = msmq_decode_topology(col("payload"), form="pandas", guid="binary").alias("pandas")
    rows = payload_frame(spark, [*PRINTED]).select("row", arrow, pandas).where("arrow.type = 'reply'")
    ids = as_dicts(rows.select("arrow.correlation_id", col("pandas.correlation_id").alias("raw")))
    assert len(ids) == 2
    assert all(row["raw"].hex() == row["correlation_id"].replace("-", "") for row in ids)


@pytest.mark.parametrize("form", FORMS)
def test_failfast_names_the_row_the_fault_and_the_bytes(spark: SparkSession, form: str) -> None:
    payloads = [*PRINTED, None, PRINTED[2][:40], PRINTED[0]]
    frame = spark.createDataFrame([(data,) for data in payloads], "payload binary").coalesce(1)
    with pytest.raises(PythonException) as caught:
        frame.select(msmq_decode_topology("payload", form=form, mode="FAILFAST")).collect()
    message = str(caught.value)
    assert "truncated: ConnectedNetworkArray at byte 32" in message
    assert "row 4 of its partition, 40 bytes: 00020000 03a191f2 3ce34fab" in message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "DROPMALFORMED"}, "mode='DROPMALFORMED' is not one of PERMISSIVE, FAILFAST"),
        ({"guid": "uuid"}, "guid='uuid' is not one of 'text', 'binary'"),
        ({"form": "plain"}, "form='plain' is neither 'arrow' nor 'pandas'"),
        ({"columns": ["request"]}, "'request': no such column of topology"),
    ],
)
def test_settings_are_checked_on_the_driver(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        msmq_decode_topology("payload", **settings)
