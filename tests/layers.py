"""The layers of the package and the imports between its modules: for tests, and for the drawing in the manual.

Imports are read from the sources, so an import inside a function or under ``TYPE_CHECKING`` counts as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "msmqwire"

#: One protocol each, with the same files.
PROTOCOLS = ("mqsd", "mqcn", "mqqb")

#: From the lowest layer up, with the contents. Packages of one layer do not import each other.
LAYERS: dict[tuple[str, ...], str] = {
    ("errors",): "the exceptions",
    ("wire",): "bytes: cursor, faults, GUIDs, UTF-16",
    ("columns",): "payloads, layouts of columns, batches; numpy and Arrow",
    ("properties",): "the table of MSMQ properties",
    ("propvariant",): "the encoding of values of properties",
    ("formatname",): "names of queues: grammar and values",
    PROTOCOLS: "one protocol each: its packets and its tables; no protocol imports another",
    ("directory",): "the directory, from a file or from an Active Directory over LDAP",
    ("discovery", "notification", "session"): (
        "the roles of [MS-MQSD] and [MS-MQCN] and the sessions of [MS-MQQB], as state machines without I/O; the "
        "judgement of a notification, which tables have too"
    ),
    ("capture",): "capture files, frames, TCP streams; payloads with their addresses and times; tables",
    ("routing",): "next hops of [MS-MQBR], destinations of format names",
    ("net",): "sockets and the clock, which drive the roles",
    ("insight",): "summaries of tables, findings, explanations of codes, reports",
    ("spark",): "functions over columns, the data source, the pipeline",
    ("cli",): "subcommands, exit statuses, output for terminals",
}
#: From a layer to the next, and what is passed on.
WAY_OF_A_PACKET = (
    ("capture", "payloads of frames and streams", "mqqb"),
    ("mqqb", "records", "columns"),
    ("columns", "tables", "cli"),
)

FLOORS = tuple(LAYERS)
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


def sources() -> list[Path]:
    return sorted(path for suffix in ("py", "pyi", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{suffix}"))


def reference() -> list[str]:
    """The names of the modules of the reference, which docs/conf.py lists."""
    (listed,) = (
        node.value
        for node in ast.parse((ROOT / "docs" / "conf.py").read_text("utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "REFERENCE"
    )
    groups = eval(compile(ast.Expression(listed), "conf.py", "eval"))  # its comprehensions are no literals
    return [f"msmqwire.{name}" for group in groups.values() for name in group]


def package_of(path: Path) -> str:
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


def imports(path: Path) -> list[str]:
    reader = _python_imports if path.suffix in (".py", ".pyi") else _cython_imports
    return [name for name in reader(path) if name.split(".")[0] == "msmqwire"]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, set[str]]:
    """Each module with the modules that it imports; the sources of one module count together."""
    paths: dict[str, list[Path]] = {}
    for path in sources():
        paths.setdefault(module_of(path), []).append(path)
    found: dict[str, set[str]] = {}
    for module, files in paths.items():
        names = {name for path in files for name in imports(path)}
        # A name is a module, or something in one
        found[module] = {name if name in paths else name.rpartition(".")[0] for name in names} & {*paths} - {module}
    return found


def arrows() -> list[tuple[str, str]]:
    """Each package with those that it imports, without those that it reaches over others."""
    used: dict[str, set[str]] = {}
    for module, names in modules().items():
        user = module.split(".")[1:2]
        for name in names if user and user[0] in FLOOR else ():
            target = name.split(".")[1:2]
            if target and target[0] in FLOOR and target != user:
                used.setdefault(user[0], set()).add(target[0])

    def reached(package: str) -> set[str]:
        return {each for other in used.get(package, ()) for each in (other, *reached(other))}

    return [
        (package, other)
        for package in FLOOR
        for other in sorted(used.get(package, ()), key=lambda name: (FLOOR[name], name))
        if not any(other in reached(between) for between in used[package] - {other})
    ]
