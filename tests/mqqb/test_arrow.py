"""Columns of message packets in Arrow: their types, and format names as text."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa

from msmqwire import mqqb
from tests.columns.formats import MESSAGES
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


def test_a_queue_is_in_its_dictionary_once() -> None:
    """Whether it is on the sender's computer or elsewhere; pandas refuses dictionaries with equal values."""
    host = UUID(int=7)
    admin = f"PRIVATE={host}\\5"
    messages = [
        mqqb.UserMessage(source_queue_manager=sender, admin_queue=admin, positive_arrival_ack=True)
        for sender in (host, UUID(int=8), host)
    ]
    batch = mqqb.decode_batch(map(mqqb.encode, messages))
    assert len(set(batch["admin_queue"]["code"])) == 2
    column = batch.to_arrow()["admin_queue"]
    assert isinstance(column, pa.DictionaryArray)
    assert column.dictionary.to_pylist() == [admin]
    assert column.to_pandas().tolist() == [admin] * 3


def test_names_that_differ_in_lone_surrogates_are_one_text() -> None:
    plain = mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:a\\q?"))
    units = [plain.replace(b"?\0", unit) for unit in (b"\0\xd8", b"\1\xd8", b"x\0", b"\xfd\xff", b"\0\xd8")]
    column = mqqb.decode_batch([None, *units]).to_arrow()["destination_queue"]
    assert isinstance(column, pa.DictionaryArray)
    assert column.dictionary.to_pylist() == ["DIRECT=OS:a\\q\ufffd", "DIRECT=OS:a\\qx"]
    assert column.indices.to_pylist() == [None, 0, 0, 1, 0, 0]


def test_dictionaries_have_distinct_values() -> None:
    """Also that of the codes of faults, whose first is of no fault."""
    for seed in range(20):
        found = mqqb.decode_batch(list(MESSAGES.cases(60, seed, broken=0.3))).to_arrow()
        faults = found["fault"]
        assert isinstance(faults, pa.StructArray)
        columns = [*found.columns, *faults.flatten()]
        for values in [column.dictionary.to_pylist() for column in columns if isinstance(column, pa.DictionaryArray)]:
            assert len(set(values)) == len(values)
