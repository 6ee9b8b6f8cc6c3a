"""A flood of datagrams at a discovery server: each is answered, refused by name, or counted as dropped."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from msmqwire.discovery.rates import Rate
from msmqwire.net.discovery_server import DiscoveryService
from tests.discovery.sites import SERVER_SITE_ID, V1, server, unlimited
from tests.net.discovery_services import LOOPBACK, SECONDS, between_datagrams, client, running
from tests.net.flood import datagrams

ROOT = Path(__file__).parent.parent.parent


def flood(service: DiscoveryService, seconds: float, rate: int) -> dict[str, float]:
    """Send from another process; what it says it has sent, by kind."""
    port = service.addresses[0][1]
    arguments = [str(port), str(seconds), str(rate), SERVER_SITE_ID.bytes_le.hex()]
    command = [sys.executable, "-m", "tests.net.flood", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=SECONDS)
    sent: dict[str, float] = json.loads(done.stdout)
    return sent


def settled(service: DiscoveryService, sent: float) -> dict[str, Any]:
    """The counters, once as many datagrams have been received or dropped as were sent."""
    deadline = time.monotonic() + SECONDS
    while True:
        counters: dict[str, Any] = service.counters()
        if counters["received"] + counters["dropped_by_kernel"] >= sent:
            return counters
        assert time.monotonic() < deadline, (sent, counters)
        between_datagrams(service)


@pytest.mark.long
def test_every_datagram_of_a_flood_is_accounted_for() -> None:
    with running(DiscoveryService(server(), [LOOPBACK])) as service:
        sent = flood(service, 2, 100_000)
        counters = settled(service, sent["sent"])
    refused = {rule: number for rule, number in counters["refused"].items() if number}
    assert counters["received"] + counters["dropped_by_kernel"] == sent["sent"]
    assert counters["answered"] + counters["unsent"] + sum(refused.values()) == counters["received"]
    assert refused.keys() == {"malformed", "reply"}
    received = {"own_site": counters["own_site"], "other_sites": counters["other_sites"], **refused}
    lost = {kind: sent[kind] - number for kind, number in received.items()}
    assert min(lost.values()) >= 0
    assert sum(lost.values()) == counters["dropped_by_kernel"]
    assert counters["answered"] > 0


def test_a_flood_beyond_the_rate_is_refused_by_name() -> None:
    policy = unlimited(network_rate=Rate(1, burst=10))
    with running(DiscoveryService(server(policy), [LOOPBACK])) as service:
        with client() as asking:
            for _ in range(500):
                asking.sendto(V1, service.addresses[0])
        counters = settled(service, 500)
    assert counters["refused"]["network_rate"] == counters["received"] - counters["answered"]
    assert counters["answered"] >= 10


def test_the_flood_is_what_it_says() -> None:
    """A server without sockets makes of every datagram what the flood expects."""
    ours = server()
    found = set()
    for kind, data in datagrams(SERVER_SITE_ID.bytes_le):
        before = ours.counts.own_site, ours.counts.other_sites
        answer = ours.receive(data, ("127.0.0.1", 1024), 0)
        after = ours.counts.own_site, ours.counts.other_sites
        became = {(1, 0): "own_site", (0, 1): "other_sites"}.get((after[0] - before[0], after[1] - before[1]))
        assert kind == (became or answer)
        found.add(kind)
    assert found == {"own_site", "other_sites", "malformed", "reply"}
