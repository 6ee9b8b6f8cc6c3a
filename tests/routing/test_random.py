"""Routing against the oracle, which tries every path, on enterprises at random: least cost, legal hop, termination."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from uuid import UUID

import pytest

from msmqwire.errors import RoutingError
from msmqwire.routing import Router, find_route
from tests.reference.routing import Enterprise, Machine, share_site
from tests.reference.routing_cases import disordered, enterprise
from tests.routing.enterprises import directory_of

CASES, PARTS = 2400, 12
each_part = pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, PARTS))]
)

#: What is said where a route ends.
REASONS = (
    "the route is a loop",
    "there is no such QueueManager",
    "is both source and destination",
    "SiteIdentifierList is empty",
    "no routing server",
    "its own sites have no site gate",
    "no RoutingLinks connect",
    "has no site gate",
)


@cache
def cases(part: int) -> list[Enterprise]:
    rng = random.Random(f"routing {part}")
    return [enterprise(rng) for _ in range(CASES // PARTS)]


@each_part
def test_tables_have_the_least_cost(part: int) -> None:
    rows = ties = 0
    for case in cases(part):
        router = Router(directory_of(case), max_age=1.0)
        for machine in case.machines:
            expected = case.table(machine)
            table = router.routing_table(machine.id)
            found = {
                row.destination_site_id: (row.cost, row.hops, row.next_hop_site_id.bytes_le) for row in table.rows()
            }
            assert found == expected
            assert dict(table) == {site: table.row(site).next_hop_site_id for site in expected}  # type: ignore[union-attr]
            rows += len(expected)
            ties += len({way.cost for way in expected.values()}) < len(expected)
    assert rows > 750
    assert ties > 75


@each_part
def test_next_hops_are_those_of_the_oracle(part: int) -> None:
    answers = failures = 0
    for case in cases(part):
        router = Router(directory_of(case), max_age=1.0)
        for source in case.machines:
            for destination in case.machines:
                expected = case.next_hops(source.id, destination.id)
                assert hops(router, source, destination) == expected
                answers += bool(expected)
                failures += not expected
    assert answers > 4000
    assert failures > 400


@each_part
def test_hops_reach_the_destination_without_a_loop(part: int) -> None:
    """Whichever of several hops is taken, and from every machine."""
    arrived = 0
    for case in cases(part):
        router = Router(directory_of(case), max_age=1.0)
        for destination in case.machines:
            for source in case.machines:
                if source.id != destination.id:
                    arrived += follow(case, router, source, destination, ())
    assert arrived > 4000


def test_disorder() -> None:
    """Contradictory directories give the oracle's hops, and routes that arrive or errors that say why not."""
    rng = random.Random("disorder")
    errors: Counter[str] = Counter()
    for ordered in cases(0):
        case = disordered(rng, ordered)
        router = Router(directory_of(case), max_age=1.0)
        for source in case.machines:
            for destination in case.machines:
                assert hops(router, source, destination) == case.next_hops(source.id, destination.id)
                try:
                    route = find_route(router, source.id, destination.id)
                    assert route.hops[-1].target.identifier == destination.id
                    errors["none"] += 1
                except RoutingError as error:
                    errors[next(word for word in REASONS if word in str(error))] += 1
    assert min(errors[word] for word in ("none", *REASONS)) > 20, errors


def hops(router: Router, source: Machine, destination: Machine) -> list[UUID]:
    try:
        return list(router.get_next_hops(source.id, destination.id))
    except RoutingError:
        return []


def follow(case: Enterprise, router: Router, here: Machine, destination: Machine, passed: tuple[Machine, ...]) -> int:
    """The ways that arrive; where one ends, it is for want of links and not of hops."""
    if here == destination:
        return 1
    assert here not in passed
    found = hops(router, here, destination)
    if not found:
        assert not share_site(here, destination)
        roots = case.roots(here)
        reached = {site for path, _ in case.paths(roots) for site in path}
        lacks_gate = any(not case.gates(site) for site in case.sites)
        assert lacks_gate or not roots or not reached.intersection(destination.sites)
    return sum(follow(case, router, case.by_id[hop], destination, (*passed, here)) for hop in found)
