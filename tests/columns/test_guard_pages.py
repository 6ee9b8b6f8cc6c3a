"""The guard pages, against which payloads are put."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.columns.processes import ROOT


@pytest.mark.skipif(sys.platform != "linux", reason="needs mprotect")
def test_they_do_guard() -> None:
    """A gate proves that it would have caught something."""
    command = [sys.executable, "-c", "from tests.columns import guard_pages; guard_pages.touch()"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert "Segmentation fault" in done.stderr
