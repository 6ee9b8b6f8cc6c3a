"""Discovery packets ([MS-MQSD] 2.2): what decoding, encoding and reading captures costs, and other libraries.

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import ours, peers, peers_arrays
from benchmarks.comparison import ALL_COLUMNS, OURS, Comparison, Goal, checked_decoder, checked_encoder, mebibytes
from benchmarks.peers import Peer
from benchmarks.ratios import Contender, measure, peak_growth
from benchmarks.report import Report, Target
from benchmarks.scale import Scale
from benchmarks.workloads import Workload
from msmqwire import Payloads, mqsd

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

REQUEST_ARRAYS = (
    Peer("numba, a loop over bytes", peers_arrays.numba_requests, target=2.5),
    Peer("numba, eight bytes at a time", partial(peers_arrays.numba_requests, words=True)),
    Peer("numba, a loop over bytes, fresh columns", partial(peers_arrays.numba_requests, block=0)),
    Peer("numpy views, columns copied", peers_arrays.numpy_copies, target=3, note="one packet size only"),
    Peer("numpy views, copied in blocks", peers_arrays.numpy_blocks, note="one packet size only"),
    Peer("numpy views, nothing read", peers_arrays.numpy_views, note="one packet size only"),
)
REQUEST_LOOPS = (
    Peer("struct, a loop", peers.struct_requests, sample=100_000, target=30),
    Peer("struct.iter_unpack", peers.iter_unpack_requests, sample=100_000, note="one packet size only"),
    Peer("construct", peers.construct_requests, sample=2_000, target=1_500),
    Peer("construct, compiled", partial(peers.construct_requests, compiled=True), sample=4_000),
    Peer("kaitaistruct", peers.kaitai_requests, sample=5_000),
    Peer("scapy", peers.scapy_requests, sample=2_000),
)
REPLY_ARRAYS = (Peer("numba, a loop over bytes", peers_arrays.numba_replies),)
REPLY_LOOPS = (
    Peer("struct, a loop", peers.struct_replies, sample=20_000, target=60),
    Peer("construct", peers.construct_replies, sample=1_000),
    Peer("kaitaistruct", peers.kaitai_replies, sample=4_000),
    Peer("scapy", peers.scapy_replies, sample=1_000),
)
CAPTURE_LOOPS = (
    Peer("struct by hand", peers.struct_capture, sample=50_000, note="Ethernet, IPv4 and UDP only"),
    Peer("dpkt and struct", peers.dpkt_capture, sample=4_000),
    Peer("scapy", peers.scapy_capture, sample=400),
)
REQUEST_ENCODE_ARRAYS = (
    Peer("numpy, into a structured array", peers_arrays.numpy_encode_requests, note="one packet size only"),
)
REQUEST_ENCODE_LOOPS = (
    Peer("struct, a loop", peers.struct_encode_requests, sample=100_000),
    Peer("construct", peers.construct_encode_requests, sample=2_000),
    Peer("scapy", peers.scapy_encode_requests, sample=1_000),
)
REPLY_ENCODE_LOOPS = (
    Peer("struct, a loop", peers.struct_encode_replies, sample=20_000),
    Peer("construct", peers.construct_encode_replies, sample=1_000),
)


def test_decode_requests(compare: Comparison, requests: Workload) -> None:
    mine = {
        OURS: (ours.decoder(requests, mqsd.REQUEST_COLUMNS, ours.request_columns), Goal(0.70, 0.70)),
        ALL_COLUMNS: (ours.decoder(requests, None, ours.request_columns), Goal()),
    }
    compare.packets("Decode requests", requests, checked_decoder, mine, arrays=REQUEST_ARRAYS, loops=REQUEST_LOOPS)


def test_decode_replies(compare: Comparison, replies: Workload) -> None:
    mine = {
        OURS: (ours.decoder(replies, mqsd.REPLY_COLUMNS, ours.reply_columns), Goal(0.42, 0.25)),
        ALL_COLUMNS: (ours.decoder(replies, None, ours.reply_columns), Goal()),
    }
    title = "Decode replies, 1-4 networks and 1-8 servers each"
    compare.packets(title, replies, checked_decoder, mine, arrays=REPLY_ARRAYS, loops=REPLY_LOOPS)


def test_capture(compare: Comparison, requests: Workload, capture_file: Path) -> None:
    run = ours.capture_decoder(capture_file)
    title = "Capture file (pcap, UDP) to request columns"
    compare.packets(
        title, requests, checked_decoder, {OURS: (run, Goal(0.60, 0.28))}, loops=CAPTURE_LOOPS, path=capture_file
    )
    compare.peak_memory(run, capture_file)


def test_encode_requests(compare: Comparison, requests: Workload) -> None:
    mine = {OURS: (ours.encoder(requests, mqsd.REQUEST_COLUMNS), Goal(0.65, 0.50))}
    compare.packets(
        "Encode requests", requests, checked_encoder, mine, arrays=REQUEST_ENCODE_ARRAYS, loops=REQUEST_ENCODE_LOOPS
    )


def test_encode_replies(compare: Comparison, replies: Workload) -> None:
    mine = {OURS: (ours.encoder(replies, mqsd.REPLY_COLUMNS), Goal(0.43, 0.32))}
    compare.packets("Encode replies", replies, checked_encoder, mine, loops=REPLY_ENCODE_LOOPS)


def decode_each(packets: Sequence[bytes]) -> None:
    decode = mqsd.decode
    for packet in packets:
        decode(packet)


def unpack_each(packets: Sequence[bytes]) -> None:
    """The same fields, with a slice for each GUID, as a first version has it."""
    header = struct.Struct("<BBH")
    for packet in packets:
        header.unpack_from(packet)
        packet[4:20], packet[20:36], packet[36:52]


def test_single_packets(benchmark: BenchmarkFixture, scale: Scale, report: Report, requests: Workload) -> None:
    """One request after the other as an object."""
    packets = requests.head(scale.sample(20_000)).split()
    names = "mqsd.decode", "struct.unpack_from, and three slices"
    runs = [
        Contender(name, partial(run, packets), len(packets))
        for name, run in zip(names, (decode_each, unpack_each), strict=True)
    ]
    rounds = measure(runs, scale.rounds)
    report.section("Decode a request, one at a time")
    report.heading("times slower")
    report.ratio(rounds, names[0], 1.0, (1.0, 1.0))
    ratio = report.against(rounds, *names, Target(1))
    benchmark.extra_info["times struct"] = round(ratio, 3)
    benchmark.pedantic(runs[0].run, rounds=scale.slow_rounds, iterations=1)


@pytest.mark.parametrize("kind", ["requests", "replies"])
def test_small_batches(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, request: pytest.FixtureRequest, kind: str
) -> None:
    """Batches of 100 packets into the same columns: what a call costs beside its packets."""
    work: Workload = request.getfixturevalue(kind).head(16_384)
    columns = {"requests": mqsd.REQUEST_COLUMNS, "replies": mqsd.REPLY_COLUMNS}[kind]
    whole = Payloads(work.data, work.offsets)
    out = mqsd.decode_batch(whole, columns=columns)
    small = [whole[start : start + 100] for start in range(0, len(whole) - 99, 100)]

    def run_small() -> None:
        for payloads in small:
            mqsd.decode_batch(payloads, columns=columns, out=out)

    names = "batches of 16,384", "batches of 100"
    large = Contender(names[0], lambda: mqsd.decode_batch(whole, columns=columns, out=out), len(whole))
    rounds = measure([large, Contender(names[1], run_small, 100 * len(small))], scale.rounds)
    report.section(f"Decode {kind} in small batches")
    report.heading("cost ratio")
    report.ratio(rounds, names[0], 1.0, (1.0, 1.0))
    ratio = rounds.times_faster(*names)
    report.ratio(rounds, names[1], ratio, rounds.spread(*names), Target(3, at_most=True))
    benchmark.extra_info["cost ratio"] = round(ratio, 3)
    benchmark.pedantic(run_small, rounds=scale.slow_rounds, iterations=1)


@pytest.mark.parametrize("kind", ["requests", "replies"])
def test_ten_times_the_rows(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, request: pytest.FixtureRequest, kind: str
) -> None:
    """The cost of a packet and the memory taken must not depend on how many packets there are."""
    work: Workload = request.getfixturevalue(kind)
    ways: dict[str, tuple[tuple[str, ...], ours.Checkable]] = {
        "requests": (mqsd.REQUEST_COLUMNS, ours.request_columns),
        "replies": (mqsd.REPLY_COLUMNS, ours.reply_columns),
    }
    columns, checkable = ways[kind]
    once = checked_decoder(ours.decoder(work, columns, checkable), work)
    growth_once = peak_growth(once)
    many = ours.decoder(work.repeated(10), columns, checkable)
    growth = peak_growth(many)

    rows = len(work)
    small, large = f"{rows:,} rows", f"{10 * rows:,} rows"
    rounds = measure([Contender(small, once, rows), Contender(large, many, 10 * rows)], scale.slow_rounds)
    report.section(f"Decode {kind}, ten times the rows")
    report.heading("cost ratio")
    report.ratio(rounds, small, 1.0, (1.0, 1.0))
    ratio = rounds.times_faster(small, large)
    report.ratio(rounds, large, ratio, rounds.spread(small, large), Target(1.15, at_most=True))
    for label, size in ((small, growth_once), (large, growth)):
        report.figure(f"peak memory taken, {label}", mebibytes(size))
    benchmark.extra_info.update({"cost ratio": round(ratio, 3), "peak growth": growth})
    benchmark.pedantic(once, rounds=scale.slow_rounds, iterations=1)
