"""The sites, links and queue managers that the rules of routing read from a directory ([MS-MQBR] 3.1.5.9)."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial
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
)
from msmqwire.directory.base import InvalidObjectError, comparable, usable
from msmqwire.errors import DirectoryError, RoutingError
from msmqwire.routing.graph import SiteGraph
from msmqwire.wire.guids import guid_of

Element = TypeVar("Element", bound=DirectoryObject)
Value = TypeVar("Value")

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

#: The name to connect to; in Active Directory it is in another object, and may not be set.
_HOST = "qualified_computer_name"


def read_queue_managers(directory: Directory, machine_id: UUID | str) -> list[QueueManager]:
    """The queue managers with this Identifier, ComputerName or QualifiedComputerName.

    Text that is a GUID is an Identifier. Other text is a ComputerName, or if no machine has it and it has a dot, a
    QualifiedComputerName.

    Raises
    ------
    DirectoryError
        The directory fails.
    """
    identifier = identifier_of(machine_id)
    if identifier is not None:
        # Identifiers are unique.
        return read(directory, QueueManager, [Equal("identifier", identifier)], _QUEUE_MANAGER)[:1]
    found = _read_named(directory, "computer_name", str(machine_id))
    return found or (_read_named(directory, _HOST, str(machine_id)) if "." in str(machine_id) else [])


def identifier_of(machine_id: UUID | str) -> UUID | None:
    """The Identifier that names a machine, None for text that is no GUID."""
    return machine_id if isinstance(machine_id, UUID) else guid_of(machine_id)


def _read_named(directory: Directory, attribute: str, name: str) -> list[QueueManager]:
    found = read(directory, QueueManager, [Equal(attribute, name)], (*_QUEUE_MANAGER, attribute))
    # A directory that cannot search by name may answer with other machines as well ([MS-MQDSSM] 3.1.6.4).
    return [each for each in found if comparable(getattr(each, attribute)) == comparable(name)]


def read(
    directory: Directory,
    element: type[Element],
    filters: Iterable[Filter] | None = None,
    attributes: Iterable[str] | None = None,
) -> list[Element]:
    """The usable objects that meet all filters: Read Directory Begin, Next and End; raises DirectoryError."""
    handle = directory.read_directory_begin(element, filters, attributes)
    try:
        # A gate that is gone is left out of its link; a link without its site is skipped.
        found: Iterator[Any] = iter(partial(directory.read_directory_next, handle), None)
        return list(usable(found))
    finally:
        # The specification ignores the result as well
        with contextlib.suppress(DirectoryError):
            directory.read_directory_end(handle)


class Topology:
    """The objects of a directory as a rule reads them: each at most once, when it is first needed.

    A failed read returns nothing, and is repeated on next use.

    Attributes
    ----------
    failure : DirectoryError or None
        The last failure to read the directory.
    """

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self.failure: DirectoryError | None = None
        self._machines: dict[UUID | str, QueueManager] = {}
        self._hosts: dict[UUID, QueueManager] = {}
        self._lists: dict[type[DirectoryObject], list[Any]] = {}
        self._derived: dict[Hashable, Any] = {}

    def queue_manager(self, machine_id: UUID | str) -> QueueManager | None:
        """Return the queue manager with this Identifier or name, or None.

        Raises
        ------
        RoutingError
            Several have the name.
        """
        if machine_id not in self._machines:
            try:
                found = read_queue_managers(self._directory, machine_id)
            except DirectoryError as error:
                self.failure = error
                return None
            if len(found) > 1:
                raise RoutingError(f"{len(found)} QueueManagers have the ComputerName {machine_id}")
            if not found:
                return None
            self._machines[machine_id] = self._machines[found[0].identifier] = found[0]
        return self._machines[machine_id]

    def to_connect(self, machine_id: UUID | str) -> QueueManager | None:
        """The queue manager with its QualifiedComputerName as well, which is empty if the directory has none.

        Raises
        ------
        RoutingError
            Several have the name.
        """
        machine = self.queue_manager(machine_id)
        if machine is None:
            return None
        if machine.identifier not in self._hosts:
            try:
                found = read(self._directory, QueueManager, [Equal("identifier", machine.identifier)], (_HOST,))
            except InvalidObjectError:
                found = []
            except DirectoryError as error:
                self.failure = error
                return None
            name = found[0].qualified_computer_name if found else ""
            self._hosts[machine.identifier] = QueueManager.of({**machine.attributes(), _HOST: name})
        return self._hosts[machine.identifier]

    @property
    def sites(self) -> list[Site]:
        """All sites, in the order of the directory."""
        return self._all(Site, None, _SITE)

    @property
    def links(self) -> list[RoutingLink]:
        """All links, in the order of the directory."""
        return self._all(RoutingLink, None, _ROUTING_LINK)

    @property
    def routing_servers(self) -> list[QueueManager]:
        """All routing servers, in the order of the directory."""
        return self._all(QueueManager, [Equal("routing_server", True)], _QUEUE_MANAGER)

    @property
    def position(self) -> dict[UUID, int]:
        """The position of a site in ``sites``, by its identifier."""
        return self._keep("position", lambda: {site.identifier: place for place, site in enumerate(self.sites)})

    @property
    def site_routing_server(self) -> dict[UUID, tuple[int, UUID]]:
        """The first routing server of each site: its position among all, and its identifier."""
        return self._keep("servers", self._find_routing_servers)

    def graph(self) -> SiteGraph:
        """The sites and links as a graph; raises RoutingError."""
        return SiteGraph(self.sites, self._usable(self.links))

    def gates(self, site_id: UUID) -> tuple[UUID, ...]:
        """SiteGateCollection of a site, as identifiers."""
        return self._keep(("gates", site_id), lambda: self._find_gates(site_id))

    def sites_of_gate(self, machine: QueueManager) -> tuple[UUID, ...]:
        """Return the sites in which a routing server is a member and a gate; empty for other machines."""
        if not machine.routing_server:
            return ()
        own = (site for site in machine.site_identifier_list if site in self.position)
        return tuple(s for s in own if any(machine.identifier in _gates(link) for link in self._links_at(s)))

    def gate_of(self, site_id: UUID, from_sites: tuple[UUID, ...]) -> UUID | None:
        """A gate of a site, preferably on the cheapest link from other sites."""
        gates = self.gates(site_id)
        links = [link for link in self._links_at(site_id) if not _ends(link).isdisjoint(from_sites)]
        least = min((link.actual_cost for link in links), default=0)
        preferred = {gate for link in links if link.actual_cost == least for gate in _gates(link)}
        return next((gate for gate in gates if gate in preferred), gates[0] if gates else None)

    def _all(
        self, element: type[Element], filters: Iterable[Filter] | None, attributes: Iterable[str]
    ) -> list[Element]:
        if element not in self._lists:
            try:
                self._lists[element] = read(self._directory, element, filters, attributes)
            except DirectoryError as error:
                self.failure = error
                return []
        return self._lists[element]

    def _keep(self, name: Hashable, derive: Callable[[], Value]) -> Value:
        """A value derived from complete lists; one derived from a failed read is not kept."""
        if name in self._derived:
            found: Value = self._derived[name]
            return found
        before, self.failure = self.failure, None
        value = derive()
        if self.failure is None:
            self.failure = before
            self._derived[name] = value
        return value

    def _find_routing_servers(self) -> dict[UUID, tuple[int, UUID]]:
        found: dict[UUID, tuple[int, UUID]] = {}
        for place, server in enumerate(self.routing_servers):
            for site in server.site_identifier_list:
                found.setdefault(site, (place, server.identifier))
        return found

    def _find_links(self) -> dict[UUID, list[RoutingLink]]:
        found: dict[UUID, list[RoutingLink]] = {}
        for link in self.links:
            for site in _ends(link):
                found.setdefault(site, []).append(link)
        return found

    def _links_at(self, site_id: UUID) -> list[RoutingLink]:
        """The usable links of a site."""
        return self._keep(("links", site_id), lambda: self._find_links_at(site_id))

    def _find_links_at(self, site_id: UUID) -> list[RoutingLink]:
        by_site = self._keep("links", self._find_links)
        return self._usable(by_site.get(site_id, ()))

    def _find_gates(self, site_id: UUID) -> tuple[UUID, ...]:
        if site_id not in self.position:
            return ()
        machines = (self.queue_manager(gate) for link in self._links_at(site_id) for gate in _gates(link))
        found = (machine for machine in machines if machine is not None and site_id in machine.site_identifier_list)
        return tuple(dict.fromkeys(machine.identifier for machine in found))

    def _usable(self, links: Iterable[RoutingLink]) -> list[RoutingLink]:
        """The links that still have both their sites, and a gate of those that they name."""
        sites = self.position
        return [
            link
            for link in links
            if link.site1_identifier in sites and link.site2_identifier in sites and self._has_gate(link)
        ]

    def _has_gate(self, link: RoutingLink) -> bool:
        gates = _gates(link)
        return not gates or any(self.queue_manager(gate) is not None for gate in gates)


def _ends(link: RoutingLink) -> set[UUID]:
    return {link.site1_identifier, link.site2_identifier}


def _gates(link: RoutingLink) -> tuple[UUID, ...]:
    return link.site_gate_identifier_list
