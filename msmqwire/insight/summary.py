"""A summary of what captures, or the tables of a lake, show: hosts, queues, sessions, discovery, problems."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from msmqwire.capture import ReadOptions
from msmqwire.columns.plain import records
from msmqwire.errors import counted
from msmqwire.insight.engine import Answers, Engine, columns_needed
from msmqwire.insight.findings import CapturedRows
from msmqwire.insight.query_files import SECTIONS, Section

if TYPE_CHECKING:
    from msmqwire.capture.files.sources import Source

#: The columns of each table that the sections need.
COLUMNS: Mapping[str, tuple[str, ...]] = columns_needed(SECTIONS.values())


class Summary:
    """A summary that grows as rows are added; rows that do not fit in memory are kept in temporary files.

    Parameters
    ----------
    limits : dict of str to int, optional
        The most rows of sections, in place of those of the sections.
    sections : mapping of str to Section, optional
        Other sections than ``SECTIONS``.
    engine : Answers, optional
        Rows that are added elsewhere, with the queries of the sections.
    threads : int
        The threads of a query.

    Attributes
    ----------
    limits : dict of str to int
        The most rows of each section. Where there are more, those with the most packets are kept.
    sections : mapping of str to Section

    Examples
    --------
    >>> summary = summarize("examples/*.pcap*")
    >>> for row in summary.section("queues").select(["queue", "sender", "messages", "bytes"]).to_pylist()[1:3]:
    ...     print(*row.values())
    DIRECT=TCP:10.20.1.25\\private$\\orders 10.20.1.10 1 3464
    PRIVATE=43cd8907-394c-8f11-4445-9078909ea0fc\\3 10.20.1.25 1 328
    """

    def __init__(
        self,
        limits: dict[str, int] | None = None,
        sections: Mapping[str, Section] = SECTIONS,
        engine: Answers | None = None,
        threads: int = 2,
    ) -> None:
        unknown = set(limits or ()) - sections.keys()
        if unknown:
            raise ValueError(f"no section {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
        self.sections = sections
        self.limits = {name: section.limit for name, section in sections.items()} | (limits or {})
        self._engine: Answers = engine or Engine(sections.values(), threads=threads)
        self._found: dict[str, tuple[pa.Table, int, int]] = {}
        self._counted = 0

    def __repr__(self) -> str:
        lines = [f"{counted(rows, 'row')} of {table}" for table, rows in self._engine.rows.most_common() if rows]
        sizes = {name: self.section(name).num_rows for name in self.sections}
        lines += [f"section {name}: {counted(size, 'row')}" for name, size in sizes.items() if size]
        files = counted(self.files, "file")
        return "\n  ".join([f"<Summary of {files}", *lines]) + ">"

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of each table that rows need."""
        return self._engine.columns

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table, with at least its ``COLUMNS``.

        Enumerations, addresses and texts may be dictionaries, GUIDs text or 16 bytes; times may be Spark's.

        Raises
        ------
        KeyError
            A column is missing.
        SqlError
            The rows cannot be stored, as where a disk is full.
        """
        self._engine.add(table, batch)

    def close(self) -> None:
        """Release the rows and their temporary files, or their views of Spark; no section can be made after it."""
        self._engine.close()

    def _result(self, name: str) -> tuple[pa.Table, int, int]:
        if self._counted != self._engine.rows.total():
            self._counted = self._engine.rows.total()
            self._found.clear()
        if name not in self._found:
            section = self.sections[name]
            self._found[name] = self._engine.first_rows(section.text, self.limits[name], section.count)
        return self._found[name]

    def section(self, name: str) -> pa.Table:
        """A section as a table; ``frames`` are the first places of each row.

        The rows with the most packets are first, or messages without an answer; those of ``timeline`` and ``minutes``
        are in the order of time.

        Raises
        ------
        KeyError
            There is no such section.
        SqlError
            DuckDB cannot finish it.
        """
        return self._result(name)[0]

    def release(self, name: str) -> None:
        """Release the rows of a section, which are kept for further calls: the next call makes them again."""
        if self._found.pop(name, None) is not None:
            pa.default_memory_pool().release_unused()

    def records(self, name: str) -> list[dict[str, Any]]:
        """A section as objects, with times as ``datetime``, which has microseconds."""
        return records(self.section(name))

    def omitted(self, name: str) -> tuple[int, int]:
        """The rows of a section that were left out because of its limit, and the packets that they counted."""
        return self._result(name)[1:]

    def line(self, name: str) -> str | None:
        """What a section says in one line; None if it has no rows, or no such line."""
        return self.sections[name].line(self.section(name))

    @property
    def files(self) -> int:
        """The number of files of the rows."""
        return self._engine.files

    def rows(self, table: str) -> int:
        """The rows of a table that were added."""
        return self._engine.rows[table]


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
    with CapturedRows(source, options, COLUMNS) as reader:
        yield from reader
