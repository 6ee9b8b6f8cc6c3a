"""Security descriptors and addresses of computers, put together here by hand."""

from __future__ import annotations

import struct
import time
import uuid
from typing import Any

import pytest

from msmqwire.errors import DecodeError
from msmqwire.propvariant.readable import Ace, addresses, security_descriptor

GUID = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")
DACL, SACL, SELF_RELATIVE = 0x4, 0x10, 0x8000


def sid(authority: int, *parts: int) -> bytes:
    return struct.pack(f">BBHI{4 * len(parts)}s", 1, len(parts), authority >> 32, authority & 0xFFFFFFFF,
                       struct.pack(f"<{len(parts)}I", *parts))  # fmt: skip


def ace(kind: int, flags: int, content: bytes) -> bytes:
    return struct.pack("<BBH", kind, flags, 4 + len(content)) + content


def acl(*entries: bytes, size: int | None = None) -> bytes:
    content = b"".join(entries)
    return struct.pack("<BBHHH", 2, 0, 8 + len(content) if size is None else size, len(entries), 0) + content


def descriptor(control: int, *parts: bytes) -> bytes:
    """Owner, group, SACL and DACL in this order; an empty or missing one has offset 0."""
    at, offsets = 20, []
    for part in (*parts, *[b""] * (4 - len(parts))):
        offsets.append(at if part else 0)
        at += len(part)
    return struct.pack("<BBH4I", 1, 0, control, *offsets) + b"".join(parts)


EVERYONE, ADMINISTRATORS = sid(1, 0), sid(5, 32, 544)
ENTRIES = acl(
    ace(0, 3, struct.pack("<I", 7) + EVERYONE),
    ace(1, 0, struct.pack("<I", 0xF003F) + ADMINISTRATORS),
    ace(2, 0x40, struct.pack("<I", 1) + sid(5, *range(15))),
    ace(3, 0, struct.pack("<I", 1) + sid(1 << 32, 9) + b"more of it"),
    ace(9, 1, b"of another form"),
)
ACES = (
    Ace("allow", 3, 7, "S-1-1-0"),
    Ace("deny", 0, 0xF003F, "S-1-5-32-544"),
    Ace("audit", 0x40, 1, "S-1-5-" + "-".join(map(str, range(15)))),
    Ace("alarm", 0, 1, "S-1-0x000100000000-9"),
    Ace("9", 1, None, None),
)


def test_every_part_of_a_descriptor() -> None:
    data = descriptor(DACL | SACL | SELF_RELATIVE, EVERYONE, ADMINISTRATORS, acl(), ENTRIES)
    assert security_descriptor(data) == ("S-1-1-0", "S-1-5-32-544", ACES, (), DACL | SACL | SELF_RELATIVE)
    assert security_descriptor(descriptor(0, b"", b"", b"", b"")) == (None, None, None, None, 0)


def test_entries_after_many_bytes_are_not_copied_for_each() -> None:
    """The time is that of the entries: it does not grow with the bytes before them, entry by entry."""
    entry = ace(0, 0, bytes(4) + EVERYONE)
    count, before = 3_000, b"\0" * (1 << 23)
    data = struct.pack("<BBH4I", 1, 0, DACL, 0, 0, 0, 20 + len(before)) + before + acl(*[entry] * count) + b"after"
    started = time.process_time()
    dacl = security_descriptor(data).dacl
    assert dacl is not None
    assert len(dacl) == count
    assert time.process_time() - started < 1


@pytest.mark.parametrize("control", [0, DACL, SACL, DACL | SACL, 0xFFFF - DACL - SACL, DACL + 1, SACL + 1])
def test_lists_need_their_flag_and_their_offset(control: int) -> None:
    found = security_descriptor(descriptor(control, b"", b"", ENTRIES, acl()))
    assert (found.sacl, found.dacl) == (ACES if control & SACL else None, () if control & DACL else None)
    found = security_descriptor(descriptor(control, b"", b"", b"", b""))
    assert (found.sacl, found.dacl) == (None, None)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (bytes(19), ("truncated", "SECURITY_DESCRIPTOR", 0)),
        (b"\2" + bytes(19), ("bad_version", "Revision", 0)),
        (descriptor(0, b"\2" + EVERYONE[1:]), ("bad_version", "OwnerSid", 20)),
        (descriptor(0, b"", sid(5, *range(16))), ("bad_count", "GroupSid", 21)),
        (descriptor(0, EVERYONE[:7]), ("truncated", "OwnerSid", 22)),
        (descriptor(0, EVERYONE[:-1]), ("truncated", "OwnerSid", 28)),
        (struct.pack("<BBH4I", 1, 0, 0, 0xFFFFFFFF, 0, 0, 0), ("truncated", "OwnerSid", 20)),
        (descriptor(DACL, b"", b"", b"", acl(size=7)), ("bad_size", "Dacl", 22)),
        (descriptor(SACL, b"", b"", acl(size=9)), ("bad_size", "Sacl", 22)),
        (descriptor(DACL, b"", b"", b"", acl(b"\0\0\3\0")), ("bad_size", "Dacl[0]", 30)),
        (descriptor(DACL, b"", b"", b"", acl(b"\0\0\5\0")), ("bad_size", "Dacl[0]", 30)),
        (descriptor(DACL, b"", b"", b"", acl(ace(9, 0, b""), b"\0\0\4")), ("truncated", "Dacl[1]", 32)),
        (descriptor(DACL, b"", b"", b"", acl(ace(0, 0, bytes(3)))), ("truncated", "Dacl[0]", 32)),
        (descriptor(DACL, b"", b"", b"", acl(ace(0, 0, bytes(4) + EVERYONE[:-1]))), ("truncated", "Dacl[0]", 44)),
    ],
)  # fmt: skip
def test_malformed_descriptors(data: bytes, fault: Any) -> None:
    with pytest.raises(DecodeError) as caught:
        security_descriptor(data)
    assert (caught.value.code, caught.value.field, caught.value.offset) == fault
    assert caught.value.detail


def address(kind: int, content: bytes, length: int | None = None) -> bytes:
    return struct.pack("<HH", len(content) if length is None else length, kind) + content


KNOWN = [
    (address(1, bytes((192, 168, 0, 1))), ("ip", "192.168.0.1")),
    (address(2, bytes((10, 0, 0, 255))), ("ip_ras", "10.0.0.255")),
    (address(3, bytes(range(10))), ("ipx", "00010203:040506070809")),
    (address(5, GUID.bytes_le), ("foreign", str(GUID))),
]


def test_addresses() -> None:
    assert addresses(b"") == ()
    assert addresses(b"".join(data for data, _ in KNOWN)) == tuple(expected for _, expected in KNOWN)
    after = KNOWN[0][0]
    for data, fault in (
        (b"\4\0\1", ("truncated", "TA_ADDRESS[1]", 8)),
        (address(4, bytes(4)), ("bad_type", "TA_ADDRESS[1]", 10)),
        (address(1, bytes(5)), ("bad_size", "TA_ADDRESS[1]", 8)),
        (address(3, bytes(9), 10), ("truncated", "TA_ADDRESS[1]", 12)),
    ):
        with pytest.raises(DecodeError) as caught:
            addresses(after + data)
        assert (caught.value.code, caught.value.field, caught.value.offset) == fault
        assert caught.value.detail
