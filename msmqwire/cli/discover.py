"""``msmqwire discover``: ask the local networks for directory servers, and show their answers."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.cli.arguments import add_format, add_quiet, guid, port, seconds
from msmqwire.cli.console import CommandError, counted, json_line, optional, printable, say
from msmqwire.cli.progress import countdown
from msmqwire.cli.signals import run_until_stopped
from msmqwire.cli.target import open_target, standard_output

if TYPE_CHECKING:
    from rich.text import Text

    from msmqwire.discovery import Answer, Discovery, NetworkAddress
    from msmqwire.discovery.client import Action

__all__ = ["add", "run"]

_NIL = UUID(int=0)
_NARROW = 100  # columns; on a narrower terminal labels stand above values
_GUID = 36

_EPILOG = """\
The request is broadcast on every IPv4 network of this computer, one after the other; each has 15
seconds to answer, and 15 more after a first answer from another site. Servers of your own site
(--site) answer with their connected networks, servers of other sites with the directory servers.
Without --site every server belongs to another site.

exit status:
  0  a server answered
  1  wrong usage, or the networks of this computer cannot be listed
  2  no server answered

examples:
  msmqwire discover                                      ask everywhere
  msmqwire discover --network eth0 --timeout 2           one network, and not for long
  msmqwire discover --site dcc51bf6-d4ad-4543-8739-71568e8f9128
  msmqwire discover -T json | jq -r '.directory_servers[]'
"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.description = "Find the MSMQ directory servers that answer on the local networks, as MS-MQSD describes it."
    parser.epilog = _EPILOG
    parser.add_argument("--site", type=guid, default=_NIL, metavar="GUID", help="the site of this computer")
    parser.add_argument("--enterprise", type=guid, default=_NIL, metavar="GUID", help="the enterprise of this computer")
    parser.add_argument(
        "--network",
        action="append",
        metavar="NAME",
        help="ask only this network: its interface, this computer's address, or its prefix, as in eth0, 10.20.1.25, "
        "10.20.1.0/24; may be repeated",
    )
    parser.add_argument("--port", type=port, default=1801, help="the UDP port of servers (default: 1801)")
    parser.add_argument(
        "--timeout", type=seconds, default=15.0, metavar="SECONDS", help="how long a network may take (default: 15)"
    )
    add_format(parser, ("table", "json"), "table")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Ask; the exit status."""
    optional("psutil", "msmqwire discover")
    if options.format == "table":
        optional("rich", "the format table")
    standard_output()
    networks = _networks(options.network)
    result = _discover(networks, options)
    with open_target("-", ()) as sink:
        sink.write(_json(result, networks) if options.format == "json" else _table(result, options.site))
    if not options.quiet:
        _report(result, networks)
    return 0 if result.found else 2


def _networks(names: Sequence[str] | None) -> list[NetworkAddress]:
    """The networks to ask: the named networks in their order, or all but loopback."""
    from msmqwire.net import local_networks

    if names is None:
        return local_networks()
    there = local_networks(loopback=True)
    chosen: dict[NetworkAddress, None] = {}
    for name in names:
        fitting = [network for network in there if name in _names(network)]
        if not fitting:
            raise CommandError(f"--network {name}: no such network; there is {', '.join(map(str, there)) or 'none'}")
        chosen.update(dict.fromkeys(fitting))
    return list(chosen)


def _names(network: NetworkAddress) -> tuple[str, ...]:
    return (network.interface, str(network.address.ip), str(network.address), str(network.address.network))


def _discover(networks: Sequence[NetworkAddress], options: argparse.Namespace) -> Discovery:
    from msmqwire.discovery import Send, WaitUntil
    from msmqwire.net import discover

    with countdown(wanted=not options.quiet) as show:
        asked: list[NetworkAddress] = []

        def watch(action: Action) -> None:
            if isinstance(action, Send):
                asked.append(action.network)
            if isinstance(action, Send | WaitUntil) and asked:
                show(f"asking on {asked[-1]}, {len(asked)} of {len(networks)}", options.timeout)

        return run_until_stopped(
            discover(
                enterprise_id=options.enterprise,
                site_id=options.site,
                networks=networks,
                port=options.port,
                timeout=options.timeout,
                watch=watch,
            )
        )


# --- Output ---


def _report(result: Discovery, networks: Sequence[NetworkAddress]) -> None:
    if not networks:
        say("there is no network to ask: no interface that is up has an IPv4 network")
        return
    answering = len({answer.network for answer in result.answers})
    say(f"{counted(len(result.answers), 'answer')} on {answering} of {counted(len(networks), 'network')}")
    for network, reason in result.unsent:
        say(f"{network} cannot be asked: {reason}")
    if result.discarded:
        each = ", ".join(f"{reason} {count:,}" for reason, count in result.discarded.items())
        say(f"{counted(sum(result.discarded.values()), 'datagram')} discarded: {each}")


def _guids(answer: Answer) -> list[str]:
    return [str(UUID(bytes_le=bytes(network))) for network in answer.reply.connected_networks]


def _json(result: Discovery, networks: Sequence[NetworkAddress]) -> bytes:
    value = {
        "found": result.found,
        "directory_servers": result.directory_servers,
        "connected_networks": list(map(str, result.connected_networks)),
        "servers_updated": result.servers_updated,
        "answers": [
            {
                "source": answer.source,
                **_place(answer.network),
                "responding_site_id": answer.reply.responding_site_id and str(answer.reply.responding_site_id),
                "connected_networks": _guids(answer),
                "servers": [server._asdict() for server in answer.reply.servers],
            }
            for answer in result.answers
        ],
        "networks": [_place(network) for network in networks],
        "unsent": [{**_place(network), "error": reason} for network, reason in result.unsent],
        "discarded": result.discarded,
    }
    return json_line(value).encode() + b"\n"


def _place(network: NetworkAddress) -> dict[str, str]:
    return {"interface": network.interface, "address": str(network.address)}


def _table(result: Discovery, site: UUID) -> bytes:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    # rich would handle a full disk and a broken pipe itself
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=standard_output().isatty(), markup=False, highlight=False, emoji=False)
    narrow = console.width < _NARROW
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("from", overflow="fold")
    table.add_column("network", overflow="fold")
    table.add_column("answer", overflow="fold", min_width=_GUID + 2)
    for answer in result.answers:
        network = printable(str(answer.network))
        lines = _lines(answer, site, narrow=narrow)
        table.add_row(
            printable(answer.source), network.replace(" on ", "\non ") if narrow else network, Text("\n").join(lines)
        )
    console.print(table if result.answers else Text("no server answered", "dim"))
    for label, values in (
        ("directory servers", result.directory_servers),
        ("connected networks", result.connected_networks),
    ):
        if values:
            line = Text.assemble((f"{label:18} ", "dim"), printable(", ".join(map(str, values))))
            console.print(line, soft_wrap=True)
    return drawn.getvalue().encode("utf-8", "replace")


def _lines(answer: Answer, site: UUID, *, narrow: bool) -> Iterator[Text]:
    """The answer of a server: its site, and a line for each item of its lists."""
    from rich.text import Text

    theirs = answer.reply.responding_site_id
    yield Text("your site" if theirs is None else "another site", "bold cyan")
    servers = [_server(*server) for server in answer.reply.servers]
    for label, values in (("site", [str(theirs or site)]), ("networks", _guids(answer)), ("servers", servers)):
        for at, value in enumerate(values):
            if narrow:
                if at == 0:
                    yield Text(f" {label}", "dim")
                yield Text(f"  {value}")
            else:
                yield Text.assemble((f" {label if at == 0 else '':8} ", "dim"), value)


def _server(name: str, ip: bool, ipx: bool) -> str:
    transports = " ".join(word for word, spoken in (("ip", ip), ("ipx", ipx)) if spoken)
    return printable(f"{name} ({transports})" if transports else name)
