"""A lake: folders of Parquet files by table and day, and a note of which captures they hold.

::

    topology/day=2024-03-04/<name>.parquet    rows of one capture, or of several small ones
    faults/day=.../  accounting/day=.../      likewise
    _lake.json                                the captures that the lake holds, and the files of each
    _staging/<run>/                           written and not committed
    _lock                                     held by the run that writes

The commit is the replacement of ``_lake.json``. It also names the files that are still to be removed and those to be
moved into place, so that the next run finishes what a killed one had begun. Rows go away after their account and come
before it: a capture with an account has all its rows. Readers of Parquet pass over names that begin with ``_``.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from msmqwire.capture.files.sources import shown_name
from msmqwire.errors import MsmqWireError
from msmqwire.spark.lake.dayfiles import Compression, StagedFile

__all__ = ["Content", "Group", "Lake", "LakeError", "LakeForm", "StagedGroup", "Stamp"]

LakeForm = Literal["parquet", "delta"]
_VERSION = 1


class LakeError(MsmqWireError):
    """A lake cannot be written to: another run does, or it is not as this program left it."""


@dataclass(frozen=True)
class Stamp:
    """What a file looks like without reading it; while that stays, its content is taken to be the same."""

    size: int
    modified_ns: int | None


@dataclass(frozen=True)
class Content:
    """A source that a lake holds: the file it was read from, and how many bytes it has."""

    file: str
    bytes: int


@dataclass
class Group:
    """Sources whose rows lie in the same files, because one task decoded them.

    Attributes
    ----------
    settings : str
        How they were decoded; with others, the same source has other rows.
    sources : dict of str to Content
        By their keys.
    files : list of str
        Relative to the lake.
    """

    settings: str
    sources: dict[str, Content]
    files: list[str]


@dataclass
class StagedGroup:
    """A group that was written and is to be committed."""

    settings: str
    sources: dict[str, Content]
    files: list[StagedFile]


@dataclass
class _Note:
    """What ``_lake.json`` says.

    Attributes
    ----------
    groups : dict of str to Group
    seen : dict of str to (Stamp, str)
        Of each file what it looked like when it was read, and the key of the source it was.
    removes : list of str
        Files to be removed still.
    moves : dict of str to str
        Files to be moved into place still, and where they lie.
    form : str
        The form of the tables; empty until there is one.
    commits : int
        How many there were.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    seen: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    removes: list[str] = field(default_factory=list)
    moves: dict[str, str] = field(default_factory=dict)
    form: str = ""
    commits: int = 0

    def to_json(self) -> str:
        groups = {
            name: [group.settings, {key: [one.file, one.bytes] for key, one in group.sources.items()}, group.files]
            for name, group in self.groups.items()
        }
        seen = {file: [stamp.size, stamp.modified_ns, key] for file, (stamp, key) in self.seen.items()}
        plain = {name: getattr(self, name) for name in ("removes", "moves", "form", "commits")}
        return json.dumps({"version": _VERSION, "groups": groups, "seen": seen, **plain})

    @classmethod
    def from_json(cls, text: str) -> _Note:
        values = json.loads(text)
        if values["version"] != _VERSION:
            raise ValueError(f"version {values['version']} where {_VERSION} is known")
        groups = {
            name: Group(settings, {key: Content(*one) for key, one in sources.items()}, files)
            for name, (settings, sources, files) in values["groups"].items()
        }
        seen = {file: (Stamp(size, modified), key) for file, (size, modified, key) in values["seen"].items()}
        return cls(groups, seen, values["removes"], values["moves"], values["form"], values["commits"])


class Lake:
    """The folder of a lake, for the one run that writes to it now.

    A context manager: entered, the lake is locked, what a killed run left is finished or removed, and ``staging`` is
    there; what was not committed when it is left is gone.

    Raises
    ------
    LakeError
        Another run has the lock; the lake is of another form; its note, or a file that it names, is damaged or missing.
    """

    def __init__(self, root: str | os.PathLike[str], form: LakeForm = "parquet") -> None:
        if form not in get_args(LakeForm):
            raise ValueError(f"format={form!r} is not one of {', '.join(get_args(LakeForm))}")
        if "://" in os.fspath(root) or os.fspath(root).startswith("file:"):
            raise ValueError(f"{os.fspath(root)}: a lake is a folder that driver and workers see, not a URI")
        self.form = form
        # Which is an extra; where it is missing, nothing is to have begun
        self._delta = import_module("msmqwire.spark.lake.delta") if form == "delta" else None
        # Workers need not run in the folder that the driver runs in
        self.root = Path(root).absolute()
        self.staging = self.root / "_staging" / uuid.uuid4().hex
        self._note = _Note()
        self._home: dict[str, str] = {}
        self._lock = -1

    def __enter__(self) -> Lake:
        self.root.mkdir(parents=True, exist_ok=True)
        self._lock = self._locked()
        try:
            self._note = self._noted()
            if self._note.form not in ("", self.form):
                raise LakeError(f"{self.root}: the tables of this lake are {self._note.form}, not {self.form}")
            self._home = {key: name for name, group in self._note.groups.items() for key in group.sources}
            self._finish()
            # Tasks of a killed run may write there for a moment still; what they leave goes with the next run
            shutil.rmtree(self.staging.parent, ignore_errors=True)
            self.staging.mkdir(parents=True)
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # What a commit names and has not moved yet is for the next run to move
        if not self._note.moves:
            shutil.rmtree(self.staging.parent, ignore_errors=True)
        os.close(self._lock)

    def _locked(self) -> int:
        # The lock goes with the process that holds it, however that ends
        descriptor = os.open(self.root / "_lock", os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 1000, 0).decode(errors="replace") or "another process"
            os.close(descriptor)
            raise LakeError(f"{self.root}: {holder} is writing to this lake; one run at a time may") from None
        except BaseException:
            os.close(descriptor)
            raise
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        return descriptor

    def _noted(self) -> _Note:
        path = self.root / "_lake.json"
        try:
            return _Note.from_json(path.read_text("utf-8"))
        except FileNotFoundError:
            if next((self.root / "accounting").glob("day=*/*.parquet"), None) is not None:
                raise LakeError(f"{path} is missing, and there are tables: nobody knows what they hold") from None
            return _Note()
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise LakeError(f"{path} is no note of a lake: {error}") from None

    def holds(self, key: str, settings: str) -> bool:
        """Whether the lake has a source, decoded with these settings."""
        return key in self._home and self._note.groups[self._home[key]].settings == settings

    def seen(self, file: str) -> tuple[Stamp, str] | None:
        """What a file looked like when it was read last, and the key of the source it was; None if it never was."""
        return self._note.seen.get(file)

    def sources(self) -> Iterator[tuple[str, Content]]:
        """The keys of all sources in the lake, and what they are."""
        for group in self._note.groups.values():
            yield from group.sources.items()

    def commit(
        self,
        groups: Iterable[StagedGroup],
        *,
        withdrawn: Collection[str] = (),
        seen: Mapping[str, tuple[Stamp, str]] | None = None,
        compression: Compression = "snappy",
    ) -> None:
        """Make groups part of the lake, in place of all that it had of their sources, in one step.

        Parameters
        ----------
        groups : iterable of StagedGroup
        withdrawn : collection of str
            Keys of sources whose rows are to go.
        seen : mapping of str to (Stamp, str)
            What files looked like that were read, and the keys of the sources they were.
        compression : str
            Of files that are written again because one of several sources in them goes.
        """
        note = self._note
        staged = list(groups)
        if not staged and not seen and self._home.keys().isdisjoint(withdrawn):
            return
        moves: dict[str, str] = {}
        going = {*withdrawn, *(key for group in staged for key in group.sources)}
        removes = self._without(going, moves, compression)
        for group in staged:
            name = uuid.uuid4().hex
            places = [f"{file.table}/day={file.day}/{name}-{at}.parquet" for at, file in enumerate(group.files)]
            moves.update(zip(places, (file.path for file in group.files), strict=True))
            note.groups[name] = Group(group.settings, dict(group.sources), places)
            self._home.update(dict.fromkeys(group.sources, name))
        note.seen.update(seen or {})
        note.removes, note.moves = removes, moves
        note.form, note.commits = self.form, note.commits + 1
        self._write_note()
        self._finish()

    def staged_without(self, file: StagedFile, gone: Iterable[str], compression: Compression) -> StagedFile | None:
        """A file that is to be committed, without the rows of some captures; None when nothing is left of it."""
        target = str(self.staging / f"{uuid.uuid4().hex}.parquet")
        _, left = _copy_without(file.path, target, gone, compression)
        return StagedFile(file.table, file.day, target) if left else None

    def _without(self, keys: set[str], moves: dict[str, str], compression: Compression) -> list[str]:
        """Take sources out of their groups; the files that go, beside ``moves`` for what takes their place."""
        note = self._note
        removes: list[str] = []
        if self._delta is not None:
            self._check_active(self._delta, keys)
        for name in {self._home[key] for key in keys if key in self._home}:
            group = note.groups[name]
            gone = {group.sources.pop(key).file for key in keys & group.sources.keys()}
            if not group.sources:
                removes += note.groups.pop(name).files
                continue
            kept = []
            for file in group.files:
                target = self.staging / f"{uuid.uuid4().hex}.parquet"
                rows, left = _copy_without(self.root / file, target, gone, compression)
                if left == rows:
                    kept.append(file)
                    continue
                removes.append(file)
                if left:
                    kept.append(f"{os.path.dirname(file)}/{target.name}")
                    moves[kept[-1]] = str(target)
            group.files = kept
        for key in keys:
            self._home.pop(key, None)
        return removes

    def _write_note(self) -> None:
        draft = self.root / "_lake.json.draft"
        with open(draft, "w", encoding="utf-8") as file:
            file.write(self._note.to_json())
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.root / "_lake.json")

    def _finish(self) -> None:
        """Remove and move what the note says; each step may have been done already."""
        note = self._note
        if not (note.removes or note.moves):
            return
        if self._delta is None:
            for name in sorted(note.removes, key=_is_account, reverse=True):
                (self.root / name).unlink(missing_ok=True)
                with suppress(OSError):
                    (self.root / name).parent.rmdir()
        for name in sorted(note.moves, key=_is_account):
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.replace(note.moves[name], target)
            except FileNotFoundError:
                if not target.exists():
                    raise LakeError(f"{self.root}: {name} is lost: it is neither there nor in _staging") from None
        if self._delta is not None:
            self._change_tables(self._delta)
        note.removes, note.moves = [], {}
        self._write_note()

    def _change_tables(self, delta: Any) -> None:
        """Make the transactions of Delta tables; each may have been made already."""
        adds, removes = _by_table(self._note.moves), _by_table(self._note.removes)
        for table in sorted({*adds, *removes}, key=lambda name: name == "accounting"):
            delta.change(self.root / table, self._note.commits, adds.get(table, ()), removes.get(table, ()))

    def _check_active(self, delta: Any, keys: set[str]) -> None:
        """Refuse to replace what is not where it was put."""
        groups = {self._home[key] for key in keys if key in self._home}
        for table, names in _by_table(file for name in groups for file in self._note.groups[name].files).items():
            if others := set(names) - delta.active_files(self.root / table):
                raise LakeError(
                    f"{self.root}: {table}/{min(others)} is not part of its Delta table any more; what OPTIMIZE or "
                    "another program has written again cannot be replaced"
                )

    def found(self, schemas: Mapping[str, pa.Schema]) -> None:
        """Make sure that tables can be read though no row of theirs has a time: by their names, with their schemas."""
        for table, schema in schemas.items():
            if self._delta is not None:
                self._delta.create(self.root / table, schema)
            elif next((self.root / table).glob("day=[0-9]*/*.parquet"), None) is None:
                # Without a day that is a date, readers cannot tell what a day is
                target = self.root / table / "day=1970-01-01" / "empty.parquet"
                draft = self.staging / f"{table}-empty.parquet"
                pq.write_table(schema.empty_table(), draft)
                target.parent.mkdir(parents=True, exist_ok=True)
                os.replace(draft, target)


def _is_account(name: str) -> bool:
    return name.startswith("accounting/")


def _by_table(names: Iterable[str]) -> dict[str, list[str]]:
    """Files of the lake by their table, relative to it."""
    tables: dict[str, list[str]] = {}
    for name in names:
        table, _, file = name.partition("/")
        tables.setdefault(table, []).append(file)
    return tables


def _copy_without(
    source: str | Path, target: str | Path, files: Iterable[str], compression: Compression
) -> tuple[int, int]:
    """Write a Parquet file again without the rows of some captures; how many rows it had, and how many are left."""
    gone = pa.array(sorted(map(shown_name, files)), pa.string())
    left = 0
    with (
        pq.ParquetFile(source) as parquet,
        pq.ParquetWriter(target, parquet.schema_arrow, compression=compression) as writer,
    ):
        for number in range(parquet.num_row_groups):
            rows = parquet.read_row_group(number)
            rows = rows.filter(pc.invert(pc.is_in(rows["file"], value_set=gone)))
            left += len(rows)
            writer.write_table(rows)
        return parquet.metadata.num_rows, left
