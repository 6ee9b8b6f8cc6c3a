"""One of our machines, given the packets of the reference and the time by hand."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from msmqwire import mqqb
from msmqwire.session import (
    Acceptor,
    CloseReason,
    Event,
    Initiator,
    MessageDisregarded,
    MessageReceived,
    MessagesAcknowledged,
    Session,
    SessionClosed,
    Settings,
)
from tests.reference.mqqb_session_packets import (
    GUID_NULL,
    ConnectionParameters,
    EstablishConnection,
    Packet,
    SessionAck,
    SessionHeader,
    UserMessage,
    first_packet,
    read,
)

OWN, PEER = UUID(int=1), UUID(int=2)
WALL_TIME = 1_700_000_000
DESTINATION = "DIRECT=TCP:127.0.0.1\\private$\\orders"


class Driven:
    """A machine, the time, what it reported and the packets that it has sent and nobody has taken."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.now = 0.0
        self.events: list[Event] = []

    def give(self, *packets: Packet | bytes) -> list[Packet]:
        """Packets of the peer; the answers."""
        data = b"".join(each if isinstance(each, bytes) else each.pack() for each in packets)
        self.events += self.session.receive_data(data, self.now)
        return self.take()

    def wait(self, seconds: float) -> list[Packet]:
        """Let time pass, timer by timer; the packets sent meanwhile."""
        until = self.now + seconds
        while (due := self.session.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.events += self.session.handle_deadline(self.now)
        self.now = until
        return self.take()

    def take(self) -> list[Packet]:
        data, packets = self.session.data_to_send(), []
        while data:
            packet, data = first_packet(data)
            packets.append(read(packet))
        return packets

    def send(self, count: int, *, recoverable: bool = False, **fields: Any) -> list[Packet]:
        """Messages from here; the packets that go at once."""
        message = mqqb.UserMessage(
            destination_queue=DESTINATION, delivery_mode="recoverable" if recoverable else "express", **fields
        )
        for _ in range(count):
            self.session.send(message, self.now)
        return self.take()

    def message(self, number: int, *, recoverable: bool = False, **fields: Any) -> UserMessage:
        """A message of the peer."""
        return UserMessage(PEER.bytes_le, number, b"x", recoverable, **fields)

    @property
    def closed(self) -> CloseReason | None:
        """Why the session has closed, if it has."""
        return next((event.reason for event in self.events if isinstance(event, SessionClosed)), None)

    @property
    def delivered(self) -> list[int]:
        return [event.message.message_id for event in self.events if isinstance(event, MessageReceived)]

    @property
    def disregarded(self) -> list[str]:
        return [event.reason.value for event in self.events if isinstance(event, MessageDisregarded)]

    @property
    def acknowledged(self) -> list[int]:
        return [n for event in self.events if isinstance(event, MessagesAcknowledged) for n in event.message_ids]


def new_acceptor(window: int = 64, **options: Any) -> Driven:
    """An acceptor that has been connected to."""
    options.setdefault("settings", Settings(window_size=window))
    made = Driven(Acceptor(OWN, wall_clock=lambda: WALL_TIME, **options))
    made.session.connection_made(made.now)  # type: ignore[attr-defined]
    return made


def new_initiator(window: int = 64, **options: Any) -> Driven:
    """An initiator whose connection was made; its request was not taken."""
    made = Driven(Initiator(OWN, settings=Settings(window_size=window), wall_clock=lambda: WALL_TIME, **options))
    made.session.connection_made(made.now)  # type: ignore[attr-defined]
    return made


def request(server: bytes = GUID_NULL, **fields: Any) -> EstablishConnection:
    """What the peer asks an acceptor."""
    return EstablishConnection(PEER.bytes_le, server, **fields)


def response(**fields: Any) -> EstablishConnection:
    """What the peer answers an initiator."""
    return EstablishConnection(OWN.bytes_le, fields.pop("server", PEER.bytes_le), **fields)


def open_acceptor(parameters: ConnectionParameters | None = None, window: int = 64, **options: Any) -> Driven:
    """An acceptor in a session with the peer."""
    made = new_acceptor(window, **options)
    made.give(request(), parameters or ConnectionParameters())
    assert made.session.is_open
    return made


def open_initiator(parameters: ConnectionParameters | None = None, window: int = 64, **options: Any) -> Driven:
    """An initiator in a session with the peer."""
    made = new_initiator(window, **options)
    made.give(response(), parameters or ConnectionParameters())
    assert made.session.is_open
    return made


def ack(
    count: int, first: int = 0, flags: int = 0, sent: int = 0, recoverable: int = 0, window: int = 64
) -> SessionAck:
    """A SessionAck of the peer."""
    return SessionAck(SessionHeader(count, first, flags, sent, recoverable, window))


def headers(packets: list[Packet]) -> list[SessionHeader]:
    """The headers of packets that must all be SessionAcks."""
    made = []
    for packet in packets:
        assert isinstance(packet, SessionAck)
        made.append(packet.header)
    return made


def numbers(packets: list[Packet]) -> list[int]:
    """The identifiers of packets that must all be messages."""
    made = []
    for packet in packets:
        assert isinstance(packet, UserMessage)
        made.append(packet.message_id)
    return made
