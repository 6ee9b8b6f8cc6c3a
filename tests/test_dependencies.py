"""The lock and the list of licences name what pyproject.toml declares; `make lock` writes both."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCK = (ROOT / "requirements.lock").read_text("utf-8")
# A later Python needs fewer packages than the one that the lock was made with
PYTHON_OF_LOCK = f"with Python {sys.version_info[0]}.{sys.version_info[1]}\n" in LOCK

# A row of the page, the first of them its heads of columns
LICENCE = re.compile(r"^\| ([\w.-]+) +\| (\S+) +\| (.+?) +\|$", re.MULTILINE)


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


def locked() -> dict[str, str]:
    """The version of each package in ``requirements.lock``; all have hashes."""
    lines = LOCK.replace("\\\n", " ").splitlines()
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            match = re.fullmatch(r"(\S+)==(\S+)(?:\s+--hash=sha256:[0-9a-f]{64})+", line)
            assert match, line
            assert match[1] not in pins, line
            pins[match[1]] = match[2]
    return pins


def test_the_lock_has_every_requirement_in_a_version_that_it_accepts() -> None:
    pins = locked()
    extras = PROJECT["tool"]["pip-tools"]["extra"]
    for requirement in declared(("build-system", *extras)):
        if _applies(requirement, ("",)):
            version = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version, prereleases=True), (requirement, version)


def test_the_lock_has_what_those_need() -> None:
    """All of it, and nothing else where each extra is installed, for the Python of the lock; `make test` has one."""
    present = {canonicalize_name(each.metadata["Name"]) for each in metadata.distributions()}
    extras = ["build-system", *PROJECT["tool"]["pip-tools"]["extra"]]
    here = [
        extra
        for extra in extras
        if all(canonicalize_name(each.name) in present for each in declared([extra]) if _applies(each, ("",)))
    ]
    assert {"build-system", "test"} <= {*here}
    needed = {canonicalize_name(each.metadata["Name"]) for each in installed(here)}
    assert needed <= locked().keys()
    assert here != extras or not PYTHON_OF_LOCK or needed == locked().keys()


def test_the_licences_are_those_of_what_users_install() -> None:
    rows = LICENCE.findall((ROOT / "docs" / "dependencies.md").read_text("utf-8"))[1:]
    names = {canonicalize_name(name): version for name, version, _ in rows}
    assert names.items() <= locked().items()
    needed = {canonicalize_name(each.metadata["Name"]) for each in installed(("all",))}
    assert needed == names.keys() if PYTHON_OF_LOCK else needed <= names.keys()
    assert not [row for row in rows if row[2] == "UNKNOWN"]
    assert not [row for row in rows if re.search(r"\b(A?GPL|GNU (Affero )?General)", row[2])]


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
