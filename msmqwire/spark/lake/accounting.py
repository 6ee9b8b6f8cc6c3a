"""The account of one capture: the counts of its frames and rows, whether they agree, and the table of accounts."""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import TABLES, CaptureStats, Checkpoint, StreamStats, TableRows
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.frames._frame import MAX_PROBLEMS
from msmqwire.capture.stats import FrameCounts, add_counts
from msmqwire.errors import CaptureError, MsmqWireError
from msmqwire.spark.lake.captures import Identity, Known
from msmqwire.spark.lake.dayfiles import WrittenFile

_COUNTS = tuple(item.name for item in fields(FrameCounts) if item.type == "int")
_NAMED = tuple(item.name for item in fields(FrameCounts) if item.default_factory is dict)
_STREAMS = tuple(item.name for item in fields(StreamStats))
_COLUMNS: list[tuple[str, pa.DataType]] = [
    ("capture", pa.int64()),
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
    ("losses", pa.list_(pa.struct([("offset", pa.int64()), ("what", pa.string())]))),
    ("problem", pa.string()),
    # For ``KnownCaptures``, and the rows that this row replaces
    ("duplicate_of", pa.int64()),
    ("replaces", pa.list_(pa.int64())),
    ("key", pa.string()),
    ("length", pa.int64()),
    ("size", pa.int64()),
    ("modified_ns", pa.int64()),
    ("settings", pa.string()),
    ("name", pa.binary()),
    ("plan", pa.string()),
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
    capture : int
        Its number, which its rows carry.
    key : str or None
        What the lake knows it by, as ``captures.Identity`` has it; None when it cannot be read.
    length : int
        Its bytes after decompression.
    grown_from : list of str
        Keys of small captures that it has grown from.
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
    losses : list of (int, str)
        Offset and description of what cannot be read, of frames, streams and cut files, at most 100.
    problem : str or None
        Why the file is no capture or cannot be read; it has no rows then.
    seam : Seam or None
        Where reading resumes when the capture has grown.
    new : SourceAccount or None
        What was read now of a capture that has grown; None: all of it.
    size : int
    modified_ns : int or None
        Of the file when the run found it.
    settings : str
        How it was decoded; with other settings it has other rows.
    duplicate_of : int or None
        The number of the capture that it is a copy of; it has no rows then.
    replaces : list of Known
        The rows whose place it takes.
    grown : Known or None
        The row of the capture before it has grown; it has the same number, and its place is taken as well.
    ending : Ending or None
        The rows that the capture had because it ended there; they are deleted.
    """

    file: str
    capture: int = 0
    key: str | None = None
    length: int = 0
    grown_from: list[str] = field(default_factory=list)
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
    losses: list[tuple[int, str]] = field(default_factory=list)
    problem: str | None = None
    seam: Seam | None = None
    new: SourceAccount | None = None
    size: int = 0
    modified_ns: int | None = None
    settings: str = ""
    duplicate_of: int | None = None
    replaces: list[Known] = field(default_factory=list)
    grown: Known | None = None
    ending: Ending | None = None

    @property
    def is_capture(self) -> bool:
        """Whether it has rows: it is no copy of another, and could be read."""
        return self.problem is None and self.duplicate_of is None

    @property
    def read(self) -> SourceAccount:
        """The account of what was read now."""
        return self.new or self

    def identify(self, identity: Identity) -> None:
        """Set the fields that identify the source."""
        self.key, self.length, self.grown_from = identity.key, identity.length or 0, identity.grown_from

    def unread_because(self, problem: str) -> SourceAccount:
        """The account of the same source, as one that cannot be read."""
        return SourceAccount(self.file, self.capture, digest=self.digest, bytes=self.bytes, problem=problem)

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
        for name in ("given", "rows", "faults"):
            setattr(self, name, add_counts(getattr(self, name), getattr(part, name)))
        self.losses = [*self.losses, *part.losses][:MAX_PROBLEMS]

    def prepend(self, earlier: SourceAccount) -> None:
        """Add the account of an earlier part of the source."""
        losses = self.losses
        self.losses = []
        self.add(earlier)
        self.losses = [*self.losses, *losses][:MAX_PROBLEMS]

    def agree(self, found: SourceAccount) -> None:
        """Compare the counts of all parts with those of one pass over the frames.

        Raises
        ------
        AccountingError
            They do not agree.
        """
        ours, theirs = ({**vars(one), **vars(one.streams)} for one in (self, found))
        names = (*_COUNTS, *_STREAMS)
        _agree(self.file, *((f"{name} in parts", ours[name], "in one pass", theirs[name]) for name in names))

    def take(self, stats: CaptureStats, tables: Mapping[str, TableRows], claimed: int) -> None:
        """Set the counts of frames, payloads and rows to those of a reader."""
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
                if not TABLES[table].in_messages
            ),
        )

    def values(self, run: int, plan: str) -> dict[str, object]:
        """Its row of ``accounting``, as of a run."""
        row: dict[str, object] = {name: getattr(self, name, None) for name in ACCOUNTING.names}
        shown = shown_name(self.file)
        row.update(
            run=run,
            plan=plan,
            file=shown,
            name=None if shown == self.file else os.fsencode(self.file),
            first_time=_microseconds(self.first_ns),
            last_time=_microseconds(self.last_ns),
            streams={name: getattr(self.streams, name) for name in _STREAMS},
            rows=list(self.rows.items()),
            faults=sorted(self.faults.items()),
            **{name: sorted(getattr(self, name).items()) for name in _NAMED},
            losses=[{"offset": offset, "what": what} for offset, what in self.losses],
            replaces=[one.capture for one in self.replaces],
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
        said.update({**account.read.rows, "faults": sum(account.read.faults.values())})
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


# The fields of an account that a seam keeps, in the order of their declaration
_KEPT = [
    item.name
    for item in fields(SourceAccount)
    if item.name
    not in ("seam", "new", "size", "modified_ns", "settings", "duplicate_of", "replaces", "grown", "ending")
]


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
    places : list of [int, int or None]
        The frames and stream offsets of their payloads.
    """

    capture: int
    file: str
    rows: dict[str, int] = field(default_factory=dict)
    places: list[list[int | None]] = field(default_factory=list)

    def take(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows of a table."""
        self.rows[table] = self.rows.get(table, 0) + len(rows)
        if table != "faults":
            columns: list[list[Any]] = [rows.column(name).to_pylist() for name in ("frame", "stream_offset")]
            self.places.extend(map(list, zip(*columns, strict=True)))

    def has(self, rows: pa.Table) -> Any:
        """Whether each of some rows is one of these; ``rows`` has the columns capture, frame and stream_offset."""
        named = (f"{frame}:{'' if offset is None else offset}" for frame, offset in self.places)
        places = pa.array(named, pa.string())
        offsets: Any = pc.fill_null(rows["stream_offset"].cast(pa.string()), pa.scalar(""))
        here: Any = pc.binary_join_element_wise(rows["frame"].cast(pa.string()), offsets, ":")
        mine: Any = pc.equal(rows["capture"], pa.scalar(self.capture))
        return pc.and_(mine, pc.is_in(here, places))


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
        counts = {name: getattr(self.account, name) for name in _KEPT} | {"streams": vars(self.account.streams)}
        checkpoint = base64.b64encode(self.checkpoint.to_bytes()).decode()
        values = {"checkpoint": checkpoint, "account": counts, "ending": vars(self.ending), "before": self.before}
        return zlib.compress(json.dumps(values).encode(), 1)

    @classmethod
    def from_bytes(cls, data: bytes) -> Seam:
        """The seam of ``to_bytes``.

        Raises
        ------
        CaptureError
            The bytes are malformed, or of another version of this package.
        """
        try:
            values = json.loads(zlib.decompress(data))
            counts = values["account"]
            streams = StreamStats(**counts.pop("streams"))
            losses = [(offset, what) for offset, what in counts.pop("losses")]
            account = SourceAccount(**counts, streams=streams, losses=losses)
            checkpoint = Checkpoint.from_bytes(base64.b64decode(values["checkpoint"]))
            return cls(checkpoint, account, Ending(**values["ending"]), values["before"])
        except (AttributeError, KeyError, TypeError, ValueError, zlib.error) as error:
            raise CaptureError(f"no place where reading of a capture resumes: {error!r}") from None


def _microseconds(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1000
