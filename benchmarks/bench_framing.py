"""Captures: what it costs to find the payloads in a file, before anything is decoded, beside libpcap and dpkt."""

from __future__ import annotations

import ctypes
import io
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS, Comparison, Goal, mebibytes
from benchmarks.peers import Peer
from benchmarks.ratios import Contender, peak_growth
from benchmarks.report import Report
from benchmarks.scale import Scale
from benchmarks.spark_forms import write_mixed, write_others
from benchmarks.workloads import PCAP_HEADER, Workload
from msmqwire import capture

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

PORT = 1801
SOURCE = Path(__file__).with_name("libpcap_frames.c")
LIBPCAP, DPKT = "libpcap, a loop in C", "dpkt, dissecting"
TARGETS = (Peer(LIBPCAP, lambda _: None, target=3), Peer(DPKT, lambda _: None, target=400))

Count = tuple[int, int]
"""Payloads and their bytes: what a contender answers."""


def ours(path: Path) -> Callable[[], Count]:
    """The payloads of every block; no capture columns, since the others make none."""

    def run() -> Count:
        packets = size = 0
        with capture.open(path, ports=[PORT], columns=()) as blocks:
            for block in blocks:
                packets += len(block.payloads)
                size += block.payloads.nbytes
        return packets, size

    return run


def libpcap(path: Path, folder: Path) -> Callable[[], Count] | None:
    """The loop of libpcap_frames.c; None where there is no compiler or no libpcap to compile it with."""
    library, compiler = folder / "libpcap_frames.so", shutil.which("cc")
    build = [str(compiler), "-O3", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-lpcap"]
    if compiler is None or subprocess.run(build, capture_output=True).returncode:
        return None
    function = ctypes.CDLL(str(library)).udp_payloads
    function.argtypes = (ctypes.c_char_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)

    def run() -> Count:
        packets, size = ctypes.c_uint64(), ctypes.c_uint64()
        if function(str(path).encode(), PORT, ctypes.byref(packets), ctypes.byref(size)):
            raise OSError(f"libpcap cannot read {path}")
        return packets.value, size.value

    return run


def dpkt_frames(path: Path, wanted: int) -> Callable[[], Count]:
    """dpkt takes the first frames apart."""
    import dpkt

    def run() -> Count:
        packets = size = 0
        with path.open("rb") as file:
            for _, frame in dpkt.pcap.Reader(file):
                datagram = dpkt.ethernet.Ethernet(frame).data.data
                if PORT in (datagram.sport, datagram.dport):
                    packets += 1
                    size += len(datagram.data)
                if packets == wanted:
                    break
        return packets, size

    return run


def test_framing(
    compare: Comparison, scale: Scale, report: Report, requests: Workload, capture_file: Path, tmp_path: Path
) -> None:
    rows, few = len(requests), scale.sample(4_000)
    run = ours(capture_file)
    assert run() == (rows, len(requests.data))
    arrays = []
    peer = libpcap(capture_file, tmp_path)
    if peer is not None:
        assert peer() == (rows, len(requests.data))
        arrays.append(Contender(LIBPCAP, peer, rows))
    dissect = dpkt_frames(capture_file, few)
    assert dissect() == (few, len(requests.head(few).data))
    compare(
        "Capture file (pcap, UDP) to payloads",
        yardstick=capture_file.read_bytes(),
        mine=[(Contender(OURS, run, rows), Goal(0.65, 0.45))],
        arrays=arrays,
        loops=[Contender(DPKT, dissect, few, f"{few:,} packets")],
        targets=TARGETS,
    )
    if peer is None:
        report.figure(LIBPCAP, "needs cc and libpcap0.8-dev")
    compare.peak_memory(run, capture_file)


@pytest.mark.parametrize("kind", ["mixed traffic", "other protocols"])
def test_framing_of_other_protocols(compare: Comparison, scale: Scale, tmp_path: Path, kind: str) -> None:
    """With all capture columns. Of mixed traffic more than half of the frames are of other protocols."""
    path = tmp_path / "captures"
    if kind == "mixed traffic":
        write_mixed(path, scale.rows // 5)
    else:
        write_others(path, scale.rows // 10)

    def frames() -> int:
        with capture.open(path) as blocks:
            for block in blocks:
                len(block.payloads)
            return blocks.stats.frames

    files = sorted(path.iterdir()) if path.is_dir() else [path]
    compare(
        f"Captures of {kind} to payloads",
        yardstick=b"".join(file.read_bytes() for file in files),
        mine=[(Contender(OURS, frames, frames()), Goal(0.5))],
    )


def test_checkpoints(compare: Comparison, requests: Workload, capture_file: Path) -> None:
    """The pass that says where a file can be cut into parts, four of them."""
    size = capture_file.stat().st_size // 4

    def run() -> int:
        return len(list(capture.checkpoints(capture_file, size, ports=[PORT])))

    assert run() == 4
    compare(
        "Capture file (pcap, UDP) to checkpoints",
        yardstick=capture_file.read_bytes(),
        mine=[(Contender(OURS, run, len(requests)), Goal())],
    )


class Endless(io.RawIOBase):
    """A capture of so many bytes: the records of one that is small, again and again."""

    def __init__(self, records: bytes, size: int) -> None:
        self._header = memoryview(PCAP_HEADER)
        self._records = memoryview(records)
        self._left = size // len(records) * len(records)
        self._at = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = (self._header or self._records[self._at :][: self._left])[: len(buffer)]
        buffer[: len(part)] = part
        if self._header:
            self._header = self._header[len(part) :]
        else:
            self._left -= len(part)
            self._at = (self._at + len(part)) % len(self._records)
        return len(part)


def test_memory(benchmark: BenchmarkFixture, scale: Scale, report: Report, capture_file: Path) -> None:
    """A hundred times as much takes no more memory."""
    records = capture_file.read_bytes()[len(PCAP_HEADER) :]
    small = len(records)

    def read(size: int) -> int:
        found = 0
        with capture.open(Endless(records, size), ports=[PORT]) as blocks:
            for block in blocks:
                found += len(block)
        return found

    once = read(small)
    assert read(100 * small) == 100 * once
    report.section("Memory taken by reading a capture, with its columns")
    for size in (small, 100 * small):
        growth = peak_growth(lambda size=size: read(size))  # type: ignore[misc]
        report.figure(f"{mebibytes(size)}", mebibytes(growth))
        benchmark.extra_info[f"peak growth, {size} bytes"] = growth
    benchmark.pedantic(read, (small,), rounds=scale.slow_rounds, iterations=1)
