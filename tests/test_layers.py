"""A package imports only packages of lower layers, and no modules import each other in a circle."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.layers import (
    FLOOR,
    FLOORS,
    FRONT_DOORS,
    INNER_FLOORS,
    PACKAGE,
    PROTOCOLS,
    ROOT,
    imports,
    modules,
    package_of,
    sources,
)


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
    packages = {package_of(path) for path in sources()}
    assert {"errors", "wire", "columns", "mqsd"} <= packages
    assert packages <= {*FLOOR, *FRONT_DOORS}


@pytest.mark.parametrize("package", FLOOR)
def test_imports_run_down_only(package: str) -> None:
    wrong = []
    for path in sources():
        for name in imports(path) if package_of(path) == package else ():
            parts = name.split(".")
            target = parts[1] if len(parts) > 1 else "__init__"
            if target != package and {**FLOOR, "__version__": 0}.get(target, len(FLOORS)) >= FLOOR[package]:
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
    for module, imported in modules().items():
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
    alone = {module: names for module, names in modules().items() if not _is_package(module)}
    imported = {module: {name for name in names if name in alone} for module, names in alone.items()}
    assert "msmqwire.columns._batch" in imported["msmqwire.capture.files._blocks"]
    circle = _circle(imported)
    assert not circle, f"imported in a circle: {' -> '.join([*circle, circle[0]])}"


def _is_package(module: str) -> bool:
    return (ROOT / Path(*module.split("."))).is_dir()


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert _circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_the_reader_of_imports_sees_imports() -> None:
    found = {name for path in sources() for name in imports(path)}
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
    assert imports(path) == expected


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
