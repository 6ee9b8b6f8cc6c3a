"""A server is of no use against others: how much it answers, to whom, and how often."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import mqsd
from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import DiscoveryServer, Policy, Refusal
from msmqwire.mqsd import DirectoryServiceServer
from tests.discovery.sites import (
    CLIENT,
    ELSEWHERE,
    SECOND,
    SERVER_SITE_ID,
    UNLIMITED,
    V1,
    V3,
    networks,
    request,
    server,
    servers,
    site,
    unlimited,
)

ALLOWED = (IPv4Network("10.20.0.0/16"),)


def listing(array: int) -> tuple[DirectoryServiceServer, ...]:
    """One directory server, its name as long as the DirectoryServiceServerArray is to be."""
    return (DirectoryServiceServer("n" * (array // 2 - 3)),)


# --- how large, and how many bytes ---


@pytest.mark.parametrize(
    ("connected", "names"),
    [(8, ("n" * 15,) * 3), (8, ()), (32, ("n" * 15,) * 40), (32, ("n" * 64,) * 100), (1, ("n" * 700,))],
)
def test_every_request_is_answered_by_default_whatever_the_size_of_the_reply(
    connected: int, names: tuple[str, ...]
) -> None:
    """Three servers with names of 15 characters and eight networks are what honest clients need."""
    ours = DiscoveryServer(site(connected_networks=networks(connected), servers=servers(*names)))
    answer = ours.receive(V1 if names else request(SERVER_SITE_ID), ELSEWHERE, 0)
    assert isinstance(answer, bytes)
    assert mqsd.decode(answer, strict=True, transport="udp").servers == servers(*names)  # type: ignore[union-attr]


def test_hundreds_of_honest_clients_of_a_site_are_answered_by_default() -> None:
    """Each host of a network at once, twice: after a power failure, and a second later."""
    ours = DiscoveryServer(site(connected_networks=networks(8), servers=servers(*["n" * 15] * 3)))
    for now, hosts in ((0, 254), (3 * SECOND, 254)):
        for host in range(hosts):
            assert isinstance(ours.receive(V1, (f"10.20.1.{host + 1}", 1801), now), bytes)


def test_an_answer_of_the_size_of_a_datagram_is_sent_and_one_of_more_is_sent_to_nobody() -> None:
    largest = 65_506 - 64  # the array has an even number of bytes
    answer = DiscoveryServer(site(servers=listing(largest))).receive(V1, CLIENT, 0)
    assert len(answer) == 65_506
    ours = DiscoveryServer(site(servers=listing(largest + 2)))
    assert ours.receive(V1, CLIENT, 0) is Refusal.TOO_LARGE
    assert ours.receive(V1 + bytes(1420), CLIENT, 0) is Refusal.TOO_LARGE
    assert len(ours.receive(request(SERVER_SITE_ID), CLIENT, 0)) == 48  # which is not too large


def test_the_bytes_to_an_address_and_to_a_network_are_limited_in_any_ten_seconds() -> None:
    ours = server(unlimited(address_bytes=2 * 82, network_bytes=3 * 82))
    assert len(V3) == 82
    asked = [("10.20.1.1", 0), ("10.20.1.1", 4), ("10.20.1.1", 5), ("10.20.1.2", 6), ("10.20.1.3", 7), ("10.20.2.1", 7)]
    found = [ours.receive(V1, (host, 1801), now * SECOND) for host, now in asked]
    assert found == [V3, V3, Refusal.ADDRESS_BYTES, V3, Refusal.NETWORK_BYTES, V3]
    assert ours.receive(V1, ("10.20.1.1", 1801), 10 * SECOND - 1) is Refusal.ADDRESS_BYTES
    assert ours.receive(V1, ("10.20.1.1", 1801), 10 * SECOND) == V3
    assert ours.receive(V1, ("10.20.1.1", 1801), 10 * SECOND) is Refusal.ADDRESS_BYTES
    assert ours.receive(V1, ("10.20.1.2", 1801), 10 * SECOND) is Refusal.NETWORK_BYTES
    assert ours.counts.refused[Refusal.ADDRESS_BYTES] == 3
    assert ours.counts.refused[Refusal.NETWORK_BYTES] == 2


@given(st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(0, 5), st.booleans()), max_size=60))
def test_no_ten_seconds_have_more_bytes_than_the_limits(steps: list[tuple[int, int, bool]]) -> None:
    limits = {"address": 200, "network": 300}
    ours = server(unlimited(address_bytes=200, network_bytes=300))
    sent: list[tuple[int, int, int]] = []
    now = 0
    for wait, host, own_site in steps:
        now += wait
        address = 0x0A140100 + (host % 3) + ((host // 3) << 8)
        answer = ours.receive(request(SERVER_SITE_ID) if own_site else V1, (str(IPv4Address(address)), 1801), now)
        size = 48 if own_site else 82
        recent = [(to, length) for at, to, length in sent if at > now - 10 * SECOND]
        to_address = sum(length for to, length in recent if to == address)
        to_network = sum(length for to, length in recent if to >> 8 == address >> 8)
        if to_address + size > limits["address"]:
            assert answer is Refusal.ADDRESS_BYTES
        elif to_network + size > limits["network"]:
            assert answer is Refusal.NETWORK_BYTES
        else:
            assert len(answer) == size
            sent.append((now, address, size))


def test_a_flood_of_forged_requests_is_of_no_use() -> None:
    """The victim gets less than a hundredth of a megabit in a second, its network less than half of one."""
    ours = DiscoveryServer(site(connected_networks=networks(32), servers=servers(*["n" * 15] * 30)))
    to_address = to_network = 0
    for number in range(20_000):
        answer = ours.receive(V1, (f"10.20.1.{number % 2 * (number % 253) + 1}", 1801), number * SECOND // 2000)
        if isinstance(answer, bytes):
            to_network += len(answer)
            to_address += len(answer) * (number % 2 == 0)
    assert 0 < to_address <= 65_536
    assert to_address < to_network <= 524_288


def test_what_no_limit_of_bytes_is() -> None:
    for name in ("address_bytes", "network_bytes"):
        with pytest.raises(ValueError, match=f"{name} is 0: below 1"):
            Policy(**{name: 0})  # type: ignore[arg-type]


# --- how often ---


def outcomes(ours: DiscoveryServer, source: str, now: int, attempts: int) -> list[Any]:
    """What becomes of as many requests at once: True for an answer, or the refusal."""
    answers = (ours.receive(V1, (source, 1024 + attempt), now) for attempt in range(attempts))
    return [answer if isinstance(answer, Refusal) else True for answer in answers]


def test_a_network_has_its_burst_and_then_its_rate() -> None:
    ours = server(unlimited(network_rate=Rate(10, burst=3)))
    assert outcomes(ours, "10.20.1.25", 0, 5) == [True] * 3 + [Refusal.NETWORK_RATE] * 2
    assert outcomes(ours, "10.20.1.99", 0, 1) == [Refusal.NETWORK_RATE]  # of the same network
    assert outcomes(ours, "10.20.2.25", 0, 4) == [True] * 3 + [Refusal.NETWORK_RATE]  # of another
    assert outcomes(ours, "10.20.1.25", SECOND // 10 - 1, 1) == [Refusal.NETWORK_RATE]
    assert outcomes(ours, "10.20.1.25", SECOND // 10, 2) == [True, Refusal.NETWORK_RATE]
    assert outcomes(ours, "10.20.1.25", 100 * SECOND, 5) == [True] * 3 + [Refusal.NETWORK_RATE] * 2


@pytest.mark.parametrize(("prefix", "shared"), [(32, False), (25, False), (24, True), (8, True), (1, True)])
def test_what_a_network_is(prefix: int, shared: bool) -> None:
    ours = server(unlimited(network_rate=Rate(1, burst=1), network_prefix=prefix))
    assert outcomes(ours, "10.20.1.5", 0, 1) == [True]
    assert outcomes(ours, "10.20.1.200", 0, 1) == [Refusal.NETWORK_RATE if shared else True]


@pytest.mark.parametrize("prefix", [-1, 0, 33])
def test_what_no_network_is(prefix: int) -> None:
    with pytest.raises(ValueError, match="not from 1 to 32"):
        Policy(network_prefix=prefix)


def test_all_networks_together_have_their_burst_and_then_their_rate() -> None:
    ours = server(unlimited(total_rate=Rate(100, burst=5)))
    found = [outcomes(ours, f"10.20.{number}.1", 0, 1)[0] for number in range(8)]
    assert found == [True] * 5 + [Refusal.TOTAL_RATE] * 3
    assert outcomes(ours, "10.99.1.1", SECOND // 100, 2) == [True, Refusal.TOTAL_RATE]


def test_the_allow_list_does_not_lift_the_rates() -> None:
    ours = server(Policy(allowed=ALLOWED, network_rate=Rate(1, burst=2), total_rate=UNLIMITED))
    assert outcomes(ours, CLIENT[0], 0, 3) == [True, True, Refusal.NETWORK_RATE]


def test_a_part_of_the_total_rate_is_kept_for_allowed_networks() -> None:
    policy = Policy(allowed=ALLOWED, network_rate=UNLIMITED, total_rate=Rate(1, burst=8))
    ours = server(policy)
    assert outcomes(ours, "198.51.100.7", 0, 8) == [True] * 6 + [Refusal.TOTAL_RATE] * 2
    assert outcomes(ours, CLIENT[0], 0, 3) == [True, True, Refusal.TOTAL_RATE]
    assert outcomes(ours, "198.51.100.7", SECOND, 1) == [Refusal.TOTAL_RATE]
    assert outcomes(ours, CLIENT[0], SECOND, 2) == [True, Refusal.TOTAL_RATE]


def test_an_unanswerable_source_takes_nothing() -> None:
    ours = server(Policy(network_rate=Rate(1, burst=1), total_rate=Rate(1, burst=1)))
    ours.unanswerable = frozenset({"10.20.1.255"})
    assert outcomes(ours, "10.20.1.255", 0, 3) == [Refusal.SOURCE] * 3
    assert outcomes(ours, "10.20.1.1", 0, 1) == [True]


def test_a_network_that_is_refused_takes_nothing_from_the_others() -> None:
    ours = server(Policy(network_rate=Rate(1, burst=2), total_rate=Rate(1, burst=4)))
    assert outcomes(ours, "10.20.1.1", 0, 100) == [True] * 2 + [Refusal.NETWORK_RATE] * 98
    assert outcomes(ours, "10.20.2.1", 0, 2) == [True, True]


def test_what_is_not_answered_takes_nothing() -> None:
    ours = server(Policy(network_rate=Rate(1, burst=1), total_rate=Rate(1, burst=1)))
    for data in (b"", V3, V1[:51]):
        assert isinstance(ours.receive(data, CLIENT, 0), Refusal)
    assert ours.receive(V1, CLIENT, 0) == V3


@pytest.mark.long
def test_by_default_a_flood_is_answered_1000_times_a_second() -> None:
    """Many networks for ten seconds, each below its own rate."""
    ours = DiscoveryServer(site())
    sent = 200_000
    for number in range(sent):
        ours.receive(V1, (f"10.{number % 50}.{number % 7}.1", 1024), number * 10 * SECOND // sent)
    assert ours.counts.received == sent
    assert 2000 + 10 * 1000 - 2 <= ours.counts.other_sites <= 2000 + 10 * 1000


def test_rates_that_stay_are_not_filled_by_a_new_configuration() -> None:
    policy = unlimited(network_rate=Rate(1, burst=1))
    ours = server(policy)
    assert outcomes(ours, CLIENT[0], 0, 2) == [True, Refusal.NETWORK_RATE]
    ours.configure(site(servers=listing(20)), unlimited(network_rate=Rate(1, burst=1), allowed=ALLOWED))
    assert outcomes(ours, CLIENT[0], 0, 1) == [Refusal.NETWORK_RATE]
    ours.configure(site(), unlimited(network_rate=Rate(1, burst=2)))
    assert outcomes(ours, CLIENT[0], 0, 3) == [True, True, Refusal.NETWORK_RATE]


def test_bytes_that_were_sent_count_after_a_new_configuration() -> None:
    """Unless the size of a network changes: what was sent to others is not known."""
    ours = server(unlimited(address_bytes=82))
    assert ours.receive(V1, CLIENT, 0) == V3
    ours.configure(site(), unlimited(address_bytes=82, allowed=ALLOWED))
    assert ours.receive(V1, CLIENT, 1) is Refusal.ADDRESS_BYTES
    ours.configure(site(), unlimited(address_bytes=82, network_prefix=16))
    assert ours.receive(V1, CLIENT, 1) == V3


def test_a_new_configuration_keeps_a_part_of_the_same_total_rate_for_allowed_networks() -> None:
    rate = Rate(1, burst=8)
    ours = server(unlimited(total_rate=rate))
    ours.configure(site(), unlimited(total_rate=rate, allowed=ALLOWED))
    assert outcomes(ours, ELSEWHERE[0], 0, 8) == [True] * 6 + [Refusal.TOTAL_RATE] * 2
    assert outcomes(ours, CLIENT[0], 0, 3) == [True, True, Refusal.TOTAL_RATE]
