"""Timers under a clock that jumps: forwards they fire once, backwards none fires early and nothing stays refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from msmqwire.discovery.client import WaitUntil
from msmqwire.discovery.rates import Rate, TokenBuckets
from msmqwire.discovery.server import DiscoveryServer, Policy, Refusal
from msmqwire.notification.schedule import INTERVAL, NotificationServer
from tests.discovery import runs
from tests.discovery.sites import CLIENT, V1, V3, site
from tests.notification.processing import processor

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("kind", ["total", "network"])
def test_a_rate(kind: str) -> None:
    rate = Rate(1, burst=3)
    buckets = TokenBuckets(rate) if kind == "total" else TokenBuckets(rate, prefix=24, capacity=9)

    def take(now: int) -> bool:
        return buckets.take(0x0A000001, now)

    assert [take(100 * DAY) for _ in range(5)] == [True, True, True, False, False]
    # A day back: not refused for a day, and not full again
    assert [take(99 * DAY + second * SECOND) for second in range(4)] == [False, True, True, True]
    # A day forwards: full, and no fuller
    assert [take(101 * DAY) for _ in range(5)] == [True, True, True, False, False]


def test_the_discovery_server() -> None:
    policy = Policy(network_rate=Rate(1, burst=2), total_rate=Rate(100, burst=100))
    server = DiscoveryServer(site(), policy)
    for start in (10 * DAY, 9 * DAY, 11 * DAY):
        answers = [server.receive(V1, CLIENT, start + 2 * second * SECOND) for second in range(4)]
        assert answers[2:] == [V3] * 2
        assert {*answers} <= {V3, Refusal.NETWORK_RATE, Refusal.TOTAL_RATE}


def test_the_discovery_client() -> None:
    machine = runs.started(runs.network(1), runs.network(2), at=1000.0)
    deadline = machine.deadline
    assert deadline is not None
    for back in (0.0, 999.0, deadline - 0.001):
        assert machine.tick(back) == []
    waits = [action for action in machine.tick(deadline + 1e9) if isinstance(action, WaitUntil)]
    assert len(waits) == 1  # for the next network, and not for all that fit into the jump
    assert machine.tick(deadline + 1e9) == []


def test_the_notification_server() -> None:
    server = NotificationServer(processor())
    server.receive(b"\3\1", now=1000.0)
    deadline = server.deadline
    assert deadline is not None
    assert server.tick(0.0) == []
    assert len(server.tick(deadline + 1e9)) == 1
    assert server.tick(deadline + 2e9) == []
    server.receive(b"\3\1", now=5.0)  # the clock went back: it waits no longer than an interval
    assert server.deadline is not None
    assert 5.0 < server.deadline <= 5.0 + INTERVAL


def test_timers_do_not_read_the_clock_of_the_calendar() -> None:
    """It is set by people and by NTP; times for people may be."""
    for folder in ("net", "discovery", "notification", "directory", "cli"):
        for path in (ROOT / "msmqwire" / folder).rglob("*.py"):
            found = re.findall(r"time\.time(?:_ns)?\(|perf_counter|\.now\(", path.read_text("utf-8"))
            # SentTime of a message is a time for people
            assert found == (["time.time("] if path.name == "sending.py" else []), path
