r"""Notify queue managers that queues were created, changed or deleted in the directory.

A notification is a message to the notify queue of the queue manager that hosts the queue, or that
was changed itself. It is of version 2: it names the object and the server of the directory, and the
queue manager reads the values there. Only the queue manager and the identifier of the object are
read from --directory.

With --before the changes are those from one state of the directory to another: queues that were
created, changed and deleted, and queue managers that were changed. A queue manager that cannot be
notified, such as one that was deleted with its queues, is an error after the others are.

Notifications are express messages: a queue manager acknowledges them after about ten seconds. They
are not signed ([MS-MQCN] 3.3.5.3 asks for it): one that takes authenticated notifications only
disregards them, and acknowledges them all the same.

exit status:
  0  all notifications are acknowledged, or there is no change
  1  wrong usage, an object that the directory does not have, or a queue manager that does not answer

examples:
  msmqwire notify change 'ledger\orders' --directory enterprise.toml --server dc1.contoso.example
  msmqwire notify delete 0e000000-0000-4000-8000-000000000001 --directory old.toml --server dc1
  msmqwire notify --before old.toml --directory new.toml --server dc1.contoso.example
"""

from __future__ import annotations

import argparse
import asyncio
import uuid
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from msmqwire.cli import signals
from msmqwire.cli.arguments import add_quiet, object_name
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.descriptors import most_connections
from msmqwire.cli.enterprise import find_machine, is_url, open_directory
from msmqwire.cli.next_hops import add_connection, find_destination
from msmqwire.cli.sending import sending
from msmqwire.errors import DirectoryError, MsmqWireError, RoutingError, counted

if TYPE_CHECKING:
    from msmqwire.cli.next_hops import Destination
    from msmqwire.directory import Directory, Queue, QueueManager
    from msmqwire.notification.sender import Change, Notification

_EVENTS = ("create", "change", "delete")

Object = TypeVar("Object", "Queue", "QueueManager")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("event", nargs="?", choices=_EVENTS, metavar="EVENT", help=", ".join(_EVENTS))
    parser.add_argument(
        "object",
        nargs="?",
        type=object_name,
        metavar="OBJECT",
        help="the queue, by its pathname or identifier; or with change a queue manager, by its name",
    )
    parser.add_argument("--before", metavar="SOURCE", help="an earlier state: notify of every difference")
    parser.add_argument(
        "--server", metavar="NAME", help="the directory server that has the values (default: the host of an LDAP URL)"
    )
    add_connection(parser, required=True)
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Notify; the exit status."""
    from msmqwire.notification.sender import Sender

    if (options.before is None) == (options.event is None) or (options.event and not options.object):
        raise CommandError("name an event and an object, as in change 'ledger\\orders', or an earlier state: --before")
    directory = open_directory(options.directory)
    if options.before is None:
        changes = [_change(options.event, options.object, directory)]
    else:
        changes = list(_differences(open_directory(options.before), directory))
    # A sender without a store has a new identifier for each run (S11)
    identifier = uuid.uuid4()
    sender = Sender(queue_manager=identifier, domain_controller=_server(options))
    groups: dict[uuid.UUID, list[Notification]] = {}
    for notification in sender.notifications(changes):
        groups.setdefault(notification.queue_manager, []).append(notification)
    destinations, failures = _destinations(groups, directory, options)
    signals.run_until_stopped(_notify_all(options, identifier, groups, destinations, failures))
    if not options.quiet:
        number = sum(map(len, groups.values()))
        say(f"{counted(number, 'notification')} acknowledged by {counted(len(groups), 'queue manager')}")
    return 0


def _server(options: argparse.Namespace) -> str:
    """Return the DomainController of the notifications."""
    if options.server:
        return str(options.server)
    if is_url(options.directory):
        from urllib.parse import urlsplit

        host: str | None = urlsplit(options.directory).hostname
        if host:
            return host
    raise CommandError("name the directory server that queue managers read: --server NAME")


# --- Changes ---


def _change(event: str, name: str, directory: Directory) -> Change:
    """Return the change of one object."""
    from msmqwire.notification.sender import QueueCreation, QueueDeletion, QueueManagerUpdate, QueueUpdate

    queue = _find_queue(directory, name)
    if queue is None:
        if event != "change" or "\\" in name:
            raise CommandError(f"no Queue in the directory has the Pathname or the Identifier {name}")
        machine = find_machine(directory, name)
        return QueueManagerUpdate(new=machine)
    host = _host_of(queue, directory)
    if event == "change":
        return QueueUpdate(new=queue, queue_manager=host)
    kind = QueueCreation if event == "create" else QueueDeletion
    return kind(queue=queue, queue_manager=host)


def _find_queue(directory: Directory, name: str) -> Queue | None:
    from msmqwire.directory import Equal, Queue
    from msmqwire.routing.topology import identifier_of

    identifier = identifier_of(name)
    condition = Equal("pathname", name) if identifier is None else Equal("identifier", identifier)
    return directory.read_directory(Queue, [condition])


def _host_of(queue: Queue, directory: Directory) -> uuid.UUID:
    """Return the queue manager that hosts a queue."""
    from msmqwire.formatname import PublicName
    from msmqwire.routing import get_destination_info

    info = get_destination_info(PublicName(queue.identifier), directory)
    if info.queue_manager_guid is None:
        raise DirectoryError(f"queue {queue.pathname}: {info.reason}")
    return info.queue_manager_guid


def _differences(before: Directory, after: Directory) -> Iterator[Change]:
    """Yield the changes from one state of a directory to another, deletions first."""
    from msmqwire.directory import Queue, QueueManager
    from msmqwire.notification.sender import QueueCreation, QueueDeletion, QueueManagerUpdate, QueueUpdate

    old, new = _by_identifier(before.read_all(Queue)), _by_identifier(after.read_all(Queue))
    for identifier in old.keys() - new.keys():
        yield QueueDeletion(queue=old[identifier], queue_manager=_host_of(old[identifier], before))
    for identifier, queue in new.items():
        if identifier not in old:
            yield QueueCreation(queue=queue, queue_manager=_host_of(queue, after))
        elif _differ(old[identifier], queue):
            yield QueueUpdate(new=queue, queue_manager=_host_of(queue, after))
    machines = _by_identifier(before.read_all(QueueManager))
    for machine in after.read_all(QueueManager):
        earlier = machines.get(machine.identifier)
        if earlier is not None and _differ(earlier, machine):
            yield QueueManagerUpdate(new=machine)


def _differ(old: Object, new: Object) -> bool:
    """Return True if an object has changed, in the attributes that both directories have of it."""
    before, after = old.attributes(), new.attributes()
    return any(before[name] != after[name] for name in before.keys() & after.keys())


def _by_identifier(objects: Iterable[Object]) -> dict[uuid.UUID, Object]:
    return {each.identifier: each for each in objects}


# --- Sending ---


def _destinations(
    groups: dict[uuid.UUID, list[Notification]], directory: Directory, options: argparse.Namespace
) -> tuple[dict[uuid.UUID, Destination], list[str]]:
    """Return where each queue manager is, and why some cannot be notified, which does not keep the others from it."""
    destinations: dict[uuid.UUID, Destination] = {}
    failures: list[str] = []
    for queue_manager, each in groups.items():
        name = str(each[0].destination_queue)
        try:
            destinations[queue_manager] = find_destination(name, directory, source=options.source, host=options.host)
        except (CommandError, RoutingError) as error:
            failures.append(f"queue manager {queue_manager}: {error}")
    return destinations, failures


async def _notify_all(
    options: argparse.Namespace,
    identifier: uuid.UUID,
    groups: dict[uuid.UUID, list[Notification]],
    destinations: dict[uuid.UUID, Destination],
    failures: list[str],
) -> None:
    """Send all notifications, those to each queue manager in their order; an error for these and further failures."""
    # Each session may need a second descriptor, to look up its host
    at_once = asyncio.Semaphore(max(1, most_connections() // 2))
    sessions = (
        _notify(options, identifier, destination, groups[each], at_once) for each, destination in destinations.items()
    )
    results = await asyncio.gather(*sessions, return_exceptions=True)
    failures = failures + [
        f"queue manager {queue_manager}: {result}"
        for queue_manager, result in zip(destinations, results, strict=True)
        if isinstance(result, MsmqWireError)
    ]
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, MsmqWireError):
            raise result
    if failures:
        raise CommandError("; ".join(failures))


async def _notify(
    options: argparse.Namespace,
    identifier: uuid.UUID,
    destination: Destination,
    notifications: list[Notification],
    at_once: asyncio.Semaphore,
) -> None:
    async with at_once, sending(options, destination, identifier=identifier) as session:
        for notification in notifications:
            await session.send(notification.packet())
        await session.client.acknowledged()
