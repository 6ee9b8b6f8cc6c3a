"""The account of one source: what became of its frames, and whether the numbers agree."""

from __future__ import annotations

import datetime
import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from msmqwire.capture import CaptureStats
from msmqwire.errors import MsmqWireError
from msmqwire.spark.lake import Compression, StagedFile, day_name

__all__ = ["ACCOUNTING", "AccountingError", "SourceAccount", "path_key", "write_account"]

# The lake's table `accounting`
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("file", pa.string()),
    ("digest", pa.string()),
    ("bytes", pa.int64()),
    ("bytes_skipped", pa.int64()),
    ("first_time", pa.timestamp("us", "UTC")),
    ("last_time", pa.timestamp("us", "UTC")),
    ("frames", pa.int64()),
    ("payloads", pa.int64()),
    ("other", pa.int64()),
    ("damaged", pa.int64()),
    ("fragments", pa.int64()),
    ("rows", pa.map_(pa.string(), pa.int64())),
    ("faults", pa.map_(pa.string(), pa.int64())),
    ("losses", pa.list_(pa.struct([("offset", pa.int64()), ("what", pa.string())]))),
    ("problem", pa.string()),
]
ACCOUNTING = pa.schema(_COLUMNS)


class AccountingError(MsmqWireError):
    """The numbers of a source do not add up: a defect of this program, and reason enough to commit nothing."""


@dataclass
class SourceAccount:
    """What a task found in one source, and the files it wrote.

    Attributes
    ----------
    file : str
        The source, as it was named.
    digest : str or None
        SHA-256 of its bytes; None when they cannot be read.
    bytes : int
        How many they are.
    first_ns, last_ns : int or None
        The times of its rows.
    frames, payloads, other, damaged, fragments, bytes_skipped : int
        As in ``CaptureStats``.
    rows : dict
        Rows by table.
    faults : dict
        Rows of the table ``faults``, by code.
    losses : list of (int, str)
        Offset and description of frames that cannot be read, at most 100.
    problem : str or None
        Why the file is no capture or cannot be read; it has no rows then.
    files : list of StagedFile
    """

    file: str
    digest: str | None = None
    bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    frames: int = 0
    payloads: int = 0
    other: int = 0
    damaged: int = 0
    fragments: int = 0
    bytes_skipped: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    losses: list[tuple[int, str]] = field(default_factory=list)
    problem: str | None = None
    files: list[StagedFile] = field(default_factory=list)

    @property
    def key(self) -> str:
        """The name of the source in the lake: its content, or its path when that cannot be read."""
        return path_key(self.file) if self.digest is None else self.digest[:32]

    def seen(self, first: int | None, last: int | None) -> None:
        """Widen the time span of the rows."""
        if first is not None and last is not None:
            self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
            self.last_ns = last if self.last_ns is None else max(last, self.last_ns)

    def take(self, stats: CaptureStats) -> None:
        """Take over what became of the frames."""
        self.frames, self.payloads, self.other = stats.frames, stats.payloads, stats.other
        self.damaged, self.fragments, self.bytes_skipped = stats.damaged, stats.fragments, stats.bytes_skipped
        self.losses = [(problem.offset, problem.what) for problem in stats.problems]

    def check(self) -> None:
        """Compare the numbers with each other and with what lies in the files.

        Raises
        ------
        AccountingError
            They do not agree.
        """
        written: dict[str, int] = {}
        for file in self.files:
            written[file.table] = written.get(file.table, 0) + pq.read_metadata(file.path).num_rows
        claims = (
            ("frames", self.frames, "payloads, other and damaged", self.payloads + self.other + self.damaged),
            ("payloads", self.payloads, "rows", sum(self.rows.values())),
            ("faults", sum(self.faults.values()), "rows in the files of faults", written.pop("faults", 0)),
            *((f"rows of {table}", rows, "in its files", written.pop(table, 0)) for table, rows in self.rows.items()),
            ("rows of other tables", 0, "in files", sum(written.values())),
        )
        for one, count, other, counted in claims:
            if count != counted:
                raise AccountingError(f"{self.file}: {count} {one}, but {counted} {other}")

    def to_json(self) -> str:
        """As a task sends it to the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> SourceAccount:
        """What ``to_json`` gave."""
        values = json.loads(text)
        files = [StagedFile(**file) for file in values.pop("files")]
        losses = [(offset, what) for offset, what in values.pop("losses")]
        return cls(**values, files=files, losses=losses)


def path_key(file: str) -> str:
    """The key of a source whose content cannot be read."""
    return "path-" + hashlib.sha256(file.encode(errors="surrogateescape")).hexdigest()[:32]


def write_account(account: SourceAccount, folder: Path, compression: Compression) -> StagedFile:
    """The row of ``accounting`` in a file of its own, in the partition of the source's first row."""
    path = str(folder / f"accounting-{account.key}.parquet")
    pq.write_table(pa.table(_columns(account), schema=ACCOUNTING), path, compression=compression)
    first = account.first_ns
    day = None if first is None else datetime.datetime.fromtimestamp(first // 10**9, datetime.UTC).date()
    return StagedFile("accounting", day_name(day), path)


def _columns(account: SourceAccount) -> dict[str, list[object]]:
    values: dict[str, object] = {name: getattr(account, name, None) for name in ACCOUNTING.names}
    values["first_time"] = _microseconds(account.first_ns)
    values["last_time"] = _microseconds(account.last_ns)
    values["rows"] = list(account.rows.items())
    values["faults"] = list(account.faults.items())
    values["losses"] = [{"offset": offset, "what": what} for offset, what in account.losses]
    return {name: [value] for name, value in values.items()}


def _microseconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1000
