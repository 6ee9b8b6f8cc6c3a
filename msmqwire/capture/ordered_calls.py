"""Calls in threads whose results are handled in the order of the calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


class OrderedCalls:
    """Makes calls in ``jobs`` threads, and handles their results in the thread that submits them.

    Up to ``most`` calls wait for their results to be handled. With one job no thread is started, and no call waits.
    """

    def __init__(self, jobs: int, most: int) -> None:
        self._threads = ThreadPoolExecutor(jobs, "msmqwire") if jobs > 1 else None
        self._most = most
        self._waiting: deque[tuple[Future[Any], Callable[[Any], object]]] = deque()

    def __len__(self) -> int:
        """The calls that wait."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """True if as many calls wait as may."""
        return len(self._waiting) >= self._most

    def submit(self, handle: Callable[[Result], object], function: Callable[..., Result], *arguments: Any) -> None:
        """Call the function in a thread, then ``handle`` with its result, in the order of the calls."""
        if self._threads is None:
            handle(function(*arguments))
            return
        while self.is_full:
            self.handle_oldest()
        self._waiting.append((self._threads.submit(function, *arguments), handle))

    def handle_oldest(self) -> None:
        """Handle the result of the oldest call that waits; raises what the call raised."""
        future, handle = self._waiting.popleft()
        handle(future.result())

    def finish(self) -> None:
        """Handle all results."""
        while self._waiting:
            self.handle_oldest()

    def close(self) -> None:
        """Drop the calls that have not begun, and wait for the others; nothing can be submitted after that."""
        self._waiting.clear()
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
