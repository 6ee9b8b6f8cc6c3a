"""Discovery packets ([MS-MQSD] 2.2): what decoding, encoding and reading captures costs, beside the peers.

Nothing here fails for being slow: a shared machine would fail it at random. Wrong answers fail.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import ours, peers, peers_arrays
from benchmarks.comparison import OURS, checked_decoder, checked_encoder, compare, contenders, mebibytes
from benchmarks.conftest import Scale
from benchmarks.peers import Peer
from benchmarks.ratios import Contender, measure, peak_growth
from benchmarks.report import Report, Target
from benchmarks.workloads import Workload
from msmqwire import mqsd

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

WHOLE = f"{OURS}, the whole table"

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


def test_decode_requests(benchmark: BenchmarkFixture, scale: Scale, report: Report, requests: Workload) -> None:
    selected = checked_decoder(ours.decoder(requests, mqsd.REQUEST_COLUMNS, ours.request_columns), requests)
    whole = checked_decoder(ours.decoder(requests, None, ours.request_columns), requests)
    rows = len(requests)
    compare(
        benchmark,
        scale,
        report,
        title="Decode requests",
        yardstick=requests.data,
        mine=[(Contender(OURS, selected, rows), 0.70), (Contender(WHOLE, whole, rows), None)],
        arrays=contenders(REQUEST_ARRAYS, requests, scale, checked_decoder),
        loops=contenders(REQUEST_LOOPS, requests, scale, checked_decoder),
        targets=REQUEST_ARRAYS + REQUEST_LOOPS,
    )


def test_decode_replies(benchmark: BenchmarkFixture, scale: Scale, report: Report, replies: Workload) -> None:
    selected = checked_decoder(ours.decoder(replies, mqsd.REPLY_COLUMNS, ours.reply_columns), replies)
    whole = checked_decoder(ours.decoder(replies, None, ours.reply_columns), replies)
    rows = len(replies)
    compare(
        benchmark,
        scale,
        report,
        title="Decode replies, 1-4 networks and 1-8 servers each",
        yardstick=replies.data,
        mine=[(Contender(OURS, selected, rows), 0.42), (Contender(WHOLE, whole, rows), None)],
        arrays=contenders(REPLY_ARRAYS, replies, scale, checked_decoder),
        loops=contenders(REPLY_LOOPS, replies, scale, checked_decoder),
        targets=REPLY_ARRAYS + REPLY_LOOPS,
    )


def test_capture(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, requests: Workload, capture_file: Path
) -> None:
    run = checked_decoder(ours.capture_decoder(capture_file), requests)
    compare(
        benchmark,
        scale,
        report,
        title="Capture file (pcap, UDP) to request columns",
        yardstick=capture_file.read_bytes(),
        mine=[(Contender(OURS, run, len(requests)), 0.60)],
        loops=contenders(CAPTURE_LOOPS, requests, scale, checked_decoder, path=capture_file),
    )
    growth = peak_growth(run)
    report.figure(f"peak memory taken, a file of {mebibytes(capture_file.stat().st_size)}", mebibytes(growth))
    benchmark.extra_info["peak growth"] = growth


def test_encode_requests(benchmark: BenchmarkFixture, scale: Scale, report: Report, requests: Workload) -> None:
    run = checked_encoder(ours.encoder(requests, mqsd.REQUEST_COLUMNS), requests)
    compare(
        benchmark,
        scale,
        report,
        title="Encode requests",
        yardstick=requests.data,
        mine=[(Contender(OURS, run, len(requests)), 0.65)],
        arrays=contenders(REQUEST_ENCODE_ARRAYS, requests, scale, checked_encoder),
        loops=contenders(REQUEST_ENCODE_LOOPS, requests, scale, checked_encoder),
    )


def test_encode_replies(benchmark: BenchmarkFixture, scale: Scale, report: Report, replies: Workload) -> None:
    run = checked_encoder(ours.encoder(replies, mqsd.REPLY_COLUMNS), replies)
    compare(
        benchmark,
        scale,
        report,
        title="Encode replies",
        yardstick=replies.data,
        mine=[(Contender(OURS, run, len(replies)), 0.43)],
        loops=contenders(REPLY_ENCODE_LOOPS, replies, scale, checked_encoder),
    )


@pytest.mark.parametrize("kind", ["requests", "replies"])
def test_ten_times_the_rows(
    benchmark: BenchmarkFixture, scale: Scale, report: Report, request: pytest.FixtureRequest, kind: str
) -> None:
    """The cost of a packet and the memory taken must not depend on how many packets there are."""
    work: Workload = request.getfixturevalue(kind)
    columns, checkable = {
        "requests": (mqsd.REQUEST_COLUMNS, ours.request_columns),
        "replies": (mqsd.REPLY_COLUMNS, ours.reply_columns),
    }[kind]
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
