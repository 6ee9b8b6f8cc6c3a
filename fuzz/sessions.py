"""The machines of a session beside the reference peer: the same packets, bytes and times for both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from uuid import UUID

from msmqwire import mqqb
from msmqwire.session import (
    Acceptor,
    Event,
    Initiator,
    MessageIDHistory,
    MessageReceived,
    MessagesAcknowledged,
    Settings,
)
from tests.reference.mqqb_session import QueueManager, Session
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
WINDOWS = (64, 1, 2, 200)
TIMEOUTS = (0, 500, 700, 20_000, 30_000, 120_000, 0xFFFFFFFF, 1000)
SECONDS = (0.0, 0.3, 0.4, 0.6, 6.0, 9.0, 15.0, 45.0)
REPEATED = (1, 1, 1, 2, 5, 16, 31, 33)
SERVERS = (GUID_NULL, OWN.bytes_le, PEER.bytes_le, bytes(range(16)))
Given = Packet | bytes


class Input:
    """The bytes of an input, taken one after the other; zeros after their end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def __bool__(self) -> bool:
        return self._position < len(self._data)

    def byte(self) -> int:
        """The next byte."""
        return (self.bytes(1) or b"\0")[0]

    def small(self) -> int:
        """A number below 65536, most often one around 0."""
        value = self.byte()
        return value if value < 192 else (value - 256) % 65536

    def bytes(self, count: int) -> bytes:
        """The next bytes, fewer at the end."""
        self._position += count
        return self._data[self._position - count : self._position]


class Both:
    """One end of a session as machine and as reference, in one role, over all connections."""

    def __init__(self, *, initiator: bool, window: int) -> None:
        self.initiator = initiator
        self.settings = Settings(window_size=window, ack_wait_multiple=2)
        # The reference forgets by number alone
        self.history = MessageIDHistory(cleanup_timeout=float("inf"))
        self.manager = QueueManager(OWN.bytes_le, WindowSize=window, wall_clock=lambda: WALL_TIME)
        self.machine: Initiator | Acceptor = self._machine()
        self.now = 1000.0
        self.delivered: list[tuple[bytes, int]] = []
        self.acknowledged: list[int] = []
        self.compared = True
        self.connect()

    def _machine(self) -> Initiator | Acceptor:
        role: Callable[..., Initiator | Acceptor] = Initiator if self.initiator else Acceptor
        return role(OWN, settings=self.settings, history=self.history, wall_clock=lambda: WALL_TIME)

    def connect(self) -> None:
        """Begin a session."""
        if not self.initiator:
            self.machine = self._machine()
        self.machine.connection_made(self.now)
        self.reference = Session(self.manager, self.now, initiator=self.initiator)
        self.check()

    def reconnect(self) -> None:
        """End this connection, if it has not ended, and make another."""
        self.handle(self.machine.connection_lost(self.now))
        self.reference.close("lost")
        if not self.initiator:
            self.manager.OutgoingMessageTable.clear()
        self.connect()

    def give(self, packet: Given) -> None:
        """A packet of the peer, or bytes in its place."""
        if isinstance(packet, bytes) or (isinstance(packet, UserMessage) and packet.tx_sequence_number is not None):
            # What is malformed is judged by message_packet and session_packet, and the reference has no sequences
            # ([MS-MQQB] 3.1.5.8.6): from here on only promises are checked
            self.compared = False
        data = packet if isinstance(packet, bytes) else packet.pack()
        self.handle(self.machine.receive_data(data, self.now))
        if self.compared:
            self.reference.receive(data, self.now)
        self.check()

    def send(self, *, recoverable: bool, expired: bool) -> None:
        """A message from here."""
        lifetime = 5 if expired else 0xFFFFFFFF
        sent_time = WALL_TIME - 10
        message_id = self.machine.send(
            mqqb.UserMessage(
                destination_queue="DIRECT=OS:a\\b",
                delivery_mode="recoverable" if recoverable else "express",
                sent_time=sent_time,
                time_to_reach_queue=lifetime,
            ),
            self.now,
        )
        queue = "OS:a\\b"
        self.manager.put(
            UserMessage(
                OWN.bytes_le, message_id, b"", recoverable, queue, sent_time=sent_time, time_to_reach_queue=lifetime
            )
        )
        if self.machine.next_deadline() == -math.inf:  # it has expired
            self.handle(self.machine.handle_deadline(self.now))
        if self.compared:
            self.reference.send_messages()
        self.check()

    def wait(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        until = self.now + seconds
        for _ in range(100):
            due = self.machine.next_deadline()
            if due is None or due > until or self.closed:
                break
            self.now = max(self.now, due)
            self.handle(self.machine.handle_deadline(self.now))
            if self.compared:
                self.reference.advance(self.now)
            self.check()
        else:
            raise AssertionError("a timer that expires again and again")
        self.now = until
        if self.compared:
            self.reference.advance(self.now)
        self.check()

    @property
    def closed(self) -> bool:
        """Whether the machine has closed the session."""
        return self.machine.state in ("CLOSED", "WAITING_RECONNECT")

    def handle(self, events: list[Event]) -> None:
        """What the machine reports."""
        for event in events:
            if isinstance(event, MessageReceived):
                self.delivered.append((event.message.source_queue_manager.bytes_le, event.message.message_id))
            elif isinstance(event, MessagesAcknowledged):
                self.acknowledged += event.message_ids

    def check(self) -> None:
        """The machine sends whole packets, and as long as both are given packets, those of the reference."""
        data, packets = self.machine.data_to_send(), []
        while data:
            packet, data = first_packet(data)
            assert packet, "an incomplete packet"
            packets.append(read(packet))
        assert self.machine.sending.unacked_message_count <= self.settings.window_size
        if not self.compared:
            return
        sent = self.reference.sent
        self.reference.sent = []
        self.reference.take_output()
        assert [summary(packet) for packet in packets] == [summary(packet) for packet in sent]
        assert self.closed == self.reference.closed, (self.machine, self.reference.error)
        assert self.delivered == [(each.source_queue_manager, each.message_id) for each in self.manager.accepted]
        assert self.acknowledged == [each.message_id for each in self.manager.acknowledged]
        if not self.closed:
            assert self.machine.next_deadline() == self.reference.deadline


def summary(packet: Packet) -> object:
    """What must be equal in packets of both."""
    if isinstance(packet, UserMessage):
        return packet.message_id, packet.recoverable, packet.session_header
    if isinstance(packet, EstablishConnection):
        return packet.client_guid, packet.server_guid, packet.refused, packet.operating_system & 0x1FF
    return packet


def header(source: Input, both: Both) -> SessionHeader:
    """A header whose counts are those of the session, plus what the input adds to them."""
    session = both.machine
    counts = (
        session.sending.message_sent_count,
        0,
        0,
        session.receiving.message_received_count,
        session.receiving.recoverable_message_received_count,
        0,
    )
    added = [source.small() for _ in counts]
    if not both.initiator and added[0] > 1 << 15:
        added[0] = 0
    first, flags = added[1], int.from_bytes(source.bytes(2), "little")
    return SessionHeader(
        (counts[0] - min(counts[0], added[0])) % 65536 if added[0] < 192 else (counts[0] + 1) % 65536,
        min(first, session.sending.recoverable_message_sent_count),
        flags,
        (counts[3] + added[3] % 3) % 65536,
        (counts[4] + added[4] % 3) % 65536,
        added[5],
    )


def message(source: Input, both: Both, choices: int, number: int) -> UserMessage:
    """A message of the peer; the bits of ``choices`` say of which kind."""
    recoverable = bool(choices & 1)
    carried = None
    if choices & 4:
        counted = header(source, both)
        carried = counted._replace(
            user_msg_sequence_number=(counted.user_msg_sequence_number + 1) % 65536,
            recoverable_msg_seq_number=(counted.recoverable_msg_seq_number + recoverable) % 65536,
        )
    return UserMessage(
        PEER.bytes_le,
        number,
        recoverable=recoverable,
        sent_time=WALL_TIME - 10,
        time_to_reach_queue=5 if choices & 24 == 8 else 0xFFFFFFFF,
        tx_sequence_number=1 if choices & 24 == 24 and recoverable else None,
        session_header=carried,
    )


def operation(source: Input, both: Both, fresh: itertools.count[int]) -> None:
    """One thing that happens to both."""
    code = source.byte()
    more = code >> 3
    kind = code & 7
    if kind == 0:
        both.give(source.bytes(1 + source.byte()))
    elif kind == 1:
        # A slow handshake makes an initiator raise AckTimeout, which the text does not know
        slow = both.machine.is_open or not both.initiator
        both.wait(SECONDS[more % 8] if slow else min(1.0, SECONDS[more % 8]))
    elif kind == 2:
        stamp = int(both.now * 1000) % 2**32
        if both.initiator:
            client, server = (OWN if more & 1 else PEER).bytes_le, PEER.bytes_le
        else:
            client, server = PEER.bytes_le, SERVERS[more & 3]
        both.give(EstablishConnection(client, server, stamp, 0x110 if more & 4 else 0x10, refused=bool(more & 8)))
    elif kind == 3:
        timeouts = source.byte()
        both.give(
            ConnectionParameters(
                TIMEOUTS[timeouts & 7], TIMEOUTS[timeouts >> 3 & 7], source.small(), refused=bool(more & 8)
            )
        )
    elif kind == 4:
        both.give(SessionAck(header(source, both), refused=more == 31))
    elif kind == 5:
        for _ in range(1 if more & 2 else REPEATED[source.byte() % 8]):
            both.give(message(source, both, more, source.byte() if more & 2 else 1000 + next(fresh)))
    elif kind == 6:
        for _ in range(1 + more % 8):
            both.send(recoverable=bool(more & 8), expired=bool(more & 16))
    else:
        both.reconnect()


def session_machines(data: bytes) -> None:
    """A byte that chooses role, window, and whether the session is open; then operations: a code and what it takes.

    A machine sends the packets of the reference, closes when it does, and has its deadlines. After bytes that are not
    made by the reference, it still raises nothing and sends whole packets.
    """
    source = Input(data)
    first = source.byte()
    both = Both(initiator=bool(first & 1), window=WINDOWS[first >> 1 & 3])
    if first & 8:
        if both.initiator:
            both.give(EstablishConnection(OWN.bytes_le, PEER.bytes_le, int(both.now * 1000) % 2**32))
        else:
            both.give(EstablishConnection(PEER.bytes_le, GUID_NULL))
        both.give(ConnectionParameters(window_size=WINDOWS[first >> 4 & 3]))
        assert both.machine.is_open
    fresh: itertools.count[int] = itertools.count()
    while source:
        operation(source, both, fresh)
