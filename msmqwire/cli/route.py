"""``msmqwire route``: the way of a message through an enterprise, hop by hop."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from msmqwire.cli.enterprise import find_machine, print_json, print_table, site_names

if TYPE_CHECKING:
    from msmqwire.directory import Directory, QueueManager
    from msmqwire.routing import Hop, Route

__all__ = ["add", "run"]

_EPILOG = """\
SRC and DST are queue managers, by ComputerName or by Identifier. Where a message may take one
of several hops the way goes over the first that the directory knows.

rules, by the section of [MS-MQBR] that has them:
  out_routing_server  3.1.5.1    the sender hands everything to its out-routing servers
  routing_server      3.1.5.1    the destination is in another site; the sender routes nothing itself
  site_gate           3.1.5.2    the destination is in another site; the router is no gate
  next_site           3.1.5.3    a gate of the next site on the least-cost path
  in_routing_server   3.1.5.1-3  the destination takes everything from its in-routing servers
  in_routed           3.1.5.2-3  the router is an in-routing server of the destination
  direct              3.1.5.1-3  both are in the same site

exit status:
  0  there is a way
  1  there is none, and standard error says why; or wrong usage, or a file that cannot be read

examples:
  msmqwire route --directory enterprise.toml KIOSK7 LEDGER
  msmqwire route --directory enterprise.toml KIOSK7 LEDGER --json | jq .cost
"""


def add(subcommands: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subcommands.add_parser(
        "route",
        help="follow a message from machine to machine",
        description="Follow a message through an enterprise, hop by hop, as [MS-MQBR] routes it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("source", metavar="SRC", help="the queue manager that sends")
    parser.add_argument("destination", metavar="DST", help="the queue manager that the message is for")
    parser.add_argument("--directory", required=True, metavar="FILE", help="an enterprise as TOML or JSON")
    parser.add_argument("--json", action="store_true", help="an object with source, destination, cost and hops")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Find the way; the exit status."""
    from msmqwire.directory import MemoryDirectory
    from msmqwire.routing import Router, find_route

    directory = MemoryDirectory.load(options.directory)
    source, destination = (find_machine(directory, text) for text in (options.source, options.destination))
    route = find_route(Router(directory), source.identifier, destination.identifier)
    if options.json:
        print_json(_as_json(directory, route))
    else:
        _show(directory, route)
    return 0


def _show(directory: Directory, route: Route) -> None:
    first = route.hops[0].source
    rows = [["hop", "queue manager", "site", "cost", "rule"]]
    rows.append(["", first.computer_name, _sites(directory, first), "", ""])
    for number, hop in enumerate(route.hops, 1):
        others = ", ".join(each.computer_name for each in hop.others)
        cost = "" if hop.site_id is None else f"{hop.cost:,}"
        rule = f"{hop.rule} (or {others})" if others else str(hop.rule)
        rows.append([str(number), hop.target.computer_name, _sites(directory, hop.target), cost, rule])
    print_table(rows)
    print(f"{len(route.hops)} {'hop' if len(route.hops) == 1 else 'hops'}, cost {route.cost:,}", flush=True)


def _sites(directory: Directory, machine: QueueManager) -> str:
    return ", ".join(site_names(directory, machine.site_identifier_list))


def _as_json(directory: Directory, route: Route) -> dict[str, Any]:
    return {
        "source": _named(route.hops[0].source),
        "destination": _named(route.hops[-1].target),
        "cost": route.cost,
        "hops": [_hop_as_json(directory, hop) for hop in route.hops],
    }


def _hop_as_json(directory: Directory, hop: Hop) -> dict[str, Any]:
    return {
        "source": _named(hop.source),
        "target": _named(hop.target),
        "rule": hop.rule,
        "cost": hop.cost,
        "site": None if hop.site_id is None else site_names(directory, [hop.site_id])[0],
        "others": [_named(each) for each in hop.others],
    }


def _named(machine: QueueManager) -> dict[str, Any]:
    return {"computer_name": machine.computer_name, "identifier": machine.identifier}
