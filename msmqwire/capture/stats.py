"""The account of every frame of a capture."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple

from msmqwire.capture.frames.frame import MAX_PROBLEMS, REASONS

__all__ = ["CaptureStats", "Problem", "StreamStats"]


class Problem(NamedTuple):
    """What is wrong with a record of a capture: the file, the offset of the record in it, and what."""

    file: str
    offset: int
    what: str


@dataclass
class StreamStats:
    """What became of the bytes of TCP streams: ``bytes == framed + skipped + duplicate + held``, always.

    Attributes
    ----------
    streams : int
        Directions of connections that had bytes to or from the ports asked for, or began to.
    packets, unselected : int
        MSMQ packets found in them, and how many of these give no row: their kind, their time or their ends were not
        asked for.
    bytes : int
        Payload of segments, as far as it was captured.
    framed, skipped, duplicate, held : int
        Bytes of packets; of no packet, or of one that lost some of its bytes; that had come before, or lie in front of
        where reading began; that wait for others, which at the end of a capture none do. Of a part of a capture: those
        that wait at its end, less those that did at its beginning.
    missing : int
        Bytes between others of their stream that were not captured.
    gaps : int
        Places where some are missing.
    conflicts : int
        Segments with bytes that are not those that came before in their place; the first ones count. Only what is held
        can be compared.
    no_packet : int
        Places where a packet should begin and does not; reading goes on at the next signature.
    unfinished : int
        Packets inside which their stream ends.
    evictions : int
        Streams forgotten before their end because too many were open, or too much was held.
    """

    streams: int = 0
    packets: int = 0
    unselected: int = 0
    bytes: int = 0
    framed: int = 0
    skipped: int = 0
    duplicate: int = 0
    held: int = 0
    missing: int = 0
    gaps: int = 0
    conflicts: int = 0
    no_packet: int = 0
    unfinished: int = 0
    evictions: int = 0

    def __add__(self, more: StreamStats) -> StreamStats:
        """The account of both."""
        if not isinstance(more, StreamStats):
            return NotImplemented
        return StreamStats(*(getattr(self, item.name) + getattr(more, item.name) for item in fields(self)))

    @property
    def problems(self) -> int:
        """Of all kinds together."""
        return self.gaps + self.conflicts + self.no_packet + self.unfinished + self.evictions


@dataclass
class CaptureStats:
    """What became of the frames of a capture; two of these add up.

    Always ``frames == payloads + segments + fragments + other + damaged``.

    Attributes
    ----------
    frames : int
        All records that hold a packet, and the last record of a file that ends inside one.
    payloads : int
        Frames of UDP and IPX; each gave a row.
    segments : int
        Frames of TCP; ``streams`` says what was in them.
    other : int
        Frames of other protocols and other ports, and those whose time or ends were not asked for.
    damaged : int
        Frames that cannot be read; each of the first 100 is described in ``problems``.
    fragments : int
        Frames with a part of an IP datagram that was not the last one missing. The frame that completes a datagram
        counts as what is in it.
    incomplete_datagrams, fragment_conflicts : int
        IP datagrams, perhaps ours, of which parts are missing; fragments with bytes that are not those that came before
        in their place, where the first ones count.
    cut_files : int
        Compressed files that could not be read to their end; each is described in ``problems``, at the offset in what
        they hold where reading ended.
    bytes_read, bytes_skipped : int
        Bytes of the files (of what they hold, where they are compressed), and how many of them belong to no record:
        where one is damaged so that its end is not known, reading goes on at the next plausible one.
    streams : StreamStats
        What became of the bytes of TCP streams.
    problems : list of Problem
        The first 100 of frames that cannot be read, of files, and of streams.
    """

    frames: int = 0
    payloads: int = 0
    segments: int = 0
    other: int = 0
    damaged: int = 0
    fragments: int = 0
    incomplete_datagrams: int = 0
    fragment_conflicts: int = 0
    cut_files: int = 0
    bytes_read: int = 0
    bytes_skipped: int = 0
    streams: StreamStats = field(default_factory=StreamStats)
    problems: list[Problem] = field(default_factory=list)

    def __add__(self, more: CaptureStats) -> CaptureStats:
        """The account of both."""
        if not isinstance(more, CaptureStats):
            return NotImplemented
        both = {item.name: getattr(self, item.name) + getattr(more, item.name) for item in fields(self)}
        both["problems"] = both["problems"][:MAX_PROBLEMS]
        return CaptureStats(**both)

    def cut(self, file: str, offset: int, what: str) -> None:
        """Count a file that could not be read beyond ``offset``, and say why."""
        self.cut_files += 1
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(file, offset, what))

    def describe(self, file: str, offset: int, reason: int, needed: int, available: int) -> None:
        """Add a problem by the number of its reason, unless there are enough already."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(file, offset, REASONS[reason].format(needed=needed, available=available)))
