"""Which captures a lake has: a capture is its fingerprint, whatever the name of its file.

The fingerprint is made of the length after decompression and of the first and last 64 KiB, before anything is decoded.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pyarrow as pa

from msmqwire.capture.files.compression import form_of
from msmqwire.capture.files.listing import SourceFile, open_source
from msmqwire.capture.files.remote import PositionedFile, StorageOptions
from msmqwire.capture.files.sources import OpenFile, shown_name
from msmqwire.errors import CaptureError

#: The bytes at each end of a capture that its fingerprint is made of.
END = 64 << 10
# A capture of less than 64 KiB can be the beginning of another one with the same opening: the largest of these numbers
# of bytes that it has. With a packet in it, few captures share an opening
_OPENINGS = (0, 64, 128, 256, 512, 1024)
_DIGITS = 32
_OPENING_DIGITS = 16
_BLOCK = 1 << 20
# What is left of a file that was read is little, mostly nothing: to clear a larger buffer takes longer than to read it
_REST = 1 << 16


class Identity(NamedTuple):
    """Identifies a capture.

    Attributes
    ----------
    capture : str
        Its fingerprint.
    length : int
        Its bytes after decompression.
    head, tail : str
        Digests of its first and last 64 KiB.
    openings : list of str
        Digests of shorter beginnings.
    stored : str
        The fingerprint of the file as it is stored, compressed or not.
    """

    capture: str
    length: int
    head: str
    tail: str
    openings: list[str]
    stored: str


def _digest(data: bytes | bytearray | memoryview, digits: int = _DIGITS) -> str:
    return hashlib.sha256(data).hexdigest()[:digits]


def _fingerprint(length: int, head: bytes, tail: bytes) -> str:
    return hashlib.sha256(b"%d:" % length + head + tail).hexdigest()[:_DIGITS]


def identify(name: str, storage_options: StorageOptions, size: int = 0) -> Identity:
    """Identify a capture; all of a compressed one is read.

    Parameters
    ----------
    name : str
    storage_options : mapping
    size : int
        The bytes of the file that count; 0 for all.

    Raises
    ------
    CaptureError, OSError
        It is a pipe, or cannot be decompressed or read.
    """
    with CapturedFile(name, storage_options, size) as file:
        if not file.seekable():
            raise CaptureError(f"{shown_name(name)}: is a pipe: write it to a file first")
        length, head, tail = _ends(file)
        fingerprint = _fingerprint(length, head, tail)
        if form_of(head) is not None:
            file.seek(0)
            head, tail, length = b"", b"", 0
            for window, end in _windows(OpenFile(name, file, ours=False)):
                head, tail, length = head or window[:END], window[-END:], end
    openings = [_digest(head[:size], _OPENING_DIGITS) for size in _OPENINGS if size <= len(head)]
    return Identity(_fingerprint(length, head, tail), length, _digest(head), _digest(tail), openings, fingerprint)


def stored_fingerprint(file: CapturedFile) -> str:
    """``Identity.stored`` of an open file."""
    return _fingerprint(*_ends(file))


def _ends(file: CapturedFile) -> tuple[int, bytes, bytes]:
    """The length of a file, and its first and last 64 KiB."""
    size = file.seek(0, os.SEEK_END)
    head = _read_at(file, 0, END)
    return size, head, _read_at(file, size - END, END) if size > END else head


def tails(name: str, storage_options: StorageOptions, lengths: Iterable[int]) -> dict[int, str]:
    """The digests of up to 64 KiB of a capture before each of some offsets, for those offsets that it has.

    Raises
    ------
    CaptureError, OSError
        It cannot be decompressed or read.
    """
    found = {}
    wanted = sorted(set(lengths))
    with CapturedFile(name, storage_options) as file:
        opened = OpenFile(name, file, ours=False)
        if opened.seekable:
            size = file.seek(0, os.SEEK_END)
            for length in wanted:
                if length <= size:
                    found[length] = _digest(_read_at(file, max(0, length - END), min(length, END)))
            return found
        for window, end in _windows(opened):
            while wanted and wanted[0] <= end:
                length = wanted.pop(0)
                before = window[: len(window) - (end - length)]
                found[length] = _digest(before[-END:])
            if not wanted:
                break
    return found


def _read_at(file: CapturedFile, offset: int, size: int) -> bytes:
    file.seek(offset)
    data = bytearray()
    while len(data) < size and (more := file.read(size - len(data))):
        data += more
    return bytes(data)


def _windows(file: OpenFile) -> Iterator[tuple[bytes, int]]:
    """The bytes of a file in pieces, each with up to 64 KiB before it, and the offset where it ends."""
    block = memoryview(bytearray(_BLOCK))
    window, end = b"", 0
    filled = 0
    while True:
        count = file.read_into(block[filled:])
        filled += count
        # The first piece has at least 64 KiB, if there are as many
        if filled and (not count or filled == len(block)):
            window, end = window[-END:] + bytes(block[:filled]), end + filled
            yield window, end
            filled = 0
        if not count:
            return


class CapturedFile(PositionedFile):
    """A source that is read up to the size that it had when the run began.

    Parameters
    ----------
    name : str
    storage_options : mapping
    size : int
        The bytes that the file had when the run began; 0 for all.
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
        self._ended = False
        self._file = open_source(name, storage_options)
        self._hash = hashlib.sha256() if digest else None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        super().close()

    def seekable(self) -> bool:
        """Return True if the underlying file is seekable."""
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the offset of the next byte."""
        start = min(self._file.seek(0, os.SEEK_END), self._size) if whence == os.SEEK_END else 0
        self._position = self._file.seek(start + offset)
        self._ended = False
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer; how many bytes there were."""
        view = memoryview(buffer)[: max(self._size - self._position, 0)]
        count = 0 if self._ended else self._file.readinto(view) or 0
        self._ended = not count
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


class Known(NamedTuple):
    """The columns of a row of ``accounting`` that decide whether a file is read again."""

    capture: str
    run: int
    file: str
    name: str
    length: int
    head: str
    tail: str
    openings: list[str]
    size: int
    modified_ns: int | None
    settings: str
    duplicate_of: str | None
    problem: str | None
    deletions: bytes | None

    @property
    def is_capture(self) -> bool:
        """True if it has rows: it is no copy of another, and could be read."""
        return self.duplicate_of is None and self.problem is None

    @property
    def identity(self) -> Identity:
        """What its capture is known by."""
        return Identity(self.capture, self.length, self.head, self.tail, self.openings, "")

    def __hash__(self) -> int:
        return hash((self.run, self.name))


#: The columns of ``accounting`` that ``KnownCaptures`` takes.
KNOWN = Known._fields


class KnownCaptures:
    """The captures that a lake has, by fingerprint, by beginning and by name."""

    def __init__(self) -> None:
        self._by_capture: dict[str, Known] = {}
        self._by_name: dict[str, list[Known]] = {}
        self._by_head: dict[str, list[Known]] = {}
        self._copies: dict[str, list[Known]] = {}
        # Small captures by their last opening, and all by each opening
        self._small: dict[str, list[Known]] = {}
        self._by_opening: dict[str, list[Known]] | None = None

    def read(self, rows: pa.Table) -> None:
        """Add rows of ``accounting`` with the columns ``KNOWN``."""
        columns: list[list[Any]] = []
        for name in KNOWN:
            # Many times as fast as to_pylist, but it makes numbers with nulls into floats
            fast = rows[name].null_count == 0 and not pa.types.is_nested(rows[name].type)
            columns.append(rows[name].to_numpy().tolist() if fast else rows[name].to_pylist())
        file, named = KNOWN.index("file"), KNOWN.index("name")
        # The name of a file need not be text
        columns[named] = [
            one if other is None else os.fsdecode(other)
            for one, other in zip(columns[file], columns[named], strict=True)
        ]
        for values in zip(*columns, strict=True):
            self.add(Known._make(values))

    def add(self, row: Known) -> None:
        """Add a row."""
        self._by_name.setdefault(row.name, []).append(row)
        if row.duplicate_of is not None:
            self._copies.setdefault(row.duplicate_of, []).append(row)
        elif row.problem is None:
            self._by_capture[row.capture] = row
            if row.length >= END:
                self._by_head.setdefault(row.head, []).append(row)
            elif row.openings:
                self._small.setdefault(row.openings[-1], []).append(row)
            self._by_opening = None

    def remove(self, rows: Iterable[Known]) -> None:
        """Remove rows."""
        for row in rows:
            self._by_name[row.name].remove(row)
            if row.duplicate_of is not None:
                self._copies[row.duplicate_of].remove(row)
            elif row.problem is None:
                if self._by_capture.get(row.capture) == row:
                    del self._by_capture[row.capture]
                if row.length >= END:
                    self._by_head[row.head].remove(row)
                elif row.openings:
                    self._small[row.openings[-1]].remove(row)
                self._by_opening = None

    def capture(self, capture: str | None) -> Known | None:
        """The row of a capture."""
        return None if capture is None else self._by_capture.get(capture)

    def copies(self, capture: str) -> list[Known]:
        """The rows of the other files with this capture or with its beginning."""
        return self._copies.get(capture, [])

    def noted(self, file: SourceFile) -> Known | None:
        """The row of a file with this size and time, also if it is a copy of another file."""
        stamp = file.size, file.modified_ns
        rows = (row for row in reversed(self._by_name.get(file.name, ())) if row.problem is None)
        return next((row for row in rows if (row.size, row.modified_ns) == stamp), None)

    def unchanged(self, file: SourceFile, settings: str) -> bool:
        """Return True if a file has the size and time that it had when it was read, and its capture is still there."""
        if file.modified_ns is None:
            return False
        noted = self.noted(file)
        return noted is not None and self.holds(noted.duplicate_of or noted.capture, settings)

    def holds(self, capture: str, settings: str) -> bool:
        """Return True if the lake has a capture, decoded with these settings."""
        found = self.capture(capture)
        return found is not None and found.settings == settings

    def others(self, name: str) -> list[Known]:
        """The rows of a file that have no rows in other tables."""
        return [row for row in self._by_name.get(name, ()) if not row.is_capture]

    def alike(self, identity: Identity, name: str) -> list[Known]:
        """The captures of other lengths that may begin with a capture, or that it may begin with."""
        found = list(self._by_head.get(identity.head, ())) if identity.length >= END else []
        for opening in identity.openings:
            found += (row for row in self._small.get(opening, ()) if row.length < identity.length)
        if identity.length < END:
            found += (row for row in self._opened(identity.openings[-1]) if row.length > identity.length)
        found += (row for row in self._by_name.get(name, ()) if row.is_capture and row.length < identity.length)
        return list({row.capture: row for row in found if row.length != identity.length}.values())

    def same_beginning(self, identity: Identity) -> list[Known]:
        """The other captures with the same first 64 KiB."""
        rows = self._by_head.get(identity.head, ()) if identity.length >= END else ()
        return [row for row in rows if row.capture != identity.capture]

    def _opened(self, opening: str) -> list[Known]:
        if self._by_opening is None:
            self._by_opening = {}
            for row in self._by_capture.values():
                for one in row.openings:
                    self._by_opening.setdefault(one, []).append(row)
        return self._by_opening.get(opening, [])


@dataclass
class Relation:
    """What a capture is to captures of a lake.

    Attributes
    ----------
    grown_from : list of Known
        Those that it begins with.
    part_of : Known or None
        One that begins with it.
    unclear : Known or None
        One that may begin with it, if its file could be read.
    """

    grown_from: list[Known] = field(default_factory=list)
    part_of: Known | None = None
    unclear: Known | None = None


def relate(
    name: str,
    identity: Identity,
    candidates: Sequence[Known],
    tails_of: Callable[[str, Iterable[int]], Mapping[int, str]],
) -> Relation:
    """Compare a capture with captures that may begin with it, or that it may begin with.

    Parameters
    ----------
    name : str
        Of its file.
    identity : Identity
    candidates : sequence of Known
    tails_of : callable
        As ``tails``, of the file with this name; nothing for a file that cannot be read.
    """
    relation = Relation()
    shorter = [one for one in candidates if one.length < identity.length]
    if shorter:
        here = tails_of(name, [one.length for one in shorter])
        relation.grown_from = [
            one
            for one in shorter
            if here.get(one.length) == one.tail and (one.length < END or one.head == identity.head)
        ]
    for one in candidates:
        if one.length <= identity.length:
            continue
        there = tails_of(one.name, [identity.length, one.length])
        if there.get(one.length) != one.tail:
            # Its file is gone, or another one
            relation.unclear = one
        elif there.get(identity.length) == identity.tail:
            relation.part_of = one
    return relation
