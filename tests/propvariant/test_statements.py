"""[MS-MQCN] 2.2.2 and 2.2.3, row by row, with bytes that no encoder made."""

from __future__ import annotations

import struct
import tracemalloc
import uuid
from typing import Any

import pytest

from msmqwire import mqcn, properties, propvariant
from msmqwire.errors import DecodeError, EncodeError
from msmqwire.properties.vartype import VT_VARIANT
from msmqwire.propvariant import (
    VT_BLOB,
    VT_BOOL,
    VT_CLSID,
    VT_I1,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_LPWSTR,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_VECTOR,
)
from tests.contract.checklist import row
from tests.properties.constants import CONSTANTS

A, B = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), uuid.UUID("c626ea11-e6b6-9749-9595-9150557358d1")
A_BYTES, B_BYTES = "33221100 5544 7766 8899 aabbccddeeff", "11ea26c6 b6e6 4997 9595 9150557358d1"


def fault(vt: int, data: bytes) -> str:
    with pytest.raises(DecodeError) as caught:
        propvariant.decode(vt, data)
    assert caught.value.offset <= len(data)
    return caught.value.code


def assert_integers(vt: int, size: int, examples: dict[int, str]) -> None:
    """Each integer is these bytes and no others, and those just outside the type's range cannot be written."""
    for value, data in examples.items():
        wire = bytes.fromhex(data)
        assert len(wire) == size
        assert propvariant.decode(vt, wire) == value
        assert propvariant.encode(vt, value) == wire
        assert propvariant.size(vt, wire + b"more") == size
        for cut in range(size):
            assert fault(vt, wire[:cut]) == "truncated"
    for wrong in (min(examples) - 1, max(examples) + 1):
        with pytest.raises(EncodeError):
            propvariant.encode(vt, wrong)


def update_of(propids: list[int], values: str) -> bytes:
    head = b"\1\1" + b"\1\1" + bytes(56) + bytes((len(propids),))
    return head + struct.pack(f"<{len(propids)}I", *propids) + bytes.fromhex(values)


def values_of(data: bytes) -> list[Any]:
    (update,) = mqcn.decode(data).updates
    return [item.value for item in update.properties]


@row("PV-01")
def test_little_endian_without_padding() -> None:
    data = update_of([104, 105, 113, 106, 305, 109], "07 04030201 08 feff 0a09 0e0d0c0b")
    assert values_of(data) == [7, 0x01020304, 8, -2, 0x090A, 0x0B0C0D0E]


@row("PV-02")
def test_i2() -> None:
    assert_integers(VT_I2, 2, {0: "0000", 1: "0100", -1: "ffff", 0x7FFF: "ff7f", -0x8000: "0080"})


@row("PV-03")
def test_i4() -> None:
    assert_integers(VT_I4, 4, {0: "00000000", -2: "feffffff", 0x7FFFFFFF: "ffffff7f", -0x80000000: "00000080"})


@row("PV-04")
def test_bool() -> None:
    for value, data in ((True, b"\xff\xff"), (False, b"\0\0")):
        assert propvariant.decode(VT_BOOL, data) is value
        assert propvariant.encode(VT_BOOL, value) == data
    for word in (*range(1, 0x10000, 0x101), 0x00FF, 0xFF00, 0xFFFE):
        if word != 0xFFFF:
            assert fault(VT_BOOL, struct.pack("<H", word)) == "bad_value"
    assert fault(VT_BOOL, b"\xff") == "truncated"


@row("PV-05")
def test_i1() -> None:
    assert_integers(VT_I1, 1, {0: "00", 127: "7f", -1: "ff", -128: "80"})


@row("PV-06")
def test_ui1() -> None:
    assert_integers(VT_UI1, 1, {0: "00", 128: "80", 255: "ff"})


@row("PV-07")
def test_ui2() -> None:
    assert_integers(VT_UI2, 2, {0: "0000", 0x0102: "0201", 0xFFFF: "ffff"})


@row("PV-08")
def test_ui4() -> None:
    assert_integers(VT_UI4, 4, {0: "00000000", 0x01020304: "04030201", 0xFFFFFFFF: "ffffffff"})


@row("PV-09")
def test_i8() -> None:
    low, high = -(1 << 63), (1 << 63) - 1
    assert_integers(VT_I8, 8, {0: "00" * 8, -1: "ff" * 8, high: "ff" * 7 + "7f", low: "00" * 7 + "80"})


@row("PV-10")
def test_ui8() -> None:
    assert_integers(VT_UI8, 8, {0: "00" * 8, 1 << 63: "00" * 7 + "80", (1 << 64) - 1: "ff" * 8})


@row("PV-11")
def test_lpwstr() -> None:
    for value, data in (("", "0000"), ("ab", "6100 6200 0000"), ("\u0100", "0001 0000"), ("\ud800", "00d8 0000")):
        wire = bytes.fromhex(data)
        assert propvariant.decode(VT_LPWSTR, wire) == value
        assert propvariant.encode(VT_LPWSTR, value) == wire
        assert propvariant.size(VT_LPWSTR, wire + b"more") == len(wire)
    for data in ("", "00", "6100", "6100 00", "0001 00", "61 00 00 62"):
        assert fault(VT_LPWSTR, bytes.fromhex(data)) == "bad_terminator"


@row("PV-12")
def test_blob() -> None:
    wire = bytes.fromhex("03000000 ff0001")
    assert propvariant.decode(VT_BLOB, wire).tobytes() == b"\xff\0\1"
    assert propvariant.encode(VT_BLOB, b"\xff\0\1") == wire
    assert propvariant.decode(VT_BLOB, bytes(4)).tobytes() == b""
    assert propvariant.size(VT_BLOB, wire + b"more") == 7


@row("PV-13")
def test_clsid() -> None:
    assert propvariant.decode(VT_CLSID, bytes.fromhex(A_BYTES)) == A
    assert propvariant.encode(VT_CLSID, A) == bytes.fromhex(A_BYTES)
    assert fault(VT_CLSID, bytes(15)) == "truncated"


@row("PV-14")
def test_ui4_vector() -> None:
    wire = bytes.fromhex("02000000 04030201 ffffffff")
    assert propvariant.decode(VT_UI4 | VT_VECTOR, wire).tolist() == [0x01020304, 0xFFFFFFFF]
    assert propvariant.encode(VT_UI4 | VT_VECTOR, [0x01020304, 0xFFFFFFFF]) == wire
    assert propvariant.decode(VT_UI4 | VT_VECTOR, bytes(4)).tolist() == []


@row("PV-15")
def test_clsid_vector() -> None:
    wire = bytes.fromhex(f"02000000 {A_BYTES} {B_BYTES}")
    assert [uuid.UUID(bytes_le=bytes(item)) for item in propvariant.decode(VT_CLSID | VT_VECTOR, wire)] == [A, B]
    assert propvariant.encode(VT_CLSID | VT_VECTOR, [A, B]) == wire
    assert propvariant.decode(VT_CLSID | VT_VECTOR, bytes(4)).shape == (0, 16)


@row("PV-16")
def test_lpwstr_vector() -> None:
    wire = bytes.fromhex("03000000 6100 0000 0000 6200 6300 0000")
    assert propvariant.decode(VT_LPWSTR | VT_VECTOR, wire) == ("a", "", "bc")
    assert propvariant.encode(VT_LPWSTR | VT_VECTOR, ["a", "", "bc"]) == wire
    assert propvariant.decode(VT_LPWSTR | VT_VECTOR, bytes(4)) == ()
    assert fault(VT_LPWSTR | VT_VECTOR, wire[:-1]) == "bad_terminator"


@row("PV-17")
def test_the_propid_says_the_type() -> None:
    """The same four bytes: a string for one PROPID, a number for another, two numbers for two."""
    assert values_of(update_of([105], "61000000")) == [0x61]
    assert values_of(update_of([108], "61000000")) == ["a"]
    assert values_of(update_of([106, 305], "61000000")) == [0x61, 0]
    for data in (update_of([102], "61000000"), update_of([115], "48006100")):
        with pytest.raises(DecodeError, match="truncated"):
            mqcn.decode(data)


@row("PV-18")
def test_counts_are_checked_before_anything_is_reserved() -> None:
    tracemalloc.start()
    try:
        for vt, width in ((VT_BLOB, 1), (VT_UI1 | VT_VECTOR, 1), (VT_UI4 | VT_VECTOR, 4), (VT_CLSID | VT_VECTOR, 16)):
            for count in (17 // width + 1, 1 << 28, 1 << 30, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
                assert fault(vt, struct.pack("<I", count) + bytes(17)) == "bad_count"
        for count in (9, 0x80000000, 0xFFFFFFFF):
            assert fault(VT_LPWSTR | VT_VECTOR, struct.pack("<I", count) + bytes(17)) == "bad_count"
        for vt, width in ((VT_BLOB, 1), (VT_CLSID | VT_VECTOR, 16), (VT_LPWSTR | VT_VECTOR, 2)):
            most = 17 // width
            with pytest.raises(DecodeError, match=f"bad_count.* is {most + 1}, can be at most {most}$"):
                propvariant.decode(vt, struct.pack("<I", most + 1) + bytes(17))
        for propid in (1101, 205, 207, 223):
            with pytest.raises(DecodeError, match=r"bad_count: PropertyValue\[0\] at byte 65"):
                mqcn.decode(update_of([propid], "ffffffff" + "00" * 40))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@row("PV-20")
def test_ui1_vector_is_a_count_and_bytes() -> None:
    wire = bytes.fromhex("03000000 010203")
    assert propvariant.decode(VT_UI1 | VT_VECTOR, wire).tolist() == [1, 2, 3]
    assert propvariant.encode(VT_UI1 | VT_VECTOR, b"\1\2\3") == wire
    for propid in (205, 231, 232):
        (value, after) = values_of(update_of([propid, 104], "03000000 010203 07"))
        assert value.tolist() == [1, 2, 3]
        assert after == 7


@row("PV-21")
def test_an_unknown_propid_spoils_the_message() -> None:
    good = update_of([104], "07")[2:]
    for propid in (0, 1, 6, 27, 100, 120, 240, 1204, 5403, 0x10068, 0xFFFFFFFF):
        bad = update_of([104, propid], "07 00000000")[2:]
        for data in (b"\1\2" + good + bad, b"\1\2" + bad + good):
            with pytest.raises(DecodeError) as caught:
                mqcn.decode(data)
            assert (caught.value.code, caught.value.field) == ("unknown_property", "PropertyId[1]")


def test_variant_vectors_are_not_supported() -> None:
    variants = [one.number for one in properties.PROPERTIES if one.vt == VT_VARIANT | VT_VECTOR]
    assert variants
    for propid in variants:
        with pytest.raises(DecodeError, match="unknown_property"):
            mqcn.decode(update_of([propid], "00000000"))


@row("PV-22")
def test_a_propid_is_four_bytes() -> None:
    data = update_of([0x0000044D], "01000000 aa")
    assert data[61:65] == b"\x4d\x04\0\0"
    (update,) = mqcn.decode(data).updates
    assert update.properties[0].id == 1101 == properties.PROPID_Q_SECURITY
    with pytest.raises(DecodeError, match="truncated: PropertyId at byte 61"):
        mqcn.decode(data[:64])


@row("PV-23")
def test_constants_of_the_seed_table() -> None:
    assert len(CONSTANTS) == 31
    for name, (number, section) in CONSTANTS.items():
        assert getattr(properties, name) == number
        assert properties.by_number(number).name == name
        assert properties.by_number(number).section == f"[MS-MQMQ] {section}"
    blank = (properties.PROPID_Q_INSTANCE, properties.PROPID_Q_JOURNAL, properties.PROPID_Q_JOURNAL_QUOTA)
    assert blank == (101, 104, 107)
