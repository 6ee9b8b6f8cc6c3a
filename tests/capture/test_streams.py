"""Packets out of TCP streams: whatever order their segments come in, and an account of every byte."""

from __future__ import annotations

import gc
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msmqwire import capture
from msmqwire.columns import UNFRAMED_BIT
from tests.capture import build, oracle
from tests.capture.build import internal, message, segment
from tests.capture.reading import Row, check, read
from tests.capture.stream_oracle import FIN, RST, SYN
from tests.columns.rows import contents

ACK = 0x10
SESSION = internal()
PACKETS = [message(b"%d" % i * i, session=i % 3 == 0) for i in range(1, 9)]


pytestmark = pytest.mark.usefixtures("everything_is_released")


def found(frames: list[bytes], **options: Any) -> tuple[list[bytes], capture.StreamStats]:
    """The packets of a capture of these frames, and the account of its streams."""
    rows, stats = read(build.pcap(frames), **options)
    return [row.payload for row in rows if not row.lost], stats.streams


def cut(data: bytes, *sizes: int, first: int = 1) -> list[bytes]:
    """Frames with the bytes of a stream, as many in each as asked for; the last has the rest."""
    frames, at = [], 0
    for size in (*sizes, len(data)):
        part = data[at : at + size]
        frames.append(segment(part, first + at))
        at += len(part)
    return frames


# In order


def test_packets_in_a_segment() -> None:
    packets, streams = found([segment(SESSION + PACKETS[0]), segment(PACKETS[1], len(SESSION + PACKETS[0]))])
    assert packets == [SESSION, *PACKETS[:2]]
    assert streams == capture.StreamStats(streams=1, packets=3, bytes=sum(map(len, packets)), framed=streams.bytes)


def test_where_packets_come_from() -> None:
    data = b"".join(PACKETS)
    frames = [segment(b"", 0, SYN), *cut(data, 20, 30, 3), build.plain(b"datagram"), segment(b"", 0, ACK)]
    rows, stats = read(build.pcap(frames))
    assert stats.segments == 6
    at, ends = 0, [1 + 20, 1 + 50, 1 + 53, 1 + len(data)]
    for row, packet in zip(rows, PACKETS, strict=False):
        assert row.payload == packet
        assert row.stream_offset == at
        assert row.first_frame == 2 + sum(at + 1 >= end for end in ends)
        at += len(packet)
        assert row.frame == 2 + sum(at + 1 > end for end in ends)
        assert row.time == (build.START + (row.frame - 1) * 1_000_001) // 1000 * 1000
        assert row[2:6] == ("10.0.0.1", 40000, "10.0.0.2", 1801)
    assert rows[-1] == Row(6, rows[-1].time, "10.0.0.1", 40000, "10.0.0.255", 1801, b"datagram")


@pytest.mark.parametrize("at", range(1, 60))
def test_cut_anywhere(at: int) -> None:
    data = SESSION + message(b"body") + internal()
    packets, streams = found(cut(data, at))
    assert packets == [SESSION, message(b"body"), internal()]
    assert (streams.framed, streams.problems) == (len(data), 0)


def test_byte_by_byte() -> None:
    data = b"".join(PACKETS)
    assert found(cut(data, *[1] * len(data)))[0] == PACKETS


def test_the_smallest_and_the_largest_packet() -> None:
    small, large = message(), message(bytes((4 << 20) - 16))
    data = small * 3 + large + small
    frames = [segment(data[at : at + 60000], at) for at in range(0, len(data), 60000)]
    packets, streams = found(frames)
    assert packets == [small, small, small, large, small]
    assert streams.problems == 0


def test_over_ipv6_and_in_both_directions() -> None:
    there = build.ethernet(0x86DD, build.ipv6(build.tcp(PACKETS[0]), build.TCP))
    back = build.ethernet(
        0x86DD, build.ipv6(build.tcp(PACKETS[1], 0, 0x18, 1801, 40000), build.TCP, source="::2", target="::1")
    )
    rows, _ = read(build.pcap([there, back]))
    assert [row[2:7] for row in rows] == [
        ("2001:db8::1", 40000, "2001:db8::ff", 1801, PACKETS[0]),
        ("::2", 1801, "::1", 40000, PACKETS[1]),
    ]


# Out of order, twice, and differing


def test_out_of_order() -> None:
    data = b"".join(PACKETS)
    frames = cut(data, 20, 20, 20, 20)
    rows, stats = read(build.pcap([frames[0], frames[2], frames[1], *frames[3:]]))
    assert [row.payload for row in rows] == PACKETS
    assert stats.streams.problems == stats.streams.duplicate == 0
    whole, _ = read(
        build.pcap([segment(b"", 0, SYN), segment(PACKETS[1], 1 + len(PACKETS[0])), segment(PACKETS[0], 1)])
    )
    assert [(row.frame, row.first_frame, row.payload) for row in whole] == [(3, 3, PACKETS[0]), (2, 2, PACKETS[1])]


def test_retransmitted() -> None:
    frames = cut(b"".join(PACKETS), 20, 20, 20, 20)
    packets, streams = found([frames[0], frames[0], frames[1], frames[3], frames[3], frames[2], frames[1], *frames[3:]])
    assert packets == PACKETS
    assert (streams.duplicate, streams.problems, streams.uncompared) == (80, 3, 3)


def test_the_first_copy_wins() -> None:
    packet, other = message(b"first copy, and more"), message(b"later copy, and more")
    packets, streams = found([segment(packet[:24], 0), segment(other[16:30], 16), segment(packet[30:], 30)])
    assert packets == [packet[:24] + other[24:30] + packet[30:]]
    assert (streams.conflicts, streams.duplicate) == (1, 8)
    rows, stats = read(
        build.pcap(
            [segment(packet[:5], 0), segment(packet[20:], 20), segment(other[16:], 16), segment(packet[5:16], 5)]
        )
    )
    assert [row.payload for row in rows] == [packet[:16] + other[16:20] + packet[20:]]
    assert (stats.streams.conflicts, stats.streams.duplicate) == (1, 16)
    assert (
        stats.problems[0].what == "the bytes of this segment differ from earlier bytes there; its stream is at offset 5"
    )


def test_keep_alives_and_window_probes() -> None:
    data = PACKETS[0] + PACKETS[1]
    frames = [
        segment(data[:20], 1),
        segment(b"\0", 20, ACK),  # a keep-alive repeats the last byte as it likes
        segment(b"", 20, ACK),
        segment(data[20:21], 21),  # a probe brings the next one
        segment(data[20:], 21),
    ]
    packets, streams = found(frames)
    assert packets == PACKETS[:2]
    assert (streams.duplicate, streams.conflicts) == (2, 0)


@pytest.mark.parametrize("before", [1, 15, 16, 30, 40])
def test_the_sequence_number_wraps(before: int) -> None:
    data = b"".join(PACKETS)
    first = (1 << 32) - before
    frames = [segment(b"", first - 1, SYN), *cut(data, 20, 20, 20, first=first)]
    assert found(frames)[0] == PACKETS
    frames[2], frames[3] = frames[3], frames[2]
    assert found(frames)[0] == PACKETS


def test_a_syn_with_data() -> None:
    packets, streams = found([segment(PACKETS[0], 100, SYN), segment(PACKETS[1], 101 + len(PACKETS[0]))])
    assert packets == PACKETS[:2]
    assert streams.problems == 0


# New bytes where a stream was before


def back(sequence: int, acknowledged: int, flags: int = SYN | ACK) -> bytes:
    """A segment of the other side."""
    return segment(
        b"", sequence, flags, source=1801, target=40000, src="10.0.0.2", dst="10.0.0.1", acknowledged=acknowledged
    )


def test_new_bytes_at_used_offsets_are_reported() -> None:
    rows, stats = read(build.pcap([segment(packet, 0) for packet in PACKETS[2::-1]]))
    assert [row.payload for row in rows] == PACKETS[2:3]
    assert (stats.streams.uncompared, stats.streams.problems) == (2, 2)
    assert stats.problems[0].what == (
        f"{len(PACKETS[1])} bytes of this segment are not read: its stream is already at offset {len(PACKETS[2])}, "
        "and bytes that can be compared with them are not kept"
    )


def test_a_segment_from_before_the_first_byte() -> None:
    """The first two segments are swapped."""
    data = b"".join(PACKETS)
    at = len(PACKETS[0] + PACKETS[1])
    packets, streams = found([segment(data[at : at + 30], 1 + at), segment(data[:at], 1), *cut(data, at + 30)[1:]])
    assert sorted(packets) == sorted(PACKETS)
    assert (streams.streams, streams.problems) == (2, 0)


def test_ports_used_again_with_lower_numbers() -> None:
    data = b"".join(message(b"%d" % number) for number in range(40))
    for second in (1000, 90_000 - 5_000, (1 << 32) - 5_000):
        frames = [segment(PACKETS[0], 90_000), *cut(data, *[50] * 15, first=second)]
        packets, streams = found(frames)
        assert len(packets) == 41
        assert (streams.streams, streams.problems) == (2, 0)


@pytest.mark.parametrize("forged", [5, 1 << 20, 1 << 31, (1 << 32) - 9])
@pytest.mark.parametrize("payload", [b"", b"?"])
def test_a_forged_syn_does_not_end_a_stream(forged: int, payload: bytes) -> None:
    frames = cut(b"".join(PACKETS), 20, 20, 20, 20)
    frames.insert(2, segment(payload, forged, SYN))
    frames.insert(4, back(forged, 77))  # an answer, but to no SYN
    for first in ([], [segment(b"", 0, SYN), back(900, 1)]):
        packets, streams = found([*first, *frames])
        assert packets == PACKETS
        assert (streams.conflicts, streams.uncompared) == (0, len(payload))


@pytest.mark.parametrize("end", [FIN, RST, FIN | ACK])
@pytest.mark.parametrize("again", [0, 3, 50_000])
def test_a_syn_after_the_end(end: int, again: int) -> None:
    first, second = PACKETS[5], b"".join(PACKETS[:3])
    frames = [segment(b"", 0, SYN), segment(first, 1), segment(b"", 1 + len(first), end)]
    packets, streams = found([*frames, segment(b"", again, SYN), *cut(second, 20, first=again + 1)])
    assert packets == [first, *PACKETS[:3]]
    assert (streams.streams, streams.problems) == (2, 0)


@pytest.mark.parametrize("end", [0, FIN, RST])
@pytest.mark.parametrize("acknowledged", [0, 1, 16, 20])
def test_a_syn_with_data_on_used_ports(end: int, acknowledged: int) -> None:
    """RFC 7413: the answer may acknowledge none, a part or all of the data, which may come again."""
    old, new, more = message(b"old"), message(b"data"), message(b"more")
    assert len(new) == 20
    ended = [segment(b"", 100 + len(old), end)] if end else []
    frames = [segment(b"", 99, SYN), segment(old, 100), *ended, segment(new, 7999, SYN), back(1, 8000 + acknowledged)]
    packets, streams = found([*frames, segment(new[acknowledged:] + more, 8000 + acknowledged)])
    assert packets == [old, new, more]
    assert streams.duplicate == len(new) - acknowledged


@pytest.mark.parametrize("again", [3, 50_000, 1 << 31])
@pytest.mark.parametrize("answered", [True, False])
def test_a_syn_that_is_answered_or_followed(again: int, answered: bool) -> None:
    first, second = PACKETS[5], b"".join(PACKETS[:3])
    frames = [segment(b"", 0, SYN), back(900, 1), segment(first[:20], 1), segment(b"", again, SYN)]
    answer = [back(3000, again + 1)] if answered else []
    packets, streams = found([*frames, *answer, *cut(second, 20, first=again + 1)])
    assert packets == PACKETS[:3]
    assert (streams.streams, streams.unfinished, streams.problems) == (3 + answered, 1, 1)


def test_the_payload_of_a_reset_is_not_of_the_stream() -> None:
    packets, streams = found([segment(PACKETS[0], 1), segment(PACKETS[1], 1 + len(PACKETS[0]), RST)])
    assert packets == PACKETS[:1]
    assert streams.skipped == len(PACKETS[1])
    packets, streams = found([segment(PACKETS[1], 1, RST)])
    assert (packets, streams.streams, streams.skipped) == ([], 0, len(PACKETS[1]))


def test_a_reset_outside_the_stream_ends_nothing() -> None:
    frames = [segment(PACKETS[0], 1000), segment(b"", 10, RST), segment(b"", 500, SYN)]
    packets, streams = found([*frames, segment(PACKETS[1], 1000 + len(PACKETS[0]))])
    assert packets == PACKETS[:2]
    assert (streams.streams, streams.problems) == (1, 0)


# Lost


def test_a_gap_is_given_up_at_the_end() -> None:
    """Reading goes on where the packet ends that lost some bytes, whatever its body looks like."""
    trap = message(b"x" * 30 + PACKETS[0] + b"y")
    data = trap + PACKETS[1] + PACKETS[2]
    rows, stats = read(build.pcap([segment(data[:20], 0), segment(data[40:], 40)]))
    assert [(row.payload, row.lost) for row in rows] == [(trap[:20], len(trap) - 20), *((p, 0) for p in PACKETS[1:3])]
    assert [row.stream_offset for row in rows] == [0, len(trap), len(trap + PACKETS[1])]
    streams = stats.streams
    assert (streams.gaps, streams.missing, streams.skipped) == (1, 20, len(trap) - 20)
    (problem,) = stats.problems
    assert problem.what == "20 bytes before this segment are missing, from offset 20 of its stream"
    assert problem.offset == 24 + 16 + len(segment(data[:20], 0))


FIRST, SECOND = len(PACKETS[0]), len(PACKETS[1])


@pytest.mark.parametrize(
    ("frames", "missing"),
    [
        ([segment(PACKETS[0], 1), segment(b"", 1 + FIRST, FIN)], 0),
        # The second packet is before the FIN, which may come twice or before it
        ([segment(PACKETS[0], 1), segment(b"", 1 + FIRST + SECOND, FIN)], SECOND),
        ([segment(PACKETS[0], 1), *[segment(b"", 1 + FIRST + SECOND, FIN)] * 2], SECOND),
        ([segment(b"", 1 + FIRST + SECOND, FIN), segment(PACKETS[0], 1), segment(PACKETS[1], 1 + FIRST)], 0),
        ([segment(PACKETS[0], 1), segment(b"", 1 + FIRST + SECOND, FIN), segment(b"", 70_000, SYN)], SECOND),
        # Cut after the first packet
        ([segment(PACKETS[0] + PACKETS[1], 1)[:-SECOND]], SECOND),
        ([segment(PACKETS[0] + PACKETS[1], 1)[:-SECOND], segment(PACKETS[1], 1 + FIRST)], 0),
        # Of another connection with these ports
        ([segment(PACKETS[0], 1), segment(b"", 1 + FIRST + (1 << 21), FIN)], 0),
        ([segment(PACKETS[0], 1), segment(b"", 1, FIN)], 0),
    ],
)
def test_the_end_of_a_stream_may_be_missing(frames: list[bytes], missing: int) -> None:
    rows, stats = read(build.pcap([segment(b"", 0, SYN), *frames]))
    assert rows[0].payload == PACKETS[0]
    assert all(row.payload == PACKETS[1] for row in rows[1:])
    streams = stats.streams
    assert (streams.missing, streams.gaps, streams.problems) == (missing, missing > 0, missing > 0)
    said = f"the last {missing} bytes of the stream of this segment are missing, from offset {FIRST}"
    assert [problem.what for problem in stats.problems] == [said] * (missing > 0)


def test_what_begins_in_a_gap_is_looked_for() -> None:
    data = PACKETS[0] + message(b"a" * 50) + b"".join(PACKETS[1:3])
    packets, streams = found([segment(data[:10], 0), segment(data[30:], 30)])
    assert packets == PACKETS[1:3]
    assert (streams.gaps, streams.no_packet) == (1, 0)


def test_too_much_behind_a_gap() -> None:
    limits = capture.StreamLimits(ahead=100)
    body = message(bytes(44))
    frames = [segment(b"", 0, SYN)] + [segment(body, 1 + 60 * i) for i in (1, 2)]
    rows, _ = read(build.pcap([*frames, build.plain(b"later"), segment(body, 1)]), limits=limits)
    assert [row.frame for row in rows] == [2, 3, 4]  # 120 bytes wait: it is given up, and what comes late is too late
    rows, _ = read(build.pcap([*frames[:2], build.plain(b"later"), segment(body, 1)]), limits=limits)
    assert [row.frame for row in rows] == [3, 4, 2]


def test_a_reset_gives_up() -> None:
    frames = [segment(b"", 0, SYN), segment(PACKETS[0], 21), segment(b"", 21 + len(PACKETS[0]), RST), build.plain(b"x")]
    rows, stats = read(build.pcap(frames))
    assert [row.payload for row in rows] == [PACKETS[0], b"x"]
    assert stats.streams.missing == 20


def test_ports_used_again() -> None:
    frames = [
        segment(b"", 100, SYN), segment(PACKETS[5][:20], 101), segment(b"", 121, FIN),
        segment(b"", 100, SYN), segment(b"", 101, FIN), segment(b"", 7000, SYN), segment(PACKETS[1], 7001),
    ]  # fmt: skip
    rows, stats = read(build.pcap(frames))
    assert [(row.payload, row.stream_offset, row.lost) for row in rows] == [
        (PACKETS[5][:20], 0, len(PACKETS[5]) - 20),
        (PACKETS[1], 0, 0),
    ]
    assert (stats.streams.streams, stats.streams.unfinished, stats.streams.skipped) == (3, 1, 20)
    (problem,) = stats.problems
    assert problem.what == "the stream ends after this segment, 20 bytes into a packet of 38"


def test_joined_in_the_middle() -> None:
    data = message(b"\x10 looks like \x10?? LIOR but is not") + PACKETS[0] + PACKETS[1]
    rows, stats = read(build.pcap([segment(data[7:60], 5007), segment(data[60:], 5060)]))
    assert [row.payload for row in rows] == [data[7 : -len(PACKETS[0] + PACKETS[1])], *PACKETS[:2]]
    assert rows[0].lost == UNFRAMED_BIT
    assert rows[1].stream_offset == len(data) - len(PACKETS[0] + PACKETS[1]) - 7
    assert stats.streams.no_packet == 1


def test_other_protocols() -> None:
    packets, streams = found([segment(b"GET / HTTP/1.1\r\n\r\n" * 50, 0), segment(b"\x10" * 500, 900)])
    assert packets == []
    assert (streams.no_packet, streams.skipped) == (1, 1400)


@pytest.mark.parametrize("size", [0, 15, (4 << 20) + 1, 0xFFFFFFFF])
def test_a_size_that_cannot_be(size: int) -> None:
    packets, streams = found([segment(message(size=size) + PACKETS[0], 0)])
    assert packets == [PACKETS[0]]
    assert (streams.no_packet, streams.skipped) == (1, 16)


@pytest.mark.parametrize("snapshot", [54, 60, 80, 100])
def test_frames_cut_by_the_snapshot_length(snapshot: int) -> None:
    frames = cut(b"".join(PACKETS * 5), *[40] * 30)
    records = [build.pcap_record(frame[:snapshot], original=len(frame)) for frame in frames]
    data = build.pcap_header(snapshot=snapshot) + b"".join(records)
    rows, stats = read(data)
    expected = oracle.read(data, {1801})
    assert rows == expected.rows
    assert stats.streams.bytes == sum(len(frame[:snapshot]) - 54 for frame in frames)
    assert stats.streams.missing == expected.streams.account["missing"]


def test_every_truncation_of_a_segment() -> None:
    whole = build.ethernet(0x0800, build.ipv4(build.tcp(PACKETS[0], options=b"\1" * 12), build.TCP, options=b"\1" * 8))
    data = build.pcap([whole[:size] for size in range(len(whole) + 1)])
    rows, stats = read(data)
    expected = oracle.read(data, {1801})
    assert rows == expected.rows
    assert (stats.segments, stats.malformed) == (expected.segments, len(expected.malformed))


# Files and windows


def test_streams_go_on_in_the_next_file(tmp_path: Path) -> None:
    data = b"".join(PACKETS)
    frames = cut(data, 30, 40, 50)
    for number, frame in enumerate(frames):
        (tmp_path / f"{number}.pcap").write_bytes(build.pcap([build.plain(b"x"), frame]))
    rows: list[tuple[str | None, int | None, bytes | None]] = []
    with capture.open(tmp_path / "*.pcap", ports={"tcp": [1801]}) as blocks:
        for block in blocks:
            table = block.capture.to_arrow()
            rows += zip(table["file"].to_pylist(), table["frame"].to_pylist(), contents(block.payloads), strict=True)
        stats = blocks.stats
    check(stats)
    assert [payload for _, _, payload in rows] == PACKETS
    ends = [30, 70, 120, len(data)]
    at = 0
    for file, number_in_file, payload in rows:
        assert file is not None
        assert payload is not None
        at += len(payload)
        assert Path(file).name == f"{sum(at > end for end in ends)}.pcap"
        assert number_in_file == 2
    assert (stats.frames, stats.segments, stats.other) == (8, 4, 4)


def test_held_payloads_stay() -> None:
    """Packets that were put together last as long as somebody looks at them, like those in a window."""
    rng = random.Random(3)
    packets = [message(rng.randbytes(rng.randrange(3000))) for _ in range(400)]
    data = b"".join(packets)
    frames = cut(data, *[1400] * (len(data) // 1400))
    with capture.open(io.BytesIO(build.pcap(frames)), block_size=8192) as blocks:
        held = [payload for block in blocks for payload in block.payloads]
    del blocks
    gc.collect()
    assert [bytes(payload or b"") for payload in held] == packets


def test_kinds_of_packets() -> None:
    data = b"".join([SESSION, PACKETS[0], SESSION, *PACKETS[1:3], message(bytes(3000)), SESSION])
    for sizes in ((), (20, 20), (1,) * 150):
        frames = [*cut(data, *sizes), build.plain(b"x")]
        messages, streams = found(frames, packets="message")
        assert messages == [*PACKETS[:3], message(bytes(3000)), b"x"]
        assert (streams.packets, streams.unselected) == (7, 3)
        sessions, streams = found(frames, packets=["session"], ports={"tcp": [1801]})
        assert sessions == [SESSION] * 3
        assert (streams.framed, streams.unselected) == (len(data), 4)
    assert found(frames, packets=())[0] == [b"x"]
    repeated = [segment(SESSION[:30], 1), segment(SESSION[10:30], 11), segment(SESSION[30:], 31)]
    packets, streams = found(repeated, packets="message")
    assert (packets, streams.uncompared, streams.duplicate) == ([], 1, 20)
    with pytest.raises(ValueError, match="unknown kind of packet 'messages'; known: message, session"):
        found(frames, packets=["messages"])


def test_ports_of_each_transport() -> None:
    frames = [segment(PACKETS[0], 0), build.plain(b"x")]
    for ports, expected in (({"udp": [1801]}, [b"x"]), ({"tcp": [1801]}, [PACKETS[0]]), ({}, [])):
        packets, _ = found(frames, ports=ports)
        assert packets == expected
    with pytest.raises(ValueError, match="unknown transport 'sctp'"):
        found(frames, ports={"sctp": [1801]})


# Where problems are


@pytest.mark.parametrize("form", [build.pcap, build.pcapng])
def test_problems_name_frames_and_ends(form: Callable[[list[bytes]], bytes]) -> None:
    data = PACKETS[7] + PACKETS[6]
    frames = [
        build.plain(b"datagram"),
        segment(b"", 0, SYN),
        segment(data[:10], 1),
        segment(b"other bytes", 1),
        segment(data[40:], 41),
        segment(b"GET / HTTP/1.0", 77, src="10.0.0.7", source=40007),
        build.ethernet(build.IPV6, build.ipv6(build.tcp(PACKETS[5][:20], 1, source=40006), build.TCP)),
        build.plain(b"a datagram that is cut")[:50],
        build.plain(b"")[:20],
    ]
    _, stats = read(form(frames))
    ends = "10.0.0.1:40000 to 10.0.0.2:1801"
    found = {problem.what.split(" ")[0] + f" {problem.frame}": problem.ends for problem in stats.problems}
    assert found == {
        "the 4": ends,  # bytes of this segment differ
        "29 5": ends,  # bytes are missing
        "no 6": "10.0.0.7:40007 to 10.0.0.2:1801",
        "the 7": "[2001:db8::1]:40006 to [2001:db8::ff]:1801",  # stream ends
        "the 8": "10.0.0.1:40000 to 10.0.0.255:1801",  # frame is truncated
        "the 9": "",
    }
    text = next(problem.text for problem in stats.problems if problem.what.startswith("no packet"))
    assert text.startswith("frame 6, 10.0.0.7:40007 to 10.0.0.2:1801: no packet begins at offset 0")


def test_problems_of_fragments_name_their_addresses() -> None:
    part = build.ethernet(build.IPV4, build.ipv4(b"\7\t" * 4 + bytes(8), fragment=0x2000))
    _, stats = read(build.pcap([build.plain(b"datagram"), part]))
    (problem,) = stats.problems
    assert problem.text.startswith("frame 2, 10.0.0.1 to 10.0.0.255: an IP datagram in fragments is incomplete")
