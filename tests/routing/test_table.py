"""Routing tables of enterprises too large to try every path, and what cannot be computed."""

from __future__ import annotations

import heapq
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest

from msmqwire.directory import RoutingLink, Site
from msmqwire.errors import RoutingError
from msmqwire.routing import RoutingTable, SiteGraph, graph
from tests.routing.enterprises import line, link, named, site

ROOT = Path(__file__).parents[2]


def drawn(rng: random.Random, count: int, links: int, highest_cost: int) -> tuple[list[Site], list[RoutingLink]]:
    sites = [Site(identifier=UUID(int=rng.getrandbits(128)), name=str(place)) for place in range(count)]
    return sites, [
        RoutingLink(
            identifier=UUID(int=place),
            actual_cost=rng.randint(0, highest_cost),
            site1_identifier=rng.choice(sites).identifier,
            site2_identifier=rng.choice(sites).identifier,
        )
        for place in range(links)
    ]


def searched(sites: list[Site], links: list[RoutingLink], roots: list[UUID]) -> dict[UUID, tuple[int, int, UUID]]:
    """Cost, hops and next site of every site that is reached, by Dijkstra's algorithm."""
    arcs: dict[UUID, list[tuple[UUID, int]]] = {each.identifier: [] for each in sites}
    for each in links:
        arcs[each.site1_identifier].append((each.site2_identifier, each.actual_cost))
        arcs[each.site2_identifier].append((each.site1_identifier, each.actual_cost))
    waiting = [(0, 0, b"", root) for root in roots if links]
    found: dict[UUID, tuple[int, int, UUID]] = {}
    while waiting:
        cost, hops, first, here = heapq.heappop(waiting)
        if here not in found:
            found[here] = cost, hops, UUID(bytes_le=first) if first else here
            for there, more in arcs[here]:
                heapq.heappush(waiting, (cost + more, hops + 1, first or there.bytes_le, there))
    return found


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(10, 40))])
def test_large_enterprises(seed: int) -> None:
    rng = random.Random(f"table {seed}")
    count = rng.choice((2, 30, 300))
    sites, links = drawn(rng, count, rng.choice((count // 2, count, 4 * count)), rng.choice((0, 1, 5, 999_999)))
    roots = [each.identifier for each in rng.sample(sites, rng.choice((1, 2)))]
    rows = RoutingTable(SiteGraph(sites, links), roots).rows()
    found = {row.destination_site_id: (row.cost, row.hops, row.next_hop_site_id) for row in rows}
    assert found == searched(sites, links, roots)
    assert [row.destination_site_id for row in rows] == [each.identifier for each in sites if each.identifier in found]


def test_a_long_dear_path() -> None:
    """Costs are exact where a float of 32 bits, or cost and hops in one float of 64 with a factor too many, is not."""
    names = [f"s{number}" for number in range(3000)]
    links = [link(one, other, 999_999) for one, other in pairwise(names)]
    spokes = [link("s0", f"t{number}", 999_998) for number in range(2000)]
    sites = [site(name) for name in (*names, *(f"t{number}" for number in range(2000)))]
    table = RoutingTable(SiteGraph(sites, [*links, *spokes, link("t7", "s1", 1)]), [named("s0")])
    row = table.row(named("s2999"))
    assert row is not None
    assert (row.cost, row.hops) == (999_999 * 2999, 2999)
    assert row.next_hop_site_id == named("s1")


@pytest.mark.long
def test_costs_that_cannot_be_added_exactly() -> None:
    """Refused, and not rounded."""
    count = 95_000
    sites = [Site(identifier=UUID(int=place), name="") for place in range(count)]
    links = [
        RoutingLink(identifier=one, actual_cost=999_999, site1_identifier=one, site2_identifier=other)
        for one, other in pairwise(each.identifier for each in sites)
    ]
    chain = SiteGraph(sites, links)
    assert len(RoutingTable(chain, [sites[count // 2].identifier])) == count
    with pytest.raises(RoutingError, match=r"^the ActualCosts on a path add up to more than 2\*\*53"):
        RoutingTable(chain, [sites[0].identifier])


def test_a_table_is_a_mapping() -> None:
    objects = line(1)
    table = RoutingTable(SiteGraph(objects[:2], objects[2:3]), [named("A")])
    assert dict(table) == {named("A"): named("A"), named("B"): named("B")}
    assert named("C") not in table
    assert "A" not in table
    with pytest.raises(KeyError):
        table[named("C")]
    assert table.row(named("C")) is None
    assert table.nearest([named("C")]) is None
    assert repr(table) == "RoutingTable(2 rows)"
    assert RoutingTable(SiteGraph([], [])).rows() == []
    with pytest.raises(RoutingError, match=f"^no Site has the Identifier {named('C')}$"):
        RoutingTable(SiteGraph(objects[:2], objects[2:3]), [named("C")])


def test_arcs_lead_somewhere_at_the_lowest_cost() -> None:
    links = [link("A", "B", 5), link("B", "A", 3), link("A", "A", 1), link("A", "nowhere", 1), link("A", "B", 4)]
    arcs = SiteGraph([site("A"), site("B"), site("A")], links)
    assert arcs.sites == [named("A"), named("B")]
    assert (arcs.source.tolist(), arcs.target.tolist(), arcs.cost.tolist()) == ([0, 1], [1, 0], [3, 3])


def test_more_sites_than_there_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2 * graph._PLACE_BITS + graph._COST_BITS <= 63
    assert 1 << graph._PLACE_BITS > 2_000_000
    monkeypatch.setattr(graph, "_PLACE_BITS", 2)
    sites = [site(name) for name in "ABCDE"]
    links = [link("A", "D", 7)]
    assert SiteGraph(sites[:4], links).target.tolist() == [3, 0]
    with pytest.raises(RoutingError, match=r"^5 Sites: more than 4$"):
        SiteGraph(sites, links)


def test_without_scipy_the_error_says_what_to_install() -> None:
    program = """
import sys
sys.modules["scipy.sparse"] = None
from tests.routing.enterprises import line, named
from msmqwire.directory import MemoryDirectory
from msmqwire.errors import RoutingError
from msmqwire.routing import Router
router = Router(MemoryDirectory(line(1)))
assert router.get_next_hops(named("m-A"), named("m-B")) == (named("gate-A"),)
try:
    router.get_next_hops(named("gate-A"), named("m-B"))
except RoutingError as error:
    sys.exit(str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, text=True
    )
    assert done.stderr.startswith("routing between sites needs scipy, which is not installed: pip install 'scipy")
    assert done.returncode == 1


def test_importing_the_package_does_not_import_scipy() -> None:
    program = "import sys, msmqwire.routing; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT).returncode == 0
