"""User messages ([MS-MQMQ] 2.2.20): what decoding and encoding costs, and other libraries.

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import time

import pytest

from benchmarks import peers_messages as peers
from benchmarks.comparison import ALL_COLUMNS, OURS, Comparison, Goal, checked_decoder, checked_encoder
from benchmarks.messages import user_messages
from benchmarks.peers import Peer
from benchmarks.scale import Scale
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


def test_decode_messages(compare: Comparison, messages: Workload) -> None:
    mine = {
        OURS: (peers.decoder(messages, peers.COMPARED), Goal()),
        ALL_COLUMNS: (peers.decoder(messages, None), Goal(0.7, 0.5)),
    }
    title = "Decode user messages, a tenth of them change notifications"
    compare.packets(title, messages, checked_decoder, mine, loops=LOOPS)


def test_encode_messages(compare: Comparison, messages: Workload) -> None:
    compare.packets(
        "Encode user messages", messages, checked_encoder, {OURS: (peers.encoder(messages), Goal(0.45, 0.27))}
    )
