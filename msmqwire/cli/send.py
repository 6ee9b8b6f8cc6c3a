r"""Send messages to a queue over MSMQ's own protocol, and wait until they are acknowledged.

QUEUE is a format name or a path, as msmqwire resolve takes it. The message goes to port 1801 of the
computer in a direct name; DIRECT=OS:. is this computer. A public or private name needs --directory:
the message goes to the next hop from --from, else to the queue manager of the queue. --host connects
to another computer, for example through a tunnel.

The command ends when the queue manager has acknowledged all messages: it has received them, and has
recoverable ones on its disk. It acknowledges an express message after about ten seconds, or when 32
have come; a recoverable message after about half a second. After a broken connection the command
connects again, at most five seconds later each time, and sends what was not acknowledged.

A queue manager can reject a message that it has acknowledged: the queue does not exist, is full, or
takes transactional messages only. --wait reach asks for an answer when the message is in its queue,
--wait receive for one when an application has received it from there. The answers, and all else that
the queue manager sends on the session, are rows of the table messages on standard output;
correlation_ordinal is the number of the message. --admin-queue sends the answers elsewhere.

--rows reads messages from standard input, a JSON object a line, with the columns of the table
messages, for example body_text, label, delivery_mode; msmqwire decode --table messages writes such
rows. They go to QUEUE, as new messages; options that describe a message are for rows without the
column. Rows that cannot be sent, such as transactional ones, are left out and counted. A row that was
captured with a signature is sent without it, since it is that of another message.

--transactional --store DIR commits the messages to a store, all of them together, and sends each
exactly once and in order, also when the command or the receiver is killed: then send --store DIR
sends the rest. The command ends when the queue manager has acknowledged the order of all messages.
--wait final waits until an application has received each, or the queue manager has rejected it. The
store has dead letters and a journal: msmqwire store dead-letter DIR. A row may have a key: a second
row with the same key and queue is not sent, so that the command can be repeated with the same input.

--journal and --dead-letter append rows to a file; send --rows sends them again.

--format makes a body that Windows programs read: xml for the XmlMessageFormatter of .NET, activex
for the ActiveXMessageFormatter, Visual Basic and scripts, json for services that take UTF-8, bytes
for a byte array. Without it, a text is UTF-16 (VT_LPWSTR) and a file is a byte array.

exit status:
  0  all messages are acknowledged, and with --wait answered: none was rejected
  1  the session was refused, or messages were not acknowledged or answered in time; or wrong usage,
     or a file that cannot be read or written, or with --strict a row that cannot be sent
  2  rows were left out; standard error names and counts them
  3  with --wait, or of a transactional message: it was rejected or has expired; a row on standard
     output, or a line on standard error, has the reason
  4  transactional messages are not acknowledged in time, and stay in the store

examples:
  msmqwire send 'DIRECT=OS:server\private$\orders' --text hello --recoverable --wait reach
  msmqwire send 'DIRECT=TCP:10.20.1.10\private$\orders' --body order.xml --format xml --label order
  msmqwire send 'PRIVATE=ba000000-0000-4000-8000-0000000000c7\1F' --directory enterprise.toml --text hello
  msmqwire decode day.pcap --table messages -T json | msmqwire send 'DIRECT=OS:test\private$\orders' --rows
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.arguments import add_ping, add_quiet, add_store, input_file, ping_port
from msmqwire.cli.committing import Committing
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.enterprise import open_directory
from msmqwire.cli.message_copies import MessageCopies
from msmqwire.cli.message_files import MessageOutput
from msmqwire.cli.message_options import ACKNOWLEDGMENTS, add_message, body_of, properties_of
from msmqwire.cli.message_rows import OneMessage, RowMessages
from msmqwire.cli.next_hops import add_connection, find_destination
from msmqwire.cli.progress import message_progress
from msmqwire.cli.sending import sending

if TYPE_CHECKING:
    from msmqwire.cli.next_hops import Destination
    from msmqwire.cli.sending import Sending
    from msmqwire.session import MessageReceived

#: Where a queue manager answers on the session: a queue of this process, which has no other.
_ADMIN_QUEUE = r"DIRECT=TCP:{}\private$\msmqwire_send"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument(
        "name", metavar="QUEUE", nargs="?", help="the queue, such as DIRECT=OS:server\\private$\\orders"
    )
    add_message(parser)
    parser.add_argument("--strict", action="store_true", help="with --rows: end at the first row that cannot be sent")
    parser.add_argument(
        "--as-captured",
        action="store_true",
        help="with --rows: keep the identity, the queue, the signature and the encryption key of each row; QUEUE is "
        "where to connect",
    )
    parser.add_argument(
        "--wait",
        choices=(*ACKNOWLEDGMENTS, "final"),
        help="wait for an answer to each message: that it is in its queue, or received from it; of transactional ones "
        "final",
    )
    parser.add_argument(
        "--transactional",
        action="store_true",
        help="send to a transactional queue, each message once and in order; needs --store",
    )
    text = "keep the identity of this queue manager and transactional messages in this folder; without QUEUE, send "
    add_store(parser, text + "what is there")
    parser.add_argument(
        "--each", action="store_true", help="with --transactional --rows: commit each row, not all of them together"
    )
    parser.add_argument("--journal", metavar="FILE", help="append each message that is acknowledged to this file")
    parser.add_argument(
        "--dead-letter",
        metavar="FILE",
        help="append each message that expired, was rejected or was not acknowledged to this file, with the reason; "
        "the queue manager keeps those that it rejects as well",
    )
    add_connection(parser)
    add_ping(parser, "ask with a ping before the first connection")
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Send; the exit status."""
    _check(options)
    directory = None if options.directory is None else open_directory(options.directory)
    if options.name is None:
        return signals.run_until_stopped(Committing(options, None, directory).run(None))
    if options.rows:
        input_file("-", "table of JSON lines")
    destination = find_destination(options.name, directory, source=options.source, host=options.host)
    properties = properties_of(options)
    messages: OneMessage | RowMessages
    if options.rows:
        messages = RowMessages(options, destination.address, properties)
    else:
        from msmqwire.mqqb import UserMessage, encode

        fields = {**destination.address, **properties, **body_of(options)}
        encode(UserMessage(**fields))  # refused before connecting
        messages = OneMessage(fields, options.count or 1)
    if not options.transactional:
        return signals.run_until_stopped(_send(options, destination, messages))
    status = signals.run_until_stopped(Committing(options, destination, directory).run(messages))
    if (text := messages.describe()) and not options.quiet:
        say(text.lstrip(",; "))
    return status or (2 if messages.left_out else 0)


def _check(options: argparse.Namespace) -> None:
    """Refuse options that contradict each other."""
    if options.transactional:
        if options.store is None:
            raise CommandError("a transactional message is sent exactly once, which needs a store: --store DIR")
        if options.wait not in (None, "final") or options.as_captured or options.journal or options.dead_letter:
            raise CommandError(
                "the store has the journal and the dead letters of transactional messages: leave out --journal, "
                "--dead-letter, --as-captured, --wait reach and --wait receive"
            )
    elif options.each or options.wait == "final":
        raise CommandError("--each and --wait final are for transactional messages: add --transactional")
    if options.name is None:
        if options.store is None or options.transactional:
            raise CommandError("name the queue, or only the store whose messages are sent again: --store DIR")
        if options.rows or options.text is not None or options.body is not None:
            raise CommandError("name the queue of the messages")
    if options.rows and options.count is not None:
        raise CommandError("--count repeats one message: leave it out with --rows")
    if not options.rows and (options.strict or options.as_captured):
        raise CommandError("--strict and --as-captured are about rows: add --rows")
    if options.as_captured and options.wait:
        raise CommandError("--as-captured keeps the administration queue of each row: leave out --wait")
    if options.source is not None and options.directory is None:
        raise CommandError("--from needs the directory of the machine: --directory SOURCE")


async def _send(options: argparse.Namespace, destination: Destination, messages: OneMessage | RowMessages) -> int:
    """Send messages; wait for the acknowledgments and answers."""
    from msmqwire.session import Store

    files = {"journal": options.journal, "dead_letters": options.dead_letter}
    connection: dict[str, Any] = {
        **{name: MessageCopies(path) for name, path in files.items() if path is not None},
        "wait": options.wait or "",
        "write": _write,
        "ping_port": ping_port(options),
    }
    total = None if options.rows else options.count or 1
    with (
        contextlib.nullcontext() if options.store is None else Store(options.store) as store,
        message_progress(total, wanted=not options.quiet) as show,
    ):
        async with sending(options, destination, show, store=store, **connection) as session:
            answers = await _answers(options, session)
            failure = None
            try:
                async for make, _ in messages.makers():
                    try:
                        await session.send(make(**answers, **session.identity()), messages.name)
                    except ValueError as error:
                        messages.leave_out(error)
            except CommandError as error:
                failure = error
            await session.finish()  # also where the input ends early
            if failure is not None:
                raise failure
    if not options.quiet:
        say(session.describe_outcome() + messages.describe())
    if options.wait and session.rejected:
        return 3
    return 2 if messages.left_out else 0


async def _answers(options: argparse.Namespace, session: Sending) -> dict[str, Any]:
    """Return the fields that ask for the answers of ``--wait``."""
    if options.wait is None:
        return {}
    address = await session.open()
    asked: dict[str, Any] = dict.fromkeys(ACKNOWLEDGMENTS[options.wait], True)
    if options.admin_queue is None:
        asked["admin_queue"] = _ADMIN_QUEUE.format(address.partition("%")[0])
    return asked


async def _write(received: Sequence[MessageReceived]) -> None:
    """Write what the queue manager sends as rows, before it is acknowledged."""
    await MessageOutput(None).write(received)
