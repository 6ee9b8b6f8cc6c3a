"""Lakes of versions with other columns: absent ones are null, unknown ones stay, new ones are added by the next run."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from msmqwire.spark import lake as lakes
from msmqwire.spark.lake import LakeError, schemas
from msmqwire.spark.lake import accounting as accounts
from msmqwire.spark.schema import SparkColumn
from tests.spark.lake_runs import contents, expected, run

FIRST = {"a": 3, "b": 5, "c": 1}
MODULES = ("accounting", "committing", "schemas", "decoding")
EXTRA = SparkColumn("extra", "extra", pa.int64())


@contextmanager
def version(monkeypatch: pytest.MonkeyPatch, *, more: bool) -> Iterator[None]:
    """As a version of this package with a column more, or a column fewer, in each table."""
    columns, accounting = schemas.file_columns, accounts.ACCOUNTING

    def changed(table: str) -> tuple[SparkColumn, ...]:
        found = columns(table)
        return (*found, EXTRA) if more else tuple(one for one in found if one.name != "encapsulation")

    rows = accounting.append(pa.field("extra", pa.int64()))
    if not more:
        rows = pa.schema([field for field in accounting if field.name != "packets"])
    with monkeypatch.context() as patch:
        for name in ("tests.spark.lake_runs", *(f"msmqwire.spark.lake.{module}" for module in MODULES)):
            module = importlib.import_module(name)
            if hasattr(module, "file_columns"):
                patch.setattr(module, "file_columns", changed)
            if hasattr(module, "ACCOUNTING"):
                patch.setattr(module, "ACCOUNTING", rows)
        yield


def use(root: Path, captures: dict[str, int], wanted: set[str] | None = None) -> None:
    """All that is done with a lake."""
    run(root, captures)
    assert contents(root) == expected(captures)
    assert lakes.check(root) == lakes.repair(root) == []
    for table in ("topology", "accounting"):
        (first, *_) = lakes.batches(root, table)
        assert wanted is None or wanted <= set(first.schema.names)
    lakes.optimize(root)
    assert contents(root) == expected(captures)
    assert sum(len(batch) for batch in lakes.batches(root, "topology")) == sum(captures.values())


@pytest.mark.parametrize("more", [True, False])
def test_a_lake_of_another_version_is_read_and_continued_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: bool
) -> None:
    root, captures = tmp_path / "lake", dict(FIRST)
    use(root, captures)
    for number in range(2):
        captures |= {"a": 6 + 3 * number, f"new {number}": 2}
        with version(monkeypatch, more=more):
            use(root, captures, {"extra"} if more else None)
        captures |= {"b": 7 + 3 * number, f"old {number}": 2}
        use(root, captures)
    names = {table: DeltaTable(root / table).schema().to_arrow().names for table in ("topology", "accounting")}
    assert ("extra" in names["topology"], "extra" in names["accounting"]) == (more, more)
    assert {"encapsulation", "packets"} <= {*names["topology"], *names["accounting"]}


def test_a_column_that_cannot_be_read_refuses_its_table_alone(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    run(root, FIRST)
    log = root / "topology" / "_delta_log" / f"{0:020}.json"
    text = log.read_text()
    column = r"{\"name\":\"frame\",\"type\":\"%s\""
    assert column % "long" in text
    log.write_text(text.replace(column % "long", column % "string"))
    with pytest.raises(LakeError, match="its column frame has the type string"):
        list(lakes.batches(root, "topology"))
    assert sum(len(batch) for batch in lakes.batches(root, "faults")) == 3
    (problem,) = lakes.check(root)
    assert "its column frame" in problem


def test_a_newer_version_of_lakes_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    run(root, FIRST)
    for name in ("accounting", "topology"):
        log = root / name / "_delta_log" / f"{0:020}.json"
        text = log.read_text()
        assert '"msmqwire.lake":"2"' in text
        log.write_text(text.replace('"msmqwire.lake":"2"', '"msmqwire.lake":"3"'))
    before = sorted(root.rglob("*"))
    message = "is of version 3 of lakes; this msmqwire reads 2"
    for act in (lakes.history, lakes.repair, lambda root: run(root, {**FIRST, "d": 1})):
        with pytest.raises(LakeError, match=message):
            act(root)
    assert message in lakes.check(root)[0]
    assert sorted(root.rglob("*")) == before
