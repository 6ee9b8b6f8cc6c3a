"""The formats of findings: JSON lines, text, CSV, a log of Zeek, events of Suricata."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import json_line
from msmqwire.errors import printable

if TYPE_CHECKING:
    from msmqwire.cli.target import Sink
    from msmqwire.insight.findings import Finding
    from msmqwire.insight.rules import Rule

_ZEEK = (
    ("ts", "time"), ("rule", "string"), ("severity", "string"), ("title", "string"), ("src", "string"),
    ("dst", "string"), ("file", "string"), ("frames", "vector[count]"), ("evidence", "string"), ("reference", "string"),
)  # fmt: skip
_CSV = (
    "rule", "severity", "title", "src", "src_port", "dst", "dst_port", "packets", "first_seen", "last_seen", "file",
    "frames", "evidence", "reference",
)  # fmt: skip
#: Of evidence, what has a column of its own.
_COLUMNS = frozenset(_CSV)
# 1 is the most severe
_PRIORITIES = {"high": 1, "medium": 2, "low": 3}


def _json(findings: Sequence[Finding]) -> Iterable[str]:
    return (json_line(dataclasses.asdict(finding)) + "\n" for finding in findings)


def _for_people(findings: Sequence[Finding]) -> Iterable[str]:
    lines = []
    for finding in findings:
        place = {"file": finding.file, "frames": " ".join(map(str, finding.frames))}
        values = {
            name: shown for name, value in (place | finding.readable()).items() if (shown := _shown(value)) is not None
        }
        longest = max(map(len, values))
        lines.append(f"{finding.severity:6}  {finding.rule}: {finding.title} ({finding.reference})\n")
        lines += [f"        {name:{longest}}  {printable(value)}\n" for name, value in values.items()]
    return lines or ["no findings\n"]


def _shown(value: Any) -> str | None:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return str(value) if value else None


def _zeek(findings: Sequence[Finding]) -> Iterable[str]:
    """Yield the lines of the ASCII log of Zeek: a header, then values separated by tabs."""
    yield from ("#separator \\x09\n", "#set_separator\t,\n", "#empty_field\t(empty)\n", "#unset_field\t-\n")
    yield "#path\tmsmqwire_findings\n#fields\t" + "\t".join(name for name, _ in _ZEEK) + "\n"
    yield "#types\t" + "\t".join(kind for _, kind in _ZEEK) + "\n"
    for finding in findings:
        evidence = dict(finding.evidence)
        time = _time(evidence.pop("first_seen"))
        values = {
            **dataclasses.asdict(finding),
            "ts": None if time is None else f"{time.timestamp():.6f}",
            "src": evidence.pop("src", None),
            "dst": evidence.pop("dst", None),
            "frames": ",".join(map(str, finding.frames)),
            "evidence": json_line(evidence),
        }
        yield "\t".join(_zeek_cell(values[name]) for name, _ in _ZEEK) + "\n"


def _zeek_cell(value: Any) -> str:
    if value is None:
        return "-"
    # Zeek writes what could be taken for a separator as \xNN
    text = re.sub(r"[\x00-\x1f\x7f\\]", lambda match: f"\\x{ord(match[0]):02x}", str(value))
    return printable(text) or "(empty)"


def _eve(findings: Sequence[Finding], rules: Iterable[Rule]) -> Iterable[str]:
    """Alerts as Suricata writes them to eve.json; ``msmq`` has what only this program knows."""
    known_rules = {rule.name: rule for rule in rules}
    for finding in findings:
        rule, evidence = known_rules[finding.rule], dict(finding.evidence)
        time = _time(evidence["first_seen"])
        src = evidence.pop("src", None) or next(iter(evidence.get("address", ())), None)
        event = {
            "timestamp": None if time is None else f"{time:%Y-%m-%dT%H:%M:%S.%f%z}",
            "pcap_cnt": finding.frames[0],
            "event_type": "alert",
            "src_ip": src,
            "src_port": evidence.pop("src_port", None),
            "dest_ip": evidence.pop("dst", None),
            "dest_port": evidence.pop("dst_port", None),
            "proto": _protocol(src, rule.transport),
            "pcap_filename": finding.file,
        }
        alert = {
            "action": "allowed",
            "gid": 1,
            "signature_id": rule.identifier,
            "rev": 1,
            "signature": f"msmqwire {rule.name}: {rule.title}",
            "category": rule.category,
            "severity": _PRIORITIES[rule.severity],
        }
        detail = {"rule": rule.name, **evidence, "frames": finding.frames, "reference": rule.reference}
        known = {name: value for name, value in event.items() if value is not None}
        yield json_line({**known, "alert": alert, "msmq": detail}) + "\n"


def _protocol(address: str | None, transport: str | None) -> str | None:
    """Return what carried the packets of a rule; None where several protocols did."""
    try:
        ip_address(address or "")
    except ValueError:
        return None if address is None else "IPX"
    return transport


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _write_csv(findings: Sequence[Finding], sink: Sink) -> None:
    import pyarrow as pa

    from msmqwire.cli.formats import write_table

    rows = []
    for finding in findings:
        rest = {name: value for name, value in finding.evidence.items() if name not in _COLUMNS}
        values = {**finding.evidence, **dataclasses.asdict(finding), "evidence": json_line(rest) if rest else None}
        values["frames"] = " ".join(map(str, finding.frames))
        rows.append({name: None if values.get(name) is None else str(values[name]) for name in _CSV})
    schema = pa.schema([(name, pa.string()) for name in _CSV])
    write_table("csv", sink, schema, [pa.RecordBatch.from_pylist(rows, schema)])


_LINES: dict[str, Callable[[Sequence[Finding]], Iterable[str]]] = {
    "table": _for_people, "json": _json, "zeek": _zeek,
}  # fmt: skip
FORMATS = ("table", "json", "csv", "zeek", "eve")


def write(findings: Sequence[Finding], format: str, sink: Sink, rules: Iterable[Rule]) -> None:
    """Write findings of rules in one of ``FORMATS``."""
    if format == "csv":
        _write_csv(findings, sink)
        return
    lines = _eve(findings, rules) if format == "eve" else _LINES[format](findings)
    for line in lines:
        sink.write(line.encode("utf-8", "replace"))
