"""Where the messages to a format name go: its destination, and the next hops to it."""

from __future__ import annotations

import argparse
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.cli.arguments import add_source, host_name, port, seconds
from msmqwire.cli.console import CommandError
from msmqwire.cli.enterprise import add_directory, find_machine
from msmqwire.cli.queues import without_prefix
from msmqwire.wire.guids import NIL
from msmqwire.wire.ports import SESSION_PORT

if TYPE_CHECKING:
    from msmqwire.directory import Directory, QueueManager
    from msmqwire.formatname import FormatName
    from msmqwire.net import NextHop


def add_connection(parser: argparse.ArgumentParser, **directory: Any) -> None:
    """Add the options that say where messages are sent, and how long to wait for their acknowledgments."""
    add_directory(parser, **directory)
    add_source(parser, "the queue manager in the directory whose routes are taken")
    parser.add_argument("--host", type=host_name, metavar="HOST", help="connect to this name or address")
    parser.add_argument(
        "--port", type=port, default=SESSION_PORT, metavar="N", help="the TCP port (default: %(default)s)"
    )
    wait = "how long to wait for the acknowledgment of a message, or its answer (default: 60)"
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="SECONDS", help=wait)


@dataclass(frozen=True)
class Destination:
    """A queue, and where to connect.

    Attributes
    ----------
    address : dict
        The fields of a message that address it to the queue.
    hops : list of NextHop
        Tried in turn.
    """

    address: dict[str, Any]
    hops: list[NextHop]


def find_destination(
    name: str, directory: Directory | None, *, source: str | None = None, host: str | None = None
) -> Destination:
    """Get Destination Info and Get Next Hops: [MS-MQQB] 3.1.7.4, 3.1.5.2.1.

    Parameters
    ----------
    name : str
        A name of a queue, as ``queue_of`` reads it.
    source : str, optional
        The queue manager of the directory that sends; by default this computer, if the directory has it.
    host : str, optional
        Connect there, whatever the route.

    Raises
    ------
    CommandError
        There is no destination, or no host is known for it.
    FormatNameError, RoutingError, DirectoryError
        The name is not valid, there is no route, or the directory cannot be read.
    """
    from msmqwire.net import NextHop
    from msmqwire.routing import get_destination_info, host_of

    queue = queue_of(name, directory)
    _check_target(queue)
    info = get_destination_info(queue, directory)
    if not info.status or info.queue_manager_guid is None:
        remedy = "" if directory is not None or queue.kind not in ("public", "connector") else ": --directory SOURCE"
        raise CommandError(f"{name}: {info.reason}{remedy}")
    guid = info.queue_manager_guid
    address = {"destination_queue": queue, "queue_manager_address": guid}
    if guid == NIL:
        address_of_name = host_of(info.host_name or "")
        return Destination(address, [NextHop(host or ("localhost" if address_of_name == "." else address_of_name))])
    if directory is None:
        if host is None:
            raise CommandError(
                f"{name}: the computer of queue manager {guid} is unknown: name it with --host, or a directory "
                "with --directory"
            )
        return Destination(address, [NextHop(host, guid)])
    machines = _next_hops(directory, source, guid)
    return Destination(address, [NextHop(host or _host_of(machine), machine.identifier) for machine in machines])


def _host_of(machine: QueueManager) -> str:
    """Return the name of a queue manager's computer: the qualified one, if the directory has it."""
    name = str(getattr(machine, "qualified_computer_name", "") or machine.computer_name)
    if not name:
        raise CommandError(f"QueueManager {machine.identifier} has no ComputerName: name its computer with --host")
    return name


def queue_of(name: str, directory: Directory | None = None) -> FormatName:
    r"""Return the queue that a person names: a format name, or a path with its computer, also after ``FormatName:``.

    A path becomes a direct name, or with a directory that has such a public queue its public name.

    >>> queue_of(r"FormatName:DIRECT=TCP:10.0.0.1\orders") == queue_of(r"direct=tcp:10.0.0.1\ORDERS")
    True
    >>> str(queue_of(r"server\private$\orders"))
    'DIRECT=OS:server\\PRIVATE$\\orders'

    Raises
    ------
    FormatNameError, DirectoryError
        The name is not valid, or the directory cannot be read.
    """
    from msmqwire.directory import Equal, Queue
    from msmqwire.formatname import PublicName, parse

    name = without_prefix(name)
    if "=" in name.partition("\\")[0] or "\\" not in name:
        return parse(name, extended=True, http_slashes=True, spx=True, any_letters=True)
    found = None if directory is None else directory.read_directory(Queue, [Equal("pathname", name)])
    return PublicName(found.identifier) if found else parse(f"DIRECT=OS:{name}", any_letters=True)


def _check_target(queue: FormatName) -> None:
    """Refuse queues to which no message can be sent, or not over TCP."""
    from msmqwire.formatname import DirectName

    if suffix := getattr(queue, "suffix", None):
        kind = "a journal" if suffix == "journal" else "a dead-letter queue"
        raise CommandError(f"{queue}: {kind} takes messages of its own queue manager only; leave out ;{suffix.upper()}")
    if getattr(queue, "subqueue", None):
        raise CommandError(f"{queue}: applications move messages into a sub-queue; send to the queue itself")
    if isinstance(queue, DirectName) and queue.protocol not in ("tcp", "os"):
        raise CommandError(f"{queue}: messages are sent over TCP only, to DIRECT=OS:, DIRECT=TCP: or by a directory")


def _next_hops(directory: Directory, source: str | None, destination: UUID) -> list[QueueManager]:
    """Return the next hops from the sender, best first; the destination from a computer outside the directory."""
    from msmqwire.directory import Equal, QueueManager
    from msmqwire.routing import Router

    sender = _this_computer(directory) if source is None else find_machine(directory, source)
    identifiers: tuple[UUID, ...] = (destination,)
    if sender is not None and sender.identifier != destination:
        identifiers = Router(directory).explain_next_hops(sender.identifier, destination).identifiers
    found = [directory.read_directory(QueueManager, [Equal("identifier", each)]) for each in identifiers]
    machines = [machine for machine in found if machine is not None]
    if not machines:
        raise CommandError(f"the directory has no QueueManager {', '.join(map(str, identifiers))}, the next hop")
    return machines


def _this_computer(directory: Directory) -> QueueManager | None:
    try:
        return find_machine(directory, socket.gethostname().partition(".")[0])
    except CommandError:
        return None
