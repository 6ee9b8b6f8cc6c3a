"""The sources that ``capture.open`` takes, as files to be read one after the other."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from msmqwire.capture.files.compression import Decompressed, Peeked, form_of
from msmqwire.capture.files.listing import STANDARD_INPUT, files_at, open_source
from msmqwire.capture.schema import FileLimits
from msmqwire.columns import Payloads
from msmqwire.errors import CaptureFormatError, CaptureReadError

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

OneSource: TypeAlias = "str | os.PathLike[str] | IO[bytes] | io.RawIOBase | io.BufferedIOBase | CapturedFrames"
Source: TypeAlias = "OneSource | Iterable[OneSource]"
# Of frames of one file: its name, their numbers, offsets, times, whether they have one, link types, and their bytes
FrameRun: TypeAlias = "tuple[str, NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], Payloads]"


class OpenFile:
    """A file to be read: its display name, and its bytes, decompressed if necessary."""

    def __init__(self, name: str, file: Any, *, ours: bool, limits: FileLimits | None = None) -> None:
        self.name = shown_name(name)
        self._file = file
        self._ours = ours
        self._decompressed: Decompressed | None = None
        try:
            seekable = hasattr(file, "seekable") and file.seekable()
            self._start = file.tell() if seekable else None
            self._peeked = peeked = Peeked(_reader(file))
            form = form_of(peeked.first)
            if form is not None:
                self._decompressed = Decompressed(self.name, form, peeked, limits)
        except BaseException:
            self.close()
            raise
        self._read_into = peeked.readinto if self._decompressed is None else self._decompressed.read_into
        self._most = None if limits is None else limits.max_bytes
        self._given = 0
        self._limit_problem = ""

    @property
    def problem(self) -> str:
        """Why the file was not read to its end; empty when nothing is wrong."""
        return self._limit_problem or ("" if self._decompressed is None else self._decompressed.problem)

    def read_into(self, view: memoryview) -> int:
        """Fill a writable buffer with available bytes; their number, 0 at the end of the file or at the limit."""
        if self._most is None:
            return self._read_into(view)
        if self._given < self._most:
            count = self._read_into(view[: self._most - self._given])
            self._given += count or 0
            return count
        if not self._limit_problem and self._read_into(memoryview(bytearray(1))):
            self._limit_problem = f"reading ended at the limit of max_bytes={self._most}; the file has more"
        return 0

    @property
    def seekable(self) -> bool:
        """True if reading can resume inside it: it is neither a pipe nor compressed."""
        return self._decompressed is None and self._start is not None

    def ready(self) -> bool:
        """Return True if the next read returns at once: the file is no pipe, or the pipe has data or has ended."""
        if self._start is not None:
            return True
        if self._decompressed is not None:
            return False
        try:
            return bool(select.select([self._file], (), (), 0)[0])
        except (OSError, TypeError, ValueError):  # no descriptor, or none that can be asked
            return False

    def seek(self, offset: int) -> None:
        """Resume at an offset, which counts from where reading began.

        Raises
        ------
        ValueError
            The file can only be read from its beginning: it is compressed, or a pipe.
        CaptureError
            It is shorter.
        """
        if self._decompressed is not None or self._start is None:
            kind = "a pipe" if self._decompressed is None else "compressed"
            raise ValueError(f"{self.name}: is {kind}: reading cannot resume inside it")
        size = self._file.seek(0, io.SEEK_END) - self._start
        if size < offset:
            raise CaptureReadError(f"{self.name}: has {size} bytes, and reading is to resume at {offset}")
        self._file.seek(self._start + offset)
        self._given = offset
        self._peeked.forget()

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._ours:
            self._file.close()


class CapturedFrames:
    """Frames that ``FrameReader`` took out of captures, to be read like captures; private to ``spark.streams``.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        The columns ``file``, ``frame``, ``time``, ``link``, ``offset`` and ``data`` of ``FrameReader``, in the order
        of the captures and of the frames in them; needs pyarrow. Frames that no row needs can be left out.
    """

    name = "<frames>"
    problem = ""
    seekable = False

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches

    def runs(self) -> Iterator[FrameRun]:
        """The frames of one file after the other.

        Raises
        ------
        CaptureError
            A frame is of no file.
        """
        import pyarrow as pa

        for batch in self._batches:
            files = batch.column("file").dictionary_encode()
            if files.null_count:
                raise CaptureFormatError(f"{files.null_count} frames are of no file")
            codes = files.indices.to_numpy()
            times = batch.column("time").cast(pa.timestamp("ns", "UTC")).cast(pa.int64())
            columns = (
                batch.column("frame").cast(pa.uint64()).to_numpy(),
                batch.column("offset").cast(pa.uint64()).to_numpy(),
                times.fill_null(0).to_numpy(),
                times.is_valid().cast(pa.uint8()).to_numpy(),
                batch.column("link").cast(pa.uint16()).to_numpy(),
                Payloads.of(batch.column("data")),
            )
            cuts = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(codes)]
            for start, stop in pairwise(cuts):
                if start < stop:
                    run = tuple(column[start:stop] for column in columns)
                    yield files.dictionary[int(codes[start])].as_py(), *run

    def close(self) -> None:
        """Nothing was opened."""


def _reader(file: Any) -> Callable[[memoryview], int]:
    """A function that reads once, straight into the buffer if the file can do that."""
    for method in ("readinto1", "readinto"):
        if hasattr(file, method):
            return getattr(file, method)  # type: ignore[no-any-return]

    def read_into(view: memoryview) -> int:
        data = file.read(len(view))
        if not isinstance(data, bytes):
            raise TypeError(f"a capture is read from binary files; this one returned {type(data).__name__}")
        view[: len(data)] = data
        return len(data)

    return read_into


def shown_name(name: str) -> str:
    """The display name of a file."""
    return os.fsencode(name).decode(errors="replace")


class UnopenedFile(NamedTuple):
    """The display name of a file, and the function that opens it."""

    name: str
    open: Callable[[FileLimits], OpenFile | CapturedFrames]


def files_of(source: Source, storage_options: Mapping[str, Any]) -> Iterator[UnopenedFile]:
    """The files of a name, binary file object, CapturedFrames, or a list of these, in this order.

    Raises
    ------
    FileNotFoundError, OSError, ValueError
        As of ``listing.files_at``.
    """
    if isinstance(source, str | os.PathLike | CapturedFrames) or hasattr(source, "read") or hasattr(source, "readinto"):
        yield from _one(source, storage_options)
    else:
        for item in source:
            yield from _one(item, storage_options)


def _one(item: Any, storage_options: Mapping[str, Any]) -> Iterator[UnopenedFile]:
    if isinstance(item, str | os.PathLike):
        name = os.fsdecode(item)
        if name == STANDARD_INPUT:
            yield _given(name, sys.stdin.buffer)
        else:
            for one in _names(name, storage_options):
                yield UnopenedFile(shown_name(one), partial(_opened, one, storage_options))
    elif isinstance(item, CapturedFrames):
        yield UnopenedFile(item.name, lambda _: item)
    elif hasattr(item, "read") or hasattr(item, "readinto"):
        if isinstance(item, io.TextIOBase):
            raise TypeError("a capture is read from binary files; open this one with mode 'rb'")
        given = getattr(item, "name", None)
        yield _given(given if isinstance(given, str) else "<stream>", item)
    else:
        raise TypeError(f"a capture is a path, a glob or a binary file, not {type(item).__name__}")


def _names(name: str, storage_options: Mapping[str, Any]) -> list[str]:
    try:
        return [file.name for file in files_at(name, storage_options=storage_options)]
    except FileNotFoundError as error:
        if error.filename != name:
            raise
        return [name]  # a file that is gone need not be opened: reading may resume after it


def _opened(name: str, storage_options: Mapping[str, Any], limits: FileLimits) -> OpenFile:
    return OpenFile(name, open_source(name, storage_options), ours=True, limits=limits)


def _given(name: str, file: Any) -> UnopenedFile:
    return UnopenedFile(shown_name(name), lambda limits: OpenFile(name, file, ours=False, limits=limits))
