"""A package imports only packages on lower floors, and no modules import each other in a circle.

Imports are read from the sources, so an import inside a function or under ``TYPE_CHECKING`` counts as well.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "msmqwire"

#: One protocol each, with the same files.
PROTOCOLS = ("mqsd", "mqcn", "mqqb")

#: From the lowest floor up. Packages on one floor do not import each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "__version__"),
    ("wire",),
    ("columns",),
    ("properties",),
    ("propvariant",),
    ("formatname",),
    PROTOCOLS,
    ("directory",),
    ("discovery", "notification", "session"),
    ("capture",),
    ("routing",),
    ("net",),
    ("insight",),
    ("spark",),
    ("cli",),
)
FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}

#: The sub-packages of a package, from the lowest floor up. Modules of the package itself are on no floor.
INNER_FLOORS: dict[str, tuple[str, ...]] = {"capture": ("frames", "tcp", "files"), "mqqb": ("message", "session")}

#: ``msmqwire/__init__.py`` collects the public names, and ``python -m msmqwire`` starts the command line.
FRONT_DOORS = ("__init__", "__main__")

_CYTHON_IMPORT = re.compile(
    r"""^[ \t]*(?:
        from[ \t]+(?P<source>[\w.]+)[ \t]+c?import[ \t]+(?P<names>\([^)]*\)|[^\n#]*)
      | c?import[ \t]+(?P<modules>[^\n#]*)
      | cdef[ \t]+extern[ \t]+from[ \t]+"(?P<header>msmqwire/[^"]+)"
    )""",
    re.VERBOSE | re.MULTILINE,
)


def _sources() -> list[Path]:
    return sorted(path for suffix in ("py", "pyi", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{suffix}"))


def _package(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].split(".")[0]


def _absolute(module: str | None, level: int, path: Path) -> str:
    if not level:
        return module or ""
    parts = path.relative_to(ROOT).parent.parts
    return ".".join((*parts[: len(parts) - level + 1], *([module] if module else [])))


def _python_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(node.module, node.level, path)
            yield from (f"{source}.{alias.name}" for alias in node.names)


def _cython_imports(path: Path) -> Iterator[str]:
    for match in _CYTHON_IMPORT.finditer(path.read_text("utf-8")):
        if match["header"]:
            yield match["header"].replace("/", ".")
        elif match["modules"]:
            yield from (item.split()[0] for item in match["modules"].split(",") if item.strip())
        else:
            source = match["source"]
            level = len(source) - len(source.lstrip("."))
            source = _absolute(source[level:] or None, level, path)
            for item in match["names"].strip("() \t\n").split(","):
                if item.strip():
                    yield f"{source}.{item.split()[0]}"


def _imports(path: Path) -> list[str]:
    reader = _python_imports if path.suffix in (".py", ".pyi") else _cython_imports
    return [name for name in reader(path) if name.split(".")[0] == "msmqwire"]


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _modules() -> dict[str, set[str]]:
    """Each module with the modules that it imports; the sources of one module count together."""
    paths: dict[str, list[Path]] = {}
    for path in _sources():
        paths.setdefault(_module(path), []).append(path)
    found: dict[str, set[str]] = {}
    for module, sources in paths.items():
        names = {name for path in sources for name in _imports(path)}
        # A name is a module, or something in one
        found[module] = {name if name in paths else name.rpartition(".")[0] for name in names} & {*paths} - {module}
    return found


def _circle(modules: dict[str, set[str]]) -> list[str]:
    """Modules of which each imports the next, the last the first; empty if there are none."""
    done: set[str] = set()

    def search(module: str, path: list[str]) -> list[str]:
        if module in path:
            return path[path.index(module) :]
        if module not in done:
            for name in sorted(modules[module]):
                if found := search(name, [*path, module]):
                    return found
            done.add(module)
        return []

    return next((found for module in sorted(modules) if (found := search(module, []))), [])


def test_every_package_has_its_floor() -> None:
    packages = {_package(path) for path in _sources()}
    assert {"errors", "wire", "columns", "mqsd"} <= packages
    assert packages <= {*FLOOR, *FRONT_DOORS}


@pytest.mark.parametrize("package", FLOOR)
def test_imports_run_down_only(package: str) -> None:
    wrong = []
    for path in _sources():
        for name in _imports(path) if _package(path) == package else ():
            parts = name.split(".")
            target = parts[1] if len(parts) > 1 else "__init__"
            if target != package and FLOOR.get(target, len(FLOORS)) >= FLOOR[package]:
                wrong.append((str(path.relative_to(PACKAGE)), name))
    assert not wrong, f"{package} must not import {wrong}"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_protocols_have_the_files_of_the_architecture_page(protocol: str) -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = page.partition("The protocol folders have the same files:")[2].partition("\n\n")[2].partition("\n\n")[0]
    files = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert {"schema.py", "_kernel.pyx"} < {*files}
    assert not [name for name in files if not (PACKAGE / protocol / name).exists()]
    folders = [path.parent for path in (PACKAGE / protocol).glob("*/__init__.py")]
    assert {path.name for path in folders} == {*INNER_FLOORS.get(protocol, ())}
    assert not [path for path in folders for name in ("schema.py", "_kernel.pyx") if not (path / name).exists()]


@pytest.mark.parametrize("package", INNER_FLOORS)
def test_imports_between_sub_packages_run_down_only(package: str) -> None:
    floors = INNER_FLOORS[package]
    folders = {path.name for path in (PACKAGE / package).iterdir() if (path / "__init__.py").exists()}
    assert folders == {*floors}
    for module, imported in _modules().items():
        floor = _inner_floor(module, package)
        wrong = {name for name in imported if floor < _inner_floor(name, package)}
        assert floor < 0 or not wrong, f"{module} must not import {sorted(wrong)}"


def _inner_floor(module: str, package: str) -> int:
    """The floor of a module in one of the sub-packages; -1 for any other module."""
    _, name, inner, *_ = (*module.split("."), "", "")
    floors = INNER_FLOORS[package]
    return floors.index(inner) if name == package and inner in floors else -1


def test_no_modules_import_each_other() -> None:
    # A package's __init__ collects the names of its modules, which is no dependency of theirs
    modules = {module: names for module, names in _modules().items() if not _is_package(module)}
    modules = {module: {name for name in names if name in modules} for module, names in modules.items()}
    assert "msmqwire.columns._batch" in modules["msmqwire.capture.files._blocks"]
    circle = _circle(modules)
    assert not circle, f"imported in a circle: {' -> '.join([*circle, circle[0]])}"


def _is_package(module: str) -> bool:
    return (ROOT / Path(*module.split("."))).is_dir()


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert _circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_the_reader_of_imports_sees_imports() -> None:
    found = {name for path in _sources() for name in _imports(path)}
    assert "msmqwire.errors.DecodeError" in found
    assert any(name.startswith("msmqwire.wire.cursor.") for name in found)
    assert any(name.startswith("msmqwire.columns._buffer.") for name in found)
    assert len(found) > 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from msmqwire.a.b cimport C, d\n", ["msmqwire.a.b.C", "msmqwire.a.b.d"]),
        ("from msmqwire.a cimport (\n    B,\n    C as D,\n)\n", ["msmqwire.a.B", "msmqwire.a.C"]),
        ("def f():\n    from msmqwire.cli import main\n", ["msmqwire.cli.main"]),
        ("cimport msmqwire.a as a, msmqwire.b\n", ["msmqwire.a", "msmqwire.b"]),
        ('cdef extern from "msmqwire/wire/simd.h" nogil:\n', ["msmqwire.wire.simd.h"]),
        ("# from msmqwire.cli import main\n", []),
    ],
)  # fmt: skip
def test_reads_cython_imports(text: str, expected: list[str], tmp_path: Path) -> None:
    path = tmp_path / "some.pyx"
    path.write_text(text, "utf-8")
    assert _imports(path) == expected


@pytest.mark.parametrize("module", ["msmqwire", "msmqwire.mqsd", "msmqwire.net", "msmqwire.errors"])
def test_import_needs_nothing_optional(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "heavy = {'pyarrow', 'pyspark', 'pandas', 'rich', 'hypothesis', 'psutil', 'scapy'} & set(sys.modules)\n"
        "sys.exit(f'imported {sorted(heavy)}' if heavy else 0)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
