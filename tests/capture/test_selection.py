"""Rows by when they were captured and where they go from and to; what is left out is accounted for."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta, timezone
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from msmqwire import capture
from tests.capture import build
from tests.capture.reading import rows_of

ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.1.1", "192.168.7.200", "2001:db8::1", "2001:db8:1::1"]
PARAMETERS = bytes.fromhex("10c00b00 4c494f52 20000000 ffffffff 0000 0300 d8050000 c0d40100 0000 4000")


def frame(source: str, target: str) -> bytes:
    """A datagram from one to the other."""
    datagram = build.udp(b"payload")
    if ":" in source:
        return build.ethernet(build.IPV6, build.ipv6(datagram, source=source, target=target))
    return build.ethernet(build.IPV4, build.ipv4(datagram, source=source, target=target))


FRAMES = [frame(source, target) for source in ADDRESSES for target in ADDRESSES if (":" in source) == (":" in target)]
DATA = build.pcap(FRAMES, nano=True)


def select(data: bytes, **selection: Any) -> tuple[list[Any], capture.CaptureStats]:
    """The rows of a selection, and the account."""
    with capture.open(io.BytesIO(data), **selection) as blocks:
        rows = [row for block in blocks for row in rows_of(block)]
    stats = blocks.stats
    assert stats.frames == stats.payloads + stats.segments + stats.other + stats.malformed
    return rows, stats


@pytest.mark.parametrize(
    "networks",
    [
        ["10.0.0.1"],
        ["10.0.0.0/31"],
        ["10.0.0.0/24", "2001:db8::/48"],
        ["10.0.0.0/15"],
        ["0.0.0.0/0"],
        ["::/0"],
        ["192.168.7.193/27"],
        ["2001:db8::1"],
        ["172.16.0.0/12"],
    ],
)
def test_addresses(networks: list[str]) -> None:
    everything, _ = select(DATA)
    wanted = [ip_network(network, strict=False) for network in networks]
    expected = [
        row for row in everything if any(ip_address(end) in network for network in wanted for end in (row.src, row.dst))
    ]
    rows, stats = select(DATA, addresses=networks)
    assert rows == expected
    assert stats.other == len(FRAMES) - len(expected)


def test_times() -> None:
    """The first nanosecond is in, the last one is out."""
    everything, _ = select(DATA)
    times = [row.time for row in everything]
    rows, _ = select(DATA, since=times[3], until=times[7])
    assert rows == everything[3:7]
    assert select(DATA, since=times[3] + 1)[0] == everything[4:]
    assert select(DATA, until=times[3] + 1)[0] == everything[:4]
    moment = datetime(2024, 3, 4, 8, 0, 0, 123457, tzinfo=UTC)  # a microsecond after the first
    assert select(DATA, since=moment)[0] == everything[1:]
    elsewhere = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert select(DATA, until=elsewhere)[0] == everything[:1]


@pytest.mark.parametrize("columns", [(), ("frame",), ("time",)])
def test_times_that_are_not_shown(columns: tuple[str, ...]) -> None:
    """By them rows are chosen, whatever columns are built."""
    since = build.START + len(FRAMES) // 2 * 1_000_000
    expected = len(select(DATA, since=since)[0])
    assert 0 < expected < len(FRAMES)
    with capture.open(io.BytesIO(DATA), columns=columns, since=since) as blocks:
        assert sum(len(block) for block in blocks) == expected


def test_frames_without_a_time() -> None:
    data = build.section() + build.interface() + build.simple_packet(FRAMES[0])
    assert len(select(data)[0]) == 1
    assert select(data, since=0)[0] == []
    assert len(select(data, addresses=["10.0.0.1"])[0]) == 1


def test_packets_out_of_streams() -> None:
    """By the time of the last frame of a packet; the first may lie in front."""
    pieces = [PARAMETERS + PARAMETERS[:10], PARAMETERS[10:], PARAMETERS]
    frames, sequence = [], 1
    for piece in pieces:
        frames.append(build.ethernet(build.IPV4, build.ipv4(build.tcp(piece, sequence), build.TCP)))
        sequence += len(piece)
    data = build.pcap(frames)
    everything, _ = select(data)
    assert [row.frame for row in everything] == [1, 2, 3]
    rows, stats = select(data, since=everything[1].time)
    assert rows == everything[1:]
    assert (stats.streams.packets, stats.streams.unselected) == (3, 1)
    assert select(data, addresses=["10.0.0.1"])[0] == everything
    rows, stats = select(data, addresses=["10.9.0.0/16"])
    assert rows == []
    assert (stats.segments, stats.streams.unselected) == (3, 3)


def test_frames_of_ipx_have_no_such_address() -> None:
    data = build.pcap([build.ethernet(0x8137, build.ipx(b"payload"))])
    assert len(select(data, ports=[876])[0]) == 1
    assert select(data, ports=[876], addresses=["0.0.0.0/0", "::/0"])[0] == []


def test_tables() -> None:
    with capture.read_table(io.BytesIO(DATA), columns=["frame"], addresses="10.0.0.1") as reader:
        frames = [frame for batch in reader for frame in batch.column("frame").to_pylist()]
    assert frames == [row.frame for row in select(DATA, addresses=["10.0.0.1"])[0]]
