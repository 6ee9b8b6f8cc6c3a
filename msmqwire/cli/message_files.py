"""Messages as rows of JSON on standard output or in a file for each queue, on disk before they are acknowledged."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError, OutputErrors
from msmqwire.cli.formats import write_table
from msmqwire.cli.queues import file_stem, queue_path
from msmqwire.cli.target import Sink, standard_output

if TYPE_CHECKING:
    from msmqwire.session import MessageReceived

# A sender chooses the names of queues
_MOST_NAMES = 1024
_OTHERS = "others"


class MessageOutput:
    """Writes messages as rows of the table ``messages``: to a file for each queue in a directory, or standard output.

    Raises
    ------
    CommandError
        The directory, which is made, cannot be written, or standard output is closed.
    """

    def __init__(self, directory: str | None) -> None:
        self._directory = directory
        self._stems: set[str] = set()
        if directory is None:
            standard_output()
            return
        with OutputErrors(directory):
            os.makedirs(directory, exist_ok=True)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise CommandError(f"cannot write {directory}: no permission to make files in it")

    def write(self, received: Sequence[MessageReceived]) -> None:
        """Write messages; those that are recoverable are on disk when it returns, unless the output is no file.

        Raises
        ------
        CommandError
            They cannot be written.
        BrokenPipeError
            The reader of a pipe has closed it.
        """
        if self._directory is None:
            with OutputErrors("standard output"):
                _print(standard_output().buffer, received)
            return
        queues: dict[str, list[MessageReceived]] = {}
        for each in received:
            queues.setdefault(self._stem(each), []).append(each)
        for stem, messages in queues.items():
            path = os.path.join(self._directory, f"{stem}.jsonl")
            with OutputErrors(path):
                is_new = not os.path.exists(path)
                _append(path, messages)
                if is_new:
                    _sync_directory(self._directory)

    def _stem(self, received: MessageReceived) -> str:
        """The name of the file of a message's queue."""
        stem = file_stem(queue_path(received.message.destination_queue))
        if stem not in self._stems:
            if len(self._stems) >= _MOST_NAMES:
                return _OTHERS
            self._stems.add(stem)
        return stem


def _lines(received: Sequence[MessageReceived]) -> bytes:
    lines = io.BytesIO()
    batch = rows_of(received)
    write_table("json", Sink(lines, "rows"), batch.schema, [batch])
    return lines.getvalue()


def _print(file: IO[bytes], received: Sequence[MessageReceived]) -> None:
    file.write(_lines(received))
    file.flush()
    _sync(file, received)


def _append(path: str, received: Sequence[MessageReceived]) -> None:
    """Append messages to a file: all of them or, since their senders send them again, none."""
    lines = _lines(received)
    with open(path, "a+b", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":  # a process that was killed has left a part of a line
                lines = b"\n" + lines
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[file.write(rest) :]
            _sync(file, received)
        except OSError:
            with contextlib.suppress(OSError):
                file.truncate(end)
            raise


def _sync(file: IO[bytes], received: Sequence[MessageReceived]) -> None:
    """Put recoverable messages on disk."""
    recoverable = any(each.message.delivery_mode == "recoverable" for each in received)
    if recoverable and stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fsync(file.fileno())


def rows_of(received: Sequence[MessageReceived]) -> Any:
    """The rows of messages, as ``msmqwire decode`` has them of a capture."""
    from msmqwire.capture import TABLES

    packets = [each.packet for each in received]
    return TABLES["messages"].decode_batch(packets).to_arrow(guid="text", dictionaries=False)


def _sync_directory(directory: str) -> None:
    """Put the name of a new file on disk, where directories can be synchronised."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
