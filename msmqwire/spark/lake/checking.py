"""What is in the files of a table of a lake: the rows of each capture, and the files that cannot be read."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from msmqwire.errors import LakeError
from msmqwire.spark.lake.committing import Lake, Pending
from msmqwire.spark.lake.others import explained
from msmqwire.spark.lake.rewriting import ActiveFile, parquet_file, without_copies
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.tables import LakeTable
from msmqwire.spark.lake.writing import written_file


@dataclass
class Contents:
    """What is in the files of a table, with those that it lacks of the last run.

    Attributes
    ----------
    rows : Counter of str
        Rows by capture, each once.
    copies : Counter of str
        How many more there are.
    unreadable : dict of str to str
        The paths of files that are missing or malformed, and what is wrong with each.
    """

    rows: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    unreadable: dict[str, str] = field(default_factory=dict)


def differences(lake: Lake | None, storage: Storage, table: str, said: Counter[str] | None) -> list[str]:
    """How a table differs from the rows by capture that ``accounting`` says, and its files that cannot be read.

    Parameters
    ----------
    lake : Lake or None
        None where ``accounting`` cannot be read.
    storage : Storage
    table : str
    said : Counter of str or None
        None where no rows are said of the table.

    Raises
    ------
    LakeError
        The log of the table cannot be read.
    """
    found = read_contents(lake, storage, table, every_byte=True)
    problems = [f"{table}/{path}: {problem}" for path, problem in found.unreadable.items()]
    problems += [
        f"{table}: {count} rows of capture {capture} are there twice" for capture, count in found.copies.items()
    ]
    if said is not None and found.rows != said:
        if lake is not None:
            # Their files may have other rows than the log says
            with suppress(FileNotFoundError, LakeError):
                said = explained(lake, table, said, found.rows)
        problems += [
            f"{table}: {found.rows[capture]} rows of capture {capture}, but {said[capture]} in accounting"
            for capture in sorted({*said, *found.rows})
            if said[capture] != found.rows[capture]
        ]
    return problems


def read_contents(lake: Lake | None, storage: Storage, name: str, *, every_byte: bool) -> Contents:
    """Read the files of a table.

    Parameters
    ----------
    lake : Lake or None
        None for what only the log of the table has.
    storage : Storage
    name : str
    every_byte : bool
        Read all columns and verify the checksums of their pages, not only the column ``capture``.

    Raises
    ------
    LakeError
        The log of the table cannot be read.
    """
    table = LakeTable(storage, name) if lake is None else lake.table(name)
    while True:
        pending = Pending(name) if lake is None else lake.pending(name)
        version, files = (table.delta.version(), table.files()) if table.exists else (-1, [])
        contents = Contents()
        _read(contents, storage, files, pending, every_byte)
        for path in pending.paths:
            try:
                written = written_file(storage, name, path)
            except LakeError as error:
                contents.unreadable[path] = str(error)
                continue
            added = ActiveFile(path, written.size, None, written.rows, {}, {})
            _read(contents, storage, [added], Pending(name), every_byte)
        # Another process may have replaced and deleted a file
        table.refresh()
        if not contents.unreadable or not table.exists or table.delta.version() == version:
            if name != "accounting" and table.exists and not contents.unreadable:
                _, contents.copies = without_copies(storage, name, files, table.schema, dry_run=True)
                contents.rows -= contents.copies
            return contents


def _read(
    contents: Contents,
    storage: Storage,
    files: list[ActiveFile],
    pending: Pending,
    every_byte: bool,
) -> None:
    table = pending.table
    sizes = storage.sizes([f"{table}/{file.path}" for file in files])
    for file, size in zip(files, sizes, strict=True):
        if size is None:
            contents.unreadable[file.path] = "is missing"
            continue
        if size != file.size:
            contents.unreadable[file.path] = f"has {size} bytes, not {file.size}"
            continue
        try:
            found = _captures(storage, pending, file, every_byte)
        except LakeError as error:
            contents.unreadable[file.path] = str(error.__cause__)
            continue
        except FileNotFoundError:
            contents.unreadable[file.path] = "is missing"
            continue
        contents.rows.update(found)


def _captures(storage: Storage, pending: Pending, file: ActiveFile, every_byte: bool) -> Counter[str]:
    found: Counter[str] = Counter()
    with parquet_file(storage, f"{pending.table}/{file.path}") as source:
        if file.rows is not None and source.metadata.num_rows != file.rows:
            raise pa.ArrowInvalid(f"it has {source.metadata.num_rows} rows, not {file.rows}")
        for group in range(source.num_row_groups):
            rows = source.read_row_group(group, None if every_byte else pending.columns, use_threads=False)
            captures: Any = pending.kept(rows)["capture"]
            found.update({one["values"]: one["counts"] for one in captures.value_counts().to_pylist()})
    return found
