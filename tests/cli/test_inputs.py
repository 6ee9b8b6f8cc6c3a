"""Commands that read a lake: without Spark, without Java, and with the rows that they read from captures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from msmqwire.spark import lake as lakes
from msmqwire.spark import pipeline
from tests.cli.support import LOCAL, OTHER, SESSION, environ, refused, run

#: Runs the command where Spark cannot be imported and Java cannot be started.
WITHOUT_SPARK = """\
import sys


class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pyspark", "py4j", "pandas"):
            raise ModuleNotFoundError(f"{name} is not installed", name=name)


sys.meta_path.insert(0, Refuses())
from msmqwire.cli import command

command()
"""
NO_JAVA = {"JAVA_HOME": "/nonexistent"}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lakes") / "lake"
    pipeline.run(spark, [str(LOCAL), str(OTHER)], path)
    pipeline.run(spark, [str(SESSION)], path)
    return path


def without_spark(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT_SPARK, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environ(**NO_JAVA), timeout=100)


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["lake", "history"], "2  "),
        (["report", "-o", "-", "--lake"], "<!DOCTYPE html>"),
        *(
            pytest.param(arguments, output, marks=pytest.mark.long)
            for arguments, output in (
                (["lake", "check"], ""),
                (["lake", "optimize"], "topology: "),
                (["lake", "vacuum"], ""),
                (["summary", "-T", "json", "--lake"], '"table":"hosts"'),
                (["detect", "--expect", "10.20.1.10", "-T", "json", "--lake"], '"rule":"unexpected-directory-server"'),
            )
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_without_spark_and_java(lake: Path, arguments: list[str], output: str) -> None:
    done = without_spark(*arguments, lake)
    assert "pyspark" not in done.stderr
    assert done.returncode in (0, 2), done.stderr
    assert output in done.stdout


def rows_of(text: str) -> list[dict[str, Any]]:
    """The rows of JSON lines, without what differs: paths of files, and times below a microsecond."""
    rows = []
    for line in text.splitlines():
        row = json.loads(line)
        for name in ("file", "frames", "in_file"):
            row.pop(name, None)
        for name in ("first_seen", "last_seen"):
            if row.get(name):
                row[name] = row[name][:23]
        rows.append(row)
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize("selection", [[], ["--address", "10.20.1.0/24"], ["--since", "2024-03-04T08:00:20Z"]])
@pytest.mark.parametrize("command", ["summary", "detect"])
def test_a_lake_says_what_its_captures_say(lake: Path, command: str, selection: list[str]) -> None:
    expected = ["--expect", "192.0.2.1"] if command == "detect" else []
    status, output, _ = run(command, LOCAL, OTHER, SESSION, "-T", "json", *selection, *expected)
    found, there, counts = run(command, "--lake", lake, "-T", "json", *selection, *expected)
    # A lake has no rows of attempts to connect
    wanted = [row for row in rows_of(output) if row.get("table") != "connections"]
    assert rows_of(there) == wanted != []
    assert found == status
    assert counts.startswith("39 frames: ")


def test_a_replay_counts_the_faults_of_notifications_alone(lake: Path) -> None:
    status, _, said = run("replay", "--lake", lake)
    assert status == run("replay", LOCAL, OTHER, SESSION)[0] == 0
    assert said.startswith(
        "39 frames: 16 datagrams, 18 segments, 5 of other protocols, 0 malformed\n4 rows of notifications\n"
    )
    assert "faults" not in said


def test_a_lake_that_lacks_columns(lake: Path, tmp_path: Path) -> None:
    """As one of an earlier version: they are null. A column of a type that cannot be read is refused for its table."""
    old = shutil.copytree(lake, tmp_path / "old")
    missing = ["outcome", "rule", "unverified", "sender_id_type", "security_id"]
    table = DeltaTable(old / "notifications")
    rows = table.to_pyarrow_table()
    write_deltalake(table, rows.drop_columns(missing), mode="overwrite", schema_mode="overwrite")
    (found,) = lakes.batches(old, "notifications", ["operation", "outcome"])
    assert found.to_pydict() == {"operation": rows["operation"].to_pylist(), "outcome": [None] * len(rows)}
    assert run("lake", "check", old)[0] == 0
    table = DeltaTable(old / "notifications")
    other = rows.set_column(rows.schema.get_field_index("frame"), "frame", rows["frame"].cast(pa.string()))
    write_deltalake(table, other, mode="overwrite", schema_mode="overwrite")
    said = (
        f"{old}/notifications: its column frame has the type string, not int64: it is of another version of msmqwire; "
        "run msmqwire pipeline into a new lake"
    )
    assert refused("replay", "--lake", old) == f"msmqwire: {said}\n"
    assert sum(map(len, lakes.batches(old, "topology"))) == 14
    status, problems, _ = run("lake", "check", old)
    assert (status, problems) == (2, f"{said}\n")


def test_options_that_a_lake_does_not_have(lake: Path) -> None:
    assert refused("summary", "--lake", lake, "--ports", "1801").startswith("msmqwire: --ports: the ports of a lake")
    assert "name captures or a lake, not both" in refused("detect", LOCAL, "--lake", lake)
    assert "name captures, or a lake with --lake" in refused("report", "-o", "-")
    assert "is not a lake" in refused("report", "-o", "-", "--lake", lake.parent)
