"""The IPv4 networks that this computer is connected to: NetworkAddressList of [MS-MQSD] 3.1.1.2."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Interface
from typing import TYPE_CHECKING

from msmqwire.discovery.client import NetworkAddress
from msmqwire.errors import require

if TYPE_CHECKING:
    from collections.abc import Iterator


def local_networks(*, loopback: bool = False) -> list[NetworkAddress]:
    """Every IPv4 network of the interfaces that are up, in the system's order of interfaces.

    A network is listed once for each interface, by the first address on it. Point-to-point interfaces (dial-up,
    tunnels) are Remote Access Service addresses. Networks of a single address are left out.

    Parameters
    ----------
    loopback : bool
        List the loopback network as well.

    Raises
    ------
    ModuleNotFoundError
        psutil is not installed.
    OSError
        The system does not list its interfaces to this process.
    """
    psutil = require("psutil", "listing local networks")
    interfaces = psutil.net_if_stats()
    found: dict[tuple[str, str], NetworkAddress] = {}
    for label, addresses in psutil.net_if_addrs().items():
        # eth0:1 labels an address; it is not an interface.
        name = label.partition(":")[0]
        # An interface can vanish between the two calls.
        if name not in interfaces or not interfaces[name].isup:
            continue
        flags = interfaces[name].flags.split(",")
        if "loopback" in flags and not loopback:
            continue
        for entry in addresses:
            if entry.family is socket.AF_INET:
                for network in _network(name, entry.address, entry.netmask, entry.ptp, "pointopoint" in flags):
                    found.setdefault((name, str(network.address.network)), network)
    return list(found.values())


def _network(
    interface: str, address: str, netmask: str | None, peer: str | None, point_to_point: bool
) -> Iterator[NetworkAddress]:
    own = IPv4Interface(f"{address}/{netmask or 32}")
    # The broadcast address configured on an interface may be missing or wrong; that of the network is right.
    if own.network.prefixlen < 31:
        yield NetworkAddress(own, own.network.broadcast_address, interface, remote_access=point_to_point)
    elif peer is not None and peer != address:
        yield NetworkAddress(own, IPv4Address(peer), interface, remote_access=point_to_point)
