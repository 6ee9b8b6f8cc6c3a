"""The site of the printed example ([MS-MQSD] 4), its clients, and servers for it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import DiscoveryServer, Policy, Site
from msmqwire.mqsd import DirectoryServiceServer
from tests.vectors import get

ENTERPRISE_ID = UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")
NETWORK = UUID("e6eaba62-d1c6-11db-baac-0003ff4e2d22")
SERVER_SITE_ID = UUID("e6eaba60-d1c6-11db-baac-0003ff4e2d22")
CLIENT_SITE_ID = UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128")
REQUEST_ID = UUID("f291a103-e33c-ab4f-a930-be3a33e432dd")

#: The printed request, and the replies of a server in the client's site and of one elsewhere.
V1, V2, V3 = (get("mqsd", name).data for name in ("V1-request", "V2-reply-local-site", "V3-reply-other-site"))

CLIENT = ("10.20.1.25", 49712)
ELSEWHERE = ("192.0.2.7", 1801)
SECOND = 1_000_000_000
#: More than any test asks for.
UNLIMITED = Rate(1_000_000_000, burst=1_000_000_000)


def site(**fields: Any) -> Site:
    """The site of the server that sent the second printed reply."""
    return Site(
        **{
            "enterprise_id": ENTERPRISE_ID,
            "site_id": SERVER_SITE_ID,
            "connected_networks": (NETWORK,),
            "servers": (DirectoryServiceServer("nt4pec"),),
            **fields,
        }
    )


def unlimited(**fields: Any) -> Policy:
    """A policy without limits."""
    unbounded = {"address_bytes": 1 << 60, "network_bytes": 1 << 60}
    return Policy(**{"network_rate": UNLIMITED, "total_rate": UNLIMITED, **unbounded, **fields})


def server(policy: Policy | None = None, **fields: Any) -> DiscoveryServer:
    """A server of that site."""
    return DiscoveryServer(site(**fields), policy or unlimited())


def request(
    site_id: UUID = CLIENT_SITE_ID,
    *,
    request_id: UUID = REQUEST_ID,
    enterprise_id: UUID = ENTERPRISE_ID,
    head: bytes = b"\0\1\0\0",
    tail: bytes = b"",
) -> bytes:
    """A request put together by hand."""
    return head + enterprise_id.bytes_le + request_id.bytes_le + site_id.bytes_le + tail


def networks(count: int) -> tuple[UUID, ...]:
    """As many connected networks."""
    return tuple(UUID(int=number + 1) for number in range(count))


def servers(*names: str) -> tuple[DirectoryServiceServer, ...]:
    """Directory servers with these names."""
    return tuple(DirectoryServiceServer(name) for name in names)
