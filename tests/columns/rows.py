"""Rows of the oracles beside those of a batch: one comparison for every table, by the types of its columns.

A row of an oracle has the columns of its table, ``fault`` and ``violations`` by name: GUIDs as the 16 bytes of the
packet, texts and bytes as the ``Span`` where they stand, format names as ``Queue``, other values as Python has them,
None for null.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire import Batch, Payloads
from msmqwire.columns import FaultEntry, Table
from msmqwire.columns.schema import (
    BYTES,
    FAULT,
    FORMAT_NAME,
    GUID,
    TEXT,
    TIMESTAMP,
    UTF8,
    Column,
    DataType,
    Enumeration,
    Flags,
    ListOf,
    StructOf,
)
from msmqwire.wire.codes import FAULT_NAMES
from tests.reference.mqqb_walk import Queue
from tests.reference.reader import Fault, Span

Row = Mapping[str, Any]

NO_ITEM = 0xFFFFFFFF
#: QUEUE_FORMAT_TYPE of [MS-MQMQ] 2.2.6 where it has one.
FORMS = {"public": 1, "private": 2, "direct": 3, "distribution_list": 6, "unresolved": 255}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def contents(payloads: Payloads) -> list[bytes | None]:
    """The bytes of payloads, None for a null one."""
    return [None if item is None else bytes(item) for item in payloads]


def arrow_text(name: str) -> str:
    """A text as Arrow can hold it."""
    return _LONE_SURROGATE.sub("\ufffd", name)


# By the type and not by the value, since most of the time of the tests of batches goes here
@cache
def shown_as(type_: DataType, guid: str = "binary") -> Callable[[Any], Any]:
    """What makes of a value of an oracle what Arrow shows."""
    show = _shown_by_type(type_, guid)
    return show if show is _shown_unchanged else lambda value: None if value is None else show(value)


def _shown_by_type(type_: DataType, guid: str) -> Callable[[Any], Any]:
    if isinstance(type_, ListOf):
        item = shown_as(type_.item, guid)
        return lambda values: list(map(item, values))
    if type_ is FAULT:
        return lambda fault: dict(fault._asdict())  # what oracles say of it
    if isinstance(type_, StructOf):
        members = [(name, shown_as(member, guid)) for name, member in type_.members]
        return lambda value: {name: show(_member(value, name)) for name, show in members}
    if type_ == GUID:
        return _GUIDS[guid]
    if isinstance(type_, Flags):
        return list
    if type_ == BYTES:
        return lambda value: value.data if isinstance(value, Span) else value
    if type_ in (TEXT, FORMAT_NAME):
        return _shown_text
    return _shown_unchanged


def _shown_unchanged(value: Any) -> Any:
    return value


def _shown_text(value: Any) -> str | None:
    if isinstance(value, bytes):  # of a vector
        return arrow_text(value.decode("utf-16-le", "surrogatepass"))
    text = value if isinstance(value, str) else value.text
    return None if text is None else arrow_text(text)


_GUIDS: dict[str, Callable[[bytes], Any]] = {
    "uuid": lambda value: uuid.UUID(bytes_le=value),
    "text": lambda value: str(uuid.UUID(bytes_le=value)),
    "binary": lambda value: value[3::-1] + value[5:3:-1] + value[7:5:-1] + value[8:],
}


def shown_row(table: Table, row: Row, guid: str = "binary") -> dict[str, Any]:
    """What a row of an oracle or a packet of a vector has, as Arrow shows it."""
    return {
        column.name: shown_as(column.type, guid)(row[column.name]) for column in table.all_columns if column.name in row
    }


def known_row(row: Row) -> dict[str, Any]:
    """A row from Arrow with what oracles say of its fault."""
    fault = row["fault"]
    return {**row, "fault": fault and {name: fault[name] for name in Fault._fields}}


def _member(item: Any, name: str) -> Any:
    return item[name] if isinstance(item, dict) else getattr(item, name)


class Expected:
    """What an oracle says of payloads: the rows of each, one after the other."""

    def __init__(self, table: Table, payloads: Iterable[Sequence[Row]]) -> None:
        rows = list(payloads)
        self.table = table
        self.messages = np.cumsum([0, *map(len, rows)])
        self.rows = list(chain.from_iterable(rows))
        # All at once, since there are up to a hundred of them
        columns = zip(*map(itemgetter(*table.names), self.rows), strict=True)
        self._columns = dict(zip(table.names, columns, strict=True)) if self.rows else dict.fromkeys(table.names, ())

    def column(self, name: str) -> Sequence[Any]:
        """The values of a column, None where it is null."""
        return self._columns[name]

    def shown(self, column: Column) -> Sequence[Any]:
        """What Arrow shows of a column."""
        values, show = self.column(column.name), shown_as(column.type)
        return values if show is _shown_unchanged else list(map(show, values))


def place_of(fault: FaultEntry | None) -> tuple[str, str, int] | None:
    """What oracles say of a fault."""
    return None if fault is None else fault[:3]


def fault_entries(batch: Batch) -> list[tuple[int, str, str, int]]:
    """The entries of ``batch.faults`` with their numbers named: row, code, field, offset."""
    entries = []
    for entry in batch.faults:
        field = batch.table.fields[int(entry["field"])]
        item = "" if entry["item"] == NO_ITEM else f"[{entry['item']}]"
        entries.append((int(entry["row"]), FAULT_NAMES[int(entry["code"])], field + item, int(entry["offset"])))
    return entries


# --- Arrow ---


def assert_arrow(batch: Batch, expected: Expected) -> None:
    """The Arrow export of a batch, column by column."""
    table = batch.to_arrow(dictionaries=False)
    table.validate(full=True)
    assert table.num_rows == len(expected.rows)
    assert tuple(table.schema.names) == expected.table.names
    for column in expected.table.all_columns:
        found, values = table[column.name], expected.shown(column)
        if column.name == "fault":
            found = _places_of_faults(batch, found)
        wanted = pa.array(values, found.type)
        if not found.equals(wanted):
            wrong = next(i for i in range(len(values)) if found[i] != wanted[i])
            raise AssertionError(f"{column.name}, row {wrong}: {found[wrong]} instead of {values[wrong]}")


def _places_of_faults(batch: Batch, faults: Any) -> Any:
    """The faults with what oracles say of them; their numbers are those of the batch."""
    for row in map(int, batch.faults["row"]):
        fault = batch.fault(row)
        assert fault is not None
        assert faults[row].as_py() == fault._asdict()
    members = [(name, faults.field(name)) for name in ("code", "field", "offset")]
    return pa.StructArray.from_arrays(
        [member for _, member in members], [name for name, _ in members], mask=faults.is_null()
    )


# --- numpy ---

#: The enumerations whose numbers need not have a name: the number stays in numpy columns, and is null elsewhere.
UNNAMED = ("delivery_mode", "sender_id_type", "message_class_name", "body_type_name")


def assert_columns(batch: Batch, expected: Expected) -> None:
    """Every numpy column of a batch that was decoded with all its columns."""
    assert len(batch) == len(expected.rows)
    assert batch.table is expected.table
    for column in batch.table.columns:
        values = expected.column(column.name)
        # A queue may have no format name
        named = expected.shown(column) if column.type == FORMAT_NAME else values
        present = [value is not None for value in named]
        np.testing.assert_array_equal(batch.is_valid(column.name), present, column.name)
        assert_view(batch[column.name], column.type, values, column.name)
    bits = {name: 1 << bit for bit, name in enumerate(batch.table.violation_names)}
    found = [sum(bits[name] for name in names or ()) for names in expected.column("violations")]
    assert batch.violations.dtype == np.uint32
    np.testing.assert_array_equal(batch.violations, found)
    faults = [(row, *fault) for row, fault in enumerate(expected.column("fault")) if fault is not None]
    assert fault_entries(batch) == faults
    if hasattr(batch, "messages"):
        assert batch.messages.dtype == np.int32
        np.testing.assert_array_equal(batch.messages, expected.messages)


def assert_view(view: Any, type_: DataType, values: Sequence[Any], path: str) -> None:
    """A numpy view has these values; where they are None there is nothing."""
    present = np.array([value is not None for value in values], bool)
    standing = [value for value in values if value is not None]
    if isinstance(type_, StructOf):
        assert list(view) == [name for name, _ in type_.members]
        for name, member in type_.members:
            assert_view(view[name], member, [_member(item, name) for item in values], f"{path}.{name}")
        return
    assert len(view) == len(values), path
    if isinstance(type_, ListOf):
        np.testing.assert_array_equal(view.offsets, np.cumsum([0, *(len(items or ()) for items in values)]), path)
        assert_view(view.values, type_.item, list(chain.from_iterable(standing)), f"{path}[]")
    elif type_ == UTF8:
        assert [view.text(row) for row in range(len(values))] == [value or "" for value in values], path
    elif type_ in (TEXT, BYTES):
        assert view.offset[present].tolist() == [span.offset for span in standing], path
        assert view.length[present].tolist() == [len(span.data) for span in standing], path
        assert not view.length[~present].any(), path
        for row in np.flatnonzero(present)[::31].tolist():
            got = view.text(row) if type_ == TEXT else view[row].tobytes()
            assert got == (values[row].text if type_ == TEXT else values[row].data), path
    elif type_ == FORMAT_NAME:
        _assert_names(view[present], standing, path)
        assert not view["form"][~present].any(), path
    elif type_ == GUID:
        assert view.shape == (len(values), 16)
        assert view.dtype == np.uint8
        assert view[present].tobytes() == b"".join(standing), path
        assert not view[~present].any(), f"{path}: a null shows the value of an earlier batch"
    else:
        _assert_numbers(view, type_, present, standing, path)


def _assert_numbers(view: Any, type_: Any, present: Any, standing: list[Any], path: str) -> None:
    if isinstance(type_, Enumeration):
        assert view.dtype == type_.dtype, path
        assert [type_.by_number[number] for number in view[present].tolist()] == standing, path
        absent = view[~present]
        if path in UNNAMED:
            assert not np.isin(absent, type_.numbers).any(), path
        else:
            assert (absent == type_.null).all(), f"{path}: a null shows the value of an earlier batch"
        return
    assert view.dtype == type_.dtype, path
    plain = view.view(np.int64) if type_ == TIMESTAMP else view
    assert plain[present].tolist() == standing, path
    assert not view[~present].astype(np.int64).any(), f"{path}: a null shows the value of an earlier batch"


def _assert_names(records: Any, queues: Sequence[Queue], path: str) -> None:
    """The records of format names."""
    assert records["form"].tolist() == [FORMS[queue.form] for queue in queues], path
    assert records["code"].tolist() == [queue.code for queue in queues], path
    assert not records["reserved"].any()
    assert records["number"].tolist() == [queue.number or 0 for queue in queues], path
    assert records["offset"].tolist() == [queue.name.offset if queue.name else 0 for queue in queues], path
    assert records["length"].tolist() == [len(queue.name.data) if queue.name else 0 for queue in queues], path
    assert records["guid"].tobytes() == b"".join([queue.guid or bytes(16) for queue in queues]), path
