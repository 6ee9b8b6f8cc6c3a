"""Starting the command, and importing the package: what is said, and what is imported."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

import msmqwire as package
from msmqwire.cli import SUBCOMMANDS
from tests.cli.support import LOCAL, SESSION, environ, from_json, msmqwire, process

_HEAVY = {"numpy", "pyarrow", "rich", "asyncio", "dataclasses", "importlib.metadata", "msmqwire.wire._fault"}


def imported(program: str) -> set[str]:
    """The modules that a program has imported when it ends."""
    program = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {program}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ(), timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["decode", "--help"], ["pipeline", "--help"]])
def test_help_and_version_import_little(arguments: list[str]) -> None:
    modules = imported(f"from msmqwire.cli import main; main({arguments})")
    assert not modules & _HEAVY
    chosen = {name for name in SUBCOMMANDS if f"msmqwire.cli.{name}" in modules}
    assert chosen == {*SUBCOMMANDS} & {*arguments}


_READING = [
    ["decode", "-T", "table"],
    ["report", "-o", "-"],
    *(
        pytest.param(arguments, marks=pytest.mark.long)
        for arguments in (
            ["decode", "-T", "json"],
            ["decode", "-T", "brief"],
            ["decode", "-T", "csv", "--table", "notifications"],
            ["summary"],
            ["detect"],
            ["sql", "SELECT * FROM messages"],
        )
    ),
]


@pytest.mark.parametrize("arguments", _READING, ids=" ".join)
def test_reading_imports_neither_pandas_nor_directories(arguments: list[str]) -> None:
    """pyarrow imports pandas where it converts some values of Python; it takes a quarter of a second."""
    given = ["msmqwire", *arguments, str(SESSION), "-q"]
    modules = imported(f"import sys; from msmqwire.cli import command; sys.argv = {given}; command()")
    assert not modules & {"pandas", "msmqwire.directory"}


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not list the threads of a process")
def test_numpy_starts_no_threads() -> None:
    count = "print(len(os.listdir('/proc/self/task')), 'numpy' in sys.modules)"
    program = (
        f"import atexit, os, sys; atexit.register(lambda: {count}); from msmqwire.cli import command;"
        " sys.argv = ['msmqwire', 'resolve', 'DIRECT=OS:host']; command()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ(), timeout=60)
    assert done.stdout.splitlines()[-1] == "1 True", done.stderr


def test_the_package_imports_its_names_when_they_are_used() -> None:
    modules = imported("import msmqwire")
    assert not modules & {"numpy", "argparse"}
    assert {name for name in modules if name.startswith("msmqwire")} == {"msmqwire"}
    assert "msmqwire.columns" in imported("import msmqwire; msmqwire.Batch")
    assert "msmqwire.mqsd" in imported("import msmqwire; msmqwire.mqsd")
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert dir(package) == sorted([*package.__all__, "insight", "spark", "__version__"])
    with pytest.raises(AttributeError, match=r"module 'msmqwire' has no attribute 'mqxx'"):
        _ = package.mqxx


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev0)?", package.__version__)
    assert msmqwire("--version").stdout == f"msmqwire {package.__version__}\n".encode()


@pytest.mark.parametrize("name", ["", *SUBCOMMANDS])
def test_help_has_examples_and_fits(name: str) -> None:
    done = msmqwire(*filter(None, (name, "--help")))
    assert done.returncode == 0
    assert "examples:" in done.stdout.decode() or name == "directory"
    assert max(map(len, done.stdout.decode().splitlines())) <= 120


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish", "powershell"])
def test_completion(shell: str) -> None:
    pytest.importorskip("shtab")
    script = msmqwire("--completion", shell).stdout.decode()
    assert all(name in script for name in SUBCOMMANDS)
    assert "--columns" in script or "columns" in script
    assert "bad_terminator" in script


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (["deco"], {"decode"}),
        (["decode", "--tab"], {"--table"}),
        (["decode", "--table", "top"], {"topology"}),
        (["decode", "--columns", "connected_network_m"], {"connected_network_mask"}),
        (["summary", "--table", "conv"], {"conversations"}),
        (["explain", "PROPID_Q_QUOT"], {"PROPID_Q_QUOTA"}),
    ],
)
def test_bash_completes(words: list[str], completed: set[str], tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    script = tmp_path / "completion.bash"
    script.write_bytes(msmqwire("--completion", "bash").stdout)
    line = ["msmqwire", *words]
    program = (
        f"source {script}; COMP_WORDS=({' '.join(line)}); COMP_CWORD={len(line) - 1}; "
        "$(complete -p msmqwire | sed 's/.*-F \\([^ ]*\\).*/\\1/'); printf '%s\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, timeout=60)
    assert {each.strip() for each in done.stdout.splitlines()} == completed, done.stderr


@pytest.mark.long
def test_completion_into_a_pipe_that_closes() -> None:
    pytest.importorskip("shtab")
    reader, writer = os.pipe()
    os.close(reader)
    done = process("--completion", "bash", stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_completion_without_shtab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = msmqwire("--completion", "bash")
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert b"msmqwire --completion needs shtab, which is not installed: pip install 'shtab" in done.stderr


def test_sources_without_compiled_modules_say_what_to_do(tmp_path: Path) -> None:
    """A checkout shadows an installed package for a Python that starts in it."""
    package_dir = tmp_path / "msmqwire"
    ignore = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(Path(package.__file__).parent, package_dir, ignore=ignore)
    for arguments in (["-m", "msmqwire", "decode", "x.pcap"], ["-c", "import msmqwire.mqsd"]):
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0
        last = done.stderr.splitlines()[-1]
        assert f"{package_dir} holds the sources of msmqwire without its compiled modules: run `make build` in" in last
        assert len(done.stderr.splitlines()) == 1 or "-c" in arguments


def test_compiled_modules_of_another_python_say_so(tmp_path: Path) -> None:
    package_dir = tmp_path / "msmqwire"
    shutil.copytree(Path(package.__file__).parent, package_dir, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    (package_dir / "wire" / "_sid.cpython-27-other.so").touch()
    done = subprocess.run(
        [sys.executable, "-c", "import msmqwire"], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert f"{package_dir} are for another Python: they end in .cpython-27-other.so, and {sys.executable} needs" in last
    assert EXTENSION_SUFFIXES[0] in last


@pytest.mark.skipif(sys.platform == "win32", reason="no process ends by a signal")
def test_an_interrupt_while_the_subcommand_is_imported() -> None:
    program = """
from msmqwire import cli
def interrupted(given):
    raise KeyboardInterrupt
cli._parsed = interrupted
cli.main(["decode", "x.pcap"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environ(), timeout=60)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, b"msmqwire: interrupted\n")


def test_the_bare_command_shows_its_help() -> None:
    done = msmqwire()
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == msmqwire("--help").stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["decod"], "msmqwire: no subcommand decod; did you mean decode or encode? (see msmqwire --help)"),
        (["xyzzy"], "msmqwire: no subcommand xyzzy (see msmqwire --help)"),
        (
            ["examples/local-site.pcap"],
            "msmqwire: no subcommand examples/local-site.pcap; to decode this file: msmqwire decode "
            "examples/local-site.pcap (see msmqwire --help)",
        ),
        (["--versio"], "msmqwire: unknown: --versio; did you mean --version? (see msmqwire --help)"),
        (["-q", "decode"], "msmqwire: -q: options of decode stand after it (see msmqwire --help)"),
        (["decode", "--tabel", "x"], "msmqwire decode: unknown: --tabel; did you mean --table or --help? (see"),
        (
            ["decode", "x", "-T", "jsn"],
            "there is table, brief, json, csv, parquet, eve; did you mean json? (see msmqwire dec",
        ),
        (["decode"], "msmqwire decode: the following arguments are required: FILE (see msmqwire decode --help)"),
        (["lake", "chek"], "did you mean check? (see msmqwire lake --help)"),
        (["decode", "x.pcap", "--table", "topologi"], "--table topologi: no such table; did you mean topology?"),
        (
            ["decode", "x.pcap", "--columns", "lable"],
            "--columns lable: no such column; did you mean label of messages?",
        ),
        (
            ["decode", "x.pcap", "--columns", "label", "--table", "topology"],
            "--columns label: no such column of topology; messages has it",
        ),
    ],
)
def test_errors_say_what_was_meant(words: list[str], complaint: str) -> None:
    done = msmqwire(*words)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"", 1)
    assert complaint in done.stderr.decode()


def test_everything_after_two_hyphens_is_a_file(tmp_path: Path) -> None:
    """Also what is written as an option is, and with options in front of it and between files."""
    names = ["-T", "--help", "--", "-2h", "-v.pcap"]
    for name in names:
        (tmp_path / name).write_bytes(LOCAL.read_bytes())
    (tmp_path / "a.pcap").write_bytes(LOCAL.read_bytes())
    for before, count in ([], 5), (["a.pcap", "-T", "json"], 6):
        done = msmqwire("decode", *before, "--", *names, cwd=tmp_path)
        assert (done.returncode, {row["file"] for row in from_json(done.stdout)}) == (
            0,
            {*names, *before[:1]},
        )
        assert f"{8 * count} frames" in done.stderr.decode()
    done = msmqwire("summary", "--", "-none.pcap", cwd=tmp_path)
    assert (done.returncode, b"-none.pcap: No such file" in done.stderr) == (1, True)
    # An option's value is no operand, and a word too many is shown as it was written
    done = msmqwire("decode", "-T", "--", "json", cwd=tmp_path)
    assert b"argument -T/--format: expected one argument" in done.stderr
    done = msmqwire("encode", "--", "a", "-b", cwd=tmp_path)
    assert b"msmqwire encode: unknown: -b (see" in done.stderr
    # Actions have their own options
    done = msmqwire("directory", "check", "--", "-none.toml", cwd=tmp_path)
    assert (done.returncode, b"-none.toml" in done.stderr) == (1, True)
