"""Two ends of sessions on a virtual network and clock: bytes are split, delayed and lost, connections are cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Sent(NamedTuple):
    """A message that was given to a sender."""

    number: int
    recoverable: bool


class End(Protocol):
    """One end, over all its sessions: our machine or the reference."""

    def connect(self, now: float) -> None:
        """Begin a session on a new connection."""

    def receive(self, data: bytes, now: float) -> None:
        """Bytes from the other end."""

    def advance(self, now: float) -> None:
        """The time is ``now``."""

    def disconnect(self, now: float) -> None:
        """The connection has ended."""

    def take_output(self) -> bytes:
        """The bytes to be sent."""

    @property
    def deadline(self) -> float | None:
        """When ``advance`` is to be called."""

    @property
    def closed(self) -> bool:
        """Whether the session has closed."""


class Sender(End, Protocol):
    """An end that sends."""

    def send(self, message: Sent) -> None:
        """One more message."""

    @property
    def acknowledged(self) -> list[int]:
        """Numbers of the messages acknowledged so far, in the order of their acknowledgment."""

    @property
    def in_flight(self) -> int:
        """Messages sent on this session whose count was not acknowledged."""


class Receiver(End, Protocol):
    """An end that receives."""

    @property
    def accepted(self) -> list[int]:
        """Numbers of the messages accepted so far, in the order of their acceptance."""


class StalledError(AssertionError):
    """Nothing can happen any more, or nothing does."""


@dataclass
class Network:
    """The connection between a sender and a receiver, the bytes on it, and the time.

    ``choose(n)`` gives a number below n: from a seeded generator or from Hypothesis.
    """

    sender: Sender
    receiver: Receiver
    choose: Callable[[int], int]
    window: int
    now: float = 1000.0
    connected: bool = False
    to_receiver: bytearray = field(default_factory=bytearray)
    to_sender: bytearray = field(default_factory=bytearray)
    connections: int = 0
    sent: list[Sent] = field(default_factory=list)

    def connect(self) -> None:
        self.connections += 1
        self.connected = True
        self.to_receiver.clear()
        self.to_sender.clear()
        self.receiver.connect(self.now)
        self.sender.connect(self.now)
        self.collect()

    def send(self, recoverable: bool) -> None:
        message = Sent(len(self.sent) + 1, recoverable)
        self.sent.append(message)
        self.sender.send(message)
        self.collect()

    def cut(self) -> None:
        """The connection ends; each end may still get some of the bytes on their way, and leaves afterwards."""
        self.collect()
        for end, data in ((self.receiver, self.to_receiver), (self.sender, self.to_sender)):
            if not end.closed:
                end.receive(bytes(data[: self.choose(len(data) + 1)]), self.now)
            end.disconnect(self.now)
            end.take_output()
        self.connected = False

    def collect(self) -> None:
        """Put what the ends want to send on the connection; one that has closed ends it."""
        self.to_receiver += self.sender.take_output()
        self.to_sender += self.receiver.take_output()
        self.check()

    def deliver(self, *, everything: bool = False) -> bool:
        """Give each end a part of the bytes on their way, in one piece; whether there were any."""
        moved = False
        ends = [(self.receiver, self.to_receiver), (self.sender, self.to_sender)]
        for end, data in ends if everything or self.choose(2) else reversed(ends):
            count = len(data) if everything else self.choose(len(data) + 1)
            if count and not end.closed:
                end.receive(bytes(data[:count]), self.now)
                moved = True
            del data[:count]
        self.collect()
        return moved

    def wait(self, seconds: float) -> None:
        """Let time pass, timer by timer."""
        until = self.now + seconds
        while True:
            due = min((each for end in self.ends if (each := end.deadline) is not None), default=until)
            if due > until:
                break
            self.now = max(self.now, due)
            for end in self.ends:
                if (deadline := end.deadline) is not None and deadline <= self.now:
                    end.advance(self.now)
                    after = end.deadline
                    assert end.closed or after is None or after > self.now, "a deadline that stays in the past"
            self.collect()
            if due == until:
                break
        self.now = until

    @property
    def ends(self) -> tuple[End, ...]:
        return tuple(end for end in (self.sender, self.receiver) if not end.closed) if self.connected else ()

    def check(self) -> None:
        """What holds at every moment."""
        accepted, acknowledged = self.receiver.accepted, self.sender.acknowledged
        assert accepted == list(range(1, len(accepted) + 1)), "each once and in order"
        assert len(set(acknowledged)) == len(acknowledged)
        assert set(acknowledged) <= set(accepted)
        assert self.sender.in_flight <= self.window

    def step(self) -> None:
        """One random event."""
        if not self.connected:
            self.wait(self.choose(50) / 10)
            self.connect()
            return
        event = self.choose(16)
        if event < 9:
            self.deliver()
        elif event < 12:
            self.wait((0.01, 0.4, 1.0, 15.0, 45.0)[self.choose(5)])
        elif event < 15:
            self.send(bool(self.choose(2)))
        else:
            self.cut()
        if self.connected and (self.sender.closed or self.receiver.closed):
            self.cut()

    def finish(self) -> None:
        """A connection that loses nothing: all messages get acknowledged, within a bounded number of events.

        The connection of the schedule may end, if it was slow; the next one must not.
        """
        events = 0
        most = self.connections + 2
        while len(self.sender.acknowledged) < len(self.sent):
            events += 1
            if events > 50 + 20 * len(self.sent) or self.connections > most:
                raise StalledError(f"{len(self.sender.acknowledged)} of {len(self.sent)} acknowledged")
            if not self.connected:
                self.connect()
            elif self.sender.closed or self.receiver.closed:
                self.cut()
            elif not self.deliver(everything=True):
                deadlines = [each for end in self.ends if (each := end.deadline) is not None]
                if not deadlines:
                    raise StalledError("no deadline")
                self.wait(max(0.0, min(deadlines) - self.now))
        self.check()
        assert sorted(self.sender.acknowledged) == [message.number for message in self.sent]
        assert len(self.receiver.accepted) == len(self.sent)


def run(network: Network, steps: int) -> None:
    """A random schedule, and then one without losses."""
    for _ in range(steps):
        network.step()
    network.finish()
