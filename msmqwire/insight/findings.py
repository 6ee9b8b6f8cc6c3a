"""Findings: what the rules match in captures, or in the tables of a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from msmqwire.capture import ReadOptions, TablesReader
from msmqwire.capture.options import time_text
from msmqwire.insight.groups import Groups, integers, numbers, pc
from msmqwire.insight.rows import Files, Rows, guid_text, plain, seen_text
from msmqwire.insight.rules import COLUMNS, LENGTH_FIELDS, RULES, Rule

if TYPE_CHECKING:
    from msmqwire.capture.files.blocks import Block
    from msmqwire.capture.files.sources import Source

__all__ = ["CapturedRows", "Detector", "Finding"]

_LIMIT = 10_000


@dataclass(frozen=True)
class Finding:
    """What a rule has found: all packets with the same evidence.

    Attributes
    ----------
    rule, severity, title, reference : str
        Of the rule.
    file : str or None
        The first file.
    frames : list of int
        The first frames in it.
    evidence : dict
        The values that the packets have in common, and ``packets``, ``first_seen`` and ``last_seen``.
    """

    rule: str
    severity: str
    title: str
    file: str | None
    frames: list[int]
    evidence: dict[str, Any]
    reference: str

    def readable(self) -> dict[str, Any]:
        """The evidence with both times as one text, ``seen``, to the second."""
        evidence = dict(self.evidence)
        times = (evidence.pop(name) for name in ("first_seen", "last_seen"))
        evidence["seen"] = seen_text(*(time and datetime.fromisoformat(time) for time in times))
        return evidence


class CapturedRows(TablesReader):
    """The rows of captures that the rules need; ``messages`` have ``length`` and ``after`` as well.

    ``length`` is the value of the length at fault, ``after`` the bytes of the payload after it; null for other rows.
    ``more`` are further columns to read.
    """

    def __init__(
        self, source: Source, options: ReadOptions | None = None, more: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        columns = {name: (*COLUMNS[name], *(more or {}).get(name, ())) for name in COLUMNS}
        columns = {name: tuple(dict.fromkeys(wanted)) for name, wanted in columns.items()}
        super().__init__(source, COLUMNS, ReadOptions.of(options, {"columns": columns, "guid": "binary"}))

    def _read(self, block: Block) -> Iterator[tuple[str, pa.RecordBatch]]:
        for name, batch in super()._read(block):
            yield name, _with_lengths(batch, block) if name == "messages" else batch


def _with_lengths(batch: pa.RecordBatch, block: Block) -> pa.RecordBatch:
    fault: Any = batch.column("fault")
    values: Any = {name: pa.nulls(len(fault), pa.int64()) for name in ("length", "after")}
    if fault.null_count < len(fault):
        fields = plain(pc.struct_field(fault, "field"))
        chosen = np.flatnonzero(numbers(pc.is_in(fields, pa.array(sorted(LENGTH_FIELDS)))))
        length, after = np.zeros(len(fault), np.int64), np.zeros(len(fault), np.int64)
        known = np.zeros(len(fault), np.int64)
        offsets = numbers(pc.struct_field(fault, "offset"))
        frames, starts = (numbers(plain(batch.column(name))) for name in ("frame", "stream_offset"))
        all_frames, all_starts = (np.asarray(block.capture[name]) for name in ("frame", "stream_offset"))
        for row in chosen:
            (at,) = np.flatnonzero((all_frames == frames[row]) & (all_starts == starts[row]))[:1]
            payload = bytes(block.payloads[int(at)] or b"")
            length[row] = int.from_bytes(payload[offsets[row] : offsets[row] + 4], "little")
            after[row], known[row] = len(payload) - offsets[row] - 4, 1
        mask = pc.equal(integers(known), 0)
        values = {
            name: pc.if_else(mask, pa.scalar(None, pa.int64()), integers(column))
            for name, column in (("length", length), ("after", after))
        }
    names = [*batch.schema.names, *values]
    return pa.RecordBatch.from_arrays([*batch.columns, *values.values()], names)


class Detector:
    """Applies the rules to rows; memory grows with what they find, up to 10,000 findings of each.

    Parameters
    ----------
    expected : iterable of str
        The addresses and networks of the directory servers; without them no server is unexpected.

    Examples
    --------
    >>> detector = Detector(expected=["10.20.1.10", "10.20.7.0/24"])
    >>> for table, batch in CapturedRows("examples/*.pcap*"):
    ...     detector.add(table, batch)
    >>> [(finding.rule, finding.frames, finding.evidence["src"]) for finding in detector.findings()]
    [('unexpected-directory-server', [7], '2001:db8:20::10')]
    """

    def __init__(self, expected: Iterable[str] = ()) -> None:
        self._expected = tuple(expected)
        self._files = Files()
        self._groups: dict[str, Groups] = {}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Apply the rules to rows of a table, with at least its ``COLUMNS``."""
        if not batch.num_rows:
            return
        rows = Rows(batch, self._files)
        for rule in RULES:
            if table not in rule.tables:
                continue
            mask, evidence = rule.match(table, rows, self._expected)
            mask = pc.fill_null(mask, False)
            if not pc.any(mask).as_py():
                continue
            if rule.name not in self._groups:
                seen = {"first_seen": "min", "last_seen": "max"}
                self._groups[rule.name] = Groups(tuple(evidence), seen, _LIMIT)
            time = rows["time"]
            self._groups[rule.name].add(rows.table(mask, **evidence, first_seen=time, last_seen=time))

    def findings(self) -> list[Finding]:
        """The findings, in the order of the rules, those with the most packets first."""
        return [finding for rule in RULES if rule.name in self._groups for finding in self._of(rule)]

    def omitted(self) -> int:
        """The number of findings that were left out because of the limit."""
        return sum(groups.omitted_groups for groups in self._groups.values())

    def _of(self, rule: Rule) -> Iterator[Finding]:
        table = self._groups[rule.name].table()
        assert table is not None
        columns = {name: guid_text(table[name]) for name in table.schema.names if name != "places"}
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.to_pylist() for c in columns.values()), strict=True)
        ]
        frames = self._files.frames(table["places"].combine_chunks()).to_pylist()
        if rule.several:
            rows, frames = _joined(rule.several, rows, frames)
        for row, places in zip(rows, frames, strict=True):
            file = places[0]["file"]
            times = {name: row.pop(name) for name in ("first_seen", "last_seen")}
            seen = {name: None if time is None else time_text(time) for name, time in times.items()}
            evidence = {name: value for name, value in row.items() if name != "rows" and value is not None}
            yield Finding(
                rule=rule.name,
                severity=rule.severity,
                title=rule.title,
                file=file,
                frames=[place["frame"] for place in places if place["file"] == file],
                evidence={**evidence, "packets": row["rows"], **seen},
                reference=rule.reference,
            )


def _joined(several: str, rows: list[dict[str, Any]], frames: list[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Rows that differ in one column only, as one row with a list; those with one value are left out."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        same = tuple(value for name, value in row.items() if name not in (several, "rows", "first_seen", "last_seen"))
        found.setdefault(same, []).append(at)
    groups = [group for group in found.values() if len(group) > 1]
    made = []
    for group in groups:
        values = {name: [rows[at][name] for at in group if rows[at][name] is not None] for name in rows[group[0]]}
        joined = {several: sorted(values[several]), "rows": sum(values["rows"])}
        joined |= {"first_seen": min(values["first_seen"], default=None)}
        joined |= {"last_seen": max(values["last_seen"], default=None)}
        made.append({**rows[group[0]], **joined})
    # The first frame of each value shows it
    return made, [[frames[at][0] for at in group] for group in groups]
