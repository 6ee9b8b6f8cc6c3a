"""The oracle of MQSD ([MS-MQSD] 2.2): reads one packet at a time, with ``struct`` alone.

A packet that cannot be decoded gives a ``Fault``, one that breaks a MUST but can be decoded carries the
names of its violations. The fields are read in wire order and each check is made when its field is read, so
the first fault wins.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tests.reference.reader import Fault, MalformedError, Reader, Span

Transport = Literal["unknown", "udp", "ipx"]
TRANSPORTS: tuple[Transport, ...] = ("unknown", "udp", "ipx")

#: The order of the bits in a batch's ``violations`` column.
VIOLATIONS = (
    "version_nonzero",
    "reserved_nonzero",
    "ipx_fields_on_ip",
    "mask_nonzero_on_ip",
    "mask_count_mismatch",
    "trailing_bytes",
)

MAX_NETWORKS = 32
_NUL, _COMMA, _ZERO, _ONE = 0x0000, 0x002C, 0x0030, 0x0031


class Server(NamedTuple):
    """One entry of DirectoryServiceServerArray."""

    name: Span
    ip: bool = True
    ipx: bool = False


@dataclass(frozen=True)
class Request:
    """TopologyClientRequest ([MS-MQSD] 2.2.2); ``ipx_networks`` is None in the IP form."""

    enterprise_id: bytes
    request_id: bytes
    site_id: bytes
    ipx_networks: tuple[int, ...] | None = None
    version: int = 0
    reserved: int = 0
    trailing: Span | None = None
    violations: tuple[str, ...] = ()
    type: str = field(default="request", init=False)


@dataclass(frozen=True)
class Reply:
    """TopologyServerReply ([MS-MQSD] 2.2.3); without servers it has no ``responding_site_id`` either."""

    correlation_id: bytes
    connected_networks: tuple[bytes, ...]
    connected_network_mask: int = 0
    responding_site_id: bytes | None = None
    servers: tuple[Server, ...] | None = None
    version: int = 0
    reserved: int = 0
    trailing: Span | None = None
    violations: tuple[str, ...] = ()
    type: str = field(default="reply", init=False)


Packet = Request | Reply


#: The columns of the topology table but ``fault`` and ``violations``, in order.
COLUMNS = (
    "type",
    "version",
    "enterprise_id",
    "request_id",
    "site_id",
    "ipx_networks",
    "correlation_id",
    "connected_network_mask",
    "connected_networks",
    "responding_site_id",
    "servers",
    "trailing",
)


def rows(outcome: Packet | Fault | None) -> list[dict[str, Any]]:
    """The row of the topology table, with its nulls; None stands for a null payload."""
    row: dict[str, Any] = dict.fromkeys((*COLUMNS, "fault", "violations"))
    if isinstance(outcome, Fault):
        row["fault"] = outcome
    elif outcome is not None:
        row.update({name: getattr(outcome, name, None) for name in (*COLUMNS, "violations")})
    return [row]


def read(data: bytes, *, strict: bool = False, transport: Transport = "unknown") -> Packet | Fault:
    """The packet that the payload holds, or why it holds none."""
    if transport not in TRANSPORTS:
        raise ValueError(transport)
    try:
        return _read(Reader(bytes(data)), strict, transport)
    except MalformedError as error:
        return error.fault


def _read(reader: Reader, strict: bool, transport: Transport) -> Packet:
    """TopologyPacketHeader, 2.2.1; Version and Reserved are never a reason to discard."""
    version = reader.u8("Version")
    kind = reader.u8("Type")
    if kind not in (1, 2):
        raise MalformedError("bad_type", "Type", 1)
    reserved = reader.u16("Reserved")
    found = []
    if version != 0:
        found.append("version_nonzero")
    if reserved != 0:
        found.append("reserved_nonzero")
    packet = _read_request(reader, transport, found) if kind == 1 else _read_reply(reader, transport, strict, found)
    rest = reader.data[reader.position :]
    trailing = Span(reader.position, rest) if rest else None
    return replace(packet, version=version, reserved=reserved, trailing=trailing, violations=tuple(found))


def _read_request(reader: Reader, transport: Transport, found: list[str]) -> Request:
    """2.2.2 and 3.2.5.1: 60 bytes or more can hold IPX fields, where the transport may be IPX."""
    enterprise_id = reader.take("EnterpriseID", 16)
    request_id = reader.take("RequestID", 16)
    site_id = reader.take("SiteID", 16)
    if len(reader.data) < 60:
        return Request(enterprise_id, request_id, site_id)
    if transport == "udp":
        found.append("ipx_fields_on_ip")
        return Request(enterprise_id, request_id, site_id)
    count = reader.u32("IPXNetworkCount")
    if not 1 <= count <= MAX_NETWORKS:
        raise MalformedError("bad_count", "IPXNetworkCount", 52)
    networks = struct.unpack(f"<{count}I", reader.take("IPXNetworkNumberArray", 4 * count))
    return Request(enterprise_id, request_id, site_id, networks)


def _read_reply(reader: Reader, transport: Transport, strict: bool, found: list[str]) -> Reply:
    """2.2.3; the violations are judged when every field has been read."""
    correlation_id = reader.take("CorrelationID", 16)
    count = reader.u32("ConnectedNetworkCount")
    if not 1 <= count <= MAX_NETWORKS:
        raise MalformedError("bad_count", "ConnectedNetworkCount", 20)
    mask = reader.u32("ConnectedNetworkMask")
    size = reader.u32("DirectoryServiceServerSize")
    if size % 2 or 0 < size < 8:
        raise MalformedError("bad_size", "DirectoryServiceServerSize", 28)
    array = reader.take("ConnectedNetworkArray", 16 * count)
    networks = tuple(array[start : start + 16] for start in range(0, 16 * count, 16))
    site = servers = None
    if size:
        site = reader.take("RespondingSiteID", 16)
        start = reader.position
        servers = _read_servers(reader.take("DirectoryServiceServerArray", size), start)

    ones = bin(mask).count("1")
    if transport == "udp" and mask != 0:
        found.append("mask_nonzero_on_ip")
    if (transport == "ipx" and ones != count) or (transport == "unknown" and mask != 0 and ones != count):
        found.append("mask_count_mismatch")
    if strict and found and found[-1].startswith("mask"):
        raise MalformedError("bad_value", "ConnectedNetworkMask", 24)
    if reader.left:
        found.append("trailing_bytes")
        if strict:
            raise MalformedError("bad_size", "DirectoryServiceServerSize", reader.position)
    return Reply(correlation_id, networks, mask, site, servers)


def _read_servers(array: bytes, base: int) -> tuple[Server, ...]:
    """The ABNF of 2.2.3 on 16-bit code units; ``base`` is where the array stands in the payload."""
    units = struct.unpack(f"<{len(array) // 2}H", array)
    whole = "DirectoryServiceServerArray"
    end = base + len(array)
    servers: list[Server] = []
    at = 0

    def unit() -> int:
        if at >= len(units):
            raise MalformedError("bad_terminator", whole, end)
        return int(units[at])

    while True:
        entry = f"{whole}[{len(servers)}]"
        flags = []
        for _ in range(2):
            if unit() not in (_ZERO, _ONE):
                raise MalformedError("bad_flag", entry, base + 2 * at)
            flags.append(unit() == _ONE)
            at += 1
        first = at
        if unit() in (_NUL, _COMMA):
            raise MalformedError("bad_name", entry, base + 2 * at)
        while unit() not in (_NUL, _COMMA):
            at += 1
        servers.append(Server(Span(base + 2 * first, array[2 * first : 2 * at]), *flags))
        if unit() == _NUL:
            if at != len(units) - 1:
                raise MalformedError("bad_terminator", whole, base + 2 * at)
            return tuple(servers)
        at += 1
