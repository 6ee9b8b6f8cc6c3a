"""Follow a message through an enterprise, hop by hop, as [MS-MQBR] routes it.

SRC and DST are queue managers, by ComputerName, QualifiedComputerName or Identifier. If several hops
are possible, the route takes the first that the directory has. No question is put to the directory twice.

rules, with their sections in [MS-MQBR]:
  out_routing_server  3.1.5.1    the sender sends all messages to its out-routing servers
  routing_server      3.1.5.1    the destination is in another site, and the sender is no router
  site_gate           3.1.5.2    the destination is in another site, and the router is no site gate
  next_site           3.1.5.3    a site gate of the next site on the least-cost path
  in_routing_server   3.1.5.1-3  the destination receives all messages from its in-routing servers
  in_routed           3.1.5.2-3  the router is an in-routing server of the destination
  direct              3.1.5.1-3  both are in the same site

exit status:
  0  there is a route
  1  there is no route, wrong usage, or a file that cannot be read; standard error says which

examples:
  msmqwire route --directory enterprise.toml KIOSK7 LEDGER
  msmqwire route --directory enterprise.toml KIOSK7 LEDGER -T json | jq .cost
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import add_format, object_name
from msmqwire.cli.console import print_json, print_table
from msmqwire.cli.enterprise import add_directory, open_directory
from msmqwire.errors import counted

if TYPE_CHECKING:
    from uuid import UUID

    from msmqwire.directory import Directory, QueueManager
    from msmqwire.routing import Hop, Route


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("source", metavar="SRC", type=object_name, help="the queue manager that sends")
    parser.add_argument("destination", metavar="DST", type=object_name, help="the queue manager that receives")
    add_directory(parser, required=True)
    add_format(parser, ("table", "json"), "table")


def run(options: argparse.Namespace) -> int:
    """Find the route; the exit status."""
    from msmqwire.routing import QUERY_INTERVAL, Router, find_route

    directory = open_directory(options.directory)
    route = find_route(Router(directory, max_age=QUERY_INTERVAL), options.source, options.destination)
    sites = _site_names(directory, route)
    if options.format == "json":
        print_json(_as_json(route, sites))
    else:
        _show(route, sites)
    return 0


def _site_names(directory: Directory, route: Route) -> dict[UUID, str]:
    """Return the names of the sites of machines on a route; the identifier of a site that the directory lacks."""
    from msmqwire.directory import Equal, Site

    machines = (route.hops[0].source, *(hop.target for hop in route.hops))
    identifiers = dict.fromkeys(site for machine in machines for site in machine.site_identifier_list)
    sites = {each: directory.read_directory(Site, [Equal("identifier", each)]) for each in identifiers}
    return {identifier: str(identifier) if site is None else site.name for identifier, site in sites.items()}


def _show(route: Route, sites: dict[UUID, str]) -> None:
    def row(machine: QueueManager, number: str = "", cost: str = "", rule: str = "") -> list[str]:
        names = ", ".join(sites[site] for site in machine.site_identifier_list)
        return [number, machine.computer_name, names, cost, rule]

    rows = [["hop", "queue manager", "site", "cost", "rule"], row(route.hops[0].source)]
    for number, hop in enumerate(route.hops, 1):
        others = ", ".join(each.computer_name for each in hop.others)
        cost = "" if hop.site_id is None else f"{hop.cost:,}"
        rule = f"{hop.rule} (or {others})" if others else str(hop.rule)
        rows.append(row(hop.target, str(number), cost, rule))
    print_table(rows)
    print(f"{counted(len(route.hops), 'hop')}, cost {route.cost:,}", flush=True)


def _as_json(route: Route, sites: dict[UUID, str]) -> dict[str, Any]:
    return {
        "source": _named(route.hops[0].source),
        "destination": _named(route.hops[-1].target),
        "cost": route.cost,
        "hops": [_hop_as_json(hop, sites) for hop in route.hops],
    }


def _hop_as_json(hop: Hop, sites: dict[UUID, str]) -> dict[str, Any]:
    return {
        "source": _named(hop.source),
        "target": _named(hop.target),
        "rule": hop.rule,
        "cost": hop.cost,
        "site": None if hop.site_id is None else sites[hop.site_id],
        "others": [_named(each) for each in hop.others],
    }


def _named(machine: QueueManager) -> dict[str, Any]:
    return {
        "computer_name": machine.computer_name,
        "qualified_computer_name": machine.qualified_computer_name or None,
        "identifier": machine.identifier,
    }
