"""Packets in the bytes of a connection: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from typing import Any

from msmqwire.errors import DecodeError
from msmqwire.mqqb._packet import packet_extent
from msmqwire.mqqb.framing import BASE_HEADER_SIZE
from msmqwire.mqqb.message.schema import MESSAGE_HEADERS

#: Bytes of an incomplete packet that are kept together.
_BLOCK = 1 << 16

_HEADERS: dict[str, Any] = {header.section: header.dtype.fields for header in MESSAGE_HEADERS}


def _field(name: str, section: str = "USER", start: int = BASE_HEADER_SIZE) -> slice:
    """Return the bytes of a packet that have a field of a header, which begins at ``start``."""
    dtype, offset = _HEADERS[section][name][:2]
    return slice(start + offset, start + offset + dtype.itemsize)


PACKET_SIZE = _field("packet_size", "BASE", 0)
SOURCE_QUEUE_MANAGER, QUEUE_MANAGER_ADDRESS = _field("source_queue_manager"), _field("queue_manager_address")
SENT_TIME, MESSAGE_ID = _field("sent_time"), _field("message_id")


class PacketReader:
    """Divides a stream into packets. It keeps the bytes of one incomplete packet, at most ``max_packet_size``.

    A SessionHeader stands after the PacketSize of a message and belongs to the packet; the PacketSize of a SessionAck
    counts it (S16).
    """

    def __init__(self, max_packet_size: int) -> None:
        self._max_packet_size = max_packet_size
        self.clear()

    def __len__(self) -> int:
        """Return the number of bytes that are kept."""
        return self._kept

    def clear(self) -> None:
        """Release the bytes kept."""
        self._kept = 0
        self._size = 1
        self._header = bytearray()
        self._blocks: list[mmap.mmap] = []

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[bytes]:
        """Yield the packets that ``data`` completes.

        Raises
        ------
        DecodeError
            As soon as the bytes show that they are no packet; the packets before it are given first.
        """
        with memoryview(data) as rest:
            at = 0
            while at < len(rest):
                if (kept := self._kept) < BASE_HEADER_SIZE:
                    taken, part = BASE_HEADER_SIZE - kept, rest[:0]
                    self._header += rest[at : at + taken]
                    self._size = self._packet_size()
                    if not kept and taken < self._size <= len(rest) - at:  # the whole packet has come
                        yield bytes(rest[at : at + self._size])
                        at += self._size
                        self._header.clear()
                        continue
                else:
                    taken = self._size - kept
                    part = rest[at : at + taken]
                taken = min(taken, len(rest) - at)
                at += taken
                if kept + taken == self._size:
                    packet = self._joined(part)
                    self.clear()
                    yield packet
                else:
                    self._keep(part)
                    self._kept += taken

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
        """Return the packet whose last bytes are ``end``."""
        last = (self._kept - BASE_HEADER_SIZE) % _BLOCK if self._blocks else 0
        if not last:
            return b"".join((self._header, *self._blocks, end))
        with memoryview(self._blocks[-1]) as block:
            return b"".join((self._header, *self._blocks[:-1], block[:last], end))

    def _packet_size(self) -> int:
        """Return the size of the packet, or of a BaseHeader if that is incomplete."""
        extent = packet_extent(bytes(self._header))
        if len(self._header) == BASE_HEADER_SIZE:
            size = int.from_bytes(self._header[PACKET_SIZE], "little")
            if size > self._max_packet_size:
                detail = f"is {size}, can be at most {self._max_packet_size}"
                raise DecodeError("too_large", "PacketSize", PACKET_SIZE.start, detail)
        return extent


def _new_block() -> mmap.mmap:
    """Memory that returns to the system when it is released, which that of malloc may not do for hours."""
    if sys.platform == "win32":
        return mmap.mmap(-1, _BLOCK)
    return mmap.mmap(-1, _BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
