"""The lock, the list of licences and the bill of materials name what pyproject.toml declares, and nothing stale."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from tests.dependencies import (
    GATE,
    LICENCES,
    ROOT,
    USERS,
    bill_of_materials,
    declared,
    installed,
    licences_page,
    locked,
)


def here(names: set[str]) -> bool:
    """Whether all of these packages are installed: `make test` installs one extra, the gate all."""
    present = {canonicalize_name(each.metadata["Name"]) for each in metadata.distributions()}
    return names <= present


def test_the_lock_has_every_requirement_in_a_version_that_it_accepts() -> None:
    pins = {pin.name: pin for pin in locked()}
    assert len(pins) == len(locked())
    for requirement in declared(GATE):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            pin = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(pin.version, prereleases=True), (requirement, pin)
    assert all(pin.hashes for pin in pins.values())


def test_the_lock_has_what_those_need() -> None:
    if not here({canonicalize_name(each.name) for each in declared(GATE) if each.marker is None}):
        pytest.skip("not every extra of the gate is installed")
    assert {canonicalize_name(each.metadata["Name"]) for each in installed(GATE)} == {pin.name for pin in locked()}


def test_the_licences_are_those_of_what_users_install() -> None:
    names = re.findall(r"^\| ([\w.-]+) \| \S+ \| (.+) \|$", LICENCES.read_text("utf-8"), re.MULTILINE)
    assert [name for name, _ in names] == re.findall(r"^\| ([\w.-]+) \| \S+ \| ", licences_page(), re.MULTILINE)
    assert all(licence != "not stated" for _, licence in names)
    copyleft = [name for name, licence in names if re.search(r"\b(A?GPL|GNU (Affero )?General)", licence)]
    assert not copyleft


def test_the_bill_of_materials() -> None:
    bill = bill_of_materials()
    assert json.loads(json.dumps(bill)) == bill == bill_of_materials()
    components = {each["name"]: each for each in bill["components"]}  # type: ignore[attr-defined]
    assert set(components) == {canonicalize_name(each.metadata["Name"]) for each in installed(USERS)}
    for name, each in components.items():
        assert each["purl"] == f"pkg:pypi/{name}@{each['version']}"
        assert each["licenses"]
    assert components["numpy"]["hashes"]


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports as it is imported itself."""
    for statement in ast.parse(path.read_text("utf-8")).body:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield str(statement.module)
            yield from (f"{statement.module}.{alias.name}" for alias in statement.names)


def test_tests_import_what_a_newcomer_has() -> None:
    """`make test` installs the extra `test` alone; files of benchmarks that tests import are read as well."""
    provided = metadata.packages_distributions()
    extras = {each.metadata["Name"] for each in installed(("build-system", "test"))}
    ours = {path.stem if path.suffix else path.name for path in ROOT.iterdir()}
    waiting = {path for path in (ROOT / "tests").rglob("*.py") if path.name.startswith(("test_", "conftest"))}
    seen = set(waiting)
    missing = set()
    while waiting:
        path = waiting.pop()
        for module in imported(path):
            first = module.partition(".")[0]
            if first in ours:
                file = ROOT / f"{module.replace('.', '/')}.py"
                if file.exists() and file not in seen:
                    seen.add(file)
                    waiting.add(file)
            elif first not in sys.stdlib_module_names and not extras & set(provided.get(first, ())):
                missing.add((str(path.relative_to(ROOT)), first))
    assert ROOT / "benchmarks" / "messages.py" in seen
    assert not missing
