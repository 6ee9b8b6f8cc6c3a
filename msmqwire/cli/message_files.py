"""Messages as rows of JSON on standard output or in a file for each queue, on disk before they are acknowledged."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from msmqwire.cli import signals
from msmqwire.cli.console import CommandError, OutputErrors, say
from msmqwire.cli.queues import PublicQueues, queue_stem
from msmqwire.cli.target import OPEN_FILE, make_folder, standard_output, sync_folder

if TYPE_CHECKING:
    from msmqwire.session import MessageReceived, Store

# A sender chooses the names of queues
_MOST_NAMES = 1024
#: The name of a file for all other queues; those of queues have a dot.
_OTHERS = "others"


class MessageOutput:
    """Writes messages as rows of the table ``messages``: to a file for each queue in a directory, or standard output.

    The file of a queue in ``public`` has the name of its path, also for messages to its other names. With a ``store``
    files have each message exactly once: rows that were written and not counted in the store are removed.

    Raises
    ------
    CommandError
        The directory, which is made, cannot be written, or standard output is closed; or a file has been changed.
    """

    def __init__(self, directory: str | None, public: PublicQueues | None = None, store: Store | None = None) -> None:
        self._directory = directory
        self._store = store
        self._public = public or PublicQueues()
        self._stems: set[str] = set()
        self._synchronized: set[str] = set()
        self._refused: set[str] = set()
        if directory is None:
            standard_output("; name a folder with -o")
            return
        make_folder(directory)
        if not os.access(directory, os.W_OK | os.X_OK):
            raise CommandError(f"cannot write {directory}: no permission to make files in it")
        if store is not None:
            self._directory = os.path.realpath(directory)
            known = store.outputs()
            self._stems |= {_stem_of(path) for path in known}
            for path, size in known.items():
                # A file that is gone was moved away
                with OutputErrors(path), contextlib.suppress(FileNotFoundError), open(path, "r+b", buffering=0) as file:
                    self._take_back_uncounted(file, size)

    async def write(self, received: Sequence[MessageReceived]) -> None:
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
                self._print(standard_output().buffer, received)
            return
        queues: dict[str, list[MessageReceived]] = {}
        for each in received:
            queues.setdefault(self._stem(each), []).append(each)
        if self._store is not None:
            for stem, messages in queues.items():
                with self._opened(self._directory, stem) as file, OutputErrors(str(file.name)):
                    self._append_once(file, messages, self._store)
            return
        places: list[tuple[str, int, int]] = []
        try:
            for stem, messages in queues.items():
                with self._opened(self._directory, stem) as file:
                    path = str(file.name)
                    with OutputErrors(path):
                        places.append((path, *_append(file, messages)))
                        self._synchronize(path)
        except BaseException:
            # The sender sends all of them again
            for path, start, end in reversed(places):
                with contextlib.suppress(OSError), open(path, "ab", buffering=0) as file:
                    _take_back(file, start, end)
            raise

    def _append_once(self, file: io.FileIO, received: Sequence[MessageReceived], store: Store) -> None:
        """Append messages of the store, and note the size of the file for the transaction that removes them."""
        path = str(file.name)
        end, size = file.seek(0, os.SEEK_END), store.output(path)
        if size is None or end < size:  # new, or replaced by a shorter one: what it has is counted first
            size = end
            store.set_output(path, size)
            store.remove(())
        elif end > size:
            self._take_back_uncounted(file, size)
        lines = _lines(received)
        if size and _last_byte(file, size) != b"\n":
            lines = b"\n" + lines
        rest = memoryview(lines)
        while rest:
            rest = rest[file.write(rest) :]
        os.fsync(file.fileno())
        self._synchronize(path)
        store.set_output(path, size + len(lines))

    def _take_back_uncounted(self, file: io.FileIO, size: int) -> None:
        """Remove the bytes of a file after a size if they are those of messages that will be written again."""
        assert self._store is not None
        path, left = str(file.name), file.seek(0, os.SEEK_END) - size
        if left <= 0:
            return
        is_first = size > 0 and _last_byte(file, size) != b"\n"
        file.seek(size)
        row = 0
        while left > 0 and (page := self._store.inbox(row)):
            row = page[-1].row
            mine = [each.received for each in page if self._stem(each.received) == _stem_of(path)]
            lines = (b"\n" if is_first and mine else b"") + (_lines(mine) if mine else b"")
            is_first = is_first and not mine
            wanted = lines[:left]
            if wanted != _read(file, len(wanted)):
                break
            left -= len(wanted)
        if left > 0:
            raise CommandError(f"{path} was changed after its last message: move it away, and a new one is begun")
        file.truncate(size)

    def _opened(self, directory: str, stem: str) -> io.FileIO:
        """Return the file of a queue; if it cannot be opened, the one of all queues that have none."""
        path = os.path.join(directory, f"{stem}.jsonl")
        if not os.path.exists(path):
            self._synchronized.discard(path)
        try:
            return open(path, "a+b", buffering=0)
        except OSError as error:
            others = os.path.join(directory, f"{_OTHERS}.jsonl")
            if path == others:
                raise CommandError(f"cannot write {path}: {error.strerror}") from error
            if path not in self._refused:
                self._refused.add(path)
                say(f"cannot write {path}: {error.strerror}; its messages are written to {others}")
        return self._opened(directory, _OTHERS)

    def _synchronize(self, path: str) -> None:
        """Put the name of a file on disk when it is written first, also of one that exists: it may be new."""
        if path not in self._synchronized:
            sync_folder(os.path.dirname(path) or os.curdir)
            self._synchronized.add(path)

    def _print(self, file: IO[bytes], received: Sequence[MessageReceived]) -> None:
        """Write messages to standard output: to a file as to those of queues."""
        if _is_file(file):
            with contextlib.suppress(FileNotFoundError):  # only Linux knows where it is
                self._synchronize(os.readlink(OPEN_FILE.format(file.fileno())))
            with open(file.fileno(), "ab", buffering=0, closefd=False) as unbuffered:
                _append(unbuffered, received)
        else:
            write_at_once(file, _lines(received))

    def _stem(self, received: MessageReceived) -> str:
        """Return the name of the file of a message's queue."""
        stem = queue_stem(self._public.by_path(received.message.destination_queue))
        if stem not in self._stems:
            if len(self._stems) >= _MOST_NAMES:
                return _OTHERS
            self._stems.add(stem)
        return stem


def _lines(received: Sequence[MessageReceived]) -> bytes:
    from msmqwire.cli.formats.json_lines import json_lines

    return bytes(json_lines(rows_of(received)))


def write_at_once(file: IO[bytes], data: bytes) -> None:
    """Write to a pipe or another output; a signal that asks to stop ends the wait for a reader that takes nothing."""
    if _has_descriptor(file):
        signals.write_until_stopped(file.fileno(), data)
    else:
        file.write(data)
        file.flush()


def _append(file: io.FileIO, received: Sequence[MessageReceived]) -> tuple[int, int]:
    """Append messages to a file: all of them or, since their senders send them again, none; where they are."""
    lines = _lines(received)
    start = file.seek(0, os.SEEK_END)
    if start and _last_byte(file, start) != b"\n":  # a process that was killed has left a part of a line
        lines = b"\n" + lines
    rest = memoryview(lines)
    try:
        while rest:
            rest = rest[file.write(rest) :]
        if any(each.message.delivery_mode == "recoverable" for each in received):
            os.fsync(file.fileno())
    except OSError:
        _take_back(file, start, start + len(lines) - len(rest))
        raise
    return start, start + len(lines)


def _take_back(file: io.FileIO, start: int, end: int) -> None:
    """Remove what was appended, unless another process has appended to the file as well: its rows stay."""
    with contextlib.suppress(OSError):
        if file.seek(0, os.SEEK_END) == end:
            file.truncate(file.seek(start))


def _stem_of(path: str) -> str:
    return os.path.basename(path).removesuffix(".jsonl")


def _read(file: io.FileIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (read := file.read(size - len(data))):
        data += read
    return data


def _last_byte(file: io.FileIO, end: int) -> bytes:
    if file.readable():
        file.seek(end - 1)
        return file.read(1)
    # Standard output is open for writing only
    with contextlib.suppress(OSError), open(OPEN_FILE.format(file.fileno()), "rb") as readable:
        readable.seek(end - 1)
        return readable.read(1)
    return b"\n"


def _is_file(file: IO[bytes]) -> bool:
    return _has_descriptor(file) and stat.S_ISREG(os.fstat(file.fileno()).st_mode)


def _has_descriptor(file: IO[bytes]) -> bool:
    try:
        file.fileno()
    except io.UnsupportedOperation:  # of a stream in memory
        return False
    return True


def rows_of(received: Sequence[MessageReceived]) -> Any:
    """Return the rows of messages as ``msmqwire decode`` has them, after where and when they were received."""
    import pyarrow as pa

    from msmqwire.capture import TABLES

    packets = [each.packet for each in received]
    rows = TABLES["messages"].decode_batch(packets).to_arrow(guid="text", dictionaries=False)
    added: dict[str, Any] = {
        "received_time": pa.array(
            [round(each.received_time * 1e6) * 1000 for each in received], pa.timestamp("ns", "UTC")
        ),
        "src": pa.array([each.address or None for each in received], pa.string()),
        "src_port": pa.array([each.port or None for each in received], pa.uint16()),
        "token": pa.array([each.token for each in received], pa.string()),
    }
    return pa.RecordBatch.from_arrays([*added.values(), *rows.columns], names=[*added, *rows.schema.names])
