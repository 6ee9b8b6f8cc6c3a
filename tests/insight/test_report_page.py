"""What the page of a report has for rows that are written here: tables, numbers, limits, drawings and bars."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from msmqwire.insight import SECTIONS, Summary
from msmqwire.insight.explain import explain
from msmqwire.insight.findings import Finding
from msmqwire.insight.report import page
from tests.insight.test_sections import MINUTE, add_to, summary_of
from tests.system_programs import require_program


class Tables(HTMLParser):
    """The tables by their captions: the heads, and rows of the texts of cells with their classes; all other texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.heads: dict[str, list[str]] = {}
        self.rows: dict[str, list[list[tuple[str, str | None]]]] = {}
        self.texts: list[str] = []
        self._open: list[tuple[str, str | None]] = []
        self._caption = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        if tag in ("meta", "rect"):
            return
        self._open.append((tag, dict(attributes).get("class")))
        if tag == "tr" and self._caption:
            self.rows[self._caption].append([])
        if tag == "td":
            self.rows[self._caption][-1].append(("", self._open[-1][1]))

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("meta", "rect"):
            self._open.pop()
        if tag == "table":
            self._caption = ""

    def handle_data(self, data: str) -> None:
        tags = [tag for tag, _ in self._open]
        if tags[-1:] == ["caption"]:
            self._caption = data
            self.heads[data], self.rows[data] = [], []
        elif "thead" in tags:
            self.heads[self._caption].append(data)
        elif "td" in tags:
            text, kind = self.rows[self._caption][-1][-1]
            self.rows[self._caption][-1][-1] = text + data, kind
        elif tags[-1:] in (["p"], ["li"], ["h2"], ["title"]):
            self.texts.append(data)

    def table(self, name: str) -> tuple[list[str], list[list[tuple[str, str | None]]]]:
        """The heads and the rows of a section of the summary."""
        caption = f"{SECTIONS[name].about[0].upper()}{SECTIONS[name].about[1:]}"
        return self.heads[caption], [row for row in self.rows[caption] if row]


def shown(summary: Summary, findings: Any = (), files: Any = ("x.pcap",), **more: Any) -> Tables:
    return Tables(page(summary, findings, files, **more))


def finding(severity: str, **evidence: Any) -> Finding:
    times = {"first_seen": "1970-01-01T00:00:00Z", "last_seen": "1970-01-01T00:00:09Z"}
    return Finding(f"{severity}-rule", severity, f"a {severity} one", "x.pcap", [1, 7], {**evidence, **times}, "here")


@pytest.mark.parametrize(
    ("count", "text"),
    [(5, "0, 1, 2, 3, 4"), (6, "0, 1, 2, 3, 4 and 1 more capture"), (7, "0, 1, 2, 3, 4 and 2 more captures")],
)
def test_the_captures(count: int, text: str) -> None:
    assert shown(Summary(), files=[str(number) for number in range(count)]).texts[0] != text
    assert text in shown(Summary(), files=[str(number) for number in range(count)]).texts


def test_the_numbers_that_a_reader_wants_first() -> None:
    nothing = "0 packets, 0 hosts, 0 queues, 0 payloads with faults, 0 findings"
    assert nothing in shown(Summary()).texts
    summary = summary_of("messages", {"time": 0}, {"time": MINUTE, "destination_queue": "other"})
    fault = {"code": "bad_count", "field": "x", "offset": 0}
    add_to(summary, "notifications", {"version": 1, "time": 2 * MINUTE}, {"fault": fault})
    text = shown(summary, [finding("low"), finding("high"), finding("high")]).texts
    numbers = "2 packets, 2 hosts, 2 queues, 1 payload with a fault, 3 findings (2 high)"
    assert f"{numbers}; 1970-01-01 00:00:00 – 00:02:00 UTC" in text


def test_sections_that_only_some_reports_have() -> None:
    plain = shown(Summary()).texts
    assert not {"Messages", "What was read"} & set(plain)
    row = {"file": "x.pcap", "frame": 3, "time": None, "src": "10.0.0.1", "destination_queue": "q", "label": "a"}
    found = shown(
        Summary(), made=["by hand"], counts=["2 frames"], messages=[{**row, "body_text": None, "extension_text": None}]
    )
    assert {"Messages", "What was read", "by hand", "2 frames"} <= set(found.texts)
    (caption,) = (name for name in found.rows if name.startswith("Messages with a label"))
    assert found.heads[caption] == ["time", "from", "queue", "label", "text", "extension", "frame"]
    assert [text for text, _ in found.rows[caption][-1]] == ["", "10.0.0.1", "q", "a", "", "", "x.pcap 3"]
    titles = found.texts.index("Messages"), found.texts.index("Timeline"), found.texts.index("Hosts and roles")
    assert titles[1] < titles[0] < titles[2]


def test_findings() -> None:
    assert "None." in shown(Summary()).texts
    found = shown(
        Summary(), [finding("low", src="a"), finding("medium", answered=True), finding("high", hosts=["a", "b"])]
    )
    caption = "Findings of msmqwire detect"
    assert found.heads[caption] == ["severity", "finding", "evidence", "seen", "frames"]
    seen, frames = "1970-01-01 00:00:00 – 00:00:09", "x.pcap 1 7"
    assert [row for row in found.rows[caption] if row] == [
        [
            (severity, "high" if severity == "high" else None),
            (f"a {severity} one ({severity}-rule, here)", None),
            (evidence, None),
            (seen, "time"),
            (frames, None),
        ]
        for severity, evidence in (("high", "hosts a, b"), ("medium", "answered yes"), ("low", "src a"))
    ]


def test_columns_without_a_value_are_left_out() -> None:
    summary = summary_of("messages", {"message_size": 12345, "time": None})
    heads, (row,) = shown(summary).table("queues")
    assert heads == ["queue", "sender", "source queue manager", "messages", "bytes", "frames"]
    assert row[3:] == [("1", "number"), ("12,345", "number"), ("x.pcap 1", None)]
    summary = summary_of("messages", {"time": 0}, {"time": 3_000_000_000})
    heads, (row,) = shown(summary).table("queues")
    assert heads[-2:] == ["seen", "frames"]
    assert row[-2:] == [("1970-01-01 00:00:00 – 00:00:03", "time"), ("x.pcap 1 2", None)]


def test_a_table_has_so_many_rows() -> None:
    def texts(queues: int, limit: int = 100_000) -> tuple[int, list[str]]:
        summary = Summary({"queues": limit})
        add_to(summary, "messages", *({"destination_queue": f"q{number}"} for number in range(queues)))
        found = shown(summary)
        return len(found.table("queues")[1]), found.texts

    assert texts(1000)[0] == 1000
    assert not any("more rows" in text for text in texts(1000)[1])
    count, found = texts(1002)
    assert count == 1000
    assert "2 more rows: msmqwire summary --table queues" in found
    assert not any("left out" in text for text in found)
    assert "3 rows of 3 packets are left out: too many are distinct." in texts(10, 7)[1]


def test_faults_violations_and_classes_have_their_meanings() -> None:
    fault = {"code": "bad_count", "field": "x", "offset": 0}
    summary = summary_of("topology", {"fault": fault}, {"type": "reply", "violations": ["mask_nonzero_on_ip"]})
    add_to(summary, "messages", {"message_class": 0x8003, "message_class_name": "nack_q_exceed_quota"})
    found = shown(summary)
    heads, rows = found.table("problems")
    assert heads[-1] == "meaning"
    assert {row[2][0]: bool(row[-1][0]) for row in rows} == {"bad_count": True, "mask_nonzero_on_ip": True}
    assert "the broken rule" in next(row[-1][0] for row in rows if row[2][0] == "mask_nonzero_on_ip")
    heads, (row,) = found.table("classes")
    assert heads[-1] == "meaning"
    assert row[-1][0]


def test_a_violation_has_the_meaning_of_its_table() -> None:
    summary = summary_of("messages", {"violations": ["trailing_bytes"]})
    add_to(summary, "topology", {"type": "reply", "violations": ["trailing_bytes"]})
    _, rows = shown(summary).table("problems")
    meanings = {each.where: each.sentence for each in explain("trailing_bytes") if each.kind == "violation"}
    assert {row[0][0]: row[-1][0] for row in rows} == {name: meanings[name] for name in ("messages", "topology")}
    assert meanings["messages"] != meanings["topology"]


def pairs_of(count: int) -> Summary:
    return summary_of("messages", *({"dst": f"10.0.{number}.2", "destination_queue": "q"} for number in range(count)))


@pytest.mark.parametrize(("count", "rows"), [(60, 60), (61, 60)])
def test_the_busiest_pairs(count: int, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    found = shown(pairs_of(count))
    caption = "Packets from one host to another"
    assert found.heads[caption] == ["from", "to", "messages", "bytes", "sessions", "discovery", "queues", "frames"]
    assert len([row for row in found.rows[caption] if row]) == rows
    assert [text for text in found.texts if "busiest" in text] == ["The 60 busiest of 61 pairs."] * (count == 61)
    assert found.rows[caption][-1][2:] == [
        ("1", "number"), ("10", "number"), ("0", "number"), ("0", "number"), ("q", None), (f"x.pcap {rows}", None),
    ]  # fmt: skip


def test_the_drawing_has_hosts_roles_and_packets() -> None:
    require_program("dot")
    summary = summary_of("messages", *[{}] * 1234, {"src": "10.0.0.2", "dst": 'a"\\b'})
    text = page(summary, (), ("x.pcap",))
    drawing = text[text.index('<svg width="') : text.index("</svg>")]
    assert 'role="img"' in drawing
    for label in ("10.0.0.1", "10.0.0.2", 'a"\\b', "queue manager", "1,234"):
        assert f">{label}</text>" in drawing
    assert "<title>" not in drawing
    assert "black" not in drawing
    assert "currentColor" in drawing
    assert drawing.count('class="node"') == 3
    assert drawing.count('class="edge"') == 2


@pytest.mark.parametrize("output", ["exit 1", "echo no picture", "echo '<svg/>'; exit 1"])
def test_a_drawing_that_fails_is_left_out(output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dot").write_text(f"#!/bin/sh\n{output}\n")
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    text = page(pairs_of(1), (), ("x.pcap",))
    assert text.count("<svg") == 1
    assert "Packets from one host to another" in text


def test_bars() -> None:
    summary = summary_of("messages", *[{"time": 0}] * 4, *[{"time": 2 * MINUTE}] * 2, {"time": 3 * MINUTE})
    add_to(summary, "notifications", {"time": 9 * MINUTE})
    text = page(summary, (), ("x.pcap",))
    bars = [part.partition("</rect>")[0] for part in text.split("<rect ")[1:] if "packets" in part[:200]]
    places = [{word.split('="')[0]: word.split('="')[1] for word in bar.partition('">')[0].split('" ')} for bar in bars]
    assert [{**each, "height": each["height"].rstrip('"')} for each in places] == [
        {"x": "0.0", "width": "39.0", "y": "10.0", "height": "100.0"},
        {"x": "80.0", "width": "39.0", "y": "60.0", "height": "50.0"},
        {"x": "120.0", "width": "39.0", "y": "85.0", "height": "25.0"},
    ]
    assert "Packets of every minute, at most 4, from 1970-01-01 00:00 to 1970-01-01 00:03 UTC" in text
    many = summary_of("messages", *({"time": number * MINUTE} for number in range(100)))
    assert 'width="8.6"' in page(many, (), ("x.pcap",))
    # All 120 bars have the width of the picture together
    most = summary_of("messages", {"time": 0}, {"time": 119 * MINUTE})
    assert '<rect x="952.0" width="7.0" y="10.0" height="100.0">' in page(most, (), ("x.pcap",))
    assert "No packet has a time." in shown(summary_of("messages", {"time": None})).texts
