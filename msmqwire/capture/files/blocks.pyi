"""One capture file, a window at a time."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from msmqwire.capture.frames.selection import PayloadSelection
from msmqwire.capture.schema import CAPTURE
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.tcp.streams import StreamTable
from msmqwire.columns import Batch, Payloads, Table

class Block:
    """The payloads of one window, or of several with few payloads, and where they come from.

    Attributes
    ----------
    payloads : Payloads
        Views into the block's memory, which lasts as long as somebody looks at it.
    capture : Batch
        The capture columns that were asked for.
    transports : ndarray of uint8, or None
        What carried each payload, as codes of ``Transport``; None when it was UDP for all of them.
    """

    payloads: Payloads
    capture: Batch
    transports: NDArray[np.uint8] | None
    def __len__(self) -> int: ...

class Pool:
    """Memory for windows of ``block_size`` bytes and for the columns of their rows, used again when it is free.

    With the ``table`` ``FRAMES`` rows are frames as they were captured.
    """

    def __init__(self, block_size: int, columns: Iterable[str] | None, *, table: Table = CAPTURE) -> None: ...

class FileReader:
    """The blocks of one file; TCP streams go on from one file to the next, up to the ``last``.

    Of a ``growing`` file the end is not known: what is not whole is left alone. The file ends after ``size`` bytes,
    even if it has grown since.

    Attributes
    ----------
    end : int
        How many bytes of it were read.
    place : int
        Where the record begins that comes next, or the file ended.
    frames : int
        How many frames of it were read.
    """

    name: str
    end: int
    place: int
    frames: int
    def __init__(
        self,
        name: str,
        read_into: Callable[[memoryview], int],
        ports: Mapping[str, Iterable[int]],
        pool: Pool,
        streams: StreamTable,
        stats: CaptureStats,
        *,
        selection: PayloadSelection | None = None,
        last: bool = True,
        growing: bool = False,
        size: int = ...,
        most_interfaces: int = ...,
        ready: Callable[[], bool] | None = None,
    ) -> None: ...
    def next_block(self) -> Block | None:
        """The next block with rows in it, None at the end of the file."""
    def pass_to(self, limit: int) -> bool:
        """Read up to the first record that begins at ``limit`` or behind and forget the rows.

        False when the file ended, or a growing one has no more.
        """
