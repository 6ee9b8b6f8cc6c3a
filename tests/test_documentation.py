"""Every example of the manual runs and prints what the page shows; every link has a target.

In README.md, CONTRIBUTING.md, CHANGELOG.md, docs/ and examples/README.md:

- the ``python`` blocks of a page run in order in one namespace; the output of ``>>>`` lines is compared;
- each ``$ msmqwire ...`` of a ``console`` block runs and its output is compared; other commands (``make``,
  ``pip``) do not run;
- a ``sql`` block runs in the Spark session of the page. Pages and scripts with Spark are long tests, but for README.md.

The notebooks of examples/ run in Jupyter, and the text of each output is compared.

``...`` in expected output stands for any text. Each page runs in a new directory that holds only ``examples/``, in the
process and the Spark session of the tests; commands with a pipe are processes. The docstrings of the package are
doctests.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import doctest
import glob
import importlib
import inspect
import io
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import nbclient
import nbformat
import pytest

from tests.cli.support import msmqwire
from tests.system_programs import require_program

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "msmqwire"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md")])
# tests/session/test_redis_bridge.py runs the bridge, with its broker and both ends; tests/spark/test_local_cluster.py
# makes the archive
ELSEWHERE = {ROOT / "examples" / name for name in ("redis_bridge.py", "cluster_archive.py")}
SCRIPTS = sorted({*ROOT.glob("examples/*.py")} - ELSEWHERE)
NOTEBOOKS = sorted(ROOT.glob("examples/*.ipynb"))
OPTIONS = doctest.ELLIPSIS
#: Columns of a block that a page shows whole, in a window of 1280 pixels
WIDTH = 84


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    text: str
    line: int


class MismatchError(AssertionError):
    """Output of an example that differs from what the page shows."""


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    language, start, lines = "", 0, list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"```(\w*)$", line)
        if not start and line.startswith("```"):
            assert fence, f"{page.name}:{number}: a fence with more than a language"
            language, start, lines = fence[1], number, []
        elif start and line == "```":
            yield Block(language, "\n".join(lines) + "\n", start + 1)
            start = 0
        elif start:
            lines.append(line)
    assert not start, f"{page.name}:{start}: block without an end"


def relative(path: Path) -> str:
    """The path as test ids show it."""
    return str(path.relative_to(ROOT))


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """New working directory of an example, with the sample files."""
    (tmp_path / "examples").mkdir()
    for pattern in ("*.pcap*", "*.toml"):
        for sample in ROOT.glob(f"examples/{pattern}"):
            shutil.copy(sample, tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    # After the installed command, a command for an environment without one
    launcher = tmp_path / "bin" / "msmqwire"
    launcher.parent.mkdir()
    launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m msmqwire "$@"\n')
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{launcher.parent}", prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return tmp_path


@pytest.fixture
def lasting_spark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Spark session of the tests, where an example may neither start nor stop one."""
    require_program("java")
    session = request.getfixturevalue("spark")
    monkeypatch.setattr(type(session), "stop", lambda self: None)


def wrapped(output: str) -> str:
    """Output as pages show it: wider lines are broken at a blank, with four blanks before the rest."""
    return "\n".join(
        part
        for line in output.split("\n")
        for part in textwrap.wrap(
            line, WIDTH, subsequent_indent="    ", break_on_hyphens=False, expand_tabs=False, replace_whitespace=False
        )
        or [""]
    )


class OutputOfPage(doctest.OutputChecker):
    """Compares the output of an example with the wrapped lines of a page."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return True if they are equal, with any text for ``...``."""
        return super().check_output(want, wrapped(got), optionflags)


def run_doctest(
    text: str, namespace: dict[str, object], where: str, line: int, checker: doctest.OutputChecker | None = None
) -> int:
    """Run a session of ``>>>`` lines and compare; the number of its examples."""
    test = doctest.DocTestParser().get_doctest(text, namespace, where, where, line - 1)
    # A doctest runs in a copy of its names unless it is handed the very dictionary.
    test.globs = namespace
    complaint = io.StringIO()
    runner = doctest.DocTestRunner(checker, optionflags=OPTIONS, verbose=False)
    result = runner.run(test, out=complaint.write, clear_globs=False)
    if result.failed:
        raise MismatchError(complaint.getvalue())
    return len(test.examples)


def run_shell(command: str) -> tuple[int, str]:
    """Exit status and output of a command line of several commands."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, encoding="utf-8", timeout=300)
    return done.returncode, done.stdout + done.stderr


def run_command(command: str) -> tuple[int, str]:
    """Exit status and output of one command, run in this process; file names with ``*`` are expanded."""
    arguments: list[str] = []
    for word in shlex.split(command)[1:]:
        arguments += (sorted(glob.glob(word)) if "*" in word else []) or [word]
    done = msmqwire(*arguments, cwd=Path.cwd(), env={"COLUMNS": os.environ["COLUMNS"]})
    return done.returncode, (done.stdout + done.stderr).decode().replace("\r\n", "\n")


def run_console(text: str, where: str) -> int:
    """Run the ``$ msmqwire`` commands of a console block and compare what they print; the number run."""
    ran = 0
    for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = entry.partition("\n")
        while command.endswith("\\"):
            more, _, expected = expected.partition("\n")
            command = command[:-1] + more.removeprefix("> ").lstrip()
        if not command.startswith("msmqwire "):
            continue
        ran += 1
        status, got = run_shell(command) if set(command) & set("|;&<>$") else run_command(command)
        # Markdown keeps no trailing blanks, a terminal table has some.
        got, expected = (re.sub(r"[ \t]+$", "", part, flags=re.MULTILINE).strip("\n") for part in (got, expected))
        if not OutputOfPage().check_output(expected + "\n", got + "\n", OPTIONS):
            raise MismatchError(f"{where}: $ {command}\nexpected:\n{expected}\ngot (exit status {status}):\n{got}")
    return ran


def run_page(page: Path) -> int:
    """Run every example of a page; the number of them."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    ran = 0
    for language, text, line in blocks(page):
        where = f"{relative(page)}:{line}"
        if language == "python" and ">>> " in text:
            ran += run_doctest(text, namespace, where, line, OutputOfPage())
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile("\n" * (line - 1) + text, str(page), "exec"), namespace)
            ran += 1
        elif language == "console":
            ran += run_console(text, where)
        elif language == "sql":
            for statement in filter(str.strip, text.split(";")):
                namespace["spark"].sql(statement).collect()  # type: ignore[attr-defined]
                ran += 1
    return ran


def uses_spark(file: Path) -> bool:
    """Whether examples of a page, or a script, need a Spark session."""
    return bool(re.search(r"local_session\(|^\$ msmqwire pipeline", file.read_text("utf-8"), flags=re.MULTILINE))


def timed(file: Path) -> object:
    """A page or a script as a parameter; of those with Spark only README.md runs in the short tests."""
    is_long = uses_spark(file) and file.name != "README.md"
    return pytest.param(file, marks=[pytest.mark.long] * is_long, id=relative(file))


@pytest.mark.parametrize("page", [timed(page) for page in PAGES])
def test_examples_of_page_run(
    page: Path, desk: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    if uses_spark(page):
        request.getfixturevalue("lasting_spark")
    if page.name == "README.md":
        # As wide as the page of a registry
        monkeypatch.setenv("COLUMNS", "80")
    ran = run_page(page)
    shown = len(re.findall(r"^```(?:python|sql)$|^\$ msmqwire ", text, flags=re.MULTILINE))
    assert ran >= shown


def test_pages_with_examples_are_found() -> None:
    """The patterns above match pages; without matches their tests would pass."""
    with_examples = [relative(page) for page in PAGES if any(block.language == "python" for block in blocks(page))]
    assert {"README.md", "docs/packets.md", "docs/columns.md", "docs/spark.md"} <= set(with_examples)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_blocks_of_page_are_shown_whole(page: Path) -> None:
    for _, text, first in blocks(page):
        for number, line in enumerate(text.splitlines(), first):
            assert len(line) <= WIDTH, f"{relative(page)}:{number} has {len(line)} columns"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_of_page_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", prose):
        if re.match(r"https?:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name) if name else page
        assert file.exists(), f"{relative(page)} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{relative(page)} links to {target}"


def anchors(page: Path) -> set[str]:
    """The places of a page that a link can name: headings, and rows with an anchor."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    named = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return named | set(re.findall(r'<a id="(\w+)"></a>', text))


def test_every_page_of_the_manual_is_reachable() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, f"docs/index.md does not name {page.name}"


def test_generated_pages_are_up_to_date() -> None:
    """``make docs`` writes them."""
    generated = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    assert generated
    for path, text in generated.items():
        assert path.read_text(encoding="utf-8") == text, f"{relative(path)} is out of date: run `make docs`"


def test_sample_captures_are_what_their_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "examples" / "make_captures.py"))
    captures = script["captures"]()
    assert len(captures) >= 2
    for name, data in captures.items():
        assert (ROOT / "examples" / name).read_bytes() == data


@pytest.mark.parametrize("script", [timed(script) for script in SCRIPTS])
def test_example_scripts_run(
    script: Path,
    desk: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = script.read_text(encoding="utf-8")
    if uses_spark(script):
        request.getfixturevalue("lasting_spark")
    copy = Path(shutil.copy(script, desk / "examples"))
    # The JVM resolves relative paths from the directory it was started in
    monkeypatch.setattr(sys, "argv", [str(copy), *(["--lake", str(desk / "lake")] if '"--lake"' in text else [])])
    runpy.run_path(str(copy), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=relative)
def test_notebooks_run_and_show_their_output(notebook: Path, desk: Path) -> None:
    """Compares the text of each output; what else a browser shows of it differs between versions of pandas."""

    def texts(cells: list[nbformat.NotebookNode]) -> list[str]:
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        return [output.get("text") or output["data"]["text/plain"] for output in outputs]

    shown = nbformat.read(notebook, 4)
    nbformat.validate(shown)
    folder = {"metadata": {"path": str(desk / "examples")}}
    ran = nbclient.NotebookClient(copy.deepcopy(shown), timeout=120, resources=folder).execute()
    assert texts(ran.cells) == texts(shown.cells)
    assert len(texts(ran.cells)) == sum(cell.cell_type == "code" for cell in shown.cells)


# Docstrings


def docstrings(path: Path) -> Iterator[tuple[str, int]]:
    """Docstrings with examples in a module, and their lines."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)) if ">>> " in source else ():
        if isinstance(node, kinds) and (text := ast.get_docstring(node)) and ">>> " in text:
            yield text, node.body[0].lineno


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def with_docstring_examples() -> list[Path]:
    """Modules of the package that hold examples; stubs have those of their compiled modules."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if any(docstrings(path))]


@pytest.mark.parametrize("path", with_docstring_examples(), ids=relative)
def test_docstring_examples_run(path: Path, desk: Path, request: pytest.FixtureRequest) -> None:
    for text, line in docstrings(path):
        namespace = dict(vars(importlib.import_module(module_name(path))))
        if "spark." in text:
            namespace["spark"] = request.getfixturevalue("spark")
        assert run_doctest(text, namespace, relative(path), line)


def compiled_docstrings(path: Path) -> Iterator[str]:
    """Docstrings with examples of a compiled module, of its functions and classes, and of what those define."""
    module = importlib.import_module(module_name(path))
    found = [module, *(value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__)]
    members = [member for value in found if isinstance(value, type) for member in vars(value).values()]
    yield from (text for value in [*found, *members] if ">>> " in (text := getattr(value, "__doc__", None) or ""))


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.pyx")), ids=relative)
def test_compiled_docstring_examples_run(path: Path, desk: Path) -> None:
    for text in compiled_docstrings(path):
        namespace = dict(vars(importlib.import_module(module_name(path))))
        assert run_doctest(inspect.cleandoc(text), namespace, relative(path), 1)


def test_docstring_examples_are_found() -> None:
    assert any(compiled_docstrings(PACKAGE / "mqsd/_packet.pyx"))
