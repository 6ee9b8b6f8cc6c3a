"""Limits of capture files: claims of a file reserve no memory, and each limit that is met is reported."""

from __future__ import annotations

import binascii
import gzip
import io
import lzma
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import lz4.frame
import pytest

from msmqwire import capture
from msmqwire.capture.files._blocks import Pool
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.tcp._streams import StreamTable
from msmqwire.errors import CaptureError
from tests.capture import build
from tests.capture.reading import read
from tests.capture.test_compression import DATA, FORMS, ROWS
from tests.effort import long_cases

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ROOT = Path(__file__).parents[2]
SMALL = capture.FileLimits(memory=1 << 20)


def xz_claiming(dictionary: int, data: bytes = DATA) -> bytes:
    """A stream of xz whose header asks for the dictionary of this code (40: 4 GiB)."""
    stream = bytearray(lzma.compress(data, preset=0))
    assert stream[12:18] == bytes.fromhex("02002101 0c00") or stream[14:16] == b"\x21\x01"
    stream[16] = dictionary
    size = (stream[12] + 1) * 4
    stream[12 + size - 4 : 12 + size] = struct.pack("<I", binascii.crc32(stream[12 : 12 + size - 4]))
    return bytes(stream)


def zstd_claiming(log: int, data: bytes = DATA) -> bytes:
    """A frame of zstd without its content's size, with a window of ``2**log`` bytes."""
    options: dict[int, int] = {
        zstd.CompressionParameter.window_log: log,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    compressor = zstd.ZstdCompressor(options=options)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize(("claiming", "window"), [(xz_claiming, 40), (zstd_claiming, 31)])
def test_claims_above_the_limit_are_refused(claiming: Callable[[int], bytes], window: int) -> None:
    with pytest.raises(CaptureError, match=r"the limit is 134217728 bytes \(FileLimits.memory\)"):
        capture.open(io.BytesIO(claiming(window)))


@pytest.mark.parametrize(("claiming", "window"), [(xz_claiming, 22), (zstd_claiming, 27)])
def test_claims_up_to_the_limit_are_read(claiming: Callable[[int], bytes], window: int) -> None:
    claim = claiming(window)
    assert read(claim)[0] == ROWS
    with pytest.raises(CaptureError, match=r"FileLimits.memory"):
        capture.open(io.BytesIO(claim), file_limits=SMALL)


def test_a_later_stream_above_the_limit_cuts_the_file() -> None:
    rows, stats = read(lzma.compress(DATA) + xz_claiming(40))
    assert rows == ROWS
    assert stats.truncated_files == 1
    assert "FileLimits.memory" in stats.problems[-1].what


@pytest.mark.parametrize("padding", [0, 4, 200_000])
def test_padding_between_streams_of_xz(padding: int) -> None:
    parts = DATA[:100_000], DATA[100_000:]
    rows, stats = read(b"".join(lzma.compress(part) + bytes(padding) for part in parts))
    assert rows == ROWS
    assert not stats.problems


@pytest.mark.parametrize("form", [form for form in FORMS if form != "gzip"])
def test_bytes_after_a_stream_are_reported(form: str) -> None:
    rows, stats = read(FORMS[form](DATA) + b"something else, longer than any header of a stream can be")
    assert rows == ROWS
    assert stats.truncated_files == 1


MEASURED = """
import io, resource, sys
from msmqwire import capture
data = sys.stdin.buffer.read()
capture.open(io.BytesIO(bytes.fromhex("d4c3b2a1 0200 0400 00000000 00000000 00000400 01000000"))).close()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    with capture.open(io.BytesIO(data)) as blocks:
        for block in blocks:
            pass
        problems = [problem.what for problem in blocks.stats.problems]
except Exception as error:
    problems = [str(error)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
print(problems[-1] if problems else "")
"""


def interfaces(count: int) -> bytes:
    return build.section("<") + build.interface("<") * count


def lz4_claiming(data: bytes) -> bytes:
    """A frame of lz4 that says it holds 2**62 bytes; the checksum of its header is right."""
    import lz4.frame as frame

    stream = bytearray(frame.compress(data, store_size=True))
    stream[6:14] = struct.pack("<Q", 1 << 62)
    for checksum in range(256):
        stream[14] = checksum
        try:
            frame.get_frame_info(bytes(stream))
            return bytes(stream)
        except RuntimeError:
            continue
    raise AssertionError


BOMBS: dict[str, Callable[[], bytes]] = {
    "xz": lambda: xz_claiming(40),
    "zstd": lambda: zstd_claiming(31),
    "lz4": lambda: lz4_claiming(DATA),
    "interfaces": lambda: interfaces(2_000_000),
    "interfaces-gzip": lambda: gzip.compress(interfaces(2_000_000)),
    "interfaces-zstd": lambda: zstd.compress(interfaces(2_000_000)),
    "interfaces-lz4": lambda: lz4.frame.compress(interfaces(2_000_000)),
}


@pytest.mark.parametrize(
    "name", [name if name in ("zstd", "interfaces") else pytest.param(name, marks=pytest.mark.long) for name in BOMBS]
)
def test_memory_of_claims(name: str) -> None:
    """Peak memory above that of a reader: 48 MiB is room for its windows and for the largest decompressor of these."""
    done = subprocess.run([sys.executable, "-c", MEASURED], input=BOMBS[name](), capture_output=True, check=True)
    kilobytes, _ = done.stdout.decode().splitlines()[:2]
    assert int(kilobytes) < (48 << 10), done.stdout


def test_frames_of_interfaces_above_the_limit() -> None:
    frame = build.plain(b"hello")
    data = build.section("<") + build.interface("<") * 4
    data += b"".join(build.packet(frame, "<", number=number) for number in (0, 2, 3, 1))
    limits = capture.FileLimits(interfaces=2)
    rows, stats = read(data, file_limits=limits)
    assert [row.frame for row in rows] == [1, 4]
    assert [problem.what for problem in stats.problems] == [
        f"interface {number}; the limit is the first 2 of a section (FileLimits.interfaces)" for number in (2, 3)
    ]
    with capture.checkpoints(io.BytesIO(data), 1, ports={1801}, file_limits=limits) as places:
        checkpoints = list(places)
    parts = capture.CaptureStats()
    for begin, end in zip([None, *checkpoints], [*checkpoints, None], strict=True):
        with capture.open(io.BytesIO(data), ports={1801}, file_limits=limits, resume=begin, stop=end) as part:
            list(part)
        parts += part.stats
    assert parts.problems == stats.problems


@pytest.mark.parametrize("form", [None, "gzip", "xz", "zstd"])
def test_max_bytes(form: str | None) -> None:
    size = 24 + 3 * (len(DATA) - 24) // len(ROWS)
    data = FORMS[form](DATA) if form else DATA
    rows, stats = read(data, file_limits=capture.FileLimits(max_bytes=size))
    assert rows == ROWS[:3]
    assert (stats.bytes_read, stats.truncated_files) == (size, 1)
    assert stats.problems[-1].what == f"reading ended at the limit of max_bytes={size}; the file has more"
    rows, stats = read(data, file_limits=capture.FileLimits(max_bytes=len(DATA)))
    assert rows == ROWS
    assert not stats.problems


def test_max_bytes_counts_from_the_beginning_of_a_file() -> None:
    limits = capture.FileLimits(max_bytes=len(DATA) // 2)
    whole, _ = read(DATA, file_limits=limits)
    with capture.checkpoints(io.BytesIO(DATA), 100_000, ports={1801}, file_limits=limits) as places:
        first = next(places)
    with capture.open(io.BytesIO(DATA), ports={1801}, resume=first, file_limits=limits) as rest:
        assert sum(map(len, rest)) + first.frames == len(whole)


def test_max_bytes_bounds_a_bomb() -> None:
    """2 MB of gzip hold 1 GB; no more than the limit is decompressed."""
    part = gzip.compress(build.pcap_record(build.plain(bytes(1400))) * 10_000)
    bomb = gzip.compress(build.pcap_header()) + part * 70
    _, stats = read(bomb, file_limits=capture.FileLimits(max_bytes=8 << 20))
    assert stats.bytes_read == 8 << 20
    assert stats.truncated_files == 1


@pytest.mark.parametrize("wrong", [{"memory": 1}, {"memory": 1 << 40}, {"max_bytes": -1}, {"interfaces": -1}])
def test_limits_that_cannot_be(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="FileLimits"):
        capture.FileLimits(**wrong)


# --- The hash of open streams ---


def random_words(seed: int) -> Iterator[int]:
    state = seed
    while True:
        state = (state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        yield state >> 16 & 0xFFFFFFFF


COUNT = 3000


def family(name: str, seed: int) -> Iterator[tuple[bytes, bytes, int, int]]:
    """Source and destination addresses and ports of ``COUNT`` streams."""
    words = random_words(seed * 2 + 1)
    for i in range(COUNT):
        four, eight = struct.pack("<I", i), struct.pack("<II", i, i * 7919 & 0xFFFFFFFF)
        if name == "random":
            yield bytes(16), struct.pack("<4I", *(next(words) for _ in range(4))), next(words) & 0xFFFF, 1801
        elif name == "random-4":
            yield struct.pack("<I", next(words)), struct.pack("<I", next(words)), next(words) & 0xFFFF, 1801
        elif name == "rotated":  # what defeats keys that are only added
            yield eight * 2, (eight[4:] + eight[:4]) * 2, 40000, 1801
        elif name == "equal":
            yield eight * 2, eight * 2, 40000, 1801
        elif name == "high":
            yield bytes(12) + four, bytes(16), 40000, 1801
        elif name == "low":
            yield bytes(16), four + bytes(12), 40000, 1801
        elif name == "sum":
            yield four, struct.pack("<I", -i & 0xFFFFFFFF), 40000, 1801
        elif name == "swapped":
            yield four, four[2:] + four[:2], 40000, 1801
        elif name == "network":
            yield four[::-1], bytes(4), 40000, 1801
        else:
            assert name == "ports"
            yield bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)), 1024 + i, 1801


def mean_probes(name: str, seed: int) -> float:
    """Slots of the hash table that are looked at for a stream, on average."""
    records = [build.pcap_header(link=build.RAW)]
    for src, dst, src_port, dst_port in family(name, seed):
        body = build.tcp(b"x", 1, source=src_port, target=dst_port)
        if len(src) == 16:
            packet = struct.pack(">IHBB", 6 << 28, len(body), build.TCP, 64) + src + dst + body
        else:
            packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 7, 0, 64, build.TCP, 0) + src + dst + body
        records.append(build.pcap_record(packet))
    table = StreamTable(3, capture.StreamLimits(), seed * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
    selection = PayloadSelection(dict.fromkeys(("udp", "tcp", "ipx"), (1801,)), (), None, None)
    source = io.BytesIO(b"".join(records))
    pool = Pool(1 << 20, ())
    reader = FileReader("", source.readinto, selection, pool, table, capture.CaptureStats(), growing=True)
    while reader.next_block() is not None:
        pass
    count, probes = table.probes()
    assert count == COUNT
    return probes / count


@pytest.mark.parametrize(
    "name", ["rotated", "sum", "network", *long_cases(["equal", "high", "low", "swapped", "ports"])]
)
def test_crafted_addresses_cost_no_more_than_random_ones(name: str) -> None:
    seeds = range(20)
    random = sum(mean_probes("random", seed) for seed in seeds[:4]) / 4
    assert random < 2
    assert max(mean_probes(name, seed) for seed in seeds) <= 2 * random


# --- Less memory than the limits allow ---


def out_of_memory(family: str, mebibytes: int) -> str:
    command = [sys.executable, "-m", "tests.capture.out_of_memory", family, str(mebibytes)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS, malloc_trim and /proc")
@pytest.mark.parametrize(
    "family", ["pieces", *(pytest.param(family, marks=pytest.mark.long) for family in ("packets", "flows", "heads"))]
)
def test_streams_without_memory_are_an_error(family: str) -> None:
    assert out_of_memory(family, 3) == "no memory for the packets of TCP streams"


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS, malloc_trim and /proc")
def test_datagrams_without_memory_are_counted() -> None:
    incomplete, malformed = map(int, out_of_memory("datagrams", 4).split())
    assert 0 < malformed < 1000 <= incomplete + malformed
