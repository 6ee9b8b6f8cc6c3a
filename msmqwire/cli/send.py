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
rows. They go to FORMATNAME, as new messages.

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
import json
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.arguments import add_quiet, count, input_file, port
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.enterprise import open_directory
from msmqwire.cli.next_hops import add_connection, find_destination
from msmqwire.cli.progress import message_progress
from msmqwire.errors import MsmqWireError, counted

if TYPE_CHECKING:
    from msmqwire.cli.next_hops import Destination
    from msmqwire.mqqb import UserMessage
    from msmqwire.net import SessionClient
    from msmqwire.session import Event

_VT_LPWSTR = 31
_VT_VECTOR_UI1 = 0x1011
_LARGEST_BODY = 4 << 20
_CHUNK = 1 << 16


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("name", metavar="FORMATNAME", help="a format name, such as DIRECT=OS:server\\private$\\orders")
    content = parser.add_mutually_exclusive_group()
    content.add_argument("--body", metavar="FILE", help="the body is the bytes of this file; - is standard input")
    content.add_argument("--text", metavar="TEXT", help="the body is this text, in UTF-16")
    content.add_argument("--rows", action="store_true", help="messages from standard input, in JSON lines")
    parser.add_argument("--label", default="", metavar="L", help="the label, at most 249 characters")
    parser.add_argument(
        "--recoverable", action="store_true", help="the queue manager stores the message on disk (default: express)"
    )
    parser.add_argument("--count", type=count, metavar="N", help="send the message N times (default: 1)")
    add_connection(parser)
    parser.add_argument("--ping", action="store_true", help="ask with a ping before each connection")
    parser.add_argument("--ping-port", type=port, default=3527, metavar="N", help="the UDP port (default: 3527)")
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Send; the exit status."""
    if options.rows and options.count is not None:
        raise CommandError("--count repeats one message: leave it out with --rows")
    if options.source and not options.directory:
        raise CommandError("--from needs the directory of the machine: --directory SOURCE")
    directory = open_directory(options.directory) if options.directory else None
    destination = find_destination(options.name, directory, source=options.source, host=options.host)
    message = None if options.rows else _message(options, destination)
    return signals.run_until_stopped(_send(options, destination, message))


def _message(options: argparse.Namespace, destination: Destination) -> UserMessage:
    """The message that the options describe (S22)."""
    from msmqwire.mqqb import UserMessage

    body, body_type = b"", 0
    if options.text is not None:
        body, body_type = _utf16(options.text), _VT_LPWSTR
    elif options.body is not None:
        body, body_type = _file(options.body), _VT_VECTOR_UI1
    return UserMessage(
        **destination.address,
        label=options.label,
        delivery_mode="recoverable" if options.recoverable else "express",
        body=body,
        body_type=body_type,
    )


def _utf16(text: str) -> bytes:
    try:
        return text.encode("utf-16-le")
    except UnicodeEncodeError:
        raise CommandError("--text is not valid in the encoding of this terminal") from None


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


async def _send(
    options: argparse.Namespace, destination: Destination, message: UserMessage | None, count: int | None
) -> int:
    """Send one message ``count`` times, or the rows of standard input; wait for the acknowledgments."""
    from msmqwire.net import connect

    waiting = _Waiting(options.timeout)
    client = connect(
        destination.hops,
        options.port,
        ping_port=options.ping_port if options.ping else None,
        watch=waiting.watch,
    )
    error: MsmqWireError | None = None
    with message_progress(count, wanted=not options.quiet) as waiting.draw:
        watchdog = asyncio.ensure_future(waiting.expire(client))
        work = asyncio.ensure_future(_send_all(client, waiting, options, destination, message, count))
        try:
            await asyncio.wait([work, watchdog], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
            else:
                watchdog.result()
        except MsmqWireError as failure:
            error = failure
        finally:
            work.cancel()
            watchdog.cancel()
            await asyncio.wait([work, watchdog])
            await client.close()
    if error is not None:
        raise CommandError(waiting.describe(error))
    if not options.quiet:
        say(f"{counted(waiting.acknowledged, 'message')} acknowledged by queue manager {waiting.queue_manager}")
    return 0


async def _send_all(
    client: SessionClient,
    waiting: _Waiting,
    options: argparse.Namespace,
    destination: Destination,
    message: UserMessage | None,
    count: int | None,
) -> None:
    failure: CommandError | None = None
    if message is not None and count is not None:
        for _ in range(count):
            waiting.started(await client.send(message))
    else:
        try:
            async for line, row in _rows():
                try:
                    waiting.started(await client.send(_message_of_row(row, options, destination)))
                except (MsmqWireError, ValueError, TypeError, KeyError) as error:
                    if client.is_refused:
                        raise
                    reason = f"{error} is missing" if isinstance(error, KeyError) else error
                    raise CommandError(f"standard input: line {line}: {reason}") from None
        except CommandError as error:
            # The rows before are sent
            failure = error
    await client.acknowledged()
    if failure is not None:
        raise failure


class _Waiting:
    """The messages that are not acknowledged, and since when."""

    def __init__(self, timeout: float) -> None:
        self.draw: Callable[[int], None] = lambda _: None
        self.acknowledged = 0
        self.queue_manager: Any = None
        self._timeout = timeout
        self._sent: dict[int, float] = {}

    def started(self, message_id: int) -> None:
        self._sent[message_id] = time.monotonic()

    def watch(self, event: Event) -> None:
        from msmqwire.session import MessagesAcknowledged, SessionOpened

        if isinstance(event, SessionOpened):
            self.queue_manager = event.remote_queue_manager
        elif isinstance(event, MessagesAcknowledged):
            for message_id in event.message_ids:
                self._sent.pop(message_id, None)
            self.acknowledged += len(event.message_ids)
            self.draw(self.acknowledged)

    async def expire(self, client: SessionClient) -> None:
        """Raise an error when a message has waited too long."""
        while True:
            oldest = next(iter(self._sent.values()), time.monotonic())
            left = oldest + self._timeout - time.monotonic()
            if left <= 0:
                state = "the session is open" if client.is_open else "the queue manager does not answer"
                reason = client.failure or state
                raise CommandError(f"no acknowledgment within {self._timeout:g} s: {reason}")
            await asyncio.sleep(left)

    def describe(self, error: MsmqWireError) -> str:
        """The error, and how many messages it leaves."""
        lost = len(self._sent)
        if not self.acknowledged and lost <= 1:
            return str(error)
        return f"{error}; {counted(self.acknowledged, 'message')} acknowledged, {lost:,} not"


# --- Rows ---


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


async def _rows() -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """The rows of standard input with their lines, as they come."""
    number = 0
    async for line in _lines():
        number += 1
        if line.strip():
            yield number, _row(line, number)


def _row(line: bytes, number: int) -> dict[str, Any]:
    from msmqwire.capture import table_columns

    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"standard input: line {number}: expected a JSON object: {error}") from None
    if not isinstance(row, dict):
        raise CommandError(f"standard input: line {number}: expected a JSON object")
    if row.pop("table", "messages") != "messages":
        raise CommandError(f"standard input: line {number}: only rows of the table messages can be sent")
    if more := row.keys() - {*table_columns("messages"), "fault", "violations"}:
        raise CommandError(f"standard input: line {number}: {', '.join(sorted(more))}: no such column of messages")
    if row.get("fault") or row.get("kind", "user_message") != "user_message":
        raise CommandError(f"standard input: line {number}: the row is no message that can be sent")
    return row


async def _lines() -> AsyncIterator[bytes]:
    """The lines of standard input; a thread reads them, since a regular file cannot be awaited."""
    input_file("-", "table of JSON lines")
    loop = asyncio.get_running_loop()
    chunks: asyncio.Queue[bytes] = asyncio.Queue(4)

    def read() -> None:
        for chunk in _chunks():
            try:
                asyncio.run_coroutine_threadsafe(chunks.put(chunk), loop).result()
            except RuntimeError:  # the loop has ended
                return

    threading.Thread(target=read, daemon=True).start()
    rest = b""
    while chunk := await chunks.get():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest


def _chunks() -> Iterator[bytes]:
    """What standard input has, as soon as it has it; at the end an empty chunk."""
    try:
        while chunk := os.read(sys.stdin.fileno(), _CHUNK):
            yield chunk
    finally:
        yield b""
