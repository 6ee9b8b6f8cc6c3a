"""The account of one capture: the counts of its frames and rows, whether they agree, and the table of accounts."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias

import pyarrow as pa

from msmqwire.capture import TABLES, CaptureStats, StreamStats, TableRows
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.frames._frame import MAX_PROBLEMS
from msmqwire.capture.stats import FrameCounts, add_counts
from msmqwire.errors import MsmqWireError
from msmqwire.spark.lake.planning import Identity, Known
from msmqwire.spark.lake.writing import WrittenFile

# ``SourceAccount`` has a count called bytes
Packed: TypeAlias = bytes
_COUNTS = tuple(item.name for item in fields(FrameCounts) if item.type == "int")
_NAMED = tuple(item.name for item in fields(FrameCounts) if item.default_factory is dict)
_STREAMS = tuple(item.name for item in fields(StreamStats))
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("capture", pa.string()),
    ("run", pa.int64()),
    ("file", pa.string()),
    ("digest", pa.string()),
    ("bytes", pa.int64()),
    ("bytes_skipped", pa.int64()),
    ("first_time", pa.timestamp("us", "UTC")),
    ("last_time", pa.timestamp("us", "UTC")),
    *((name, pa.int64()) for name in _COUNTS if name != "bytes_skipped"),
    *((name, pa.map_(pa.string(), pa.int64())) for name in _NAMED),
    ("streams", pa.struct([(name, pa.int64()) for name in _STREAMS])),
    ("packets", pa.int64()),
    ("encrypted", pa.int64()),
    ("unread", pa.int64()),
    ("rows", pa.map_(pa.string(), pa.int64())),
    ("faults", pa.map_(pa.string(), pa.int64())),
    ("deleted", pa.map_(pa.string(), pa.int64())),
    ("losses", pa.list_(pa.struct([("offset", pa.int64()), ("what", pa.string())]))),
    ("problem", pa.string()),
    # The capture that it is a copy of, the captures whose rows its rows replace, and the files with its rows
    ("duplicate_of", pa.string()),
    ("replaces", pa.list_(pa.struct([("capture", pa.string()), ("file", pa.string())]))),
    ("files", pa.list_(pa.string())),
    # For ``KnownCaptures``
    *((name, pa.string()) for name in ("head", "tail")),
    ("openings", pa.list_(pa.string())),
    ("length", pa.int64()),
    ("size", pa.int64()),
    ("modified_ns", pa.int64()),
    ("settings", pa.string()),
    ("name", pa.binary()),
    # The places of deleted rows, as ``places.packed`` has them
    ("deletions", pa.binary()),
]
#: The table ``accounting``.
ACCOUNTING = pa.schema(_COLUMNS)


class AccountingError(MsmqWireError):
    """The numbers of a source do not add up: a defect of this program, and reason enough to commit nothing."""


@dataclass
class SourceAccount(FrameCounts):
    """The result of decoding one source, with the counts of frames of ``CaptureStats``: a row of ``accounting``.

    Attributes
    ----------
    file : str
        The source, as it was named.
    identity : Identity or None
        What its capture is known by; None when it cannot be read.
    digest : str or None
        SHA-256 of its bytes, where it was requested.
    bytes : int
        How many bytes were read.
    first_ns, last_ns : int or None
        The times of its rows.
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
    deleted : dict
        Rows that were left out since they had been deleted, by table; ``rows`` and ``faults`` count them, too.
    losses : list of (int, str)
        Offset and description of what cannot be read, of frames, streams and cut files, at most 100.
    problem : str or None
        Why the file is no capture or cannot be read; it has no rows then.
    size : int
    modified_ns : int or None
        Of the file when the run found it.
    settings : str
        How it was decoded; with other settings it has other rows.
    duplicate_of : str or None
        The capture that has its rows.
    grown_from : list of Known
        The captures that it begins with.
    deletions : bytes or None
        The places of rows that were deleted, as ``places.packed`` has them.
    replaces : list of Known
        The rows of ``accounting`` whose place it takes.
    planned_at : int
        The last run of the lake when it was compared with the captures that the lake has.
    """

    file: str
    identity: Identity | None = None
    digest: str | None = None
    bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    given: dict[str, int] = field(default_factory=dict)
    claimed: int = 0
    encrypted: int = 0
    unread: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    losses: list[tuple[int, str]] = field(default_factory=list)
    problem: str | None = None
    size: int = 0
    modified_ns: int | None = None
    settings: str = ""
    duplicate_of: str | None = None
    grown_from: list[Known] = field(default_factory=list)
    deletions: Packed | None = None
    replaces: list[Known] = field(default_factory=list)
    planned_at: int = 0

    @property
    def is_capture(self) -> bool:
        """True if it has rows: it is no copy of another, and could be read."""
        return self.problem is None and self.duplicate_of is None

    @property
    def capture(self) -> str | None:
        """The fingerprint of its capture."""
        return None if self.identity is None else self.identity.capture

    def unread_because(self, problem: str) -> SourceAccount:
        """The account of the same source, as one that cannot be read."""
        return SourceAccount(self.file, digest=self.digest, bytes=self.bytes, problem=problem)

    def seen(self, first: int | None, last: int | None) -> None:
        """Widen the time span of the rows."""
        if first is not None and last is not None:
            self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
            self.last_ns = last if self.last_ns is None else max(last, self.last_ns)

    @property
    def packets(self) -> int:
        """Packets out of TCP streams that were given to tables."""
        return self.streams.packets - self.streams.unselected

    def add(self, part: SourceAccount) -> None:
        """Add the account of a part of the source."""
        self.seen(part.first_ns, part.last_ns)
        self.count_in(part)
        for name in ("claimed", "encrypted", "unread"):
            setattr(self, name, getattr(self, name) + getattr(part, name))
        for name in ("given", "rows", "faults", "deleted"):
            setattr(self, name, add_counts(getattr(self, name), getattr(part, name)))
        self.losses = [*self.losses, *part.losses][:MAX_PROBLEMS]

    def agree(self, found: SourceAccount) -> None:
        """Compare the sums over all parts with the counts of one pass over the frames.

        Raises
        ------
        AccountingError
            They do not agree.
        """
        ours, theirs = ({**vars(one), **vars(one.streams)} for one in (self, found))
        names = (*_COUNTS, *_STREAMS)
        _agree(self.file, *((f"{name} in parts", ours[name], "in one pass", theirs[name]) for name in names))

    def take(self, stats: CaptureStats, tables: Mapping[str, TableRows], claimed: int) -> None:
        """Take the counts of frames, payloads and rows of a reader."""
        self.count_in(stats)
        self.losses = [(problem.offset, problem.text) for problem in stats.problems]
        self.claimed = claimed
        self.given = {name: table.payloads for name, table in tables.items()}
        self.rows = {name: table.rows for name, table in tables.items()}
        self.faults = dict(sum((table.faults for table in tables.values()), Counter()))
        self.encrypted = sum(table.encrypted for table in tables.values())
        self.unread = sum(table.unread for table in tables.values())

    def check(self) -> None:
        """Compare the numbers with each other.

        Raises
        ------
        AccountingError
            They do not agree.
        """
        streams = self.streams
        _agree(
            self.file,
            (
                "frames",
                self.frames,
                "payloads, segments, fragments, other, unsupported and malformed",
                self.payloads + self.segments + self.fragments + self.other + self.unsupported + self.malformed,
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
                if not TABLES[table].carried_in_messages
            ),
        )

    def values(self, run: int, files: Iterable[WrittenFile] = ()) -> dict[str, object]:
        """Its row of ``accounting``, as of a run, with the files that may have its rows."""
        row: dict[str, object] = {name: getattr(self, name, None) for name in ACCOUNTING.names}
        shown = shown_name(self.file)
        if self.identity is not None:
            row.update({name: getattr(self.identity, name) for name in ("head", "tail", "openings", "length")})
        row.update(
            run=run,
            files=[f"{file.table}/{file.path}" for file in files],
            file=shown,
            name=None if shown == self.file else os.fsencode(self.file),
            first_time=_microseconds(self.first_ns),
            last_time=_microseconds(self.last_ns),
            streams={name: getattr(self.streams, name) for name in _STREAMS},
            rows=list(self.rows.items()),
            faults=sorted(self.faults.items()),
            deleted=sorted(self.deleted.items()),
            **{name: sorted(getattr(self, name).items()) for name in _NAMED},
            losses=[{"offset": offset, "what": what} for offset, what in self.losses],
            replaces=[{"capture": one.capture, "file": one.file} for one in self.replaces if one.is_capture],
        )
        return row


@dataclass(frozen=True)
class Decoded:
    """Captures that one task has decoded: the account of each, and the files with the rows of all of them."""

    accounts: list[SourceAccount]
    files: list[WrittenFile]


def check_files(accounts: Iterable[SourceAccount], files: Iterable[WrittenFile]) -> None:
    """Compare the rows that accounts have with the rows in the files that were written.

    Raises
    ------
    AccountingError
        They do not agree.
    """
    said: Counter[str] = Counter()
    names = []
    for account in accounts:
        said.update({**account.rows, "faults": sum(account.faults.values())})
        said.subtract(account.deleted)
        names.append(account.file)
    written: Counter[str] = Counter()
    for file in files:
        written[file.table] += file.rows
    of = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more" if names else "no source"
    _agree(of, *((f"rows of {table}", said[table], "in its files", written[table]) for table in {**said, **written}))


def _agree(of: str, *claims: tuple[str, int, str, int]) -> None:
    for one, count, other, counted in claims:
        if count != counted:
            raise AccountingError(f"{of}: {count} {one}, but {counted} {other}")


def _microseconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1000
