"""Which lines and branches of the kernels the tests reach: ``make coverage``.

A kernel is a function declared ``nogil`` in a ``.pyx`` or ``.pxd``. The tests run on extensions that count executions;
gcov gives the counts by line of C, and comments of Cython map them to its lines.

A branch is ours if a line of ours decides it. It counts once, however many modules an inline function was compiled
into. Left out are Cython's own: functions with the GIL, most of whose branches are the handling of errors, and lines of
C that name something of Python's. Left out as well is a line below a comment that says that bytes have changed since
they were read: no test can change them at that moment.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "coverage"
LIBRARY = BUILD / "lib"

# Spark uses other processes; the manual's examples reach nothing beyond the tests
LEFT_OUT = ("tests/spark", "tests/cli", "tests/test_documentation.py", "tests/net", "tests/directory")
# What these look at is not there, or another, in extensions that count: instructions and signatures
OTHER_BUILD = (
    "tests/capture/test_bounded.py::test_instructions_grow_with_the_input",
    "tests/test_instructions.py",
    "tests/test_public_names.py",
)


@dataclass
class Lines:
    """Counts of the lines and branches of a kernel, over all modules it was compiled into."""

    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    branches: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))


def build() -> None:
    """Build the package with counters, in a folder of its own."""
    base = ["--build-base", str(BUILD), "--build-lib", str(LIBRARY)]
    command = [sys.executable, "setup.py", "--quiet", "build", *base]
    subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, "MSMQWIRE_BUILD": "coverage"})


def run_tests(arguments: list[str]) -> int:
    """Run the tests on the package with counters; return their exit status."""
    for counters in BUILD.rglob("*.gcda"):
        counters.unlink()
    paths = [str(LIBRARY), str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    # Import the package before pytest adds the checkout to the path
    program = "import sys, msmqwire, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    ignored = [f"--ignore={path}" for path in LEFT_OUT] + [f"--deselect={name}" for name in OTHER_BUILD]
    command = [sys.executable, "-c", program, "-q", "-p", "no:cacheprovider", *ignored, *arguments]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, cwd=ROOT, env=variables).returncode


def kernels(path: Path) -> Iterator[tuple[str, int, int]]:
    """The functions of a file that run without the GIL: name, first line and the line after the last."""
    lines = path.read_text("utf-8").splitlines()
    number = 0
    while number < len(lines):
        begin = re.match(r"cdef (?:inline )?(?!class|extern|struct|enum)[^=]*?(\w+)\(", lines[number])
        first = number
        number += 1
        if begin is None:
            continue
        head = lines[first]
        while not re.search(r"\)[^()]*$", head) and number < len(lines):
            head += lines[number]
            number += 1
        if not head.rstrip().endswith(":") or "nogil" not in head:
            continue
        while number < len(lines) and (not lines[number].strip() or lines[number].startswith((" ", "#"))):
            number += 1
        yield begin[1], first + 1, number + 1


def origins(source: Path) -> dict[int, tuple[str, int]]:
    """File and line of Cython by line of C, inside kernels."""
    found: dict[int, tuple[str, int]] = {}
    current: tuple[str, int] | None = None
    inside = False
    for number, line in enumerate(source.read_text("utf-8", "replace").splitlines(), 1):
        if re.match(r"(static|CYTHON_INLINE)\b.*\b__pyx_f_\w+\(.*\{", line):
            inside, current = True, None
        elif line.startswith("}"):
            inside = False
        mark = re.match(r'\s*/\* "([^"]+)":(\d+)$', line)
        if mark:
            current = mark[1], int(mark[2])
        elif inside and current and not re.search(r"\bPy[A-Z_]|__Pyx_|__PYX_", line):
            found[number] = current
    return found


def measured() -> dict[str, Lines]:
    """Counts of gcov by the path of a source."""
    found: dict[str, Lines] = defaultdict(Lines)
    for notes in sorted(BUILD.rglob("*.gcno")):
        source = (
            ROOT / "build" / notes.relative_to(BUILD / notes.relative_to(BUILD).parts[0] / "build").with_suffix(".c")
        )
        command = ["gcov", "--json-format", "--branch-probabilities", "--stdout", str(notes)]
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        places = origins(source)
        for file in (file for document in output.splitlines() for file in json.loads(document)["files"]):
            if Path(file["file"]).name == source.name:
                _add(found, places, file["lines"])
    return found


def _add(found: dict[str, Lines], places: dict[int, tuple[str, int]], counted: list[dict[str, Any]]) -> None:
    seen: dict[tuple[str, int], int] = defaultdict(int)
    for line in sorted(counted, key=lambda line: line["line_number"]):
        place = places.get(line["line_number"])
        if place is None:
            continue
        lines = found[place[0]]
        lines.counts[place[1]] += line["count"]
        for branch in line["branches"]:
            lines.branches[place[1], seen[place]] += branch["count"]
            seen[place] += 1


def report() -> tuple[float, float]:
    """Print the unreached lines of each file; return the shares of reached lines and branches."""
    totals = [0, 0, 0, 0]
    found = measured()
    for path in sorted((ROOT / "msmqwire").rglob("*.p[yx][xd]")):
        name = str(path.relative_to(ROOT))
        lines = found.get(name, Lines())
        source = ["", *path.read_text("utf-8").splitlines()]
        missed: list[str] = []
        numbers = [0, 0, 0, 0]
        for function, first, end in kernels(path):
            inside = {line: count for line, count in lines.counts.items() if first < line < end}
            inside = {line: count for line, count in inside.items() if "changed since" not in source[line - 1]}
            sides = {place: count for place, count in lines.branches.items() if first < place[0] < end}
            # Counters below zero have wrapped
            numbers[0] += sum(count != 0 for count in inside.values())
            numbers[1] += len(inside)
            numbers[2] += sum(count != 0 for count in sides.values())
            numbers[3] += len(sides)
            unreached = sorted(line for line, count in inside.items() if not count)
            if unreached:
                missed.append(f"    {function}: lines {', '.join(map(str, unreached))}")
        if numbers[1]:
            print(f"{name}: {numbers[0]} of {numbers[1]} lines, {numbers[2]} of {numbers[3]} branches")
            print(*missed, sep="\n", end="\n" if missed else "")
        totals = [total + number for total, number in zip(totals, numbers, strict=True)]
    return totals[0] / max(1, totals[1]), totals[2] / max(1, totals[3])


def main() -> int:
    """Build, test, report; the exit status is that of the tests."""
    parser = argparse.ArgumentParser(prog="python -m tests.kernel_coverage", description=__doc__)
    parser.add_argument("arguments", nargs="*", help="for pytest: which tests (default: all that reach kernels)")
    options = parser.parse_args()
    build()
    status = run_tests(options.arguments)
    lines, branches = report()
    print(f"kernels: {lines:.2%} of lines, {branches:.2%} of branches")
    return status


if __name__ == "__main__":
    sys.exit(main())
