"""No kernel reads a byte outside its payload: a guard page next to a payload kills the process that reads it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.columns.formats import Format, each_format
from tests.columns.processes import ROOT, run


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_they_do_guard() -> None:
    """A gate proves that it would have caught something."""
    command = [sys.executable, "-c", "from tests.columns import guard_pages; guard_pages.touch()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
@pytest.mark.parametrize("every", [37, pytest.param(1, marks=pytest.mark.long)])
@each_format
def test_nothing_is_read_outside_a_payload(kind: Format, every: int) -> None:
    assert int(run("-m", "tests.columns.bounds", str(every), str(kind))) > 1500 // every
