"""An event loop whose clock a test moves on, so that nobody waits for a timer of the discovery client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msmqwire.discovery import Discard, Send, WaitUntil
from msmqwire.discovery.client import Action
from tests.net.responders import DEADLINE

Result = TypeVar("Result")


class Loop(asyncio.SelectorEventLoop):
    """A loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead

    def put_forward(self, seconds: float) -> None:
        self.ahead += seconds


def run(main: Callable[[Loop], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine that may put the clock of its loop forward."""

    async def limited(loop: Loop) -> Result:
        async with asyncio.timeout(100 * DEADLINE):
            return await main(loop)

    with asyncio.Runner(loop_factory=Loop) as runner:
        loop = runner.get_loop()
        assert isinstance(loop, Loop)
        return runner.run(limited(loop))


class Watch:
    """All actions so far; where one is of the kind that is awaited, the timer is let expire."""

    def __init__(self, loop: Loop, *expiring: Callable[[Action], bool]) -> None:
        self.actions: list[Action] = []
        self._loop = loop
        self._expiring = list(expiring)

    def __call__(self, action: Action) -> None:
        self.actions.append(action)
        if self._expiring and self._expiring[0](action):
            del self._expiring[0]
            # After the action itself was taken.
            self._loop.call_soon(self._loop.put_forward, 15.0)

    def kinds(self) -> list[str]:
        return [type(action).__name__ for action in self.actions]


def is_send(action: Action) -> bool:
    return isinstance(action, Send)


def is_wait(action: Action) -> bool:
    return isinstance(action, WaitUntil)


def is_discard(action: Action) -> bool:
    return isinstance(action, Discard)
