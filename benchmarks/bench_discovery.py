"""The discovery server ([MS-MQSD] 3.2) on loopback: what an answer costs beside a bare loop, and a flood accounted for.

Nothing here fails for being slow: a shared machine would fail it at random. Wrong answers fail, and lost datagrams.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS, mebibytes
from benchmarks.ratios import Rounds, peak_growth
from benchmarks.report import Report, Target
from benchmarks.scale import FULL, Scale
from msmqwire import mqsd
from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import DiscoveryServer, Policy, Refusal, Site, reply_to
from msmqwire.net.discovery_server import DiscoveryService, open_socket

ROOT = Path(__file__).parent.parent
LOOPBACK = ("127.0.0.1", 0)
#: As many as wait at a socket at a time, which is no more than any Linux has room for; and times that a round does so.
WAITING, TIMES = 250, 32
REQUESTS = WAITING * TIMES
BARE, CODEC = "a bare loop of recvfrom and sendto", "the same loop with decode, reply_to and encode"
WANTED = 50_000
FLOOD_RATE, FLOOD_SECONDS = 100_000, 10

SITE = Site(
    enterprise_id=uuid.UUID(int=1),
    site_id=uuid.UUID(int=2),
    connected_networks=(uuid.UUID(int=3),),
    servers=(mqsd.DirectoryServiceServer("nt4pec"),),
)
REQUEST = mqsd.encode(
    mqsd.TopologyClientRequest(enterprise_id=SITE.enterprise_id, request_id=uuid.UUID(int=4), site_id=uuid.UUID(int=5))
)
ANSWER = mqsd.encode(reply_to(mqsd.decode(REQUEST), SITE))  # type: ignore[arg-type]
UNLIMITED = Rate(1_000_000_000, burst=1_000_000_000)
POLICY = Policy(network_rate=UNLIMITED, total_rate=UNLIMITED, address_bytes=1 << 60, network_bytes=1 << 60)


class Clients:
    """A socket that asks and looks at the answers, neither of which is timed."""

    def __init__(self, server: tuple[str, int]) -> None:
        self.socket = open_socket(LOOPBACK)
        self.socket.connect(server)

    def ask(self) -> None:
        """Leave requests at the server's socket."""
        for _ in range(WAITING):
            self.socket.send(REQUEST)

    def check(self) -> None:
        """Every request was answered, and rightly."""
        for number in range(WAITING):
            try:
                answer = self.socket.recv(2048)
            except BlockingIOError:
                raise AssertionError(f"{number} of {WAITING} requests were answered") from None
            if answer != ANSWER:
                raise AssertionError(f"answered {answer.hex()}")


def bare_loop(server: socket.socket) -> None:
    """What any server in Python has to do."""
    while True:
        try:
            _, source = server.recvfrom(2048)
        except BlockingIOError:
            return
        server.sendto(ANSWER, source)


def codec_loop(server: socket.socket) -> None:
    """A server as one writes it first."""
    while True:
        try:
            datagram, source = server.recvfrom(2048)
        except BlockingIOError:
            return
        request = mqsd.decode(datagram, strict=True, transport="udp")
        assert isinstance(request, mqsd.TopologyClientRequest)
        reply = reply_to(request, SITE)
        assert not isinstance(reply, Refusal)
        server.sendto(mqsd.encode(reply), source)


def answer_all(service: DiscoveryService) -> None:
    """Run the service until it has answered what waits at its socket."""
    until = service.server.counts.received + WAITING

    def look() -> None:
        if service.server.counts.received < until:
            service.call(look)
        else:
            service.stop()

    service.call(look)
    service.run()


def seconds_of_round(run: Callable[[], None], clients: Clients) -> float:
    """CPU time of the answers of one round."""
    spent = 0.0
    for _ in range(TIMES):
        clients.ask()
        before = time.process_time()
        run()
        spent += time.process_time() - before
        clients.check()
    return spent


@pytest.fixture
def loops() -> Iterator[dict[str, tuple[Callable[[], None], Clients]]]:
    """Each way to answer, with those who ask it."""
    bare, codec = open_socket(LOOPBACK), open_socket(LOOPBACK)
    service = DiscoveryService(DiscoveryServer(SITE, POLICY), [LOOPBACK])
    made = {
        BARE: (lambda: bare_loop(bare), Clients(bare.getsockname())),
        OURS: (lambda: answer_all(service), Clients(service.addresses[0])),
        CODEC: (lambda: codec_loop(codec), Clients(codec.getsockname())),
    }
    yield made
    service.close()
    for one in (bare, codec, *(clients.socket for _, clients in made.values())):
        one.close()


def test_answer_requests(
    benchmark: BenchmarkFixture,
    scale: Scale,
    report: Report,
    loops: dict[str, tuple[Callable[[], None], Clients]],
) -> None:
    rounds = Rounds(dict.fromkeys(loops, REQUESTS), {name: [] for name in loops})
    for number in range(scale.rounds + 1):
        for name, (run, clients) in loops.items():
            spent = seconds_of_round(run, clients)
            if number:  # the first round warms up
                rounds.seconds[name].append(spent)
    report.section(f"Answer discovery requests on loopback: {REQUESTS:,} a round, system calls included")
    report.heading("of the loop")
    for name in loops:
        report.ratio(rounds, name, rounds.times_faster(BARE, name), rounds.spread(BARE, name))
    for name in loops:
        a_second = 1 / rounds.per_packet(name)
        wanted = f", {Target(WANTED).verdict(a_second)}" if name == OURS and report.judge else ""
        report.figure(f"{name}: answers a second of CPU time{wanted}", f"{a_second:,.0f}")
    benchmark.extra_info["of the loop"] = round(rounds.times_faster(BARE, OURS), 3)

    benchmark.pedantic(seconds_of_round, loops[OURS], rounds=scale.slow_rounds, iterations=1)


def test_flood(scale: Scale, report: Report) -> None:
    """Valid and malformed datagrams from another process, each of them answered, refused or dropped by the kernel."""
    seconds = FLOOD_SECONDS if scale is FULL else 1
    service = DiscoveryService(DiscoveryServer(SITE, POLICY), [LOOPBACK])
    sent: dict[str, Any] = {}
    spent = 0.0

    def send() -> None:
        arguments = (service.addresses[0][1], seconds, FLOOD_RATE, SITE.site_id.bytes_le.hex())
        command = [sys.executable, "-m", "tests.net.flood", *map(str, arguments)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
        sent.update(json.loads(done.stdout))
        service.call(settle)

    def settle() -> None:
        counters: dict[str, Any] = service.counters()
        if counters["received"] + counters["dropped_by_kernel"] < sent["sent"]:
            service.call(settle)
        else:
            service.stop()

    def run() -> None:
        nonlocal spent
        sender = threading.Thread(target=send)
        sender.start()
        before = time.process_time()
        service.run()
        spent = time.process_time() - before
        sender.join()

    growth = peak_growth(run)
    counters: dict[str, Any] = service.counters()
    service.close()
    refused = {rule: number for rule, number in counters["refused"].items() if number}
    accounted = counters["answered"] + counters["unsent"] + sum(refused.values()) + counters["dropped_by_kernel"]
    assert accounted == sent["sent"], (counters, sent)
    assert refused.keys() == {"malformed", "reply"}

    report.section(f"A flood of {seconds} s on loopback, half of it valid: {sent['sent']:,} datagrams")
    report.figure("sent a second by another process", f"{sent['sent'] / sent['seconds']:,.0f}")
    report.figure("answered", f"{counters['answered']:,}")
    for rule, number in refused.items():
        report.figure(f"refused: {rule}", f"{number:,}")
    report.figure("no room for the answer", f"{counters['unsent']:,}")
    report.figure("dropped by the kernel", f"{counters['dropped_by_kernel']:,}")
    report.figure("unaccounted for", f"{sent['sent'] - accounted:,}")
    report.figure("taken from the socket in a second of CPU time", f"{counters['received'] / spent:,.0f}")
    report.figure("peak memory taken", mebibytes(growth))
