"""The database of queries: what does not fit in memory, what is left of it, and interrupts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from msmqwire.capture import arrow_schema
from msmqwire.insight import COLUMNS, SECTIONS, Summary
from msmqwire.insight.database import Database, QueryError, SqlError, parse
from msmqwire.insight.engine import Engine
from msmqwire.insight.findings import Detector
from tests.insight.captures import message, stream, write

SECONDS = 60  # that a process may take before it is stuck


def batch(start: int, rows: int, **columns: Any) -> pa.RecordBatch:
    """Messages whose senders and queues differ."""
    schema = arrow_schema("messages", COLUMNS["messages"], dictionaries=False)
    numbers = range(start, start + rows)
    made = {
        "file": ["x.pcap"] * rows, "frame": list(numbers), "time": [number * 1000 for number in numbers],
        "src": [f"host {number:040}" for number in numbers], "message_id": list(numbers), "violations": [[]] * rows,
        "destination_queue": [f"queue {number:080}" for number in numbers], **columns,
    }  # fmt: skip
    arrays = [
        pa.array(made[field.name], field.type) if field.name in made else pa.nulls(rows, field.type) for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def test_rows_beyond_the_memory_are_kept_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msmqwire.insight.engine._MEMORY", "64MB")
    engine, rows = Engine(SECTIONS.values(), threads=1), 0
    summary, folder = Summary(engine=engine), Path(engine._database.folder)
    for number in range(6):
        summary.add("messages", batch(50_000 * number, 50_000))
        rows += 50_000
    found = summary.section("totals").select(["rows"]).to_pylist()
    assert found == [{"rows": rows}]
    assert sum(file.stat().st_size for file in folder.iterdir()) > 10 << 20
    queues = summary.section("queues")
    assert (queues.num_rows, summary.omitted("queues")) == (100_000, (rows - 100_000, rows - 100_000))
    assert queues["queue"][0].as_py() == f"queue {0:080}"
    summary.close()
    assert not folder.exists()


def test_a_full_disk_is_an_error_of_one_line(tmp_path: Path) -> None:
    database = Database(memory="40MB", threads=1, disk="1MB")
    folder = Path(database.folder)
    with pytest.raises(SqlError) as caught:
        database.execute(
            "CREATE TABLE x AS SELECT md5(range::VARCHAR) AS y, md5((-range)::VARCHAR) AS z FROM range(2000000)"
        )
    assert "\n" not in str(caught.value)
    database.close()
    assert not folder.exists()


PROGRAM = """
import sys
from msmqwire.insight.database import Database
database = Database(memory="40MB", threads=1)
print(database.folder, flush=True)
database.execute("CREATE TABLE x AS SELECT md5(range::VARCHAR) AS y, md5((-range)::VARCHAR) AS z FROM range(2000000)")
print("stored", flush=True)
database.execute("SELECT count(*) FROM range(1000000000000000) r(x), x WHERE md5(x::VARCHAR) = y")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no shell that waits")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_query_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=work, env=environment
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        assert process.stdout.readline() == b"stored\n"
        assert folder.is_relative_to(tmp_path)
        assert list(folder.iterdir())
        process.send_signal(how)
        assert process.wait(SECONDS) != 0
    deadline = time.monotonic() + SECONDS
    # The folder of the database goes first, then that of the process
    while len([*tmp_path.iterdir()]) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]
    assert not list(work.iterdir())


def test_a_query_over_a_table_without_rows_is_empty() -> None:
    summary = Summary()
    for name in SECTIONS:
        assert summary.section(name).num_rows == 0
    assert Detector().findings() == []


def test_rows_of_one_place_count_once_in_frames() -> None:
    for copies in (1, 2, 3, 25):
        summary = Summary(threads=1)
        frames = [number for number in range(1, 15) for _ in range(copies)]
        same: dict[str, list[Any]] = {
            "frame": frames, "src": ["a"] * len(frames), "destination_queue": ["q"] * len(frames)
        }  # fmt: skip
        for at in range(0, len(frames), 7):
            some = {name: values[at : at + 7] for name, values in same.items()}
            summary.add("messages", batch(0, len(some["frame"]), **some))
        (row,) = summary.section("queues").to_pylist()
        assert row["messages"] == len(frames)
        assert [place["frame"] for place in row["frames"]] == list(range(1, 11))


def test_frames_are_the_first_in_any_order_of_rows() -> None:
    summary = Summary(threads=1)
    for frames in ([90, 91, 92], [50, 3, 50], [4, 5, 90], list(range(10, 30)), [1, 1]):
        same = {"frame": frames, "src": ["a"] * len(frames), "destination_queue": ["q"] * len(frames)}
        summary.add("messages", batch(0, len(frames), **same))
    (row,) = summary.section("queues").to_pylist()
    assert [place["frame"] for place in row["frames"]] == [1, 3, 4, 5, 10, 11, 12, 13, 14, 15]


def test_views_have_the_rows_that_are_added_after_an_answer() -> None:
    summary = Summary()
    for number in range(2):
        asking = {"kind": ["user_message"], "message_class": [0], "tx_sequence_number": [number + 1]}
        summary.add("messages", batch(number, 1, **asking))
        found = summary.section("acknowledgments")["message_id"].to_pylist()
        assert found == list(range(number + 1))


def test_few_rows_have_one_thread_and_views_are_stored() -> None:
    engine = Engine(SECTIONS.values(), threads=2)
    engine.add("messages", batch(0, 10))
    engine.finish()
    assert engine.execute("SELECT current_setting('threads')") == [(1,)]
    kinds = dict(engine.execute("SELECT table_name, table_type FROM information_schema.tables"))
    assert {kinds[name] for name in ("messages", *engine.views)} == {"BASE TABLE"}


def test_rules_cannot_change_the_configuration() -> None:
    engine = Engine(SECTIONS.values())
    engine.finish()
    for statement in ("SET threads = 7", "SET enable_external_access = true", "SELECT * FROM read_text('/etc/passwd')"):
        with pytest.raises(SqlError):
            engine.execute(statement)


def test_the_place_of_a_mistake() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT 'é',\n  'ü' FROM FROM")
    assert (caught.value.line, caught.value.column) == (2, 12)
    assert parse("-- nothing") is None
    assert parse("COPY x TO 'y'") is None


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_no_row(threads: int, tmp_path: Path) -> None:
    from msmqwire.insight.summary import summarize

    packets = [message(number=number % 7, queue=f"OS:a\\q{number % 3}") for number in range(60)]
    path = write(tmp_path / "x.pcap", [frame for at in range(5) for frame in stream(packets, port=4000 + at)])
    expected, summary = summarize(path), Summary(threads=threads)
    from msmqwire.capture import read_tables

    for table, rows in read_tables(path, COLUMNS, columns=COLUMNS):
        summary.add(table, rows)
    for name in SECTIONS:
        assert summary.section(name).equals(expected.section(name))
