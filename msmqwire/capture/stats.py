"""The account of every frame of a capture."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import NamedTuple

__all__ = ["CaptureStats", "Problem"]

# In the order of the enumeration Reason in frames.pxd
REASONS = (
    "",
    "the file ends inside this record: it needs {needed} bytes, {available} are left",
    "a frame of {needed} bytes; more than {available} cannot be",
    "{needed} bytes captured of a frame of {available}",
    "a fraction of a second of {available} units",
    "a block of {needed} bytes; it must have at least {available}, and a multiple of 4",
    "a block of {needed} bytes; one of its kind with more than {available} is not read",
    "a block that is {needed} bytes long by its first length and {available} by its last",
    "a frame of {needed} bytes in a block with room for {available}",
    "interface {needed}, where {available} were described",
    "a section whose byte order magic is 0x{available:08x}",
    "the link layer header is cut: it needs {needed} bytes, {available} are there",
    "IP version {available} where {needed} was announced",
    "the IP headers are cut: they need {needed} bytes, {available} are there",
    "an IP header of {available} bytes; it has at least {needed}",
    "an IP packet of {available} bytes with headers of {needed}",
    "the UDP header is cut: it needs {needed} bytes, {available} are there",
    "a UDP datagram of {needed} bytes in an IP packet with room for {available}",
    "the frame is cut: a datagram of {needed} bytes, {available} are there",
    "a fragment of an IP packet; fragments are not put together",
    "the TCP header is cut: it needs {needed} bytes, {available} are there",
    "a TCP header of {needed} bytes in an IP packet with room for {available}",
    "the IPX header is cut: it needs {needed} bytes, {available} are there",
    "an IPX packet of {available} bytes; it has at least {needed}",
)
MOST_PROBLEMS = 100


class Problem(NamedTuple):
    """A record of a capture that cannot be read: the file, the offset of the record in it, and what is wrong."""

    file: str
    offset: int
    what: str


@dataclass
class CaptureStats:
    """What became of the frames of a capture: ``frames == payloads + other + damaged``, always; two of these add up.

    Attributes
    ----------
    frames : int
        All records that hold a packet, and the last record of a file that ends inside one.
    payloads : int
        Frames that gave a row.
    other : int
        Frames of other protocols and other ports.
    damaged : int
        Frames that cannot be read; each of the first 100 is described in ``problems``.
    fragments : int
        Frames with a part of an IP datagram, which are not put together. The first of each UDP datagram to the ports
        asked for is among ``damaged``, the rest among ``other``.
    cut_files : int
        Compressed files that could not be read to their end; each is described in ``problems``, at the offset in what
        they hold where reading ended.
    bytes_read, bytes_skipped : int
        Bytes of the files (of what they hold, where they are compressed), and how many of them belong to no record:
        where one is damaged so that its end is not known, reading goes on at the next plausible one.
    problems : list of Problem
    """

    frames: int = 0
    payloads: int = 0
    other: int = 0
    damaged: int = 0
    fragments: int = 0
    cut_files: int = 0
    bytes_read: int = 0
    bytes_skipped: int = 0
    problems: list[Problem] = field(default_factory=list)

    def __add__(self, more: CaptureStats) -> CaptureStats:
        """The account of both."""
        if not isinstance(more, CaptureStats):
            return NotImplemented
        both = {item.name: getattr(self, item.name) + getattr(more, item.name) for item in fields(self)}
        both["problems"] = both["problems"][:MOST_PROBLEMS]
        return CaptureStats(**both)

    def cut(self, file: str, offset: int, what: str) -> None:
        """Count a file that could not be read beyond ``offset``, and say why."""
        self.cut_files += 1
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(file, offset, what))

    def describe(self, file: str, offset: int, reason: int, needed: int, available: int) -> None:
        """Add a problem by the number of its reason, unless there are enough already."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(file, offset, REASONS[reason].format(needed=needed, available=available)))
