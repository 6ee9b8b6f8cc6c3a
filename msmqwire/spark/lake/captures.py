"""Which captures a lake knows: a capture is its content after decompression, whatever its name.

A file whose content begins with that of a capture is the same capture grown; a file with which a capture begins is an
earlier copy of it. Of the content the first 64 KiB decide, or all of it where there is less.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture.files.compression import form_of
from msmqwire.capture.files.listing import SourceFile, open_source
from msmqwire.capture.files.remote import PositionedFile, StorageOptions
from msmqwire.capture.files.sources import OpenFile

#: The bytes of a capture that decide which one it is.
HEAD = 64 << 10
# A file can only have grown from small captures with the same opening: the largest of these numbers of bytes that each
# has. With a packet in it, few captures share an opening
_OPENINGS = (0, 64, 128, 256, 512, 1024)
_DIGITS = 64
_OPENING_DIGITS = 16
_BLOCK = 1 << 20
# What is left of a file that was read is little, mostly nothing: to clear a larger buffer takes longer than to read it
_REST = 1 << 16
# Numbers of captures count from 2024 on
_EPOCH_MS = 1_704_067_200_000
_RANDOM_BITS = 22


@dataclass(frozen=True)
class Identity:
    """Identifies a capture.

    Attributes
    ----------
    key : str
        As ``key_of`` has it.
    length : int or None
        Its bytes after decompression; None if only reading all of it would tell.
    openings : list of str
        Of the captures that it may have grown from.
    grown_from : list of str
        The keys that it had when it had one of the given lengths.
    """

    key: str
    length: int | None
    openings: list[str]
    grown_from: list[str] = field(default_factory=list)

    @property
    def is_small(self) -> bool:
        """Whether the capture is shorter than ``HEAD``."""
        return self.length is not None and self.length < HEAD


def capture_numbers() -> Iterator[int]:
    """Numbers for captures that no other run has: they count up from the time in milliseconds and random bits."""
    start = (time.time_ns() // 1_000_000 - _EPOCH_MS) << _RANDOM_BITS
    return count(start + secrets.randbits(_RANDOM_BITS))


def key_of(head: bytes | memoryview) -> str:
    """The key of a capture with these first ``HEAD`` bytes, or with these bytes where there are fewer.

    It is a SHA-256; of a smaller capture, the beginning is replaced by the opening, which an index is made of.
    """
    digest = hashlib.sha256(head).hexdigest()
    return digest if len(head) >= HEAD else f"{_openings(head)[-1]}-{digest[: _DIGITS - _OPENING_DIGITS]}"


def _openings(head: bytes | memoryview) -> list[str]:
    return [hashlib.sha256(head[:size]).hexdigest()[:_OPENING_DIGITS] for size in _OPENINGS if size <= len(head)]


def identity_of(head: bytes, length: int | None, lengths: Iterable[int] = ()) -> Identity:
    """The identity of a capture from its first ``HEAD`` bytes, or all bytes where there are fewer."""
    grown_from = [key_of(memoryview(head)[:size]) for size in lengths if size < len(head)]
    return Identity(key_of(head), len(head) if len(head) < HEAD else length, _openings(head), grown_from)


def identify(name: str, storage_options: StorageOptions, lengths: Iterable[int] = ()) -> Identity:
    """Identify a capture from its beginning.

    Parameters
    ----------
    name : str
    storage_options : mapping
    lengths : iterable of int
        Of small captures that it may have grown from.

    Raises
    ------
    CaptureError, OSError
        It cannot be decompressed or read.
    """
    with open_source(name, storage_options) as file:
        opened = OpenFile(name, file, ours=False)
        head = _filled(opened, HEAD)
        compressed = not opened.seekable
        length = None if compressed else file.seek(0, os.SEEK_END)
    return identity_of(head, length, lengths)


def measure(name: str, storage_options: StorageOptions) -> int:
    """The bytes of a compressed capture after decompression.

    Raises
    ------
    CaptureError, OSError
        It cannot be decompressed or read.
    """
    block = memoryview(bytearray(_BLOCK))
    length = 0
    with open_source(name, storage_options) as file:
        opened = OpenFile(name, file, ours=False)
        while count := opened.read_into(block):
            length += count
    return length


def _filled(file: OpenFile, size: int) -> bytes:
    found = memoryview(bytearray(size))
    count = 0
    while count < size and (more := file.read_into(found[count:])):
        count += more
    return bytes(found[:count])


class CapturedFile(PositionedFile):
    """A source that is read once and identified by the bytes that were read, the same that its rows come from.

    Bytes that are written after the run began have no rows: the next run reads them.

    Parameters
    ----------
    name : str
    storage_options : mapping
    size : int
        The bytes that the file had when the run began; 0 if there is no saying, as of a pipe.
    digest : bool
        Make a digest of the bytes.

    Attributes
    ----------
    bytes : int
        How many were read.
    """

    _file: Any = None  # a finalizer closes what could not be opened, too

    def __init__(self, name: str, storage_options: StorageOptions, size: int = 0, *, digest: bool = False) -> None:
        self.name = name
        self.bytes = 0
        self._size = size or sys.maxsize
        self._storage_options = storage_options
        self._head = bytearray()
        self._ended = False
        self._is_resumed = False
        self._file = open_source(name, storage_options)
        self._hash = hashlib.sha256() if digest else None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        super().close()

    def seekable(self) -> bool:
        """Whether the underlying file is seekable."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the offset of the next byte."""
        start = min(self._file.seek(0, os.SEEK_END), self._size) if whence == os.SEEK_END else 0
        self._position = self._file.seek(start + offset)
        self._is_resumed = True
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; how many bytes there were."""
        view = memoryview(buffer)[: max(self._size - self._position, 0)]
        count = 0 if self._ended else self._file.readinto(view) or 0
        self._ended = not count
        if len(self._head) < HEAD and not self._is_resumed:
            self._head += view[: min(count, HEAD - len(self._head))]
        if self._hash is not None:
            self._hash.update(view[:count])
        self.bytes += count
        self._position += count
        return count

    def finish(self) -> None:
        """Read the remaining bytes, so that ``bytes`` and ``digest`` count the complete file."""
        rest = memoryview(bytearray(_REST))
        while self.readinto(rest):
            pass

    @property
    def digest(self) -> str | None:
        """SHA-256 of the bytes that were read, if it was requested."""
        return None if self._hash is None else self._hash.hexdigest()

    def identity(self, length: int, lengths: Iterable[int] = ()) -> Identity:
        """The identity of the bytes that were read.

        Parameters
        ----------
        length : int
            Their number after decompression.
        lengths : iterable of int
            The lengths of small captures that it may have grown from.
        """
        head = bytes(self._head)
        if self._is_resumed:
            return replace(identify(self.name, self._storage_options, lengths), length=self._position)
        if form_of(head) is None:
            return identity_of(head, self.bytes, lengths)
        found = identify(self.name, self._storage_options, lengths)
        return found if found.length is not None else replace(found, length=length)


class Known(NamedTuple):
    """The columns of a row of ``accounting`` that decide whether a file is read again."""

    capture: int
    run: int
    name: str
    key: str | None
    length: int
    size: int
    modified_ns: int | None
    settings: str
    duplicate_of: int | None
    problem: str | None

    @property
    def is_capture(self) -> bool:
        """Whether it has rows: it is no copy of another, and could be read."""
        return self.duplicate_of is None and self.problem is None


#: The columns of ``accounting`` that ``KnownCaptures`` takes.
KNOWN = (*Known._fields, "file", "first_time", "replaces")


class KnownCaptures:
    """The captures that a lake knows, by key and by name.

    A run looks up few of the captures of a lake, so a row becomes a ``Known`` only when it is looked up.
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in KNOWN if name != "replaces"}
        self._by_key: dict[str, int] = {}
        # Earlier rows with the same key; only after a repair are they not replaced
        self._earlier_by_key: dict[str, list[int]] = {}
        # The keys of copies: of the capture, or of what it was before it has grown
        self._by_key_of_copy: dict[str, int] = {}
        self._by_number: dict[int, int] = {}
        self._copies: dict[int, list[int]] = {}
        # Small captures by opening, and all by the time of their first row
        self._by_opening: dict[str, list[int]] = {}
        self._by_time: dict[int, list[int]] = {}
        # The last row of a name, and for each row the one before it
        self._by_name: dict[str, int] = {}
        self._previous: list[int | None] = []
        self._replaced: set[int] = set()

    def add(self, rows: pa.Table) -> None:
        """Add rows of ``accounting`` with the columns ``KNOWN``; the rows that they replace are forgotten."""
        start = len(self._columns["capture"])
        for name, values in self._columns.items():
            column = rows[name].cast(pa.int64()) if name == "first_time" else rows[name]
            # Many times as fast as to_pylist, but it makes numbers with nulls into floats
            fast = column.null_count == 0 or column.type in (pa.string(), pa.binary())
            values += column.to_numpy().tolist() if fast else column.to_pylist()
        columns, by_name = self._columns, self._by_name
        replaced: Any = pc.list_flatten(rows["replaces"])
        self._replaced.update(replaced.to_pylist())
        names = zip(columns["file"][start:], columns["name"][start:], strict=True)
        # The name of a file need not be text
        columns["name"][start:] = [file if name is None else os.fsdecode(name) for file, name in names]
        for number, name in enumerate(columns["name"][start:], start):
            self._previous.append(by_name.get(name))
            by_name[name] = number
        kinds = (
            columns[name][start:] for name in ("capture", "key", "length", "first_time", "duplicate_of", "problem")
        )
        for number, (capture, key, length, moment, duplicate_of, problem) in enumerate(zip(*kinds, strict=True), start):
            self._by_number[capture] = number
            if duplicate_of is not None:
                self._copies.setdefault(duplicate_of, []).append(number)
                self._by_key_of_copy[key] = number
            elif problem is None:
                if (earlier := self._by_key.get(key)) is not None:
                    self._earlier_by_key.setdefault(key, []).append(earlier)
                self._by_key[key] = number
                if key is not None and length < HEAD:
                    self._by_opening.setdefault(key.rpartition("-")[0], []).append(number)
                if moment is not None:
                    self._by_time.setdefault(moment, []).append(number)

    def _row(self, number: int) -> Known | None:
        row = Known(*(self._columns[name][number] for name in Known._fields))
        return None if row.capture in self._replaced or self._by_number[row.capture] != number else row

    def _named(self, name: str) -> list[Known]:
        rows, number = [], self._by_name.get(name)
        while number is not None:
            rows.append(self._row(number))
            number = self._previous[number]
        return [row for row in reversed(rows) if row is not None]

    def capture(self, key: str | None) -> Known | None:
        """The capture with this key, or that had it before it has grown."""
        found = self._with_key(key)
        if found is None and key in self._by_key_of_copy:
            copy = self._row(self._by_key_of_copy[key])
            number = None if copy is None or copy.duplicate_of is None else self._by_number.get(copy.duplicate_of)
            found = None if number is None else self._row(number)
        return found

    def _with_key(self, key: str | None) -> Known | None:
        number = None if key is None else self._by_key.get(key)
        return None if number is None else self._row(number)

    def numbered(self, capture: int) -> Known | None:
        """The capture with this number."""
        number = self._by_number.get(capture)
        return None if number is None else self._row(number)

    def noted(self, file: SourceFile) -> Known | None:
        """The row of a file with this size and time, also if it is a copy of another file."""
        stamp = file.size, file.modified_ns
        rows = (row for row in reversed(self._named(file.name)) if row.problem is None)
        return next((row for row in rows if (row.size, row.modified_ns) == stamp), None)

    def unchanged(self, file: SourceFile, settings: str) -> bool:
        """Whether a file has the size and time that it had when it was read, and its capture is still known."""
        if file.modified_ns is None:
            return False
        noted = self.noted(file)
        return noted is not None and self.holds(noted.key, noted.length, settings)

    def holds(self, key: str | None, length: int, settings: str) -> bool:
        """Whether a capture is known with at least ``length`` bytes, and was decoded with these settings."""
        found = self.capture(key)
        return found is not None and found.settings == settings and found.length >= length

    def lengths(self, identity: Identity) -> set[int]:
        """The lengths of the small captures that a file may have grown from."""
        most = HEAD if identity.length is None else identity.length
        alike = (number for opening in identity.openings for number in self._by_opening.get(opening, ()))
        return {length for number in alike if (length := self._columns["length"][number]) < most}

    def longer(self, first_time: int | None, length: int) -> list[Known]:
        """The captures with more bytes than ``length`` and the same time of the first row, in microseconds."""
        rows = (self._row(number) for number in self._by_time.get(first_time, ())) if first_time is not None else ()
        return [row for row in rows if row is not None and row.length > length]

    def problem(self, name: str) -> Known | None:
        """The row that says why a file could not be read."""
        return next((row for row in self._named(name) if row.problem is not None), None)

    def replaced_by(self, name: str, key: str | None, grown_from: Sequence[str]) -> list[Known]:
        """The rows that a new row replaces: those of the same capture and its copies, and of a file that is none."""
        found = [row for row in map(self._with_key, (key, *grown_from)) if row is not None]
        earlier = (number for row in found for number in self._earlier_by_key.get(str(row.key), ()))
        found += [row for row in map(self._row, earlier) if row is not None]
        copies = (self._row(number) for row in found for number in self._copies.get(row.capture, ()))
        # After a repair, a row may have no key: nobody knows what it was read from
        others = (row for row in self._named(name) if not row.is_capture or row.key is None)
        return list(dict.fromkeys([*found, *(row for row in copies if row is not None), *others]))
