"""Tables of a lake as record batches, without Spark: which files have the requested rows, and the rows in them."""

from __future__ import annotations

import datetime
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from ipaddress import ip_address, ip_network
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import ReadOptions, StreamStats
from msmqwire.capture.stats import FrameCounts
from msmqwire.errors import LakeError
from msmqwire.spark.lake.accounting import SourceAccount
from msmqwire.spark.lake.committing import Lake, Pending
from msmqwire.spark.lake.rewriting import parquet_file
from msmqwire.spark.lake.schemas import table_schema
from msmqwire.spark.lake.storage import LakeOptions, Storage
from msmqwire.spark.lake.writing import NO_DAY, WrittenFile

_LOG = logging.getLogger(__name__)
_NANOSECONDS = 10**9
_DAY = 86_400 * _NANOSECONDS
_BY_NAME = ("unsupported_links", "unsupported_encapsulations")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Within:
    """A condition on rows: the value of a column is in one of some ranges; a null is in none.

    Attributes
    ----------
    column : str
    ranges : tuple of (Any, Any)
        The least and the greatest value; None: no bound.
    """

    column: str
    ranges: tuple[tuple[Any, Any], ...]

    def mask(self, least: Any, greatest: Any) -> Any:
        """Which intervals from ``least`` to ``greatest`` may have such a value; null where the interval is unknown."""
        found = [
            pc.and_kleene(
                pa.scalar(True) if low is None else pc.greater_equal(greatest, pa.scalar(low, greatest.type)),
                pa.scalar(True) if high is None else pc.less_equal(least, pa.scalar(high, least.type)),
            )
            for low, high in self.ranges
        ]
        return reduce(pc.or_kleene, found) if found else pa.repeat(False, len(least))


def time_within(since: int | None, until: int | None) -> list[Within]:
    """The conditions on files with rows from ``since`` on and before ``until``, in nanoseconds since 1970."""
    if since is None and until is None:
        return []
    last = None if until is None else until - 1
    days = [None if one is None else _EPOCH.date() + datetime.timedelta(one // _DAY) for one in (since, last)]
    times = [None if one is None else _EPOCH + datetime.timedelta(microseconds=one // 1000) for one in (since, last)]
    return [Within("day", ((days[0], days[1]),)), Within("time", ((times[0], times[1]),))]


def _pruned(files: pa.Table, conditions: Iterable[Within]) -> pa.Table:
    """The files that may have rows that meet all conditions."""
    for one in conditions:
        if one.column == "day" and "partition.day" in files.column_names:
            # Rows without a time are in files without a day
            least = greatest = files["partition.day"]
            unknown = False
        elif f"min.{one.column}" in files.column_names:
            # A file without statistics may have any row
            least, greatest = files[f"min.{one.column}"], files[f"max.{one.column}"]
            unknown = True
        else:
            continue
        files = files.filter(pc.fill_null(one.mask(least, greatest), unknown))
    return files


def open_lake(lake: str | os.PathLike[str], options: LakeOptions | None = None) -> Lake:
    """A lake, to be read.

    Raises
    ------
    LakeError
        It is not a lake.
    """
    return Lake(Storage.of(lake, options))


@dataclass(frozen=True)
class LakeFile:
    """A file of a table.

    Attributes
    ----------
    path : str
        Relative to the table.
    size : int
    day : datetime.date or None
        The day of its rows, if they have one.
    is_pending : bool
        Whether the table lacks it yet: no rows of it are replaced or deleted.
    """

    path: str
    size: int
    day: datetime.date | None
    is_pending: bool = False


@dataclass(frozen=True)
class LakeScan:
    """The files of one table, as of one version; it can be sent to other processes.

    Attributes
    ----------
    storage : Storage
    table : str
    files : tuple of LakeFile
    pending : Pending
        What the table lacks of the last run.
    """

    storage: Storage
    table: str
    files: tuple[LakeFile, ...]
    pending: Pending

    @classmethod
    def of(
        cls,
        store: Lake,
        table: str,
        conditions: Sequence[Within] = (),
        *,
        run: int | None = None,
        skip_damaged: bool = False,
    ) -> LakeScan:
        """The files of a table that may have rows that meet all conditions; those that it lacks yet may have any rows.

        Parameters
        ----------
        store : Lake
        table : str
        conditions : sequence of Within
        run : int, optional
            As this run left the table.
        skip_damaged : bool
            Leave out files that are missing or malformed, with a warning in the log for each.

        Raises
        ------
        ValueError
            There is no such table or run.
        LakeError
            Its log does not reach back so far.
        """
        found = store.table(table)
        if run is not None and not 0 < run <= store.run:
            raise ValueError(f"run={run} is not one of 1 to {store.run}")
        # Before the table is read: it may take over the last run meanwhile
        pending = store.pending(found.name) if run in (None, store.run) else Pending(found.name)
        files: list[LakeFile] = []
        if found.exists:
            version = None if run is None else found.version_of(run)
            if run is not None and version is None:
                raise LakeError(f"{store.storage.path(found.name)}: its log does not reach back to run {run}")
            files = _sorted(_pruned(found.active(version), conditions))
        added = []
        for path in pending.paths:
            try:
                added.append(store.written(found.name, path))
            except LakeError as error:
                # Another process may have added it to the table, merged it and deleted it since
                if not store.pending(found.name):
                    return cls.of(store, table, conditions, run=run, skip_damaged=skip_damaged)
                if not skip_damaged:
                    raise
                _skip(str(error))
        files += (LakeFile(one.path, one.size, _day_of(one), True) for one in added)
        return cls(store.storage, found.name, tuple(files), pending)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table."""
        return table_schema(self.table)

    def batches(
        self, columns: Collection[str] | None = None, *, skip_damaged: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """The rows of the files; every column by default. With ``skip_damaged`` files that cannot be read are logged.

        Raises
        ------
        ValueError
            There is no such column.
        LakeError
            A file is missing.
        """
        schema = self.schema
        names = schema.names if columns is None else list(columns)
        if unknown := set(names) - set(schema.names):
            raise ValueError(
                f"{', '.join(sorted(unknown))}: no such column of {self.table}; it has {', '.join(schema.names)}"
            )
        wanted = pa.schema([schema.field(name) for name in names])
        # Without any column the number of rows is unknown: read one
        read = list(dict.fromkeys([*self.pending.columns, *(name for name in names if name != "day")]))
        for file in self.files:
            try:
                with parquet_file(self.storage, f"{self.table}/{file.path}") as source:
                    there = set(source.schema_arrow.names)
                    for batch in source.iter_batches(
                        columns=[name for name in read if name in there], use_threads=False
                    ):
                        if not file.is_pending:
                            batch = self.pending.kept(batch)
                        arrays: list[Any] = []
                        for field in wanted:
                            if field.name == "day":
                                arrays.append(pa.repeat(pa.scalar(file.day, pa.date32()), len(batch)))
                            elif field.name in there:
                                arrays.append(batch[field.name].cast(field.type))
                            else:
                                arrays.append(pa.nulls(len(batch), field.type))
                        yield pa.RecordBatch.from_arrays(arrays, schema=wanted)
            except (FileNotFoundError, LakeError) as error:
                problem = str(error)
                if isinstance(error, FileNotFoundError):
                    path = f"{self.storage.path(self.table)}/{file.path}"
                    problem = f"{path}: is gone: it is lost, or a vacuum has deleted it since this read began"
                if not skip_damaged:
                    raise LakeError(problem) from None
                _skip(problem)

    def there(self) -> LakeScan:
        """The same of files that are there and have the size that the log says; the others are logged."""
        sizes = self.storage.sizes([f"{self.table}/{file.path}" for file in self.files])
        there = []
        for file, size in zip(self.files, sizes, strict=True):
            if size == file.size:
                there.append(file)
            else:
                found = "is missing" if size is None else f"has {size} bytes, not {file.size}"
                _skip(f"{self.storage.path(self.table)}/{file.path}: {found}")
        return replace(self, files=tuple(there))


@dataclass(frozen=True)
class Selection:
    """Rows of a table by their time, addresses and captures.

    Attributes
    ----------
    since, until : int or None
        Nanoseconds since 1970: from ``since`` on, and before ``until``.
    addresses : tuple of str
        Addresses and networks; the sender or the receiver is in one of them.
    captures : tuple of str or None
        Names, as the column ``file`` has them.
    skip_damaged : bool
        Skip files that cannot be read.
    """

    since: int | None = None
    until: int | None = None
    addresses: tuple[str, ...] = ()
    captures: tuple[str, ...] | None = None
    skip_damaged: bool = False

    def check(self, table: str) -> None:
        """Refuse a selection of rows that a table cannot have.

        Raises
        ------
        ValueError
            ``accounting`` is to be read by time or address.
        """
        if table.lower() == "accounting" and (self.since is not None or self.until is not None or self.addresses):
            raise ValueError(
                "since, until, addresses: accounting has rows of captures; filter on first_time and last_time"
            )

    def conditions(self) -> list[Within]:
        """The conditions on files that have such rows."""
        names = () if self.captures is None else (Within("file", tuple((name, name) for name in self.captures)),)
        return [*time_within(self.since, self.until), *names]

    def scan(self, store: Lake, table: str, run: int | None = None) -> LakeScan:
        """The files that may have such rows."""
        return LakeScan.of(store, table, self.conditions(), run=run, skip_damaged=self.skip_damaged)

    def rows(self, scan: LakeScan, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """These rows of the files of a scan, with some columns."""
        masks: list[tuple[str, Callable[[Any], Any]]] = []
        if self.since is not None:
            since = pa.scalar(self.since)
            masks.append(("time_ns", lambda times: pc.greater_equal(times, since)))
        if self.until is not None:
            until = pa.scalar(self.until)
            masks.append(("time_ns", lambda times: pc.less(times, until)))
        if self.captures is not None:
            files = pa.array(self.captures, pa.string())
            masks.append(("file", lambda names: pc.is_in(names, files)))
        networks = [ip_network(name, strict=False) for name in self.addresses]
        ends = ("src", "dst") if networks else ()
        names = list(dict.fromkeys([*columns, *(name for name, _ in masks), *ends]))
        for batch in scan.batches(names, skip_damaged=self.skip_damaged):
            found = [mask(batch[name]) for name, mask in masks]
            if networks:
                found.append(pc.or_(*(_is_in(batch[name], networks) for name in ends)))
            yield (batch.filter(reduce(pc.and_kleene, found)) if found else batch).select(columns)


def batches(
    lake: str | os.PathLike[str],
    table: str,
    columns: Collection[str] | None = None,
    *,
    run: int | None = None,
    since: datetime.datetime | int | None = None,
    until: datetime.datetime | int | None = None,
    addresses: Iterable[str] = (),
    captures: Iterable[str] | None = None,
    skip_damaged: bool = False,
    lake_options: LakeOptions | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read a table of a lake without Spark, as of one run; a table that a lake does not have has no rows.

    Parameters
    ----------
    lake : path or URI
    table : str
        One of ``capture.TABLES``, ``faults`` or ``accounting``.
    columns : collection of str, optional
        In this order.
    run : int, optional
        As this run left the table; default: the last one.
    since, until : datetime or int, optional
        Only rows with a ``time`` from ``since`` on, and before ``until``; an int is nanoseconds since 1970.
    addresses : iterable of str
        Only rows whose sender or receiver has one of these addresses, or is in one of these networks.
    captures : iterable of str, optional
        Only rows of captures with these names, as the column ``file`` has them.
    skip_damaged : bool
        Skip files that are missing or cannot be read, with a warning in the log for each.
    lake_options : mapping of str to str, optional
        As in ``pipeline.run``.

    Yields
    ------
    pyarrow.RecordBatch

    Raises
    ------
    ValueError
        There is no such table, column or run, or ``accounting`` is to be read by time or address.
    LakeError
        It is not a lake, or files of this run are gone.

    Examples
    --------
    >>> from msmqwire.spark import lake
    >>> sum(len(batch) for batch in lake.batches("lake", "topology", ["type"]))  # doctest: +SKIP
    """
    chosen = ReadOptions(since=since, until=until, addresses=tuple(addresses))
    names = None if captures is None else tuple(captures)
    selection = Selection(chosen.since, chosen.until, tuple(chosen.addresses), names, skip_damaged)
    selection.check(table)
    scan = selection.scan(open_lake(lake, lake_options), table, run)
    yield from selection.rows(scan, scan.schema.names if columns is None else list(columns))


def _skip(problem: str) -> None:
    _LOG.warning("skipped: %s", problem)


def _is_in(addresses: Any, networks: Sequence[Any]) -> Any:
    """Return which addresses are in one of some networks; an address of IPX is in none."""
    found = []
    for address in addresses.unique().to_pylist():
        try:
            is_in = address is not None and any(ip_address(address) in network for network in networks)
        except ValueError:
            is_in = False
        if is_in:
            found.append(address)
    return pc.is_in(addresses, pa.array(found, pa.string()))


def _sorted(files: pa.Table) -> list[LakeFile]:
    names = [name for name in ("path", "size_bytes", "partition.day") if name in files.column_names]
    found = (
        LakeFile(one["path"], one["size_bytes"], one.get("partition.day")) for one in files.select(names).to_pylist()
    )
    return sorted(found, key=lambda file: file.path)


def _day_of(file: WrittenFile) -> datetime.date | None:
    return None if file.day in (None, NO_DAY) else datetime.date.fromisoformat(str(file.day))


def totals(
    lake: str | os.PathLike[str], *, skip_damaged: bool = False, lake_options: LakeOptions | None = None
) -> tuple[SourceAccount, list[str]]:
    """The sums of the counts of all captures of a lake, and why other files cannot be read."""
    total, problems = SourceAccount(""), []
    names = [item.name for item in fields(FrameCounts)]
    for batch in batches(lake, "accounting", skip_damaged=skip_damaged, lake_options=lake_options):
        for row in batch.to_pylist():
            if row["problem"] is not None:
                problems.append(str(row["problem"]))
            elif row["duplicate_of"] is None:
                counts: dict[str, Any] = {name: row[name] for name in (*names, "encrypted", "unread")}
                maps = (*_BY_NAME, "rows", "faults", "deleted")
                counts |= {name: dict(row[name] or ()) for name in maps} | {"streams": StreamStats(**row["streams"])}
                total.add(SourceAccount(row["file"], **counts))
    total.rows = {name: count - total.deleted.get(name, 0) for name, count in total.rows.items()}
    return total, problems
