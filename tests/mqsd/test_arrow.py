"""Batches as Arrow: with pyarrow, and for any consumer without it."""

from __future__ import annotations

import uuid

import pyarrow as pa

from msmqwire import mqsd
from tests.columns.processes import run
from tests.mqsd.rows import arrow_columns, read_all
from tests.reference.mqsd_cases import cases
from tests.vectors import load

VECTORS = [vector.data for vector in load("mqsd")]
PACKETS: list[bytes | None] = [*VECTORS, None, b"", None, *cases(400, seed=3)]
EXPECTED = arrow_columns(read_all(PACKETS))
GUID_COLUMNS = ("enterprise_id", "request_id", "site_id", "correlation_id", "responding_site_id")


def test_guids_as_text_are_canonical_and_lower_case() -> None:
    table = mqsd.decode_batch(PACKETS).to_arrow(guid="text")
    for name in GUID_COLUMNS:
        expected = [None if value is None else str(uuid.UUID(bytes=value)) for value in EXPECTED[name]]
        assert table[name].to_pylist() == expected
    networks = [n and [str(uuid.UUID(bytes=value)) for value in n] for n in EXPECTED["connected_networks"]]
    assert table["connected_networks"].to_pylist() == networks


def test_guids_are_uuids_by_default() -> None:
    batch = mqsd.decode_batch(PACKETS)
    table = batch.to_arrow(guid="uuid", dictionaries=False)
    assert table.schema.field("request_id").type == pa.uuid()
    assert table.schema.field("connected_networks").type == pa.list_(pa.uuid())
    for name in GUID_COLUMNS:
        assert table[name].to_pylist() == [value and uuid.UUID(bytes=value) for value in EXPECTED[name]]


def test_fault_and_violations_end_the_table() -> None:
    table = mqsd.decode_batch(PACKETS).to_arrow(guid="uuid", dictionaries=False)
    assert table.schema.names[-2:] == ["fault", "violations"]
    assert table["fault"].to_pylist() == EXPECTED["fault"]
    assert table["violations"].to_pylist() == EXPECTED["violations"]
    for row, fault in zip(table.to_pylist(), EXPECTED["fault"], strict=True):
        if fault is not None:
            assert [value for name, value in row.items() if name != "fault"] == [None] * 13


def test_nothing_of_it_needs_pyarrow() -> None:
    """In an interpreter that has no pyarrow, everything works but ``to_arrow``."""
    program = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyarrow", "pandas", "pyspark"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from msmqwire import mqsd
from tests.columns import arrow_consumer
from tests.vectors import load
data = [vector.data for vector in load("mqsd")]
batch = mqsd.decode_batch(data)
capsules = batch.__arrow_c_array__()
rows = arrow_consumer.to_list(arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1]))
assert rows[2]["servers"] == [{"name": "nt4pec", "ip": True, "ipx": False}], rows[2]
assert batch.fault(len(data) - 1) is not None
good = mqsd.encode_batch(mqsd.decode_batch(data[:3]))
assert [bytes(item) for item in good] == data[:3]
assert mqsd.encode(mqsd.decode(data[0])) == data[0]
try:
    batch.to_arrow()
except ImportError:
    pass
else:
    raise AssertionError("to_arrow() without pyarrow")
"""
    run("-c", program)
