"""``msmqwire pipeline``: captures into a lake with Spark, and its errors."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from msmqwire.spark import pipeline
from tests.cli.support import LOCAL, OTHER, ROOT, V1, capture, expected_rows, process, refused, run
from tests.cli.terminal import Terminal, start
from tests.spark.captures import without_a_segment
from tests.spark.lakes import read
from tests.system_programs import require_program

_MINUTES = 300


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """The folder of temporary files of a command, which it should leave empty."""
    path = tmp_path / "tmp"
    path.mkdir()
    return path


def rows_of_lake(lake: Path) -> list[tuple[Any, ...]]:
    table = read(lake)
    return sorted((Path(row["file"]).name, row["frame"], row["type"]) for row in table.to_pylist())


def rows_of_captures(*captures: Path) -> list[tuple[Any, ...]]:
    rows = [row for path in captures for row in expected_rows(path)]
    return sorted((Path(row["file"]).name, row["frame"], row["type"]) for row in rows)


def test_captures_become_a_lake(tmp_path: Path, spark: SparkSession) -> None:
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    for source in (LOCAL, OTHER):
        shutil.copy(source, folder)
    (folder / "note\x1b[2J.txt").write_text("no capture")
    status, said, errors = run("pipeline", folder, "--lake", lake)
    assert (status, errors) == (1, "")  # one file is no capture
    assert "14 rows of topology" in said
    assert "20 frames: 14 datagrams, 1 segment, 5 of other protocols, 0 malformed" in said
    assert "3 payloads with faults: " in said
    assert "note\ufffd[2J.txt: begins with 6e 6f" in said
    assert rows_of_lake(lake) == rows_of_captures(LOCAL, OTHER)
    assert spark.range(1).count() == 1  # the active session is used, and not stopped


@pytest.mark.long
def test_progress_on_a_terminal_and_a_second_run(tmp_path: Path, logs: Path, spark: SparkSession) -> None:
    """With a Spark of its own, and with that of the tests."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    for number in range(4):
        request = V1.data[:20] + bytes([number]) + V1.data[21:]  # else one capture begins as another and is its past
        (folder / f"{number}.pcapng").write_bytes(capture([request] * (number + 1)))
    arguments = ["pipeline", folder, "--lake", lake]
    terminal = Terminal()
    child = start(
        [*arguments, "--master", "local[2]"],
        {"TMPDIR": str(logs)}, stdout=subprocess.PIPE, stderr=terminal.descriptor,
    )  # fmt: skip
    said, _ = child.communicate(timeout=_MINUTES)
    shown = terminal.text()
    assert child.returncode == 0, shown
    assert b"10 rows of topology" in said
    assert "decoding" in shown
    assert re.search(r"4/4\S* captures, \d+ frames/s", shown)
    assert "WARN" not in shown
    assert list(logs.glob("msmqwire-*")) == []
    before = rows_of_lake(lake)
    assert len(before) == 10
    assert run(*map(str, arguments), "--quiet") == (0, "", "")
    assert rows_of_lake(lake) == before


def test_bytes_missing_from_a_stream_are_an_exit_status(tmp_path: Path, spark: SparkSession) -> None:
    gap, lake = tmp_path / "gap.pcap", tmp_path / "lake"
    without_a_segment(ROOT / "examples" / "message-session.pcap", gap)
    status, said, errors = run("pipeline", gap, "--lake", lake, "--tables", "messages,sessions")
    assert (status, errors) == (2, "")
    assert "faults" not in said
    assert ": 1 gap, " in said
    written = {path.name for path in lake.iterdir() if not path.name.startswith("_")}
    assert written == {"messages", "sessions", "faults", "accounting"}


def test_failfast_is_one_line_and_adds_nothing(tmp_path: Path, spark: SparkSession) -> None:
    lake = tmp_path / "lake"
    said = refused("pipeline", OTHER, "--lake", lake, "--failfast")
    assert said.startswith(f"msmqwire: nothing was added to {lake}: truncated: DirectoryServiceServerArray at byte 64")
    assert not list(lake.glob("accounting/*.parquet"))


def others_in_session(leader: int) -> list[int]:
    """Processes that a process started which led a session, and that outlive it."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # After the name in parentheses: state, parent, group, session
            state, _, _, session = status.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append(int(status.parent.name))
    return found


@pytest.mark.long
def test_ctrl_c_while_spark_starts_leaves_nothing_behind(tmp_path: Path, logs: Path) -> None:
    require_program("java")
    lake = tmp_path / "lake"
    child = start(
        ["pipeline", LOCAL, "--lake", lake],
        {"TMPDIR": str(logs)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + _MINUTES
    while len(others_in_session(child.pid)) < 2:  # itself, and the JVM
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(signal.SIGINT)
    assert child.wait(_MINUTES) == -signal.SIGINT
    while others_in_session(child.pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert list(logs.glob("msmqwire-*")) == []
    assert not list(lake.glob("accounting/*.parquet"))


def failed(logs: Path, *options: str, **variables: str) -> str:
    """The cause that the command reports when its Spark fails; its log has it, too."""
    done = process("pipeline", LOCAL, "--lake", logs / "lake", *options, env={"TMPDIR": str(logs), **variables})
    (log,) = logs.glob("msmqwire-spark-*.log")
    said = done.stderr.decode()
    assert (done.returncode, done.stdout, len(said.splitlines())) == (1, b"", 1)
    match = re.fullmatch(rf"msmqwire: Spark has failed: (.*); its log is {log}\n", said)
    assert match, said
    assert match[1] in log.read_text()
    return match[1]


def test_a_jvm_that_does_not_start_leaves_its_log(tmp_path: Path, logs: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "no JVM today with $SPARK_SUBMIT_OPTS" >&2\nexit 1\n')
    java.chmod(0o755)
    cause = failed(logs, JAVA_HOME=str(tmp_path / "jdk"), SPARK_SUBMIT_OPTS="-Xint")
    assert cause == "no JVM today with -XX:TieredStopAtLevel=1 -Xint"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake to read."""
    path = tmp_path_factory.mktemp("read") / "lake"
    pipeline.run(spark, str(LOCAL), path)
    return path


@pytest.mark.long
def test_a_master_that_cannot_be_used(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one line at once; Spark would start a JVM, or try again for minutes."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    arguments: list[str | Path] = ["pipeline", LOCAL, "--lake", lake]
    known = "is not a Spark: local[4], spark://HOST:PORT, sc://HOST:PORT, yarn, k8s://URL"
    refused_there = f"no Spark can be reached: 127.0.0.1:{port}: Connection refused"
    for master, cause in (
        ("bogus", known),
        ("local[many]", known),
        ("spark://127.0.0.1:70000", "'127.0.0.1:70000' is not HOST:PORT"),
        (f"spark://127.0.0.1:{port}", refused_there),
        (f"sc://127.0.0.1:{port}/;token=secret", refused_there),
    ):
        said = f"--master {master.partition(';')[0]}: {cause}"
        assert refused(*arguments, "--master", master) == f"msmqwire: {said}\n"
    monkeypatch.setattr(SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setenv("SPARK_REMOTE", f"sc://127.0.0.1:{port}")
    assert refused(*arguments) == f"msmqwire: SPARK_REMOTE sc://127.0.0.1:{port}: {refused_there}\n"


@pytest.mark.long
def test_a_master_that_does_not_answer_is_announced(logs: Path) -> None:
    """Spark gives up after a minute."""
    require_program("java")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        master = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        done = process("pipeline", LOCAL, "--lake", logs / "lake", "--master", master, env={"TMPDIR": str(logs)})
    waiting, failure = done.stderr.decode().splitlines()
    assert (done.returncode, waiting) == (1, f"msmqwire: waiting for {master}")
    assert failure.startswith("msmqwire: Spark has failed: All masters are unresponsive! Giving up; its log is ")


def test_without_java(tmp_path: Path, logs: Path) -> None:
    done = process("pipeline", LOCAL, "--lake", tmp_path / "lake", env={"JAVA_HOME": str(tmp_path)})
    assert done.returncode == 1
    assert done.stderr.decode().startswith("msmqwire: Spark needs Java 17 or newer: apt-get install ")


def test_without_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    said = refused("pipeline", LOCAL, "--lake", tmp_path / "lake")
    assert said.startswith("msmqwire: msmqwire pipeline needs pyspark, which is not installed: pip install 'pyspark")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("nosuch/*.pcap", "--lake", "lake"), "no capture matches 'nosuch/*.pcap'"),
        (("nosuch://bucket/x.pcap", "--lake", "lake"), "nosuch://bucket: "),
        ((str(LOCAL),), "--lake"),
        ((str(LOCAL), "--lake", ""), "'' names no lake: give a folder or a URI"),
        ((str(LOCAL), "--lake", "a%20b"), "choose another"),
        ((str(LOCAL), "--lake", "lake", "--tables", "queues"), "there is topology"),
        ((str(LOCAL), "--lake", "lake", "--ports", "0"), "ports from 1 to 65535"),
    ],
)
def test_usage(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    assert expected in refused("pipeline", *arguments, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
