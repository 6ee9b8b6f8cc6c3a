"""Batches as Arrow: with pyarrow, and for any consumer without it."""

from __future__ import annotations

import ctypes
import gc
import threading
import uuid

import pyarrow as pa
import pytest

from msmqwire import Payloads, mqsd
from msmqwire.columns import allocated_bytes
from tests.columns import arrow_consumer
from tests.columns.processes import run
from tests.mqsd.rows import arrow_columns, contents, read_all
from tests.reference.mqsd_cases import cases
from tests.vectors import load

VECTORS = [vector.data for vector in load("mqsd")]
PACKETS: list[bytes | None] = [*VECTORS, None, b"", None, *cases(400, seed=3)]
EXPECTED = arrow_columns(read_all(PACKETS))
GUID_COLUMNS = ("enterprise_id", "request_id", "site_id", "correlation_id", "responding_site_id")


@pytest.mark.parametrize("guid", ["uuid", "text", "binary"])
def test_the_schema_is_the_tables(guid: str) -> None:
    for payloads in (PACKETS, [], [None]):
        table = mqsd.decode_batch(payloads).to_arrow(guid=guid)  # type: ignore[arg-type]
        assert isinstance(table, pa.RecordBatch)
        assert table.schema.equals(mqsd.TOPOLOGY.arrow_schema(guid=guid), check_metadata=True)  # type: ignore[arg-type]
        table.validate(full=True)


def test_guids_as_text_are_canonical_and_lower_case() -> None:
    table = mqsd.decode_batch(PACKETS).to_arrow(guid="text")
    for name in GUID_COLUMNS:
        expected = [None if value is None else str(uuid.UUID(bytes=value)) for value in EXPECTED[name]]
        assert table[name].to_pylist() == expected
    networks = [n and [str(uuid.UUID(bytes=value)) for value in n] for n in EXPECTED["connected_networks"]]
    assert table["connected_networks"].to_pylist() == networks


def test_guids_are_uuids_by_default() -> None:
    batch = mqsd.decode_batch(PACKETS)
    table = batch.to_arrow()
    assert table.schema.field("request_id").type == pa.uuid()
    assert table.schema.field("connected_networks").type == pa.list_(pa.uuid())
    for name in GUID_COLUMNS:
        assert table[name].to_pylist() == [value and uuid.UUID(bytes=value) for value in EXPECTED[name]]
    assert table.equals(pa.record_batch(batch))


def test_unknown_forms_of_guids_are_refused() -> None:
    batch = mqsd.decode_batch(PACKETS)
    with pytest.raises(ValueError, match="hex"):
        batch.to_arrow(guid="hex")  # type: ignore[arg-type]


def test_fault_and_violations_end_the_table() -> None:
    table = mqsd.decode_batch(PACKETS).to_arrow()
    assert table.schema.names[-2:] == ["fault", "violations"]
    assert table["fault"].to_pylist() == EXPECTED["fault"]
    assert table["violations"].to_pylist() == EXPECTED["violations"]
    for row, fault in zip(table.to_pylist(), EXPECTED["fault"], strict=True):
        if fault is not None:
            assert [value for name, value in row.items() if name != "fault"] == [None] * 12


def test_numbers_and_list_offsets_are_not_copied() -> None:
    batch = mqsd.decode_batch(PACKETS)
    table = batch.to_arrow()
    for name in ("version", "connected_network_mask"):
        address = batch[name].__array_interface__["data"][0]
        assert table[name].buffers()[1].address == address
    for name in ("ipx_networks", "connected_networks", "servers"):
        address = batch[name].offsets.__array_interface__["data"][0]
        assert table[name].buffers()[1].address == address


def test_pyarrow_gives_everything_back() -> None:
    gc.collect()
    before = allocated_bytes()
    for guid in ("uuid", "text", "binary"):
        table = mqsd.decode_batch(PACKETS).to_arrow(guid=guid)
        part = table.slice(3, 20)["servers"].flatten()
        del table
        assert allocated_bytes() > before
        del part
        gc.collect()
        assert allocated_bytes() == before


def test_arrow_is_released_by_other_threads() -> None:
    gc.collect()
    before = allocated_bytes()
    kept = [mqsd.decode_batch(PACKETS).to_arrow() for _ in range(16)]
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
    assert dropped == [len(PACKETS)] * 16
    assert allocated_bytes() == before


# --- without pyarrow ---


def test_a_consumer_without_pyarrow_reads_the_same() -> None:
    batch = mqsd.decode_batch(PACKETS)
    capsules = batch.__arrow_c_array__()
    schema, array = arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1])
    assert schema.format == b"+s"
    arrow_consumer.check(schema, array)
    rows = arrow_consumer.to_list(schema, array)
    assert len(rows) == len(PACKETS)
    for name, values in EXPECTED.items():
        assert [row[name] for row in rows] == values, name


def test_the_schema_needs_no_array() -> None:
    batch = mqsd.decode_batch(PACKETS)
    schema = arrow_consumer.schema_of(capsule := batch.__arrow_c_schema__())
    names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
    assert tuple(names) == mqsd.TOPOLOGY.names
    field = schema.children[names.index("request_id")].contents
    assert arrow_consumer.metadata_of(field)["ARROW:extension:name"] == "arrow.uuid"
    networks = schema.children[names.index("connected_networks")].contents
    assert arrow_consumer.metadata_of(networks.children[0].contents)["ARROW:extension:name"] == "arrow.uuid"
    assert arrow_consumer.metadata_of(schema.children[names.index("version")].contents) == {}
    assert pa.DataType._import_from_c_capsule(capsule) == pa.struct(list(mqsd.TOPOLOGY.arrow_schema()))


def test_a_child_moved_out_outlives_the_rest() -> None:
    """The C data interface allows it: the child keeps what it needs when the parent is released."""
    gc.collect()
    before = allocated_bytes()
    batch = mqsd.decode_batch(PACKETS)
    capsules = batch.__arrow_c_array__()
    schema, parent = arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1])
    index = mqsd.TOPOLOGY.names.index("servers")
    child = arrow_consumer.Array()
    ctypes.pointer(child)[0] = parent.children[index].contents
    ctypes.cast(
        ctypes.byref(parent.children[index].contents, arrow_consumer.Array.release.offset),
        ctypes.POINTER(ctypes.c_void_p),
    )[0] = None
    parent.release(ctypes.byref(parent))
    assert not parent.release
    field = schema.children[index].contents
    churn = [mqsd.decode_batch(PACKETS[::-1]) for _ in range(2)]
    assert arrow_consumer.to_list(field, child) == EXPECTED["servers"]
    with pytest.raises(BufferError, match="Arrow"):
        mqsd.decode_batch(PACKETS, out=batch)
    child.release(ctypes.byref(child))
    assert not child.release
    mqsd.decode_batch(PACKETS, out=batch)
    del batch, churn, capsules
    gc.collect()
    assert allocated_bytes() == before


def test_payloads_are_arrow_too() -> None:
    for payloads in (Payloads.of(PACKETS), Payloads(b"abcd", [0, 0, 3, 4])[1:], Payloads.of([])):
        capsules = payloads.__arrow_c_array__()
        schema, array = (arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1]))
        arrow_consumer.check(schema, array)
        expected = contents(payloads)
        assert arrow_consumer.to_list(schema, array) == expected
        again = pa.array(payloads)
        again.validate(full=True)
        assert again.type == pa.large_binary()
        assert again.to_pylist() == expected


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
