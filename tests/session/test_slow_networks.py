"""A network that delays every byte: acknowledgments come before a sender gives up, whatever the round trip."""

from __future__ import annotations

import heapq
import itertools

import pytest

from tests.contract.checklist import row
from tests.session.machine_ends import MachineReceiver, MachineSender
from tests.session.reference_ends import ReferenceReceiver, ReferenceSender
from tests.session.simulation import End, Receiver, Sender, Sent

COUNT = 100
#: Seconds of virtual time in which a session sends that many messages, window by window.
LONGEST = 3600.0


def deliver(sender: Sender, receiver: Receiver, latency: float) -> int:
    """Send the messages with this latency; how many connections it took."""
    counter = itertools.count()
    now = 0.0
    on_their_way: list[tuple[float, int, int, bytes]] = []
    ends: tuple[End, End] = (sender, receiver)
    connections = 0
    for number in range(1, COUNT + 1):
        sender.send(Sent(number, number % 3 > 0))
    while len(sender.acknowledged) < COUNT and now < LONGEST:
        if any(end.closed for end in ends):
            for end in ends:
                end.disconnect(now)
                end.take_output()
            on_their_way.clear()
            connections += 1
            receiver.connect(now)
            sender.connect(now)
        for index, end in enumerate(ends):
            if data := end.take_output():
                heapq.heappush(on_their_way, (now + latency, next(counter), 1 - index, data))
        moments = [end.deadline for end in ends if end.deadline is not None]
        now = max(now, min([*moments, *(arrival for arrival, *_ in on_their_way[:1])]))
        while on_their_way and on_their_way[0][0] <= now:
            _, _, index, data = heapq.heappop(on_their_way)
            if not ends[index].closed:
                ends[index].receive(data, now)
        for end in ends:
            if not end.closed and end.deadline is not None and end.deadline <= now:
                end.advance(now)
    assert len(sender.acknowledged) == COUNT
    assert receiver.accepted == list(range(1, COUNT + 1))
    return connections


#: By the letter a sender with a round trip of 16 seconds closes before its acknowledgments come: not for the reference.
LATENCIES = (0.001, 0.1, 1.0, 2.0, 4.0, 8.0, 12.0)


@row("QS-41")
@pytest.mark.parametrize("latency", LATENCIES)
@pytest.mark.parametrize("receiver", [MachineReceiver, ReferenceReceiver])
def test_messages_are_acknowledged(receiver: type[Receiver], latency: float) -> None:
    assert deliver(MachineSender(), receiver(), latency) == 1


@pytest.mark.parametrize("latency", LATENCIES[:5])
def test_messages_of_the_reference_are_acknowledged(latency: float) -> None:
    assert deliver(ReferenceSender(), MachineReceiver(), latency) == 1
