"""Captures that grow: what a lake keeps of a capture so that only the bytes written since are read.

A run reads a capture up to the size that it had when the run began, in two steps: up to a checkpoint after its last
complete record, and its end, the rows and counts that it has only because it ends there. When the capture has grown,
the next run replaces the rows of the end by those that reading from the checkpoint gives.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Checkpoint, StreamStats
from msmqwire.capture.files.listing import open_source
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.errors import CaptureError
from msmqwire.spark.lake.accounting import SourceAccount
from msmqwire.spark.lake.captures import HEAD
from msmqwire.spark.lake.storage import RUNS

__all__ = ["SMALLEST", "Ending", "Seam", "digest_before", "grown_account", "seam_name"]

#: A smaller capture is read again, which costs no more than to identify it.
SMALLEST = HEAD
# The bytes before a checkpoint that tell whether a file was written on, and not replaced
_BEFORE = 4096
_SIZE = struct.Struct("<I")


@dataclass(frozen=True)
class Ending:
    """The rows of the end of a capture.

    Attributes
    ----------
    capture : int
    file : str
        The names of the files that had these rows at first begin with this.
    rows : dict of str to int
        How many there are, by table.
    places : list of (int, int or None)
        The frames and stream offsets of their payloads.
    """

    capture: int
    file: str
    rows: dict[str, int] = field(default_factory=dict)
    places: list[tuple[int, int | None]] = field(default_factory=list)

    @classmethod
    def of(cls, capture: int, file: str, rows: dict[str, int], places: list[list[Any]]) -> Ending:
        """An ending from JSON."""
        return cls(int(capture), file, dict(rows), [(frame, offset) for frame, offset in places])

    def take(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of a table."""
        self.rows[table] = self.rows.get(table, 0) + len(rows)
        if table != "faults":
            columns: list[list[Any]] = [rows.column(name).to_pylist() for name in ("frame", "stream_offset")]
            self.places.extend(zip(*columns, strict=True))

    def has(self, rows: pa.Table) -> Any:
        """Whether each of some rows is one of these; ``rows`` has the columns capture, frame and stream_offset."""
        places = pa.array([_place(frame, offset) for frame, offset in self.places], pa.string())
        offsets: Any = pc.fill_null(rows["stream_offset"].cast(pa.string()), pa.scalar(""))
        here: Any = pc.binary_join_element_wise(rows["frame"].cast(pa.string()), offsets, ":")
        mine: Any = pc.equal(rows["capture"], pa.scalar(self.capture))
        return pc.and_(mine, pc.is_in(here, places))


def _place(frame: int, offset: int | None) -> str:
    return f"{frame}:{'' if offset is None else offset}"


@dataclass(frozen=True)
class Seam:
    """Where reading of a capture resumes when it has grown.

    Attributes
    ----------
    checkpoint : Checkpoint
    account : SourceAccount
        The counts up to the checkpoint.
    ending : Ending
    before : str
        The digest of the bytes before the checkpoint, see ``digest_before``.
    """

    checkpoint: Checkpoint
    account: SourceAccount
    ending: Ending
    before: str

    def to_bytes(self) -> bytes:
        """The seam as bytes, for ``from_bytes``."""
        counts = {name: value for name, value in asdict(replace(self.account, seam=None)).items() if name in _COUNTS}
        values = {"account": counts, "ending": asdict(self.ending), "before": self.before}
        text = json.dumps(values).encode()
        return zlib.compress(_SIZE.pack(len(text)) + text + self.checkpoint.to_bytes(), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Seam:
        """The seam of ``to_bytes``.

        Raises
        ------
        CaptureError
            The bytes are malformed, or of another version of this package.
        """
        try:
            content = zlib.decompress(data)
            (size,) = _SIZE.unpack_from(content)
            values = json.loads(content[_SIZE.size : _SIZE.size + size])
            counts = values["account"]
            streams = StreamStats(**counts.pop("streams"))
            losses = [(offset, what) for offset, what in counts.pop("losses")]
            account = SourceAccount(**counts, streams=streams, losses=losses)
            checkpoint = Checkpoint.from_bytes(content[_SIZE.size + size :])
            return cls(checkpoint, account, Ending.of(**values["ending"]), values["before"])
        except (AttributeError, KeyError, TypeError, ValueError, struct.error, zlib.error) as error:
            raise CaptureError(f"no place where reading of a capture resumes: {error!r}") from None


_COUNTS = {item.name for item in fields(SourceAccount)} - {"seam", "new"}


def seam_name(capture: int, length: int) -> str:
    """The file with the seam of a capture that has this number of bytes; vacuum deletes it when it is old."""
    return f"{RUNS}/{capture}-{length}.seam"


def digest_before(name: str, storage_options: StorageOptions, offset: int) -> str:
    """The digest of up to 4096 bytes of a file before an offset.

    Raises
    ------
    OSError
        It cannot be read.
    """
    with open_source(name, storage_options) as file:
        size = min(offset, _BEFORE)
        file.seek(offset - size)
        found = b""
        while more := file.read(size - len(found)):
            found += more
    return hashlib.sha256(found).hexdigest()


def grown_account(base: SourceAccount, new: SourceAccount) -> SourceAccount:
    """The account of a capture that has grown: of what was read before, and of what is new."""
    account = replace(new, bytes=new.length, new=new)
    account.prepend(base)
    return account
