"""Change notifications ([MS-MQCN] 2.2.4): what decoding and encoding costs, beside the peers.

Nothing here fails for being slow: a shared machine would fail it at random. Wrong answers fail.
"""

from __future__ import annotations

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import peers_notifications as peers
from benchmarks.comparison import OURS, checked_decoder, checked_encoder, compare, contenders
from benchmarks.conftest import Scale
from benchmarks.notifications import notifications
from benchmarks.peers import Peer
from benchmarks.ratios import Contender
from benchmarks.report import Report
from benchmarks.workloads import Workload

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

DECODE_LOOPS = (
    Peer("struct, a loop", peers.struct_notifications, sample=10_000, target=75),
    Peer("kaitaistruct", peers.kaitai_notifications, sample=2_000, target=400),
    Peer("construct", peers.construct_notifications, sample=1_000, target=900),
)
ENCODE_LOOPS = (Peer("struct, a loop", peers.struct_encode_notifications, sample=10_000),)


@pytest.fixture(scope="module")
def messages(scale: Scale) -> Workload:
    """A fifth of the packets, which are several times as large."""
    return notifications(scale.rows // 5)


def test_decode_notifications(benchmark: BenchmarkFixture, scale: Scale, report: Report, messages: Workload) -> None:
    run = checked_decoder(peers.decoder(messages), messages)
    compare(
        benchmark,
        scale,
        report,
        title="Decode change notifications, 1-3 updates of up to 15 properties each",
        yardstick=messages.data,
        mine=[(Contender(OURS, run, len(messages)), 0.38)],
        loops=contenders(DECODE_LOOPS, messages, scale, checked_decoder),
        targets=DECODE_LOOPS,
    )


def test_encode_notifications(benchmark: BenchmarkFixture, scale: Scale, report: Report, messages: Workload) -> None:
    run = checked_encoder(peers.encoder(messages), messages)
    compare(
        benchmark,
        scale,
        report,
        title="Encode change notifications",
        yardstick=messages.data,
        mine=[(Contender(OURS, run, len(messages)), 0.42)],
        loops=contenders(ENCODE_LOOPS, messages, scale, checked_encoder),
    )
