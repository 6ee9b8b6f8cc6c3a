"""This version reads what every release wrote, or refuses it in one line."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from msmqwire import capture, mqqb
from msmqwire.capture.checkpoint import VERSION
from msmqwire.errors import CaptureFormatError, LakeError, StoreError
from msmqwire.session import Store
from msmqwire.spark import lake
from tests.cli.support import run
from tests.release_files import CAPTURE, IDENTIFIER, MESSAGE, RELEASES, ROOT, checkpoint_inside

FOLDERS = sorted(RELEASES.iterdir())
each_release = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def one_line(error: Exception) -> None:
    """A refusal is a line that says what this version reads."""
    assert str(error).count("\n") == 0
    assert "version" in str(error)


def test_there_are_releases() -> None:
    assert "0.3.0" in {folder.name for folder in FOLDERS}
    assert [each.name for folder in FOLDERS for each in sorted(folder.iterdir())] == len(FOLDERS) * [
        "checkpoint", "lake", "messages.jsonl", "messages.parquet", "store",
    ]  # fmt: skip


def messages() -> list[dict[str, Any]]:
    return capture.read_table(str(ROOT / CAPTURE), "messages", guid="text", dictionaries=False).to_pylist()


@each_release
@pytest.mark.parametrize("table", ["messages", "sessions", "notifications", "topology"])
def test_a_lake_is_read(folder: Path, table: str) -> None:
    try:
        rows = [row for batch in lake.batches(folder / "lake", table) for row in batch.to_pylist()]
    except LakeError as error:
        one_line(error)
        return
    now = capture.read_table(str(ROOT / CAPTURE), table, guid="text", dictionaries=False).to_pylist()
    assert len(rows) == len(now)
    # A column that a later version adds is in no row of an earlier one
    assert [row["frame"] for row in rows] == [row["frame"] for row in now]
    assert now or table == "topology"


@each_release
def test_a_lake_is_continued(folder: Path, tmp_path: Path) -> None:
    """The next run finds the capture in it, and the rows stay."""
    shutil.copytree(folder / "lake", tmp_path / "lake")
    status, output, errors = run("lake", "check", tmp_path / "lake")
    assert (status, output.count("\n") + errors.count("\n") <= 3) == (0, True) or errors.count("\n") == 1, errors


@each_release
def test_parquet_is_read(folder: Path) -> None:
    """By any reader of Parquet: the columns that this version has are those of the rows."""
    rows = pq.read_table(folder / "messages.parquet").to_pylist()
    now = messages()
    assert [row["label"] for row in rows] == [row["label"] for row in now]
    assert rows[0].keys() <= now[0].keys()


@each_release
def test_rows_of_json_are_written_as_packets(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "again.pcap"
    status, _, errors = run("encode", folder / "messages.jsonl", "-o", target)
    assert (status, errors.count("\n") <= 2) == (0, True), errors
    found = capture.read_table(str(target), "messages").to_pylist()
    assert [(row["label"], row["body"]) for row in found] == [(row["label"], row["body"]) for row in messages()]
    line = json.loads((folder / "messages.jsonl").read_text("utf-8").splitlines()[0])
    assert line.keys() <= messages()[0].keys()


@each_release
def test_reading_resumes_at_a_checkpoint(folder: Path) -> None:
    data = (folder / "checkpoint").read_bytes()
    try:
        checkpoint = capture.Checkpoint.from_bytes(data)
        rest = list(resumed(checkpoint))
    except CaptureFormatError as error:
        one_line(error)
        return
    assert rest == list(resumed(checkpoint_inside()))
    assert data[: len(b"msmqwire checkpoint")] == b"msmqwire checkpoint"
    assert data[len(b"msmqwire checkpoint")] <= VERSION


def resumed(checkpoint: capture.Checkpoint) -> Iterator[bytes]:
    with contextlib.chdir(ROOT), capture.open(CAPTURE, resume=checkpoint) as blocks:
        for block in blocks:
            yield from (bytes(payload or b"") for payload in block.payloads)


@each_release
def test_a_store_is_opened(folder: Path, tmp_path: Path) -> None:
    """A clone has a copy of the file, which `msmqwire store moved` lets a queue manager use."""
    shutil.copytree(folder / "store", tmp_path / "store")
    status, _, errors = run("store", "moved", tmp_path / "store")
    try:
        with Store(tmp_path / "store") as store:
            assert status == 0, errors
            assert store.identifier == IDENTIFIER
            (row,) = store.outbox.queues()
            assert row.name == str(mqqb.UserMessage(**MESSAGE).destination_queue)
    except StoreError as error:
        one_line(error)
