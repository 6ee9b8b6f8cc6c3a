"""The sites, links and routing servers that a router has read from a directory ([MS-MQBR] 3.1.5.9)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from msmqwire.directory import (
    Directory,
    DirectoryObject,
    Equal,
    Filter,
    QueueManager,
    RoutingLink,
    Site,
    site_gates,
)
from msmqwire.errors import DirectoryError
from msmqwire.routing.graph import SiteGraph
from msmqwire.routing.table import RoutingTable

__all__ = ["Topology", "get_directory_data", "read_queue_manager"]

Element = TypeVar("Element", bound=DirectoryObject)

#: The attributes that routing needs; others are not read.
_SITE = ("identifier", "name")
_ROUTING_LINK = ("identifier", "actual_cost", "site1_identifier", "site2_identifier", "site_gate_identifier_list")
_QUEUE_MANAGER = (
    "identifier",
    "computer_name",
    "routing_server",
    "site_identifier_list",
    "out_routing_server_identifier_list",
    "in_routing_server_identifier_list",
)


def get_directory_data(
    directory: Directory, element: type[Element], filters: Iterable[Filter] | None = None
) -> list[Element] | None:
    """GetDirectoryData: the objects that meet all filters, None if there are none or the directory fails.

    No filters and None are the same ([MS-MQBR] 3.1.5.9).
    """
    try:
        return _read(directory, element, filters) or None
    except DirectoryError:
        return None


def read_queue_manager(directory: Directory, identifier: UUID) -> QueueManager | None:
    """The queue manager with this Identifier, None if there is none.

    Raises
    ------
    DirectoryError
        The directory fails.
    """
    found = _read(directory, QueueManager, [Equal("identifier", identifier)], _QUEUE_MANAGER)
    return found[0] if found else None


def _read(
    directory: Directory,
    element: type[Element],
    filters: Iterable[Filter] | None = None,
    attributes: Iterable[str] | None = None,
) -> list[Element]:
    handle = directory.read_directory_begin(element, filters, attributes)
    objects: list[Any] = []
    try:
        while (found := directory.read_directory_next(handle)) is not None:
            objects.append(found)
    finally:
        # The specification ignores the result as well
        with contextlib.suppress(DirectoryError):
            directory.read_directory_end(handle)
    return objects


NO_TABLE = RoutingTable(SiteGraph((), ()))


class Topology:
    """The sites and links of an enterprise, and its routing servers.

    Attributes
    ----------
    sites, links, routing_servers : sequences
        In the order of the directory.
    position : dict
        Position of a site in ``sites``, by its identifier.
    gates : dict
        SiteGateCollection by site, as identifiers, for sites that have gates.
    """

    def __init__(
        self,
        sites: Sequence[Site] = (),
        links: Sequence[RoutingLink] = (),
        routing_servers: Sequence[QueueManager] = (),
        other_gates: Iterable[QueueManager] = (),
    ) -> None:
        self.sites = sites
        self.links = links
        self.routing_servers = routing_servers
        self.position = {site.identifier: place for place, site in enumerate(sites)}
        known = {machine.identifier: machine for machine in (*other_gates, *routing_servers)}
        self.gates = {
            site: tuple(gate.identifier for gate in gates)
            for site, gates in site_gates(links, known).items()
            if site in self.position
        }
        self._roots: dict[UUID, tuple[UUID, ...]] = {}
        self._tables: dict[tuple[UUID, ...], RoutingTable] = {}
        self._ahead: dict[tuple[UUID, tuple[UUID, ...]], UUID | None] = {}

    @classmethod
    def read(cls, directory: Directory) -> Topology:
        """Read the topology.

        Raises
        ------
        DirectoryError
            The directory fails.
        """
        sites = _read(directory, Site, attributes=_SITE)
        links = _read(directory, RoutingLink, attributes=_ROUTING_LINK)
        servers = _read(directory, QueueManager, [Equal("routing_server", True)], _QUEUE_MANAGER)
        named = {identifier for link in links for identifier in link.site_gate_identifier_list}
        unread = named.difference(server.identifier for server in servers)
        others = (read_queue_manager(directory, identifier) for identifier in unread)
        return cls(sites, links, servers, [each for each in others if each is not None])

    @cached_property
    def graph(self) -> SiteGraph:
        """The sites and links as a graph; raises RoutingError."""
        return SiteGraph(self.sites, self.links)

    @cached_property
    def site_routing_server(self) -> dict[UUID, tuple[int, UUID]]:
        """The first routing server of each site: its position among all, and its identifier."""
        found: dict[UUID, tuple[int, UUID]] = {}
        for place, server in enumerate(self.routing_servers):
            for site in server.site_identifier_list:
                found.setdefault(site, (place, server.identifier))
        return found

    @cached_property
    def _links_between(self) -> dict[frozenset[UUID], list[RoutingLink]]:
        found: dict[frozenset[UUID], list[RoutingLink]] = {}
        for link in self.links:
            found.setdefault(frozenset((link.site1_identifier, link.site2_identifier)), []).append(link)
        return found

    def sites_of_gate(self, machine: QueueManager) -> tuple[UUID, ...]:
        """The sites of which a routing server is a gate and a member; none for other machines."""
        if not machine.routing_server:
            return ()
        if machine.identifier not in self._roots:
            own = machine.site_identifier_list
            self._roots[machine.identifier] = tuple(s for s in own if machine.identifier in self.gates.get(s, ()))
        return self._roots[machine.identifier]

    def routing_table(self, roots: tuple[UUID, ...]) -> RoutingTable:
        """The routing table of the gates of ``roots``, computed on first use; raises RoutingError."""
        if roots not in self._tables:
            self._tables[roots] = RoutingTable(self.graph, roots) if roots else NO_TABLE
        return self._tables[roots]

    def gate_of(self, site_id: UUID, from_sites: tuple[UUID, ...]) -> UUID | None:
        """A gate of a site, preferably on the cheapest link from other sites."""
        key = site_id, from_sites
        if key not in self._ahead:
            gates = self.gates.get(site_id, ())
            links = self._cheapest_links(from_sites, site_id)
            preferred = {identifier for link in links for identifier in link.site_gate_identifier_list}
            self._ahead[key] = next((gate for gate in gates if gate in preferred), gates[0] if gates else None)
        return self._ahead[key]

    def _cheapest_links(self, site_ids: Iterable[UUID], neighbour_id: UUID) -> list[RoutingLink]:
        """The cheapest links between any of the sites and a neighbour."""
        links = [link for site in site_ids for link in self._links_between.get(frozenset((site, neighbour_id)), ())]
        least = min((link.actual_cost for link in links), default=0)
        return [link for link in links if link.actual_cost == least]
