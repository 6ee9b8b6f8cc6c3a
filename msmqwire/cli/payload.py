"""One payload without a capture, ``--hex``: the fields that its bytes belong to, and its rows for ``detect``."""

from __future__ import annotations

import argparse
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError, say
from msmqwire.cli.formats import chosen_format, write_table
from msmqwire.cli.payload_text import payload_of
from msmqwire.cli.target import open_target

if TYPE_CHECKING:
    from msmqwire.insight.findings import Finding
    from msmqwire.insight.rules import Rule

_NOT_FOR_PAYLOADS = (
    "columns", "limit", "where", "queue", "message", "extract", "write",
    "jobs", "ports", "addresses", "since", "until", "lake", "expect",
)  # fmt: skip
# Of evidence, what a payload alone does not show
_UNKNOWN = {"src", "src_port", "dst", "dst_port", "answered"}


def decode_hex(options: argparse.Namespace) -> int:
    """Decode one payload; the exit status. The format ``table`` has the byte map as well."""
    from msmqwire.capture import TABLES
    from msmqwire.insight.layouts import guess, lines
    from msmqwire.mqqb.framing import has_signature

    format = chosen_format(options.format, options.output)
    payload = _payload(options)
    layout = options.table[0] if options.table else guess(payload)
    table = "sessions" if layout == "ping" else layout
    if table not in TABLES:
        raise CommandError(f"--table {table}: no such table; there is {', '.join(TABLES)}")
    if table == "sessions" and not has_signature(payload):
        layout = "ping"
    batch = TABLES[table].decode_batch([payload], strict=options.strict).to_arrow(guid="text", dictionaries=False)
    with open_target(options.output, []) as sink:
        if format == "table":
            sink.write("".join(line + "\n" for line in lines(layout, payload)).encode("utf-8", "replace"))
            sink.write(b"\n")
            batch = _only_values(batch)
        write_table(format, sink, batch.schema, [batch])
    fault = batch.column("fault")[0].as_py() if "fault" in batch.schema.names else None
    if fault is not None and not options.quiet:
        say(f"{table}: {fault['code']}: {fault['field']} at byte {fault['offset']}")
    return 0 if fault is None else 2


def _payload(options: argparse.Namespace) -> bytes:
    if len(options.files) != 1:
        raise CommandError("--hex reads one payload: give it as one argument, or - for standard input")
    for name in _NOT_FOR_PAYLOADS:
        if getattr(options, name, None) not in (None, []):
            raise CommandError(f"--{'address' if name == 'addresses' else name} is not for --hex")
    return payload_of(options.files[0])


def findings_of(options: argparse.Namespace, rules: tuple[Rule, ...]) -> list[Finding]:
    """Return what the rules of ``detect`` find in one payload, without what a payload alone does not show."""
    from msmqwire.capture.files.writing import CaptureWriter, Flow
    from msmqwire.insight.findings import CapturedRows, Detector
    from msmqwire.insight.layouts import guess
    from msmqwire.wire.ports import PING_PORT, SESSION_PORT

    payload = _payload(options)
    layout = guess(payload)
    if layout == "notifications":
        raise CommandError("the payload is the body of a change notification; detect needs the packet that carries it")
    # The rules read rows of captures
    file = io.BytesIO()
    writer = CaptureWriter(file)
    flow = Flow("192.0.2.1", 49152, "192.0.2.2", PING_PORT if layout == "ping" else SESSION_PORT)
    write = writer.stream if layout in ("messages", "sessions") else writer.datagram
    write(0, flow, payload)
    detector = Detector(rules=rules)
    for table, batch in CapturedRows(io.BytesIO(file.getvalue()), columns=detector.columns):
        detector.add(table, batch)
    return [_of_payload(finding) for finding in detector.findings()]


def _of_payload(finding: Finding) -> Finding:
    evidence = {name: value for name, value in finding.evidence.items() if name not in _UNKNOWN}
    return replace(finding, file=None, frames=[1], evidence={**evidence, "first_seen": None, "last_seen": None})


def _only_values(batch: Any) -> Any:
    """Return the columns that are not null."""
    names = [name for name in batch.schema.names if not batch.column(name).null_count]
    return batch.select(names)
