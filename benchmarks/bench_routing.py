"""Routing ([MS-MQBR]): what a routing table costs beside Dijkstra's algorithm in Python, and a hop beside a dictionary.

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS
from benchmarks.ratios import Contender, measure
from benchmarks.report import Report, Target
from benchmarks.routes import Routes, read_arcs, routes, search, search_by_guid, table_of
from benchmarks.scale import Scale
from msmqwire.routing import QUERY_INTERVAL, Router, RoutingTable, SiteGraph

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

#: Python is to take at least five times as long.
TARGET = Target(5)


@pytest.fixture(scope="module")
def enterprise(scale: Scale) -> Routes:
    """10,000 sites, 50,000 links and 100,000 machines, or a hundredth of them."""
    return routes(*(number * scale.rows // 1_000_000 for number in (10_000, 50_000, 100_000)))


def test_routing_table(benchmark: BenchmarkFixture, scale: Scale, report: Report, enterprise: Routes) -> None:
    sites, links = enterprise.sites, enterprise.links
    root = [sites[0].identifier]
    graph, arcs = SiteGraph(sites, links), read_arcs(enterprise)
    expected = search_by_guid(enterprise)
    assert dict(RoutingTable(graph, root)) == table_of(search(arcs, sites), sites) == expected
    assert len(expected) == len(sites)

    reading = [
        Contender(OURS, lambda: RoutingTable(SiteGraph(sites, links), root), 1),
        Contender("heapq over GUIDs", lambda: search_by_guid(enterprise), 1),
        Contender("heapq over integers", lambda: search(read_arcs(enterprise), sites), 1),
    ]
    searching = [
        Contender(OURS, lambda: RoutingTable(graph, root), 1),
        Contender("heapq over integers", lambda: search(arcs, sites), 1),
    ]
    size = f"{len(sites):,} sites, {len(links):,} links"
    benchmark.extra_info.update(
        ratios(report, scale, f"A routing table, the links read before: {size}", "table", searching, TARGET)
        | ratios(report, scale, f"A routing table, the links read as well: {size}", "table", reading, TARGET)
    )
    benchmark.pedantic(searching[0].run, rounds=scale.slow_rounds, iterations=1, warmup_rounds=1)


def test_next_hops(benchmark: BenchmarkFixture, scale: Scale, report: Report, enterprise: Routes) -> None:
    router, fresh = (Router(enterprise.directory, max_age=QUERY_INTERVAL) for _ in range(2))
    source = enterprise.gates[0].identifier
    destinations = [machine.identifier for machine in enterprise.machines]
    count = len(destinations)
    answers = {(source, each): router.get_next_hops(source, each) for each in destinations}
    table = search_by_guid(enterprise)
    gate = {one.site_identifier_list[0]: one.identifier for one in enterprise.gates}
    for machine in enterprise.machines:
        (site,) = machine.site_identifier_list
        expected = machine.identifier if site == enterprise.sites[0].identifier else gate[table[site]]
        assert answers[source, machine.identifier] == (expected,)

    def look_up() -> None:
        for each in destinations:
            answers[source, each]

    def ask() -> None:
        for each in destinations:
            router.get_next_hops(source, each)

    # A part in each round; the sites and links are read in the warm-up
    parts = scale.slow_rounds + 1
    unknown = iter([destinations[part::parts] for part in range(parts)])

    def ask_for_the_first_time() -> None:
        for each in next(unknown):
            fresh.get_next_hops(source, each)

    contenders = [
        Contender("a dictionary, both GUIDs the key", look_up, count),
        Contender(f"{OURS}, asked before", ask, count),
        Contender(f"{OURS}, asked for the first time", ask_for_the_first_time, count // parts),
    ]
    found = ratios(report, scale, f"Next hops of a gate: {count:,} machines", "hop", contenders)
    benchmark.extra_info.update(found)
    benchmark.pedantic(ask, rounds=scale.slow_rounds, iterations=1, warmup_rounds=1)


def ratios(
    report: Report,
    scale: Scale,
    title: str,
    what: str,
    contenders: list[Contender],
    target: Target | None = None,
) -> dict[str, float]:
    """Time all in turn and report how much longer than the first the others take; the target is for the second."""
    first, *others = contenders
    rounds = measure(contenders, scale.slow_rounds, least=3, seconds=scale.seconds)
    report.section(title)
    report.heading("times slower", what)
    report.line(first.name, f"{1e9 * rounds.per_packet(first.name):12,.0f}")
    found = {}
    for other in others:
        wanted = target if other is others[0] else None
        found[f"{title}, {other.name}"] = round(report.against(rounds, first.name, other.name, wanted), 3)
    return found
