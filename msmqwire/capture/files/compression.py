"""Decompression of captures; the first bytes determine the format, never the name of the file."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from msmqwire.capture.schema import FileLimits
from msmqwire.errors import CaptureReadError, missing


class _Reader(Protocol):
    def readinto1(self, buffer: memoryview) -> int: ...


class _Stream(Protocol):
    """A decompressor of one stream, as of the standard library."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes | None: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Streams:
    """The content of compressed streams that follow each other, with one decompressor for each.

    The file classes of the libraries are not used because they set no limit of memory.
    """

    def __init__(self, file: io.RawIOBase, begin: Callable[[], _Stream], padding: bytes = b"") -> None:
        self._file = file
        self._begin = begin
        self._padding = padding
        self._stream: _Stream | None = None

    def readinto1(self, buffer: memoryview) -> int:
        """Fill the buffer with the output of one step; 0 at the end.

        Raises
        ------
        EOFError
            The file ends inside a stream.
        """
        while True:
            data = b""
            if self._stream is None or self._stream.eof:
                data = self._next_stream()
                if not data:
                    return 0
                self._stream = self._begin()
            elif self._stream.needs_input:
                data = self._file.read(INPUT) or b""
                if not data:
                    raise EOFError
            content = self._stream.decompress(data, len(buffer))
            if content:
                buffer[: len(content)] = content
                return len(content)

    def _next_stream(self) -> bytes:
        """The beginning of the next stream, without the padding that may precede it; empty at the end."""
        unused = None if self._stream is None else self._stream.unused_data  # that of lz4 may be None
        data = (unused or b"").lstrip(self._padding)
        while not data:
            more = self._file.read(INPUT)
            if not more:
                break
            data = more.lstrip(self._padding)
        return data


def _open_zstd(file: io.RawIOBase, memory: int) -> _Reader:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: memory.bit_length() - 1}
    return _Streams(file, lambda: zstd.ZstdDecompressor(options=options))


def _open_lz4(file: io.RawIOBase, memory: int) -> _Reader:
    import lz4.frame

    return _Streams(file, lz4.frame.LZ4FrameDecompressor)  # its blocks are 4 MiB at most


def _open_xz(file: io.RawIOBase, memory: int) -> _Reader:
    return _Streams(file, lambda: lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=memory), padding=b"\0")


_FORMS: dict[bytes, tuple[str, Callable[[Any, int], _Reader]]] = {
    b"\x1f\x8b": ("gzip", lambda file, memory: gzip.GzipFile(fileobj=file)),
    b"\x28\xb5\x2f\xfd": ("zstd", _open_zstd),
    b"\x04\x22\x4d\x18": ("lz4", _open_lz4),
    b"\xfd7zXZ\x00": ("xz", _open_xz),
    b"BZh": ("bzip2", lambda file, memory: _Streams(file, bz2.BZ2Decompressor)),
}
INPUT = 1 << 16  # compressed bytes of a read
LONGEST_MAGIC = max(map(len, _FORMS))
# Frames without content, which zstd and lz4 have in common; pzstd writes one before each frame
_SKIPPABLE = tuple(bytes((first, *b"\x2a\x4d\x18")) for first in range(0x50, 0x60))
_SKIPPABLE_HEADER = 8  # bytes: the magic, and the number of bytes that follow
_ZSTD_OR_LZ4 = "zstd or lz4"

# gzip cannot expand more than 1,032 times, and no capture shrinks so far in any form: frames differ in their times
LARGEST_RATIO = 1100
RATIO_COUNTS_FROM = 64 << 20


def form_of(first: bytes) -> str | None:
    """The name of the compression format of a file with these first bytes; None if it is not compressed."""
    if first.startswith(_SKIPPABLE):
        return _ZSTD_OR_LZ4
    return next((name for magic, (name, _) in _FORMS.items() if first.startswith(magic)), None)


class Peeked(io.RawIOBase):
    """A file whose first bytes were read and are returned again: a pipe cannot seek.

    Attributes
    ----------
    first : bytes
    """

    def __init__(self, read_into: Callable[[memoryview], int]) -> None:
        self._read_into = read_into
        self.peek()

    def peek(self) -> None:
        """Read the next bytes as ``first``; those before must have been returned."""
        self.first = b""
        view = memoryview(bytearray(LONGEST_MAGIC))
        while len(self.first) < LONGEST_MAGIC:
            count = self._read_into(view[len(self.first) :])
            if not count:
                break
            self.first = bytes(view[: len(self.first) + count])
        self._left = self.first

    def readable(self) -> bool:
        """True."""
        return True

    def forget(self) -> None:
        """Forget the first bytes: the file is at another offset."""
        self._left = b""

    def readinto(self, view: Any) -> int:
        """Fill a buffer; the number of bytes, 0 at the end of the file."""
        if not self._left:
            return self._read_into(view)
        part = self._left[: len(view)]
        view[: len(part)] = part
        self._left = self._left[len(part) :]
        return len(part)


class Decompressed:
    """The decompressed bytes of a file, a part with each call; several compressed streams may follow each other.

    Attributes
    ----------
    problem : str
        Why reading ended before the end; empty while all is well.
    """

    def __init__(self, name: str, form: str, file: Peeked, limits: FileLimits | None = None) -> None:
        self.problem = ""
        self._memory = (limits or FileLimits()).memory
        self._form = form
        self._counted = _Counted(file)
        self._given = 0
        if form == _ZSTD_OR_LZ4:
            try:
                self._skip_frames(file)
            except EOFError as error:
                self._malformed(error)
            self._form = form = "lz4" if form_of(file.first) == "lz4" else "zstd"
        opener = next(opener for known, opener in _FORMS.values() if known == form)
        try:
            self._reader = opener(self._counted, self._memory)
        except ImportError as error:
            package = "backports.zstd" if form == "zstd" else form
            raise CaptureReadError(f"{name}: {missing(package, f'decompressing {form}')}") from error

    def _skip_frames(self, file: Peeked) -> None:
        while file.first.startswith(_SKIPPABLE):
            header = b"".join(self._exactly(_SKIPPABLE_HEADER))
            for _ in self._exactly(int.from_bytes(header[4:], "little")):
                pass
            file.peek()

    def _exactly(self, size: int) -> Iterator[bytes]:
        """The next bytes of the file, in parts.

        Raises
        ------
        EOFError
            The file has fewer.
        """
        while size:
            part = self._counted.read(min(size, INPUT))
            if not part:
                raise EOFError
            yield part
            size -= len(part)

    def read_into(self, view: memoryview) -> int:
        """Fill the buffer; 0 at the end of the content, or where the file is malformed."""
        if self.problem or not view:  # liblzma takes an empty buffer for an error
            return 0
        try:
            count = self._reader.readinto1(view)
        except MemoryError:
            raise
        except Exception as error:  # each library has a type of its own
            if error is self._counted.failure:  # of the file, not of the data
                raise
            return self._malformed(error)
        self._given += count
        if self._given > RATIO_COUNTS_FROM and self._given > LARGEST_RATIO * self._counted.count:
            self.problem = (
                f"the {self._form} stream makes {self._given} bytes of {self._counted.count}: no capture does"
            )
            return 0
        return count

    def _malformed(self, error: Exception) -> int:
        after = f"after {self._given} decompressed bytes"
        if isinstance(error, EOFError):
            self.problem = f"the {self._form} stream is truncated {after}"
            return 0
        self.problem = f"the {self._form} stream is malformed {after}: {error}"
        if "memory" in str(error).lower():  # so do both libraries that have a limit
            self.problem += f"; the limit is {self._memory} bytes (FileLimits.memory)"
        return 0


class _Counted(io.RawIOBase):
    """A binary file that counts what was read of it, and keeps the exception of a read that failed."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file
        self.count = 0
        self.failure: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int | None:
        try:
            count = self._file.readinto(view)
            if count is None:
                raise BlockingIOError(errno.EAGAIN, "cannot be read without waiting; give a file in blocking mode")
        except Exception as error:
            self.failure = error
            raise
        self.count += count
        return count
