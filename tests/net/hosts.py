"""Several hosts on this one: network namespaces, on as many networks as a test wants. Needs root and iproute2."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.system_programs import require_program

ROOT = Path(__file__).parent.parent.parent
CLONE_NEWNET = 0x40000000
SECONDS = 60


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=SECONDS)


class Hosts:
    """Hosts by name. Each is a network namespace; a network is a bridge in one that holds nothing else."""

    def __init__(self) -> None:
        self._prefix = f"msmqwire-{os.getpid()}-"
        self._made: list[str] = []
        self._cables = 0

    def __enter__(self) -> Hosts:
        try:
            self.add("hub")
        except subprocess.CalledProcessError as error:
            # Not a program that somebody could install: the kernel, or whoever runs us in a container, forbids it.
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True, timeout=SECONDS)

    def name(self, host: str) -> str:
        """The namespace of a host."""
        return self._prefix + host

    def add(self, host: str) -> None:
        """A host, connected to nothing but itself."""
        _ip("netns", "add", self.name(host))
        self._made.append(self.name(host))
        _ip("-n", self.name(host), "link", "set", "lo", "up")

    def network(self, bridge: str) -> None:
        """A network without hosts."""
        _ip("-n", self.name("hub"), "link", "add", bridge, "type", "bridge")
        _ip("-n", self.name("hub"), "link", "set", bridge, "up")

    def connect(self, host: str, bridge: str, address: str, interface: str = "eth0") -> None:
        """Give a host an interface on a network."""
        self._cables += 1
        plug = f"plug{self._cables}"
        _ip(
            *("link", "add", interface, "netns", self.name(host), "type", "veth"),
            *("peer", "name", plug, "netns", self.name("hub")),
        )
        _ip("-n", self.name("hub"), "link", "set", plug, "master", bridge, "up")
        _ip("-n", self.name(host), "address", "add", address, "dev", interface)
        _ip("-n", self.name(host), "link", "set", interface, "up")

    def route(self, host: str, network: str, gateway: str) -> None:
        """Let a host reach a network through another host."""
        _ip("-n", self.name(host), "route", "add", network, "via", gateway)

    def socket(self, host: str, address: tuple[str, int]) -> socket.socket:
        """A UDP socket of this process on another host: a socket stays where the thread was that made it."""
        made: list[socket.socket] = []

        def make() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/run/netns/{self.name(host)}") as namespace:
                if libc.setns(namespace.fileno(), CLONE_NEWNET):
                    return
            made.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join(SECONDS)
        (bound,) = made
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        return bound

    def command(self, host: str, *arguments: object) -> list[str]:
        """A command to run on a host."""
        return ["ip", "netns", "exec", self.name(host), *map(str, arguments)]

    def msmqwire(self, host: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        """Run our command on a host, to its end."""
        return subprocess.run(
            self.command(host, sys.executable, "-m", "msmqwire", *arguments),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            **surroundings(),
        )

    @contextlib.contextmanager
    def running(self, host: str, arguments: Sequence[object], ready: str) -> Iterator[subprocess.Popen[str]]:
        """A command on a host, from when it has said ``ready`` on standard error till the block ends."""
        command = self.command(host, *arguments)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **surroundings())
        try:
            assert process.stderr is not None
            said = []
            for line in process.stderr:
                said.append(line)
                if ready in line:
                    break
            else:
                pytest.fail(f"{command} has ended: {''.join(said)}")
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=SECONDS)


def surroundings() -> dict[str, Any]:
    return {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}


@contextlib.contextmanager
def two_networks() -> Iterator[Hosts]:
    """A client on both networks, two servers on the first, one on the second, which knows a way to the first."""
    require_program("ip")
    with Hosts() as hosts:
        for number in (1, 2):
            hosts.network(f"net{number}")
        for host in ("client", "near", "next", "far"):
            hosts.add(host)
        hosts.connect("client", "net1", "10.71.1.25/24", "eth0")
        hosts.connect("client", "net2", "10.71.2.25/24", "eth1")
        hosts.connect("near", "net1", "10.71.1.10/24")
        hosts.connect("next", "net1", "10.71.1.11/24")
        hosts.connect("far", "net2", "10.71.2.10/24")
        hosts.route("far", "10.71.1.0/24", "10.71.2.25")
        yield hosts
