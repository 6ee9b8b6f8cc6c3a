"""Captures that many tests of the command line decode."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.support import V1, V2, V3, capture


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    """A capture of the three packets printed in [MS-MQSD] 4."""
    path = tmp_path / "printed.pcapng"
    path.write_bytes(capture([V1.data, V2.data, V3.data]))
    return path
