"""Property values that hold structures of their own, in a form that people read.

PROPID_Q_SECURITY, PROPID_QM_SECURITY and their like hold a self-relative SECURITY_DESCRIPTOR ([MS-DTYP] 2.4.6), and
PROPID_QM_ADDRESS a packed array of TA_ADDRESS ([MS-MQMQ] 2.2.4).
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from msmqwire.errors import DecodeError
from msmqwire.wire._sid import LARGEST_SUB_AUTHORITY_COUNT, sid_text

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Ace", "SecurityDescriptor", "TransportAddress", "addresses", "security_descriptor"]

_ACE_TYPES = {0: "allow", 1: "deny", 2: "audit", 3: "alarm"}
_ADDRESS_TYPES = {1: ("ip", 4), 2: ("ip_ras", 4), 3: ("ipx", 10), 5: ("foreign", 16)}
_DACL_PRESENT, _SACL_PRESENT = 0x0004, 0x0010


class Ace(NamedTuple):
    """One entry of an access control list: [MS-DTYP] 2.4.4.

    ``type`` is ``"allow"``, ``"deny"``, ``"audit"`` or ``"alarm"``. Of types that MSMQ properties do not have it is the
    number, and ``mask`` and ``sid`` are None.
    """

    type: str
    flags: int
    mask: int | None
    sid: str | None


class SecurityDescriptor(NamedTuple):
    """Who owns an object and who may do what with it: [MS-DTYP] 2.4.6.

    ``dacl`` is None where there is none, which lets everybody do everything; an empty one lets nobody do anything.
    """

    owner: str | None
    group: str | None
    dacl: tuple[Ace, ...] | None
    sacl: tuple[Ace, ...] | None
    control: int


class TransportAddress(NamedTuple):
    """One address of a computer: [MS-MQMQ] 2.2.4; ``type`` is ``"ip"``, ``"ip_ras"``, ``"ipx"`` or ``"foreign"``."""

    type: str
    address: str


def _read(form: str, data: memoryview, at: int, field: str) -> tuple[int, ...]:
    size, at = struct.calcsize(form), min(at, len(data))  # an offset in the structure may lead anywhere
    if size > len(data) - at:
        raise DecodeError("truncated", field, at, f"needs {size} bytes, {len(data) - at} left")
    return struct.unpack_from(form, data, at)


def _sid(data: memoryview, at: int, field: str) -> str:
    """The text of a SID: [MS-DTYP] 2.4.2."""
    revision, count = _read("<BB", data, at, field)
    if revision != 1:
        raise DecodeError("bad_version", field, at, f"is {revision}, must be 1")
    if count > LARGEST_SUB_AUTHORITY_COUNT:
        raise DecodeError("bad_count", field, at + 1, f"is {count}, at most {LARGEST_SUB_AUTHORITY_COUNT}")
    _read("6x", data, at + 2, field)
    _read(f"{4 * count}x", data, at + 8, field)
    return str(sid_text(bytes(data[at : at + 8 + 4 * count])))


def _ace(data: memoryview, at: int, end: int, field: str) -> tuple[Ace, int]:
    """One entry, and where it ends."""
    kind, flags, size = _read("<BBH", data[:end], at, field)
    if size < 4 or size > end - at:
        raise DecodeError("bad_size", field, at + 2, f"is {size}, {end - at} bytes left")
    if kind not in _ACE_TYPES:
        return Ace(str(kind), flags, None, None), at + size
    inside = data[: at + size]
    (mask,) = _read("<I", inside, at + 4, field)
    return Ace(_ACE_TYPES[kind], flags, mask, _sid(inside, at + 8, field)), at + size


def _acl(data: memoryview, at: int, field: str) -> tuple[Ace, ...]:
    """An access control list: [MS-DTYP] 2.4.5."""
    _, _, size, count, _ = _read("<BBHHH", data, at, field)
    if size < 8 or size > len(data) - at:
        raise DecodeError("bad_size", field, at + 2, f"is {size}, {len(data) - at} bytes left")
    end, at = at + size, at + 8
    found = []
    for i in range(count):
        ace, at = _ace(data, at, end, f"{field}[{i}]")
        found.append(ace)
    return tuple(found)


def security_descriptor(value: Buffer) -> SecurityDescriptor:
    """Read a self-relative SECURITY_DESCRIPTOR: [MS-DTYP] 2.4.6.

    Parameters
    ----------
    value : bytes-like
        The value of PROPID_Q_SECURITY or another security property, as ``decode`` gives it.

    Raises
    ------
    DecodeError
        With field and offset in the value.

    Examples
    --------
    >>> security_descriptor(bytes.fromhex(
    ...     "0100048014000000000000000000000020000000010100000000000512000000"
    ...     "0200200001000000000018003f000f0001020000000000052000000020020000"
    ... )).dacl
    (Ace(type='allow', flags=0, mask=983103, sid='S-1-5-32-544'),)
    """
    data = memoryview(bytes(value))
    revision, _, control, owner, group, sacl, dacl = _read("<BBHIIII", data, 0, "SECURITY_DESCRIPTOR")
    if revision != 1:
        raise DecodeError("bad_version", "Revision", 0, f"is {revision}, must be 1")
    return SecurityDescriptor(
        _sid(data, owner, "OwnerSid") if owner else None,
        _sid(data, group, "GroupSid") if group else None,
        _acl(data, dacl, "Dacl") if dacl and control & _DACL_PRESENT else None,
        _acl(data, sacl, "Sacl") if sacl and control & _SACL_PRESENT else None,
        control,
    )


def addresses(value: Buffer) -> tuple[TransportAddress, ...]:
    """Read a packed array of TA_ADDRESS: [MS-MQMQ] 2.2.4.

    Parameters
    ----------
    value : bytes-like
        The value of PROPID_QM_ADDRESS, as ``decode`` gives it.

    Raises
    ------
    DecodeError
        With field and offset in the value.

    Examples
    --------
    >>> addresses(bytes.fromhex("04000100c0a80001"))
    (TransportAddress(type='ip', address='192.168.0.1'),)
    """
    data = memoryview(bytes(value))
    found: list[TransportAddress] = []
    at = 0
    while at < len(data):
        field = f"TA_ADDRESS[{len(found)}]"
        length, kind = _read("<HH", data, at, field)
        if kind not in _ADDRESS_TYPES:
            raise DecodeError("bad_type", field, at + 2, f"is 0x{kind:04x}")
        name, size = _ADDRESS_TYPES[kind]
        if length != size:
            raise DecodeError("bad_size", field, at, f"is {length}, must be {size} for this type")
        if length > len(data) - at - 4:
            raise DecodeError("truncated", field, at + 4, f"needs {length} bytes, {len(data) - at - 4} left")
        found.append(TransportAddress(name, _address(name, bytes(data[at + 4 : at + 4 + length]))))
        at += 4 + length
    return tuple(found)


def _address(name: str, address: bytes) -> str:
    if name == "ipx":
        return f"{address[:4].hex()}:{address[4:].hex()}"
    if name == "foreign":
        return str(UUID(bytes_le=address))
    return str(IPv4Address(address))
