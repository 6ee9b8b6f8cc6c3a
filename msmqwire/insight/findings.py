"""Findings: what the rules match in captures, or in the tables of a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from msmqwire.capture import ReadOptions, TablesReader
from msmqwire.capture.options import LARGE_BLOCK_SIZE, time_text
from msmqwire.columns import UNFRAMED_BIT
from msmqwire.columns.arrow_arrays import booleans, integers
from msmqwire.columns.plain import guid_text, plain
from msmqwire.insight.arrays import numbers, pc, truths
from msmqwire.insight.groups import Groups
from msmqwire.insight.protocols import UNKNOWN
from msmqwire.insight.rows import Files, Rows, seen_text
from msmqwire.insight.rules import COLUMNS, ENVELOPE, RULES, SEVERITIES, Joined, Rule
from msmqwire.insight.waiting import WaitingBatches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msmqwire.capture.files._blocks import Block
    from msmqwire.capture.files.sources import Source

__all__ = ["CapturedRows", "Detector", "Finding"]

_LIMIT = 10_000
# Of messages, what the payloads of captures show beside the columns
_CAPTURED = ("after", "joined")
_PORTS = ("src_port", "dst_port")
_STREAMED = ("messages", "sessions")
# What is aggregated of the packets of a finding; of those between two hosts also the ports, which are evidence if all
# packets have the same
_TIMES = {"first_seen": "min", "last_seen": "max"}
_BETWEEN_HOSTS = {
    "answered": "max", "src_port": "min", "src_port_most": "max", "dst_port": "min", "dst_port_most": "max",
}  # fmt: skip
_VALUES = _TIMES | _BETWEEN_HOSTS

#: The addresses and ports of a packet.
_Ends = tuple[str | None, int | None, str | None, int | None]


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
        What the packets have in common, ports included, and ``packets``, ``first_seen`` and ``last_seen``; of a probe
        also ``answered``.
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
    """The rows of captures that the rules need; ``messages`` have ``after`` and ``joined`` as well.

    ``after`` is the bytes of the payload after the length of an envelope that is at fault; null for other rows.
    ``joined`` is true of bytes that may be the end of a packet: no packet begins in them, and they are the first of a
    stream whose SYN was not captured. ``more`` are further columns to read.
    """

    def __init__(
        self, source: Source, options: ReadOptions | None = None, more: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        columns = {name: (*COLUMNS[name], *(more or {}).get(name, ())) for name in COLUMNS}
        columns = {name: tuple(dict.fromkeys(wanted)) for name, wanted in columns.items()}
        options = options or ReadOptions(block_size=LARGE_BLOCK_SIZE)
        super().__init__(source, COLUMNS, ReadOptions.of(options, {"columns": columns, "guid": "binary"}))

    def rows_of(self, block: Block) -> list[tuple[str, pa.RecordBatch]]:
        """The rows of a block, those of messages with what their payloads show."""
        rows = super().rows_of(block)
        return [(name, _with_captured(batch, block) if name == "messages" else batch) for name, batch in rows]


def _with_captured(batch: pa.RecordBatch, block: Block) -> pa.RecordBatch:
    columns = [*batch.columns, _after_envelopes(batch, block), booleans(_are_joined(batch, block))]
    return pa.RecordBatch.from_arrays(columns, [*batch.schema.names, *_CAPTURED])


def _are_joined(batch: pa.RecordBatch, block: Block) -> NDArray[np.bool_]:
    joined, lost = np.zeros(batch.num_rows, np.bool_), block.payloads.lost
    if lost is not None:
        # The rows of a table are in the order of the block
        rows = np.flatnonzero(truths(batch.column("unrecognized").is_valid()))
        joined[rows] = block.capture.is_valid("joined")[lost & UNFRAMED_BIT != 0]
    return joined


def _after_envelopes(batch: pa.RecordBatch, block: Block) -> Any:
    """Of rows whose fault is the length of an envelope, the bytes of the payload after it."""
    fault: Any = batch.column("fault")
    after = np.zeros(batch.num_rows, np.int64)
    known = np.zeros(batch.num_rows, np.bool_)
    if fault.null_count < len(fault):
        known = truths(pc.equal(plain(pc.struct_field(fault, "field")), ENVELOPE))
    chosen = np.flatnonzero(known)
    if len(chosen):
        offsets = numbers(pc.struct_field(fault, "offset"))
        frames, starts = (numbers(plain(batch.column(name))) for name in ("frame", "stream_offset"))
        all_frames, all_starts = (np.asarray(block.capture[name]) for name in ("frame", "stream_offset"))
        order = np.argsort(all_frames, kind="stable")
        wanted = frames[chosen].astype(all_frames.dtype)
        ends = (np.searchsorted(all_frames, wanted, side, order) for side in ("left", "right"))
        for row, some in zip(chosen.tolist(), map(slice, *ends), strict=True):
            at = order[some][all_starts[order[some]] == starts[row]][0]
            after[row] = len(block.payloads[int(at)] or b"") - int(offsets[row]) - 4
    return integers(after, known)


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
        self._rules = [rule for rule in RULES if self._expected or not rule.needs_expected]
        self._files = Files()
        self._groups: dict[str, Groups] = {}
        self._probes: dict[_Ends, tuple[str, dict[str, Any]]] = {}
        # Rows of an unknown protocol, until a packet follows in their connection: then they are the end of one
        self._unknown: dict[_Ends, dict[str, Any]] = {}
        # Of the rows of each rule: what is kept of them is not a slice, which would keep all rows of its batch
        self._schemas: dict[str, pa.Schema] = {}
        self._waiting: dict[tuple[Rule, str], WaitingBatches] = {}

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Apply the rules to rows of a table, with at least its ``COLUMNS``."""
        if not batch.num_rows:
            return
        names = [name for name in batch.schema.names if name in (*COLUMNS[table], *_CAPTURED, "time_ns")]
        batch = batch.select(names)
        self._files.add(batch.column("file"))
        for rule in self._rules:
            if table in rule.tables:
                suspects = rule.suspects(batch)
                if suspects.any():
                    for ready in self._ready(rule, table, _chosen(batch, suspects)):
                        self._match(rule, table, ready)
        if self._probes:
            self._add_answers(batch)
        if self._unknown and table in _STREAMED:
            self._forget_unknown(batch)

    def _ready(self, rule: Rule, table: str, suspects: pa.RecordBatch) -> list[pa.RecordBatch]:
        """The rows to judge now; those of most rules do not wait."""
        if not rule.columns:
            return [suspects]
        names = [name for name in suspects.schema.names if name in rule.columns]
        return self._waiting.setdefault((rule, table), WaitingBatches()).add(suspects.select(names))

    def _add_waiting(self) -> None:
        for (rule, table), waiting in self._waiting.items():
            for ready in waiting.take():
                self._match(rule, table, ready)

    def _match(self, rule: Rule, table: str, batch: pa.RecordBatch) -> None:
        rows = Rows(batch, self._files)
        mask, evidence = rule.match(table, rows, self._expected)
        mask = pc.fill_null(mask, False)
        count = pc.sum(mask).as_py()
        if not count:
            return
        values = _values(rows, between_hosts="src" in evidence)
        found = rows.table(None if count == len(rows) else mask, **evidence, **values)
        self._schemas[rule.name] = found.schema
        if rule.name not in self._groups:
            self._groups[rule.name] = Groups(
                tuple(evidence), {name: how for name, how in _VALUES.items() if name in values}, _LIMIT
            )
        if "protocol" in evidence:
            found = self._without_unknown(rule, found)
        self._groups[rule.name].add(found)
        if rule.probe:
            columns = [found[name].to_pylist() for name in ("dst", "dst_port", "src", "src_port")]
            evidence_of = found.select(list(evidence)).to_pylist()
            for ends, same in zip(zip(*columns, strict=True), evidence_of, strict=True):
                if len(self._probes) < _LIMIT or ends in self._probes:
                    self._probes[ends] = rule.name, same

    def _without_unknown(self, rule: Rule, found: pa.Table) -> pa.Table:
        """Rows of known protocols; the others wait for a packet in their connection, as many as the limit."""
        for row in found.filter(pc.equal(found["protocol"], UNKNOWN)).to_pylist():
            self._unknown.setdefault((row["src"], row["src_port"], row["dst"], row["dst_port"]), row)
        self._add_unknown(len(self._unknown) - _LIMIT)
        return found.filter(pc.not_equal(found["protocol"], UNKNOWN))

    def _add_unknown(self, count: int) -> None:
        """Add the first rows of an unknown protocol to the findings."""
        if count > 0:
            rows = [self._unknown.pop(ends) for ends in list(islice(self._unknown, count))]
            self._groups["other-protocol"].add(pa.Table.from_pylist(rows, self._schemas["other-protocol"]))

    def _forget_unknown(self, batch: pa.RecordBatch) -> None:
        """Forget streams of an unknown protocol of connections in which there is a packet, in either direction."""
        packets = np.zeros(batch.num_rows, np.bool_)
        for side in _PORTS:
            ports = pa.array({ends[1] for ends in self._unknown}, batch.schema.field(side).type)
            packets |= truths(pc.is_in(batch.column(side), ports))
        if "unrecognized" in batch.schema.names:
            packets &= truths(batch.column("unrecognized").is_null())
        rows = Rows(_chosen(batch, packets), self._files)
        columns = [rows[name].to_pylist() for name in ("src", "src_port", "dst", "dst_port")]
        for ends in set(zip(*columns, strict=True)):
            self._unknown.pop(ends, None)
            self._unknown.pop((*ends[2:], *ends[:2]), None)

    def _add_answers(self, batch: pa.RecordBatch) -> None:
        """Add packets whose addresses and ports are those of a probe in the opposite direction."""
        ports = pa.array({ends[3] for ends in self._probes}, batch.schema.field("dst_port").type)
        rows = Rows(_chosen(batch, truths(pc.is_in(batch.column("dst_port"), ports))), self._files)
        columns = [rows[name].to_pylist() for name in ("src", "src_port", "dst", "dst_port")]
        answers: dict[str, list[int]] = {}
        evidence: dict[str, list[dict[str, Any]]] = {}
        for row, ends in enumerate(zip(*columns, strict=True)):
            if ends in self._probes:
                name, same = self._probes[ends]
                answers.setdefault(name, []).append(row)
                evidence.setdefault(name, []).append(same)
        for name, found in answers.items():
            answer = rows.table(**_values(rows, answer=True)).take(integers(np.array(found)))
            schema = pa.schema([self._schemas[name].field(key) for key in evidence[name][0]])
            for key, values in zip(schema.names, pa.Table.from_pylist(evidence[name], schema).columns, strict=True):
                answer = answer.append_column(key, values)
            self._groups[name].add(answer)

    def findings(self) -> list[Finding]:
        """The findings, the most severe first, then in the order of the rules, those with the most packets first."""
        self._add_waiting()
        self._add_unknown(len(self._unknown))
        rules = sorted(self._rules, key=lambda rule: SEVERITIES.index(rule.severity))
        return [finding for rule in rules if rule.name in self._groups for finding in self._of(rule)]

    def omitted(self) -> int:
        """The combinations of evidence that were left out because of the limit."""
        self._add_waiting()
        return sum(groups.omitted_groups for groups in self._groups.values())

    def _of(self, rule: Rule) -> Iterator[Finding]:
        table = self._groups[rule.name].table()
        if table is None:
            return
        columns = {name: guid_text(table[name]) for name in table.schema.names if name != "places"}
        rows = [
            dict(zip(columns, row, strict=True)) for row in zip(*(c.to_pylist() for c in columns.values()), strict=True)
        ]
        frames = self._files.frames(table["places"].combine_chunks()).to_pylist()
        if rule.joined is not None:
            rows, frames = _joined(rule.joined, rows, frames)
        for row, places in zip(rows, frames, strict=True):
            file = places[0]["file"]
            yield Finding(
                rule=rule.name,
                severity=rule.severity,
                title=rule.title,
                file=file,
                frames=[place["frame"] for place in places if place["file"] == file],
                evidence=_evidence(rule, row),
                reference=rule.reference,
            )


def _chosen(batch: pa.RecordBatch, mask: NDArray[np.bool_]) -> pa.RecordBatch:
    return batch if mask.all() else batch.filter(booleans(mask))


def _values(rows: Rows, *, between_hosts: bool = True, answer: bool = False) -> dict[str, Any]:
    """The columns that are aggregated; the ports of an answer are those of its probe."""
    times = dict.fromkeys(_TIMES, rows["time"])
    if not between_hosts:
        return times
    src_port, dst_port = (rows[name].cast(pa.int64()) for name in (_PORTS[::-1] if answer else _PORTS))
    return {
        **times, "answered": pa.scalar(int(answer), pa.int64()),
        "src_port": src_port, "src_port_most": src_port, "dst_port": dst_port, "dst_port_most": dst_port,
    }  # fmt: skip


def _evidence(rule: Rule, row: dict[str, Any]) -> dict[str, Any]:
    """What a finding shows of a row of its groups."""
    found = {name: value for name, value in row.items() if name not in (*_VALUES, "rows") and value is not None}
    ports = {name: row[name] for name in _PORTS if "src" in row and row[name] == row[f"{name}_most"]}
    found |= {name: port for name, port in ports.items() if port is not None}
    if rule.probe:
        found["answered"] = bool(row["answered"])
    times = {name: None if row[name] is None else time_text(row[name]) for name in ("first_seen", "last_seen")}
    return {**found, "packets": row["rows"], **times}


def _joined(how: Joined, rows: list[dict[str, Any]], frames: list[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Rows that differ in one column only as one row with a list, and their frames."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        same = tuple(value for name, value in row.items() if name not in (how.column, "rows", *_VALUES))
        if row["rows"] >= how.packets:
            found.setdefault(same, []).append(at)
    groups = [group for group in found.values() if len(group) >= how.values]
    made = []
    for group in groups:
        values = {name: [rows[at][name] for at in group if rows[at][name] is not None] for name in rows[group[0]]}
        joined = {how.column: sorted(values[how.column]) if how.shown else None, "rows": sum(values["rows"])}
        joined |= {
            name: (min if how == "min" else max)(values[name], default=None)
            for name, how in _VALUES.items()
            if name in values
        }
        made.append({**rows[group[0]], **joined})
    # The first frame of each value shows it
    return made, [[frames[at][0] for at in group] for group in groups]
