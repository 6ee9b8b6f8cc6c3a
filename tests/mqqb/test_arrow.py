"""Columns of message packets in Arrow: their types, and format names as text."""

from __future__ import annotations

import pyarrow as pa

from msmqwire import mqqb
from tests.mqqb.messages import FULL


def test_types_of_columns() -> None:
    types = {field.name: field.type for field in mqqb.MESSAGES.arrow_schema(guid="uuid", dictionaries=False)}
    assert types["destination_queue"] == pa.string()
    assert types["response_queues"] == pa.list_(pa.string())
    assert types["sent_time"] == pa.timestamp("ns", "UTC")
    assert types["tx_sequence_id"] == pa.uint64()
    assert types["source_queue_manager"] == pa.uuid()
    assert types["body"] == pa.binary()
    assert types["tracing"] == pa.bool_()


def test_format_names() -> None:
    row = mqqb.decode_batch([mqqb.encode(FULL)]).to_arrow().to_pylist()[0]
    assert row["destination_queue"] == str(FULL.destination_queue)
    assert row["admin_queue"] == str(FULL.admin_queue)
    assert row["response_queue"] == "DIRECT=TCP:10.0.0.1\\answers"
    assert FULL.multi_queue is not None
    assert row["destination_queues"] == [str(queue) for queue in FULL.multi_queue.destination_queues]
    assert row["admin_queues"] == []
    assert row["response_queues"] == [str(queue) for queue in FULL.multi_queue.response_queues]


def test_a_direct_name_of_every_length() -> None:
    """Text is converted sixteen code units at a time, and takes up to three bytes for one."""
    names = ["DIRECT=OS:" + "h" * size + "\\q\N{EURO SIGN}" for size in range(1, 40)]
    data = []
    for name in names:
        plain = mqqb.encode(mqqb.UserMessage(destination_queue=name.replace("\N{EURO SIGN}", "?")))
        data.append(plain.replace("?".encode("utf-16-le"), "\N{EURO SIGN}".encode("utf-16-le")))
    assert mqqb.decode_batch(data).to_arrow()["destination_queue"].to_pylist() == names
