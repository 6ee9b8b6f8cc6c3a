"""The message that the options of ``send`` describe."""

from __future__ import annotations

import argparse
import sys
from typing import Any
from uuid import UUID

from msmqwire.cli.arguments import count, input_file, integer
from msmqwire.cli.console import CommandError
from msmqwire.cli.message_bodies import FORMATS, body_of_bytes, body_of_text
from msmqwire.cli.next_hops import queue_of

_LARGEST_BODY = 4 << 20
_LONGEST_LABEL = 249  # code units without the terminator: [MS-MQMQ] 2.2.19.3
_TIME_TO_REACH_QUEUE = 345_600  # four days: [MS-MQDMPR] 3.1.1.12
_FOREVER = 0xFFFFFFFF
#: The acknowledgments that each ``--wait`` asks for.
ACKNOWLEDGMENTS = {
    "reach": ("positive_arrival_ack", "negative_arrival_ack"),
    "receive": ("positive_arrival_ack", "negative_arrival_ack", "positive_receive_ack", "negative_receive_ack"),
}


def add_message(parser: argparse.ArgumentParser) -> None:
    """Add the options for the content of a message, and for its properties that the sender decides."""
    content = parser.add_mutually_exclusive_group()
    content.add_argument("--body", metavar="FILE", help="the body is the bytes of this file; - is standard input")
    content.add_argument("--text", metavar="TEXT", help="the body is this text")
    content.add_argument("--rows", action="store_true", help="messages from standard input, in JSON lines")
    parser.add_argument("--format", choices=FORMATS, metavar="F", help=f"the format of the body: {', '.join(FORMATS)}")
    parser.add_argument("--count", type=count, metavar="N", help="send the message N times (default: 1)")
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
        type=_identifier,
        metavar="GUID\\N",
        help="the identifier of the message to which this one belongs",
    )
    parser.add_argument("--extension", metavar="FILE", help="the extension property is the bytes of this file")


def _lifetime(text: str) -> int:
    return _FOREVER if text == "infinite" else integer(1, _FOREVER)(text)


def _identifier(text: str) -> tuple[UUID, int]:
    from msmqwire.cli.packets import parse_message_identifier

    try:
        return parse_message_identifier(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def properties_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of a message that the options give, for rows as far as a row has none.

    Raises
    ------
    CommandError, FormatNameError
        The label, the extension or the name of a queue is not valid.
    OSError
        The file of the extension cannot be read.
    """
    if (size := len(_encodable("--label", options.label).encode("utf-16-le")) // 2) > _LONGEST_LABEL:
        raise CommandError(f"label: has {size:,} code units, at most {_LONGEST_LABEL}")
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
        fields |= dict.fromkeys(ACKNOWLEDGMENTS.get(options.wait or "", ACKNOWLEDGMENTS["receive"]), True)
    if options.correlation_id is not None:
        fields["correlation_guid"], fields["correlation_ordinal"] = options.correlation_id
    if options.extension is not None:
        fields["extension_data"] = _file(options.extension, "extension")
    return {name: value for name, value in fields.items() if value is not None}


def body_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of the body that the options describe (S22); errors as in ``properties_of``."""
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
    """Return the bytes of a file, not more than a packet can have."""
    if input_file(name, what) == "-":
        body = sys.stdin.buffer.read(_LARGEST_BODY + 1)
    else:
        with open(name, "rb") as file:
            body = file.read(_LARGEST_BODY + 1)
    if len(body) > _LARGEST_BODY:
        raise CommandError(f"{name}: the {what} has more than {_LARGEST_BODY:,} bytes, the limit of a packet")
    return body
