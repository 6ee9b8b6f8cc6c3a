r"""Take a format name apart and find its destination, as [MS-MQQB] 3.1.7.4 has it.

After /MSMQ, / is accepted for \; suffixes are accepted where only packets and calls can have them,
as in MACHINE=guid;DEADLETTER. NAME may begin with FormatName:, or be a path such as
server\private$\orders: a public queue of --directory, else the direct name of the path.

exit status:
  0  there is a destination, and with --from a next hop
  1  NAME is not a format name or a path; or wrong usage, or a directory that cannot be read
  2  there is no destination, or no next hop

examples:
  msmqwire resolve 'DIRECT=HTTP://shop.example:8080/MSMQ\orders'
  msmqwire resolve PUBLIC=0e000000-0000-4000-8000-000000000001 --directory enterprise.toml
  msmqwire resolve 'PRIVATE=ba000000-0000-4000-8000-0000000000c7\1F' \
      --directory enterprise.toml --from KIOSK7 -T json
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.cli.arguments import add_format, add_source
from msmqwire.cli.console import CommandError, print_json, print_table
from msmqwire.cli.enterprise import add_directory, find_machine, open_directory
from msmqwire.cli.next_hops import queue_of
from msmqwire.errors import DirectoryError, RoutingError
from msmqwire.wire.guids import NIL

if TYPE_CHECKING:
    from msmqwire.directory import Directory
    from msmqwire.formatname import FormatName
    from msmqwire.routing import DestinationInfo


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("name", metavar="NAME", help="a format name, such as DIRECT=OS:server\\queue, or a path")
    add_directory(parser)
    add_source(parser, "the queue manager that sends: show its next hops, too")
    add_format(parser, ("table", "json"), "table")


def run(options: argparse.Namespace) -> int:
    """Resolve; the exit status."""
    from msmqwire.routing import get_destination_info

    if options.source is not None and options.directory is None:
        raise CommandError("--from needs the directory of the machine: --directory SOURCE")
    directory = None if options.directory is None else open_directory(options.directory)
    name = queue_of(options.name, directory)
    destination = get_destination_info(name, directory)
    if destination.failure is not None:
        raise destination.failure
    found = {"name": _name_as_json(name), "destination": _destination_as_json(destination, directory)}
    if directory is not None and options.source is not None:
        found["next_hops"] = _next_hops_as_json(directory, options.source, destination)
    if options.format == "json":
        print_json(found)
    else:
        print_table([[label, str(value)] for label, value in _lines(found)])
    return 0 if destination.status and not found.get("next_hops", {}).get("reason") else 2


def _name_as_json(name: FormatName) -> dict[str, Any]:
    parts = {field.name: getattr(name, field.name) for field in dataclasses.fields(name)}  # type: ignore[arg-type]
    if "elements" in parts:
        parts["elements"] = [_name_as_json(element) for element in parts["elements"]]
    return {"text": str(name), "kind": name.kind, **{key: value for key, value in parts.items() if value is not None}}


def _destination_as_json(info: DestinationInfo, directory: Directory | None) -> dict[str, Any]:
    from msmqwire.routing import host_of

    if not info.status:
        return {"status": False, "reason": info.reason}
    shown: dict[str, Any] = {"status": True, "host_name": info.host_name, "queue_manager": info.queue_manager_guid}
    if info.host_name and host_of(info.host_name) != info.host_name:
        shown["host"] = host_of(info.host_name)
    if computer_name := _computer_name(directory, info.queue_manager_guid):
        shown["computer_name"] = computer_name
    return shown


def _computer_name(directory: Directory | None, identifier: UUID | None) -> str | None:
    from msmqwire.directory import Equal, QueueManager

    if directory is None or identifier is None:
        return None
    machine = directory.read_directory(QueueManager, [Equal("identifier", identifier)])
    return None if machine is None else machine.computer_name


def _next_hops_as_json(directory: Directory, source: str, destination: DestinationInfo) -> dict[str, Any]:
    """Return the next hops, or why there are none; for a direct name, the address itself."""
    from msmqwire.routing import Router

    sender = find_machine(directory, source)
    shown: dict[str, Any] = {"source": sender.computer_name}
    if destination.queue_manager_guid is None:
        return {**shown, "reason": "there is no destination"}
    if destination.queue_manager_guid == NIL:
        return {**shown, "rule": "address", "queue_managers": []}
    try:
        found = Router(directory).explain_next_hops(sender.identifier, destination.queue_manager_guid)
    except RoutingError as error:
        if isinstance(error.__cause__, DirectoryError):
            raise
        return {**shown, "reason": str(error)}
    names = [_computer_name(directory, each) or str(each) for each in found.identifiers]
    return {**shown, "rule": found.rule, "queue_managers": names}


def _lines(found: dict[str, Any]) -> list[tuple[str, object]]:
    """Return the lines of the table: a label and a value."""
    name, destination, hops = found["name"], found["destination"], found.get("next_hops")
    parts = [(key, value) for key, value in name.items() if key not in ("text", "elements")]
    lines = [("name", name["text"]), *parts]
    lines += [("element", element["text"]) for element in name.get("elements", ())]
    if destination["status"]:
        # A private queue has no host name, a direct name no queue manager
        shown = [(key, value) for key, value in destination.items() if value not in (True, "", NIL)]
        lines += [(f"destination {key}", value) for key, value in shown]
    else:
        lines.append(("no destination", destination["reason"]))
    if hops is not None:
        wording = ", ".join(hops["queue_managers"]) or "the address itself" if "rule" in hops else hops["reason"]
        lines.append((f"next hop from {hops['source']}" if "rule" in hops else "no next hop", wording))
    return [(label.replace("_", " "), value) for label, value in lines]
