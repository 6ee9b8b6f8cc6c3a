"""Write the generated parts of the manual: ``tables.md``, and the marked parts of other pages."""

from __future__ import annotations

import csv
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from uuid import UUID

from msmqwire.capture import ALL_TABLES, CAPTURE
from msmqwire.columns.fields import Rule, Violations
from msmqwire.columns.schema import FAULT, GUID, Column, DataType, FaultRule, ListOf, StructOf, Table
from msmqwire.discovery import client as discovery
from msmqwire.formatname.schema import FORMAT_NAMES
from msmqwire.insight.query_files import SECTIONS, VIEW_FILES, Query
from msmqwire.insight.rules import RULES as DETECTED
from msmqwire.insight.sql_functions import FUNCTIONS
from msmqwire.insight.tables import NAMES, VIEWS, columns_of
from msmqwire.mqqb import _packet
from msmqwire.mqqb._packet import READABLE, SESSION_READABLE
from msmqwire.mqqb.groups import GROUPS, MESSAGE_DEFAULTS, NAMED, SESSION_DEFAULTS
from msmqwire.mqqb.schema import MESSAGES, SESSIONS
from msmqwire.session import sequences
from msmqwire.session import transitions as session
from msmqwire.session.timers import Timer
from msmqwire.session.transitions import SessionState
from msmqwire.spark.schema import spark_columns
from msmqwire.wire.codes import FAULTS

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from stubs import docstring  # noqa: E402
from tests.layers import LAYERS, WAY_OF_A_PACKET, arrows  # noqa: E402

PACKAGE = HERE.parent / "msmqwire"
STATEMENTS = HERE.parent / "tests" / "contract" / "conformance.csv"
MUSTS = HERE.parent / "tests" / "contract" / "musts.csv"

INTRODUCTION = """\
# Tables

Written by `make docs` from the schemas in the code; do not edit.

A table has the same columns in numpy, Arrow, Parquet, JSON and Spark, in this order. In a table read from a capture the
columns of [capture](#capture) come first.

- numpy is `batch["column"]`: a dtype with its shape, or a class of [Columns](columns.md#what-comes-out). An enumeration
  has the protocol's own numbers, or numbers of this package where the protocol has none: they stand after the names.
  255, in `uint16` 65535, stands in rows without a value.
- Arrow is `batch.to_arrow()`. `guid="uuid"` gives `arrow.uuid`, `guid="text"` text in place of 16 bytes, and
  `dictionaries=False` strings in place of dictionaries.
- The bytes of a GUID stand in numpy as on the wire, where its first three numbers are little-endian, and in Arrow in
  the order of its text.
- JSON, CSV and Parquet have GUIDs, enumerations and addresses as text.
- Spark has neither unsigned integers nor nanoseconds: integers are wider there, and a time, in microseconds, is
  followed by its nanoseconds.

A column is null where the packet lacks the field: `batch.is_valid("column")` is false there. In a row with a fault only
`fault`, `unrecognized` and the columns of the capture have values; where the fault is
[`incomplete`](captures.md#packets-that-lost-bytes), also the columns of the fields before it.
"""

FAULTS_BEGIN = """\
## Faults

A payload that cannot be decoded has a fault. The `code` is one of these, in every table; `field` names the part of the
packet by its name in the specification, `offset` is in bytes from the start of the payload. `value` is the number that
was read and `needed` the number that was needed; both may be null.

| Code | Meaning |
|---|---|
"""

FAULTS_END = """
Fields are read in the order of the wire, each check is made when its field is read, and the first fault wins. It is at
the start of the field unless the row says another place; `Field[k]` is entry *k* of a field. `incomplete` takes the
place of `truncated` where the [capture lacks](captures.md#packets-that-lost-bytes) the bytes.
"""

VIOLATIONS_BEGIN = """\
## Violations

A packet that decodes but breaks a rule of the specification has a violation. Strict decoding makes some violations
faults, with this code, and accepts the others.
"""


def in_numpy(type_: DataType, shape: str = "(n,)") -> str:
    """The dtype and the shape of ``batch[name]``, or its class; what a list of ``shape`` (m,) has in ``values``."""
    if type_ is FAULT:
        return "structured `(faults,)`"
    if isinstance(type_, ListOf):
        return f"`ListColumn`, values: {in_numpy(type_.item, '(m,)')}"
    if isinstance(type_, StructOf):
        return "; ".join([f"`{name}` {in_numpy(member, shape)}" for name, member in type_.members])
    if type_.view is not None:
        return f"`{type_.view.__name__}`"
    if type_.dtype.subdtype is not None:
        return f"`{type_.dtype.base}` `{shape.replace(',', ', 16')}`, as on the wire"
    return f"{'structured' if type_.dtype.names else f'`{type_.dtype}`'} `{shape}`"


def in_arrow(type_: DataType) -> str:
    """The type in ``batch.to_arrow()``."""
    shown = re.sub(r"dictionary<values=(\w+), indices=(\w+), ordered=0>", r"dictionary<\2, \1>", str(type_.arrow()))
    return f"`{shown}`" + (", as in text" if type_ is GUID else "")


def in_spark(column: Column) -> str:
    """The type of the column in Spark, and that of the one that follows it, if one does."""
    return ", ".join(
        [
            f"`{each.spark.simpleString()}`" + ("" if each.name == column.name else f" (`{each.name}`)")
            for each in spark_columns([column])
        ]
    )


def table(schema: Table) -> Iterator[str]:
    """Section of one table."""
    yield f"## {schema.name}"
    yield ""
    yield f"Source: {schema.section}."
    yield ""
    yield "| column | numpy | Arrow | Spark | meaning |"
    yield "|---|---|---|---|---|"
    for column in schema.all_columns:
        types = f"{in_numpy(column.type)} | {in_arrow(column.type)} | {in_spark(column)}"
        yield f"| `{column.name}` | {types} | {column.meaning} |"
    if schema.fields:
        yield ""
        yield "Fields that a fault can name: " + ", ".join(f"`{name}`" for name in schema.fields) + "."
    yield ""


def state_diagram(arrows: Iterable[tuple[str, str, str]], initial: str) -> Iterator[str]:
    """Mermaid diagram of (state, next state, label): an arrow for each pair of states, with its labels."""
    labels: dict[tuple[str, str], list[str]] = {}
    for before, after, label in arrows:
        labels.setdefault((before, after), []).append(label)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {initial}"
    for (before, after), each in labels.items():
        yield f"    {before} --> {after}: {', '.join(dict.fromkeys(each))}"
    yield "```"


def discovery_arrows() -> Iterator[tuple[str, str, str]]:
    """The arrows of the client of discovery, with the names of its rules."""
    for transition in discovery.TRANSITIONS:
        for state in transition.states:
            yield state.value, (transition.target or state).value, transition.rule


def _event(event: type[object] | Timer) -> str:
    return f"{event.value} expires" if isinstance(event, Timer) else event.__name__


def session_arrows() -> Iterator[tuple[str, str, str]]:
    """The arrows of a session that change its state but for those that close it."""
    yield SessionState.CLOSED, SessionState.WAITING_EC_MSG, "connection made (acceptor)"
    yield SessionState.CLOSED, SessionState.WAITING_RECONNECT, "messages wait (initiator)"
    yield SessionState.WAITING_RECONNECT, SessionState.WAITING_ECR_MSG, "connection made"
    for transition in session.TRANSITIONS:
        for state in transition.states:
            if transition.target not in (None, SessionState.CLOSED):
                yield state, transition.target, _event(transition.event)


def session_transitions() -> Iterator[str]:
    """The diagram of a session and its table."""
    yield from state_diagram(session_arrows(), SessionState.CLOSED)
    yield ""
    yield "| In | On | Then | Otherwise | Source |"
    yield "|---|---|---|---|---|"
    for each in session.TRANSITIONS:
        outcome = f"{each.target or 'as before'} | {each.otherwise or ''}"
        yield f"| {', '.join(each.states)} | {_event(each.event)} | {outcome} | {each.section} |"


def layers() -> Iterator[str]:
    """The layers as a drawing and as a table."""
    yield "```mermaid"
    yield "flowchart TB"
    yield from (f"    {package} --> {other}" for package, other in arrows())
    yield from (f"    {before} ==>|{what}| {after}" for before, what, after in WAY_OF_A_PACKET)
    yield "```"
    yield ""
    yield "| Layer | Folder | Contents |"
    yield "|---|---|---|"
    for number, (packages, contents) in reversed([*enumerate(LAYERS.items(), 1)]):
        folders = (f"`{name}/`" if (PACKAGE / name).is_dir() else f"`{name}.py`" for name in packages)
        yield f"| {number} | {', '.join(folders)} | {contents} |"


def sequence_transitions() -> Iterator[str]:
    """The diagram of a sequence of sent messages, and its table."""
    rows = sequences.SEQUENCE_TRANSITIONS
    arrows = [(state, each.target, each.event.value) for each in rows for state in each.states if each.target]
    yield from state_diagram((arrow for arrow in arrows if arrow[0] is not arrow[1]), sequences.SequenceStatus.CLOSED)
    yield ""
    yield "| In | On | Then | Does | Decision |"
    yield "|---|---|---|---|---|"
    for each in rows:
        does = each.method.strip("_").replace("_", " ")
        decision = f"[{each.decision}](conformance.md#{each.decision.lower()})"
        yield f"| {', '.join(each.states)} | {each.event} | {each.target or 'as before'} | {does} | {decision} |"


def _words(part: Callable[..., object]) -> str:
    return part.__name__.strip("_").replace("_", " ")


def _legend(title: str, parts: Iterable[Callable[..., object]]) -> Iterator[str]:
    yield ""
    yield f"| {title} | Meaning |"
    yield "|---|---|"
    for part in dict.fromkeys(parts):
        if part.__doc__:
            yield f"| {_words(part)} | {part.__doc__.rstrip('.')} |"


def transition_tables(transitions: Iterable[discovery.Transition]) -> Iterator[str]:
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


def fault_rules(names: str, rules: Iterable[FaultRule]) -> Iterator[str]:
    """Section of the faults of one table, or of tables that share them."""
    yield from (f"### Faults of {names}", "", "| Code | Field | When |", "|---|---|---|")
    for rule in rules:
        codes, fields = (re.sub(r"[\w.]+", r"`\g<0>`", each) for each in (rule.codes, rule.fields))
        yield f"| {codes} | {fields or 'any'} | {rule.condition} |"
    yield ""


def violations(names: str, tables: Iterable[Table]) -> Iterator[str]:
    """Section of the violations of one table, or of tables that share some."""
    owners: dict[str, list[str]] = {}
    rules: dict[str, Rule] = {}
    for each in tables:
        for name, flag in zip(each.violation_names, each.violations or (), strict=True):
            assert isinstance(flag, Violations)
            rules[name] = flag.rule
            owners.setdefault(name, []).append(each.name)
    several = any(len(found) > 1 for found in owners.values())
    heads = ["Name", *["Tables"] * several, "Field", "Requirement", "Section", "Strict decoding"]
    yield from (f"### Violations of {names}", "", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}")
    for name, rule in rules.items():
        shown = [f"`{name}`", *[", ".join(owners[name])] * several, f"`{rule.field}`", rule.requirement, rule.section]
        yield f"| {' | '.join(shown)} | {rule.strict or 'accepted'} |"
    yield ""


def faults_and_violations() -> Iterator[str]:
    """The sections of all faults and violations."""
    yield FAULTS_BEGIN + "\n".join(f"| `{code}` | {meaning} |" for code, meaning in FAULTS.items())
    yield FAULTS_END
    groups: dict[tuple[FaultRule, ...], list[Table]] = {}
    for each in (*(kind.table for kind in ALL_TABLES.values()), FORMAT_NAMES):
        groups.setdefault(each.faults, []).append(each)
    named = [(" and ".join(each.name for each in tables), rules, tables) for rules, tables in groups.items() if rules]
    for names, rules, _ in named:
        yield from fault_rules(names, rules)
    yield VIOLATIONS_BEGIN
    for names, _, tables in named:
        if tables[0].violations is not None:
            yield from violations(names, tables)


def queries(heads: str, files: Iterable[Query]) -> Iterator[str]:
    """Sections or rules, as a table."""
    yield heads
    yield re.sub("[^|]+", "---", heads)
    for query in files:
        severity = f" | {query.header['severity']}" if "severity" in query.header else ""
        yield f"| `{query.name}`{severity} | {query.header['about']} |"


def query_columns() -> Iterator[str]:
    """The columns of the tables of queries that the tables of captures do not have, and the functions."""
    yield "| Table | Column | What it is |"
    yield "|---|---|---|"
    for table in NAMES:
        for name, about in {} if table in VIEWS else columns_of(table).items():
            if about:
                yield f"| `{table}` | `{name}` | {about} |"
    names = sorted(name for name in FUNCTIONS if name.isidentifier())
    yield ""
    yield from textwrap.wrap(f"The functions are {', '.join(f'`{name}`' for name in names)}.", 120)


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
    "decode change notifications": ("Decode change notifications,", "msmqwire"),
    "decode messages, all columns": ("Decode user messages,", "msmqwire, all columns"),
    "capture file to payloads (UDP)": ("Capture file (pcap, UDP) to payloads:", "msmqwire"),
    "capture file to packets in TCP streams": ("Capture file (pcap, TCP in order) to message packets:", "msmqwire"),
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
_FIGURE = re.compile(r"^  (?P<name>\S.*?)(?: \(.*\))?\s+[\d,.]+ +(?P<ratio>[\d,.]+) +[\d,.]+ - ", re.MULTILINE)


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
    if type_.view is not None:
        return type_.view.__name__.removesuffix("Column")
    base = type_.dtype.base
    return {"b": "Bool", "M": "Time", "V": "Record"}.get(base.kind) or base.name.capitalize()


def column_names(tables: Iterable[Table]) -> Iterator[str]:
    """The names of columns by the type of ``batch[name]``, as a stub."""
    kinds: dict[str, dict[str, None]] = {}
    for each in tables:
        for column in each.all_columns:
            kinds.setdefault(value_kind(column.type), {})[column.name] = None
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


PACKETS = """\
\"\"\"The classes of message packets; written by `make docs` from the tables, do not edit.\"\"\"

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from typing_extensions import Buffer

from msmqwire.columns import WirePacket
from msmqwire.formatname import FormatName
from msmqwire.mqqb.groups import (
    Acknowledgment,
    CompoundMessageHeader,
    MultiQueueFormatHeader,
    SecurityHeader,
    SessionHeader,
    SoapHeader,
    TransactionHeader,
    TransportName,
)

# fmt: off
READABLE: frozenset[str]
SESSION_READABLE: tuple[str, ...]

class MessagePacket(WirePacket):
DOC_OF_BASE
    violations: Final[tuple[str, ...]]
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
"""
PACKET_FUNCTIONS = {
    "decode": """\
def decode(data: Buffer, *, strict: bool = False, transport: TransportName = "unknown") -> (
    UserMessage | EstablishConnection | ConnectionParameters | SessionAck | Ping
):""",
    "encode": "def encode(packet: MessagePacket) -> bytes:",
    "packet_extent": "def packet_extent(start: bytes) -> int:",
}


#: What keywords take beside the types of attributes.
TAKEN = {"bytes": "Buffer", "datetime": "datetime | int", "UUID": "UUID | str"}


def keyword(column: Column, default: object) -> str:
    """A keyword of a class of packets, as a parameter of a stub."""
    kind = TAKEN.get(column.type.python, column.type.python) + (" | str" if column.name in NAMED else "")
    kind += " | None" if default is None else ""
    shown = "..." if isinstance(default, UUID) else repr(default)
    return f"{column.name}: {kind}" + ("" if default is ... else f" = {shown}")


def packet_class(
    table: Table, name: str, base: str, keywords: Iterable[str], attributes: Iterable[str]
) -> Iterator[str]:
    """A class of packets as a stub: the parameters of its keywords, and the columns that are its attributes."""
    yield ""
    yield f"class {name}({base}):"
    yield from (*docstring(getattr(_packet, name).__doc__, "    "), "")
    parameters = ["self", "*", *keywords]
    if parameters[2:]:
        yield f"    def __init__(\n        {(',' + chr(10) + ' ' * 8).join(parameters)},\n    ) -> None: ..."
    # Not typed as optional: what only malformed messages, or only incomplete packets lack
    always = {0, *(table.presence_bits.get(name, 0) for name in ("HAS_PROPERTIES", "HAS_KIND"))}
    for column in table.select(attributes):
        missing = column.presence not in always and base != "SessionPacket"
        kind = column.type.python.replace("bytes", "memoryview") + (" | None" if missing else "")
        yield f"    {column.name}: Final[{kind}]"
        yield f'    """{column.about}"""'


def packet_classes() -> Iterator[str]:
    """The stub of the module with the classes of message packets."""
    columns = {column.name: column for column in MESSAGES.columns}
    groups = [f"{name}: {group.__name__} | Mapping[str, Any] | None = None" for name, group in GROUPS.items()]
    keywords = [keyword(columns[name], default) for name, default in MESSAGE_DEFAULTS.items()]
    yield PACKETS.rstrip().replace("DOC_OF_BASE", "\n".join(docstring(_packet.MessagePacket.__doc__, "    ")) + "\n")
    attributes = READABLE - {"sent_time_seconds"}  # which is no column
    yield from packet_class(
        MESSAGES, "UserMessage", "MessagePacket", [*keywords, "body_text: str | None = None", *groups], attributes
    )
    yield from (f"    {name}: Final[{group.__name__} | None]" for name, group in GROUPS.items())
    yield "    sent_time_seconds: Final[int]"
    yield '    """SentTime, the seconds since 1970"""'
    yield "    acknowledged: Final[Acknowledgment | None]"
    yield from packet_class(SESSIONS, "SessionPacket", "MessagePacket", (), SESSION_READABLE)
    columns = {column.name: column for column in SESSIONS.columns}
    for kind, defaults in SESSION_DEFAULTS.items():
        keywords = [keyword(columns[name], default) for name, default in defaults.items()]
        name = kind.title().replace("_", "")
        yield from packet_class(SESSIONS, name, "SessionPacket", keywords, defaults)
    for name, begin in PACKET_FUNCTIONS.items():
        yield from ("", begin, *docstring(getattr(_packet, name).__doc__, "    "))


def pages() -> dict[Path, str]:
    """Text of every page with generated parts, by file."""
    lines = [
        INTRODUCTION,
        *table(CAPTURE),
        *(line for kind in ALL_TABLES.values() for line in table(kind.table)),
        *table(FORMAT_NAMES),
        *faults_and_violations(),
    ]
    stub = column_names((CAPTURE, *(kind.table for kind in ALL_TABLES.values()), FORMAT_NAMES))
    conformance = HERE / "conformance.md"
    conforming = filled(conformance.read_text("utf-8"), "requirements", requirements(MUSTS))
    rules_of_client = [*state_diagram(discovery_arrows(), "idle"), "", *transition_tables(discovery.TRANSITIONS)]
    readme = HERE.parent / "README.md"
    insight = HERE / "insight.md"
    answers = filled(insight.read_text("utf-8"), "sections", queries("| Table | A row is |", SECTIONS.values()))
    answers = filled(answers, "rules of detect", queries("| Rule | Severity | What it means |", DETECTED))
    answers = filled(answers, "views", queries("| Table | A row is |", VIEW_FILES.values()))
    performance = (HERE / "performance.md").read_text("utf-8")
    return {
        readme: filled(readme.read_text("utf-8"), "figures", speed(performance)),
        PACKAGE / "columns" / "names.pyi": "\n".join(stub) + "\n",
        PACKAGE / "mqqb" / "_packet.pyi": "\n".join(packet_classes()) + "\n",
        HERE / "tables.md": "\n".join(lines),
        HERE / "architecture.md": filled((HERE / "architecture.md").read_text("utf-8"), "layers", layers()),
        HERE / "discovery.md": filled(
            (HERE / "discovery.md").read_text("utf-8"), "rules of the client", rules_of_client
        ),
        HERE / "sessions.md": filled(
            filled((HERE / "sessions.md").read_text("utf-8"), "transitions", session_transitions()),
            "sequences",
            sequence_transitions(),
        ),
        insight: filled(answers, "columns of queries", query_columns()),
        conformance: filled(conforming, "statements on sessions", statements(STATEMENTS, "QS-")),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(HERE.parent)}")
