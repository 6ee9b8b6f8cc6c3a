"""Progress on standard error, one line, drawn on a terminal if rich is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import math
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import printable

if TYPE_CHECKING:
    from rich.text import Text

    from msmqwire.spark.pipeline import Progress

# Shorter commands need no line
_DELAY = 0.5
_INTERVAL = 0.1


def _is_drawn(wanted: bool) -> bool:
    drawn = wanted and sys.stderr is not None and sys.stderr.isatty()
    return drawn and importlib.util.find_spec("rich") is not None


@contextlib.contextmanager
def _line(
    total: int | None, *columns: Any, delay: float = _DELAY, interval: float = _INTERVAL
) -> Iterator[Callable[..., None]]:
    """A function that draws a line of rich with a number, and a note."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    what, *others = columns
    line = Progress(what, BarColumn(), *others, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = line.add_task("", total=total, note="")
    due = time.monotonic() + delay

    def update(completed: int, **fields: Any) -> None:
        nonlocal due
        if (now := time.monotonic()) >= due:
            due = now + interval
            line.start()
            line.update(task, completed=completed, **fields)
            line.refresh()

    try:
        yield update
    finally:
        line.stop()


@contextlib.contextmanager
def progress(inputs: Sequence[str], *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A function that draws the bytes read so far."""
    if not _is_drawn(wanted):
        yield lambda _: None
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = "reading", DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with _line(_total(inputs), *columns) as update:
        yield update


@contextlib.contextmanager
def message_progress(total: int | None, *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """A function that draws the messages acknowledged so far; ``total`` is None if their number is unknown."""
    if not _is_drawn(wanted):
        yield lambda _: None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    with _line(total, "sending", MofNCompleteColumn(), "acknowledged", TimeElapsedColumn()) as update:
        yield update


@contextlib.contextmanager
def capture_progress(*, wanted: bool) -> Iterator[Callable[[Progress], None] | None]:
    """A function that draws how many captures are decoded; None if nothing is drawn."""
    if not _is_drawn(wanted):
        yield None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    started = time.monotonic()
    columns = "decoding", MofNCompleteColumn(), "captures{task.fields[note]}", TimeElapsedColumn()
    with _line(None, *columns, delay=0, interval=0) as update:

        def show(done: Progress) -> None:
            rate = f", {done.frames / (time.monotonic() - started):,.0f} frames/s" if done.frames else ""
            update(done.captures, total=done.total, note=rate)

        yield show


@contextlib.contextmanager
def countdown(*, wanted: bool) -> Iterator[Callable[[str, float], None]]:
    """A function that draws a text, and the seconds left until it is called again."""
    if not _is_drawn(wanted):
        yield lambda _text, _seconds: None
        return
    from rich.console import Console
    from rich.live import Live

    line = _Countdown()
    live = Live(line, console=Console(stderr=True), transient=True, refresh_per_second=1 / _INTERVAL)
    timer = threading.Timer(_DELAY, live.start)
    timer.daemon = True
    timer.start()
    try:
        yield line.wait_for
    finally:
        timer.cancel()
        timer.join()
        live.stop()


class _Countdown:
    """The line that ``countdown`` draws."""

    def __init__(self) -> None:
        self._text = ""
        self._end = time.monotonic()

    def wait_for(self, text: str, seconds: float) -> None:
        self._text, self._end = text, time.monotonic() + seconds

    def __rich__(self) -> Text:
        from rich.text import Text

        left = max(0, math.ceil(self._end - time.monotonic()))
        return Text.assemble(printable(self._text), (f"  {left} s", "dim"), no_wrap=True, overflow="ellipsis")


def _total(inputs: Sequence[str]) -> int | None:
    """The bytes to read; None if they are unknown, as of standard input."""
    try:
        found = [os.stat(name) for name in inputs]
    except OSError:
        return None
    return sum(each.st_size for each in found) if all(stat.S_ISREG(each.st_mode) for each in found) else None
