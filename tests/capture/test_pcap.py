"""The classic format: golden bytes, byte orders, units, link types, every truncation."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from msmqwire import capture
from msmqwire.errors import CaptureError
from tests.capture import build, oracle, wireshark
from tests.capture.reading import PORTS, Row, check, read

ORDERS = ("<", ">")

# One frame with the payload "abc", byte for byte: big-endian, nanoseconds
GOLDEN = bytes.fromhex(
    "a1b23c4d 0002 0004 00000000 00000000 0000ffff 00000001"
    "65e57f80 075bcd15 0000002d 0000002d"
    "ffffffffffff 025e00000001 0800"
    "45 00 001f 0007 0000 40 11 0000 0a000001 0a0000ff"
    "9c40 0709 000b 0000 616263"
)


def test_golden() -> None:
    rows, stats = read(GOLDEN)
    assert rows == [Row(1, build.START, "10.0.0.1", 40000, "10.0.0.255", 1801, b"abc")]
    assert stats == capture.CaptureStats(frames=1, payloads=1, bytes_read=len(GOLDEN))
    assert build.pcap([build.plain(b"abc")], ">", nano=True) == GOLDEN


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("nano", [False, True])
def test_orders_and_units(order: str, nano: bool) -> None:
    rows, stats = read(build.pcap([build.plain(b"%d" % i) for i in range(5)], order, nano=nano))
    assert [row.payload for row in rows] == [b"0", b"1", b"2", b"3", b"4"]
    unit = 1 if nano else 1000
    assert [row.time for row in rows] == [(build.START + i * 1_000_001) // unit * unit for i in range(5)]
    assert [row.frame for row in rows] == [1, 2, 3, 4, 5]
    assert (stats.frames, stats.malformed, stats.bytes_skipped) == (5, 0, 0)


def test_the_last_second_that_the_format_can_say() -> None:
    record = struct.pack("<4I", 0xFFFFFFFF, 999_999, 47, 47) + build.plain(b"hello")
    rows, _ = read(build.pcap_header() + record)
    assert rows[0].time == 0xFFFFFFFF * 10**9 + 999_999_000


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (build.ETHERNET, build.plain(b"x")),
        (build.RAW, build.ipv4(build.udp(b"x"))),
        (build.RAW, build.ipv6(build.udp(b"x"))),
        (12, build.ipv4(build.udp(b"x"))),
        (14, build.ipv4(build.udp(b"x"))),
        (build.RAW_IPV4, build.ipv4(build.udp(b"x"))),
        (build.RAW_IPV6, build.ipv6(build.udp(b"x"))),
    ],
)
def test_link_types(link: int, frame: bytes) -> None:
    rows, _ = read(build.pcap([frame], link=link))
    assert [row.payload for row in rows] == [b"x"]
    with_check_sequences = link | 0x2400_0000  # the upper bits say that frames end with a check sequence
    rows, _ = read(build.pcap([frame], link=with_check_sequences))
    assert [row.payload for row in rows] == [b"x"]


def test_frames_of_a_link_type_that_is_not_read_are_others() -> None:
    _, stats = read(build.pcap([build.plain(b"x")] * 3, link=build.COOKED))
    assert (stats.frames, stats.other) == (3, 3)


def test_a_file_without_frames() -> None:
    rows, stats = read(build.pcap([]))
    assert rows == []
    assert stats == capture.CaptureStats(bytes_read=24)


@pytest.mark.parametrize("order", ORDERS)
def test_every_truncation(order: str) -> None:
    frames = [build.plain(b"one"), build.ethernet(build.ARP, bytes(46)), build.plain(b"two"), build.plain(b"")]
    data = build.pcap(frames, order)
    whole, _ = read(data)
    ends = np.cumsum([24] + [16 + len(frame) for frame in frames]).tolist()
    for size in range(24, len(data) + 1):
        complete = sum(end <= size for end in ends) - 1
        last = ends[complete]
        rows, stats = read(data[:size])
        assert rows == [row for row in whole if row.frame <= complete]
        assert stats.frames == complete + (last < size)
        assert stats.malformed == (last < size)
        assert [problem.offset for problem in stats.problems] == [last] * (last < size)
        assert stats.bytes_skipped == size - last
        assert stats.bytes_read == size


@pytest.mark.parametrize("size", range(24))
def test_a_cut_file_header(size: int) -> None:
    with pytest.raises(CaptureError, match="empty" if size == 0 else "expected a pcap"):
        read(build.pcap([build.plain(b"x")])[:size])


@pytest.mark.parametrize(
    "first",
    [
        struct.pack("<IHH", 0xA1B2C3D4, 1, 4),
        struct.pack(">IHH", 0xA1B2C3D4, 0x200, 4),
        struct.pack("<IHH", 0xA1B2C3D5, 2, 4),
    ],
)
def test_what_is_no_pcap(first: bytes, tmp_path: Path) -> None:
    path = tmp_path / "no.pcap"
    path.write_bytes(first + bytes(100))
    with pytest.raises(CaptureError) as caught:
        capture.open(path)
    assert str(path) in str(caught.value)
    assert first.hex(" ") in str(caught.value)
    assert "pcapng" in str(caught.value)


def test_ports() -> None:
    frames = [build.plain(b"%d" % i, source, target) for i, (source, target) in enumerate(
        [(1801, 9), (9, 1801), (1801, 1801), (9, 9), (3527, 9), (0, 65535), (65535, 0), (0x0907, 0x0907)]
    )]  # fmt: skip
    for ports, expected in [
        ({1801}, {0, 1, 2}),
        ({9}, {0, 1, 3, 4}),
        ({1801, 3527}, {0, 1, 2, 4}),
        ({0}, {5, 6}),
        ({65535}, {5, 6}),
        ({0x0907}, {7}),  # 1801 with its bytes swapped
        (set(), set()),
        (range(65536), set(range(8))),
    ]:
        rows, stats = read(build.pcap(frames), ports=ports)
        assert {row.frame - 1 for row in rows} == expected
        assert stats.other == 8 - len(expected)


@pytest.mark.parametrize("port", [-1, 65536, 1 << 70])
def test_a_port_that_cannot_be(port: int) -> None:
    with pytest.raises(ValueError, match="port"):
        read(GOLDEN, ports=[port])


def test_the_default_ports_are_those_of_msmq() -> None:
    import io

    frames = [build.plain(b"", 9, port) for port in (1801, 3527, 876, 2101, 53)]
    with capture.open(io.BytesIO(build.pcap(frames))) as blocks:
        assert [block.capture["dst_port"].tolist() for block in blocks] == [[1801, 3527, 876]]
    check(blocks.stats)


def nanoseconds_as_microseconds(frames: list[bytes]) -> bytes:
    """A capture whose magic declares microseconds, and whose records have nanoseconds."""
    return build.pcap_header() + b"".join(build.pcap_record(frame, nano=True) for frame in frames)


def test_nanoseconds_where_microseconds_are_declared(tmp_path: Path) -> None:
    """Every frame is read, as Wireshark does; its time is the sum of its two fields; all of them are counted."""
    frames = [build.plain(b"one"), build.ethernet(build.IPV6, build.ipv6(build.udp(b"two"))), build.plain(b"three")]
    path = tmp_path / "one.pcap"
    path.write_bytes(nanoseconds_as_microseconds(frames))
    rows, stats = read(path)
    assert [row.payload for row in rows] == [b"one", b"two", b"three"]
    assert {row.time for row in rows} == {build.START // 10**9 * 10**9 + build.START % 10**9 * 1000}
    assert (stats.invalid_times, stats.malformed, stats.bytes_skipped) == (3, 0, 0)
    assert wireshark.fields(path, ["udp.dstport"]) == [["1801"]] * 3


def test_invalid_times_are_counted_once() -> None:
    """Also where a block ends at the frame, and in parts of a capture."""
    frames = [build.ethernet(build.IPV4, build.ipv4(build.ipv4(build.udp(b"x")), 4))] * 3000
    data = nanoseconds_as_microseconds(frames)
    assert read(data, block_size=4096)[1].invalid_times == 3000
    _, stats = read(data[:-1])
    assert (stats.invalid_times, stats.malformed) == (2999, 1)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("block_size", [4096, 1 << 20])
def test_original_lengths_below_the_captured_ones(order: str, block_size: int) -> None:
    """So is a capture whose frames Scapy lengthened: each record is read, as Wireshark does."""
    frames = [build.ethernet(build.IPV6, build.ipv6(build.udp(b"%d" % number * 50))) for number in range(100)]
    data = build.pcap_header(order) + b"".join(build.pcap_record(frame, order, original=0) for frame in frames)
    rows, stats = read(data, block_size=block_size)
    assert [row.payload for row in rows] == [b"%d" % number * 50 for number in range(100)]
    assert (stats.frames, stats.malformed, stats.bytes_skipped) == (100, 0, 0)
    assert rows == oracle.read(data, {*PORTS}).rows


def test_a_captured_length_above_the_original_one_with_no_record_after_it() -> None:
    """A time a day away, or no fraction of a second, is not that of a record that follows."""
    frame = build.ethernet(build.IPV6, build.ipv6(build.udp(b"x")))
    first = build.pcap_record(frame, original=0)
    for later, fraction, expected in (
        (86_400, 0, (2, 0)),
        (86_401, 0, (0, 1)),
        (0, 10**9 - 1, (2, 0)),
        (0, 10**9, (0, 1)),
    ):
        numbers = build.START // 10**9 + later, fraction, len(frame), 0
        data = build.pcap_header() + first + struct.pack("<4I", *numbers) + frame
        rows, stats = read(data)
        assert (len(rows), stats.malformed) == expected
        assert rows == oracle.read(data, {*PORTS}).rows
