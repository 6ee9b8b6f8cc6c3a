"""Packets in a stream of bytes, divided anywhere."""

from __future__ import annotations

import random

import pytest

from msmqwire.errors import DecodeError
from msmqwire.session.framing import PacketReader
from tests.reference.mqqb_session_packets import ConnectionParameters, SessionHeader, UserMessage
from tests.session.peers import PEER, acknowledgment, incoming

PACKETS = [
    ConnectionParameters().pack(),
    incoming(1),
    incoming(2, header=SessionHeader(1)),
    acknowledgment(3),
    incoming(4),
]


@pytest.mark.parametrize("seed", range(20))
def test_packets_divided_anywhere(seed: int) -> None:
    chance = random.Random(seed)
    reader = PacketReader(4 << 20)
    data = b"".join(PACKETS)
    found: list[bytes] = []
    while data:
        size = chance.choice((1, 2, 15, 100, 1000))
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == PACKETS
    assert len(reader) == 0


@pytest.mark.parametrize("first", [1, 16, 17, 26, 65551, 65552, 65553, 131100])
def test_a_large_packet_in_large_parts(first: int) -> None:
    reader = PacketReader(4 << 20)
    packet = UserMessage(PEER.bytes_le, 1, bytes(range(251)) * 1000).pack()
    assert list(reader.feed(packet[:first])) == []
    assert list(reader.feed(packet[first:-3])) == []
    assert len(reader) == len(packet) - 3
    assert list(reader.feed(packet[-3:] + PACKETS[0])) == [packet, PACKETS[0]]


def test_session_header_after_packet_size_belongs_to_the_packet() -> None:
    reader = PacketReader(4 << 20)
    data = PACKETS[2]
    assert list(reader.feed(data[:-16])) == []
    assert list(reader.feed(data[-16:])) == [data]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"G", "bad_version: VersionNumber at byte 0: is 0x47"),
        (b"\x10\0\0\0L0", "bad_signature: Signature at byte 4: is 0x304c"),
        (PACKETS[0][:8] + b"\x0f\0\0\0" + PACKETS[0][12:], "bad_size: PacketSize at byte 8: needs 16, there is 15"),
        (
            PACKETS[0][:8] + b"\x01\0\x40\0" + PACKETS[0][12:16],
            "too_large: PacketSize at byte 8: is 4194305, can be at most 4194304",
        ),
    ],
)
def test_not_a_packet(data: bytes, what: str) -> None:
    reader = PacketReader(4 << 20)
    stream = reader.feed(PACKETS[1] + data)
    assert next(stream) == PACKETS[1], "the packets before are given first"
    with pytest.raises(DecodeError, match=what):
        next(stream)


def test_the_first_byte_shows_that_it_is_no_packet() -> None:
    with pytest.raises(DecodeError, match="VersionNumber"):
        list(PacketReader(4 << 20).feed(b"G"))
    reader = PacketReader(4 << 20)
    assert list(reader.feed(PACKETS[0])) == [PACKETS[0]]
    with pytest.raises(DecodeError, match="VersionNumber"):
        list(reader.feed(b"G"))


@pytest.mark.parametrize("size", range(1, 18))
def test_packet_of_a_base_header(size: int) -> None:
    """It is a packet as in captures, as soon as its bytes are there."""
    data = PACKETS[0][:8] + b"\x10\0\0\0" + PACKETS[0][12:16]
    found: list[bytes] = []
    reader = PacketReader(4 << 20)
    for at in range(0, 32, size):
        found += reader.feed((data + data)[at : at + size])
        assert len(found) == min(at + size, 32) // 16
    assert found == [data, data]


def test_largest_packet() -> None:
    header = PACKETS[0][:8] + (4 << 20).to_bytes(4, "little") + PACKETS[0][12:16]
    reader = PacketReader(4 << 20)
    assert list(reader.feed(header)) == []
    with pytest.raises(DecodeError, match="is 4194304, can be at most 4194303"):
        list(PacketReader((4 << 20) - 1).feed(header))
