"""Reading in parts: whatever a capture holds and wherever it is cut, the parts are what a serial read gives."""

from __future__ import annotations

import gzip
import pickle
import random
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import capture
from msmqwire.capture import Checkpoint
from tests.capture import build
from tests.capture.build import message, segment
from tests.capture.reading import check, lost_bytes
from tests.capture.stream_oracle import ACK, SYN
from tests.capture.traffic import conversation, file_of, malformed, several_sections
from tests.columns.rows import contents

EXAMPLES = Path(__file__).parents[2] / "examples"
PORTS = {1801}

Rows = list[tuple[Any, ...]]


pytestmark = pytest.mark.usefixtures("everything_is_released")


def rows_of(block: capture.Block) -> Rows:
    """The rows with all that is known of where they come from."""
    columns = block.capture.to_arrow().to_pydict()
    return list(zip(*columns.values(), contents(block.payloads), lost_bytes(block), strict=True))


def read(source: Any, **options: Any) -> tuple[Rows, capture.CaptureStats, Checkpoint]:
    """All rows of a capture or of a part of one, the account, and where reading ended."""
    options.setdefault("ports", PORTS)
    with capture.open(source, block_size=4096, **options) as blocks:
        rows = [row for block in blocks for row in rows_of(block)]
    return rows, blocks.stats, blocks.checkpoint()


def sent(checkpoint: Checkpoint | None, turn: int) -> Checkpoint | None:
    """The checkpoint in another process."""
    if checkpoint is None:
        return None
    if turn % 2:
        return Checkpoint.from_bytes(checkpoint.to_bytes())
    copy = pickle.loads(pickle.dumps(checkpoint))
    assert isinstance(copy, Checkpoint)
    return copy


def read_parts(
    source: Any, checkpoints: Sequence[Checkpoint | None], **options: Any
) -> tuple[Rows, capture.CaptureStats]:
    """The rows and the account of the parts between checkpoints, each read on its own, the last first."""
    parts = []
    for turn, (resume, stop) in reversed(list(enumerate(pairwise(checkpoints)))):
        rows, stats, end = read(source, resume=sent(resume, turn), stop=sent(stop, turn), **options)
        assert stop in (None, end), "the same place is the same checkpoint, from wherever one comes there"
        parts.append((rows, stats))
    parts.reverse()
    account = sum((stats for _, stats in parts), capture.CaptureStats())
    return [row for rows, _ in parts for row in rows], account


def compare(source: Any, size: int, **options: Any) -> int:
    """Read a capture whole, and in parts of about ``size`` bytes; how many parts there were."""
    rows, stats, end = read(source, **options)
    check(stats)
    reader = capture.checkpoints(source, size, **({"ports": PORTS} | options))
    checkpoints = list(reader)
    assert reader.stats == stats
    assert checkpoints[-1] == end
    assert read_parts(source, [None, *checkpoints], **options) == (rows, stats)
    return len(checkpoints)


def some_size(rng: random.Random, size: int) -> int:
    return rng.choice((1 + size // 40, 1 + size // 9, 1 + size // 2))


@pytest.mark.parametrize("form", range(4))
def test_streams_with_losses_and_repeats(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    path = tmp_path / "capture"
    for bad in (0, 0.1, 0.5, 1):
        data = file_of(conversation(rng, 200, bad=bad), form)
        path.write_bytes(data)
        assert compare(path, some_size(rng, len(data))) > 1


@pytest.mark.parametrize("form", range(4))
def test_every_record(tmp_path: Path, form: int) -> None:
    frames = conversation(random.Random(form), 50, bad=0.3)
    path = tmp_path / "capture"
    path.write_bytes(file_of(frames, form))
    assert compare(path, 1) >= len(frames)


@pytest.mark.parametrize("form", range(4))
def test_damaged_captures(tmp_path: Path, form: int) -> None:
    rng = random.Random(form)
    path = tmp_path / "capture"
    for _ in range(12):
        data = malformed(rng, file_of(conversation(rng, 100, bad=0.2), form))
        path.write_bytes(data)
        compare(path, some_size(rng, len(data)))


@pytest.mark.parametrize("order", "<>")
def test_sections_and_interfaces(tmp_path: Path, order: str) -> None:
    path = tmp_path / "capture"
    for seed in range(3):
        path.write_bytes(several_sections(random.Random(seed), order))
        assert compare(path, 100 + 700 * seed) > 3


def test_sequence_numbers_that_wrap(tmp_path: Path) -> None:
    stream = b"".join(message(b"%d" % number * 40) for number in range(30))
    start = (1 << 32) - len(stream) // 2
    frames = [segment(stream[at : at + 70], start + at) for at in range(0, len(stream), 70)]
    frames[4:9] = frames[8:3:-1]
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(frames))
    assert compare(path, 300) > 5


@pytest.mark.parametrize("answered", [True, False])
def test_streams_that_begin_again(tmp_path: Path, answered: bool) -> None:
    """A SYN that waits for its answer, and segments from before the first byte, on both sides of a checkpoint."""
    stream = b"".join(message(b"%d" % number * 9) for number in range(9))
    there = [segment(stream[at : at + 30], 9000 + at) for at in range(0, len(stream), 30)]
    again = [segment(stream[at : at + 50], 70_001 + at) for at in range(0, len(stream), 50)]
    early = [segment(stream[at : at + 40], 2000 + at) for at in range(0, len(stream), 40)]
    back = partial(segment, src="10.0.0.2", dst="10.0.0.1")
    answer = back(b"", 5, SYN | ACK, 1801, 40000, acknowledged=70_001 if answered else 8)
    frames = [back(b"", 1, SYN, 1801, 40000), *there[:4], segment(b"", 70_000, SYN), *there[4:7], answer]
    frames += [*again, *early]
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(frames))
    assert compare(path, 1) >= len(frames)
    rows, stats, _ = read(path)
    assert len(rows) == 8 + 9 + 9 + 1  # the last one is the beginning of the packet in which its stream ended
    assert (stats.streams.streams, stats.streams.problems) == (4 + answered, 1)


def test_a_message_over_several_parts(tmp_path: Path) -> None:
    stream = message(b"\0" * 100_000) + message(b"next")
    frames = [segment(stream[at : at + 1400], 1 + at) for at in range(0, len(stream), 1400)]
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(frames))
    assert compare(path, 20_000) > 4


def test_streams_beyond_the_limits(tmp_path: Path) -> None:
    rng = random.Random(3)
    path = tmp_path / "capture"
    for case in range(8):
        limits = capture.StreamLimits(ahead=rng.choice((0, 300)), memory=rng.choice((300, 3000)), streams=1 + case % 7)
        data = file_of(conversation(rng, 200, bad=0.5), case % 4)
        path.write_bytes(data)
        compare(path, some_size(rng, len(data)), limits=limits)


def test_selections_and_columns(tmp_path: Path) -> None:
    """A checkpoint holds what is asked for behind it, whatever is asked for in front."""
    path = tmp_path / "capture"
    path.write_bytes(file_of(conversation(random.Random(6), 200, bad=0.3), 0))
    since = build.START + 50_000_000
    for options in ({"since": since, "until": since + 60_000_000}, {"addresses": ["10.0.0.2"]}, {"packets": "session"}):
        compare(path, 3000, **options)
    _, _, end = read(path, columns=(), final=False)
    assert end == read(path, final=False)[2]


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 3), st.sampled_from((0.0, 0.3, 1.0)), st.booleans(), st.integers(1, 5000))
def test_any_capture(
    tmp_path_factory: pytest.TempPathFactory, seed: int, form: int, bad: float, broken: bool, size: int
) -> None:
    rng = random.Random(seed)
    data = file_of(conversation(rng, 40, bad=bad), form)
    path = tmp_path_factory.getbasetemp() / "any-capture"
    path.write_bytes(malformed(rng, data) if broken else data)
    compare(path, size)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
def test_the_examples(path: Path) -> None:
    assert compare(path, 1) > 4
    assert compare(path, 700) > 1


# --- Several files ---


def write_files(folder: Path, parts: Sequence[bytes]) -> Path:
    """Files in this order; the glob that names all of them."""
    for path in folder.glob("*.pcap"):
        path.unlink()
    for number, data in enumerate(parts):
        (folder / f"{number:02}.pcap").write_bytes(data)
    return folder / "*.pcap"


def test_streams_and_fragments_over_files(tmp_path: Path) -> None:
    rng = random.Random(2)
    for case in range(12):
        frames = conversation(rng, 200, bad=case % 3 / 4)
        first, second = build.ipv4(b"x" * 40, fragment=0x2000), build.ipv4(b"y" * 40, fragment=5)
        frames[40:40] = [build.ethernet(build.IPV4, first)]
        frames[90:90] = [build.ethernet(build.IPV4, second)]
        files = []
        for at in range(0, len(frames), 50):
            data = file_of(frames[at : at + 50], rng.randrange(4))
            if rng.random() < 0.2:
                data = malformed(rng, data)
            if rng.random() < 0.2:
                data = data[: -rng.randrange(1, 30)]
            files.append(gzip.compress(data) if rng.random() < 0.3 else data)
        source = write_files(tmp_path, files)
        compare(source, rng.choice((1, 1000, 5000, 1 << 20)))


def test_a_first_frame_in_the_file_before(tmp_path: Path) -> None:
    stream = message(b"over two files" * 9)
    first, second = build.pcap([segment(stream[:50], 1)]), build.pcap([segment(stream[50:], 51)])
    source = write_files(tmp_path, [gzip.compress(first), second])
    with capture.checkpoints(source, 100, ports=PORTS) as checkpoints:
        between = next(checkpoints)
    assert (between.file, between.offset) == (str(tmp_path / "01.pcap"), 0)
    (row,), _, _ = read(tmp_path / "01.pcap", resume=between)
    assert (row[1], row[2], row[-2]) == (1, 1, stream)


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    """Behind a compressed file, or at the end of all, nothing more is read of it."""
    frames = conversation(random.Random(1), 60)
    parts = [gzip.compress(build.pcap(frames[:30])), build.pcap(frames[30:])]
    source = write_files(tmp_path, parts)
    expected = read(source)
    first = tmp_path / "00.pcap"
    rows, stats, end = read(first, final=False)
    assert end.offset == len(gzip.decompress(parts[0]))
    first.unlink()
    assert read(first, resume=end, final=False) == ([], capture.CaptureStats(), end)
    more, rest, _ = read([first, tmp_path / "01.pcap"], resume=end)
    assert (rows + more, stats + rest) == expected[:2]
    end = expected[2]
    (tmp_path / "01.pcap").unlink()
    assert read(end.file, resume=end) == ([], capture.CaptureStats(), end)


def test_compressed_files_are_whole(tmp_path: Path) -> None:
    frames = conversation(random.Random(1), 100)
    path = tmp_path / "00.pcap"
    path.write_bytes(build.pcap(frames))
    inside, *_ = capture.checkpoints(path, 1000, ports=PORTS)
    path.write_bytes(gzip.compress(build.pcap(frames)))
    assert len(list(capture.checkpoints(path, 1000, ports=PORTS))) == 1
    for part in ({"resume": inside}, {"stop": inside}):
        with pytest.raises(ValueError, match=r"00\.pcap: is compressed"):
            read(path, **part)


# --- Files that grow ---


@pytest.mark.parametrize("form", range(4))
def test_a_growing_file(tmp_path: Path, form: int) -> None:
    """It is read again and again, as far as it is whole, sometimes in parts and while more is written."""
    rng = random.Random(form)
    path = tmp_path / "capture"
    for case in range(8):
        data = file_of(conversation(rng, 120, bad=case / 8), form)
        if case % 2:
            data = malformed(rng, data)
        path.write_bytes(data)
        expected = read(path)
        path.write_bytes(b"")
        with path.open("ab", buffering=0) as file:
            rows, stats = grow(file, data, path, rng)
        assert (rows, stats) == expected[:2]


def grow(file: Any, data: bytes, path: Path, rng: random.Random) -> tuple[Rows, capture.CaptureStats]:
    """What was read of a file while it was written, and then to its end."""
    rows: Rows = []
    stats = capture.CaptureStats()
    resume, written = None, 0
    while written < len(data):
        written += file.write(data[written : written + rng.choice((1, 10, 100, 1500))])
        if rng.random() < 0.5:
            more, part, resume = read(path, resume=resume, final=False)
        else:
            passed = list(capture.checkpoints(path, 500, ports=PORTS, resume=resume, final=False))
            written += file.write(data[written : written + 30])
            more, part = read_parts(path, [resume, *passed])
            resume = passed[-1]
        rows += more
        stats += part
    more, part, _ = read(path, resume=resume)
    return rows + more, stats + part


@pytest.mark.parametrize("at", [0, 3, 24, 27, 40])
def test_a_file_that_has_hardly_begun(tmp_path: Path, at: int) -> None:
    data = build.pcap([build.plain(b"the first")])
    path = tmp_path / "capture"
    path.write_bytes(data[:at])
    rows, stats, end = read(path, final=False)
    assert (rows, stats.malformed, end.offset) == ([], 0, 24 if at >= 24 else 0)
    path.write_bytes(data)
    more, rest, _ = read(path, resume=end)
    assert (more, stats + rest) == read(path)[:2]


def test_a_file_of_one_first_read(tmp_path: Path) -> None:
    """What was read with the header is looked at before the file has no more."""
    frames = [build.plain(b"\0" * 960) for _ in range(4)]
    data = build.pcap(frames)
    assert len(data) == 4096
    path = tmp_path / "capture"
    path.write_bytes(data)
    assert read(path, final=False)[2].frames == 4


def test_a_large_block_at_the_end(tmp_path: Path) -> None:
    """Reading stops in front of a block that no window holds, until all of it is there."""
    large = build.block(10, b"\0" * 400_000)
    data = build.pcapng([build.plain(b"front")]) + large
    path = tmp_path / "capture"
    path.write_bytes(data[:-1])
    rows, stats, end = read(path, final=False)
    assert end.offset == len(data) - len(large)
    path.write_bytes(data + build.packet(build.plain(b"behind")))
    more, rest, _ = read(path, resume=end)
    assert (rows + more, stats + rest) == read(path)[:2]
    assert len(more) == 1


@pytest.mark.long
@pytest.mark.parametrize("form", range(4))
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_end_of_a_file_that_grows(tmp_path: Path, form: int, jobs: int) -> None:
    """Up to each size: the rows before the checkpoint, which stay, and those of the end are what one read has."""
    rng = random.Random(10 * form + jobs)
    data = file_of(conversation(rng, 80, bad=0.3), form)
    path = tmp_path / "capture"
    rows: Rows = []
    stats = capture.CaptureStats()
    resume, size, ends = None, 24, 0
    while size < len(data):
        size = min(len(data), size + rng.choice((10, 300, 2000)))
        path.write_bytes(data[:size])
        with capture.open(path, block_size=4096, ports=PORTS, resume=resume, final=False) as blocks:
            rows += [row for block in blocks for row in rows_of(block)]
            resume = blocks.checkpoint()
        stats += blocks.stats
        end, rest, _ = read(path, resume=resume)
        assert (rows + end, stats + rest) == read(path)[:2]
        ends += len(end)
        _assert_tables_end_likewise(path, jobs)
    assert ends


def _assert_tables_end_likewise(path: Path, jobs: int) -> None:
    with capture.read_tables(path, ports=PORTS, final=False, jobs=jobs) as reader:
        found = [(name, row) for name, batch in reader for row in batch.to_pylist()]
    with capture.read_tables(path, ports=PORTS, resume=reader.checkpoint()) as end:
        found += [(name, row) for name, batch in end for row in batch.to_pylist()]
    with capture.read_tables(path, ports=PORTS) as whole:
        wanted = [(name, row) for name, batch in whole for row in batch.to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))
    assert reader.stats + end.stats == whole.stats
    assert reader.payloads + end.payloads == whole.payloads


def test_files_that_follow_each_other(tmp_path: Path) -> None:
    """Each new file is read when it comes; the one before, which had grown, is then at its end."""
    rng = random.Random(5)
    frames = conversation(rng, 240, bad=0.3)
    files = [file_of(frames[at : at + 60], rng.randrange(4)) for at in range(0, 240, 60)]
    files[1] = files[1][:-7]
    expected = read(write_files(tmp_path, files))
    rows: Rows = []
    stats = capture.CaptureStats()
    resume = None
    for count in range(1, len(files) + 1):
        source = write_files(tmp_path, [*files[: count - 1], files[count - 1][: len(files[count - 1]) // 2]])
        for last in (False, count == len(files)):
            more, part, resume = read(source, resume=resume, final=last)
            rows += more
            stats += part
            write_files(tmp_path, files[:count])
    assert (rows, stats) == expected[:2]


@pytest.mark.parametrize("form", range(4))
def test_parts_of_a_file_that_grew(tmp_path: Path, form: int) -> None:
    """The last part ends where the file ended, also inside a record, and reports the record as truncated."""
    data = file_of(conversation(random.Random(form), 80, bad=0.3), form)
    path = tmp_path / "capture"
    for end in (len(data) - 7, len(data) // 2, len(data)):
        path.write_bytes(data[:end])
        expected = read(path)[:2]
        checkpoints = list(capture.checkpoints(path, end // 3, ports=PORTS))
        for more in (b"", data[end:], data):
            path.write_bytes(data[:end] + more)
            assert read_parts(path, [None, *checkpoints]) == expected
            assert read_parts(path, [None, *checkpoints[-1:]]) == expected


# --- Tables ---


def test_tables_in_parts() -> None:
    path = EXAMPLES / "message-session.pcap"
    names = list(capture.TABLES)
    payloads = capture.table_options(names)
    checkpoints = list(capture.checkpoints(path, 500, payloads))
    assert len(checkpoints) > 4
    found: dict[str, list[Any]] = {name: [] for name in names}
    whole: dict[str, list[Any]] = {name: [] for name in names}
    with capture.read_tables(path, names) as serial:
        for name, batch in serial:
            whole[name] += batch.to_pylist()
    counted = 0
    for resume, stop in pairwise([None, *checkpoints]):
        with capture.read_tables(path, names, resume=resume, stop=stop) as part:
            for name, batch in part:
                found[name] += batch.to_pylist()
        counted += part.payloads
        assert part.checkpoint() == stop
    assert found == whole
    assert counted == serial.payloads


def test_a_table_of_a_growing_file(tmp_path: Path) -> None:
    data = (EXAMPLES / "message-session.pcap").read_bytes()
    path = tmp_path / "capture"
    path.write_bytes(data[: len(data) // 2])
    with capture.read_table(path, "messages", final=False) as reader:
        rows = sum(map(len, reader))
    path.write_bytes(data)
    with capture.read_table(path, "messages", resume=reader.checkpoint()) as rest:
        rows += sum(map(len, rest))
    assert rows == 5
