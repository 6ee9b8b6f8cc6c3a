"""The table of connections: what became of each attempt, against a slow model and against Wireshark."""

from __future__ import annotations

import io
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire import capture
from msmqwire.capture import Checkpoint, StreamLimits
from msmqwire.capture.tcp._connections import decode_connections
from msmqwire.errors import CaptureError
from tests.capture import build, wireshark
from tests.capture.build import message, segment
from tests.capture.traffic import conversation, file_of, malformed

pytestmark = pytest.mark.usefixtures("everything_is_released")

FIN, SYN, RST, ACK = 1, 2, 4, 16
CLIENT, SERVER = "10.0.0.1", "10.0.0.2"
EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL: dict[str, Any] = {"block_size": 4096, "guid": "text", "dictionaries": False}


def there(flags: int, sequence: int, payload: bytes = b"", *, acknowledged: int = 0, port: int = 40000) -> bytes:
    """A segment of the end that connects."""
    return segment(payload, sequence, flags, port, src=CLIENT, dst=SERVER, acknowledged=acknowledged)


def back(flags: int, acknowledged: int, *, sequence: int = 900, port: int = 40000, payload: bytes = b"") -> bytes:
    """A segment of the other end."""
    return segment(payload, sequence, flags, 1801, port, src=SERVER, dst=CLIENT, acknowledged=acknowledged)


def connections(source: Any, **options: Any) -> list[dict[str, Any]]:
    """The rows of a capture."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    with capture.read_table(file, "connections", **{**SMALL, **options}) as reader:
        rows: list[dict[str, Any]] = [row for batch in reader for row in batch.to_pylist()]
        assert reader.rows == len(rows)
        assert reader.stats.payloads == 0
    return rows


def brief(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(row["src_port"], row["attempts"], row["outcome"], row["first_frame"], row["frame"]) for row in rows]


SYN_1, ANSWER_1, ACK_1 = there(SYN, 99), back(SYN | ACK, 100), there(ACK, 100, acknowledged=901)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([SYN_1], [(1, "silent", 1, 1)]),
        ([SYN_1, SYN_1, SYN_1], [(3, "silent", 1, 3)]),
        ([SYN_1, there(SYN, 5000)], [(2, "silent", 1, 2)]),
        ([SYN_1, back(RST | ACK, 100)], [(1, "refused", 1, 2)]),
        ([SYN_1, back(RST | ACK, 100)] * 3, [(3, "refused", 1, 6)]),
        ([SYN_1, back(RST | ACK, 100), SYN_1, ANSWER_1], [(2, "established", 1, 4)]),
        ([SYN_1, back(RST, 0)], [(1, "silent", 1, 2)]),  # which does not acknowledge it
        ([SYN_1, back(ACK, 70_000_000)], [(1, "silent", 1, 2)]),  # of an earlier connection of the other end
        ([SYN_1, there(RST, 100)], [(1, "silent", 1, 2)]),  # gave up
        ([SYN_1, ANSWER_1], [(1, "established", 1, 2)]),
        ([SYN_1, ANSWER_1, ACK_1, ACK_1], [(1, "established", 1, 4)]),
        ([SYN_1, ACK_1], [(1, "established", 1, 2)]),  # one direction was captured
        ([ANSWER_1, ACK_1], [(0, "established", 1, 2)]),
        ([SYN_1, SYN_1, ANSWER_1, SYN_1], [(3, "established", 1, 4)]),
        ([SYN_1, ANSWER_1, ACK_1, there(RST | ACK, 100)], [(1, "reset", 1, 4)]),
        ([SYN_1, ANSWER_1, back(RST | ACK, 100)], [(1, "reset", 1, 3)]),
        ([SYN_1, ANSWER_1, there(FIN | ACK, 100, message(b"last"))], [(1, "closed", 1, 3)]),
        ([SYN_1, ANSWER_1, back(FIN | ACK, 100), there(RST, 100)], [(1, "closed", 1, 4)]),
        ([SYN_1, ANSWER_1, ACK_1, there(SYN, 5000)], [(1, "established", 1, 3), (1, "silent", 4, 4)]),
        (
            [SYN_1, ANSWER_1, there(FIN | ACK, 100), there(SYN, 101), back(SYN | ACK, 102)],
            [(1, "closed", 1, 3), (1, "established", 4, 5)],
        ),
        ([SYN_1, ANSWER_1, there(RST, 100), back(SYN | ACK, 700)], [(1, "reset", 1, 3), (0, "established", 4, 4)]),
        ([SYN_1, ANSWER_1, there(RST, 100), ANSWER_1], [(1, "reset", 1, 4)]),  # sent again
        ([there(ACK, 100, message(b"in the middle"))], []),  # nobody tried while it was captured
        ([back(RST | ACK, 100)], []),
        ([there(SYN | RST, 99)], []),
    ],
)
def test_outcomes(frames: list[bytes], expected: list[tuple[Any, ...]]) -> None:
    for form in range(4):
        assert [row[1:] for row in brief(connections(file_of(frames, form)))] == expected


def test_ends_and_times() -> None:
    """The sender is the end that tried; the time is that of the last segment, in whatever file it is."""
    parts = [[there(SYN, 99, port=port) for port in (5, 6)], [back(SYN | ACK, 100, port=5), there(ACK, 100, port=5)]]
    rows = connections([io.BytesIO(build.pcap(frames)) for frames in parts])
    assert [(row["src"], row["src_port"], row["dst"], row["dst_port"]) for row in rows] == [
        (CLIENT, 6, SERVER, 1801),
        (CLIENT, 5, SERVER, 1801),
    ]
    assert [row["transport"] for row in rows] == ["tcp", "tcp"]
    assert [(row["first_frame"], row["frame"], row["stream_offset"]) for row in rows] == [(2, 2, None), (1, 2, None)]
    assert all(row["first_time"] <= row["time"] for row in rows)
    untimed = build.section() + build.interface() + build.simple_packet(SYN_1) + build.packet(ACK_1)
    (row,) = connections(untimed)
    assert row["first_time"] is None
    assert row["time"] is not None
    here = "2001:db8::7"
    own = build.ethernet(
        build.IPV6, build.ipv6(build.tcp(b"", 99, SYN, 1801, 1801), build.TCP, source=here, target=here)
    )
    (row,) = connections(build.pcap([own]))
    assert row["src"] == row["dst"] == "2001:db8::7"


def test_selections() -> None:
    frames = [there(SYN, 99, port=5), segment(b"", 99, SYN, 6, 1900), segment(b"", 9, SYN, 7, src="10.0.0.9")]
    data = build.pcap(frames)
    assert [row["src_port"] for row in connections(data)] == [5, 7]
    assert [row["src_port"] for row in connections(data, ports={1900})] == [6]
    assert [row["src_port"] for row in connections(data, addresses=["10.0.0.9"])] == [7]
    assert connections(data, until=0) == []
    columns = ["outcome", "src_port"]
    assert connections(data, columns=columns) == [{"outcome": "silent", "src_port": port} for port in (5, 7)]


def test_beside_other_tables() -> None:
    """Its rows are no packets: those of the other tables and all counts are as without it."""
    rng = random.Random(5)
    data = file_of(traffic(rng), 0)
    with capture.read_tables(io.BytesIO(data), guid="text") as plain:
        expected = [(name, row) for name, batch in plain for row in batch.to_pylist()]
    names = [*capture.TABLES, "connections"]
    for jobs in (1, 3):
        with capture.read_tables(io.BytesIO(data), names, guid="text", jobs=jobs) as reader:
            found = [(name, row) for name, batch in reader for row in batch.to_pylist()]
        assert [each for each in found if each[0] != "connections"] == expected
        assert (reader.stats, reader.payloads) == (plain.stats, plain.payloads)
        text = dict(SMALL, dictionaries=True)
        assert [row for name, row in found if name == "connections"] == connections(data, **text)
    with pytest.raises(ValueError, match="not the record of a connection"):
        decode_connections([b"other"])
    schema = capture.arrow_schema("connections", dictionaries=False)
    assert schema.field("outcome").type == pa.string()
    assert list(capture.TABLES) == [name for name in capture.ALL_TABLES if name != "connections"]


def traffic(rng: random.Random, count: int = 300) -> list[bytes]:
    """Connections that are tried again, answered, refused, ended, on few ports, among other frames."""
    frames = conversation(rng, count, bad=0.2)
    number = 0
    for _ in range(count):
        number += rng.randrange(40_000_000)
        port = 41000 + rng.randrange(4)
        kind = rng.choice((SYN, SYN, SYN | ACK, ACK, ACK, RST, RST | ACK, FIN | ACK))
        payload = message(b"text")[: rng.choice((0, 0, 20))]
        if rng.random() < 0.5:
            frame = there(kind, number, payload, port=port, acknowledged=rng.randrange(1 << 32))
        else:
            frame = back(kind, number + 1, port=port, payload=payload)
        place = rng.randrange(len(frames) + 1)
        frames[place:place] = [frame] * rng.choice((1, 1, 2))
    return frames


class Model:
    """The connections of a capture, each kept for good and found by looking at all of them."""

    def __init__(self) -> None:
        self.open: list[dict[str, Any]] = []
        self.rows: list[dict[str, Any]] = []

    def take(self, number: int, frame: bytes) -> None:
        if frame[23] != 6:
            return
        size = (frame[14] & 15) * 4
        tcp = frame[14 + size :]
        ends = (frame[26:30], tcp[:2]), (frame[30:34], tcp[2:4])
        if int.from_bytes(tcp[:2]) != 1801 != int.from_bytes(tcp[2:4]):
            return
        sequence, acknowledged = int.from_bytes(tcp[4:8]), int.from_bytes(tcp[8:12])
        flags = {bit for bit in (FIN, SYN, RST, ACK) if tcp[13] & bit}
        syn = SYN in flags and RST not in flags
        initiator = ends[::-1] if {SYN, ACK} <= flags else ends
        first = acknowledged if ACK in flags else (sequence + 1) % (1 << 32)
        known = next((each for each in self.open if each["ends"] in (ends, ends[::-1])), None)
        if known is not None and syn and (known["ends"], known["first"]) != (initiator, first):
            again = known["outcome"] == "established" and known["ends"] == initiator and ACK not in flags
            if known["outcome"] in ("closed", "reset") or again:
                self.rows.append(known)
                self.open.remove(known)
                known = None
        if known is None:
            if not syn:
                return
            known = {"ends": initiator, "outcome": "silent", "attempts": 0, "first": first, "first_frame": number}
        else:
            self.open.remove(known)
        self.open.append(known)
        known["frame"] = number
        forward = known["ends"] == ends
        outcome = known["outcome"]
        answered = ACK in flags and ((sequence if forward else acknowledged) - known["first"]) % (1 << 32) < 1 << 24
        if syn and ACK not in flags:
            if forward:
                known["attempts"] += 1
                known["first"] = known["first"] if outcome not in ("silent", "refused") else first
        elif outcome == "established":
            known["outcome"] = "reset" if RST in flags else "closed" if FIN in flags else outcome
        elif outcome in ("silent", "refused") and answered:
            if RST not in flags:
                known["outcome"] = "closed" if FIN in flags else "established"
            elif not forward:
                known["outcome"] = "refused"

    def finish(self) -> list[tuple[Any, ...]]:
        rows = self.rows + self.open
        names = ("attempts", "outcome", "first_frame", "frame")
        return [(int.from_bytes(row["ends"][0][1]), *(row[name] for name in names)) for row in rows]


def simple(rng: random.Random) -> list[bytes]:
    """Traffic without fragments, as the model reads it."""
    return [frame for frame in traffic(rng) if not int.from_bytes(frame[20:22]) & 0x3FFF]


@pytest.mark.parametrize("seed", range(6))
def test_model(seed: int) -> None:
    rng = random.Random(seed)
    frames = simple(rng)
    model = Model()
    for number, frame in enumerate(frames, 1):
        model.take(number, frame)
    found = brief(connections(file_of(frames, seed % 4)))
    assert found == model.finish()
    assert {row[2] for row in found} >= {"silent", "established", "closed"}


@pytest.mark.parametrize("seed", range(2))
def test_parts_at_every_record(seed: int, tmp_path: Path) -> None:
    """Each part resumes with the connections that were open; the rows of each table keep their order."""
    rng = random.Random(seed)
    paths = [tmp_path / name for name in ("first", "second")]
    frames = traffic(rng, 60)
    paths[0].write_bytes(file_of(frames[:70], seed))
    paths[1].write_bytes(file_of(frames[70:], seed + 2))
    for tables in (["connections"], ["messages", "connections"]):
        options = capture.table_options(tables)
        with capture.read_tables(paths, tables, **SMALL) as reader:
            expected = [(name, row) for name, batch in reader for row in batch.to_pylist()]
        checkpoints = list(capture.checkpoints(paths, 1, options))
        assert len(checkpoints) > 100
        found = []
        for resume, stop in pairwise([None, *checkpoints]):
            again = None if resume is None else Checkpoint.from_bytes(resume.to_bytes())
            with capture.read_tables(paths, tables, resume=again, stop=stop, **SMALL) as reader:
                found += [(name, row) for name, batch in reader for row in batch.to_pylist()]
                assert reader.checkpoint() == stop
        for table in tables:
            assert [row for name, row in found if name == table] == [row for name, row in expected if name == table]


def test_a_file_that_grows(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    frames = traffic(random.Random(8), 40)
    record = [len(build.pcap([frame])) - 24 for frame in frames]
    data = build.pcap(frames)
    rows: list[dict[str, Any]] = []
    checkpoint: Checkpoint | None = None
    for count in range(0, len(frames), 7):
        path.write_bytes(data[: 24 + sum(record[:count]) + 5])
        with capture.read_table(path, "connections", resume=checkpoint, final=False, **SMALL) as reader:
            rows += [row for batch in reader for row in batch.to_pylist()]
            checkpoint = reader.checkpoint()
    path.write_bytes(data)
    assert rows + connections(path, resume=checkpoint) == connections(path)


def test_states_that_cannot_be(tmp_path: Path) -> None:
    """Made with the right checksum: each is refused or read, and nothing is read or written where it must not be."""
    path = tmp_path / "capture"
    path.write_bytes(build.pcap(traffic(random.Random(2), 30)))
    options = capture.table_options("connections")
    checkpoint = list(capture.checkpoints(path, 1, options))[30]
    state = checkpoint._opened()
    rng = random.Random(3)

    def is_readable(streams: bytes) -> bool:
        made = Checkpoint._of(checkpoint.file, checkpoint.offset, checkpoint.frames, state._replace(streams=streams))
        try:
            connections(path, resume=made)
        except CaptureError:
            return False
        return True

    assert is_readable(state.streams)
    refused = 0
    for _ in range(400):
        streams = bytearray(state.streams)
        at = rng.randrange(len(streams))
        streams[at : at + rng.choice((1, 4, 8))] = rng.choice((b"\0", b"\xff" * 4, rng.randbytes(1), rng.randbytes(8)))
        refused += not is_readable(bytes(streams))
    assert refused > 50
    assert not any(is_readable(state.streams[:cut]) for cut in range(len(state.streams)))
    with pytest.raises(ValueError, match="was made with other ports, packets or limits"):
        capture.open(path, ports={1801}, resume=checkpoint)


def test_malformed_captures() -> None:
    """Whatever the bytes are, parts give the rows of a serial read."""
    rng = random.Random(6)
    options = capture.table_options("connections", ports={1801, 53})
    for form in range(12):
        data = malformed(rng, file_of(traffic(rng, 80), form % 4))
        expected = connections(data, ports={1801, 53}, block_size=1 << 20)
        assert connections(data, ports={1801, 53}) == expected
        found = []
        for resume, stop in pairwise([None, *capture.checkpoints(io.BytesIO(data), 3000, options)]):
            found += connections(data, ports={1801, 53}, resume=resume, stop=stop)
        assert found == expected


def test_a_bounded_number_is_followed() -> None:
    """Above the limit the connection whose last segment is oldest is a row early, and none is lost."""
    count = 3000
    frames = [there(SYN, 9, port=port) for port in range(10_000, 10_000 + count)]
    frames.insert(50, there(SYN, 9, port=10_000))
    limits = StreamLimits(streams=100)
    rows = connections(build.pcap(frames), limits=limits)
    assert sorted(row["src_port"] for row in rows) == list(range(10_000, 10_000 + count))
    assert rows[0]["src_port"] == 10_001
    assert rows[49]["src_port"] == 10_000
    assert rows[49]["attempts"] == 2
    options = capture.table_options("connections", limits=limits)
    sizes = [len(each.state) for each in capture.checkpoints(io.BytesIO(build.pcap(frames)), 20_000, options)]
    assert max(sizes) < 100 * 700
    assert sizes[-1] < 200


@pytest.mark.parametrize("file", ["message-session.pcap", "local-site.pcap"])
def test_wireshark_counts_the_same(file: str) -> None:
    """Attempts, and segments with FIN and RST, by Wireshark's numbers of streams."""
    path = EXAMPLES / file
    check_against_wireshark(path)


def test_wireshark_on_traffic(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    frames = []
    for number in range(40):
        kind, port = number % 4, 20_000 + number
        syn, answer = there(SYN, 99, port=port), back(SYN | ACK, 100, port=port)
        frames += [[syn] * 3, [syn, back(RST | ACK, 100, port=port)] * 2, [syn, answer], [syn, answer]][kind]
        frames += [there(FIN | ACK, 100, port=port, acknowledged=901)] * (kind == 3)
    path.write_bytes(build.pcap(frames))
    check_against_wireshark(path)


def check_against_wireshark(path: Path) -> None:
    names = ("tcp.stream", "tcp.srcport", "tcp.flags.syn", "tcp.flags.ack", "tcp.flags.reset", "tcp.flags.fin")
    streams: dict[str, list[list[str]]] = {}
    for stream, *row in wireshark.fields(path, names, display_filter="tcp.port == 1801"):
        streams.setdefault(stream, []).append(row)
    expected = []
    for rows in streams.values():
        attempts = [row for row in rows if row[1:3] == ["True", "False"] or row[1:3] == ["1", "0"]]
        yes = ("1", "True")
        answered = any(row[1] in yes and row[2] in yes for row in rows)
        reset, finished = (any(row[column] in yes for row in rows) for column in (3, 4))
        outcome = "closed" if finished else "established" if answered else "refused" if reset else "silent"
        if attempts:
            expected.append((int(attempts[0][0]), len(attempts), outcome))
    found = [(row["src_port"], row["attempts"], row["outcome"]) for row in connections(path)]
    assert sorted(found) == sorted(expected)
    assert found
