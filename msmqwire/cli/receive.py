r"""Receive messages over MSMQ's own protocol, and write them as rows in JSON lines.

Each message is a row of the table messages, as msmqwire decode --table messages has it of a
capture, after the address of the sender and the time. A recoverable message is acknowledged when its
row is on disk, in files and in a redirected standard output; a row in a pipe is flushed.

Without --queue messages to all queues are accepted. Messages to other queues, duplicates and
expired messages are acknowledged and not written; standard error has a line for each other queue.
Transactional messages are written in their order, at least once: a row that comes twice has the same
token. A queue of --queue takes them if --transactional names it, and rejects them otherwise: the
sender keeps a dead letter if it was asked to. Without --queue all queues take them. --directory says
which of the public queues of --queue-manager are transactional, and which have the names PUBLIC=
that senders use; private queues with a number are named as PRIVATE=GUID\N. MSMQ does not authenticate
senders by itself, so the command listens on 127.0.0.1 unless --listen says otherwise.

-o DIR appends to a file for each queue, such as DIR/private.orders.jsonl. Messages to queues whose
file cannot be opened, and to further queues after 1,024, are appended to DIR/others.jsonl.

--notifications takes messages to the notify queue of --queue-manager and applies them to its public
queues, which it reads from --directory at the start; it prints an object for each decision: created,
changed, deleted, ignored or disregarded, with the rule. As on Windows they wait for a minute, or until a
quarter of an hour has passed since the last ones, and are in memory until then; the end of the
command applies those that wait. If 100 more come, all are dropped, and the queues are read from the
directory: overflowed. Values of version 2 are read from --directory, also when a notification names
another server. Notifications of version 1 carry values, and need an authenticated sender: see --trust.

exit status:
  0  N messages were received, or S seconds have passed
  1  wrong usage, an address that cannot be bound, or an output that cannot be written

examples:
  msmqwire receive --queue 'private$\orders' --count 1
  msmqwire receive --listen 0.0.0.0 --listen :: --ping -o messages
  msmqwire receive | jq .body_text
  msmqwire receive --notifications --directory enterprise.toml \
      --queue-manager ba000000-0000-4000-8000-0000000000c7
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.arguments import (
    add_ping,
    add_quiet,
    add_store,
    count,
    guid,
    host_name,
    ping_port,
    port_or_free,
    seconds,
)
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.descriptors import most_connections
from msmqwire.cli.enterprise import add_directory, find_queue_manager, open_directory
from msmqwire.cli.message_files import MessageOutput
from msmqwire.cli.notified_queues import NotifiedQueues
from msmqwire.cli.queues import PublicQueues, chosen_queues, kinds_of_queues
from msmqwire.cli.receiving import Receiver
from msmqwire.cli.target import standard_output
from msmqwire.wire.ports import SESSION_PORT

if TYPE_CHECKING:
    from msmqwire.net import SessionServer

_NOTIFY_QUEUE = "private$\\notify_queue$"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument(
        "--listen",
        action="append",
        type=host_name,
        metavar="ADDRESS",
        help="an address of this computer, IPv4 or IPv6 (default: 127.0.0.1); may be repeated",
    )
    parser.add_argument(
        "--port",
        type=port_or_free,
        default=SESSION_PORT,
        metavar="N",
        help="the TCP port (default: %(default)s); 0 for a free one",
    )
    parser.add_argument(
        "--queue-manager", type=guid, metavar="GUID", help="the identifier of this queue manager (default: a new one)"
    )
    parser.add_argument(
        "--queue",
        action="append",
        default=[],
        metavar="NAME",
        help="only this queue: a path such as private$\\orders, or a format name; may be repeated",
    )
    parser.add_argument(
        "--transactional",
        action="append",
        default=[],
        metavar="NAME",
        help="a transactional queue, named as with --queue; may be repeated",
    )
    text = "keep messages, their order and the identity of this queue manager in this folder: files have each message "
    add_store(parser, text + "once")
    parser.add_argument(
        "--quota",
        type=count,
        metavar="BYTES",
        help="reject messages while those of the store that are not written have more bytes",
    )
    parser.add_argument(
        "--insecure-nacks",
        action="store_true",
        help="answer messages to other queues with nack_bad_dst_q, as Windows does with PermitInsecureNacks; strangers "
        "find queues by it",
    )
    parser.add_argument("--count", type=count, metavar="N", help="end after N messages")
    parser.add_argument("--seconds", type=seconds, metavar="S", help="end after S seconds")
    add_ping(parser, "answer pings of senders")
    parser.add_argument("-o", "--output", metavar="DIR", help="a file for each queue in this folder")
    parser.add_argument(
        "--notifications", action="store_true", help="apply change notifications, and print what they changed"
    )
    add_directory(parser, note="; with --queue-manager")
    parser.add_argument(
        "--trust",
        action="append",
        default=[],
        type=guid,
        metavar="GUID",
        help="believe signed notifications of version 1 that claim to be from this queue manager; may be repeated",
    )
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Receive; the exit status."""
    if not options.notifications:
        if options.trust:
            raise CommandError("--trust is for notifications: add --notifications")
        public = _public_queues(options)
        accepts, transactional = kinds_of_queues(options.queue, options.transactional, public, options.queue_manager)
        queues = {"accepts": accepts, "transactional": transactional}
        if options.store is None:
            if options.quota is not None:
                raise CommandError("--quota limits the messages of a store: add --store DIR")
            if options.transactional and not options.quiet:
                say("transactional messages are written at least once: no --store")
            return signals.run_until_stopped(_receive(options, MessageOutput(options.output, public), **queues))
        from msmqwire.session import Store

        with Store(options.store, options.queue_manager, quota=options.quota) as store:
            output = MessageOutput(options.output, public, store)
            return signals.run_until_stopped(_receive(options, output, store=store, **queues))
    if options.queue or options.transactional or options.output or options.store:
        raise CommandError(
            "--notifications reads the notify queue and prints what changed: leave out --queue, --transactional, "
            "--store and -o"
        )
    if options.directory is None or options.queue_manager is None:
        raise CommandError("--notifications needs the directory and its queue manager: --directory, --queue-manager")
    standard_output()
    notified = NotifiedQueues(options.directory, options.queue_manager, options.trust)
    return signals.run_until_stopped(_receive(options, notified, accepts=chosen_queues([_NOTIFY_QUEUE])))


def _public_queues(options: argparse.Namespace) -> PublicQueues:
    """Return the public queues that the directory has for this queue manager."""
    if options.directory is None:
        return PublicQueues()
    if options.queue_manager is None:
        raise CommandError("--directory needs the identifier of this queue manager in it: --queue-manager GUID")
    directory = open_directory(options.directory)
    machine = find_queue_manager(directory, options.queue_manager)
    try:
        return PublicQueues(directory.queues_of(machine))
    except ValueError as error:
        raise CommandError(f"{options.directory}: {error}") from None


async def _receive(options: argparse.Namespace, output: MessageOutput | NotifiedQueues, **server_options: Any) -> int:
    from msmqwire.net import serve
    from msmqwire.session import MessageLimit, Settings

    most = most_connections()
    # An output that cannot be written is the error of the command
    logging.getLogger("msmqwire.net").addHandler(logging.NullHandler())
    receiver = Receiver(options.count, output, options.store)
    hosts = options.listen or ["127.0.0.1"]
    server = serve(
        receiver.store,
        hosts,
        options.port,
        identifier=options.queue_manager,
        settings=Settings(send_insecure_nacks=options.insecure_nacks),
        **server_options,
        limit=None if options.count is None else MessageLimit(options.count),
        max_sessions=most,
        watch=receiver.watch,
    )
    await _start(server, hosts, options)
    if not options.quiet:
        places = " and ".join(f"{address} port {number}" for address, number in server.addresses)
        say(f"listening on {places} as queue manager {server.identifier}")
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(receiver.ended, options.seconds)
    except asyncio.CancelledError:
        await server.close()
        await receiver.finish(options.quiet)
        raise
    finally:
        await server.close()
    await receiver.finish(options.quiet)
    return 0


async def _start(server: SessionServer, hosts: Sequence[str], options: argparse.Namespace) -> None:
    from msmqwire.net.session_link import reason_of

    try:
        await server.start()
        pinged = ping_port(options)
        if pinged is not None:
            await server.answer_pings(pinged)
    except OSError as error:
        await server.close()
        place = error.filename or f"{', '.join(hosts)} port {options.port}"
        raise CommandError(f"cannot listen on {place}: {reason_of(error)}") from None
