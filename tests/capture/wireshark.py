"""What Wireshark reads in a capture, by way of its command-line program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

from tests.system_programs import require_program


def fields(
    path: Path,
    names: Iterable[str],
    *,
    display_filter: str | None = None,
    preferences: Iterable[str] = (),
    occurrence: str = "f",
) -> list[list[str]]:
    """The values of the fields called ``names``, the first of each or the last, for frames that pass the filter."""
    command = [require_program("tshark"), "-r", str(path), "-n", "-T", "fields", "-E", f"occurrence={occurrence}"]
    for preference in preferences:
        command += ["-o", preference]
    if display_filter:
        command += ["-Y", display_filter]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]
