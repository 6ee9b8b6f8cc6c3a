"""Streams of MSMQ that are not read: on other ports, over HTTP, PGM, and in RPC."""

from __future__ import annotations

import io
import random
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import capture
from tests.capture import build, wireshark
from tests.capture.build import message, segment
from tests.capture.traffic import file_of

pytestmark = pytest.mark.usefixtures("everything_is_released")

INTERFACES = {
    "qmcomm [MS-MQMP]": "fdb3a030-065f-11d1-bb9b-00a024ea5525",
    "qmcomm2 [MS-MQMP]": "76d12b80-3467-11d3-91ff-0090272f9ea3",
    "qm2qm [MS-MQQP]": "1088a980-eae5-11d0-8d9b-00a02453c337",
    "RemoteRead [MS-MQRR]": "1a9134dd-7b39-45ba-ad88-44d01ca47f28",
    "qmmgmt [MS-MQMR]": "41208ee0-e970-11d1-9b9e-00e02c064c39",
    "dscomm [MS-MQDS]": "77df7a80-f298-11d0-8358-00a024c480a8",
    "dscomm2 [MS-MQDS]": "708cca10-9569-11d1-b2a5-0060977d8118",
}
OTHER_INTERFACE = "e1af8308-5d1f-11c9-91a4-08002b14a0fa"  # the endpoint mapper
NDR = UUID("8a885d04-1ceb-11c9-9fe8-08002b104860").bytes_le + struct.pack("<I", 2)
POST = b"POST /msmq/private$/orders HTTP/1.1\r\nHost: app\r\n"


def bind(*interfaces: str, kind: int = 11, syntaxes: int = 1) -> bytes:
    """A bind of RPC (C706 12.6.4.3) to interfaces, each with transfer syntaxes."""
    contexts = b"".join(
        struct.pack("<HBB", number, syntaxes, 0) + UUID(uuid).bytes_le + struct.pack("<I", 1) + NDR * syntaxes
        for number, uuid in enumerate(interfaces)
    )
    body = struct.pack("<HHIBBH", 5840, 5840, 0, len(interfaces), 0, 0) + contexts
    return struct.pack("<BBBB4sHHI", 5, 0, kind, 3, b"\x10\0\0\0", 16 + len(body), 0, 1) + body


def unread(frames: list[bytes], **options: Any) -> dict[str, int]:
    """The streams that a capture of frames has and that are not read, and the sum of all counts is right."""
    found = []
    for form in range(4):
        with capture.open(io.BytesIO(file_of(frames, form)), **options) as blocks:
            for _ in blocks:
                pass
            stats = blocks.stats
        assert stats.frames == stats.payloads + stats.segments + stats.fragments + stats.other + stats.malformed
        found.append(stats.unread_streams)
    assert all(each == found[0] for each in found)
    return found[0]


def other(payload: bytes, port: int = 23, source: int = 50_000) -> bytes:
    return segment(payload, 1, source=source, target=port)


BACK = segment(message(), 1, source=23, target=50_000, src="10.0.0.2", dst="10.0.0.1")


def pgm(source: int = 7001, target: int = 50_001) -> bytes:
    """A packet of PGM (RFC 3208 8)."""
    return struct.pack(">HHBBH6sH", source, target, 4, 0, 0, bytes(6), 0) + bytes(8)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([other(message(b"text"))], {"MSMQ on port 23": 1}),
        ([other(message()), other(message()), BACK], {"MSMQ on port 23": 1}),
        (
            [other(message()), other(message(), source=50_001), other(message(), 24)],
            {"MSMQ on port 23": 2, "MSMQ on port 24": 1},
        ),
        ([other(b"\x10" + bytes(30)), other(b"Password: 12345678"), other(message()[:12])], {}),
        ([other(POST, 80)], {"SRMP over HTTP on port 80": 1}),
        ([other(POST.replace(b"/msmq", b"/MSMQ"), 80)], {"SRMP over HTTP on port 80": 1}),
        ([other(b'POST /q HTTP/1.1\r\nSOAPAction: "MSMQMessage"\r\n', 8080)], {"SRMP over HTTP on port 8080": 1}),
        ([other(b"POST /orders HTTP/1.1\r\nHost: app\r\n", 80), other(b"PUT /msmq/q HTTP/1.1\r\n", 80)], {}),
        ([build.ethernet(build.IPV4, build.ipv4(pgm(), 113))] * 2, {"PGM on port 7001": 1}),
        ([build.ethernet(build.IPV6, build.ipv6(pgm(), 113))], {"PGM on port 7001": 1}),
        ([build.ethernet(build.IPV4, build.ipv4(pgm()[:3], 113))], {}),
        ([build.ethernet(build.IPV4, build.ipv4(pgm(), 113, fragment=0x2000))], {}),
        *(
            ([other(bind(OTHER_INTERFACE, uuid), 2103)], {f"RPC interface {name} on port 2103": 1})
            for name, uuid in INTERFACES.items()
        ),
        (
            [other(bind(INTERFACES["qm2qm [MS-MQQP]"], kind=14, syntaxes=3), 135)],
            {"RPC interface qm2qm [MS-MQQP] on port 135": 1},
        ),
        ([other(bind(OTHER_INTERFACE), 135), other(bind(INTERFACES["qm2qm [MS-MQQP]"])[:40], 135)], {}),
        ([other(bind(INTERFACES["qm2qm [MS-MQQP]"], kind=0), 135)], {}),
    ],
)
def test_what_is_recognized(frames: list[bytes], expected: dict[str, int]) -> None:
    assert unread(frames) == expected


def test_in_frames_of_any_kind() -> None:
    body = build.tcp(message(), 1, target=23)
    packet = build.ipv4(body, build.TCP)
    frames = [
        build.ethernet(build.IPV4, packet, [(build.VLAN, 5)]),
        build.ethernet(build.IPV6, build.ipv6(body, build.TCP)),
        build.ethernet(build.IPV4, build.ipv4(body, build.TCP, options=bytes(4), source="10.9.9.9")),
    ]
    assert unread(frames) == {"MSMQ on port 23": 3}
    cut = [frame[: len(frame) - each] for frame in frames for each in range(1, len(body))]
    assert set(unread(cut)) <= {"MSMQ on port 23"}


def test_ports_that_are_read() -> None:
    """They are not counted, nor is anything where no streams are read."""
    frames = [other(message()), other(bind(INTERFACES["qm2qm [MS-MQQP]"]), 2105)]
    assert unread(frames, ports={23, 2105}) == {}
    assert unread([segment(message(), 1)]) == {}
    options = capture.table_options("topology")
    assert unread(frames, ports=options.ports, packets=options.packets) == {}


def test_a_bounded_number_is_counted() -> None:
    frames = [other(message(), 23, source) for source in range(40_000, 40_600)]
    assert unread(frames * 2) == {"MSMQ on port 23": 256}


def test_parts_add_up(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    rng = random.Random(1)
    frames = [other(message(), rng.randrange(20, 25), 50_000 + rng.randrange(5)) for _ in range(60)]
    path.write_bytes(build.pcap(frames))
    with capture.checkpoints(path, 1) as checkpoints:
        found = list(checkpoints)
    total = capture.CaptureStats()
    for resume, stop in pairwise([None, *found]):
        with capture.open(path, resume=resume, stop=stop) as blocks:
            assert list(blocks) == []
            assert blocks.checkpoint() == stop
        total += blocks.stats
    assert total == checkpoints.stats
    assert sum(total.unread_streams.values()) > 15


def test_lines_of_the_report() -> None:
    frames = [other(message()), other(message(), 24), other(message(), 24, 50_001), other(POST, 80)]
    with capture.open(io.BytesIO(build.pcap(frames))) as blocks:
        assert list(blocks) == []
    assert [line for line in blocks.stats.report({}, {}) if line.startswith("not read")] == [
        "not read: 1 stream on port 23 looks like MSMQ: --ports 23",
        "not read: 2 streams on port 24 look like MSMQ: --ports 24",
        "not read: 1 stream of SRMP over HTTP on port 80",
    ]


def test_wireshark_sees_the_same(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    frames = [other(bind(uuid), 2100 + number) for number, uuid in enumerate(INTERFACES.values())]
    frames += [other(POST + b"\r\n", 80), build.ethernet(build.IPV4, build.ipv4(pgm(), 113))]
    path.write_bytes(build.pcap(frames))
    names = ("dcerpc.cn_bind_to_uuid", "http.request.uri", "pgm.hdr.sport")
    rows = wireshark.fields(path, names)
    assert [row[0] for row in rows[:7]] == list(INTERFACES.values())
    assert rows[7][1] == "/msmq/private$/orders"
    assert rows[8][2] == "7001"
    assert len(unread(frames)) == 9
