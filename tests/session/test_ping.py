"""Pings: [MS-MQQB] 3.1.7.6 to 3.1.7.8."""

from __future__ import annotations

import pytest

from msmqwire.session import PingClient, answer_ping
from tests.reference.mqqb_session_packets import Ping
from tests.session.peers import OWN, PEER


def test_request() -> None:
    client = PingClient(OWN)
    assert client.request() == Ping(0, 1, OWN.bytes_le).pack()
    assert client.request() == Ping(0, 2, OWN.bytes_le).pack()
    client.cookie = 0xFFFFFFFF
    assert client.request() == Ping(0, 0, OWN.bytes_le).pack()


@pytest.mark.parametrize("refuse", [False, True])
@pytest.mark.parametrize("flags", [0, 1, 0x7D01])
def test_answer(flags: int, refuse: bool) -> None:
    request = Ping(flags, 9, OWN.bytes_le)
    assert answer_ping(request.pack(), PEER, refuse=refuse) == request.answer(PEER.bytes_le, refused=refuse).pack()


def test_answers_that_count() -> None:
    client = PingClient(OWN)
    client.request()
    assert client.receive(Ping(0, 1, PEER.bytes_le).pack()) is True
    assert client.receive(Ping(2, 1, PEER.bytes_le).pack()) is False
    assert client.receive(Ping(0, 2, PEER.bytes_le).pack()) is None


@pytest.mark.parametrize("data", [b"", b"x", bytes(24), Ping(0, 1, PEER.bytes_le, signature=0x5549).pack()])
def test_other_datagrams_are_ignored(data: bytes) -> None:
    client = PingClient(OWN)
    client.request()
    assert client.receive(data) is None
    assert answer_ping(data, OWN, refuse=False) == b""
