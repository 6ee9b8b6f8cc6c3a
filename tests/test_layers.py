"""Dependencies run down only: a room imports the rooms below it, never one above or beside it.

Imports are read from the sources, so that one inside a function, or under ``TYPE_CHECKING``, counts as well.
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

#: From the cellar up. Rooms on one floor do not know each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "__version__"),
    ("wire",),
    ("columns",),
    ("properties",),
    ("propvariant",),
    ("formatname",),
    ("mqsd", "mqcn", "mqqb"),
    ("capture",),
    ("directory",),
    ("discovery", "notification"),
    ("routing",),
    ("net",),
    ("spark",),
    ("cli",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}

#: The public names gather in ``msmqwire/__init__.py`` and ``python -m msmqwire`` enters at the top.
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


def _room(path: Path) -> str:
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


def test_every_room_has_its_floor() -> None:
    rooms = {_room(path) for path in _sources()}
    assert {"errors", "wire", "columns", "mqsd"} <= rooms
    assert rooms <= {*FLOOR, *FRONT_DOORS}


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_run_down_only(path: Path) -> None:
    if _room(path) in FRONT_DOORS:
        pytest.skip("a front door may open on every room")
    room = _room(path)
    wrong = []
    for name in _imports(path):
        parts = name.split(".")
        target = parts[1] if len(parts) > 1 else "__init__"
        if target != room and FLOOR.get(target, len(FLOORS)) >= FLOOR[room]:
            wrong.append(name)
    assert not wrong, f"{room} must not import {wrong}"


def test_the_reader_of_imports_sees_imports() -> None:
    """A gate proves that it checked something: what the rooms are known to import is found."""
    found = {name for path in _sources() for name in _imports(path)}
    assert "msmqwire.errors.DecodeError" in found
    assert any(name.startswith("msmqwire.wire.cursor.") for name in found)
    assert any(name.startswith("msmqwire.columns.buffer.") for name in found)
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
