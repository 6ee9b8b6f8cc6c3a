"""The oracle of MQSD ([MS-MQSD] 2.2): reads and writes one packet at a time, with ``struct`` alone.

A packet that cannot be decoded gives a ``Fault``, one that breaks a MUST but can be decoded carries the
names of its violations. The fields are read in wire order and each check is made when its field is read, so
the first fault wins.
"""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

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


class Fault(NamedTuple):
    """Why a payload cannot be decoded: what, in which field, at which byte."""

    code: str
    field: str
    offset: int


class MalformedError(Exception):
    """Carries the first fault out of the reader."""

    def __init__(self, code: str, field_name: str, offset: int) -> None:
        super().__init__(code, field_name, offset)
        self.fault = Fault(code, field_name, offset)


class Server(NamedTuple):
    """One entry of DirectoryServiceServerArray; ``offset`` and ``units`` tell where its name stands."""

    name: str
    ip: bool = True
    ipx: bool = False
    offset: int = -1
    units: int = -1


@dataclass(frozen=True)
class Request:
    """TopologyClientRequest ([MS-MQSD] 2.2.2); ``ipx_networks`` is None in the IP form."""

    enterprise_id: bytes
    request_id: bytes
    site_id: bytes
    ipx_networks: tuple[int, ...] | None = None
    version: int = 0
    reserved: int = 0
    trailing: bytes | None = None
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
    trailing: bytes | None = None
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


def row(outcome: Packet | Fault | None) -> dict[str, Any]:
    """The row of the topology table: plain values, None where the packet does not carry the column.

    None stands for a null payload; ``violations`` is None in the row of a fault.
    """
    values: dict[str, Any] = dict.fromkeys((*COLUMNS, "fault", "violations"))
    if isinstance(outcome, Fault):
        values["fault"] = outcome._asdict()
    elif outcome is not None:
        values["violations"] = list(outcome.violations)
        for name in COLUMNS:
            value = getattr(outcome, name, None)
            if isinstance(value, bytes) and name != "trailing":
                value = uuid.UUID(bytes_le=value)
            elif name == "ipx_networks" and value is not None:
                value = list(value)
            elif name == "connected_networks" and value is not None:
                value = [uuid.UUID(bytes_le=network) for network in value]
            elif name == "servers" and value is not None:
                value = [{"name": server.name, "ip": server.ip, "ipx": server.ipx} for server in value]
            values[name] = value
    return values


class Reader:
    """Takes fields off the front of a payload; a field that is not there whole is ``truncated``."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0
        self.taken: list[tuple[str, int, int]] = []  # name, offset and size of each field

    @property
    def left(self) -> int:
        return len(self.data) - self.position

    def take(self, name: str, size: int) -> bytes:
        if size > self.left:
            raise MalformedError("truncated", name, self.position)
        start, self.position = self.position, self.position + size
        self.taken.append((name, start, size))
        return self.data[start : self.position]

    def u8(self, name: str) -> int:
        value: int = struct.unpack("<B", self.take(name, 1))[0]
        return value

    def u16(self, name: str) -> int:
        value: int = struct.unpack("<H", self.take(name, 2))[0]
        return value

    def u32(self, name: str) -> int:
        value: int = struct.unpack("<I", self.take(name, 4))[0]
        return value


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
    if kind == 1:
        request = _read_request(reader, transport, found)
        rest = reader.data[reader.position :] or None
        return replace(request, version=version, reserved=reserved, trailing=rest, violations=tuple(found))
    reply = _read_reply(reader, transport, strict, found)
    rest = reader.data[reader.position :] or None
    return replace(reply, version=version, reserved=reserved, trailing=rest, violations=tuple(found))


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
        name = array[2 * first : 2 * at].decode("utf-16-le", "surrogatepass")
        servers.append(Server(name, flags[0], flags[1], base + 2 * first, at - first))
        if unit() == _NUL:
            if at != len(units) - 1:
                raise MalformedError("bad_terminator", whole, base + 2 * at)
            return tuple(servers)
        at += 1


def write(packet: Packet) -> bytes:
    """The bytes of a packet; ``ValueError`` for what the specification forbids."""
    if packet.violations or packet.version or packet.reserved:
        raise ValueError("a packet with violations is not written")
    return _write_request(packet) if isinstance(packet, Request) else _write_reply(packet)


def _write_request(packet: Request) -> bytes:
    ids = struct.pack("<BBH16s16s16s", 0, 1, 0, packet.enterprise_id, packet.request_id, packet.site_id)
    if packet.ipx_networks is None:
        return ids
    if not 1 <= len(packet.ipx_networks) <= MAX_NETWORKS:
        raise ValueError("IPXNetworkCount")
    return ids + struct.pack(f"<I{len(packet.ipx_networks)}I", len(packet.ipx_networks), *packet.ipx_networks)


def _write_reply(packet: Reply) -> bytes:
    count, mask = len(packet.connected_networks), packet.connected_network_mask
    if not 1 <= count <= MAX_NETWORKS:
        raise ValueError("ConnectedNetworkCount")
    if mask and bin(mask).count("1") != count:
        raise ValueError("ConnectedNetworkMask")
    if bool(packet.servers) != (packet.responding_site_id is not None):
        raise ValueError("RespondingSiteID")
    array = write_servers(packet.servers) if packet.servers else b""
    head = struct.pack("<BBH16sIII", 0, 2, 0, packet.correlation_id, count, mask, len(array))
    return head + b"".join(packet.connected_networks) + (packet.responding_site_id or b"") + array


def write_servers(servers: tuple[Server, ...]) -> bytes:
    """DirectoryServiceServerArray: entries between commas, closed by one null."""
    entries = []
    for server in servers:
        if not server.name or "\0" in server.name or "," in server.name:
            raise ValueError("DirectoryServiceServerArray")
        entries.append(f"{server.ip:d}{server.ipx:d}{server.name}")
    return (",".join(entries) + "\0").encode("utf-16-le", "surrogatepass")
