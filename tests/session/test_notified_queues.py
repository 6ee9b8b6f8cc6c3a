"""When ``msmqwire receive --notifications`` applies notifications, and how often it reads its directory."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import threading
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from msmqwire import mqqb
from msmqwire.cli.notified_queues import NotifiedQueues
from msmqwire.directory import MemoryDirectory
from msmqwire.session import MessageReceived
from tests.cli.support import msmqwire
from tests.cli.test_sessions import receiving
from tests.net.clock import Loop, run
from tests.notification.processing import version_2

MACHINE = uuid.UUID(int=1)


def queue(number: int) -> uuid.UUID:
    return uuid.UUID(int=0x1000 + number)


def enterprise(count: int, label: str = "old") -> str:
    queues = (
        f"[[queue]]\nidentifier = '{queue(number)}'\npathname = 'here\\q{number}'\nlabel = '{label}'\n"
        for number in range(count)
    )
    return f"[[queue_manager]]\nidentifier = '{MACHINE}'\ncomputer_name = 'here'\n" + "".join(queues)


def changed(number: int) -> MessageReceived:
    """The notification that a queue has changed."""
    destination = rf"PRIVATE={MACHINE}\3"
    return MessageReceived(mqqb.UserMessage(destination_queue=destination, body=version_2(2, queue(number))), b"")


class Here:
    """A queue manager whose directory is a file, which has another label when it has been read once."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str], count: int) -> None:
        self.file = folder / "enterprise.toml"
        self.count = count
        self._capsys = capsys
        self._writes = 0
        self.put("old")
        self.queues = NotifiedQueues(str(self.file), MACHINE, [])
        self.put("new")

    def put(self, label: str) -> None:
        self.write(enterprise(self.count, label))

    def write(self, text: str) -> None:
        self.file.write_text(text, "utf-8")
        self._writes += 1
        os.utime(self.file, (0, self._writes))  # the clock of the file system may not have moved on

    def printed(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._capsys.readouterr().out.splitlines()]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were read as directories."""
    names: list[str] = []
    load: Callable[[str], MemoryDirectory] = MemoryDirectory.load

    def noted(name: str) -> MemoryDirectory:
        names.append(name)
        return load(name)

    monkeypatch.setattr(MemoryDirectory, "load", noted)
    return names


async def put_forward(loop: Loop, seconds: float, here: Here) -> list[dict[str, Any]]:
    """Let time pass until something is printed."""
    loop.put_forward(seconds)
    while not (found := here.printed()):
        await asyncio.sleep(0.01)
    return found


def play(main: Callable[[Loop], Coroutine[Any, Any, None]]) -> None:
    run(main)


def test_notifications_wait_for_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str], reads: list[str]) -> None:
    """Nobody has authenticated them: the delay bounds what they cost ([MS-MQCN] note <3>)."""
    here = Here(tmp_path, capsys, 300)

    async def main(loop: Loop) -> None:
        await here.queues.write([changed(number) for number in range(60)])
        assert here.printed() == []
        found = await put_forward(loop, 60, here)
        assert [each["pathname"] for each in found] == [f"here\\q{number}" for number in range(60)]
        assert {each["changes"]["label"]["after"] for each in found} == {"new"}
        assert len(reads) == 2  # at the start, and as it has changed
        # The next one waits for the rest of a quarter of an hour
        await here.queues.write([changed(60)])
        loop.put_forward(890)
        await asyncio.sleep(0.05)
        assert here.printed() == []
        (last,) = await put_forward(loop, 10, here)
        assert last["identifier"] == str(queue(60))
        assert len(reads) == 2

    play(main)


def test_a_hundred_more_are_replaced_by_a_refresh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reads: list[str]
) -> None:
    here = Here(tmp_path, capsys, 300)

    async def main(loop: Loop) -> None:
        await here.queues.write([changed(0)] * 150)
        assert here.printed() == []
        overflowed, *refreshed = await put_forward(loop, 60, here)
        assert (overflowed["outcome"], overflowed["dropped"]) == ("overflowed", 150)
        assert [each["pathname"] for each in refreshed] == [f"here\\q{number}" for number in range(300)]
        assert len(reads) == 2

    play(main)


@pytest.mark.parametrize("content", [None, "[[queue]]\nidentifier = "], ids=["missing", "half written"])
def test_a_refresh_stays_due_until_the_file_can_be_read(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str], reads: list[str]
) -> None:
    here = Here(tmp_path, capsys, 200)
    here.file.unlink()
    if content is not None:
        here.write(content)

    async def main(loop: Loop) -> None:
        await here.queues.write([changed(0)] * 101)
        overflowed, ignored = await put_forward(loop, 60, here)
        assert (overflowed["outcome"], ignored["outcome"], ignored["rule"]) == ("overflowed", "ignored", "directory")
        assert len(reads) <= 2  # not once for each queue
        here.put("newest")
        found = await put_forward(loop, 60, here)
        assert [each["changes"]["label"]["after"] for each in found] == ["newest"] * 200

    play(main)


def test_the_end_applies_what_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = Here(tmp_path, capsys, 2)

    async def main(loop: Loop) -> None:
        await here.queues.write([changed(0), changed(1)])
        await here.queues.finish()
        assert [each["pathname"] for each in here.printed()] == ["here\\q0", "here\\q1"]

    play(main)


def test_the_end_says_that_the_queues_are_not_refreshed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = Here(tmp_path, capsys, 2)
    here.file.unlink()

    async def main(loop: Loop) -> None:
        await here.queues.write([changed(0)] * 101)
        await here.queues.finish()
        assert "the queues are not refreshed" in capsys.readouterr().err

    play(main)


def test_a_decision_that_cannot_be_printed_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Here(tmp_path, capsys, 2)

    async def main(loop: Loop) -> None:
        failed = loop.create_future()
        here.queues.failed = failed.set_result
        await here.queues.write([changed(0)])
        with open("/dev/full", "w", encoding="utf-8") as full:
            monkeypatch.setattr("sys.stdout", full)
            loop.put_forward(60)
            assert "No space left on device" in str(await failed)

    play(main)


def test_the_loop_runs_while_the_directory_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is slow to answer: a pipe, whose reader waits until somebody writes."""
    here = Here(tmp_path, capsys, 2)
    here.file.unlink()
    os.mkfifo(here.file)

    def answer() -> None:
        is_read.wait()
        here.file.write_text(enterprise(2, "new"), "utf-8")

    async def main(loop: Loop) -> None:
        await here.queues.write([changed(0)])
        loop.put_forward(60)
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert here.printed() == []
        is_read.set()
        (found,) = await put_forward(loop, 0, here)
        assert found["changes"]["label"]["after"] == "new"

    is_read = threading.Event()
    threading.Thread(target=answer).start()
    play(main)


def test_a_process_applies_notifications_later_and_at_its_end(tmp_path: Path) -> None:
    """The sender has its acknowledgments, and nothing is applied; SIGTERM applies all."""
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    old.write_text(enterprise(64), "utf-8")
    new.write_text(enterprise(64, "new"), "utf-8")
    options = ("--notifications", "--directory", str(new), "--queue-manager", str(MACHINE))
    with receiving(*options) as (process, port):
        assert process.stdout is not None
        address = ("--server", "dc1", "--host", "127.0.0.1", "--port", str(port), "--quiet")
        assert msmqwire("notify", "--before", old, "--directory", new, *address) == (0, b"", b"")
        assert select.select([process.stdout], [], [], 0)[0] == []
        process.send_signal(signal.SIGTERM)
        found = process.communicate(timeout=30)[0].splitlines()
    assert process.returncode == -signal.SIGTERM
    assert [json.loads(line)["outcome"] for line in found] == ["changed"] * 64
