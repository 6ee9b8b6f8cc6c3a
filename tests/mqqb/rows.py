"""What the oracle expects of a batch of message packets, in numpy columns and in Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from msmqwire import Batch, mqqb
from msmqwire.columns.schema import BOOL, BYTES, FORMAT_NAME, GUID, TEXT, TIMESTAMP, UTF8, Column, Enumeration, ListOf
from tests.mqcn.rows import rfc
from tests.mqsd.rows import arrow_text, fault_entries
from tests.reference import mqqb as reference

#: QUEUE_FORMAT_TYPE of [MS-MQMQ] 2.2.6 where it has one.
FORMS = {"public": 1, "private": 2, "direct": 3, "distribution_list": 6, "unresolved": 255}


def read_all(
    payloads: Sequence[bytes | None], table: reference.Table, *, strict: bool = False, transport: Any = "unknown"
) -> list[reference.Outcome]:
    """The oracle over many payloads; None for a null one."""
    return [
        None if data is None else reference.read(data, table, strict=strict, transport=transport) for data in payloads
    ]


def decode_batch(payloads: Any, table: reference.Table, *, transport: Any = "unknown", **options: Any) -> Batch:
    """The package over many payloads."""
    if table == "messages":
        return mqqb.decode_batch(payloads, **options)
    return mqqb.decode_session_batch(payloads, transport=transport, **options)


class Expected:
    """The rows of many outcomes."""

    def __init__(self, outcomes: Sequence[reference.Outcome], table: reference.Table) -> None:
        self.table: reference.Table = table
        self.outcomes = outcomes
        self.packets = [outcome.values if isinstance(outcome, reference.Packet) else {} for outcome in outcomes]

    def column(self, name: str) -> list[Any]:
        """The values of a column, None where it is null."""
        return [values.get(name) for values in self.packets]


# --- numpy ---


def assert_columns(batch: Batch, expected: Expected) -> None:
    """Every numpy column of a batch that was decoded with all its columns."""
    assert len(batch) == len(expected.outcomes)
    assert batch.table is {"messages": mqqb.MESSAGES, "sessions": mqqb.SESSIONS}[expected.table]
    columns = batch.table.columns
    assert tuple(column.name for column in columns) == reference.COLUMNS[expected.table]
    for column in columns:
        _assert_column(batch, column, expected.column(column.name))
    bits = {name: 1 << bit for bit, name in enumerate(reference.VIOLATIONS[expected.table])}
    found = [sum(bits[name] for name in getattr(outcome, "violations", ())) for outcome in expected.outcomes]
    assert batch.violations.dtype == np.uint32
    np.testing.assert_array_equal(batch.violations, found)
    faults = [(row, *fault) for row, fault in enumerate(expected.outcomes) if isinstance(fault, reference.Fault)]
    assert fault_entries(batch) == faults


def _assert_column(batch: Batch, column: Column, values: list[Any]) -> None:
    view, name, type_ = batch[column.name], column.name, column.type
    present = np.array([value is not None for value in values], bool)
    standing = [value for value in values if value is not None]
    if type_ == FORMAT_NAME:
        shown = np.array([value is not None and value.form != "unresolved" for value in values], bool)
        np.testing.assert_array_equal(batch.is_present(name), shown, name)
        _assert_names(view[present], standing, name)
        assert not view["form"][~present].any(), name
        return
    np.testing.assert_array_equal(batch.is_present(name), present, name)
    if isinstance(type_, ListOf):
        np.testing.assert_array_equal(view.offsets, np.cumsum([0, *(len(items or ()) for items in values)]), name)
        _assert_names(view.values, list(chain.from_iterable(standing)), name)
    elif type_ == UTF8:
        assert [view.text(row) for row in range(len(values))] == [value or "" for value in values], name
    elif type_ in (TEXT, BYTES):
        assert view.offset[present].tolist() == [span.offset for span in standing], name
        assert view.length[present].tolist() == [len(span.data) for span in standing], name
        assert not view.length[~present].any(), name
        for row in np.flatnonzero(present)[::31].tolist():
            got = view.text(row) if type_ == TEXT else view[row].tobytes()
            assert got == (values[row].text if type_ == TEXT else values[row].data), name
    elif type_ == GUID:
        assert view.shape == (len(values), 16)
        assert view.dtype == np.uint8
        assert view[present].tobytes() == b"".join(standing), name
        assert not view[~present].any(), name
    else:
        _assert_numbers(view, type_, present, standing, name)


def _assert_numbers(view: Any, type_: Any, present: NDArray[np.bool_], standing: list[Any], name: str) -> None:
    if isinstance(type_, Enumeration):
        assert view.dtype == np.uint8
        assert np.array(type_.names)[view[present]].tolist() == standing, name
    else:
        assert view.dtype == np.dtype({BOOL: "?", TIMESTAMP: "M8[ns]"}.get(type_, type_.dtype)), name
        plain = view.view(np.int64) if type_ == TIMESTAMP else view
        assert plain[present].tolist() == standing, name
    assert not view[~present].astype(np.int64).any(), name


def _assert_names(records: Any, queues: Sequence[reference.Queue], name: str) -> None:
    """The records of format names."""
    assert records["form"].tolist() == [FORMS[queue.form] for queue in queues], name
    assert records["code"].tolist() == [queue.code for queue in queues], name
    assert not records["reserved"].any()
    assert records["number"].tolist() == [queue.number or 0 for queue in queues], name
    assert records["offset"].tolist() == [queue.name.offset if queue.name else 0 for queue in queues], name
    assert records["length"].tolist() == [len(queue.name.data) if queue.name else 0 for queue in queues], name
    assert records["guid"].tobytes() == b"".join([queue.guid or bytes(16) for queue in queues]), name


# --- Arrow ---


def assert_arrow(batch: Batch, expected: Expected) -> None:
    """The Arrow export of a batch, column by column, against the oracle."""
    table = batch.to_arrow(dictionaries=False)
    table.validate(full=True)
    assert table.num_rows == len(expected.outcomes)
    assert tuple(table.schema.names) == batch.table.names
    for column in batch.table.columns:
        values = [None if value is None else _plain(column.type, value) for value in expected.column(column.name)]
        _assert_array(table[column.name], values, column.name)
    faults = [outcome._asdict() if isinstance(outcome, reference.Fault) else None for outcome in expected.outcomes]
    _assert_array(table["fault"], faults, "fault")
    names = [
        list(outcome.violations) if isinstance(outcome, reference.Packet) else None for outcome in expected.outcomes
    ]
    _assert_array(table["violations"], names, "violations")


def _assert_array(column: pa.Array, values: list[Any], name: str) -> None:
    """One Arrow array against plain values."""
    wanted = pa.array(values, column.type)
    if not column.equals(wanted):
        wrong = next(i for i in range(len(values)) if column[i] != wanted[i])
        raise AssertionError(f"{name}, row {wrong}: {column[wrong]} instead of {values[wrong]}")


def _plain(type_: Any, value: Any) -> Any:
    """A value as Arrow shows it: GUIDs in RFC order, text as it can hold it, queues as format names."""
    if isinstance(type_, ListOf):
        return [_plain(type_.item, item) for item in value]
    if type_ == GUID:
        return rfc(value)
    if type_ == FORMAT_NAME:
        return None if value.text is None else arrow_text(value.text)
    return arrow_text(value.text) if type_ == TEXT else value.data if type_ == BYTES else value
