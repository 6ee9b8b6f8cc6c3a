"""Which small changes of the package no test notices: ``make mutants``.

A mutant is the package with one operator, constant or statement changed. Each one runs the tests of its own package,
in a copy of the checkout, until a test fails. A mutant that no test kills is a survivor: either a test is missing, or
the change makes no difference, which an entry of ``mutants.toml`` explains. The exit status is 1 if a survivor has no
entry.

The sample depends on the seed and the sources alone, and every package has an equal share of it; of packages that are
named it has 40 mutants each, which take some minutes. Before a larger change of tests, ``--record FILE`` keeps the
results; after it, ``--repeat FILE`` runs the mutants that were killed once more.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tests.cpu_time import weights
from tests.kernel_coverage import kernels

ROOT = Path(__file__).parent.parent
EXPLAINED = Path(__file__).with_suffix(".toml")
# All else is copied, since tests read the manual, and the manual names files of every folder
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__", "build", "dist")
# Packages without a folder of tests; what starts the package (__init__, __main__) is tested by `make package`
TESTED_BY = {
    "cli": {"cli", "insight"},
    "wire": {"wire", "capture", "formatname", "propvariant", "mqsd", "mqcn", "mqqb"},
    "errors": {"formatname", "mqsd", "routing", "insight"},
}
TIMEOUT = 600  # seconds; a mutant that never ends is killed
MEMORY = 12 << 30  # a soft limit: a browser, which reserves more, raises it

# Each operator and its mutants, in both directions where they exchange
EXCHANGED = "< <=, > >=, == !=, + -, << >>, & |, and or, += -=, in not_in, is is_not, break continue, True False"
_PAIRS = [[word.replace("_", " ") for word in pair.split()] for pair in EXCHANGED.split(", ")]
OPERATORS = {**dict(_PAIRS), **{after: before for before, after in _PAIRS}, "*": "+", "//": "*", "%": "*", "not": ""}
OPERATOR = re.compile(r"not\s+in\b|is\s+not\b|\b(?:and|or|in|is)\b|<<|>>|//|[<>=!]=|[-+*%&|<>]")
# In a kernel an operator has blanks around it; a sign, a pointer or a type has not
KERNEL_SITE = re.compile(
    r"(?<= )(?:<<|>>|//|[-+<>=!]=|[-+*%&|<>]|and|or)(?= )|\bnot |\b(?:True|False|break|continue|\d+)\b"
)


class Mutant(NamedTuple):
    """One change of a file: ``end - start`` bytes at ``start`` are replaced."""

    path: str
    start: int
    end: int
    text: str
    extension: str = ""

    @property
    def package(self) -> str:
        """The folder of the package whose tests must notice."""
        return (self.extension or self.path).split("/")[1].removesuffix(".py")

    def apply(self, source: bytes) -> bytes:
        """The source of the mutant."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def lines(self) -> tuple[str, str]:
        """The line of the change, before and after."""
        source = (ROOT / self.path).read_bytes()
        number = source.count(b"\n", 0, self.start)
        before, after = (each.decode().splitlines()[number].strip() for each in (source, self.apply(source)))
        return before, after

    def kind(self) -> tuple[str, str, str]:
        """The path, the function and the change of the mutant, by which an entry of ``mutants.toml`` explains it."""
        source = (ROOT / self.path).read_bytes()
        function = function_at(self.path, source.count(b"\n", 0, self.start) + 1)
        before = "..." if self.text in ("pass", "return None") else source[self.start : self.end].decode()
        return self.path, function, f"{before} -> {self.text.strip()}".strip()


def function_at(path: str, line: int) -> str:
    """The function or class with a line, the classes around it before a point; empty in the module itself."""
    if not path.endswith(".py"):
        return next((name for name, first, after in kernels(ROOT / path) if first <= line < after), "")
    around = [
        node
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return ".".join(node.name for node in sorted(around, key=lambda node: node.lineno))


@cache
def parsed(path: str) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse((ROOT / path).read_bytes())


# --- where a change is possible ---


def python_mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Every mutant of a Python module: changed operators, signs, constants, branches, statements."""
    starts = [0, *(match.end() for match in re.finditer(rb"\n", source))]

    def at(node: ast.AST, *, end: bool = False) -> int:
        line, column = (node.end_lineno, node.end_col_offset) if end else (node.lineno, node.col_offset)  # type: ignore[attr-defined]
        return int(starts[line - 1] + column)

    def between(left: ast.AST, right: ast.AST) -> Iterator[Mutant]:
        if found := OPERATOR.search(source[at(left, end=True) : at(right)].decode()):
            begin = at(left, end=True) + found.start()
            yield Mutant(path, begin, begin + len(found[0]), OPERATORS[" ".join(found[0].split())])

    for node in executed(ast.parse(source)):
        begin, end = (at(node), at(node, end=True)) if hasattr(node, "lineno") else (0, 0)
        match node:
            case ast.Compare():
                for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
                    yield from between(left, right)
            case ast.BinOp() if not isinstance(node.op, ast.Pow | ast.Div | ast.BitXor):
                yield from between(node.left, node.right)
            case ast.BoolOp():
                yield from between(node.values[0], node.values[1])
            case ast.AugAssign(op=ast.Add() | ast.Sub()):
                operator = source.index(b"=", at(node.target, end=True)) - 1
                yield Mutant(path, operator, operator + 2, OPERATORS[source[operator : operator + 2].decode()])
                yield Mutant(path, operator, operator + 2, "=")
            case ast.UnaryOp(op=ast.Not() | ast.USub()):
                yield Mutant(path, begin, at(node.operand), "")
            case ast.If(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.UnaryOp):
                yield Mutant(path, at(test), at(test), "not ")
            case ast.Constant(value=bool()):
                yield Mutant(path, begin, end, str(not node.value))
            case ast.Constant(value=int()):
                yield Mutant(path, begin, end, f"({source[begin:end].decode()} + 1)")
            case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
                yield Mutant(path, begin, end, "return None")
            case ast.Raise() | ast.Expr(value=ast.Call()):
                yield Mutant(path, begin, end, "pass")
            case ast.Break() | ast.Continue():
                yield Mutant(path, begin, end, OPERATORS[source[begin:end].decode()])


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotation, decorator, formatted text or branch for type checkers."""
    yield node
    unread = {"annotation", "returns", "decorator_list", "bases", "type_params"}
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            for_checkers = isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
            if (
                isinstance(child, ast.AST)
                and name not in unread
                and not (for_checkers or isinstance(child, ast.JoinedStr))
            ):
                yield from executed(child)


def kernel_mutants(path: str, source: bytes) -> Iterator[Mutant]:
    """Every mutant of the kernels of a ``.pyx`` or ``.pxd``, each with the extension to rebuild."""
    lines = source.splitlines(keepends=True)
    for function, first, after in kernels(ROOT / path):
        extension = extension_of(path, function)
        quoted = False
        for number in range(first, after - 1):
            code = lines[number].decode().partition("#")[0]
            quoted ^= code.count('"""') == 1
            if not extension or quoted or '"' in code or re.match(r"\s*cdef [^=]*$|.*(?:noexcept|raise|cimport)", code):
                continue
            offset = sum(map(len, lines[:number]))
            for found in KERNEL_SITE.finditer(code):
                begin = offset + len(code[: found.start()].encode())
                text = OPERATORS.get(found[0].strip(), f"({found[0]} + 1)")
                yield Mutant(path, begin, begin + len(found[0]), text, extension)


@cache
def extension_of(path: str, function: str) -> str:
    """The extension that is rebuilt for a kernel: its own, or one that calls a function of the declaration file."""
    if path.endswith(".pyx"):
        return path
    called = [function]
    for name in called:  # which grows: callers in declaration files are inline functions too
        called += [caller for caller, body in inline_functions().items() if _names(name, body) and caller not in called]
    texts = {user: user.read_text("utf-8") for user in sorted(ROOT.glob("msmqwire/**/*.pyx"))}
    users = [user for user, text in texts.items() if any(_names(name, text) for name in called)]
    package, folder = ROOT / Path(*Path(path).parts[:2]), (ROOT / path).parent

    def distance(user: Path) -> tuple[bool, ...]:
        outside = package not in user.parents  # it may have a function of the same name
        return outside, not _names(function, texts[user]), user.parent != folder, user.stem != "batch"

    users.sort(key=distance)
    return str(users[0].relative_to(ROOT)) if users else ""


@cache
def inline_functions() -> dict[str, str]:
    """The body of every function of a declaration file."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.glob("msmqwire/**/*.pxd")):
        lines = path.read_text("utf-8").splitlines()
        found |= {name: "\n".join(lines[first : after - 1]) for name, first, after in kernels(path)}
    return found


def _names(name: str, text: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


def sample(seed: int, python: int, kernel: int, only: str, *, every: bool) -> list[Mutant]:
    """Choose mutants: a package after the other, and in each any line, at most once; or every mutant."""
    rng = random.Random(seed)
    chosen: list[Mutant] = []
    for count, patterns in ((python, ("*.py",)), (kernel, ("*.pyx", "*.pxd"))):
        packages: dict[str, list[Mutant]] = defaultdict(list)
        for path in sorted(path for pattern in patterns for path in ROOT.glob(f"msmqwire/**/{pattern}")):
            name = str(path.relative_to(ROOT))
            lines: dict[str, list[Mutant]] = defaultdict(list)
            for mutant in mutants_of(name) if re.search(only, name) else ():
                lines[mutant.lines()[0]].append(mutant)
            for of_line in lines.values():
                for mutant in of_line if every else [rng.choice(of_line)]:
                    if not mutant.package.startswith("_"):
                        packages[mutant.package].append(mutant)
        if every:
            chosen += [mutant for mutants in packages.values() for mutant in mutants]
            continue
        for mutants in packages.values():
            rng.shuffle(mutants)
        rounds = (mutants[turn] for turn in range(count) for mutants in packages.values() if turn < len(mutants))
        chosen += [mutant for _, mutant in zip(range(count), rounds, strict=False)]
    return chosen


# --- running the tests ---


@cache
def tests_of(package: str, path: str) -> list[str]:
    """The test files of a package: those that name the module first, then the lightest."""
    texts = {test: test.read_text("utf-8") for test in sorted((ROOT / "tests").rglob("test_*.py"))}
    folders = TESTED_BY.get(package, {package})
    of_all_kernels = {"each_format"} if path.endswith((".pyx", ".pxd")) else set()
    names_it = re.compile(rf"\b(?:{'|'.join(folders | of_all_kernels)})\b")
    shared = {"property", "reference", "columns", "tests"}
    seconds, stem = weights(), re.compile(rf"\b{Path(path).stem}\b")
    own: list[tuple[bool, float, str]] = []
    for test, text in texts.items():
        if test.parent.name in folders or (test.parent.name in shared and names_it.search(text)):
            name = str(test.relative_to(ROOT))
            own.append((not stem.search(text), seconds.get(name, 0), name))
    return [name for *_, name in sorted(own)]


class Tree:
    """A copy of the checkout in which mutants are made, one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(ROOT, folder, ignore=NOT_COPIED, dirs_exist_ok=True)
        # Its pytest keeps the tests as it has rewritten and compiled them, which takes longer than to run most of them
        collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
        subprocess.run(collect, cwd=folder, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True)

    def survives(self, mutant: Mutant) -> bool:
        """Whether the tests pass; False for a mutant that does not compile."""
        changed = [self.folder / mutant.path, *(self.folder / mutant.extension).parent.glob("*.so")]
        kept = {path: path.read_bytes() for path in changed}
        try:
            changed[0].write_bytes(mutant.apply(kept[changed[0]]))
            return (not mutant.extension or self.build(mutant.extension)) and self.pass_tests(mutant)
        finally:
            for path, data in kept.items():
                path.unlink(missing_ok=True)
                path.write_bytes(data)

    def build(self, extension: str) -> bool:
        """Rebuild one extension."""
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        program = (
            "import sys; from distutils.core import run_setup;"
            "made = run_setup('setup.py', ['--quiet', 'build_ext', '--inplace', '--force'], stop_after='commandline');"
            "made.ext_modules = [each for each in made.ext_modules if each.name == sys.argv[1]]; made.run_commands()"
        )
        name = extension.removesuffix(".pyx").replace("/", ".")
        command = [sys.executable, "-c", f"import setuptools; {program}", name]
        return subprocess.run(command, cwd=self.folder, capture_output=True).returncode == 0

    def pass_tests(self, mutant: Mutant) -> bool:
        """Run the tests of the mutant's package until one fails."""
        limits = ["timeout", "--kill-after=1", str(TIMEOUT), "prlimit", f"--as={MEMORY}:"]
        pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not long"]
        command = [*limits, *pytest, *tests_of(mutant.package, mutant.path)]
        variables = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        run = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, text=True)
        if run.returncode == 5:
            raise RuntimeError(f"no tests were found: {run.stdout}")
        return run.returncode == 0


def run_all(mutants: list[Mutant], jobs: int) -> Iterator[tuple[Mutant, bool]]:
    """Each mutant and whether it survives; last, no change at all, which must pass, where a package had no survivor."""
    trees: SimpleQueue[Tree] = SimpleQueue()

    def survives(mutant: Mutant) -> bool:
        tree = trees.get()
        try:
            return tree.survives(mutant)
        finally:
            trees.put(tree)

    with tempfile.TemporaryDirectory(prefix="mutants.") as folder, ThreadPoolExecutor(jobs) as pool:
        for number in range(jobs):
            trees.put(Tree(Path(folder) / str(number)))
        passed = set()
        for mutant, survived in zip(mutants, pool.map(survives, mutants), strict=True):
            passed |= {mutant.package} if survived else set()
            yield mutant, survived
        unproven = {mutant.package: mutant for mutant in mutants if mutant.package not in passed}
        unchanged = [Mutant(each.path, 0, 0, "") for each in unproven.values()]
        for mutant, survived in zip(unchanged, pool.map(survives, unchanged), strict=True):
            if not survived:
                raise RuntimeError(f"tests of {mutant.package} fail without a mutant: its results mean nothing")


def entries() -> list[dict[str, str]]:
    """The survivors that ``mutants.toml`` explains."""
    found: list[dict[str, str]] = tomllib.loads(EXPLAINED.read_text("utf-8"))["survivor"]
    return found


def mutants_of(path: str) -> Iterator[Mutant]:
    """Every mutant of a file of the package."""
    make = python_mutants if path.endswith(".py") else kernel_mutants
    return make(path, (ROOT / path).read_bytes())


def report(results: Iterable[tuple[Mutant, bool]], record: Path | None) -> int:
    """Print each result; return the number of survivors that no entry of the list explains."""
    explained = {(entry["path"], entry["function"], entry["change"]) for entry in entries()}
    kept, unexplained, begin = [], 0, time.monotonic()
    killed: dict[str, list[bool]] = defaultdict(list)
    for mutant, survived in results:
        before, after = mutant.lines()
        missed = survived and mutant.kind() not in explained
        result = "SURVIVED" if missed else "explained" if survived else "killed"
        print(f"{result:9}  {mutant.path}\n             {before}\n             {after}", flush=True)
        kept.append({"survived": survived, "mutant": mutant})
        killed[mutant.package].append(not survived)
        unexplained += missed
        if record:
            record.write_text(json.dumps(kept, indent=1), "utf-8")
    for package, each in killed.items():
        print(f"{package}: {sum(each)} of {len(each)} killed")
    minutes = (time.monotonic() - begin) / 60
    print(f"{len(kept)} mutants in {minutes:.1f} minutes, {unexplained} survivors without an explanation")
    return unexplained


def main() -> int:
    """Mutate and report; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", help="packages, 40 mutants each; by default 300 of all packages")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--python", type=int, metavar="N", help="of Python modules (28 of a package, 210 of all)")
    parser.add_argument("--kernels", type=int, metavar="N", help="of kernels (12 of a package, 90 of all)")
    parser.add_argument("--only", default="", metavar="REGEX", help="of the files whose path matches")
    parser.add_argument("--all", action="store_true", help="every mutant of these files, not a sample")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--record", type=Path, metavar="FILE", help="keep the results")
    parser.add_argument("--repeat", type=Path, metavar="FILE", help="run the mutants that were killed in these results")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.packages if not list(ROOT.glob(f"msmqwire/{name}*"))]
    if unknown:
        parser.error(f"no such package: {', '.join(unknown)}")
    if chosen.packages:
        chosen.only = rf"^msmqwire/(?:{'|'.join(chosen.packages)})(?:/|\.py$).*{chosen.only}"
    counts = (28 * len(chosen.packages), 12 * len(chosen.packages)) if chosen.packages else (210, 90)
    python, kernel = (
        each if given is None else given for given, each in zip((chosen.python, chosen.kernels), counts, strict=True)
    )
    results = json.loads(chosen.repeat.read_text("utf-8")) if chosen.repeat else []
    mutants = [Mutant(*each["mutant"]) for each in results if not each["survived"]]
    mutants = mutants or sample(chosen.seed, python, kernel, chosen.only, every=chosen.all)
    return int(report(run_all(mutants, chosen.jobs), chosen.record) > 0)


if __name__ == "__main__":
    sys.exit(main())
