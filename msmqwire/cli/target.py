"""Standard output, or an output file that appears under its name when it is complete."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, TextIO

from msmqwire.cli.console import ClosedOutput, CommandError, OutputErrors

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import ReadableBuffer

    from msmqwire.capture.ordered_calls import OrderedCalls

_BUFFER = 1 << 18
_ROWS_AT_ONCE = 1 << 14
#: What a command with the option can do without standard output.
_REMEDY = "; name a file with -o"
#: The path of an open file by its descriptor, on Linux.
OPEN_FILE = "/proc/self/fd/{}"


class Sink(io.BufferedIOBase):
    """An output that counts its bytes: writers of Parquet ask for the position, which a pipe does not know.

    ``name`` is its name in messages. After ``abandon`` it discards bytes, so that writers can close what they began.
    Writers may make the bytes in ``jobs`` threads, see ``submit``.
    """

    def __init__(self, file: IO[bytes], name: str, jobs: int = 1) -> None:
        self._file = file
        self._position = 0
        self._abandoned = False
        self.jobs = jobs
        self._calls: OrderedCalls | None = None
        self.name = name
        self._errors = OutputErrors(name)

    def submit(self, handle: Callable[[Any], object], function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function in one of the threads; ``handle`` writes the result, in the order of the calls."""
        if self._calls is None:
            from msmqwire.capture.ordered_calls import OrderedCalls

            # Two more than threads: else a thread has no work when its call ends before the oldest one
            self._calls = OrderedCalls(self.jobs, self.jobs + 2)
        self._calls.submit(handle, function, *arguments)

    def write_lines(self, function: Callable[[Any], ReadableBuffer], rows: pa.RecordBatch) -> None:
        """Write the lines that a function makes of rows, at once, for readers that wait for them."""
        # Text takes many times the memory of its rows while it is made
        for start in range(0, rows.num_rows, _ROWS_AT_ONCE):
            self.submit(self._write_at_once, function, rows.slice(start, _ROWS_AT_ONCE))

    def _write_at_once(self, data: ReadableBuffer) -> None:
        self.write(data)
        self.flush()

    def finish(self) -> None:
        """Wait for all calls, and write their results."""
        if self._calls is not None:
            self._calls.finish()

    def stop(self) -> None:
        """Drop calls that have not begun, and wait for the others."""
        if self._calls is not None:
            self._calls.close()

    def writable(self) -> bool:
        """Return True: it can be written."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written so far."""
        return self._position

    def isatty(self) -> bool:
        """Return True if it is a terminal."""
        return self._file.isatty()

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of ``data``.

        Raises
        ------
        CommandError
            It cannot be written: the disk is full, or a limit is reached.
        BrokenPipeError
            The reader of a pipe has closed it.
        """
        size = memoryview(data).nbytes
        if not self._abandoned:
            with self._errors:
                self._file.write(data)
        self._position += size
        return size

    def flush(self) -> None:
        """Write what is buffered; errors as in ``write``."""
        if not self._abandoned:
            with self._errors:
                self._file.flush()

    def abandon(self) -> None:
        """Discard what is written from now on."""
        self._abandoned = True


def standard_output(remedy: str = "") -> TextIO:
    """Return ``sys.stdout``; ``remedy`` ends the error.

    Raises
    ------
    CommandError
        The process was started without one.
    """
    stream = sys.stdout
    if isinstance(stream, ClosedOutput):
        raise CommandError(f"standard output is closed{remedy}")
    return stream


def is_terminal(output: str) -> bool:
    """Return True if an output is a terminal; errors as in ``standard_output``."""
    return output == "-" and standard_output(_REMEDY).isatty()


def make_folder(path: str) -> None:
    """Make a folder, and those above it, unless it exists; the names of new ones are on disk then.

    Raises
    ------
    CommandError
        It cannot be made, or is a file.
    """
    missing = []
    folder = os.path.abspath(path)
    while not os.path.lexists(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    with OutputErrors(path):
        try:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            raise CommandError(f"cannot write {path}: it is a file; name a folder") from None
        for made in reversed(missing):
            sync_folder(os.path.dirname(made))


def sync_folder(folder: str) -> None:
    """Put the names of new files in a folder on disk, where folders can be synchronised.

    Raises
    ------
    OSError
        The disk fails.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folders, and others only those that this user may list
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EROFS):
            raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def open_target(output: str, inputs: Sequence[str], jobs: int = 1) -> Iterator[Sink]:
    """Open the sink that ``output`` names (``-`` is standard output); a file appears when the block succeeds.

    Until then it has no name, or on file systems where that cannot be, a temporary name in the same directory, which
    only a killed process leaves. If the block fails the previous file stays as it was.

    Raises
    ------
    CommandError
        The file cannot be written, or is one of ``inputs``.
    """
    if output == "-":
        with _abandoned_on_failure(Sink(standard_output(_REMEDY).buffer, "standard output", jobs)) as sink:
            yield sink
            sink.flush()
        return
    path = os.path.realpath(output)
    mode = _mode(path, output)
    if mode is None or stat.S_ISREG(mode):
        if any(name != "-" and _same_file(name, path) for name in inputs):
            raise CommandError(f"cannot write {output}: it is one of the files to be read")
        yield from _complete_or_none(path, output, mode, jobs)
    elif stat.S_ISDIR(mode):
        raise CommandError(f"cannot write {output}: it is a directory; name a file in it")
    else:
        # A pipe or a device cannot be renamed
        with OutputErrors(output):
            descriptor = os.open(path, os.O_WRONLY)
        with _written(descriptor, output, jobs) as sink:
            yield sink


def _mode(path: str, output: str) -> int | None:
    with OutputErrors(output):
        try:
            return os.stat(path).st_mode
        except FileNotFoundError:
            return None


def _same_file(name: str, path: str) -> bool:
    try:
        return os.path.samefile(name, path)
    except OSError:
        return False


def _complete_or_none(path: str, output: str, mode: int | None, jobs: int) -> Iterator[Sink]:
    directory, base = os.path.split(path)
    # Short: the requested name may be as long as the file system allows
    temporary = os.path.join(directory, f".{base[:40]}.{os.urandom(4).hex()}.part")
    with OutputErrors(output):
        descriptor = _open_nameless(directory)
        named = descriptor is None
        if descriptor is None:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with _written(descriptor, output, jobs) as sink:
            yield sink
            sink.flush()
            with OutputErrors(output):
                if mode is not None and hasattr(os, "fchmod"):
                    os.fchmod(descriptor, stat.S_IMODE(mode))
                # A full disk may report its error only now
                os.fsync(descriptor)
                if not named:
                    # A link cannot replace a file, so the name exists for a moment. With src_dir_fd, which the absolute
                    # path makes meaningless, Python calls linkat, which follows the link in /proc
                    os.link(OPEN_FILE.format(descriptor), temporary, src_dir_fd=descriptor, follow_symlinks=True)
        with OutputErrors(output):
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _open_nameless(directory: str) -> int | None:
    """Return a new file without a name, which no kill of the process leaves behind; None where there are none."""
    if not hasattr(os, "O_TMPFILE"):  # only Linux has it
        return None
    with contextlib.suppress(OSError):  # some file systems have none
        descriptor = os.open(directory, os.O_WRONLY | os.O_TMPFILE, 0o666)
        if os.path.exists(OPEN_FILE.format(descriptor)):
            return descriptor
        os.close(descriptor)
    return None


@contextlib.contextmanager
def _written(descriptor: int, output: str, jobs: int) -> Iterator[Sink]:
    file = open(descriptor, "wb", buffering=_BUFFER)  # noqa: SIM115
    try:
        with _abandoned_on_failure(Sink(file, output, jobs)) as sink:
            yield sink
    except BaseException:
        # Closing writes what is buffered, which may fail again
        with contextlib.suppress(OSError):
            file.close()
        raise
    with OutputErrors(output):
        file.close()


@contextlib.contextmanager
def _abandoned_on_failure(sink: Sink) -> Iterator[Sink]:
    try:
        yield sink
    except BaseException:
        sink.abandon()
        raise
    finally:
        sink.stop()
        # Else Python 3.13 reports that its finalizer cannot flush the file, which is closed then
        sink.close()
