"""Enterprises to route in (seeded), and Dijkstra's algorithm as one writes it in Python."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from uuid import UUID

from msmqwire.directory import MemoryDirectory, QueueManager, RoutingLink, Site

#: NextHopSiteID by DestinationSiteID.
Table = dict[UUID, UUID]
#: For each site the neighbours and what it costs to get there.
Arcs = list[list[tuple[int, int]]]


@dataclass(frozen=True)
class Routes:
    """Sites and links between them, a gate in each site, and machines that send and receive."""

    sites: list[Site]
    links: list[RoutingLink]
    gates: list[QueueManager]
    machines: list[QueueManager]

    @property
    def directory(self) -> MemoryDirectory:
        """All of it, to ask."""
        return MemoryDirectory([*self.sites, *self.links, *self.gates, *self.machines])


def routes(sites: int, links: int, machines: int, seed: int = 20240304) -> Routes:
    """An enterprise whose sites can all be reached: links make a tree, and then lead anywhere."""
    rng = random.Random(seed)

    def guid() -> UUID:
        return UUID(int=rng.getrandbits(128))

    names = [Site(identifier=guid(), name=f"site{place}") for place in range(sites)]
    gates = [
        QueueManager(
            identifier=guid(),
            computer_name=f"gate{place}",
            site_identifier_list=(site.identifier,),
            routing_server=True,
        )
        for place, site in enumerate(names)
    ]
    ends = [(place, rng.randrange(place)) for place in range(1, sites)]
    ends += [(rng.randrange(sites), rng.randrange(sites)) for _ in range(links - len(ends))]
    rng.shuffle(ends)
    made = [
        RoutingLink(
            identifier=guid(),
            actual_cost=rng.randint(1, 100),
            site1_identifier=names[one].identifier,
            site2_identifier=names[other].identifier,
            site_gate_identifier_list=(gates[one].identifier, gates[other].identifier),
        )
        for one, other in ends
    ]
    hosts = [
        QueueManager(
            identifier=guid(),
            computer_name=f"machine{place}",
            site_identifier_list=(rng.choice(names).identifier,),
        )
        for place in range(machines)
    ]
    return Routes(names, made, gates, hosts)


def search_by_guid(work: Routes) -> Table:
    """A search from the first site, over the GUIDs as they are in the directory."""
    arcs: dict[UUID, list[tuple[UUID, int]]] = {site.identifier: [] for site in work.sites}
    for link in work.links:
        arcs[link.site1_identifier].append((link.site2_identifier, link.actual_cost))
        arcs[link.site2_identifier].append((link.site1_identifier, link.actual_cost))
    root = work.sites[0].identifier
    waiting = [(0, 0, b"", root, root)]
    table: Table = {}
    while waiting:
        cost, hops, order, here, first = heapq.heappop(waiting)
        if here in table:
            continue
        table[here] = first
        for there, more in arcs[here]:
            if there not in table:
                if here == root:
                    heapq.heappush(waiting, (more, 1, there.bytes_le, there, there))
                else:
                    heapq.heappush(waiting, (cost + more, hops + 1, order, there, first))
    return table


def read_arcs(work: Routes) -> Arcs:
    """The links as lists of integers, which Python is much faster with."""
    index = {site.identifier.int: place for place, site in enumerate(work.sites)}
    arcs: Arcs = [[] for _ in work.sites]
    for link in work.links:
        one, other = index[link.site1_identifier.int], index[link.site2_identifier.int]
        arcs[one].append((other, link.actual_cost))
        arcs[other].append((one, link.actual_cost))
    return arcs


def search(arcs: Arcs, sites: list[Site]) -> list[int]:
    """A search from the first site that puts nothing on the heap that cannot be of use; the next site of each."""
    nearest = [(1 << 60, 0, b"")] * len(arcs)
    towards = [-1] * len(arcs)
    done = [False] * len(arcs)
    nearest[0], towards[0] = (0, 0, b""), 0
    waiting = [(0, 0, b"", 0)]
    while waiting:
        cost, hops, order, here = heapq.heappop(waiting)
        if done[here]:
            continue
        done[here] = True
        for there, more in arcs[here]:
            if not done[there]:
                way = (cost + more, hops + 1, order if here else sites[there].identifier.bytes_le)
                if way < nearest[there]:
                    nearest[there] = way
                    towards[there] = towards[here] if here else there
                    heapq.heappush(waiting, (*way, there))
    return towards


def table_of(towards: list[int], sites: list[Site]) -> Table:
    """Places as identifiers, to compare answers."""
    return {sites[place].identifier: sites[first].identifier for place, first in enumerate(towards)}
