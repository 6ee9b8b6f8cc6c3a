"""How far reading has come: one line on standard error, for people who wait."""

from __future__ import annotations

import contextlib
import math
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.console import printable

if TYPE_CHECKING:
    from rich.text import Text

    from msmqwire.spark.pipeline import Progress

__all__ = ["capture_progress", "countdown", "progress"]

# A command that is over before anybody wonders needs no line.
_PATIENCE = 0.5
_INTERVAL = 0.1


@contextlib.contextmanager
def progress(inputs: Sequence[str], *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A function that is told the bytes read so far, and draws them when that is wanted and rich is there.

    ``wanted`` is false when rows go to the terminal themselves. Nothing is drawn unless standard error is a terminal.
    """
    if not (wanted and _watched()):
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn
    except ImportError:
        yield lambda _: None
        return
    line = Progress(
        "reading", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn(),
        console=Console(stderr=True), transient=True, auto_refresh=False,
    )  # fmt: skip
    task = line.add_task("", total=_total(inputs))
    due = time.monotonic() + _PATIENCE

    def update(bytes_read: int) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + _INTERVAL
            line.start()
            line.update(task, completed=bytes_read)
            line.refresh()

    try:
        yield update
    finally:
        line.stop()


@contextlib.contextmanager
def capture_progress(*, wanted: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A function that is told how many captures are decoded and draws it, as ``progress`` does; None without need."""
    if not (wanted and _watched()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Line

    line = Line(
        "decoding", BarColumn(), MofNCompleteColumn(), TextColumn("captures{task.fields[rate]}"), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, auto_refresh=False,
    )  # fmt: skip
    task = line.add_task("", total=None, rate="")
    started = time.monotonic()

    def show(done: Progress) -> None:
        rate = f", {done.frames / (time.monotonic() - started):,.0f} frames/s" if done.frames else ""
        line.update(task, total=done.total, completed=done.captures, rate=rate)
        line.refresh()

    line.start()
    try:
        yield show
    finally:
        line.stop()


@contextlib.contextmanager
def countdown(*, wanted: bool) -> Iterator[Callable[[str, float], None]]:
    """A function that is told what is waited for, for how many seconds at most, and draws both until told more."""
    if not (wanted and _watched()):
        yield lambda _text, _seconds: None
        return
    from rich.console import Console
    from rich.live import Live

    line = _Countdown()
    live = Live(line, console=Console(stderr=True), transient=True, refresh_per_second=1 / _INTERVAL)
    patience = threading.Timer(_PATIENCE, live.start)
    patience.daemon = True
    patience.start()
    try:
        yield line.wait_for
    finally:
        patience.cancel()
        patience.join()
        live.stop()


class _Countdown:
    """The line that ``countdown`` draws, as it is at the moment."""

    def __init__(self) -> None:
        self._text = ""
        self._end = time.monotonic()

    def wait_for(self, text: str, seconds: float) -> None:
        self._text, self._end = text, time.monotonic() + seconds

    def __rich__(self) -> Text:
        from rich.text import Text

        left = max(0, math.ceil(self._end - time.monotonic()))
        return Text.assemble(printable(self._text), (f"  {left} s", "dim"), no_wrap=True, overflow="ellipsis")


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _total(inputs: Sequence[str]) -> int | None:
    """The bytes there are to read, None when that cannot be known (standard input, a pipe, a pattern)."""
    total = 0
    for name in inputs:
        try:
            status = os.stat(name)
        except OSError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        total += status.st_size
    return total
