"""MS-MQSD packets one at a time: [MS-MQSD] 2.2. The layout and the kernel are in _kernel.pxd."""

from collections.abc import Mapping
from inspect import signature

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from msmqwire.columns._convert cimport TextSpan
from msmqwire.columns._packet cimport WirePacket
from msmqwire.columns._payloads cimport hold_payload
from msmqwire.mqsd._kernel cimport (
    CONNECTED_NETWORK_MASK_AT, CORRELATION_ID_AT, ENTERPRISE_ID_AT, HAS_REQUEST, HAS_TRAILING, IPX_NETWORKS,
    IPX_NETWORKS_AT, MAX_NETWORKS, NETWORKS, REPLY_FIXED_SIZE, REQUEST_ID_AT, RESERVED_AT, SERVERS, SITE_ID_AT,
    TRAILING, ServerColumns, Topology, clear_topology, read_topology, write_reply, write_request,
)
from msmqwire.wire.cursor cimport load_u16, load_u32
from msmqwire.wire._fault cimport Fault, decode_error
from msmqwire.wire._guid cimport guid_from_bytes, guid_to_bytes
from msmqwire.wire.simd cimport wire_popcount
from msmqwire.wire._transport cimport Transport, accepted_transports, transport_code

import numpy as np

from msmqwire.errors import EncodeError
from msmqwire.mqsd.schema import FIELDS, TOPOLOGY, TRANSPORTS, Violation
from msmqwire.mqsd.values import DirectoryServiceServer

if False:  # for type checkers: see stubs.py
    from collections.abc import Iterable, Sequence
    from typing import Any, Literal
    from uuid import UUID

    from numpy.typing import NDArray
    from typing_extensions import Buffer

    from msmqwire.mqsd.values import TransportName

cdef dict ACCEPTED = accepted_transports(TRANSPORTS)

# The bytes of a packet before __init__, which need not be called
cdef uint8_t[64] NO_PACKET
memset(NO_PACKET, 0, sizeof(NO_PACKET))

cdef ServerColumns NO_COLUMNS
NO_COLUMNS.names = NULL
NO_COLUMNS.ip = NULL
NO_COLUMNS.ipx = NULL


# --- Packets ---


cdef class TopologyPacket(WirePacket):
    """The base class of requests and replies: [MS-MQSD] 2.2.1.

    A packet compares, hashes, prints and pickles as a value, of which the bytes after its last field are no part. It
    keeps the bytes it was decoded from alive.
    """

    table = TOPOLOGY
    cdef object owner            # keeps the bytes alive
    cdef const uint8_t* data
    cdef Topology header
    cdef str transport

    def __cinit__(self, *args, **kwargs):
        self.owner = b""
        self.data = NO_PACKET
        clear_topology(&self.header)
        self.header.items[NETWORKS] = NO_PACKET
        self.header.items[SERVERS] = NO_PACKET
        self.header.described = 0

    __signature__ = signature(lambda: None)

    def __init__(self):
        raise TypeError("decode() makes packets; to write one, build a TopologyClientRequest or TopologyServerReply")

    @property
    def version(self) -> int:
        """Version; 0 in a conforming packet, ignored by receivers."""
        return self.data[0]

    @property
    def reserved(self) -> int:
        """Reserved; 0 in a conforming packet, ignored by receivers."""
        return load_u16(self.data + RESERVED_AT)

    @property
    def trailing(self) -> memoryview | None:
        """The bytes after the last field, as a view, or None. A server ignores such bytes in a request."""
        cdef TextSpan part = self.header.parts[TRAILING]
        if not self.header.presence & HAS_TRAILING:
            return None
        return memoryview(self.owner)[part.offset:<size_t>part.offset + part.length]

    @property
    def violations(self) -> tuple[str, ...]:
        """Names of the rules that the packet breaks; empty for a conforming one."""
        return tuple(flag.name.lower() for flag in Violation if self.header.violations & <uint32_t>flag)

    cdef bytes described(self):
        return self.data[:self.header.described]

    cdef object array(self, const uint8_t* start, object dtype, size_t count):
        # The owner's buffer begins where the packet does
        return np.frombuffer(self.owner, dtype, <Py_ssize_t>count, <Py_ssize_t>(start - self.data))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopologyPacket):
            return NotImplemented
        return (
            self.header.violations == (<TopologyPacket>other).header.violations
            and self.described() == (<TopologyPacket>other).described()
        )

    def __hash__(self) -> int:
        return hash((self.header.violations, self.described()))

    def __reduce__(self):
        return restore, (bytes(self.owner), self.transport)

    cdef tuple payload(self):
        return bytes(self.owner), {"transport": self.transport}


cdef class TopologyClientRequest(TopologyPacket):
    """A client asks for the directory servers of its enterprise: [MS-MQSD] 2.2.2.

    Parameters
    ----------
    enterprise_id, request_id, site_id : uuid.UUID or its text
    ipx_networks : sequence of int, optional
        At most 32 IPX network numbers; none for the IP form.

    Raises
    ------
    EncodeError
        A value that the specification does not let a client send.

    Examples
    --------
    >>> from uuid import UUID
    >>> request = TopologyClientRequest(enterprise_id=UUID(int=1), request_id=UUID(int=2), site_id=UUID(int=3))
    >>> len(encode(request))
    52
    """

    __signature__ = signature(lambda *, enterprise_id, request_id, site_id, ipx_networks=(): None)

    def __init__(
        self, *, enterprise_id: UUID | str, request_id: UUID | str, site_id: UUID | str,
        ipx_networks: Sequence[int] | NDArray[np.integer] = ()
    ) -> None:
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
    def type(self) -> Literal["request"]:
        """The name of Type: ``"request"``."""
        return "request"

    @property
    def enterprise_id(self) -> UUID:
        """EnterpriseID, the enterprise of the client."""
        return guid_from_bytes(self.data + ENTERPRISE_ID_AT)

    @property
    def request_id(self) -> UUID:
        """RequestID, one for each discovery run; replies echo it."""
        return guid_from_bytes(self.data + REQUEST_ID_AT)

    @property
    def site_id(self) -> UUID:
        """SiteID, the site of the client."""
        return guid_from_bytes(self.data + SITE_ID_AT)

    @property
    def ipx_networks(self) -> NDArray[np.uint32]:
        """IPXNetworkNumberArray: a view of the packet's bytes, shape (n,); empty in the IP form."""
        if self.header.counts[IPX_NETWORKS] == 0:
            return np.empty(0, np.uint32)
        return self.array(self.header.items[IPX_NETWORKS], "<u4", self.header.counts[IPX_NETWORKS])

    def __repr__(self):
        ipx = f", ipx_networks={self.ipx_networks.tolist()}" if self.header.counts[IPX_NETWORKS] else ""
        return (
            f"TopologyClientRequest(enterprise_id={self.enterprise_id!r}, request_id={self.request_id!r}, "
            f"site_id={self.site_id!r}{ipx})"
        )


cdef class TopologyServerReply(TopologyPacket):
    """A server answers a request: [MS-MQSD] 2.2.3.

    Parameters
    ----------
    correlation_id : uuid.UUID or its text
        The RequestID of the request.
    connected_networks : iterable of uuid.UUID or texts, or ndarray of uint8 with shape (n, 16) in wire order
        1 to 32 connected networks of the server.
    connected_network_mask : int, optional
        0 over IP; over IPX as many bits as there are networks.
    responding_site_id : uuid.UUID or its text, optional
        The site of the server; None when it is the client's.
    servers : iterable of DirectoryServiceServer, optional
        The directory servers of that site; empty when it is the client's. A mapping has the fields of one, a text its
        name.

    Raises
    ------
    EncodeError
        A value that the specification does not let a server send.

    Examples
    --------
    >>> from uuid import UUID
    >>> reply = TopologyServerReply(
    ...     correlation_id=UUID(int=2),
    ...     connected_networks=[UUID(int=4)],
    ...     responding_site_id=UUID(int=5),
    ...     servers=[DirectoryServiceServer("nt4pec")],
    ... )
    >>> decode(encode(reply)).servers
    (DirectoryServiceServer(name='nt4pec', ip=True, ipx=False),)
    """

    __signature__ = signature(
        lambda *, correlation_id, connected_networks, connected_network_mask=0, responding_site_id=None, servers=():
        None
    )

    def __init__(
        self, *, correlation_id: UUID | str, connected_networks: Iterable[UUID | str] | NDArray[np.uint8],
        connected_network_mask: int = 0, responding_site_id: UUID | str | None = None,
        servers: Iterable[DirectoryServiceServer | tuple[str, bool, bool] | Mapping[str, Any] | str] = ()
    ) -> None:
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
        write_reply(target, guids, count, mask, <uint32_t>len(array))
        target += REPLY_FIXED_SIZE
        memcpy(target, <const uint8_t*>networks, <size_t>len(networks))
        if array:
            target += len(networks)
            memcpy(target, guids + 16, 16)
            memcpy(target + 16, <const uint8_t*>array, <size_t>len(array))
        attach(self, packed)

    @property
    def type(self) -> Literal["reply"]:
        """The name of Type: ``"reply"``."""
        return "reply"

    @property
    def correlation_id(self) -> UUID:
        """CorrelationID, the RequestID that this answers."""
        return guid_from_bytes(self.data + CORRELATION_ID_AT)

    @property
    def connected_network_mask(self) -> int:
        """ConnectedNetworkMask: 0 over IP, a bit for each network over IPX."""
        return load_u32(self.data + CONNECTED_NETWORK_MASK_AT)

    @property
    def connected_networks(self) -> NDArray[np.uint8]:
        """ConnectedNetworkArray: a view of the packet's bytes, shape (n, 16), GUIDs in wire order."""
        cdef size_t size = 16 * <size_t>self.header.counts[NETWORKS]
        return self.array(self.header.items[NETWORKS], np.uint8, size).reshape(-1, 16)

    @property
    def responding_site_id(self) -> UUID | None:
        """RespondingSiteID; None when the server is in the client's site."""
        return guid_from_bytes(self.header.items[SERVERS] - 16) if self.header.servers_size else None

    @property
    def servers(self) -> tuple[DirectoryServiceServer, ...]:
        """DirectoryServiceServerArray; lone surrogates in a name stay lone surrogates."""
        if not self.header.servers_size:
            return ()
        array = self.header.items[SERVERS][:self.header.servers_size - 2].decode("utf-16-le", "surrogatepass")
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


cdef int attach(TopologyPacket packet, bytes data) except -1:
    """Give a packet under construction the bytes just written for it."""
    cdef size_t entry = 0
    cdef Fault fault
    packet.owner = data
    packet.transport = "unknown"
    packet.data = <const uint8_t*>PyBytes_AS_STRING(data)
    if read_topology(
        packet.data, <size_t>len(data), Transport.UNKNOWN, True, &NO_COLUMNS, &entry, &packet.header, &fault
    ) != 0:
        raise decode_error(&fault, FIELDS)
    return 0


def decode(
    data: Buffer, *, bint strict=False, str transport: TransportName = "unknown"
) -> TopologyClientRequest | TopologyServerReply:
    """Decode one MS-MQSD packet: [MS-MQSD] 2.2.

    Parameters
    ----------
    data : bytes-like
        One datagram. It is viewed where it is ``bytes``, else copied.
    strict : bool
        Fault for what a conforming receiver discards, instead of noting a violation.
    transport : {"unknown", "udp", "ipx"}
        The transport of the packet; some rules depend on it.

    Raises
    ------
    DecodeError
        With code, field and offset of the first fault.

    Examples
    --------
    >>> decode(bytes.fromhex(
    ...     "0002000003a191f23ce34faba930be3a33e432dd01000000000000000000000062baeae6c6d1db11baac0003ff4e2d22"
    ... )).correlation_id
    UUID('f291a103-e33c-ab4f-a930-be3a33e432dd')
    >>> decode(b"\\0\\2\\0\\0")
    Traceback (most recent call last):
    msmqwire.errors.DecodeError: truncated: CorrelationID at byte 4: needs 16 bytes, 0 left
    """
    cdef TopologyPacket packet
    cdef Topology header
    cdef size_t entry = 0
    cdef Fault fault
    cdef const uint8_t* start
    cdef size_t size
    cdef uint32_t code = transport_code(transport, ACCEPTED)
    owner = hold_payload(data, FIELDS, &start, &size)
    if read_topology(start, size, code, strict, &NO_COLUMNS, &entry, &header, &fault) != 0:
        raise decode_error(&fault, FIELDS)
    if header.presence & HAS_REQUEST:
        packet = TopologyClientRequest.__new__(TopologyClientRequest)
    else:
        packet = TopologyServerReply.__new__(TopologyServerReply)
    packet.owner = owner
    packet.transport = transport
    packet.data = start
    packet.header = header
    return packet


def encode(TopologyPacket packet not None) -> bytes:
    """Write one packet; ``decode(encode(packet), strict=True) == packet``.

    It does not know what will carry the packet. Over UDP a conforming client discards a reply whose
    ConnectedNetworkMask is not 0, as ``decode(..., transport="udp", strict=True)`` does, and a server does not read the
    IPX networks of a request. A client also discards a reply to another request than its own ([MS-MQSD] 3.1.5.2).

    Raises
    ------
    EncodeError
        The packet was decoded with violations, which no conforming sender produces.
    """
    if packet.header.described == 0:
        raise EncodeError("Type", "the packet was never built")
    if packet.header.violations:
        (first, *_) = [each for each in Violation if packet.header.violations & <uint32_t>each]
        raise EncodeError(first.rule.field, f"the packet has {', '.join(packet.violations)}")
    return packet.described()


def restore(bytes data, str transport):
    """Unpickle a packet: its violations depend on its transport."""
    return decode(data, transport=transport)


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
    if isinstance(servers, str) or not hasattr(servers, "__iter__"):
        raise EncodeError("DirectoryServiceServerArray", f"{servers!r} must be many servers")
    for given in servers:
        server = given
        if isinstance(given, str):
            server = DirectoryServiceServer(given)
        elif isinstance(given, Mapping) and "name" in given and not given.keys() - {*DirectoryServiceServer._fields}:
            server = DirectoryServiceServer(**given)
        if not isinstance(server, (tuple, list)) or len(server) != 3:
            raise EncodeError(
                f"DirectoryServiceServerArray[{len(entries)}]",
                f"{given!r} is not a DirectoryServiceServer, its fields or its name",
            )
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
