"""A server is of no use against others: how much it answers, to whom, and how often."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Any

import pytest

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
    site,
    unlimited,
)

ALLOWED = (IPv4Network("10.20.0.0/16"),)


def listing(array: int) -> tuple[DirectoryServiceServer, ...]:
    """One directory server, its name as long as the DirectoryServiceServerArray is to be."""
    return (DirectoryServiceServer("n" * (array // 2 - 3)),)


def answered(ours: DiscoveryServer, data: bytes, source: tuple[str, int] = ELSEWHERE) -> int:
    """Bytes of the answer; 0 where it would have been too many for one."""
    answer = ours.receive(data, source, 0)
    if isinstance(answer, Refusal):
        assert answer is Refusal.AMPLIFICATION
        return 0
    return len(answer)


# --- three for one ---


def test_an_answer_of_three_bytes_for_one_is_sent_to_anyone_and_one_of_more_is_not() -> None:
    assert answered(server(servers=listing(156 - 64)), V1) == 156
    assert answered(server(servers=listing(158 - 64)), V1) == 0


def test_seven_networks_fit_into_three_for_one() -> None:
    asking = request(SERVER_SITE_ID)
    assert [answered(server(connected_networks=networks(n)), asking) for n in (1, 7, 8)] == [48, 144, 0]


def test_a_longer_request_has_a_right_to_a_longer_answer() -> None:
    """Whoever pays for the bytes may have them."""
    ours = server(servers=listing(158 - 64))
    assert answered(ours, V1 + b"\0") == 158
    sizes = [answered(server(servers=listing(1472 - 64)), V1 + bytes(more)) for more in (438, 439)]
    assert sizes == [0, 1472]


@pytest.mark.parametrize(
    ("source", "expected"),
    [("10.20.0.0", 158), ("10.20.255.255", 158), ("10.19.255.255", 0), ("10.21.0.0", 0), ("127.0.0.1", 0)],
)
def test_the_allow_list_lifts_it(source: str, expected: int) -> None:
    ours = server(unlimited(allowed=ALLOWED), servers=listing(158 - 64))
    assert answered(ours, V1, (source, 49712)) == expected


def test_an_allow_list_of_many_networks() -> None:
    allowed = [IPv4Network((0x0A000000 + (number << 8), 24)) for number in range(1000)]
    allowed += [IPv4Network("192.0.2.7/32"), IPv4Network("198.51.0.0/16")]
    ours = server(unlimited(allowed=tuple(allowed)), servers=listing(158 - 64))
    for host, expected in (
        ("10.0.0.1", 158), ("10.3.231.9", 158), ("10.3.232.9", 0), ("192.0.2.7", 158), ("192.0.2.8", 0),
        ("198.51.3.4", 158),
    ):  # fmt: skip
        assert answered(ours, V1, (host, 1024)) == expected, host


def test_an_allow_list_of_everybody() -> None:
    ours = server(unlimited(allowed=(IPv4Network("0.0.0.0/0"),)), servers=listing(1472 - 64))
    assert answered(ours, V1, ("203.0.113.9", 5)) == 1472


# --- one datagram ---


def test_an_answer_of_1472_bytes_is_sent_and_one_of_more_is_sent_to_nobody() -> None:
    allowed = unlimited(allowed=(IPv4Network("0.0.0.0/0"),))
    assert answered(server(allowed, servers=listing(1472 - 64)), V1) == 1472
    ours = server(allowed, servers=listing(1474 - 64))
    assert ours.receive(V1, CLIENT, 0) is Refusal.TOO_LARGE
    assert ours.receive(V1 + bytes(1420), CLIENT, 0) is Refusal.TOO_LARGE
    assert answered(ours, request(SERVER_SITE_ID)) == 48  # which is not too large


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
