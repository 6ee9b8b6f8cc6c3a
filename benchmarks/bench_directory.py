"""A directory in memory: loading beside parsing the file alone, a lookup beside a dictionary and beside a scan.

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS
from benchmarks.ratios import Contender, measure
from benchmarks.report import Report
from benchmarks.scale import Scale
from msmqwire.directory import Equal, MemoryDirectory, QueueManager

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

_SCANNED = 10


@pytest.fixture(scope="module")
def tables(scale: Scale) -> dict[str, list[dict[str, Any]]]:
    """100,000 queue managers in 1,000 sites, or a tenth of them."""
    sites = [{"identifier": str(UUID(int=1 << 100 | n)), "name": f"site{n}"} for n in range(scale.rows // 1000)]
    machines = [
        {
            "identifier": str(UUID(int=2 << 100 | number)),
            "computer_name": f"HOST{number}",
            "qualified_computer_name": f"host{number}.contoso.example",
            "site_identifier_list": [sites[number % len(sites)]["identifier"]],
            "routing_server": number % 50 == 0,
        }
        for number in range(scale.rows // 10)
    ]
    return {"site": sites, "queue_manager": machines}


@pytest.fixture(scope="module")
def files(tables: dict[str, list[dict[str, Any]]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same enterprise as JSON and as TOML."""
    folder = tmp_path_factory.mktemp("enterprise")
    found = {form: folder / f"enterprise.{form}" for form in ("json", "toml")}
    found["json"].write_text(json.dumps(tables), "utf-8")
    with found["toml"].open("w", encoding="utf-8") as file:
        for table, entries in tables.items():
            for entry in entries:
                file.write(f"[[{table}]]\n" + "".join(f"{name} = {json.dumps(entry[name])}\n" for name in entry))
    return found


@pytest.mark.parametrize("form", ["json", "toml"])
def test_load(benchmark: BenchmarkFixture, scale: Scale, report: Report, files: dict[str, Path], form: str) -> None:
    parse = {"json": json.loads, "toml": tomllib.loads}[form]
    machines = [*MemoryDirectory.load(files[form]).read_all(QueueManager)]
    assert len(machines) == scale.rows // 10
    contenders = [
        Contender("the parser alone", lambda: parse(files[form].read_text("utf-8")), len(machines)),
        Contender(OURS, lambda: MemoryDirectory.load(files[form]), len(machines)),
    ]
    _report(report, scale, f"A directory of {len(machines):,} queue managers loaded from {form.upper()}", contenders)
    benchmark.pedantic(contenders[1].run, rounds=1, iterations=1)


def test_lookup(benchmark: BenchmarkFixture, scale: Scale, report: Report, files: dict[str, Path]) -> None:
    directory = MemoryDirectory.load(files["json"])
    names = [machine.computer_name for machine in directory.read_all(QueueManager)]
    known = {machine.computer_name: machine for machine in directory.read_all(QueueManager)}

    def look_up() -> None:
        for name in names:
            found = directory.read_directory(QueueManager, [Equal("computer_name", name)])
            assert found is known[name]

    def scan() -> None:
        for name in names[-_SCANNED:]:
            assert next(one for one in known.values() if one.computer_name == name) is known[name]

    contenders = [
        Contender("a dictionary", lambda: [known[name] for name in names], len(names)),
        Contender(OURS, look_up, len(names)),
        Contender("a scan", scan, _SCANNED),
    ]
    _report(report, scale, f"One of {len(names):,} queue managers by its name", contenders)
    benchmark.pedantic(look_up, rounds=1, iterations=1)


def _report(report: Report, scale: Scale, title: str, contenders: list[Contender]) -> None:
    """Time all in turn, and report how many times as long as the first the others take."""
    first, *others = contenders
    rounds = measure(contenders, scale.slow_rounds, least=3, seconds=scale.seconds)
    report.section(title)
    report.heading("times slower", "object")
    report.line(first.name, f"{1e9 * rounds.per_packet(first.name):12,.0f}")
    for other in others:
        report.against(rounds, first.name, other.name)
