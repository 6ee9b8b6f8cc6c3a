"""[MS-MQBR] 3.1 and 4, row by row, and every decision on it."""

from __future__ import annotations

import itertools
from typing import Any
from uuid import UUID

import pytest

from msmqwire.directory import Equal, MemoryDirectory, QueueManager, RoutingLink, Site
from msmqwire.errors import DirectoryError, RoutingError
from msmqwire.routing import QUERY_INTERVAL, Router, RoutingTable, Rule, SiteGraph, find_route
from tests.contract.checklist import row
from tests.routing.enterprises import (
    Changed,
    Watched,
    gate,
    hops,
    ids,
    line,
    link,
    machine,
    named,
    router,
    site,
    table,
    way,
)

#: The enterprise of [MS-MQBR] 4, Figure 4: a gate and a machine in each of four sites.
SITES = [site(name) for name in "ABCD"]
MACHINES = [each for name in "ABCD" for each in (gate(name), machine(f"m-{name}", name))]

#: NextHopSiteID and total cost by root and destination.
FIRST_EXAMPLE = {
    "A": {"B": ("B", 3), "C": ("B", 4), "D": ("B", 4)},
    "B": {"A": ("A", 3), "C": ("C", 1), "D": ("D", 1)},
    "C": {"A": ("B", 4), "B": ("B", 1), "D": ("D", 1)},
    "D": {"A": ("B", 4), "B": ("B", 1), "C": ("C", 1)},
}
SECOND_EXAMPLE = {
    "A": {"B": ("B", 3), "C": ("B", 5), "D": ("B", 4)},
    "B": {"A": ("A", 3), "C": ("D", 2), "D": ("D", 1)},
    "C": {"A": ("D", 5), "B": ("D", 2), "D": ("D", 1)},
    "D": {"A": ("B", 4), "B": ("B", 1), "C": ("C", 1)},
}


def example(**costs: int) -> Router:
    """The enterprise of the examples with these costs, as in ``AB=3``."""
    return Router(MemoryDirectory([*SITES, *(link(ends[0], ends[1], cost) for ends, cost in costs.items()), *MACHINES]))


# --- 3.1.3: the routing table ---


@row("BR-01")
def test_rebuilt_every_hour() -> None:
    objects = line(1)
    directory = Watched(objects)
    of = Router(directory, now=100.0)
    assert QUERY_INTERVAL == 3600
    assert of.wait_until == 3700
    assert table(of, "gate-A") == {"B": ("B", 1)}
    directory.inner = MemoryDirectory([*objects, site("C"), gate("C"), link("A", "C", 7)])
    assert of.tick(3699.9) == 3700
    assert table(of, "gate-A") == {"B": ("B", 1)}
    assert of.tick(3700.0) == 7300
    assert table(of, "gate-A") == {"B": ("B", 1), "C": ("C", 7)}


@row("BR-02")
def test_empty_tables() -> None:
    objects = line(1)
    links = [each for each in objects if isinstance(each, RoutingLink)]
    sites = [each for each in objects if isinstance(each, Site)]
    assert len(router(*objects).routing_table(named("gate-A"))) == 2
    for without in (links, sites):
        assert not router(*(each for each in objects if each not in without)).routing_table(named("gate-A"))
    assert not RoutingTable(SiteGraph(sites, []), [named("A")])
    # IsSiteGate is 0: no gate of a link, no routing server, or of another site; then no cost is looked at either
    stranger, idle = machine("stranger", "C", router=True), machine("idle", "A")
    of = router(*objects, site("C"), stranger, idle, link("A", "B", 1, "gate-A", "gate-B", "idle", "stranger"))
    assert len(of.routing_table(named("gate-A"))) == 2
    wrong = router(*objects, site("C"), stranger, idle, link("A", "B", -1, "idle", "stranger"))
    for no_gate in ("m-A", "idle", "stranger"):
        for each in (of, wrong):
            assert not each.is_site_gate(named(no_gate))
            assert not each.routing_table(named(no_gate))


def test_an_unknown_machine_has_no_routing_table() -> None:
    of = router(*line(1))
    assert not of.is_site_gate("nobody")
    for unknown, what in (
        (named("nobody"), "Identifier"),
        (str(named("nobody")), "Identifier"),
        ("nobody", "ComputerName"),
    ):
        with pytest.raises(RoutingError, match=f"^no QueueManager has the {what} {unknown}$"):
            of.routing_table(unknown)


@row("BR-03")
def test_an_edge_in_each_direction() -> None:
    graph = SiteGraph(SITES, [link("A", "B", 3), link("C", "B", 5)])
    edges = zip(graph.source.tolist(), graph.target.tolist(), graph.cost.tolist(), strict=True)
    assert list(edges) == [(0, 1, 3), (1, 0, 3), (1, 2, 5), (2, 1, 5)]


@row("BR-04")
def test_next_hop_is_the_first_site_of_a_least_cost_path() -> None:
    of = router(*line(1, 1, 1), link("A", "D", 4))
    assert table(of, "gate-A") == {"B": ("B", 1), "C": ("B", 2), "D": ("B", 3)}
    assert table(of, "gate-D") == {"A": ("C", 3), "B": ("C", 2), "C": ("C", 1)}
    assert of.routing_table(named("gate-A"))[named("A")] == named("A")


@row("BR-05")
def test_the_tree_covers_the_graph() -> None:
    names = [f"s{number}" for number in range(60)]
    links = [link(one, other, 1 + number % 7) for number, (one, other) in enumerate(itertools.combinations(names, 2))]
    found = RoutingTable(SiteGraph(map(site, names), links), [named("s17")])
    assert len(found) == 60
    # Every path is the path to some neighbour and one link more, as in a tree
    by_ends = {frozenset((each.site1_identifier, each.site2_identifier)): each.actual_cost for each in links}
    for each in found.rows():
        if each.hops:
            before = [
                r.cost + by_ends[frozenset((r.destination_site_id, each.destination_site_id))]
                for r in found.rows()
                if r.hops == each.hops - 1
            ]
            assert each.cost == min(before)


@row("BR-06")
def test_first_example() -> None:
    of = example(AB=3, BC=1, BD=1, CD=1)
    assert {root: table(of, f"gate-{root}") for root in "ABCD"} == FIRST_EXAMPLE
    assert way(of, "gate-A", "gate-C") == ["gate-A", "gate-B", "gate-C"]
    assert way(of, "m-A", "m-C") == ["m-A", "gate-A", "gate-B", "gate-C", "m-C"]


@row("BR-07")
def test_second_example() -> None:
    of = example(AB=3, BC=3, BD=1, CD=1)
    assert {root: table(of, f"gate-{root}") for root in "ABCD"} == SECOND_EXAMPLE
    assert way(of, "gate-A", "gate-C") == ["gate-A", "gate-B", "gate-D", "gate-C"]


# --- 3.1.5.1: GetNextHops ---


@row("BR-08")
def test_unknown_machines_fail() -> None:
    """Decision B16 as well: the text leaves an empty list."""
    of = router(*line(1))
    for source, destination in (("nobody", "m-A"), ("m-A", "nobody"), ("gate-A", "nobody"), ("nobody", "nobody")):
        with pytest.raises(RoutingError, match=f"no QueueManager has the Identifier {named('nobody')}"):
            hops(of, source, destination)


@row("BR-09")
def test_out_routing_servers() -> None:
    of = router(
        *line(1), machine("o", "A", out_routing=("gate-B", "gate-A")), machine("i", "A", in_routing=("gate-A",))
    )
    for destination in ("m-A", "m-B", "i", "gate-B"):
        assert hops(of, "o", destination) == ids("gate-B", "gate-A")


@row("BR-10")
def test_in_routing_servers_of_the_destination() -> None:
    """Decision B2 as well: the machine that the text calls Destination is DestinationMachine."""
    of = router(*line(1), machine("i", "A", "B", in_routing=("gate-B", "gate-A")))
    assert hops(of, "m-A", "i") == ids("gate-B", "gate-A")


@row("BR-11")
def test_directly_in_a_shared_site() -> None:
    of = router(*line(1), machine("both", "B", "A"))
    assert hops(of, "m-A", "both") == ids("both")
    assert hops(of, "m-A", "gate-A") == ids("gate-A")


@row("BR-12")
def test_a_routing_server_of_a_source_site() -> None:
    of = router(machine("r-B", "B", router=True), machine("r-A", "A", router=True), *line(1))
    assert hops(of, "m-A", "m-B") == ids("r-A")
    assert way(of, "m-A", "m-B") == ["m-A", "r-A", "gate-A", "gate-B", "m-B"]


# --- 3.1.5.2: GetNextHopsForRouter ---


@row("BR-13")
def test_a_router_that_is_a_gate() -> None:
    of = router(*line(1, 1))
    source, destination = (of.get_queue_manager(named(name)) for name in ("gate-A", "m-C"))
    assert source is not None
    assert destination is not None
    assert of.get_next_hops_for_site_gate(source, destination) == ids("gate-B")
    assert of.get_next_hops_for_router(source, destination) == ids("gate-B")
    assert of.explain_next_hops(source.identifier, destination.identifier).rule is Rule.NEXT_SITE


@row("BR-14")
def test_a_router_that_is_an_in_routing_server() -> None:
    of = router(
        *line(1),
        machine("r", "A", router=True),
        machine("i", "A", in_routing=("gate-A", "r")),
        machine("far", "B", in_routing=("r",)),
    )
    assert hops(of, "r", "i") == ids("i")
    assert hops(of, "r", "far") == ids("far")


@row("BR-15")
def test_a_router_in_another_site() -> None:
    of = router(*line(1), machine("r", "A", router=True))
    assert hops(of, "r", "m-B") == ids("gate-A")
    assert hops(of, "r", "m-A") == ids("m-A")


# --- 3.1.5.3: GetNextHopsForSiteGate ---


@row("BR-16")
def test_a_gate_that_is_an_in_routing_server() -> None:
    of = router(*line(1), machine("i", "A", in_routing=("gate-A",)), machine("far", "B", in_routing=("gate-A",)))
    assert hops(of, "gate-A", "i") == ids("i")
    assert hops(of, "gate-A", "far") == ids("far")


@row("BR-17")
def test_a_gate_in_a_shared_site() -> None:
    of = router(*line(1), machine("r", "A", router=True), machine("i", "A", in_routing=("r",)))
    assert hops(of, "gate-A", "i") == ids("r")
    assert hops(of, "gate-A", "m-A") == ids("m-A")


def test_the_next_hops_of_a_gate_alone() -> None:
    """GetNextHopsForSiteGate without the rules before it, and where the directory fails in the middle."""
    objects = [*line(1, 1), machine("i", "A", in_routing=("gate-B",)), machine("far", "B", in_routing=("gate-A",))]
    by_name = {each.computer_name: each for each in objects if isinstance(each, QueueManager)}
    source = by_name["gate-A"]
    expected = {"i": ids("gate-B"), "far": ids("far"), "m-A": ids("m-A"), "m-C": ids("gate-B")}
    for name, found in expected.items():
        assert router(*objects).get_next_hops_for_site_gate(source, by_name[name]) == found
    found_by_reads = [
        Router(Changed(objects, None, number)).get_next_hops_for_site_gate(source, by_name["m-C"])
        for number in range(1, 20)
    ]
    assert {*found_by_reads} == {(), ids("gate-B")}


@row("BR-18")
def test_a_gate_of_the_next_site() -> None:
    of = router(*line(1, 1, 1))
    assert hops(of, "gate-A", "m-D") == ids("gate-B")
    assert hops(of, "gate-D", "m-A") == ids("gate-C")
    assert of.get_site_gate_for_site(named("C")) == named("gate-C")
    assert of.get_site_gate_for_site(named("nowhere")) is None


def test_a_link_without_one_of_its_sites_makes_no_gate() -> None:
    """As in LDAP, where such a link is not read: the machine is a router as any other, and sends to the real gate."""
    retired = link("A", "nowhere", 1, "r")
    of = router(retired, *line(1), machine("r", "A", router=True))
    assert not of.is_site_gate(named("r"))
    assert of.get_site_gate(named("m-A")) == named("gate-A")
    assert hops(of, "r", "m-B") == ids("gate-A")
    assert len(of.routing_table(named("gate-A"))) == 2


# --- 3.1.5.5, 3.1.5.8, 3.1.5.9 ---


@row("BR-19")
def test_the_first_routing_server() -> None:
    servers = [machine(name, *sites, router=True) for name, sites in (("r1", "B"), ("r2", "AB"), ("r3", "A"))]
    for order in itertools.permutations(servers):
        of = router(machine("no-r", "A"), *order, machine("m", "A"), machine("both", "A", "B"), machine("none", "C"))
        expected = [each.identifier for each in order]
        assert of.get_routing_server(named("both")) == expected[0]
        assert of.get_routing_server(named("m")) == next(each for each in expected if each != named("r1"))
        assert of.get_routing_server(named("none")) is None
        assert of.get_routing_server(named("nobody")) is None


@row("BR-20")
def test_no_gate_without_routing() -> None:
    of = router(site("A"), site("B"), link("A", "B"), machine("gate-A", "A"), gate("B"))
    assert not of.is_site_gate(named("gate-A"))
    assert of.is_site_gate(named("gate-B"))


@row("BR-21")
def test_no_gate_of_the_sites_of_others() -> None:
    """The gates of a link belong to whichever of its sites they are in: decision B11."""
    stranger = machine("stranger", "C", router=True)
    objects = [site("A"), site("B"), site("C"), gate("A"), stranger, machine("lost", router=True)]
    of = router(*objects, link("A", "B", 1, "gate-A", "stranger", "lost"), link("C", "B", 1, "gate-A"))
    assert of.is_site_gate(named("gate-A"))
    assert not of.is_site_gate(named("stranger"))
    assert not of.is_site_gate(named("lost"))
    # A site that the directory does not have makes nobody a gate
    assert not router(*objects[1:], link("A", "B", 1, "gate-A")).is_site_gate(named("gate-A"))


@row("BR-22")
def test_nothing_where_the_directory_fails() -> None:
    directory = Watched(line(1))
    of = Router(directory)
    assert of.get_directory_data(Site) == SITES[:2]
    directory.fail_next = {Site}
    assert of.get_directory_data(Site) is None
    directory.fail_next, directory.fail_begin = set(), {Site, QueueManager}
    assert of.get_directory_data(Site) is None
    assert of.get_queue_manager(named("gate-A")) is None
    assert of.get_routing_server(named("m-A")) is None
    assert of.get_site_gate(named("m-A")) is None
    assert of.get_site_gate_for_site(named("A")) is None
    assert not of.is_site_gate(named("gate-A"))
    with pytest.raises(RoutingError, match="the directory cannot be read: QueueManager cannot be read"):
        of.routing_table(named("gate-A"))
    directory.fail_begin = {RoutingLink}
    with pytest.raises(RoutingError, match="the directory cannot be read: RoutingLink cannot be read"):
        of.routing_table(named("gate-A"))
    directory.fail_begin = {Site, QueueManager}
    with pytest.raises(RoutingError, match="the directory cannot be read: QueueManager cannot be read") as caught:
        hops(of, "gate-A", "m-B")
    assert isinstance(caught.value.__cause__, DirectoryError)
    directory.fail_begin = set()
    assert hops(of, "gate-A", "m-B") == ids("gate-B")
    assert router().get_directory_data(Site) is None


@row("BR-23")
def test_every_read_is_ended() -> None:
    directory = Watched(line(1, 1))
    of = Router(directory)
    for failing in (set(), {Site}, {RoutingLink}, {QueueManager}):
        directory.fail_next = failing
        of.initialize(0.0)
        for source, destination in itertools.permutations(("gate-A", "m-A", "m-C", "nobody"), 2):
            try:
                hops(of, source, destination)
            except RoutingError:
                assert failing or "nobody" in (source, destination)
        of.get_directory_data(Site)
    assert len(directory.reads) > 10
    assert directory.open == 0


# --- Decisions ---


@row("BR-24")
def test_no_next_hop_is_nothing_and_none_comes_twice() -> None:
    objects = [*line(1), machine("alone", "E"), site("E"), machine("r-E", "F", router=True)]
    twice = machine("twice", "A", out_routing=("gate-A", "gate-B", "gate-A"), in_routing=("gate-A", "gate-A"))
    of = router(*objects, twice)
    assert hops(of, "twice", "m-B") == ids("gate-A", "gate-B")
    assert hops(of, "m-A", "twice") == ids("gate-A")
    for source, why in (("alone", "have no routing server"), ("r-E", "have no site gate")):
        with pytest.raises(RoutingError, match=why):
            hops(of, source, "m-A")
    assert of.get_next_hops_for_router(objects[-1], objects[-3]) == ()


@row("BR-25")
def test_ties() -> None:
    # Two links for 2, or one: one. Over B or C for the same, with as many links: the GUID that comes first on the wire
    of = router(*line(1, 1), link("A", "C", 2))
    assert table(of, "gate-A") == {"B": ("B", 1), "C": ("C", 2)}
    for cost in (0, 1, 999_999):
        of = router(*line(cost, cost), site("D"), gate("D"), link("A", "D", cost), link("D", "C", cost))
        first = min("BD", key=lambda name: named(name).bytes_le)
        assert table(of, "gate-A")["C"] == (first, 2 * cost)
    # The order by the text of a GUID is another
    low, high = UUID("00000001-0000-0000-0000-000000000000"), UUID("01000000-0000-0000-0000-000000000000")
    assert (low < high, low.bytes_le < high.bytes_le) == (True, False)
    a, z = named("A"), named("Z")
    sites = [Site(identifier=each, name="") for each in (a, low, high, z)]
    links = [
        RoutingLink(identifier=a, actual_cost=1, site1_identifier=one, site2_identifier=other)
        for one in (a, z)
        for other in (low, high)
    ]
    assert RoutingTable(SiteGraph(sites, links), [a])[z] == high


@row("BR-26")
def test_the_nearest_site_of_a_destination() -> None:
    for sites in itertools.permutations("BCD"):
        of = router(*line(5, 1, 1), link("A", "D", 4), machine("everywhere", *sites))
        assert hops(of, "gate-A", "everywhere") == ids("gate-D")


@row("BR-27")
def test_an_unreachable_site() -> None:
    of = router(*line(1), site("E"), machine("m-E", "E"), gate("E"))
    assert table(of, "gate-A") == {"B": ("B", 1)}
    assert named("E") not in of.routing_table(named("gate-A"))
    with pytest.raises(RoutingError, match=r"no RoutingLinks connect the sites of QueueManager gate-A \("):
        hops(of, "gate-A", "m-E")
    # One of its sites is enough
    of = router(*line(1), site("E"), machine("m", "E", "B"))
    assert hops(of, "gate-A", "m") == ids("gate-B")


@row("BR-28")
def test_costs() -> None:
    for cost in (0, 1, 999_999):
        assert table(router(*line(cost)), "gate-A") == {"B": ("B", cost)}
    amount: Any
    for amount in (-1, 1_000_000, 2**70, 1.5, 2.0, "3", True, None):
        wrong = link("A", "B", amount)
        with pytest.raises(RoutingError) as caught:
            hops(router(*line(0, 999_999), wrong), "gate-A", "m-B")
        assert str(caught.value) == (
            f"RoutingLink {wrong.identifier}: ActualCost is {amount!r}, not an integer from 0 to 999,999"
        )


def test_membership_and_not_equality() -> None:
    """Decision B3: ``Site.Identifier = in Machine.SiteIdentifierList`` is membership."""
    of = router(*line(1), machine("gate-Z", "Z", "Y", "A", router=True), link("A", "B", 9, "gate-Z"))
    assert of.is_site_gate(named("gate-Z")) is True
    assert of.is_site_gate(named("m-A")) is False


def test_a_gate_of_several_sites() -> None:
    """Decision B5: every site that a machine is a gate of is a root."""
    links = [
        link("A", "B", 1),
        link("B", "C", 5),
        link("D", "C", 2, "gate-A", "gate-C"),
        link("D", "B", 9, "gate-A", "gate-B"),
    ]
    of = router(*map(site, "ABCD"), *links, gate("A", "D"), gate("B"), gate("C"))
    assert table(of, "gate-A") == {"B": ("B", 1), "C": ("C", 2)}
    found = of.routing_table(named("gate-A"))
    assert (found[named("A")], found[named("D")]) == (named("A"), named("D"))


def test_links_are_bidirectional() -> None:
    """Decision B9, although the graph is said to be directed."""
    for ends in ("AB", "BA"):
        of = router(site("A"), site("B"), link(ends[0], ends[1], 3), gate("A"), gate("B"))
        assert table(of, "gate-A") == {"B": ("B", 3)}
        assert table(of, "gate-B") == {"A": ("A", 3)}


def test_sites_without_gates_are_skipped() -> None:
    """Decision B10; to the letter the first site decides."""
    objects = [site("N"), *line(1), machine("r", "B", "N", "A", router=True)]
    assert router(*objects).get_site_gate(named("r")) == named("gate-A")
    assert hops(router(*objects), "r", "m-B") == ids("m-B")
    assert router(*objects, literal=True).get_site_gate(named("r")) is None
    assert router(*objects[1:], literal=True).get_site_gate(named("r")) == named("gate-A")
    far = [
        *objects[:-1],
        site("E"),
        machine("m-E", "E"),
        machine("r", "N", "A", router=True),
        gate("E"),
        link("B", "E"),
    ]
    assert way(router(*far), "r", "m-E") == ["r", "gate-A", "gate-B", "gate-E", "m-E"]
    with pytest.raises(RoutingError, match="have no site gate"):
        hops(router(*far, literal=True), "r", "m-E")


def test_gates_come_from_links() -> None:
    """Decision B11: a gate of any link of a site, if it belongs to the site; the first in the order of the links."""
    objects = [*map(site, "ABC"), machine("a1", "A", router=True), machine("a2", "A", router=True), machine("m-A", "A")]
    objects.append(machine("b", "B", router=True))
    links = [link("C", "A", 1, "a2", "b"), link("A", "B", 1, "a1", "b")]
    assert router(*objects, *links).get_site_gate(named("m-A")) == named("a2")
    assert router(*objects, *links[::-1]).get_site_gate(named("m-A")) == named("a1")
    assert router(*objects, link("B", "C", 1, "a1")).get_site_gate(named("m-A")) is None
    # To be one of the gates a machine need not route, to act as a gate it must
    of = router(*objects, link("A", "B", 1, "m-A", "a1"))
    assert of.get_site_gate_for_site(named("A")) == named("m-A")
    assert not of.is_site_gate(named("m-A"))


def test_no_machine_is_its_own_next_hop() -> None:
    """Decision B12."""
    near = [machine("self", "A", in_routing=("self",)), machine("two", "A", in_routing=("m-A", "gate-A"))]
    of = router(*line(1), *near, machine("lonely", "A", out_routing=("lonely",)))
    assert hops(of, "m-A", "two") == ids("gate-A")
    assert hops(of, "m-A", "self") == ids("self")
    assert hops(of, "lonely", "m-A") == ids("m-A")
    for name in ("m-A", "gate-A", "self"):
        with pytest.raises(RoutingError, match="is both source and destination"):
            hops(of, name, name)
    of = router(*line(1), machine("only", "A", in_routing=("m-A",)))
    assert hops(of, "m-A", "only") == ids("only")


def test_connected_networks_do_not_matter() -> None:
    """Decision B13."""
    one, other = (named(name) for name in ("network-1", "network-2"))
    apart = [
        QueueManager(
            identifier=named(name),
            computer_name=name,
            site_identifier_list=ids("A"),
            connected_network_identifier_list=(network,),
        )
        for name, network in (("x", one), ("y", other))
    ]
    assert hops(router(*line(1), *apart), "x", "y") == ids("y")


def test_no_filter_and_nothing_are_the_same() -> None:
    """Decision B14."""
    of = router(*line(1))
    assert of.get_directory_data(Site, []) == of.get_directory_data(Site, None) == SITES[:2]


def test_identifiers_compare_as_guids() -> None:
    """Decision B15: the text of a GUID has upper and lower case."""
    of = router(*line(1))
    for text in (str(named("A")), str(named("A")).upper()):
        assert of.get_directory_data(Site, [Equal("identifier", text)]) == SITES[:1]


def test_any_shared_site_is_good() -> None:
    """Decision B17."""
    of = router(machine("r", "X", "B", router=True), *line(1), machine("m", "A", "X"), machine("far", "E"))
    assert of.get_routing_server(named("m")) == named("r")


def test_a_link_is_usable_while_it_has_a_gate() -> None:
    of = router(*line(1, 1), link("A", "C", 1, "gate-A", "gone", "gate-C"))
    assert table(of, "gate-A") == {"B": ("B", 1), "C": ("C", 1)}
    assert hops(of, "gate-A", "m-C") == ids("gate-C")
    of = router(*line(1, 1), link("A", "C", 1, "gone", "lost"))
    assert table(of, "gate-A") == {"B": ("B", 1), "C": ("B", 2)}
    of = router(*line(1), link("A", "B", 1, "gone"))
    assert hops(of, "gate-A", "m-B") == ids("gate-B")
    of = router(*(each for each in line(1) if each.identifier != named("gate-B")))
    assert of.is_site_gate(named("gate-A"))
    with pytest.raises(RoutingError, match=f"^Site {named('B')}, the next site from .* has no site gate$"):
        hops(of, "gate-A", "m-B")


def test_a_gate_on_the_link_is_preferred() -> None:
    """Decision B19: any gate of the next site is good, one on the link is better."""
    objects = [*map(site, "ABC"), gate("A"), *(machine(name, "B", router=True) for name in ("b1", "b2", "b3"))]
    links = [link("B", "C", 1, "b1"), link("A", "B", 5, "b2"), link("A", "B", 4, "gate-A", "b3")]
    of = router(*objects, *links, machine("m-B", "B"))
    assert of.get_site_gate_for_site(named("B")) == named("b1")
    assert hops(of, "gate-A", "m-B") == ids("b3")
    assert of.get_site_gate_for_site(named("B"), ids("A")) == named("b3")
    of = router(*objects, links[0], link("A", "B", 4, "gate-A"), machine("m-B", "B"))
    assert hops(of, "gate-A", "m-B") == ids("b1")


def test_machines_by_their_computer_names() -> None:
    of = router(*line(1), machine("twin", "A"), QueueManager(identifier=named("other"), computer_name="TWIN"))
    assert of.get_next_hops("m-A", "M-b") == ids("gate-A")
    assert of.explain_next_hops(named("gate-A"), "m-B").identifiers == ids("gate-B")
    assert of.is_site_gate("GATE-A")
    assert of.get_routing_server("m-A") == of.get_site_gate("m-A") == named("gate-A")
    assert len(of.routing_table("gate-B")) == 2
    assert find_route(of, "m-A", "m-B") == find_route(of, named("m-A"), named("m-B"))
    for source, destination in (("nobody", "m-A"), ("m-A", "nobody")):
        for ask in (of.get_next_hops, lambda *names: find_route(of, *names)):
            with pytest.raises(RoutingError, match="no QueueManager has the ComputerName nobody"):
                ask(source, destination)
    host = QueueManager(
        identifier=named("host"),
        computer_name="HOST",
        qualified_computer_name="host.example",
        site_identifier_list=ids("A"),
    )
    of = router(*line(1), host)
    for name in (str(named("host")), str(named("host")).upper(), "host", "Host.Example"):
        assert of.get_next_hops("m-A", name) == (named("host"),)
        assert find_route(of, name, "m-B").hops[0].source.identifier == named("host")
        (hop,) = find_route(of, "m-A", name).hops
        assert (hop.target, hop.target.qualified_computer_name) == (of.get_queue_manager(name), "host.example")
        assert hop.source.qualified_computer_name == ""
    with pytest.raises(RoutingError, match=r"no QueueManager has the ComputerName host\.elsewhere"):
        of.get_next_hops("m-A", "host.elsewhere")
    of = router(*line(1), machine("twin", "A"), QueueManager(identifier=named("other"), computer_name="TWIN"))
    with pytest.raises(RoutingError, match="2 QueueManagers have the ComputerName twin"):
        of.get_next_hops("m-A", "twin")
