"""Find the MSMQ directory servers that answer on the local networks, as MS-MQSD describes it.

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

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from msmqwire.cli.arguments import add_format, add_quiet, guid, port, seconds
from msmqwire.cli.console import CommandError, json_line, optional, say
from msmqwire.cli.progress import countdown
from msmqwire.cli.signals import run_until_stopped
from msmqwire.cli.target import open_target, standard_output
from msmqwire.errors import counted, printable
from msmqwire.wire.guids import NIL
from msmqwire.wire.ports import DISCOVERY_PORT

if TYPE_CHECKING:
    from msmqwire.discovery import Answer, Discovery, NetworkAddress
    from msmqwire.discovery.client import Action


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("--site", type=guid, default=NIL, metavar="GUID", help="the site of this computer")
    parser.add_argument("--enterprise", type=guid, default=NIL, metavar="GUID", help="the enterprise of this computer")
    parser.add_argument(
        "--network",
        action="append",
        metavar="NAME",
        help="ask only this network: its interface, this computer's address, or its prefix, as in eth0, 10.20.1.25, "
        "10.20.1.0/24; may be repeated",
    )
    parser.add_argument(
        "--port", type=port, default=DISCOVERY_PORT, help="the UDP port of servers (default: %(default)s)"
    )
    parser.add_argument(
        "--timeout", type=seconds, default=15.0, metavar="SECONDS", help="how long a network may take (default: 15)"
    )
    add_format(parser, ("table", "json"), "table")
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Ask; the exit status."""
    optional("psutil", "msmqwire discover")
    standard_output()
    networks = _networks(options.network)
    result = _discover(networks, options)
    with open_target("-", ()) as sink:
        sink.write(_json(result, networks) if options.format == "json" else _text(result, options.site))
    if not options.quiet:
        _report(result, networks)
    return 0 if result.found else 2


def _networks(names: Sequence[str] | None) -> list[NetworkAddress]:
    """Return the networks to ask: the named networks in their order, or all but loopback."""
    from msmqwire.net import local_networks

    try:
        there = local_networks(loopback=names is not None)
    except OSError as error:
        raise CommandError(f"the networks of this computer cannot be listed: {error.strerror}") from None
    if names is None:
        return there
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


def _text(result: Discovery, site: UUID) -> bytes:
    """Return the answers: one after the other, and below each its site and lists."""
    lines = []
    for answer in result.answers:
        other = answer.reply.responding_site_id
        lines.append(f"{answer.source} on {answer.network}: {'your site' if other is None else 'another site'}")
        servers = [_server(*server) for server in answer.reply.servers]
        for label, values in (("site", [str(other or site)]), ("networks", _guids(answer)), ("servers", servers)):
            lines += [f"  {'' if at else label:10}{value}" for at, value in enumerate(values)]
    for label, found in (("directory servers", result.directory_servers),
                         ("connected networks", result.connected_networks)):  # fmt: skip
        if found:
            lines.append(f"{label:20}{', '.join(map(str, found))}")
    text = "\n".join(map(printable, lines or ["no server answered"]))
    return f"{text}\n".encode("utf-8", "replace")


def _server(name: str, ip: bool, ipx: bool) -> str:
    transports = " ".join(word for word, spoken in (("ip", ip), ("ipx", ipx)) if spoken)
    return f"{name} ({transports})" if transports else name
