"""Frames taken out of captures and read elsewhere: the rows, and the account, of the captures themselves."""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire import capture
from msmqwire.capture import CaptureStats, read_tables
from msmqwire.capture.files.sources import CapturedFrames
from msmqwire.capture.frame_table import FrameReader
from msmqwire.columns import allocated_bytes
from msmqwire.errors import CaptureError
from tests.capture import build
from tests.capture.build import internal, message, segment
from tests.capture.reading import PORTS, Row, check, rows_of
from tests.capture.stream_oracle import FIN, RST, SYN

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PACKETS = [message(random.Random(size).randbytes(size), session=size % 3 == 0) for size in (9, 80, 700, 3000, 41)]
STREAM = internal() + b"".join(PACKETS)


pytestmark = pytest.mark.usefixtures("everything_is_released")


class File(io.BytesIO):
    """A capture in memory that has a name."""

    def __init__(self, name: str, data: bytes) -> None:
        super().__init__(data)
        self.name = name


def read(source: Any, **options: Any) -> tuple[list[tuple[str | None, Row]], CaptureStats]:
    """The rows with the file of each, and the account."""
    rows: list[tuple[str | None, Row]] = []
    with capture.open(source, **{"ports": PORTS, **options}) as blocks:
        for block in blocks:
            rows += zip(block.capture.to_arrow()["file"].to_pylist(), rows_of(block), strict=True)
        return rows, blocks.stats


def total(taken: CaptureStats, replayed: CaptureStats) -> CaptureStats:
    """The account of captures out of those of the frames taken, and of these frames."""
    assert taken.payloads == replayed.frames
    return replace(
        taken + replayed,
        frames=taken.frames,
        payloads=replayed.payloads,
        problems=sorted(taken.problems + replayed.problems),
    )


def slices(batches: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """The same rows, no more than so many in a batch."""
    for batch in batches:
        yield from (batch.slice(start, size) for start in range(0, len(batch), size))


def compare(
    files: Sequence[bytes], *, size: int = 1 << 20, **options: Any
) -> tuple[list[tuple[str | None, Row]], CaptureStats]:
    """What is read of these files directly, after comparing it with what is read of their frames."""

    def source() -> list[File]:
        return [File(f"{number}.pcap", data) for number, data in enumerate(files)]

    ports = options.get("ports", PORTS)
    expected, stats = read(source(), **options)
    with FrameReader(source(), ports=ports) as taken:
        rows, replayed = read(CapturedFrames(slices(taken, size)), **options)
        assert rows == expected
        check(replace(taken.stats, problems=taken.stats.problems))
        both = total(taken.stats, replayed)
    assert both == replace(stats, problems=sorted(stats.problems))
    return expected, stats


def segments(data: bytes, size: int, **ends: Any) -> list[bytes]:
    """A whole stream in frames."""
    frames = [segment(b"", 0, SYN, **ends)]
    frames += [segment(data[at : at + size], 1 + at, **ends) for at in range(0, len(data), size)]
    return [*frames, segment(b"", 1 + len(data), FIN | 0x10, **ends)]


def shared(frames: Sequence[bytes], *cuts: int) -> list[bytes]:
    """Files with the frames up to each of the places, and the rest."""
    places = [0, *cuts, len(frames)]
    return [build.pcap(frames[start:end]) for start, end in itertools.pairwise(places)]


def test_the_examples() -> None:
    """Every table, as Arrow, over three files of two formats."""
    files = sorted(map(str, EXAMPLES.glob("*.pcap*")))
    with read_tables(files) as reader:
        expected = [(table, row) for table, batch in reader for row in batch.to_pylist()]
    assert {table for table, _ in expected} == set(capture.TABLES)
    with FrameReader(files) as frames, read_tables(CapturedFrames(frames)) as reader:
        assert [(table, row) for table, batch in reader for row in batch.to_pylist()] == expected


@pytest.mark.parametrize("size", [1, 3, 1 << 20])
@pytest.mark.parametrize("cuts", [(), (1,), (4,), (2, 3, 4), (1, 1, 5)])
def test_a_stream_over_files(cuts: tuple[int, ...], size: int) -> None:
    rows, stats = compare(shared(segments(STREAM, 700), *cuts), size=size)
    assert [row.payload for _, row in rows] == [internal(), *PACKETS]
    assert not stats.problems


def test_acknowledgments_stay_where_they_are() -> None:
    frames = segments(STREAM, 700)
    acknowledged = [one for frame in frames for one in (frame, segment(b"", 1, 0x10, 1801, 40000))]
    with FrameReader(io.BytesIO(build.pcap(acknowledged)), ports=PORTS) as taken:
        assert sum(map(len, taken)) == len(frames) == taken.stats.payloads == taken.stats.segments
    compare([build.pcap(acknowledged)])


def test_what_is_lost_late_different_or_open_at_the_end() -> None:
    frames = segments(STREAM[:-20], 100)
    frames[7], frames[20] = frames[20], frames[7]
    lost = frames[:10] + frames[11:]
    other = [*lost[:24], segment(b"?" * 60, 1 + 100 * 15), *lost[24:]]
    rows, stats = compare(shared(other, 8, 21, 24))
    assert rows
    assert (stats.streams.gaps, stats.streams.conflicts, stats.streams.unfinished) == (1, 1, 1)
    assert {problem.file for problem in stats.problems} != {"0.pcap"}


def test_fragments_over_files() -> None:
    datagram = build.udp(bytes(range(200)))
    tcp = build.tcp(STREAM, 1)

    def parts(body: bytes, protocol: int) -> list[bytes]:
        cuts = range(0, len(body), 104)
        return [
            build.ethernet(
                build.IPV4,
                build.ipv4(body[at : at + 104], protocol, fragment=at // 8 | (0x2000 if at + 104 < len(body) else 0)),
            )
            for at in cuts
        ]

    frames = [*parts(tcp, build.TCP), *parts(datagram, build.UDP)]
    frames = [*frames[::2], *frames[1::2], frames[0]]
    rows, stats = compare(shared(frames, 3, 30))
    assert len(rows) == 1 + len([internal(), *PACKETS])
    assert stats.fragments
    assert stats.incomplete_datagrams == 0  # the one that came again begins another, of which nothing is missing


def test_every_kind_of_frame() -> None:
    """Link types, cut frames, no times, IPv6, IPX, what is malformed and what belongs to others."""
    payload = b"\0\1" + bytes(40)
    ip = build.ipv4(build.udp(payload))
    six = build.ipv6(build.udp(payload))
    blocks = [
        build.section(),
        build.interface(),
        build.interface(link=build.RAW, resolution=9),
        build.interface(link=build.COOKED),
        build.packet(build.plain(payload)),
        build.packet(six, number=1, stamp=build.START),
        build.packet(build.cooked(build.IPV4, ip), number=2),
        build.simple_packet(build.ethernet(build.IPV4, ip, [(build.VLAN, 5)])),
        build.packet(build.ethernet(0x8137, build.ipx(payload))),
        build.packet(build.ethernet(build.ARP, bytes(28))),
        build.packet(build.plain(payload)[:60]),
        build.packet(segment(STREAM, 1)[:400]),
        build.packet(segment(b"", 1, RST)),
        build.packet(build.plain(payload, 53, 53)),
        build.packet(build.ethernet(build.IPV4, ip[:10])),
        build.packet(ip[:20], number=9),
    ]
    rows, stats = compare([b"".join(blocks)], ports=(1801, 876))
    assert sum(not row.lost for _, row in rows) == 5 + len([internal(), *PACKETS[:2]])
    assert sum(bool(row.lost) for _, row in rows) == 2  # the end of a datagram is cut, and that of a packet
    assert stats.malformed == 3
    assert stats.streams.unfinished == 1


def test_addresses_times_and_limits_are_those_of_the_reader() -> None:
    frames = [
        frame
        for pair in zip(segments(STREAM, 90, src="10.0.0.9"), segments(STREAM, 90, src="10.0.0.8"), strict=True)
        for frame in pair
    ]
    files = shared(frames, 11)
    rows, _ = compare(files, addresses=["10.0.0.9"], since=build.START + 5_000_000)
    assert 0 < len(rows) < len(PACKETS)
    _, stats = compare(files, limits=capture.StreamLimits(streams=1))
    assert stats.streams.evictions


@pytest.mark.parametrize("seed", range(40))
def test_anything(seed: int) -> None:
    """Streams of several pairs, in any order, some of it missing or there twice or other than it was, over files."""
    rng = random.Random(seed)
    streams = [
        segments(STREAM[: rng.randrange(len(STREAM))], rng.choice((30, 200, 1400)), src=f"10.0.0.{number}")
        for number in range(rng.randrange(1, 5))
    ]
    frames = []
    while any(streams):
        stream = rng.choice([one for one in streams if one])
        frame = stream.pop(0)
        frames += [frame] * rng.choices((0, 1, 2), (1, 20, 2))[0]
        if rng.random() < 0.1:
            frames.insert(rng.randrange(len(frames) + 1), frame[: rng.randrange(len(frame))])
    for _ in range(len(frames) // 10):
        one, other = rng.randrange(len(frames)), rng.randrange(len(frames))
        frames[one], frames[other] = frames[other], frames[one]
    cuts = sorted(rng.randrange(len(frames) + 1) for _ in range(rng.randrange(4)))
    compare(shared(frames, *cuts), size=rng.choice((1, 7, 1000)))


def test_more_frames_than_a_window_holds() -> None:
    frames = [frame for _ in range(40) for frame in segments(STREAM * 10, 1400)]
    rows, _ = compare(shared(frames, 777), block_size=4096)
    assert len(rows) == 40 * 6 * 10  # a SYN after FIN begins a stream, with the same sequence numbers as well


def batch(**columns: Any) -> pa.RecordBatch:
    """One frame."""
    names = {"file": "a", "frame": 1, "time": build.START, "link": 1, "offset": 24, "data": build.plain(b"??")}
    schema = {"time": pa.timestamp("ns", "UTC"), "data": pa.large_binary()}
    given = {**names, **columns}
    return pa.record_batch({name: pa.array([value], schema.get(name)) for name, value in given.items()})


def test_no_frames() -> None:
    assert read(CapturedFrames([])) == ([], CaptureStats())
    assert read(CapturedFrames([batch().slice(0, 0)])) == ([], CaptureStats())


def test_parts_of_a_file() -> None:
    """From checkpoint to checkpoint, made for other ports."""
    frames = [frame for number in range(9) for frame in segments(STREAM, 200, src=f"10.0.0.{number}")]
    data = build.pcap(frames)
    places = [None, *capture.checkpoints(File("a", data), 5000, ports=())]
    assert len(places) > 5
    batches = [
        one
        for resume, stop in itertools.pairwise(places)
        for one in FrameReader(File("a", data), ports=PORTS, resume=resume, stop=stop)
    ]
    assert pa.Table.from_batches(batches) == pa.Table.from_batches(FrameReader(File("a", data), ports=PORTS))
    assert read(CapturedFrames(batches))[0] == read(File("a", data))[0]
    place, *_ = capture.checkpoints(File("<frames>", data), 5000, ports=PORTS)
    with pytest.raises(ValueError, match="<frames>: reading cannot resume inside captured frames"):
        read(CapturedFrames(batches), resume=place)


def test_between_files() -> None:
    frames = segments(STREAM, 700)
    first, last = (File(name, build.pcap(part)) for name, part in (("a", frames[:3]), ("c", frames[5:])))
    middle = CapturedFrames(FrameReader(File("b", build.pcap(frames[3:5])), ports=PORTS))
    expected, _ = read(
        [
            File("a", build.pcap(frames[:3])),
            *(File(n, build.pcap(p)) for n, p in (("b", frames[3:5]), ("c", frames[5:]))),
        ]
    )
    assert read([first, middle, last])[0] == expected


def test_columns_of_other_types() -> None:
    """As Parquet and Spark have them."""
    one = batch()
    others = {
        "file": one["file"].dictionary_encode(),
        "frame": one["frame"].cast(pa.int32()),
        "time": one["time"].cast(pa.timestamp("us", "UTC"), safe=False),
        "link": one["link"].cast(pa.int16()),
        "offset": one["offset"].cast(pa.uint64()),
        "data": one["data"].cast(pa.binary_view()),
    }
    (_, row), *_ = read(CapturedFrames([one]))[0]
    assert read(CapturedFrames([pa.record_batch(others)]))[0] == [("a", row._replace(time=build.START // 1000 * 1000))]


def test_a_frame_that_cannot_be() -> None:
    rows, stats = read(CapturedFrames([batch(data=bytes(262145)), batch(data=None, frame=2), batch(frame=3)]))
    assert [row.frame for _, row in rows] == [3]
    assert (stats.frames, stats.malformed, stats.payloads) == (3, 2, 1)
    assert [problem.what for problem in stats.problems] == [
        "a frame of 262145 bytes; the maximum is 262144",
        "the link layer header is truncated: it needs 14 bytes, 0 were captured",
    ]


def test_a_frame_of_no_file() -> None:
    with pytest.raises(CaptureError, match="1 frames are of no file"):
        read(CapturedFrames([batch(file=None)]))


def test_more_packets_at_once_than_rows_have_room_for() -> None:
    frames = segments(message() * 100_000, 2800)
    data = build.pcap([frames[0], *frames[2:], frames[1]])
    counts = []
    for source in (File("a", data), CapturedFrames(FrameReader(File("a", data), ports=PORTS))):
        limits = capture.StreamLimits(ahead=1 << 22)
        with capture.open(source, ports=PORTS, columns=("frame",), limits=limits) as blocks:
            counts.append([(int(block.capture["frame"][-1]), len(block)) for block in blocks])
    assert counts[0] == counts[1]
    assert len(counts[0]) > 2
    assert sum(count for _, count in counts[0]) == 100_000


def test_memory_has_bounds_whatever_a_stream_holds() -> None:
    """One stream of 28 MB, of which a segment is missing now and then, from batches that are made as they are read."""
    packet, one = message(bytes(13_984)), batch()
    made = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal made
        while made < 28_000_000:
            frames = []
            for _ in range(50):
                frames += [segment(packet[at : at + 1000], made + at) for at in range(0, len(packet), 1000)]
                made += len(packet)
            data = pa.array(frames[1:], pa.binary())
            same = {name: pa.repeat(one[name][0], len(data)) for name in one.schema.names if name != "data"}
            yield pa.record_batch({**same, "data": data})

    found, peak, ahead = 0, 0, 0
    before = allocated_bytes()  # what other tests keep
    with capture.open(CapturedFrames(batches()), ports=PORTS, columns=("frame",)) as blocks:
        for block in blocks:
            found += len(block)
            ahead = max(ahead, made - blocks.stats.streams.bytes)
            peak = max(peak, allocated_bytes() - before)
    assert found == 49 * blocks.stats.streams.gaps + 49 + 1, "the first packet lacks its beginning"
    assert ahead < 2_000_000
    assert peak < 16 << 20
