"""A summary of what captures, or the tables of a lake, show: hosts, queues, sessions, discovery, problems."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from msmqwire.capture import ReadOptions, read_tables
from msmqwire.capture.options import LARGE_BLOCK_SIZE
from msmqwire.columns.plain import guid_text, records
from msmqwire.errors import counted
from msmqwire.insight._column import Column
from msmqwire.insight.arrays import pc
from msmqwire.insight.groups import Groups
from msmqwire.insight.rows import FRAMES, Files, Rows
from msmqwire.insight.sections import COLUMNS, FLOWS, SECTIONS, Section, contributions
from msmqwire.insight.views import conversations, hosts, timeline
from msmqwire.insight.waiting import WaitingBatches

if TYPE_CHECKING:
    from msmqwire.capture.files.sources import Source

_GUIDS = frozenset({"queue_manager", "source_queue_manager", "request_id"})
_TIME = pa.timestamp("ns", "UTC")
_TEXT = frozenset(
    {"in_table", "file", "address", "src", "dst", "event", "detail", "queue_manager", "name", "evidence", "queue",
     "sender", "source_queue_manager", "class", "request_id", "client", "machine", "operation", "object", "rule",
     "unverified", "problem", "field"}
)  # fmt: skip
_TYPES: dict[str, pa.DataType] = {
    "negative": pa.bool_(),
    "applied": pa.bool_(),
    **dict.fromkeys(("minute", "first_seen", "last_seen"), _TIME),
    **dict.fromkeys(_TEXT, pa.string()),
}
#: The types of columns that are others in one section: message classes are numbers, codes of problems are not.
_TYPES_IN = {
    ("problems", "code"): pa.string(),
    **dict.fromkeys((("hosts", "roles"), ("hosts", "evidence"), ("conversations", "queues")), pa.list_(pa.string())),
}
#: The groups that rows are added to; ``queues`` come from ``flows``.
_GROUPS = {name: section for name, section in SECTIONS.items() if name != "queues"} | {"flows": FLOWS}
_GROUPS_OF = {"queues": "flows"}


def schema(name: str) -> pa.Schema:
    """The Arrow schema of a section of a summary."""
    columns = [
        (column, _TYPES_IN.get((name, column), _TYPES.get(column, pa.int64()))) for column in SECTIONS[name].columns
    ]
    return pa.schema([*columns, ("frames", FRAMES)])


class Summary:
    """A summary that grows as rows are added; memory grows with what is distinct, not with the rows.

    Attributes
    ----------
    limits : dict of str to int
        The most rows of each section. Where there are more, those with the most packets are kept.

    Examples
    --------
    >>> summary = summarize("examples/*.pcap*")
    >>> for row in summary.section("queues").select(["queue", "sender", "messages", "bytes"]).to_pylist()[1:3]:
    ...     print(*row.values())
    DIRECT=TCP:10.20.1.25\\private$\\orders 10.20.1.10 1 3464
    PRIVATE=43cd8907-394c-8f11-4445-9078909ea0fc\\3 10.20.1.25 1 328
    """

    def __init__(self, limits: dict[str, int] | None = None) -> None:
        unknown = set(limits or ()) - SECTIONS.keys()
        if unknown:
            raise ValueError(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
        self.limits = {name: section.limit for name, section in SECTIONS.items()} | (limits or {})
        self._files = Files()
        self._groups = {
            name: _groups(section, self.limits["queues" if name == "flows" else name])
            for name, section in _GROUPS.items()
        }
        self._waiting: dict[str, WaitingBatches] = {}
        self._rows: Counter[str] = Counter()

    def __repr__(self) -> str:
        lines = [f"{counted(rows, 'row')} of {table}" for table, rows in self._rows.most_common() if rows]
        sizes = {name: self.section(name).num_rows for name in SECTIONS}
        lines += [f"section {name}: {counted(size, 'row')}" for name, size in sizes.items() if size]
        files = counted(len(self.section("totals")["file"].unique()), "file")
        return "\n  ".join([f"<Summary of {files}", *lines]) + ">"

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table, with at least its ``COLUMNS``.

        Enumerations, addresses and texts may be dictionaries, GUIDs text or 16 bytes; times may be Spark's.

        Raises
        ------
        KeyError
            A column is missing, or the table unknown.
        """
        names = set(batch.schema.names)
        missing = [name for name in COLUMNS[table] if name not in names]
        if missing:
            raise KeyError(f"{table}: no column {', '.join(missing)}")
        # Columns that others read would be copied
        batch = batch.select([*COLUMNS[table], *(["time_ns"] if "time_ns" in names else [])])
        self._files.add(batch.column("file"))
        self._rows[table] += batch.num_rows
        for ready in self._waiting.setdefault(table, WaitingBatches()).add(batch):
            self._add(table, ready)

    def _add(self, table: str, batch: pa.RecordBatch) -> None:
        rows = Rows(batch, self._files)
        time, place = rows.column("time"), Column(rows.place)
        for each in contributions(table, rows):
            seen = time if each.time is None else each.time
            self._groups[each.section].count(
                {**each.columns, "first_seen": seen, "last_seen": seen},
                place if each.place is None else each.place,
                each.mask,
                each.rows,
            )

    def _table(self, name: str) -> pa.Table | None:
        """Groups with all rows so far."""
        for table, waiting in self._waiting.items():
            for ready in waiting.take():
                self._add(table, ready)
        return self._groups[name].table()

    def section(self, name: str) -> pa.Table:
        """A section as a table; ``frames`` are the first places of each row.

        The rows with the most packets are first; those of ``timeline`` and ``minutes`` are in the order of time.

        Raises
        ------
        KeyError
            There is no such section.
        """
        wanted = schema(name)
        table = self._view(name)
        if table is None:
            return wanted.empty_table()
        columns: dict[str, Any] = {each: table[each] for each in table.schema.names}
        columns |= {each: guid_text(columns[each]) for each in _GUIDS & columns.keys()}
        columns[SECTIONS[name].rows] = table["rows"]
        columns["frames"] = self._files.frames(table["places"].combine_chunks())
        if name == "sessions":
            # Connections that had the same ports one after the other overlap
            missing = pc.subtract(pc.subtract(table["end"], table["start"]), table["bytes"])
            columns["missing_bytes"] = pc.max_element_wise(missing, 0)
        made = pa.table({field.name: columns[field.name].cast(field.type) for field in wanted}, schema=wanted)
        if name == "minutes":
            return made.sort_by([("minute", "ascending"), ("in_table", "ascending")])
        return made.filter(pc.greater(made["copies"], 1)) if name == "repeated" else made

    def _view(self, name: str) -> pa.Table | None:
        """The groups of a section, with what others add to them."""
        if name == "timeline":
            return timeline(self._table(name), self._table("flows"))
        table = self._table(_GROUPS_OF.get(name, name))
        if table is None:
            return None
        if name == "hosts":
            return hosts(table)
        if name == "conversations":
            return conversations(table, self._table("flows"))
        if name == "queues":
            queues = _groups(SECTIONS[name], self.limits[name])
            queues.merge(table)
            return queues.table()
        return table

    def records(self, name: str) -> list[dict[str, Any]]:
        """A section as objects, with times as ``datetime``, which has microseconds."""
        return records(self.section(name))

    def omitted(self, name: str) -> tuple[int, int]:
        """The rows of a section that were left out because of its limit, and the packets that they counted."""
        self._table(_GROUPS_OF.get(name, name))
        groups = self._groups[_GROUPS_OF.get(name, name)]
        return groups.omitted_groups, groups.omitted_rows

    def rows(self, table: str) -> int:
        """The rows of a table that were added."""
        return self._rows[table]


def _groups(section: Section, limit: int) -> Groups:
    return Groups(section.keys, {**section.values, "first_seen": "min", "last_seen": "max"}, limit)


def summarize(
    source: Source | Iterable[tuple[str, pa.RecordBatch]],
    limits: dict[str, int] | None = None,
    options: ReadOptions | None = None,
) -> Summary:
    """Summarize captures, or rows of any source.

    Parameters
    ----------
    source : path, folder, glob, URI, binary file object, or a list of these; or iterable of (str, pyarrow.RecordBatch)
        Captures as for ``capture.open``; or pairs of a table's name and a record batch with at least the columns
        ``COLUMNS`` of the table, as ``capture.read_tables`` reads them.
    limits : dict of str to int, optional
        As in ``Summary``.
    options : ReadOptions, optional
        What to read of captures, and how.
    """
    summary = Summary(limits)
    for table, batch in _batches(source, options):
        summary.add(table, batch)
    return summary


def _batches(source: Any, options: ReadOptions | None) -> Iterator[tuple[str, pa.RecordBatch]]:
    if not isinstance(source, (str, os.PathLike)) and not hasattr(source, "read"):
        items = (item for item in source)  # a reader is iterated once
        first = list(islice(items, 1))
        source = chain(first, items)
        if not first or isinstance(first[0], tuple):
            if options is not None:
                raise ValueError("options are for captures; other rows are summarized as they are")
            yield from source
            return
    options = options or ReadOptions(block_size=LARGE_BLOCK_SIZE)
    with read_tables(source, options=ReadOptions.of(options, {"columns": COLUMNS, "guid": "binary"})) as reader:
        yield from reader
