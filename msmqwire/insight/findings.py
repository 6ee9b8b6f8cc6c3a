"""Findings: what the rules match in captures, or in the tables of a lake."""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.insight.findings")

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from msmqwire.capture import PACKET_KINDS, ReadOptions, TablesReader
from msmqwire.capture.options import LARGE_BLOCK_SIZE, options_of, time_text
from msmqwire.capture.tcp._streams import packet_kinds
from msmqwire.columns import UNFRAMED_BIT
from msmqwire.columns.arrow_arrays import booleans, integers
from msmqwire.columns.plain import plain
from msmqwire.insight.engine import TIMES, Answers, Engine, columns_needed
from msmqwire.insight.frames import seen_text
from msmqwire.insight.query_files import Query
from msmqwire.insight.rules import RULES, SEVERITIES, Rule, Severity
from msmqwire.insight.tables import COMPUTED, ENVELOPE, UNREAD, pc, unread_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from msmqwire.capture.files._blocks import Block
    from msmqwire.capture.files.sources import Source

__all__ = ["COLUMNS", "CapturedRows", "Detector", "Finding", "Rule", "Severity"]

_LIMIT = 10_000
#: The columns of each table that the rules need.
COLUMNS: Mapping[str, tuple[str, ...]] = columns_needed(RULES)
_PORTS = ("src_port", "dst_port")
# What is aggregated of the packets of a finding; of those between two hosts also the ports, which are evidence if all
# packets have the same
_TIMES = {"first_seen": "min", "last_seen": "max"}
_BETWEEN_HOSTS = {
    "answered": "max", "src_port": "min", "src_port_most": "max", "dst_port": "min", "dst_port_most": "max",
}  # fmt: skip
_VALUES = _TIMES | _BETWEEN_HOSTS


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
    """The rows of captures with the columns of the rules, or others; messages have ``after`` and ``joined`` as well.

    ``after`` is the bytes of the payload after the length of an envelope that is at fault; null for other rows.
    ``joined`` is true of bytes that may be the end of a packet: no packet begins in them, and they are the first of a
    stream whose SYN was not captured. Neither is there without the columns that ``COMPUTED`` says it needs.
    """

    def __init__(
        self,
        source: Source,
        options: ReadOptions | None = None,
        columns: Mapping[str, tuple[str, ...]] = COLUMNS,
    ) -> None:
        options = options or ReadOptions(block_size=LARGE_BLOCK_SIZE)
        super().__init__(source, columns, options_of(options, {"columns": columns, "guid": "binary"}))
        self._ended = False

    def __next__(self) -> tuple[str, pa.RecordBatch]:
        """Return the next rows; after the last ones the streams that were not read, if there are any."""
        try:
            return super().__next__()
        except StopIteration:
            streams = self.stats.unread_streams
            if self._ended or not streams:
                raise
            self._ended = True
            return UNREAD, unread_rows(streams)

    def _rows_of(self, block: Block) -> list[tuple[str, pa.RecordBatch]]:
        """The rows of a block, those of messages with what their payloads show."""
        rows = super()._rows_of(block)
        return [(name, _with_captured(batch, block) if name == "messages" else batch) for name, batch in rows]


def _with_captured(batch: pa.RecordBatch, block: Block) -> pa.RecordBatch:
    for name, compute in (("after", _after_envelopes), ("joined", _are_joined)):
        if set(COMPUTED["messages"][name].needs) <= set(batch.schema.names):
            batch = batch.append_column(name, compute(batch, block))
    return batch


def _messages_of(block: Block) -> NDArray[np.bool_]:
    """Which payloads of a block are messages, or bytes in which no packet begins."""
    found: NDArray[np.bool_] = packet_kinds(block.payloads) & PACKET_KINDS["message"] != 0
    return found


def _are_joined(batch: pa.RecordBatch, block: Block) -> Any:
    joined, lost = np.zeros(batch.num_rows, np.bool_), block.payloads.lost
    # The rows of a table are in the order of the block
    rows = np.flatnonzero(batch.column("unrecognized").is_valid().to_numpy(zero_copy_only=False))
    if lost is not None and len(rows):
        joined[rows] = block.capture.is_valid("joined")[(lost & UNFRAMED_BIT != 0) & _messages_of(block)]
    return booleans(joined)


def _after_envelopes(batch: pa.RecordBatch, block: Block) -> Any:
    """Of rows whose fault is the length of an envelope, the bytes of the payload after it."""
    fault: Any = batch.column("fault")
    after = np.zeros(batch.num_rows, np.int64)
    known = np.zeros(batch.num_rows, np.bool_)
    if fault.null_count < len(fault):
        equal = pc.equal(plain(pc.struct_field(fault, "field")), ENVELOPE)
        known = equal.fill_null(False).to_numpy(zero_copy_only=False)
    chosen = np.flatnonzero(known)
    if len(chosen):
        offsets = _numbers(pc.struct_field(fault, "offset"))
        frames, starts = (_numbers(plain(batch.column(name))) for name in ("frame", "stream_offset"))
        all_frames, all_starts = (np.asarray(block.capture[name]) for name in ("frame", "stream_offset"))
        messages = _messages_of(block)
        order = np.argsort(all_frames, kind="stable")
        wanted = frames[chosen].astype(all_frames.dtype)
        ends = (np.searchsorted(all_frames, wanted, side, order) for side in ("left", "right"))
        for row, some in zip(chosen.tolist(), map(slice, *ends), strict=True):
            here = order[some]
            at = here[(all_starts[here] == starts[row]) & messages[here]][0]
            after[row] = len(block.payloads[int(at)] or b"") - int(offsets[row]) - 4
    return integers(after, known)


def _numbers(values: Any) -> NDArray[np.int64]:
    """Whole numbers, 0 for null."""
    found: NDArray[np.int64] = values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return found


#: The columns of every packet, by which answers of a probe are found.
_ENDS = ("src", "src_port", "dst", "dst_port")


def detection_engine(
    rules: Iterable[Rule] = RULES,
    expected: Iterable[str] = (),
    more: Iterable[Query] = (),
    threads: int = 2,
    make: Callable[..., Answers] = Engine,
) -> Answers:
    """Return an engine for rules, and further queries over the same rows; ``make`` makes it of the queries.

    Raises
    ------
    QueryFileError
        As ``Engine``; or the result of a rule lacks a column.
    """
    rules = tuple(rules)
    engine = make((*rules, *more), expected, threads, common=_ENDS)
    for rule in rules:
        if not rule.packaged:
            check_result(rule, engine)
    return engine


def check_result(rule: Rule, engine: Answers) -> None:
    """Refuse a rule whose result lacks a column.

    Raises
    ------
    QueryFileError
    """
    found = engine.columns_of_result(rule)
    ends = _ENDS if rule.probe else ()
    for entry, names in (("evidence", rule.evidence), ("title", ("place", "time_ns")), ("probe", ends)):
        missing = [name for name in names if name not in found]
        if missing and entry == "title":
            raise rule.error(f"the result has no column {missing[0]}")
        if missing:
            raise rule.refuse(entry, f"the result has no column {missing[0]}")


class Detector:
    """Applies the rules to rows, up to 10,000 findings of each; rows that do not fit in memory are in temporary files.

    Parameters
    ----------
    expected : iterable of str
        The addresses and networks of the directory servers; without them no server is unexpected.
    rules : iterable of Rule, optional
        Other rules than ``RULES``.
    engine : Engine, optional
        Rows that are added elsewhere, from ``detection_engine``.
    threads : int
        The threads of a query.

    Examples
    --------
    >>> detector = Detector(expected=["10.20.1.10", "10.20.7.0/24"])
    >>> for table, batch in CapturedRows("examples/*.pcap*"):
    ...     detector.add(table, batch)
    >>> [(finding.rule, finding.frames, finding.evidence["src"]) for finding in detector.findings()]
    [('unexpected-directory-server', [7], '2001:db8:20::10')]
    """

    def __init__(
        self,
        expected: Iterable[str] = (),
        rules: Iterable[Rule] = RULES,
        engine: Answers | None = None,
        threads: int = 2,
    ) -> None:
        self.rules = tuple(rules)
        self._engine: Answers = engine or detection_engine(self.rules, expected, threads=threads)
        self._findings: list[Finding] | None = None
        self._omitted = 0

    @property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The columns of each table that rows need."""
        return self._engine.columns

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table, with at least its ``COLUMNS``; errors as in ``Summary.add``."""
        self._engine.add(table, batch)
        self._findings = None

    def findings(self) -> list[Finding]:
        """The findings, the most severe first, then in the order of the rules, those with the most packets first.

        Raises
        ------
        SqlError
            DuckDB cannot finish a rule.
        """
        if self._findings is None:
            self._omitted = 0
            rules = sorted(self.rules, key=lambda rule: SEVERITIES.index(rule.severity))
            self._findings = [finding for rule in rules for finding in self._of(rule)]
        return self._findings

    def omitted(self) -> int:
        """The combinations of evidence that were left out because of the limit."""
        self.findings()
        return self._omitted

    def close(self) -> None:
        """Release the rows and their temporary files, or their views of Spark."""
        self._engine.close()

    def _of(self, rule: Rule) -> Iterator[Finding]:
        engine = self._engine
        if not engine.match(rule):
            return
        table, omitted, _ = engine.first_rows(_findings_of(rule, engine.columns_of_result(rule)), _LIMIT, None)
        self._omitted += omitted
        # Python knows no nanoseconds
        for at, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                table = table.set_column(at, field.name, table[field.name].cast(pa.int64()))
        rows: list[dict[str, Any]] = table.to_pylist()
        frames: list[Any] = [row.pop("frames") for row in rows]
        if rule.joined is not None:
            rows, frames = _joined(rule, rows, frames)
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


def _findings_of(rule: Rule, columns: Iterable[str]) -> str:
    """The statement that makes findings of the rows in ``matched``."""
    ends = [name for name in _ENDS if name in columns]
    ports = [name for name in _PORTS if name in ends]
    evidence = ", ".join(f'"{name}"' for name in rule.evidence)
    # Evidence may be one of the addresses
    own = "".join(f", {name}" for name in (*ports, "place", "time_ns"))
    packets = f"SELECT {evidence}{own}, 0 AS answered FROM matched"
    if rule.probe and len(ends) == len(_ENDS):
        shown = ", ".join(f'probe."{name}"' for name in rule.evidence)
        # The ports of an answer are those of its probe
        packets += (
            f" UNION ALL SELECT {shown}, probe.src_port, probe.dst_port, answer.place, answer.time_ns, 1 "
            "FROM (SELECT * FROM matched QUALIFY "
            "row_number() OVER (PARTITION BY src, src_port, dst, dst_port ORDER BY place DESC) = 1) AS probe "
            "JOIN all_rows AS answer ON answer.src = probe.dst AND answer.src_port = probe.dst_port "
            "AND answer.dst = probe.src AND answer.dst_port = probe.src_port"
        )
    values = ["count(*) AS rows", "min(time_ns) AS first_seen", "max(time_ns) AS last_seen"]
    if ports:
        values.append("max(answered) AS answered")
        values += [f"min({name}) AS {name}, max({name}) AS {name}_most" for name in ports]
    return (
        f"SELECT {evidence}, {', '.join(values)}, first_places(place) AS frames FROM ({packets}) "
        f"GROUP BY {evidence} ORDER BY rows DESC, frames[1], {evidence}"
    )


def _evidence(rule: Rule, row: dict[str, Any]) -> dict[str, Any]:
    """What a finding shows of a row of its groups."""
    found = {name: value for name, value in row.items() if name not in (*_VALUES, "rows") and value is not None}
    found |= {name: time_text(found[name]) for name in TIMES & found.keys()}
    ports = {name: row[name] for name in _PORTS if f"{name}_most" in row and row[name] == row[f"{name}_most"]}
    found |= {name: port for name, port in ports.items() if port is not None}
    if rule.probe:
        found["answered"] = bool(row["answered"])
    times = {name: None if row[name] is None else time_text(row[name]) for name in ("first_seen", "last_seen")}
    return {**found, "packets": row["rows"], **times}


def _joined(rule: Rule, rows: list[dict[str, Any]], frames: list[Any]) -> tuple[list[dict[str, Any]], list[Any]]:
    """Rows that differ in one column only as one row, and the first frame of each of its values."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for at, row in enumerate(rows):
        same = tuple(value for name, value in row.items() if name not in (rule.joined, "rows", *_VALUES))
        groups.setdefault(same, []).append(at)
    made = []
    for group in groups.values():
        values = {name: [rows[at][name] for at in group if rows[at][name] is not None] for name in rows[group[0]]}
        name = rule.joined or ""
        joined: dict[str, Any] = {name: sorted(values[name]) if rule._listed else None, "rows": sum(values["rows"])}
        joined |= {
            name: (min if how == "min" else max)(values[name], default=None)
            for name, how in _VALUES.items()
            if name in values
        }
        made.append({**rows[group[0]], **joined})
    return made, [[frames[at][0] for at in group] for group in groups.values()]
