"""Every way to decode a column gives the rows of the batch functions: Arrow and pandas UDFs, frames, SQL."""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from pyspark.errors import PythonException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import array, col, expr, lit

from msmqwire import formatname, mqcn, mqqb, mqsd
from msmqwire import spark as msmq
from msmqwire.columns import Batch, Payloads, allocated_bytes
from msmqwire.spark.functions import (
    decode_frame,
    decoder,
    decoder_udf,
    decoder_udtf,
    guid_text_udf,
    msmq_decode_message,
    msmq_decode_notification,
    msmq_decode_topology,
    msmq_guid_text,
    msmq_parse_format_name,
)
from msmqwire.spark.schema import convert, spark_columns
from tests import vectors
from tests.effort import first_of, long_cases
from tests.reference import formatname_cases, mqcn_cases, mqqb_cases, mqsd_cases
from tests.spark.rows import as_dicts, notification_rows, topology_rows

ROWS = 300
BATCH_SIZE = "spark.sql.execution.arrow.maxRecordsPerBatch"
PACKETS = [vector.data for vector in vectors.load("mqsd")]
BODIES = [vector.data for vector in vectors.load("mqcn")]
#: The packets printed in [MS-MQSD] 4
REQUEST, _, REPLY = (vector.data for vector in vectors.load("mqsd") if vector.section == "[MS-MQSD] 4")
DELETE, CHANGE, THREE = (vectors.get("mqcn", name).data for name in ("C1-delete", "C2-change-queue", "three-updates"))

#: By table: half of them malformed, the rest as varied as the reference can make them
CASES: dict[str, Callable[[], Iterator[Any]]] = {
    "topology": lambda: mqsd_cases.cases(ROWS, seed=30),
    "notifications": lambda: mqcn_cases.cases(ROWS, seed=31),
    "messages": lambda: mqqb_cases.cases(ROWS, 32, "messages"),
    "sessions": lambda: mqqb_cases.cases(ROWS, 33, "sessions"),
    "format_names": lambda: filter(
        str.isprintable,
        (*formatname_cases.NAMES, *formatname_cases.PATH_NAMES, *formatname_cases.cases(ROWS, seed=34)),
    ),
}
DECODE: dict[str, Callable[..., Batch]] = {
    "topology": mqsd.decode_batch,
    "notifications": mqcn.decode_batch,
    "messages": mqqb.decode_batch,
    "sessions": mqqb.decode_session_batch,
    "format_names": formatname.parse_batch,
}
FUNCTIONS: dict[str, Callable[..., Column]] = {
    "topology": msmq_decode_topology,
    "notifications": msmq_decode_notification,
    "messages": msmq_decode_message,
    "format_names": msmq_parse_format_name,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "topology": {"strict": True, "transport": "udp"},
    "notifications": {"strict": True},
    "messages": {"strict": True},
    "sessions": {"strict": True},
    "format_names": {"extended": True, "http_slashes": True, "spx": True, "path_names": True},
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


def batch_rows(
    table: str, payloads: list[Any], guid: Any = "text", **options: Any
) -> tuple[list[dict[str, Any]], list[int]]:
    """The rows of payloads as Spark shows them, and the payload that each comes from."""
    batch = DECODE[table](payloads, **options)
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


@pytest.fixture
def registered(spark: SparkSession) -> SparkSession:
    msmq.register(spark)
    for name, values in (("packets", [*PACKETS, None]), ("bodies", [THREE, None, THREE[:30]])):
        rows = [(number, f"at {number}", data) for number, data in enumerate(values)]
        spark.createDataFrame(rows, "id int, place string, payload binary").createOrReplaceTempView(name)
    return spark


def payload_frame(spark: SparkSession, payloads: list[Any], partitions: int = 0, type_: str = "binary") -> DataFrame:
    frame = spark.createDataFrame(list(enumerate(payloads)), f"row int, payload {type_}")
    return frame.repartition(partitions) if partitions else frame


def frame_of(spark: SparkSession, table: str, payloads: list[Any]) -> DataFrame:
    frame = payload_frame(spark, payloads, type_="string" if table == "format_names" else "binary")
    frame.createOrReplaceTempView("payloads")
    return frame


# --- The rows ---


@pytest.mark.parametrize(
    ("table", "options"),
    [
        *((table, False) for table in FUNCTIONS),
        ("topology", True),
        *long_cases((table, True) for table in FUNCTIONS if table != "topology"),
    ],
)
def test_functions_give_the_rows_of_the_batch_functions(small_batches: SparkSession, table: str, options: bool) -> None:
    payloads, function = given(table), FUNCTIONS[table]
    settings: dict[str, Any] = {**OPTIONS[table], "guid": "binary"} if options else {}
    values = frame_of(small_batches, table, payloads).select(
        function("payload", **settings).alias("arrow"),
        decoder_udf(table, form="pandas", **settings)("payload").alias("pandas"),
        *(() if options else (expr(f"{function.__name__}(payload)").alias("sql"),)),
    )
    expected: list[Any] = [None] * len(payloads)
    for row, payload in zip(*batch_rows(table, payloads, **settings), strict=True):
        if payloads[payload] is not None:
            expected[payload] = [*(expected[payload] or ()), row] if table == "notifications" else row
    collected = values.toArrow()
    for form in values.columns:
        found = [row[form] for row in collected.to_pylist()]
        if form == "pandas" and table != "notifications":
            # A frame has no null rows
            found = [None if all(value is None for value in row.values()) else row for row in found]
        assert found == expected, form


@pytest.mark.parametrize("table", DECODE)
def test_frames_and_table_functions_give_the_same_rows(small_batches: SparkSession, table: str) -> None:
    payloads = given(table)
    frame = frame_of(small_batches, table, payloads)
    rows, origins = batch_rows(table, payloads, **OPTIONS[table])
    numbered = [{"row": origin, **row} for row, origin in zip(rows, origins, strict=True)]
    assert decode_frame(frame, "payload", table, keep="row", **OPTIONS[table]).toArrow().to_pylist() == numbered
    in_sql = small_batches.sql(f"SELECT * FROM msmq_{table}(TABLE(SELECT payload FROM payloads))")
    assert in_sql.toArrow().to_pylist() == batch_rows(table, payloads)[0]


@pytest.mark.parametrize("table", ["notifications", *long_cases(table for table in DECODE if table != "notifications")])
def test_some_columns_and_binary_guids(small_batches: SparkSession, table: str) -> None:
    payloads = given(table)
    frame = frame_of(small_batches, table, payloads)
    settings: dict[str, Any] = {"columns": SOME_COLUMNS[table], "guid": "binary"}
    rows, origins = batch_rows(table, payloads, "binary")
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


@pytest.mark.parametrize("guid", first_of(["text", "binary"]))
def test_vectors_give_the_rows_of_the_oracle(spark: SparkSession, guid: Any) -> None:
    """Spark's types are those that the slow decoders call for."""
    packets = payload_frame(spark, [*PACKETS, None, b""], 2)
    decoded = packets.select("row", msmq_decode_topology("payload", guid=guid).alias("packet")).orderBy("row")
    assert [row["packet"] for row in as_dicts(decoded)] == topology_rows([*PACKETS, None, b""], guid=guid)
    bodies = payload_frame(spark, [*BODIES, None, b""], 2)
    changes = bodies.select("row", msmq_decode_notification("payload", guid=guid).alias("changes")).orderBy("row")
    assert [row["changes"] for row in as_dicts(changes)] == notification_rows([*BODIES, None, b""], guid=guid)


# --- Functions in expressions ---


def test_an_untyped_null_is_null(registered: SparkSession) -> None:
    names = ("decode_topology", "decode_message", "decode_notification", "parse_format_name", "guid_text")
    row = registered.sql("SELECT " + ", ".join(f"msmq_{name}(NULL)" for name in names)).first()
    assert row is not None
    assert list(row) == [None] * len(names)


@pytest.mark.parametrize("form", first_of(["arrow", "pandas"]))
def test_sql_from_a_message_to_its_changes(spark: SparkSession, form: Any) -> None:
    msmq.register(spark, form=form)
    queue = f"PRIVATE={uuid.UUID(int=1)}\\"
    packets = [
        mqqb.encode(mqqb.UserMessage(destination_queue=f"{queue}{number}", message_id=number, body=DELETE))
        for number in (3, 4)
    ]
    frame_of(spark, "messages", [*packets, None])
    changes = spark.sql(
        "SELECT message.message_id, change.operation FROM"
        " (SELECT msmq_decode_message(payload) AS message FROM payloads)"
        " LATERAL VIEW explode(msmq_decode_notification(message.body)) AS change WHERE message.notification = 'plain'"
    )
    assert [tuple(row) for row in changes.collect()] == [(3, "delete")]


def test_functions_combine_and_filter(spark: SparkSession) -> None:
    arrow = msmq_decode_topology(col("payload")).alias("arrow")
    pandas = decoder_udf("topology", form="pandas", guid="binary")(col("payload")).alias("pandas")
    rows = payload_frame(spark, [REQUEST, REPLY]).select(arrow, pandas).where("arrow.type = 'reply'")
    (ids,) = as_dicts(rows.select("arrow.correlation_id", col("pandas.correlation_id").alias("raw")))
    assert ids["raw"].hex() == ids["correlation_id"].replace("-", "")


def test_columns_not_requested_are_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    replies = Payloads.of([mqsd_cases.reply(random.Random(22), 20, 20)] * 1000)
    made: list[Batch] = []

    def decode_batch(*args: Any, **options: Any) -> Batch:
        made.append(mqsd.decode_batch(*args, **options))
        return made[-1]

    def built(**settings: Any) -> int:
        """Bytes of the columns of a batch and of its rows."""
        watched = decoder.Decoder("topology", **settings)
        before = allocated_bytes()
        rows, _ = watched.decode(replies)
        assert rows.num_rows == len(replies)
        return allocated_bytes() - before

    monkeypatch.setitem(decoder._SOURCES, "topology", replace(decoder._SOURCES["topology"], decode_batch=decode_batch))
    # A text of 36 bytes, and what a batch has for each row whatever its columns
    assert built(columns=["correlation_id"]) < 120 * len(replies) < built() / 10
    assert made[1].columns == ("correlation_id",)


def test_columns_not_requested_are_not_shipped(spark: SparkSession) -> None:
    """Spark does not say which members a query uses: all columns of a function are shipped."""

    def nodes(plan: Any) -> Iterator[Any]:
        yield plan
        for number in range(plan.children().size()):
            yield from nodes(plan.children().apply(number))

    for columns, members in ((["request_id"], ["request_id"]), (None, list(mqsd.TOPOLOGY.names))):
        packet = msmq_decode_topology("payload", columns=columns).alias("packet")
        ids = payload_frame(spark, []).select(packet).select("packet.request_id")
        plan = ids._jdf.queryExecution().optimizedPlan()
        (evaluated,) = (node for node in nodes(plan) if node.nodeName() == "ArrowEvalPython")
        assert list(evaluated.resultAttrs().head().dataType().fieldNames()) == members


@pytest.mark.parametrize("form", first_of(["arrow", "pandas"]))
def test_text_of_guids(spark: SparkSession, form: Any) -> None:
    guids = [uuid.uuid5(uuid.NAMESPACE_OID, str(number)) for number in range(50)]
    values = [(guid.bytes, guid.bytes_le) for guid in guids]
    frame = spark.createDataFrame([*values, (None, None), (b"short", b"")], "text binary, packet binary")
    frame.createOrReplaceTempView("guids")
    msmq.register(spark, form=form)
    in_python = frame.select(guid_text_udf(form=form)("text"), guid_text_udf(order="packet", form=form)(col("packet")))
    in_sql = spark.sql("SELECT msmq_guid_text(text), msmq_packet_guid_text(packet) FROM guids")
    expected = [(str(guid), str(guid)) for guid in guids] + [(None, None)] * 2
    for texts in (in_python, in_sql):
        assert [tuple(row) for row in texts.collect()] == expected


# --- Frames and table functions ---


def test_columns_of_any_type_are_kept_unchanged(spark: SparkSession) -> None:
    frame = payload_frame(spark, [THREE, None], 2).withColumn("a.b", lit(1.5))
    kept: list[Column | str] = [
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


def test_all_columns_are_kept_also_of_empty_partitions(spark: SparkSession) -> None:
    frame = payload_frame(spark, [REQUEST], 4)
    decoded = decode_frame(frame, "payload", "topology", keep="*", columns="type")
    assert as_dicts(decoded) == [{"row": 0, "payload": REQUEST, "type": "request"}]
    assert decode_frame(frame.where("row > 5"), "payload", "topology", keep=["row"]).count() == 0


def test_a_filter_on_a_decoded_column_decodes_once(spark: SparkSession) -> None:
    decoded = decode_frame(payload_frame(spark, [*PACKETS]), "payload", "topology", columns=["type"])
    plan = decoded.where("type = 'reply'")._jdf.queryExecution().toString()
    assert plan[plan.index("== Physical Plan ==") :].count("MapInArrow") == 1


def test_table_functions_take_one_payload_and_keep_columns(registered: SparkSession) -> None:
    changes = registered.sql(f"SELECT * FROM msmq_notifications(X'{THREE.hex()}')")
    assert as_dicts(changes) == notification_rows([THREE])[0]
    keep = "Place string, id int"
    registered.udtf.register("changes", decoder_udtf("notifications", keep=keep, columns=["index", "fault"]))
    changes = registered.sql("SELECT *, fault.code FROM changes(TABLE(SELECT id AS ID, place, payload FROM bodies))")
    rows = changes.drop("fault")
    assert rows.columns == ["Place", "id", "index", "code"]
    assert [tuple(row) for row in rows.collect()] == [
        ("at 0", 0, 0, None),
        ("at 0", 0, 1, None),
        ("at 0", 0, 2, None),
        ("at 1", 1, None, None),
        ("at 2", 2, None, "truncated"),
    ]


# --- Mistakes ---


@pytest.mark.parametrize(
    ("keep", "table", "message"),
    [
        ("", "packets", "the table has id, place, payload; this function takes payloads alone"),
        ("id int", "packets", "the table has id, place, payload; this function takes id and payloads"),
        (
            "id int, time timestamp",
            "SELECT id, payload FROM packets",
            "the table has id, payload; this function takes id, time and payloads",
        ),
        ("id int", "SELECT id FROM packets", "the table has id; this function takes id and payloads"),
    ],
)
def test_other_tables_are_refused(registered: SparkSession, keep: str, table: str, message: str) -> None:
    registered.udtf.register("types", decoder_udtf("topology", keep=keep, columns=["type"]))
    with pytest.raises(PythonException, match=message):
        registered.sql(f"SELECT * FROM types(TABLE({table}))").collect()


NOTE = "DIRECT=OS:server\\orders"
FAILURES: dict[str, tuple[Any, list[Any], str]] = {
    "topology": (
        partial(decoder_udf, "topology"),
        [REQUEST, None, REPLY[:40], REQUEST],
        "truncated: ConnectedNetworkArray at byte 32: row 2 of its partition, 40 bytes: 00020000 03a191f2 3ce34fab",
    ),
    "notifications": (
        partial(decoder_udf, "notifications"),
        [THREE, None, CHANGE[:30], DELETE],
        "truncated: GuidMasterId at byte 20: row 2 of its partition, 30 bytes: 0101 01013322 11005544",
    ),
    "format_names": (
        partial(decoder_udf, "format_names"),
        [NOTE, None, "PUBLIC=\u00e9"],
        "bad_text: QueueGuid at byte 7: row 2 of its partition, 'PUBLIC=\u00e9'",
    ),
    "guids": (
        guid_text_udf,
        [bytes(16), None, b"fifteen bytes.."],
        "bad_size: GUID at byte 0: row 2 of its partition, 15 bytes: 666966 7465656e",
    ),
}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "arrow") for name in FAILURES),
        *(pytest.param(name, "pandas", marks=pytest.mark.long if at else ()) for at, name in enumerate(FAILURES)),
    ],
)
def test_failfast_names_the_row_the_fault_and_the_payload(spark: SparkSession, form: str, name: str) -> None:
    function, payloads, message = FAILURES[name]
    frame = payload_frame(spark, payloads, type_="string" if name == "format_names" else "binary").coalesce(1)
    with pytest.raises(PythonException) as caught:
        frame.select(function(form=form, mode="FAILFAST")("payload")).collect()
    assert message in str(caught.value)


def test_failfast_of_frames_and_table_functions(registered: SparkSession) -> None:
    bodies = registered.table("bodies").coalesce(1)
    with pytest.raises(PythonException, match="row 2 of its partition, 30 bytes"):
        decode_frame(bodies, "payload", "notifications", mode="FAILFAST").collect()
    msmq.register(registered, mode="FAILFAST")
    # In one task, or the row would be the first of its own
    in_order = "TABLE(SELECT payload FROM bodies ORDER BY id) WITH SINGLE PARTITION"
    with pytest.raises(PythonException, match="row 2 of its partition, 30 bytes"):
        registered.sql(f"SELECT * FROM msmq_notifications({in_order})").collect()


@pytest.mark.parametrize(
    ("function", "settings", "message"),
    [
        (msmq_decode_topology, {"mode": "DROPMALFORMED"}, "mode='DROPMALFORMED' is not one of PERMISSIVE, FAILFAST"),
        (msmq_decode_topology, {"guid": "uuid"}, "guid='uuid' is not one of 'text', 'binary'"),
        (decoder_udf, {"table": "topology", "form": "plain"}, "form='plain' is neither 'arrow' nor 'pandas'"),
        (msmq_decode_topology, {"columns": ["request"]}, "'request': no such column of topology"),
        (msmq_decode_notification, {"columns": ["servers"]}, "'servers': no such column of notifications"),
        (msmq_decode_message, {"columns": ["servers"]}, "'servers': no such column of messages"),
        (msmq_guid_text, {"order": "wire"}, "order='wire' is not one of 'text', 'packet'"),
        (msmq_guid_text, {"mode": "DROPMALFORMED"}, "mode='DROPMALFORMED' is not one of PERMISSIVE, FAILFAST"),
        (decoder_udtf, {"table": "topology", "keep": "Type string"}, "two columns called 'type'"),
        (decoder_udtf, {"table": "topology", "columns": []}, "columns names no column"),
        (decoder_udtf, {"table": "queues"}, "'queues' is no table"),
    ],
)
def test_settings_are_checked_on_the_driver(function: Any, settings: dict[str, Any], message: str) -> None:
    arguments = () if function in (decoder_udf, decoder_udtf) else ("payload",)
    with pytest.raises(ValueError, match=message):
        function(*arguments, **settings)


@pytest.mark.parametrize(
    ("value", "type_"),
    [("INTERVAL '1' YEAR", "interval year"), ("array(INTERVAL '1' MONTH)", "array<interval month>")],
)
def test_a_kept_column_that_spark_does_not_send(spark: SparkSession, value: str, type_: str) -> None:
    message = rf"keep: 'age' is {type_}, which Spark does not send to Python; cast it"
    with pytest.raises(TypeError, match=message):
        decode_frame(payload_frame(spark, [None]), "payload", "topology", keep=["row", expr(value).alias("age")])
    with pytest.raises(TypeError, match=message):
        decoder_udtf("topology", keep=f"row int, age {type_}")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("msmq_decode_topology('text')", "the payloads of topology are binary, and this column is string"),
        (
            "msmq_decode_notification(array(1))",
            "the payloads of notifications are binary, and this column is array<int>",
        ),
        ("msmq_parse_format_name(1)", "the payloads of format_names are string, and this column is int"),
        ("msmq_guid_text('text')", "GUIDs are binary, and this column is string"),
        ("msmq_decode_message()", "the payloads of messages are one column, and this call has 0"),
        ("msmq_guid_text(X'00', X'00')", "GUIDs are one column, and this call has 2"),
    ],
)
def test_calls_with_other_columns(registered: SparkSession, call: str, message: str) -> None:
    with pytest.raises(PythonException, match=f"TypeError: {re.escape(message)}"):
        registered.sql(f"SELECT {call}").collect()


@pytest.mark.parametrize(
    ("table", "settings", "error", "message"),
    [
        ("queues", {}, ValueError, "'queues' is no table; there is topology, notifications, messages, sessions, form"),
        ("topology", {"strikt": True}, TypeError, "unexpected keyword argument 'strikt'"),
        ("messages", {"transport": "udp"}, TypeError, "unexpected keyword argument 'transport'"),
        ("topology", {"transport": "tcp"}, ValueError, "transport"),
        ("format_names", {}, TypeError, "payloads of format_names are string, and this column is binary"),
        ("topology", {"keep": ["row", "row"]}, ValueError, "two columns called 'row': keep one under an alias"),
        ("format_names", {"payload": "Fault", "keep": "Fault"}, ValueError, "two columns called 'fault'"),
    ],
)
def test_settings_of_a_frame(
    spark: SparkSession, table: str, settings: dict[str, Any], error: type[Exception], message: str
) -> None:
    frame = payload_frame(spark, [None]).withColumn("Fault", lit(""))
    with pytest.raises(error, match=message):
        decode_frame(frame, table=table, **{"payload": "payload", **settings})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("topology", "the payloads of topology are one column, and this call has 2"),
        ("notifications", "the payloads of notifications are one column, and this call has 2"),
        (None, "GUIDs are one column, and this call has 2"),
    ],
)
def test_pandas_calls_with_other_columns(spark: SparkSession, table: str | None, message: str) -> None:
    function = guid_text_udf(form="pandas") if table is None else decoder_udf(table, form="pandas")
    spark.udf.register("pandas_function", function)
    with pytest.raises(PythonException, match=f"TypeError: {re.escape(message)}"):
        spark.sql("SELECT pandas_function(X'00', X'00')").collect()
