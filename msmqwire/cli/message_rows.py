"""The messages that ``send`` sends: one that the options describe, or those of rows on standard input."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msmqwire.cli.console import CommandError, FewLines
from msmqwire.cli.message_bodies import body_of_text
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.mqqb import UserMessage

    #: Makes a message from the fields that identify it, and from further ones of the session.
    Maker: TypeAlias = Callable[..., UserMessage]

_BYTES_AHEAD = 1 << 20  # that are read while others are sent; a line of 64 MiB is read as well
#: What a transaction gives each message, besides its TransactionHeader.
_OF_TRANSACTION = frozenset(("priority", "delivery_mode"))
#: What a new message has anew: its identity, its route, and the security of the captured one, which names both.
_OF_CAPTURE = frozenset(
    (
        *("destination_queue", "queue_manager_address", "source_queue_manager", "message_id", "sent_time", "hop_count"),
        *("sender_id_type", "body_encrypted", "sender_sid", "multi_queue_signature"),
    )
)


class OneMessage:
    """A message of these fields, as often as ``count`` says.

    Attributes
    ----------
    name : str
        The last message in errors; empty if its number is enough.
    left_out : int
        The messages that cannot be sent.
    """

    def __init__(self, fields: Mapping[str, Any], count: int) -> None:
        self.name = ""
        self.left_out = 0
        self._fields = fields
        self._count = count

    async def makers(self) -> AsyncIterator[tuple[Maker, str | None]]:
        """Yield a function that makes each message, and the key of the message if it has one."""
        from msmqwire.mqqb import UserMessage

        for _ in range(self._count):
            yield lambda **given: UserMessage(**{**self._fields, **given}), None

    def leave_out(self, error: Exception) -> None:
        """Take the error of the last message: it ends the command."""
        raise error

    def describe(self) -> str:
        """Return the end of the last line of the command: what became of messages that were not sent as they are."""
        return ""


class RowMessages(OneMessage):
    """A message for each row; rows that cannot be sent are left out and counted.

    Parameters
    ----------
    address : dict
        The fields of a new message that address it.
    properties : dict
        Its fields where a row has no column for them.
    """

    def __init__(self, options: argparse.Namespace, address: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        from msmqwire.mqqb.groups import GROUP_FIELDS, SecurityHeader, SessionHeader, TransactionHeader

        super().__init__(properties, 0)
        self._dropped = {*GROUP_FIELDS[SessionHeader]}
        if options.transactional:
            self._dropped |= {*GROUP_FIELDS[TransactionHeader], *_OF_TRANSACTION}
        if not options.as_captured:
            self._dropped |= {*GROUP_FIELDS[SecurityHeader], *_OF_CAPTURE}
        self._options = options
        self._address = address
        self._number = 0
        self._without_security = 0
        self._lines = FewLines("further rows that are left out are counted")

    async def makers(self) -> AsyncIterator[tuple[Maker, str | None]]:
        """Yield a function that makes the message of each row, and the key of the row."""
        async for line in _lines():
            self._number += 1
            self.name = f"line {self._number:,}"
            if not line.strip():
                continue
            try:
                row = _row(line, with_key=self._options.transactional)
                key = row.pop("key", None)
                if key is not None and not isinstance(key, str):
                    raise ValueError("key: is no text")
            except ValueError as error:
                self.leave_out(error)
            else:
                yield partial(self._message, row), key

    def leave_out(self, error: Exception) -> None:
        """Report the last row, which is not sent.

        Raises
        ------
        CommandError
            The command ends at the first such row.
        """
        where = f"standard input: line {self._number}: {error}"
        if self._options.strict:
            is_dropped = self._options.transactional and not self._options.each
            raise CommandError(f"{where}; nothing is committed" if is_dropped else where)
        self.left_out += 1
        self._lines.say(f"msmqwire: {where}; left out")

    def describe(self) -> str:
        """Return how many rows were left out, and how many messages were made without their SecurityHeader."""
        text = f", {counted(self.left_out, 'row')} left out" if self.left_out else ""
        if self._without_security:
            text += (
                f"; {counted(self._without_security, 'message')} sent without a SecurityHeader, "
                "which belongs to the captured message (--as-captured keeps it)"
            )
        return text

    def _message(self, row: Mapping[str, Any], **given: Any) -> UserMessage:
        """Return the message of a row: a new one for the queue of the command, or the captured one.

        Raises
        ------
        ValueError
            The row is no message, or EncodeError: it cannot be written.
        """
        from msmqwire.cli.packets import message_of

        kept = {name: value for name, value in row.items() if value is not None and name not in self._dropped}
        if self._options.as_captured:
            fields = {name: value for name, value in self._address.items() if "destination_queue" not in kept}
        else:
            if row.get("body_encrypted"):
                raise ValueError("the body is encrypted for its first receiver; --as-captured sends it as it is")
            fields = {**self._address, **given}
        try:
            has_text_only = "body_text" in kept and not {"body", "body_type", "body_type_name"} & kept.keys()
            if has_text_only and self._options.format:
                fields["body"], fields["body_type"] = body_of_text(str(kept.pop("body_text")), self._options.format)
            defaults = {name: value for name, value in self._fields.items() if name not in kept}
            message = message_of(kept, **{**defaults, **fields})
        except (CommandError, TypeError, AttributeError) as error:
            raise ValueError(str(error)) from None
        except KeyError as error:
            raise ValueError(f"{error} is missing") from None
        self._without_security += row.get("security_flags") is not None and not self._options.as_captured
        return message


def _row(line: bytes, *, with_key: bool) -> dict[str, Any]:
    from msmqwire.cli.packets import check_columns, row_of

    row = row_of(line)
    key = {"key": row.pop("key")} if with_key and "key" in row else {}
    row.pop("reason", None)  # of a dead letter
    if row.pop("table", "messages") != "messages":
        raise ValueError("only rows of the table messages can be sent")
    check_columns(row, "messages")
    if row.get("fault") or row.get("kind", "user_message") != "user_message":
        raise ValueError("the row is no message that can be sent")
    return {**row, **key}


async def _lines() -> AsyncIterator[bytes]:
    """Yield the lines of standard input, which a thread reads: a regular file cannot be awaited."""
    from msmqwire.cli.packets import lines_of
    from msmqwire.net.host_addresses import start_thread

    loop, came = asyncio.get_running_loop(), asyncio.Event()
    lines: list[bytes | OSError] = []
    taken = threading.Condition()
    size = 0

    def put(line: bytes | OSError) -> None:
        nonlocal size
        with taken:
            taken.wait_for(lambda: size < _BYTES_AHEAD)
            lines.append(line)
            size += 0 if isinstance(line, OSError) else len(line)
            if len(lines) == 1:
                loop.call_soon_threadsafe(came.set)

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            try:
                # Not the file of sys.stdin, whose lock the thread would hold at the end of the process
                with open(sys.stdin.fileno(), "rb", closefd=False) as file:
                    for line in lines_of(file):
                        put(line)
            except OSError as error:
                put(error)
            put(b"")

    try:
        start_thread(read)
    except OSError as error:
        put(error)
    while True:
        await came.wait()
        came.clear()
        with taken:
            block, size = [*lines], 0
            lines.clear()
            taken.notify()
        for line in block:
            if isinstance(line, OSError):
                raise CommandError(f"standard input: {line.strerror}")
            if not line:
                return
            yield line
