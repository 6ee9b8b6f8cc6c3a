"""Tables decoded in several threads: the rows, their order and all counts are those of one."""

from __future__ import annotations

import io
import os
import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire import capture
from msmqwire.capture.ordered_calls import OrderedCalls
from msmqwire.errors import CaptureError
from tests.capture import build
from tests.capture.traffic import conversation, file_of

EXAMPLES = sorted((Path(__file__).parent.parent.parent / "examples").glob("*.pcap*"))
REQUEST = bytes.fromhex("0300 0000") + bytes(36)
SMALL: dict[str, Any] = {"block_size": 4096}


def everything(source: Any, jobs: int, **options: Any) -> Any:
    """All that a reader gives, and the error that ended it."""
    rows, error = [], ""
    with capture.read_tables(source, jobs=jobs, **{**SMALL, **options}) as reader:
        try:
            for name, batch in reader:
                rows += [(name, row) for row in batch.to_pylist()]
        except CaptureError as failed:
            error = str(failed)
        counts = {
            name: (table.payloads, table.rows, table.faults, table.encrypted, table.unread)
            for name, table in reader.tables.items()
        }
        return rows, counts, reader.payloads, reader.stats, error or reader.checkpoint()


@pytest.mark.parametrize(
    "tables", [*([name] for name in capture.TABLES), ["messages", "notifications"], capture.TABLES]
)
def test_examples_are_read_as_by_one(tables: list[str]) -> None:
    options = {"tables": tables, "guid": "text", "dictionaries": False}
    for source in (*EXAMPLES, EXAMPLES):
        assert everything(source, 3, **options) == everything(source, 1, **options)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))])
def test_mixes_are_read_as_by_one(seed: int, tmp_path: Path) -> None:
    """Datagrams, streams over two files, fragments and damage; then a file that is no capture."""
    rng = random.Random(seed)
    frames = conversation(rng, 1500, bad=0.2 * (seed % 2))
    paths = [tmp_path / name for name in ("first.pcap", "second.pcap", "third.pcap")]
    cut = rng.randrange(len(frames))
    paths[0].write_bytes(file_of(frames[:cut], seed % 4))
    paths[1].write_bytes(file_of(frames[cut:], rng.randrange(4)))
    paths[2].write_bytes(b"no capture" * 9)
    for source in (paths[:2], paths):
        found = everything(source, 2)
        assert found == everything(source, 1)
        assert len(found[0]) > 100
    assert "third.pcap" in found[-1]


class Counted(io.BytesIO):
    """Counts the bytes that were read."""

    taken = 0

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer)
        self.taken += count
        return count


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_a_bounded_number_of_blocks_is_read_ahead(jobs: int) -> None:
    source = Counted(build.pcap(build.plain(REQUEST) for _ in range(4000)))
    with capture.read_table(source, jobs=jobs, **SMALL) as reader:
        next(reader)
        # Twice as many blocks as jobs, up to a block's bytes of payloads in each
        assert source.taken < (2 * jobs + 1) * 3 * SMALL["block_size"]
        assert source.taken < len(source.getvalue()) // 2


def test_rows_of_a_pipe_come_as_they_are_written() -> None:
    reading, writing = os.pipe()
    frames = [build.plain(REQUEST) for _ in range(3)]
    whole = build.pcap(frames)
    record = (len(whole) - 24) // 3
    with open(reading, "rb", buffering=0) as source, open(writing, "wb", buffering=0) as target:
        target.write(whole[: 24 + record])
        with capture.read_table(source, jobs=4, **SMALL) as reader:
            for number in range(3):
                # A reader that waited for more would wait for good
                assert len(next(reader)) == 1, number
                target.write(whole[24 + (number + 1) * record :][:record])
            target.close()
            assert list(reader) == []


def test_an_arrow_stream_and_an_early_end() -> None:
    path = EXAMPLES[0]
    assert pa.table(capture.read_table(path, jobs=2)).equals(pa.table(capture.read_table(path)))
    before = threading.active_count()
    with capture.read_tables(EXAMPLES, jobs=4, **SMALL) as reader:
        next(reader)
        assert threading.active_count() > before
    assert threading.active_count() == before
    assert list(reader) == []
    with pytest.raises(ValueError, match="jobs=0 must be at least 1"):
        capture.read_table(path, jobs=0)
    with pytest.raises(TypeError, match="jobs"):
        capture.open(path, jobs=2)


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_are_handled_in_the_order_of_the_calls(jobs: int) -> None:
    """Also where a later call ends first; the error of a call comes in its place."""
    calls, found, later = OrderedCalls(jobs, 4), list[int](), threading.Event()

    def call(number: int) -> int:
        if number == 0 and jobs > 1:
            assert later.wait(60)
        if number == 1:
            later.set()
        return 60 // (number - 5)

    def call_all() -> None:
        for number in range(9):
            calls.submit(found.append, call, number)
        calls.finish()

    with pytest.raises(ZeroDivisionError):
        call_all()
    calls.close()
    assert found == [60 // (number - 5) for number in range(5)]
