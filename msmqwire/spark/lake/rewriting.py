"""Files of a lake that are written again: small files merged into one, and a file without the rows of some captures."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from msmqwire.capture.parquet import ROW_GROUP_BYTES, ROW_GROUP_ROWS, Compression
from msmqwire.spark.lake.accounting import Ending
from msmqwire.spark.lake.checksums import is_as_written
from msmqwire.spark.lake.dayfiles import NewFile, WrittenFile, path_of
from msmqwire.spark.lake.schemas import file_schema
from msmqwire.spark.lake.storage import LakeError, Storage, mend, one_line

#: The columns that say from which place of which capture a row comes, where a table has them.
PLACE = ("capture", "frame", "stream_offset", "index", "table")


class ActiveFile(NamedTuple):
    """A file that is part of a table.

    Attributes
    ----------
    path : str
        Relative to the table.
    size : int
    day : str or None
        The day of its rows, ``NO_DAY`` where they have none; None in ``accounting``, which has no days.
    least, greatest : int or None
        The range of the numbers of its captures; None where the log of the table does not have it.
    rows : int or None
        Likewise.
    """

    path: str
    size: int
    day: str | None
    least: int | None
    greatest: int | None
    rows: int | None

    def may_have(self, captures: Collection[int]) -> bool:
        """Whether the file may have rows of one of some captures."""
        if self.least is None or self.greatest is None:
            return True
        return any(self.least <= capture <= self.greatest for capture in captures)


@dataclass(frozen=True)
class Replacement:
    """Files of a table, and the file that takes their place; None when none of their rows are left."""

    removed: list[ActiveFile]
    added: WrittenFile | None


def bins(files: Iterable[ActiveFile], size: int) -> list[list[ActiveFile]]:
    """The files to merge: several of a day at a time, of at most ``size`` bytes together.

    The smallest come first, so any two consecutive bins of a day are larger than ``size`` together.
    """
    found: list[list[ActiveFile]] = []
    day, left = None, 0
    for file in sorted(files, key=lambda file: (file.day or "", file.size, file.path)):
        if not found or file.day != day or file.size > left:
            found.append([])
            day, left = file.day, size
        found[-1].append(file)
        left -= file.size
    return [one for one in found if len(one) > 1]


def without(
    storage: Storage,
    table: str,
    files: Iterable[ActiveFile],
    captures: Collection[int],
    endings: Collection[Ending] = (),
) -> Iterator[Replacement]:
    """Write the files that have rows of some captures, or of the ends of some captures, again without these rows."""
    unwanted = pa.array(sorted(captures), pa.int64())
    # The rows that are still to be found: most often they are in the files that they were written to
    left = {ending.capture: ending.rows[table] for ending in endings}
    names = tuple(ending.file for ending in endings)

    def is_gone(rows: pa.Table) -> Any:
        gone: Any = pc.is_in(rows["capture"], unwanted)
        for ending in endings:
            gone = pc.or_(gone, ending.has(rows))
        return gone

    for file in sorted(files, key=lambda file: not file.path.rpartition("/")[2].startswith(names or ("/",))):
        ends = [ending for ending in endings if left[ending.capture] and file.may_have([ending.capture])]
        if not ends and not file.may_have(captures):
            continue
        with parquet_file(storage, f"{table}/{file.path}") as source:
            found: Any = source.read(["capture", *(("frame", "stream_offset") if ends else ())], use_threads=False)
        for ending in ends:
            left[ending.capture] -= pc.sum(ending.has(found)).as_py() or 0
        if pc.any(is_gone(found) if ends else pc.is_in(found["capture"], unwanted)).as_py():
            yield rewrite(storage, table, [file], is_gone if ends else lambda rows: pc.is_in(rows["capture"], unwanted))


def without_copies_of(
    storage: Storage, table: str, files: Iterable[ActiveFile], captures: Collection[int], dry_run: bool
) -> tuple[list[Replacement], Counter[int]]:
    """Write files again without the copies of rows of some captures; and how many copies each capture has.

    Rows of a capture are copies if they come from the same place in it, ``PLACE``. The first of them is kept.
    """
    wanted = pa.array(sorted(captures), pa.int64())
    names = [name for name in PLACE if name in file_schema(table).names]
    read = [file for file in files if file.may_have(captures)]
    tables, bounds = [], [0]
    for file in read:
        with parquet_file(storage, f"{table}/{file.path}") as source:
            rows = source.read(names, use_threads=False)
        bounds.append(bounds[-1] + len(rows))
        rows = rows.append_column("position", pa.array(range(*bounds[-2:]), pa.int64()))
        here: Any = pc.is_in(rows["capture"], wanted)
        tables.append(rows.filter(here))
    if not tables:
        return [], Counter()
    found = pa.concat_tables(tables)
    first: Any = found.group_by(names, use_threads=False).aggregate([("position", "min")])["position_min"]
    is_first: Any = pc.is_in(found["position"], first.combine_chunks())
    copies = found.filter(pc.invert(is_first))
    captures_of_copies: Any = copies["capture"].to_pylist()
    unwanted: Any = copies["position"].to_pylist()  # in ascending order
    replacements = []
    for file, (begin, end) in zip(read, pairwise(bounds), strict=True):
        here = unwanted[bisect_left(unwanted, begin) : bisect_left(unwanted, end)]
        if dry_run or not here:
            continue
        places, gone = iter(range(begin, end)), pa.array(here, pa.int64())

        def is_gone(rows: pa.Table, places: Iterator[int] = places, gone: pa.Array[Any] = gone) -> Any:
            return pc.is_in(pa.array(islice(places, len(rows)), pa.int64()), gone)

        replacements.append(rewrite(storage, table, [file], is_gone))
    return replacements, Counter(captures_of_copies)


def rewrite(
    storage: Storage, table: str, files: Sequence[ActiveFile], is_gone: Callable[[pa.Table], Any] | None = None
) -> Replacement:
    """Write the rows of files of one day into one file, and make it durable; it is not yet part of the table.

    Parameters
    ----------
    storage : Storage
    table : str
    files : sequence of ActiveFile
    is_gone : callable, optional
        Whether each of some rows is left out.

    Raises
    ------
    FileNotFoundError
        A file is missing.
    LakeError
        A file cannot be read.
    """
    name = f"{uuid.uuid4().hex}-0.parquet"
    path = path_of(name, files[0].day)
    with ExitStack() as stack:
        file: NewFile | None = None
        for rows, compression in _row_groups(_rows(storage, table, files, is_gone)):
            if file is None:
                file = stack.enter_context(closing(NewFile(storage, table, path, file_schema(table), compression)))
            file.write(rows)
        written = None if file is None else file.finish()
    if written is not None:
        storage.sync([f"{table}/{path}"])
    return Replacement(list(files), written)


@contextmanager
def parquet_file(storage: Storage, name: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file of a lake, whose page checksums are verified.

    Raises
    ------
    FileNotFoundError
        It is missing.
    LakeError
        It cannot be read: it is no Parquet file, or its bytes have changed.
    """
    with storage.open(name) as file:
        try:
            yield pq.ParquetFile(file, page_checksum_verification=True)
        except FileNotFoundError:
            raise
        except (pa.ArrowException, KeyError, OSError, ValueError) as error:
            problem = f"cannot be read: {one_line(error)}"
            raise LakeError(f"{storage.path(name)}: {problem}; {mend(storage)}") from LakeError(problem)


def _rows(
    storage: Storage, table: str, files: Sequence[ActiveFile], is_gone: Callable[[pa.Table], Any] | None
) -> Iterator[tuple[pa.Table, Compression]]:
    """The rows of files in pieces, and how the file that they come from is compressed."""
    schema = file_schema(table)
    for file in files:
        with parquet_file(storage, f"{table}/{file.path}") as source:
            # A changed byte would get a new checksum
            if not is_as_written(storage, f"{table}/{file.path}", file.size):
                raise pa.ArrowInvalid("its checksum differs")
            for group in range(source.num_row_groups):
                found = source.metadata.row_group(group).column(0).compression.lower()
                compression: Compression = found if found in get_args(Compression) else "none"  # type: ignore[assignment]
                rows = source.read_row_group(group, use_threads=False).select(schema.names).cast(schema)
                if is_gone is not None:
                    kept: Any = pc.invert(is_gone(rows))
                    rows = rows.filter(kept)
                if len(rows):
                    yield rows, compression


def _row_groups(pieces: Iterator[tuple[pa.Table, Compression]]) -> Iterator[tuple[pa.Table, Compression]]:
    """Small pieces put together into row groups."""
    waiting: list[pa.Table] = []
    count = size = 0
    for rows, compression in pieces:
        waiting.append(rows)
        count += len(rows)
        size += rows.get_total_buffer_size()
        if count >= ROW_GROUP_ROWS or size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(waiting).combine_chunks(), compression
            waiting, count, size = [], 0, 0
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks(), compression
