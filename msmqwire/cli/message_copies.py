"""Copies of the messages that ``send`` sends, as rows of JSON in a file: its journal, and its dead letters."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msmqwire.cli.console import OutputErrors
from msmqwire.cli.formats import write_table
from msmqwire.cli.target import Sink

if TYPE_CHECKING:
    from msmqwire.mqqb import UserMessage


class MessageCopies:
    """Appends rows of the table ``messages`` to a file; they are on disk when ``write`` returns.

    Raises
    ------
    CommandError
        The file cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        with OutputErrors(path), open(path, "ab"):
            pass

    def write(self, messages: Sequence[UserMessage], reason: str = "") -> None:
        """Append messages, with a column ``reason`` if there is one; errors as in the constructor."""
        if not messages:
            return
        import pyarrow as pa

        from msmqwire import mqqb
        from msmqwire.capture import TABLES

        packets = [mqqb.encode(message) for message in messages]
        rows = TABLES["messages"].decode_batch(packets).to_arrow(guid="text", dictionaries=False)
        if reason:
            rows = rows.append_column("reason", pa.array([reason] * len(rows)))
        # Closed each time: an open file keeps what a full disk refused, and its finalizer writes it again
        with OutputErrors(self._path), open(self._path, "ab") as file, Sink(file, self._path) as sink:
            write_table("json", sink, rows.schema, [rows])
            sink.flush()
            os.fsync(file.fileno())
