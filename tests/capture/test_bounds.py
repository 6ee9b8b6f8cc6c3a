"""No kernel reads beyond its window."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run bounds.py on its own: a fault ends the process."""
    command = [sys.executable, "-m", "tests.capture.bounds", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_nothing_is_read_outside_a_window() -> None:
    done = run()
    assert done.returncode == 0, done.stderr[-2000:]
    windows, with_rows = map(int, done.stdout.split())
    assert windows > 8000
    assert with_rows > 3000


def test_the_guard_pages_do_guard() -> None:
    """A gate proves that it would have caught something."""
    done = run("touch")
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
