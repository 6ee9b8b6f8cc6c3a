"""Following next hops through enterprises, those that contradict themselves included."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest

from msmqwire.directory import MemoryDirectory, RoutingLink
from msmqwire.errors import RoutingError
from msmqwire.routing import Route, Router, Rule, find_route
from tests.routing.enterprises import Changed, Watched, gate, line, link, machine, named, site


def route(source: str, destination: str, *objects: Any) -> Route:
    return find_route(Router(MemoryDirectory(objects)), named(source), named(destination))


def test_a_route_with_every_rule() -> None:
    out = machine("out", "A", out_routing=("lost", "r-A", "gate-A"))
    objects = [machine("r-A", "A", router=True), *line(3, 4), out, machine("in", "C", in_routing=("r-C",))]
    found = route("out", "in", *objects, machine("r-C", "C", router=True))
    assert [(hop.source.computer_name, hop.target.computer_name, hop.rule, hop.cost) for hop in found.hops] == [
        ("out", "r-A", Rule.OUT_ROUTING_SERVER, 0),
        ("r-A", "gate-A", Rule.SITE_GATE, 0),
        ("gate-A", "gate-B", Rule.NEXT_SITE, 3),
        ("gate-B", "gate-C", Rule.NEXT_SITE, 4),
        ("gate-C", "r-C", Rule.IN_ROUTING_SERVER, 0),
        ("r-C", "in", Rule.IN_ROUTED, 0),
    ]
    assert found.cost == 7
    # The directory has no machine "lost": the next one is taken, and the one behind it is another possibility
    assert [other.computer_name for other in found.hops[0].others] == ["gate-A"]
    assert [hop.site_id for hop in found.hops] == [None, None, named("B"), named("C"), None, None]
    assert [hop.rule for hop in route("m-A", "m-B", *objects).hops] == [
        Rule.ROUTING_SERVER,
        Rule.SITE_GATE,
        Rule.NEXT_SITE,
        Rule.DIRECT,
    ]


def test_a_message_to_oneself_by_way_of_an_out_routing_server() -> None:
    found = route("out", "out", *line(1), machine("out", "A", out_routing=("gate-A",)))
    assert [hop.target.computer_name for hop in found.hops] == ["gate-A", "out"]


def test_a_circle() -> None:
    """In-routing servers that do not route."""
    hosts = [machine("x", "A"), machine("y", "A"), machine("z", "A", in_routing=("x", "y"))]
    with pytest.raises(RoutingError, match=r"^the route is a loop: x → y → x$"):
        route("x", "z", *line(1), *hosts)


@pytest.mark.parametrize(
    ("source", "destination", "attribute"),
    [
        ("out", "m-B", "OutRoutingServerIdentifierList"),
        ("m-A", "in", "InRoutingServerIdentifierList"),
    ],
)
def test_a_dangling_reference(source: str, destination: str, attribute: str) -> None:
    objects = [machine("out", "A", out_routing=("lost",)), machine("in", "A", in_routing=("lost",))]
    with pytest.raises(RoutingError) as caught:
        route(source, destination, *line(1), *objects)
    assert str(caught.value) == (
        f"QueueManager {source} ({named(source)}) has no next hop: "
        f"{attribute} names {named('lost')}, and there is no such QueueManager"
    )


@pytest.mark.parametrize(
    ("objects", "source", "destination", "why"),
    [
        ([machine("m", "A"), machine("m-B", "B")], "m", "m-B", "shares no site .* no routing server$"),
        ([machine("m", "A", router=True), machine("m-B", "B")], "m", "m-B", "shares no site .* no site gate$"),
        ([machine("m"), machine("m-B", "B")], "m", "m-B", "^QueueManager m .* its SiteIdentifierList is empty$"),
        ([*line(1)[:-1], machine("m-B")], "m-A", "m-B", "^QueueManager m-B .* its SiteIdentifierList is empty$"),
        (
            [*line(1), site("E"), machine("m-E", "E")],
            "m-A",
            "m-E",
            "^no RoutingLinks connect .* gate-A .* m-E ",
        ),
        (
            [*line(1), site("C"), link("B", "C", 1, "gate-B"), machine("m-C", "C")],
            "m-A",
            "m-C",
            "^Site .* gate-B .* no site gate$",
        ),
    ],
)
def test_where_the_way_ends(objects: list[Any], source: str, destination: str, why: str) -> None:
    with pytest.raises(RoutingError, match=why):
        route(source, destination, *objects)


@pytest.mark.parametrize("max_age", [0.0, 60.0])
@pytest.mark.parametrize("then", [None, line(1)[:-2], []], ids=["lost", "without-machines", "empty"])
def test_a_directory_that_is_lost_or_changes_on_the_way(then: list[Any] | None, max_age: float) -> None:
    """At whichever read: the route, or an error that says why not; not that a machine is missing that was not read."""
    objects = line(1)
    whole = Changed(objects, None, sys.maxsize)
    expected = find_route(Router(whole, max_age=max_age), named("m-A"), named("m-B"))
    for number in range(1, whole.reads + 1):
        router = Router(Changed(objects, then, number), max_age=max_age)
        try:
            said: Any = [hop.target.identifier for hop in find_route(router, named("m-A"), named("m-B")).hops]
        except RoutingError as error:
            said = str(error)
        lost = then is None and "cannot be read: the server is gone" in said
        assert lost or then is not None or said == [hop.target.identifier for hop in expected.hops]


def test_what_cannot_be_read_is_asked_for_again() -> None:
    directory = Watched(line(1))
    router = Router(directory)
    for failing in ({RoutingLink}, set()):
        directory.fail_begin = failing
        try:
            assert router.get_next_hops(named("gate-A"), named("m-B")) == (named("gate-B"),)
            assert not failing
        except RoutingError as error:
            assert str(error).endswith("the directory cannot be read: RoutingLink cannot be read")  # noqa: PT017
            assert failing
    assert router.failure is None


def test_a_rule_reads_nothing_twice_and_a_cache_does_not_read_again() -> None:
    directory = Watched([*line(1, 1), gate("D")])
    router = Router(directory, max_age=60.0)
    for _ in range(3):
        for source in ("m-A", "gate-A", "gate-B"):
            router.get_next_hops(named(source), named("m-C"))
    assert len(directory.reads) == len(set(directory.reads)) == 3 + 5
    uncached = Watched(directory.inner)
    router = Router(uncached)
    for source in ("m-A", "gate-A"):
        router.get_next_hops(named(source), named("m-C"))
        assert len(uncached.reads) == len(set(uncached.reads)) > 2
        uncached.reads.clear()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("max_age", [0.0, 60.0])
@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda router: pickle.loads(pickle.dumps(router))])
def test_a_router_can_be_copied(duplicate: Callable[[Router], Router], max_age: float) -> None:
    """Also after it has answered, when it has a table, the graph of the sites, and a cache."""
    router = Router(MemoryDirectory([*line(1, 1)]), max_age=max_age)
    for one in (duplicate(router), router):
        assert one.get_next_hops(named("gate-A"), named("m-C")) == (named("gate-B"),)
        again = duplicate(one)
        assert dict(again.routing_table(named("gate-A"))) == dict(one.routing_table(named("gate-A")))
        assert again.tick(0.0) == one.tick(0.0)
