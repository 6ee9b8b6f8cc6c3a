"""Checks an enterprise for errors that would keep messages from their destinations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from uuid import UUID

from msmqwire.directory.base import Directory, InvalidObjectError, Problem, comparable, site_gates
from msmqwire.directory.document import Document
from msmqwire.directory.elements import (
    HIGHEST_COST,
    NAME_ATTRIBUTES,
    REFERENCES,
    TABLES,
    DirectoryObject,
    Enterprise,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    computer_of,
)

#: The ranges of numbers whose properties are no unsigned integers of 32 bits ([MS-MQMQ] 2.3.1.6, 2.3.1.9, 2.3.1.10,
#: 2.3.2.16, 2.3.2.17, 2.3.3.5, 2.3.3.6); no time is before 1970.
_RANGES = {
    "base_priority": (-32_768, 32_767),
    "create_time": (0, 2_147_483_647),
    "modify_time": (0, 2_147_483_647),
    "intra_site_replication_interval": (0, 65_535),
    "inter_site_replication_interval": (0, 65_535),
}


def check(objects: Iterable[DirectoryObject]) -> list[Problem]:
    """The errors of an enterprise, each with its object and attribute.

    Duplicate identifiers and names, references to missing objects, links with invalid or contradictory costs, invalid
    gates and routing servers, sites without gates, unreachable sites, and machines that cannot connect to a gate or a
    routing server for lack of a network in common ([MS-MQBR] 1.5).
    """
    enterprise = _Enterprise(objects)
    return [problem for rule in _RULES for problem in rule(enterprise)]


def read_objects(directory: Directory) -> Document:
    """All objects of a directory, the errors of those that cannot be read, and names of objects that are missing.

    Raises
    ------
    DirectoryError
        The directory cannot be read.
    """
    objects: list[DirectoryObject] = []
    problems: list[Problem] = []
    for element in directory.elements:
        found = directory._read_for_check(element, problems)
        while True:
            try:
                each = next(found, None)
            except InvalidObjectError as error:
                problems.append(error.problem)
                if isinstance(error.rest, element):
                    objects.append(error.rest)
                continue
            if each is None:
                break
            objects.append(each)
    return Document(tuple(objects), tuple(problems))


class _Enterprise:
    """The objects by class and identifier, and their names in messages."""

    def __init__(self, objects: Iterable[DirectoryObject]) -> None:
        self.objects = list(objects)
        self.sites = {each.identifier: each for each in self.objects if isinstance(each, Site)}
        self.machines = {each.identifier: each for each in self.objects if isinstance(each, QueueManager)}
        self.links = [each for each in self.objects if isinstance(each, RoutingLink)]
        self.queues = [each for each in self.objects if isinstance(each, Queue)]
        self.identifiers = {(type(each), each.identifier) for each in self.objects}

    def title(self, each: DirectoryObject) -> str:
        """The name of an object in messages."""
        if isinstance(each, RoutingLink):
            ends = (self.sites.get(end) for end in (each.site1_identifier, each.site2_identifier))
            name = " - ".join(end.name if end else "?" for end in ends)
        else:
            name = getattr(each, NAME_ATTRIBUTES[type(each)])
        return f"{TABLES[type(each)]} {name or each.identifier}"


def _duplicates(enterprise: _Enterprise) -> Iterator[Problem]:
    identifiers: defaultdict[UUID, list[DirectoryObject]] = defaultdict(list)
    names: defaultdict[tuple[type[DirectoryObject], str], list[DirectoryObject]] = defaultdict(list)
    for each in enterprise.objects:
        identifiers[each.identifier].append(each)
        attribute = NAME_ATTRIBUTES.get(type(each), "")
        # The name of a connected network may be left out, by two of them too
        if attribute and getattr(each, attribute) != type(each).__dataclass_fields__[attribute].default:
            names[type(each), comparable(getattr(each, attribute))].append(each)
    for identifier, (first, *others) in identifiers.items():
        for other in others:
            what = f"{identifier} is also the identifier of {enterprise.title(first)}"
            yield Problem(enterprise.title(other), "identifier", what)
    for (element, _), (first, *others) in names.items():
        for other in others:
            attribute = NAME_ATTRIBUTES[element]
            yield Problem(enterprise.title(other), attribute, f"is also the name of {first.identifier}")
    for other in [each for each in enterprise.objects if isinstance(each, Enterprise)][1:]:
        yield Problem(enterprise.title(other), "", "there is more than one enterprise ([MS-MQDSSM] 2.2.3)")


def _dangling(enterprise: _Enterprise) -> Iterator[Problem]:
    for each in enterprise.objects:
        read = each.attributes()
        for attribute in filter(read.__contains__, REFERENCES):
            value = read[attribute]
            for identifier in value if isinstance(value, tuple) else (value,):
                target = REFERENCES[attribute]
                if (target, identifier) not in enterprise.identifiers:
                    yield Problem(enterprise.title(each), attribute, f"there is no {TABLES[target]} {identifier}")
    hosts = {comparable(machine.computer_name) for machine in enterprise.machines.values()}
    for queue in enterprise.queues:
        host = computer_of(queue.pathname)
        if comparable(host) not in hosts:
            what = f"there is no queue_manager {host}" if host else "names no computer"
            yield Problem(enterprise.title(queue), "pathname", what)


def _costs(enterprise: _Enterprise) -> Iterator[Problem]:
    between: defaultdict[frozenset[UUID], list[RoutingLink]] = defaultdict(list)
    for link in enterprise.links:
        title = enterprise.title(link)
        if not 1 <= link.actual_cost <= HIGHEST_COST:
            yield Problem(title, "actual_cost", f"{link.actual_cost} is not from 1 to {HIGHEST_COST:,}")
        if link.site1_identifier == link.site2_identifier:
            yield Problem(title, "site2_identifier", "is the same site as site1_identifier")
        between[frozenset((link.site1_identifier, link.site2_identifier))].append(link)
    for first, *others in between.values():
        for other in others:
            what = f"{other.actual_cost}, but another link between these sites costs {first.actual_cost}"
            if other.actual_cost == first.actual_cost:
                what = "another link between these sites costs the same"
            yield Problem(enterprise.title(other), "actual_cost", what)


def _gates(enterprise: _Enterprise) -> Iterator[Problem]:
    for link in enterprise.links:
        ends = {link.site1_identifier, link.site2_identifier}
        for identifier in link.site_gate_identifier_list:
            gate = enterprise.machines.get(identifier)
            if gate is None:
                continue
            if not ends.intersection(gate.site_identifier_list):
                what = f"{gate.computer_name} is in neither of the sites"
                yield Problem(enterprise.title(link), "site_gate_identifier_list", what)
            if not gate.routing_server:
                what = f"is false, but the machine is a gate of {enterprise.title(link)}"
                yield Problem(enterprise.title(gate), "routing_server", what)
    if len(enterprise.sites) > 1:
        # Routing ignores a link to a site that is missing
        sites = enterprise.sites.keys()
        links = [link for link in enterprise.links if {link.site1_identifier, link.site2_identifier} <= sites]
        gates = site_gates(links, enterprise.machines)
        for identifier, site in enterprise.sites.items():
            if identifier not in gates:
                yield Problem(enterprise.title(site), "", "no link has a gate in it, so it cannot be reached")


def _reach(enterprise: _Enterprise) -> Iterator[Problem]:
    neighbours: defaultdict[UUID, set[UUID]] = defaultdict(set)
    for link in enterprise.links:
        neighbours[link.site1_identifier].add(link.site2_identifier)
        neighbours[link.site2_identifier].add(link.site1_identifier)
    # Each site belongs to the connected part of the enterprise in which a walk over the links reaches it.
    part: dict[UUID, UUID] = {}
    for start in enterprise.sites:
        waiting = [start]
        while waiting:
            reached = waiting.pop()
            if reached not in part and reached in enterprise.sites:
                part[reached] = start
                waiting += neighbours[reached]
    if not part:
        return
    main, _ = Counter(part.values()).most_common(1)[0]
    for identifier, site in enterprise.sites.items():
        if part[identifier] != main:
            what = f"no links lead to it from {enterprise.title(enterprise.sites[main])}"
            yield Problem(enterprise.title(site), "", what)


def _machines(enterprise: _Enterprise) -> Iterator[Problem]:
    for machine in enterprise.machines.values():
        title = enterprise.title(machine)
        if not machine.computer_name:
            yield Problem(title, "computer_name", "is empty: no message can be sent to it")
        if not machine.site_identifier_list:
            yield Problem(title, "site_identifier_list", "is empty: it belongs to no site")
        if machine.directory_server_type is not None and not machine.directory_server:
            yield Problem(title, "directory_server_type", "is given, but directory_server is false")
        for attribute in ("out_routing_server_identifier_list", "in_routing_server_identifier_list"):
            for identifier in getattr(machine, attribute):
                server = enterprise.machines.get(identifier)
                if server is None:
                    continue
                if not server.routing_server:
                    yield Problem(title, attribute, f"{server.computer_name} is not a routing server")
                sites = set(machine.site_identifier_list)
                if sites and sites.isdisjoint(server.site_identifier_list):
                    yield Problem(title, attribute, f"{server.computer_name} is in none of the machine's sites")


def _networks(enterprise: _Enterprise) -> Iterator[Problem]:
    """Machines that cannot connect directly as [MS-MQBR] 1.5 requires; machines without networks are not judged."""
    attribute = "connected_network_identifier_list"
    networks = {each.identifier: each.attributes().get(attribute, ()) for each in enterprise.machines.values()}

    def apart(one: QueueManager, other: QueueManager) -> bool:
        here, there = networks[one.identifier], networks[other.identifier]
        return bool(here and there) and set(here).isdisjoint(there)

    by_site: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for machine in enterprise.machines.values():
        for site in machine.site_identifier_list if machine.routing_server else ():
            by_site[site].append(machine.identifier)
    for machine in enterprise.machines.values():
        for server in _routing_servers_of(enterprise, machine, by_site):
            if apart(machine, server):
                what = f"has no network in common with {server.computer_name}, a routing server of the machine"
                yield Problem(enterprise.title(machine), attribute, what)
    for link in enterprise.links:
        gates = [enterprise.machines[each] for each in link.site_gate_identifier_list if each in enterprise.machines]
        here = [gate for gate in gates if link.site1_identifier in gate.site_identifier_list]
        there = [gate for gate in gates if link.site2_identifier in gate.site_identifier_list]
        for gate, other in product(here, there):
            if apart(gate, other):
                what = f"{gate.computer_name} and {other.computer_name} have no network in common"
                yield Problem(enterprise.title(link), "site_gate_identifier_list", what)


def _routing_servers_of(
    enterprise: _Enterprise, machine: QueueManager, by_site: Mapping[UUID, list[UUID]]
) -> list[QueueManager]:
    """Return the routing servers that a machine sends to and receives from: its own, or else its sites'."""
    of_sites = [server for site in machine.site_identifier_list for server in by_site.get(site, ())]
    both = (machine.out_routing_server_identifier_list, machine.in_routing_server_identifier_list)
    names = dict.fromkeys(identifier for own in both for identifier in own or of_sites)
    found = [enterprise.machines[each] for each in names if each in enterprise.machines]
    return [server for server in found if server is not machine]


def _numbers(enterprise: _Enterprise) -> Iterator[Problem]:
    for each in enterprise.objects:
        for attribute, value in each.attributes().items():
            if attribute == "actual_cost" or each.attribute_type(attribute) is not int:  # _costs checks costs
                continue
            if attribute in _RANGES:
                least, highest = _RANGES[attribute]
                if not least <= value <= highest:
                    yield Problem(enterprise.title(each), attribute, f"{value} is not from {least:,} to {highest:,}")
            elif not 0 <= value < 1 << 32:
                yield Problem(enterprise.title(each), attribute, f"{value} is not an unsigned integer of 32 bits")


_RULES = (_duplicates, _dangling, _costs, _gates, _reach, _machines, _networks, _numbers)
