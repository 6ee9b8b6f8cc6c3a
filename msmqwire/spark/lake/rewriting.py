"""Files of a lake that are written again: small files merged into one, and a file without the rows of some captures."""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import Any, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from msmqwire.capture.parquet import ROW_GROUP_BYTES, ROW_GROUP_ROWS, Compression
from msmqwire.errors import LakeError
from msmqwire.spark.lake.places import PLACE
from msmqwire.spark.lake.schemas import file_schema
from msmqwire.spark.lake.storage import Storage, one_line
from msmqwire.spark.lake.writing import NewFile, WrittenFile, path_of


class ActiveFile(NamedTuple):
    """A file that is part of a table.

    Attributes
    ----------
    path : str
        Relative to the table.
    size : int
    day : str or None
        The day of its rows, ``NO_DAY`` where they have none; None in ``accounting``, which has no days.
    rows : int or None
        None where the log of the table does not have it.
    least, greatest : dict of str to (str or int)
        The least and greatest values of columns, of those that the log has.
    """

    path: str
    size: int
    day: str | None
    rows: int | None
    least: dict[str, Any]
    greatest: dict[str, Any]

    def may_have(self, column: str, values: Iterable[Any]) -> bool:
        """Return True if the file may have rows with one of some values in a column."""
        least, greatest = self.least.get(column), self.greatest.get(column)
        return least is None or greatest is None or any(least <= value <= greatest for value in values)


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
    schema: pa.Schema,
    columns: Sequence[str],
    is_gone: Callable[[pa.Table], Any],
) -> Iterator[Replacement]:
    """Write the files that have rows for which ``is_gone``, a function of some columns, again without these rows."""
    for file in files:
        found = read_columns(storage, table, file.path, columns)
        if pc.any(is_gone(found)).as_py():
            yield rewrite(storage, table, [file], schema, is_gone)


def read_columns(storage: Storage, table: str, path: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a file, in the types that this package writes."""
    schema = file_schema(table)
    with parquet_file(storage, f"{table}/{path}") as source:
        there = [name for name in columns if name in source.schema_arrow.names]
        found = source.read(there, use_threads=False)
    return with_columns(found, pa.schema([schema.field(name) for name in columns]))


def places_in(storage: Storage, table: str, path: str) -> pa.Table:
    """The columns of ``PLACE`` that a table has, of a file."""
    return read_columns(storage, table, path, [name for name in PLACE if name in file_schema(table).names])


def without_copies(
    storage: Storage, table: str, files: Iterable[ActiveFile], schema: pa.Schema, *, dry_run: bool
) -> tuple[list[Replacement], Counter[str]]:
    """Write files again without the copies of rows; and how many copies each capture has.

    Rows are copies if they come from the same place in a capture, ``PLACE``. The first of them is kept.
    """
    replacements: list[Replacement] = []
    counts: Counter[str] = Counter()
    names = [name for name in PLACE if name in schema.names]
    # Rows from one place have one time
    for _, of_day in groupby(sorted(files, key=lambda file: (file.day or "", file.path)), key=lambda file: file.day):
        read, tables, bounds = list(of_day), [], [0]
        for file in read:
            rows = places_in(storage, table, file.path).select(names)
            bounds.append(bounds[-1] + len(rows))
            tables.append(rows.append_column("position", pa.array(range(*bounds[-2:]), pa.int64())))
        found = pa.concat_tables(tables)
        first: Any = found.group_by(names, use_threads=False).aggregate([("position", "min")])["position_min"]
        if len(first) == len(found):
            continue
        is_first: Any = pc.is_in(found["position"], first.combine_chunks())
        copies = found.filter(pc.invert(is_first))
        captures: Any = copies["capture"].to_pylist()
        counts.update(captures)
        unwanted: Any = copies["position"].to_pylist()  # in ascending order
        for file, (begin, end) in zip(read, pairwise(bounds), strict=True):
            here = unwanted[bisect_left(unwanted, begin) : bisect_left(unwanted, end)]
            if dry_run or not here:
                continue
            places, gone = iter(range(begin, end)), pa.array(here, pa.int64())

            def is_gone(rows: pa.Table, places: Iterator[int] = places, gone: pa.Array[Any] = gone) -> Any:
                return pc.is_in(pa.array(islice(places, len(rows)), pa.int64()), gone)

            replacements.append(rewrite(storage, table, [file], schema, is_gone))
    return replacements, counts


def rewrite(
    storage: Storage,
    table: str,
    files: Sequence[ActiveFile],
    schema: pa.Schema,
    is_gone: Callable[[pa.Table], Any] | None = None,
) -> Replacement:
    """Write the rows of files of one day into one file, and make it durable; it is not yet part of the table.

    Parameters
    ----------
    storage : Storage
    table : str
    files : sequence of ActiveFile
    schema : pyarrow.Schema
        The columns of the files of the table.
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
        for rows, compression in _row_groups(_rows(storage, table, files, schema, is_gone)):
            if file is None:
                file = stack.enter_context(closing(NewFile(storage, table, path, schema, compression)))
            file.write(rows)
        written = None if file is None else file.finish()
    if written is not None:
        storage.sync([f"{table}/{path}"])
    return Replacement(list(files), written)


def with_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows with the columns of a schema; those that they lack are null."""
    names = set(rows.column_names)
    columns = [
        rows[field.name].cast(field.type) if field.name in names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


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
            raise LakeError(f"{storage.path(name)}: {problem}") from LakeError(problem)


def _rows(
    storage: Storage,
    table: str,
    files: Sequence[ActiveFile],
    schema: pa.Schema,
    is_gone: Callable[[pa.Table], Any] | None,
) -> Iterator[tuple[pa.Table, Compression]]:
    """The rows of files in pieces, and how the file that they come from is compressed."""
    for file in files:
        with parquet_file(storage, f"{table}/{file.path}") as source:
            for group in range(source.num_row_groups):
                found = source.metadata.row_group(group).column(0).compression.lower()
                compression: Compression = found if found in get_args(Compression) else "none"  # type: ignore[assignment]
                rows = with_columns(source.read_row_group(group, use_threads=False), schema)
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
