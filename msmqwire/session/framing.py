"""Packets in the bytes of a connection: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1."""

from __future__ import annotations

import mmap
import struct
import sys
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

#: Bytes of an incomplete packet that are kept together.
_BLOCK = 1 << 16
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
        self._max_packet_size = max_packet_size
        self.clear()

    def __len__(self) -> int:
        """Bytes kept."""
        return self._kept

    def clear(self) -> None:
        """Release the bytes kept."""
        self._kept = 0
        self._size = 1
        self._header = bytearray()
        self._blocks: list[mmap.mmap] = []

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """The packets that ``data`` completes.

        Raises
        ------
        FramingError
            As soon as the bytes show that they are no packet; the packets before it are given first.
        """
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                if (kept := self._kept) < BASE_HEADER_SIZE:
                    part = rest[at : at + BASE_HEADER_SIZE - kept]
                    self._header += part
                    self._size = self._packet_size()
                elif kept + len(rest) - at < self._size:
                    part = rest[at:]
                    self._keep(part)
                else:
                    part = rest[at : at + self._size - kept]
                    packet = self._joined(part)
                    at += len(part)
                    self.clear()
                    yield packet
                    continue
                self._kept += len(part)
                at += len(part)

    def _keep(self, part: memoryview) -> None:
        """Keep bytes after the BaseHeader, in blocks that the system takes back as soon as they are released."""
        at = 0
        while at < len(part):
            start = (self._kept + at - BASE_HEADER_SIZE) % _BLOCK
            if not start:
                self._blocks.append(_new_block())
            taken = part[at : at + _BLOCK - start]
            self._blocks[-1][start : start + len(taken)] = taken
            at += len(taken)

    def _joined(self, end: memoryview) -> bytes:
        """The packet whose last bytes are ``end``."""
        last = (self._kept - BASE_HEADER_SIZE) % _BLOCK
        if not last:
            return b"".join((self._header, *self._blocks, end))
        with memoryview(self._blocks[-1]) as block:
            return b"".join((self._header, *self._blocks[:-1], block[:last], end))

    def _packet_size(self) -> int:
        """The size of the packet, or of a BaseHeader if that is incomplete."""
        head = self._header
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


def _new_block() -> mmap.mmap:
    """Memory that returns to the system when it is released, which that of malloc may not do for hours."""
    if sys.platform == "win32":
        return mmap.mmap(-1, _BLOCK)
    return mmap.mmap(-1, _BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
