"""Batches as Arrow: with pyarrow, and for any consumer without it."""

from __future__ import annotations

import ctypes
import gc
import threading
from functools import cache
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from msmqwire import mqsd
from msmqwire.columns import allocated_bytes
from msmqwire.columns._batch import concat_columns
from msmqwire.columns.schema import ListOf, Scalar
from tests.columns import arrow_consumer
from tests.columns.formats import Format, each_format
from tests.columns.processes import run
from tests.columns.rows import known_row, shown_row


@cache
def payloads_of(kind: Format) -> list[bytes | None]:
    return [*kind.packets, *kind.whole, None, b"", None, *kind.cases(400, 3)]


@pytest.mark.parametrize("dictionaries", [True, False])
@pytest.mark.parametrize("guid", ["uuid", "text", "binary"])
@each_format
def test_the_schema_is_the_tables(kind: Format, guid: Any, dictionaries: bool) -> None:
    for payloads in (payloads_of(kind), [], [None]):
        kind.table.arrow_schemas.clear()  # so that each export is imported with its own schema
        table = kind.decode_batch(payloads).to_arrow(guid=guid, dictionaries=dictionaries)
        assert isinstance(table, pa.RecordBatch)
        assert table.schema.equals(kind.table.arrow_schema(guid=guid, dictionaries=dictionaries), check_metadata=True)
        table.validate(full=True)


@each_format
def test_columns_and_violations_are_those_of_the_oracle(kind: Format) -> None:
    assert kind.table.names == tuple(kind.rows(None)[0])
    assert kind.table.violation_names == kind.violations
    assert all(column.about for column in kind.table.all_columns)


@pytest.mark.parametrize("guid", ["uuid", "text", "binary"])
@each_format
def test_rows_as_python_shows_them(kind: Format, guid: Any) -> None:
    """Nulls too: a row of a fault has nothing else, nor has that of a null payload."""
    expected = [shown_row(kind.table, row, guid) for row in kind.expected(payloads_of(kind)).rows]
    for dictionaries in (True, False):
        rows = kind.decode_batch(payloads_of(kind)).to_arrow(guid=guid, dictionaries=dictionaries)
        rows.validate(full=True)
        assert [known_row(_raw(row)) for row in rows.to_pylist()] == expected


@each_format
def test_guids_are_bytes_by_default(kind: Format) -> None:
    batch = kind.decode_batch(payloads_of(kind))
    table = batch.to_arrow()
    assert table.equals(pa.record_batch(batch))
    assert table.equals(batch.to_arrow(guid="binary"))


@pytest.mark.parametrize("dictionaries", [True, False])
@each_format
def test_two_batches_are_joined(kind: Format, dictionaries: bool) -> None:
    names = kind.table.names
    first, last = (kind.decode_batch(payloads_of(kind), columns=some) for some in (names[:5], names[5:]))
    rows = concat_columns(first, last, guid="text", dictionaries=dictionaries)
    assert rows.equals(kind.decode_batch(payloads_of(kind)).to_arrow(guid="text", dictionaries=dictionaries))
    for batch in (first, last):
        with pytest.raises(BufferError, match="Arrow"):
            kind.decode_batch([], columns=batch.columns, out=batch)
    del rows
    last = kind.decode_batch([], columns=last.columns, out=last)
    with pytest.raises(ValueError, match=r"a batch has \d+ rows, the other 0"):
        concat_columns(first, last, guid="text", dictionaries=dictionaries)


@each_format
def test_readers_of_ever_other_columns_keep_few_schemas(kind: Format) -> None:
    for columns in combinations(kind.table.names[:12], 2):
        kind.decode_batch([], columns=columns).to_arrow()
    assert len(kind.table.arrow_schemas) <= 64


@each_format
def test_numbers_and_list_offsets_are_not_copied(kind: Format) -> None:
    batch = kind.decode_batch(payloads_of(kind))
    table = batch.to_arrow()
    numbers = {pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()}
    compared = 0
    for column in kind.table.columns:
        if isinstance(column.type, ListOf):
            shown = batch[column.name].offsets
        elif isinstance(column.type, Scalar) and table[column.name].type in numbers:
            shown = batch[column.name]
        else:
            continue
        assert table[column.name].buffers()[1].address == shown.__array_interface__["data"][0], column.name
        compared += 1
    assert compared >= 3


@each_format
def test_pyarrow_gives_everything_back(kind: Format) -> None:
    gc.collect()
    before = allocated_bytes()
    for guid in ("uuid", "text", "binary"):
        table = kind.decode_batch(payloads_of(kind)).to_arrow(guid=guid)
        part = table.slice(3, 20)["fault"].flatten()
        del table
        assert allocated_bytes() > before
        del part
        gc.collect()
        assert allocated_bytes() == before


@each_format
def test_arrow_is_released_by_other_threads(kind: Format) -> None:
    gc.collect()
    before = allocated_bytes()
    kept = [kind.decode_batch(payloads_of(kind)).to_arrow() for _ in range(16)]
    rows = kept[0].num_rows
    dropped = []

    def drop() -> None:
        while kept:
            dropped.append(kept.pop().num_rows)

    _together(2, drop)
    gc.collect()
    assert dropped == [rows] * 16
    assert allocated_bytes() == before


def _together(count: int, work: Any) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@each_format
def test_threads_may_look_at_one_batch(kind: Format) -> None:
    """What is made on demand is made once, whoever asks first."""
    wanted = kind.decode_batch(payloads_of(kind) * 4).to_arrow()
    for _ in range(5):
        batch = kind.decode_batch(payloads_of(kind) * 4)
        seen: list[bool] = []

        def look(batch: Any = batch, seen: list[bool] = seen) -> None:
            kind.look(batch)
            seen.append(batch.to_arrow().equals(wanted) and batch.to_arrow().equals(wanted))

        _together(4, look)
        assert seen == [True] * 4


# --- without pyarrow ---


@each_format
def test_a_consumer_without_pyarrow_reads_the_same(kind: Format) -> None:
    batch = kind.decode_batch(payloads_of(kind))
    capsules = batch.__arrow_c_array__()
    schema, array = arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1])
    assert schema.format == b"+s"
    arrow_consumer.check(schema, array)
    rows = arrow_consumer.to_list(schema, array)
    assert list(map(known_row, rows)) == [shown_row(kind.table, row) for row in kind.expected(payloads_of(kind)).rows]


def _raw(row: dict[str, Any]) -> dict[str, Any]:
    """A row as the consumer has it: times as their number."""
    if row.get("sent_time") is not None:
        row["sent_time"] = row["sent_time"].value
    return row


@each_format
def test_the_schema_needs_no_array(kind: Format) -> None:
    schema = arrow_consumer.schema_of(capsule := kind.decode_batch([]).__arrow_c_schema__())
    names = [schema.children[i].contents.name.decode() for i in range(schema.n_children)]
    assert tuple(names) == kind.table.names
    for field, index in zip(kind.table.arrow_schema(), range(schema.n_children), strict=True):
        metadata = arrow_consumer.metadata_of(schema.children[index].contents)
        assert metadata.get("ARROW:extension:name") == ("arrow.uuid" if field.type == pa.uuid() else None)
    assert pa.DataType._import_from_c_capsule(capsule) == pa.struct(list(kind.table.arrow_schema()))


@each_format
def test_a_child_moved_out_outlives_the_rest(kind: Format) -> None:
    """The C data interface allows it: the child keeps what it needs when the parent is released."""
    gc.collect()
    before = allocated_bytes()
    for index, name in enumerate(kind.table.names):
        batch = kind.decode_batch(payloads_of(kind))
        expected = [_raw(row)[name] for row in batch.to_arrow(guid="binary").select([name]).to_pylist()]
        capsules = batch.__arrow_c_array__()
        schema, parent = arrow_consumer.schema_of(capsules[0]), arrow_consumer.array_of(capsules[1])
        child = arrow_consumer.Array()
        ctypes.pointer(child)[0] = parent.children[index].contents
        ctypes.cast(
            ctypes.byref(parent.children[index].contents, arrow_consumer.Array.release.offset),
            ctypes.POINTER(ctypes.c_void_p),
        )[0] = None
        parent.release(ctypes.byref(parent))
        assert not parent.release
        field = schema.children[index].contents
        churn = kind.decode_batch(payloads_of(kind)[::-1])
        assert arrow_consumer.to_list(field, child) == expected
        with pytest.raises(BufferError, match="Arrow"):
            kind.decode_batch(payloads_of(kind), out=batch)
        child.release(ctypes.byref(child))
        assert not child.release
        kind.decode_batch(payloads_of(kind), out=batch)
        del batch, churn, capsules
    gc.collect()
    assert allocated_bytes() == before


def test_only_to_arrow_needs_pyarrow() -> None:
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


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import duckdb, polars
from msmqwire import mqsd

batch = mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48)] * 3 + [b"oops"])
frame = polars.DataFrame(batch)
assert frame.columns == [*batch.columns]
assert frame["type"].to_list() == ["request"] * 3 + [None]
(count,) = duckdb.sql("SELECT count(*) FROM batch WHERE type = 'request'").fetchall()[0]
print(count)
"""


def test_a_batch_is_a_stream_without_pyarrow() -> None:
    assert run("-c", WITHOUT_PYARROW) == "3\n"


def test_a_stream_holds_its_batch_until_its_rows_are_released() -> None:
    batch = mqsd.decode_batch([bytes.fromhex("00010000") + bytes(48)] * 3)
    expected = batch.to_arrow()
    unread = batch.__arrow_c_stream__()
    with pytest.raises(BufferError, match="held by an Arrow consumer"):
        mqsd.decode_batch([b"oops"], out=batch)
    del unread
    with pa.RecordBatchReader.from_stream(batch) as reader:
        rows = reader.read_next_batch()
        assert rows.equals(expected)
        with pytest.raises(StopIteration):
            reader.read_next_batch()
        del expected
        with pytest.raises(BufferError, match="held by an Arrow consumer"):
            mqsd.decode_batch([b"oops"], out=batch)
        del rows
        assert mqsd.decode_batch([b"oops"], out=batch).fault(0) is not None
    assert pa.RecordBatchReader.from_stream(batch).schema == batch.to_arrow().schema
