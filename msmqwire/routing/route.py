"""The route of a message through an enterprise: all hops to its destination."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from msmqwire.directory import QueueManager
from msmqwire.errors import RoutingError
from msmqwire.routing.router import NextHops, Router, Rule
from msmqwire.routing.topology import identifier_of

#: The attribute that the identifiers of a rule come from, without a check that the queue managers exist.
_NAMED_BY = {
    Rule.OUT_ROUTING_SERVER: "OutRoutingServerIdentifierList",
    Rule.IN_ROUTING_SERVER: "InRoutingServerIdentifierList",
}


@dataclass(frozen=True, slots=True)
class Hop:
    """A step of a route, from one queue manager to the next.

    Attributes
    ----------
    source, target : QueueManager
        The queue manager that sends and the one that receives. The name to connect to is ``qualified_computer_name``,
        empty if the directory has none.
    rule : Rule
        The rule that selected the target.
    others : tuple of QueueManager
        The other possible targets.
    site_id : UUID or None
        The next site, with ``Rule.NEXT_SITE``.
    cost : int
        ActualCost of the link to that site; 0 with other rules.
    """

    source: QueueManager
    target: QueueManager
    rule: Rule
    others: tuple[QueueManager, ...] = ()
    site_id: UUID | None = None
    cost: int = 0


@dataclass(frozen=True, slots=True)
class Route:
    """The hops from one queue manager to another, in order."""

    hops: tuple[Hop, ...]

    @property
    def cost(self) -> int:
        """The sum of the costs of the hops."""
        return sum(hop.cost for hop in self.hops)


def find_route(router: Router, source_id: UUID | str, destination_id: UUID | str) -> Route:
    """Follow the next hops from one queue manager to another, each named as for Router.get_next_hops.

    Of several next hops, the route takes the first that the directory has.

    Raises
    ------
    RoutingError
        A queue manager on the route has no next hop, the directory has none of its next hops or cannot be read, or the
        route is a loop.
    """
    source_id, destination_id = _identifier(router, source_id), _identifier(router, destination_id)
    hops: list[Hop] = []
    passed = {source_id}
    here = source_id
    while here != destination_id or not hops:
        hop = _hop(router, here, router.explain_next_hops(here, destination_id))
        hops.append(hop)
        here = hop.target.identifier
        if here in passed and here != destination_id:
            names = [each.source.computer_name for each in hops]
            raise RoutingError(f"the route is a loop: {' → '.join([*names, hop.target.computer_name])}")
        passed.add(here)
    return Route(tuple(hops))


def _identifier(router: Router, machine_id: UUID | str) -> UUID:
    identifier = identifier_of(machine_id)
    if identifier is not None:
        return identifier
    machine = router.get_queue_manager(machine_id)
    if machine is None:
        raise router.unknown(machine_id)
    return machine.identifier


def _hop(router: Router, source_id: UUID, found: NextHops) -> Hop:
    source = _queue_manager(router, source_id)
    targets = [machine for each in found.identifiers if (machine := _queue_manager(router, each)) is not None]
    if source is None:
        raise router.unknown(source_id)
    if not targets:
        attribute = _NAMED_BY.get(found.rule, "SiteGateIdentifierList")
        raise RoutingError(
            f"QueueManager {source.computer_name} ({source_id}) has no next hop: {attribute} names "
            f"{', '.join(map(str, found.identifiers))}, and there is no such QueueManager"
        )
    others = tuple(targets[1:])
    if found.row is None:
        return Hop(source, targets[0], found.rule, others)
    # The next site is a neighbour, so its own row has the cost of the link
    site_id = found.row.next_hop_site_id
    row = router.routing_table(source_id).row(site_id)
    if row is None:
        raise RoutingError(
            f"QueueManager {source.computer_name} ({source_id}) has no path to Site {site_id} any more: "
            "the directory has changed"
        )
    return Hop(source, targets[0], found.rule, others, site_id, row.cost)


def _queue_manager(router: Router, identifier: UUID) -> QueueManager | None:
    """The queue manager, None if the directory has none; RoutingError if the directory cannot be read."""
    machine = router.get_queue_manager(identifier)
    if machine is None and router.failure is not None:
        raise router.unknown(identifier)
    return machine
