"""A slow reader of TCP streams (RFC 9293, RFC 7413), which looks at the whole capture for each question.

It knows where each connection began and which bytes it carried; captures it is for have lost no bytes. Nothing here
is shared with the kernels or with the oracle of the capture tests.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

FIN, SYN, RST, ACK = 1, 2, 4, 16
NUMBERS = 1 << 32

Ends = tuple[str, int, str, int]


class Segment(NamedTuple):
    """A segment of a capture."""

    ends: Ends
    number: int
    flags: int
    payload: bytes
    acknowledged: int = 0

    @property
    def first(self) -> int:
        """The number of its first byte."""
        return (self.number + bool(self.flags & SYN)) % NUMBERS

    def covers(self, number: int) -> bool:
        """Whether a number is that of one of its bytes, or of the next."""
        return (number - self.first) % NUMBERS <= len(self.payload)


@dataclass
class Stream:
    """One direction of a connection."""

    syn: Segment
    ended: bool = False
    values: dict[int, int] = field(default_factory=dict)

    def place(self, segment: Segment) -> int:
        """Where a segment begins in the stream."""
        return (segment.first - self.syn.first + NUMBERS // 2) % NUMBERS - NUMBERS // 2

    def take(self, segment: Segment) -> None:
        """Add the bytes of a segment."""
        if segment.flags & RST:
            self.ended = True
            return
        for place, value in enumerate(segment.payload, self.place(segment)):
            self.values.setdefault(place, value)
        self.ended |= bool(segment.flags & FIN)

    @property
    def data(self) -> bytes:
        """The bytes from the first on."""
        data = bytearray()
        while len(data) in self.values:
            data.append(self.values[len(data)])
        return bytes(data)


def reverse(ends: Ends) -> Ends:
    """The other direction."""
    return ends[2:] + ends[:2]


def is_answered(segments: list[Segment], at: int, stream: Stream) -> int | None:
    """Where a SYN between the ends of an open stream turns out to begin another one; None if it does not."""
    syn = segments[at]
    for later, segment in enumerate(segments[at + 1 :], at + 1):
        if segment.ends == reverse(syn.ends):
            if segment.flags & (SYN | ACK | RST) == SYN | ACK and syn.covers(segment.acknowledged):
                return later
        elif segment.ends == syn.ends and segment.flags & SYN:
            if segment.number != syn.number:
                return None
        elif segment.ends == syn.ends and not segment.flags & RST and (segment.payload or segment.flags & FIN):
            if syn.covers(segment.number) and stream.place(segment) != len(stream.data):
                return later
            stream.take(segment)
    return None


def read(segments: list[Segment]) -> dict[Ends, list[bytes]]:
    """The bytes of each stream, by its ends, in the order in which the streams began."""
    streams: dict[Ends, list[Stream]] = {}
    begins: dict[int, list[Segment]] = {}
    for at, segment in enumerate(segments):
        for syn in begins.get(at, ()):
            if syn.number != streams[syn.ends][-1].syn.number:
                streams[syn.ends].append(Stream(syn))
                for repeat in segments[segments.index(syn) : at]:
                    if repeat[:2] == syn[:2] and repeat.flags & SYN:
                        streams[syn.ends][-1].take(repeat)
        open_streams = streams.setdefault(segment.ends, [])
        if segment.flags & SYN and not segment.flags & RST:
            if not open_streams or open_streams[-1].ended or answers(streams, segment):
                if not open_streams or open_streams[-1].syn.number != segment.number or open_streams[-1].ended:
                    open_streams.append(Stream(segment))
            elif segment.number != open_streams[-1].syn.number:
                old = open_streams[-1]
                copy = Stream(old.syn, old.ended, dict(old.values))
                place = is_answered(segments, at, copy)
                if place is not None:
                    begins.setdefault(place, []).append(segment)
                continue
        if open_streams:
            open_streams[-1].take(segment)
    return {ends: [stream.data for stream in found] for ends, found in streams.items() if found}


def answers(streams: dict[Ends, list[Stream]], segment: Segment) -> bool:
    """Whether a SYN answers the SYN of a stream that has just begun."""
    others = streams.get(reverse(segment.ends))
    if not others or not segment.flags & ACK:
        return False
    syn = others[-1].syn
    return syn.covers(segment.acknowledged) and len(others[-1].data) <= len(syn.payload)


def packets(data: bytes) -> Iterable[bytes]:
    """The complete MSMQ packets of a stream that has no other bytes: [MS-MQQB] 2.2.19.1."""
    at = 0
    while len(data) - at >= 16:
        flags, size = struct.unpack_from("<2xH4xI", data, at)
        size += 16 if flags & 0x18 == 0x10 else 0
        if size > len(data) - at:
            return
        yield data[at : at + size]
        at += size
