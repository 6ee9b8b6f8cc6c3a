"""A checksum of each Parquet file of a lake, in the file: between its last page and its footer, which no reader reads.

Pages have checksums of their own, which readers verify; footers and the headers of pages have none. The record is eight
bytes: ``MQck`` and the CRC-32 of all other bytes of the file, little-endian.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pyarrow.parquet as pq

from msmqwire.spark.lake.storage import Storage

_MAGIC = b"MQck"
_RECORD_BYTES = 8
# After the footer: its length, and PAR1
_END_BYTES = 8
_BLOCK = 1 << 20


class SummedFile:
    """A file that a ``ParquetWriter`` writes to, for ``finish`` to complete.

    Attributes
    ----------
    closed : bool
    """

    def __init__(self, file: Any) -> None:
        self.closed = False
        self._file = file
        self._sum = 0
        self._footer: bytearray | None = None

    def write(self, data: bytes) -> int:
        """Write some bytes; how many there are."""
        if self._footer is not None:
            self._footer += data
        else:
            self._sum = crc32(data, self._sum)
            self._file.write(data)
        return len(data)

    def tell(self) -> int:
        """How many bytes were written."""
        return int(self._file.tell()) + len(self._footer or b"")

    def flush(self) -> None:
        """Do nothing: ``close`` does."""

    def finish(self, writer: pq.ParquetWriter) -> int:
        """Close the writer, and write the checksum in front of its footer; the size of the file."""
        self._footer = bytearray()
        writer.close()
        footer, self._footer = bytes(self._footer), None
        self._file.write(_MAGIC + crc32(footer, self._sum).to_bytes(4, "little") + footer)
        return self.tell()

    def close(self) -> None:
        """Close the file as it is."""
        self.closed = True
        self._file.close()


def is_as_written(storage: Storage, name: str, size: int) -> bool:
    """Whether a file has the bytes that it was written with; also True for a file without a checksum."""
    with storage.open(name) as file:
        file.seek(max(0, size - _END_BYTES))
        record = size - _END_BYTES - int.from_bytes(file.read(4), "little") - _RECORD_BYTES
        if record < 0:
            return True
        file.seek(record)
        found = bytes(file.read(_RECORD_BYTES))
        if not found.startswith(_MAGIC):
            return True
        file.seek(0)
        total, left = 0, record
        while left and (block := file.read(min(left, _BLOCK))):
            total, left = crc32(block, total), left - len(block)
        file.seek(record + _RECORD_BYTES)
        return crc32(file.read(), total) == int.from_bytes(found[4:], "little")
