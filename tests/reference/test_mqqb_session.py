"""The reference peer against the frames of [MS-MQQB] 4.1 and against itself."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from tests.reference.mqqb_session import QueueManager, Session, at_most
from tests.reference.mqqb_session_packets import (
    ConnectionParameters,
    EstablishConnection,
    MalformedPacketError,
    SessionAck,
    SessionHeader,
    UserMessage,
    first_packet,
    read,
    read_ping,
)

CLIENT, SERVER = (UUID(int=number).bytes_le for number in (1, 2))


def test_session_ack_of_the_example() -> None:
    """4.1.8; the reserved byte of BaseHeader aside."""
    frame = bytes.fromhex("10cd1b004c494f5224000000ffffffff0000010001000000000000000000000040000000")
    assert SessionAck(SessionHeader(1)).pack() == frame[:1] + b"\0" + frame[2:]
    assert read(frame) == SessionAck(SessionHeader(1))


def test_pings_of_the_example() -> None:
    """4.1.1 and 4.1.2; the bits that are not used aside."""
    request = read_ping(bytes.fromhex("017d485504000000d1587355509195954997b6e611ea26c6"))
    response = bytes.fromhex("95b24855040000000789cd434c39118f44459078909ea0fc")
    assert request is not None
    answer = request.answer(response[8:])
    assert answer.pack() == b"\1\0" + response[2:]
    assert request.answer(SERVER, refused=True).flags == 3
    assert read_ping(answer.pack()[:-1]) is None
    assert read_ping(b"\0\0\0\0" + answer.pack()[4:]) is None


@pytest.mark.parametrize(
    "packet",
    [
        EstablishConnection(CLIENT, SERVER, 7, 0x10, refused=True),
        ConnectionParameters(1, 2, 3, refused=True),
        SessionAck(SessionHeader(1, 2, 3, 4, 5, 6), refused=True),
        UserMessage(CLIENT, 5, b"body", True, label="label", time_to_reach_queue=6, body_type=31),
        UserMessage(CLIENT, 5, queue="3", queue_manager_address=SERVER, session_header=SessionHeader(1)),
        UserMessage(CLIENT, 5, b"x", True, tx_sequence_number=9, tx_previous=4, tx_sequence_id=(3, 2), tx_flags=6),
    ],
    ids=lambda packet: type(packet).__name__,
)
def test_packets_are_read_as_written(packet: EstablishConnection | UserMessage) -> None:
    data = packet.pack()
    assert first_packet(data + b"rest") == (data, b"rest")
    assert read(data) == packet
    assert all(first_packet(data[:size]) == (b"", data[:size]) for size in range(len(data)))


def test_malformed_base_header() -> None:
    data = SessionAck(SessionHeader()).pack()
    for position, value in ((0, 0x11), (4, 0), (8, 15), (11, 1)):
        with pytest.raises(MalformedPacketError):
            first_packet(data[:position] + bytes([value]) + data[position + 1 :])


def test_counts_are_compared_serially() -> None:
    """S9"""
    assert at_most(65535, 0)
    assert not at_most(0, 65535)
    assert at_most(0, 32767)
    assert not at_most(0, 32768)


@pytest.mark.parametrize("seed", range(20))
def test_reference_delivers_to_itself(seed: int) -> None:
    """Each message arrives once and in order, however often the connection is cut."""
    chance = random.Random(seed)
    sender = QueueManager(CLIENT, WindowSize=chance.choice((1, 2, 64, 200)))
    receiver = QueueManager(SERVER, WindowSize=chance.choice((0, 1, 64, 500)))
    for number in range(150):
        sender.send(b"%d" % number, recoverable=chance.random() < 0.5)
    sent = [position.UserMessage for position in sender.OutgoingMessageTable]
    now = 0.0
    while sender.OutgoingMessageTable:
        ends = Session(sender, now, initiator=True), Session(receiver, now, initiator=False)
        steps = chance.randrange(1, 200)
        while steps and not any(end.closed for end in ends):
            steps -= 1
            moved = [end.take_output() for end in ends]
            for end, data in zip(reversed(ends), moved, strict=True):
                cut = chance.randrange(len(data) + 1) if steps == 0 else len(data)
                end.receive(data[:cut], now)
            if not any(moved):
                now = min(deadline for end in ends if (deadline := end.deadline) is not None)
                for end in ends:
                    end.advance(now)
    assert sorted(sender.acknowledged, key=lambda message: message.message_id) == sent
    numbers = [message.message_id for message in receiver.accepted]
    assert len(set(numbers)) == len(numbers) == len(sent)
    assert numbers == sorted(numbers)


def test_first_acknowledgment_of_a_recoverable_message() -> None:
    """3.1.5.8.7: after RecoverableAckSendTimeout, with bit 0 of the flags."""
    sender, receiver = QueueManager(CLIENT), QueueManager(SERVER)
    sender.send(b"a", recoverable=True)
    ends = Session(sender, 0.0, initiator=True), Session(receiver, 0.0, initiator=False)
    for _ in range(3):
        ends[1].receive(ends[0].take_output(), 0.0)
        ends[0].receive(ends[1].take_output(), 0.0)
    assert ends[1].deadline == 0.5
    ends[1].advance(0.5)
    assert ends[1].sent[-1] == SessionAck(SessionHeader(1, 1, 1))
