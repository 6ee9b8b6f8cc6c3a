"""The sites of an enterprise and their links as a weighted graph ([MS-MQBR] 3.1.3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from msmqwire.directory import RoutingLink, Site
from msmqwire.directory.elements import HIGHEST_COST
from msmqwire.errors import RoutingError

# An arc is packed into one number: two site positions and a cost in 63 bits
_COST_BITS = HIGHEST_COST.bit_length()
_PLACE_BITS = (63 - _COST_BITS) // 2


class SiteGraph:
    """Sites, and for each routing link an arc in each direction.

    Of parallel links only the cheapest counts. Links from a site to itself or to an unknown site are left out.

    Attributes
    ----------
    sites : list of UUID
        Identifiers, in the order of the directory.
    index : dict
        Position in ``sites`` by ``UUID.int``, a dictionary key four times as fast as the UUID.
    has_links : bool
        Whether there are routing links, including those left out.
    source, target, cost : ndarray of int64
        The arcs, ordered by source and target; positions in ``sites``.
    """

    def __init__(self, sites: Iterable[Site], links: Sequence[RoutingLink]) -> None:
        """Build the graph.

        Raises
        ------
        RoutingError
            The ActualCost of a link is not an integer from 0 to 999,999, or there are more than two million sites.
        """
        by_number = {site.int: site for site in map(attrgetter("identifier"), sites)}
        self.sites: list[UUID] = list(by_number.values())
        if len(self.sites) > 1 << _PLACE_BITS:
            raise RoutingError(f"{len(self.sites):,} Sites: more than {1 << _PLACE_BITS:,}")
        self.index = {number: place for place, number in enumerate(by_number)}
        self.has_links = bool(links)
        one, other = (self._places(links, end) for end in ("site1_identifier", "site2_identifier"))
        cost = _costs(links)
        leads = (one >= 0) & (other >= 0) & (one != other)
        one, other, cost = one[leads], other[leads], cost[leads]
        # Sorted as numbers, arcs between the same sites are ordered by cost.
        pairs = np.concatenate((one << _PLACE_BITS | other, other << _PLACE_BITS | one))
        arcs = np.sort(pairs << _COST_BITS | np.concatenate((cost, cost)))
        pairs = arcs >> _COST_BITS
        cheapest = np.flatnonzero(np.diff(pairs, prepend=-1))
        pairs = pairs[cheapest]
        self.source: NDArray[np.int64] = pairs >> _PLACE_BITS
        self.target: NDArray[np.int64] = pairs & ((1 << _PLACE_BITS) - 1)
        self.cost: NDArray[np.int64] = arcs[cheapest] & ((1 << _COST_BITS) - 1)

    def _places(self, links: Sequence[RoutingLink], end: str) -> NDArray[np.int64]:
        """The position of the site at one end of every link, -1 for an unknown site."""
        numbers = map(attrgetter(f"{end}.int"), links)
        return np.fromiter(map(self.index.get, numbers, repeat(-1)), np.int64, len(links))


def _costs(links: Sequence[RoutingLink]) -> NDArray[np.int64]:
    costs = list(map(attrgetter("actual_cost"), links))
    # Types are checked first: numpy would accept "7", True and 7.5. A cost may be 0: weights are "nonnegative"
    # ([MS-MQBR] 1.3.3).
    if set(map(type, costs)) <= {int} and min(costs, default=0) >= 0 and max(costs, default=0) <= HIGHEST_COST:
        return np.array(costs, np.int64)
    wrong = next(each for each, cost in zip(links, costs, strict=True) if not _is_cost(cost))
    raise RoutingError(
        f"RoutingLink {wrong.identifier}: "
        f"ActualCost is {wrong.actual_cost!r}, not an integer from 0 to {HIGHEST_COST:,}"
    )


def _is_cost(value: object) -> bool:
    return type(value) is int and 0 <= value <= HIGHEST_COST
