"""A summary and findings as one self-contained page.

Every text of a capture becomes the text of an element or the value of an attribute, which ``xml.etree`` escapes.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from msmqwire.errors import counted
from msmqwire.insight.explain import explain
from msmqwire.insight.findings import Finding
from msmqwire.insight.frames import frames_text, seen_text
from msmqwire.insight.summary import Summary
from msmqwire.mqqb.message.classes import MEANINGS
from msmqwire.wire.codes import FAULTS

__all__ = ["MESSAGE_COLUMNS", "MOST_MESSAGES", "page"]

MOST_MESSAGES = 100
#: The columns of the messages that a report shows.
#: Of messages, the columns that are text of the sender
TEXTS = ("label", "body_text", "extension_text")
MESSAGE_COLUMNS = ("file", "frame", "time", "src", "destination_queue", *TEXTS)
_MOST_ROWS = 1000
_LONGEST_TEXT = 300
_MOST_PAIRS = 60
_MOST_BARS = 120
_WIDEST_BAR = 40
_DOT_SECONDS = 20
_SEVERITIES = ("high", "medium", "low")
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( – .*)?")
# Controls and marks that change the direction of writing
_UNPRINTABLE = re.compile("[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]")


_TITLES = {
    "hosts": "Hosts and roles",
    "connections": "Attempts to connect",
    "queue_managers": "Queue managers",
    "queues": "Queues and their senders",
    "acknowledgments": "Messages that asked for acknowledgments",
    "answers": "How soon messages were acknowledged",
    "sequences": "Sequences of transactional messages",
    "classes": "Acknowledgments by class",
    "sessions": "Sessions",
    "repeated": "Messages sent more than once",
    "discovery": "Discovery",
    "notifications": "Change notifications",
    "problems": "Faults and violations",
    "totals": "Rows",
}


def page(
    summary: Summary,
    findings: Sequence[Finding],
    files: Sequence[str],
    *,
    made: Sequence[str] = (),
    counts: Sequence[str] = (),
    messages: Sequence[dict[str, Any]] = (),
) -> str:
    """The report as HTML.

    ``made`` are lines that say how it was made, ``counts`` what became of every frame; ``messages`` are rows of the
    table of messages with ``MESSAGE_COLUMNS``.
    """
    sections = [("findings", "Findings", _findings(findings)), ("traffic", "Who talks to whom", _traffic(summary))]
    sections.append(("timeline", "Timeline", _timeline(summary)))
    if messages:
        sections.append(("messages", "Messages", _messages(messages)))
    for name, title in _TITLES.items():
        sections.append((name, title, _section(summary, name)))
    if counts:
        sections.append(("reading", "What was read", [_list(counts)]))
    head = _element(
        "head", {},
        _element("meta", {"charset": "utf-8"}),
        _element("meta", {"http-equiv": "Content-Security-Policy", "content": _policy()}),
        _element("meta", {"name": "viewport", "content": "width=device-width"}),
        _element("title", {}, "MSMQ report"),
        _element("style", {}, _beside("report.css"), raw=True),
    )  # fmt: skip
    links = [_element("li", {}, _element("a", {"href": f"#{id_}"}, title)) for id_, title, _ in sections]
    body = _element(
        "body", {},
        _element("a", {"class": "skip", "href": "#main"}, "Skip to the content"),
        _element(
            "header", {},
            _element("h1", {}, "MSMQ report"),
            _element("p", {}, _subject(files)),
            _element("p", {}, _overview(summary, findings)),
            *([_list(made)] if made else []),
        ),
        _element("nav", {"aria-label": "Sections"}, _element("ul", {}, *links)),
        _element(
            "main", {"id": "main"},
            *(
                _element("section", {"aria-labelledby": id_}, _element("h2", {"id": id_}, title), *content)
                for id_, title, content in sections
            ),
        ),
        _element("script", {}, _beside("report.js"), raw=True),
    )  # fmt: skip
    html = _element("html", {"lang": "en"}, head, body)
    return "<!DOCTYPE html>\n" + ElementTree.tostring(html, encoding="unicode", method="html") + "\n"


def _beside(name: str) -> str:
    """The text of a file beside this module."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _policy() -> str:
    digest = base64.b64encode(hashlib.sha256(_beside("report.js").encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _subject(files: Sequence[str]) -> str:
    return ", ".join(files[:5]) + (f" and {counted(len(files) - 5, 'more capture')}" if len(files) > 5 else "")


def _overview(summary: Summary, findings: Sequence[Finding]) -> str:
    """The numbers that a reader wants first."""
    totals = summary.records("totals")
    seen = [row[name] for row in totals for name in ("first_seen", "last_seen") if row[name] is not None]
    # Change notifications are in messages
    packets = sum(row["rows"] for row in totals if row["in_table"] != "notifications")
    numbers = [
        counted(packets, "packet"),
        counted(len({row["address"] for row in summary.records("hosts")}), "host"),
        counted(len({row["queue"] for row in summary.records("queues")}), "queue"),
        counted(sum(row["faults"] for row in totals), "payload with a fault", "payloads with faults"),
        counted(len(findings), "finding"),
    ]
    high = sum(finding.severity == "high" for finding in findings)
    worst = f" ({high:,} high)" if high else ""
    when = f"; {seen_text(min(seen), max(seen))} UTC" if seen else ""
    return ", ".join(numbers) + worst + when


def _element(tag: str, attributes: dict[str, str], *content: Any, raw: bool = False) -> ElementTree.Element:
    """An element with elements and texts in it."""
    made = ElementTree.Element(tag, {name: _text(value) for name, value in attributes.items()})
    for item in content:
        if isinstance(item, ElementTree.Element):
            made.append(item)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + _text(item)
        else:
            made.text = (made.text or "") + (item if raw else _text(item))
    return made


def _list(lines: Iterable[str]) -> ElementTree.Element:
    return _element("ul", {}, *(_element("li", {}, line) for line in lines))


def _text(value: Any) -> str:
    return _UNPRINTABLE.sub("\ufffd", str(value))


def _findings(findings: Sequence[Finding]) -> list[ElementTree.Element]:
    if not findings:
        return [_element("p", {}, "None.")]
    rows = []
    for finding in sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity)):
        evidence = finding.readable()
        seen = evidence.pop("seen")
        frames = frames_text([{"file": finding.file, "frame": frame} for frame in finding.frames])
        shown = "; ".join(f"{name} {_shown(value)}" for name, value in evidence.items())
        rows.append([finding.severity, f"{finding.title} ({finding.rule}, {finding.reference})", shown, seen, frames])
    return [_table("Findings of msmqwire detect", ["severity", "finding", "evidence", "seen", "frames"], rows)]


def _messages(messages: Sequence[dict[str, Any]]) -> list[ElementTree.Element]:
    caption = f"Messages with a label or a text; of more than {MOST_MESSAGES} the first"
    names = ["time", "from", "queue", "label", "text", "extension", "frame"]
    shown = ("time", "src", "destination_queue", *TEXTS)
    return [
        _table(
            caption,
            names,
            [[*(_shown(row[name]) for name in shown), f"{row['file']} {row['frame']}"] for row in messages],
        )
    ]


def _section(summary: Summary, name: str) -> list[ElementTree.Element]:
    records = summary.records(name)
    shown = records[:_MOST_ROWS]
    names = [field for field in summary.section(name).schema.names if any(row[field] is not None for row in shown)]
    rows = [[_cell(column, row) for column in names if column != "last_seen"] for row in shown]
    names = ["seen" if column == "first_seen" else column for column in names if column != "last_seen"]
    if name in _MEANINGS:
        names = [*names, "meaning"]
        for row, values in zip(rows, shown, strict=True):
            row.append(_MEANINGS[name](values))
    if not rows:
        return [_element("p", {}, "None.")]
    about = summary.sections[name].about
    content = [_table(f"{about[0].upper()}{about[1:]}", names, rows)]
    groups, packets = summary.omitted(name)
    left_out = len(records) - len(rows)
    if left_out:
        content.append(_element("p", {}, f"{left_out:,} more rows: msmqwire summary --table {name}"))
    if groups:
        content.append(
            _element("p", {}, f"{groups:,} rows of {packets:,} packets are left out: too many are distinct.")
        )
    return content


def _meaning_of_problem(problem: dict[str, Any]) -> str:
    if problem["problem"] == "fault":
        return FAULTS[problem["code"]]
    found = [
        each for each in explain(problem["code"]) if each.kind == "violation" and each.where == problem["in_table"]
    ]
    return found[0].sentence if found else ""


def _meaning_of_class(acknowledgment: dict[str, Any]) -> str:
    return MEANINGS.get(acknowledgment["class"], "")


_MEANINGS = {"problems": _meaning_of_problem, "classes": _meaning_of_class}


def _table(caption: str, names: Iterable[str], rows: Sequence[Sequence[Any]]) -> ElementTree.Element:
    heads = [
        _element("th", {"scope": "col"}, _element("button", {"type": "button"}, name.replace("_", " ")))
        for name in names
    ]
    lines = [
        _element(
            "tr", {},
            *(
                _element("td", _class(value), f"{value:,}" if isinstance(value, int) else value)
                for value in row
            ),
        )
        for row in rows
    ]  # fmt: skip
    table = _element(
        "table", {}, _element("caption", {}, caption), _element("thead", {}, _element("tr", {}, *heads)),
        _element("tbody", {}, *lines),
    )  # fmt: skip
    return _element("div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}, table)


def _class(value: Any) -> dict[str, str]:
    if isinstance(value, int):
        return {"class": "number"}
    if _TIME.fullmatch(value):
        return {"class": "time"}
    return {"class": "high"} if value == "high" else {}


def _cell(name: str, row: dict[str, Any]) -> Any:
    value = row[name]
    if name == "first_seen":
        return seen_text(value, row["last_seen"])
    if name == "frames":
        return frames_text(value)
    # A port or a number of a message is no quantity
    if name in ("src_port", "dst_port", "message_id", "code", "version"):
        return "" if value is None else str(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else _shown(value)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    text = str(value)
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…"


def _traffic(summary: Summary) -> list[ElementTree.Element]:
    """Pairs of hosts with their rows, drawn by Graphviz if it is installed, and as a table."""
    pairs = summary.records("conversations")
    shown = pairs[:_MOST_PAIRS]
    if not shown:
        return [_element("p", {}, "None.")]
    columns = ("src", "dst", "messages", "bytes", "sessions", "discovery", "queues")
    rows = [[*(_cell(name, row) for name in columns), frames_text(row["frames"])] for row in shown]
    content = [_table("Packets from one host to another", ["from", "to", *columns[2:], "frames"], rows)]
    if len(pairs) > len(shown):
        content.append(_element("p", {}, f"The {len(shown)} busiest of {len(pairs):,} pairs."))
    drawing = _drawing(summary, [((row["src"], row["dst"]), row["packets"]) for row in shown])
    if drawing is None:
        return content
    label = "Hosts and the packets between them"
    return [
        _element("div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": label}, drawing),
        *content,
    ]


def _drawing(summary: Summary, pairs: Sequence[tuple[tuple[str, str], int]]) -> ElementTree.Element | None:
    program = shutil.which("dot")
    if program is None:
        return None
    roles = {row["address"]: [role.replace("_", " ") for role in row["roles"]] for row in summary.records("hosts")}
    numbers = {host: f"n{at}" for at, host in enumerate(dict.fromkeys(host for pair, _ in pairs for host in pair))}
    lines = [
        f'{number} [label="{_quoted(host)}\\n{_quoted(", ".join(roles.get(host, [])))}"];'
        for host, number in numbers.items()
    ]
    lines += [f'{numbers[src]} -> {numbers[dst]} [label="{count:,}"];' for (src, dst), count in pairs]
    source = (
        'digraph { bgcolor=transparent; rankdir=LR; node [shape=box style=rounded fontname="sans-serif" fontsize=11]; '
        'edge [fontname="sans-serif" fontsize=9];' + "".join(lines) + "}"
    )
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=source.encode(), capture_output=True, timeout=_DOT_SECONDS, check=True
        )
        svg = ElementTree.fromstring(done.stdout)
    except (subprocess.SubprocessError, OSError, ElementTree.ParseError):
        return None
    for each in svg.iter():
        each.tag = each.tag.rpartition("}")[2]
        for name in ("stroke", "fill"):
            if each.get(name) == "black":
                each.set(name, "currentColor")
    for child in [group for group in svg.iter() if group.find("title") is not None]:
        child.remove(child.find("title"))  # type: ignore[arg-type] # names of nodes, which mean nothing
    svg.set("role", "img")
    svg.set("aria-label", "Hosts and the packets between them; the table below has the same")
    return svg


def _quoted(text: str) -> str:
    return _text(text).replace("\\", "\\\\").replace('"', '\\"')


def _timeline(summary: Summary) -> list[ElementTree.Element]:
    """Rows over time as bars, and events."""
    counts: Counter[int] = Counter()
    for row in summary.records("minutes"):
        if row["in_table"] != "notifications":
            counts[int(row["minute"].timestamp()) // 60] += row["rows"]
    if not counts:
        return [_element("p", {}, "No packet has a time.")]
    first, last = min(counts), max(counts)
    width = (last - first) // _MOST_BARS + 1
    bars: Counter[int] = Counter()
    for minute, rows in counts.items():
        bars[(minute - first) // width] += rows
    highest, number = max(bars.values()), (last - first) // width + 1
    step = min(960 / number, _WIDEST_BAR)
    rects = [
        _element(
            "rect",
            {"x": f"{at * step:.1f}", "width": f"{max(step - 1, 1):.1f}", "y": f"{110 - 100 * rows / highest:.1f}",
             "height": f"{100 * rows / highest:.1f}"},
            _element("title", {}, f"{_clock(first + at * width)}: {rows:,} packets"),
        )
        for at, rows in sorted(bars.items())
    ]  # fmt: skip
    every = "minute" if width == 1 else f"{width:,} minutes"
    label = f"Packets of every {every}, at most {highest:,}, from {_clock(first)} to {_clock(last)} UTC"
    svg = _element("svg", {"viewBox": "0 0 960 112", "class": "bars", "role": "img", "aria-label": label}, *rects)
    table = _element("details", {}, _element("summary", {}, "As a table"), *_section(summary, "minutes"))
    return [_element("p", {}, label + "."), svg, table, *_section(summary, "timeline")]


def _clock(minute: int) -> str:
    return f"{datetime.fromtimestamp(60 * minute, UTC):%Y-%m-%d %H:%M}"
