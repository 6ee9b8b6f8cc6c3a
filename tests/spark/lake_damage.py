"""Damage to lakes: log entries, data files, plans."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

from tests.spark.lake_runs import active_files


def entries(root: Path, table: str) -> list[Path]:
    """The entries of the log of a table, in their order."""
    return sorted((root / table / "_delta_log").glob("*.json"))


def spoil(entry: Path, how: str) -> None:
    """Change an entry of a log as a power failure, a full disk or an editor does."""
    data = entry.read_bytes()
    if how == "gone":
        entry.unlink()
    else:
        content = {"empty": b"", "cut": data[: len(data) * 2 // 3], "garbled": random.Random(1).randbytes(len(data))}
        entry.write_bytes(content[how])


def active(root: Path, table: str) -> list[Path]:
    """The files of a table."""
    return [Path(path) for path in sorted(active_files(root, table))]


def flip(path: Path, at: float = 0.3) -> None:
    """Change a bit of a file."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 4
    path.write_bytes(data)


def lose_plans(root: Path) -> None:
    """Delete the folder that looks like scratch."""
    shutil.rmtree(root / "_runs")
