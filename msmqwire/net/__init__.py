"""Sockets and clocks for the roles of discovery, which do no I/O themselves."""

from __future__ import annotations

from msmqwire.net.discovery_client import DISCOVERY_PORT, Discoverer, discover, discover_sync
from msmqwire.net.discovery_server import DiscoveryService
from msmqwire.net.interfaces import local_networks

__all__ = [
    "DISCOVERY_PORT",
    "Discoverer",
    "DiscoveryService",
    "discover",
    "discover_sync",
    "local_networks",
]
