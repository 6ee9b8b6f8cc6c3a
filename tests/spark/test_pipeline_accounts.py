"""Jobs whose accounts of the sources do not add up are refused, and change no lake."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from msmqwire import cli
from msmqwire.spark import pipeline
from msmqwire.spark.lake.accounting import AccountingError, Decoded
from tests.spark.captures import LOCAL, OTHER
from tests.spark.lakes import change_result, files_of, read
from tests.spark.tasks import TASKS


def rows_by_source(lake: Path, table: str) -> Counter[str]:
    return Counter(row["file"] for row in read(lake, table, ["file"]).to_pylist())


# Accounts that are wrong


def one_row_too_many(decoded: Decoded) -> None:
    """The account of the last source says so."""
    decoded.accounts[-1].rows["topology"] += 1


def a_file_without_its_first_row(table: str) -> Callable[[Decoded], None]:
    """The last file of a table."""

    def cut(decoded: Decoded) -> None:
        last = [at for at, file in enumerate(decoded.files) if file.table == table][-1]
        decoded.files[last] = dataclasses.replace(decoded.files[last], rows=decoded.files[last].rows - 1)

    return cut


def a_frame_too_many(decoded: Decoded) -> None:
    """Of a protocol that is not looked at."""
    decoded.accounts[-1].frames += 1


def content(lake: Path) -> dict[str, bytes]:
    """The files of every table, and its log, byte for byte."""
    named = {f"{name}/{file}" for name in ("topology", "accounting") for file in files_of(lake, name)}
    paths = {str(path.relative_to(lake)): path for path in lake.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in paths.items() if name in named or "_delta_log" in name}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (one_row_too_many, f"{OTHER}: 10 payloads for topology, but 11 rows of it"),
        (a_file_without_its_first_row("topology"), f"{OTHER}: 10 rows of topology, but 9 in its files"),
        (a_file_without_its_first_row("faults"), f"{OTHER}: 3 rows of faults, but 2 in its files"),
        (
            a_frame_too_many,
            f"{OTHER}: 13 frames, but 12 payloads, segments, fragments, other, unsupported and malformed",
        ),
    ],
    ids=["account", "rows", "faults", "frames"],
)
def test_a_job_whose_accounts_do_not_add_up_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Decoded], None],
    message: str,
) -> None:
    """The lake is what it was, byte for byte, and the next run finds it sound."""
    pipeline.run(TASKS, LOCAL, tmp_path)
    before = content(tmp_path)
    with monkeypatch.context() as patches:
        change_result(patches, change)
        with pytest.raises(AccountingError) as refusal:
            pipeline.run(TASKS, [LOCAL, OTHER], tmp_path)
    assert str(refusal.value) == message
    assert content(tmp_path) == before
    assert pipeline.run(TASKS, [LOCAL, OTHER], tmp_path).sources == 1
    assert rows_by_source(tmp_path, "topology") == {LOCAL: 4, OTHER: 10}


@pytest.mark.long
def test_the_command_says_in_a_line_what_does_not_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of captures that share files, their rows are counted together."""
    change_result(monkeypatch, a_file_without_its_first_row("topology"))
    assert cli.main(["pipeline", LOCAL, OTHER, "--lake", str(tmp_path)]) == 1
    said = f"msmqwire: {LOCAL} and 1 more: 14 rows of topology, but 13 in its files\n"
    assert capsys.readouterr() == ("", said)
    assert not files_of(tmp_path, "accounting")
