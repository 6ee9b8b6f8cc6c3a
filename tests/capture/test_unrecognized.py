"""Bytes of other protocols on a selected port: one row for each part of a stream in which no packet begins."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import capture, mqqb
from msmqwire.columns import UNFRAMED_BIT, Payloads
from tests.capture import build, test_reading_in_parts
from tests.capture.build import internal, message, segment
from tests.capture.stream_oracle import FIN, RST, SYN, Streams
from tests.capture.test_any_streams import compare

pytestmark = pytest.mark.usefixtures("everything_is_released")

HTTP = b"GET / HTTP/1.0\r\n\r\n"
TLS = bytes.fromhex("16030100f1010000ed0303") + bytes(range(235))
SSH = b"SSH-2.0-OpenSSH_9.6\r\n"
FOREIGN = (HTTP, TLS, SSH, b"\xffSMB" + bytes(40), b"\x10", b"\x10" * 70, b"LIOR" * 30, message(size=7), message()[:9])
MESSAGE = mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:mq1\\orders", label="one"))


def stream(data: bytes, *sizes: int, source: int = 40000) -> Iterator[bytes]:
    """Frames with these bytes, as many in each as asked for; the last has the rest."""
    at = 0
    for size in (*sizes, len(data)):
        if data[at : at + size]:
            yield segment(data[at : at + size], 1 + at, source=source)
        at += size


def table(frames: list[bytes], **options: Any) -> list[dict[str, Any]]:
    with capture.read_table(io.BytesIO(build.pcap(frames)), "messages", **options) as rows:
        return [row for batch in rows for row in batch.to_pylist()]


@pytest.mark.parametrize("foreign", [HTTP, TLS, SSH])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_one_row_for_a_stream_of_another_protocol(foreign: bytes, size: int) -> None:
    sizes = [size] * (len(foreign) // size)
    (row,) = table([segment(b"", 0, SYN), *stream(foreign, *sizes)])
    frames = -(-len(foreign) // size)
    assert row["fault"] == {
        "code": "bad_signature",
        "field": "BaseHeader",
        "offset": 0,
        "value": None,
        "needed": 0x524F494C,
    }
    assert (row["unrecognized"], row["unrecognized_size"]) == (foreign[:64], len(foreign))
    assert (row["src"], row["src_port"], row["dst"], row["dst_port"]) == ("10.0.0.1", 40000, "10.0.0.2", 1801)
    assert (row["first_frame"], row["frame"], row["stream_offset"]) == (2, 1 + frames, 0)
    others = set(row) - set(capture.schema.CAPTURE.names) - {"fault", "unrecognized", "unrecognized_size"}
    assert not any(row[name] for name in others)


def test_bytes_between_packets() -> None:
    data = MESSAGE + HTTP + MESSAGE + TLS
    rows = table(list(stream(data, 40, len(MESSAGE), 90)))
    assert [row["unrecognized_size"] for row in rows] == [None, len(HTTP), None, len(TLS)]
    assert [row["stream_offset"] for row in rows] == [
        0,
        len(MESSAGE),
        len(MESSAGE + HTTP),
        2 * len(MESSAGE) + len(HTTP),
    ]
    assert [row["label"] for row in rows] == ["one", None, "one", None]


@pytest.mark.parametrize(
    ("size", "code"), [(0, "bad_size"), (15, "bad_size"), ((4 << 20) + 1, "too_large"), (0xFFFFFFFF, "too_large")]
)
@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize("part", [1, 5, 9, 15, 16, 1000])
def test_base_header_with_a_packet_size_that_is_not_allowed(size: int, code: str, session: bool, part: int) -> None:
    """The fault is that of its decoder; the packets around it are read."""
    body = message(bytes(100), session=session, size=size)
    data = MESSAGE + body + MESSAGE
    before, run, after = table(list(stream(data, *[part] * (len(data) // part))))
    assert (before["label"], before["fault"], after["label"], after["fault"]) == ("one", None, "one", None)
    needed = 16 if code == "bad_size" else 4 << 20
    fault = {"code": code, "field": "PacketSize", "offset": 8, "value": size, "needed": needed}
    assert run["fault"] == fault
    assert (run["unrecognized"], run["unrecognized_size"]) == (body[:64], len(body))


def test_notifications_count_a_message_that_is_too_large() -> None:
    data = build.pcap(list(stream(message(bytes(100), size=0xFFFFFFFF) + MESSAGE)))
    with capture.read_table(io.BytesIO(data), "notifications") as notifications:
        assert (sum(map(len, notifications)), notifications.unread) == (0, 1)


@pytest.mark.parametrize("size", [1, 5, 7])
def test_bytes_that_begin_like_a_packet(size: int) -> None:
    """The next bytes show that no packet begins there, and one does at once."""
    run, packet = table(list(stream(MESSAGE[:size] + MESSAGE)))
    assert (run["unrecognized"], run["fault"]["code"]) == (MESSAGE[:size], "bad_signature")
    assert (packet["label"], packet["fault"]) == ("one", None)


def test_packets_and_datagrams_have_no_unrecognized_bytes() -> None:
    with capture.read_tables("examples/*.pcap*", ("messages", "sessions")) as reader:
        for name, batch in reader:
            if name == "messages":
                assert batch.column("unrecognized").null_count == len(batch)
                assert batch.column("unrecognized_size").null_count == len(batch)


@pytest.mark.parametrize("columns", [["unrecognized"], ["unrecognized_size", "frame"], ["label"], ["body"]])
def test_some_columns(columns: list[str]) -> None:
    frames = list(stream(MESSAGE + HTTP))
    every = table(frames)
    assert table(frames, columns=columns) == [{name: row[name] for name in columns} for row in every]
    reader = capture.read_tables(
        io.BytesIO(build.pcap(frames)), ("messages", "notifications"), columns={"messages": columns}
    )
    with reader as rows:
        found = [row for name, batch in rows if name == "messages" for row in batch.to_pylist()]
    names = list(found[0])
    assert sorted(names) == sorted(columns)
    assert found == [{name: row[name] for name in names} for row in every]


def test_which_tables_have_them() -> None:
    """They are messages; the tables of sessions and notifications neither show nor count them."""
    data = build.pcap(list(stream(HTTP)))
    with capture.read_tables(io.BytesIO(data)) as reader:
        assert [(name, len(batch)) for name, batch in reader] == [("notifications", 0), ("messages", 1)]
        assert reader.payloads == 0
    with capture.read_table(io.BytesIO(data), "notifications") as notifications:
        assert sum(map(len, notifications)) == notifications.unread == 0
    with capture.read_table(io.BytesIO(data), "sessions") as sessions:
        assert sum(map(len, sessions)) == 0
        assert (sessions.stats.streams.no_packet, sessions.stats.streams.skipped) == (1, len(HTTP))


def test_a_gap_ends_a_run_and_begins_none() -> None:
    """After missing bytes nothing is known of where a packet should begin."""
    frames = list(stream(TLS, 100, 40, 60))
    del frames[1]
    (row,) = table(frames)
    assert (row["unrecognized_size"], row["fault"]["code"]) == (100, "bad_signature")


@pytest.mark.parametrize("flags", [FIN, RST])
def test_the_end_of_a_stream(flags: int) -> None:
    frames = [*stream(HTTP + b"\x10\0\0"), segment(b"", 1 + len(HTTP) + 3, flags)]
    (row,) = table(frames)
    assert row["unrecognized_size"] == len(HTTP) + 3, "what may begin a packet, and does not"


def test_evicted_streams() -> None:
    frames = [frame for source in range(40000, 40050) for frame in stream(TLS, source=source)]
    rows = table(frames, limits=capture.StreamLimits(streams=3))
    assert [(row["src_port"], row["unrecognized_size"]) for row in rows] == [
        (source, len(TLS)) for source in range(40000, 40050)
    ]


def test_selected_times_and_addresses() -> None:
    frames = [*stream(TLS), *stream(HTTP, source=40001)]
    assert len(table(frames, addresses=["10.0.0.2"])) == 2
    assert table(frames, addresses=["10.9.9.9"]) == []


def test_more_rows_than_a_block_has_space_for() -> None:
    """Each byte between the smallest packets is a row, as is each packet."""
    data = (message()[:16] + b"?") * 60_000
    frames = list(stream(data, *[60_000] * (len(data) // 60_000)))
    rows = table(frames, columns=["unrecognized_size"])
    assert [row["unrecognized_size"] for row in rows] == [None, 1] * 60_000


def test_one_segment_that_ends_more_rows_than_a_block_has_space_for() -> None:
    """Missing bytes, and then pieces that wait, each with packets and bytes between them."""
    data = (message()[:16] + b"?") * 60_000
    frames = list(stream(data, *[60_000] * (len(data) // 60_000)))
    rows = table([segment(b"", 0, SYN), *frames[1:], frames[0]], columns=["unrecognized_size"])
    assert [row["unrecognized_size"] for row in rows] == [None, 1] * 60_000


def joined(frames: list[bytes], **options: Any) -> list[bool]:
    """Of each run, whether it may be the end of a packet that began before the capture."""
    found: list[bool] = []
    options = {"ports": {"tcp": [1801]}, "packets": "message", **options}
    with capture.open(io.BytesIO(build.pcap(frames)), **options) as blocks:
        for block in blocks:
            assert block.payloads.lost is not None
            found += block.capture.is_valid("joined")[block.payloads.lost & UNFRAMED_BIT != 0].tolist()
    return found


OPEN, CLOSED = segment(b"", 0, SYN), segment(b"", 500, FIN)
AFTER = segment(TLS, 9000, source=40001)


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([OPEN, *stream(HTTP)], [False]),
        (list(stream(HTTP)), [True]),
        (list(stream(HTTP, 3, 5)), [True]),
        (list(stream(HTTP + MESSAGE + TLS)), [True, False]),
        (list(stream(MESSAGE + TLS)), [False]),
        # The SYN was captured late
        ([*stream(HTTP, 3), OPEN], [False]),
        # Segments from before the first one
        ([AFTER, segment(TLS, 200, source=40001)], [True, True]),
        # Ports that are used again
        ([*stream(MESSAGE), CLOSED, OPEN, *stream(HTTP)], [False]),
        ([*stream(TLS), CLOSED, OPEN, *stream(HTTP)], [True, False]),
        ([OPEN, *stream(MESSAGE), segment(b"", 70_000, SYN), segment(HTTP, 70_001)], [False]),
    ],
)
def test_bytes_that_may_be_the_end_of_a_packet(frames: list[bytes], expected: list[bool]) -> None:
    assert joined(frames) == expected


def test_the_bytes_of_a_stream_that_was_evicted_may_be_the_end_of_a_packet() -> None:
    frames = [OPEN, *stream(MESSAGE[:40]), *stream(TLS, source=40001), segment(MESSAGE[40:], 41)]
    assert joined(frames, limits=capture.StreamLimits(streams=1)) == [True, True]


def test_a_checkpoint_knows_which_bytes_may_be_the_end_of_a_packet(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    for frames, expected in (([OPEN, *stream(HTTP, 3)], [False]), (list(stream(HTTP, 3)), [True])):
        path.write_bytes(build.pcap(frames))
        options = capture.table_options(["messages"])
        place, *_ = capture.checkpoints(path, 1, options)
        with capture.open(path, options, resume=place) as blocks:
            assert [row for block in blocks for row in block.capture.is_valid("joined").tolist()] == expected


@pytest.mark.parametrize(("frames", "found"), [([OPEN, *stream(TLS)], False), (list(stream(TLS)), True)])
def test_the_problem_says_that_bytes_may_be_the_end_of_a_packet(frames: list[bytes], found: bool) -> None:
    with capture.read_table(io.BytesIO(build.pcap(frames)), "messages") as rows:
        assert sum(map(len, rows)) == 1
    (problem,) = rows.stats.problems
    assert problem.what.startswith("no packet begins at offset 0 of the stream of this segment")
    assert problem.what.endswith("so these bytes may be the end of a packet") == found


class Mixes:
    """Random streams of packets and foreign bytes, with gaps."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def content(self) -> bytes:
        """The bytes of a stream."""
        rng = self.rng
        parts = []
        for _ in range(rng.randrange(1, 9)):
            foreign = rng.choice(FOREIGN)
            start = rng.choice((0, 0, rng.randrange(len(foreign))))
            parts.append(
                rng.choice((message(rng.randbytes(rng.randrange(60))), internal(), foreign[start:], foreign[:start]))
            )
        return b"".join(parts)

    def frames(self) -> list[bytes]:
        """Frames of a few streams, one after the other or mixed; some are lost, late or repeated."""
        rng = self.rng
        each = []
        for source in range(40000, 40000 + rng.randrange(1, 5)):
            data = self.content()
            frames = list(stream(data, *[rng.choice((1, 3, 15, 64, 300)) for _ in range(40)], source=source))
            if rng.random() < 0.4:
                frames.insert(0, segment(b"", 0, SYN, source=source))
            if rng.random() < 0.3:
                frames.append(segment(b"", 1 + len(data), rng.choice((FIN, RST)), source=source))
            if frames:
                each.append(frames)
        mixed = []
        while each:
            frames = rng.choice(each)
            frame = frames.pop(0)
            if rng.random() >= 0.1:
                mixed.append(frame)
            if mixed and rng.random() < 0.05:
                mixed.append(rng.choice(mixed[-5:]))
            if len(mixed) > 3 and rng.random() < 0.05:
                mixed.insert(-3, mixed.pop())
            if not frames:
                each.remove(frames)
        return mixed


def check_mix(seed: random.Random) -> Streams:
    limits = capture.StreamLimits(ahead=seed.choice((0, 30, 1 << 20)), streams=seed.choice((1, 2, 99)))
    return compare(Mixes(seed).frames(), limits)


@given(st.randoms(use_true_random=False))
def test_any_mix_against_the_oracle(rng: random.Random) -> None:
    check_mix(rng)


def test_mixes_have_runs_and_gaps() -> None:
    accounts = [check_mix(random.Random(seed)).account for seed in range(60)]
    assert sum(account["no_packet"] > 0 for account in accounts) > 40
    assert sum(account["gaps"] > 0 and account["no_packet"] > 0 for account in accounts) > 10


@given(st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_any_mix_in_parts(rng: random.Random) -> None:
    """Each record may be where a part ends: the parts have the rows of a serial read."""
    data = build.pcap(Mixes(rng).frames())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mix.pcap"
        path.write_bytes(data)
        test_reading_in_parts.compare(path, rng.choice((1, 200, 1000)))


def test_a_run_of_two_files_in_parts(tmp_path: Path) -> None:
    """The state of a reader has the first bytes of a run, and the file of its last one."""
    first, *rest = stream(TLS, 30, 20, 90)
    paths = [tmp_path / "one.pcap", tmp_path / "two.pcap"]
    paths[0].write_bytes(build.pcap([first, rest[0]]))
    paths[1].write_bytes(build.pcap(rest[1:]))
    assert test_reading_in_parts.compare(list(map(str, paths)), 1) > 3


def test_a_batch_of_payloads() -> None:
    """The bit in the number of lost bytes marks a run, also where its bytes could be a packet."""
    payloads = Payloads.of([MESSAGE, HTTP], lost=[0, UNFRAMED_BIT | 100])
    for decode_batch in (mqqb.decode_batch, mqqb.decode_session_batch):
        assert decode_batch(payloads).fault(1) == ("bad_signature", "BaseHeader", 0, None, 0x524F494C)
    lost = payloads.take([1]).lost
    assert lost is not None
    assert lost.tolist() == [UNFRAMED_BIT | 100]


class Endless(io.RawIOBase):
    """A capture of one stream of foreign bytes, made as it is read."""

    def __init__(self, size: int) -> None:
        self._frames = (segment(bytes(32_000), 1 + at) for at in range(0, size, 32_000))
        self._rest = memoryview(build.pcap([]))

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        if not self._rest:
            frame = next(self._frames, None)
            if frame is None:
                return 0
            self._rest = memoryview(build.pcap([frame])[24:])
        size = min(len(view), len(self._rest))
        view[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size


@pytest.mark.long
def test_a_run_of_more_than_2_gib() -> None:
    with capture.read_table(Endless((2 << 30) + 1_000_000), "messages", columns=["unrecognized_size"]) as rows:
        assert [row for batch in rows for row in batch.to_pylist()] == [{"unrecognized_size": 2 << 30}]
        assert rows.stats.streams.skipped > 2 << 30
