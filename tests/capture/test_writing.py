"""Captures that we write: read by us and by Wireshark, to whom every frame is whole and every checksum right."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from msmqwire.capture.files.writing import CaptureWriter, Flow
from tests.capture import build, wireshark
from tests.capture.reading import Row, read

TIME = build.START + 123
HERE = Flow("10.0.0.1", 50000, "10.0.0.2", 1801)
BACK = Flow("10.0.0.2", 1801, "10.0.0.1", 50000)
SIX = Flow("2001:db8::1", 50001, "2001:db8::2", 1801)
MESSAGES = [build.message(bytes(size)) for size in (0, 1, 1425, 100_000)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "written.pcap"
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for number, message in enumerate(MESSAGES):
            writer.datagram(TIME + number, HERE, b"odd" * number)
            writer.stream(TIME + number, HERE, message)
            writer.stream(TIME + number, BACK, message)
            writer.stream(TIME + number, SIX, message)
        writer.datagram(TIME, SIX, b"six")
    return path


def test_streams_come_back_whole(path: Path) -> None:
    rows, stats = read(path, ports=[1801])
    assert (stats.malformed, stats.problems) == (0, [])
    for flow in (HERE, BACK, SIX):
        found = [row for row in rows if row.stream_offset is not None and row[2:6] == flow_of(flow)]
        assert [row.payload for row in found] == MESSAGES
        assert [row.time for row in found] == [TIME + number for number in range(len(MESSAGES))]
        ends = [sum(map(len, MESSAGES[:number])) for number in range(len(MESSAGES))]
        assert [row.stream_offset for row in found] == ends


def test_datagrams_come_back(path: Path) -> None:
    rows = [row for row in read(path, ports=[1801])[0] if row.stream_offset is None]
    assert [(row.src, row.payload) for row in rows] == [
        *((HERE.src, b"odd" * number) for number in range(len(MESSAGES))),
        (SIX.src, b"six"),
    ]


def flow_of(flow: Flow) -> tuple[str, int, str, int]:
    row = Row(0, 0, flow.src, flow.src_port, flow.dst, flow.dst_port, b"")
    return row[2:6]


def test_wireshark_finds_nothing_wrong(path: Path) -> None:
    names = ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "tcp.analysis.flags", "_ws.malformed"]
    checked = ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"]
    found = wireshark.fields(path, names, preferences=checked)
    assert len(found) > 200
    good = {"", "1"}
    assert all({*statuses} <= good and not flags and not malformed for *statuses, flags, malformed in found)


def test_what_no_frame_can_have() -> None:
    writer = CaptureWriter(io.BytesIO())
    with pytest.raises(ValueError, match="65,508 bytes do not fit"):
        writer.datagram(TIME, HERE, bytes(65508))
    for time in (-1, 1 << 62):
        with pytest.raises(ValueError, match="no time of"):
            writer.stream(time, HERE, b"x")


@pytest.mark.parametrize(
    ("ends", "complaint"),
    [
        ((HERE.src, 1, SIX.dst, 1), "one version of IP"),
        (("here", 1, HERE.dst, 1), "'here'"),
        ((HERE.src, -1, HERE.dst, 1), "-1 is not a port"),
        ((HERE.src, 1, HERE.dst, 1 << 16), "65536 is not a port"),
    ],
)
def test_who_sends_to_whom_is_checked(ends: tuple[str, int, str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Flow(*ends)


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    path = tmp_path / "wraps.pcap"
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        writer._written |= {HERE: 0xFFFFFF00, BACK: 1}
        for message in MESSAGES:
            writer.stream(TIME, HERE, message)
    rows, stats = read(path, ports=[1801])
    assert [row.payload for row in rows] == MESSAGES
    assert stats.streams.gaps == 0
