"""What is on disk before ``receive`` acknowledges it: the calls of the system, recorded in their order."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import COMMAND, ROOT, environ
from tests.net.session_wire import Wire, free_port
from tests.reference.mqqb_session_packets import ConnectionParameters, SessionAck

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="loads a library before others")

ROWS = "private.orders.jsonl"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that records calls."""
    made = tmp_path_factory.mktemp("library") / "calls.so"
    source = Path(__file__).parent / "system_calls.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", made, source], check=True)
    return made


class Recorded:
    """A folder in which ``receive`` writes, and the calls that it makes there."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.folder = folder / "rows"
        self.folder.mkdir()
        self._log = folder / "log"
        self._library = library

    @contextlib.contextmanager
    def receiving(self, *options: str, output: Path | None = None, **settings: int) -> Iterator[Wire]:
        """A session with ``receive``, which acknowledges each message; the command ends after the block."""
        calls = {"CALLS_LOG": str(self._log), "CALLS_FOLDER": str(self.folder), "LD_PRELOAD": str(self._library)}
        calls |= {f"CALLS_{name.upper()}": str(value) for name, value in settings.items()}
        port = free_port()
        with contextlib.ExitStack() as opened:
            file = None if output is None else opened.enter_context(open(output, "ab"))
            command = [*COMMAND, "receive", "--quiet", "--port", str(port), *options]
            process = subprocess.Popen(command, stdout=file, cwd=ROOT, env={**environ(), **calls})
            opened.callback(process.wait, 30)
            opened.callback(process.terminate)
            wire = Wire.connect("127.0.0.1", port)
            opened.callback(wire.close)
            wire.open_session(ConnectionParameters(window_size=1))
            yield wire

    def calls(self) -> list[str]:
        """The calls, without the folder, from the first message on."""
        lines = self._log.read_text().replace(f" {self.folder}/", " ").replace(f" {self.folder}", " .").splitlines()
        handshake = [place for place, line in enumerate(lines) if line == "send"][1]
        assert "write" not in " ".join(lines[:handshake])
        return lines[: handshake - 1] + lines[handshake + 1 :]

    def rows(self, path: str = ROWS) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / path).read_bytes().splitlines()]


@pytest.fixture
def recorded(library: Path, tmp_path: Path) -> Recorded:
    return Recorded(library, tmp_path)


def deliver(wire: Wire, number: int) -> None:
    """A recoverable message, until it is acknowledged."""
    wire.write(wire.message(number, b"%d" % number, recoverable=True))
    assert wire.read(SessionAck).header.ack_sequence_number == number


def test_a_new_file_in_new_folders(recorded: Recorded) -> None:
    with recorded.receiving("-o", str(recorded.folder / "a" / "b" / "c")) as wire:
        deliver(wire, 1)
        deliver(wire, 2)
    folders = ["mkdir a", "mkdir a/b", "mkdir a/b/c", "fsync .", "fsync a", "fsync a/b"]
    file = f"a/b/c/{ROWS}"
    first = [f"write {file}", f"fsync {file}", "fsync a/b/c", "send"]
    assert recorded.calls() == [*folders, *first, f"write {file}", f"fsync {file}", "send"]
    assert [row["label"] for row in recorded.rows(file)] == ["1", "2"]


@pytest.mark.parametrize("redirected", [False, True])
def test_a_file_that_is_there(recorded: Recorded, redirected: bool) -> None:
    """Another process may have made it just before, so the folder is synchronised once."""
    file = recorded.folder / ROWS
    file.touch()
    output = ((), file) if redirected else (("-o", str(recorded.folder)), None)
    with recorded.receiving(*output[0], output=output[1]) as wire:
        deliver(wire, 1)
        deliver(wire, 2)
    row = [f"write {ROWS}", f"fsync {ROWS}"]
    first = ["fsync .", *row] if redirected else [*row, "fsync ."]
    assert recorded.calls() == [*first, "send", *row, "send"]


def test_a_file_that_is_moved_away(recorded: Recorded) -> None:
    with recorded.receiving("-o", str(recorded.folder)) as wire:
        deliver(wire, 1)
        (recorded.folder / ROWS).rename(recorded.folder / "moved.jsonl")
        deliver(wire, 2)
    row = [f"write {ROWS}", f"fsync {ROWS}", "fsync .", "send"]
    assert recorded.calls() == [*row, *row]
    assert [row["label"] for row in recorded.rows()] == ["2"]


def test_express_messages_do_not_wait_for_the_disk(recorded: Recorded) -> None:
    with recorded.receiving("-o", str(recorded.folder)) as wire:
        for number in (1, 2):
            wire.write(wire.message(number, b"x"))
            wire.read(SessionAck)
    assert recorded.calls() == [f"write {ROWS}", "fsync .", "send", f"write {ROWS}", "send"]


@pytest.mark.parametrize("redirected", [False, True])
def test_writes_that_take_a_part(recorded: Recorded, redirected: bool) -> None:
    """A system may write less than it was given."""
    options = () if redirected else ("-o", str(recorded.folder))
    with recorded.receiving(*options, output=recorded.folder / ROWS if redirected else None, short=100) as wire:
        deliver(wire, 1)
        deliver(wire, 2)
    calls = recorded.calls()
    assert calls.count(f"write {ROWS}") > 2 * 5
    first, *_ = " ".join(calls).split(" send")
    assert first.removesuffix(" fsync .").endswith(f"write {ROWS} fsync {ROWS}")
    assert [row["label"] for row in recorded.rows()] == ["1", "2"]


@pytest.mark.parametrize("redirected", [False, True])
@pytest.mark.parametrize("size", [1, 700])
def test_a_process_that_is_killed_in_a_row(recorded: Recorded, size: int, redirected: bool) -> None:
    """It had acknowledged nothing; the row that comes next is a line of its own."""
    options = () if redirected else ("-o", str(recorded.folder))
    output = recorded.folder / ROWS if redirected else None
    with recorded.receiving(*options, output=output, kill=size) as wire:
        wire.write(wire.message(1, b"1", recoverable=True))
        assert wire.read_any() is None
    torn = (recorded.folder / ROWS).read_bytes()
    assert len(torn) == size
    with recorded.receiving(*options, output=output) as wire:
        deliver(wire, 1)
    data = (recorded.folder / ROWS).read_bytes()
    assert data.startswith(torn + b"\n")
    (line,) = data.removeprefix(torn + b"\n").splitlines()
    assert json.loads(line)["label"] == "1"
