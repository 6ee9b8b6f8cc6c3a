"""QUEUE_FORMAT: [MS-MQMQ] 2.2.6-2.2.11."""

from __future__ import annotations

from itertools import product
from uuid import UUID

import pytest

from msmqwire.errors import DecodeError, EncodeError
from msmqwire.formatname import FormatName, MachineName, decode_queue_format, encode_queue_format, parse

ID = UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10")
WIRE = "eca4bb2b758e434b9c1e0d2a5a3c2f10"


def name_of(text: str) -> FormatName:
    return parse(text.replace("@ID", str(ID)), extended=True, spx=True)


#: As impacket 0.13 marshals the structure by its IDL, but for the padding and the referents it makes up.
MARSHALLED = {
    "DIRECT=OS:m\\q": ("0300 0000 03000000 00000200 07000000 00000000 07000000 4f00 5300 3a00 6d00 5c00 7100 0000"),
    "PUBLIC=@ID;JOURNAL": f"0181 0000 01000000 {WIRE}",
    "PRIVATE=@ID\\3": f"0200 0000 02000000 {WIRE} 03000000",
    "DL=@ID@a.b": (f"0600 0000 06000000 {WIRE} 00000200 04000000 00000000 04000000 6100 2e00 6200 0000"),
    "MULTICAST=234.1.1.1:8001": "0700 0000 07000000 ea010101 411f0000",
}

#: The first two bytes: m_qft and m_SuffixAndFlags.
HEADS = {
    "PUBLIC=@ID": (1, 0x00),
    "PUBLIC=@ID;JOURNAL": (1, 0x81),
    "PRIVATE=@ID\\3": (2, 0x00),
    "PRIVATE=@ID\\3;JOURNAL": (2, 0x81),
    "DIRECT=OS:m\\q": (3, 0x00),
    "DIRECT=OS:m\\PRIVATE$\\q;JOURNAL": (3, 0x81),
    "DIRECT=OS:m\\SYSTEM$;JOURNAL": (3, 0x81),
    "DIRECT=OS:m\\SYSTEM$;DEADLETTER": (3, 0x82),
    "DIRECT=OS:m\\SYSTEM$;DEADXACT": (3, 0x83),
    "DIRECT=OS:m\\q;late": (8, 0x05),
    "DIRECT=OS:m\\q;late;JOURNAL": (8, 0x81),
    "MACHINE=@ID;JOURNAL": (4, 0x81),
    "MACHINE=@ID;DEADLETTER": (4, 0x82),
    "MACHINE=@ID;DEADXACT": (4, 0x83),
    "CONNECTOR=@ID": (5, 0x00),
    "CONNECTOR=@ID;XACTONLY": (5, 0x04),
    "DL=@ID": (6, 0x00),
    "DL=@ID@example.com": (6, 0x00),
    "MULTICAST=234.1.1.1:8001": (7, 0x00),
}


@pytest.mark.parametrize("text", MARSHALLED)
def test_the_bytes_of_another_marshaller(text: str) -> None:
    packed = bytes.fromhex(MARSHALLED[text])
    assert encode_queue_format(name_of(text)) == packed
    assert decode_queue_format(packed) == (name_of(text), len(packed))


@pytest.mark.parametrize("text", HEADS)
def test_every_kind_with_every_suffix_it_can_have(text: str) -> None:
    name = name_of(text)
    packed = encode_queue_format(name)
    assert (packed[0], packed[1]) == HEADS[text]
    assert decode_queue_format(packed) == (name, len(packed))
    assert decode_queue_format(bytes(8) + packed + b"more", 8) == (name, 8 + len(packed))
    for size in range(len(packed)):
        with pytest.raises(DecodeError) as caught:
            decode_queue_format(packed[:size])
        assert caught.value.code == "truncated"
        assert caught.value.offset <= size


def test_reserved_bytes_and_padding_are_ignored() -> None:
    packed = bytearray(encode_queue_format(name_of("PUBLIC=@ID")))
    packed[2:4] = packed[5:8][:2] = b"\xff\xff"
    packed[5:8] = b"\xbd\xbd\xbd"
    assert decode_queue_format(bytes(packed))[0] == name_of("PUBLIC=@ID")


def test_what_has_no_queue_format() -> None:
    with pytest.raises(EncodeError, match="a MACHINE name cannot have the suffix NONE"):
        encode_queue_format(MachineName(ID))
    with pytest.raises(EncodeError, match="cannot express a multiple_element name"):
        encode_queue_format(name_of("DIRECT=OS:a\\q,PUBLIC=@ID"))


def allowed(type_: int, suffix: int, flags: int) -> bool:
    """The table of 2.2.7, line by line."""
    if suffix == 0:
        return flags == 0 and type_ != 4
    if suffix == 1:
        return flags == 0x80 and type_ not in (5, 6, 7)
    if suffix == 2:
        return flags == 0x80 and type_ not in (1, 2, 5, 6, 7)
    if suffix == 3:
        return flags == 0x80 and type_ in (3, 4)
    if suffix == 4:
        return flags in (0, 0x80) and type_ == 5
    return suffix == 5 and flags == 0 and type_ == 8


def test_every_suffix_with_every_type() -> None:
    """Of 9 * 256 heads those decode that the specification allows and, for direct names, that the text agrees with."""
    texts = {
        1: "PUBLIC=@ID",
        2: "PRIVATE=@ID\\3",
        3: "DIRECT=OS:m\\q",
        4: "MACHINE=@ID;JOURNAL",
        5: "CONNECTOR=@ID",
        6: "DL=@ID",
        7: "MULTICAST=234.1.1.1:8001",
        8: "DIRECT=OS:m\\q;late",
    }
    suffixes = {1: "JOURNAL", 2: "DEADLETTER", 3: "DEADXACT", 4: "XACTONLY"}
    for type_, head in product(texts, range(256)):
        packed = bytearray(encode_queue_format(name_of(texts[type_])))
        packed[1] = head
        suffix, flags = head & 15, head & 0xF0
        fits = type_ not in (3, 8) or suffix == 0 or (type_ == 8 and suffix == 5)
        if allowed(type_, suffix, flags) and fits:
            text = texts[type_].partition(";")[0] + f";{suffixes[suffix]}" if suffix in suffixes else texts[type_]
            assert decode_queue_format(bytes(packed))[0] == name_of(text), (type_, head)
            continue
        with pytest.raises(DecodeError) as caught:
            decode_queue_format(bytes(packed))
        assert (caught.value.field, caught.value.offset) == ("m_SuffixAndFlags", 1), (type_, head)


def test_an_unknown_type_has_no_name() -> None:
    assert decode_queue_format(bytes(5)) == (None, 5)
    with pytest.raises(DecodeError, match="bad_type: m_qft at byte 0: is 9"):
        decode_queue_format(bytes([9, 0, 0, 0, 9]) + bytes(40))
    with pytest.raises(DecodeError, match="bad_type: m_qft at byte 4"):
        decode_queue_format(bytes([1, 0, 0, 0, 2]) + bytes(40))


@pytest.mark.parametrize(
    ("text", "at", "value", "code", "offset"),
    [
        ("DIRECT=OS:m\\q", 8, 0, "bad_value", 8),  # a null pointer
        ("DIRECT=OS:m\\q", 12, 6, "bad_size", 12),  # more units than it can have
        ("DIRECT=OS:m\\q", 16, 1, "bad_size", 12),  # an offset
        ("DIRECT=OS:m\\q", 20, 0, "bad_size", 12),  # no units
        ("DIRECT=OS:m\\q", 34, 0x00710071, "bad_terminator", 36),
        ("DIRECT=OS:m\\q", 28, 0x00200020, "bad_text", 28),
        ("DIRECT=OS:m\\q;s", 34, 0x00710071, "bad_value", 0),  # no subqueue
        ("DL=@ID@a.b", 44, 0x0020, "bad_text", 24),
        ("DL=@ID@a.b", 42, 0x002C002C, "bad_text", 24),
        ("MULTICAST=234.1.1.1:8001", 8, 0x010101DF, "bad_value", 8),
        ("MULTICAST=234.1.1.1:8001", 12, 65_536, "bad_value", 8),
    ],
)
def test_damaged_unions(text: str, at: int, value: int, code: str, offset: int) -> None:
    packed = bytearray(encode_queue_format(name_of(text)))
    packed[at : at + 4] = value.to_bytes(4, "little")
    with pytest.raises(DecodeError) as caught:
        decode_queue_format(bytes(packed))
    assert (caught.value.code, caught.value.offset) == (code, offset)
