"""The next hops of a message: the functions of [MS-MQBR] 3.1.5, under their names."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from msmqwire.directory import Directory, Filter, QueueManager
from msmqwire.errors import DirectoryError, RoutingError
from msmqwire.routing.graph import SiteGraph
from msmqwire.routing.table import RoutingTable, RoutingTableRow
from msmqwire.routing.topology import Element, Topology, identifier_of, read

#: Seconds for which a routing table is kept: the QueueManager Query Timer ([MS-MQBR] 3.1.3).
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

    Routing tables are kept for ``query_interval`` seconds. All other data is read from the directory each time a rule
    needs it, unless ``max_age`` allows to keep it.

    Attributes
    ----------
    wait_until : float
        When to call :meth:`tick`, on the clock of the caller.
    """

    def __init__(
        self,
        directory: Directory,
        *,
        now: float = 0.0,
        query_interval: float = QUERY_INTERVAL,
        max_age: float = 0.0,
        literal: bool = False,
    ) -> None:
        """Make a router; the directory is read on first use.

        Parameters
        ----------
        now : float
            The time in seconds of a monotonic clock.
        query_interval : float
            Seconds until a routing table is computed again.
        max_age : float
            Seconds for which objects of the directory and next hops are cached, by the clock of :meth:`tick`; 0 for no
            cache.
        literal : bool
            Find no gate if the first site of a machine has none, as [MS-MQBR] 3.1.5.6 says, instead of searching its
            other sites.
        """
        self._directory = directory
        self._query_interval = query_interval
        self._max_age = max_age
        self._literal = literal
        self.initialize(now)

    def initialize(self, now: float) -> None:
        """Initialize: discard all data, and start the QueueManager Query Timer ([MS-MQBR] 3.1.3)."""
        self._tables_until = now + self._query_interval
        self._graph: SiteGraph | None = None
        self._tables: dict[tuple[UUID, ...], RoutingTable] = {}
        self._forget(now)

    def tick(self, now: float) -> float:
        """Discard expired tables ([MS-MQBR] 3.1.6.1) and cached objects, and return when to call again."""
        if now >= self._tables_until:
            self.initialize(now)
        elif now >= self.wait_until:
            self._forget(now)
        return self.wait_until

    def _forget(self, now: float) -> None:
        self.wait_until = min(self._tables_until, now + self._max_age) if self._max_age > 0 else self._tables_until
        self._topology = Topology(self._directory)
        self._kept = lru_cache(_ANSWERS_KEPT)(self._explain)

    def __getstate__(self) -> dict[str, Any]:
        # The cache of answers cannot be pickled
        return {name: value for name, value in self.__dict__.items() if name != "_kept"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self._kept = lru_cache(_ANSWERS_KEPT)(self._explain)

    @property
    def failure(self) -> DirectoryError | None:
        """The last failure to read the directory."""
        return self._topology.failure

    def routing_table(self, machine_id: UUID | str) -> RoutingTable:
        """The routing table of a queue manager; empty if it is not a site gate ([MS-MQBR] 3.1.3.1).

        Raises
        ------
        RoutingError
            There is no such queue manager, the directory cannot be read, the ActualCost of a link is not valid, or
            scipy is not installed.
        """
        known = self._read()
        known.failure = None
        machine = known.queue_manager(machine_id)
        if machine is None:
            raise self.unknown(machine_id)
        table = self._table(known, known.sites_of_gate(machine))
        if known.failure is not None:
            raise self._failed(f"{_name(machine)} has no routing table")
        return table

    def get_next_hops(self, source_id: UUID | str, destination_id: UUID | str) -> tuple[UUID, ...]:
        """GetNextHops: the queue managers to which a source may send a message for a destination ([MS-MQBR] 3.1.5.1).

        Here and in all methods, a machine is named by its Identifier, as a UUID or as text, its ComputerName or its
        QualifiedComputerName.

        Raises
        ------
        RoutingError
            The routing attempt fails; the message names the object and what it lacks.
        """
        return self.explain_next_hops(source_id, destination_id).identifiers

    def explain_next_hops(self, source_id: UUID | str, destination_id: UUID | str) -> NextHops:
        """The next hops with the rule that selected them.

        Raises
        ------
        RoutingError
            As :meth:`get_next_hops`.
        """
        return (self._kept if self._max_age > 0 else self._explain)(source_id, destination_id)

    def get_next_hops_for_router(self, source: QueueManager, destination: QueueManager) -> tuple[UUID, ...]:
        """GetNextHopsForRouter: the next hops of a routing server, or none ([MS-MQBR] 3.1.5.2)."""
        return self._for_router(self._read(), source, destination).identifiers

    def get_next_hops_for_site_gate(self, source: QueueManager, destination: QueueManager) -> tuple[UUID, ...]:
        """GetNextHopsForSiteGate: the next hops of a site gate, or none ([MS-MQBR] 3.1.5.3)."""
        known = self._read()
        return self._for_site_gate(known, source, destination, known.sites_of_gate(source)).identifiers

    def get_queue_manager(self, machine_id: UUID | str) -> QueueManager | None:
        """GetQueueManager: return the queue manager with this Identifier, or None ([MS-MQBR] 3.1.5.4).

        ``qualified_computer_name`` is the name to connect to, empty if the directory has none.
        """
        known = self._read()
        known.failure = None
        return known.to_connect(machine_id)

    def get_routing_server(self, machine_id: UUID | str) -> UUID | None:
        """GetRoutingServer: the first routing server that shares a site with a machine ([MS-MQBR] 3.1.5.5)."""
        known = self._read()
        machine = known.queue_manager(machine_id)
        return None if machine is None else _routing_server(known, machine)

    def get_site_gate(self, machine_id: UUID | str) -> UUID | None:
        """GetSiteGate: a gate of the first site of a machine that has one ([MS-MQBR] 3.1.5.6)."""
        known = self._read()
        machine = known.queue_manager(machine_id)
        return None if machine is None else self._site_gate(known, machine)

    def get_site_gate_for_site(self, site_id: UUID, from_sites: Iterable[UUID] = ()) -> UUID | None:
        """GetSiteGateForSite: a gate of a site, None if it has none ([MS-MQBR] 3.1.5.7).

        A gate on the cheapest link from any of ``from_sites`` is preferred.
        """
        return self._read().gate_of(site_id, tuple(from_sites))

    def is_site_gate(self, machine_id: UUID | str) -> bool:
        """IsSiteGate: whether a machine is a routing server and a gate of one of its sites ([MS-MQBR] 3.1.5.8)."""
        known = self._read()
        machine = known.queue_manager(machine_id)
        return machine is not None and bool(known.sites_of_gate(machine))

    def get_directory_data(
        self, element: type[Element], filters: Iterable[Filter] | None = None
    ) -> list[Element] | None:
        """GetDirectoryData: objects read from the directory now ([MS-MQBR] 3.1.5.9).

        None if there are none or the directory fails; no filters and None are the same.
        """
        try:
            return read(self._directory, element, filters) or None
        except DirectoryError:
            return None

    def _read(self) -> Topology:
        """The directory as one call of a rule sees it; with ``max_age``, as several calls see it."""
        if self._max_age <= 0:
            self._topology = Topology(self._directory)
        return self._topology

    def _table(self, known: Topology, roots: tuple[UUID, ...]) -> RoutingTable:
        """The routing table of the gates of ``roots``, computed on first use; raises RoutingError."""
        if not roots:
            return RoutingTable(SiteGraph((), ()))
        if roots not in self._tables:
            before, known.failure = known.failure, None
            graph = self._graph or known.graph()
            if known.failure is not None:
                return RoutingTable(SiteGraph((), ()))
            known.failure, self._graph = before, graph
            # A site that is newer than the graph has no paths until the graph is read again.
            self._tables[roots] = RoutingTable(graph, [root for root in roots if root.int in graph.index])
        return self._tables[roots]

    def _explain(self, source_id: UUID | str, destination_id: UUID | str) -> NextHops:
        known = self._read()
        known.failure = None
        source, destination = known.queue_manager(source_id), known.queue_manager(destination_id)
        if source is None or destination is None:
            raise self.unknown(source_id if source is None else destination_id)
        for_source = self._for_router if source.routing_server else self._for_other
        found = for_source(known, source, destination)
        if not found.identifiers:
            raise self._failed(self._why_not(source, destination, found))
        return found

    def _for_other(self, known: Topology, source: QueueManager, destination: QueueManager) -> NextHops:
        if source.out_routing_server_identifier_list:
            rule, hops = Rule.OUT_ROUTING_SERVER, source.out_routing_server_identifier_list
        elif _share_site(source, destination):
            rule, hops = _in_shared_site(destination)
        else:
            server = _routing_server(known, source)
            rule, hops = Rule.ROUTING_SERVER, () if server is None else (server,)
        others = _without(source, hops)
        if hops and not others:
            return NextHops(Rule.DIRECT, _without(source, (destination.identifier,)))
        return NextHops(rule, others)

    def _for_router(self, known: Topology, source: QueueManager, destination: QueueManager) -> NextHops:
        if (near := _nearby(source, destination)) is not None:
            return near
        if roots := known.sites_of_gate(source):
            return self._for_site_gate(known, source, destination, roots)
        gate = self._site_gate(known, source)
        return NextHops(Rule.SITE_GATE, () if gate is None else _without(source, (gate,)))

    def _for_site_gate(
        self, known: Topology, source: QueueManager, destination: QueueManager, roots: tuple[UUID, ...]
    ) -> NextHops:
        if (near := _nearby(source, destination)) is not None:
            return near
        row = self._table(known, roots).nearest(destination.site_identifier_list)
        gate = None if row is None else known.gate_of(row.next_hop_site_id, roots)
        return NextHops(Rule.NEXT_SITE, () if gate is None else _without(source, (gate,)), row)

    def _site_gate(self, known: Topology, machine: QueueManager) -> UUID | None:
        position = known.position
        sites = sorted(position.keys() & set(machine.site_identifier_list), key=position.__getitem__)
        gates = (known.gates(site) for site in (sites[:1] if self._literal else sites))
        return next((each[0] for each in gates if each), None)

    def unknown(self, machine_id: UUID | str) -> RoutingError:
        """The error that there is no such queue manager, or that the directory cannot be read."""
        attribute = "ComputerName" if identifier_of(machine_id) is None else "Identifier"
        return self._failed(f"no QueueManager has the {attribute} {machine_id or repr(machine_id)}")

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


def _routing_server(known: Topology, machine: QueueManager) -> UUID | None:
    by_site = known.site_routing_server
    found = [by_site[site] for site in machine.site_identifier_list if site in by_site]
    return min(found)[1] if found else None


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
