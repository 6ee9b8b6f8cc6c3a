"""The oracle of routing ([MS-MQBR] 3.1): tries every path there is, so enterprises must be small.

Where the text leaves a choice or contradicts itself the decisions are these: of equal costs the fewest links and then
the first GUID on the wire; every site of which a machine is a gate is a root; of a destination's sites the nearest; no
machine is its own next hop; a gate on the link is preferred; a link without one of its sites, or without all gates that
it names, is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID


class Way(NamedTuple):
    """What a path is judged by, best first."""

    cost: int
    links: int
    next_site: bytes


@dataclass(frozen=True)
class Link:
    """A RoutingLink."""

    one: UUID
    other: UUID
    cost: int
    gates: tuple[UUID, ...] = ()


@dataclass(frozen=True)
class Machine:
    """A QueueManager."""

    id: UUID
    sites: tuple[UUID, ...] = ()
    router: bool = False
    out_routing: tuple[UUID, ...] = ()
    in_routing: tuple[UUID, ...] = ()


@dataclass(frozen=True, eq=False)
class Enterprise:
    """All of them, in the order of the directory."""

    sites: tuple[UUID, ...]
    links: tuple[Link, ...]
    machines: tuple[Machine, ...]
    by_id: dict[UUID, Machine] = field(init=False)
    usable: tuple[Link, ...] = field(init=False)
    gates_of: dict[UUID, list[UUID]] = field(init=False)
    tables: dict[UUID, dict[UUID, Way]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_id", {machine.id: machine for machine in self.machines})
        complete = (link for link in self.links if {link.one, link.other} <= set(self.sites))
        usable = tuple(link for link in complete if not link.gates or self.by_id.keys() & set(link.gates))
        object.__setattr__(self, "usable", usable)
        object.__setattr__(self, "gates_of", {site: self._gates(site) for site in self.sites})

    def _gates(self, site: UUID) -> list[UUID]:
        found: list[UUID] = []
        for link in self.usable:
            for gate in link.gates:
                machine = self.by_id.get(gate)
                if site in (link.one, link.other) and machine and site in machine.sites and gate not in found:
                    found.append(gate)
        return found

    def gates(self, site: UUID) -> list[UUID]:
        """SiteGateCollection: the gates of links that touch the site, as far as they belong to it."""
        return self.gates_of.get(site, [])

    def roots(self, machine: Machine) -> list[UUID]:
        """The sites that it is a gate of; IsSiteGate is whether there are any."""
        return [site for site in machine.sites if machine.router and machine.id in self.gates(site)]

    def paths(self, roots: Sequence[UUID]) -> Iterator[tuple[list[UUID], int]]:
        """Every path from a root that comes by no site twice, and what it costs."""
        waiting = [([root], 0) for root in roots]
        while waiting:
            path, cost = waiting.pop()
            yield path, cost
            for link in self.usable:
                for here, there in ((link.one, link.other), (link.other, link.one)):
                    if here == path[-1] and there in self.sites and there not in path:
                        waiting.append(([*path, there], cost + link.cost))

    def table(self, machine: Machine) -> dict[UUID, Way]:
        """The RoutingTable with the costs of its paths; the row of a root leads to itself."""
        if machine.id not in self.tables:
            self.tables[machine.id] = self._table(self.roots(machine))
        return self.tables[machine.id]

    def _table(self, roots: Sequence[UUID]) -> dict[UUID, Way]:
        if not roots or not self.sites or not self.usable:
            return {}
        best: dict[UUID, Way] = {}
        for path, cost in self.paths(roots):
            next_site = next((site for site in path if site not in roots), path[-1])
            way = Way(cost, len(path) - 1, next_site.bytes_le)
            best[path[-1]] = min(best.get(path[-1], way), way)
        return {**best, **{root: Way(0, 0, root.bytes_le) for root in roots}}

    def next_hops(self, source_id: UUID, destination_id: UUID) -> list[UUID]:
        """GetNextHops; empty where the routing attempt fails."""
        source, destination = self.by_id.get(source_id), self.by_id.get(destination_id)
        if source is None or destination is None:
            return []
        if source.router:
            return without(source, self.for_router(source, destination))
        if source.out_routing:
            hops = list(source.out_routing)
        elif share_site(source, destination):
            hops = list(destination.in_routing) or [destination.id]
        else:
            hops = [m.id for m in self.machines if m.router and share_site(m, source)][:1]
        if hops and not without(source, hops):
            hops = [destination.id]
        return without(source, hops)

    def for_router(self, source: Machine, destination: Machine) -> list[UUID]:
        """GetNextHopsForRouter and GetNextHopsForSiteGate."""
        if source.id in destination.in_routing:
            return [destination.id]
        if share_site(source, destination):
            return list(destination.in_routing) or [destination.id]
        if self.roots(source):
            return self.to_next_site(source, destination)
        for site in self.sites:
            if site in source.sites and self.gates(site):
                return self.gates(site)[:1]
        return []

    def to_next_site(self, source: Machine, destination: Machine) -> list[UUID]:
        """A gate of the next site on the way to the nearest site of the destination."""
        table = self.table(source)
        ways = [table[site] for site in destination.sites if site in table]
        if not ways:
            return []
        next_site = UUID(bytes_le=min(ways).next_site)
        between = [
            link
            for link in self.usable
            for ends in ((link.one, link.other), (link.other, link.one))
            if ends[1] == next_site and ends[0] in self.roots(source)
        ]
        cheapest = min(link.cost for link in between)
        gates = self.gates(next_site)
        on_link = [gate for gate in gates if any(gate in link.gates for link in between if link.cost == cheapest)]
        return (on_link or gates)[:1]


def share_site(one: Machine, other: Machine) -> bool:
    """Whether two machines belong to the same site."""
    return any(site in other.sites for site in one.sites)


def without(source: Machine, hops: list[UUID]) -> list[UUID]:
    """The hops without the source, each once."""
    return [hop for place, hop in enumerate(hops) if hop != source.id and hop not in hops[:place]]
