"""IP datagrams in parts: put together in any order, the first copy of every byte; what is missing is said."""

from __future__ import annotations

import io
import itertools
import random
import struct
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, PadN, fragment6
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import wrpcap

from msmqwire import capture
from tests.capture import build, oracle, wireshark
from tests.capture.reading import read

PAYLOAD = random.Random(1).randbytes(1000)
DATAGRAM = build.udp(PAYLOAD)


def part(start: int, end: int, *, number: int = 7, body: bytes = DATAGRAM, more: bool | None = None) -> bytes:
    """A frame with the bytes of a datagram between two places."""
    goes_on = end < len(body) if more is None else more
    packet = build.ipv4(body[start:end], fragment=start // 8 | (0x2000 if goes_on else 0))
    return build.ethernet(build.IPV4, packet[:4] + number.to_bytes(2, "big") + packet[6:])


def part6(start: int, end: int, *, body: bytes = DATAGRAM, kind: int = build.UDP) -> bytes:
    """The same over IPv6."""
    header = bytes([kind, 0]) + (start | (end < len(body))).to_bytes(2, "big") + b"\0\0\0\7"
    return build.ethernet(build.IPV6, build.ipv6(header + body[start:end], 44))


PARTS = [part(start, min(start + 256, len(DATAGRAM))) for start in range(0, len(DATAGRAM), 256)]


@pytest.mark.parametrize("order", [*itertools.permutations(range(4))])
def test_any_order(order: tuple[int, ...]) -> None:
    rows, stats = read(build.pcap([PARTS[index] for index in order]))
    assert [(row.frame, row.payload) for row in rows] == [(4, PAYLOAD)]
    assert (stats.payloads, stats.fragments, stats.other, stats.malformed) == (1, 3, 0, 0)


@pytest.mark.parametrize("block_size", [4096, 1 << 20])
def test_ipv6_and_windows_between_the_parts(block_size: int) -> None:
    ends = [*range(0, len(DATAGRAM), 8), len(DATAGRAM)]
    frames = [part6(start, end) for start, end in itertools.pairwise(ends)]
    between = build.plain(bytes(3000))
    rows, stats = read(build.pcap([frame for one in frames for frame in (one, between)]), block_size=block_size)
    assert [row.payload for row in rows if any(row.payload)] == [PAYLOAD]
    assert next(row for row in rows if any(row.payload)).src == "2001:db8::1"
    assert stats.fragments == len(frames) - 1


def test_extension_headers_behind_the_fragment_header() -> None:
    body = build.extension(build.UDP, 16) + DATAGRAM
    rows, _ = read(build.pcap([part6(0, 512, body=body, kind=60), part6(512, len(body), body=body, kind=60)]))
    assert [row.payload for row in rows] == [PAYLOAD]


@pytest.mark.parametrize("kind", [build.TCP, 50, 58, 59, 60, 255])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_next_header_of_ipv6_is_that_of_the_first_part(order: tuple[int, int], kind: int) -> None:
    """RFC 8200 4.5: of the others it may differ, and is not used."""
    parts = [part6(0, 512), part6(512, len(DATAGRAM), kind=kind)]
    rows, stats = read(build.pcap([parts[at] for at in order]))
    assert [row.payload for row in rows] == [PAYLOAD]
    assert (stats.fragments, stats.incomplete_datagrams) == (1, 0)
    parts = [part(0, 512), part(512, len(DATAGRAM))]
    parts[1] = parts[1][:23] + bytes([build.TCP]) + parts[1][24:]
    rows, stats = read(build.pcap(parts))
    assert (rows, stats.fragments, stats.incomplete_datagrams) == ([], 2, 2)


def test_datagrams_between_each_other() -> None:
    bodies = [build.udp(bytes([number]) * 900) for number in range(200)]
    frames = [part(0, 448, number=number, body=body) for number, body in enumerate(bodies)]
    frames += [part(448, len(body), number=number, body=body) for number, body in enumerate(bodies)]
    rows, stats = read(build.pcap(frames))
    assert [row.payload[0] for row in rows] == list(range(200))
    assert stats.fragments == 200


def test_repeated_and_overlapping_parts() -> None:
    """The same bytes again change nothing; other ones do not either, and are counted."""
    again = [PARTS[0], PARTS[0], part(128, 512), *PARTS[1:]]
    rows, stats = read(build.pcap(again))
    assert [row.payload for row in rows] == [PAYLOAD]
    assert stats.fragment_conflicts == 0
    forged = DATAGRAM[:256] + bytes(256) + DATAGRAM[512:]
    rows, stats = read(build.pcap([PARTS[0], PARTS[1], part(128, 512, body=forged), *PARTS[2:]]))
    assert [row.payload for row in rows] == [PAYLOAD]
    assert stats.fragment_conflicts == 1


def test_parts_that_cannot_be() -> None:
    """Beyond the end or 64 KiB, or of a length that leaves a hole: malformed, and not needed for the datagram."""
    wrong = [
        part(1000, 1048, body=bytes(2000)),
        build.ethernet(build.IPV4, build.ipv4(bytes(64), fragment=0x1FFF)),
        part(256, 500, more=True),
        build.ethernet(build.IPV4, build.ipv4(b"", fragment=0x2000)),
    ]
    rows, stats = read(build.pcap([PARTS[-1], *wrong, *PARTS[:-1]]))
    assert [row.payload for row in rows] == [PAYLOAD]
    assert stats.malformed == len(wrong)
    assert all("fragment" in problem.what for problem in stats.problems)


def test_a_last_part_before_others() -> None:
    rows, stats = read(build.pcap([PARTS[-1], part(0, 8)]))
    assert (rows, stats.incomplete_datagrams, stats.malformed) == ([], 1, 0)
    ended_early = part(8, 64, more=False)
    rows, stats = read(build.pcap([PARTS[1], ended_early]))
    assert (rows, stats.malformed) == ([], 1)


def test_fragments_in_fragments_and_of_other_protocols() -> None:
    inner = bytes((17, 0)) + struct.pack(">HI", 8 | 1, 1) + bytes(64)
    rows, stats = read(build.pcap([part6(0, 40, body=inner, kind=44), part6(40, len(inner), body=inner, kind=44)]))
    assert (rows, stats.other) == ([], 1)
    rows, stats = read(build.pcap([part6(0, 40, body=inner, kind=58)]))
    assert (rows, stats.fragments, stats.incomplete_datagrams) == ([], 1, 0)
    first, last = part6(0, 40, body=inner, kind=58), part6(40, len(inner), body=inner, kind=build.UDP)
    for order in ([first, last], [last, first]):
        rows, stats = read(build.pcap(order))
        assert (rows, stats.fragments, stats.other, stats.incomplete_datagrams) == ([], 1, 1, 0)
    # A first part may be that of a datagram of ours: here it is missing, and there it announces an encapsulation
    for kind, start in ((58, 40), (50, 0)):
        rows, stats = read(build.pcap([part6(start, start + 40, body=inner, kind=kind)]))
        assert (rows, stats.fragments, stats.incomplete_datagrams) == ([], 1, 1)


def test_a_missing_part() -> None:
    data = build.pcap([PARTS[0], PARTS[2], build.plain(b"next")])
    rows, stats = read(data)
    assert [row.payload for row in rows] == [b"next"]
    assert (stats.fragments, stats.incomplete_datagrams) == (2, 1)
    (problem,) = stats.problems
    assert problem.offset == 24
    assert problem.what == "an IP datagram in fragments is incomplete: 512 bytes were captured"


def test_more_datagrams_than_wait() -> None:
    """The one that has waited longest is given up for another; all of them are told."""
    frames = [part(0, 512, number=number) for number in range(300)]
    frames += [part(512, len(DATAGRAM), number=number) for number in reversed(range(300))]
    rows, stats = read(build.pcap(frames))
    assert len(rows) == 256
    assert (stats.payloads, stats.fragments, stats.incomplete_datagrams) == (256, 600 - 256, 44 + 44)


def at_seconds(frames: list[tuple[float, bytes]]) -> bytes:
    """A capture of frames with their times."""
    records = (build.pcap_record(frame, time=build.START + int(at * 1e9)) for at, frame in frames)
    return build.pcap_header() + b"".join(records)


@pytest.mark.parametrize(("apart", "limit"), [(29.9, 30), (-29.9, 30), (30.1, 31)])
def test_parts_within_the_lifetime(apart: float, limit: float) -> None:
    data = at_seconds([(0, PARTS[0]), *((apart, one) for one in PARTS[1:])])
    rows, stats = read(data, limits=capture.StreamLimits(fragment_seconds=limit))
    assert [row.payload for row in rows] == [PAYLOAD]
    assert stats.incomplete_datagrams == 0


@pytest.mark.parametrize(("apart", "limit"), [(30.1, 30), (-30.1, 30), (2, 1)])
def test_a_reused_identification(apart: float, limit: float) -> None:
    """Parts that are captured further apart are of two datagrams: the first is incomplete, and mixes with nothing."""
    other = build.udp(bytes(len(PAYLOAD)))
    frames = [(0.0, PARTS[0]), (0.0, PARTS[1])]
    frames += [(apart, part(start, min(start + 256, len(other)), body=other)) for start in range(0, len(other), 256)]
    rows, stats = read(at_seconds(frames), limits=capture.StreamLimits(fragment_seconds=limit))
    assert [row.payload for row in rows] == [bytes(len(PAYLOAD))]
    assert (stats.incomplete_datagrams, stats.fragment_conflicts) == (1, 0)
    (problem,) = stats.problems
    assert problem.offset == 24


def test_duplicates_after_the_datagram() -> None:
    """A part that comes again when its datagram is complete is no loss; if all come again, so does the datagram."""
    rows, stats = read(build.pcap([*PARTS, PARTS[1], PARTS[3]]))
    assert [row.payload for row in rows] == [PAYLOAD]
    assert (stats.fragments, stats.incomplete_datagrams, stats.problems) == (5, 0, [])
    rows, stats = read(build.pcap([*PARTS, *PARTS]))
    assert [(row.frame, row.payload) for row in rows] == [(4, PAYLOAD), (8, PAYLOAD)]


def test_a_duplicate_does_not_mix_with_the_next_datagram() -> None:
    other = build.udp(bytes(len(PAYLOAD)))
    following = [part(start, min(start + 256, len(other)), body=other) for start in range(0, len(other), 256)]
    rows, stats = read(build.pcap([*PARTS, PARTS[1], *following]))
    assert [row.payload for row in rows] == [PAYLOAD, bytes(len(PAYLOAD))]
    assert (stats.incomplete_datagrams, stats.fragment_conflicts) == (0, 0)
    _, stats = read(build.pcap([*PARTS, PARTS[1], following[1]]))
    assert stats.incomplete_datagrams == 1  # of the other datagram


def test_a_duplicate_long_after_the_datagram() -> None:
    _, stats = read(at_seconds([*((0, one) for one in PARTS), (31, PARTS[1])]))
    assert stats.incomplete_datagrams == 1


def test_duplicates_in_the_next_part_of_a_capture() -> None:
    """A checkpoint knows the parts of datagrams that were complete."""
    file = io.BytesIO(build.pcap([*PARTS, PARTS[1], PARTS[3]]))
    place, end = capture.checkpoints(file, len(build.pcap(PARTS)) - 40, ports=[1801])
    assert place.frames == 4
    file.seek(0)
    _, stats = read(file, resume=place, stop=end)
    assert (stats.fragments, stats.incomplete_datagrams) == (2, 0)


def test_datagrams_of_others() -> None:
    """Whole or not, what is not for us is no loss."""
    foreign = build.udp(PAYLOAD, 53, 54)
    _, stats = read(build.pcap([part(0, 512, body=foreign), part(512, len(foreign), body=foreign)]))
    assert (stats.payloads, stats.fragments, stats.other) == (0, 1, 1)
    _, stats = read(build.pcap([part(0, 512, body=foreign)]))
    assert (stats.fragments, stats.incomplete_datagrams, len(stats.problems)) == (1, 0, 0)
    icmp = build.ethernet(build.IPV4, build.ipv4(bytes(64), 1, fragment=0x2000))
    assert read(build.pcap([icmp]))[1].other == 1


def test_the_first_bytes_say_whose_a_datagram_is() -> None:
    """A forged part cannot hide that one of ours is not whole."""
    ours, foreign = part(0, 512), part(0, 512, body=build.udp(PAYLOAD, 53, 54))
    for frames, incomplete in (([ours, foreign], 1), ([foreign, ours], 0)):
        _, stats = read(build.pcap(frames))
        assert (stats.fragments, stats.incomplete_datagrams, stats.fragment_conflicts) == (2, incomplete, 1)


def test_a_datagram_that_goes_on_in_the_next_file(tmp_path: Path) -> None:
    paths = [tmp_path / "1.pcap", tmp_path / "2.pcap"]
    paths[0].write_bytes(build.pcap(PARTS[:2]))
    paths[1].write_bytes(build.pcap(PARTS[2:]))
    rows, _ = read(paths)
    assert [(row.frame, row.payload) for row in rows] == [(2, PAYLOAD)]


def test_first_frame_is_the_one_with_the_first_byte() -> None:
    with capture.open(io.BytesIO(build.pcap([PARTS[1], PARTS[0], *PARTS[2:]]))) as blocks:
        (block,) = blocks
    assert block.capture["first_frame"].tolist() == [2]
    assert block.capture["frame"].tolist() == [4]


def test_first_frames_of_more_parts_than_are_remembered() -> None:
    """A part that came after 48 others is taken for the first that came."""
    frames = [part(at, at + 8) for at in range(0, len(DATAGRAM), 8)]
    for order, first in ((frames, 2), (frames[::-1], 1)):
        with capture.open(io.BytesIO(build.pcap(order))) as blocks:
            assert [block.capture["first_frame"].tolist()[-1] for block in blocks] == [first]


def test_more_datagrams_in_fragments_than_a_block_has_room_for() -> None:
    bodies = [build.udp(b"%d" % number * 4) for number in range(1100)]
    frames = [
        part(*ends, number=number, body=body) for number, body in enumerate(bodies) for ends in ((0, 8), (8, len(body)))
    ]
    rows, stats = read(build.pcap(frames))
    assert [(row.frame, row.payload) for row in rows] == [(2 * i + 2, body[8:]) for i, body in enumerate(bodies)]
    assert (stats.payloads, stats.fragments) == (1100, 1100)


def test_a_segment_in_fragments_after_a_full_block() -> None:
    small = build.message()
    body = build.tcp(small * 400, 1)
    filling = [build.segment(small * count, 51200 * i, source=1) for i, count in enumerate([3200] * 5 + [100])]
    frames = [
        build.ethernet(
            build.IPV4,
            build.ipv4(body[at : at + 3200], build.TCP, fragment=at // 8 | (0x2000 if at + 3200 < len(body) else 0)),
        )
        for at in range(0, len(body), 3200)
    ]
    rows, stats = read(build.pcap([*filling, *frames]), block_size=1 << 22)
    assert [row.stream_offset for row in rows[16100:]] == list(range(0, 6400, 16))
    assert (stats.segments, stats.fragments) == (7, 2)


@pytest.mark.parametrize("kind", [build.IPV4, 0x8137])
def test_datagrams_in_fragments_are_selected(kind: int) -> None:
    """By what the datagram holds, here a packet in GRE."""
    inner = build.ipx(PAYLOAD, target=build.PORT) if kind == 0x8137 else build.ipv4(DATAGRAM)
    body = struct.pack(">HH", 0, kind) + inner
    frames = [
        build.ethernet(build.IPV4, build.ipv4(body[start:end], 47, fragment=start // 8 | more))
        for start, end, more in ((0, 512, 0x2000), (512, len(body), 0))
    ]
    (row,), _ = read(build.pcap(frames))
    assert row.payload == PAYLOAD
    rows, stats = read(build.pcap(frames), until=0)
    assert (rows, stats.other, stats.fragments) == ([], 1, 1)


def test_a_segment_in_fragments() -> None:
    """A TCP segment is put together before its stream."""
    packet = bytes.fromhex("10c00b00 4c494f52 20000000 ffffffff 0000 0300 d8050000 c0d40100 0000 4000")
    body = build.tcp(packet, sequence=1000)
    frames = [
        build.ethernet(build.IPV4, build.ipv4(body[start:end], build.TCP, fragment=start // 8 | more))
        for start, end, more in ((0, 24, 0x2000), (24, 48, 0x2000), (48, len(body), 0))
    ]
    rows, stats = read(build.pcap([frames[2], frames[0], frames[1]]))
    assert [(row.frame, row.first_frame, row.payload, row.stream_offset) for row in rows] == [(3, 2, packet, 0)]
    assert (stats.segments, stats.fragments) == (1, 2)


@pytest.mark.parametrize("ahead", [False, True])
def test_first_frames_of_packets_in_a_segment(ahead: bool) -> None:
    """Each packet has the frame of the fragment with its first byte, also if the segment waited for an earlier one."""
    packets = [build.message(bytes(100)) for _ in range(4)]
    body = build.tcp(b"".join(packets), sequence=1017 if ahead else 1000)
    frames = [
        build.ethernet(
            build.IPV4,
            build.ipv4(
                body[at : at + 160],
                build.TCP,
                fragment=at // 8 | (0x2000 if at + 160 < len(body) else 0),
                source="10.0.0.1",
                target="10.0.0.2",
            ),
        )
        for at in range(0, len(body), 160)
    ]
    before = [build.segment(b"", 999, 2), *([build.segment(build.message(b"x"), 1000)] if ahead else [])]
    late = before[1:]
    rows, _ = read(build.pcap([before[0], *reversed(frames), *late]))
    last = 1 + len(frames)
    expected = [last - (20 + 116 * number) // 160 for number in range(4)]
    found = rows[1:] if ahead else rows
    assert [row.payload for row in found] == packets
    assert [row.first_frame for row in found] == expected


def test_random_parts_as_the_oracle_has_them() -> None:
    random_ = random.Random(20)
    for _ in range(300):
        body = build.udp(random_.randbytes(random_.randrange(1, 300)))
        frames = []
        for _ in range(random_.randrange(1, 40)):
            start = random_.randrange(0, len(body), 8)
            end = min(len(body), start + 8 * random_.randrange(1, 20))
            source = body if random_.random() < 0.9 else random_.randbytes(len(body))
            if random_.random() < 0.5:
                frames.append(part(start, end, body=source))
            else:
                kinds = (build.UDP, build.UDP, build.UDP, 50, 58, 59)
                frames.append(part6(start, end, body=source, kind=random_.choice(kinds)))
            if random_.random() < 0.05:
                frames[-1] = frames[-1][: random_.randrange(len(frames[-1]))]
        if random_.random() < 0.3:
            frames *= 2
        data = at_seconds([(random_.choice((0, 0, 0, 20, 45)), frame) for frame in frames])
        rows, stats = read(data)
        expected = oracle.read(data, {1801})
        assert rows == expected.rows
        assert (stats.fragments, stats.incomplete_datagrams) == (expected.fragments, expected.incomplete)
        assert stats.fragment_conflicts == expected.conflicts
        assert (stats.other, stats.malformed) == (expected.other, len(expected.malformed))


@pytest.mark.long
def test_fragments_by_scapy_as_tshark_reads_them(tmp_path: Path) -> None:
    four = Ether() / IP(src="10.0.0.1", dst="10.0.0.2", id=9) / UDP(sport=40000, dport=1801) / Raw(PAYLOAD)
    six = (
        Ether()
        / IPv6(src="2001:db8::1", dst="2001:db8::2")
        / IPv6ExtHdrFragment(id=77)
        / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0\0")])
        / UDP(sport=40000, dport=1801)
        / Raw(PAYLOAD)
    )
    first, *others = fragment6(six, 400)
    for other, kind in zip(others, itertools.cycle((58, 59, 60))):
        other[IPv6ExtHdrFragment].nh = kind
    packets = [*fragment(four, fragsize=200), first, *others]
    random.Random(5).shuffle(packets)
    path = tmp_path / "fragments.pcap"
    wrpcap(str(path), packets)
    rows, _ = read(path)
    shown = wireshark.fields(path, ["frame.number", "udp.payload"], display_filter="udp.port == 1801 && udp.payload")
    assert [[str(row.frame), row.payload.hex()] for row in rows] == shown
    assert len(rows) == 2


def test_more_parts_than_are_remembered_captured_again() -> None:
    """Parts after the first 48 are not known again: they are a datagram of which the others are missing."""
    for count, incomplete in ((48, 0), (49, 1)):
        body = build.udp(bytes(8 * count - 8))
        frames = [part(at, at + 8, body=body) for at in range(0, len(body), 8)]
        rows, stats = read(build.pcap([frame for frame in frames for _ in range(2)]))
        assert [row.payload for row in rows] == [body[8:]]
        assert (stats.fragments, stats.incomplete_datagrams) == (2 * count - 1, incomplete)
