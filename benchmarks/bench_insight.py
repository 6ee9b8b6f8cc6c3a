"""Summaries and findings of captures, beside copying their bytes and reading the same columns of their tables."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.comparison import OURS, Comparison, Goal
from benchmarks.messages import user_messages
from benchmarks.ratios import Contender
from benchmarks.scale import Scale
from benchmarks.spark_forms import write_mixed
from benchmarks.streams import write_streams
from msmqwire.capture import read_tables
from msmqwire.insight import COLUMNS, SECTIONS, Section, Summary, summarize
from msmqwire.insight.findings import COLUMNS as EVIDENCE
from msmqwire.insight.findings import CapturedRows, Detector, detection_engine

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)


def compare_summary(compare: Comparison, title: str, path: Path) -> None:
    """Compare the summary of captures with reading the columns that it needs."""

    def summary() -> int:
        found = summarize(path)
        assert all(found.section(name).num_columns for name in SECTIONS)
        return sum(found.rows(table) for table in COLUMNS)

    def columns() -> int:
        return sum(len(batch) for _, batch in read_tables(path, COLUMNS, columns=COLUMNS, guid="binary"))

    rows = columns()
    assert summary() == rows
    compare(
        title,
        yardstick=b"".join(file.read_bytes() for file in ([path] if path.is_file() else sorted(path.iterdir()))),
        mine=[(Contender(f"{OURS}, summary", summary, rows), Goal())],
        arrays=[Contender(f"{OURS}, the columns it reads", columns, rows)],
    )


def test_summary(compare: Comparison, scale: Scale, tmp_path: Path) -> None:
    path = tmp_path / "messages.pcap"
    write_streams(path, user_messages(scale.rows // 20).split())
    compare_summary(compare, "Capture file (pcap, TCP in order) to its summary", path)


def test_summary_of_mixed_traffic(compare: Comparison, scale: Scale, tmp_path: Path) -> None:
    """Most rows are discovery packets, each with another request identifier, of hosts chosen at random."""
    folder = tmp_path / "mixed"
    write_mixed(folder, scale.rows // 5)
    compare_summary(compare, "Captures of mixed traffic to their summary", folder)


def test_findings_and_report(compare: Comparison, scale: Scale, tmp_path: Path) -> None:
    """What ``detect`` and ``report`` read and judge, beside reading the columns of both."""
    path = tmp_path / "messages.pcap"
    write_streams(path, user_messages(scale.rows // 20).split())
    both = {table: tuple(dict.fromkeys((*EVIDENCE.get(table, ()), *COLUMNS[table]))) for table in COLUMNS}

    def judge(sections: Mapping[str, Section]) -> int:
        engine, rows = detection_engine(more=sections.values()), 0
        with CapturedRows(path, columns=engine.columns) as reader:
            for table, batch in reader:
                engine.add(table, batch)
                rows += len(batch)
        assert Detector(engine=engine).findings()
        summary = Summary(sections=sections, engine=engine)
        assert all(summary.section(name).num_columns for name in sections)
        return rows

    def columns(wanted: Mapping[str, tuple[str, ...]]) -> int:
        return sum(len(batch) for _, batch in read_tables(path, wanted, columns=wanted, guid="binary"))

    rows = columns(EVIDENCE)
    assert judge({}) == judge(SECTIONS) == rows
    compare(
        "Capture file (pcap, TCP in order) to findings, and to a summary with findings",
        yardstick=path.read_bytes(),
        mine=[
            (Contender(f"{OURS}, detect", lambda: judge({}), rows), Goal()),
            (Contender(f"{OURS}, report", lambda: judge(SECTIONS), rows), Goal()),
        ],
        arrays=[
            Contender(f"{OURS}, the columns of detect", lambda: columns(EVIDENCE), rows),
            Contender(f"{OURS}, the columns of report", lambda: columns(both), rows),
        ],
    )
