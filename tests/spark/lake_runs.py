"""Runs of a lake without Spark, over captures that are only a name and a number of rows; and runs that are stopped."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from msmqwire.spark.lake import committing as protocol
from msmqwire.spark.lake.accounting import Decoded, SourceAccount
from msmqwire.spark.lake.committing import Lake
from msmqwire.spark.lake.others import note_deletions
from msmqwire.spark.lake.places import deleted_here, united
from msmqwire.spark.lake.planning import Identity, Known, Relation
from msmqwire.spark.lake.schemas import file_columns
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.lake.tables import LakeTable
from msmqwire.spark.lake.writing import DayFiles, WrittenFile
from tests.spark.captures import DAY, MONDAY

#: Captures: how many bytes, and rows, each has.
Captures = Mapping[str, int]
SETTINGS = "settings"
TWO = ("topology", "faults")
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([__name__])
#: Random schedules of the long tests, and half as many of each kind of repair; 200 schedules take a quarter of an hour.
SCHEDULES = int(os.environ.get("MSMQWIRE_SCHEDULES", "16"))


def batched(items: Iterable[tuple[str, int]], size: int) -> Iterator[list[tuple[str, int]]]:
    left = list(items)
    return (left[at : at + size] for at in range(0, len(left), size))


def identity_of(file: str, rows: int) -> Identity:
    """The identity of a capture; one with more rows begins with one of the same name with fewer."""
    return Identity(f"{file} of {rows}", rows, file, file, [f"opening of {file}"], "")


def relate(row: SourceAccount, known: Iterable[Known]) -> Relation:
    """How a capture is to others of its name."""
    assert row.identity is not None
    relation = Relation()
    for one in known:
        if one.length > row.identity.length:
            relation.part_of = one
        else:
            relation.grown_from.append(one)
    return relation


def write_rows(
    storage: Storage,
    captures: Mapping[str, tuple[str, int]],
    name: str,
    deletions: Mapping[str, bytes | None] = MappingProxyType({}),
    left_out: Counter[tuple[str, str]] | None = None,
) -> list[WrittenFile]:
    """Files with the rows of captures, over two days, and a fault for each capture; by capture and rows."""
    files = []
    for table in TWO:
        with DayFiles(storage, table, file_columns(table), "snappy", name) as days:
            for file, (number, rows) in captures.items():
                count = rows if table == "topology" else 1
                times = [MONDAY + at % 2 * DAY for at in range(count)]
                values: dict[str, list[Any]] = {
                    "file": [file] * count,
                    "frame": list(range(count)),
                    "time": times,
                    "src": [f"10.0.0.{at % 256}" for at in range(count)],
                }
                types = {column.source: column.arrow for column in file_columns(table) if column.name == column.source}
                types |= {"time": pa.timestamp("ns", "UTC")}
                del types["capture"]
                columns = {one: pa.array(values.get(one, [None] * count), type_) for one, type_ in types.items()}
                batch, gone = pa.record_batch(columns), deletions.get(file)
                if gone is not None and left_out is not None:
                    kept: Any = pc.invert(deleted_here(batch, table, gone))
                    batch = batch.filter(kept)
                    left_out[file, table] += count - len(batch)
                if len(batch):
                    days.write(batch, number)
        files += days.files
    storage.sync(f"{file.table}/{file.path}" for file in files)
    return files


def decoded(lake: Lake, captures: Captures) -> Decoded:
    """Captures whose rows share files."""
    identities = {file: identity_of(file, rows) for file, rows in captures.items()}
    rows = []
    deletions: dict[str, bytes | None] = {}
    for file, count in captures.items():
        account = SourceAccount(file, identities[file], bytes=count)
        account.grown_from = relate(account, lake.known.alike(identities[file], file)).grown_from
        account.planned_at = lake.run
        account.rows, account.faults = {"topology": count}, {"truncated": 1}
        account.size, account.modified_ns, account.settings = count, count, SETTINGS
        before = lake.known.capture(identities[file].capture)
        replaced = account.grown_from if before is None else [*account.grown_from, before]
        account.deletions = deletions[file] = united(one.deletions for one in replaced)
        rows.append(account)
    named = {file: (identities[file].capture, rows) for file, rows in captures.items()}
    left_out: Counter[tuple[str, str]] = Counter()
    files = write_rows(lake.storage, named, uuid.uuid4().hex, deletions, left_out)
    for account in rows:
        account.deleted = {table: left_out[account.file, table] for table in TWO}
    return Decoded(rows, files)


def run(root: str | Path, captures: Captures, *, options: Mapping[str, str] | None = None, share: int = 2) -> None:
    """A run over captures, some of which share files."""
    lake = Lake(Storage.of(root, options), create=True)
    lake.apply_committed_runs()
    note_deletions(lake)
    while new := [file for file, rows in captures.items() if not _holds(lake, file, rows)]:
        groups = []
        # Captures that replace others share no files with new ones
        for grown in (False, True):
            some = {
                file: captures[file]
                for file in new
                if bool(lake.known.alike(identity_of(file, captures[file]), file)) == grown
            }
            groups += [decoded(lake, dict(part)) for part in batched(some.items(), share)]
        refused = lake.commit(groups, "snappy", relate)
        share = 1 if refused else share


def _holds(lake: Lake, file: str, rows: int) -> bool:
    identity = identity_of(file, rows)
    longer = (one.length > rows for one in lake.known.alike(identity, file))
    return lake.known.holds(identity.capture, SETTINGS) or any(longer)


def contents(root: str | Path) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of a lake, as any reader of Delta tables finds them, without what tells one run from another."""
    found = {}
    for table, names in (("topology", ["file", "frame"]), ("faults", ["file"]), ("accounting", ["file", "length"])):
        rows: Counter[tuple[Any, ...]] = Counter()
        for path in active_files(root, table):
            read = pq.ParquetFile(path).read([*names, "capture"]).to_pylist()
            rows.update(tuple(row[name] for name in names) for row in read)
        found[table] = rows
    return found


def active_files(root: str | Path, table: str) -> list[str]:
    """The paths of the files of a table."""
    return [uri.removeprefix("file://") for uri in DeltaTable(Path(root, table)).file_uris()]


def expected(captures: Captures) -> dict[str, Counter[tuple[Any, ...]]]:
    """The rows of a lake of these captures."""
    return {
        "topology": Counter((file, frame) for file, rows in captures.items() for frame in range(rows)),
        "faults": Counter((file,) for file in captures),
        "accounting": Counter(captures.items()),
    }


def optimize(root: str | Path) -> None:
    """Merge files as another program does, which knows nothing of runs."""
    for table in ("topology", "faults", "accounting"):
        if DeltaTable.is_deltatable(str(Path(root, table))):
            # Others may come first
            with contextlib.suppress(CommitFailedError):
                DeltaTable(Path(root, table)).optimize.compact()


def move(root: str | Path, table: str, every: int = 1) -> None:
    """Move files of a table as another program does whose paths have random prefixes in place of days."""
    delta = DeltaTable(Path(root, table))
    log = Path(root, table, "_delta_log")
    lines = [json.loads(line) for entry in sorted(log.glob("*.json")) for line in entry.read_text().splitlines()]
    active = {str(Path(path).relative_to(Path(root, table))) for path in active_files(root, table)}
    added = [line["add"] for line in lines if "add" in line and line["add"]["path"] in active][::every]
    actions: list[AddAction | RemoveAction] = []
    for number, file in enumerate(added):
        path = f"{number:02x}/part-{number:05}.snappy.parquet"
        Path(root, table, path).parent.mkdir()
        shutil.copy(Path(root, table, file["path"]), Path(root, table, path))
        rest = file["size"], file["partitionValues"], file["modificationTime"], False
        actions.append(RemoveAction(file["path"], False, file["modificationTime"], *rest[:2]))
        actions.append(AddAction(path, *rest, file["stats"]))
    delta.create_write_transaction(actions, "append", delta.schema(), ["day"])


class Stopped(BaseException):
    """Ends a run in one of its steps."""


def be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    raise Stopped


# What changes a lake: a run may end before each of these, and after it
_STEPS: list[tuple[Any, str]] = [
    (Storage, "create"),
    (Storage, "sync"),
    (DeltaTable, "create"),
    (DeltaTable, "create_write_transaction"),
    (LakeTable, "refresh"),
    (protocol.Lake, "apply_committed_runs"),
]


@contextlib.contextmanager
def stopped_at(step: int, end: Callable[[], None]) -> Iterator[Callable[[], int]]:
    """End in a step, counted from 0; the number of the steps that were left."""
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            end()

    def counted(method: Any) -> Any:
        def wrapper(*arguments: Any, **named: Any) -> Any:
            count()
            result = method(*arguments, **named)
            count()
            return result

        return wrapper

    originals = [(owner, name, owner.__dict__[name]) for owner, name in _STEPS]
    try:
        for owner, name, method in originals:
            is_static = isinstance(method, classmethod | staticmethod)
            setattr(owner, name, staticmethod(counted(getattr(owner, name))) if is_static else counted(method))
        yield lambda: left
    finally:
        for owner, name, method in originals:
            setattr(owner, name, method)


def run_and_die(root: str, captures: Captures, step: int) -> None:
    """A run in a process of its own that is killed in a step, unless it comes to its end before that."""
    with stopped_at(step, be_killed):
        run(root, captures)


def merge(root: str) -> None:
    """Merge the files of a lake, as every so many runs and ``optimize`` do."""
    lake = Lake(Storage.of(root))
    lake.apply_committed_runs()
    for table in ("topology", "faults", "accounting"):
        lake.table(table).merge()


def merge_and_die(root: str, step: int) -> None:
    """Merge the files of a lake in a process that is killed in a step, unless it comes to its end before that."""
    with stopped_at(step, be_killed):
        merge(root)


def watch(root: str, over: str) -> None:
    """Read the table ``topology`` as any reader of Delta tables does, until a file appears.

    Each time, every capture must have each of its rows once, and no fewer rows than the time before.
    """
    before: Counter[str] = Counter()
    while not Path(over).exists():
        try:
            found = contents(root)["topology"]
        except (FileNotFoundError, TableNotFoundError):
            # Deleted by vacuum after the list was read, or not there yet
            continue
        rows = Counter(file for file, _ in found.elements())
        assert found == Counter((file, frame) for file, count in rows.items() for frame in range(count))
        assert all(rows[file] >= count for file, count in before.items())
        before = rows


def _without_sync(target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Do something without waiting for the disk, as the fixture ``no_sync`` does: killed processes lose no writes."""
    os.fsync = lambda fd: None
    target(*arguments)


def in_processes(*calls: tuple[Callable[..., None], tuple[Any, ...]]) -> list[int | None]:
    """Do something in several processes at once; their exit codes."""
    processes = [PROCESSES.Process(target=_without_sync, args=call) for call in calls]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]
