"""The counts of the frames and streams of a capture."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from msmqwire.capture.frames._frame import (
    LINK_NAMES,
    MAX_LINK_TYPE,
    MAX_PROBLEMS,
    REASONS,
    UNSUPPORTED_ENCAPSULATIONS,
)
from msmqwire.capture.tcp._unread import UNREAD_PROTOCOLS
from msmqwire.errors import counted

# One segment that is not compared of so many: copies of frames are more, repeats in a network fewer
_CAPTURED_TWICE = 8


def add_counts(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The sums of two counts by name."""
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def described_faults(what: str, faults: Mapping[str, int]) -> list[str]:
    """Yield one line with the number of payloads or messages with faults, by code; no line without faults.

    Codes of equal counts are in alphabetical order, since threads count them in any order.
    """
    ordered = sorted(faults.items(), key=lambda item: (-item[1], item[0]))
    each = ", ".join(f"{code} {count:,}" for code, count in ordered)
    return [f"{counted(sum(faults.values()), what)} with faults: {each}"] if faults else []


def _counted(*numbers: tuple[int, str, str]) -> list[str]:
    return [counted(number, one, many) for number, one, many in numbers if number]


def _counted_rows(rows: Mapping[str, int]) -> str:
    some = [(name, number) for name, number in rows.items() if number]
    first, *more = some or [(next(iter(rows)) if len(rows) == 1 else "any table", 0)]
    return ", ".join([f"{counted(first[1], 'row')} of {first[0]}", *(f"{number:,} of {name}" for name, number in more)])


class Problem(NamedTuple):
    """A problem with a record of a capture.

    Attributes
    ----------
    file : str
    offset : int
        Of the record in the file.
    what : str
        The description.
    frame : int or None
        The number of the frame; None if the record does not hold one.
    ends : str
        The addresses and ports of its packet, as far as they are known: ``10.0.0.1:40000 to 10.0.0.2:1801``.
    """

    file: str
    offset: int
    what: str
    frame: int | None = None
    ends: str = ""

    @property
    def text(self) -> str:
        """The description after the frame, the addresses and the ports."""
        frame = f"frame {self.frame:,}" if self.frame else ""
        place = ", ".join(filter(None, (frame, self.ends)))
        return f"{place}: {self.what}" if place else self.what


@dataclass
class StreamStats:
    """Counts of the bytes of TCP streams; always ``bytes == framed + skipped + duplicate + held``.

    Attributes
    ----------
    streams : int
        Directions of connections with bytes to or from the selected ports.
    packets, unselected : int
        MSMQ packets in them, and those without a row because their kind, time or addresses are not selected.
    bytes : int
        Captured payload of segments.
    framed, skipped, duplicate, held : int
        Bytes of packets; of no packet, or of an incomplete one; at places that were captured or given up before;
        waiting for earlier bytes, 0 at the end of a capture. In a part of a capture ``held`` is the bytes that
        wait at its end, less those that waited at its beginning.
    missing : int
        Bytes of streams that were not captured.
    gaps : int
        Places where bytes are missing.
    conflicts : int
        Segments with bytes that differ from earlier ones in the same place; the first ones count. Only bytes that are
        held can be compared.
    uncompared : int
        Segments at places of a stream that were already read and are no longer in memory: whether they repeat the
        earlier bytes is unknown.
    no_packet : int
        Places where a packet should begin and does not; reading resumes at the next signature.
    unfinished : int
        Packets that end with their stream, incomplete.
    evictions : int
        Streams evicted because too many were open, or too many bytes were held.
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
    uncompared: int = 0
    no_packet: int = 0
    unfinished: int = 0
    evictions: int = 0

    def __add__(self, more: StreamStats) -> StreamStats:
        """The sums of both."""
        if not isinstance(more, StreamStats):
            return NotImplemented
        return StreamStats(*map(operator.add, vars(self).values(), vars(more).values()))

    @property
    def problems(self) -> int:
        """The problems of all kinds."""
        return self.gaps + self.conflicts + self.uncompared + self.no_packet + self.unfinished + self.evictions

    def _describe_losses(self) -> list[str]:
        """The problems as numbers with their nouns."""
        return _counted(
            (self.gaps, "gap", ""),
            (self.missing, "byte missing", "bytes missing"),
            (self.conflicts, "conflict", ""),
            (self.uncompared, "segment not compared", "segments not compared"),
            (self.skipped, "byte of no packet", "bytes of no packet"),
            (self.unfinished, "packet truncated", "packets truncated"),
            (self.evictions, "stream forgotten", "streams forgotten"),
        )


@dataclass(kw_only=True)
class FrameCounts:
    """The counts of ``CaptureStats`` that a lake keeps of each capture, and that the summary of a run adds up.

    ``report`` and ``describe_losses`` say what they are in the words of every command, log and error.
    """

    frames: int = 0
    payloads: int = 0
    segments: int = 0
    fragments: int = 0
    other: int = 0
    unsupported: int = 0
    malformed: int = 0
    incomplete_datagrams: int = 0
    fragment_conflicts: int = 0
    invalid_times: int = 0
    truncated_files: int = 0
    bytes_skipped: int = 0
    unsupported_links: dict[str, int] = field(default_factory=dict)
    unsupported_encapsulations: dict[str, int] = field(default_factory=dict)
    streams: StreamStats = field(default_factory=StreamStats)

    @property
    def lost(self) -> int:
        """How many things cannot be read: frames, IP datagrams, places in streams, ends of files.

        Frames of unsupported link types are among them, frames with unsupported encapsulations are not.
        """
        frames = self.malformed + sum(self.unsupported_links.values())
        return (
            frames + self.incomplete_datagrams + self.fragment_conflicts + self.streams.problems + self.truncated_files
        )

    @property
    def nothing_read(self) -> bool:
        """True if encapsulations that are not read are why there is nothing: they may have had all of it."""
        return bool(self.unsupported_encapsulations) and not (self.payloads or self.segments)

    def describe_losses(self) -> list[str]:
        """What cannot be read, as numbers with their nouns."""
        return [
            *_counted((self.malformed, "frame malformed", "frames malformed")),
            *self._unsupported_links(),
            *self._incomplete(),
            *self.streams._describe_losses(),
            *_counted(
                (self.truncated_files, "compressed file not read to the end", "compressed files not read to the end")
            ),
        ]

    def report(
        self, rows: Mapping[str, int], faults: Mapping[str, int], *, encrypted: int = 0, unread: int = 0
    ) -> Iterator[str]:
        """What became of every frame, payload and stream, in lines.

        Parameters
        ----------
        rows : mapping of str to int
            Rows by table.
        faults : mapping of str to int
            Payloads with faults, by code.
        encrypted, unread : int
            Messages that the table ``notifications`` has no rows for: encrypted, or with faults.
        """
        kinds = _counted(
            (self.payloads, "datagram", ""), (self.segments, "segment", ""), (self.fragments, "fragment", "")
        )
        unsupported = [f"{self.unsupported:,} not read"] if self.unsupported else []
        others = [f"{self.other:,} of other protocols", *unsupported, f"{self.malformed:,} malformed"]
        yield f"{counted(self.frames, 'frame')}: {', '.join([*kinds, *others])}"
        yield _counted_rows(rows)
        yield from self._unsupported_links()
        for name, number in self.unsupported_encapsulations.items():
            yield f"{counted(number, 'frame')} in an encapsulation that is not read: {name}"
        if self.nothing_read:
            yield "nothing was read, since frames are in an encapsulation that is not read"
        if self.segments:
            streams = f"{counted(self.streams.streams, 'stream')}, {counted(self.streams.packets, 'packet')}"
            losses = ", ".join(self.streams._describe_losses())
            yield f"{counted(self.segments, 'segment')} of {streams}" + (f": {losses}" if losses else "")
            if self.streams.uncompared * _CAPTURED_TWICE >= self.segments:
                yield (
                    "an eighth of the segments or more not compared: if frames were captured twice, editcap -d removes "
                    "the copies"
                )
        if self.fragments or self._incomplete():
            yield ", ".join([counted(self.fragments, "fragment"), *self._incomplete()])
        yield from described_faults("payload", faults)
        if encrypted:
            yield f"{counted(encrypted, 'message')} to the notify queue encrypted, and so without rows"
        if unread:
            yield f"{counted(unread, 'message')} with faults; the table messages shows them"
        yield from _counted(
            (
                self.invalid_times,
                "frame with a time that is not valid",
                "frames with times that are not valid",
            ),
            (self.truncated_files, "compressed file not read to the end", "compressed files not read to the end"),
            (self.bytes_skipped, "byte skipped", "bytes skipped"),
        )

    def _unsupported_links(self) -> list[str]:
        return [
            f"{counted(number, 'frame')} of link type {name}, not read"
            for name, number in self.unsupported_links.items()
        ]

    def _incomplete(self) -> list[str]:
        return _counted(
            (self.incomplete_datagrams, "datagram incomplete", "datagrams incomplete"),
            (self.fragment_conflicts, "conflict", ""),
        )

    def count_in(self, more: FrameCounts) -> None:
        """Add these counts of another object."""
        for name in _FRAME_COUNTS:
            one, other = getattr(self, name), getattr(more, name)
            setattr(self, name, add_counts(one, other) if isinstance(one, dict) else one + other)


_MSMQ = "MSMQ"
_ON_PORT = " on port "
_FRAME_COUNTS = tuple(item.name for item in fields(FrameCounts))


@dataclass
class CaptureStats(FrameCounts):
    """Counts of the frames of a capture; two of these can be added.

    Always ``frames == payloads + segments + fragments + other + unsupported + malformed``.

    Attributes
    ----------
    frames : int
        All records with a packet, and the last record of a file that ends inside it.
    payloads : int
        Frames of UDP and IPX; each is a row.
    segments : int
        Frames of TCP; ``streams`` counts their bytes.
    other : int
        Frames of other protocols and ports, and frames whose time or addresses are not selected.
    unsupported : int
        Frames that are not read since their link type or an encapsulation in them is not supported: what they carry is
        unknown.
    unsupported_links, unsupported_encapsulations : dict of str to int
        These frames, by the link type (``"195 (IEEE802_15_4_WITHFCS)"``) and by the encapsulation (``"ESP"``).
    malformed : int
        Malformed frames; each of the first 100 is described in ``problems``.
    fragments : int
        Frames with a part of an IP datagram. The frame that completes a datagram counts as its content instead.
    incomplete_datagrams, fragment_conflicts : int
        IP datagrams, perhaps of selected ports, with missing parts; fragments with bytes that differ from earlier ones
        in the same place, where the first ones count.
    invalid_times : int
        Records of pcap files whose fraction of a second is a second or more, as nanoseconds are where the file declares
        microseconds: their time is the sum of their two fields. Packets of pcapng files with a time beyond the years
        1677 to 2262: they have no time.
    truncated_files : int
        Compressed files that could not be read to their end; each is described in ``problems``, with the offset in the
        decompressed bytes where reading ended.
    bytes_read, bytes_skipped : int
        Decompressed bytes of the files, and how many of them belong to no record: if a malformed record has no known
        end, reading resumes at the next plausible record.
    streams : StreamStats
        The counts of TCP streams.
    unread_streams : dict of str to int
        Streams of MSMQ in frames of other protocols and ports, the first 256 of a capture, by protocol and port
        (``"MSMQ on port 23"``, ``"SRMP over HTTP on port 80"``). Both directions of a connection are one.
    copies : int
        Frames among ``other`` whose packet was captured at another interface before, as its number says.
    empty_files : int
        Files of pcapng that have the header of a section and nothing after it.
    problems : list of Problem
        The first 100 problems of frames, files and streams.
    """

    bytes_read: int = 0
    unread_streams: dict[str, int] = field(default_factory=dict)
    copies: int = 0
    empty_files: int = 0
    problems: list[Problem] = field(default_factory=list)

    def report(
        self, rows: Mapping[str, int], faults: Mapping[str, int], *, encrypted: int = 0, unread: int = 0
    ) -> Iterator[str]:
        """Yield the lines of ``FrameCounts.report``, and those of copies and of MSMQ that was not read."""
        yield from super().report(rows, faults, encrypted=encrypted, unread=unread)
        if self.copies:
            yield (
                f"{counted(self.copies, 'frame')} not read, whose packets were captured at another interface before: "
                "--copies reads them"
            )
        if self.empty_files:
            yield (
                f"{counted(self.empty_files, 'file')} with the header of a section and no packets, as converters write "
                "of a trace without packets: pktmon start needs --capture, netsh trace start capture=yes"
            )
        for name, number in self.unread_streams.items():
            protocol, _, port = name.rpartition(_ON_PORT)
            if protocol == _MSMQ:
                looks = "looks" if number == 1 else "look"
                yield f"not read: {counted(number, 'stream')} on port {port} {looks} like MSMQ: --ports {port}"
            else:
                yield f"not read: {counted(number, 'stream')} of {name}"

    def __add__(self, more: CaptureStats) -> CaptureStats:
        """The sums of both."""
        if not isinstance(more, CaptureStats):
            return NotImplemented
        problems = [*self.problems, *more.problems][:MAX_PROBLEMS]
        both = CaptureStats(
            bytes_read=self.bytes_read + more.bytes_read,
            unread_streams=add_counts(self.unread_streams, more.unread_streams),
            copies=self.copies + more.copies,
            empty_files=self.empty_files + more.empty_files,
            problems=problems,
        )
        both.count_in(self)
        both.count_in(more)
        return both

    def _count_link(self, link: int, frames: int) -> None:
        """Count frames of a link type that is not supported."""
        name = f"{link} ({LINK_NAMES[link]})" if link in LINK_NAMES else str(link)
        name = f"{link} or more" if link == MAX_LINK_TYPE else name
        self.unsupported_links = add_counts(self.unsupported_links, {name: frames})

    def _count_encapsulation(self, kind: int, frames: int) -> None:
        """Count frames with an encapsulation that is not supported."""
        name = UNSUPPORTED_ENCAPSULATIONS[kind]
        self.unsupported_encapsulations = add_counts(self.unsupported_encapsulations, {name: frames})

    def _count_unread(self, kind: int, port: int) -> None:
        """Count a stream that is not read."""
        name = f"{UNREAD_PROTOCOLS[kind]}{_ON_PORT}{port}"
        self.unread_streams = add_counts(self.unread_streams, {name: 1})

    def _add_truncated(self, file: str, offset: int, what: str) -> None:
        """Count a file that could not be read beyond ``offset``, and say why."""
        self.truncated_files += 1
        self._add_problem(Problem(file, offset, what))

    def _describe(
        self, file: str, offset: int, reason: int, needed: int, available: int, frame: int, ends: str
    ) -> None:
        """Add a problem by the number of its reason, unless there are enough already."""
        what = REASONS[reason].format(needed=needed, available=available)
        self._add_problem(Problem(file, offset, what, frame or None, ends))

    def _add_problem(self, problem: Problem) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
