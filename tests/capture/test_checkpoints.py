"""Checkpoints: when there is one, what it holds, and which are refused."""

from __future__ import annotations

import io
import os
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest

from msmqwire import capture
from msmqwire.capture import Checkpoint
from msmqwire.capture._state import FIELDS
from msmqwire.capture.checkpoint import State
from msmqwire.errors import CaptureError
from tests.capture import build
from tests.capture.build import message, segment
from tests.capture.test_reading_in_parts import PORTS, Rows, read
from tests.capture.traffic import conversation, file_of, fragments

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("everything_is_released")


@pytest.fixture
def some_checkpoint(tmp_path: Path) -> Checkpoint:
    """One with open streams, pieces and fragments in it."""
    path = tmp_path / "capture"
    stream = message(b"one" * 20) + message(b"two" * 20)
    frames = [segment(stream[:7], 1), segment(stream[:50], 1, source=40001), segment(stream[60:90], 61, source=40001)]
    frames += fragments(random.Random(1))[:1]
    path.write_bytes(build.pcapng(frames))
    checkpoint = read(path, final=False)[2]
    state = checkpoint._opened()
    assert len(state.streams) > 1000
    return checkpoint


def test_every_byte_is_checked(some_checkpoint: Checkpoint) -> None:
    whole = some_checkpoint.to_bytes()
    for data in (whole, bytearray(whole), memoryview(whole)):
        assert Checkpoint.from_bytes(data) == some_checkpoint
    for at in range(len(whole)):
        with pytest.raises(CaptureError):
            Checkpoint.from_bytes(whole[:at] + bytes((whole[at] ^ 1 << at % 8,)) + whole[at + 1 :])
        with pytest.raises(CaptureError):
            Checkpoint.from_bytes(whole[:at])
    with pytest.raises(CaptureError, match="checksum"):
        Checkpoint.from_bytes(whole + b"\0")
    for field, value in (("file", "other"), ("offset", 1), ("frames", 1), ("offset", -1), ("state", b"")):
        changed = Checkpoint(**(vars(some_checkpoint) | {field: value}))
        with pytest.raises(CaptureError, match="malformed"):
            changed._opened()
        if field != "file":
            with pytest.raises(CaptureError, match="malformed"):
                capture.open(some_checkpoint.file, ports=PORTS, resume=changed)


def test_other_versions_and_machines(some_checkpoint: Checkpoint) -> None:
    state = some_checkpoint.state
    at = state.index(b"checkpoint") + len(b"checkpoint")
    newer = Checkpoint(**(vars(some_checkpoint) | {"state": state[:at] + b"\xc8" + state[at + 1 :]}))
    with pytest.raises(CaptureError, match="a checkpoint of version 200; this is version 4"):
        newer._opened()
    with pytest.MonkeyPatch.context() as patch:
        for fields in (
            FIELDS[1:],
            FIELDS[::-1],
            (*FIELDS, "Flow.more 4"),
            (FIELDS[0].replace(" 2", " 4"), *FIELDS[1:]),
        ):
            patch.setattr("msmqwire.capture.checkpoint.FIELDS", fields)
            with pytest.raises(
                CaptureError, match="has other fields: of another version of this package, or kind of m"
            ):
                some_checkpoint._opened()
        patch.setattr("msmqwire.capture.checkpoint.FIELDS", FIELDS)
        patch.setattr("sys.byteorder", "none")
        with pytest.raises(CaptureError, match="has other fields"):
            some_checkpoint._opened()


# Links between structures, and what is found by adding them up; of pieces the first ones are saved one by one
NOT_SAVED = {
    "Flow": {"hash", "newer", "older"},
    "Connection": {"next", "newer", "older"},
    "Piece": {"next"},
    "Datagram": {"data", "capacity", "arrivals"},
    "Head": {"data"},
}


@pytest.mark.parametrize(
    ("declared", "structures"),
    [
        ("tcp/_flows.pxd", ["Flow", "Run", "Piece", "Connection", "Head"]),
        ("frames/_fragments.pxd", ["Datagram", "Arrival", "Repeat"]),
        ("files/_pcapng.pxd", ["Interface", "Numbered"]),
    ],
)
def test_every_field_of_a_structure_is_saved(declared: str, structures: list[str]) -> None:
    """Those that a checkpoint does not have are named above: a new field is in one of the two."""
    text = (ROOT / "msmqwire" / "capture" / declared).read_text("utf-8")
    for structure in structures:
        body = text.partition(f"cdef struct {structure}:\n")[2].partition("\n\n")[0]
        names = {
            re.sub(r"\s*#.*|\[\w+\]$", "", line).split()[-1] for line in body.splitlines() if line[4:5] not in "# "
        }
        saved = {re.split("[. ]", field)[1] for field in FIELDS if field.startswith(f"{structure}.")}
        assert saved <= names
        assert names - saved == NOT_SAVED.get(structure, set())


def test_a_state_has_its_fields_in_their_order(tmp_path: Path) -> None:
    """Wherever they are in memory: the sizes that are named make up all that is saved."""
    path = tmp_path / "capture"
    path.write_bytes(build.pcapng([segment(message(b"one" * 30)[:40], 1)]))
    state = read(path, final=False)[2]._opened()
    assert len(state.reader) == size_of("FilePlace") + size_of("Interface")
    assert len(state.streams) == 4 + size_of("Flow") + 40 + 3 * 4
    assert "Flow.position 8" in FIELDS


def size_of(structure: str) -> int:
    return sum(int(field.split()[1]) for field in FIELDS if field.startswith(f"{structure}."))


@pytest.mark.long
def test_states_that_cannot_be(some_checkpoint: Checkpoint) -> None:
    """Made with the right checksum: each is refused or read, and nothing is read or written where it must not be."""
    rng = random.Random(4)
    state = some_checkpoint._opened()
    refused = 0
    for _ in range(1500):
        reader, streams = bytearray(state.reader), bytearray(state.streams)
        target = streams if rng.random() < 0.8 else reader
        for _ in range(rng.choice((1, 1, 4))):
            at = rng.randrange(len(target))
            target[at : at + rng.choice((1, 4, 8))] = rng.choice(
                (b"\0", b"\xff" * 4, rng.randbytes(1), rng.randbytes(8))
            )
        made = state._replace(reader=bytes(reader), streams=bytes(streams))
        refused += not is_readable(some_checkpoint, made)
    assert refused > 500
    for cut in range(len(state.streams)):
        assert not is_readable(some_checkpoint, state._replace(streams=state.streams[:cut]))
    for cut in range(1, len(state.reader)):
        assert not is_readable(some_checkpoint, cut_reader(state, cut))


def cut_reader(state: State, size: int) -> State:
    return state._replace(reader=state.reader[:size])


def is_readable(checkpoint: Checkpoint, state: State) -> bool:
    """Whether a reader goes on with a state that was made up; then to the end."""
    made = Checkpoint._of(checkpoint.file, checkpoint.offset, checkpoint.frames, state)
    try:
        read(made.file, resume=made)
    except CaptureError:
        return False
    return True


def test_another_file_in_its_place(some_checkpoint: Checkpoint) -> None:
    path = Path(some_checkpoint.file)
    data = path.read_bytes()
    path.write_bytes(build.pcap([build.plain(b"other")] * 30))
    with pytest.raises(CaptureError, match="it begins with other bytes"):
        read(path, resume=some_checkpoint)
    path.write_bytes(data[:-100] + b"other" + data[-95:])
    with pytest.raises(CaptureError, match="it begins with other bytes"):
        read(path, resume=some_checkpoint)
    path.write_bytes(data[:-1])
    with pytest.raises(CaptureError, match=f"has {len(data) - 1} bytes, and reading is to resume at {len(data)}"):
        read(path, resume=some_checkpoint)
    with pytest.raises(CaptureError, match=f"before the checkpoint {len(data)}"):
        read(path, stop=some_checkpoint)


def test_other_arguments(some_checkpoint: Checkpoint, tmp_path: Path) -> None:
    path = some_checkpoint.file
    for options in ({"ports": {3527}}, {"packets": "message"}, {"limits": capture.StreamLimits(ahead=1)}):
        with pytest.raises(ValueError, match="was made with other ports, packets or limits"):
            read(path, resume=some_checkpoint, **options)
    other = tmp_path / "other"
    other.write_bytes(build.pcap([]))
    for part in ({"resume": some_checkpoint}, {"stop": some_checkpoint}):
        with pytest.raises(ValueError, match="is not among the files of the source"):
            read(other, **part)
    early, *_ = capture.checkpoints(path, 1, ports=PORTS)
    with pytest.raises(ValueError, match="is before resume, at"):
        read(path, resume=some_checkpoint, stop=early)
    _, _, behind = read([path, other])
    with pytest.raises(ValueError, match="is before resume, in"):
        read([path, other], resume=behind, stop=early)
    with pytest.raises(ValueError, match="size=0 must be at least 1"):
        capture.checkpoints(path, 0)


def test_a_file_that_the_source_names_twice(some_checkpoint: Checkpoint) -> None:
    """The name of a checkpoint does not say which of them it is in."""
    path = some_checkpoint.file
    for part in ({"resume": some_checkpoint}, {"stop": some_checkpoint}):
        with pytest.raises(ValueError, match="the source has several files of this name: name each file once"):
            read([path, path], **part)
    data = Path(path).read_bytes()
    *_, last = capture.checkpoints([io.BytesIO(data), io.BytesIO(data)], 1, ports=PORTS)
    with pytest.raises(ValueError, match="give file objects a name of their own"):
        read([io.BytesIO(data), io.BytesIO(data)], stop=last)


class Named:
    """A binary file that has a name."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.name = name
        self.read = file.read


def test_a_pipe_cannot_be_taken_up_again(some_checkpoint: Checkpoint) -> None:
    made = Checkpoint._of("pipe", some_checkpoint.offset, some_checkpoint.frames, some_checkpoint._opened())
    outlet, inlet = os.pipe()
    with open(outlet, "rb") as pipe, open(inlet, "wb") as other:
        other.write(Path(some_checkpoint.file).read_bytes())
        other.close()
        with pytest.raises(ValueError, match="pipe: is a pipe: reading cannot resume inside it"):
            read(Named(pipe, "pipe"), resume=made)


def test_open_files(tmp_path: Path) -> None:
    """A file object is taken up again by its name, from where it stood when it was given."""
    data = file_of(conversation(random.Random(1), 100), 0)
    path = tmp_path / "capture"
    path.write_bytes(b"front" + data)
    expected = read(io.BytesIO(data))[0]
    rows: Rows = []
    with path.open("rb") as file:
        file.seek(5)
        checkpoints = list(capture.checkpoints(file, 3000, ports=PORTS))
        for resume, stop in pairwise([None, *checkpoints]):
            file.seek(5)
            rows += read(file, resume=resume, stop=stop)[0]
    assert [row[1:] for row in rows] == [row[1:] for row in expected]


def test_when_there_is_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(file_of(conversation(random.Random(1), 300), 0))
    with capture.open(path, ports=PORTS, block_size=4096) as blocks:
        next(blocks)
        with pytest.raises(RuntimeError, match="after the last block was read"):
            blocks.checkpoint()
    with pytest.raises(RuntimeError, match="after the last block was read"):
        blocks.checkpoint()
    with pytest.raises(RuntimeError, match="without files"):
        capture.open([]).checkpoint()
    with capture.checkpoints(path, 100, ports=PORTS) as checkpoints:
        next(checkpoints)
    assert list(checkpoints) == []
    assert list(capture.checkpoints([], 100)) == []


def test_a_checkpoint_is_bounded(tmp_path: Path) -> None:
    """What is held is what the limits allow, and a checkpoint has little beside it."""
    limits = capture.StreamLimits(memory=200_000, streams=100)
    frames = [
        segment(message(b"\0" * 5000)[: 2000 + number % 1000], 1, source=10_000 + number) for number in range(500)
    ]
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(frames))
    checkpoint = read(path, limits=limits, final=False)[2]
    assert 100_000 < len(checkpoint._opened().streams) < 230_000
    assert len(checkpoint.state) < 20_000, "compressed"


def test_the_manual_has_the_size_of_a_full_checkpoint() -> None:
    size = round(size_of("Flow") * capture.StreamLimits().streams / 2**20)
    manual = (ROOT / "docs" / "captures.md").read_text(encoding="utf-8")
    assert f"{64 + size + 17} MiB by default: 64 of streams, {size} of what is known of 65,536" in manual
