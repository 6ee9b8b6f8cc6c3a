"""Values one at a time: every type, truncated, lengthened, misaligned, and the values that an encoder refuses."""

from __future__ import annotations

import gc
import random
import struct
import sys
import uuid
from typing import Any

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import strategies as st

from msmqwire import propvariant
from msmqwire.errors import DecodeError, EncodeError
from tests.contract.checklist import row
from tests.propvariant.values import TYPES, VT, fault_of, given, plain, read
from tests.reference import propvariant as reference
from tests.reference.mqcn_cases import value
from tests.reference.reader import Fault

COUNTED = tuple(reference.ELEMENTS)
GUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def some(type_: str, count: int = 60) -> list[bytes]:
    """Values of a type, the same in every run."""
    rng = random.Random(f"{type_}, seeded")
    return [value(rng, type_) for _ in range(count)]


def assert_like_the_oracle(type_: str, data: bytes) -> None:
    """All three readers of the package at the front of ``data``."""
    expected = read(type_, data)
    got = fault_of(propvariant.decode, VT[type_], data, exact=False)
    if isinstance(expected, Fault):
        assert got == expected
        assert fault_of(propvariant.size, VT[type_], data) == expected
        assert fault_of(propvariant.view, VT[type_], data) == expected
        return
    assert plain(type_, got) == expected[0]
    assert propvariant.size(VT[type_], data) == expected[1]
    exactly = fault_of(propvariant.decode, VT[type_], data)
    if expected[1] == len(data):
        assert plain(type_, exactly) == expected[0]
        assert propvariant.encode(VT[type_], exactly) == data
    else:
        assert exactly == Fault("bad_size", "PropertyValue", expected[1])


@pytest.mark.parametrize("type_", TYPES)
def test_values(type_: str) -> None:
    for data in some(type_):
        assert_like_the_oracle(type_, data)
        expected, _ = reference.read(type_, data)
        assert propvariant.encode(VT[type_], given(type_, expected)) == data


@pytest.mark.parametrize("type_", TYPES)
def test_every_truncation_and_tail(type_: str) -> None:
    for data in some(type_, 12):
        for size in range(min(len(data), 300)):
            assert_like_the_oracle(type_, data[:size])
        for tail in (b"\0", b"\0\0", b"\xff" * 3, data):
            assert_like_the_oracle(type_, data + tail)


@over(st.sampled_from(TYPES), st.binary(max_size=60))
def test_any_bytes(type_: str, data: bytes) -> None:
    assert_like_the_oracle(type_, data)
    if type_ in COUNTED:
        assert_like_the_oracle(type_, struct.pack("<I", len(data) % 5) + data)


@pytest.mark.parametrize("type_", TYPES)
def test_any_address(type_: str) -> None:
    for data in some(type_, 20):
        for shift in range(1, 9):
            window = memoryview(bytes(shift) + data)[shift:]
            expected, end = reference.read(type_, data)
            assert plain(type_, propvariant.decode(VT[type_], window)) == expected
            assert propvariant.size(VT[type_], window) == end
            assert propvariant.encode(VT[type_], propvariant.decode(VT[type_], window)) == data


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: np.frombuffer(data, np.uint8)])
@pytest.mark.parametrize("type_", TYPES)
def test_takes_any_bytes_like(type_: str, kind: Any) -> None:
    for data in some(type_, 5):
        assert plain(type_, propvariant.decode(VT[type_], kind(data))) == reference.read(type_, data)[0]


def test_takes_nothing_else() -> None:
    wrong: Any
    for wrong in (None, "abc", 5, [1, 2]):
        for call in (propvariant.decode, propvariant.size, propvariant.view):
            with pytest.raises(TypeError):
                call(19, wrong)


@pytest.mark.parametrize("vt", [0, 1, 8, 12, 22, 23, 64, 73, 0x1000, 0x1002, 0x100C, 0x1041, 0x2013, -1, 1 << 40])
def test_types_without_a_codec(vt: int) -> None:
    for call in (propvariant.decode, propvariant.size, propvariant.view):
        with pytest.raises(ValueError, match="codec"):
            call(vt, bytes(64))
    with pytest.raises(ValueError, match="codec"):
        propvariant.encode(vt, 1)


# --- views ---


def _arrays(viewed: Any) -> list[np.ndarray[Any, Any]]:
    return list(viewed) if isinstance(viewed, tuple) else [viewed]


@pytest.mark.parametrize("type_", TYPES)
def test_views_say_what_the_oracle_says(type_: str) -> None:
    for data in some(type_, 30):
        expected, end = reference.read(type_, data)
        viewed: Any = propvariant.view(VT[type_], data + b"\7")
        if type_ == "VT_LPWSTR|VT_VECTOR":
            assert type(viewed) is tuple
            assert [reference.text_of(item.tobytes()) for item in viewed] == list(expected)
        elif type_ == "VT_LPWSTR":
            assert viewed.dtype == np.dtype("<u2")
            assert reference.text_of(viewed.tobytes()) == expected
        elif type_ == "VT_CLSID|VT_VECTOR":
            assert viewed.shape == (len(expected), 16)
            assert viewed.tobytes() == b"".join(expected)
        elif type_ == "VT_CLSID":
            assert viewed.shape == (16,)
            assert viewed.tobytes() == expected
        elif type_ in COUNTED:
            assert viewed.tobytes() == data[4:end]
        else:
            assert viewed.shape == (1,)
            assert viewed.dtype.itemsize == end
            assert viewed.tobytes() == data
            if type_ != "VT_BOOL":
                assert viewed[0] == expected


@pytest.mark.parametrize("shift", [0, 1, 2, 3])
@pytest.mark.parametrize("type_", TYPES)
def test_views_copy_nothing(type_: str, shift: int) -> None:
    data = max(some(type_), key=len)
    owner = bytes(shift) + data
    window = memoryview(owner)[shift:]
    arrays = _arrays(propvariant.view(VT[type_], window))
    assert any(array.size for array in arrays)
    for array in arrays:
        assert not array.size or np.shares_memory(array, np.frombuffer(owner, np.uint8))
        assert not array.flags.writeable
    if type_ in COUNTED and type_ != "VT_LPWSTR|VT_VECTOR":
        decoded = propvariant.decode(VT[type_], window)
        assert np.shares_memory(decoded, np.frombuffer(owner, np.uint8))


@pytest.mark.parametrize("type_", TYPES)
def test_views_keep_their_owner_and_let_it_go(type_: str) -> None:
    data = bytes(bytearray(max(some(type_), key=len)))
    before = sys.getrefcount(data)
    arrays = _arrays(propvariant.view(VT[type_], data))
    copies = [array.copy() for array in arrays]
    gc.collect()
    assert sys.getrefcount(data) > before
    for array, copied in zip(arrays, copies, strict=True):
        np.testing.assert_array_equal(array, copied)
    del arrays, array
    propvariant.decode(VT[type_], data)
    propvariant.size(VT[type_], data)
    fault_of(propvariant.decode, VT[type_], data[:-1])
    gc.collect()
    assert sys.getrefcount(data) == before


@pytest.mark.parametrize("type_", [type_ for type_ in COUNTED if type_ != "VT_LPWSTR|VT_VECTOR"])
def test_a_writable_buffer_is_copied(type_: str) -> None:
    data = max(some(type_), key=len)
    writable: Any
    for writable in (bytearray(data), np.frombuffer(bytearray(data), np.uint8)):
        decoded = propvariant.decode(VT[type_], writable)
        (viewed,) = _arrays(propvariant.view(VT[type_], writable))
        memoryview(writable).cast("B")[:] = bytes(len(data))
        assert plain(type_, decoded) == reference.read(type_, data)[0]
        assert viewed.tobytes() == data[4:]


# --- counts ---


@pytest.mark.parametrize("type_", COUNTED)
def test_counts_at_the_limit_of_what_is_left(type_: str) -> None:
    for count in range(5):
        for size in range(70):
            for filler in (b"\0", b"\1"):
                assert_like_the_oracle(type_, struct.pack("<I", count) + filler * size)


def test_errors_speak() -> None:
    with pytest.raises(DecodeError) as caught:
        propvariant.decode(19, b"abc")
    assert (caught.value.code, caught.value.field, caught.value.offset) == ("truncated", "PropertyValue", 0)
    assert "4" in caught.value.detail
    assert "3" in caught.value.detail


# --- what encode refuses ---

NO_BOOLEANS: tuple[object, ...] = (None, "true", 1.0, [])


@row("PV-19")
@pytest.mark.parametrize(
    ("type_", "wrong"),
    [
        *((type_, wrong) for type_ in reference.NUMBERS for wrong in (None, "1", 1.0, b"1", [1])),
        *(("VT_BOOL", wrong) for wrong in NO_BOOLEANS),
        *(("VT_LPWSTR", wrong) for wrong in (None, 1, b"a\0", ["a"], "a\0", "\0", "\0a", "a\0b")),
        *(
            (type_, wrong)
            for type_ in ("VT_BLOB", "VT_UI1|VT_VECTOR")
            for wrong in (None, 1, "text", [None], np.array([b"x"], object))
        ),
        *(("VT_CLSID", wrong) for wrong in (None, 1, GUID.hex, f"{{{GUID}}}", "")),
        *(("VT_UI4|VT_VECTOR", wrong) for wrong in (None, 1, "12", [-1], [1 << 32], ["1"], [1.0], [[1]])),
        *(("VT_CLSID|VT_VECTOR", wrong) for wrong in (None, 1, "text", [1], [GUID.hex], GUID, [b"short"])),
        ("VT_CLSID|VT_VECTOR", np.zeros((2, 15), np.uint8)),
        ("VT_CLSID|VT_VECTOR", np.zeros(32, np.uint8)),
        ("VT_CLSID|VT_VECTOR", np.zeros((1, 16), np.uint16)),
        *(("VT_LPWSTR|VT_VECTOR", wrong) for wrong in (None, 1, "text", [1], ["a", None], ["a", "b\0"], [b"a"])),
    ],
)
def test_encode_refuses(type_: str, wrong: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        propvariant.encode(VT[type_], wrong)
    assert caught.value.field == "PropertyValue"
    assert caught.value.reason


@pytest.mark.parametrize("type_", ["VT_UI4|VT_VECTOR", "VT_CLSID|VT_VECTOR", "VT_LPWSTR|VT_VECTOR"])
def test_more_elements_than_a_count_can_say(type_: str) -> None:
    """The length is looked at first: walking so many elements would take hours."""
    with pytest.raises(EncodeError):
        propvariant.encode(VT[type_], range(1 << 32))


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        ("VT_I2", np.int8(7), "0700"),
        ("VT_BOOL", True, "ffff"),
        ("VT_BOOL", False, "0000"),
        ("VT_LPWSTR", "", "0000"),
        ("VT_LPWSTR", "\ud800", "00d8 0000"),
        ("VT_LPWSTR", "\U0001f600\u0100", "3dd8 00de 0001 0000"),
        ("VT_BLOB", b"", "00000000"),
        ("VT_BLOB", bytearray(b"\1\2"), "02000000 0102"),
        ("VT_BLOB", memoryview(b"\1\2"), "02000000 0102"),
        ("VT_BLOB", np.arange(3, dtype=np.uint8), "03000000 000102"),
        ("VT_BLOB", np.arange(4, dtype=np.uint8)[::3], "02000000 0003"),
        ("VT_BLOB", np.arange(2, dtype=">u2"), "04000000 00000001"),
        ("VT_BLOB", np.zeros(1, [("low", "u1"), ("high", "u1")]), "02000000 0000"),
        ("VT_UI1|VT_VECTOR", b"\xff", "01000000 ff"),
        ("VT_UI4|VT_VECTOR", [], "00000000"),
        ("VT_UI4|VT_VECTOR", (1, 0xFFFFFFFF), "02000000 01000000 ffffffff"),
        ("VT_UI4|VT_VECTOR", np.arange(2, dtype=np.uint32), "02000000 00000000 01000000"),
        ("VT_UI4|VT_VECTOR", range(1, 3), "02000000 01000000 02000000"),
        ("VT_CLSID", GUID, "33221100 5544 7766 8899aabbccddeeff"),
        ("VT_CLSID|VT_VECTOR", (), "00000000"),
        ("VT_CLSID|VT_VECTOR", [GUID], "01000000 33221100 5544 7766 8899aabbccddeeff"),
        ("VT_CLSID|VT_VECTOR", np.full((1, 16), 7, np.uint8), "01000000" + "07" * 16),
        ("VT_LPWSTR|VT_VECTOR", [], "00000000"),
        ("VT_LPWSTR|VT_VECTOR", ["", "a"], "02000000 0000 6100 0000"),
        ("VT_LPWSTR|VT_VECTOR", ("\udc00",), "01000000 00dc 0000"),
    ],
)
def test_encode_accepts(type_: str, value: Any, data: str) -> None:
    written = propvariant.encode(VT[type_], value)
    assert type(written) is bytes
    assert written == bytes.fromhex(data)
    again = propvariant.decode(VT[type_], written)
    assert propvariant.encode(VT[type_], again) == written
