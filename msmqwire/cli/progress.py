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
from functools import partial
from typing import TYPE_CHECKING, Any

from msmqwire.errors import printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.progress import Progress
    from rich.text import Text

    from msmqwire.spark.pipeline import Progress as RunProgress

# Shorter commands need no line
_DELAY = 0.5


def _is_drawn(wanted: bool) -> bool:
    drawn = wanted and sys.stderr is not None and sys.stderr.isatty()
    return drawn and importlib.util.find_spec("rich") is not None


@contextlib.contextmanager
def after(seconds: float, act: Callable[..., object], *arguments: Any) -> Iterator[None]:
    """Call a function in a thread if the block takes longer than so many seconds; the call ends before the block."""
    timer = threading.Timer(seconds, act, arguments)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@contextlib.contextmanager
def _drawn(display: Progress | Live) -> Iterator[None]:
    """Draw a display of rich while the block runs, from ``_DELAY`` on."""
    try:
        with after(_DELAY, display.start):
            yield
    finally:
        display.stop()


@contextlib.contextmanager
def _line(total: int | None, what: str, *columns: Any) -> Iterator[Callable[..., None]]:
    """Yield a function that updates a line of rich with a number, and a note."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress

    line = Progress(what, BarColumn(), *columns, console=Console(stderr=True), transient=True)
    with _drawn(line):
        yield partial(line.update, line.add_task("", total=total, note=""))


@contextlib.contextmanager
def progress(inputs: Sequence[str], *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that draws the bytes read so far."""
    if not _is_drawn(wanted):
        yield lambda _: None
        return
    from rich.progress import DownloadColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    with _line(_total(inputs), "reading", *columns) as update:
        yield lambda size: update(completed=size)


@contextlib.contextmanager
def message_progress(total: int | None, *, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that draws the messages acknowledged so far; ``total`` is None if their number is unknown."""
    if not _is_drawn(wanted):
        yield lambda _: None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    with _line(total, "sending", MofNCompleteColumn(), "acknowledged", TimeElapsedColumn()) as update:
        yield lambda number: update(completed=number)


@contextlib.contextmanager
def capture_progress(*, wanted: bool) -> Iterator[Callable[[RunProgress], None] | None]:
    """Yield a function that draws how many captures are decoded; None if nothing is drawn."""
    if not _is_drawn(wanted):
        yield None
        return
    from rich.progress import MofNCompleteColumn, TimeElapsedColumn

    started = time.monotonic()
    columns = MofNCompleteColumn(), "captures{task.fields[note]}", TimeElapsedColumn()
    with _line(None, "decoding", *columns) as update:

        def show(done: RunProgress) -> None:
            rate = f", {done.frames / (time.monotonic() - started):,.0f} frames/s" if done.frames else ""
            update(completed=done.captures, total=done.total, note=rate)

        yield show


@contextlib.contextmanager
def countdown(*, wanted: bool) -> Iterator[Callable[[str, float], None]]:
    """Yield a function that draws a text, and the seconds left until it is called again."""
    if not _is_drawn(wanted):
        yield lambda _text, _seconds: None
        return
    from rich.console import Console
    from rich.live import Live

    line = _Countdown()
    with _drawn(Live(line, console=Console(stderr=True), transient=True, refresh_per_second=10)):
        yield line.wait_for


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
    """Return the bytes to read; None if they are unknown, as of standard input."""
    try:
        found = [os.stat(name) for name in inputs]
    except OSError:
        return None
    return sum(each.st_size for each in found) if all(stat.S_ISREG(each.st_mode) for each in found) else None
