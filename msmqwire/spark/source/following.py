"""Rotating captures followed by a streaming query: the files of a path, by name, are one sequence that goes on.

The driver reads what is new once, fast and without rows, to find the places where tasks can begin. An offset of the
query is such a place with all that reading needs to go on there, TCP streams included: Spark's own log keeps it, and a
batch that is read again has the same rows.

A file is finished when there is one with a later name. The last one may grow: it is read as far as its records are
whole.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import logging
import os
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from msmqwire.capture import Checkpoint, checkpoints
from msmqwire.capture.files.compression import LONGEST_MAGIC, Decompressed, form_of
from msmqwire.capture.files.sources import shown_name
from msmqwire.errors import CaptureError
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.files import SourceFile, find_files, open_source
from msmqwire.spark.source.options import SourceOptions
from msmqwire.spark.source.planning import SPLIT_SIZE
from msmqwire.spark.source.scan import Scan, describe_problems

__all__ = ["MsmqStreamReader", "Position"]

log = logging.getLogger(__name__)

# Ends of the names that files have while browsers, WinSCP, Hadoop and others copy them here
UNFINISHED = (".part", ".partial", ".filepart", ".tmp", ".crdownload", "._COPYING_")
# Ends of the names that finished files get when they are compressed, as by tcpdump -z
COMPRESSED = (".gz", ".zst", ".lz4", ".xz", ".bz2")
# Bytes by which a file is told from another that has its name
HEAD_SIZE = 4096
# Of the last file: before it has them, nobody knows what it is
SHORTEST_CAPTURE = 28
# Of a file that is not finished, that is none of ours, or that was compressed since
UNKNOWN_SIZE = sys.maxsize
# Of the files that were read last an offset has the names, so that what comes late is noticed
KEPT_NAMES = 256


@dataclass(frozen=True)
class Position:
    """How far a sequence of captures was read.

    Attributes
    ----------
    file : str
        The file it stands in; empty in front of the first.
    size : int
        How large that was.
    head : str
        The digest of its first bytes, ``HEAD_SIZE`` of them if there were so many.
    passed : mapping of str to int
        The files that were read or passed over, the last ones at least, and how large those were that are finished.
    checkpoint : Checkpoint or None
        None where reading begins, or begins again.
    """

    file: str = ""
    size: int = 0
    head: str = ""
    passed: Mapping[str, int] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None

    @property
    def offset(self) -> int:
        """Of the next record in the file."""
        return 0 if self.checkpoint is None else self.checkpoint.offset

    def to_offset(self) -> dict[str, Any]:
        """As an offset of a query; what people may want to look at is legible in it."""
        return {
            "file": self.file,
            "offset": self.offset,
            "size": self.size,
            "head": self.head,
            "passed": _packed(json.dumps(self.passed).encode()),
            "checkpoint": _packed_checkpoint(self.checkpoint),
        }

    @classmethod
    def from_offset(cls, offset: dict[str, Any]) -> Position:
        """The position of ``to_offset``.

        Raises
        ------
        CaptureError
            The offset is damaged, or of another version of this package.
        """
        try:
            passed = dict(json.loads(_unpacked(offset["passed"])))
            checkpoint = _unpacked_checkpoint(offset["checkpoint"])
            return cls(offset["file"], offset["size"], offset["head"], passed, checkpoint)
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise CaptureError(f"not an offset of a query over captures: {error!r}") from error

    def is_behind(self, other: Position) -> bool:
        """Whether nothing lies between the other position and this one."""
        return (self.file, self.offset) >= (other.file, other.offset)


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


def _packed_checkpoint(checkpoint: Checkpoint | None) -> str:
    return "" if checkpoint is None else _packed(checkpoint.to_bytes())


def _unpacked_checkpoint(text: str) -> Checkpoint | None:
    return Checkpoint.from_bytes(_unpacked(text)) if text else None


class Step(NamedTuple):
    """A position that reading came to, ``bytes`` behind the one before.

    ``begun`` is the file that begins between them; ``passed`` the name of one that does, or of one that is passed over.
    """

    position: Position
    bytes: int = 0
    begun: SourceFile | None = None
    passed: str | None = None


@dataclass(frozen=True)
class SequencePart(InputPartition):
    """What a task reads: the files of a sequence from one checkpoint to the next.

    The driver holds the parts of a whole batch: checkpoints are as small in them as they are in offsets.
    """

    files: tuple[SourceFile, ...]
    resume: str
    stop: str

    @classmethod
    def between(cls, begin: Position, end: Position, files: Sequence[SourceFile]) -> SequencePart:
        """The part from one position to another one that was read to."""
        return cls(tuple(files), _packed_checkpoint(begin.checkpoint), _packed_checkpoint(end.checkpoint))


class ListedFile(io.RawIOBase):
    """A file as far as it went when it was listed, open only while it is read.

    Where it was compressed since, it has another name, and what that holds is read.

    Attributes
    ----------
    begun : bool
        Somebody read in it.
    """

    def __init__(self, file: SourceFile, options: SourceOptions) -> None:
        self.file = file
        self.name = file.name
        self.begun = False
        self._options = options
        self._file: IO[bytes] | Unpacked | None = None
        self._position = 0

    @property
    def shown(self) -> str:
        """Its name as rows and checkpoints show it."""
        return shown_name(self.name)

    @cached_property
    def head(self) -> bytes:
        """Its first bytes, ``HEAD_SIZE`` if it has so many; they are not read again."""
        data = b""
        while more := self._opened(len(data)).read(min(HEAD_SIZE, self.file.size) - len(data)):
            data += more
        return data

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where reading goes on."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go on elsewhere."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.file.size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what there is; 0 where the file ended when it was listed."""
        self.begun = True
        view = memoryview(buffer)[: max(self.file.size - self._position, 0)]
        first = self.head[self._position : self._position + len(view)]
        if first:
            count = len(first)
            view[:count] = first
        else:
            count = self._opened(self._position).readinto(view)  # type: ignore[union-attr]
        self._position += count
        if not count:
            self.close()
        return count

    def close(self) -> None:
        """Close it; it is opened again when somebody reads on."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self, position: int) -> IO[bytes] | Unpacked:
        if self._file is None:
            self._file = self._open()
        if self._file.tell() != position:
            self._file.seek(position)
        return self._file

    def _open(self) -> IO[bytes] | Unpacked:
        try:
            return open_source(self.name, self._options.storage_options)
        except FileNotFoundError:
            for ending in COMPRESSED:
                with suppress(FileNotFoundError):
                    return Unpacked(open_source(self.name + ending, self._options.storage_options))
            raise


class Unpacked(io.RawIOBase):
    """What a compressed file holds, which is read forwards."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._name = file.name
        form = form_of(file.read(LONGEST_MAGIC))
        file.seek(0)
        if form is None:
            raise CaptureError(f"{file.name}: is not compressed as its name says")
        self._content = Decompressed(file.name, form, file)  # type: ignore[arg-type] # a raw file is one
        self._position = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Where reading goes on."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Pass over what lies in front of a place."""
        if whence != os.SEEK_SET or offset < self._position:
            raise io.UnsupportedOperation("what is compressed is read forwards")
        scratch = memoryview(bytearray(1 << 16))
        while self._position < offset and self.readinto(scratch[: offset - self._position]):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what comes next; 0 at the end.

        Raises
        ------
        CaptureError
            The file is cut or damaged.
        """
        count = self._content.read_into(memoryview(buffer))
        if self._content.damage:
            raise CaptureError(f"{self._name}: {self._content.damage}")
        self._position += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class MsmqStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows rotating captures; what ``spark.readStream.format("msmq")`` makes."""

    def __init__(self, options: SourceOptions, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns
        self._available: tuple[SourceFile, ...] | None = None
        self._nothing_new: tuple[dict[str, Any], tuple[SourceFile, ...]] | None = None
        self._planned: tuple[dict[str, Any], dict[str, Any], list[SequencePart]] | None = None
        self._said: set[str] = set()

    # --- What Spark asks ---

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """In front of the first file."""
        return Position().to_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """What ``maxBytesPerTrigger`` says."""
        most = self.options.max_bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Keep to the files, and to the bytes of them, that there are now."""
        self._available = self._listed()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Where reading comes to from ``start``: to the end of what is whole, or near the limit."""
        files = self._listed() if self._available is None else self._available
        if self._nothing_new == (start, files):
            return start
        begin = self._begin(start)
        found = self._called(files, {begin.file, *begin.passed})
        self._report_late(begin, found)
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        end, parts = self._plan(begin, found, most=most)
        if end == begin:
            self._nothing_new = start, files
            return start
        offset = end.to_offset()
        self._planned = start, offset, parts
        return offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The parts between two offsets; read again for them after a restart."""
        if start == end:
            return []
        if self._planned is not None and self._planned[:2] == (start, end):
            return self._planned[2]
        begin, until = self._begin(start), self._begin(end)
        if until.checkpoint is None:  # nothing lies between, or, as was said, nothing that can be read again
            return []
        names = {begin.file, *until.passed}
        files = [file for file in self._called(self._listed(), names) if file.name in names]
        known = {file.name for file in files} | begin.passed.keys()
        gone = [name for name, size in until.passed.items() if size != UNKNOWN_SIZE and name not in known]
        if gone:
            self._lost(f"{', '.join(gone)}: gone, and cannot be read again")
        reached, parts = self._plan(begin, files, until=until)
        if (reached.file, reached.offset) != (until.file, until.offset):
            self._lost(f"{until.file}: cannot be read again up to byte {until.offset}")
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        assert isinstance(partition, SequencePart)
        scan = Scan(self.options.scan, {self.options.table: self.columns})
        with ExitStack() as stack:
            files = [stack.enter_context(ListedFile(file, self.options)) for file in partition.files]
            resume, stop = map(_unpacked_checkpoint, (partition.resume, partition.stop))
            for _, batch in scan.batches(files, resume=resume, stop=stop):  # type: ignore[arg-type] # raw files are ones
                yield batch
        if problems := describe_problems(scan.stats):
            log.warning("%s", problems)

    # --- What the driver does ---

    @property
    def _split_size(self) -> int:
        size = self.options.split_size
        return SPLIT_SIZE if size is None else size or sys.maxsize

    def _begin(self, offset: dict[str, Any]) -> Position:
        """The position of an offset; without its checkpoint, unless ``failOnDataLoss``, where that cannot be used."""
        try:
            return Position.from_offset(offset)
        except CaptureError as error:
            if not offset.get("checkpoint"):
                raise
            self._lost(f"{offset.get('file')}: cannot be read on: {error}")
            return Position.from_offset({**offset, "checkpoint": ""})

    def _listed(self) -> tuple[SourceFile, ...]:
        """The files that there are, by name, without those that are still being copied or compressed."""
        try:
            begun = {_plain(file.name) for file in self._found()}
            # Sizes of a second look: what has a later one behind it in the first was finished by then
            files = [file for file in self._found() if _plain(file.name) in begun]
        except FileNotFoundError as error:
            self._say(f"{error}: waiting for one")
            return ()
        names = {file.name for file in files}
        return tuple(
            file
            for file in files
            if not file.name.endswith(UNFINISHED) and (file.name == _plain(file.name) or _plain(file.name) not in names)
        )

    def _found(self) -> tuple[SourceFile, ...]:
        options = self.options
        return find_files(options.paths, recursive=options.recursive, storage_options=options.storage_options)

    def _called(self, files: Iterable[SourceFile], names: Set[str]) -> tuple[SourceFile, ...]:
        """The files under the names by which they are known, though they have been compressed since."""
        found = []
        for file in files:
            plain = _plain(file.name)
            if file.name in names or names.isdisjoint([plain, *(plain + ending for ending in COMPRESSED)]):
                found.append(file)
            elif plain in names:
                found.append(SourceFile(plain, UNKNOWN_SIZE))
        return tuple(sorted(found))

    def _plan(
        self,
        begin: Position,
        files: Sequence[SourceFile],
        *,
        until: Position | None = None,
        most: int | None = None,
    ) -> tuple[Position, list[SequencePart]]:
        """Where reading comes to from ``begin``, and what lies between in parts of about ``splitSize`` bytes.

        ``until`` is where it came to when it was planned before; ``most`` are the bytes there may be.
        """
        at = first = begin = self._taken_up(begin, files)
        sequence = [file for file in files if file.name == at.file and at.checkpoint]
        passed = dict(begin.passed)
        parts: list[SequencePart] = []
        total = size = 0
        for step in self._steps(at, files, growing=until is None):
            total += step.bytes
            if most is not None and total > most and total > step.bytes:
                break
            if size and size + step.bytes > self._split_size:
                parts.append(SequencePart.between(first, at, sequence))
                sequence, first, size = sequence[-1:], at, 0
            if step.begun is not None:
                if sequence:
                    passed[sequence[-1].name] = sequence[-1].size
                sequence.append(step.begun)
            if step.passed is not None:
                passed[step.passed] = UNKNOWN_SIZE
            size += step.bytes
            at = step.position
            if until is not None and at.is_behind(until):
                at = until
                break
        if at.checkpoint != first.checkpoint:
            parts.append(SequencePart.between(first, at, sequence))
        new = len(passed) - len(begin.passed)
        return replace(at, passed=dict([*passed.items()][-max(KEPT_NAMES, new + 1) :])), parts

    def _steps(self, at: Position, files: Sequence[SourceFile], *, growing: bool) -> Iterator[Step]:
        """Read on, without rows, to the end of the last file as far as its records are whole.

        ``growing``: the last file may not be all that it will be.
        """
        current = next((file for file in files if file.name == at.file and at.checkpoint), None)
        new = [file for file in files if file.name >= at.file and file.name not in at.passed]
        if growing and new and new[-1].size < SHORTEST_CAPTURE:
            del new[-1]
        if current is not None and not new:
            yield from self._pass(at, current, None)
        for file in new:
            for step in self._pass(at, current, file, may_grow=growing and file is new[-1]):
                yield step
                at, current = step.position, step.begun or current

    def _pass(
        self, at: Position, current: SourceFile | None, new: SourceFile | None, *, may_grow: bool = False
    ) -> Iterator[Step]:
        """The steps to the end of the current file and through a new one."""
        size = min(self._split_size, self.options.max_bytes_per_trigger or self._split_size)
        with ExitStack() as stack:
            files = [stack.enter_context(ListedFile(file, self.options)) for file in (current, new) if file is not None]
            # There are no checkpoints inside a compressed file: it is taken when it is whole
            must_be_whole = may_grow and form_of(files[-1].head) is not None
            begun = False
            try:
                found = stack.enter_context(
                    checkpoints(files, size, self.options.scan.payloads, resume=at.checkpoint, final=False)  # type: ignore[arg-type]
                )
                places = list(found) if must_be_whole else found
                if must_be_whole and found.stats.cut_files:
                    return
                for place in places:
                    if not place.offset or place == at.checkpoint:
                        continue  # nothing was read, or of the next file nothing yet
                    step = _step(at, place, {file.shown: file for file in files}[place.file])
                    at, begun = step.position, begun or step.begun is not None
                    yield step
                if new is not None and not begun and not may_grow:
                    raise CaptureError(f"{new.name}: ends inside its header; it has {new.size} bytes")
            except CaptureError as error:
                if new is None or begun or not files[-1].begun:
                    raise
                if must_be_whole:
                    return
                if self.options.scan.mode == "FAILFAST":
                    raise
                self._say(f"{error}; it is passed over")
                yield Step(at, passed=new.name)

    def _taken_up(self, at: Position, files: Sequence[SourceFile]) -> Position:
        """The position, where its file is what it was; else, unless ``failOnDataLoss``, one to begin again from."""
        if at.checkpoint is None:
            return at
        current = next((file for file in files if file.name == at.file), None)
        if current is None:
            if not any(file.name > at.file and file.name not in at.passed for file in files):
                return at  # nothing follows it
            self._lost(f"{at.file}: is gone; what there was behind byte {at.offset} was not read")
        elif current.size < at.size:
            self._lost(f"{at.file}: has {current.size} bytes and had {at.size}; it was truncated or replaced")
        else:
            with ListedFile(current, self.options) as listed:
                head = listed.head
            if _digest(head[: at.size]) != at.head:
                self._lost(f"{at.file}: was replaced by another file; of the one before {at.offset} bytes were read")
            elif current.size > at.size and form_of(head):
                self._lost(f"{at.file}: grew by {current.size - at.size} bytes after it had been read whole")
                return replace(at, size=current.size, head=_digest(head))
            else:
                return at
        return replace(at, passed={name: at.passed[name] for name in at.passed if name != at.file}, checkpoint=None)

    def _report_late(self, at: Position, files: Sequence[SourceFile]) -> None:
        """Tell of what came after files with later names had been begun."""
        first = min(at.passed) if len(at.passed) >= KEPT_NAMES else ""
        for file in files:
            if first < file.name < at.file and file.name not in at.passed:
                self._say(f"{file.name}: came after {at.file} was begun, and is left out")
            elif file.name < at.file and UNKNOWN_SIZE > file.size > at.passed.get(file.name, UNKNOWN_SIZE):
                self._say(f"{file.name}: grew after a file with a later name was begun; what came then is left out")

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise CaptureError(f"{what} (failOnDataLoss=false goes on without it)")
        self._say(what)

    def _say(self, what: str) -> None:
        """Warn, once: the driver looks at the same files again and again."""
        if what not in self._said:
            self._said.add(what)
            log.warning("%s", what)


def _plain(name: str) -> str:
    """The name of a file before it was compressed."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()


def _step(at: Position, place: Checkpoint, listed: ListedFile) -> Step:
    """The step to a place in the file of the position, or in the next one."""
    file = listed.file
    size = place.offset if file.size == UNKNOWN_SIZE else file.size
    here = Position(file.name, size, _digest(listed.head[:size]), at.passed, place)
    if at.checkpoint is not None and at.file == file.name:
        return Step(here, place.offset - at.offset)
    return Step(here, max(at.size - at.offset, 0) + place.offset, begun=file, passed=file.name)
