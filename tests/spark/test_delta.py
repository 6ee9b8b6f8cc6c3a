"""A lake of Delta tables: read back with deltalake, replaced, and with a driver that is killed at every step."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from msmqwire.spark import pipeline
from msmqwire.spark.lake.store import Lake, LakeError
from tests.spark import test_lake
from tests.spark.captures import CAPTURES, LOCAL, SESSION, packets, write_capture
from tests.spark.lakes import wanted
from tests.spark.test_lake import AFTER, BEFORE, FIRST, SECOND, be_killed, ended_at, group, was_ended


def rows_of(root: Path, table: str, version: int | None = None) -> list[tuple[str, int]]:
    rows = DeltaTable(root / table, version=version).to_pyarrow_table().to_pylist()
    assert not rows or {str(row["day"]) for row in rows} <= {test_lake.MONDAY, test_lake.TUESDAY}
    return sorted((row["file"], row["x"]) for row in rows)


def fill(root: Path) -> None:
    with Lake(root, "delta") as lake:
        lake.commit([group(lake.staging, days) for days in FIRST])


def replace(root: Path) -> None:
    with Lake(root, "delta") as lake:
        lake.commit([group(lake.staging, days) for days in SECOND], withdrawn={"key-three", "key-six"})


def check(root: Path, *wanted: list[tuple[str, int]]) -> None:
    """Once the lake was opened it has the rows before or those after, and their accounts."""
    with Lake(root, "delta"):
        rows = rows_of(root, "topology")
        assert rows in wanted
        assert Counter(name for name, _ in rows) == dict(rows_of(root, "accounting"))


def kill_at_every_step(root: Path) -> None:
    """To be run in a process of its own: what deltalake starts does not live on in a fork."""
    assert not was_ended(lambda: fill(root / "lake"))
    transaction = DeltaTable.create_write_transaction
    for step in range(1000):
        lake = root / str(step)
        shutil.copytree(root / "lake", lake)

        def work(lake: Path = lake, step: int = step) -> None:
            def in_steps(*arguments: object, **named: object) -> None:
                sys.audit("os.mkdir", str(lake))
                transaction(*arguments, **named)  # type: ignore[arg-type]
                sys.audit("os.mkdir", str(lake))

            DeltaTable.create_write_transaction = in_steps  # type: ignore[method-assign, assignment]
            with ended_at(step, lake, be_killed):
                replace(lake)

        killed = was_ended(work)
        assert not was_ended(lambda lake=lake: check(lake, BEFORE, AFTER))  # type: ignore[misc]
        assert not was_ended(lambda lake=lake: replace(lake))  # type: ignore[misc]
        assert not was_ended(lambda lake=lake: check(lake, AFTER))  # type: ignore[misc]
        shutil.rmtree(lake)
        if not killed:
            break
    assert step > 20
    os.kill(os.getpid(), signal.SIGUSR1)


@pytest.mark.long
def test_a_driver_killed_at_every_step(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=kill_at_every_step, args=(tmp_path,))
    process.start()
    process.join()
    # As it says that it came to its end
    assert process.exitcode == -signal.SIGUSR1


def test_earlier_versions_can_be_read(tmp_path: Path) -> None:
    fill(tmp_path)
    version = DeltaTable(tmp_path / "topology").version()
    replace(tmp_path)
    check(tmp_path, AFTER)
    assert rows_of(tmp_path, "topology", version) == BEFORE
    DeltaTable(tmp_path / "topology").vacuum(0, dry_run=False, enforce_retention_duration=False)
    check(tmp_path, AFTER)


def test_what_others_have_rewritten_is_not_replaced(tmp_path: Path) -> None:
    fill(tmp_path)
    DeltaTable(tmp_path / "topology").optimize.compact()
    with pytest.raises(LakeError, match=r"topology/day=.* is not part of its Delta table any more; what OPTIMIZE or"):
        replace(tmp_path)
    check(tmp_path, BEFORE)
    with Lake(tmp_path, "delta") as lake:
        lake.commit([group(lake.staging, {test_lake.MONDAY: {"seven": [7]}})])
    check(tmp_path, sorted([*BEFORE, ("seven", 7)]))


def test_captures_become_delta_tables(spark: SparkSession, tmp_path: Path) -> None:
    """The rows of plain Parquet files, in a transaction a table; what has grown is replaced."""
    growing = tmp_path / "growing.pcap"
    write_capture(growing, packets(3))
    sources = [*CAPTURES, SESSION, str(growing)]
    summary = pipeline.run(spark, sources, tmp_path / "delta", format="delta")
    pipeline.run(spark, sources, tmp_path / "plain")
    for table in ("topology", "notifications", "messages", "sessions", "faults", "accounting"):
        delta = DeltaTable(tmp_path / "delta" / table)
        plain = spark.read.parquet(str(tmp_path / "plain" / table)).toArrow()
        assert delta.version() == (1 if len(plain) else 0), table
        found = delta.to_pyarrow_table().select(plain.column_names).to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, plain.to_pylist()))
    assert summary.sources == 4
    assert pipeline.run(spark, sources, tmp_path / "delta", format="delta").known == 4
    write_capture(growing, packets(5))
    assert pipeline.run(spark, sources, tmp_path / "delta", format="delta").sources == 1
    rows = DeltaTable(tmp_path / "delta" / "topology").to_pyarrow_table(columns=["file", "frame"]).to_pylist()
    assert Counter(tuple(row.values()) for row in rows) == wanted(*sources)
    with pytest.raises(LakeError, match="not parquet"):
        pipeline.run(spark, LOCAL, tmp_path / "delta")
