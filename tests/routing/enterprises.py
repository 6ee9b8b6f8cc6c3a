"""The enterprises of the tests as directories."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Set
from typing import Any
from uuid import UUID

from msmqwire.directory import Directory, MemoryDirectory, QueueManager, RoutingLink, Site
from msmqwire.errors import DirectoryError, DirectoryNotConnected
from msmqwire.routing import Router, find_route
from tests.reference.routing import Enterprise

_NAMES = uuid.UUID("0d6f1a52-0000-4000-8000-000000000000")


def named(name: str) -> UUID:
    """An identifier by a name."""
    return uuid.uuid5(_NAMES, name)


def site(name: str) -> Site:
    return Site(identifier=named(name), name=name)


def link(one: str, other: str, cost: int = 1, *gates: str) -> RoutingLink:
    """A link between sites; without gates, ``gate-A`` and ``gate-B`` are those of A and B."""
    gates = gates or (f"gate-{one}", f"gate-{other}")
    return RoutingLink(
        identifier=uuid.uuid4(),
        actual_cost=cost,
        site1_identifier=named(one),
        site2_identifier=named(other),
        site_gate_identifier_list=tuple(named(gate) for gate in gates),
    )


def machine(
    name: str, *sites: str, router: bool = False, out_routing: tuple[str, ...] = (), in_routing: tuple[str, ...] = ()
) -> QueueManager:
    return QueueManager(
        identifier=named(name),
        computer_name=name,
        site_identifier_list=tuple(named(each) for each in sites),
        routing_server=router,
        out_routing_server_identifier_list=tuple(named(each) for each in out_routing),
        in_routing_server_identifier_list=tuple(named(each) for each in in_routing),
    )


def gate(*sites: str) -> QueueManager:
    """The gate of the sites, by the name of the first."""
    return machine(f"gate-{sites[0]}", *sites, router=True)


def line(*costs: int) -> list[Any]:
    """Sites A, B, C, ... in a row, a gate each, and in each a machine ``m-A``, ``m-B``, ..."""
    names = [chr(ord("A") + place) for place in range(len(costs) + 1)]
    links = [link(one, other, cost) for one, other, cost in zip(names, names[1:], costs, strict=False)]
    return [*map(site, names), *links, *map(gate, names), *(machine(f"m-{name}", name) for name in names)]


def directory_of(enterprise: Enterprise) -> MemoryDirectory:
    """An enterprise of the oracle as a directory."""
    sites = [Site(identifier=each, name=str(place)) for place, each in enumerate(enterprise.sites)]
    links = [
        RoutingLink(
            identifier=UUID(int=place),
            actual_cost=each.cost,
            site1_identifier=each.one,
            site2_identifier=each.other,
            site_gate_identifier_list=each.gates,
        )
        for place, each in enumerate(enterprise.links)
    ]
    machines = [
        QueueManager(
            identifier=each.id,
            computer_name=str(place),
            site_identifier_list=each.sites,
            routing_server=each.router,
            out_routing_server_identifier_list=each.out_routing,
            in_routing_server_identifier_list=each.in_routing,
        )
        for place, each in enumerate(enterprise.machines)
    ]
    return MemoryDirectory([*sites, *links, *machines])


class Watched(Directory):
    """A directory that counts its events, and fails where it is told to.

    ``fail_begin`` and ``fail_next`` are the classes whose reads fail; Next after one object.
    """

    def __init__(self, objects: list[Any] | MemoryDirectory) -> None:
        super().__init__()
        self.inner = objects if isinstance(objects, MemoryDirectory) else MemoryDirectory(objects)
        self.fail_begin: Set[type] = set()
        self.fail_next: Set[type] = set()
        self.reads: list[tuple[str, tuple[Any, ...]]] = []
        self.open = 0

    def _search(self, element: Any, filters: Any, attributes: Any) -> Iterator[Any]:
        self.reads.append((element.__name__, tuple((each.attribute, each.value) for each in filters)))
        if element in self.fail_begin:
            raise DirectoryError(f"{element.__name__} cannot be read")
        for place, found in enumerate(self.inner.read_all(element, filters, attributes)):
            if place and element in self.fail_next:
                raise DirectoryError(f"the connection broke in the middle of {element.__name__}")
            yield found

    def read_directory_begin(self, *arguments: Any) -> int:
        handle = super().read_directory_begin(*arguments)
        self.open += 1
        return handle

    def read_directory_end(self, handle: int) -> None:
        self.open -= 1
        super().read_directory_end(handle)


class Changed(Directory):
    """A directory that, from the read of a number on, is ``then``; where that is None it cannot be read."""

    def __init__(self, first: list[Any], then: list[Any] | None, number: int) -> None:
        super().__init__()
        self.first, self.then, self.number, self.reads = MemoryDirectory(first), then, number, 0

    def _search(self, element: Any, filters: Any, attributes: Any) -> Iterator[Any]:
        self.reads += 1
        if self.reads < self.number:
            return self.first.read_all(element, filters, attributes)
        if self.then is None:
            raise DirectoryNotConnected("the server is gone")
        return MemoryDirectory(self.then).read_all(element, filters, attributes)


def router(*objects: Any, **options: Any) -> Router:
    return Router(MemoryDirectory(objects), **options)


def table(of: Router, gate_name: str) -> dict[str, tuple[str, int]]:
    """Names of next sites and costs by the name of the destination, but for the gate's own site."""
    names = {named(name): name for name in "ABCDEFGH"}
    rows = of.routing_table(named(gate_name)).rows()
    return {names[r.destination_site_id]: (names[r.next_hop_site_id], r.cost) for r in rows if r.hops}


def hops(of: Router, source: str, destination: str) -> tuple[UUID, ...]:
    return of.get_next_hops(named(source), named(destination))


def ids(*names: str) -> tuple[UUID, ...]:
    return tuple(named(name) for name in names)


def way(of: Router, source: str, destination: str) -> list[str]:
    found = find_route(of, named(source), named(destination))
    return [found.hops[0].source.computer_name, *(hop.target.computer_name for hop in found.hops)]
