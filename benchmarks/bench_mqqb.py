"""User messages ([MS-MQMQ] 2.2.20): what decoding and encoding costs, beside the peers.

Nothing here fails for being slow: a shared machine would fail it at random. Wrong answers fail.
"""

from __future__ import annotations

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks import peers_messages as peers
from benchmarks.comparison import OURS, checked_decoder, checked_encoder, compare, contenders
from benchmarks.conftest import Scale
from benchmarks.messages import user_messages
from benchmarks.peers import Peer
from benchmarks.ratios import Contender
from benchmarks.report import Report
from benchmarks.workloads import Workload

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

LOOPS = (
    Peer("struct, a loop", peers.struct_messages, sample=10_000),
    Peer("kaitaistruct", peers.kaitai_messages, sample=2_000),
    Peer("construct", peers.construct_messages, sample=1_000),
)


@pytest.fixture(scope="module")
def messages(scale: Scale) -> Workload:
    """A fifth of the packets, which are many times as large."""
    return user_messages(scale.rows // 5)


def test_decode_messages(benchmark: BenchmarkFixture, scale: Scale, report: Report, messages: Workload) -> None:
    some = checked_decoder(peers.decoder(messages, peers.COMPARED), messages)
    whole = checked_decoder(peers.decoder(messages, None), messages)
    compare(
        benchmark,
        scale,
        report,
        title="Decode user messages, a tenth of them change notifications",
        yardstick=messages.data,
        mine=[
            (Contender(OURS, some, len(messages)), None),
            (Contender(f"{OURS}, the whole table", whole, len(messages)), None),
        ],
        loops=contenders(LOOPS, messages, scale, checked_decoder),
        targets=LOOPS,
    )


def test_encode_messages(benchmark: BenchmarkFixture, scale: Scale, report: Report, messages: Workload) -> None:
    run = checked_encoder(peers.encoder(messages), messages)
    compare(
        benchmark,
        scale,
        report,
        title="Encode user messages",
        yardstick=messages.data,
        mine=[(Contender(OURS, run, len(messages)), None)],
    )
