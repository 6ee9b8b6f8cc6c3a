"""Following rotating captures, asked as Spark asks: each row once, whatever the writer and the query do when.

Spark's own streams over them are in test_streaming.py.
"""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import random
import socket
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes

from msmqwire import mqqb
from msmqwire.capture import TABLES, read_tables
from msmqwire.capture.files.listing import SourceFile, find_files
from msmqwire.errors import CaptureError, DecodeError
from msmqwire.spark.source.datasource import MsmqDataSource
from msmqwire.spark.source.following import MsmqStreamReader
from msmqwire.spark.source.planning import CapturePartition
from tests.capture import build
from tests.capture.traffic import conversation
from tests.effort import long_cases
from tests.system_programs import capturing, require_program
from tests.vectors import load

NOTIFY_QUEUE = f"PRIVATE={UUID(int=1)}\\3"
REQUEST = load("mqsd")[0].data
PING, *_, ACK = (vector.data for vector in load("mqqb")[:8])


def traffic(seed: int, count: int = 300, *, lost: float = 0) -> list[bytes]:
    """Frames: discovery, and messages in streams, some with a change; segments end anywhere, and some are lost."""
    rng = random.Random(seed)
    change = load("mqcn")[0].data
    streams = {port: (rng.randrange(1 << 32), b"") for port in range(40000, 40006)}
    frames: list[bytes] = []
    while len(frames) < count:
        if rng.random() < 0.2:
            frames.append(
                rng.choice((build.plain(REQUEST), build.plain(REQUEST, target=53), build.plain(PING, target=3527)))
            )
            continue
        port = rng.choice(list(streams))
        sequence, data = streams[port]
        if not data:
            body = change if rng.random() < 0.3 else rng.randbytes(rng.randrange(600))
            data = mqqb.encode(mqqb.UserMessage(destination_queue=NOTIFY_QUEUE, body=body))
            data = rng.choice((data, data, data, ACK))
        size = rng.randrange(1, len(data) + 1)
        if rng.random() >= lost:
            frames.append(build.segment(data[:size], sequence, source=port))
        streams[port] = (sequence + size) % (1 << 32), data[size:]
    return frames


class Query:
    """A query that asks a reader what Spark asks, through JSON and pickle as Spark does, and keeps its log."""

    def __init__(self, path: Path | str, **options: str) -> None:
        self.source = {"path": str(path), "table": "messages", **options}
        self.log: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.parts: list[CapturePartition] = []
        self.start()

    def start(self, *, available_now: bool = False) -> None:
        """Run, perhaps again."""
        source = MsmqDataSource(self.source)
        schema = source.schema()
        self.reader = source.streamReader(schema)
        assert isinstance(self.reader, MsmqStreamReader)
        self.worker = pickle.loads(pickle.dumps(source.streamReader(schema)))
        if available_now:
            self.reader.prepareForTriggerAvailableNow()
        if not self.log:
            self.log.append(json.dumps(self.reader.initialOffset()))

    def plan(self, limit: ReadLimit | None = None) -> bool:
        """Log the offset of the next batch; whether there is one."""
        limit = limit or self.reader.getDefaultReadLimit()
        offset = json.dumps(self.reader.latestOffset(json.loads(self.log[-1]), limit))
        if offset == self.log[-1]:
            return False
        self.log.append(offset)
        return True

    def run(self) -> list[dict[str, Any]]:
        """The rows of the last batch in the log."""
        self.parts = pickle.loads(pickle.dumps(self.reader.partitions(*map(json.loads, self.log[-2:]))))
        return [row for part in self.parts for batch in self.worker.read(part) for row in batch.to_pylist()]

    def batch(self, limit: ReadLimit | None = None) -> list[dict[str, Any]]:
        """Plan a batch and keep its rows; none where nothing is new."""
        if not self.plan(limit):
            return []
        rows = self.run()
        self.rows += rows
        return rows

    @property
    def offset(self) -> dict[str, Any]:
        """Where it stands."""
        return json.loads(self.log[-1])  # type: ignore[no-any-return]


def serial(files: Iterable[Path], table: str = "messages", **options: Any) -> list[dict[str, Any]]:
    """What one read of all files gives that leaves open what is open at the end."""
    with read_tables([str(file) for file in files], [table], final=False, guid="text", **options) as reader:
        return [row for _, batch in reader for row in batch.to_pylist()]


def same(found: Sequence[dict[str, Any]], wanted: Sequence[dict[str, Any]]) -> None:
    """The rows of Spark's types are those of the single machine, in the same order."""
    assert len(found) == len(wanted)
    for row, one in zip(found, wanted, strict=True):
        time = one.pop("time")
        assert row["time_ns"] == time.value
        for name, value in one.items():
            assert row[name] == value, name


def encode(frames: Sequence[bytes], form: int, first: int = 0) -> bytes:
    """A capture of frames, of which ``first`` are in the files before."""
    order = "<>"[form & 1]
    if form & 2:
        packets = (build.packet(frame, order, stamp=build.START // 1000 + n) for n, frame in enumerate(frames, first))
        return build.section(order) + build.interface(order) + b"".join(packets)
    return build.pcap_header(order) + b"".join(
        build.pcap_record(frame, order, time=build.START + 1000 * n) for n, frame in enumerate(frames, first)
    )


def rotated(frames: Sequence[bytes], count: int, form: int) -> list[bytes]:
    """Frames in so many files, one after the other."""
    step = -(-len(frames) // count)
    return [encode(frames[at : at + step], form, at) for at in range(0, len(frames), step)]


def pieces(rng: random.Random, data: bytes, count: int) -> Iterator[bytes]:
    """A file, cut anywhere."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(count - 1))
    for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        yield data[begin:end]


@pytest.mark.parametrize("form", [0, 1, *long_cases([2, 3])])
@pytest.mark.parametrize(("table", "malformed"), [*((table, False) for table in TABLES), ("messages", True)])
def test_growing_and_rotating_captures_in_pieces(tmp_path: Path, table: str, form: int, malformed: bool) -> None:
    """Cut anywhere, also inside records and headers; every batch may be the last before a restart."""
    rng = random.Random(form)
    query = Query(tmp_path, table=table)
    assert query.batch() == []
    files = []
    frames = conversation(rng, 300, bad=0.2) if malformed else traffic(form, lost=0.02)
    for number, data in enumerate(rotated(frames, 5, form)):
        files.append(tmp_path / f"sensor-{number:03}.pcap")
        for piece in pieces(rng, data, 4):
            with files[-1].open("ab") as file:
                file.write(piece)
            query.batch()
            if rng.random() < 0.5:
                query.start()
    query.batch()
    assert len(query.rows) > 10
    same(query.rows, serial(files, table))
    assert not query.plan(), "nothing is new"


def write(folder: Path, captures: Iterable[bytes], name: str = "sensor-{:03}.pcap") -> list[Path]:
    """Captures as files whose names follow each other."""
    files = []
    for number, data in enumerate(captures):
        files.append(folder / name.format(number))
        files[-1].write_bytes(data)
    return files


def test_a_batch_that_is_read_again_has_the_same_rows(tmp_path: Path) -> None:
    """Though its last file has grown since, and others have come."""
    first, second, third = rotated(traffic(1), 3, 0)
    files = write(tmp_path, [first, second[: len(second) // 2]])
    query = Query(tmp_path, splitSize="1k")
    assert query.plan()
    rows = query.run()
    files[1].write_bytes(second)
    files.append(tmp_path / "sensor-002.pcap")
    files[2].write_bytes(third)
    late = tmp_path / "sensor-000a.pcap"
    late.write_bytes(first)
    for _ in range(2):
        query.start()
        assert query.run() == rows
    late.unlink()
    query.rows += rows
    query.batch()
    same(query.rows, serial(files))


@pytest.mark.parametrize("form", [0, 2])
def test_parts_for_tasks(tmp_path: Path, form: int) -> None:
    files = write(tmp_path, rotated(traffic(2), 5, form))
    size = sum(file.stat().st_size for file in files)
    query = Query(tmp_path, splitSize="3k")
    query.batch()
    assert size / 3072 - 1 < len(query.parts) < size / 1024
    assert any(len(part.files) > 1 for task in query.parts for part in task.parts)
    same(query.rows, serial(files))
    whole = Query(tmp_path, splitSize="0")
    whole.batch()
    assert len(whole.parts) == 1
    assert whole.rows == query.rows


def test_batches_of_bounded_size(tmp_path: Path) -> None:
    files = write(tmp_path, rotated(traffic(3), 4, 0))
    query = Query(tmp_path, maxBytesPerTrigger="2k")
    assert query.reader.getDefaultReadLimit() == ReadMaxBytes(2048)
    while query.plan():
        query.rows += query.run()
    same(query.rows, serial(files))
    starts = dict(zip(map(str, files), accumulate((file.stat().st_size for file in files), initial=0), strict=False))
    places = [starts[offset["file"]] + offset["offset"] for offset in map(json.loads, query.log[1:])]
    assert len(places) > 10
    assert max(end - begin for begin, end in pairwise([0, *places])) < 2048 + 700, "a record more, and a header"
    everything = Query(tmp_path, maxBytesPerTrigger="2k")
    everything.batch(ReadAllAvailable())
    assert everything.rows == query.rows
    assert not everything.plan()


@pytest.mark.parametrize("most", ["1k", "1g"])
def test_available_now_reads_what_there_was_when_it_began(tmp_path: Path, most: str) -> None:
    first, second, third = rotated(traffic(4), 3, 2)
    files = write(tmp_path, [first, second[: len(second) // 2]])
    wanted = serial(files)
    query = Query(tmp_path, maxBytesPerTrigger=most)
    query.start(available_now=True)
    files[1].write_bytes(second)
    files.append(tmp_path / "sensor-002.pcap")
    files[2].write_bytes(third)
    while query.plan():
        query.rows += query.run()
    same(query.rows, wanted)
    query.start(available_now=True)
    while query.plan():
        query.rows += query.run()
    same(query.rows, serial(files))


def test_compressed_captures_are_taken_when_they_are_whole(tmp_path: Path) -> None:
    captures = [gzip.compress(data) for data in rotated(traffic(5), 4, 0)]
    query = Query(tmp_path)
    files: list[Path] = []
    for number, data in enumerate(captures):
        files.append(tmp_path / f"sensor-{number:03}.pcap.gz")
        for size in (5, len(data) // 2, len(data) - 1):
            files[-1].write_bytes(data[:size])
            assert not query.plan()
        files[-1].write_bytes(data)
        assert query.plan()
        if number == 2:
            query.start()
        query.rows += query.run()
    same(query.rows, serial(files))


def test_a_compressed_capture_that_stays_cut_is_read_as_far_as_it_goes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = rotated(traffic(6), 2, 0)
    files = write(tmp_path, [gzip.compress(first)[:-200]])
    query, strict = (Query(tmp_path, table="topology", mode=mode) for mode in ("PERMISSIVE", "FAILFAST"))
    assert not query.plan()
    files += write(tmp_path, [gzip.compress(second)], "sensor-1{:02}.pcap")
    assert query.plan()
    query.start()
    query.rows += query.run()
    assert {row["file"] for row in query.rows} == set(map(str, files))
    same(query.rows, serial(files, "topology"))
    assert "1 compressed file not read to the end" in caplog.text
    assert strict.plan()
    with pytest.raises(CaptureError, match="1 compressed file not read to the end"):
        strict.run()


@pytest.mark.parametrize(("ending", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_captures_that_are_compressed_when_they_are_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ending: str, compress: Any
) -> None:
    """As by tcpdump -z: perhaps before they were read to their end, or between planning and reading."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "sensor").mkdir()
    captures = rotated(traffic(21), 4, 2)
    wanted = serial(write(tmp_path / "plain", captures))
    query = Query(tmp_path / "sensor", splitSize="2k")
    for number, data in enumerate(captures):
        file = tmp_path / "sensor" / f"sensor-{number:03}.pcap"
        file.write_bytes(data[: len(data) // 2])
        assert query.plan()
        query.rows += query.run()
        file.write_bytes(data)
        planned = number == 2 and query.plan()
        packed = Path(f"{file}{ending}")
        packed.write_bytes(compress(data)[:-99])
        if number % 2:
            query.start()
            query.batch()
        packed.write_bytes(compress(data))
        file.unlink()
        if planned:
            query.rows += query.run()
    query.batch()
    for row in query.rows:
        row["file"] = row["file"].replace("/sensor/", "/plain/")
    same(query.rows, wanted)
    assert not query.plan()
    assert not caplog.records


def test_a_capture_that_is_compressed_while_files_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two looks; it has not been read to its end."""
    captures = rotated(traffic(22), 2, 0)
    (tmp_path / "plain").mkdir()
    wanted = serial(write(tmp_path / "plain", captures))
    (tmp_path / "sensor").mkdir()
    files = write(tmp_path / "sensor", [captures[0][:-500]])
    query = Query(tmp_path / "sensor")
    query.batch()
    write(tmp_path / "sensor", captures)

    def look_and_compress(*args: Any, **options: Any) -> tuple[SourceFile, ...]:
        found = find_files(*args, **options)
        if files[0].exists():
            Path(f"{files[0]}.gz").write_bytes(gzip.compress(captures[0]))
            files[0].unlink()
        return found

    monkeypatch.setattr("msmqwire.spark.source.options.find_files", look_and_compress)
    query.batch()
    for row in query.rows:
        row["file"] = row["file"].replace("/sensor/", "/plain/")
    same(query.rows, wanted)


def test_a_compressed_capture_that_grows_after_all(tmp_path: Path) -> None:
    first, second = map(gzip.compress, rotated(traffic(6), 2, 0))
    files = write(tmp_path, [first])
    query, loose = Query(tmp_path), Query(tmp_path, failOnDataLoss="false")
    for one in (query, loose):
        one.batch()
    files[0].write_bytes(first + second)
    with pytest.raises(CaptureError, match=r"sensor-000\.pcap: grew by \d+ bytes after all of it had been read"):
        query.plan()
    loose.batch()
    files += write(tmp_path, [second], "sensor-1{:02}.pcap")
    loose.start()
    assert {row["file"] for row in loose.batch()} == {str(files[1])}


@pytest.mark.parametrize("options", [{"mode": "FAILFAST"}, {"ignoreCorruptFiles": "false"}])
@pytest.mark.parametrize("content", [b"\n", b"no capture, but a file of notes\n" * 3])
def test_files_that_are_no_captures(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes, options: dict[str, str]
) -> None:
    first, second = rotated(traffic(7), 2, 0)
    files = write(tmp_path, [first])
    query, strict = Query(tmp_path), Query(tmp_path, **options)
    assert query.batch()
    assert strict.batch()
    other = tmp_path / "sensor-000.txt"
    other.write_bytes(content)
    if len(content) < 28:
        assert not strict.plan(), "it may become one"
        assert not query.plan()
    else:
        query.batch()
    files += write(tmp_path, [second], "sensor-1{:02}.pcap")
    with pytest.raises(CaptureError, match=r"sensor-000\.txt: (ends inside its header|begins with)"):
        strict.plan()
    assert query.plan()
    query.start()
    query.rows += query.run()
    same(query.rows, serial(files))
    assert query.offset["skipped"] == 1
    assert caplog.text.count("sensor-000.txt") in (1, 2), "once for each start"
    assert not query.plan()


def test_what_comes_late_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    captures = rotated(traffic(9), 4, 0)
    files = write(tmp_path, captures[:2], "sensor-1{:02}.pcap")
    query = Query(tmp_path)
    query.batch()
    rows = list(query.rows)
    for number, start_again in ((0, False), (1, True)):
        late = tmp_path / f"sensor-00{number}.pcap"
        late.write_bytes(captures[2 + number])
        if start_again:
            query.start()
        assert not query.plan()
        assert f"{late}: arrived after {files[1]} was started, and is not read" in caplog.text
        said = len(caplog.records)
        assert not query.plan()
        assert len(caplog.records) == said
    assert query.rows == rows


def test_what_grows_late_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As where two sensors write into one folder."""
    files = write(tmp_path, [data[:-500] for data in rotated(traffic(9), 3, 0)])
    query = Query(tmp_path)
    query.batch()
    for file in files[1:]:
        with file.open("ab") as opened:
            opened.write(build.pcap_record(build.plain(REQUEST)))
    query.start()
    query.batch()
    said = [record.getMessage() for record in caplog.records if "grew" in record.getMessage()]
    assert said == [f"{files[1]}: grew after a file with a later name was started; the new bytes are not read"]
    query.batch()
    assert caplog.text.count("grew") == 1


@pytest.mark.parametrize(
    "name", [".sensor-000.pcap", "_sensor-000.pcap", "sensor-000.pcap.part", "sensor-000.pcap._COPYING_"]
)
def test_files_that_are_left_alone(tmp_path: Path, name: str) -> None:
    data = encode(traffic(10), 0)
    (tmp_path / name).write_bytes(data)
    query = Query(tmp_path)
    assert not query.plan()
    (tmp_path / name).rename(tmp_path / "sensor-000.pcap")
    assert query.batch()


def test_what_ends_a_query_that_fails_fast(tmp_path: Path) -> None:
    write(tmp_path, [encode([build.plain(b"no packet")], 0)])
    query = Query(tmp_path, table="topology", mode="FAILFAST")
    assert query.plan()
    with pytest.raises(DecodeError, match="frame 1 of"):
        query.run()
    first, second = rotated(traffic(17), 2, 0)
    write(tmp_path, [first[:-9], second])
    query = Query(tmp_path, mode="FAILFAST")
    assert query.plan()
    with pytest.raises(CaptureError, match=r"1 frame malformed; the first at byte \d+: the file ends inside this"):
        query.run()


def test_a_path_that_is_not_there_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    query = Query(tmp_path / "*.pcap")
    assert not query.plan()
    assert not query.plan()
    assert [record.getMessage() for record in caplog.records] == [
        f"no capture matches '{tmp_path}/*.pcap': waiting for one"
    ]


def test_a_sequence_over_folders(tmp_path: Path) -> None:
    files = []
    for hour, data in enumerate(rotated(traffic(18), 4, 2)):
        folder = tmp_path / f"2024-03-04T{hour:02}"
        folder.mkdir()
        files += write(folder, [data])
    query = Query(tmp_path, recursive="true")
    query.batch()
    same(query.rows, serial(files))
    glob = Query(f"{tmp_path}/*/sensor-*.pcap")
    glob.batch()
    assert glob.rows == query.rows


@pytest.mark.long
def test_a_connection_that_is_captured_while_it_is_followed(tmp_path: Path) -> None:
    """Sockets on loopback, and files of ten packets each that dumpcap begins while they are read."""
    rng = random.Random(22)
    bodies = [rng.randbytes(rng.choice((10, 1000, 100_000))) for _ in range(60)]
    packets = [mqqb.encode(mqqb.UserMessage(destination_queue=NOTIFY_QUEUE, body=body)) for body in bodies]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = [require_program("dumpcap"), "-q", "-B", "64", "-i", "lo", "-f", f"tcp port {port}"]
        rotation = ["-b", "packets:10", "-w", str(tmp_path / "live.pcapng")]
        with capturing([*program, *rotation], "File:"):
            query = Query(tmp_path, ports=str(port))
            with socket.create_connection(server.getsockname()) as client, server.accept()[0] as connection:
                receiver = threading.Thread(target=lambda: all(iter(lambda: connection.recv(65536), b"")))
                receiver.start()
                for number, packet in enumerate(packets):
                    client.sendall(packet)
                    if number % 10 == 9:
                        query.batch()
                        query.start()
                client.shutdown(socket.SHUT_WR)
                receiver.join()
            for _ in range(100):
                if len(query.rows) >= len(packets):
                    break
                threading.Event().wait(0.1)
                query.batch()
    assert [row["body"] for row in query.rows] == bodies
    files = sorted(tmp_path.iterdir())
    assert len(files) > 4
    same(query.rows, serial(files, ports=[port]))


@pytest.mark.long
def test_captures_in_an_object_store(tmp_path: Path) -> None:
    """They come whole, or take the place of a shorter beginning of themselves."""
    pytest.importorskip("moto")
    from tests.spark.object_store import object_store

    first, second, third = rotated(traffic(20), 3, 0)
    files = write(tmp_path, [first, second, third])
    with object_store() as store:
        query = Query("s3://captures/sensors", storageOptions=json.dumps(store.options), splitSize="4k")
        assert not query.plan()
        for contents in ([first, second[:-100]], [first, second, gzip.compress(third)]):
            for number, data in enumerate(contents):
                store.put(f"sensors/sensor-{number}.pcap", data)
            query.start()
            query.batch()
    for row in query.rows:
        row["file"] = row["file"].replace("s3://captures/sensors/sensor-", f"{tmp_path}/sensor-00")
    same(query.rows, serial(files))


def test_nothing_is_opened_while_nothing_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, [gzip.compress(encode(traffic(19), 0))[:-9]])
    query = Query(tmp_path)
    assert not query.plan()
    monkeypatch.setattr("msmqwire.spark.source.following.open_source", None)
    assert not query.plan()
