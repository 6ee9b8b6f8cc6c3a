"""A summary and findings as one self-contained page.

Every text of a capture becomes the text of an element or the value of an attribute, which ``xml.etree`` escapes.
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.insight.report")

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from msmqwire.columns.plain import records
from msmqwire.errors import counted
from msmqwire.insight.explain import explain
from msmqwire.insight.findings import Finding
from msmqwire.insight.frames import frames_text, printable, seen_text
from msmqwire.insight.report_charts import (
    FOLDER,
    MOST_ROWS,
    REPORT_SECTIONS,
    activity_chart,
    hosts_chart,
    latency_chart,
    queues_chart,
)
from msmqwire.insight.rules import SEVERITIES
from msmqwire.insight.summary import Summary
from msmqwire.mqqb.message.classes import MEANINGS
from msmqwire.wire.codes import FAULTS

__all__ = ["MESSAGE_COLUMNS", "MOST_MESSAGES", "REPORT_SECTIONS", "TEXTS", "page"]

#: The most messages that a report shows besides those of findings.
MOST_MESSAGES = 100
#: Of messages, the columns that are text of the sender.
TEXTS = ("label", "body_text", "extension_text")
#: The columns of the messages that a report shows.
MESSAGE_COLUMNS = (
    "file", "frame", "time", "src", "dst", "message_class", "message_class_name", "destination_queue", *TEXTS
)  # fmt: skip
_LONGEST_TEXT = 300
_MOST_PAIRS = 60
_SCRIPTS = (f"{FOLDER.name}/vega.min.js", "report.js")
_NO_TIME = datetime.max.replace(tzinfo=UTC)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( – .*)?")

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
    """The report as HTML, of a summary with ``REPORT_SECTIONS``.

    ``made`` are lines that say how it was made, ``counts`` what became of every frame; ``messages`` are rows of the
    table of messages with ``MESSAGE_COLUMNS``.
    """
    findings = sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
    # A capture without a time has no order
    messages = sorted(messages, key=lambda row: row["time"] or _NO_TIME)
    charts = {
        name: (title, chart)
        for name, title, chart in (
            ("activity", "Packets over time", activity_chart(summary, findings)),
            ("hosts", "Hosts and the packets between them", hosts_chart(summary, findings)),
            ("queues", "The queues with the most bytes", queues_chart(summary)),
            ("latency", "How soon messages were acknowledged", latency_chart(summary)),
        )
        if chart is not None
    }
    shown_in = _messages_of_findings(findings, messages)
    sections = [("glance", "At a glance", _charts(charts))] if charts else []
    sections.append(("findings", "Findings", _findings(findings, shown_in)))
    if messages:
        sections.append(("messages", "Messages", _messages(messages, shown_in)))
    sections.append(("traffic", "Who talks to whom", _traffic(summary)))
    sections.append(("timeline", "Timeline", _timeline(summary)))
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
        _element("style", {}, _read("report.css"), raw=True),
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
        _element("script", {"type": "application/json", "id": "charts"}, _json(charts), raw=True),
        *(_element("script", {}, _read(name), raw=True) for name in _SCRIPTS),
    )  # fmt: skip
    html = _element("html", {"lang": "en"}, head, body)
    return "<!DOCTYPE html>\n" + ElementTree.tostring(html, encoding="unicode", method="html") + "\n"


def _read(name: str) -> str:
    """The text of a file beside this module."""
    return Path(__file__).parent.joinpath(name).read_text("utf-8")


def _policy() -> str:
    scripts, style = " ".join(map(_hash, _SCRIPTS)), _hash("report.css")
    return f"default-src 'none'; style-src {style}; script-src {scripts}"


def _hash(name: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(_read(name).encode()).digest()).decode()}'"


def _json(charts: Mapping[str, tuple[str, Any]]) -> str:
    """The charts as text of a script, in which the parser of HTML finds no tag."""
    specifications = {name: chart for name, (_, chart) in charts.items()}
    return json.dumps(specifications, separators=(",", ":")).replace("<", "\\u003c")


def _charts(charts: Mapping[str, tuple[str, Any]]) -> list[ElementTree.Element]:
    """The places of the charts, which the script fills."""
    note = "A browser that runs no scripts shows no charts. The tables below have the same numbers."
    content = [_element("noscript", {}, _element("p", {}, note))]
    for name, (title, _) in charts.items():
        place = _element("div", {"class": "chart", "id": f"chart-{name}"})
        content.append(_element("figure", {}, _element("figcaption", {}, title), place))
    return content


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
        counted(len(summary.section("hosts")["address"].unique()), "host"),
        counted(len(summary.section("queues")["queue"].unique()), "queue"),
        counted(sum(row["faults"] for row in totals), "payload with a fault", "payloads with faults"),
        counted(len(findings), "finding"),
    ]
    high = sum(finding.severity == "high" for finding in findings)
    worst = f" ({high:,} high)" if high else ""
    when = f"; {seen_text(min(seen), max(seen))} UTC" if seen else ""
    return ", ".join(numbers) + worst + when


def _element(tag: str, attributes: dict[str, str], *content: Any, raw: bool = False) -> ElementTree.Element:
    """An element with elements and texts in it; lines of cells are lines of the page."""
    made = ElementTree.Element(tag, {name: printable(value) for name, value in attributes.items()})
    for item in content:
        if isinstance(item, ElementTree.Element):
            made.append(item)
            continue
        text = item if raw else printable(item, lines=tag == "td")
        if len(made):
            made[-1].tail = (made[-1].tail or "") + text
        else:
            made.text = (made.text or "") + text
    return made


def _list(lines: Iterable[str]) -> ElementTree.Element:
    return _element("ul", {}, *(_element("li", {}, line) for line in lines))


def _messages_of_findings(findings: Sequence[Finding], messages: Sequence[Mapping[str, Any]]) -> dict[int, list[int]]:
    """The numbers of the messages of each finding, both from 1."""
    numbers: dict[tuple[Any, Any], list[int]] = {}
    for number, row in enumerate(messages, 1):
        numbers.setdefault((row["file"], row["frame"]), []).append(number)
    found = {
        number: sorted(each for frame in finding.frames for each in numbers.get((finding.file, frame), ()))
        for number, finding in enumerate(findings, 1)
    }
    return {number: places for number, places in found.items() if places}


def _findings(findings: Sequence[Finding], shown_in: Mapping[int, Sequence[int]]) -> list[ElementTree.Element]:
    if not findings:
        return [_element("p", {}, "None.")]
    rows, attributes = [], []
    for number, finding in enumerate(findings, 1):
        evidence = finding.readable()
        seen = evidence.pop("seen")
        frames = frames_text([{"file": finding.file, "frame": frame} for frame in finding.frames])
        shown = "; ".join(f"{name} {_shown(value)}" for name, value in evidence.items())
        title: Any = f"{finding.title} ({finding.rule}, {finding.reference})"
        if number in shown_in:
            link = {"href": f"#message-{shown_in[number][0]}", "data-finding": str(number)}
            title = [_element("a", link, finding.title), f" ({finding.rule}, {finding.reference})"]
        rows.append([finding.severity, title, shown, seen, frames])
        attributes.append({"id": f"finding-{number}"})
    caption = "Findings of msmqwire detect; a link leads to the messages of a finding"
    return [_table(caption, ["severity", "finding", "evidence", "seen", "frames"], rows, attributes)]


def _messages(
    messages: Sequence[Mapping[str, Any]], shown_in: Mapping[int, Sequence[int]]
) -> list[ElementTree.Element]:
    caption = f"Messages with a label or a text, of more than {MOST_MESSAGES} the first, and messages of findings"
    names = ["time", "from", "to", "class", "queue", "label", "text", "extension", "frame"]
    shown = ("time", "src", "dst", "class", "destination_queue", *TEXTS)
    findings: dict[int, list[str]] = {}
    for finding, places in shown_in.items():
        for number in places:
            findings.setdefault(number, []).append(str(finding))
    rows, attributes = [], []
    for number, row in enumerate(messages, 1):
        values = {**row, "class": row["message_class_name"] or row["message_class"]}
        rows.append([*(_shown(values[name]) for name in shown), frames_text([row])])
        of = {"data-findings": " ".join(findings[number])} if number in findings else {}
        attributes.append({"id": f"message-{number}", **of})
    return [_table(caption, names, rows, attributes)]


def _section(summary: Summary, name: str) -> list[ElementTree.Element]:
    table = summary.section(name)
    shown = records(table.slice(0, MOST_ROWS))
    names = [field for field in table.schema.names if any(row[field] is not None for row in shown)]
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
    more = table.num_rows - len(shown) + summary.omitted(name)[0]
    if more:
        content.append(_element("p", {}, f"{counted(more, 'more row')}: msmqwire summary --table {name}"))
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


def _table(
    caption: str,
    names: Iterable[str],
    rows: Sequence[Sequence[Any]],
    attributes: Iterable[dict[str, str]] = (),
) -> ElementTree.Element:
    """A table with the attributes of its rows, if they have any."""
    heads = [
        _element("th", {"scope": "col"}, _element("button", {"type": "button"}, name.replace("_", " ")))
        for name in names
    ]
    lines = [
        _element(
            "tr", of_row,
            *(
                _element("td", _class(value), *(value if isinstance(value, list) else [_number(value)]))
                for value in row
            ),
        )
        for row, of_row in zip(rows, attributes or repeat({}), strict=False)
    ]  # fmt: skip
    table = _element(
        "table", {}, _element("caption", {}, caption), _element("thead", {}, _element("tr", {}, *heads)),
        _element("tbody", {}, *lines),
    )  # fmt: skip
    return _element("div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption}, table)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _class(value: Any) -> dict[str, str]:
    if isinstance(value, int):
        return {"class": "number"}
    if isinstance(value, list):
        return {}
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
    """Pairs of hosts with their rows."""
    pairs = summary.section("conversations")
    shown = records(pairs.slice(0, _MOST_PAIRS))
    if not shown:
        return [_element("p", {}, "None.")]
    columns = ("src", "dst", "messages", "bytes", "sessions", "discovery", "queues")
    rows = [[*(_cell(name, row) for name in columns), frames_text(row["frames"])] for row in shown]
    content = [_table("Packets from one host to another", ["from", "to", *columns[2:], "frames"], rows)]
    if len(pairs) > len(shown):
        content.append(_element("p", {}, f"The {len(shown)} busiest of {len(pairs):,} pairs."))
    return content


def _timeline(summary: Summary) -> list[ElementTree.Element]:
    """Events, and the rows of each minute."""
    minutes = _element("details", {}, _element("summary", {}, "Rows of each minute"), *_section(summary, "minutes"))
    return [*_section(summary, "timeline"), minutes]
