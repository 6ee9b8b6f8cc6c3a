"""What the page of a report has for rows that are written here: tables, numbers, limits, and the data of charts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from functools import partial
from html.parser import HTMLParser
from typing import Any

import pytest

from msmqwire.insight import SECTIONS
from msmqwire.insight import Summary as AnySummary
from msmqwire.insight.explain import explain
from msmqwire.insight.findings import Finding
from msmqwire.insight.report import REPORT_SECTIONS, page
from msmqwire.insight.report_charts import folded
from tests.insight import test_sections
from tests.insight.test_sections import ADMIN, MINUTE, MS, add_to, answer

Summary = partial(AnySummary, sections=REPORT_SECTIONS)
summary_of = partial(test_sections.summary_of, sections=REPORT_SECTIONS)


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
        if tag == "meta":
            return
        self._open.append((tag, dict(attributes).get("class")))
        if tag == "tr" and self._caption:
            self.rows[self._caption].append([])
        if tag == "td":
            self.rows[self._caption][-1].append(("", self._open[-1][1]))

    def handle_endtag(self, tag: str) -> None:
        if tag != "meta":
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


def shown(summary: AnySummary, findings: Any = (), files: Any = ("x.pcap",), **more: Any) -> Tables:
    return Tables(page(summary, findings, files, **more))


def message_row(**changes: Any) -> dict[str, Any]:
    """A row of the table of messages."""
    row = {
        "file": "x.pcap", "frame": 3, "time": None, "src": "10.0.0.1", "dst": "10.0.0.2", "message_class": 0,
        "message_class_name": "normal", "destination_queue": "q", "label": "a", "body_text": None,
        "extension_text": None,
    }  # fmt: skip
    return {**row, **changes}


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
    found = shown(Summary(), made=["by hand"], counts=["2 frames"], messages=[message_row()])
    assert {"Messages", "What was read", "by hand", "2 frames"} <= set(found.texts)
    (caption,) = (name for name in found.rows if name.startswith("Messages with a label"))
    assert found.heads[caption] == ["time", "from", "to", "class", "queue", "label", "text", "extension", "frame"]
    texts = ["", "10.0.0.1", "10.0.0.2", "normal", "q", "a", "", "", "x.pcap 3"]
    assert [text for text, _ in found.rows[caption][-1]] == texts
    order = ["Findings", "Messages", "Who talks to whom", "Timeline", "Hosts and roles"]
    assert [text for text in found.texts if text in order] == order


def test_findings() -> None:
    assert "None." in shown(Summary()).texts
    found = shown(
        Summary(), [finding("low", src="a"), finding("medium", answered=True), finding("high", hosts=["a", "b"])]
    )
    caption = "Findings of msmqwire detect; a link leads to the messages of a finding"
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

    count, found = texts(1000)
    assert count == 1000
    assert not any("more rows" in text for text in found)
    count, found = texts(1002)
    assert count == 1000
    assert "2 more rows: msmqwire summary --table queues" in found
    assert "3 more rows: msmqwire summary --table queues" in texts(10, 7)[1]


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


def pairs_of(count: int) -> AnySummary:
    return summary_of("messages", *({"dst": f"10.0.{number}.2", "destination_queue": "q"} for number in range(count)))


@pytest.mark.parametrize(("count", "rows"), [(60, 60), (61, 60)])
def test_the_busiest_pairs(count: int, rows: int) -> None:
    found = shown(pairs_of(count))
    caption = "Packets from one host to another"
    assert found.heads[caption] == ["from", "to", "messages", "bytes", "sessions", "discovery", "queues", "frames"]
    assert len([row for row in found.rows[caption] if row]) == rows
    assert [text for text in found.texts if "busiest" in text] == ["The 60 busiest of 61 pairs."] * (count == 61)
    assert found.rows[caption][-1][2:] == [
        ("1", "number"), ("10", "number"), ("0", "number"), ("0", "number"), ("q", None), (f"x.pcap {rows}", None),
    ]  # fmt: skip


def charts(summary: AnySummary, findings: Any = ()) -> dict[str, Any]:
    """The declarations of the charts."""
    found = re.search('<script type="application/json" id="charts">(.*?)</script>', page(summary, findings, ["x.pcap"]))
    assert found is not None
    made: dict[str, Any] = json.loads(found[1])
    return made


def data_of(chart: dict[str, Any], name: str) -> Any:
    """The rows of a data set of a chart of Vega."""
    return next(each for each in chart["data"] if each["name"] == name)["values"]


def test_charts_without_rows_are_left_out() -> None:
    assert charts(Summary()) == {}
    assert "At a glance" not in shown(Summary()).texts
    timeless = charts(summary_of("messages", {"time": None}))
    assert list(timeless) == ["hosts", "queues"]


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(0, 1), (599, 1), (600, 60), (35_999, 60), (36_000, 3600), (2_159_999, 3600), (2_160_000, 86_400)],
)
def test_packets_are_counted_by_the_step_that_the_time_needs(seconds: int, step: int) -> None:
    times = (0, 999_999_999, seconds * 1_000_000_000 + 999_999_999)
    chart = charts(summary_of("messages", *({"time": time} for time in times)))["activity"]
    bars = chart["datasets"]["activity"]
    assert {bar["end"] - bar["begin"] for bar in bars} == {1000 * step}
    begins = sorted({0, seconds // step * step * 1000})
    assert [(bar["begin"], bar["packets"]) for bar in bars] == [
        (begin, 3 if len(begins) == 1 else 2 if begin == 0 else 1) for begin in begins
    ]


def test_lanes_have_messages_refusals_and_findings() -> None:
    summary = summary_of("messages", {"time": 0}, {"time": MINUTE, "message_class": 0x8003})
    add_to(summary, "sessions", {"time": 2 * MINUTE, "dst": "10.0.0.3", "refused": True})
    add_to(summary, "topology", {"time": 3 * MINUTE, "type": "request", "src": "10.0.0.9"})
    found = [
        finding("low", src="10.0.0.1", dst="10.0.0.2"),
        finding("high", src="10.9.9.9", dst="10.0.0.2"),
        finding("high", queue_manager="x"),
    ]
    lanes = charts(summary, found)["activity"]["datasets"]["lanes"]
    assert [(point["lane"], point["kind"], point["time"]) for point in lanes] == [
        ("10.0.0.1 → 10.0.0.2", "message", 0),
        ("10.0.0.1 → 10.0.0.2", "message", 60_000),
        ("10.0.0.1 → 10.0.0.2", "refusal", 60_000),
        ("10.0.0.1 → 10.0.0.3", "other packet", 120_000),
        ("10.0.0.1 → 10.0.0.3", "refusal", 120_000),
        ("10.0.0.9 → 10.0.0.2", "other packet", 180_000),
        ("other hosts", "finding", 0),
        ("10.0.0.1 → 10.0.0.2", "finding", 0),
    ]
    # Findings are numbered with the most severe first, as their table has them
    assert [(point["finding"], point["title"]) for point in lanes if "finding" in point] == [
        (1, "high: a high one"), (3, "low: a low one"),
    ]  # fmt: skip


def test_the_busiest_pairs_have_lanes() -> None:
    rows = [{"time": 0, "dst": f"10.1.0.{number}"} for number in range(25) for _ in range(100 - number)]
    lanes = charts(summary_of("messages", *rows))["activity"]["datasets"]["lanes"]
    others = sum(100 - number for number in range(20, 25))
    assert [(point["lane"], point["packets"]) for point in lanes] == [
        *((f"10.0.0.1 → 10.1.0.{number}", 100 - number) for number in range(20)),
        ("other hosts", others),
    ]


def test_queues_by_their_bytes() -> None:
    rows = [{"destination_queue": f"q{number}", "message_size": number} for number in range(25)]
    several = {"destination_queue": "a", "destination_queues": ["a", "q24"], "message_size": 100, "src": "10.0.0.7"}
    chart = charts(summary_of("messages", *rows, several))["queues"]
    queues = chart["datasets"]["queues"]
    assert [each["queue"] for each in queues] == ["q24", "a", *(f"q{number}" for number in range(23, 5, -1))]
    assert queues[0] == {"queue": "q24", "messages": 2, "senders": 2, "bytes": 124}


def test_latencies_of_acknowledgments() -> None:
    asked = {**ADMIN, "properties_flags": 3, "time": 0}
    summary = summary_of(
        "messages",
        *({**asked, "message_id": number} for number in (1, 2)),
        {**asked, "message_id": 3, "destination_queue": "silent"},
        *(answer(2, number, time=number * MS // 2) for number in (1, 2)),
    )
    (row,) = charts(summary)["latency"]["datasets"]["queues"]
    assert row == {
        "queue": "q", "asked": 2, "unanswered": 0, "negative": 0, "fastest_ms": 0.5, "median_ms": 0.5, "p90_ms": 1.0,
        "p99_ms": 1.0, "slowest_ms": 1.0,
    }  # fmt: skip
    assert "latency" not in charts(summary_of("messages", {**asked, "message_id": 1}))


def test_the_drawing_has_hosts_roles_queues_and_findings() -> None:
    summary = summary_of(
        "messages", *[{"destination_queue": "OS:server\\private$\\orders"}] * 1234,
        {"src": "10.0.0.2", "dst": "10.0.0.1", "destination_queue": None},
    )  # fmt: skip
    add_to(summary, "topology", {"type": "reply", "src": "10.0.0.2", "dst": 'a"\\b'})
    add_to(summary, "topology", {"type": "reply", "src": "10.0.0.2", "dst": "10.0.0.1"})
    found = [finding("low", src="10.0.0.2"), finding("medium", src="10.0.0.2", dst="10.0.0.1")]
    chart = charts(summary, found)["hosts"]
    hosts = {each["id"]: each for each in data_of(chart, "hosts")}
    assert {host: each["role"] for host, each in hosts.items()} == {
        "10.0.0.1": "queue manager", "10.0.0.2": "directory server", 'a"\\b': "other",
    }  # fmt: skip
    assert hosts["10.0.0.2"]["tooltip"] == {
        "title": "10.0.0.2", "packets": "1,237", "roles": "directory server, queue manager, receiver",
        "findings": "medium: a medium one\nlow: a low one",
    }  # fmt: skip
    assert (hosts["10.0.0.2"]["severity"], hosts["10.0.0.2"]["finding"]) == ("medium", 1)
    assert "severity" not in hosts["10.0.0.1"]
    edges = data_of(chart, "edges")
    assert [(each["from"], each["to"], each["packets"], each["label"]) for each in edges] == [
        ("10.0.0.1", "10.0.0.2", 1234, "orders"), ("10.0.0.2", "10.0.0.1", 2, ""), ("10.0.0.2", 'a"\\b', 1, ""),
    ]  # fmt: skip
    assert edges[0]["tooltip"]["queues"] == "OS:server\\private$\\orders"


def test_hosts_beyond_forty_are_networks() -> None:
    forty = [f"10.0.{number}.1" for number in range(40)]
    assert folded(forty) == {address: address for address in forty}
    more = [f"10.{number}.{third}.{last}" for number in (1, 2) for third in (1, 2) for last in range(20)]
    nodes = folded([*forty, *more])
    assert len(set(nodes.values())) <= 40
    assert [nodes[address] for address in forty[:30]] == forty[:30]
    assert nodes["10.2.2.7"] == "10.2.0.0/16"
    mixed = folded([*forty[:30], *(f"2001:db8::{number:x}" for number in range(1, 30)), "0a0b0c0d:1", "192.0.2.1"])
    assert mixed["2001:db8::7"] == "2001:db8::/64"
    # A network with one host is that host
    assert mixed["0a0b0c0d:1"] == "0a0b0c0d:1"
    assert mixed["192.0.2.1"] == "192.0.2.1"
    summary = summary_of("messages", *({"dst": address} for address in [*forty, *more]))
    chart = charts(summary, [finding("high", src="10.2.2.7")])["hosts"]
    hosts = {each["label"]: each for each in data_of(chart, "hosts")}
    assert hosts["10.2.2.7"]["severity"] == "high"
    assert hosts["10.2.0.0/16 (39)"]["role"] == "network"
    assert sum(each["packets"] for each in data_of(chart, "edges")) == 120


def test_a_finding_leads_to_its_messages() -> None:
    rows = [
        message_row(frame=7, time=datetime(2024, 1, 1, 10, tzinfo=UTC), label="second"),
        message_row(frame=5, time=datetime(2024, 1, 1, 11, tzinfo=UTC), label="third"),
        message_row(frame=1, time=datetime(2024, 1, 1, 9, tzinfo=UTC), label="first", message_class_name=None,
                    message_class=77),
    ]  # fmt: skip
    text = page(Summary(), [finding("low", src="a"), finding("high", src="b")], ["x.pcap"], messages=rows)
    lines = re.findall(r'<tr id="message-(\d)"(?: data-findings="([^"]*)")?>.*?</tr>', text)
    assert lines == [("1", "1 2"), ("2", "1 2"), ("3", "")]
    assert re.findall(r"<td>(first|second|third)</td>", text) == ["first", "second", "third"]
    assert "<td>77</td>" in text
    assert re.findall(r'<tr id="(finding-\d)">.*?<a href="#(message-\d)" data-finding="(\d)">(.*?)</a>', text) == [
        ("finding-1", "message-1", "1", "a high one"), ("finding-2", "message-1", "2", "a low one"),
    ]  # fmt: skip


def test_lines_of_texts_are_lines() -> None:
    text = page(Summary(), (), ["x.pcap"], messages=[message_row(label="a\r\nb\rc\td\0\u202e")])
    assert "<td>a\nb\ufffdc\td\ufffd\ufffd</td>" in text
    assert "white-space: pre-line" in text


def test_data_of_charts_cannot_end_their_script() -> None:
    queue = "</script><!--<script>\u2028"
    text = page(summary_of("messages", {"destination_queue": queue}), (), ["x.pcap"])
    data = text[text.index('id="charts">') : text.index("</script>")]
    assert "<" not in data
    (row,) = charts(summary_of("messages", {"destination_queue": queue}))["queues"]["datasets"]["queues"]
    assert row["queue"] == "</script><!--<script>\ufffd"
