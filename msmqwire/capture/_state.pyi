"""Written by `make build` from the annotations in _state.pyx; do not edit."""

from collections.abc import Callable

from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.tcp._streams import StreamTable

FIELDS: tuple[str, ...]

def reader_state(reader: FileReader) -> bytes:
    """Where a reader is in its file, beside ``place`` and ``frames``."""

def resume_reader(reader: FileReader, seek: Callable[[int], None], place: int, frames: int, state: bytes) -> None:
    """Have a reader, which read only the first bytes of its file, resume where another one stopped.

    Raises
    ------
    CaptureError
        The state is of another file, or malformed.
    """

def resume_at_end(reader: FileReader, place: int, frames: int) -> None:
    """Give a reader of an empty file the state of a reader that has read a file of ``place`` bytes to its end."""

def stop_at(reader: FileReader, place: int, state: bytes) -> None:
    """Have a reader stop where another one stopped.

    Raises
    ------
    CaptureError
        The state is malformed.
    """

def streams_state(table: StreamTable, reader: FileReader | None) -> tuple[list[str], bytes]:
    """The streams that are open and the incomplete datagrams, with the names of the files they refer to.

    The table forgets all other files but that of the ``reader``, which follows these names; None between two files.
    """

def set_streams(table: StreamTable, files: list[str], state: bytes) -> None:
    """Restore what was saved, into a table for which nothing was read yet.

    Raises
    ------
    CaptureError
        The state is malformed.
    """
