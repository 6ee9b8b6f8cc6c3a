"""Which networks there are to ask: what psutil tells of interfaces, and what becomes of it."""

from __future__ import annotations

import socket
import sys
from ipaddress import IPv4Address, IPv4Interface
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from msmqwire.discovery import NetworkAddress
from msmqwire.net import local_networks

UP = "up,broadcast,running,multicast"
TUNNEL = "up,pointopoint,running,noarp,multicast"


def address(text: str, netmask: str | None, *, broadcast: str | None = None, ptp: str | None = None) -> Any:
    return SimpleNamespace(family=socket.AF_INET, address=text, netmask=netmask, broadcast=broadcast, ptp=ptp)


LINK = SimpleNamespace(family=socket.AF_PACKET, address="02:00:5e:00:00:01", netmask=None, broadcast=None, ptp=None)
SIX = SimpleNamespace(family=socket.AF_INET6, address="fe80::1", netmask="ffff:ffff::", broadcast=None, ptp=None)


@pytest.fixture
def computer(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[str, bool, list[Any]]]:
    """Interfaces by name, each with flags, whether it is up, and addresses: a computer that a test makes up."""
    interfaces: dict[str, tuple[str, bool, list[Any]]] = {}
    told = SimpleNamespace(
        net_if_addrs=lambda: {name: addresses for name, (_, _, addresses) in interfaces.items()},
        net_if_stats=lambda: {
            name: SimpleNamespace(isup=up, flags=flags) for name, (flags, up, _) in interfaces.items() if flags
        },
    )
    monkeypatch.setitem(sys.modules, "psutil", told)
    return interfaces


def test_a_lan(computer: Any) -> None:
    computer["lo"] = ("up,loopback,running", True, [address("127.0.0.1", "255.0.0.0"), SIX])
    computer["eth0"] = (UP, True, [LINK, SIX, address("10.20.1.25", "255.255.255.0", broadcast="10.20.1.255")])
    lan = NetworkAddress(IPv4Interface("10.20.1.25/24"), IPv4Address("10.20.1.255"), "eth0")
    assert local_networks() == [lan]
    assert str(lan) == "10.20.1.25/24 on eth0"
    loopback, _ = local_networks(loopback=True)
    assert loopback == NetworkAddress(IPv4Interface("127.0.0.1/8"), IPv4Address("127.255.255.255"), "lo")


@pytest.mark.parametrize("broadcast", [None, "10.20.1.25", "0.0.0.0"])
def test_broadcast_address_is_the_networks(computer: Any, broadcast: str | None) -> None:
    """Without one an interface tells its own address, or nothing."""
    computer["eth0"] = (UP, True, [address("10.20.1.25", "255.255.254.0", broadcast=broadcast)])
    assert [str(network.broadcast) for network in local_networks()] == ["10.20.1.255"]


def test_interfaces_in_their_order(computer: Any) -> None:
    computer["eth1"] = (UP, True, [address("10.20.2.25", "255.255.255.0")])
    computer["eth0"] = (UP, True, [address("10.20.1.25", "255.255.255.0")])
    assert [network.interface for network in local_networks()] == ["eth1", "eth0"]


def test_interface_that_is_down_or_gone(computer: Any) -> None:
    computer["eth0"] = (UP, False, [address("10.20.1.25", "255.255.255.0")])
    computer["eth1"] = ("", True, [address("10.20.2.25", "255.255.255.0")])
    assert local_networks() == []


def test_network_counts_once_for_an_interface(computer: Any) -> None:
    twice = [address(f"10.20.1.{host}", "255.255.255.0") for host in (25, 26)]
    computer["eth0"] = (UP, True, [*twice, address("10.20.7.1", "255.255.255.0")])
    computer["wlan0"] = (UP, True, [address("10.20.1.99", "255.255.255.0")])
    assert [str(network) for network in local_networks()] == [
        "10.20.1.25/24 on eth0",
        "10.20.7.1/24 on eth0",
        "10.20.1.99/24 on wlan0",
    ]


def test_addresses_with_a_label(computer: Any) -> None:
    """Such as eth0:1, which is no interface: eth0 is."""
    computer["eth0"] = (UP, True, [address("10.20.1.25", "255.255.255.0")])
    computer["eth0:1"] = ("", True, [address("10.20.1.26", "255.255.255.0"), address("10.20.7.1", "255.255.255.0")])
    assert [str(network) for network in local_networks()] == ["10.20.1.25/24 on eth0", "10.20.7.1/24 on eth0"]


def test_point_to_point_is_remote_access(computer: Any) -> None:
    computer["ppp0"] = (TUNNEL, True, [address("10.9.0.1", "255.255.255.255", ptp="10.9.0.2")])
    computer["tun0"] = (TUNNEL, True, [address("10.8.0.1", "255.255.255.0", ptp="10.8.0.1")])
    assert [(str(n.address), str(n.broadcast), n.remote_access) for n in local_networks()] == [
        ("10.9.0.1/32", "10.9.0.2", True),
        ("10.8.0.1/24", "10.8.0.255", True),
    ]


@pytest.mark.parametrize("netmask", ["255.255.255.254", "255.255.255.255", None])
def test_networks_without_a_broadcast_address(computer: Any, netmask: str | None) -> None:
    """A network of one or two addresses reaches the peer, where there is one."""
    computer["tun0"] = (TUNNEL, True, [address("10.9.0.2", netmask, ptp="10.9.0.3"), address("10.9.1.2", netmask)])
    assert [str(network.broadcast) for network in local_networks()] == ["10.9.0.3"]


def test_address_without_neighbours_is_left_out(computer: Any) -> None:
    alone = [address("10.9.0.1", "255.255.255.255"), address("10.9.0.3", None)]
    computer["wg0"] = (TUNNEL, True, [*alone, address("10.9.0.5", "255.255.255.255", ptp="10.9.0.5")])
    assert local_networks() == []


def test_without_psutil(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs psutil, which is not installed: pip install 'psutil"):
        local_networks()


def test_this_computer() -> None:
    """What a real psutil tells is understood."""
    found = local_networks(loopback=True)
    assert {network.interface for network in found} <= set(psutil.net_if_addrs())
    assert any(network.address.is_loopback for network in found)
    assert not any(network.address.is_loopback for network in local_networks())
    for network in found:
        assert network.broadcast in network.address.network or network.remote_access
