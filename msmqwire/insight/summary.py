"""A summary of what captures, or the tables of a lake, show: hosts, queues, sessions, discovery, problems."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from msmqwire.insight.groups import Groups, numbers, pc
from msmqwire.insight.rows import FRAMES, Files, Rows, guid_text
from msmqwire.insight.sections import SECTIONS, Section, contributions

__all__ = ["Partial", "Summary", "schema", "summarize"]

_GUIDS = frozenset({"queue_manager", "source_queue_manager", "request_id"})
_TIME = pa.timestamp("ns", "UTC")
_TYPES: dict[str, pa.DataType] = {
    "negative": pa.bool_(),
    "applied": pa.bool_(),
    "minute": _TIME,
    "code": pa.string(),
    **dict.fromkeys(("src_port", "dst_port", "version", "message_id"), pa.int64()),
}
#: Which columns of ``code`` are numbers: message classes are, problems are not.
_NUMBERED = {("acknowledgments", "code")}

#: The groups of each section, the names of the files in their places, and what was omitted.
Partial = tuple[dict[str, tuple[pa.Table, int, int]], list[str | None]]


def schema(name: str) -> pa.Schema:
    """The Arrow schema of a section of a summary."""
    section = SECTIONS[name]
    columns: dict[str, pa.DataType] = {
        key: pa.int64() if (name, key) in _NUMBERED else _TYPES.get(key, pa.string()) for key in section.keys
    }
    columns[section.rows] = pa.int64()
    columns |= dict.fromkeys((value for value in section.values if value not in ("start", "end")), pa.int64())
    if name == "sessions":
        columns["missing_bytes"] = pa.int64()
    return pa.schema([*columns.items(), ("first_seen", _TIME), ("last_seen", _TIME), ("frames", FRAMES)])


class Summary:
    """A summary that grows as rows are added; memory grows with what is distinct, not with the rows.

    Attributes
    ----------
    limits : dict of str to int
        The most rows of each section. Where there are more, those with the most packets are kept.

    Examples
    --------
    >>> from msmqwire.capture import read_tables
    >>> from msmqwire.insight import COLUMNS
    >>> summary = summarize(read_tables("examples/*.pcap*", columns=COLUMNS))
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
        self._groups = {name: _groups(section, self.limits[name]) for name, section in SECTIONS.items()}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table, with at least its ``COLUMNS``.

        Enumerations, addresses and texts may be dictionaries, GUIDs text or 16 bytes; times may be Spark's.

        Raises
        ------
        KeyError
            A column is missing, or the table unknown.
        """
        if not batch.num_rows:
            return
        for name, rows in contributions(table, Rows(batch, self._files)):
            rows = rows.append_column("first_seen", rows["time"]).append_column("last_seen", rows["time"])
            self._groups[name].add(rows.drop_columns(["time"]))

    def partial(self) -> Partial:
        """The groups so far, in a form that can be pickled, for ``merge``."""
        groups = {
            name: (table, each.omitted_groups, each.omitted_rows)
            for name, each in self._groups.items()
            if (table := each.table()) is not None
        }
        return groups, self._files.names

    def merge(self, partial: Partial) -> None:
        """Add the groups of another summary, which other rows were added to."""
        groups, names = partial
        for name, (table, omitted_groups, omitted_rows) in groups.items():
            at = table.schema.get_field_index("places")
            places = self._files.renumbered(table["places"].combine_chunks(), names)
            self._groups[name].merge(table.set_column(at, "places", places), omitted_groups, omitted_rows)

    def section(self, name: str) -> pa.Table:
        """A section as a table, the rows with the most packets first; ``frames`` are the first places of each.

        Raises
        ------
        KeyError
            There is no such section.
        """
        wanted = schema(name)
        table = self._groups[name].table()
        if table is None:
            return wanted.empty_table()
        section = SECTIONS[name]
        columns: dict[str, Any] = {section.rows: table["rows"]}
        columns |= {key: guid_text(table[key]) if key in _GUIDS else table[key] for key in section.keys}
        columns |= {key: table[key] for key in (*section.values, "first_seen", "last_seen")}
        columns["frames"] = self._files.frames(table["places"].combine_chunks())
        if name == "sessions":
            # Connections that had the same ports one after the other overlap
            missing = pc.subtract(pc.subtract(table["end"], table["start"]), table["bytes"])
            columns["missing_bytes"] = pc.max_element_wise(missing, 0)
        made = pa.table({field.name: columns[field.name].cast(field.type) for field in wanted}, schema=wanted)
        return made.filter(pc.greater(made["copies"], 1)) if name == "repeated" else made

    def records(self, name: str) -> list[dict[str, Any]]:
        """A section as objects, with times as ``datetime``, which has microseconds."""
        table = self.section(name)
        for at, field in enumerate(table.schema):
            if field.type == _TIME:
                table = table.set_column(at, field.name, table[field.name].cast(pa.timestamp("us", "UTC"), safe=False))
        return table.to_pylist()

    def omitted(self, name: str) -> tuple[int, int]:
        """The rows of a section that were left out because of its limit, and the packets that they counted."""
        groups = self._groups[name]
        return groups.omitted_groups, groups.omitted_rows

    def rows(self, table: str) -> int:
        """The rows of a table that were added."""
        totals = self.section("totals")
        return int(numbers(totals["rows"])[numbers(pc.equal(totals["in_table"], table)).astype(bool)].sum())


def _groups(section: Section, limit: int) -> Groups:
    return Groups(section.keys, {**section.values, "first_seen": "min", "last_seen": "max"}, limit)


def summarize(batches: Iterable[tuple[str, pa.RecordBatch]], limits: dict[str, int] | None = None) -> Summary:
    """Summarize rows: pairs of a table's name and a record batch, as ``capture.read_tables`` reads them.

    Parameters
    ----------
    batches : iterable of (str, pyarrow.RecordBatch)
        With at least the columns ``COLUMNS`` of each table.
    limits : dict of str to int, optional
        As in ``Summary``.
    """
    summary = Summary(limits)
    for table, batch in batches:
        summary.add(table, batch)
    return summary
