"""Files that are no captures, and captures that are malformed: an error or an account, and reading goes on."""

from __future__ import annotations

import io
import os
import random
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest

from msmqwire import capture
from msmqwire.capture.files._blocks import Pool
from msmqwire.capture.files._file_reader import FileReader
from msmqwire.capture.frames._selection import PayloadSelection
from msmqwire.capture.tcp._streams import StreamTable
from msmqwire.errors import CaptureError
from tests.capture import build, oracle
from tests.capture.reading import check, read
from tests.system_programs import require_program

FRAME = build.plain(b"hello")
NOISE = random.Random(1).randbytes(5000)


# What is no capture


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are notes, and quite long ones at that.")
    with pytest.raises(CaptureError) as caught:
        capture.open(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert b"These are notes".hex(" ") in message
    assert "pcap" in message
    assert "pcapng" in message


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.touch()
    with pytest.raises(CaptureError, match=r"empty\.pcap: is empty"):
        capture.open(path)


def test_a_glob_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "folder.pcap").mkdir()
    for pattern in ("*.pcap", "no*thing", "[ab]*"):
        with pytest.raises(FileNotFoundError, match="no capture matches"):
            capture.open(str(tmp_path / pattern))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        capture.open(tmp_path / "missing.pcap")
    with pytest.raises(FileNotFoundError, match="no capture is in the folder"):
        capture.open(tmp_path)


def test_the_second_file_is_no_capture(tmp_path: Path) -> None:
    """What the first gave is good; the error comes when its turn has come, and nothing stays open."""
    good, bad = tmp_path / "a.pcap", tmp_path / "b.pcap"
    good.write_bytes(build.pcap([FRAME]))
    bad.write_bytes(b"x" * 100)
    blocks = capture.open([good, bad, good])
    assert len(next(blocks)) == 1
    with pytest.raises(CaptureError, match=r"b\.pcap"):
        next(blocks)
    assert list(blocks) == []
    check(blocks.stats)


@pytest.mark.parametrize("source", [5, None, [5], io.StringIO("text"), [io.StringIO("text")]])
def test_what_is_no_source(source: Any) -> None:
    with pytest.raises(TypeError):
        capture.open(source)


def test_a_reader_that_gives_text() -> None:
    class Text:
        def read(self, size: int) -> str:
            return "x" * size

    with pytest.raises(TypeError, match="binary"):
        capture.open(Text())  # type: ignore[arg-type]


def test_a_reader_that_would_have_to_wait() -> None:
    class Waiting(io.RawIOBase):
        def readinto(self, view: Any) -> None:
            return None

    with pytest.raises(CaptureError, match="without waiting"):
        capture.open(Waiting())


@pytest.mark.parametrize("count", [-1, 4097, 1 << 62])
def test_a_reader_that_cannot_count(count: int) -> None:
    with pytest.raises(CaptureError, match="its reader says"):
        FileReader(
            "liar",
            lambda view: count,
            PayloadSelection(dict.fromkeys(("udp", "tcp", "ipx"), ()), (), None, None),
            Pool(4096, ()),
            StreamTable(3, capture.StreamLimits(), 0),
            capture.CaptureStats(),
        )


def test_a_reader_that_fails_later() -> None:
    class Failing(io.RawIOBase):
        data = io.BytesIO(build.pcap([FRAME] * 1000))

        def readinto(self, view: Any) -> int:
            if self.data.tell() > 30000:
                raise OSError("the disk is gone")
            return self.data.readinto(view)

    blocks = capture.open(Failing(), block_size=8192)
    with pytest.raises(OSError, match="the disk is gone"):
        list(blocks)
    check(blocks.stats)
    assert blocks.stats.payloads > 400


# Files that change while they are read


@pytest.mark.parametrize("left", [0, 10, 24, 100, 40_000, 40_001])
def test_a_file_cut_while_it_is_read(tmp_path: Path, left: int) -> None:
    path = tmp_path / "changing.pcap"
    path.write_bytes(build.pcap([build.plain(bytes(52))] * 5000))
    with capture.open(path, block_size=16384) as blocks:
        next(blocks)
        os.truncate(path, left)
        for _ in blocks:
            pass
    check(blocks.stats)
    assert blocks.stats.malformed <= 1
    assert 100 < blocks.stats.payloads < 1000


def test_a_file_that_grows_while_it_is_read(tmp_path: Path) -> None:
    """What is there when the end is reached is read, a record cut at first as well; what comes later is not."""
    data = build.pcap([build.plain(bytes([number]) * 200) for number in range(200)])
    path = tmp_path / "growing.pcap"
    path.write_bytes(data[: len(data) // 2 + 7])
    with capture.open(path, block_size=4096) as blocks:
        found = len(next(blocks))
        with path.open("ab") as file:
            file.write(data[len(data) // 2 + 7 :])
        found += sum(map(len, blocks))
        with path.open("ab") as file:
            file.write(build.pcap_record(build.plain(b"late")))
        assert next(blocks, None) is None
    assert (found, blocks.stats.malformed, blocks.stats.bytes_read) == (200, 0, len(data))


def test_a_file_replaced_while_it_is_read(tmp_path: Path) -> None:
    """Put in its place by renaming, as careful writers do: the one that was opened is read to its end."""
    path = tmp_path / "changing.pcap"
    path.write_bytes(build.pcap([build.plain(bytes(52))] * 5000))
    with capture.open(path, block_size=16384) as blocks:
        next(blocks)
        other = tmp_path / "other.pcap"
        other.write_bytes(build.pcap([FRAME]))
        other.rename(path)
        assert sum(len(block) for block in blocks) > 4000
    assert blocks.stats.payloads == 5000


def test_a_file_overwritten_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "changing.pcap"
    path.write_bytes(build.pcap([FRAME] * 5000))
    with capture.open(path, block_size=16384) as blocks:
        next(blocks)
        path.write_bytes(NOISE * 20)
        for _ in blocks:
            pass
    check(blocks.stats)


# Damage inside


def both(data: bytes) -> tuple[list[bytes], capture.CaptureStats]:
    """The payloads and the account, which must be what the oracle says."""
    rows, stats = read(data)
    expected = oracle.read(data, {1801})
    assert rows == expected.rows
    assert (stats.frames, stats.other, stats.bytes_skipped) == (expected.frames, expected.other, expected.skipped)
    assert [problem.offset for problem in stats.problems] == expected.malformed[:100]
    return [row.payload for row in rows], stats


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 262_145, 1 << 24])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_record_of_4_gib(length: int, order: str) -> None:
    """It is malformed, and the records behind it are found again; no memory is taken for it."""
    good = [build.pcap_record(build.plain(b"%d" % i), order) for i in range(6)]
    bad = build.pcap_record(FRAME, order, captured=length)
    start = build.pcap_header(order) + b"".join(good[:3])
    payloads, stats = both(start + bad + b"".join(good[3:]))
    assert payloads == [b"0", b"1", b"2", b"3", b"4", b"5"]
    (problem,) = stats.problems
    assert problem.offset == len(start)
    assert problem.what.startswith(f"a frame of {length} bytes")
    assert stats.bytes_skipped == len(bad)


@pytest.mark.parametrize("length", [0xFFFFFFFF, 0xFFFFFFFC, 0x80000000, 0, 4, 8, 11, 13, 1 << 24])
@pytest.mark.parametrize("kind", [6, 3, 2, 1, 0x77, 10, 0x0A0D0D0A])
@pytest.mark.parametrize("order", ["<", ">"])
def test_a_block_whose_length_cannot_be(length: int, kind: int, order: str) -> None:
    start = build.section(order) + build.interface(order) + build.packet(FRAME, order)
    body = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + bytes(20)
    bad = build.block(kind, body, order, length=length)
    after = build.section(order) + build.interface(order) + build.packet(build.plain(b"after"), order)
    payloads, stats = both(start + bad + after)
    assert payloads[0] == b"hello"
    assert stats.malformed == 1
    assert stats.problems[0].offset == len(start)
    passed_over = length % 4 == 0 and length > 65536 and kind in (10, 0x0A0D0D0A)  # as far as anyone can tell
    assert payloads[1:] == ([] if passed_over else [b"after"])


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_block_with_two_lengths(order: str) -> None:
    start = build.section(order) + build.interface(order)
    bad = build.block(6, bytes(40), order, last=56)
    payloads, stats = both(start + bad + build.packet(FRAME, order))
    assert payloads == [b"hello"]
    assert stats.problems[0].what == "a block with the length 52 at its start and 56 at its end"
    assert stats.bytes_skipped == len(bad)


def test_a_section_with_another_magic_in_the_middle() -> None:
    start = build.section() + build.interface()
    bad = build.block(0x0A0D0D0A, bytes(16))
    payloads, stats = both(start + bad + build.packet(FRAME))
    assert payloads == [b"hello"]
    assert "byte order magic is 0x00000000" in stats.problems[0].what


@pytest.mark.parametrize("size", [1, 3, 4, 15, 16, 17, 100, 5000])
def test_noise_between_records(size: int) -> None:
    noise = b"\xff" * 12 + NOISE[: size - 12] if size > 12 else b"\xff" * size
    good = [build.pcap_record(build.plain(b"%d" % i)) for i in range(8)]
    payloads, stats = both(build.pcap_header() + b"".join(good[:4]) + noise + b"".join(good[4:]))
    assert payloads[:4] == [b"0", b"1", b"2", b"3"]
    assert payloads[-3:] == [b"5", b"6", b"7"]
    assert stats.malformed >= 1
    blocks = [build.packet(build.plain(b"%d" % i)) for i in range(8)]
    start = build.section() + build.interface()
    payloads, stats = both(start + b"".join(blocks[:4]) + noise + b"".join(blocks[4:]))
    assert payloads == [b"%d" % i for i in range(8)]
    assert stats.bytes_skipped == size


def test_nothing_plausible_follows() -> None:
    for start in (build.pcap([FRAME]), build.pcapng([FRAME])):
        payloads, stats = both(start + b"\xff" * 3000)
        assert payloads == [b"hello"]
        assert (stats.malformed, stats.bytes_skipped) == (1, 3000)


def test_a_lone_record_is_found_when_it_ends_with_the_file() -> None:
    payloads, _ = both(build.pcap([]) + b"\xff" * 50 + build.pcap_record(FRAME))
    assert payloads == [b"hello"]
    payloads, _ = both(build.pcap([]) + b"\xff" * 50 + build.pcap_record(FRAME) + b"x")
    assert payloads == []


def test_zeros_are_not_taken_for_records_again() -> None:
    """A run of zeros reads as empty records where records are expected, but reading never resumes at one."""
    _, stats = both(build.pcap([FRAME]) + b"\xff" * 16 + bytes(1000) + build.pcap_record(FRAME))
    assert stats.payloads == 2
    assert stats.malformed == 1
    payloads, stats = both(build.pcap([FRAME]) + bytes(160) + build.pcap_record(FRAME))
    assert (len(payloads), stats.malformed) == (2, 10)


@pytest.mark.parametrize("size", [65535, 262_143, 262_144])
def test_large_frames(size: int) -> None:
    """As large as libpcap writes them, whatever the window."""
    large = build.ethernet(0x0800, build.ipv4(build.udp(b"x" * 60000))).ljust(size, b"\0")
    frames = [FRAME, large, FRAME, large, large]
    for data in (build.pcap(frames), build.pcapng(frames)):
        for block_size in (4096, 65536, 1 << 20):
            rows, stats = read(data, block_size=block_size)
            assert [len(row.payload) for row in rows] == [5, 60000, 5, 60000, 60000]
            assert stats.problems == []


@pytest.mark.parametrize("block_size", [4096, 1 << 20])
def test_frames_too_large(block_size: int) -> None:
    """One byte more is malformed, in a window that would have room for it as in one that has not."""
    large = build.plain(b"").ljust(262_145, b"\0")
    rows, stats = read(build.pcap([FRAME, large, FRAME, FRAME]), block_size=block_size)
    assert [row.payload for row in rows] == [b"hello"] * 3
    assert stats.problems[0].what == "a frame of 262145 bytes; the maximum is 262144"
    start = build.section() + build.interface()
    for packet in (build.packet, build.simple_packet):
        rows, stats = read(start + packet(large) + build.packet(FRAME) * 3, block_size=block_size)
        assert [row.payload for row in rows] == [b"hello"] * 3
        assert stats.problems[0].what == "a frame of 262145 bytes; the maximum is 262144"
    rows, stats = read(build.pcapng([FRAME, large + bytes(70_000), FRAME]), block_size=block_size)
    assert [row.payload for row in rows] == [b"hello"] * 2
    assert stats.problems[0].what.startswith("a block of ")


@pytest.mark.parametrize("block_size", [4096, 1 << 20])
@pytest.mark.parametrize(("kind", "numbered"), [(10, False), (4, False), (0xBAD, True)])
def test_large_blocks_of_other_kinds_are_passed_over(block_size: int, kind: int, numbered: bool) -> None:
    start = build.section() + build.interface() + build.packet(FRAME)
    large = build.block(kind, bytes(1_500_000))
    rows, stats = read(start + large + build.packet(FRAME), block_size=block_size)
    assert [row.frame for row in rows] == [1, 2 + numbered]
    assert (stats.other, stats.malformed, stats.bytes_skipped) == (numbered, 0, 0)
    for cut in (1, 2, 4, 5, 100_000):
        rows, stats = read(start + large[:-cut], block_size=block_size)
        assert [row.frame for row in rows] == [1]
        assert stats.problems[0].offset == len(start)
        assert stats.problems[0].what.endswith(f"{len(large) - cut} are left")
    bad = build.block(kind, bytes(1_500_000), last=7)
    rows, stats = read(start + bad + build.packet(FRAME), block_size=block_size)
    assert [row.frame for row in rows] == [1, 3]
    assert (stats.malformed, stats.bytes_skipped) == (1, len(bad))


def test_a_large_section_header() -> None:
    data = build.section(">", build.option(1, bytes(65000), ">") * 6) + build.interface(">") + build.packet(FRAME, ">")
    rows, stats = read(build.pcapng([FRAME]) + data)
    assert [row.frame for row in rows] == [1, 2]
    assert stats.malformed == 0


def test_problems_are_counted_beyond_those_described() -> None:
    cut = FRAME[:-1]
    data = build.pcap([cut] * 1000)
    _, stats = read(data, block_size=4096)
    assert stats.malformed == 1000
    assert len(stats.problems) == 100
    assert [problem.offset for problem in stats.problems] == [24 + i * (16 + len(cut)) for i in range(100)]


def test_accounts_add_up() -> None:
    one = read(build.pcap([FRAME, FRAME[:-1], build.plain(b"", 1, 2)]))[1]
    two = read(build.pcap([FRAME[:-1]] * 99))[1]
    both = one + two
    assert both == capture.CaptureStats(
        frames=102,
        payloads=1,
        other=1,
        malformed=100,
        bytes_read=one.bytes_read + two.bytes_read,
        problems=one.problems + two.problems,
    )
    assert len((both + both).problems) == 100
    assert sum([one, two], capture.CaptureStats()) == both
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]


ETL = struct.pack("<I", 0x10000) + bytes(68) + b"\2\0\2\xc0" + bytes(100)


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (b"GMBU\0\2" + bytes(40), "Microsoft Network Monitor 2, not pcap or pcapng; convert it: editcap one.cap"),
        (b"snoop\0\0\0" + bytes(40), "Solaris snoop, not pcap or pcapng; convert it: editcap one.cap"),
        (b"TRSNIFF data    \x1a" + bytes(40), "Network General Sniffer (DOS), not pcap or pcapng; convert it: editcap"),
        (b"iptrace 2.0" + bytes(40), "AIX iptrace 2, not pcap or pcapng; convert it: editcap one.cap"),
        (struct.pack("<IHH", 0xA1B2CD34, 2, 4) + bytes(40), "modified pcap, not pcap or pcapng; convert it: editcap"),
        (
            ETL,
            "Event Tracing for Windows (.etl), not pcap or pcapng; convert it: etl2pcapng one.cap converted.pcapng, ",
        ),
        (b"PK\3\4" + bytes(40), "a zip archive, not pcap or pcapng; extract the captures in it"),
    ],
)
def test_files_of_other_formats(first: bytes, what: str) -> None:
    file = io.BytesIO(first)
    file.name = "one.cap"
    with pytest.raises(CaptureError) as error:
        capture.open(file)
    assert str(error.value).startswith(f"one.cap: is {what}")


@pytest.mark.parametrize(
    ("form", "magic"), [("netmon2", "Network Monitor 2"), ("snoop", "snoop"), ("visual", "Visual Networks")]
)
def test_what_editcap_writes(tmp_path: Path, form: str, magic: str) -> None:
    """A file in the format, written by Wireshark's program, is recognized, and what the program makes of it is read."""
    source, other, back = tmp_path / "a.pcap", tmp_path / "b.cap", tmp_path / "c.pcapng"
    source.write_bytes(build.pcap([build.plain(b"payload")]))
    editcap = require_program("editcap")
    subprocess.run([editcap, "-F", form, str(source), str(other)], check=True, timeout=60)
    with pytest.raises(CaptureError, match=f"{magic}.*convert it: editcap"):
        capture.open(other)
    subprocess.run([editcap, str(other), str(back)], check=True, timeout=60)
    assert [row.payload for row in read(back)[0]] == [b"payload"]
