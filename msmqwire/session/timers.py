"""The timers of a session: [MS-MQQB] 3.1.2."""

from __future__ import annotations

from collections.abc import Container, Iterator
from enum import StrEnum
from typing import NamedTuple


class Timer(StrEnum):
    """The timers of a session: [MS-MQQB] 3.1.2.1 to 3.1.2.5."""

    SESSION_INITIALIZATION = "session_initialization"
    SESSION_CLEANUP = "session_cleanup"
    SESSION_RETRY_CONNECT = "session_retry_connect"
    SESSION_ACK_WAIT = "session_ack_wait"
    SESSION_ACK_SEND = "session_ack_send"


class _Run(NamedTuple):
    started: float
    expires: float


class Timers:
    """The timers that run; times are seconds of the clock of the session."""

    def __init__(self) -> None:
        self._runs: dict[Timer, _Run] = {}

    def __contains__(self, timer: Timer) -> bool:
        return timer in self._runs

    def __iter__(self) -> Iterator[Timer]:
        return iter(tuple(self._runs))

    def start(self, timer: Timer, seconds: float, now: float) -> None:
        """Start a timer, or start it again."""
        self._runs[timer] = _Run(now, now + seconds)

    def stop(self, timer: Timer) -> None:
        """Stop a timer, if it runs."""
        self._runs.pop(timer, None)

    def stop_all(self) -> None:
        """Stop all timers."""
        self._runs.clear()

    def expiry(self, among: Container[Timer] = tuple(Timer)) -> float | None:
        """Return the time at which the first of these timers expires; None if none of them runs."""
        return min((run.expires for timer, run in self._runs.items() if timer in among), default=None)

    def elapsed(self, timer: Timer, now: float) -> float:
        """Return the part of a timer that has elapsed, from 0 to 1; 0 if it does not run."""
        if timer not in self._runs:
            return 0.0
        started, expires = self._runs[timer]
        return (now - started) / (expires - started) if expires > started else 1.0

    def take_expired(self, now: float, among: Container[Timer] = tuple(Timer)) -> Iterator[Timer]:
        """Stop and give the timers that have expired, in the order of their times, as they run when each is taken."""
        for timer in sorted(self._runs, key=self._runs.__getitem__):
            run = self._runs.get(timer)
            if timer in among and run is not None and run.expires <= now:
                del self._runs[timer]
                yield timer
