"""Signals that ask a command to stop: raised as an exception, so that it cleans up before the process ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from types import FrameType
from typing import Any, NoReturn, TypeAlias, TypeVar

Result = TypeVar("Result")
Handler: TypeAlias = Callable[[int, FrameType | None], object]

# Windows has no SIGHUP
_STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

_POLL_MILLISECONDS = 100


class Stopped(BaseException):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        self.number = number


@contextlib.contextmanager
def raised() -> Iterator[None]:
    """Raise ``Stopped`` when a signal asks the process to end; signals that nohup ignores stay ignored."""

    def stop(number: int, _: FrameType | None) -> NoReturn:
        raise Stopped(number)

    with _handled(stop):
        yield


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Defer a signal until the block has ended; a second signal interrupts the block."""
    held: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        if held:
            raise Stopped(number)
        held.append(number)

    with _handled(hold):
        yield
    if held:
        raise Stopped(held[0])


def write_until_stopped(descriptor: int, data: bytes) -> None:
    """Write to a pipe whose reader may take nothing for as long as it likes.

    A signal that asks to stop ends the wait for the reader with ``Stopped``. If the reader takes all of the data, the
    signal is raised again at the end.
    """
    rest = memoryview(data)
    if sys.platform == "win32":  # where no wait for a pipe can be interrupted
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        return
    held: list[int] = []

    def hold(number: int, _: FrameType | None) -> None:
        held.append(number)

    waiting = select.poll()
    waiting.register(descriptor, select.POLLOUT)
    with _handled(hold):
        while rest:
            # A signal may come just before the wait
            while not waiting.poll(_POLL_MILLISECONDS):
                if held:
                    raise Stopped(held[0])
            # A pipe that is ready takes as much without a wait
            rest = rest[os.write(descriptor, rest[: select.PIPE_BUF]) :]
    for number in held:
        signal.raise_signal(number)


def run_until_stopped(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine. A signal that asks to stop cancels it; then ``Stopped`` is raised.

    asyncio swallows exceptions of handlers in its callbacks, so the handler only cancels.
    """
    import asyncio

    received: list[int] = []

    async def stoppable() -> Result:
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(main)

        def stop(number: int, _: FrameType | None) -> None:
            received.append(number)
            loop.call_soon_threadsafe(task.cancel)

        with _handled(stop):
            return await task

    try:
        return asyncio.run(stoppable())
    except asyncio.CancelledError:
        if received:
            raise Stopped(received[0]) from None
        raise


@contextlib.contextmanager
def _handled(handler: Handler) -> Iterator[None]:
    """Call this on signals in the block that ask to stop and are not ignored; only the main thread handles signals."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in _STOPPING if is_main and signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def die_of(number: int) -> int:
    """End the process by a signal, so that its parent sees which."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
