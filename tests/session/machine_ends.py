"""Our machines as ends of a simulation."""

from __future__ import annotations

from uuid import UUID

from msmqwire import mqqb
from msmqwire.session import (
    Acceptor,
    ConnectionWanted,
    Event,
    Initiator,
    MessageIDHistory,
    MessageReceived,
    MessagesAcknowledged,
    Session,
    Settings,
)
from tests.session.simulation import Sent

SENDER, RECEIVER = UUID(int=1), UUID(int=2)
DESTINATION = "DIRECT=TCP:127.0.0.1\\private$\\orders"


class MachineEnd:
    """What both roles have in common; ``session`` is the machine of the current connection."""

    session: Session | None

    def handle(self, events: list[Event]) -> None:
        raise NotImplementedError

    def receive(self, data: bytes, now: float) -> None:
        if self.session is not None:
            self.handle(self.session.receive_data(data, now))

    def advance(self, now: float) -> None:
        if self.session is not None:
            self.handle(self.session.handle_deadline(now))

    def disconnect(self, now: float) -> None:
        if self.session is not None:
            self.handle(self.session.connection_lost(now))

    def take_output(self) -> bytes:
        return b"" if self.session is None else self.session.data_to_send()

    @property
    def deadline(self) -> float | None:
        return None if self.session is None else self.session.next_deadline()

    @property
    def closed(self) -> bool:
        return self.session is None or self.session.state in ("CLOSED", "WAITING_RECONNECT")


class MachineSender(MachineEnd):
    """One ``Initiator`` for all connections."""

    def __init__(self, window: int = 64) -> None:
        self.session: Initiator = Initiator(SENDER, settings=Settings(window_size=window), wall_clock=lambda: 1e9)
        self.acknowledged: list[int] = []
        self.wants_connection = 0
        self.now = 0.0

    def connect(self, now: float) -> None:
        self.now = now
        self.session.connection_made(now)

    def receive(self, data: bytes, now: float) -> None:
        self.now = now
        super().receive(data, now)

    def advance(self, now: float) -> None:
        self.now = now
        super().advance(now)

    def send(self, message: Sent) -> None:
        sent = mqqb.UserMessage(
            destination_queue=DESTINATION,
            delivery_mode="recoverable" if message.recoverable else "express",
            body=b"%d" % message.number,
        )
        assert self.session.send(sent, self.now) == message.number  # S11

    def handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, MessagesAcknowledged):
                self.acknowledged += event.message_ids
            self.wants_connection += isinstance(event, ConnectionWanted)

    @property
    def in_flight(self) -> int:
        return self.session.sending.unacked_message_count


class MachineReceiver(MachineEnd):
    """An ``Acceptor`` for each connection, with one history."""

    def __init__(self, window: int = 64) -> None:
        self.settings = Settings(window_size=window)
        self.history = MessageIDHistory()
        self.session: Acceptor | None = None
        self.accepted: list[int] = []

    def connect(self, now: float) -> None:
        self.session = Acceptor(RECEIVER, settings=self.settings, history=self.history, wall_clock=lambda: 1e9)
        self.session.connection_made(now)

    def handle(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, MessageReceived):
                assert bytes(event.message.body) == b"%d" % event.message.message_id
                self.accepted.append(event.message.message_id)
