"""Servers that do as a script says, in a thread: they answer what, when and as often as a test wants it."""

from __future__ import annotations

import contextlib
import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msmqwire import mqsd

DEADLINE = 60


class Asked(NamedTuple):
    """A request that came in: its RequestID, and the address and port to answer to."""

    run: uuid.UUID
    client: tuple[str, int]


Script = Callable[[Asked], Iterable[bytes]]


def reply(run: uuid.UUID, *servers: str, networks: Iterable[int] = (0xC1,), site: int = 0x52) -> bytes:
    """The reply of the client's own site, or, with names of servers, of another."""
    return mqsd.encode(
        mqsd.TopologyServerReply(
            correlation_id=run,
            connected_networks=[uuid.UUID(int=network) for network in networks],
            responding_site_id=uuid.UUID(int=site) if servers else None,
            servers=[mqsd.DirectoryServiceServer(name) for name in servers],
        )
    )


def own_site(asked: Asked) -> list[bytes]:
    """A script: a server of the client's own site."""
    return [reply(asked.run)]


def other_site(*names: str) -> Script:
    """A script: a server of another site that knows these directory servers."""
    return lambda asked: [reply(asked.run, *names)]


def silent(_: Asked) -> list[bytes]:
    """A script: nobody answers."""
    return []


@contextlib.contextmanager
def responding(bound: socket.socket, script: Script) -> Iterator[list[Asked]]:
    """Answer what comes in on a socket while the block runs, then close it; the requests so far."""
    requests: list[Asked] = []
    failures: list[BaseException] = []

    def serve() -> None:
        while True:
            data, client = bound.recvfrom(65535)
            if client is None:
                return
            packet = mqsd.decode(data, strict=True, transport="udp")
            assert isinstance(packet, mqsd.TopologyClientRequest)
            requests.append(Asked(packet.request_id, client))
            for answer in script(requests[-1]):
                bound.sendto(answer, client)

    def run() -> None:
        try:
            serve()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield requests
    finally:
        # What has come is answered yet; then the thread gets an empty datagram from nobody. The error is that there is
        # no connection to end.
        with contextlib.suppress(OSError):
            bound.shutdown(socket.SHUT_RD)
        thread.join(DEADLINE)
        bound.close()
    assert not thread.is_alive()
    if failures:
        raise failures[0]
