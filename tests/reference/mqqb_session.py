"""A slow peer of [MS-MQQB] 3.1, initiator and acceptor, written from the text and its rulings S1 to S22.

Elements of the abstract data model (3.1.1.3) have the names of the text. There is no input and output: bytes and times
go in; bytes, accepted messages and the next deadline come out. Times are seconds of any clock, timeouts milliseconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.reference.mqqb_session_packets import (
    GUID_NULL,
    INFINITE,
    OPERATING_SYSTEM,
    ConnectionParameters,
    EstablishConnection,
    MalformedPacketError,
    Packet,
    SessionAck,
    SessionHeader,
    UserMessage,
    first_packet,
    read,
)

RECOVERABLE_ACK_TIMEOUTS = (0x1F4, 0x1D4C0)  # 2.2.2.1
ACK_TIMEOUTS = (0x4E20, 0x1D4C0)
HISTORY = 10_000  # note 25
FLAGS = 32  # bits of RecoverableMsgAckFlags
ACK_WAIT_MULTIPLE = 2  # note 46


def at_most(first: int, second: int) -> bool:
    """Serial comparison of 16-bit counts (S9)."""
    return (second - first) % 65536 < 32768


def clamped(value: int, limits: tuple[int, int]) -> int:
    return min(max(value, limits[0]), limits[1])


@dataclass(eq=False)
class OutgoingMessagePosition:
    """3.1.1.3.1.2; whether the message is recoverable is kept apart from its number (S9)."""

    UserMessage: UserMessage
    SequenceNumber: int = 0
    RecoverableSequenceNumber: int = 0
    AwaitingAck: bool = False
    ReceivedSessionAck: bool = False

    @property
    def recoverable(self) -> bool:
        return self.UserMessage.recoverable


@dataclass
class QueueManager:
    """What outlives a session: 3.1.1.3, with the messages that were accepted, in order."""

    Identifier: bytes
    WindowSize: int = 64
    AckWaitTimeout: int = 20_000
    initialization_timeout: int = 60_000
    cleanup_timeout: int = 300_000
    MessageIdOrdinal: int = 0
    OutgoingMessageTable: list[OutgoingMessagePosition] = field(default_factory=list)
    MessageIDHistoryTable: OrderedDict[tuple[bytes, int], float] = field(default_factory=OrderedDict)
    accepted: list[UserMessage] = field(default_factory=list)
    acknowledged: list[UserMessage] = field(default_factory=list)
    expired: list[UserMessage] = field(default_factory=list)
    duplicates: int = 0
    wall_clock: Callable[[], int] = lambda: 0x60000000

    def send(self, body: bytes, *, recoverable: bool = False, queue: str | None = None) -> None:
        """Add a message to OutgoingMessageTable; identifiers begin at 1 (S11)."""
        self.MessageIdOrdinal += 1
        message = UserMessage(self.Identifier, self.MessageIdOrdinal, body, recoverable, sent_time=self.wall_clock())
        self.put(message if queue is None else replace(message, queue=queue))

    def put(self, message: UserMessage) -> None:
        self.OutgoingMessageTable.append(OutgoingMessagePosition(message))

    def is_expired(self, message: UserMessage) -> bool:
        """3.1.7.1.2"""
        lifetime = message.time_to_reach_queue
        return lifetime != INFINITE and self.wall_clock() - message.sent_time > lifetime

    def is_duplicate(self, message: UserMessage, now: float) -> bool:
        """3.1.5.8.1 with S3; a message that is none is remembered (3.1.5.8.2)."""
        key = message.source_queue_manager, message.message_id
        known = key in self.MessageIDHistoryTable
        self.MessageIDHistoryTable[key] = now
        self.MessageIDHistoryTable.move_to_end(key)
        if len(self.MessageIDHistoryTable) > HISTORY:
            self.MessageIDHistoryTable.popitem(last=False)
        self.duplicates += known
        return known


class Session:
    """One session of a queue manager (3.1.1.3.1), begun when the connection is there."""

    def __init__(
        self, manager: QueueManager, now: float, *, initiator: bool, remote: bytes = GUID_NULL, pinged: bool = False
    ) -> None:
        """3.1.3.2; ``remote`` is the identifier of the acceptor unless a direct name is used."""
        self.manager = manager
        self.now = now
        self.MessageSentCount = self.RecoverableMessageSentCount = 0
        self.MessageReceivedCount = self.RecoverableMessageReceivedCount = 0
        self.RecoverableMsgAckFlags = self.LastAckedRecoverableMsgSeqNumber = self.UnackedReceivedMsgCount = 0
        self.UnAckedMessageCount = 0  # S5
        self.WindowSize = self.ReceivedWindowSize = manager.WindowSize
        self.SessionActive = self.ReceivedAck = False
        self.AckWaitTimeout = manager.AckWaitTimeout
        self.RecoverableAckSendTimeout = RECOVERABLE_ACK_TIMEOUTS[1]
        self.RemoteQMGuid = remote
        self.direct = remote == GUID_NULL
        self.timers: dict[str, float] = {}
        self.ack_send_duration = 0.0
        self.output = b""
        self.input = b""
        self.error: str | None = None
        self.sent: list[Packet] = []
        self.received: list[Packet] = []
        for position in manager.OutgoingMessageTable:
            position.AwaitingAck = position.ReceivedSessionAck = False
        self.start("cleanup", manager.cleanup_timeout)
        self.start("initialization", manager.initialization_timeout)  # S13
        self.SessionState = "WAITING_EC_MSG"
        if initiator:  # 3.1.5.2.3
            self.emit(
                EstablishConnection(
                    manager.Identifier,
                    remote,
                    self.milliseconds(),
                    OPERATING_SYSTEM & ~(0x100 * pinged),
                    padding=bytes(512),
                )
            )
            self.SessionState = "WAITING_ECR_MSG"

    # --- what a caller does ---

    @property
    def closed(self) -> bool:
        return self.SessionState == "CLOSED"

    @property
    def deadline(self) -> float | None:
        return min(self.timers.values(), default=None)

    def take_output(self) -> bytes:
        """The bytes to be sent since the last call; also those of a session that has closed since."""
        output, self.output = self.output, b""
        return output

    def receive(self, data: bytes, now: float) -> None:
        """Bytes of the connection, cut anywhere."""
        self.now = now
        self.input += data
        while not self.closed:
            try:
                packet, self.input = first_packet(self.input)
                if not packet:
                    break
                self.process(read(packet))
            except MalformedPacketError as error:
                self.close(f"malformed: {error}")
        self.send_messages()

    def advance(self, now: float) -> None:
        """The timers that expired by ``now``, in order."""
        while (due := self.deadline) is not None and due <= now and not self.closed:
            self.now = due
            name = min(self.timers, key=lambda name: self.timers[name])
            del self.timers[name]
            getattr(self, f"on_{name}")()
        self.now = now
        self.send_messages()

    def leave(self, now: float) -> None:
        """S18"""
        self.now = now
        self.close("left")

    def close(self, reason: str) -> None:
        """3.1.5.9 with S24: an acknowledgment if one is owed, then close; of a lost connection nothing is sent."""
        if not self.closed:
            if self.SessionState == "OPEN" and self.UnackedReceivedMsgCount and reason != "lost":
                self.send_session_ack()
            self.error = reason
            self.timers.clear()
            self.SessionState = "CLOSED"

    # --- timers: 3.1.2, 3.1.6 ---

    def start(self, name: str, milliseconds: float) -> None:
        self.timers[name] = self.now + milliseconds / 1000

    def on_initialization(self) -> None:
        """3.1.6.6"""
        self.close("initialization timer")

    def on_cleanup(self) -> None:
        """3.1.6.2"""
        if not self.SessionActive:
            self.close("cleanup timer")
        else:
            self.SessionActive = False
            self.start("cleanup", self.manager.cleanup_timeout)

    def on_ack_wait(self) -> None:
        """3.1.6.3"""
        if not self.awaits_ack():
            self.ReceivedAck = False
        elif not self.ReceivedAck:
            self.close("ack wait timer")
        else:
            self.ReceivedAck = False
            self.start_ack_wait()

    def on_ack_send(self) -> None:
        """3.1.6.4; the timer stays stopped (S14)."""
        if self.UnackedReceivedMsgCount:
            self.send_session_ack()

    def start_ack_wait(self) -> None:
        self.start("ack_wait", self.AckWaitTimeout * ACK_WAIT_MULTIPLE)

    def start_ack_send(self, milliseconds: float) -> None:
        self.ack_send_duration = milliseconds / 1000
        self.start("ack_send", milliseconds)

    def awaits_ack(self) -> bool:
        return any(position.AwaitingAck for position in self.manager.OutgoingMessageTable)

    # --- packets received: 3.1.5 ---

    def process(self, packet: Packet) -> None:
        self.ReceivedAck = True
        self.received.append(packet)
        state = self.SessionState
        if isinstance(packet, EstablishConnection) and state == "WAITING_EC_MSG":
            self.on_establish_connection_request(packet)
        elif isinstance(packet, EstablishConnection) and state == "WAITING_ECR_MSG":
            self.on_establish_connection_response(packet)
        elif isinstance(packet, ConnectionParameters) and state in ("WAITING_CP_MSG", "WAITING_CPR_MSG"):
            self.on_connection_parameters(packet, request=state == "WAITING_CP_MSG")
        elif isinstance(packet, SessionAck) and state == "OPEN":
            if packet.refused:  # S15
                self.close("refused")
            else:
                self.on_session_header(packet.header)
        elif isinstance(packet, UserMessage) and state == "OPEN":
            self.on_user_message(packet)
        else:
            self.close(f"{type(packet).__name__} in {state}")

    def on_establish_connection_request(self, packet: EstablishConnection) -> None:
        """3.1.5.3.1 with S12"""
        self.RemoteQMGuid = packet.client_guid
        own = self.manager.Identifier
        valid = packet.server_guid in (own, GUID_NULL)
        system = 0x0010 | packet.operating_system & 0x100
        self.emit(EstablishConnection(packet.client_guid, own, packet.time_stamp, system, refused=not valid))
        self.SessionState = "WAITING_CP_MSG"
        self.start("initialization", self.manager.initialization_timeout)
        if not valid:
            self.close("wrong ServerGuid")

    def on_establish_connection_response(self, packet: EstablishConnection) -> None:
        """3.1.5.3.2 with S1"""
        known = self.direct or packet.server_guid == self.RemoteQMGuid
        if packet.refused or packet.client_guid != self.manager.Identifier or not known:
            self.close("refused" if packet.refused else "wrong identifiers")
            return
        self.RemoteQMGuid = packet.server_guid
        round_trip = (self.milliseconds() - packet.time_stamp) % 2**32
        self.RecoverableAckSendTimeout = clamped(8 * round_trip, RECOVERABLE_ACK_TIMEOUTS)
        self.emit(ConnectionParameters(self.RecoverableAckSendTimeout, self.AckWaitTimeout, self.WindowSize))
        self.SessionState = "WAITING_CPR_MSG"

    def on_connection_parameters(self, packet: ConnectionParameters, *, request: bool) -> None:
        """3.1.5.4 with S15 and S19"""
        if packet.refused:
            self.close("refused")
            return
        self.ReceivedWindowSize = packet.window_size
        if request:
            self.AckWaitTimeout = clamped(packet.ack_timeout, ACK_TIMEOUTS)
            self.RecoverableAckSendTimeout = clamped(packet.recoverable_ack_timeout, RECOVERABLE_ACK_TIMEOUTS)
            self.emit(replace(packet, window_size=self.WindowSize))
        self.timers.pop("initialization", None)
        self.SessionState = "OPEN"

    def on_session_header(self, header: SessionHeader) -> None:
        """3.1.5.5 with S4, S9, S10 and S19"""
        table = self.manager.OutgoingMessageTable
        if not at_most(header.ack_sequence_number, self.MessageSentCount):
            self.close("AckSequenceNumber above what was sent")
            return
        for position in [position for position in table if position.AwaitingAck]:
            if at_most(position.SequenceNumber, header.ack_sequence_number) and not position.ReceivedSessionAck:
                position.ReceivedSessionAck = True
                self.UnAckedMessageCount -= 1
            if self.is_deleted_by(header, position):
                if not position.ReceivedSessionAck:
                    self.UnAckedMessageCount -= 1
                table.remove(position)
                self.manager.acknowledged.append(position.UserMessage)
        if header.window_size:
            self.ReceivedWindowSize = header.window_size
        if header.user_msg_sequence_number != self.MessageReceivedCount:
            self.close("UserMsgSequenceNumber")
        elif header.recoverable_msg_seq_number != self.RecoverableMessageReceivedCount:
            self.close("RecoverableMsgSeqNumber")
        elif self.awaits_ack():
            self.start_ack_wait()

    def is_deleted_by(self, header: SessionHeader, position: OutgoingMessagePosition) -> bool:
        """3.1.5.5.2, 3.1.5.5.3"""
        if not position.recoverable:
            return position.ReceivedSessionAck
        first, flags = header.recoverable_msg_ack_seq_number, header.recoverable_msg_ack_flags
        if first == flags == 0 or not at_most(first, self.RecoverableMessageSentCount):  # S10
            return False
        bit = (position.RecoverableSequenceNumber - first) % 65536
        return at_most(position.RecoverableSequenceNumber, first) or (bit < FLAGS and bool(flags >> bit & 1))

    def on_user_message(self, message: UserMessage) -> None:
        """3.1.5.8 with S2, S6, S7, S8 and S19, without 3.1.5.8.6"""
        self.MessageReceivedCount = (self.MessageReceivedCount + 1) % 65536
        self.UnackedReceivedMsgCount += 1
        self.SessionActive = True
        if "ack_send" not in self.timers:
            self.start_ack_send(self.AckWaitTimeout / 2)
        if message.recoverable:
            self.RecoverableMessageReceivedCount = (self.RecoverableMessageReceivedCount + 1) % 65536
        if not self.manager.is_duplicate(message, self.now):
            target = self.manager.expired if self.manager.is_expired(message) else self.manager.accepted
            target.append(message)
        if message.recoverable:
            self.on_recoverable_message()
        if message.session_header is not None:
            self.on_session_header(message.session_header)
        if not self.closed and self.UnackedReceivedMsgCount >= max(
            1, min(self.WindowSize, self.ReceivedWindowSize) // 2
        ):
            self.send_session_ack()

    def on_recoverable_message(self) -> None:
        """3.1.5.8.7 with S7"""
        bit = (self.RecoverableMessageReceivedCount - self.LastAckedRecoverableMsgSeqNumber - 1) % 65536
        if bit >= FLAGS:
            self.send_session_ack(self.RecoverableMessageReceivedCount - 1)
            self.UnackedReceivedMsgCount = 1
            bit = 0
        if not self.RecoverableMsgAckFlags:
            self.start_ack_send(self.RecoverableAckSendTimeout)
        self.RecoverableMsgAckFlags |= 1 << bit

    # --- packets sent: 3.1.7.1, 3.1.7.11 ---

    def send_messages(self) -> None:
        """3.1.7.1 for each message that waits, in order"""
        if self.SessionState != "OPEN":
            return
        for position in list(self.manager.OutgoingMessageTable):
            if self.UnAckedMessageCount >= min(self.WindowSize, max(1, self.ReceivedWindowSize)):  # S4
                return
            if position.AwaitingAck:
                continue
            if self.manager.is_expired(position.UserMessage):
                self.manager.OutgoingMessageTable.remove(position)
                self.manager.expired.append(position.UserMessage)
                continue
            self.send_message(position)

    def send_message(self, position: OutgoingMessagePosition) -> None:
        """3.1.7.1.3; the header of 3.1.7.11 is filled now, with this message counted (S6)."""
        self.MessageSentCount = position.SequenceNumber = (self.MessageSentCount + 1) % 65536
        if position.recoverable:
            self.RecoverableMessageSentCount = (self.RecoverableMessageSentCount + 1) % 65536
            position.RecoverableSequenceNumber = self.RecoverableMessageSentCount
        self.UnAckedMessageCount += 1
        position.AwaitingAck = True
        self.SessionActive = True
        if "ack_wait" not in self.timers:
            self.start_ack_wait()
        late = self.now > self.timers.get("ack_send", float("inf")) - self.ack_send_duration / 4
        header = self.session_header() if late and self.UnackedReceivedMsgCount else None
        self.emit(replace(position.UserMessage, session_header=header))

    def send_session_ack(self, persisted: int | None = None) -> None:
        self.emit(SessionAck(self.session_header(persisted)))

    def session_header(self, persisted: int | None = None) -> SessionHeader:
        """The acknowledgment of all that was received; recoverable messages up to the number ``persisted`` (S7)."""
        first = (self.LastAckedRecoverableMsgSeqNumber + 1) % 65536 if self.RecoverableMsgAckFlags else 0
        header = SessionHeader(
            self.MessageReceivedCount,
            first,
            self.RecoverableMsgAckFlags,
            self.MessageSentCount,
            self.RecoverableMessageSentCount,
            self.WindowSize,
        )
        self.RecoverableMsgAckFlags = self.UnackedReceivedMsgCount = 0
        last = self.RecoverableMessageReceivedCount if persisted is None else persisted
        self.LastAckedRecoverableMsgSeqNumber = last % 65536
        self.timers.pop("ack_send", None)
        return header

    def emit(self, packet: Packet) -> None:
        self.sent.append(packet)
        self.output += packet.pack()

    def milliseconds(self) -> int:
        return int(self.now * 1000) % 2**32
