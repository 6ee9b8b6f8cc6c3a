"""Batches of notifications as Arrow: with pyarrow, and for any consumer without it."""

from __future__ import annotations

import uuid

import pyarrow as pa

from msmqwire import mqcn
from tests.mqcn.messages import read_all
from tests.mqcn.rows import Expected
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
        ("reserved", pa.binary()),
        ("fault", pa.struct([("code", pa.string()), ("field", pa.string()), ("offset", pa.uint32())])),
        ("violations", pa.list_(pa.string())),
    ]
    assert mqcn.NOTIFICATIONS.arrow_schema(guid="uuid", dictionaries=False).equals(pa.schema(expected))


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


def test_guids_as_uuids() -> None:
    batch = mqcn.decode_batch(MESSAGES)
    table = batch.to_arrow(guid="uuid")
    for name in ("object_guid", "master_guid"):
        wanted = [None if guid is None else uuid.UUID(bytes_le=guid) for guid in EXPECTED.column(name)]
        assert table[name].to_pylist() == wanted


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
