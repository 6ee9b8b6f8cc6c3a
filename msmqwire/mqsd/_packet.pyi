"""Written by `make build` from the annotations in _packet.pyx; do not edit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal
from uuid import UUID

from numpy.typing import NDArray
from typing_extensions import Buffer
import numpy as np

from msmqwire.columns._packet import WirePacket
from msmqwire.mqsd.values import DirectoryServiceServer, TransportName

class TopologyPacket(WirePacket):
    """The base class of requests and replies: [MS-MQSD] 2.2.1.

    A packet compares, hashes, prints and pickles as a value, of which the bytes after its last field are no part. It
    keeps the bytes it was decoded from alive.
    """

    version: Final[int]
    """Version; 0 in a conforming packet, ignored by receivers."""
    reserved: Final[int]
    """Reserved; 0 in a conforming packet, ignored by receivers."""
    trailing: Final[memoryview | None]
    """The bytes after the last field, as a view, or None. A server ignores such bytes in a request."""
    violations: Final[tuple[str, ...]]
    """Names of the rules that the packet breaks; empty for a conforming one."""
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class TopologyClientRequest(TopologyPacket):
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

    def __init__(
        self,
        *,
        enterprise_id: UUID | str,
        request_id: UUID | str,
        site_id: UUID | str,
        ipx_networks: Sequence[int] | NDArray[np.integer] = (),
    ) -> None: ...
    type: Final[Literal["request"]]
    """The name of Type: ``"request"``."""
    enterprise_id: Final[UUID]
    """EnterpriseID, the enterprise of the client."""
    request_id: Final[UUID]
    """RequestID, one for each discovery run; replies echo it."""
    site_id: Final[UUID]
    """SiteID, the site of the client."""
    ipx_networks: Final[NDArray[np.uint32]]
    """IPXNetworkNumberArray: a view of the packet's bytes, shape (n,); empty in the IP form."""

class TopologyServerReply(TopologyPacket):
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

    def __init__(
        self,
        *,
        correlation_id: UUID | str,
        connected_networks: Iterable[UUID | str] | NDArray[np.uint8],
        connected_network_mask: int = 0,
        responding_site_id: UUID | str | None = None,
        servers: Iterable[DirectoryServiceServer | tuple[str, bool, bool] | Mapping[str, Any] | str] = (),
    ) -> None: ...
    type: Final[Literal["reply"]]
    """The name of Type: ``"reply"``."""
    correlation_id: Final[UUID]
    """CorrelationID, the RequestID that this answers."""
    connected_network_mask: Final[int]
    """ConnectedNetworkMask: 0 over IP, a bit for each network over IPX."""
    connected_networks: Final[NDArray[np.uint8]]
    """ConnectedNetworkArray: a view of the packet's bytes, shape (n, 16), GUIDs in wire order."""
    responding_site_id: Final[UUID | None]
    """RespondingSiteID; None when the server is in the client's site."""
    servers: Final[tuple[DirectoryServiceServer, ...]]
    """DirectoryServiceServerArray; lone surrogates in a name stay lone surrogates."""

def decode(
    data: Buffer,
    *,
    strict: bool = False,
    transport: TransportName = "unknown",
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

def encode(packet: TopologyPacket) -> bytes:
    """Write one packet; ``decode(encode(packet), strict=True) == packet``.

    It does not know what will carry the packet. Over UDP a conforming client discards a reply whose
    ConnectedNetworkMask is not 0, as ``decode(..., transport="udp", strict=True)`` does, and a server does not read the
    IPX networks of a request. A client also discards a reply to another request than its own ([MS-MQSD] 3.1.5.2).

    Raises
    ------
    EncodeError
        The packet was decoded with violations, which no conforming sender produces.
    """
