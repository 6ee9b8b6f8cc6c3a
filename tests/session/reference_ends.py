"""The reference peer as ends of a simulation."""

from __future__ import annotations

from tests.reference.mqqb_session import QueueManager, Session
from tests.reference.mqqb_session_packets import UserMessage
from tests.session.simulation import Sent

SENDER, RECEIVER = b"s" * 16, b"r" * 16


class ReferenceEnd:
    """One queue manager of the reference, over all its sessions."""

    initiator = False

    def __init__(self, manager: QueueManager) -> None:
        self.manager = manager
        self.session: Session | None = None

    def connect(self, now: float) -> None:
        self.session = Session(self.manager, now, initiator=self.initiator)

    def receive(self, data: bytes, now: float) -> None:
        if self.session is not None:
            self.session.receive(data, now)

    def advance(self, now: float) -> None:
        if self.session is not None:
            self.session.advance(now)

    def disconnect(self, now: float) -> None:
        if self.session is not None:
            self.session.close("disconnected")

    def take_output(self) -> bytes:
        return b"" if self.session is None else self.session.take_output()

    @property
    def deadline(self) -> float | None:
        return None if self.session is None else self.session.deadline

    @property
    def closed(self) -> bool:
        return self.session is None or self.session.closed


class ReferenceSender(ReferenceEnd):
    """The reference as initiator."""

    initiator = True

    def __init__(self, window: int = 64) -> None:
        super().__init__(QueueManager(SENDER, WindowSize=window))

    def send(self, message: Sent) -> None:
        body = b"%d" % message.number
        self.manager.put(UserMessage(SENDER, message.number, body, message.recoverable))
        if self.session is not None:
            self.session.send_messages()

    @property
    def acknowledged(self) -> list[int]:
        return [message.message_id for message in self.manager.acknowledged]

    @property
    def in_flight(self) -> int:
        return 0 if self.session is None else self.session.UnAckedMessageCount


class ReferenceReceiver(ReferenceEnd):
    """The reference as acceptor."""

    def __init__(self, window: int = 64) -> None:
        super().__init__(QueueManager(RECEIVER, WindowSize=window))

    @property
    def accepted(self) -> list[int]:
        return [message.message_id for message in self.manager.accepted]
