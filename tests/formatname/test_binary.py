"""Format names as message packets carry them: [MS-MQMQ] 2.2.18.1.4, 2.2.18.1.5, 2.2.18.1.7."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest

from msmqwire.errors import DecodeError, EncodeError
from msmqwire.formatname import (
    DirectName,
    DistributionListName,
    FormatName,
    MachineName,
    MulticastName,
    PrivateName,
    PublicName,
    decode_direct,
    decode_elements,
    decode_private,
    decode_private_id,
    decode_public,
    encode_direct,
    encode_elements,
    encode_private,
    encode_private_id,
    encode_public,
    parse,
)

ID = UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10")
WIRE = bytes.fromhex("eca4bb2b758e434b9c1e0d2a5a3c2f10")

#: The DestinationQueue of the user message in [MS-MQQB] 4.1, 64 bytes into the packet and 48 into its header.
FRAME = bytes.fromhex("1a004f0053003a0061003000340062006d00300032005c0071000000")


@contextmanager
def decode_error(code: str, field: str, offset: int) -> Iterator[None]:
    with pytest.raises(DecodeError) as caught:
        yield
    assert (caught.value.code, caught.value.field, caught.value.offset) == (code, field, offset)


def test_forms_of_a_fixed_size() -> None:
    assert encode_private_id(PrivateName(ID, 3)) == bytes([3, 0, 0, 0])
    assert decode_private_id(bytes([9, 9, 3, 0, 0, 0]), ID, 2) == PrivateName(ID, 3)
    assert encode_public(PublicName(ID)) == WIRE
    assert decode_public(b"." + WIRE, 1) == PublicName(ID)
    assert encode_private(PrivateName(ID, 0x1F)) == WIRE + bytes([0x1F, 0, 0, 0])
    assert decode_private(WIRE + bytes([0x1F, 0, 0, 0])) == PrivateName(ID, 0x1F)


def test_forms_of_a_fixed_size_that_are_cut() -> None:
    with decode_error("truncated", "PrivateQueueIdentifier", 0):
        decode_private_id(bytes(3), ID)
    with decode_error("truncated", "PublicQueueIdentifier", 4):
        decode_public(bytes(19), 4)
    with decode_error("truncated", "SourceQueueManager", 0):
        decode_private(bytes(15))
    with decode_error("truncated", "PrivateQueueIdentifier", 16):
        decode_private(bytes(19))


def test_the_direct_name_of_the_specification() -> None:
    header = bytes(48) + FRAME
    assert decode_direct(header, 48) == (DirectName("os", "a04bm02", "q"), 76)
    assert encode_direct(DirectName("os", "a04bm02", "q"), 48) == FRAME


@pytest.mark.parametrize("at", range(48, 52))
def test_padding_counts_from_the_start_of_the_header(at: int) -> None:
    name = DirectName("os", "server", "orders", "private", suffix="journal")
    packed = encode_direct(name, at)
    assert (at + len(packed)) % 4 == 0
    assert len(packed) - 2 - int.from_bytes(packed[:2], "little") < 4
    assert decode_direct(bytes(at) + packed, at) == (name, at + len(packed))


def test_padding_may_be_missing_or_anything() -> None:
    """[MS-MQMQ] note 2: there are no restrictions on padding; of the last name it may be cut off."""
    packed = encode_direct(DirectName("os", "ab", "q"))
    assert decode_direct(packed[:-2] + b"\xff\xff") == decode_direct(packed)
    assert decode_direct(packed[:-2])[0] == DirectName("os", "ab", "q")


def direct(units: str, *, count: int | None = None) -> bytes:
    text = units.encode("utf-16-le", "surrogatepass")
    return struct.pack("<H", len(text) if count is None else count) + text


@pytest.mark.parametrize(
    ("data", "code", "field", "offset"),
    [
        (b"", "truncated", "Count", 48),
        (b"\x02", "truncated", "Count", 48),
        (direct("", count=0), "bad_size", "Count", 48),
        (direct("OS:a\\q\0", count=13), "bad_size", "Count", 48),
        (direct("OS:a\\q\0", count=16), "truncated", "DirectFormatName", 50),
        (direct("OS:a\\q"), "bad_terminator", "DirectFormatName", 60),
        (direct("OS:a\\q\0\0"), "bad_terminator", "DirectFormatName", 62),
        (direct("OS:\0a\\q\0"), "bad_terminator", "DirectFormatName", 56),
        (direct("OS a\\q\0"), "bad_text", "DirectFormatName", 54),
        (direct("OS:a\\é\0"), "bad_text", "DirectFormatName", 60),
        (direct("OS:a\\\ud800\0"), "bad_text", "DirectFormatName", 60),
        (direct("DIRECT=OS:a\\q\0"), "bad_text", "DirectFormatName", 50),
        (direct("OS:a\\q,DIRECT=OS:b\\q\0"), "bad_text", "DirectFormatName", 62),
        (direct("HTTP://h/msmq/q\0"), "bad_text", "DirectFormatName", 76),
    ],
)
def test_damaged_direct_names(data: bytes, code: str, field: str, offset: int) -> None:
    with decode_error(code, field, offset):
        decode_direct(bytes(48) + data, 48)


def test_direct_names_as_packets_have_them() -> None:
    """Decision: packets may say SPX; slashes behind /msmq need a switch here as well."""
    assert decode_direct(direct("SPX:1:a\\PRIVATE$\\order_queue$\0"))[0].protocol == "spx"
    name, _ = decode_direct(direct("HTTP://h/msmq/private$/q\0"), http_slashes=True)
    assert str(name) == "DIRECT=HTTP://h/msmq\\PRIVATE$\\q"


ELEMENTS: tuple[FormatName, ...] = (
    DirectName("os", "ab", "q"),
    PublicName(ID),
    PrivateName(ID, 3),
    DirectName("os", "a", "q"),
    DistributionListName(ID),
    DirectName("tcp", "10.0.0.1", "q", "private"),
)


@pytest.mark.parametrize("alignment", [1, 2, 4])
@pytest.mark.parametrize("at", [12, 14, 13])
def test_elements(at: int, alignment: int) -> None:
    packed = encode_elements(ELEMENTS, at, public_alignment=alignment)
    data = bytes(at) + packed
    assert len(data) % 4 == 0
    assert decode_elements(data, len(ELEMENTS), at, public_alignment=alignment) == (ELEMENTS, len(data))
    for size in range(at, len(data) - 3):
        with pytest.raises(DecodeError) as caught:
            decode_elements(data[:size], len(ELEMENTS), at, public_alignment=alignment)
        assert caught.value.code in ("truncated", "bad_terminator")
        assert at <= caught.value.offset <= size + 2


def test_the_layout_of_elements() -> None:
    """An element begins where the one before it ends; what is in it is aligned from the start of the header."""
    names = ELEMENTS[3], PublicName(ID), PrivateName(ID, 3)
    assert encode_elements(names) == bytes.fromhex(
        "0300 4f00 5300 3a00 6100 5c00 7100 0000 "  # 12: direct, needs no alignment
        "0100 0000 eca4 bb2b 758e 434b 9c1e 0d2a 5a3c 2f10 "  # 28: public, its GUID at 32
        "0200 0000 eca4 bb2b 758e 434b 9c1e 0d2a 5a3c 2f10 0300 0000"  # 48: private, its GUID at 52
    )


def test_unknown_elements() -> None:
    for type_ in (0, 4, 5, 7, 8, 0x0103):
        with decode_error("bad_type", "FormatType", 12):
            decode_elements(bytes(12) + struct.pack("<H", type_) + bytes(30), 1)
    with decode_error("bad_terminator", "DirectFormatName", 14):
        decode_elements(bytes(12) + b"\x03\0" + "OS:a\\q".encode("utf-16-le"), 1)
    with decode_error("truncated", "FormatType", 32):
        decode_elements(bytes(12) + encode_elements([PublicName(ID)]), 0xFFFFFFFF)


@pytest.mark.parametrize(
    "name",
    [
        PublicName(ID, "journal"),
        PrivateName(ID, 1, "journal"),
        DistributionListName(ID, "example.com"),
        MachineName(ID, "deadletter"),
        MulticastName("234.1.1.1", 1),
        parse("DIRECT=OS:a\\q,DIRECT=OS:b\\q"),
    ],
    ids=str,
)
def test_names_without_such_a_form(name: FormatName) -> None:
    with pytest.raises(EncodeError):
        encode_elements([name])


def test_a_direct_name_longer_than_count_can_say() -> None:
    name = DirectName("http", f"//h:{'0' * 40_000}/MSMQ", "q")
    with pytest.raises(EncodeError, match="Count: must be at most 65535"):
        encode_direct(name)
