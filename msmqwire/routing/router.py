"""The next hops of a message: the functions of [MS-MQBR] 3.1.5, under their names."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from msmqwire.directory import Directory, Filter, QueueManager
from msmqwire.errors import DirectoryError, RoutingError
from msmqwire.routing.table import RoutingTable, RoutingTableRow
from msmqwire.routing.topology import Element, Topology, get_directory_data, read_queue_manager

__all__ = ["QUERY_INTERVAL", "NextHops", "Router", "Rule"]

#: Seconds between two readings of the directory: the QueueManager Query Timer ([MS-MQBR] 3.1.3).
QUERY_INTERVAL = 3600.0

_ANSWERS_KEPT = 1 << 18


class Rule(enum.StrEnum):
    """The rule that selects the next hops."""

    OUT_ROUTING_SERVER = "out_routing_server"
    IN_ROUTING_SERVER = "in_routing_server"
    IN_ROUTED = "in_routed"
    DIRECT = "direct"
    ROUTING_SERVER = "routing_server"
    SITE_GATE = "site_gate"
    NEXT_SITE = "next_site"


@dataclass(frozen=True, slots=True)
class NextHops:
    """The queue managers that may take a message next, and why they.

    Attributes
    ----------
    rule : Rule
        The rule that selected them.
    identifiers : tuple of UUID
        The queue managers, best first; empty if there is no route.
    row : RoutingTableRow or None
        With ``Rule.NEXT_SITE``, the row of the routing table that names the next site.
    """

    rule: Rule
    identifiers: tuple[UUID, ...]
    row: RoutingTableRow | None = None


class Router:
    """The routing of an enterprise, from the view of any of its queue managers.

    Data of the directory is read once and kept for ``query_interval`` seconds. A failed read is repeated on next use.

    Attributes
    ----------
    wait_until : float
        When to call :meth:`tick`, on the clock of the caller.
    failure : DirectoryError or None
        The last failure to read the directory.
    """

    def __init__(
        self, directory: Directory, *, now: float = 0.0, query_interval: float = QUERY_INTERVAL, literal: bool = False
    ) -> None:
        """Make a router; the directory is read on first use.

        Parameters
        ----------
        now : float
            The time in seconds of a monotonic clock.
        literal : bool
            Find no gate if the first site of a machine has none, as [MS-MQBR] 3.1.5.6 says, instead of searching its
            other sites.
        """
        self._directory = directory
        self._query_interval = query_interval
        self._literal = literal
        self.initialize(now)

    def initialize(self, now: float) -> None:
        """Initialize: discard all data, and start the QueueManager Query Timer ([MS-MQBR] 3.1.3)."""
        self.wait_until = now + self._query_interval
        self.failure: DirectoryError | None = None
        self._topology: Topology | None = None
        self._machines: dict[UUID, QueueManager] = {}
        self._kept = lru_cache(_ANSWERS_KEPT)(self._explain)

    def tick(self, now: float) -> float:
        """Initialize if the timer has expired ([MS-MQBR] 3.1.6.1), and return when to call again."""
        if now >= self.wait_until:
            self.initialize(now)
        return self.wait_until

    def routing_table(self, machine_id: UUID) -> RoutingTable:
        """The routing table of a queue manager; empty if it is not a site gate ([MS-MQBR] 3.1.3.1).

        Raises
        ------
        RoutingError
            The ActualCost of a link is not valid, or scipy is not installed.
        """
        machine = self.get_queue_manager(machine_id)
        return self._known.routing_table(() if machine is None else self._known.sites_of_gate(machine))

    def get_next_hops(self, source_id: UUID, destination_id: UUID) -> tuple[UUID, ...]:
        """GetNextHops: the queue managers to which a source may send a message for a destination ([MS-MQBR] 3.1.5.1).

        Raises
        ------
        RoutingError
            The routing attempt fails; the message names the object and what it lacks.
        """
        return self._kept(source_id, destination_id).identifiers

    def explain_next_hops(self, source_id: UUID, destination_id: UUID) -> NextHops:
        """The next hops with the rule that selected them.

        Raises
        ------
        RoutingError
            As :meth:`get_next_hops`.
        """
        return self._kept(source_id, destination_id)

    def get_next_hops_for_router(self, source: QueueManager, destination: QueueManager) -> tuple[UUID, ...]:
        """GetNextHopsForRouter: the next hops of a routing server, or none ([MS-MQBR] 3.1.5.2)."""
        return self._for_router(source, destination).identifiers

    def get_next_hops_for_site_gate(self, source: QueueManager, destination: QueueManager) -> tuple[UUID, ...]:
        """GetNextHopsForSiteGate: the next hops of a site gate, or none ([MS-MQBR] 3.1.5.3)."""
        return self._for_site_gate(source, destination, self._known.sites_of_gate(source)).identifiers

    def get_queue_manager(self, machine_id: UUID) -> QueueManager | None:
        """GetQueueManager: the queue manager with this Identifier, None if there is none ([MS-MQBR] 3.1.5.4)."""
        machine = self._machines.get(machine_id)
        if machine is None:
            try:
                machine = read_queue_manager(self._directory, machine_id)
            except DirectoryError as error:
                self.failure = error
            if machine is not None:
                self._machines[machine_id] = machine
        return machine

    def get_routing_server(self, machine_id: UUID) -> UUID | None:
        """GetRoutingServer: the first routing server that shares a site with a machine ([MS-MQBR] 3.1.5.5)."""
        machine = self.get_queue_manager(machine_id)
        return None if machine is None else self._routing_server(machine)

    def get_site_gate(self, machine_id: UUID) -> UUID | None:
        """GetSiteGate: a gate of the first site of a machine that has one ([MS-MQBR] 3.1.5.6)."""
        machine = self.get_queue_manager(machine_id)
        return None if machine is None else self._site_gate(machine)

    def get_site_gate_for_site(self, site_id: UUID, from_sites: Iterable[UUID] = ()) -> UUID | None:
        """GetSiteGateForSite: a gate of a site, None if it has none ([MS-MQBR] 3.1.5.7).

        A gate on the cheapest link from any of ``from_sites`` is preferred.
        """
        return self._known.gate_of(site_id, tuple(from_sites))

    def is_site_gate(self, machine_id: UUID) -> bool:
        """IsSiteGate: whether a machine is a routing server and a gate of one of its sites ([MS-MQBR] 3.1.5.8)."""
        machine = self.get_queue_manager(machine_id)
        return machine is not None and bool(self._known.sites_of_gate(machine))

    def get_directory_data(
        self, element: type[Element], filters: Iterable[Filter] | None = None
    ) -> list[Element] | None:
        """GetDirectoryData: objects read from the directory now, None if there are none ([MS-MQBR] 3.1.5.9)."""
        return get_directory_data(self._directory, element, filters)

    @property
    def _known(self) -> Topology:
        if self._topology is None:
            try:
                self._topology = Topology.read(self._directory)
            except DirectoryError as error:
                self.failure = error
                return Topology()
        return self._topology

    def _explain(self, source_id: UUID, destination_id: UUID) -> NextHops:
        self.failure = None
        source, destination = self.get_queue_manager(source_id), self.get_queue_manager(destination_id)
        if source is None or destination is None:
            unknown = source_id if source is None else destination_id
            raise self._failed(f"no QueueManager has the Identifier {unknown}")
        for_source = self._for_router if source.routing_server else self._for_other
        found = for_source(source, destination)
        if not found.identifiers:
            raise self._failed(self._why_not(source, destination, found))
        return found

    def _for_other(self, source: QueueManager, destination: QueueManager) -> NextHops:
        if source.out_routing_server_identifier_list:
            rule, hops = Rule.OUT_ROUTING_SERVER, source.out_routing_server_identifier_list
        elif _share_site(source, destination):
            rule, hops = _in_shared_site(destination)
        else:
            server = self._routing_server(source)
            rule, hops = Rule.ROUTING_SERVER, () if server is None else (server,)
        others = _without(source, hops)
        if hops and not others:
            return NextHops(Rule.DIRECT, _without(source, (destination.identifier,)))
        return NextHops(rule, others)

    def _for_router(self, source: QueueManager, destination: QueueManager) -> NextHops:
        if roots := self._known.sites_of_gate(source):
            return self._for_site_gate(source, destination, roots)
        if (near := _nearby(source, destination)) is not None:
            return near
        gate = self._site_gate(source)
        return NextHops(Rule.SITE_GATE, () if gate is None else _without(source, (gate,)))

    def _for_site_gate(self, source: QueueManager, destination: QueueManager, roots: tuple[UUID, ...]) -> NextHops:
        if (near := _nearby(source, destination)) is not None:
            return near
        row = self._known.routing_table(roots).nearest(destination.site_identifier_list)
        gate = None if row is None else self._known.gate_of(row.next_hop_site_id, roots)
        return NextHops(Rule.NEXT_SITE, () if gate is None else _without(source, (gate,)), row)

    def _routing_server(self, machine: QueueManager) -> UUID | None:
        by_site = self._known.site_routing_server
        found = (by_site[site] for site in machine.site_identifier_list if site in by_site)
        return min(found, default=(0, None))[1]

    def _site_gate(self, machine: QueueManager) -> UUID | None:
        known = self._known
        sites = sorted(known.position.keys() & set(machine.site_identifier_list), key=known.position.__getitem__)
        gates = [known.gates.get(site, ()) for site in sites]
        if self._literal:
            del gates[1:]
        return next((each[0] for each in gates if each), None)

    def _failed(self, why: str) -> RoutingError:
        if self.failure is None:
            return RoutingError(why)
        failed = RoutingError(f"{why}: the directory cannot be read: {self.failure}")
        failed.__cause__ = self.failure
        return failed

    def _why_not(self, source: QueueManager, destination: QueueManager, found: NextHops) -> str:
        """Why there is no next hop."""
        if source.identifier == destination.identifier:
            return f"{_name(source)} is both source and destination"
        if not source.site_identifier_list:
            return f"{_name(source)} belongs to no site: its SiteIdentifierList is empty"
        if found.rule is Rule.ROUTING_SERVER:
            return f"{_name(source)} shares no site with {_name(destination)}, and its own sites have no routing server"
        if found.rule is Rule.SITE_GATE:
            return f"{_name(source)} shares no site with {_name(destination)}, and its own sites have no site gate"
        if not destination.site_identifier_list:
            return f"{_name(destination)} belongs to no site: its SiteIdentifierList is empty"
        if found.row is None:
            return f"no RoutingLinks connect the sites of {_name(source)} to a site of {_name(destination)}"
        return f"Site {found.row.next_hop_site_id}, the next site from {_name(source)}, has no site gate"


def _name(machine: QueueManager) -> str:
    return f"QueueManager {machine.computer_name} ({machine.identifier})"


def _share_site(one: QueueManager, other: QueueManager) -> bool:
    return not set(one.site_identifier_list).isdisjoint(other.site_identifier_list)


def _nearby(source: QueueManager, destination: QueueManager) -> NextHops | None:
    """The next hops of a routing server to a destination that it serves or shares a site with."""
    if source.identifier in destination.in_routing_server_identifier_list:
        return NextHops(Rule.IN_ROUTED, _without(source, (destination.identifier,)))
    if _share_site(source, destination):
        rule, hops = _in_shared_site(destination)
        return NextHops(rule, _without(source, hops))
    return None


def _in_shared_site(destination: QueueManager) -> tuple[Rule, tuple[UUID, ...]]:
    if destination.in_routing_server_identifier_list:
        return Rule.IN_ROUTING_SERVER, destination.in_routing_server_identifier_list
    return Rule.DIRECT, (destination.identifier,)


def _without(source: QueueManager, hops: Iterable[UUID]) -> tuple[UUID, ...]:
    """The hops, each once, without the source itself."""
    return tuple(hop for hop in dict.fromkeys(hops) if hop != source.identifier)
