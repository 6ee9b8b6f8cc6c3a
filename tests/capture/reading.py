"""What tests read of a capture: its rows as plain values, with the account checked each time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import cache
from ipaddress import ip_address
from typing import Any, NamedTuple

import numpy as np

from msmqwire import capture
from msmqwire.capture.files._blocks import Pool
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.tcp._streams import StreamTable
from msmqwire.columns import UNFRAMED_BIT
from msmqwire.wire._transport import Transport

PORTS = (1801,)


class Row(NamedTuple):
    """A payload and where it comes from."""

    frame: int
    time: int | None
    src: str
    src_port: int
    dst: str
    dst_port: int
    payload: bytes
    first_frame: int | None = None  # of a packet out of a stream
    stream_offset: int | None = None
    encapsulation: str | None = None
    lost: int = 0  # bytes that the payload had after those


class Dribble(io.RawIOBase):
    """A stream that gives its bytes as many at a time as it likes."""

    def __init__(self, data: bytes, sizes: Iterable[int]) -> None:
        self._data = data
        self._at = 0
        self._sizes = list(sizes) or [1]
        self._turn = 0

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        size = min(len(view), self._sizes[self._turn % len(self._sizes)])
        self._turn += 1
        part = self._data[self._at : self._at + size]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)


def check(stats: capture.CaptureStats) -> None:
    """What holds for every account."""
    assert stats.frames == (
        stats.payloads + stats.segments + stats.fragments + stats.other + stats.unsupported + stats.malformed
    )
    named = *stats.unsupported_links.values(), *stats.unsupported_encapsulations.values()
    assert stats.unsupported == sum(named)
    streams = stats.streams
    assert streams.bytes == streams.framed + streams.skipped + streams.duplicate + streams.held
    assert streams.unselected <= streams.packets
    assert stats.bytes_skipped <= stats.bytes_read
    told = (
        stats.malformed
        + stats.truncated_files
        + stats.incomplete_datagrams
        + stats.fragment_conflicts
        + streams.problems
    )
    assert len(stats.problems) == min(told, 100)
    assert all(0 <= problem.offset <= stats.bytes_read for problem in stats.problems)


@cache
def text(family: int, field: bytes) -> str:
    """An address as text, given as the 16 bytes of the column."""
    size = {4: 4, 6: 16, 10: 10}[family]
    address, rest = field[:size], field[size:]
    assert not any(rest)
    return f"{address[:4].hex()}:{address[4:].hex()}" if size == 10 else str(ip_address(address))


def texts(addresses: np.ndarray[Any, Any]) -> list[str]:
    """A column of addresses as text."""
    return [text(*each) for each in zip(addresses["family"].tolist(), map(bytes, addresses["bytes"]), strict=True)]


def where(present: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> list[int | None]:
    """A column as Python values, None where a row has none."""
    return [value if known else None for value, known in zip(values.tolist(), present.tolist(), strict=True)]


def rows_of(block: capture.Block) -> list[Row]:
    """The rows of a block, from its numpy views."""
    columns, present = block.capture, block.capture.is_valid("time")
    assert len(block) == len(columns) == len(block.payloads)
    assert np.array_equal(columns["transport"] == Transport.IPX, columns["src"]["family"] == 10)
    streamed = columns.is_valid("stream_offset")
    assert np.array_equal(columns["transport"] == Transport.TCP, streamed)
    encapsulated = columns.is_valid("encapsulation")
    assert np.array_equal(columns["encapsulation"] != 255, encapsulated)
    paths = columns.to_arrow().column("encapsulation").to_pylist() if encapsulated.any() else [None] * len(block)
    transports = np.full(len(block), Transport.UDP, np.uint8) if block.transports is None else block.transports
    assert np.array_equal(columns["transport"], transports)
    assert (columns["first_frame"] <= columns["frame"])[~streamed].all()
    values = zip(
        columns["frame"].tolist(),
        where(present, columns["time"].view(np.int64)),
        texts(columns["src"]),
        columns["src_port"].tolist(),
        texts(columns["dst"]),
        columns["dst_port"].tolist(),
        (bytes(payload or b"") for payload in block.payloads),
        where(streamed, columns["first_frame"]),
        where(streamed, columns["stream_offset"]),
        paths,
        lost_bytes(block),
        strict=True,
    )
    return [Row(*each) for each in values]


def lost_bytes(block: capture.Block) -> list[int]:
    """How many bytes of each payload were lost."""
    return [0] * len(block) if block.payloads.lost is None else block.payloads.lost.tolist()


def check_rows(rows: list[Row], stats: capture.CaptureStats) -> None:
    """Every packet is counted once; packets that lost bytes are rows as well."""
    check(stats)
    packets = stats.streams.packets - stats.streams.unselected
    assert stats.payloads + packets == sum(not row.lost for row in rows)
    assert stats.streams.held == 0
    runs = [row for row in rows if row.lost & UNFRAMED_BIT]
    assert len(runs) <= stats.streams.no_packet
    assert sum(len(row.payload) + (row.lost ^ UNFRAMED_BIT) for row in runs) <= stats.streams.skipped


def read(
    source: Any, *, ports: Iterable[int] = PORTS, block_size: int = 1 << 20, **options: Any
) -> tuple[list[Row], capture.CaptureStats]:
    """All rows of a capture, given as bytes, a path or a file, and its account."""
    rows = []
    if isinstance(source, bytes):
        source = io.BytesIO(source)
    with capture.open(source, ports=ports, block_size=block_size, **options) as blocks:
        for block in blocks:
            rows += rows_of(block)
        check_rows(rows, blocks.stats)
    return rows, blocks.stats


class SmallFiles:
    """Reads small captures one after the other with memory that is kept: thirty times as fast as ``capture.open``.

    The rows have no addresses, which take as long as all the rest.
    """

    def __init__(self) -> None:
        columns = ("frame", "first_frame", "time", "src_port", "dst_port", "stream_offset")
        self._pool = Pool(4096, columns)
        self._selection = PayloadSelection(dict.fromkeys(("udp", "tcp", "ipx"), PORTS), (), None, None)

    def read(
        self, data: bytes, sizes: Iterable[int], limits: capture.StreamLimits | None = None
    ) -> tuple[list[Row], capture.CaptureStats]:
        """The rows of a file that gives as many bytes at a time as ``sizes`` say, and its account."""
        stats = capture.CaptureStats()
        streams = StreamTable(3, limits or capture.StreamLimits(), 0)
        reader = FileReader("", Dribble(data, sizes).readinto, self._selection, self._pool, streams, stats)
        rows: list[Row] = []
        while (block := reader.next_block()) is not None:
            rows += self._rows_of(block)
        check_rows(rows, stats)
        return rows, stats

    def _rows_of(self, block: capture.Block) -> Iterator[Row]:
        columns = block.capture
        timed, streamed = columns.is_valid("time").tolist(), columns.is_valid("stream_offset").tolist()
        names = ("frame", "first_frame", "src_port", "dst_port", "stream_offset")
        values = [columns[name].tolist() for name in names]
        times = columns["time"].view(np.int64).tolist()
        lost = lost_bytes(block)
        for i, (frame, first, source, target, offset) in enumerate(zip(*values, strict=True)):
            start, at = (first, offset) if streamed[i] else (None, None)
            time = times[i] if timed[i] else None
            payload = bytes(block.payloads[i] or b"")
            yield Row(frame, time, "", source, "", target, payload, start, at, lost=lost[i])
