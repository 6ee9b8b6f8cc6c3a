"""Runs of several commits: the lake is the same as after one commit, also if a later commit is refused."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from msmqwire.spark import pipeline
from msmqwire.spark.lake import check as sound
from msmqwire.spark.lake.accounting import AccountingError, Decoded
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.source import planning
from tests.spark.captures import DAY, MONDAY, OTHER, PRINTED, SESSION, frame, large, packets, write_capture
from tests.spark.lake_runs import Stopped
from tests.spark.lakes import change_result, contents, rows
from tests.spark.lakes import wanted as read
from tests.spark.tasks import TASKS

#: A task for each small capture, several for each of more than 3,000 bytes, and a commit for each task
SETTINGS = ((pipeline, "_PARTS_OF_A_COMMIT", 1), (planning, "SPLIT_SIZE", 1_500))


def write_first(folder: Path) -> None:
    """Captures that are to grow, two of them large and one of these beside a copy, and one that is none yet."""
    folder.mkdir()
    write_capture(folder / "grown.pcap", packets(3))
    write_capture(folder / "copied.pcap", large(packets(2)))
    shutil.copy(folder / "copied.pcap", folder / "copy.pcap")
    (folder / "session.pcap").write_bytes(Path(SESSION).read_bytes()[:4_000])
    (folder / "late.pcap").write_text("not a capture\n" * 10)


def write_then(folder: Path) -> None:
    """They have grown, and there are new ones: one over days with faults and a copy, and one that is none."""
    write_capture(folder / "grown.pcap", packets(5))
    write_capture(folder / "copied.pcap", large(packets(4)))
    shutil.copy(SESSION, folder / "session.pcap")
    shutil.copy(OTHER, folder / "late.pcap")
    payloads = [PRINTED[number % 2] if number % 10 else b"?" for number in range(100)]
    days = ((MONDAY + number * DAY // 40, frame(payload)) for number, payload in enumerate(payloads))
    shutil.copy(write_capture(folder / "days.pcap", large(days, content=1)), folder / "days.pcap.1")
    (folder / "none.pcap").write_text("nor is this\n" * 10)


@dataclasses.dataclass(frozen=True)
class Case:
    """Captures; a lake with what they were at first; and one with what they are now, by a run of one commit."""

    captures: Path
    lake: Path
    wanted: Path
    summary: pipeline.Summary


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    root = tmp_path_factory.mktemp("case")
    captures, lake, wanted = (root / name for name in ("captures", "lake", "wanted"))
    write_first(captures)
    pipeline.run(TASKS, captures, lake)
    write_then(captures)
    shutil.copytree(lake, wanted)
    summary = pipeline.run(TASKS, captures, wanted)
    # One of new captures, one of those that replace others, and one of the names of copies
    assert commits(wanted) == commits(lake) + 3
    names = ("copied.pcap", "days.pcap", "grown.pcap", "late.pcap")
    assert rows(wanted) == read(*(captures / name for name in names))
    assert rows(wanted, "messages") == read(captures / "session.pcap", table="messages")
    return Case(captures, lake, wanted, summary)


@pytest.fixture
def lake(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lake as it was, for runs of many commits."""
    for module, name, value in SETTINGS:
        monkeypatch.setattr(module, name, value)
    return Path(shutil.copytree(case.lake, tmp_path / "lake"))


def commits(lake: Path) -> int:
    """How many a lake has seen."""
    return Lake(Storage.of(lake)).run


def check(case: Case, lake: Path) -> None:
    """The lake has the rows and the accounts of one commit, each once; and a run finds nothing left to do."""
    assert contents(lake) == contents(case.wanted)
    before = commits(lake)
    again = pipeline.run(TASKS, case.captures, lake)
    # What is no capture is tried each time
    assert (again.sources, again.known, len(again.problems)) == (0, 7, 1)
    assert commits(lake) == before
    assert sound(lake) == []


@pytest.mark.long
def test_many_commits_give_what_one_gives(case: Case, lake: Path) -> None:
    summary = pipeline.run(TASKS, case.captures, lake)
    assert dataclasses.replace(summary, seconds=case.summary.seconds) == case.summary
    # Of the large ones, of the others, and of the names of copies
    assert commits(lake) == commits(case.lake) + 2 + 4 + 1
    check(case, lake)


@pytest.mark.long
def test_stopped_in_the_second_commit(case: Case, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows are in accounting, and nowhere else: any reader brings the tables up to it, and the next run goes on."""
    apply_committed_runs, before = Lake.apply_committed_runs, commits(lake)

    def stopping(self: Lake) -> None:
        if self.run == before + 2:
            raise Stopped
        apply_committed_runs(self)

    with monkeypatch.context() as patches:
        patches.setattr(Lake, "apply_committed_runs", stopping)
        with pytest.raises(Stopped):
            pipeline.run(TASKS, case.captures, lake)
    assert sound(lake) == []
    assert commits(lake) == before + 2
    summary = pipeline.run(TASKS, case.captures, lake)
    assert (summary.sources, summary.known) == (3, 4)
    check(case, lake)


@pytest.mark.long
def test_refused_at_a_later_commit(case: Case, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before it stay."""

    def one_row_too_many(decoded: Decoded) -> None:
        if decoded.accounts[0].file == str(case.captures / "grown.pcap"):
            decoded.accounts[0].rows["topology"] += 1

    with monkeypatch.context() as patches:
        change_result(patches, one_row_too_many)
        with pytest.raises(AccountingError, match=r"grown\.pcap: 5 payloads for topology, but 6 rows of it"):
            pipeline.run(TASKS, case.captures, lake)
    # Captures that replace others come last
    assert commits(lake) == commits(case.lake) + 2 + 3
    assert sum(count for (file, _), count in rows(lake).items() if file.endswith("grown.pcap")) == 3
    summary = pipeline.run(TASKS, case.captures, lake)
    assert (summary.sources, summary.known) == (1, 6)
    check(case, lake)


def test_stopped_before_tables_without_rows_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, capture = tmp_path / "lake", write_capture(tmp_path / "one.pcap", packets(3))

    def stopped(lake: Lake, tables: object) -> None:
        raise Stopped

    monkeypatch.setattr(Lake, "create", stopped)
    with pytest.raises(Stopped):
        pipeline.run(TASKS, capture, lake)
    assert not (lake / "messages").exists()
    assert sound(lake) == []
    shutil.rmtree(lake / "topology")
    assert any("but 3 in accounting" in problem for problem in sound(lake))
