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
import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.arguments import add_ping, add_quiet, count, input_file, integer, parse_guid, ping_port
from msmqwire.cli.committing import Committing
from msmqwire.cli.console import CommandError, say
from msmqwire.cli.enterprise import open_directory
from msmqwire.cli.message_bodies import FORMATS, body_of_bytes, body_of_text
from msmqwire.cli.message_copies import MessageCopies
from msmqwire.cli.message_files import MessageOutput
from msmqwire.cli.next_hops import add_connection, find_destination, queue_of
from msmqwire.cli.progress import message_progress
from msmqwire.cli.sending import sending
from msmqwire.errors import EncodeError, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from msmqwire.cli.next_hops import Destination
    from msmqwire.cli.sending import Sending
    from msmqwire.mqqb import UserMessage
    from msmqwire.session import MessageReceived

_LARGEST_BODY = 4 << 20
_CHUNK = 1 << 16
_LONGEST_LABEL = 249  # code units without the terminator: [MS-MQMQ] 2.2.19.3
_TIME_TO_REACH_QUEUE = 345_600  # four days: [MS-MQDMPR] 3.1.1.12
_FOREVER = 0xFFFFFFFF
_MOST_LINES = 100  # about rows that are left out
_ACKNOWLEDGMENTS = {
    "reach": ("positive_arrival_ack", "negative_arrival_ack"),
    "receive": ("positive_arrival_ack", "negative_arrival_ack", "positive_receive_ack", "negative_receive_ack"),
}
#: Where a queue manager answers on the session: a queue of this process, which has no other.
_ADMIN_QUEUE = r"DIRECT=TCP:{}\private$\msmqwire_send"


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument(
        "name", metavar="QUEUE", nargs="?", help="the queue, such as DIRECT=OS:server\\private$\\orders"
    )
    content = parser.add_mutually_exclusive_group()
    content.add_argument("--body", metavar="FILE", help="the body is the bytes of this file; - is standard input")
    content.add_argument("--text", metavar="TEXT", help="the body is this text")
    content.add_argument("--rows", action="store_true", help="messages from standard input, in JSON lines")
    parser.add_argument("--format", choices=FORMATS, metavar="F", help=f"the format of the body: {', '.join(FORMATS)}")
    parser.add_argument("--count", type=count, metavar="N", help="send the message N times (default: 1)")
    parser.add_argument("--strict", action="store_true", help="with --rows: end at the first row that cannot be sent")
    parser.add_argument(
        "--as-captured",
        action="store_true",
        help="with --rows: keep the identity, the queue, the signature and the encryption key of each row; QUEUE is "
        "where to connect",
    )
    _add_properties(parser)
    parser.add_argument(
        "--wait",
        choices=(*_ACKNOWLEDGMENTS, "final"),
        help="wait for an answer to each message: that it is in its queue, or received from it; of transactional ones "
        "final",
    )
    parser.add_argument(
        "--transactional",
        action="store_true",
        help="send to a transactional queue, each message once and in order; needs --store",
    )
    parser.add_argument(
        "--store",
        metavar="DIR",
        help="keep the identity of this queue manager and transactional messages in this folder; without QUEUE, send "
        "what is there",
    )
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


def _add_properties(parser: argparse.ArgumentParser) -> None:
    """Add the options for properties of a message that its sender decides."""
    parser.add_argument("--label", default="", metavar="L", help=f"the label, at most {_LONGEST_LABEL} characters")
    parser.add_argument(
        "--recoverable", action="store_true", help="the queue manager stores the message on disk (default: express)"
    )
    parser.add_argument(
        "--priority",
        type=integer(0, 7),
        metavar="P",
        help="0 to 7, a higher one goes first (default: 3)",
    )
    parser.add_argument(
        "--time-to-reach-queue",
        type=_lifetime,
        default=_TIME_TO_REACH_QUEUE,
        metavar="S",
        help=f"seconds in which the message must be in its queue, or infinite (default: {_TIME_TO_REACH_QUEUE:,}, "
        "four days)",
    )
    parser.add_argument(
        "--time-to-be-received",
        type=_lifetime,
        metavar="S",
        help="seconds in which an application must receive it, or infinite (default)",
    )
    parser.add_argument(
        "--admin-queue",
        metavar="NAME",
        help="the queue that gets the acknowledgments: of arrival and receipt, or as --wait says",
    )
    parser.add_argument("--response-queue", metavar="NAME", help="the queue that gets the responses of applications")
    parser.add_argument(
        "--correlation-id",
        type=_message_identifier,
        metavar="GUID\\N",
        help="the identifier of the message to which this one belongs",
    )
    parser.add_argument("--extension", metavar="FILE", help="the extension property is the bytes of this file")


def _lifetime(text: str) -> int:
    return _FOREVER if text == "infinite" else integer(1, _FOREVER)(text)


def _message_identifier(text: str) -> tuple[Any, int]:
    """The identifier of a message as Windows shows it: a queue manager and a number."""
    identifier, _, number = text.partition("\\")
    try:
        return parse_guid(identifier), integer(0, _FOREVER)(number)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(options: argparse.Namespace) -> int:
    """Send; the exit status."""
    if options.transactional and options.store is None:
        raise CommandError("a transactional message is sent exactly once, which needs a store: --store DIR")
    if not options.transactional and (options.each or options.wait == "final"):
        raise CommandError("--each and --wait final are for transactional messages: add --transactional")
    if options.name is None:
        return _resume(options)
    if options.rows and options.count is not None:
        raise CommandError("--count repeats one message: leave it out with --rows")
    if not options.rows and (options.strict or options.as_captured):
        raise CommandError("--strict and --as-captured are about rows: add --rows")
    if options.as_captured and options.wait:
        raise CommandError("--as-captured keeps the administration queue of each row: leave out --wait")
    if options.source is not None and options.directory is None:
        raise CommandError("--from needs the directory of the machine: --directory SOURCE")
    if (size := len(_encodable("--label", options.label).encode("utf-16-le")) // 2) > _LONGEST_LABEL:
        raise CommandError(f"label: has {size:,} code units, at most {_LONGEST_LABEL}")
    if options.rows:
        input_file("-", "table of JSON lines")
    directory = None if options.directory is None else open_directory(options.directory)
    destination = find_destination(options.name, directory, source=options.source, host=options.host)
    properties = _properties(options)
    body = {} if options.rows else _body(options)
    if options.transactional:
        if options.wait not in (None, "final") or options.as_captured or options.journal or options.dead_letter:
            raise CommandError(
                "the store has the journal and the dead letters of transactional messages: leave out --journal, "
                "--dead-letter, --as-captured, --wait reach and --wait receive"
            )
        committing = Committing(options, destination, directory)
        return signals.run_until_stopped(_commit(options, destination, committing, properties, body))
    return signals.run_until_stopped(_send(options, destination, properties, body))


def _resume(options: argparse.Namespace) -> int:
    """Send what is in the store."""
    if options.store is None or options.transactional:
        raise CommandError("name the queue, or only the store whose messages are sent again: --store DIR")
    if options.rows or options.text is not None or options.body is not None:
        raise CommandError("name the queue of the messages")
    directory = None if options.directory is None else open_directory(options.directory)
    return signals.run_until_stopped(Committing(options, None, directory).run())


async def _commit(
    options: argparse.Namespace,
    destination: Destination,
    committing: Committing,
    properties: dict[str, Any],
    body: dict[str, Any],
) -> int:
    """Commit a message or the rows of standard input, and wait until they are acknowledged."""
    from msmqwire.mqqb import UserMessage

    if not options.rows:
        make = partial(UserMessage, **destination.address)
        fields = {**properties, **body}
        messages = [lambda **identity: make(**{**fields, **identity})] * (options.count or 1)
        return await committing.run(messages)
    rows = _Rows(options, destination, properties)
    status = await committing.run_rows(rows.makers(), rows.leave_out)
    if rows.left_out and not options.quiet:
        say(rows.describe().removeprefix(", "))
    return status or (2 if rows.left_out else 0)


def _properties(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a message that the options give, for rows as far as a row has none."""
    fields: dict[str, Any] = {
        "label": options.label,
        "time_to_reach_queue": options.time_to_reach_queue,
        "delivery_mode": "recoverable" if options.recoverable else None,
        "priority": options.priority,
        "time_to_be_received": options.time_to_be_received,
        "positive_source_journaling": options.journal is not None or None,
        "negative_source_journaling": options.dead_letter is not None or options.wait == "final" or None,
    }
    for name in ("admin_queue", "response_queue"):
        if (queue := getattr(options, name)) is not None:
            fields[name] = queue_of(queue)
    if options.admin_queue is not None:
        fields |= dict.fromkeys(_ACKNOWLEDGMENTS.get(options.wait or "", _ACKNOWLEDGMENTS["receive"]), True)
    if options.correlation_id is not None:
        fields["correlation_guid"], fields["correlation_ordinal"] = options.correlation_id
    if options.extension is not None:
        fields["extension_data"] = _file(options.extension, "extension")
    return {name: value for name, value in fields.items() if value is not None}


def _body(options: argparse.Namespace) -> dict[str, Any]:
    """The body that the options describe (S22)."""
    if options.text is not None:
        body, body_type = body_of_text(_encodable("--text", options.text), options.format)
    elif options.body is not None:
        body, body_type = body_of_bytes(_file(options.body, "body"), options.format)
    else:
        body, body_type = b"", 0
    return {"body": body, "body_type": body_type}


def _encodable(option: str, text: str) -> str:
    try:
        text.encode("utf-16-le")
    except UnicodeEncodeError:
        raise CommandError(f"{option} is not valid in the encoding of this terminal") from None
    return text


def _file(name: str, what: str) -> bytes:
    """The bytes of a file, not more than a packet can have."""
    if input_file(name, what) == "-":
        body = sys.stdin.buffer.read(_LARGEST_BODY + 1)
    else:
        with open(name, "rb") as file:
            body = file.read(_LARGEST_BODY + 1)
    if len(body) > _LARGEST_BODY:
        raise CommandError(f"{name}: the {what} has more than {_LARGEST_BODY:,} bytes, the limit of a packet")
    return body


async def _send(
    options: argparse.Namespace, destination: Destination, properties: dict[str, Any], body: dict[str, Any]
) -> int:
    """Send a message, or the rows of standard input; wait for the acknowledgments and answers."""
    from msmqwire.mqqb import UserMessage, encode
    from msmqwire.session import Store

    if not options.rows:
        encode(UserMessage(**destination.address, **properties, **body))  # refused before connecting
    copies = {
        name: MessageCopies(path)
        for name, path in (("journal", options.journal), ("dead_letters", options.dead_letter))
        if path is not None
    }
    rows = _Rows(options, destination, properties)
    total = None if options.rows else options.count or 1
    store = None if options.store is None else Store(options.store)
    with (
        contextlib.nullcontext() if store is None else store,
        message_progress(total, wanted=not options.quiet) as show,
    ):
        async with sending(
            options,
            destination,
            show,
            wait=options.wait or "",
            write=_write,
            ping_port=ping_port(options),
            store=store,
            **copies,
        ) as session:
            answers = await _answers(options, session)
            if options.rows:
                await rows.send(session, answers)
            else:
                for _ in range(options.count or 1):
                    fields = {**destination.address, **properties, **body, **answers, **session.identity()}
                    await session.send(UserMessage(**fields))
                await session.finish()
    if not options.quiet:
        say(session.describe_outcome() + rows.describe())
    if options.wait and session.rejected:
        return 3
    return 2 if rows.left_out else 0


async def _answers(options: argparse.Namespace, session: Sending) -> dict[str, Any]:
    """The fields that ask for the answers of ``--wait``."""
    if options.wait is None:
        return {}
    address = await session.open()
    asked: dict[str, Any] = dict.fromkeys(_ACKNOWLEDGMENTS[options.wait], True)
    if options.admin_queue is None:
        asked["admin_queue"] = _ADMIN_QUEUE.format(address.partition("%")[0])
    return asked


async def _write(received: Sequence[MessageReceived]) -> None:
    """Write what the queue manager sends as rows, before it is acknowledged."""
    await MessageOutput(None).write(received)


# --- Rows ---


class _Rows:
    """The rows of standard input; counts those that are left out, and those whose SecurityHeader is."""

    def __init__(self, options: argparse.Namespace, destination: Destination, properties: dict[str, Any]) -> None:
        self._options = options
        self._address = destination.address
        self._properties = properties
        self.left_out = self._number = 0
        self._without_security = 0

    async def send(self, session: Sending, answers: dict[str, Any]) -> None:
        """Send the rows, and wait for the acknowledgments; the error of an input that ends early is raised last."""
        failure: CommandError | None = None
        number = 0
        try:
            async for line in _lines():
                number += 1
                if not line.strip():
                    continue
                reason = await self._send_row(line, f"line {number:,}", session, answers)
                if reason is None:
                    continue
                if self._options.strict:
                    failure = CommandError(f"standard input: line {number}: {reason}")
                    break
                self._leave_out(f"msmqwire: standard input: line {number}: {reason}")
        except OSError as error:
            failure = CommandError(f"standard input: {error.strerror}")
        await session.finish()
        if failure is not None:
            raise failure

    async def _send_row(self, line: bytes, name: str, session: Sending, answers: dict[str, Any]) -> str | None:
        """Send the message of a row; why that is not possible."""
        try:
            row = _row(line)
            has_security = row.get("security_flags") is not None and not self._options.as_captured
            message = self._message(row, session.identity(), answers)
        except (ValueError, TypeError, AttributeError) as error:
            return str(error)
        except KeyError as error:
            return f"{error} is missing"
        try:
            await session.send(message, name)
        except EncodeError as error:
            return str(error)
        self._without_security += has_security
        return None

    async def makers(self) -> AsyncIterator[tuple[Callable[..., UserMessage], str | None]]:
        """A function that makes the message of each row from its identity, and the key of the row."""
        async for line in _lines():
            self._number += 1
            if not line.strip():
                continue
            try:
                row = _row(line, key=True)
                key = row.pop("key", None)
                if key is not None and not isinstance(key, str):
                    raise ValueError("key: is no text")
            except ValueError as error:
                self.leave_out(error)
            else:
                yield partial(self._committed, {name: row[name] for name in row.keys() - _OF_TRANSACTION}), key

    def leave_out(self, error: Exception) -> None:
        """Report the last row of ``makers``, which is not committed.

        Raises
        ------
        CommandError
            The command ends at the first such row.
        """
        where = f"standard input: line {self._number}: {error}"
        if self._options.strict:
            raise CommandError(where if self._options.each else f"{where}; nothing is committed")
        self._leave_out(f"msmqwire: {where}")

    def _committed(self, row: dict[str, Any], **identity: Any) -> UserMessage:
        try:
            return self._message(row, identity, {})
        except (ValueError, TypeError, AttributeError) as error:
            raise CommandError(str(error)) from None
        except KeyError as error:
            raise CommandError(f"{error} is missing") from None

    def _message(self, row: dict[str, Any], identity: dict[str, Any], answers: dict[str, Any]) -> UserMessage:
        """The message of a row: a new one for the queue of the command, or the captured one."""
        from msmqwire.cli.packets import message_of

        kept = {name: value for name, value in row.items() if value is not None and name not in _OF_SESSION}
        fields: dict[str, Any] = {}
        if self._options.as_captured:
            fields = {name: value for name, value in self._address.items() if "destination_queue" not in kept}
        else:
            if kept.get("body_encrypted"):
                raise ValueError("the body is encrypted for its first receiver; --as-captured sends it as it is")
            kept = {name: value for name, value in kept.items() if name not in _OF_CAPTURE}
            fields = {**self._address, **answers, **identity}
        if "body_text" in kept and not {"body", "body_type", "body_type_name"} & kept.keys() and self._options.format:
            fields["body"], fields["body_type"] = body_of_text(str(kept.pop("body_text")), self._options.format)
        defaults = {name: value for name, value in self._properties.items() if name not in kept}
        return message_of(kept, **{**defaults, **fields})

    def _leave_out(self, text: str) -> None:
        self.left_out += 1
        if self.left_out <= _MOST_LINES:
            say(f"{text}; left out")
        if self.left_out == _MOST_LINES:
            say("further rows that are left out are counted")

    def describe(self) -> str:
        """How many rows were left out, and how many messages were sent without their SecurityHeader."""
        text = f", {counted(self.left_out, 'row')} left out" if self.left_out else ""
        if self._without_security:
            text += (
                f"; {counted(self._without_security, 'message')} sent without a SecurityHeader, "
                "which belongs to the captured message (--as-captured keeps it)"
            )
        return text


def _row(line: bytes, *, key: bool = False) -> dict[str, Any]:
    from msmqwire.cli.packets import check_columns, row_of

    row = row_of(line)
    kept = {"key": row.pop("key")} if key and "key" in row else {}
    row.pop("reason", None)  # of a dead letter
    if row.pop("table", "messages") != "messages":
        raise ValueError("only rows of the table messages can be sent")
    check_columns(row, "messages")
    if row.get("fault") or row.get("kind", "user_message") != "user_message":
        raise ValueError("the row is no message that can be sent")
    return {**row, **kept}


#: What the session gives each message.
_OF_SESSION = frozenset(
    (
        *("ack_sequence_number", "recoverable_msg_ack_seq_number", "recoverable_msg_ack_flags"),
        *("user_msg_sequence_number", "recoverable_msg_seq_number", "window_size"),
    )
)
#: What a transaction gives each message.
_OF_TRANSACTION = frozenset(
    (
        *("tx_sequence_id", "tx_sequence_number", "previous_tx_sequence_number", "first_message", "last_message"),
        *("final_ack_required", "transaction_id", "connector_queue_manager", "priority", "delivery_mode"),
    )
)
#: What a new message has anew: its identity, its route, and the security of the captured one, which names both.
_OF_CAPTURE = frozenset(
    (
        *("destination_queue", "queue_manager_address", "source_queue_manager", "message_id", "sent_time", "hop_count"),
        *("security_flags", "sender_id_type", "body_encrypted", "security_id", "sender_sid", "encryption_key"),
        *("signature", "sender_certificate", "provider_info", "multi_queue_signature"),
    )
)


async def _lines() -> AsyncIterator[bytes]:
    """The lines of standard input; of a line that is too long only its beginning.

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
        """True if another chunk is to be read from standard input."""
        putting = chunks.put(chunk)
        try:
            asyncio.run_coroutine_threadsafe(putting, loop).result()
        except (RuntimeError, CancelledError):  # the loop has ended
            putting.close()
            return False
        return isinstance(chunk, bytes) and chunk != b""

    start_thread(read)
    rest = bytearray()
    is_too_long = False
    while chunk := await chunks.get():
        if isinstance(chunk, OSError):
            raise chunk
        *lines, last = chunk.split(b"\n")
        for line in lines:
            if not is_too_long:
                yield bytes(rest + line)
            rest.clear()
            is_too_long = False
        if not is_too_long:
            rest += last
        if len(rest) > LONGEST_ROW:
            yield bytes(rest)
            rest.clear()
            is_too_long = True
    if rest:
        yield bytes(rest)


def _chunk() -> bytes | OSError:
    """What standard input has, as soon as it has it; at its end nothing."""
    try:
        return os.read(sys.stdin.fileno(), _CHUNK)
    except OSError as error:
        return error
