"""The tasks of the pipeline: identify captures, and decode captures into files of the lake."""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import Checkpoint, checkpoints
from msmqwire.capture.files.listing import is_compressed
from msmqwire.capture.files.remote import StorageOptions
from msmqwire.capture.files.sources import shown_name
from msmqwire.capture.parquet import Compression
from msmqwire.columns.arrow_arrays import binary, strings
from msmqwire.errors import CaptureError
from msmqwire.spark.executors import Sent
from msmqwire.spark.lake.accounting import Decoded, Ending, Seam, SourceAccount
from msmqwire.spark.lake.captures import CapturedFile
from msmqwire.spark.lake.dayfiles import DayFiles
from msmqwire.spark.lake.growth import SMALLEST, digest_before, seam_name
from msmqwire.spark.lake.schemas import FAULTS, file_columns
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.source.scan import Scan, ScanOptions

_Rows: TypeAlias = Iterator[tuple[str, pa.RecordBatch]]
_Read: TypeAlias = Callable[[Scan, SourceAccount], _Rows]


class Numbered(NamedTuple):
    """A source to decode.

    Attributes
    ----------
    file : str
    capture : int
        The number of its capture.
    lengths : list of int
        Of small captures that it may have grown from.
    size : int
        Its bytes when the run began.
    seam : str
        The file with the seam where reading resumes; empty: it is read from its beginning.
    """

    file: str
    capture: int
    lengths: list[int]
    size: int
    seam: str = ""


class Part(NamedTuple):
    """A part of a source.

    Attributes
    ----------
    source : Numbered
    resume, stop : str
        The files with the checkpoints where it begins and ends; empty: where reading of the source begins, its end.
    """

    source: Numbered
    resume: str
    stop: str


_ReadSource: TypeAlias = Callable[[Numbered, Scan, SourceAccount], _Rows]


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
    """Calls a function of ``captures`` for each of some sources: the results by name, without unreadable sources."""

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

    def __call__(self, sources: Sequence[Numbered]) -> Decoded:
        """Decode the sources, or what is new of those that have grown.

        Raises
        ------
        CaptureError, DecodeError
            In mode FAILFAST, for whatever cannot be decoded or read. Otherwise the accounts say what is wrong.
        """
        return self._decoded([Numbered(*source) for source in sources], self._whole, len(sources))

    def part(self, part: Part) -> Decoded:
        """Decode a part of a source; the account is that of the part."""
        given, begin, end = part
        source = Numbered(*given)
        resume = self._checkpoint(begin) if begin else resume_at(self.storage, source)
        stop = self._checkpoint(end) if end else None
        return self._decoded([source], partial(self._between, resume=resume, stop=stop), 0 if end else 1)

    def _checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint.from_bytes(self.storage.read(name))

    def _decoded(self, sources: Sequence[Numbered], read: _ReadSource, captures: int) -> Decoded:
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
        sources: Sequence[Numbered],
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
                    unreadable.get(source.file) or self._account(source, partial(read, source), writers, name)
                    for source in sources
                ]
        except BaseException:
            self.storage.delete(name for writer in writers.values() for name in writer.names)
            raise
        return Decoded(accounts, [file for writer in writers.values() for file in writer.files])

    def _account(self, source: Numbered, read: _Read, writers: Mapping[str, DayFiles], name: str) -> SourceAccount:
        """Write the rows of a source, and complete its account; the names of the files begin with ``name``."""
        account = SourceAccount(source.file, source.capture)
        written = False
        for table, batch in self._rows(account, read):
            if not len(batch):  # messages without notifications
                continue
            rows = {table: batch}
            if batch.column("fault").null_count < len(batch):
                rows["faults"] = fault_rows(batch, table)
            for of_table, some in rows.items():
                writers[of_table].write(some, account.capture)
                if account.seam is not None:
                    account.seam.ending.take(of_table, some)
            times: Any = pc.min_max(batch.column("time"))
            account.seen(times["min"].value, times["max"].value)
            written = True
        if account.problem is None:
            return self._completed(account, source, name)
        unread = account.unread_because(account.problem)
        if written:
            raise _PartlyWrittenError(unread)
        return unread

    def _completed(self, account: SourceAccount, source: Numbered, name: str) -> SourceAccount:
        """The account of a source, with what was read before of one that has grown; the seam is kept in the lake."""
        if account.seam is None:
            return account
        account.seam = replace(account.seam, ending=replace(account.seam.ending, file=name))
        # The parts of a source that was split are joined first
        return account if account.key is None else with_seam(self.storage, account, source)

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

    def _whole(self, source: Numbered, scan: Scan, account: SourceAccount) -> _Rows:
        resume = resume_at(self.storage, source)
        may_grow = source.size >= SMALLEST and not is_compressed(source.file, self.options.storage_options)
        before_end = partial(self._before_end, scan, account) if may_grow else None
        with self._opened(source) as file:
            try:
                yield from scan.rows(file, resume=resume, before_end=before_end)
            except CaptureError as error:
                # A file that is no capture has a size and a digest, too
                account.problem = str(error)
            file.finish()
            account.digest, account.bytes = file.digest, file.bytes
            if account.problem is None:
                account.identify(file.identity(scan.stats.bytes_read, source.lengths))

    def _between(
        self,
        source: Numbered,
        scan: Scan,
        account: SourceAccount,
        resume: Checkpoint | None,
        stop: Checkpoint | None,
    ) -> _Rows:
        if stop is None:
            # Only the part after the last checkpoint has no end
            assert resume is not None
            self._before_end(scan, account, resume)
        with self._opened(source) as file:
            yield from scan.rows(file, resume=resume, stop=stop)

    def _opened(self, source: Numbered) -> CapturedFile:
        return CapturedFile(source.file, self.options.storage_options, source.size, digest=self.digest)

    def _before_end(self, scan: Scan, account: SourceAccount, checkpoint: Checkpoint) -> None:
        """Note what was read up to a checkpoint; what follows are the rows of the end."""
        read = replace(account)
        read.take(scan.stats, scan.tables, scan.payloads)
        before = digest_before(account.file, self.options.storage_options, checkpoint.offset)
        account.seam = Seam(checkpoint, read, Ending(account.capture, ""), before)


@dataclass(frozen=True)
class SplitCapture:
    """A large capture that was split into parts.

    Attributes
    ----------
    account : SourceAccount
        What one pass over its frames found up to the last complete record, with the digest of what was read.
    checkpoints : list of str
        The files with the checkpoints at which parts end; what is after the last one is a part as well.
    source : Numbered
    """

    account: SourceAccount
    checkpoints: list[str]
    source: Numbered

    @property
    def parts(self) -> list[Part]:
        """The parts to decode."""
        return [Part(self.source, *places) for places in pairwise(["", *self.checkpoints, ""])]

    def joined(self, parts: Sequence[Decoded], storage: Storage) -> Decoded:
        """The capture as decoded in these parts; its seam is kept in the lake.

        Raises
        ------
        AccountingError
            Their counts are not those that the pass found.
        """
        found = self.account
        names = ("file", "capture", "key", "length", "grown_from", "digest", "bytes")
        account = SourceAccount(**{name: getattr(found, name) for name in names})
        accounts = [part.accounts[0] for part in parts]
        for read in accounts:
            if read.problem is not None:
                return Decoded([found.unread_because(read.problem)], [])
        for read in accounts[:-1]:
            account.add(read)
        account.agree(found)
        end = accounts[-1]
        assert end.seam is not None
        account.seam = replace(end.seam, account=replace(account))
        account.add(end)
        files = [file for part in parts for file in part.files]
        return Decoded([with_seam(storage, account, self.source)], files)


@dataclass(frozen=True)
class CaptureSplitter:
    """Splits large captures, and identifies them, in one pass over the frames of each.

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

    def __call__(self, sources: Sequence[Numbered]) -> list[SplitCapture]:
        """Split the sources."""
        splits = []
        for source in sources:
            try:
                split = self._split(Numbered(*source))
            except (CaptureError, OSError):
                # Decoding fails likewise, and reports it
                continue
            if len(split.checkpoints) > 1:
                splits.append(split)
        return splits

    def _split(self, source: Numbered) -> SplitCapture:
        account, options = SourceAccount(source.file, source.capture), self.options
        names: list[str] = []
        if is_compressed(source.file, options.storage_options):
            return SplitCapture(account, names, source)
        folder, resume = f"{self.scratch}/{uuid.uuid4().hex}", resume_at(self.storage, source)
        with (
            CapturedFile(source.file, options.storage_options, source.size, digest=self.digest) as captured,
            checkpoints(captured, self.size, options.payloads, resume=resume, final=False) as found,
        ):
            for checkpoint in found:
                names.append(f"{folder}/{len(names)}")
                with self.storage.create(names[-1]) as checkpoint_file:
                    checkpoint_file.write(checkpoint.to_bytes())
            account.take(found.stats, {}, 0)
            captured.finish()
            account.digest, account.bytes = captured.digest, captured.bytes
            account.identify(captured.identity(captured.bytes, source.lengths))
        return SplitCapture(account, names, source)


def resume_at(storage: Storage, source: Numbered) -> Checkpoint | None:
    """The checkpoint where reading of a source resumes; None: it is read from its beginning.

    Raises
    ------
    CaptureError, OSError
        Its seam is not there, or is malformed.
    """
    return Seam.from_bytes(storage.read(source.seam)).checkpoint if source.seam else None


def with_seam(storage: Storage, account: SourceAccount, source: Numbered) -> SourceAccount:
    """The account of a source, with what was read before of one that has grown; its seam is kept in the lake.

    If the seam is lost, the next run reads the capture from its beginning.
    """
    seam, account.seam = account.seam, None
    assert seam is not None
    if source.seam:
        before = Seam.from_bytes(storage.read(source.seam)).account
        seam.account.prepend(before)
        account = replace(account, bytes=account.length, new=account)
        account.prepend(before)
    with storage.create(seam_name(account.capture, account.length)) as file:
        file.write(seam.to_bytes())
    return account


def fault_rows(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """The rows of ``faults`` for those of ``table`` that have one."""
    faulty = batch.filter(batch.column("fault").is_valid())
    for name in ("code", "field", "offset"):
        faulty = faulty.append_column(name, pc.struct_field(faulty.column("fault"), name))
    faulty = faulty.append_column("table", strings([table] * len(faulty)))
    return faulty.select(list(dict.fromkeys(column.source for column in FAULTS)))
