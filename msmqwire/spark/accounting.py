"""The account of one source: what became of its frames, and whether the numbers agree."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from msmqwire.capture import TABLES, CaptureStats, StreamStats, TableRows
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
    ("segments", pa.int64()),
    ("fragments", pa.int64()),
    ("other", pa.int64()),
    ("damaged", pa.int64()),
    ("incomplete_datagrams", pa.int64()),
    ("fragment_conflicts", pa.int64()),
    ("cut_files", pa.int64()),
    ("streams", pa.struct([(item.name, pa.int64()) for item in fields(StreamStats)])),
    ("packets", pa.int64()),
    ("encrypted", pa.int64()),
    ("unread", pa.int64()),
    ("rows", pa.map_(pa.string(), pa.int64())),
    ("faults", pa.map_(pa.string(), pa.int64())),
    ("losses", pa.list_(pa.struct([("offset", pa.int64()), ("what", pa.string())]))),
    ("problem", pa.string()),
]
ACCOUNTING = pa.schema(_COLUMNS)
# What an account takes over from CaptureStats as it is
_COUNTS = (
    "frames",
    "payloads",
    "segments",
    "fragments",
    "other",
    "damaged",
    "bytes_skipped",
    "incomplete_datagrams",
    "fragment_conflicts",
    "cut_files",
)


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
    frames, payloads, segments, fragments, other, damaged, bytes_skipped : int
    incomplete_datagrams, fragment_conflicts, cut_files : int
        As in ``CaptureStats``.
    streams : StreamStats
    packets : int
        Packets out of TCP streams that were given to tables.
    given : dict
        Payloads by the table they were given to: a message to ``messages`` and to ``notifications``.
    claimed : int
        Payloads that were given to a table, each counted once.
    encrypted, unread : int
        Messages with changes that cannot be read, and messages that cannot be decoded, as in ``TableRows``.
    rows : dict
        Rows by table.
    faults : dict
        Rows of the table ``faults``, by code.
    losses : list of (int, str)
        Offset and description of what cannot be read, of frames, streams and cut files, at most 100.
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
    segments: int = 0
    fragments: int = 0
    other: int = 0
    damaged: int = 0
    bytes_skipped: int = 0
    incomplete_datagrams: int = 0
    fragment_conflicts: int = 0
    cut_files: int = 0
    streams: StreamStats = field(default_factory=StreamStats)
    given: dict[str, int] = field(default_factory=dict)
    claimed: int = 0
    encrypted: int = 0
    unread: int = 0
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

    @property
    def packets(self) -> int:
        """Packets out of TCP streams that were given to tables."""
        return self.streams.packets - self.streams.unselected

    def take(self, stats: CaptureStats, tables: Mapping[str, TableRows], claimed: int) -> None:
        """Take over what became of the frames, and of the payloads in them."""
        for name in _COUNTS:
            setattr(self, name, getattr(stats, name))
        self.streams = stats.streams
        self.losses = [(problem.offset, problem.what) for problem in stats.problems]
        self.claimed = claimed
        self.given = {name: table.payloads for name, table in tables.items()}
        self.rows = {name: table.rows for name, table in tables.items()}
        self.faults = dict(sum((table.faults for table in tables.values()), Counter()))
        self.encrypted = sum(table.encrypted for table in tables.values())
        self.unread = sum(table.unread for table in tables.values())

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
        streams = self.streams
        claims = (
            (
                "frames",
                self.frames,
                "payloads, segments, fragments, other and damaged",
                self.payloads + self.segments + self.fragments + self.other + self.damaged,
            ),
            (
                "bytes of streams",
                streams.bytes,
                "framed, skipped and duplicate",
                streams.framed + streams.skipped + streams.duplicate,
            ),
            ("payloads and packets of streams", self.payloads + self.packets, "given to tables", self.claimed),
            *(
                (f"payloads for {table}", given, "rows of it", self.rows.get(table, 0))
                for table, given in self.given.items()
                if not TABLES[table].in_messages
            ),
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
        streams = StreamStats(**values.pop("streams"))
        return cls(**values, files=files, losses=losses, streams=streams)


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
    values["streams"] = asdict(account.streams)
    values["rows"] = list(account.rows.items())
    values["faults"] = list(account.faults.items())
    values["losses"] = [{"offset": offset, "what": what} for offset, what in account.losses]
    return {name: [value] for name, value in values.items()}


def _microseconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1000
