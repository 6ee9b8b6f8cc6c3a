"""Windows: the same rows however the bytes come, and memory that is used again only when nobody looks at it."""

from __future__ import annotations

import gc
import io
import os
import sys
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import capture, mqsd
from msmqwire.columns import allocated_bytes
from tests.capture import build
from tests.capture.reading import Dribble, check, read


def captures(count: int) -> dict[str, bytes]:
    """Captures of every kind with some ``count`` frames."""
    frames = [build.plain(b"%d" % i * (1 + i % 40)) for i in range(count)]
    mixed = [build.ethernet(build.ARP, bytes(i % 300)) if i % 3 else build.plain(b"%d" % i) for i in range(count)]
    records = b"".join(map(build.pcap_record, frames))
    return {
        "pcap": build.pcap(frames),
        "big-endian": build.pcap(mixed, ">", nano=True),
        "pcapng": build.pcapng(mixed),
        "sections": build.pcapng(frames, ">") + build.pcapng(mixed) + build.block(7, bytes(500)) + build.pcapng(frames),
        "malformed": build.pcap(frames[:5]) + b"\xff" * 40 + records + b"\xff" + records + b"cut",
        "malformed blocks": build.pcapng(frames[:5]) + b"\xff" * 41 + build.pcapng(frames) + b"cut",
    }


CAPTURES = captures(300)
SMALL = captures(12)


pytestmark = pytest.mark.usefixtures("everything_is_released")


# However the bytes come


@given(name=st.sampled_from(list(SMALL)), sizes=st.lists(st.integers(1, 700), min_size=1, max_size=6))
def test_however_few_bytes_come_at_a_time(name: str, sizes: list[int]) -> None:
    data = SMALL[name]
    assert read(Dribble(data, sizes), block_size=4096) == read(data)


@pytest.mark.parametrize("name", SMALL)
def test_one_byte_at_a_time(name: str) -> None:
    assert read(Dribble(SMALL[name], [1]), block_size=4096) == read(SMALL[name])


@pytest.mark.parametrize("name", CAPTURES)
def test_any_size_of_block(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.cap"
    path.write_bytes(CAPTURES[name])
    whole = read(CAPTURES[name])
    for block_size in (4096, 4097, 5000, 8192, 1 << 20, 1 << 24):
        rows, stats = read(path, block_size=block_size)
        assert rows == whole[0]
        assert stats.frames == whole[1].frames
        assert stats.bytes_skipped == whole[1].bytes_skipped


@pytest.mark.parametrize("block_size", [0, 1, 4095, -1])
def test_blocks_too_small(block_size: int) -> None:
    with pytest.raises((ValueError, OverflowError)):
        read(CAPTURES["pcap"], block_size=block_size)


def test_a_reader_without_readinto() -> None:
    class Reader:
        def __init__(self) -> None:
            self.file = io.BytesIO(CAPTURES["pcap"])

        def read(self, size: int) -> bytes:
            return self.file.read(size)

    assert read(Reader()) == read(CAPTURES["pcap"])


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(CAPTURES["pcapng"])

    monkeypatch.setattr(sys, "stdin", Input)
    with capture.open("-") as blocks:
        block = next(blocks)
        assert block.capture.to_arrow()["file"][0].as_py() == "-"
        assert list(blocks) == []
    assert not Input.buffer.closed


def test_a_pipe_gives_rows_as_they_come() -> None:
    source, target = os.pipe()
    record = build.pcap_record(build.plain(b"live"))
    with open(source, "rb", buffering=0) as reader, open(target, "wb", buffering=0) as writer:
        writer.write(build.pcap([]) + record)
        blocks = capture.open(reader)
        assert [bytes(payload or b"") for payload in next(blocks).payloads] == [b"live"]
        writer.write(record[:30])

        def more() -> None:
            writer.write(record[30:] + record)
            writer.close()

        threading.Timer(0.05, more).start()
        assert sum(len(block) for block in blocks) == 2
        assert blocks.stats.bytes_read == 24 + 3 * len(record)


def test_several_sources(tmp_path: Path) -> None:
    """In the order given, those of a glob by name; frames count from 1 in each."""
    for name in ("b.pcap", "a.pcap", "c.pcapng"):
        (tmp_path / name).write_bytes((build.pcapng if "ng" in name else build.pcap)([build.plain(name.encode())]))
    (tmp_path / "x[1].pcap").write_bytes(build.pcap([build.plain(b"x")]))

    def names(source: Any) -> list[str]:
        found = []
        with capture.open(source) as blocks:
            for block in blocks:
                assert block.capture["frame"].tolist() == [1]
                (name,) = set(block.capture.to_arrow()["file"].to_pylist())
                found.append(os.path.basename(str(name)))
        check(blocks.stats)
        return found

    assert names(str(tmp_path / "?.pcap*")) == ["a.pcap", "b.pcap", "c.pcapng"]
    assert names(tmp_path / "*.pcap") == ["a.pcap", "b.pcap", "x[1].pcap"]
    assert names([tmp_path / "c.pcapng", str(tmp_path / "a*")]) == ["c.pcapng", "a.pcap"]
    assert names(tmp_path / "x[1].pcap") == ["x[1].pcap"]
    assert names(item for item in [tmp_path / "b.pcap"]) == ["b.pcap"]
    with open(tmp_path / "a.pcap", "rb") as file:
        assert names([file, tmp_path / "b.pcap"]) == ["a.pcap", "b.pcap"]
        assert not file.closed
    assert list(capture.open([])) == []


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff.pcap"
    with open(path, "wb") as file:
        file.write(build.pcap([build.plain(b"x")]))
    (block,) = capture.open(os.fsdecode(path))
    assert block.capture.to_arrow()["file"][0].as_py().endswith("/\ufffd.pcap")


def test_the_sample_captures(tmp_path: Path) -> None:
    examples = Path(__file__).parents[2] / "examples"
    assert [len(block) for block in capture.open(examples / "*.pcap*")] == [4, 12, 10]


# Columns


def test_only_the_columns_asked_for() -> None:
    for names in [(), ("frame",), ("dst", "time"), ("stream_offset",), tuple(capture.CAPTURE.names)]:
        (block,) = capture.open(io.BytesIO(CAPTURES["pcap"]), columns=names)
        assert block.capture.columns == tuple(name for name in capture.CAPTURE.names if name in names)
        assert len(block) == len(block.capture) == 300
        for name in capture.CAPTURE.names:
            if name in names:
                assert len(block.capture[name]) == 300
            else:
                with pytest.raises(KeyError):
                    block.capture[name]
        assert block.capture.to_arrow().schema.names == list(block.capture.columns)
    with pytest.raises(ValueError, match="no such column"):
        capture.open(io.BytesIO(CAPTURES["pcap"]), columns=["frames"])


def test_arrow() -> None:
    frames = [build.plain(b"x"), build.ethernet(0x86DD, build.ipv6(build.udp(b"y")))]
    (block,) = capture.open(io.BytesIO(build.pcap(frames)))
    table = block.capture.to_arrow()
    table.validate(full=True)
    assert table.schema.equals(capture.CAPTURE.arrow_schema())
    first, second = table.to_pylist()
    assert (first["src"], first["dst"]) == ("10.0.0.1", "10.0.0.255")
    assert (second["src"], second["dst"]) == ("2001:db8::1", "2001:db8::ff")
    assert first["file"] == "<stream>"
    assert first["transport"] == "udp"
    assert first["stream_offset"] is None
    assert first["time"].value == build.START // 1000 * 1000
    assert block.transports is None
    assert repr(block) == "<Block of 2 payloads, 2 bytes>"


# Memory


def pcap_of(count: int, size: int = 52) -> bytes:
    """Many frames whose payloads say their number."""
    return build.pcap([build.plain(i.to_bytes(4, "little") * (size // 4)) for i in range(count)])


def held_is_whole(block: capture.Block, first: int) -> None:
    """The payloads and columns of a block are what they were."""
    numbers = [int.from_bytes(bytes(payload or b"")[:4], "little") for payload in block.payloads]
    assert numbers == list(range(first, first + len(block)))
    assert block.capture["frame"].tolist() == [number + 1 for number in numbers]


@pytest.mark.parametrize("size", [52, 4])
def test_held_blocks_are_never_overwritten(size: int) -> None:
    blocks = list(capture.open(io.BytesIO(pcap_of(5000, size)), block_size=8192))
    assert len(blocks) > (30 if size == 52 else 2)
    first = 0
    for block in blocks:
        held_is_whole(block, first)
        first += len(block)


PARTS = ["block", "payloads", "one", "column", "batch", "arrow", "decoded", ""]


@given(holding=st.lists(st.sampled_from(PARTS), min_size=1))
def test_whatever_is_held_stays(holding: list[str]) -> None:
    """Any part that somebody keeps, of any block, is as it was when the capture has been read to its end."""
    kept: list[tuple[Any, Any]] = []
    out = None
    with capture.open(io.BytesIO(pcap_of(1500)), block_size=8192) as blocks:
        for turn, block in enumerate(blocks):
            what = holding[turn % len(holding)]
            first = block.payloads[0]
            assert first is not None
            if what == "block":
                kept.append((block, [bytes(payload or b"") for payload in block.payloads]))
            elif what == "payloads":
                kept.append((block.payloads, [bytes(payload or b"") for payload in block.payloads]))
            elif what == "one":
                kept.append((first, bytes(first)))
            elif what == "column":
                kept.append((block.capture["frame"], block.capture["frame"].copy()))
            elif what == "batch":
                kept.append((block.capture, block.capture.to_arrow().to_pylist()))
            elif what == "arrow":
                table = block.capture.to_arrow()
                kept.append((table, table.to_pylist()))
            elif what == "decoded":
                batch = mqsd.decode_batch(block.payloads)
                kept.append((batch.payloads, [bytes(payload or b"") for payload in block.payloads]))
            else:
                out = mqsd.decode_batch(block.payloads, out=out)
    for thing, expected in kept:
        if isinstance(thing, capture.Block):
            assert [bytes(payload or b"") for payload in thing.payloads] == expected
        elif isinstance(thing, memoryview):
            assert bytes(thing) == expected
        elif isinstance(thing, np.ndarray):
            np.testing.assert_array_equal(thing, expected)
        elif isinstance(thing, pa.RecordBatch):
            assert thing.to_pylist() == expected
        elif isinstance(expected[0], dict):
            assert thing.to_arrow().to_pylist() == expected
        else:
            assert [bytes(payload or b"") for payload in thing] == expected


def test_windows_are_used_again() -> None:
    """Reading on takes no more memory, with the loop's variable and a batch over the last block still there."""
    data = pcap_of(60_000)
    seen, addresses, batch = [], set(), None
    with capture.open(io.BytesIO(data), block_size=65536) as blocks:
        for block in blocks:
            batch = mqsd.decode_batch(block.payloads, out=batch)
            first = np.frombuffer(block.payloads[0], np.uint8)  # type: ignore[arg-type]
            addresses.add(first.ctypes.data // 65536)
            del first
            seen.append(allocated_bytes())
    assert len(seen) > 90
    assert seen[5] == seen[-1] == max(seen)
    assert len(addresses) <= 12  # two windows, each begun with what the one before had over


def test_a_few_payloads_do_not_keep_their_window() -> None:
    other = build.ethernet(build.ARP, bytes(1000))
    frames = [build.plain(b"%d" % i) if i % 50 == 0 else other for i in range(5000)]
    of_others = allocated_bytes()
    with capture.open(io.BytesIO(build.pcap(frames)), block_size=1 << 18) as blocks:
        held = list(blocks)
        before = allocated_bytes()
    del blocks
    gc.collect()
    assert sum(len(block) for block in held) == 100
    assert allocated_bytes() < before
    assert allocated_bytes() - of_others < 20_000
    found = [bytes(payload or b"") for block in held for payload in block.payloads]
    assert found == [b"%d" % i for i in range(0, 5000, 50)]


def test_columns_do_not_keep_their_window() -> None:
    of_others = allocated_bytes()
    tables = [block.capture.to_arrow() for block in capture.open(io.BytesIO(pcap_of(20_000, 52)), columns=["frame"])]
    gc.collect()
    assert allocated_bytes() - of_others < 2 << 20
    assert sum(len(table) for table in tables) == 20_000


def test_closing_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap_of(5000))
    blocks = capture.open(path, block_size=8192)
    block = next(blocks)
    blocks.close()
    assert next(blocks, None) is None
    blocks.close()
    del blocks
    held_is_whole(block, 0)


def test_blocks_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError):
        capture.Block()


class Unsteady(io.BytesIO):
    """A file that cannot be read beyond a place."""

    end = 200_000

    def readinto1(self, view: Any) -> int:
        if self.tell() >= self.end:
            raise OSError("the disk is gone")
        return super().readinto1(view)


def mixed(count: int) -> bytes:
    """Few payloads among other frames."""
    other = build.ethernet(build.ARP, bytes(1000))
    return build.pcap([frame for i in range(count) for frame in (build.plain(i.to_bytes(4, "little")), *[other] * 9)])


def numbers_of(blocks: Iterable[capture.Block]) -> list[list[int]]:
    return [[int.from_bytes(bytes(payload or b""), "little") for payload in block.payloads] for block in blocks]


def test_a_block_is_filled_from_several_reads() -> None:
    with capture.open(io.BytesIO(mixed(2000)), block_size=65536) as blocks:
        found = numbers_of(blocks)
    assert [number for block in found for number in block] == list(range(2000))
    assert len(found) == 1


def test_rows_before_an_error_are_returned_first() -> None:
    blocks = capture.open(Unsteady(mixed(2000)), block_size=65536)
    assert numbers_of([next(blocks)])[0][:10] == list(range(10))
    with pytest.raises(OSError, match="the disk is gone"):
        next(blocks)


def test_rows_of_a_pipe_do_not_wait_for_more() -> None:
    """A block is filled from reads that return at once."""
    data = mixed(10)  # half of it fits into a pipe
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as pipe, open(writing, "wb", buffering=0) as feed:
        feed.write(data[: len(data) // 2])
        with capture.open(pipe, block_size=4096) as blocks:
            first = numbers_of([next(blocks)])[0]
            assert 0 < len(first) <= 5
            feed.write(data[len(data) // 2 :])
            feed.close()
            rest = numbers_of(blocks)
    assert first + [number for block in rest for number in block] == list(range(10))
    assert len(rest) == 1
