"""Many messages at once: every row of ``decode_batch`` is what the oracle says of its payload."""

from __future__ import annotations

import gc
import random
import struct
import sys
import uuid
from functools import cache
from typing import Any

import numpy as np
import pytest

from msmqwire import mqcn
from msmqwire.columns import allocated_bytes
from msmqwire.errors import EncodeError
from tests.columns.formats import NOTIFICATIONS
from tests.columns.rows import contents, fault_entries
from tests.reference import mqcn as reference
from tests.reference import propvariant
from tests.reference.mqcn_cases import cases
from tests.vectors import get

C1, C2, C3 = (get("mqcn", name).data for name in ("C1-delete", "C2-change-queue", "C3-body"))
CREATE, MACHINE = (get("mqcn", name).data for name in ("create-queue", "change-machine-with-riders"))
SOME = list(cases(2000, seed=20240229))
BOTH = (False, True)


def decoded(payloads: Any, **options: Any) -> mqcn.NotificationBatch:
    return mqcn.decode_batch(payloads, **options)


@pytest.mark.long
@pytest.mark.parametrize("name", ["C1-delete", "C2-change-queue", "C3-body"])
def test_every_value_of_every_byte_of_an_example(name: str) -> None:
    """Each single-byte change: 255 at each place."""
    data = get("mqcn", name).data
    changed = [data[:at] + bytes((byte,)) + data[at + 1 :] for at in range(len(data)) for byte in range(256)]
    NOTIFICATIONS.assert_rows(changed)
    NOTIFICATIONS.assert_rows(changed[::7], strict=True)


def test_nothing_of_a_faulty_message_is_delivered() -> None:
    data = b"\1\3" + C1[2:] + C2[2:] + C2[2:-1]
    batch = decoded([C1, data, C2])
    assert len(batch) == 3
    assert fault_entries(batch) == [(1, "truncated", "PropertyValue[1]", len(data) - 3)]
    assert batch["properties"].offsets.tolist() == [0, 2, 2, 4]
    assert batch["properties"].values["id"].tolist() == [1403, 1404, 115, 105]
    row = batch.to_arrow().slice(1, 1).to_pylist()[0]
    assert {name for name, value in row.items() if value is not None} == {"fault"}


def test_faults_are_of_rows() -> None:
    """Rows, not payloads: a message of three updates before a fault moves it on."""
    three = get("mqcn", "three-updates").data
    batch = decoded([three, b"", C1, C1[:-1]])
    assert [entry[0] for entry in fault_entries(batch)] == [3, 5]
    assert [batch.fault(row) is None for row in range(6)] == [True, True, True, False, True, False]
    for row in (-1, 6):
        with pytest.raises(IndexError):
            batch.fault(row)


def test_texts_are_code_units_in_the_payload() -> None:
    path = get("mqcn", "path-lone-surrogate").data
    strings = get("mqcn", "values-strings").data
    vectors = get("mqcn", "values-string-vectors").data
    batch = decoded([C1, path, C3, strings, vectors])
    assert batch["path_name"].text(1) == "a\\\ud800"
    assert batch["path_name"][1].tobytes() == "a\\\ud800".encode("utf-16-le", "surrogatepass")
    assert np.shares_memory(batch["path_name"][1], np.frombuffer(path, np.uint8))
    assert batch["domain_controller"].text(2) == "dc1"
    assert np.shares_memory(batch["domain_controller"][2], np.frombuffer(C3, np.uint8))
    table = batch.to_arrow()
    assert table["path_name"][1].as_py() == "a\\\ufffd"
    values = batch["properties"].values
    where = np.flatnonzero(values["id"] == 121)[0]
    assert values["text"].text(where) == "a\ud800"
    assert np.shares_memory(values["text"][where], np.frombuffer(strings, np.uint8))
    texts = [item["texts"] for row in table["properties"].to_pylist() for item in row or () if item["texts"]]
    assert texts == [["", "CN=a", "\ufffd"]]


def test_blobs_stay_in_the_payload() -> None:
    batch = decoded([C1, MACHINE, CREATE])
    values = batch["properties"].values
    blob = values["bytes"][int(np.flatnonzero(values["id"] == 206)[0])]
    assert blob.tobytes() == bytes.fromhex("010004007f000001")
    assert np.shares_memory(blob, np.frombuffer(MACHINE, np.uint8))
    security = values["bytes"][int(np.flatnonzero(values["id"] == 1101)[0])]
    assert security.tobytes() == bytes.fromhex("0100048014")
    assert np.shares_memory(security, np.frombuffer(CREATE, np.uint8))


# --- hostile counts ---


@pytest.mark.parametrize("count", [0xFFFFFFFF, 0xFFFFFFFE, 0x80000000, 0x7FFFFFFF, 0x10000000])
@pytest.mark.parametrize("propid", [1101, 205, 207, 223])
def test_a_count_of_four_thousand_million_allocates_nothing(propid: int, count: int) -> None:
    """What a batch holds is bounded by its payloads, not by what they claim."""
    head = b"\1\1\1\1" + bytes(56) + b"\1" + struct.pack("<I", propid)
    honest = head + bytes(4) + b"\0" * 40
    liar = head + struct.pack("<I", count) + b"\0" * 40
    before = allocated_bytes()
    usual = decoded([honest] * 100)
    usual["properties"]
    cost = allocated_bytes() - before
    del usual
    batch = decoded([liar] * 100)
    batch["properties"]
    assert allocated_bytes() - before <= cost + 100 * 40
    assert fault_entries(batch) == [(row, "bad_count", "PropertyValue[0]", 65) for row in range(100)]


@pytest.mark.long
def test_255_updates_of_255_properties() -> None:
    head = b"\1\1" + bytes(56) + b"\xff" + struct.pack("<I", 115) + struct.pack("<I", 105) * 254
    updates = [head + bytes(16) + struct.pack("<254I", *range(i, i + 254)) for i in range(255)]
    data = b"\1\xff" + b"".join(updates)
    batch = NOTIFICATIONS.assert_rows([data, C1, data[:-1]])
    assert batch.messages.tolist() == [0, 255, 256, 257]
    assert len(batch["properties"].values["id"]) == 255 * 255 + 2
    values, rows = batch.property(105)
    assert len(values) == len(rows) == 255 * 254


def test_memory_is_bounded_by_the_densest_payloads() -> None:
    smallest = b"\1\1\1\1" + bytes(57)
    dense = b"\1\1\1\1" + bytes(56) + b"\xff" + struct.pack("<I", 1403) * 255 + b"\1" * 255
    for payloads in ([smallest] * 5000, [dense] * 50):
        before = allocated_bytes()
        batch = decoded(payloads)
        batch["properties"]
        total = sum(map(len, payloads))
        assert allocated_bytes() - before <= 8192 + 300 * len(payloads) + 40 * total
        del batch
        assert allocated_bytes() == before


# --- a property across the batch ---


@cache
def properties_of(payloads: tuple[bytes, ...]) -> list[tuple[int, reference.Property]]:
    """Every property, and the row that has it."""
    changes: list[Any] = []
    for outcome in map(reference.read, payloads):
        changes += getattr(outcome, "updates", ()) or [None]
    return [(row, item) for row, update in enumerate(changes) for item in getattr(update, "properties", ())]


def owners(payloads: list[bytes], propid: int) -> tuple[list[int], list[reference.Property]]:
    """The rows that have a property, and its values there."""
    found = [(row, item) for row, item in properties_of(tuple(payloads)) if item.id == propid]
    return [row for row, _ in found], [item for _, item in found]


@pytest.mark.parametrize("propid", propvariant.TYPE_OF)
def test_a_property_of_a_whole_batch(propid: int) -> None:
    rows, items = owners(SOME, propid)
    values, found = decoded(SOME).property(propid)
    assert found.tolist() == rows
    assert_gathered(propvariant.TYPE_OF[propid], values, items)


def assert_gathered(type_: str, values: Any, items: list[reference.Property]) -> None:
    """The values of one property, in the form that its type calls for."""
    assert len(values) == len(items)
    plain = [item.value for item in items]
    if type_ in propvariant.NUMBERS:
        assert values.dtype == np.dtype(propvariant.NUMBERS[type_])
        assert values.tolist() == plain
    elif type_ == "VT_CLSID":
        assert values.shape == (len(items), 16)
        assert values.tobytes() == b"".join(plain)
    elif type_ == "VT_LPWSTR":
        assert [values.text(i) for i in range(len(items))] == plain
        assert values.offset.tolist() == [item.offset for item in items]
    elif type_ in ("VT_BLOB", "VT_UI1|VT_VECTOR"):
        assert [values[i].tobytes() for i in range(len(items))] == plain
        assert values.offset.tolist() == [item.offset + 4 for item in items]
    else:
        np.testing.assert_array_equal(values.offsets, np.cumsum([0, *map(len, plain)]))
        if type_ == "VT_CLSID|VT_VECTOR":
            assert values.values.tobytes() == b"".join(guid for guids in plain for guid in guids)
        else:
            texts = [text for value in plain for text in value]
            assert [values.values.text(i) for i in range(len(texts))] == texts


def test_a_property_that_is_there_twice_is_found_twice() -> None:
    batch = decoded([C1, get("mqcn", "duplicate-property").data, C2])
    values, rows = batch.property(105)
    assert values.tolist() == [1, 2, 1024]
    assert rows.tolist() == [1, 1, 2]


def test_a_property_that_no_row_has() -> None:
    batch = decoded([C1, None, b"", C3])
    for propid in propvariant.TYPE_OF:
        if propid not in (1403, 1404):
            values, rows = batch.property(propid)
            assert len(values) == len(rows) == 0


def test_a_property_by_a_number_of_the_batch() -> None:
    batch = decoded([C2])
    numbers = np.unique(batch["properties"].values["id"])
    assert {int(propid): batch.property(propid).rows.tolist() for propid in numbers}[105] == [0]


def test_a_property_takes_rows_of_the_table() -> None:
    batch = decoded([C3, get("mqcn", "three-updates").data, C2])
    values, rows = batch.property(115)
    assert rows.tolist() == [2, 4]
    assert [uuid.UUID(bytes_le=bytes(value)) for value in values] == [
        uuid.UUID("11223344-5566-7788-99aa-bbccddeeff00")
    ] * 2
    assert batch["operation"][rows].tolist() == [1, 1]


@pytest.mark.parametrize("propid", [0, 1, 7, 27, 100, 120, 1 << 32, -1])
def test_a_property_that_does_not_exist(propid: int) -> None:
    with pytest.raises((KeyError, ValueError)):
        decoded([C1]).property(propid)


def test_a_property_needs_its_column() -> None:
    with pytest.raises(KeyError, match="properties"):
        decoded([C1], columns=["version"]).property(105)


@pytest.mark.usefixtures("everything_is_released")
@pytest.mark.parametrize("member", ["text", "bytes", "texts"])
def test_values_keep_the_payload(member: str) -> None:
    data = bytes(bytearray(MACHINE if member != "texts" else get("mqcn", "values-string-vectors").data))
    before = sys.getrefcount(data)
    values = mqcn.decode_batch([data])["properties"].values
    column = values[member].values if member == "texts" else values[member]
    at = int(np.flatnonzero(column.length)[0])
    value = column[at]
    expected = value.tobytes()
    del values, column
    gc.collect()
    assert sys.getrefcount(data) > before
    assert value.tobytes() == expected
    assert np.shares_memory(value, np.frombuffer(data, np.uint8))
    del value
    gc.collect()
    assert sys.getrefcount(data) == before


@pytest.mark.usefixtures("everything_is_released")
def test_a_gathered_property_outlives_its_batch() -> None:
    data = [bytes(bytearray(MACHINE)) for _ in range(10)]
    first = data[0]
    before = sys.getrefcount(first)
    for propid in (202, 219, 206, 207, 216):
        values, rows = mqcn.decode_batch(data).property(propid)
        gc.collect()
        churn = [mqcn.decode_batch(SOME[::-1]).property(propid) for _ in range(3)]
        assert rows.tolist() == list(range(10))
        if propid == 206:
            assert values[9].tobytes() == bytes.fromhex("010004007f000001")
        elif propid == 216:
            assert values.text(9) == "Windows"
        elif propid == 219:
            assert values.tolist() == [0] * 10
        del values, rows, churn
    gc.collect()
    assert sys.getrefcount(first) == before


@pytest.mark.usefixtures("everything_is_released")
def test_a_gathered_property_stays_as_it_was_when_the_batch_is_written_again() -> None:
    out = mqcn.decode_batch([MACHINE] * 10)
    values, rows = out.property(219)
    guids, _ = out.property(202)
    kept = values.copy(), rows.copy(), guids.copy()
    mqcn.decode_batch(SOME, out=out)
    for array, copied in zip((values, rows, guids), kept, strict=True):
        np.testing.assert_array_equal(array, copied)


def test_a_property_of_a_batch_that_is_written_again() -> None:
    rng = random.Random(11)
    out = decoded([])
    for count in (10, 500, 3, 0, 1999, 100):
        payloads = rng.sample(SOME, count)
        decoded(payloads, out=out)
        rows, items = owners(payloads, 105)
        values, found = out.property(105)
        assert values.tolist() == [item.value for item in items]
        assert found.tolist() == rows


# --- encode_batch ---


def test_encode_batch_writes_what_a_sender_does() -> None:
    """Reserved bytes and the extra byte are not written back, a body takes the form of its grammar."""
    odd = [get("mqcn", "reserved-is-ignored").data, C1 + b"\xff", get("mqcn", "body-lower-case").data, C3 + b"\0"]
    expected = [mqcn.encode(mqcn.decode(data)) for data in odd]
    assert contents(mqcn.encode_batch(decoded(odd))) == expected
    assert contents(mqcn.encode_batch([mqcn.decode(data) for data in odd])) == expected


@pytest.mark.parametrize("closing_space", BOTH)
def test_encode_batch_takes_the_options_of_encode(closing_space: bool) -> None:
    found = NOTIFICATIONS.accepted(2000, 17)
    payloads, messages = list(found), list(found.values())
    options: dict[str, Any] = {"closing_space": closing_space, "enforce": False}
    expected = [mqcn.encode(message, **options) for message in messages]
    assert contents(mqcn.encode_batch(decoded(payloads), **options)) == expected
    assert contents(mqcn.encode_batch(messages, **options)) == expected
    wrong = next(i for i, message in enumerate(messages) if message.violations)
    row = len(NOTIFICATIONS.expected(payloads[:wrong]).rows)
    with pytest.raises(EncodeError) as caught:
        mqcn.encode_batch(decoded(payloads))
    assert caught.value.row is not None
    assert row <= caught.value.row < row + max(1, len(messages[wrong].updates))


@pytest.mark.long
def test_path_names_of_every_length_with_any_unit_at_any_place() -> None:
    """They are searched and judged sixteen code units at a time, 64 at once."""
    names = []
    for length in range(68):
        for at in range(length):
            for other in ("\\", ";", " ", "!", "~", "\x7f", "\x80", "\u0100", "\uff41"):
                letters = ["a"] * length
                letters[at] = "\\"
                letters[(7 * at + 3) % length] = other
                names.append("".join(letters))
    tail = bytes(40) + struct.pack("<BIB", 1, 104, 1) + bytes(100)
    messages = [b"\1\1\0\0" + f"{name}\0".encode("utf-16-le") + tail for name in names]
    batch = mqcn.decode_batch(messages)
    outcomes = [outcome for outcome in map(reference.read, messages) if isinstance(outcome, reference.Message)]
    expected = ["path_name_syntax" in outcome.updates[0].violations for outcome in outcomes]
    assert (batch["violations"] & mqcn.Violation.PATH_NAME_SYNTAX != 0).tolist() == expected
    assert [batch["path_name"].text(row) for row in range(len(names))] == names
