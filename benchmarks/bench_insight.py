"""The summary of a capture, beside copying its bytes and reading the same columns of its tables."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from benchmarks.comparison import OURS, Comparison, Goal
from benchmarks.messages import user_messages
from benchmarks.ratios import Contender
from benchmarks.scale import Scale
from benchmarks.streams import write_streams
from msmqwire.capture import read_tables
from msmqwire.insight import COLUMNS, summarize

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)


def test_summary(compare: Comparison, scale: Scale, tmp_path: Path) -> None:
    path, rows = tmp_path / "messages.pcap", scale.rows // 20
    write_streams(path, user_messages(rows).split())

    def summary() -> int:
        return summarize(read_tables(path, columns=COLUMNS, guid="binary")).rows("messages")

    def columns() -> int:
        return sum(len(batch) for name, batch in read_tables(path, columns=COLUMNS) if name == "messages")

    assert summary() == columns() == rows
    compare(
        "Capture file (pcap, TCP in order) to its summary",
        yardstick=path.read_bytes(),
        mine=[(Contender(f"{OURS}, summary", summary, rows), Goal())],
        arrays=[Contender(f"{OURS}, the columns it reads", columns, rows)],
    )
