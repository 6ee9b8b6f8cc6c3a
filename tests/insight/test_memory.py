"""The memory of commands whose tables have as many rows as a capture has messages."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.messages import DIRECT, Message, packed_message
from benchmarks.streams import write_streams

MESSAGES = 400_000
MOST = 450  # MiB, of which the interpreter and the packages that it imports take about 150
PROGRAM = """
import re, sys
from msmqwire.cli import main
status = main(sys.argv[1:])
print(re.search('VmHWM:.([ 0-9]+)', open('/proc/self/status').read())[1])
sys.exit(status)
"""


def messages() -> Iterator[bytes]:
    """Yield messages of as many queue managers to as many queues; a fifth of them asks for order acknowledgments."""
    for number in range(MESSAGES):
        queue = f"OS:host-{number % 1000:03}\\private$\\queue_{number:07}".encode("utf-16-le")
        source = struct.pack("<QQ", number * 2_654_435_761, number)
        sequence = number % 1000 + 1 if number % 5 == 0 else 0
        yield packed_message(
            Message(3, source, bytes(16), 1_700_000_000, number, DIRECT, queue, sequence, b"", b"", 0, b"<order/>")
        )


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("memory") / "distinct.pcap"
    write_streams(path, messages())
    yield path
    path.unlink()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the peak in /proc")
@pytest.mark.parametrize("command", ["summary", "detect", "report"])
def test_memory_does_not_grow_with_what_is_distinct(capture: Path, command: str, tmp_path: Path) -> None:
    """Rows beyond the limit of DuckDB are in files, and the sections of a summary are written one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, command, "-j2", "-o", str(tmp_path / f"{command}.json"), str(capture)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if command == "summary":
        assert re.search(r"^queues: 300,000 rows left out", done.stderr, re.MULTILINE)
    assert f"{MESSAGES:,} rows of messages" in done.stderr
    assert int(done.stdout) >> 10 < MOST
