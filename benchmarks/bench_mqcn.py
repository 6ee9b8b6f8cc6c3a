"""Change notifications ([MS-MQCN] 2.2.4): what decoding and encoding costs, and other libraries.

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import time

import pytest

from benchmarks import peers_notifications as peers
from benchmarks.comparison import OURS, Comparison, Goal, checked_decoder, checked_encoder
from benchmarks.notifications import notifications
from benchmarks.peers import Peer
from benchmarks.scale import Scale
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


def test_decode_notifications(compare: Comparison, messages: Workload) -> None:
    title = "Decode change notifications, 1-3 updates of up to 15 properties each"
    compare.packets(
        title, messages, checked_decoder, {OURS: (peers.decoder(messages), Goal(0.38, 0.22))}, loops=DECODE_LOOPS
    )


def test_encode_notifications(compare: Comparison, messages: Workload) -> None:
    title = "Encode change notifications"
    compare.packets(
        title, messages, checked_encoder, {OURS: (peers.encoder(messages), Goal(0.42, 0.34))}, loops=ENCODE_LOOPS
    )
