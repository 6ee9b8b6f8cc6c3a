"""``msmqwire decode`` on a terminal, and what is left behind when it is stopped."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import pytest

from tests.cli.support import (
    COMMAND,
    EXAMPLES,
    ROOT,
    V1,
    V2,
    capture,
    environ,
    expected_rows,
    from_csv,
    from_json,
    msmqwire,
    process,
    refused,
    reply_from,
)
from tests.cli.terminal import Terminal, start

#: What rich sends to colour text; nothing else may follow an escape.
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_DEADLINE = 60
UNBUFFERED = pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.long)])
TEXT_OR_PARQUET = pytest.mark.parametrize("format", ["json", pytest.param("parquet", marks=pytest.mark.long)])


def test_a_terminal_gets_a_table(printed: Path) -> None:
    terminal = Terminal(columns=120)
    child = start(["decode", printed], stdout=terminal.descriptor, stderr=subprocess.PIPE)
    _, said = child.communicate(timeout=_DEADLINE)
    text = terminal.text()
    assert child.returncode == 0
    assert said.decode() == "3 frames: 3 datagrams, 0 of other protocols, 0 malformed\n3 rows of topology\n"
    assert _COLOUR.search(text)
    plain = _COLOUR.sub("", text)
    assert "\x1b" not in plain
    assert "nt4pec (ip)" in plain
    assert "  enterprise_id " in plain


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (80, "13  08:02:00.037200  10.20.1.10 → 10.20.1.25  user_message  DIRECT=TCP:10.20.1…"),
        (
            140,
            "13  2024-03-04 08:02:00.037200  10.20.1.10:50211 → 10.20.1.25:1801  user_message  "
            "destination_queue=DIRECT=TCP:10.20.1.25\\PRIVATE$\\orders…",
        ),
    ],
)
def test_brief_begins_with_the_queue(columns: int, line: str) -> None:
    terminal = Terminal(columns=columns)
    arguments = ["decode", EXAMPLES / "message-session.pcap", "--table", "messages", "-T", "brief", "-q"]
    child = start(arguments, stdout=terminal.descriptor, stderr=subprocess.PIPE)
    child.communicate(timeout=_DEADLINE)
    lines = terminal.text().splitlines()
    assert line.rstrip("…").lower() in next(each for each in lines if each.startswith("13  ")).lower()
    assert max(map(len, lines)) == columns


def test_colour_is_not_sent_where_it_is_not_wanted(printed: Path) -> None:
    terminal = Terminal()
    process("decode", printed, stdout=terminal.descriptor, env={"TERM": "xterm", "NO_COLOR": "1"})
    assert not re.search(r"\x1b\[[\d;]*3\dm", terminal.text())


@pytest.mark.parametrize("format", ["table", "brief", "csv"])
def test_a_terminal_is_not_steered(format: str, tmp_path: Path) -> None:
    path = tmp_path / "\x1b[2J\x9b.pcapng"
    path.write_bytes(capture([reply_from("\x1b]0;owned\x07", "\x9b31m", "\u202e=1")]))
    terminal = Terminal()
    child = start(["decode", path, "-T", format], stdout=terminal.descriptor, stderr=terminal.descriptor)
    assert child.wait(_DEADLINE) == 0
    plain = _COLOUR.sub("", terminal.text())
    assert not re.search(r"[\x00-\x09\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202e]", plain)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(("decode", "-T", "parquet"), "Parquet is not for a terminal: name a file with -o"),
     (("encode",), "a capture is not for a terminal: name a file with -o")],
)  # fmt: skip
def test_bytes_are_not_for_a_terminal(arguments: tuple[str, ...], complaint: str, printed: Path) -> None:
    terminal = Terminal()
    done = process(*arguments, printed, stdout=terminal.descriptor)
    assert terminal.text() == ""
    assert (done.returncode, done.stderr.startswith(f"msmqwire: {complaint}".encode())) == (1, True)


def test_standard_input_that_is_a_terminal() -> None:
    terminal = Terminal()
    child = start(["decode", "-"], stdin=terminal.descriptor, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, said = child.communicate(timeout=_DEADLINE)
    terminal.text()
    assert (child.returncode, out) == (1, b"")
    assert b"pipe a capture into msmqwire" in said


def slowly(data: bytes, pipe: IO[bytes], seconds: float) -> None:
    """Feed a pipe in pieces over some time."""
    size = len(data) // 20 + 1
    for place in range(0, len(data), size):
        pipe.write(data[place : place + size])
        pipe.flush()
        time.sleep(seconds / 20)
    pipe.close()


@pytest.mark.long
def test_progress_is_for_a_terminal_where_no_rows_go(tmp_path: Path) -> None:
    data = capture([V1.data] * 2_000)
    out = tmp_path / "out.csv"
    terminal = Terminal()
    child = start(["decode", "-", "-o", out], stdin=subprocess.PIPE, stderr=terminal.descriptor)
    assert child.stdin
    slowly(data, child.stdin, 2.0)
    assert child.wait(_DEADLINE) == 0
    text = terminal.text()
    assert "reading" in text
    assert text.endswith("2,000 frames: 2,000 datagrams, 0 of other protocols, 0 malformed\n2,000 rows of topology\n")

    # Rows on the terminal, or nobody to look at it: no progress
    terminal = Terminal()
    child = start(
        ["decode", "-", "-T", "csv"], stdin=subprocess.PIPE, stdout=terminal.descriptor, stderr=terminal.descriptor
    )
    assert child.stdin
    slowly(data, child.stdin, 1.0)
    assert child.wait(_DEADLINE) == 0
    assert "reading" not in terminal.text()
    child = start(["decode", "-", "-o", out], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin
    assert child.stderr
    slowly(data, child.stdin, 1.0)
    said = b"2,000 frames: 2,000 datagrams, 0 of other protocols, 0 malformed\n2,000 rows of topology\n"
    assert child.stderr.read() == said
    assert child.wait(_DEADLINE) == 0


# --- Stopped in the middle ---


def wait_for_output(child: subprocess.Popen[bytes], directory: Path) -> None:
    """Until a command has begun to write, into a file that may have no name yet."""
    deadline = time.monotonic() + _DEADLINE
    while not any(file.startswith(f"{directory}/") for file in open_files(child.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def open_files(pid: int) -> Iterator[str]:
    """What the descriptors of a process refer to; one may be closed at any moment."""
    for descriptor in Path("/proc", str(pid), "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(descriptor)


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (signal.SIGINT, "out.json"),
        (signal.SIGTERM, "out.json"),
        pytest.param(signal.SIGINT, "out.parquet", marks=pytest.mark.long),
        pytest.param(signal.SIGHUP, "out.json", marks=pytest.mark.long),
    ],
)
def test_a_signal_leaves_no_file(number: signal.Signals, name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    out.write_bytes(b"the previous file")
    child = start(["decode", "-", "-o", out], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdin
    assert child.stderr
    child.stdin.write(capture([V1.data] * 20_000, step=1_000))
    child.stdin.flush()
    wait_for_output(child, tmp_path)
    child.send_signal(number)
    # Still waiting for the end of its input; a shell sees that a signal ended it.
    assert child.wait(_DEADLINE) == -number
    assert child.stderr.read() == (b"msmqwire: interrupted\n" if number == signal.SIGINT else b"")
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_bytes() == b"the previous file"
    child.stdin.close()
    child.stderr.close()


@pytest.mark.parametrize("name", ["out.json", pytest.param("out.parquet", marks=pytest.mark.long)])
def test_an_interrupt_ends_all_threads(name: str, tmp_path: Path) -> None:
    """More rows than are decoded before the signal."""
    many, out = tmp_path / "many.pcapng", tmp_path / "out" / name
    out.parent.mkdir()
    many.write_bytes(capture([V1.data] * 20_000, step=1_000))
    links = [tmp_path / f"{number}.pcapng" for number in range(400)]
    for link in links:
        os.link(many, link)
    child = start(["decode", *links, "--table", "topology", "-j", "3", "-o", out], stderr=subprocess.PIPE)
    assert child.stderr
    wait_for_output(child, out.parent)
    child.send_signal(signal.SIGINT)
    assert child.wait(_DEADLINE) == -signal.SIGINT
    assert child.stderr.read() == b"msmqwire: interrupted\n"
    assert list(out.parent.iterdir()) == []
    child.stderr.close()


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As ``nohup`` asks."""
    out = tmp_path / "out.json"
    child = subprocess.Popen(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *COMMAND, "decode", "-", "-o", str(out)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environ(), cwd=ROOT,
    )  # fmt: skip
    assert child.stdin
    data = capture([V2.data])
    child.stdin.write(data[:100])
    child.stdin.flush()
    wait_for_output(child, tmp_path)
    child.send_signal(signal.SIGHUP)
    _, said = child.communicate(data[100:], timeout=_DEADLINE)
    assert child.returncode == 0, said
    assert len(from_json(out.read_bytes())) == 1


# --- Full disks ---


@pytest.mark.parametrize("format", ["json", "table"])
def test_standard_output_that_is_full(format: str, printed: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = process("decode", printed, "-T", format, stdout=full)
    assert done.returncode == 1
    assert done.stderr.decode() == "msmqwire: cannot write standard output: No space left on device\n"


@UNBUFFERED
@pytest.mark.parametrize(
    "arguments", [("explain", "truncated"), ("explain", "truncated", "-T", "json"), ("--help",), ("--version",)]
)
def test_text_that_cannot_be_written(arguments: tuple[str, ...], unbuffered: str) -> None:
    with open("/dev/full", "wb") as full:
        done = process(*arguments, stdout=full, env={"PYTHONUNBUFFERED": unbuffered})
    assert done.returncode == 1
    assert done.stderr.decode() == "msmqwire: cannot write standard output: No space left on device\n"


@UNBUFFERED
def test_a_standard_output_that_may_not_grow(unbuffered: str, printed: Path, tmp_path: Path) -> None:
    """The system writes a part and reports no error, which is not all that there was to write."""
    env = {"PYTHONUNBUFFERED": unbuffered}
    for arguments in (("decode", printed, "-T", "json"), ("explain", "truncated")):
        complete = msmqwire(*arguments).stdout
        size = len(complete) // 2
        limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))
        with open(tmp_path / "out", "wb") as output:
            done = process(*arguments, stdout=output, env=env, preexec_fn=limit)
        assert done.returncode == 1
        assert done.stderr.decode() == "msmqwire: cannot write standard output: File too large\n"
        assert complete.startswith((tmp_path / "out").read_bytes())


@pytest.mark.parametrize("format", ["json", "csv", "parquet", "table", "brief"])
def test_a_device_that_is_full(format: str, printed: Path) -> None:
    for arguments in ((), ("--table", "topology")):
        said = refused("decode", printed, *arguments, "-T", format, "-o", "/dev/full")
        assert said == "msmqwire: cannot write /dev/full: No space left on device\n"


@TEXT_OR_PARQUET
def test_a_file_that_may_not_grow_leaves_no_file(format: str, tmp_path: Path) -> None:
    path, out = tmp_path / "many.pcapng", tmp_path / "out"
    path.write_bytes(capture([reply_from(f"server-{n * 7919 % 100_003}") for n in range(5_000)]))
    out.write_bytes(b"before")
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (20_000, 20_000))
    done = process("decode", path, "-T", format, "-o", out, preexec_fn=limit)
    assert done.returncode == 1
    assert done.stderr.decode() == f"msmqwire: cannot write {out}: File too large\n"
    assert sorted(tmp_path.iterdir()) == [path, out]
    assert out.read_bytes() == b"before"


@TEXT_OR_PARQUET
def test_a_full_disk_leaves_no_file(format: str, tmp_path: Path) -> None:
    """On a file system of its own, where the machine lets us mount one."""
    path, disk = tmp_path / "many.pcapng", tmp_path / "disk"
    path.write_bytes(capture([reply_from(f"server-{n * 7919 % 100_003}") for n in range(5_000)]))
    disk.mkdir()
    script = (
        'mount -t tmpfs -o size=16k none "$1" || exit 77\n'
        f'"$2" -m msmqwire decode "$3" -T {format} -o "$1/out"; status=$?\n'
        'ls -A "$1"; exit $status\n'
    )
    done = subprocess.run(
        ["unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh", disk, sys.executable, path],
        capture_output=True, env=environ(), cwd=ROOT, timeout=_DEADLINE,
    )  # fmt: skip
    if done.returncode == 77 or b"unshare" in done.stderr:
        pytest.skip("no file system can be mounted here")
    assert done.returncode == 1
    assert done.stderr.decode() == f"msmqwire: cannot write {disk}/out: No space left on device\n"
    assert done.stdout == b""


# --- What a file that is written looks like ---


def test_a_file_has_the_rights_of_its_kind(printed: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    umask = os.umask(0o027)
    try:
        assert msmqwire("decode", printed, "-o", out).returncode == 0
        assert out.stat().st_mode & 0o777 == 0o640
        out.chmod(0o604)
        assert msmqwire("decode", printed, "-o", out).returncode == 0
        assert out.stat().st_mode & 0o777 == 0o604
    finally:
        os.umask(umask)


def test_a_link_is_written_through(printed: Path, tmp_path: Path) -> None:
    out, link = tmp_path / "out.csv", tmp_path / "link.csv"
    link.symlink_to(out)
    assert msmqwire("decode", printed, "-o", link).returncode == 0
    assert link.is_symlink()
    assert from_csv(out.read_bytes()) == expected_rows(printed)


def test_the_longest_name_a_file_may_have(printed: Path, tmp_path: Path) -> None:
    out = tmp_path / ("x" * 250 + ".json")
    assert msmqwire("decode", printed, "--table", "topology", "-o", out).returncode == 0
    assert from_json(out.read_bytes()) == expected_rows(printed)
