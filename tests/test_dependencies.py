"""The lock and the list of licences name what pyproject.toml declares; `make lock` writes both."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
# What `make lock` pins: the extras that all commands of the Makefile install together
EXTRAS = re.search(r"^EXTRAS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)[1].split(",")  # type: ignore[index]
PYTHONS = [each.rpartition(" ")[2] for each in PROJECT["project"]["classifiers"] if "Python :: 3." in each]
# The licences are those of the first of them
IS_FIRST_PYTHON = PYTHONS[0] == f"{sys.version_info[0]}.{sys.version_info[1]}"

# A row of the list of licences
LICENCE = re.compile(r"^\| ([\w.-]+) +\| (\d\S*) +\| (.+?) +\|$", re.MULTILINE)


def declared(extras: Iterable[str]) -> Iterator[Requirement]:
    """The requirements of the package and of these extras, without its own name."""
    waiting, seen = list(extras), set()
    yield from map(Requirement, PROJECT["project"]["dependencies"])
    while waiting:
        extra = waiting.pop()
        if extra in seen:
            continue
        seen.add(extra)
        requires = (
            PROJECT["build-system"]["requires"]
            if extra == "build-system"
            else PROJECT["project"]["optional-dependencies"][extra]
        )
        for requirement in map(Requirement, requires):
            if canonicalize_name(requirement.name) == "msmqwire":
                waiting += requirement.extras
            else:
                yield requirement


def installed(extras: Iterable[str]) -> list[metadata.Distribution]:
    """The installed distributions that the package needs with these extras, directly or not."""
    found: dict[str, metadata.Distribution] = {}
    waiting = [(each, frozenset(each.extras)) for each in declared(extras) if _applies(each, ("",))]
    seen = set()
    while waiting:
        requirement, wanted = waiting.pop()
        name = canonicalize_name(requirement.name)
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        found[name] = distribution = metadata.distribution(name)
        for more in map(Requirement, distribution.requires or ()):
            if _applies(more, (*wanted, "")):
                waiting.append((more, frozenset(more.extras)))
    return [found[name] for name in sorted(found)]


def _applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    return requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in extras)


def locked(python: str) -> dict[str, str]:
    """The version of each package in ``requirements.lock`` for a Python on Linux; all have hashes."""
    pins = dict[str, str]()
    environment = {"python_version": python, "python_full_version": f"{python}.9"}
    for line in LOCK.replace("\\\n", " ").splitlines():
        match = re.fullmatch(r"(\S+==[^;]+?)( ; .+?)?((?:\s+--hash=sha256:[0-9a-f]{64})+)", line)
        assert match, line
        pin = Requirement(match[1] + (match[2] or ""))
        if pin.marker is None or pin.marker.evaluate(environment):
            name = canonicalize_name(pin.name)
            assert name not in pins, (python, line)
            pins[name] = str(pin.specifier).removeprefix("==")
    return pins


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_every_requirement_in_a_version_that_it_accepts(python: str) -> None:
    pins = locked(python)
    assert len(pins) > 100
    for requirement in declared(("build-system", *EXTRAS)):
        if requirement.marker is None or requirement.marker.evaluate({"python_version": python}):
            version = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version, prereleases=True), (requirement, version)


def test_the_lock_has_what_those_need() -> None:
    present = {canonicalize_name(each.metadata["Name"]) for each in metadata.distributions()}
    here = [
        extra
        for extra in ("build-system", *EXTRAS)
        if all(canonicalize_name(each.name) in present for each in declared([extra]) if _applies(each, ("",)))
    ]
    assert {"build-system", "test"} <= {*here}
    needed = {canonicalize_name(each.metadata["Name"]) for each in installed(here)}
    assert needed <= locked(f"{sys.version_info[0]}.{sys.version_info[1]}").keys()


def test_the_licences_are_those_of_what_users_install() -> None:
    rows = LICENCE.findall((ROOT / "docs" / "dependencies.md").read_text("utf-8"))
    names = {canonicalize_name(name): version for name, version, _ in rows}
    assert names.items() <= locked(PYTHONS[0]).items()
    needed = {canonicalize_name(each.metadata["Name"]) for each in installed(("all",))}
    assert needed == names.keys() if IS_FIRST_PYTHON else needed <= names.keys()
    assert not [row for row in rows if row[2] == "UNKNOWN"]
    assert not [row for row in rows if re.search(r"\b(A?GPL|GNU (Affero )?General)", row[2])]


def test_the_reasons_name_the_packages_of_each_extra() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.+?`) \| (.+?) \| .+ \|$", page, re.MULTILINE)
    told = {extra: {*packages.split(", ")} for extras, packages in rows for extra in re.findall(r"`(\w+)`", extras)}
    users = next(iter(map(Requirement, PROJECT["project"]["optional-dependencies"]["all"]))).extras
    assert told.keys() == users
    for extra, packages in told.items():
        assert {each.name for each in declared([extra])} - {"numpy"} >= packages


@pytest.mark.skipif(not IS_FIRST_PYTHON or sys.platform != "linux", reason="README has the sizes of one system")
def test_readme_has_the_size_of_each_extra() -> None:
    """Within a quarter: versions differ."""
    text = (ROOT / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (\(no extra\)|`.+?`) \| .+ \| ([\d,]+(?:, [\d,]+)*) \|$", text, re.MULTILINE)
    shown = {
        extra: int(size.replace(",", ""))
        for extras, sizes in rows
        for extra, size in zip(re.findall(r"`(\w+)`", extras) or [""], sizes.split(", "), strict=True)
    }
    users = next(iter(map(Requirement, PROJECT["project"]["optional-dependencies"]["all"]))).extras
    assert shown.keys() == {"", "all", *users - {"completion"}}
    for extra, size in shown.items():
        files = [file for each in installed([extra] if extra else []) for file in each.files or ()]
        assert 0.75 <= sum(file.size or 0 for file in files) / 1e6 / size <= 1.25, extra


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
