"""Written by `make build` from the annotations in _packet.pyx; do not edit."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal
from uuid import UUID

from numpy.typing import NDArray
from typing_extensions import Buffer
import numpy as np

from msmqwire.columns._packet import WirePacket
from msmqwire.mqsd.values import DirectoryServiceServer

TransportName = Literal["unknown", "udp", "ipx"]

class TopologyPacket(WirePacket):
    version: Final[int]
    reserved: Final[int]
    trailing: Final[memoryview | None]
    violations: Final[tuple[str, ...]]
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class TopologyClientRequest(TopologyPacket):
    def __init__(
        self,
        *,
        enterprise_id: UUID | str,
        request_id: UUID | str,
        site_id: UUID | str,
        ipx_networks: Sequence[int] | NDArray[np.integer] = (),
    ) -> None: ...
    type: Final[Literal["request"]]
    enterprise_id: Final[UUID]
    request_id: Final[UUID]
    site_id: Final[UUID]
    ipx_networks: Final[NDArray[np.uint32]]

class TopologyServerReply(TopologyPacket):
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
    correlation_id: Final[UUID]
    connected_network_mask: Final[int]
    connected_networks: Final[NDArray[np.uint8]]
    responding_site_id: Final[UUID | None]
    servers: Final[tuple[DirectoryServiceServer, ...]]

def decode(
    data: Buffer,
    *,
    strict: bool = False,
    transport: TransportName = "unknown",
) -> TopologyClientRequest | TopologyServerReply: ...
def encode(packet: TopologyPacket) -> bytes: ...
