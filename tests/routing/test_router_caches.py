"""When a router reads its directory: routing tables are kept, and other data only for as long as the caller says."""

from __future__ import annotations

import pytest

from msmqwire.directory import MemoryDirectory
from msmqwire.errors import RoutingError
from msmqwire.routing import Router
from tests.routing.enterprises import Watched, gate, hops, ids, line, link, machine, named, site, table


def test_only_the_timer_rebuilds_the_routing_table() -> None:
    """Decision B18: a new link changes no table, a new machine is routed to at once."""
    directory = Watched(line(1))
    of = Router(directory)
    assert hops(of, "gate-A", "m-B") == ids("gate-B")
    directory.inner = MemoryDirectory([*line(1), site("C"), gate("C"), link("B", "C"), machine("new", "B")])
    assert hops(of, "gate-A", "new") == ids("gate-B")
    assert of.is_site_gate(named("gate-C"))
    assert hops(of, "m-A", "gate-C") == ids("gate-A")
    assert table(of, "gate-A") == {"B": ("B", 1)}
    of.tick(3599.9)
    with pytest.raises(RoutingError, match="no RoutingLinks connect"):
        hops(of, "gate-A", "gate-C")
    of.tick(3600.0)
    assert hops(of, "gate-A", "gate-C") == ids("gate-B")


def test_machines_sites_and_gates_are_read_when_a_rule_reads_them() -> None:
    directory = Watched(line(1))
    of = Router(directory)
    assert hops(of, "gate-A", "m-B") == ids("gate-B")
    # Another gate and another routing server of the same sites
    moved = [*map(site, "AB"), *(machine(name, name[-1], router=True) for name in ("new-A", "new-B"))]
    moved += [machine("m-A", "A"), machine("m-B", "B"), machine("gate-A", "A"), link("A", "B", 1, "new-A", "new-B")]
    directory.inner = MemoryDirectory(moved)
    assert hops(of, "new-A", "m-B") == ids("new-B")
    assert hops(of, "m-A", "m-B") == ids("new-A")
    assert not of.is_site_gate(named("gate-A"))
    directory.inner = MemoryDirectory([])
    with pytest.raises(RoutingError, match="no QueueManager has the Identifier"):
        hops(of, "new-A", "m-B")


@pytest.mark.parametrize("age", [0.5, 60.0])
def test_a_cache_is_used_for_as_long_as_the_caller_says(age: float) -> None:
    directory = Watched(line(1))
    of = Router(directory, now=10.0, max_age=age)
    assert of.wait_until == 10 + age
    assert hops(of, "gate-A", "m-B") == ids("gate-B")
    directory.inner = MemoryDirectory([])
    assert of.tick(9.9 + age) == 10 + age
    assert hops(of, "gate-A", "m-B") == ids("gate-B")
    assert hops(of, "gate-A", "gate-B") == ids("gate-B"), "their objects are kept"
    answers = [of.explain_next_hops(named("gate-A"), named("m-B")) for _ in range(2)]
    assert answers[0] is answers[1]
    assert of.tick(10 + age) == 10 + 2 * age
    with pytest.raises(RoutingError):
        hops(of, "gate-A", "m-B")
    assert of.tick(3610 - age / 2) == 3610
    assert of.tick(3610.0) == 3610 + age
