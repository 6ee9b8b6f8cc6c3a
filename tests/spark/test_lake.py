"""A lake's commits: what they replace, and a driver that is killed at every step of one."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from msmqwire.spark.lake.dayfiles import StagedFile
from msmqwire.spark.lake.store import Content, Lake, LakeError, StagedGroup, Stamp

Rows = dict[str, list[int]]
MONDAY, TUESDAY = "2024-03-04", "2024-03-05"


def staged(folder: Path, table: str, day: str, rows: Rows) -> StagedFile:
    """A file with numbers of sources in it."""
    path = folder / f"{table}-{day}-{'-'.join(rows)}.parquet"
    names = [name for name, numbers in rows.items() for _ in numbers]
    pq.write_table(pa.table({"file": names, "x": [x for numbers in rows.values() for x in numbers]}), path)
    return StagedFile(table, day, str(path))


def group(folder: Path, days: dict[str, Rows]) -> StagedGroup:
    """Sources with rows on some days, and accounts of how many they are."""
    sizes = Counter(name for rows in days.values() for name, numbers in rows.items() for _ in numbers)
    files = [staged(folder, "topology", day, rows) for day, rows in days.items()]
    accounts = staged(folder, "accounting", MONDAY, {name: [size] for name, size in sizes.items()})
    return StagedGroup("all", {f"key-{name}": Content(name, sizes[name]) for name in sizes}, [*files, accounts])


def rows_of(root: Path, table: str) -> list[tuple[str, int]]:
    tables = [pq.ParquetFile(path).read() for path in root.glob(f"{table}/day=*/*.parquet")]
    return sorted((row["file"], row["x"]) for one in tables for row in one.to_pylist())


FIRST: list[dict[str, Rows]] = [
    {MONDAY: {"one": [1, 1], "two": [2]}, TUESDAY: {"two": [2, 2]}},
    {TUESDAY: {"three": [3, 3]}},
    {MONDAY: {"five": [5]}, TUESDAY: {"five": [5], "six": [6]}},
]
SECOND: list[dict[str, Rows]] = [{TUESDAY: {"one": [10, 10, 10], "four": [4]}}]
BEFORE = [("five", 5)] * 2 + [("one", 1)] * 2 + [("six", 6)] + [("three", 3)] * 2 + [("two", 2)] * 3
AFTER = [("five", 5)] * 2 + [("four", 4)] + [("one", 10)] * 3 + [("two", 2)] * 3


def fill(root: Path) -> None:
    with Lake(root) as lake:
        lake.commit([group(lake.staging, days) for days in FIRST], seen={"/one": (Stamp(1, 1), "key-one")})


def replace(root: Path) -> None:
    """Another *one*, a new *four*, no *three* and no *six* any more."""
    with Lake(root) as lake:
        groups = [group(lake.staging, days) for days in SECOND]
        lake.commit(groups, withdrawn={"key-three", "key-six", "nothing"}, seen={"/one": (Stamp(2, 2), "key-one")})


def contents(root: Path) -> list[tuple[str, int]]:
    """All rows once the lake was opened; the accounts say how many each source has, and the note knows every file."""
    with Lake(root) as lake:
        rows = rows_of(root, "topology")
        assert Counter(name for name, _ in rows) == dict(rows_of(root, "accounting"))
        assert sorted(content.file for _, content in lake.sources()) == sorted({name for name, _ in rows})
        assert all(lake.holds(key, "all") for key, _ in lake.sources())
        noted = {file for one in lake._note.groups.values() for file in one.files}
    assert {str(path.relative_to(root)) for path in root.rglob("*.parquet")} == noted
    return rows


def test_a_commit_replaces_what_its_sources_had(tmp_path: Path) -> None:
    fill(tmp_path)
    assert contents(tmp_path) == BEFORE
    names = {path.name for path in tmp_path.rglob("*.parquet")}
    replace(tmp_path)
    assert contents(tmp_path) == AFTER
    with Lake(tmp_path) as lake:
        assert lake.seen("/one") == (Stamp(2, 2), "key-one")
        assert not lake.holds("key-one", "other")
        assert not lake.holds("key-three", "all")
    # *two* has a file of its own, which stays, and one that it shared
    assert len(names & {path.name for path in tmp_path.rglob("*.parquet")}) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_lake.json", "_lock", "accounting", "topology"]


def test_what_is_left_of_a_file_keeps_its_schema(tmp_path: Path) -> None:
    fill(tmp_path)
    schemas = {pq.read_schema(path) for path in tmp_path.rglob("*.parquet")}
    replace(tmp_path)
    assert {pq.read_schema(path) for path in tmp_path.rglob("*.parquet")} == schemas


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def find_the_disk_full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def ended_at(step: int, root: Path, end: Callable[[], None]) -> Iterator[None]:
    """Come to an end at the so manieth change to the folder."""
    left = step

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event not in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir"):
            return
        if not str(arguments[0]).startswith(str(root)) and event != "os.remove":
            return
        left -= 1
        if left == -1:
            end()

    sys.addaudithook(watch)
    yield
    if left < 0:  # and somebody took no notice
        end()


def was_ended(work: Callable[[], None]) -> bool:
    """Do some work in a child process; whether it was killed, or found the disk full."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException as error:
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                os._exit(errno.ENOSPC)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, errno.ENOSPC, -signal.SIGKILL)
    return status != 0


@pytest.mark.parametrize("end", [be_killed, find_the_disk_full])
@pytest.mark.parametrize("stride", [5, pytest.param(1, marks=pytest.mark.long)])
def test_a_driver_ended_at_steps(tmp_path: Path, end: Callable[[], None], stride: int) -> None:
    """Either nothing has happened or everything, once the lake is opened again; readers may trust the accounts."""
    fill(tmp_path / "lake")
    found = Counter[bool]()
    for step in range(0, 1000, stride):
        lake = tmp_path / str(step)
        shutil.copytree(tmp_path / "lake", lake)

        def work(lake: Path = lake, step: int = step) -> None:
            with ended_at(step, lake, end):
                replace(lake)

        if not was_ended(work):
            break
        visible = Counter(name for name, _ in rows_of(lake, "topology"))
        for name, size in rows_of(lake, "accounting"):
            assert visible[name] == size, (step, name)
        rows = contents(lake)
        assert rows in (BEFORE, AFTER), step
        found[rows == AFTER] += 1
        assert not (lake / "_staging").exists()
        replace(lake)
        assert contents(lake) == AFTER, step
        shutil.rmtree(lake)
    assert step == stride * found.total()
    assert len(found) == 2


HOLD = (
    "import sys; from msmqwire.spark.lake.store import Lake\nwith Lake(sys.argv[1]): print('in', flush=True); input()"
)


def test_one_run_at_a_time(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "in\n"
    with pytest.raises(LakeError, match=rf"process {holder.pid} on .* is writing to this lake; one run at a time may"):
        Lake(tmp_path).__enter__()
    holder.kill()
    holder.communicate()
    with Lake(tmp_path) as lake:
        assert lake.staging.is_dir()


@pytest.mark.parametrize("text", ["", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "groups": 3}'])
def test_a_damaged_note_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "_lake.json").write_text(text)
    with pytest.raises(LakeError, match=r"_lake\.json is no note of a lake: "):
        Lake(tmp_path).__enter__()


def test_tables_without_a_note_are_refused(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "_lake.json").unlink()
    with pytest.raises(LakeError, match=r"_lake\.json is missing, and there are tables"):
        Lake(tmp_path).__enter__()


@pytest.mark.parametrize("root", ["s3://bucket/lake", "file:///lake"])
def test_a_lake_is_a_folder(root: str) -> None:
    with pytest.raises(ValueError, match="a lake is a folder"):
        Lake(root)


def test_a_file_that_was_to_be_moved_and_is_lost(tmp_path: Path) -> None:
    fill(tmp_path)
    with Lake(tmp_path) as lake:
        one = group(lake.staging, SECOND[0])
        Path(one.files[0].path).unlink()
        with pytest.raises(LakeError, match="is lost: it is neither there nor in _staging"):
            lake.commit([one])


def test_a_table_without_rows_can_be_read(tmp_path: Path) -> None:
    schema = pa.schema([("file", pa.string())])
    with Lake(tmp_path) as lake:
        lake.found({"faults": schema})
        lake.found({"faults": schema})
    (path,) = (tmp_path / "faults").rglob("*.parquet")
    assert pq.read_schema(path) == schema
