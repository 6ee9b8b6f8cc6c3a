"""The places of rows in their captures, by which deleted rows are known when their capture is decoded again."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# The columns that tell the faults of one place from each other
_OF_FAULT = ("table", "code", "field", "offset")
#: The columns with the place of a row in a capture; a table has some of them.
PLACE = ("capture", "frame", "stream_offset", "index", *_OF_FAULT)

_NUMBERS = ("frame", "stream_offset", "index")
_TYPES: dict[str, pa.DataType] = {
    "table": pa.string(), **dict.fromkeys(_NUMBERS, pa.int64()), "fault": pa.string()
}  # fmt: skip
#: The columns of places.
PLACES = pa.schema(_TYPES)


def places(rows: Any, table: str) -> pa.Table:
    """The places of rows of a table."""
    names, count = rows.schema.names, len(rows)
    numbers = [rows[name].cast(pa.int64()) if name in names else pa.nulls(count, pa.int64()) for name in _NUMBERS]
    fault: Any = pa.nulls(count, pa.string())
    if table == "faults":
        fault = _joined(*(rows[name].cast(pa.string()) for name in _OF_FAULT))
    return pa.table([pa.repeat(table, count), *numbers, fault], schema=PLACES)


def packed(found: pa.Table, frames: int = 0) -> bytes:
    """Places as bytes; with all frames up to a number.

    Numbers that follow each other take almost no bytes.
    """
    every = pa.Table.from_pylist([{"frame": frames}] if frames else [], schema=PLACES)
    # The result has the order of these rows
    rows = pa.concat_tables([found, every]).group_by(PLACES.names, use_threads=False).aggregate([])
    buffer = io.BytesIO()
    pq.write_table(
        rows.sort_by([(name, "ascending") for name in PLACES.names]),
        buffer,
        compression="zstd",
        use_dictionary=["table", "fault"],  # type: ignore[arg-type] # the stub knows no names
        column_encoding=dict.fromkeys(_NUMBERS, "DELTA_BINARY_PACKED"),
        write_statistics=False,
    )
    return buffer.getvalue()


def unpacked(data: bytes) -> pa.Table:
    """The places that ``packed`` has made bytes of."""
    return pq.read_table(pa.BufferReader(data), use_threads=False)


def all_but(left: pa.Table, table: str, frames: int) -> pa.Table:
    """Places that stand for all rows of a table up to a frame, but for those that are left."""
    upto = pa.Table.from_pylist([{"table": f"-{table}", "frame": frames}], schema=PLACES)
    return pa.concat_tables([upto, left.set_column(0, "table", pa.repeat(f"+{table}", len(left)))])


def united(deletions: Iterable[bytes | None]) -> bytes | None:
    """The places of all of some deletions; equal for equal deletions in any order."""
    found = sorted({one for one in deletions if one is not None})
    return packed(pa.concat_tables(map(unpacked, found))) if len(found) > 1 else next(iter(found), None)


def deleted_here(rows: pa.RecordBatch, table: str, deletions: bytes) -> Any:
    """Return True if each row of one capture is at a place that was deleted."""
    there = unpacked(deletions)
    found: Any = pc.is_in(_keys(places(rows, table), ""), _keys(there, ""))
    every: Any = pc.max(there["frame"].filter(pc.is_null(there["table"])))
    frames = rows["frame"].cast(pa.int64())
    before: Any = pc.less_equal(frames, every)
    found = pc.or_(found, pc.fill_null(before, False))
    upto: Any = pc.max(there["frame"].filter(pc.equal(there["table"], pa.scalar(f"-{table}"))))
    if not upto.is_valid:
        return found
    left = there.filter(pc.equal(there["table"], pa.scalar(f"+{table}")))
    left = left.set_column(0, "table", pa.repeat(table, len(left)))
    is_left: Any = pc.is_in(_keys(places(rows, table), ""), _keys(left, ""))
    return pc.or_(found, pc.and_(pc.less_equal(frames, upto), pc.invert(is_left)))


def are_deleted(rows: Any, table: str, deletions: Mapping[str, bytes]) -> Any:
    """Return True if each row of a table is at a place that was deleted of its capture."""
    here = [capture for capture in rows["capture"].unique().to_pylist() if capture in deletions]
    if not here:
        return pa.repeat(False, len(rows))
    keys = [_keys(unpacked(deletions[capture]), capture) for capture in here]
    unwanted = pa.chunked_array([chunk for one in keys for chunk in one.chunks], pa.string())
    return pc.is_in(_keys(places(rows, table), rows["capture"].cast(pa.string())), unwanted)


def unlike(found: pa.Table, others: pa.Table | bytes | None) -> pa.Table:
    """The places that are not among others."""
    if others is None:
        return found
    known: Any = pc.is_in(_keys(found, ""), _keys(unpacked(others) if isinstance(others, bytes) else others, ""))
    return found.filter(pc.invert(known))


def _keys(found: pa.Table, capture: Any) -> Any:
    """Each place as text."""
    return _joined(capture, *(found[name].cast(pa.string()) for name in PLACES.names))


def _joined(*columns: Any) -> Any:
    return pc.binary_join_element_wise(*columns, " ", null_handling="replace", null_replacement="")
