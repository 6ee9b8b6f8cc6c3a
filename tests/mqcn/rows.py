"""What the oracle expects of a batch of notifications, in numpy columns and in Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from msmqwire import mqcn
from tests.mqsd.rows import arrow_text, fault_entries
from tests.reference import mqcn as reference
from tests.reference import propvariant

NUMBERS = frozenset((*propvariant.NUMBERS, "VT_BOOL"))
BYTES = frozenset(("VT_BLOB", "VT_UI1|VT_VECTOR"))
NAMES = {row.number: f"PROPID_{row.name}" for row in propvariant.propids() if row.number >= 101}
BITS = {name: 1 << bit for bit, name in enumerate(reference.VIOLATIONS)}

Change = reference.Update | reference.Body | None


def changes(outcome: reference.Outcome) -> list[Change]:
    """What each row of an outcome tells of: None for a row that tells of no change."""
    if not isinstance(outcome, reference.Message):
        return [None]
    return [outcome.body] if outcome.body is not None else list(outcome.updates) or [None]


class Expected:
    """The rows of many outcomes behind each other."""

    def __init__(self, outcomes: Sequence[reference.Outcome]) -> None:
        rows = [reference.rows(outcome) for outcome in outcomes]
        self.messages = np.cumsum([0, *map(len, rows)])
        self.rows = list(chain.from_iterable(rows))
        self.changes = list(chain.from_iterable(changes(outcome) for outcome in outcomes))
        self.properties = [item for row in self.rows for item in row["properties"] or ()]

    def column(self, name: str) -> list[Any]:
        return [row[name] for row in self.rows]


# --- numpy ---


def assert_columns(batch: mqcn.NotificationBatch, expected: Expected) -> None:
    """Every numpy column of a batch that was decoded with all its columns."""
    assert len(batch) == len(expected.rows)
    assert batch.messages.dtype == np.int32
    np.testing.assert_array_equal(batch.messages, expected.messages)
    _assert_scalars(batch, expected)
    _assert_texts(batch, expected)
    _assert_properties(batch, expected)
    reserved = expected.column("reserved")
    present = np.array([value is not None for value in reserved], bool)
    np.testing.assert_array_equal(batch.is_present("reserved"), present)
    assert [bytes(batch["reserved"][row]) for row in np.flatnonzero(present)] == [*filter(None, reserved)]
    bits = [sum(BITS[name] for name in names or ()) for names in expected.column("violations")]
    assert batch.violations.dtype == np.uint32
    np.testing.assert_array_equal(batch.violations, bits)
    faults = [(row, *fault) for row, fault in enumerate(expected.column("fault")) if fault is not None]
    assert fault_entries(batch) == faults


def _assert_scalars(batch: mqcn.NotificationBatch, expected: Expected) -> None:
    codes: dict[str, dict[Any, int]] = {
        "operation": {name: code for code, name in enumerate(reference.COMMANDS)},
        "object": {"queue": 0, "machine": 1},
    }
    for name in ("version", "index", "operation", "object"):
        values = expected.column(name)
        present = np.array([value is not None for value in values], bool)
        np.testing.assert_array_equal(batch.is_present(name), present, name)
        assert batch[name].dtype == np.uint8
        wanted = [codes[name][value] if name in codes else value for value in values if value is not None]
        assert batch[name][present].tolist() == wanted, name
        assert not batch[name][~present].any(), name
    for name in ("object_guid", "master_guid"):
        values = expected.column(name)
        present = np.array([value is not None for value in values], bool)
        np.testing.assert_array_equal(batch.is_present(name), present, name)
        assert batch[name].shape == (len(values), 16)
        assert batch[name].dtype == np.uint8
        assert batch[name][present].tobytes() == b"".join(filter(None, values)), name
        assert not batch[name][~present].any(), name


def _assert_texts(batch: mqcn.NotificationBatch, expected: Expected) -> None:
    paths = [change.path_offset if isinstance(change, reference.Update) else -1 for change in expected.changes]
    servers = [change.offset if isinstance(change, reference.Body) else -1 for change in expected.changes]
    for name, places in (("path_name", paths), ("domain_controller", servers)):
        texts = expected.column(name)
        present = np.array([text is not None for text in texts], bool)
        np.testing.assert_array_equal(batch.is_present(name), present, name)
        column = batch[name]
        assert len(column) == len(texts)
        assert column.offset[present].tolist() == [place for place in places if place >= 0], name
        sizes = [len(propvariant.units_of(text)) for text in texts if text is not None]
        assert column.length[present].tolist() == sizes, name
        assert not column.length[~present].any(), name
        for row in np.flatnonzero(present)[::23].tolist():
            assert column.text(row) == texts[row]


def _assert_properties(batch: mqcn.NotificationBatch, expected: Expected) -> None:
    lists = expected.column("properties")
    present = np.array([items is not None for items in lists], bool)
    np.testing.assert_array_equal(batch.is_present("properties"), present)
    column = batch["properties"]
    np.testing.assert_array_equal(column.offsets, np.cumsum([0, *(len(items or ()) for items in lists)]))
    items = expected.properties
    members = column.values
    assert list(members) == ["id", "name", "type", "int", "text", "guid", "bytes", "ints", "guids", "texts"]
    np.testing.assert_array_equal(members["id"], np.array([item.id for item in items], np.uint32))
    assert members["id"].dtype == np.uint32
    types = [item.type for item in items]
    for member, of_types in (("int", NUMBERS), ("guid", {"VT_CLSID"}), ("text", {"VT_LPWSTR"}), ("bytes", BYTES)):
        chosen = np.array([type_ in of_types for type_ in types], bool)
        values = [item.value for item, wanted in zip(items, chosen, strict=True) if wanted]
        places = [(item.offset, item.size) for item, wanted in zip(items, chosen, strict=True) if wanted]
        assert_values(members[member], chosen, values, places, member)
    assert len(members["ints"]) == len(items)
    assert not members["ints"].offsets.any()
    guids = [item.value if item.type == "VT_CLSID|VT_VECTOR" else () for item in items]
    np.testing.assert_array_equal(members["guids"].offsets, np.cumsum([0, *map(len, guids)]))
    assert members["guids"].values.tobytes() == b"".join(chain.from_iterable(guids))
    texts = [item for item in items if item.type == "VT_LPWSTR|VT_VECTOR"]
    counts = [len(item.value) if item.type == "VT_LPWSTR|VT_VECTOR" else 0 for item in items]
    np.testing.assert_array_equal(members["texts"].offsets, np.cumsum([0, *counts]))
    assert_texts_of_vectors(members["texts"].values, texts)


def assert_values(
    column: Any, chosen: NDArray[np.bool_], values: list[Any], places: list[tuple[int, int]], member: str
) -> None:
    """The values of one member where they stand; elsewhere there is nothing."""
    if member in ("int", "guid"):
        assert column.dtype == (np.int64 if member == "int" else np.uint8)
        if member == "int":
            assert column[chosen].tolist() == [int(value) for value in values]
        else:
            assert column.shape == (len(chosen), 16)
            assert column[chosen].tobytes() == b"".join(values)
        assert not column[~chosen].any()
        return
    assert len(column) == len(chosen)
    if member == "text":
        wanted = [(offset, size - 2) for offset, size in places]
    else:
        wanted = [(offset + 4, size - 4) for offset, size in places]
    pairs = zip(column.offset[chosen].tolist(), column.length[chosen].tolist(), strict=True)
    assert list(pairs) == wanted
    assert not column.length[~chosen].any()
    for at, value in list(zip(np.flatnonzero(chosen).tolist(), values, strict=True))[::37]:
        assert (column.text(at) if member == "text" else column[at].tobytes()) == value


def assert_texts_of_vectors(column: Any, items: Sequence[reference.Property]) -> None:
    """The strings of all vectors of strings, one column of text."""
    places = []
    for item in items:
        at = item.offset + 4
        for text in item.value:
            size = len(propvariant.units_of(text))
            places.append((at, size))
            at += size + 2
    assert list(zip(column.offset.tolist(), column.length.tolist(), strict=True)) == places
    texts = [text for item in items for text in item.value]
    for at in range(0, len(texts), 29):
        assert column.text(at) == texts[at]


# --- Arrow ---


def rfc(guid: bytes | None) -> bytes | None:
    """A GUID as RFC 9562 orders its bytes, from those on the wire."""
    return None if guid is None else guid[3::-1] + guid[5:3:-1] + guid[7:5:-1] + guid[8:]


def assert_arrow(batch: mqcn.NotificationBatch, expected: Expected) -> None:
    """The Arrow export of a batch, column by column, against the oracle."""
    table = batch.to_arrow(dictionaries=False)
    table.validate(full=True)
    assert table.num_rows == len(expected.rows)
    assert tuple(table.schema.names) == mqcn.NOTIFICATIONS.names
    for name in ("version", "index", "operation", "object"):
        assert_array(table[name], expected.column(name), name)
    for name in ("object_guid", "master_guid"):
        assert_array(table[name], [rfc(guid) for guid in expected.column(name)], name)
    for name in ("path_name", "domain_controller"):
        values = [None if text is None else arrow_text(text) for text in expected.column(name)]
        assert_array(table[name], values, name)
    faults = [None if fault is None else fault._asdict() for fault in expected.column("fault")]
    assert_array(table["fault"], faults, "fault")
    violations = [None if names is None else list(names) for names in expected.column("violations")]
    assert_array(table["violations"], violations, "violations")
    _assert_arrow_properties(table["properties"], expected)


def assert_array(column: pa.Array, values: list[Any], name: str) -> None:
    """One Arrow array against plain values."""
    wanted = pa.array(values, column.type)
    if not column.equals(wanted):
        wrong = next(i for i, value in enumerate(values) if column[i].as_py() != value)
        raise AssertionError(f"{name}, row {wrong}: {column[wrong]} instead of {values[wrong]}")


def member_columns(items: Sequence[reference.Property]) -> dict[str, list[Any]]:
    """The members of the struct of a property, of many properties: GUIDs in RFC order, text as Arrow can hold it."""
    types = [item.type for item in items]
    paired = list(zip(items, types, strict=True))
    return {
        "id": [item.id for item in items],
        "name": [NAMES[item.id] for item in items],
        "type": types,
        "int": [int(item.value) if type_ in NUMBERS else None for item, type_ in paired],
        "text": [arrow_text(item.value) if type_ == "VT_LPWSTR" else None for item, type_ in paired],
        "guid": [rfc(item.value) if type_ == "VT_CLSID" else None for item, type_ in paired],
        "bytes": [item.value if type_ in BYTES else None for item, type_ in paired],
        "ints": [list(item.value) if type_ == "VT_UI4|VT_VECTOR" else None for item, type_ in paired],
        "guids": [list(map(rfc, item.value)) if type_ == "VT_CLSID|VT_VECTOR" else None for item, type_ in paired],
        "texts": [
            list(map(arrow_text, item.value)) if type_ == "VT_LPWSTR|VT_VECTOR" else None for item, type_ in paired
        ],
    }


def _assert_arrow_properties(column: pa.Array, expected: Expected) -> None:
    lists = expected.column("properties")
    assert column.is_valid().to_pylist() == [items is not None for items in lists]
    assert column.value_lengths().to_pylist() == [None if items is None else len(items) for items in lists]
    structs = column.flatten()
    for name, values in member_columns(expected.properties).items():
        assert_array(structs.field(name), values, f"properties.{name}")
