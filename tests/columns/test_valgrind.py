"""Kernels read and write no memory that is not theirs, and use no byte that nobody wrote: batches under valgrind."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.columns.formats import FORMATS
from tests.columns.processes import ROOT
from tests.system_programs import require_program

#: Reads one byte after an allocation by ctypes, from which a copy in the C library is called.
OVERREAD = (
    "import ctypes; libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p;"
    "ctypes.string_at(libc.malloc(ctypes.c_size_t(8)), 9)"
)
#: A copy or comparison is an error of its caller.
CALLED = ("/vgpreload_", "/libc.so")


def errors_in(objects: str, folder: Path, *program: str) -> tuple[str, list[str]]:
    """What a program of Python prints, and the errors that valgrind finds in objects whose path has this part.

    The others are those of the interpreter and the dynamic linker: their fast paths read whole words.
    """
    report = folder / "report.xml"
    valgrind = (require_program("valgrind"), "--quiet", "--xml=yes", f"--xml-file={report}")
    # Python's own allocator would hide where a block ends
    environment = {**os.environ, "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*valgrind, sys.executable, *program], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = []
    for error in ElementTree.parse(report).getroot().iter("error"):
        frames = [(frame.findtext("obj", ""), frame.findtext("fn", "?")) for frame in error.iterfind("stack[1]/frame")]
        own = [(path, name) for path, name in frames if not any(part in path for part in CALLED)]
        kind = error.findtext("kind", "")
        # Blocks are not freed when the interpreter ends
        if own and objects in own[0][0] and not kind.startswith("Leak_"):
            found.append(f"{kind} in {', '.join(name for _, name in frames[:4])}")
    return done.stdout, found


@pytest.mark.long
def test_an_overread_is_found(tmp_path: Path) -> None:
    """A gate proves that it would have caught something."""
    assert any(error.startswith("InvalidRead") for error in errors_in("python", tmp_path, "-c", OVERREAD)[1])


@pytest.mark.long
def test_batches(tmp_path: Path) -> None:
    """Decode, read every column, export to Arrow and encode: payloads that are truncated, complete or malformed."""
    printed, found = errors_in("/msmqwire/", tmp_path, "-m", "tests.columns.bounds", "100", *map(str, FORMATS))
    assert int(printed) > 50
    assert found == []
