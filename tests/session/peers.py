"""The other end of a session under test: packets written and read with ``struct`` alone."""

from __future__ import annotations

from typing import TypeVar
from uuid import UUID

from msmqwire import mqqb
from msmqwire.session import Acceptor, Event, Initiator, Session, SessionState
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    SessionHeader,
    UserMessage,
    first_packet,
    read,
)

PEER = UUID(int=1)
OWN = UUID(int=2)
QUEUE = "DIRECT=TCP:127.0.0.1\\private$\\orders"

E = TypeVar("E")


def packets(session: Session) -> list[Packet]:
    """What the session sends, read by the reference."""
    data = session.data_to_send()
    found = []
    while data:
        packet, data = first_packet(data)
        assert packet, "an incomplete packet was sent"
        found.append(read(packet))
    return found


def state_of(session: Session) -> SessionState:
    """The state now; type checkers take an attribute for unchanged."""
    return session.state


def only(events: list[Event], kind: type[E]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


def open_acceptor(
    acceptor: Acceptor,
    now: float = 0.0,
    *,
    parameters: ConnectionParameters | None = None,
) -> Acceptor:
    """An acceptor after the initialization by ``PEER``, without output."""
    acceptor.connection_made(now)
    acceptor.receive_data(EstablishConnection(PEER.bytes_le, bytes(16), 7).pack(), now)
    acceptor.receive_data((parameters or ConnectionParameters()).pack(), now)
    acceptor.data_to_send()
    assert acceptor.is_open
    return acceptor


def open_initiator(initiator: Initiator, now: float = 0.0, *, window_size: int = 64) -> Initiator:
    """An initiator after the initialization by ``PEER``; its messages are in the output."""
    initiator.connection_made(now)
    (request,) = packets(initiator)
    assert isinstance(request, EstablishConnection)
    response = EstablishConnection(request.client_guid, PEER.bytes_le, request.time_stamp)
    initiator.receive_data(response.pack(), now)
    (parameters,) = packets(initiator)
    assert isinstance(parameters, ConnectionParameters)
    initiator.receive_data(ConnectionParameters(500, 20000, window_size).pack(), now)
    assert initiator.is_open
    return initiator


def message(
    body: bytes = b"x", *, recoverable: bool = False, time_to_reach_queue: int = 0xFFFFFFFF, priority: int = 3
) -> mqqb.UserMessage:
    return mqqb.UserMessage(
        destination_queue=QUEUE,
        body=body,
        delivery_mode="recoverable" if recoverable else "express",
        time_to_reach_queue=time_to_reach_queue,
        priority=priority,
    )


def incoming(number: int, *, recoverable: bool = False, header: SessionHeader | None = None) -> bytes:
    return UserMessage(PEER.bytes_le, number, b"%d" % number, recoverable=recoverable, session_header=header).pack()


def acknowledgment(
    acked: int, first: int = 0, flags: int = 0, *, sent: int = 0, recoverable_sent: int = 0, window_size: int = 64
) -> bytes:
    return SessionAck(SessionHeader(acked, first, flags, sent, recoverable_sent, window_size)).pack()
