"""What workers do for the pipeline: tell the content of captures, and decode captures into files in staging."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import CAPTURE, Checkpoint, checkpoints
from msmqwire.capture.files.compression import LONGEST_MAGIC, form_of
from msmqwire.capture.files.sources import shown_name
from msmqwire.columns.schema import UINT32, Column, Enumeration
from msmqwire.errors import CaptureError
from msmqwire.spark.lake.accounting import SourceAccount
from msmqwire.spark.lake.dayfiles import Compression, DayFiles, StagedFile
from msmqwire.spark.schema import SparkColumn, arrow_schema, spark_columns
from msmqwire.spark.source.files import open_source, opened
from msmqwire.spark.source.remote import StorageOptions
from msmqwire.spark.source.scan import Scan, ScanOptions

__all__ = ["FAULTS", "Cut", "Cutting", "Decoded", "Decoding", "Digesting", "Stage"]

_Rows: TypeAlias = Iterator[tuple[str, pa.RecordBatch]]

# The lake's table `faults`
FAULTS = spark_columns(
    (
        *CAPTURE.columns,
        Column("table", Enumeration(), "the table that has the payload's row"),
        Column("code", Enumeration(), "what is wrong"),
        Column("field", Enumeration(), "where, by its name in the specification"),
        Column("offset", UINT32, "byte offset in the payload"),
    )
)


@dataclass(frozen=True)
class Stage:
    """Work on parts of a list of sources, a part for each task.

    Attributes
    ----------
    parts : str
        A folder with what is in each part, in files by number: a list for all of them would go to every task.
    work : callable
        What is done with a part; it gives text.
    """

    parts: str
    work: Callable[[Any], str]

    def run(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The results of the parts whose numbers come in."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                part = json.loads(Path(self.parts, f"{number}.json").read_text("utf-8"))
                yield pa.record_batch({"result": [self.work(part)]})


class HashedFile:
    """A file that knows the digest of what was read from it, so that rows and digest are of the same bytes.

    Attributes
    ----------
    bytes : int
        How many were read.
    begins_with : list of str
        Digests, out of those in ``earlier`` by size, of what the file begins with.
    """

    def __init__(
        self, name: str, storage_options: StorageOptions, earlier: Mapping[int, Sequence[str]] | None = None
    ) -> None:
        self.name = name
        self.bytes = 0
        self.begins_with: list[str] = []
        self._ended = False
        self._file: Any = open_source(name, storage_options)
        self._hash = hashlib.sha256()
        self._earlier = earlier or {}
        self._marks = sorted(self._earlier, reverse=True)

    def __enter__(self) -> HashedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def seekable(self) -> bool:
        """Whether there is a way back, for who opens the file again."""
        return bool(self._file.seekable())

    def tell(self) -> int:
        """How many bytes were read."""
        return self.bytes

    def readinto(self, view: memoryview) -> int:
        """Read into a buffer; how many bytes there were."""
        # What is written behind an end that was met is for the next run: there are no rows of it
        count = 0 if self._ended else self._file.readinto(view) or 0
        self._ended = not count
        start = 0
        while self._marks and self._marks[-1] <= self.bytes + count - start:
            end = start + self._marks.pop() - self.bytes
            self._take(view[start:end])
            start = end
            if (digest := self._hash.hexdigest()) in self._earlier[self.bytes]:
                self.begins_with.append(digest)
        self._take(view[start:count])
        return count

    def digest(self) -> str:
        """The digest of the whole file, of which what was left is read now."""
        rest = memoryview(bytearray(1 << 20))
        while self.readinto(rest):
            pass
        return self._hash.hexdigest()

    def _take(self, part: memoryview) -> None:
        self._hash.update(part)
        self.bytes += len(part)


@dataclass(frozen=True)
class Digesting:
    """Tells the content of sources: a JSON object of SHA-256 by name, without those that cannot be read."""

    storage_options: StorageOptions

    def __call__(self, sources: Sequence[str]) -> str:
        """Read the sources."""
        digests = {}
        for source in sources:
            try:
                with HashedFile(source, self.storage_options) as file:
                    digests[source] = file.digest()
            except OSError:
                # What decodes it will find that out, and say so
                continue
        return json.dumps(digests)


@dataclass(frozen=True)
class Decoded:
    """What a task made of a part of the sources: an account for each, and the files with the rows of all."""

    accounts: list[SourceAccount]
    files: list[StagedFile]

    def to_json(self) -> str:
        """As a task sends it to the driver."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Decoded:
        """What ``to_json`` gave."""
        values = json.loads(text)
        accounts = [SourceAccount.from_dict(account) for account in values["accounts"]]
        return cls(accounts, [StagedFile(**file) for file in values["files"]])


class _SpoiledError(Exception):
    """Reading has failed where rows of the source are written already."""

    def __init__(self, account: SourceAccount) -> None:
        super().__init__(account)
        self.account = account


@dataclass(frozen=True)
class Decoding:
    """Decodes sources into Parquet files that they share, in staging.

    Attributes
    ----------
    staging : str
    options : ScanOptions
    compression : str
    earlier : str
        A file with the sizes and digests of what sources may have been when they were shorter.
    """

    staging: str
    options: ScanOptions
    compression: Compression
    earlier: str

    @cached_property
    def columns(self) -> dict[str, tuple[SparkColumn, ...]]:
        """Those of each table."""
        return {table: self.options.columns(table) for table in self.options.tables}

    def __call__(self, sources: Sequence[str]) -> str:
        """Decode the sources; ``Decoded`` as JSON.

        Raises
        ------
        CaptureError, DecodeError
            In mode FAILFAST, for whatever cannot be decoded or read. Otherwise the accounts say what is wrong.
        """
        return self._decoded(sources, partial(self._whole, earlier=_earlier(self.earlier)), len(sources))

    def part(self, part: tuple[str, str, int, int]) -> str:
        """Decode a part of a source; ``Decoded`` as JSON, with the account of the part.

        Parameters
        ----------
        part : (str, str, int, int)
            The source, the folder with its checkpoints, the number of the part, and how many there are.
        """
        source, folder, number, count = part
        resume = None if number == 0 else _checkpoint(folder, number - 1)
        read = partial(self._part, resume=resume, stop=_checkpoint(folder, number))
        return self._decoded([source], read, 1 if number == count - 1 else 0)

    def _decoded(self, sources: Sequence[str], read: Callable[[Scan, SourceAccount], _Rows], captures: int) -> str:
        spoiled: dict[str, SourceAccount] = {}
        while True:
            # An attempt that is repeated must not meet what the first left
            folder = Path(self.staging, uuid.uuid4().hex)
            folder.mkdir()
            try:
                decoded = self._written(sources, read, folder, spoiled)
            except _SpoiledError as error:
                spoiled[error.account.file] = error.account
                shutil.rmtree(folder)
                continue
            frames = sum(account.frames for account in decoded.accounts)
            Path(self.staging, "done", f"{folder.name}-{captures}-{frames}").touch()
            return decoded.to_json()

    def _written(
        self,
        sources: Sequence[str],
        read: Callable[[Scan, SourceAccount], _Rows],
        folder: Path,
        spoiled: Mapping[str, SourceAccount],
    ) -> Decoded:
        with ExitStack() as stack:
            writers = {
                table: stack.enter_context(DayFiles(folder, table, arrow_schema(columns), self.compression))
                for table, columns in {**self.columns, "faults": FAULTS}.items()
            }
            accounts = [spoiled.get(source) or self._account(source, read, writers) for source in sources]
        return Decoded(accounts, [file for writer in writers.values() for file in writer.files])

    def _account(
        self, source: str, read: Callable[[Scan, SourceAccount], _Rows], writers: Mapping[str, DayFiles]
    ) -> SourceAccount:
        """Write the rows of a source, and give its account."""
        account = SourceAccount(source)
        written = False
        for table, batch in self._rows(account, read):
            writers[table].write(batch)
            if batch.column("fault").null_count < len(batch):
                writers["faults"].write(fault_rows(batch, table))
            times = pc.min_max(batch.column("time_ns"))
            account.seen(times["min"].as_py(), times["max"].as_py())
            written = True
        if account.problem is None:
            return account
        unread = SourceAccount(source, account.digest, account.bytes, problem=account.problem)
        if written:
            raise _SpoiledError(unread)
        return unread

    def _rows(self, account: SourceAccount, read: Callable[[Scan, SourceAccount], _Rows]) -> _Rows:
        """Read a source; its account is complete at the end, also where it cannot be read."""
        scan = Scan(self.options, self.columns)
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

    def _whole(self, scan: Scan, account: SourceAccount, earlier: Mapping[int, Sequence[str]]) -> _Rows:
        with HashedFile(account.file, self.options.storage_options, earlier) as file:
            try:
                yield from scan.batches(file)  # type: ignore[arg-type]
            except CaptureError as error:
                # What is no capture has content all the same
                account.problem = str(error)
            account.digest, account.bytes = file.digest(), file.bytes
            account.grown_from = file.begins_with

    def _part(self, scan: Scan, account: SourceAccount, resume: Checkpoint | None, stop: Checkpoint) -> _Rows:
        with opened([account.file], self.options.storage_options) as files:
            yield from scan.batches(files, resume=resume, stop=stop)


@dataclass(frozen=True)
class Cut:
    """A large capture that was cut into parts.

    Attributes
    ----------
    account : SourceAccount
        What one pass over its frames found, with the digest of what was read.
    folder : str
        Where the checkpoints are at which parts end, by number.
    parts : int
    """

    account: SourceAccount
    folder: str
    parts: int

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cut:
        """What ``dataclasses.asdict`` gave, perhaps by way of JSON."""
        return cls(SourceAccount.from_dict(values["account"]), values["folder"], values["parts"])

    def joined(self, parts: Sequence[Decoded]) -> Decoded:
        """What its parts come to.

        Raises
        ------
        AccountingError
            They are not what the pass found.
        """
        found = self.account
        account = SourceAccount(found.file, found.digest, found.bytes, found.grown_from)
        for part in parts:
            (read,) = part.accounts
            if read.problem is not None:
                return Decoded([SourceAccount(found.file, found.digest, found.bytes, problem=read.problem)], [])
            account.add(read)
        account.agree(found)
        return Decoded([account], [file for part in parts for file in part.files])


@dataclass(frozen=True)
class Cutting:
    """Cuts large captures, and tells their content, in one pass over the frames of each: a list of ``Cut`` as JSON.

    Those that cannot be cut or read are left out.

    Attributes
    ----------
    staging : str
    options : ScanOptions
    earlier : str
        As for ``Decoding``.
    size : int
        Of a part, in bytes.
    """

    staging: str
    options: ScanOptions
    earlier: str
    size: int

    def __call__(self, sources: Sequence[str]) -> str:
        """Cut the sources."""
        cuts = []
        for source in sources:
            try:
                cut = self._cut(source)
            except (CaptureError, OSError):
                # What decodes it as a whole will find that out, and say so
                continue
            if cut.parts > 1:
                cuts.append(asdict(cut))
        return json.dumps(cuts)

    def _cut(self, source: str) -> Cut:
        account = SourceAccount(source)
        folder = Path(self.staging, uuid.uuid4().hex)
        with open_source(source, self.options.storage_options) as file:
            if form_of(file.read(LONGEST_MAGIC)) is not None:
                return Cut(account, str(folder), 1)
        folder.mkdir()
        parts = 0
        with (
            HashedFile(source, self.options.storage_options, _earlier(self.earlier)) as hashed,
            checkpoints(hashed, self.size, self.options.payloads) as found,  # type: ignore[arg-type]
        ):
            for checkpoint in found:
                Path(folder, str(parts)).write_bytes(checkpoint.to_bytes())
                parts += 1
            account.take(found.stats, {}, 0)
            account.digest, account.bytes, account.grown_from = hashed.digest(), hashed.bytes, hashed.begins_with
        return Cut(account, str(folder), parts)


def _earlier(path: str) -> dict[int, list[str]]:
    return {int(size): digests for size, digests in json.loads(Path(path).read_text("utf-8")).items()}


def _checkpoint(folder: str, number: int) -> Checkpoint:
    return Checkpoint.from_bytes(Path(folder, str(number)).read_bytes())


def fault_rows(batch: pa.RecordBatch, table: str) -> pa.RecordBatch:
    """The rows of ``faults`` for those of ``table`` that have one."""
    faulty = batch.filter(batch.column("fault").is_valid())
    for name in ("code", "field", "offset"):
        faulty = faulty.append_column(name, pc.struct_field(faulty.column("fault"), name))
    faulty = faulty.append_column("table", pa.array([table] * len(faulty)))
    return faulty.select([column.name for column in FAULTS])
