"""Follows rotating captures for streaming queries: the files of a path, in the order of their names, are one sequence.

The driver reads new bytes once, without decoding, to find checkpoints at which tasks can start. An offset of the query
holds such a checkpoint, including the state of TCP streams; Spark's log stores it, so a repeated batch has the same
rows.

A file is finished when there is a file with a later name. The last file may grow; it is read up to its last complete
record.
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
from msmqwire.capture.checkpoint import LARGEST_STATE
from msmqwire.capture.files.compression import form_of
from msmqwire.capture.files.listing import SourceFile, open_source
from msmqwire.capture.files.remote import PositionedFile
from msmqwire.capture.files.sources import OpenFile, shown_name
from msmqwire.errors import CaptureError, CaptureFormatError, CaptureReadError
from msmqwire.spark.executors import Sent
from msmqwire.spark.schema import SparkColumn
from msmqwire.spark.source.options import OPTIONS, SourceOptions
from msmqwire.spark.source.planning import SPLIT_SIZE, CapturePart, CapturePartition
from msmqwire.spark.source.scan import Scan, describe_problems

log = logging.getLogger(__name__)

# Suffixes of files that browsers, WinSCP, Hadoop and others are still copying
UNFINISHED = (".part", ".partial", ".filepart", ".tmp", ".crdownload", "._COPYING_")
# Suffixes of finished files that were compressed, as by tcpdump -z
COMPRESSED = (".gz", ".zst", ".lz4", ".xz", ".bz2")
# The bytes that identify a file
HEAD_SIZE = 4096
# A shorter last file has no complete header yet
SHORTEST_CAPTURE = 28
# The size of a file that is unfinished, is not a capture, or was compressed later
UNKNOWN_SIZE = sys.maxsize
# The number of file names in an offset, to detect files that arrive late
KEPT_NAMES = 256


@dataclass(frozen=True)
class Position:
    """A place in a sequence of captures, up to which it was read.

    Attributes
    ----------
    file : str
        The file of the place; empty before the first file.
    size : int
        The size of the file when it was read.
    head : str
        The digest of its first bytes, at most ``HEAD_SIZE``.
    passed : mapping of str to int
        Files that were read or skipped, at least the last ones, with the sizes of those that are finished.
    checkpoint : Checkpoint or None
        None: reading starts at the beginning of a file.
    skipped : int
        How many files were skipped, since they are not captures; Spark shows it in the progress of the query.
    """

    file: str = ""
    size: int = 0
    head: str = ""
    passed: Mapping[str, int] = field(default_factory=dict)
    checkpoint: Checkpoint | None = None
    skipped: int = 0

    @property
    def offset(self) -> int:
        """The offset of the next record in the file."""
        return 0 if self.checkpoint is None else self.checkpoint.offset

    def to_offset(self) -> dict[str, Any]:
        """The position as an offset of a query."""
        return {
            "file": self.file,
            "offset": self.offset,
            "size": self.size,
            "head": self.head,
            "passed": _packed(json.dumps(self.passed).encode()),
            "checkpoint": "" if self.checkpoint is None else base64.b64encode(self.checkpoint.to_bytes()).decode(),
            "skipped": self.skipped,
        }

    @classmethod
    def from_offset(cls, offset: dict[str, Any]) -> Position:
        """The position of ``to_offset``.

        Raises
        ------
        CaptureError
            The offset is malformed, or of another version of this package.
        """
        try:
            passed = dict(json.loads(_unpacked(offset["passed"])))
            saved = base64.b64decode(offset["checkpoint"])
            checkpoint = Checkpoint.from_bytes(saved) if saved else None
            return cls(offset["file"], offset["size"], offset["head"], passed, checkpoint, offset["skipped"])
        except CaptureError:
            raise
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise CaptureFormatError(f"not an offset of a query over captures: {error!r}") from error

    def reaches(self, other: Position) -> bool:
        """Return True if this position is the other one or a later one."""
        return (self.file, self.offset) >= (other.file, other.offset)


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


def _unpacked(text: str) -> bytes:
    stream = zlib.decompressobj()
    data = stream.decompress(base64.b64decode(text), LARGEST_STATE)
    if stream.unconsumed_tail or not stream.eof:
        raise ValueError(f"not the state of a reader: truncated, or above {LARGEST_STATE} bytes")
    return data


class Step(NamedTuple):
    """A position that was reached, ``bytes`` after the previous one.

    ``begun`` is the file that starts between them. ``passed`` is its name, or the name of a file that is skipped.
    """

    position: Position
    bytes: int = 0
    begun: SourceFile | None = None
    passed: str | None = None


class ListedFile(PositionedFile):
    """A file up to the size it had when it was listed; open only while it is read.

    If it has been compressed since, the compressed file is read.

    Attributes
    ----------
    begun : bool
        Bytes of it were read.
    """

    def __init__(self, file: SourceFile, options: SourceOptions) -> None:
        self.file = file
        self.name = file.name
        self.begun = False
        self._options = options
        self._file: IO[bytes] | Unpacked | None = None

    @property
    def shown(self) -> str:
        """Its display name, as in rows and checkpoints."""
        return shown_name(self.name)

    @cached_property
    def head(self) -> bytes:
        """Its first bytes, at most ``HEAD_SIZE``, cached."""
        data = b""
        while more := self._opened(len(data)).read(min(HEAD_SIZE, self.file.size) - len(data)):
            data += more
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the offset of the next byte."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.file.size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer; 0 at the size that the file had when it was listed."""
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
        """Close the file; the next read opens it again."""
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


class Unpacked(PositionedFile):
    """The content of a compressed file; seeks forwards only."""

    def __init__(self, file: IO[bytes]) -> None:
        self._content = OpenFile(file.name, file, ours=True)
        if self._content.seekable:
            self._content.close()
            raise CaptureFormatError(f"{self._content.name}: is not compressed, though its name says so")

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Skip to an offset."""
        if whence != os.SEEK_SET or offset < self._position:
            raise io.UnsupportedOperation("a compressed file is read forwards only")
        scratch = memoryview(bytearray(1 << 16))
        while self._position < offset and self.readinto(scratch[: offset - self._position]):
            pass
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read into the buffer; 0 at the end.

        Raises
        ------
        CaptureError
            The file is truncated or malformed.
        """
        count = self._content.read_into(memoryview(buffer))
        if self._content.problem:
            raise CaptureError(f"{self._content.name}: {self._content.problem}")
        self._position += count
        return count

    def close(self) -> None:
        """Close the file."""
        self._content.close()
        super().close()


class MsmqStreamReader(Sent, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows rotating captures for ``spark.readStream.format("msmq")``."""

    def __init__(self, options: SourceOptions, columns: tuple[SparkColumn, ...]) -> None:
        self.options = options
        self.columns = columns
        self._available: tuple[SourceFile, ...] | None = None
        self._nothing_new: tuple[dict[str, Any], tuple[SourceFile, ...]] | None = None
        self._planned: tuple[dict[str, Any], dict[str, Any], list[CapturePartition]] | None = None
        self._warned: set[str] = set()

    # --- Called by Spark ---

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """The position before the first file."""
        return Position().to_offset()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
        """The limit of ``maxBytesPerTrigger``."""
        most = self.options.max_bytes_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxBytes(most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Read no further than the files, and their sizes, of now."""
        self._available = self._listed()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """The offset that a batch from ``start`` ends at: the end of the complete records, or about the limit."""
        files = self._listed() if self._available is None else self._available
        if self._nothing_new == (start, files):
            return start
        begin = self._begin(start)
        found = self._under_known_names(files, {begin.file, *begin.passed})
        self._report_late(begin, found)
        most = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        end, parts = self._plan(begin, found, most=most)
        if end == begin:
            self._nothing_new = start, files
            return start
        offset = {**end.to_offset(), "options": dict(self.options.given)}
        self._planned = start, offset, parts
        return offset

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The parts between two offsets; after a restart the driver reads the captures again to find them."""
        if start == end:
            return []
        if self._planned is not None and self._planned[:2] == (start, end):
            return self._planned[2]
        begin, until = self._begin(start), self._begin(end)
        if until.checkpoint is None:  # no records, or records that cannot be read again, as was logged
            return []
        names = {begin.file, *until.passed}
        files = [file for file in self._under_known_names(self._listed(), names) if file.name in names]
        known = {file.name for file in files} | begin.passed.keys()
        gone = [name for name, size in until.passed.items() if size != UNKNOWN_SIZE and name not in known]
        if gone:
            self._lost(f"{', '.join(gone)}: missing, so they cannot be read again")
        reached, parts = self._plan(begin, files, until=until)
        if (reached.file, reached.offset) != (until.file, until.offset):
            self._lost(f"{until.file}: cannot be read again up to byte {until.offset}")
        return parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part."""
        assert isinstance(partition, CapturePartition)
        (part,) = partition.parts
        scan = Scan(self.options.scan, {self.options.table: self.columns})
        with ExitStack() as stack:
            files = [stack.enter_context(ListedFile(file, self.options)) for file in part.files]
            for _, batch in scan.batches(files, resume=part.resume, stop=part.stop):
                yield batch
        if problems := describe_problems(scan.stats):
            log.warning("%s", problems)

    # --- On the driver ---

    @property
    def _split_size(self) -> int:
        size = self.options.split_size
        return SPLIT_SIZE if size is None else size or sys.maxsize

    @property
    def _ignores_corrupt_files(self) -> bool:
        """True if a file that is no capture is skipped: as the option says, or else the mode."""
        given = self.options.ignore_corrupt_files
        return self.options.scan.mode != "FAILFAST" if given is None else given

    def _begin(self, offset: dict[str, Any]) -> Position:
        """The position of an offset; without an unusable checkpoint if ``failOnDataLoss`` is false."""
        self._compare_options(offset)
        try:
            return Position.from_offset(offset)
        except CaptureError as error:
            if not offset.get("checkpoint"):
                raise
            self._lost(f"{offset.get('file')}: cannot be resumed: {error}")
            return Position.from_offset({**offset, "checkpoint": ""})

    def _compare_options(self, offset: dict[str, Any]) -> None:
        """Refuse an offset of a query over another table or other ports; log other options that have changed.

        Raises
        ------
        ValueError
            The state of streams is that of other payloads.
        """
        before, now = offset.get("options"), self.options.given
        if before is None or before == now:
            return
        changed = [
            f"{name} was {_shown_option(before, name)} and is {_shown_option(now, name)}"
            for name in OPTIONS
            if before.get(name) != now.get(name)
        ]
        was = SourceOptions.of({"path": "", **before})
        if (was.table, was.scan.payloads.ports) != (self.options.table, self.options.scan.payloads.ports):
            raise ValueError(
                f"the options of the query have changed: {', '.join(changed)}; its checkpoint is of the old ones: "
                "set them again, or choose another checkpointLocation"
            )
        self._warn_once(f"the options of the query have changed: {', '.join(changed)}")

    def _listed(self) -> tuple[SourceFile, ...]:
        """The files in the order of their names, without files that are being copied or compressed."""
        try:
            begun = {_plain(file.name) for file in self.options.files()}
            # Sizes are of a second listing: a file that the first listed before a later name was finished by then
            files = [file for file in self.options.files() if _plain(file.name) in begun]
        except FileNotFoundError as error:
            self._warn_once(f"{error}: waiting for one")
            return ()
        names = {file.name for file in files}
        return tuple(
            file
            for file in files
            if not file.name.endswith(UNFINISHED) and (file.name == _plain(file.name) or _plain(file.name) not in names)
        )

    def _under_known_names(self, files: Iterable[SourceFile], names: Set[str]) -> tuple[SourceFile, ...]:
        """The files under their known names, although they may have been compressed since."""
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
    ) -> tuple[Position, list[CapturePartition]]:
        """The position that reading from ``begin`` reaches, and the parts up to it, of about ``splitSize`` bytes.

        ``until`` is the position that an earlier plan reached; ``most`` is the limit in bytes.
        """
        at = first = begin = self._resumed(begin, files)
        sequence = [file for file in files if file.name == at.file and at.checkpoint]
        passed = dict(begin.passed)
        parts: list[CapturePartition] = []
        total = size = 0
        for step in self._steps(at, files, growing=until is None):
            total += step.bytes
            if most is not None and total > most and total > step.bytes:
                break
            if size and size + step.bytes > self._split_size:
                parts.append(_part(sequence, size, first, at))
                sequence, first, size = sequence[-1:], at, 0
            if step.begun is not None:
                if sequence:
                    passed[sequence[-1].name] = sequence[-1].size
                sequence.append(step.begun)
            if step.passed is not None:
                passed[step.passed] = UNKNOWN_SIZE
            size += step.bytes
            at = step.position
            if until is not None and at.reaches(until):
                at = until
                break
        if at.checkpoint != first.checkpoint:
            parts.append(_part(sequence, size, first, at))
        new = len(passed) - len(begin.passed)
        return replace(at, passed=dict([*passed.items()][-max(KEPT_NAMES, new + 1) :])), parts

    def _steps(self, at: Position, files: Sequence[SourceFile], *, growing: bool) -> Iterator[Step]:
        """Read without rows up to the last complete record of the last file.

        ``growing``: the last file may grow.
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
            # A compressed file has no checkpoints inside: it is read when it is complete
            must_be_complete = may_grow and form_of(files[-1].head) is not None
            begun = False
            try:
                found = stack.enter_context(
                    checkpoints(files, size, self.options.scan.payloads, resume=at.checkpoint, final=False)
                )
                places = list(found) if must_be_complete else found
                if must_be_complete and found.stats.truncated_files:
                    return
                for place in places:
                    if not place.offset or place == at.checkpoint:
                        continue  # nothing of the next file was read yet
                    step = _step(at, place, {file.shown: file for file in files}[place.file])
                    at, begun = step.position, begun or step.begun is not None
                    yield step
                if new is not None and not begun and not may_grow:
                    raise CaptureReadError(f"{new.name}: ends inside its header; it has {new.size} bytes")
            except CaptureError as error:
                if new is None or begun or not files[-1].begun:
                    raise
                if must_be_complete:
                    return
                if not self._ignores_corrupt_files:
                    raise
                self._warn_once(f"{error}; the file is skipped")
                yield Step(replace(at, skipped=at.skipped + 1), passed=new.name)

    def _resumed(self, at: Position, files: Sequence[SourceFile]) -> Position:
        """The position if its file is unchanged; else, unless ``failOnDataLoss``, the next one to start from."""
        if at.checkpoint is None:
            return at
        current = next((file for file in files if file.name == at.file), None)
        if current is None:
            if not any(file.name > at.file and file.name not in at.passed for file in files):
                return at  # there is nothing more to read
            self._lost(f"{at.file}: is missing; bytes after byte {at.offset} were not read")
        elif current.size < at.size:
            self._lost(f"{at.file}: has {current.size} bytes and had {at.size}; it was truncated or replaced")
        else:
            with ListedFile(current, self.options) as listed:
                head = listed.head
            if _digest(head[: at.size]) != at.head:
                self._lost(f"{at.file}: was replaced by another file; {at.offset} bytes of the old file were read")
            elif current.size > at.size and form_of(head):
                self._lost(f"{at.file}: grew by {current.size - at.size} bytes after all of it had been read")
                return replace(at, size=current.size, head=_digest(head))
            else:
                return at
        return replace(at, passed={name: at.passed[name] for name in at.passed if name != at.file}, checkpoint=None)

    def _report_late(self, at: Position, files: Sequence[SourceFile]) -> None:
        """Warn about files that arrived, or grew, after a file with a later name was started."""
        first = min(at.passed) if len(at.passed) >= KEPT_NAMES else ""
        for file in files:
            if first < file.name < at.file and file.name not in at.passed:
                self._warn_once(f"{file.name}: arrived after {at.file} was started, and is not read")
            elif file.name < at.file and UNKNOWN_SIZE > file.size > at.passed.get(file.name, UNKNOWN_SIZE):
                self._warn_once(
                    f"{file.name}: grew after a file with a later name was started; the new bytes are not read"
                )

    def _lost(self, what: str) -> None:
        if self.options.fail_on_data_loss:
            raise CaptureReadError(f"{what} (failOnDataLoss=false continues without it)")
        self._warn_once(what)

    def _warn_once(self, what: str) -> None:
        """Warn once; the driver lists the same files for every trigger."""
        if what not in self._warned:
            self._warned.add(what)
            log.warning("%s", what)


def _part(files: Sequence[SourceFile], size: int, begin: Position, end: Position) -> CapturePartition:
    """The part between two positions."""
    return CapturePartition((CapturePart(tuple(files), size, begin.checkpoint, end.checkpoint),))


def _shown_option(options: Mapping[str, str], name: str) -> str:
    return repr(options[name]) if name in options else "not set"


def _plain(name: str) -> str:
    """The name of a file before it was compressed."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()


def _step(at: Position, place: Checkpoint, listed: ListedFile) -> Step:
    """The step from a position to a checkpoint in its file or in the next file."""
    file = listed.file
    size = place.offset if file.size == UNKNOWN_SIZE else file.size
    here = Position(file.name, size, _digest(listed.head[:size]), at.passed, place, at.skipped)
    if at.checkpoint is not None and at.file == file.name:
        return Step(here, place.offset - at.offset)
    return Step(here, max(at.size - at.offset, 0) + place.offset, begun=file, passed=file.name)
