"""What the oracle expects of message packets, in the shapes the package answers in: packets, numpy columns, Arrow."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from msmqwire import Batch, mqqb
from msmqwire.columns.schema import BYTES, FORMAT_NAME, GUID, TEXT, TIMESTAMP, Column, Enumeration, ListOf
from msmqwire.errors import DecodeError
from tests.mqcn.rows import assert_array, rfc
from tests.mqsd.rows import arrow_text, fault_entries
from tests.reference import mqqb as reference

Outcome = reference.Outcome
TABLES = {"messages": mqqb.MESSAGES, "sessions": mqqb.SESSIONS}
FORMS = {"public": 1, "private": 2, "direct": 3, "distribution_list": 6, "unresolved": 255}


def read_all(
    payloads: Sequence[bytes | None],
    table: reference.Table,
    *,
    strict: bool = False,
    transport: reference.Transport = "unknown",
) -> list[Outcome]:
    """The oracle over many payloads; None for a null one."""
    options: dict[str, Any] = {"strict": strict, "transport": transport}
    return [None if data is None else reference.read(data, table, **options) for data in payloads]


def decode_batch(payloads: Any, table: reference.Table, **options: Any) -> Batch:
    """The package over many payloads."""
    if table == "messages":
        return mqqb.decode_batch(payloads, **options)
    return mqqb.decode_session_batch(payloads, **options)


def decode(data: Any, **options: Any) -> Any:
    """The package over one payload, its exception turned into the oracle's fault."""
    try:
        return mqqb.decode(data, **options)
    except DecodeError as error:
        return reference.Fault(error.code, error.field, error.offset)


class Expected:
    """The rows of many outcomes."""

    def __init__(self, outcomes: Sequence[Outcome], table: reference.Table) -> None:
        self.table = TABLES[table]
        self.rows = [reference.row(outcome, table) for outcome in outcomes]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]


# --- numpy ---


def assert_columns(batch: Batch, expected: Expected) -> None:
    """Every numpy column of a batch that was decoded with all its columns."""
    assert batch.table is expected.table
    assert len(batch) == len(expected.rows)
    for column in expected.table.columns:
        _assert_column(batch, column, expected.column(column.name))
    names = expected.table.violation_names
    bits = [sum(1 << names.index(name) for name in found or ()) for found in expected.column("violations")]
    assert batch.violations.tolist() == bits
    faults = [(row, *fault) for row, fault in enumerate(expected.column("fault")) if fault is not None]
    assert fault_entries(batch) == faults


def _assert_column(batch: Batch, column: Column, values: list[Any]) -> None:
    name, type_ = column.name, column.type
    view = batch[name]
    unresolved = [isinstance(value, reference.Queue) and value.form == "unresolved" for value in values]
    present = np.array([value is not None for value in values], bool)
    np.testing.assert_array_equal(batch.is_present(name), present & ~np.array(unresolved, bool), name)
    there = [value for value in values if value is not None]
    if isinstance(type_, ListOf):
        assert view.offsets.tolist() == np.cumsum([0, *(len(value or ()) for value in values)]).tolist()
        _assert_queues(view.values, [queue for queues in there for queue in queues], name)
        return
    if type_ == FORMAT_NAME:
        _assert_queues(view[present], there, name)
        assert not view["form"][~present].any()
    elif type_ in (TEXT, BYTES):
        assert view.offset[present].tolist() == [value.offset for value in there], name
        assert view.length[present].tolist() == [len(value.data) for value in there], name
        assert not view.length[~present].any()
        for row in np.flatnonzero(present)[::17].tolist():
            assert view[row].tobytes() == values[row].data
    elif type_ == GUID:
        assert view[present].tobytes() == b"".join(there), name
        assert not view[~present].any(), name
    else:
        got = view[present].astype(np.int64) if type_ == TIMESTAMP else view[present]
        wanted = [type_.names.index(value) for value in there] if isinstance(type_, Enumeration) else there
        assert got.tolist() == wanted, name
        assert not view[~present].astype(np.int64).any(), name


def _assert_queues(records: Any, queues: list[reference.Queue], name: str) -> None:
    assert records["form"].tolist() == [FORMS[queue.form] for queue in queues], name
    assert records["number"].tolist() == [queue.number or 0 for queue in queues], name
    assert records["guid"].tobytes() == b"".join(queue.guid or bytes(16) for queue in queues), name
    assert records["offset"].tolist() == [queue.name.offset if queue.name else 0 for queue in queues], name
    assert records["length"].tolist() == [len(queue.name.data) if queue.name else 0 for queue in queues], name


# --- Arrow ---


def arrow_value(type_: Any, value: Any) -> Any:
    """A value of the oracle as ``to_arrow(guid="binary")`` has it."""
    if value is None:
        return None
    if isinstance(type_, ListOf):
        return [arrow_value(type_.item, item) for item in value]
    if type_ == GUID:
        return rfc(value)
    if type_ == TEXT:
        return arrow_text(value.text)
    if type_ == FORMAT_NAME:
        return None if value.text is None else arrow_text(value.text)
    return value.data if type_ == BYTES else value


def assert_arrow(batch: Batch, expected: Expected) -> None:
    """The Arrow export of a batch, column by column, against the oracle."""
    table = batch.to_arrow(guid="binary")
    table.validate(full=True)
    assert table.schema.equals(expected.table.arrow_schema(guid="binary"))
    assert table.num_rows == len(expected.rows)
    for column in expected.table.columns:
        values = [arrow_value(column.type, value) for value in expected.column(column.name)]
        if column.type == TIMESTAMP:
            assert table[column.name].cast(pa.int64()).to_pylist() == values
        else:
            assert_array(table[column.name], values, column.name)
    faults = [None if fault is None else fault._asdict() for fault in expected.column("fault")]
    assert_array(table["fault"], faults, "fault")
    violations = [None if names is None else list(names) for names in expected.column("violations")]
    assert_array(table["violations"], violations, "violations")


# --- One packet ---


def plain(value: Any) -> Any:
    """A value of the oracle as an attribute of a packet has it."""
    if isinstance(value, tuple) and not isinstance(value, (reference.Queue, reference.Span)):
        return tuple(plain(item) for item in value)
    if isinstance(value, reference.Queue):
        return value.text
    if isinstance(value, reference.Span):
        return value.data
    return uuid.UUID(bytes_le=value) if isinstance(value, bytes) else value


def attributes(packet: Any, table: reference.Table) -> dict[str, Any]:
    """All that a packet says, under the names of the table's columns, nulls left out."""
    groups = [getattr(packet, name) for name in ("transaction", "security", "soap", "multi_queue", "session")]
    sources = [packet, *groups, packet.acknowledged] if table == "messages" else [packet]
    found = {}
    for name in TABLES[table].names:
        values = [getattr(source, name) for source in sources if source is not None and hasattr(source, name)]
        if name not in ("fault", "violations") and values and values[0] is not None:
            found[name] = values[0]
    return found
