"""The routing table of a site gate: the next site on a least-cost path to each site ([MS-MQBR] 3.1.3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from msmqwire.errors import RoutingError, missing
from msmqwire.routing.graph import SiteGraph

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]

_EXACT = 2**53  # doubles represent all integers below this


class RoutingTableRow(NamedTuple):
    """A row of a routing table ([MS-MQBR] 3.1.1.2), with the cost of the path.

    Attributes
    ----------
    destination_site_id, next_hop_site_id : UUID
        A site, and the first site on the path to it after the gate's own.
    cost : int
        The sum of the ActualCost of the links on the path.
    hops : int
        The number of links on the path.
    """

    destination_site_id: UUID
    next_hop_site_id: UUID
    cost: int
    hops: int

    @property
    def order(self) -> tuple[int, int, bytes]:
        """The sort key of paths: cost, then hops, then the bytes of the next site's GUID on the wire."""
        return self.cost, self.hops, self.next_hop_site_id.bytes_le


class RoutingTable(Mapping[UUID, UUID]):
    """Next site by destination site, for a gate of the sites ``roots``.

    Paths have the least cost; among equal costs the fewest links, then the next site with the lowest GUID bytes. Each
    root is its own next site; an unreachable site has no row. Without roots or routing links the table is empty.
    """

    def __init__(self, graph: SiteGraph, roots: Iterable[UUID] = ()) -> None:
        """Find the paths.

        Raises
        ------
        RoutingError
            A root is not a site of the graph, scipy is not installed, or the cost of a path is too high to compute
            exactly, which takes more than 90,000 links.
        """
        self._index = graph.index
        self._sites = graph.sites
        towards, cost, hops = (np.full(len(graph.sites), -1, np.int64) for _ in range(3))
        own = sorted({_place(graph, root) for root in roots})
        if own and graph.has_links:
            towards, cost, hops = _least_cost_tree(graph, np.array(own, np.int64))
            towards[own], cost[own], hops[own] = own, 0, 0
        self._next: list[int] = towards.tolist()
        self._cost: list[int] = cost.tolist()
        self._hops: list[int] = hops.tolist()

    def __getitem__(self, destination_site_id: UUID) -> UUID:
        row = self.row(destination_site_id)
        if row is None:
            raise KeyError(destination_site_id)
        return row.next_hop_site_id

    def __iter__(self) -> Iterator[UUID]:
        return (site for site, place in zip(self._sites, self._next, strict=True) if place >= 0)

    def __len__(self) -> int:
        return len(self._next) - self._next.count(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows)"

    def row(self, destination_site_id: UUID) -> RoutingTableRow | None:
        """The row of a site, or None."""
        # Any key can be looked up in a mapping
        place = self._index.get(getattr(destination_site_id, "int", -1), -1)
        if place < 0 or self._next[place] < 0:
            return None
        return RoutingTableRow(self._sites[place], self._sites[self._next[place]], self._cost[place], self._hops[place])

    def rows(self) -> list[RoutingTableRow]:
        """All rows, in the order of the sites in the directory."""
        return [row for site in self._sites if (row := self.row(site)) is not None]

    def nearest(self, site_ids: Iterable[UUID]) -> RoutingTableRow | None:
        """The row of the nearest of several sites, None if no site has a row."""
        rows = [row for site in site_ids if (row := self.row(site)) is not None]
        return min(rows, key=attrgetter("order")) if len(rows) > 1 else next(iter(rows), None)


def _place(graph: SiteGraph, root: UUID) -> int:
    place = graph.index.get(root.int)
    if place is None:
        raise RoutingError(f"no Site has the Identifier {root}")
    return place


def _least_cost_tree(graph: SiteGraph, roots: _Integers) -> tuple[_Integers, _Integers, _Integers]:
    """The next site, the cost and the number of hops for every site; -1 for a site without a path.

    Arc lengths combine cost and hops: all hops of a path weigh less than a cost of 1, so one search orders paths by
    both, and no length is 0, which a sparse matrix cannot store.
    """
    count = len(graph.sites)
    length = graph.cost.astype(np.float64) * count + 1
    distance = _distances(graph.source, graph.target, length, roots, count)
    is_root = np.zeros(count, bool)
    is_root[roots] = True
    reached = np.flatnonzero(np.isfinite(distance) & ~is_root)
    if distance[reached].max(initial=0) >= _EXACT:
        raise RoutingError("the ActualCosts on a path add up to more than 2**53")
    # Ties remain among the arcs of best paths. A second search gives all these arcs one length, but makes the first arc
    # of a path longer by the rank of its site, so the shortest path is the one whose next site ranks first.
    best = np.flatnonzero(distance[graph.source] + length == distance[graph.target])
    source, target = graph.source[best], graph.target[best]
    neighbours = set(target[is_root[source]].tolist())
    ranked = np.array(sorted(neighbours, key=lambda place: graph.sites[place].bytes_le), np.int64)
    rank = np.zeros(count)
    rank[ranked] = np.arange(len(ranked))
    ranks = float(max(len(ranked), 1))
    tie = _distances(source, target, np.where(is_root[source], ranks + rank[target], ranks), roots, count)
    towards, cost, hops = (np.full(count, -1, np.int64) for _ in range(3))
    towards[reached] = ranked[(tie[reached] % ranks).astype(np.int64)]
    cost[reached], hops[reached] = np.divmod(distance[reached].astype(np.int64), count)
    return towards, cost, hops


def _distances(source: _Integers, target: _Integers, length: _Floats, roots: _Integers, count: int) -> _Floats:
    """The length of the shortest path from any root to each vertex; arcs are ordered by source."""
    sparse, dijkstra = _scipy()
    starts = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(source, minlength=count), out=starts[1:])
    matrix = sparse.csr_array((length, target.astype(np.int32), starts), shape=(count, count))
    distances: _Floats = dijkstra(matrix, indices=roots, min_only=True)
    return distances


@cache
def _scipy() -> tuple[Any, Any]:
    try:
        return import_module("scipy.sparse"), import_module("scipy.sparse.csgraph").dijkstra
    except ImportError:
        raise RoutingError(missing("scipy", "routing between sites")) from None
