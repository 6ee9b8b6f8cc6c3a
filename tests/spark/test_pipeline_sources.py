"""The lake as its captures change: grown, replaced, renamed, copied, malformed, gone, and readable at last."""

from __future__ import annotations

import gzip
import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from msmqwire.errors import CaptureError
from msmqwire.spark import pipeline
from msmqwire.spark.lake import check as sound
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.decoding import Decoding, ToRead
from msmqwire.spark.lake.planning import END, CapturedFile, identify
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.source.scan import Scan, ScanOptions
from tests.effort import first_of
from tests.spark.captures import CAPTURES, LOCAL, OTHER, ROOT, SESSION, large, packets, write_capture
from tests.spark.lakes import accounts, files_of, read, rows, wanted
from tests.spark.tasks import TASKS


def test_a_capture_that_grows(tmp_path: Path) -> None:
    """Half-uploaded: not yet a capture, cut inside a record, whole; compressed as well. Its rows are there once."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    names = [folder / "one.pcap", folder / "two.pcap.gz", folder / "nothing.pcap"]
    write_capture(names[0], packets(40))
    whole = [names[0].read_bytes(), gzip.compress(Path(OTHER).read_bytes()), Path(LOCAL).read_bytes()]
    for share in (0, 0.003, 0.5, 0.51, 1):
        for name, data in zip(names, whole, strict=True):
            name.write_bytes(data[: int(share * len(data))])
        summary = pipeline.run(TASKS, folder, lake)
        assert summary.known == 0
        assert set(accounts(lake)) == set(map(str, names))
        readable = [name for name in names if accounts(lake)[str(name)]["problem"] is None]
        assert rows(lake) == wanted(*readable)
        assert len(summary.problems) == 3 - len(readable)
    assert len(readable) == 3
    assert pipeline.run(TASKS, folder, lake).known == 3


def test_a_file_name_that_is_used_again(tmp_path: Path) -> None:
    """A ring of capture files, renamed as they grow older: what lay in a file before stays in the lake."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    ring = folder / "ring.pcap"
    write_capture(ring, large(packets(3)))
    pipeline.run(TASKS, folder, lake)
    # It has grown and moved on, and another has its name
    write_capture(folder / "ring.pcap.1", large(packets(5)))
    write_capture(ring, large(packets(4, start=7), content=1))
    summary = pipeline.run(TASKS, folder, lake)
    assert summary.sources == 2
    assert rows(lake) == wanted(ring, folder / "ring.pcap.1")
    # What it held is gone but for the lake
    write_capture(ring, large(packets(2, start=90), content=2))
    assert pipeline.run(TASKS, folder, lake).sources == 1
    assert rows(lake).total() == 5 + 4 + 2
    assert rows(lake)[str(ring), 3] == 2


@pytest.mark.parametrize("at_once", first_of([256, 1]))
def test_a_source_is_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """A copy adds nothing, in this run or in the next; touched, renamed and read from elsewhere it is the same.

    The driver identifies few captures, and tasks many.
    """
    monkeypatch.setattr(pipeline, "_FEWEST_OF_A_CHUNK", at_once)
    lake, first, copy, second = (tmp_path / name for name in ("lake", "first.pcap", "copy.pcap", "second.pcap.gz"))
    write_capture(first, large(packets(3)))
    shutil.copy(first, copy)
    second.write_bytes(gzip.compress(first.read_bytes()))
    summary = pipeline.run(TASKS, [second, copy, OTHER], lake)
    assert (summary.sources, summary.known, summary.duplicates) == (2, 0, [str(second)])
    assert f"the same content as another: {second}" in str(summary)
    for sources in ([second, copy], [first], [copy], [copy]):
        summary = pipeline.run(TASKS, sources, lake)
        assert (summary.sources, summary.known, summary.duplicates) == (0, len(sources), [])
        os.utime(copy, (1, 1))
    assert rows(lake) == wanted(copy, OTHER)
    assert set(accounts(lake)) == {str(copy), OTHER}
    # What is known by another name is not opened again
    for file in (first, second, copy):
        file.write_bytes(bytes(file.stat().st_size))
        os.utime(file, (1, 1))
    for file in (first, second, copy):
        assert pipeline.run(TASKS, [file], lake).sources == 0, file


def test_names_play_no_part(tmp_path: Path) -> None:
    """A small capture is its content as well: named otherwise, moved, compressed, and after the original is gone."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    one, other = folder / "one.pcap", folder / "other.pcap"
    write_capture(one, packets(2))
    # It begins like the first, and is no copy of it
    write_capture(other, [*packets(1), *packets(2, start=7)])
    assert pipeline.run(TASKS, folder, lake).sources == 2
    names = [str(one), str(other)]
    assert rows(lake) == wanted(*names)
    for sources in (
        folder,
        f"{tmp_path}/./captures",
        [f"{folder}/../captures/{name}.pcap" for name in ("one", "other")],
    ):
        summary = pipeline.run(TASKS, sources, lake)
        assert (summary.sources, summary.known) == (0, 2)
    # As tcpdump -z gzip does
    (folder / "one.pcap.gz").write_bytes(gzip.compress(one.read_bytes()))
    for _ in range(2):
        assert pipeline.run(TASKS, folder, lake).sources == 0
    one.unlink()
    other.rename(folder / "moved.pcap")
    assert pipeline.run(TASKS, folder, lake).sources == 0
    assert rows(lake).total() == 2 + 3
    # Rows keep the names that they had first
    assert set(accounts(lake)) == set(names)


@pytest.mark.long
def test_a_small_capture_grows_beside_its_copies(tmp_path: Path) -> None:
    """Under its name and under others, in a run and from run to run: each row is there once, and no run reads twice."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    one, copy, third = (folder / name for name in ("one.pcap", "copy.pcap", "third.pcap"))
    for count in (0, 1, 2):
        write_capture(one, packets(count))
        assert pipeline.run(TASKS, folder, lake).sources == 1
        assert rows(lake) == wanted(one)
    shutil.copy(one, copy)
    assert pipeline.run(TASKS, folder, lake).known == 2
    for count in (3, 5, 2000):
        # The copy is what the capture was before
        write_capture(one, packets(count))
        assert pipeline.run(TASKS, folder, lake).sources == 1
        for _ in range(2):
            assert pipeline.run(TASKS, folder, lake).sources == 0
        assert rows(lake) == wanted(one)
        os.utime(copy)
    assert one.stat().st_size > END
    # What the lake has not seen, but the capture begins with
    write_capture(third, packets(4))
    for _ in range(2):
        summary = pipeline.run(TASKS, folder, lake)
        assert (summary.sources, rows(lake)) == (0, wanted(one))
    assert set(accounts(lake)) == {str(one)}
    # Under another name, in one run, with what it was before
    write_capture(folder / "a.pcap", packets(2, start=50))
    (folder / "b.pcap.gz").write_bytes(
        gzip.compress(Path(write_capture(tmp_path / "b", packets(3, start=50))).read_bytes())
    )
    summary = pipeline.run(TASKS, folder, lake)
    assert (summary.sources, summary.duplicates) == (1, [str(folder / "a.pcap")])
    assert pipeline.run(TASKS, folder, lake).sources == 0
    assert rows(lake) == wanted(one, folder / "b.pcap.gz")
    assert sound(lake) == []


def test_a_run_commits_what_another_has_seen_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two runs that overlap, the one that reads a small capture first commits last."""
    one, lake = tmp_path / "one.pcap", tmp_path / "lake"
    write_capture(one, packets(2))
    commit = Lake.commit

    def late(self: Lake, *arguments: Any, **named: Any) -> Any:
        if rows_before.total() == 0:
            rows_before["other"] += 1
            write_capture(one, packets(4))
            assert pipeline.run(TASKS, one, lake).sources == 1
        return commit(self, *arguments, **named)

    rows_before: Counter[str] = Counter()
    monkeypatch.setattr(Lake, "commit", late)
    summary = pipeline.run(TASKS, one, lake)
    assert (summary.sources, summary.duplicates) == (0, [str(one)])
    assert rows(lake) == wanted(one)
    assert pipeline.run(TASKS, one, lake).sources == 0


def test_a_capture_grows_beside_its_copy(tmp_path: Path) -> None:
    """The copy is what the capture begins with: all its rows are there."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    one, copy = folder / "one.pcap", folder / "two.pcap"
    write_capture(one, large(packets(3)))
    shutil.copy(one, copy)
    assert pipeline.run(TASKS, folder, lake).duplicates == [str(copy)]
    write_capture(one, large(packets(5)))
    for known in (1, 2):
        assert pipeline.run(TASKS, folder, lake).known == known
        assert rows(lake) == wanted(one)


def test_names_that_show_alike(tmp_path: Path) -> None:
    """Rows and accounts show both as one, and those of neither go with the other's."""
    folder, lake = os.fsencode(tmp_path / "captures"), tmp_path / "lake"
    os.mkdir(folder)
    one, other = (Path(os.fsdecode(folder + b"/" + name)) for name in (b"\xfe.pcap", b"\xff.pcap"))
    write_capture(one, packets(2))
    write_capture(other, packets(3, start=50))
    pipeline.run(TASKS, os.fsdecode(folder), lake)
    write_capture(other, packets(4, start=50))
    pipeline.run(TASKS, os.fsdecode(folder), lake)
    assert rows(lake).total() == 2 + 4


def test_a_capture_is_told_by_what_was_read_of_it(tmp_path: Path) -> None:
    """What comes behind the end that a task met has no rows, and so no part in the digest."""
    path = tmp_path / "growing.pcap"
    path.write_bytes(b"what is there")
    with CapturedFile(str(path), {}, digest=True) as file:
        room = memoryview(bytearray(100))
        while file.readinto(room):
            pass
        with path.open("ab") as more:
            more.write(b" and what comes")
        file.finish()
        assert file.digest == hashlib.sha256(b"what is there").hexdigest()
        assert file.bytes == 13


def test_a_capture_that_is_gone_is_one_error() -> None:
    """Python's development mode reports errors of finalizers, as Python 3.13 does."""
    program = "from msmqwire.spark.lake.planning import CapturedFile; CapturedFile('gone.pcap', {})"
    done = subprocess.run([sys.executable, "-X", "dev", "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].startswith("FileNotFoundError: ")
    assert done.stderr.count("Traceback") == 1


@pytest.mark.long
def test_small_captures_share_files(tmp_path: Path) -> None:
    """One of them is replaced with other settings: the others stay as they are."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    names = [folder / f"{number:03}.pcap" for number in range(200)]
    for number, name in enumerate(names):
        write_capture(name, packets(2, start=number))
    summary = pipeline.run(TASKS, folder, lake)
    assert (summary.sources, summary.rows["topology"]) == (200, 400)
    assert len(files_of(lake, "topology")) < 150
    assert len(files_of(lake, "accounting")) == 1
    pipeline.run(TASKS, names[7], lake, tables="messages")
    left = [name for name in names if name != names[7]]
    assert rows(lake) == wanted(*left)
    assert len(accounts(lake)) == 200
    assert accounts(lake)[str(names[7])]["rows"] == [("messages", 0)]
    assert pipeline.run(TASKS, folder, lake).known == 199
    assert rows(lake) == wanted(*names)
    assert pipeline.run(TASKS, folder, lake, overwrite=True).sources == 200
    assert rows(lake) == wanted(*names)


def test_what_cannot_be_read_is_tried_again(tmp_path: Path) -> None:
    """Not there, no permission to say so, no capture; and what was readable and is not any more stays."""
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    gone, text, good = folder / "gone.pcap", folder / "text.pcap", folder / "good.pcap"
    gone.symlink_to(folder / "nowhere")
    text.write_text("not a capture\n" * 10)
    write_capture(good, packets(3))
    sources = [gone, text, good]
    for known in (0, 1):
        summary = pipeline.run(TASKS, sources, lake)
        assert (summary.known, len(summary.problems)) == (known, 2)
        assert set(accounts(lake)) == set(map(str, sources))
    gone.unlink()
    shutil.copy(text, gone)
    moved = good.rename(folder / "moved.pcap")
    good.symlink_to(folder / "nowhere")
    summary = pipeline.run(TASKS, sources, lake)
    assert f"{good}: No such file or directory" in summary.problems
    assert sum("begins with 6e 6f" in problem for problem in summary.problems) == 2
    assert rows(lake) == Counter({(str(good), number): 1 for number in (1, 2, 3)})
    found = read(lake, "accounting").to_pylist()
    assert Counter(row["file"] for row in found) == {str(gone): 1, str(text): 1, str(good): 2}
    good.unlink()
    moved.rename(good)
    write_capture(gone, packets(4, start=30))
    write_capture(text, packets(5, start=60))
    summary = pipeline.run(TASKS, sources, lake)
    assert (summary.known, summary.sources, summary.problems) == (1, 2, [])
    assert set(accounts(lake)) == set(map(str, sources))
    assert rows(lake) == wanted(*sources)


@pytest.mark.long
def test_captures_on_other_machines(spark: SparkSession, tmp_path: Path) -> None:
    """The time of an object tells that it is the one of the last run."""
    from tests.spark.object_store import object_store

    lake = tmp_path / "lake"
    with object_store() as store:
        settings: dict[str, Any] = {"recursive": True, "storage_options": store.options}
        uris = [store.put(f"day/{Path(name).name}", Path(name)) for name in CAPTURES]
        summary = pipeline.run(spark, "s3://captures/day", lake, **settings)
        assert (summary.sources, summary.rows["topology"]) == (2, 14)
        assert set(accounts(lake)) == set(uris)
        assert rows(lake).total() == 14
        uris.append(store.put("day/more/session.pcap", Path(SESSION)))
        summary = pipeline.run(spark, "s3://captures/day", lake, **settings)
        assert (summary.sources, summary.known) == (1, 2)
        assert set(accounts(lake)) == set(uris)


def test_reading_that_fails_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What others have in the same files stays, and nothing of it."""
    names = [str(tmp_path / f"{number}.pcap") for number in range(3)]
    for number, name in enumerate(names):
        write_capture(Path(name), packets(2, start=number))
    rows = Scan.rows

    def failing(self: Scan, source: Any, **settings: Any) -> Iterable[Any]:
        yield from rows(self, source, **settings)
        if source.name == names[1]:
            raise CaptureError("the disk is on fire")

    monkeypatch.setattr(Scan, "rows", failing)
    work = Decoding(Storage.of(tmp_path), ScanOptions(), "snappy", "done")
    identities = [identify(name, {}) for name in names]
    sources = zip(names, identities, strict=True)
    decoded = work([ToRead(name, Path(name).stat().st_size, identity) for name, identity in sources])
    assert [account.problem for account in decoded.accounts] == [None, "the disk is on fire", None]
    assert [account.rows.get("topology") for account in decoded.accounts] == [2, None, 2]
    (file,) = [file for file in decoded.files if file.table == "topology"]
    assert list(tmp_path.rglob("*.parquet")) == [tmp_path / "topology" / file.path]
    found = pq.ParquetFile(tmp_path / "topology" / file.path).read()
    assert {(row["file"], row["capture"]) for row in found.to_pylist()} == {
        (names[at], identities[at].capture) for at in (0, 2)
    }
    assert {path.name[-4:] for path in (tmp_path / "done").iterdir()} == {"-3-4"}


def test_damage_anywhere(tmp_path: Path) -> None:
    """Bytes changed, cut and put in: every capture has an account that adds up, and the single machine's rows."""
    rng = random.Random(11)
    folder, lake = tmp_path / "captures", tmp_path / "lake"
    folder.mkdir()
    originals = [Path(name).read_bytes() for name in (*CAPTURES, SESSION)]
    for number in range(60):
        data = bytearray(rng.choice(originals))
        for _ in range(rng.randrange(1, 6)):
            at = rng.randrange(len(data))
            data[at : at + rng.choice((0, 1, 1, 7))] = rng.randbytes(rng.choice((0, 1, 1, 4)))
        (folder / f"{number:02}.pcap").write_bytes(data[: rng.randrange(len(data))] if number % 3 == 0 else data)
    summary = pipeline.run(TASKS, folder, lake)
    names = {str(path) for path in folder.iterdir()}
    assert set(accounts(lake)) == names - set(summary.duplicates)
    readable = [name for name, account in accounts(lake).items() if account["problem"] is None]
    assert len(readable) == summary.sources > 40
    for table in ("topology", "notifications", "messages", "sessions"):
        assert rows(lake, table) == wanted(*readable, table=table)


def test_an_empty_folder_among_others_is_a_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    source = tmp_path / "a.pcap"
    shutil.copy(LOCAL, source)
    summary = pipeline.run(TASKS, [tmp_path / "empty", source], tmp_path / "lake")
    assert (summary.sources, summary.problems) == (1, [])
    assert f"no capture is in the folder '{tmp_path / 'empty'}'" in str(summary).splitlines()
    with pytest.raises(FileNotFoundError, match="no capture is in the folder"):
        pipeline.run(TASKS, tmp_path / "empty", tmp_path / "lake")
    with pytest.raises(FileNotFoundError, match="gone"):
        pipeline.run(TASKS, [tmp_path / "gone", source], tmp_path / "lake")
