"""MS-MQSD packets one at a time: [MS-MQSD] 2.2. The layout and the kernel are in codec.pxd."""

from typing import NamedTuple

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from msmqwire.columns.payloads cimport address, steady_bytes
from msmqwire.wire.fault cimport BAD_FLAG, BAD_NAME, BAD_TERMINATOR, BAD_TYPE, decode_error
from msmqwire.wire.guid cimport guid_from_bytes, guid_to_bytes

import numpy as np

from msmqwire.errors import EncodeError
from msmqwire.mqsd.schema import FIELDS, Violation

__all__ = ["DirectoryServiceServer", "TopologyClientRequest", "TopologyServerReply", "decode", "encode"]

TRANSPORTS = {"unknown": TRANSPORT_UNKNOWN, "udp": TRANSPORT_UDP, "ipx": TRANSPORT_IPX}

# What a packet reads before it has bytes of its own: __new__ can be called without __init__
cdef uint8_t[64] NO_PACKET
memset(NO_PACKET, 0, sizeof(NO_PACKET))

cdef ServerColumns NO_COLUMNS
NO_COLUMNS.names = NULL
NO_COLUMNS.ip = NULL
NO_COLUMNS.ipx = NULL


# --- Cold paths: the payload is at fault; where? ---


cdef int header_fault(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    if size == 0:
        return set_fault(fault, TRUNCATED, FIELD_VERSION, 0, 1, 0)
    if size == 1:
        return set_fault(fault, TRUNCATED, FIELD_TYPE, 1, 1, 0)
    if data[1] != REQUEST and data[1] != REPLY:
        return set_fault(fault, BAD_TYPE, FIELD_TYPE, 1, 0, data[1])
    return set_fault(fault, TRUNCATED, FIELD_RESERVED, 2, 2, size - 2)


cdef int request_cut(size_t size, Fault* fault) noexcept nogil:
    if size < 20:
        return set_fault(fault, TRUNCATED, FIELD_ENTERPRISE_ID, 4, 16, size - 4)
    if size < 36:
        return set_fault(fault, TRUNCATED, FIELD_REQUEST_ID, 20, 16, size - 20)
    return set_fault(fault, TRUNCATED, FIELD_SITE_ID, 36, 16, size - 36)


cdef int reply_cut(const uint8_t* data, size_t size, Fault* fault) noexcept nogil:
    """Walk the fixed fields of a reply in wire order to the one at fault; there is one."""
    cdef uint32_t count
    cdef uint32_t servers_size
    cdef size_t at
    if size < 20:
        return set_fault(fault, TRUNCATED, FIELD_CORRELATION_ID, 4, 16, size - 4)
    if size < 24:
        return set_fault(fault, TRUNCATED, FIELD_CONNECTED_NETWORK_COUNT, 20, 4, size - 20)
    count = load_u32(data + 20)
    if count == 0 or count > MAX_NETWORKS:
        return set_fault(fault, BAD_COUNT, FIELD_CONNECTED_NETWORK_COUNT, 20, MAX_NETWORKS, count)
    if size < 28:
        return set_fault(fault, TRUNCATED, FIELD_CONNECTED_NETWORK_MASK, 24, 4, size - 24)
    if size < 32:
        return set_fault(fault, TRUNCATED, FIELD_DIRECTORY_SERVICE_SERVER_SIZE, 28, 4, size - 28)
    servers_size = load_u32(data + 28)
    if servers_size & 1 or 0 < servers_size < SMALLEST_SERVER_ARRAY:
        # Whole code units, and at least those of one entry
        return set_fault(
            fault, BAD_SIZE, FIELD_DIRECTORY_SERVICE_SERVER_SIZE, 28,
            max(<uint64_t>servers_size + (servers_size & 1), <uint64_t>SMALLEST_SERVER_ARRAY), servers_size,
        )
    at = REPLY_FIXED_SIZE
    if 16 * <size_t>count > size - at:
        return set_fault(fault, TRUNCATED, FIELD_CONNECTED_NETWORK_ARRAY, at, 16 * <uint64_t>count, size - at)
    at += 16 * <size_t>count
    if 16 > size - at:
        return set_fault(fault, TRUNCATED, FIELD_RESPONDING_SITE_ID, at, 16, size - at)
    at += 16
    return set_fault(fault, TRUNCATED, FIELD_DIRECTORY_SERVICE_SERVER_ARRAY, at, servers_size, size - at)


cdef int server_array_fault(const uint8_t* array, size_t size, size_t at, Fault* fault) noexcept nogil:
    """Read code unit by code unit, as the ABNF of [MS-MQSD] 2.2.3 says, to the one that breaks it."""
    cdef size_t units = size // 2
    cdef size_t i
    cdef size_t place = 0  # in the entry: 0 IP flag, 1 IPX flag, 2 first of the name, 3 the rest
    cdef uint32_t entry = 0
    cdef uint16_t unit
    for i in range(units):
        unit = load_u16(array + 2 * i)
        if place < 2:
            if unit != 0x30 and unit != 0x31:
                set_fault(fault, BAD_FLAG, FIELD_DIRECTORY_SERVICE_SERVER_ARRAY, at + 2 * i, 0, unit)
                fault.item = entry
                return -1
            place += 1
        elif place == 2:
            if unit == 0 or unit == COMMA:
                set_fault(fault, BAD_NAME, FIELD_DIRECTORY_SERVICE_SERVER_ARRAY, at + 2 * i, 0, unit)
                fault.item = entry
                return -1
            place = 3
        elif unit == COMMA:
            place = 0
            entry += 1
        elif unit == 0:
            return set_fault(fault, BAD_TERMINATOR, FIELD_DIRECTORY_SERVICE_SERVER_ARRAY, at + 2 * i, size, 2 * i)
    return set_fault(fault, BAD_TERMINATOR, FIELD_DIRECTORY_SERVICE_SERVER_ARRAY, at + size, size, size)


cdef int violation_fault(
    uint32_t violations, const uint8_t* data, size_t size, size_t described, Fault* fault
) noexcept nogil:
    """The lowest violation for which a conforming receiver discards the packet, as a fault."""
    if violations & (MASK_NONZERO_ON_IP | MASK_COUNT_MISMATCH):
        return set_fault(fault, BAD_VALUE, FIELD_CONNECTED_NETWORK_MASK, 24, 0, load_u32(data + 24))
    return set_fault(fault, BAD_SIZE, FIELD_DIRECTORY_SERVICE_SERVER_SIZE, described, described, size)


# --- Packets ---


class DirectoryServiceServer(NamedTuple):
    """One entry of a DirectoryServiceServerArray."""

    name: str
    ip: bool = True
    ipx: bool = False


cdef class TopologyPacket:
    """A packet over the bytes it was decoded from; fields are read when asked for."""
    cdef object owner            # keeps the bytes alive
    cdef const uint8_t* data
    cdef Topology header
    cdef str transport

    def __cinit__(self, *args, **kwargs):
        self.owner = b""
        self.data = NO_PACKET
        self.header.networks = NO_PACKET
        self.header.servers = NO_PACKET

    def __init__(self):
        raise TypeError("decode() makes packets; to write one, build a TopologyClientRequest or TopologyServerReply")

    @property
    def version(self):
        return self.data[0]

    @property
    def reserved(self):
        return load_u16(self.data + 2)

    @property
    def violations(self):
        return tuple(flag.name.lower() for flag in Violation if self.header.violations & <uint32_t>flag)

    cdef bytes described(self):
        return self.data[:self.header.described]

    cdef object array(self, const uint8_t* start, object dtype, size_t count):
        # The owner's buffer begins where the packet does
        return np.frombuffer(self.owner, dtype, <Py_ssize_t>count, <Py_ssize_t>(start - self.data))

    def __eq__(self, other):
        if not isinstance(other, TopologyPacket):
            return NotImplemented
        return (
            self.header.violations == (<TopologyPacket>other).header.violations
            and self.described() == (<TopologyPacket>other).described()
        )

    def __hash__(self):
        return hash((self.header.violations, self.described()))


cdef class TopologyClientRequest(TopologyPacket):
    def __init__(self, *, enterprise_id, request_id, site_id, ipx_networks=()):
        networks = encodable_ipx_networks(ipx_networks)
        cdef uint8_t[48] guids
        guid_to_bytes(enterprise_id, "EnterpriseID", guids)
        guid_to_bytes(request_id, "RequestID", guids + 16)
        guid_to_bytes(site_id, "SiteID", guids + 32)
        cdef uint32_t count = <uint32_t>(len(networks) // 4)
        cdef bytes packed = PyBytes_FromStringAndSize(NULL, IPX_NETWORKS_AT + len(networks))
        cdef size_t size = write_request(
            <uint8_t*>PyBytes_AS_STRING(packed), guids, guids + 16, guids + 32, <const uint8_t*>networks, count
        )
        attach(self, packed[:size])

    @property
    def type(self):
        return "request"

    @property
    def enterprise_id(self):
        return guid_from_bytes(self.data + 4)

    @property
    def request_id(self):
        return guid_from_bytes(self.data + 20)

    @property
    def site_id(self):
        return guid_from_bytes(self.data + 36)

    @property
    def ipx_networks(self):
        if self.header.network_count == 0:
            return np.empty(0, np.uint32)
        return self.array(self.header.networks, "<u4", self.header.network_count)

    def __repr__(self):
        ipx = f", ipx_networks={self.ipx_networks.tolist()}" if self.header.network_count else ""
        return (
            f"TopologyClientRequest(enterprise_id={self.enterprise_id!r}, request_id={self.request_id!r}, "
            f"site_id={self.site_id!r}{ipx})"
        )

    def __reduce__(self):
        return restore, (bytes(self.owner), self.transport)


cdef class TopologyServerReply(TopologyPacket):
    def __init__(
        self, *, correlation_id, connected_networks, connected_network_mask=0, responding_site_id=None, servers=()
    ):
        cdef uint8_t[32] guids
        cdef bytes networks = encodable_networks(connected_networks)
        cdef bytes array = encodable_servers(servers, responding_site_id)
        cdef uint32_t count = <uint32_t>(len(networks) // 16)
        cdef uint32_t mask = encodable_mask(connected_network_mask, count)
        guid_to_bytes(correlation_id, "CorrelationID", guids)
        if array:
            guid_to_bytes(responding_site_id, "RespondingSiteID", guids + 16)
        cdef Py_ssize_t size = REPLY_FIXED_SIZE + len(networks) + (16 + len(array) if array else 0)
        cdef bytes packed = PyBytes_FromStringAndSize(NULL, size)
        cdef uint8_t* target = <uint8_t*>PyBytes_AS_STRING(packed)
        target += write_reply(target, guids, <const uint8_t*>networks, count, mask, <uint32_t>len(array))
        if array:
            memcpy(target, guids + 16, 16)
            memcpy(target + 16, <const uint8_t*>array, <size_t>len(array))
        attach(self, packed)

    @property
    def type(self):
        return "reply"

    @property
    def correlation_id(self):
        return guid_from_bytes(self.data + 4)

    @property
    def connected_network_mask(self):
        return load_u32(self.data + 24)

    @property
    def connected_networks(self):
        return self.array(self.header.networks, np.uint8, 16 * <size_t>self.header.network_count).reshape(-1, 16)

    @property
    def responding_site_id(self):
        return guid_from_bytes(self.header.servers - 16) if self.header.servers_size else None

    @property
    def servers(self):
        if not self.header.servers_size:
            return ()
        array = self.header.servers[:self.header.servers_size - 2].decode("utf-16-le", "surrogatepass")
        return tuple(
            DirectoryServiceServer(entry[2:], entry[0] == "1", entry[1] == "1") for entry in array.split(",")
        )

    def __repr__(self):
        remote = ""
        if self.header.servers_size:
            remote = f", responding_site_id={self.responding_site_id!r}, servers={self.servers!r}"
        mask = f", connected_network_mask={self.connected_network_mask:#x}" if self.connected_network_mask else ""
        networks = ", ".join(repr(guid_from_bytes(row)) for row in map(bytes, self.connected_networks))
        return (
            f"TopologyServerReply(correlation_id={self.correlation_id!r}, "
            f"connected_networks=[{networks}]{mask}{remote})"
        )

    def __reduce__(self):
        return restore, (bytes(self.owner), self.transport)


cdef int attach(TopologyPacket packet, bytes data) except -1:
    """Give a packet under construction the bytes just written for it."""
    cdef size_t entry = 0
    cdef Fault fault
    packet.owner = data
    packet.transport = "unknown"
    packet.data = <const uint8_t*>PyBytes_AS_STRING(data)
    if read_topology(
        packet.data, <size_t>len(data), TRANSPORT_UNKNOWN, True, &NO_COLUMNS, &entry, &packet.header, &fault
    ) != 0:
        raise decode_error(&fault, FIELDS)
    return 0


def decode(data, *, bint strict=False, str transport="unknown"):
    cdef TopologyPacket packet
    cdef Topology header
    cdef size_t entry = 0
    cdef Fault fault
    cdef const uint8_t* start
    cdef size_t size
    cdef uint32_t code = transport_code(transport)
    if PyBytes_CheckExact(data):
        owner = data
        start = <const uint8_t*>PyBytes_AS_STRING(data)
        size = <size_t>PyBytes_GET_SIZE(data)
    else:
        owner, size = steady_bytes(data)
        start = address(owner)
    if read_topology(start, size, code, strict, &NO_COLUMNS, &entry, &header, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    if header.type == REQUEST:
        packet = TopologyClientRequest.__new__(TopologyClientRequest)
    else:
        packet = TopologyServerReply.__new__(TopologyServerReply)
    packet.owner = owner
    packet.transport = transport
    packet.data = start
    packet.header = header
    return packet


def encode(TopologyPacket packet not None):
    if packet.header.described == 0:
        raise EncodeError("Type", "the packet was never built")
    if packet.header.violations:
        raise EncodeError(violated_field(packet.header.violations), f"the packet has {', '.join(packet.violations)}")
    return packet.described()


cdef str violated_field(uint32_t violations):
    if violations & VERSION_NONZERO:
        return "Version"
    if violations & RESERVED_NONZERO:
        return "Reserved"
    if violations & IPX_FIELDS_ON_IP:
        return "IPXNetworkCount"
    if violations & (MASK_NONZERO_ON_IP | MASK_COUNT_MISMATCH):
        return "ConnectedNetworkMask"
    return "DirectoryServiceServerSize"


def restore(bytes data, str transport):
    """Unpickle a packet: what it says depends on its bytes and on the transport they came over."""
    return decode(data, transport=transport)


cdef uint32_t transport_code(str transport) except? 0xFFFFFFFF:
    code = TRANSPORTS.get(transport)
    if code is None:
        raise ValueError(f"transport={transport!r} is not one of {', '.join(map(repr, TRANSPORTS))}")
    return code


# --- What the specification lets an encoder write ---


cdef bytes encodable_ipx_networks(object networks):
    numbers = np.asarray(networks, dtype=object).ravel()
    if len(numbers) > MAX_NETWORKS:
        raise EncodeError("IPXNetworkCount", f"is {len(numbers)}, at most {MAX_NETWORKS}")
    for number in numbers:
        if not isinstance(number, (int, np.integer)) or not 0 <= number <= 0xFFFFFFFF:
            raise EncodeError("IPXNetworkNumberArray", f"{number!r} is not an unsigned 32-bit integer")
    return numbers.astype("<u4").tobytes()


cdef bytes encodable_networks(object networks):
    """ConnectedNetworkArray of UUIDs, or of an (n, 16) array of uint8 in wire order."""
    cdef uint8_t[16] guid
    if isinstance(networks, np.ndarray):
        if networks.dtype != np.uint8 or networks.ndim != 2 or networks.shape[1] != 16:
            raise EncodeError("ConnectedNetworkArray", "an array must be of uint8 with shape (n, 16)")
        packed = networks.tobytes()
    else:
        parts = []
        for network in networks:
            guid_to_bytes(network, "ConnectedNetworkArray", guid)
            parts.append(guid[:16])
        packed = b"".join(parts)
    if not 1 <= len(packed) // 16 <= MAX_NETWORKS:
        raise EncodeError("ConnectedNetworkCount", f"is {len(packed) // 16}, must be 1 to {MAX_NETWORKS}")
    return packed


cdef uint32_t encodable_mask(object mask, uint32_t count) except? 0xFFFFFFFF:
    if not isinstance(mask, (int, np.integer)) or not 0 <= mask <= 0xFFFFFFFF:
        raise EncodeError("ConnectedNetworkMask", f"{mask!r} is not an unsigned 32-bit integer")
    if mask and wire_popcount(mask) != count:
        raise EncodeError(
            "ConnectedNetworkMask", f"has {wire_popcount(mask)} bits set for {count} networks; it must be 0 over IP"
        )
    return mask


cdef bytes encodable_servers(object servers, object responding_site_id):
    entries = []
    for server in servers:
        name, ip, ipx = server
        if not isinstance(name, str) or not name or "," in name or "\0" in name:
            raise EncodeError(
                f"DirectoryServiceServerArray[{len(entries)}]",
                f"{name!r} must be text of one or more code units without U+0000 and U+002C",
            )
        entries.append(f"{'1' if ip else '0'}{'1' if ipx else '0'}{name}")
    if bool(entries) != (responding_site_id is not None):
        raise EncodeError(
            "RespondingSiteID",
            "goes together with servers: give both when the server is in another site, neither when it is the client's",
        )
    return (",".join(entries) + "\0").encode("utf-16-le", "surrogatepass") if entries else b""
