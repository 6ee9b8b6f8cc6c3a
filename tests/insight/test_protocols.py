"""Other protocols on MSMQ's ports: what is recognized, how it is reported, and that MSMQ's own traffic is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from msmqwire.capture import ReadOptions
from msmqwire.insight.findings import CapturedRows, Detector, Finding
from msmqwire.insight.protocols import PROTOCOLS, UNKNOWN, protocol_of
from tests.insight.captures import FIRST, WRITER, message, stream, vector, write
from tests.insight.test_detect import findings
from tests.vectors import load

# What clients and servers send first: curl and nginx, OpenSSL, OpenSSH, smbclient and nmap, mstsc and xrdp
FIRST_BYTES = {
    "http": (
        b"GET / HTTP/1.1\r\nHost: mq1:1801\r\nUser-Agent: curl/8.5.0\r\n\r\n",
        b"HTTP/1.1 400 Bad Request\r\nServer: nginx\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"OPTIONS * HTTP/1.0\r\n\r\n",
    ),
    "tls": (
        bytes.fromhex("16030100f1010000ed0303") + bytes(53),
        bytes.fromhex("160303007a020000760303") + bytes(53),
        bytes.fromhex("15030300020228"),
    ),
    "ssh": (b"SSH-2.0-OpenSSH_9.6\r\n", b"SSH-1.99-Cisco-1.25\n"),
    "smb": (
        bytes.fromhex("00000085ff534d4272000000001853c8") + bytes(40),
        bytes.fromhex("000000b0fe534d4240000100") + bytes(50),
        bytes.fromhex("00000050fd534d42") + bytes(50),
    ),
    "rdp": (
        bytes.fromhex("0300002b26e00000000000436f6f6b69653a206d737473686173683d61646d696e0d0a0100080003000000"),
        bytes.fromhex("030000130ed000001234000209080000000000"),
    ),
    UNKNOWN: (b"\0", b"GET", b"220 mail ESMTP\r\n", bytes(64), b"\x16\x03\x01", b"LIOR" * 16),
}


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, each in FIRST_BYTES.items() for data in each])
def test_protocols(name: str, data: bytes) -> None:
    assert protocol_of(data[:64]) == name


def test_every_protocol_has_first_bytes() -> None:
    assert set(FIRST_BYTES) == {*PROTOCOLS, UNKNOWN}


def test_packets_of_msmq_are_none_of_them() -> None:
    for kind in ("mqqb", "mqsd"):
        assert {protocol_of(vector.data[:64]) for vector in load(kind)} == {UNKNOWN}


def others(path: Path) -> list[Finding]:
    return [finding for finding in findings(path) if finding.rule == "other-protocol"]


@pytest.mark.parametrize(("name", "data"), [(name, each[0]) for name, each in FIRST_BYTES.items() if name != UNKNOWN])
def test_a_finding_for_each_protocol(tmp_path: Path, name: str, data: bytes) -> None:
    (found,) = others(write(tmp_path / "x.pcap", stream([data]) + stream([data], port=40002)))
    assert (found.frames, found.evidence["protocol"], found.evidence["packets"]) == ([4, 11], name, 2)
    assert (found.evidence["src"], found.evidence["dst"], found.evidence["dst_port"]) == (
        "192.0.2.7", "10.20.1.25", 1801,
    )  # fmt: skip
    assert found.evidence["answered"] is False


def test_a_request_and_its_answer_are_one_finding(tmp_path: Path) -> None:
    talk = WRITER["Conversation"]("192.0.2.7", 40001, "10.20.1.25", 1801)
    talk.send(0, FIRST_BYTES["http"][0])
    talk.send(1, FIRST_BYTES["http"][1])
    (found,) = others(write(tmp_path / "x.pcap", talk.frames))
    assert (found.evidence["src"], found.evidence["answered"], found.evidence["packets"]) == ("192.0.2.7", True, 2)


def test_another_server_that_speaks_first(tmp_path: Path) -> None:
    talk = WRITER["Conversation"]("192.0.2.7", 40001, "10.20.1.25", 1801)
    talk.send(1, b"SSH-2.0-OpenSSH_9.6\r\n")
    talk.send(0, message())
    (found,) = others(write(tmp_path / "x.pcap", talk.frames))
    assert (found.evidence["src"], found.evidence["protocol"], found.evidence["src_port"]) == (
        "10.20.1.25", "ssh", 1801,
    )  # fmt: skip


def test_an_unknown_protocol(tmp_path: Path) -> None:
    (found,) = others(write(tmp_path / "x.pcap", stream([b"HELO scanner\r\n"])))
    assert found.evidence["protocol"] == UNKNOWN


def test_a_packet_that_is_too_large_is_no_other_protocol(tmp_path: Path) -> None:
    packet = message()
    frames = stream([packet[:8] + b"\xff" * 4 + packet[12:]])
    assert others(write(tmp_path / "x.pcap", frames)) == []


def test_the_rest_of_a_packet_is_no_other_protocol(tmp_path: Path) -> None:
    """A capture may begin anywhere in a connection, and lose segments."""
    packets = [message(FIRST, number=number, body=bytes(2000)) for number in range(4)]
    frames = stream(packets)
    data = [at for at, frame in enumerate(frames) if len(frame) > 100]
    for first in data[1:]:
        assert others(write(tmp_path / "late.pcap", frames[first:])) == []
    talk = WRITER["Conversation"]("192.0.2.7", 40001, "10.20.1.25", 1801)
    talk.send(0, packets[0][:1460], packets[0][1460:])
    talk.send(1, vector("session-ack"))
    # The end of the last packet, which its receiver acknowledges
    end = max(at for at, frame in enumerate(talk.frames) if packets[0][1460:] in frame)
    assert others(write(tmp_path / "end.pcap", talk.frames[end:])) == []
    for lost in data[1:]:
        assert others(write(tmp_path / "gap.pcap", frames[:lost] + frames[lost + 1 :])) == []


def test_other_ports_have_other_protocols(tmp_path: Path) -> None:
    """Whoever reads all ports finds what belongs there, unless it is in a connection of MSMQ."""
    request = FIRST_BYTES["http"][0]

    def on_port_8080(packets: list[bytes], port: int) -> list[bytes]:
        return [frame.replace(b"\x07\x09", b"\x1f\x90") for frame in stream(packets, port=port)]

    frames = [*on_port_8080([request], 4001), *on_port_8080([bytes(64)], 4002)]
    path = write(tmp_path / "x.pcap", frames)
    assert msmq_findings(path) == []
    frames += on_port_8080([message(), request], 4003)
    assert msmq_findings(write(tmp_path / "y.pcap", frames)) == [("other-protocol", 4003)]


def msmq_findings(path: Path) -> list[tuple[str, int]]:
    detector = Detector()
    for table, batch in CapturedRows(path, ReadOptions(ports={1801, 8080})):
        detector.add(table, batch)
    return [(finding.rule, finding.evidence["src_port"]) for finding in detector.findings()]
