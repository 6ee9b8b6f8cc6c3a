"""Sockets and clocks for the roles of discovery and for sessions, which do no I/O themselves."""

from __future__ import annotations

from msmqwire.net.discovery_client import Discoverer, DiscoverKeywords, discover, discover_sync
from msmqwire.net.discovery_server import DiscoveryService
from msmqwire.net.host_addresses import Address
from msmqwire.net.interfaces import local_networks
from msmqwire.net.ping import ping
from msmqwire.net.session_client import NextHop, SessionClient, connect
from msmqwire.net.session_server import SessionServer, serve
from msmqwire.wire.ports import DISCOVERY_PORT, PING_PORT, SESSION_PORT

__all__ = [
    "DISCOVERY_PORT",
    "PING_PORT",
    "SESSION_PORT",
    "Address",
    "DiscoverKeywords",
    "Discoverer",
    "DiscoveryService",
    "NextHop",
    "SessionClient",
    "SessionServer",
    "connect",
    "discover",
    "discover_sync",
    "local_networks",
    "ping",
    "serve",
]


def __dir__() -> list[str]:
    return __all__
