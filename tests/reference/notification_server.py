"""When a queue manager processes notifications ([MS-MQCN] note <3>), as a table of states and events: an oracle.

It is Idle (``waiting`` is None) or Waiting. Times are numbers; a message is a function that applies it to the queues
and gives the outcomes, which are those of ``processor``, and ("overflowed", number of messages that were dropped).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tests.reference.processor import Outcome, ReferenceProcessor

Message = Callable[[], list[Outcome]]


@dataclass
class Waiting:
    """Until the deadline; ``arrived`` are all messages, ``count`` those that the limit of 100 is for."""

    deadline: float
    count: int
    pending: list[Message]
    arrived: int = 1
    overflow: bool = False
    reported: int = 0


class ReferenceServer:
    """The state, and what each event does."""

    def __init__(self, processor: ReferenceProcessor, *, at_once: bool) -> None:
        self.processor = processor
        self.at_once = at_once
        self.waiting: Waiting | None = None
        self.last = -math.inf

    def message(self, message: Message, now: float) -> list[Outcome]:
        if self.at_once:
            return message()
        outcomes = self.clock(now)
        if self.waiting is None:
            elapsed = now - self.last
            delay = 60 if elapsed > 840 else 900 - elapsed
            self.waiting = Waiting(now + delay, 0, [message])
            return outcomes
        self.waiting.arrived += 1
        self.waiting.count += 1
        if self.waiting.count >= 100:
            self.waiting.overflow = True
            self.waiting.pending = []
        else:
            self.waiting.pending.append(message)
        return outcomes

    def clock(self, now: float) -> list[Outcome]:
        waiting = self.waiting
        if waiting is None or now < waiting.deadline:
            return []
        if not waiting.overflow:
            self.waiting, self.last = None, now
            return [outcome for message in waiting.pending for outcome in message()]
        refreshed = [self.processor.version_2(2, queue["identifier"]) for queue in list(self.processor.queues)]
        dropped = waiting.arrived - waiting.reported
        if ("ignored", "directory") in refreshed:
            # Still due, in a minute
            waiting.deadline, waiting.reported = now + 60, waiting.arrived
        else:
            self.waiting, self.last = None, now
        return [("overflowed", dropped), *refreshed] if dropped else refreshed
