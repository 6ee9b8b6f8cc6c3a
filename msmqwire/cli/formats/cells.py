"""What the writers of lines share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from msmqwire.cli.console import INVISIBLE
from msmqwire.columns.json_text import of_re2
from msmqwire.errors import UNPRINTABLE

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.cli.target import Sink

#: ``UNPRINTABLE`` and ``INVISIBLE`` for the functions of ``pyarrow.compute``
UNCLEAR_RE2 = f"[{of_re2(UNPRINTABLE + INVISIBLE)}]"


class LineWriter(ABC):
    """Base of the writers whose rows are lines, which ``_lines`` makes of a batch."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the lines of a batch."""
        self._sink.write_lines(self._lines, batch)

    def finish(self) -> None:
        """Wait for the lines to be written; lines need no end."""
        self._sink.finish()

    @abstractmethod
    def _lines(self, batch: pa.RecordBatch) -> memoryview:
        """Return the lines of a batch."""
