r"""Send messages to a queue over MSMQ's own protocol, and wait until they are acknowledged.

The message goes to port 1801 of the computer in a direct name. A public or private name needs
--directory: the message goes to the next hop from --from, else to the queue manager of the queue.
--host connects to another computer, for example through a tunnel.

The command ends when the queue manager has acknowledged all messages. It acknowledges an express
message after about ten seconds, or when 32 have come; a recoverable message after about half a
second, when it is on its disk. After a broken connection the command connects again, at most five
seconds later each time, and sends what was not acknowledged.

--rows reads messages from standard input, a JSON object a line, with the columns of the table
messages, for example body_text, label, delivery_mode; msmqwire decode --table messages writes such
rows. They go to FORMATNAME, as new messages; --label and --recoverable are for rows without the column.
A transactional row ends the command.

exit status:
  0  all messages are acknowledged
  1  the session was refused, or messages were not acknowledged in time; or wrong usage, or a file
     or a row that cannot be read

examples:
  msmqwire send 'DIRECT=OS:server\private$\orders' --text hello --recoverable
  msmqwire send 'DIRECT=TCP:10.20.1.10\private$\orders' --body order.xml --label order
  msmqwire send 'PRIVATE=ba000000-0000-4000-8000-0000000000c7\1F' --directory enterprise.toml --text hello
  msmqwire decode day.pcap --table messages -T json | msmqwire send 'DIRECT=OS:test\private$\orders' --rows
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.arguments import add_ping, add_quiet, count, input_file, ping_port
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.enterprise import open_directory
from msmqwire.cli.next_hops import add_connection, find_destination
from msmqwire.cli.progress import message_progress
from msmqwire.cli.sending import Sending, sending
from msmqwire.errors import MsmqWireError, counted

if TYPE_CHECKING:
    from msmqwire.cli.next_hops import Destination
    from msmqwire.mqqb import UserMessage

_LARGEST_BODY = 4 << 20
_CHUNK = 1 << 16
_LONGEST_LABEL = 249  # code units without the terminator: [MS-MQMQ] 2.2.19.3


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("name", metavar="FORMATNAME", help="a format name, such as DIRECT=OS:server\\private$\\orders")
    content = parser.add_mutually_exclusive_group()
    content.add_argument("--body", metavar="FILE", help="the body is the bytes of this file; - is standard input")
    content.add_argument("--text", metavar="TEXT", help="the body is this text, in UTF-16")
    content.add_argument("--rows", action="store_true", help="messages from standard input, in JSON lines")
    parser.add_argument("--label", default="", metavar="L", help=f"the label, at most {_LONGEST_LABEL} characters")
    parser.add_argument(
        "--recoverable", action="store_true", help="the queue manager stores the message on disk (default: express)"
    )
    parser.add_argument("--count", type=count, metavar="N", help="send the message N times (default: 1)")
    add_connection(parser)
    add_ping(parser, "ask with a ping before the first connection")
    add_quiet(parser)


def run(options: argparse.Namespace) -> int:
    """Send; the exit status."""
    if options.rows and options.count is not None:
        raise CommandError("--count repeats one message: leave it out with --rows")
    if options.source is not None and options.directory is None:
        raise CommandError("--from needs the directory of the machine: --directory SOURCE")
    if (size := len(_utf16("--label", options.label)) // 2) > _LONGEST_LABEL:
        raise CommandError(f"label: has {size:,} code units, at most {_LONGEST_LABEL}")
    if options.rows:
        input_file("-", "table of JSON lines")
    directory = None if options.directory is None else open_directory(options.directory)
    destination = find_destination(options.name, directory, source=options.source, host=options.host)
    message = None if options.rows else _message(options, destination)
    return signals.run_until_stopped(_send(options, destination, message))


def _message(options: argparse.Namespace, destination: Destination) -> UserMessage:
    """The message that the options describe (S22)."""
    from msmqwire.mqqb import UserMessage
    from msmqwire.propvariant import VT_LPWSTR, VT_UI1, VT_VECTOR

    body, body_type = b"", 0
    if options.text is not None:
        body, body_type = _utf16("--text", options.text), VT_LPWSTR
    elif options.body is not None:
        body, body_type = _file(options.body), VT_VECTOR | VT_UI1
    return UserMessage(
        **destination.address,
        label=options.label,
        delivery_mode="recoverable" if options.recoverable else "express",
        body=body,
        body_type=body_type,
    )


def _utf16(option: str, text: str) -> bytes:
    try:
        return text.encode("utf-16-le")
    except UnicodeEncodeError:
        raise CommandError(f"{option} is not valid in the encoding of this terminal") from None


def _file(name: str) -> bytes:
    """The bytes of a file, not more than a packet can have."""
    if input_file(name, "body") == "-":
        body = sys.stdin.buffer.read(_LARGEST_BODY + 1)
    else:
        with open(name, "rb") as file:
            body = file.read(_LARGEST_BODY + 1)
    if len(body) > _LARGEST_BODY:
        raise CommandError(f"{name}: the body has more than {_LARGEST_BODY:,} bytes, the limit of a packet")
    return body


async def _send(options: argparse.Namespace, destination: Destination, message: UserMessage | None) -> int:
    """Send a message, or without one the rows of standard input; wait for the acknowledgments."""
    total = None if message is None else options.count or 1
    with message_progress(total, wanted=not options.quiet) as show:
        async with sending(options, destination, show, ping_port=ping_port(options)) as session:
            if message is None:
                await _send_rows(session, options, destination)
            else:
                for _ in range(options.count or 1):
                    await session.send(message)
                await session.client.acknowledged()
    if not options.quiet:
        by = f" by queue manager {session.queue_manager}" if session.queue_manager else ""
        say(f"{counted(session.acknowledged, 'message')} acknowledged{by}")
    return 0


# --- Rows ---


async def _send_rows(session: Sending, options: argparse.Namespace, destination: Destination) -> None:
    """Send the rows of standard input up to the first that cannot be sent; wait for the acknowledgments."""
    failure: CommandError | None = None
    number = 0
    try:
        async for line in _lines():
            number += 1
            if line.strip():
                await session.send(_message_of_row(_row(line), options, destination))
    except OSError as error:
        failure = CommandError(f"standard input: {error.strerror}")
    except (MsmqWireError, ValueError, TypeError, KeyError) as error:
        if session.client.is_refused:
            raise
        reason = f"{error} is missing" if isinstance(error, KeyError) else error
        failure = CommandError(f"standard input: line {number}: {reason}")
    await session.client.acknowledged()
    if failure is not None:
        raise failure


def _message_of_row(row: dict[str, Any], options: argparse.Namespace, destination: Destination) -> UserMessage:
    """A new message with the values of a row, for the queue of the command."""
    from msmqwire.cli.packets import message_of

    kept = {name: value for name, value in row.items() if name not in _REPLACED}
    kept.setdefault("label", options.label)
    if options.recoverable:
        kept.setdefault("delivery_mode", "recoverable")
    return message_of(kept, **destination.address)


#: What the session and the route give each message anew.
_REPLACED = frozenset(
    (
        *("destination_queue", "queue_manager_address", "source_queue_manager", "message_id", "sent_time", "hop_count"),
        *("ack_sequence_number", "recoverable_msg_ack_seq_number", "recoverable_msg_ack_flags"),
        *("user_msg_sequence_number", "recoverable_msg_seq_number", "window_size"),
    )
)


def _row(line: bytes) -> dict[str, Any]:
    from msmqwire.cli.packets import check_columns, row_of

    row = row_of(line)
    if row.pop("table", "messages") != "messages":
        raise ValueError("only rows of the table messages can be sent")
    check_columns(row, "messages")
    if row.get("fault") or row.get("kind", "user_message") != "user_message":
        raise ValueError("the row is no message that can be sent")
    return row


async def _lines() -> AsyncIterator[bytes]:
    """The lines of standard input, of one that is too long its beginning.

    A thread reads them, since a regular file cannot be awaited.
    """
    from msmqwire.cli.packets import LONGEST_ROW
    from msmqwire.net.host_addresses import start_thread

    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes | OSError] = asyncio.Queue(4)

    def read() -> None:
        while hand_over(_chunk()):
            pass

    def hand_over(chunk: bytes | OSError) -> bool:
        """Whether there may be more, and the loop wants it."""
        putting = chunks.put(chunk)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except (RuntimeError, CancelledError):  # the loop has ended
            putting.close()
            return False
        return isinstance(chunk, bytes) and chunk != b""

    start_thread(read)
    rest = bytearray()
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise chunk
        *lines, last = chunk.split(b"\n")
        for line in lines:
            yield bytes(rest + line)
            rest.clear()
        rest += last
        if len(rest) > LONGEST_ROW:
            break
    if rest:
        yield bytes(rest)


def _chunk() -> bytes | OSError:
    """What standard input has, as soon as it has it; at its end nothing."""
    try:
        return os.read(sys.stdin.fileno(), _CHUNK)
    except OSError as error:
        return error
