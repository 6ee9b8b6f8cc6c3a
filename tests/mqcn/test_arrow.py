"""Batches of notifications as Arrow: with pyarrow, and for any consumer without it."""

from __future__ import annotations

import gc
import threading
import uuid
from typing import Any

import pyarrow as pa
import pytest

from msmqwire import mqcn
from msmqwire.columns import allocated_bytes
from tests.columns import arrow_consumer
from tests.mqcn.messages import read_all
from tests.mqcn.rows import Expected, assert_arrow, member_columns, rfc
from tests.mqsd.rows import arrow_text
from tests.reference import mqcn as reference
from tests.reference.mqcn_cases import cases
from tests.vectors import get, load

MESSAGES: list[bytes | None] = [*(vector.data for vector in load("mqcn")), None, b"", None, *cases(300, seed=3)]
EXPECTED = Expected(read_all(MESSAGES))


def test_the_schema_is_that_of_the_table() -> None:
    assert mqcn.NOTIFICATIONS.name == "notifications"
    assert mqcn.NOTIFICATIONS.names == (*reference.COLUMNS, "fault", "violations")
    assert mqcn.NOTIFICATIONS.violation_names == reference.VIOLATIONS
    assert all(column.about for column in mqcn.NOTIFICATIONS.all_columns)
    members = [
        ("id", pa.uint32()),
        ("name", pa.string()),
        ("type", pa.string()),
        ("int", pa.int64()),
        ("text", pa.string()),
        ("guid", pa.uuid()),
        ("bytes", pa.binary()),
        ("ints", pa.list_(pa.uint32())),
        ("guids", pa.list_(pa.uuid())),
        ("texts", pa.list_(pa.string())),
    ]
    expected = [
        ("version", pa.uint8()),
        ("index", pa.uint8()),
        ("operation", pa.string()),
        ("object", pa.string()),
        ("object_guid", pa.uuid()),
        ("path_name", pa.string()),
        ("master_guid", pa.uuid()),
        ("domain_controller", pa.string()),
        ("properties", pa.list_(pa.struct(members))),
        ("fault", pa.struct([("code", pa.string()), ("field", pa.string()), ("offset", pa.uint32())])),
        ("violations", pa.list_(pa.string())),
    ]
    assert mqcn.NOTIFICATIONS.arrow_schema().equals(pa.schema(expected))


@pytest.mark.parametrize("guid", ["uuid", "text", "binary"])
def test_the_schema_of_a_batch(guid: Any) -> None:
    for payloads in (MESSAGES, [], [None], [b"\1\0"]):
        table = mqcn.decode_batch(payloads).to_arrow(guid=guid)
        assert isinstance(table, pa.RecordBatch)
        assert table.schema.equals(mqcn.NOTIFICATIONS.arrow_schema(guid=guid), check_metadata=True)
        table.validate(full=True)


def test_guids_as_text_are_canonical_and_lower_case() -> None:
    table = mqcn.decode_batch(MESSAGES).to_arrow(guid="text")

    def text(guid: bytes | None) -> str | None:
        return None if guid is None else str(uuid.UUID(bytes_le=guid))

    for name in ("object_guid", "master_guid"):
        assert table[name].to_pylist() == [text(guid) for guid in EXPECTED.column(name)]
    structs = table["properties"].flatten()
    pairs = [(item.type, item.value) for item in EXPECTED.properties]
    assert structs.field("guid").to_pylist() == [text(value) if type_ == "VT_CLSID" else None for type_, value in pairs]
    guids = [[text(guid) for guid in value] if type_ == "VT_CLSID|VT_VECTOR" else None for type_, value in pairs]
    assert structs.field("guids").to_pylist() == guids


def test_guids_are_uuids_by_default() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    table = batch.to_arrow()
    for name in ("object_guid", "master_guid"):
        wanted = [None if guid is None else uuid.UUID(bytes_le=guid) for guid in EXPECTED.column(name)]
        assert table[name].to_pylist() == wanted
    assert table.equals(pa.record_batch(batch))


def test_rows_as_python_sees_them() -> None:
    create, fault, body = (get("mqcn", name).data for name in ("create-queue", "value-cut", "C3-body"))
    rows = mqcn.decode_batch([create, fault, body]).to_arrow(guid="text").to_pylist()
    assert [row["operation"] for row in rows] == ["create", None, "change"]
    assert rows[0]["path_name"] == "srv1\\orders"
    properties = {
        item["name"]: {key: value for key, value in item.items() if value is not None} for item in rows[0]["properties"]
    }
    assert len(properties) == 15
    assert properties["PROPID_Q_BASEPRIORITY"] == {
        "id": 106, "name": "PROPID_Q_BASEPRIORITY", "type": "VT_I2", "int": -3,
    }  # fmt: skip
    assert properties["PROPID_Q_SECURITY"]["bytes"] == bytes.fromhex("0100048014")
    assert properties["PROPID_Q_LABEL"]["text"] == ""
    assert properties["PROPID_Q_TYPE"]["guid"] == "328dee55-e9cc-11d0-a9f9-0020afdff100"
    assert rows[1] == dict.fromkeys(rows[1]) | {
        "fault": {"code": "truncated", "field": "PropertyValue[0]", "offset": 65}
    }
    assert rows[2] == dict.fromkeys(rows[2]) | {
        "version": 2,
        "index": 0,
        "operation": "change",
        "object": "queue",
        "object_guid": "00112233-4455-6677-8899-aabbccddeeff",
        "domain_controller": "dc1",
        "violations": [],
    }


def test_numbers_and_list_offsets_are_not_copied() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    table = batch.to_arrow()
    for name in ("version", "index"):
        address = batch[name].__array_interface__["data"][0]
        assert table[name].buffers()[1].address == address
    address = batch["properties"].offsets.__array_interface__["data"][0]
    assert table["properties"].buffers()[1].address == address


def test_pyarrow_gives_everything_back() -> None:
    gc.collect()
    before = allocated_bytes()
    for guid in ("uuid", "text", "binary"):
        table = mqcn.decode_batch(MESSAGES).to_arrow(guid=guid)  # type: ignore[arg-type]
        part = table.slice(3, 20)["properties"].flatten()
        del table
        assert allocated_bytes() > before
        del part
        gc.collect()
        assert allocated_bytes() == before


def test_arrow_outlives_the_batch() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    table = batch.to_arrow()
    expected = table.to_pylist()
    column = table["properties"]
    del batch, table
    gc.collect()
    churn = [mqcn.decode_batch(MESSAGES[::-1]).to_arrow() for _ in range(3)]
    assert column.to_pylist() == [row["properties"] for row in expected]
    del churn


def test_arrow_is_released_by_other_threads() -> None:
    gc.collect()
    before = allocated_bytes()
    kept = [mqcn.decode_batch(MESSAGES).to_arrow() for _ in range(12)]
    dropped = []

    def drop() -> None:
        while kept:
            dropped.append(kept.pop().num_rows)

    threads = [threading.Thread(target=drop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert dropped == [len(EXPECTED.rows)] * 12
    assert allocated_bytes() == before


def test_two_exports_of_one_batch_agree() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    one, other = batch.to_arrow(), batch.to_arrow()
    assert one.equals(other)
    assert_arrow(batch, EXPECTED)
    batch["properties"]
    assert batch.to_arrow().equals(one)


def test_threads_may_look_at_one_batch() -> None:
    """What is made on demand is made once, whoever asks first."""
    for _ in range(5):
        batch = mqcn.decode_batch(MESSAGES * 4)
        wanted = mqcn.decode_batch(MESSAGES * 4).to_arrow()
        seen: list[bool] = []

        def look(batch: mqcn.NotificationBatch = batch, wanted: Any = wanted, seen: list[bool] = seen) -> None:
            ids = batch["properties"].values["id"]
            seen.append(batch.to_arrow().equals(wanted) and len(ids) == len(wanted["properties"].flatten()))

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [True] * 4


# --- without pyarrow ---


def test_a_consumer_without_pyarrow_reads_the_same() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    capsules = batch.__arrow_c_array__()
    schema, array = arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1])
    arrow_consumer.check(schema, array)
    rows = arrow_consumer.to_list(schema, array)
    assert len(rows) == len(EXPECTED.rows)
    members = member_columns(EXPECTED.properties)
    flat = [dict(zip(members, values, strict=True)) for values in zip(*members.values(), strict=True)]
    taken = 0
    for row, wanted in zip(rows, EXPECTED.rows, strict=True):
        for name in ("version", "index", "operation", "object"):
            assert row[name] == wanted[name]
        for name in ("object_guid", "master_guid"):
            assert row[name] == rfc(wanted[name])
        for name in ("path_name", "domain_controller"):
            assert row[name] == (None if wanted[name] is None else arrow_text(wanted[name]))
        if wanted["properties"] is None:
            assert row["properties"] is None
        else:
            size = len(wanted["properties"])
            assert row["properties"] == flat[taken : taken + size]
            taken += size
    assert taken == len(flat)


def test_capsules_nobody_takes_are_released() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    batch["properties"]
    held = allocated_bytes()
    for _ in range(20):
        batch.__arrow_c_array__()
        batch.__arrow_c_schema__()
    assert allocated_bytes() == held
