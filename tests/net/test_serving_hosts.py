"""``msmqwire serve`` between hosts: broadcasts, several networks, and answers that come from the address asked."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.site_files import OTHER_SITE
from tests.discovery.sites import V1, V3
from tests.net.hosts import Hosts, two_networks

PORT = 1801
SECONDS = 60
#: How long nothing has to come for nobody to have answered, after somebody has.
QUIET = 0.2


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    """The host ``client`` serves here: it is on both networks."""
    with two_networks() as made:
        yield made


@contextlib.contextmanager
def serving(hosts: Hosts, folder: Path, *addresses: str) -> Iterator[None]:
    path = folder / "site.toml"
    listen = f"port = {PORT}\naddresses = {list(addresses)}"
    path.write_text(OTHER_SITE.replace("port = 0", listen))
    with hosts.running("client", [sys.executable, "-m", "msmqwire", "serve", "--config", path], "listening"):
        yield


@contextlib.contextmanager
def asking(hosts: Hosts, host: str) -> Iterator[socket.socket]:
    client = hosts.socket(host, ("0.0.0.0", 0))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    client.settimeout(SECONDS)
    with client:
        yield client


@pytest.mark.parametrize("addresses", [("0.0.0.0",), ("10.71.1.25", "10.71.1.255")])
@pytest.mark.parametrize("destination", ["10.71.1.25", "10.71.1.255"])
def test_requests_and_broadcasts_are_answered_from_the_address_on_their_network(
    hosts: Hosts, tmp_path: Path, addresses: tuple[str, ...], destination: str
) -> None:
    with serving(hosts, tmp_path, *addresses), asking(hosts, "near") as client:
        client.sendto(V1, (destination, PORT))
        assert client.recvfrom(2048) == (V3, ("10.71.1.25", PORT))


def test_a_network_that_it_does_not_listen_on_is_not_answered(hosts: Hosts, tmp_path: Path) -> None:
    with (
        serving(hosts, tmp_path, "10.71.1.25", "10.71.1.255"),
        asking(hosts, "near") as heard,
        asking(hosts, "far") as unheard,
    ):
        unheard.sendto(V1, ("10.71.2.255", PORT))
        heard.sendto(V1, ("10.71.1.255", PORT))
        assert heard.recvfrom(2048)[0] == V3
        unheard.settimeout(QUIET)
        with pytest.raises(TimeoutError):
            unheard.recv(2048)


def test_loopback_is_not_answered_from_outside(hosts: Hosts, tmp_path: Path) -> None:
    """What it does unless told otherwise."""
    with serving(hosts, tmp_path, "127.0.0.1"), asking(hosts, "near") as client, asking(hosts, "client") as local:
        for destination in ("10.71.1.25", "10.71.1.255"):
            client.sendto(V1, (destination, PORT))
        local.sendto(V1, ("127.0.0.1", PORT))
        assert local.recvfrom(2048)[0] == V3
        client.settimeout(QUIET)
        with pytest.raises(TimeoutError):
            client.recv(2048)
