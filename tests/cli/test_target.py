"""Output files: complete or not there, whatever ends the process."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire.cli.console import CommandError, describe_error
from msmqwire.cli.formats import table_writer
from msmqwire.cli.target import Sink, open_target
from tests.cli.support import LOCAL, ROOT, process

KILLED = """
import os, signal, sys
if sys.argv[2] == "named":
    del os.O_TMPFILE
from msmqwire.cli.target import open_target
with open_target(sys.argv[1], []) as sink:
    sink.write(b"half")
    sink.flush()
    print(flush=True)
    if sys.argv[3] == "wait":
        sys.stdin.read()
    else:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def start(path: Path, files: str, end: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", KILLED, str(path), files, end]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture(params=["nameless", "named"])
def files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With and without files that have no name: of Linux, on most file systems."""
    if request.param == "named":
        monkeypatch.delattr(os, "O_TMPFILE")
    return str(request.param)


def test_what_a_killed_process_leaves(tmp_path: Path, files: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"before")
    with start(path, files, "kill") as process:
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"before"
    left = set(tmp_path.iterdir()) - {path}
    assert len(left) == (files == "named")
    with open_target(str(path), []) as sink:
        sink.write(b"after")
    assert path.read_bytes() == b"after"
    assert set(tmp_path.iterdir()) == {path, *left}


def test_the_file_of_a_running_process_is_not_removed(tmp_path: Path, files: str) -> None:
    path = tmp_path / "rows.csv"
    with start(path, files, "wait") as process:
        with open_target(str(path), []) as sink:
            sink.write(b"second")
        assert path.read_bytes() == b"second"
        process.communicate(b"")
    assert process.returncode == 0
    assert path.read_bytes() == b"half"
    assert list(tmp_path.iterdir()) == [path]


def test_permissions_and_failures(tmp_path: Path, files: str) -> None:
    path = tmp_path / ("n" * 250)
    with open_target(str(path), []) as sink:
        sink.write(b"one")
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o640)
    with pytest.raises(CommandError), open_target(str(path), []) as sink:  # noqa: PT012
        sink.write(b"two")
        raise CommandError("it fails")
    assert path.read_bytes() == b"one"
    with open_target(str(path), []) as sink:
        sink.write(b"three")
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]
    assert files


@pytest.mark.parametrize("name", ["csv", "json"])
def test_text_is_made_of_some_thousand_rows_at_a_time(name: str) -> None:
    """Text takes many times the memory of its rows while it is made."""
    written: list[bytes] = []

    class Pieces(io.BytesIO):
        def write(self, data: Any) -> int:
            written.append(bytes(data))
            return len(data)

    names, numbers = pa.array(["a;b", None, "c"] * 10_000), pa.array([[1], [], [2, 3]] * 10_000)
    rows = pa.record_batch({"name": names, "numbers": numbers})
    sink = Sink(Pieces(), "-")
    writer = table_writer(name, sink, rows.schema)
    writer.write(rows)
    writer.finish()
    assert b"".join(written).count(b"\n") == len(rows) + (name == "csv")
    assert max(piece.count(b"\n") for piece in written) < 17_000


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_nothing_is_left_to_a_finalizer(tmp_path: Path, form: str) -> None:
    """Python's development mode reports errors of finalizers, as Python 3.13 does."""
    out = tmp_path / f"x.{form}"
    done = process("decode", LOCAL, "--table", "topology", "-q", "-o", out, env={"PYTHONDEVMODE": "1"})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_error_of_deltalake_is_one_line_without_colours() -> None:
    error = OSError("Generic LocalFileSystem error\n \x1b[31m\u21b3\x1b[0m Unable to copy data\n   No space left")
    assert describe_error(error) == "Generic LocalFileSystem error \u21b3 Unable to copy data No space left"
    assert describe_error(OSError()) == "OSError"
