"""Findings from rows that are written here: their limits, their order, and findings of several values."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from msmqwire.capture.table_rows import arrow_schema
from msmqwire.insight.findings import COLUMNS, CapturedRows, Detector, Finding
from msmqwire.insight.rules import RULES
from tests.insight.captures import FIRST, SECOND, THIRD, message, stream, vector, write

BASE = {"file": "x.pcap", "time": 0, "src": "10.0.0.1", "dst": "10.0.0.2", "violations": []}


def detect(*tables: tuple[str, list[dict[str, Any]]], expected: tuple[str, ...] = (), **more: Any) -> Detector:
    """Findings in rows, whose missing columns are null; ``more`` are columns that a capture adds."""
    detector = Detector(expected)
    for table, rows in tables:
        schema = arrow_schema(table, COLUMNS[table], dictionaries=False)
        for name in more:
            schema = schema.append(pa.field(name, pa.int64()))
        made = [
            {
                **dict.fromkeys(schema.names), **BASE, "frame": at + 1,
                **{name: value.bytes if isinstance(value, UUID) else value for name, value in row.items()},
                **{name: values[at] for name, values in more.items()},
            }
            for at, row in enumerate(rows)
        ]  # fmt: skip
        detector.add(table, pa.RecordBatch.from_pylist(made, schema))
    return detector


def names(detector: Detector) -> list[str]:
    return [finding.rule for finding in detector.findings()]


def ping(guid: UUID, address: str, time: int | None = 0, **changes: Any) -> dict[str, Any]:
    return {"queue_manager": guid, "src": address, "time": time, **changes}


def test_a_finding_of_several_values_has_all_of_them() -> None:
    rows = [
        ping(FIRST, "10.0.0.9", 3_000_000_000),
        ping(FIRST, "10.0.0.1", 1_000_000_000),
        ping(FIRST, "10.0.0.9", 9_000_000_000),
        ping(SECOND, "10.0.0.2"),
        ping(SECOND, "10.0.0.2"),
        ping(THIRD, "10.0.0.3", None),
        ping(THIRD, "10.0.0.4", None),
        ping(THIRD, "10.0.0.5", None),
    ]
    first, third = detect(("sessions", rows)).findings()
    assert first.evidence == {
        "queue_manager": str(FIRST), "address": ["10.0.0.1", "10.0.0.9"], "packets": 3,
        "first_seen": "1970-01-01T00:00:01.000000000Z", "last_seen": "1970-01-01T00:00:09.000000000Z",
    }  # fmt: skip
    # One frame of each address, that with the most packets first
    assert (first.file, first.frames) == ("x.pcap", [1, 2])
    assert third.evidence == {
        "queue_manager": str(THIRD), "address": ["10.0.0.3", "10.0.0.4", "10.0.0.5"], "packets": 3,
        "first_seen": None, "last_seen": None,
    }  # fmt: skip
    assert third.frames == [6, 7, 8]


def test_frames_are_those_of_the_first_file() -> None:
    rows = [{"outcome": "disregarded", "rule": "sender", "file": name} for name in ("b.pcap", "b.pcap", "a.pcap")]
    (found,) = detect(("notifications", rows)).findings()
    assert (found.file, found.frames, found.evidence["packets"]) == ("b.pcap", [1, 2], 3)


def test_the_first_file_is_first_though_its_rows_wait_longer() -> None:
    same = {"src_port": 50_000, "dst_port": 1801}
    session = {**same, "file": "a.pcap", "queue_manager": FIRST}
    messages = [{**same, "file": "b.pcap", "source_queue_manager": FIRST, "hop_count": 0}] * 32_767
    other = {**messages[0], "src": "10.0.0.3"}
    (finding,) = detect(("sessions", [session]), ("messages", [*messages, other])).findings()
    assert (finding.rule, finding.file, finding.frames) == ("cloned-queue-manager", "a.pcap", [1])


def test_the_most_severe_findings_come_first_then_those_with_the_most_packets() -> None:
    refused = [{"outcome": outcome, "rule": outcome} for outcome in ("disregarded", "ignored", "ignored")]
    cloned = [ping(FIRST, "10.0.0.1"), ping(FIRST, "10.0.0.2")]
    found = detect(("sessions", [PROBE]), ("sessions", cloned), ("notifications", refused)).findings()
    assert [(each.severity, each.rule, each.evidence.get("reason")) for each in found] == [
        ("high", "refused-notification", "ignored"), ("high", "refused-notification", "disregarded"),
        ("medium", "cloned-queue-manager", None), ("low", "connection-probe", None),
    ]  # fmt: skip


def test_nothing_is_found_in_no_rows() -> None:
    detector = detect(("sessions", []), ("notifications", [{"outcome": "applied"}]))
    assert (detector.findings(), detector.omitted()) == ([], 0)


def test_evidence_that_is_unknown_is_left_out() -> None:
    (found,) = detect(("notifications", [{"outcome": None, "rule": "sender", "dst": None}])).findings()
    assert list(found.evidence) == ["src", "reason", "packets", "first_seen", "last_seen"]


@pytest.mark.parametrize(("first", "seen"), [("2024-03-04T08:00:00.5Z", "2024-03-04 08:00:00 – 08:01:00"), (None, "")])
def test_readable_evidence_has_one_time(first: str | None, seen: str) -> None:
    finding = Finding("r", "low", "t", None, [], {"packets": 2, "first_seen": first, "last_seen": first}, "x")
    if first:
        finding = replace(finding, evidence={**finding.evidence, "last_seen": "2024-03-04T08:01:00Z"})
    assert finding.readable() == {"packets": 2, "seen": seen}
    assert "first_seen" in finding.evidence


def test_at_most_ten_thousand_findings_of_a_rule() -> None:
    rows = [{"outcome": "disregarded", "rule": "sender", "src": f"host{number}"} for number in range(10_003)]
    detector = detect(("notifications", rows))
    assert (len(detector.findings()), detector.omitted()) == (10_000, 3)


def test_captured_rows_have_the_bytes_after_the_length_of_an_envelope(tmp_path: Path) -> None:
    right, wrong = vector("http-check-malicious"), vector("F3-establish-connection-request")
    frames = stream([wrong, right, wrong, right], port=4001) + stream([message(), right], port=4002)
    path = write(tmp_path / "x.pcap", frames)
    with CapturedRows(path, columns={"messages": ("frame", "stream_offset", "packet_size", "fault")}) as reader:
        found = [row for table, batch in reader if table == "messages" for row in batch.to_pylist()]
    assert len(found) == 4
    (ordinary,) = (row for row in found if row["fault"] is None)
    assert ordinary["after"] is None
    found.remove(ordinary)
    for row in found:
        offset = row["fault"]["offset"]
        assert row["fault"]["value"] == int.from_bytes(right[offset : offset + 4], "little")
        assert row["after"] == len(right) - offset - 4
        assert "packet_size" in row


@pytest.mark.parametrize(
    ("length", "after", "found"),
    [
        # Twice the length in 32 bits is what is read: it must fit in the bytes after the field
        ((1 << 31) + 10, 20, "queuejumper-check"),
        ((1 << 31) + 10, 21, "queuejumper-check"),
        ((1 << 31) + 10, 19, "queuejumper-exploit"),
        (1 << 31, 0, "queuejumper-check"),
        ((1 << 31) - 1, 1 << 33, "queuejumper-exploit"),
        ((1 << 32) - 1, 1 << 33, "queuejumper-check"),
        ((1 << 32) - 1, (1 << 32) - 2, "queuejumper-check"),
        ((1 << 32) - 1, (1 << 32) - 3, "queuejumper-exploit"),
        (10, 20, "queuejumper-exploit"),
        (None, None, "queuejumper-exploit"),
    ],
)
def test_a_check_for_queuejumper_overflows_to_a_length_that_fits(
    length: int | None, after: int | None, found: str
) -> None:
    fault = {"code": "truncated", "field": "SRMPEnvelopeHeader.DataLength", "offset": 0, "value": length}
    assert names(detect(("messages", [{"fault": fault}]), after=[after])) == [found]


@pytest.mark.parametrize(("length", "found"), [((1 << 31) - 1, []), (1 << 31, ["length-overflow"]), (None, [])])
def test_a_length_from_2_gib_overflows(length: int | None, found: list[str]) -> None:
    fault = {"code": "bad_size", "field": "Destination[2].HeaderSize", "offset": 0, "value": length}
    detector = detect(("messages", [{"fault": fault}, {}]), after=[0, 0])
    assert names(detector) == found
    assert [each.evidence["field"] for each in detector.findings()] == ["Destination.HeaderSize"] * len(found)


PROBE: dict[str, Any] = {
    "time_stamp": 501140046, "operating_system": 0x310,
    "client_guid": UUID("557358d1-9150-9595-4997-b6e611ea26c6"),
    "server_guid": UUID("43cd8907-394c-8f11-4445-9078909ea0fc"),
}  # fmt: skip


def test_a_probe_and_its_answer_are_one_finding() -> None:
    ends = {"src": "192.0.2.7", "src_port": 40001, "dst": "10.0.0.9", "dst_port": 1801}
    back = {"src": "10.0.0.9", "src_port": 1801, "dst": "192.0.2.7", "dst_port": 40001}
    sent, answer = {**PROBE, **ends, "time": 1}, {**PROBE, **back, "server_guid": FIRST, "time": 9}
    (found,) = detect(("sessions", [sent, answer])).findings()
    assert found.frames == [1, 2]
    assert found.evidence == {
        "src": "192.0.2.7", "dst": "10.0.0.9", "src_port": 40001, "dst_port": 1801, "answered": True, "packets": 2,
        "first_seen": "1970-01-01T00:00:00.000000001Z", "last_seen": "1970-01-01T00:00:00.000000009Z",
    }  # fmt: skip
    # In a later batch, of any kind of packet; an echo of the probe is an answer as well
    for answers in ([("sessions", [answer])], [("messages", [back])], [("sessions", [{**PROBE, **back}])]):
        (found,) = detect(("sessions", [sent]), *answers).findings()
        assert (found.evidence["src"], found.evidence["answered"]) == ("192.0.2.7", True)
    for changes in ({"src": "10.0.0.8"}, {"src_port": 1802}, {"dst": "192.0.2.8"}, {"dst_port": 40002}):
        (found,) = detect(("sessions", [sent]), ("sessions", [{**answer, **changes}])).findings()
        assert (found.evidence["answered"], found.evidence["packets"]) == (False, 1)


def test_answers_are_looked_for_of_so_many_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.insight.findings._LIMIT", 2)
    ends = {"src_port": 40001, "dst": "10.0.0.9", "dst_port": 1801}
    back = {"src_port": 1801, "src": "10.0.0.9", "dst_port": 40001}
    hosts = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    probes = [{**PROBE, **ends, "src": host} for host in hosts]
    # Of a probe that comes again the latest evidence counts, also at the limit
    found = detect(
        ("sessions", [*probes[:2], probes[0], probes[2]]), ("sessions", [{**back, "dst": host} for host in hosts])
    ).findings()
    assert sorted((each.evidence["src"], each.evidence["packets"], each.evidence["answered"]) for each in found) == [
        (hosts[0], 3, True),
        (hosts[1], 2, True),
    ]


def test_more_streams_of_an_unknown_protocol_than_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.insight.findings._LIMIT", 2)
    row = {"unrecognized": b"HELO\r\n", "stream_offset": 0, "dst_port": 1801}
    detector = detect(("messages", [{**row, "src_port": port} for port in (5001, 5002, 5003, 5003)]))
    for _ in range(2):  # asking twice changes nothing
        (found,) = detector.findings()
        assert (found.evidence["protocol"], found.evidence["packets"], found.frames) == ("unknown", 3, [1, 2, 3])
    # A packet in its stream: the bytes were the end of another one
    packets: list[dict[str, Any]] = [{"src_port": 5004, "dst_port": 1801}, {"src_port": 5005, "dst_port": 1801}]
    waiting = [{**row, "src_port": port, "src": "10.0.0.9"} for port in (5004, 5005)]
    packets[0]["src"] = "10.0.0.9"
    (found,) = detect(("messages", waiting), ("messages", packets)).findings()
    assert (found.evidence["src_port"], found.evidence["packets"]) == (5005, 1)


def test_batches_may_be_slices() -> None:
    bodies = [b"MZ", b"#!/bin/sh\n", b"#!/bin/sh\n", b"text", b""]
    schema = arrow_schema("messages", COLUMNS["messages"], dictionaries=False)
    rows = [{**dict.fromkeys(schema.names), **BASE, "frame": at, "body": body} for at, body in enumerate(bodies)]
    batch = pa.RecordBatch.from_pylist(rows, schema)
    for start, frames in ((0, [1, 2]), (1, [1, 2]), (2, [2]), (3, [])):
        detector = Detector()
        detector.add("messages", batch.slice(start))
        assert [each.frames for each in detector.findings()] == [frames] * bool(frames)


def test_the_numbers_of_rules_stay() -> None:
    assert [rule.identifier for rule in RULES] == list(range(1_801_001, 1_801_015))


def test_a_discovery_probe_and_its_answer_are_one_finding() -> None:
    sent = {**REQUEST, "src": "192.0.2.7", "src_port": 4000, "dst": "10.0.0.9", "dst_port": 1801}
    answer = {"type": "reply", "src": "10.0.0.9", "src_port": 1801, "dst": "192.0.2.7", "dst_port": 4000}
    (found,) = detect(("topology", [sent, answer])).findings()
    assert (found.evidence["src"], found.evidence["answered"]) == ("192.0.2.7", True)


@pytest.mark.parametrize(
    ("src_port", "dst_port", "found"),
    [(40001, 1801, True), (1801, 40001, False), (1801, 1801, True), (9000, 40001, False), (40001, 9000, True)],
)
def test_the_server_of_a_connection_is_no_scanner(src_port: int, dst_port: int, found: bool) -> None:
    rows = [{**PROBE, "src_port": src_port, "dst_port": dst_port}]
    assert names(detect(("sessions", rows))) == ["connection-probe"] * found


def test_probes_show_no_queue_managers() -> None:
    probes = [{**PROBE, "src": f"192.0.2.{last}", "src_port": 40001, "dst_port": 1801} for last in (7, 8)]
    answers = [{**PROBE, "src": f"10.0.0.{last}", "src_port": 1801, "dst_port": 40001} for last in (7, 8)]
    assert set(names(detect(("sessions", [*probes, *answers])))) == {"connection-probe"}
    message = {"label": "poc", "destination_queue": "x/queuejumper", "hop_count": 0, "source_queue_manager": FIRST}
    messages = [{**message, "src": f"192.0.2.{last}"} for last in (7, 8)]
    assert set(names(detect(("messages", messages)))) == {"metasploit-probe"}
    ordinary = [{**each, "label": ""} for each in messages]
    assert names(detect(("messages", ordinary))) == ["cloned-queue-manager"]


def test_ports_are_evidence_if_all_packets_have_the_same() -> None:
    rows = [{"outcome": "disregarded", "rule": "sender", "src_port": port, "dst_port": 1801} for port in (5, 6)]
    (found,) = detect(("notifications", rows)).findings()
    assert ("src_port" in found.evidence, found.evidence["dst_port"]) == (False, 1801)


def test_executables_in_bodies() -> None:
    program = b"MZ" + bytes(58) + (64).to_bytes(4, "little") + b"PE\0\0"
    elf = b"\x7fELF\2\1\1" + bytes(9)
    rows: list[dict[str, Any]] = [
        {"body": program}, {"body": elf}, {"compound_body": b"#!/usr/bin/env python\n"}, {"body": b""}, {},
        {"body": program[:-1]}, {"body": b"MZ"}, {"body": b"\x7fELF\3\1\1"}, {"body": b"\x7fELF\1\3\1"},
        {"body": b"\x7fELF\1\1\2"}, {"body": b"#! heading\n"}, {"body": b"# x"}, {"body": b" " + program},
    ]  # fmt: skip
    found = detect(("messages", rows)).findings()
    assert [(each.rule, each.evidence["kind"], each.frames) for each in found] == [
        ("executable-body", "pe", [1]), ("executable-body", "elf", [2]), ("executable-body", "script", [3]),
    ]  # fmt: skip


@pytest.mark.parametrize(("rows", "found"), [(99, []), (100, [100]), (130, [130])])
def test_a_storm_has_a_hundred_negative_acknowledgments_in_a_minute(rows: int, found: list[int]) -> None:
    nack = {"message_class": 0x8003, "message_class_name": "nack_q_exceed_quota"}
    # Others have another class, minute, or no time, or are positive
    storm = [{**nack, "time": 60_000_000_000 + at} for at in range(rows)]
    others = [{**nack, "time": at * 60_000_000_000, "src": "10.0.0.7"} for at in range(200)]
    others += [{**nack, "time": None}, {"message_class": 0x4000, "message_class_name": "ack_receive"}] * 100
    findings = detect(("messages", storm + others)).findings()
    assert [each.evidence["packets"] for each in findings] == found
    assert [each.evidence["class"] for each in findings] == ["nack_q_exceed_quota"] * len(found)
    assert all("minute" not in each.evidence for each in findings)


def test_the_minutes_of_a_storm_are_one_finding() -> None:
    nack = {"message_class": 0x8000, "message_class_name": "nack_bad_dst_q"}
    rows = [{**nack, "time": minute * 60_000_000_000} for minute in (1, 2, 4) for _ in range(100)]
    (found,) = detect(("messages", [*rows, {**nack, "time": 0}])).findings()
    assert (found.evidence["packets"], found.frames) == (300, [1, 101, 201])
    assert found.evidence["first_seen"] == "1970-01-01T00:01:00.000000000Z"


@pytest.mark.parametrize("changed", [None, *PROBE])
def test_a_connection_probe_has_all_four_values(changed: str | None) -> None:
    other = {"time_stamp": 501140047, "operating_system": 0x311, "client_guid": FIRST, "server_guid": FIRST}
    row = PROBE if changed is None else {**PROBE, changed: other[changed]}
    assert names(detect(("sessions", [row]))) == (["connection-probe"] if changed is None else [])


REQUEST: dict[str, Any] = {
    "type": "request", "enterprise_id": UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22"),
    "request_id": UUID("f291a103-e33c-ab4f-a930-be3a33e432dd"), "site_id": UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128"),
}  # fmt: skip


@pytest.mark.parametrize("changes", [{}, *({name: FIRST} for name in list(REQUEST)[1:]), {"dst": "10.255.255.255"}])
def test_a_discovery_probe_is_sent_to_one_host(changes: dict[str, Any]) -> None:
    assert names(detect(("topology", [{**REQUEST, **changes}]))) == ([] if changes else ["discovery-probe"])


@pytest.mark.parametrize(
    ("label", "queue", "found"),
    [("poc", "x/queuejumper", True), ("poc", "x/queuejumpers", False), ("pic", "x/queuejumper", False)],
)
def test_the_probe_of_metasploit_has_its_label_and_queue(label: str, queue: str, found: bool) -> None:
    assert names(detect(("messages", [{"label": label, "destination_queue": queue}]))) == ["metasploit-probe"] * found


@pytest.mark.parametrize("column", ["body", "compound_body"])
def test_a_binary_body_of_dotnet_begins_with_its_record(column: str) -> None:
    record = b"\0" + b"\1\n\3\4\5\6\7\x08" + b"\1" + bytes(7)
    rows: list[dict[str, Any]] = [{column: record}, {column: b" " + record}, {column: record[:-1]}, {column: None}]
    (found,) = detect(("messages", rows)).findings()
    assert (found.rule, found.frames) == ("dotnet-binary-body", [1])


@pytest.mark.parametrize(
    ("address", "expected", "found"),
    [
        ("10.0.0.1", (), False),
        ("10.0.0.1", ("10.0.0.1",), False),
        ("10.0.0.1", ("10.9.0.0/16", "10.0.0.77/24"), False),
        ("10.0.0.1", ("10.9.0.0/16",), True),
        ("2001:db8::1", ("10.9.0.0/16",), True),
        ("2001:db8::1", ("2001:db8::/32",), False),
        ("00000001:0123456789ab", ("10.0.0.0/8",), True),
    ],
)
def test_a_server_that_is_not_expected(address: str, expected: tuple[str, ...], found: bool) -> None:
    rows = [{"type": "reply", "src": address}, {"type": "request", "src": address}]
    detector = detect(("topology", rows), expected=expected)
    assert names(detector) == ["unexpected-directory-server"] * found
    assert detect(("topology", []), expected=expected).findings() == []


def test_a_reply_without_an_address_is_no_finding() -> None:
    detector = detect(("topology", [{"type": "reply", "src": None}]), expected=("10.0.0.0/8",))
    assert names(detector) == []


# --- Captures that are made to be slow, or to take memory ---


def foreign(port: int, data: bytes = b"\xff\xff") -> dict[str, Any]:
    fault = {"code": "bad_signature", "field": "BaseHeader.Signature", "offset": 4}
    return {"src_port": port, "dst_port": 1801, "stream_offset": 0, "unrecognized": data, "fault": fault}


def test_many_streams_of_an_unknown_protocol_are_one_finding() -> None:
    (finding,) = detect(("messages", [foreign(port) for port in range(500)])).findings()
    assert finding.evidence["packets"] == 500


def envelope(port: int) -> dict[str, Any]:
    fault = {"code": "bad_size", "field": "SRMPEnvelopeHeader.DataLength", "offset": 9, "value": (1 << 31) + 10}
    return {"src_port": port, "dst_port": 1801, "fault": fault}


@pytest.mark.parametrize("row", [foreign, envelope])
def test_what_waits_for_an_answer_keeps_no_other_rows(row: Any) -> None:
    detector, batches, rows = Detector(), 20, 1000
    schema = arrow_schema("messages", COLUMNS["messages"], dictionaries=False)
    schema = schema.append(pa.field("after", pa.int64()))
    before = pa.total_allocated_bytes()
    for number in range(batches):
        ports = [number, *[50_000] * (rows - 1)]
        made = {**dict.fromkeys(schema.names), **BASE, "frame": 1, "after": 20}
        detector.add("messages", pa.RecordBatch.from_pylist([{**made, **row(port)} for port in ports], schema))
    # Adds the rows that wait to be judged together
    assert detector.omitted() == 0
    assert pa.total_allocated_bytes() - before < batches * rows


def test_a_length_at_fault_is_looked_up_in_few_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in all packets of its block, as many times as there are such lengths."""
    number = 50
    searched: list[int] = []
    search = np.flatnonzero

    def counted(values: NDArray[Any]) -> NDArray[np.intp]:
        searched.append(len(values))
        return search(values)

    monkeypatch.setattr(np, "flatnonzero", counted)
    path = write(tmp_path / "x.pcap", stream([vector("http-check-malicious")] * number))
    with CapturedRows(path) as reader:
        found = [row for table, batch in reader if table == "messages" for row in batch.to_pylist()]
    assert len(found) == number
    assert all(row["after"] is not None for row in found)
    assert sum(searched) <= 4 * number
