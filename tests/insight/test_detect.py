"""Findings: each rule has a capture that triggers it and nothing else, and the examples trigger none."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire import mqqb
from msmqwire.capture import read_tables
from msmqwire.insight import COLUMNS as SUMMARY_COLUMNS
from msmqwire.insight import Summary
from msmqwire.insight.findings import COLUMNS, CapturedRows, Detector, Finding
from msmqwire.insight.rules import RULES, suricata_rules
from tests.cli.support import run
from tests.insight.captures import EXAMPLES, FIRST, SECOND, THIRD, WRITER, datagram, message, stream, vector, write
from tests.vectors import load

EXPECTED = ("10.20.0.0/16", "2001:db8:20::/48")
ENVELOPE = '<se:Envelope xmlns:se="http://schemas.xmlsoap.org/soap/envelope/"/>\0'.encode("utf-16-le")
DOTNET = bytes.fromhex("0001000000ffffffff0100000000000000") + b"\x0c\x02\0\0\0\x06System"


def over_http(length: int, queue: str = "http://192.0.2.1/msmq/private$/a", label: str = "") -> bytes:
    """A message with an SRMPEnvelopeHeader whose DataLength is ``length``."""
    packet = message(FIRST, queue, label=label)
    (flags,) = struct.unpack_from("<I", packet, 60)
    packet = packet[:60] + struct.pack("<I", flags | 1 << 25) + packet[64:]
    packet += struct.pack("<HHI", 0, 0, length) + ENVELOPE + bytes(-len(ENVELOPE) % 4)
    return packet[:8] + struct.pack("<I", len(packet)) + packet[12:]


def connection() -> list[bytes]:
    zeros = vector("F3-establish-connection-request")[:60] + bytes(512)
    return stream([zeros])


REQUEST = b"POST /msmq HTTP/1.1\r\n\r\nMessage"
COMPOUND = mqqb.UserMessage(
    srmp_envelope="<e/>",
    compound=mqqb.CompoundMessageHeader(http_body=REQUEST, message_body_size=7, message_body_offset=23),
)
SOAP = mqqb.UserMessage(soap=mqqb.SoapHeader(soap_header="header", soap_body="body"))
QUEUES = mqqb.UserMessage(
    multi_queue=mqqb.MultiQueueFormatHeader(
        destination_queues=(r"DIRECT=OS:a\b", r"DIRECT=OS:c\d"), multi_queue_signature=b"signature"
    )
)
PROVIDER = struct.pack("<I", 1) + "provider\0".encode("utf-16-le")
UNITS = len(ENVELOPE) // 2
CAPTURES: dict[str, Callable[[], list[bytes]]] = {
    "queuejumper-exploit": lambda: stream([over_http(0x90000000)]) + stream([over_http(UNITS + 200)], port=40002),
    "queuejumper-check": lambda: stream([over_http(0x80000000 | UNITS)]),
    "length-overflow": lambda: stream([vector("http-body-offset-wraps")]),
    "connection-probe": connection,
    "metasploit-probe": lambda: stream([over_http(UNITS, "http://192.0.2.1/msmq/private$/queuejumper", "poc")]),
    "discovery-probe": lambda: [datagram(WRITER["PRINTED_REQUEST"])],
    "cloned-queue-manager": lambda: [
        datagram(WRITER["ping"](4, THIRD), src=src, to=3527) for src in ("10.0.0.1", "10.0.0.2")
    ],
    "dotnet-binary-body": lambda: stream([message(body=DOTNET)]),
    "dotnet-text-body": lambda: stream([message(body=b"<!DOCTYPE a []><a/>")]),
    "unexpected-directory-server": lambda: [
        datagram(WRITER["reply"](FIRST, [SECOND]), src="203.0.113.9", dst="10.20.1.25", port=1801, to=4000)
    ],
    "refused-notification": lambda: stream([WRITER["user_message"](FIRST, SECOND, 3, 1, 0, b"\1\xff")]),
    "executable-body": lambda: stream([message(body=b"#!/bin/sh\nid\n")]),
    "negative-acknowledgments": lambda: stream([message(message_class=0x8003, number=n) for n in range(100)]),
    "other-protocol": lambda: stream([b"GET / HTTP/1.0\r\n\r\n"]),
}  # fmt: skip


def findings(source: Any, expected: tuple[str, ...] = EXPECTED) -> list[Finding]:
    detector = Detector(expected)
    for table, batch in CapturedRows(source):
        detector.add(table, batch)
    return detector.findings()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_its_capture_and_no_other(rule: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", CAPTURES[rule.name]())
    found = findings(path)
    assert {finding.rule for finding in found} == {rule.name}
    assert all(finding.file == str(path) and finding.frames and finding.evidence["packets"] for finding in found)


def test_the_examples_have_no_findings() -> None:
    assert findings(EXAMPLES) == []
    assert findings(EXAMPLES, expected=()) == []


def test_evidence(tmp_path: Path) -> None:
    found = findings(write(tmp_path / "x.pcap", CAPTURES["queuejumper-exploit"]()))
    assert [(each.frames, each.evidence["length"]) for each in found] == [([4], 0x90000000), ([11], UNITS + 200)]
    (check,) = findings(write(tmp_path / "y.pcap", CAPTURES["queuejumper-check"]()))
    assert (check.reference, check.evidence["src"], check.evidence["dst"]) == (
        "CVE-2023-21554", "192.0.2.7", "10.20.1.25",
    )  # fmt: skip
    (cloned,) = findings(write(tmp_path / "z.pcap", CAPTURES["cloned-queue-manager"]()))
    assert cloned.evidence["address"] == ["10.0.0.1", "10.0.0.2"]
    assert (cloned.evidence["queue_manager"], cloned.frames) == (str(THIRD), [1, 2])


def test_lengths_are_those_of_each_file(tmp_path: Path) -> None:
    """Frames and places in streams are the same in all files."""
    lengths = (0x90000000, 0xA0000000, 0xB0000000)
    paths = [write(tmp_path / f"{length:x}.pcap", stream([over_http(length)])) for length in lengths]
    found = [(each.file, each.frames, each.evidence["length"]) for each in findings(paths)]
    assert found == [(str(path), [4], length) for path, length in zip(paths, lengths, strict=True)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"type": 0x81}, "sender_type"),
        # [MS-MQCN] 3.3.5.3: the sender identifier may be that of the receiver
        ({"claim": THIRD.bytes_le}, None),
    ],
)
def test_notifications_that_are_refused(tmp_path: Path, changes: dict[str, Any], reason: str | None) -> None:
    body = b"\1\1" + WRITER["notification_update"](2, struct.pack("<2I", 1403, 1404), b"\1\1")
    packet = WRITER["user_message"](FIRST, SECOND, 3, 1, 0, body)
    assert findings(write(tmp_path / "right.pcap", stream([packet]))) == []
    at = packet.index(struct.pack("<HH", 0x82, 16))
    kind = struct.pack("<H", changes.get("type", 0x82))
    wrong = packet[:at] + kind + packet[at + 2 : at + 16] + changes.get("claim", FIRST.bytes_le) + packet[at + 32 :]
    found = [(each.rule, each.evidence["reason"]) for each in findings(write(tmp_path / "w.pcap", stream([wrong])))]
    assert found == ([] if reason is None else [("refused-notification", reason)])


#: A packet with each length of 32 bits, and where the length stands in it, by the name that a finding has
OVERFLOWING: dict[str, tuple[mqqb.UserMessage, bytes, int]] = {
    "PacketSize": (mqqb.UserMessage(), b"LIOR", 4),
    "MessageSize": (mqqb.UserMessage(label="label", body=b"body", body_type=77), struct.pack("<I", 77), 8),
    "ExtensionSize": (mqqb.UserMessage(extension_data=b"extension"), b"extension", -4),
    "SecurityHeader.SenderCertSize": (
        mqqb.UserMessage(security=mqqb.SecurityHeader(sender_certificate=bytes(9))), struct.pack("<II", 9, 0), 0
    ),
    "SecurityHeader.ProviderInfoSize": (
        mqqb.UserMessage(security=mqqb.SecurityHeader(signature=b"signed..", provider_info=PROVIDER)),
        struct.pack("<I", len(PROVIDER)),
        0,
    ),
    "CompoundMessageHeader.HttpBodySize": (COMPOUND, REQUEST, -12),
    "CompoundMessageHeader.MessageBodySize": (COMPOUND, REQUEST, -8),
    "CompoundMessageHeader.MessageBodyOffset": (COMPOUND, REQUEST, -4),
    "SoapHeader.HeaderDataLength": (SOAP, "header".encode("utf-16-le"), -4),
    "SoapHeader.BodyDataLength": (SOAP, "body".encode("utf-16-le"), -4),
    "Destination.HeaderSize": (QUEUES, struct.pack("<HH", 0x64, 0), -4),
    "Destination.ElementCount": (QUEUES, struct.pack("<HH", 0x64, 0), 4),
    "MQFSignatureHeader.Size": (QUEUES, struct.pack("<HH", 0x15E, 0), 4),
}  # fmt: skip


@pytest.mark.parametrize("length", [1 << 31, (1 << 32) - 1])
@pytest.mark.parametrize("field", OVERFLOWING)
def test_each_length_that_overflows_is_found(tmp_path: Path, field: str, length: int) -> None:
    sent, landmark, distance = OVERFLOWING[field]
    packet = mqqb.encode(sent)
    at = packet.index(landmark) + distance
    assert findings(write(tmp_path / "right.pcap", stream([packet]))) == []
    (found,) = findings(
        write(tmp_path / "x.pcap", stream([packet[:at] + struct.pack("<I", length) + packet[at + 4 :]]))
    )
    evidence = found.evidence
    assert (found.rule, found.severity, evidence["field"], evidence["length"]) == (
        "length-overflow", "high", field, length,
    )  # fmt: skip


def test_tables_without_payloads(tmp_path: Path) -> None:
    """In a lake the bytes after a length are unknown, and so is its form."""
    path, detector = write(tmp_path / "x.pcap", CAPTURES["queuejumper-check"]()), Detector()
    for table, batch in read_tables(path, columns=COLUMNS):
        encoded = [c.dictionary_encode() if pa.types.is_string(c.type) else c for c in batch.columns]
        detector.add(table, pa.RecordBatch.from_arrays(encoded, batch.schema.names))
    (found,) = detector.findings()
    assert (found.rule, "length" in found.evidence) == ("queuejumper-exploit", True)


def test_the_command(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", CAPTURES["dotnet-binary-body"]())
    status, output, errors = run("detect", path)
    (line,) = map(json.loads, output.splitlines())
    assert (status, line["rule"], line["frames"]) == (2, "dotnet-binary-body", [4])
    assert list(line) == ["rule", "severity", "title", "file", "frames", "evidence", "reference"]
    assert "1 finding\n" in errors
    assert run("detect", *EXAMPLES, "-q")[:2] == (0, "")
    assert run("detect", *EXAMPLES, "-q", "--expect", "10.20.0.0/16")[0] == 2
    shown = run("detect", path, "-q", "-T", "table")[1]
    assert "body written by BinaryFormatter" in shown
    assert "        frames    4\n" in shown
    assert "        seen      2024-03-04 08:00:00\n" in shown
    assert run("detect")[0] == run("detect", path, "--rules")[0] == 1
    assert len(run("detect", "--rules")[1].splitlines()) == len(RULES)


def test_zeek_log(tmp_path: Path) -> None:
    queue = "OS:a\tb\x1b\\private$\\x"
    path = write(tmp_path / "x.pcap", stream([message(queue=queue, body=DOTNET)]))
    *header, row = run("detect", path, "-q", "-T", "zeek")[1].splitlines()
    fields = header[-2].split("\t")[1:]
    values = dict(zip(fields, row.split("\t"), strict=True))
    assert values["rule"] == "dotnet-binary-body"
    assert re.fullmatch(r"1709539200\.\d{6}", values["ts"])
    assert "\x1b" not in row


def test_eve_alerts(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", CAPTURES["dotnet-binary-body"]())
    (event,) = map(json.loads, run("detect", path, "-q", "-T", "eve")[1].splitlines())
    alert, detail = event.pop("alert"), event.pop("msmq")
    assert re.fullmatch(r"2024-03-04T08:00:00\.\d{6}\+0000", event.pop("timestamp"))
    assert event == {
        "pcap_cnt": 4, "event_type": "alert", "src_ip": "192.0.2.7", "src_port": 40001, "dest_ip": "10.20.1.25",
        "dest_port": 1801, "proto": "TCP", "pcap_filename": str(path),
    }  # fmt: skip
    assert alert["signature"].startswith("msmqwire dotnet-binary-body: ")
    assert (alert["severity"], alert["category"], alert["gid"]) == (2, "Potentially Bad Traffic", 1)
    assert f"sid:{alert['signature_id']};" in rules_by_name()["dotnet-binary-body"]
    assert (detail["rule"], detail["frames"], detail["packets"]) == ("dotnet-binary-body", [4], 1)
    for rule, proto in (("discovery-probe", "UDP"), ("cloned-queue-manager", None)):
        path = write(tmp_path / "y.pcap", CAPTURES[rule]())
        (event,) = map(json.loads, run("detect", path, "-q", "-T", "eve")[1].splitlines())
        assert (event.get("proto"), "src_ip" in event) == (proto, True)


def test_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "x.pcap", CAPTURES["connection-probe"]())
    (row,) = csv.DictReader(io.StringIO(run("detect", path, "-q", "-T", "csv")[1]))
    assert (row["rule"], row["src"], row["dst_port"], row["packets"]) == ("connection-probe", "192.0.2.7", "1801", "1")
    assert (row["frames"], json.loads(row["evidence"])) == ("4", {"answered": False})
    header, *rows = run("detect", *EXAMPLES, "-q", "-T", "csv")[1].splitlines()
    assert (header.split(",")[:2], rows) == (["rule", "severity"], [])


# Suricata rules


def matches(rule: str, payload: bytes) -> bool:
    """Whether the contents and byte tests of a rule match: the part of the language that the rules use."""
    at = 0
    for keyword, value in re.findall(r'(\w+):"?([^;"]*)"?;', rule[rule.index("(") :]):
        if keyword == "content":
            parts = value.split("|")
            wanted = b"".join(bytes.fromhex(part) if odd % 2 else part.encode() for odd, part in enumerate(parts))
            options = dict(
                re.findall(r"(offset|depth|distance):(\d+);", rule[rule.index(value) :].split("content:")[0])
            )
            start = int(options.get("offset", at if "distance" in options else 0))
            end = start + int(options["depth"]) if "depth" in options else len(payload)
            found = payload.find(wanted, start, end)
            if found < 0:
                return False
            at = found + len(wanted)
        elif keyword == "byte_test":
            size, operator, limit, offset, *_ = value.split(",")
            assert (size, operator) == ("4", ">")
            if int.from_bytes(payload[at + int(offset) :][:4], "little") <= int(limit, 16):
                return False
    return True


PAYLOADS = {
    "queuejumper-check": over_http(0x80000000 | UNITS),
    "connection-probe": vector("F3-establish-connection-request"),
    "metasploit-probe": over_http(UNITS, "http://192.0.2.1/msmq/private$/queuejumper", "poc"),
    "dotnet-binary-body": message(body=DOTNET),
}


def rules_by_name() -> dict[str, str]:
    return {re.search(r'msg:"msmqwire ([\w-]+)', line)[1]: line for line in suricata_rules().splitlines()}  # type: ignore[index]


def test_suricata_rules_match_their_payloads_and_no_other() -> None:
    rules = rules_by_name()
    assert rules.keys() == PAYLOADS.keys()
    assert len({re.search(r"sid:(\d+)", rule)[1] for rule in rules.values()}) == len(rules)  # type: ignore[index]
    for name, rule in rules.items():
        assert {other for other, payload in PAYLOADS.items() if matches(rule, payload)} == {name}
        assert not matches(rule, message())
        assert not matches(rule, over_http(UNITS))


@pytest.mark.skipif(shutil.which("suricata") is None, reason="suricata is not installed")
@pytest.mark.parametrize("name", PAYLOADS)
def test_suricata_itself(name: str, tmp_path: Path) -> None:
    rules = tmp_path / "msmqwire.rules"
    rules.write_text(run("detect", "--suricata")[1])
    path = write(tmp_path / "x.pcap", stream([PAYLOADS[name]]))
    command = ["suricata", "-r", str(path), "-S", str(rules), "-l", str(tmp_path), "-k", "none"]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    events = map(json.loads, (tmp_path / "eve.json").read_text().splitlines())
    alerts = {event["alert"]["signature"].split()[1].rstrip(":") for event in events if event["event_type"] == "alert"}
    assert alerts == {name}


def test_every_vector_is_counted(tmp_path: Path) -> None:
    """Whatever a payload holds, summaries count its row and rules read it."""
    frames = [datagram(vector.data) for vector in load("mqsd")]
    for number, each in enumerate(load("mqqb")):
        frames += stream([each.data], port=20000 + number)
    path = write(tmp_path / "vectors.pcap", frames)
    detector, summary, counts = Detector(EXPECTED), Summary(), Counter[str]()
    with CapturedRows(path, columns=SUMMARY_COLUMNS) as reader:
        for table, batch in reader:
            detector.add(table, batch)
            summary.add(table, batch)
            counts[table] += batch.num_rows
    # A connection is no packet
    tried = sum(row["connections"] for row in summary.records("connections"))
    totals = {row["in_table"]: row["rows"] for row in summary.records("totals")}
    assert {**totals, "connections": tried} == counts
    faults = sum(sum(table.faults.values()) for table in reader.tables.values())
    assert sum(row["rows"] for row in summary.records("problems") if row["problem"] == "fault") == faults > 20
    assert {"queuejumper-check", "queuejumper-exploit", "length-overflow"} <= {
        finding.rule for finding in detector.findings()
    }


def test_threads_change_no_finding(tmp_path: Path) -> None:
    names = [name for name in CAPTURES if name != "negative-acknowledgments"]
    paths = [write(tmp_path / f"{name}.pcap", CAPTURES[name]()) for name in names]
    one, *others = (run("detect", *paths, "-T", "json", "-j", jobs) for jobs in ("1", "2", "5"))
    assert one[0] == 2
    assert {json.loads(line)["rule"] for line in one[1].splitlines()} >= {*names} - {"unexpected-directory-server"}
    assert all(other == one for other in others)
