"""Delete rows of a lake by day, capture, address or condition.

A deletion is a run: its rows of ``accounting`` name the places of the deleted rows, and the tables take it over as they
take over new files. A capture that is decoded again is written without these places.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from msmqwire.capture import ReadOptions
from msmqwire.errors import LakeError
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.places import PLACE, all_but, packed, places, united, unlike
from msmqwire.spark.lake.scanning import LakeScan, Selection, Within
from msmqwire.spark.lake.schemas import LAKE_TABLES, file_schema
from msmqwire.spark.lake.storage import LakeOptions, Storage

# Messages come first, and faults last: the changes and faults of a deleted row go with it
_ORDER = sorted(LAKE_TABLES, key=lambda table: (table != "messages", table == "faults"))


def delete(
    lake: str | os.PathLike[str],
    *,
    before: datetime.date | None = None,
    captures: Iterable[str] | None = None,
    addresses: Iterable[str] = (),
    where: str | None = None,
    dry_run: bool = False,
    lake_options: LakeOptions | None = None,
) -> dict[str, int]:
    """Delete rows that meet all of some conditions; runs may commit meanwhile.

    The rows do not come back: a capture that is decoded again, as it has grown or with ``overwrite=True``, is written
    without them. The places of the rows are kept, their content is not; ``accounting`` counts them in ``deleted``.
    ``vacuum`` deletes the files that have them.

    Parameters
    ----------
    lake : path or URI
    before : datetime.date, optional
        Rows of earlier days, in UTC.
    captures : iterable of str, optional
        Rows of captures with these names or fingerprints.
    addresses : iterable of str
        Rows whose sender or receiver has one of these addresses, or is in one of these networks.
    where : str, optional
        A condition in DuckDB's SQL, of columns. Tables without one of these columns are left out, but for the
        notifications and faults of a deleted message, and the faults of other deleted rows.
    dry_run : bool
        Delete nothing.
    lake_options : mapping of str to str, optional

    Returns
    -------
    dict of str to int
        How many rows were deleted, or would be, by table.

    Raises
    ------
    ValueError
        There is no condition, or an address is malformed.
    SqlError
        DuckDB refuses the condition, or no table has its columns.
    LakeError
        It is not a lake, or it has no capture of a name.

    Examples
    --------
    >>> from msmqwire.spark import lake
    >>> lake.delete("lake", addresses=["10.20.1.9"], dry_run=True)  # doctest: +SKIP
    """
    networks = tuple(ReadOptions(addresses=tuple(addresses)).addresses)
    if before is None and captures is None and not networks and where is None:
        raise ValueError("before, captures, addresses, where: name at least one, or every row would be deleted")
    until = None if before is None else (before - datetime.date(1970, 1, 1)).days * 86_400 * 10**9
    names = None if captures is None else tuple(captures)
    store = Lake(Storage.of(lake, lake_options))
    while True:
        if not dry_run:
            store.apply_committed_runs()
        chosen = None if names is None else _fingerprints(store, names)
        found = _Found(store, Selection(until=until, addresses=networks), chosen, where)
        # No frame of a capture that is deleted by its name comes back, in no other table either
        whole = chosen if before is None and where is None and not networks else None
        if dry_run or not found.places or commit_deletions(store, found.places, whole or ()):
            return found.counts
        # Another run has come first
        store.look()


def commit_deletions(
    store: Lake,
    found: Mapping[str, list[pa.Table]],
    whole: Iterable[str] = (),
    *,
    vanished: Mapping[str, Mapping[str, tuple[int, pa.Table]]] = MappingProxyType({}),
    notes: Mapping[str, str] | None = None,
) -> bool:
    """Make the rows at some places, by capture, deleted ones; False when another run has come first.

    Parameters
    ----------
    store : Lake
    found : mapping of str to list of pyarrow.Table
    whole : iterable of str
        Captures of which no frame that the lake had comes back.
    vanished : mapping of str to (mapping of str to (int, pyarrow.Table))
        How many more rows of captures, by table, are deleted at places that are unknown; and the places that are left.
    notes : mapping of str to str, optional
        For the history.
    """
    every = set(whole)
    rows = [
        row
        for row in store.read_accounting().to_pylist()
        if row["capture"] in found and row["duplicate_of"] is None and row["problem"] is None
    ]
    if lost := found.keys() - {row["capture"] for row in rows}:
        run = store.run
        store.look()
        if store.run != run:
            return False  # it has replaced the capture meanwhile
        raise LakeError(f"{store.storage.uri}: accounting has no row of capture {min(lost)}: run msmqwire lake check")
    total = 0
    for row in rows:
        there = unlike(pa.concat_tables(found[row["capture"]]), row["deletions"])
        deleted = Counter(dict(row["deleted"] or ()))
        before = deleted.total()
        deleted.update(there["table"].to_pylist())
        for table, (count, left) in vanished.get(row["capture"], {}).items():
            deleted[table] += count
            there = pa.concat_tables([there, all_but(left, table, row["frames"])])
        total += deleted.total() - before
        new = packed(there, row["frames"] if row["capture"] in every else 0)
        row.update(files=[], replaces=[], deleted=sorted(deleted.items()), deletions=united([row["deletions"], new]))
    known = [one for row in rows if (one := store.known.capture(row["capture"])) is not None]
    notes = {"captures": "0", "rows": "0", "deleted": str(total), **(notes or {})}
    if not store.commit_rows(rows, known, notes=notes):
        return False
    store.apply_committed_runs()
    return True


def _fingerprints(store: Lake, names: Sequence[str]) -> list[str]:
    """The captures with some names or fingerprints."""
    table = store.read_accounting(["capture", "file", "duplicate_of"])
    found: dict[str, set[str]] = defaultdict(set)
    for row in table.to_pylist():
        capture = row["duplicate_of"] or row["capture"]
        if capture is not None:
            found[row["file"]].add(capture)
            found[capture].add(capture)
    if missing := [name for name in names if name not in found]:
        raise LakeError(f"{store.storage.uri}: has no capture {missing[0]}: accounting lists their names in file")
    return sorted({capture for name in names for capture in found[name]})


@dataclass
class _Found:
    """The rows of a lake that meet conditions: how many each table has, and their places by capture."""

    store: Lake
    selection: Selection
    captures: list[str] | None
    where: str | None
    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        condition = None if self.where is None else _Condition(self.where)
        # What goes with rows that are deleted
        others: list[Any] = []
        for table in _ORDER:
            self.counts[table] = 0
            key = [name for name in PLACE if name in file_schema(table).names]
            applies = condition is not None and condition.binds(table)
            for batch in self._rows(table, file_schema(table).names if applies else key):
                mask: Any = pa.repeat(condition is None, len(batch))
                if condition is not None:
                    if applies:
                        mask = condition.mask(batch)
                    if others and table in ("notifications", "faults"):
                        of = "messages" if table == "notifications" else batch["table"]
                        mask = pc.or_(mask, pc.is_in(_texts(batch, of), pa.concat_arrays(others)))
                rows = pa.Table.from_batches([batch.select(key)]).filter(mask)
                self._add(table, rows)
                if condition is not None and len(rows):
                    others.append(_texts(rows.combine_chunks().to_batches()[0], table))
        if condition is not None and not condition.bound:
            condition.refuse(condition.error)

    def _rows(self, table: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        captures = None if self.captures is None else pa.array(self.captures, pa.string())
        conditions = list(self.selection.conditions())
        if self.captures is not None:
            conditions.append(Within("capture", tuple((one, one) for one in self.captures)))
        for batch in self.selection.rows(LakeScan.of(self.store, table, conditions), names):
            yield batch if captures is None else batch.filter(pc.is_in(batch["capture"], captures))

    def _add(self, table: str, rows: pa.Table) -> None:
        self.counts[table] += len(rows)
        captures: list[Any] = rows["capture"].unique().to_pylist()
        for capture in captures:
            of_capture = rows.filter(pc.equal(rows["capture"], pa.scalar(capture)))
            self.places[capture].append(places(of_capture, table))


class _Condition:
    """A condition in DuckDB's SQL on the rows of a table."""

    def __init__(self, text: str) -> None:
        # A condition with a comment would hide what follows it
        self._select = f"SELECT coalesce((\n{text}\n), false) AS found FROM "
        # It imports pandas
        from msmqwire.insight.database import Database

        self._database = Database()
        self.bound = False
        self.error: object = ""

    def refuse(self, why: object) -> NoReturn:
        """Raise the error of a condition that DuckDB refuses, or that is not a condition."""
        from msmqwire.insight.database import SqlError, one_line

        raise SqlError(f"where: {one_line(why) if isinstance(why, Exception) else why}") from None

    def binds(self, table: str) -> bool:
        """Return True if the table has all columns of the condition."""
        import duckdb

        try:
            found = self._run(file_schema(table).empty_table())
        except duckdb.BinderException as error:
            self.error = error
            return False
        except duckdb.Error as error:
            self.refuse(error)
        if found.type != pa.bool_():
            self.refuse("is not a condition: it is neither true nor false")
        self.bound = True
        return True

    def mask(self, batch: pa.RecordBatch) -> Any:
        """Return True if each row meets it."""
        import duckdb

        try:
            found = self._run(pa.Table.from_batches([batch]))
        except duckdb.Error as error:
            self.refuse(error)
        if len(found) != len(batch):
            self.refuse("is not a condition on one row")
        return found.combine_chunks()

    def _run(self, rows: pa.Table) -> Any:
        from msmqwire.insight.sql import rows_without_case

        self._database.connection.register("batch", rows)
        statement = self._select + rows_without_case("batch", rows.schema)
        return self._database.connection.sql(statement).to_arrow_table()["found"]


def _texts(batch: pa.RecordBatch, table: Any) -> Any:
    """The payload of each row, as text: its table, capture, frame and offset."""
    numbers = (batch[name].cast(pa.string()) for name in ("frame", "stream_offset"))
    found: Any = pc.binary_join_element_wise(
        table, batch["capture"], *numbers, " ", null_handling="replace", null_replacement=""
    )
    return found
