"""The tasks of the pipeline: identify captures, and decode captures into files of the lake."""

from __future__ import annotations

import base64
import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Checkpoint, checkpoints
from msmqwire.capture.files.listing import SourceFile, is_compressed
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.parquet import Compression
from msmqwire.columns.arrow_arrays import binary, strings
from msmqwire.errors import CaptureError
from msmqwire.spark.executors import Sent
from msmqwire.spark.lake.accounting import Decoded, SourceAccount
from msmqwire.spark.lake.places import deleted_here
from msmqwire.spark.lake.planning import CapturedFile, Identity, stored_fingerprint
from msmqwire.spark.lake.schemas import FAULTS, file_columns
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.writing import DayFiles
from msmqwire.spark.source.scan import Scan, ScanOptions

_Rows: TypeAlias = Iterator[tuple[str, pa.RecordBatch]]
_Read: TypeAlias = Callable[[Scan, SourceAccount], _Rows]


class ToRead(NamedTuple):
    """A source to decode.

    Attributes
    ----------
    file : str
    size : int
        Its bytes when the run began.
    identity : Identity or None
        What its capture is known by; None where it cannot be read.
    deletions : str
        The places of rows that are left out, as ``places.packed`` has them, in Base64.
    """

    file: str
    size: int
    identity: Identity | None
    deletions: str = ""

    @classmethod
    def of(cls, file: SourceFile, identity: Identity | None, deletions: bytes | None) -> ToRead:
        """A file as the source of a capture."""
        return cls(file.name, file.size, identity, base64.b64encode(deletions or b"").decode())

    @classmethod
    def parsed(cls, values: Sequence[Any]) -> ToRead:
        """The source from JSON, which has lists in place of tuples."""
        file, size, identity, deletions = values
        return cls(file, size, None if identity is None else Identity(*identity), deletions)


class TaskInput(NamedTuple):
    """A part of a source.

    Attributes
    ----------
    source : ToRead
    resume, stop : str
        The files with the checkpoints where it begins and ends; ``resume`` is empty at the beginning of the source.
    """

    source: ToRead
    resume: str
    stop: str


_ReadSource: TypeAlias = Callable[[ToRead, Scan, SourceAccount], _Rows]


@dataclass(frozen=True)
class Stage(Sent):
    """Work on parts of a list of sources, a part for each task.

    Attributes
    ----------
    storage : Storage
    parts : str
        A file with the parts, each as JSON: a task reads its own.
    places : list of int
        Where in the file each part begins, and where the last one ends.
    work : callable
        The function that is called with each part.
    """

    storage: Storage
    parts: str
    places: list[int]
    work: Callable[[Any], Any]

    def run(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the parts whose numbers come in, pickled."""
        for batch in numbers:
            # to_numpy would import pandas
            wanted: list[Any] = batch.column(0).to_pylist()
            for number in wanted:
                start, end = self.places[number : number + 2]
                part = json.loads(self.storage.read(self.parts, start, end - start))
                yield pa.record_batch({"result": binary([pickle.dumps(self.work(part))])})


@dataclass(frozen=True)
class SourceCalls:
    """Calls a function of ``planning`` for each of some sources: the results by name, without unreadable sources."""

    function: Callable[..., Any]
    storage_options: StorageOptions = field(repr=False)

    def __call__(self, sources: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The results for sources, each with the further arguments of the function."""
        found = {}
        for source, *arguments in sources:
            # Decoding fails likewise, and reports it
            with suppress(CaptureError, OSError):
                found[source] = self.function(source, self.storage_options, *arguments)
        return found


class _PartlyWrittenError(Exception):
    """Reading has failed after rows of the source were written."""

    def __init__(self, account: SourceAccount) -> None:
        super().__init__(account)
        self.account = account


@dataclass(frozen=True)
class Decoding:
    """Decodes sources into Parquet files that they share, where these will stay.

    Attributes
    ----------
    storage : Storage
    options : ScanOptions
    compression : str
    marks : str or None
        The folder for a file whose name says how many captures and frames a task has decoded; None for no such file.
    digest : bool
        Whether each account has the SHA-256 of its source.
    """

    storage: Storage
    options: ScanOptions
    compression: Compression
    marks: str | None = None
    digest: bool = False

    def __call__(self, sources: Sequence[ToRead]) -> Decoded:
        """Decode the sources.

        Raises
        ------
        CaptureError, DecodeError
            In mode FAILFAST, for whatever cannot be decoded or read. Otherwise the accounts say what is wrong.
        """
        return self._decoded([ToRead.parsed(source) for source in sources], self._whole, len(sources))

    def part(self, part: TaskInput) -> Decoded:
        """Decode a part of a source, and count what is in it."""
        source, begin, end = part
        resume = self._checkpoint(begin) if begin else None
        read = partial(self._between, resume=resume, stop=self._checkpoint(end))
        return self._decoded([ToRead.parsed(source)], read, 0 if begin else 1)

    def _checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint.from_bytes(self.storage.read(name))

    def _decoded(self, sources: Sequence[ToRead], read: _ReadSource, captures: int) -> Decoded:
        unreadable: dict[str, SourceAccount] = {}
        while True:
            name = uuid.uuid4().hex
            try:
                decoded = self._written(sources, read, name, unreadable)
            except _PartlyWrittenError as error:
                unreadable[error.account.file] = error.account
                continue
            self.storage.sync(f"{file.table}/{file.path}" for file in decoded.files)
            if self.marks is not None:
                frames = sum(account.frames for account in decoded.accounts)
                with self.storage.create(f"{self.marks}/{name}-{captures}-{frames}"):
                    pass
            return decoded

    def _written(
        self,
        sources: Sequence[ToRead],
        read: _ReadSource,
        name: str,
        unreadable: Mapping[str, SourceAccount],
    ) -> Decoded:
        writers = {
            table: DayFiles(self.storage, table, file_columns(table), self.compression, name)
            for table in (*self.options.tables, "faults")
        }
        try:
            with ExitStack() as stack:
                for writer in writers.values():
                    stack.enter_context(writer)
                accounts = [
                    unreadable.get(source.file) or self._account(source, partial(read, source), writers)
                    for source in sources
                ]
        except BaseException:
            self.storage.delete(name for writer in writers.values() for name in writer.names)
            raise
        return Decoded(accounts, [file for writer in writers.values() for file in writer.files])

    def _account(self, source: ToRead, read: _Read, writers: Mapping[str, DayFiles]) -> SourceAccount:
        """Write the rows of a source, and complete its account."""
        account, deletions = SourceAccount(source.file, source.identity), base64.b64decode(source.deletions)
        written = False
        for table, batch in self._rows(account, read):
            if not len(batch):  # messages without notifications
                continue
            rows = {table: batch}
            if batch.column("fault").null_count < len(batch):
                rows["faults"] = fault_rows(batch, table)
            for of_table, some in rows.items():
                if deletions:
                    kept: Any = pc.invert(deleted_here(some, of_table, deletions))
                    count, some = len(some), some.filter(kept)
                    account.deleted[of_table] = account.deleted.get(of_table, 0) + count - len(some)
                if len(some):
                    writers[of_table].write(some, account.capture or "")
            times: Any = pc.min_max(batch.column("time"))
            account.seen(times["min"].value, times["max"].value)
            written = True
        if account.problem is None:
            return account
        unread = account.unread_because(account.problem)
        if written:
            raise _PartlyWrittenError(unread)
        return unread

    def _rows(self, account: SourceAccount, read: _Read) -> _Rows:
        """Read a source; its account is complete at the end, also where it cannot be read."""
        scan = Scan(self.options)
        try:
            yield from read(scan, account)
        except CaptureError as error:
            account.problem = str(error)
        except OSError as error:
            account.problem = f"{shown_name(account.file)}: {error.strerror or error}"
        if account.problem is None:
            account.take(scan.stats, scan.tables, scan.payloads)
        elif self.options.mode == "FAILFAST":
            raise CaptureError(account.problem)

    def _whole(self, source: ToRead, scan: Scan, account: SourceAccount) -> _Rows:
        with self._opened(source) as file:
            try:
                yield from scan.rows(file)
            except CaptureError as error:
                # A file that is no capture has a size and a digest, too
                account.problem = str(error)
            file.finish()
            account.digest, account.bytes = file.digest, file.bytes
        if account.problem is None and self.has_changed(source):
            account.problem = f"{shown_name(source.file)}: has changed while it was read; the next run reads it"

    def has_changed(self, source: ToRead) -> bool:
        """Return True if a source is not the one that was identified; it may have grown."""
        try:
            with CapturedFile(source.file, self.options.storage_options, source.size) as file:
                return source.identity is None or stored_fingerprint(file) != source.identity.stored
        except OSError:
            return True

    def _between(
        self,
        source: ToRead,
        scan: Scan,
        account: SourceAccount,
        resume: Checkpoint | None,
        stop: Checkpoint,
    ) -> _Rows:
        with self._opened(source) as file:
            yield from scan.rows(file, resume=resume, stop=stop)

    def _opened(self, source: ToRead) -> CapturedFile:
        return CapturedFile(source.file, self.options.storage_options, source.size, digest=self.digest)


@dataclass(frozen=True)
class SplitCapture:
    """A large capture that was split into parts.

    Attributes
    ----------
    account : SourceAccount
        What one pass over its frames found, with the digest of what was read.
    checkpoints : list of str
        The files with the checkpoints at which parts end.
    source : ToRead
    """

    account: SourceAccount
    checkpoints: list[str]
    source: ToRead

    @property
    def parts(self) -> list[TaskInput]:
        """The parts to decode."""
        return [TaskInput(self.source, *places) for places in pairwise(["", *self.checkpoints])]

    def joined(self, parts: Sequence[Decoded]) -> Decoded:
        """The capture as decoded in these parts.

        Raises
        ------
        AccountingError
            Their counts are not those that the pass found.
        """
        found = self.account
        account = SourceAccount(found.file, found.identity, digest=found.digest, bytes=found.bytes)
        for part in parts:
            (read,) = part.accounts
            if read.problem is not None:
                return Decoded([found.unread_because(read.problem)], [])
            account.add(read)
        account.agree(found)
        return Decoded([account], [file for part in parts for file in part.files])


@dataclass(frozen=True)
class CaptureSplitter:
    """Splits large captures in one pass over the frames of each.

    Captures that cannot be split or read are left out.

    Attributes
    ----------
    storage : Storage
    scratch : str
        The folder for the checkpoints.
    options : ScanOptions
    size : int
        Of a part, in bytes.
    digest : bool
    """

    storage: Storage
    scratch: str
    options: ScanOptions
    size: int
    digest: bool = False

    def __call__(self, sources: Sequence[ToRead]) -> list[SplitCapture]:
        """Split the sources."""
        splits = []
        for source in sources:
            try:
                split = self._split(ToRead.parsed(source))
            except (CaptureError, OSError):
                # Decoding fails likewise, and reports it
                continue
            if len(split.checkpoints) > 1:
                splits.append(split)
        return splits

    def _split(self, source: ToRead) -> SplitCapture:
        account, options = SourceAccount(source.file, source.identity), self.options
        names: list[str] = []
        if source.identity is None or is_compressed(source.file, options.storage_options):
            return SplitCapture(account, names, source)
        folder = f"{self.scratch}/{uuid.uuid4().hex}"
        with (
            CapturedFile(source.file, options.storage_options, source.size, digest=self.digest) as captured,
            checkpoints(captured, self.size, options.payloads) as found,
        ):
            for checkpoint in found:
                names.append(f"{folder}/{len(names)}")
                with self.storage.create(names[-1]) as checkpoint_file:
                    checkpoint_file.write(checkpoint.to_bytes())
            account.take(found.stats, {}, 0)
            captured.finish()
            account.digest, account.bytes = captured.digest, captured.bytes
        return SplitCapture(account, names, source)


def fault_rows(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """Return the rows of ``faults`` for the rows of ``table`` with a fault."""
    faulty = batch.filter(batch.column("fault").is_valid())
    for name in ("code", "field", "offset", "value", "needed"):
        faulty = faulty.append_column(name, pc.struct_field(faulty.column("fault"), name))
    faulty = faulty.append_column("table", strings([table] * len(faulty)))
    return faulty.select(list(dict.fromkeys(column.source for column in FAULTS)))
