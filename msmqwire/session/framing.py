"""Packets in the bytes of a connection: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from msmqwire.mqqb.framing import (
    BASE_HEADER_SIZE,
    FLAG_INTERNAL,
    FLAG_SESSION,
    PACKET_SIGNATURE,
    SESSION_HEADER_SIZE,
    VERSION_NUMBER,
)
from msmqwire.mqqb.message_headers import MESSAGE_HEADERS

_FLAGS_AND_SIZE = struct.Struct("<2xH4xI")

_USER_HEADER: Any = next(header for header in MESSAGE_HEADERS if header.section == "USER").dtype.fields


def _field(name: str) -> slice:
    """The bytes of a packet that have a field of its UserHeader."""
    dtype, offset = _USER_HEADER[name][:2]
    return slice(BASE_HEADER_SIZE + offset, BASE_HEADER_SIZE + offset + dtype.itemsize)


SOURCE_QUEUE_MANAGER, QUEUE_MANAGER_ADDRESS = _field("source_queue_manager"), _field("queue_manager_address")
SENT_TIME, MESSAGE_ID = _field("sent_time"), _field("message_id")


class FramingError(ValueError):
    """Bytes in which no packet begins, or one that is too large."""


class PacketReader:
    """Divides a stream into packets. It keeps the bytes of one incomplete packet, at most ``max_packet_size``.

    A SessionHeader stands after the PacketSize of a message and belongs to the packet; the PacketSize of a SessionAck
    counts it (S16).
    """

    def __init__(self, max_packet_size: int) -> None:
        self._buffer = bytearray()
        self._needed = 1
        self._max_packet_size = max_packet_size

    def __len__(self) -> int:
        """Bytes kept."""
        return len(self._buffer)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """The packets that ``data`` completes.

        Raises
        ------
        FramingError
            As soon as the bytes show that they are no packet; the packets before it are given first.
        """
        buffer = self._buffer
        buffer += data
        if len(buffer) < self._needed:
            return
        at = 0
        try:
            while (left := len(buffer) - at) > 0:
                size = self._packet_size(at)
                if left < size:
                    self._needed = size if left >= BASE_HEADER_SIZE else left + 1
                    return
                packet = bytes(memoryview(buffer)[at : at + size])
                at += size
                yield packet
            self._needed = 1
        finally:
            del buffer[:at]

    def _packet_size(self, at: int) -> int:
        """The size of the packet at ``at``, or of a BaseHeader if that is incomplete."""
        head = self._buffer[at : at + BASE_HEADER_SIZE]
        if head[0] != VERSION_NUMBER:
            raise FramingError(f"VersionNumber is 0x{head[0]:02x}, not 0x10")
        if not PACKET_SIGNATURE.startswith(head[4:8]):
            raise FramingError("the signature of a packet is missing")
        if len(head) < BASE_HEADER_SIZE:
            return BASE_HEADER_SIZE
        flags, size = _FLAGS_AND_SIZE.unpack_from(head)
        if not BASE_HEADER_SIZE < size <= self._max_packet_size:
            raise FramingError(f"PacketSize is {size}, not from {BASE_HEADER_SIZE + 1} to {self._max_packet_size}")
        if flags & (FLAG_INTERNAL | FLAG_SESSION) == FLAG_SESSION:
            size += SESSION_HEADER_SIZE
        return int(size)
