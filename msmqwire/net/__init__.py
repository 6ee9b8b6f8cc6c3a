"""Sockets and clocks for the roles of discovery and for sessions, which do no I/O themselves."""

from __future__ import annotations

from msmqwire.net.discovery_client import DISCOVERY_PORT, Discoverer, discover, discover_sync
from msmqwire.net.discovery_server import DiscoveryService
from msmqwire.net.interfaces import local_networks
from msmqwire.net.ping import PING_PORT, ping
from msmqwire.net.session_client import SESSION_PORT, NextHop, SessionClient, connect
from msmqwire.net.session_server import SessionServer, serve

__all__ = [
    "DISCOVERY_PORT",
    "PING_PORT",
    "SESSION_PORT",
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
