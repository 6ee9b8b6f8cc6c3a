"""A Parquet file made of row groups that were encoded apart, each in any thread.

A row group is encoded as a Parquet file of its own. Its pages are copied as they are; the offsets of pages in its entry
of the footer are shifted. The footer is a ``FileMetaData`` of parquet.thrift in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import pyarrow as pa

from msmqwire.capture.parquet import parquet_writer

_MAGIC = b"PAR1"
# Types of the compact protocol; a boolean field has its value in the type
_BOOLEANS, _BYTE, _INTEGERS, _DOUBLE, _BINARY, _LISTS, _STRUCT = (1, 2), 3, (4, 5, 6), 7, 8, (9, 10), 12
# Fields of FileMetaData
_ROWS, _ROW_GROUPS = 3, 4
# Fields of RowGroup, and of ColumnChunk and ColumnMetaData in it: offsets in the file, and the number of the row group
_OFFSETS = frozenset({(5,), (1, 2), (1, 4), (1, 6), (1, 3, 9), (1, 3, 10), (1, 3, 11), (1, 3, 14)})
_ORDINAL = (7,)
_CHANGED = _OFFSETS | {_ORDINAL, ()}  # () is an integer of FileMetaData itself: its rows


class RowGroups:
    """Writes the file that ``parquet_writer`` would write of the same row groups, byte for byte."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self._file = file
        self._schema = schema
        self._entries: list[bytes] = []
        self._rows = 0
        self._size = file.write(_MAGIC)

    def encode(self, table: pa.Table) -> pa.Buffer:
        """The row group of a table, for ``append``; may be called in any thread."""
        target: Any = pa.BufferOutputStream()
        with parquet_writer(target, self._schema) as writer:
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)
        encoded: pa.Buffer = target.getvalue()
        return encoded

    def append(self, encoded: pa.Buffer) -> None:
        """Write a row group after the others."""
        pages, footer = _split(encoded)
        shift = self._size - len(_MAGIC)
        entry: list[bytes] = []
        for field in _fields(footer):
            if field.number == _ROWS:
                self._rows += field.integers[0].value
            elif field.number == _ROW_GROUPS:
                at = field.start + 1  # after the header of a list of one
                for integer in field.integers:
                    value = integer.value
                    if integer.path == _ORDINAL:
                        value = len(self._entries)
                    elif integer.path in _OFFSETS and value:  # 0: there is none
                        value += shift
                    entry += footer[at : integer.start], _varint(value << 1)
                    at = integer.end
                entry.append(footer[at : field.end])
        self._entries.append(b"".join(entry))
        self._size += self._file.write(pages)

    def close(self) -> None:
        """Write the footer."""
        _, footer = _split(self.encode(pa.Table.from_batches([], self._schema)))
        parts: list[bytes] = []
        at = 0
        for field in _fields(footer):
            if field.number == _ROWS:
                parts += footer[at : field.start], _varint(self._rows << 1)
                at = field.end
            elif field.number == _ROW_GROUPS:
                parts += footer[at : field.start], _list_header(len(self._entries), _STRUCT), *self._entries
                at = field.end
        whole = b"".join([*parts, footer[at:]])
        self._file.write(whole + len(whole).to_bytes(4, "little") + _MAGIC)


def _split(file: pa.Buffer) -> tuple[memoryview, bytes]:
    """The pages and the footer of a Parquet file."""
    view = memoryview(file)
    end = len(view) - len(_MAGIC) - 4
    start = end - int.from_bytes(view[end : end + 4], "little")
    return view[len(_MAGIC) : start], bytes(view[start:end])


class _Integer(NamedTuple):
    """An integer to change: the numbers of the fields around it, elements of lists having none."""

    path: tuple[int, ...]
    start: int
    end: int
    value: int


class _Field(NamedTuple):
    """A field of the outermost structure, and the integers in it that are to be changed."""

    number: int
    start: int
    end: int
    integers: list[_Integer]


def _fields(footer: bytes) -> Iterator[_Field]:
    reader = _Compact(footer)
    for number, kind in reader.fields():
        start = reader.at
        integers: list[_Integer] = []
        reader.read(kind, (), integers)
        yield _Field(number, start, reader.at, integers)


class _Compact:
    """Reads the compact protocol."""

    def __init__(self, data: bytes) -> None:
        self.at = 0
        self._data = data

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of a structure; its value must be read before the next."""
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._varint() >> 1
            yield number, head & 15

    def read(self, kind: int, path: tuple[int, ...], found: list[_Integer]) -> None:
        """Read a value, and add the integers to change."""
        if kind in _INTEGERS:
            start, value = self.at, self._varint()
            if path in _CHANGED:
                found.append(_Integer(path, start, self.at, value >> 1 ^ -(value & 1)))
        elif kind == _STRUCT:
            for number, inner in self.fields():
                self.read(inner, (*path, number), found)
        elif kind in _LISTS:
            head = self._byte()
            for _ in range(self._varint() if head >> 4 == 15 else head >> 4):
                self.read(head & 15, path, found)
        elif kind == _BINARY:
            size = self._varint()
            self.at += size
        elif kind not in _BOOLEANS:
            self.at += {_BYTE: 1, _DOUBLE: 8}[kind]

    def _byte(self) -> int:
        self.at += 1
        return self._data[self.at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) >= 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _list_header(count: int, kind: int) -> bytes:
    return bytes((count << 4 | kind,)) if count < 15 else bytes((0xF0 | kind,)) + _varint(count)
