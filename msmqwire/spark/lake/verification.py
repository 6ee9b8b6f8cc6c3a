"""What is in the files of a table of a lake: the rows of each capture, and the files that cannot be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from msmqwire.spark.lake.checksums import is_as_written
from msmqwire.spark.lake.rewriting import ActiveFile, parquet_file
from msmqwire.spark.lake.schemas import file_schema
from msmqwire.spark.lake.storage import LakeError, Storage
from msmqwire.spark.lake.tables import LakeTable


@dataclass
class Contents:
    """What is in the files of a table.

    Attributes
    ----------
    rows : Counter of int
        Rows by number of the capture.
    files : dict of int to set of str
        The paths of the files with rows of a capture, relative to the table.
    unreadable : dict of ActiveFile to str
        Files that are missing or malformed, and what is wrong with each.
    """

    rows: Counter[int] = field(default_factory=Counter)
    files: dict[int, set[str]] = field(default_factory=dict)
    unreadable: dict[ActiveFile, str] = field(default_factory=dict)


def differences(storage: Storage, table: LakeTable, said: Counter[int] | None, *, every_byte: bool) -> list[str]:
    """How a table differs from the rows by capture that ``accounting`` says, and its files that cannot be read.

    Parameters
    ----------
    storage : Storage
    table : LakeTable
    said : Counter of int, optional
        None where ``accounting`` cannot be read.
    every_byte : bool
        As for ``read_contents``.

    Raises
    ------
    LakeError
        The log of the table cannot be read.
    """
    if not table.has_log:
        # A run that is killed may not have made a table that has no rows yet
        return [f"{table.name}: is missing"] if said is not None and any(said.values()) else []
    found = read_contents(storage, table, every_byte=every_byte)
    problems = [f"{table.name}/{file.path}: {problem}" for file, problem in found.unreadable.items()]
    if said is not None:
        problems += [
            f"{table.name}: {found.rows[capture]} rows of capture {capture}, but {said[capture]} in accounting"
            for capture in sorted({*said, *found.rows})
            if said[capture] != found.rows[capture]
        ]
    return problems


def read_contents(storage: Storage, table: LakeTable, *, every_byte: bool) -> Contents:
    """Read the files of a table.

    Parameters
    ----------
    storage : Storage
    table : LakeTable
    every_byte : bool
        Read all columns and verify the checksums of their pages, not only the column ``capture``.

    Raises
    ------
    LakeError
        The log of the table cannot be read.
    """
    while True:
        version, files = table.delta.version(), table.files()
        contents = _read(storage, table.name, files, every_byte)
        # Another process may have replaced and deleted a file
        table.refresh()
        if not contents.unreadable or table.delta.version() == version:
            return contents


def _read(storage: Storage, table: str, files: list[ActiveFile], every_byte: bool) -> Contents:
    contents = Contents()
    sizes = storage.sizes([f"{table}/{file.path}" for file in files])
    for file, size in zip(files, sizes, strict=True):
        if size is None:
            contents.unreadable[file] = "is missing"
            continue
        if size != file.size:
            contents.unreadable[file] = f"has {size} bytes, not {file.size}"
            continue
        try:
            found = _captures(storage, table, file, every_byte)
        except LakeError as error:
            contents.unreadable[file] = str(error.__cause__)
            continue
        except FileNotFoundError:
            contents.unreadable[file] = "is missing"
            continue
        contents.rows.update(found)
        for capture in found:
            contents.files.setdefault(capture, set()).add(file.path)
    return contents


def _captures(storage: Storage, table: str, file: ActiveFile, every_byte: bool) -> Counter[int]:
    found: Counter[int] = Counter()
    name = f"{table}/{file.path}"
    with parquet_file(storage, name) as source:
        if every_byte and not is_as_written(storage, name, file.size):
            raise pa.ArrowInvalid("its bytes are not those that were written: the checksum differs")
        if file.rows is not None and source.metadata.num_rows != file.rows:
            raise pa.ArrowInvalid(f"it has {source.metadata.num_rows} rows, not {file.rows}")
        there = set(source.schema_arrow.names)
        if missing := [name for name in file_schema(table).names if name not in there]:
            raise pa.ArrowInvalid(f"it has no column {', '.join(missing)}")
        for group in range(source.num_row_groups):
            rows = source.read_row_group(group, None if every_byte else ["capture"], use_threads=False)
            captures: Any = rows["capture"]
            found.update({one["values"]: one["counts"] for one in captures.value_counts().to_pylist()})
    return found
