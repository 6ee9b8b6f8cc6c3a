"""Record batches of any table as plain columns, whatever the types of their source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from msmqwire.columns.arrow_arrays import integers
from msmqwire.columns.plain import equals_guid, plain
from msmqwire.insight._column import NULL_NUMBER, Column
from msmqwire.insight.arrays import numbers, pc, truths
from msmqwire.wire.guids import NIL
from msmqwire.wire.ports import SESSION_PORT

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A place is the number of the file times this, and the number of the frame.
_FILE = 1 << 40

MINUTE = 60_000_000_000  # nanoseconds

#: The type of the places of a group in results.
FRAMES = pa.list_(pa.struct([("file", pa.string()), ("frame", pa.int64())]))


class Files:
    """The files of rows, numbered in the order of their appearance."""

    def __init__(self) -> None:
        self.names: list[str | None] = []
        self._numbers: dict[str | None, int] = {}

    def number(self, name: str | None) -> int:
        """The number of a file."""
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]

    def add(self, file: Any) -> None:
        """Number the files of rows that wait, so that files of later rows come after them."""
        for name in (file.dictionary if pa.types.is_dictionary(file.type) else plain(file).unique()).to_pylist():
            self.number(name)

    def places(self, file: Any, frame: Any) -> Any:
        """The places of rows from their columns ``file``, which may be a dictionary, and ``frame``."""
        encoded = file if pa.types.is_dictionary(file.type) else file.dictionary_encode()
        known = np.array([self.number(name) for name in encoded.dictionary.to_pylist()] or [0], np.int64)
        return integers(known[numbers(encoded.indices)] * _FILE + numbers(frame))

    def frames(self, places: Any) -> Any:
        """Lists of places as lists of structs with the members ``file`` and ``frame``: the type ``FRAMES``."""
        flat = numbers(places.flatten())
        names = pa.array(self.names, pa.string())
        structs = pa.StructArray.from_arrays(
            [names.take(integers(flat // _FILE)), integers(flat % _FILE)], ["file", "frame"]
        )
        offsets = numbers(places.offsets)
        return pa.ListArray.from_arrays(integers(offsets - offsets[0]).cast(pa.int32()), structs)


def frames_text(frames: Iterable[Mapping[str, Any]], *, files: bool = True) -> str:
    """Frames of a row as text: their numbers, after the name of their file, without its folder, if it is wanted."""
    by_file: dict[str, list[str]] = {}
    for each in frames:
        by_file.setdefault(PurePath(each["file"] or "").name, []).append(str(each["frame"]))
    return "; ".join(" ".join([file, *numbers] if files else numbers) for file, numbers in by_file.items())


def seen_text(first: datetime | None, last: datetime | None) -> str:
    """The first and last time of a row as text: to the second, and once if they are equal."""
    if first is None or last is None:
        return ""
    begin, end = f"{first:%Y-%m-%d %H:%M:%S}", f"{last:%Y-%m-%d %H:%M:%S}"
    if begin == end:
        return begin
    return f"{begin} – {end.removeprefix(begin[:11])}"


class Rows:
    """The rows of a record batch.

    Dictionaries are decoded and extension types removed: text and addresses are strings; GUIDs are strings, or 16
    bytes. ``time`` is nanoseconds since 1970 (Spark's microseconds are multiplied, unless there is ``time_ns``).

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    place : array of int64
        The file and frame of each row, see ``Files``.
    """

    def __init__(self, batch: pa.RecordBatch, files: Files) -> None:
        self.batch = batch
        self._files = files
        self._plain: dict[str, Any] = {}
        self._columns: dict[str, Column] = {}
        self.place = files.places(self._keys("file"), self["frame"])

    def __len__(self) -> int:
        return self.batch.num_rows

    def __contains__(self, name: str) -> bool:
        return name in self.batch.schema.names

    def __getitem__(self, name: str) -> Any:
        if name not in self._plain:
            self._plain[name] = self._time() if name == "time" else plain(self.batch.column(name))
        return self._plain[name]

    def _time(self) -> Any:
        if "time_ns" in self:
            return plain(self.batch.column("time_ns")).cast(pa.int64())
        return self.batch.column("time").cast(pa.timestamp("ns", "UTC")).cast(pa.int64())

    def column(self, name: str) -> Column:
        """A column for groups; texts are numbered once for all of these."""
        if name not in self._columns:
            self._columns[name] = Column(self._keys(name))
        return self._columns[name]

    def _keys(self, name: str) -> Any:
        """A column, without extension types but with its dictionary."""
        column = self.batch.column(name)
        if name == "time" or not pa.types.is_dictionary(column.type) or column.type.value_type != pa.string():
            return self[name]
        return column

    def array(self, name: str) -> NDArray[np.int64]:
        """A column of numbers, ``NULL_NUMBER`` where they are null."""
        return self.column(name).array

    def has(self, name: str) -> NDArray[np.bool_]:
        """Which rows have a value in a column."""
        present: NDArray[np.bool_] = self.array(name) != NULL_NUMBER
        return present

    def equals(self, name: str, value: str) -> NDArray[np.bool_]:
        """Which rows have this text in a column; in a dictionary each value is compared once."""
        column = self._keys(name)
        if not pa.types.is_dictionary(column.type):
            return truths(pc.equal(column, value))
        if not len(column.dictionary):
            return np.zeros(len(self), np.bool_)
        matching = truths(pc.equal(column.dictionary, value))
        places = self.array(name)
        found: NDArray[np.bool_] = matching[np.maximum(places, 0)] & (places != NULL_NUMBER)
        return found

    @cached_property
    def faults(self) -> NDArray[np.bool_]:
        """Which rows have a fault."""
        return has_value(self["fault"])

    @cached_property
    def minute(self) -> NDArray[np.int64]:
        """The minute of each row, in nanoseconds since 1970; ``NULL_NUMBER`` where there is no time."""
        time = self.array("time")
        # numpy divides by one number faster than it takes remainders
        return np.where(time == NULL_NUMBER, NULL_NUMBER, time // MINUTE * MINUTE)

    def chosen(self, mask: NDArray[np.bool_]) -> Rows:
        """Some of the rows, which are few: without the dictionaries of all."""
        few = self.batch.take(integers(np.flatnonzero(mask)))
        columns = [plain(each) if pa.types.is_dictionary(each.type) else each for each in few.columns]
        return Rows(pa.RecordBatch.from_arrays(columns, few.schema.names), self._files)

    def table(self, mask: Any = None, **columns: Any) -> pa.Table:
        """A table of these columns of the selected rows, with ``place`` and ``time``; a scalar is repeated."""
        made = {"place": self.place, "time": self["time"]}
        for name, value in columns.items():
            made[name] = value if isinstance(value, (pa.Array, pa.ChunkedArray)) else pa.repeat(value, len(self))
        table = pa.table(made)
        return table if mask is None else table.filter(mask)

    def exploded(self, lists: Any, name: str, **columns: Any) -> pa.Table:
        """As ``table``, with a row for each item of a column of lists, in the column ``name``."""
        table = self.table(**columns).take(pc.list_parent_indices(lists))
        return table.append_column(name, plain(pc.list_flatten(lists)))


def has_value(column: Any) -> NDArray[np.bool_]:
    """Which rows of a column have a value; most columns have none at all."""
    return np.zeros(len(column), np.bool_) if column.null_count == len(column) else truths(column.is_valid())


def own_managers(table: str, rows: Rows) -> tuple[Any, Any]:
    """The GUID of the queue manager at the sender of each row of messages or sessions, and which rows show one."""
    if table == "messages":
        # A message that was forwarded has another source
        guid, shown = rows["source_queue_manager"], pc.equal(rows["hop_count"], 0)
    else:
        # A connection has both GUIDs; the side at port 1801 is the server
        own = pc.if_else(pc.equal(rows["src_port"], SESSION_PORT), rows["server_guid"], rows["client_guid"])
        guid = pc.coalesce(rows["queue_manager"], own)
        shown = guid.is_valid()
    return guid, pc.fill_null(pc.and_not(shown, equals_guid(guid, NIL)), False)
