"""Discovery services that answer in a thread, and the sockets that ask them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msmqwire.net.discovery_server import DiscoveryService

LOOPBACK = ("127.0.0.1", 0)
SECONDS = 60


@contextmanager
def running(service: DiscoveryService) -> Iterator[DiscoveryService]:
    """The service answering in a thread; what ends it early is raised here."""
    ended: list[BaseException] = []

    def run() -> None:
        try:
            service.run()
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield service
    finally:
        service.stop()
        thread.join(SECONDS)
        service.close()
        assert not thread.is_alive()
    if ended:
        raise ended[0]


@contextmanager
def client(host: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.bind((host, 0))
        asking.settimeout(SECONDS)
        yield asking


def between_datagrams(service: DiscoveryService, function: Callable[[], object] = lambda: None) -> None:
    """Have the service do something, and wait until it is done."""
    done = threading.Event()

    def call() -> None:
        try:
            function()
        finally:
            done.set()

    service.call(call)
    assert done.wait(SECONDS)
