"""Format names ([MS-MQMQ] 2.1): what parsing a column of them costs, beside regular expressions and a parser library.

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from benchmarks import format_names as peers
from benchmarks.comparison import OURS, Comparison, Goal
from benchmarks.peers import Peer
from benchmarks.ratios import Contender
from benchmarks.scale import Scale

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

RE_LOOP = "re, one expression, a loop"
PEERS = (
    (RE_LOOP, peers.loop(peers.match_row), 100_000, ""),
    ("re, matches only", peers.match_only, 100_000, ", nothing taken out"),
    ("pyparsing", peers.loop(peers.pyparsing_grammar()), 2_000, ""),
    ("msmqwire.formatname.parse, a loop", peers.one_by_one, 20_000, ""),
)
ARROW = "Arrow extract_regex, one expression (RE2)"


def contender(name: str, prepare: Callable[[peers.Names], peers.Run], names: peers.Names, note: str) -> Contender:
    return Contender(name, peers.checked(prepare(names), names.rows), len(names.texts), note)


def test_parse_format_names(compare: Comparison, scale: Scale) -> None:
    names = peers.format_names(scale.rows // 2)
    loops = []
    for name, prepare, sample, note in PEERS:
        part = names.head(scale.sample(sample))
        loops.append(contender(name, prepare, part, f"{len(part.texts):,} names{note}"))
    compare(
        "Parse format names, a few of them lists or none",
        yardstick=names.data,
        mine=[
            (contender(OURS, peers.column, names, ""), Goal()),
            (contender(f"{OURS}, from a list of str", peers.strings, names, ""), Goal()),
        ],
        loops=[*loops, contender(ARROW, peers.arrow_extract, names.head(scale.sample(100_000)), "text only, no lists")],
        targets=[Peer(RE_LOOP, peers.loop, target=10)],
    )
