r"""Receive messages over MSMQ's own protocol, and write them as rows in JSON lines.

Each message is a row of the table messages, as msmqwire decode --table messages has it of a
capture. A recoverable message is acknowledged when its row is on disk, in files and in a redirected
standard output; a row in a pipe is flushed.

Without --queue messages to all queues are accepted. Messages to other queues, duplicates and
expired messages are acknowledged and not written. Transactional messages are not supported: their
session is closed. MSMQ does not authenticate senders by itself, so the command listens on
127.0.0.1 unless --listen says otherwise.

-o DIR appends to a file for each queue, such as DIR/private.orders.jsonl. Messages to queues whose
file cannot be opened, and to further queues after 1,024, are appended to DIR/others.jsonl.

--notifications takes messages to the notify queue of --queue-manager and applies them to its public
queues, which it reads from --directory at the start; it prints an object for each decision: created,
changed, deleted, ignored or disregarded, with the rule. Values of version 2 are read from
--directory, also when a notification names another server. Notifications of version 1 carry values,
and need an authenticated sender: see --trust.

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
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msmqwire.cli import signals
from msmqwire.cli.arguments import add_ping, add_quiet, count, guid, host_name, ping_port, port_or_free, seconds
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.descriptors import most_connections
from msmqwire.cli.enterprise import add_directory
from msmqwire.cli.message_files import MessageOutput
from msmqwire.cli.notified_queues import NotifiedQueues
from msmqwire.cli.queues import chosen_queues
from msmqwire.cli.target import standard_output
from msmqwire.errors import MsmqWireError, counted
from msmqwire.wire.ports import SESSION_PORT

if TYPE_CHECKING:
    from msmqwire.mqqb import UserMessage
    from msmqwire.net import SessionServer
    from msmqwire.session import Event, MessageDisregarded, MessageReceived

_NOTIFY_QUEUE = "private$\\notify_queue$"
_MOST_LINES = 100  # about sessions and messages that are not accepted


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
    parser.add_argument("--count", type=count, metavar="N", help="end after N messages")
    parser.add_argument("--seconds", type=seconds, metavar="S", help="end after S seconds")
    add_ping(parser, "answer pings of senders")
    parser.add_argument("-o", "--output", metavar="DIR", help="a file for each queue in this folder")
    parser.add_argument(
        "--notifications", action="store_true", help="apply change notifications, and print what they changed"
    )
    add_directory(parser, note="; for --notifications")
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
        if options.directory is not None or options.trust:
            raise CommandError("--directory and --trust are for notifications: add --notifications")
        accepts = chosen_queues(options.queue)
        return signals.run_until_stopped(_receive(options, accepts, MessageOutput(options.output)))
    if options.queue or options.output:
        raise CommandError("--notifications reads the notify queue and prints what changed: leave out --queue and -o")
    if options.directory is None or options.queue_manager is None:
        raise CommandError("--notifications needs the directory and its queue manager: --directory, --queue-manager")
    standard_output()
    queues = NotifiedQueues(options.directory, options.queue_manager, options.trust)
    return signals.run_until_stopped(_receive(options, chosen_queues([_NOTIFY_QUEUE]), queues))


async def _receive(
    options: argparse.Namespace, accepts: Callable[[UserMessage], bool] | None, output: MessageOutput | NotifiedQueues
) -> int:
    from msmqwire.net import serve
    from msmqwire.session import MessageLimit

    most = most_connections()
    # An output that cannot be written is the error of the command
    logging.getLogger("msmqwire.net").addHandler(logging.NullHandler())
    receiver = _Receiver(options.count, output)
    hosts = options.listen or ["127.0.0.1"]
    server = serve(
        receiver.store,
        hosts,
        options.port,
        identifier=options.queue_manager,
        accepts=accepts,
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
    finally:
        await server.close()
    if not options.quiet:
        say(f"{counted(receiver.received, 'message')} received" + receiver.disregarded_text())
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


class _Receiver:
    """What happens on all sessions."""

    def __init__(self, count: int | None, output: MessageOutput | NotifiedQueues) -> None:
        self.received = 0
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count = count
        self._output = output
        self._disregarded: Counter[str] = Counter()
        self._lines = self._ended_for_memory = 0
        self._has_reported_duplicate = False

    async def store(self, received: Sequence[MessageReceived]) -> None:
        """Write messages; an error ends the command, and they are not acknowledged."""
        try:
            await self._output.write(received)
        except (OSError, MsmqWireError, signals.Stopped) as error:
            if not self.ended.done():
                self.ended.set_exception(error)
            raise CommandError("the messages are not stored") from error
        self.received += len(received)
        if self.received == self._count and not self.ended.done():
            self.ended.set_result(None)

    def watch(self, event: Event, address: str) -> None:
        """Report sessions and messages that were not accepted."""
        from msmqwire.session import CloseReason, Disregarded, MessageDisregarded, SessionClosed

        quiet = (CloseReason.LOCAL, CloseReason.CONNECTION_LOST, CloseReason.IDLE)
        if isinstance(event, SessionClosed) and event.reason is CloseReason.MEMORY:
            self._ended_for_memory += 1
            # No other reports take the place of these, and their number grows with its logarithm
            if self._ended_for_memory < 10 or not self._ended_for_memory % 10 ** (len(str(self._ended_for_memory)) - 1):
                say(f"{address}: the session is closed: {event.detail}")
        elif isinstance(event, SessionClosed) and event.reason not in quiet:
            self._report(f"{address}: the session is closed: {event.detail}")
        elif isinstance(event, MessageDisregarded):
            self._disregarded[event.reason] += 1
            if event.reason is Disregarded.DUPLICATE and event.first_address != address:
                self._report_other_address(event, address)

    def disregarded_text(self) -> str:
        """How many messages were not written, by reason, and how many sessions were ended for their memory."""
        ended = f"; {counted(self._ended_for_memory, 'session')} ended for memory" if self._ended_for_memory else ""
        reasons = (f", {number:,} {reason.replace('_', ' ')}" for reason, number in self._disregarded.items())
        return "".join(reasons) + ended

    def _report_other_address(self, duplicate: MessageDisregarded, address: str) -> None:
        """Report the first duplicate: its sender may have another route, or somebody sends under its identifiers."""
        if not self._has_reported_duplicate:
            self._has_reported_duplicate = True
            identifier = f"{duplicate.message.source_queue_manager}\\{duplicate.message.message_id}"
            say(
                f"{address}: message {identifier} is a duplicate and not written: "
                f"{duplicate.first_address} sent one with this identifier before; further ones are only counted"
            )

    def _report(self, text: str) -> None:
        self._lines += 1
        if self._lines <= _MOST_LINES:
            say(text)
        if self._lines == _MOST_LINES:
            say("further sessions that are closed are not reported")
