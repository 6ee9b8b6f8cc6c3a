from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

Transport = Literal["unknown", "udp", "ipx"]

class DirectoryServiceServer(NamedTuple):
    name: str
    ip: bool = True
    ipx: bool = False

class TopologyPacket:
    @property
    def version(self) -> int: ...
    @property
    def reserved(self) -> int: ...
    @property
    def violations(self) -> tuple[str, ...]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class TopologyClientRequest(TopologyPacket):
    def __init__(
        self,
        *,
        enterprise_id: UUID,
        request_id: UUID,
        site_id: UUID,
        ipx_networks: Sequence[int] | NDArray[np.integer] = (),
    ) -> None: ...
    @property
    def type(self) -> Literal["request"]: ...
    @property
    def enterprise_id(self) -> UUID: ...
    @property
    def request_id(self) -> UUID: ...
    @property
    def site_id(self) -> UUID: ...
    @property
    def ipx_networks(self) -> NDArray[np.uint32]: ...

class TopologyServerReply(TopologyPacket):
    def __init__(
        self,
        *,
        correlation_id: UUID,
        connected_networks: Iterable[UUID] | NDArray[np.uint8],
        connected_network_mask: int = 0,
        responding_site_id: UUID | None = None,
        servers: Iterable[DirectoryServiceServer | tuple[str, bool, bool]] = (),
    ) -> None: ...
    @property
    def type(self) -> Literal["reply"]: ...
    @property
    def correlation_id(self) -> UUID: ...
    @property
    def connected_network_mask(self) -> int: ...
    @property
    def connected_networks(self) -> NDArray[np.uint8]: ...
    @property
    def responding_site_id(self) -> UUID | None: ...
    @property
    def servers(self) -> tuple[DirectoryServiceServer, ...]: ...

def decode(
    data: Buffer, *, strict: bool = False, transport: Transport = "unknown"
) -> TopologyClientRequest | TopologyServerReply: ...
def encode(packet: TopologyPacket) -> bytes: ...
