"""Draws an enterprise in the DOT language of Graphviz: sites, gates, and links with their costs."""

from __future__ import annotations

from collections import Counter

from msmqwire.directory.base import Directory, site_gates, usable
from msmqwire.directory.elements import Enterprise, QueueManager, RoutingLink, Site
from msmqwire.errors import counted

_GATES_SHOWN = 4


def draw(directory: Directory) -> str:
    """The enterprise as an undirected graph in DOT: a node for each site, an edge for each link with its cost.

    A node shows the gates of its site and the number of its machines. Sites without gates and foreign sites have dashed
    borders. A link to an unknown site ends at a node labelled with the identifier; a link is left out if all its gates
    are missing.

    Raises
    ------
    DirectoryNotConnected, DirectoryError
        The directory cannot be read.
    """
    enterprise = directory.read_directory(Enterprise, attributes=["name"])
    sites = list(directory.read_all(Site, attributes=["identifier", "name", "foreign_site"]))
    machines = {
        each.identifier: each
        for each in directory.read_all(QueueManager, attributes=["identifier", "computer_name", "site_identifier_list"])
    }
    attributes = ("actual_cost", "site1_identifier", "site2_identifier", "site_gate_identifier_list")
    links = [
        link
        for link in usable(directory.read_all(RoutingLink, attributes=attributes))
        if not link.site_gate_identifier_list or not machines.keys().isdisjoint(link.site_gate_identifier_list)
    ]
    gates = site_gates(links, machines)
    population = Counter(site for machine in machines.values() for site in machine.site_identifier_list)
    lines = [
        f"graph {_quoted(enterprise.name if enterprise else '')} {{",
        '  layout = neato; overlap = false; sep = "+40"; splines = true;',
        '  node [shape = box, style = rounded, fontname = "Helvetica"];',
        '  edge [fontname = "Helvetica"];',
    ]
    for site in sites:
        names = [gate.computer_name for gate in gates.get(site.identifier, ())]
        shown = [*names[:_GATES_SHOWN], *([f"and {len(names) - _GATES_SHOWN} more"] if names[_GATES_SHOWN:] else [])]
        count = population[site.identifier]
        text = "\n".join([site.name, *shown, counted(count, "machine")])
        dashed = ', style = "rounded,dashed"' if site.foreign_site or not names else ""
        lines.append(f"  {_quoted(str(site.identifier))} [label = {_quoted(text)}{dashed}];")
    for link in links:
        ends = f"{_quoted(str(link.site1_identifier))} -- {_quoted(str(link.site2_identifier))}"
        lines.append(f"  {ends} [label = {_quoted(str(link.actual_cost))}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(text: str) -> str:
    """A string of DOT: backslashes and quotes escaped, unprintable characters replaced."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"' + "".join(each if each.isprintable() else "\ufffd" for each in escaped) + '"'
