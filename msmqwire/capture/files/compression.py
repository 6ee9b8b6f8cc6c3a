"""Compressed captures, read as what they hold: the form is told by the first bytes, never by the name of the file."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from typing import Any, Protocol

from msmqwire.errors import CaptureError, missing

__all__ = ["LONGEST_MAGIC", "Decompressed", "form_of"]


class _Reader(Protocol):
    def readinto1(self, buffer: memoryview) -> int: ...


def _open_zstd(file: io.RawIOBase) -> _Reader:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    reader: _Reader = zstd.ZstdFile(file)
    return reader


def _open_lz4(file: io.RawIOBase) -> _Reader:
    import lz4.frame

    reader: _Reader = lz4.frame.LZ4FrameFile(file)
    return reader


_FORMS: dict[bytes, tuple[str, Callable[[Any], _Reader]]] = {
    b"\x1f\x8b": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    b"\x28\xb5\x2f\xfd": ("zstd", _open_zstd),
    b"\x04\x22\x4d\x18": ("lz4", _open_lz4),
    b"\xfd7zXZ\x00": ("xz", lzma.LZMAFile),
    b"BZh": ("bzip2", bz2.BZ2File),
}
LONGEST_MAGIC = max(map(len, _FORMS))

# gzip cannot expand more than 1,032 times, and no capture shrinks so far in any form: frames differ in their times
LARGEST_RATIO = 1100
RATIO_COUNTS_FROM = 64 << 20


def form_of(first: bytes) -> str | None:
    """The name of the form that a file with these first bytes is compressed in, None when it is not."""
    return next((name for magic, (name, _) in _FORMS.items() if first.startswith(magic)), None)


class Decompressed:
    """The bytes that a compressed file holds, one call a part; several compressed streams may follow each other.

    Attributes
    ----------
    damage : str
        Why reading ended before the end; empty while all is well.
    """

    def __init__(self, name: str, form: str, file: io.RawIOBase) -> None:
        self.damage = ""
        self._form = form
        self._counted = _Counted(file)
        self._given = 0
        opener = next(opener for known, opener in _FORMS.values() if known == form)
        try:
            self._reader = opener(self._counted)
        except ImportError as error:
            package = "backports.zstd" if form == "zstd" else form
            raise CaptureError(f"{name}: {missing(package, f'decompressing {form}')}") from error

    def read_into(self, view: memoryview) -> int:
        """Fill the buffer with what comes next; 0 at the end, be it the right one or where the file is damaged."""
        if self.damage:
            return 0
        try:
            count = self._reader.readinto1(view)
        except EOFError:
            self.damage = f"the {self._form} stream is cut: what it holds goes on behind {self._given} bytes"
            return 0
        except OSError as error:
            if error.errno is not None:  # the disk's fault, and not the data's
                raise
            return self._damaged(error)
        except Exception as error:  # each library has a type of its own
            return self._damaged(error)
        self._given += count
        if self._given > RATIO_COUNTS_FROM and self._given > LARGEST_RATIO * self._counted.count:
            self.damage = f"the {self._form} stream makes {self._given} bytes of {self._counted.count}: no capture does"
            return 0
        return count

    def _damaged(self, error: Exception) -> int:
        self.damage = f"the {self._form} stream is damaged behind {self._given} bytes of what it holds: {error}"
        return 0


class _Counted(io.RawIOBase):
    """A binary file that counts what was read of it."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int | None:
        count = self._file.readinto(view)
        self.count += count or 0
        return count
