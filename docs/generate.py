"""Write the generated parts of the manual: ``tables.md``, and the marked parts of other pages."""

from __future__ import annotations

import csv
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msmqwire.capture import CAPTURE, TABLES
from msmqwire.columns.schema import (
    ADDRESS,
    ASCII,
    BYTES,
    FAULT,
    FORMAT_NAME,
    GUID,
    TEXT,
    UTF8,
    DataType,
    Enumeration,
    ListOf,
    Table,
)
from msmqwire.discovery.client import TRANSITIONS, Transition
from msmqwire.formatname.schema import FORMAT_NAMES
from msmqwire.mqqb.rules import RULES
from msmqwire.mqqb.schema import MESSAGES, SESSIONS
from msmqwire.wire.codes import FAULTS

HERE = Path(__file__).parent
STATEMENTS = HERE.parent / "tests" / "contract" / "conformance.csv"
MUSTS = HERE.parent / "tests" / "contract" / "musts.csv"

INTRODUCTION = """\
# Tables

Written by `make docs` from the schemas in the code; do not edit.

A table has the same columns in numpy, Arrow, Parquet, JSON and Spark, in this order. In a table read from a capture the
columns of [capture](#capture) come first. Types are Arrow's; an `address` is text, a `uuid` is
`arrow.uuid` in Arrow and lower-case text in Parquet, JSON, CSV and Spark. Spark has neither unsigned integers nor
nanoseconds: integers are wider there, and `time`, in microseconds, is followed by `time_ns`. A column is null where the
packet lacks the field. In a row with a fault only `fault` and the columns of the capture have values.
"""

AFTERWORD = """\
## Codes of faults

The `code` of a fault is one of these, in every table; `field` names the part of the packet by its name in the
specification, `offset` is in bytes from the start of the payload. [Decoding](decoding.md),
[Messages](messages.md) and [Change notifications](notifications.md) list the fields of each.

| code | meaning |
|---|---|
"""


def table(schema: Table) -> Iterator[str]:
    """Section of one table."""
    yield f"## {schema.name}"
    yield ""
    yield f"Source: {schema.section}."
    yield ""
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    yield from (f"| `{column.name}` | `{column.type.name}` | {column.about} |" for column in schema.all_columns)
    if schema.violations is not None:
        yield ""
        yield "| violation | rule that is broken |"
        yield "|---|---|"
        yield from (f"| `{name}` | {rule} |" for name, rule in schema.rules)
    if schema.fields:
        yield ""
        yield "Fields that a fault can name: " + ", ".join(f"`{name}`" for name in schema.fields) + "."
    yield ""


def state_diagram(transitions: Iterable[Transition], initial: str) -> Iterator[str]:
    """Mermaid diagram: an arrow for each pair of states, with its rules."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for transition in transitions:
        for state in transition.states:
            target = transition.target or state
            arrows.setdefault((state.value, target.value), []).append(transition.rule)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {initial}"
    for (source, target), rules in arrows.items():
        yield f"    {source} --> {target}: {', '.join(rules)}"
    yield "```"


def _words(part: Callable[..., object]) -> str:
    return part.__name__.strip("_").replace("_", " ")


def _legend(title: str, parts: Iterable[Callable[..., object]]) -> Iterator[str]:
    yield ""
    yield f"| {title} | Meaning |"
    yield "|---|---|"
    for part in dict.fromkeys(parts):
        if part.__doc__:
            yield f"| {_words(part)} | {part.__doc__.rstrip('.')} |"


def transition_tables(transitions: Iterable[Transition]) -> Iterator[str]:
    """Rules of a state machine as a table, and the meaning of its guards and steps."""
    rules = list(transitions)
    yield "| Rule | In | On | When | Does | Then | Source |"
    yield "|---|---|---|---|---|---|---|"
    for rule in rules:
        cells = (
            rule.rule,
            ", ".join(state.value for state in rule.states),
            rule.event.value,
            _words(rule.guard),
            ", ".join(map(_words, rule.steps)) or "nothing",
            rule.target.value if rule.target else "as before",
            rule.section,
        )
        yield f"| {' | '.join(cells)} |"
    yield from _legend("When", (rule.guard for rule in rules))
    yield from _legend("Does", (step for rule in rules for step in rule.steps))


def filled(page: str, name: str, lines: Iterable[str]) -> str:
    """Text of a page with a new generated part between its two comments."""
    begin, end = f"<!-- {name}: written by `make docs`, do not edit -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"the page lacks the comments of {name}")
    return before + begin + "\n".join(["", *lines, "", ""]) + end + after


def rules(tables: Iterable[Table]) -> Iterator[str]:
    """The rules of message packets, as a table."""
    shown = {name: [table.name for table in tables if name in table.violation_names] for name in RULES}
    yield "| Name | Tables | Field | Requirement | Section | Strict decoding |"
    yield "|---|---|---|---|---|---|"
    for name, rule in RULES.items():
        field = f"`{rule.field}`"
        cells = (f"`{name}`", ", ".join(shown[name]), field, rule.requirement, rule.section, rule.strict or "accepted")
        yield f"| {' | '.join(cells)} |"


def requirements(path: Path) -> Iterator[str]:
    """The rows of ``musts.csv``, as a table."""
    yield "| Section | Field | Requirement | Outcome |"
    yield "|---|---|---|---|"
    with path.open(encoding="utf-8") as source:
        for row in csv.DictReader(source):
            outcome = re.sub(r"(violation|fault): (\w+)", r"\1 `\2`", row["outcome"])
            yield f"| {row['section']} | {row['field']} | {row['rule']} | {outcome} |"


def statements(path: Path, prefix: str) -> Iterator[str]:
    """The rows of ``conformance.csv`` whose ids begin with ``prefix``, as a table."""
    yield "| Section or decision | Level | Statement |"
    yield "|---|---|---|"
    with path.open(encoding="utf-8") as source:
        for row in csv.DictReader(source):
            if row["id"].startswith(prefix):
                yield f"| {row['source']} | {row['level']} | {row['statement']} |"


# Rows of the README's table: what is done, and the section and the line of performance.md that measure it
SPEED = {
    "decode requests": ("Decode requests:", "msmqwire"),
    "decode replies": ("Decode replies,", "msmqwire"),
    "decode change notifications": ("Decode change notifications,", "msmqwire"),
    "decode messages, all columns": ("Decode user messages,", "msmqwire, all columns"),
    "encode requests": ("Encode requests:", "msmqwire"),
    "encode replies": ("Encode replies:", "msmqwire"),
    "capture file to payloads (UDP)": ("Capture file (pcap, UDP) to payloads:", "msmqwire"),
    "capture file to request columns": ("Capture file (pcap, UDP) to request columns:", "msmqwire"),
    "capture file to packets in TCP streams": ("Capture file (pcap, TCP in order) to message packets:", "msmqwire"),
    "format names in a column": ("Parse format names,", "msmqwire"),
}
PEERS = {
    "struct, a loop": "`struct`",
    "struct by hand": "`struct`",
    "numpy views, columns copied": "numpy",
    "numba, a loop over bytes": "numba",
    "numba, eight bytes at a time": "numba tuned by hand",
    "construct": "construct",
    "kaitaistruct": "Kaitai Struct",
    "libpcap, a loop in C": "libpcap in C",
    "dpkt, dissecting": "dpkt",
    "dpkt and struct": "dpkt",
    "dpkt, reassembling": "dpkt",
    "scapy": "Scapy",
    "scapy, reassembling": "Scapy",
    "re, one expression, a loop": "a loop of `re`",
    "pyparsing": "pyparsing",
}
_FIGURE = re.compile(r"  (?P<name>.+?)(?: \(.*\))? +[\d,.]+ +(?P<ratio>[\d,.]+) +[\d,.]+ - ")


def speed(page: str) -> Iterator[str]:
    """The main figures of performance.md, as a table."""
    copies = [float(speed) for speed in re.findall(r"^  memcpy \((.+) GB/s\)", page, re.MULTILINE)]
    machine = re.search(r"`make bench` wrote this page: (.*?),", page)
    assert machine is not None
    yield f"CPU time on one core of an {machine[1]} that copies {min(copies):.0f} to {max(copies):.0f} GB/s:"
    yield ""
    yield "| | speed, as a part of that of `memcpy` | times as fast as |"
    yield "|---|---|---|"
    for done, (title, ours) in SPEED.items():
        section = page[page.index(f"\n{title}") :].lstrip().partition("\n\n")[0]
        copied, _, others = section.partition("times slower")
        part = next(match["ratio"] for match in _FIGURE.finditer(copied) if match["name"] == ours)
        times = {match["name"]: float(match["ratio"].replace(",", "")) for match in _FIGURE.finditer(others)}
        peers = ", ".join(f"{PEERS[name]} {_two_digits(ratio)}" for name, ratio in times.items() if name in PEERS)
        yield f"| {done} | {part} | {peers} |"


def _two_digits(ratio: float) -> str:
    return f"{float(f'{ratio:.1e}'):,.{0 if ratio >= 9.95 else 1}f}"


def value_kind(type_: DataType) -> str:
    """The alias of ``names.pyi`` that has the columns of a type."""
    if isinstance(type_, ListOf):
        return "List"
    if isinstance(type_, Enumeration) or type_ == GUID:
        return "Uint8"
    if type_ in (TEXT, BYTES, ASCII, UTF8):
        return {TEXT: "Text", BYTES: "Bytes", ASCII: "Ascii", UTF8: "Utf8"}[type_]
    if type_ in (ADDRESS, FORMAT_NAME, FAULT):
        return "Record"
    return {"?": "Bool", "M": "Time"}.get(type_.dtype.lstrip("<")[0]) or type_.name.capitalize()


def column_names(tables: Iterable[Table]) -> Iterator[str]:
    """The names of columns by the type of ``batch[name]``, as a stub."""
    kinds: dict[str, dict[str, None]] = {}
    for each in tables:
        for column in each.all_columns:
            # Violations are names in Arrow and bits in batches
            kind = "Uint32" if column.name == "violations" else value_kind(column.type)
            kinds.setdefault(kind, {})[column.name] = None
    yield '"""The names of columns, by what ``batch[name]`` is; written by `make docs`, do not edit."""'
    yield ""
    yield "from typing import Literal"
    yield ""
    yield "# fmt: off"
    for kind in sorted(kinds):
        yield f"{kind} = Literal["
        names = ", ".join(f'"{name}"' for name in kinds[kind])
        yield textwrap.fill(names, 120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False) + ","
        yield "]"


def pages() -> dict[Path, str]:
    """Text of every page with generated parts, by file."""
    lines = [
        INTRODUCTION,
        *table(CAPTURE),
        *(line for kind in TABLES.values() for line in table(kind.table)),
        *table(FORMAT_NAMES),
        AFTERWORD,
    ]
    # After the table's header
    lines[-1] += "\n".join(f"| `{code}` | {meaning} |" for code, meaning in FAULTS.items())
    stub = column_names((CAPTURE, *(kind.table for kind in TABLES.values()), FORMAT_NAMES))
    discovery = HERE / "discovery.md"
    messages, conformance = HERE / "messages.md", HERE / "conformance.md"
    conforming = filled(conformance.read_text("utf-8"), "requirements", requirements(MUSTS))
    transitions = [*state_diagram(TRANSITIONS, "idle"), "", *transition_tables(TRANSITIONS)]
    readme = HERE.parent / "README.md"
    performance = (HERE / "performance.md").read_text("utf-8")
    return {
        readme: filled(readme.read_text("utf-8"), "figures", speed(performance)),
        HERE.parent / "msmqwire" / "columns" / "names.pyi": "\n".join(stub) + "\n",
        HERE / "tables.md": "\n".join(lines) + "\n",
        discovery: filled(discovery.read_text("utf-8"), "rules of the client", transitions),
        messages: filled(messages.read_text("utf-8"), "rules", rules((MESSAGES, SESSIONS))),
        conformance: filled(conforming, "statements on sessions", statements(STATEMENTS, "QS-")),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(HERE.parent)}")
