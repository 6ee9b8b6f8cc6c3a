"""The schema of the notifications table, and rows of it as Python shows them."""

from __future__ import annotations

import pyarrow as pa

from msmqwire import mqcn
from tests.vectors import get


def test_the_schema_is_that_of_the_table() -> None:
    members: list[tuple[str, pa.DataType]] = [
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
    numbers = [("offset", pa.uint32()), ("value", pa.int64()), ("needed", pa.int64())]
    fault = pa.struct([("code", pa.string()), ("field", pa.string()), *numbers])
    expected: list[tuple[str, pa.DataType]] = [
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
        ("fault", fault),
        ("violations", pa.list_(pa.string())),
    ]
    assert mqcn.NOTIFICATIONS.arrow_schema(guid="uuid", dictionaries=False).equals(pa.schema(expected))


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
        "fault": {"code": "truncated", "field": "PropertyValue[0]", "offset": 65, "value": None, "needed": 4}
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
