"""Written by `make build` from the annotations in _file_reader.pyx; do not edit."""

from collections.abc import Callable
from typing import Final

from msmqwire.capture.files._blocks import Block, Pool
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.stats import CaptureStats
from msmqwire.capture.tcp._streams import StreamTable

class FileReader:
    """The blocks of one file; TCP streams continue from one file to the next, up to the ``last``.

    ``read_into`` takes a writable buffer and returns the number of bytes it put there, 0 at the end; ``selection``
    chooses the payloads that give rows; ``streams`` are the TCP streams of all files; ``stats`` receives the counts. Of
    a ``growing`` file the end is not known: reading ends before an incomplete record. The file ends after ``size``
    bytes, even if it has grown since. While ``ready`` returns true, the next read does not wait for data, and a block
    with few payloads is filled from several windows; without it a block has the payloads of one window. ``copies``:
    packets that pcapng numbers are read at each interface, not only at the first.

    Attributes
    ----------
    end : int
        The bytes of the file that were read.
    place : int
        Where the next record begins, or the file ended.
    frames : int
        The frames that were read.
    """

    name: Final[str]
    end: Final[int]
    def __init__(
        self,
        name: str,
        read_into: Callable[[memoryview], int],
        selection: PayloadSelection,
        pool: Pool,
        streams: StreamTable,
        stats: CaptureStats,
        *,
        last: bool = True,
        growing: bool = False,
        size: int = ...,
        most_interfaces: int = ...,
        copies: bool = False,
        ready: Callable[[], bool] | None = None,
    ) -> None: ...
    place: Final[int]
    is_empty: Final[bool]
    """True if the file, read to its end, is a section without interfaces and packets."""
    frames: Final[int]
    def next_block(self) -> Block | None:
        """The next block with rows in it, None at the end of the file."""

    def pass_to(self, limit: int) -> bool:
        """Read up to the first record that begins at ``limit`` or later and drop the rows; false at the end."""
