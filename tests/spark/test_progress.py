"""Reports of the progress of a run: their errors are not silent, and end nothing."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from msmqwire.spark import pipeline
from msmqwire.spark.lake.storage import Storage

WAIT = 30.0


def test_an_exception_of_progress_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is not called again, and the run goes on."""
    calls: list[pipeline.Progress] = []
    called = threading.Event()

    def progress(done: pipeline.Progress) -> None:
        calls.append(done)
        called.set()
        raise RuntimeError("no terminal")

    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "0-2-10").touch()
    with pipeline._reported(progress, Storage.of(tmp_path, None), "done", 5) as marks:
        assert marks == "done"
        assert called.wait(WAIT)
    assert calls == [pipeline.Progress(2, 5, 10)]
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "no terminal"


def test_a_listing_that_fails_is_logged_and_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    calls: list[pipeline.Progress] = []
    called = threading.Event()

    def progress(done: pipeline.Progress) -> None:
        calls.append(done)
        called.set()

    folder = tmp_path / "done"
    folder.mkdir()
    (folder / "loop").symlink_to("loop")  # which cannot be listed
    with pipeline._reported(progress, Storage.of(tmp_path, None), "done", 5):
        while not caplog.records:
            called.wait(0.01)
        (folder / "loop").unlink()
        (folder / "0-2-10").touch()
        assert called.wait(WAIT)
    assert pipeline.Progress(2, 5, 10) in calls
    (record,) = caplog.records
    assert "progress cannot be counted for now" in record.message
