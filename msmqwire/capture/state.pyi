"""Where a reader is and what it holds, as bytes."""

from collections.abc import Callable

from msmqwire.capture.files.blocks import FileReader
from msmqwire.capture.tcp.streams import StreamTable

LAYOUT: bytes
"""What the bytes are on this machine and in this version, which other ones cannot read."""

def reader_state(reader: FileReader) -> bytes:
    """Where a reader is in its file, beside ``place`` and ``frames``."""

def go_on(reader: FileReader, seek: Callable[[int], None], place: int, frames: int, state: bytes) -> None:
    """Have a reader, which read nothing but the front of its file, go on where another one was.

    Raises
    ------
    CaptureError
        The state is of another file, or damaged.
    """

def go_behind(reader: FileReader, place: int, frames: int) -> None:
    """Have a reader whose file is empty stand for one that read a file of ``place`` bytes to its end."""

def stop_at(reader: FileReader, place: int, state: bytes) -> None:
    """Have a reader stop where another one was."""

def streams_state(table: StreamTable, *, reading: bool) -> tuple[list[str], bytes]:
    """The streams that are open and the datagrams that are not whole, with the names of the files they refer to.

    ``reading``: the last file of the table is still being read, and stands behind these names.
    """

def set_streams(table: StreamTable, files: list[str], state: bytes) -> None:
    """Have what was saved, in a table where nothing was read yet.

    Raises
    ------
    CaptureError
        The state is damaged.
    """
