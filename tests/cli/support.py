"""Captures to decode, the command in this process or as another, and its output read back."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pytest

from msmqwire.capture import read_table
from msmqwire.cli import main
from tests.vectors import get

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "examples"
LOCAL, OTHER = EXAMPLES / "local-site.pcap", EXAMPLES / "other-site.pcapng"
SESSION = EXAMPLES / "message-session.pcap"
#: Packs frames with struct and knows nothing of msmqwire.
WRITER: dict[str, Any] = runpy.run_path(str(EXAMPLES / "make_captures.py"))

V1, V2, V3 = (get("mqsd", name) for name in ("V1-request", "V2-reply-local-site", "V3-reply-other-site"))
START = 1_709_539_200_123_456_789  # 2024-03-04 08:00:00.123456789 UTC
COMMAND = [sys.executable, "-m", "msmqwire"]

Row = dict[str, Any]


def capture(payloads: Sequence[bytes], *, step: int = 1_000_000_007) -> bytes:
    """A pcapng capture, nanoseconds and all, with a UDP datagram to port 1801 for each payload."""
    frames = []
    for number, payload in enumerate(payloads):
        datagram = WRITER["udp"]("10.20.1.25", 49712, "10.20.1.10", 1801, payload)
        frames.append(WRITER["Frame"](START + step * number, WRITER["ethernet"](0x0800, datagram)))
    data: bytes = WRITER["pcapng"](frames)
    return data


def reply_from(*names: str, mark: str = "10") -> bytes:
    """A TopologyServerReply from another site with servers of these names; any that MS-MQSD allows."""
    array = (",".join(mark + name for name in names) + "\0").encode("utf-16-le", "surrogatepass")
    reply: bytes = WRITER["reply"](WRITER["PRINTED_ID"], [WRITER["NETWORK"]])
    site: bytes = WRITER["SERVER_SITE"].bytes_le
    return reply[:28] + len(array).to_bytes(4, "little") + reply[32:] + site + array


class Done(NamedTuple):
    """What a command wrote, and its exit status."""

    returncode: int
    stdout: bytes
    stderr: bytes


def msmqwire(
    *arguments: str | Path,
    cwd: Path = ROOT,
    input: bytes | None = None,
    stdin: IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
) -> Done:
    """Run the command in this process, as in a pipe 120 columns wide; ``process`` is for what needs a process."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    source = io.TextIOWrapper(stdin or io.BytesIO(input or b""), "utf-8")
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(cwd):
        for name, stream in (("stdin", source), ("stdout", output), ("stderr", errors)):
            patch.setattr(sys, name, stream)
        for name, value in {"COLUMNS": "120", **(env or {})}.items():
            patch.setenv(name, value)
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            status = int(stop.code or 0)
    if stdin:
        source.detach()
    return Done(status, *(stream.buffer.getvalue() for stream in (output, errors)))


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """The exit status of the command, and its output and errors as text."""
    done = msmqwire(*arguments)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def refused(*arguments: str | Path, **options: Any) -> str:
    """The one line of a command that cannot be carried out; nothing is on standard output."""
    done = msmqwire(*arguments, **options)
    text = done.stderr.decode()
    assert (done.returncode, done.stdout) == (1, b""), text
    assert text.endswith("\n")
    assert len(text.splitlines()) == 1, text
    assert text.startswith("msmqwire")
    return text


def process(*arguments: str | Path | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command as a process."""
    command = [*COMMAND, *(each if isinstance(each, bytes) else str(each) for each in arguments)]
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    if "input" in options:
        del options["stdin"]
    environment = environ(**options.pop("env", {}))
    return subprocess.run(command, timeout=120, cwd=ROOT, env=environment, **options)


def environ(**more: str) -> dict[str, str]:
    """The environment of a process that runs the package as it stands here, as on a terminal 120 columns wide."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **more}


# --- What must come out ---


def nanoseconds(text: str) -> int:
    """A time as JSON and CSV have it, as nanoseconds since 1970."""
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z", text)
    assert match, text
    seconds = datetime.fromisoformat(match[1]).replace(tzinfo=UTC).timestamp()
    return int(seconds) * 1_000_000_000 + int(match[2])


def plain_rows(table: pa.Table) -> list[Row]:
    """Rows with times as nanoseconds, which Python has no type for."""
    place = table.schema.get_field_index("time")
    if place >= 0:
        table = table.set_column(place, "time", table["time"].cast(pa.int64()))
    rows: list[Row] = table.to_pylist()
    return rows


def expected_rows(*sources: str | Path, **options: Any) -> list[Row]:
    """What ``read_table`` makes of captures, with GUIDs as text unless the options say otherwise."""
    reader = read_table([str(source) for source in sources], **{"guid": "text", "dictionaries": False, **options})
    return plain_rows(pa.Table.from_batches(list(reader), reader.schema))


def from_json(data: bytes) -> list[Row]:
    """The rows of JSON lines."""
    text = data.decode()
    assert text == "" or text.endswith("\n")
    rows = [json.loads(line) for line in text.split("\n")[:-1]]
    for row in rows:
        if row.get("time"):
            row["time"] = nanoseconds(row["time"])
        if row.get("trailing"):
            row["trailing"] = bytes.fromhex(row["trailing"])
    return rows


_NUMBERS = {"frame", "first_frame", "src_port", "dst_port", "stream_offset", "version", "connected_network_mask"}
_NESTED = {"ipx_networks", "connected_networks", "servers", "fault", "violations"}


def from_csv(data: bytes) -> list[Row]:
    """The rows of CSV, with cells turned back into what they were."""
    text = data.decode()
    assert text.endswith("\r\n")
    rows = []
    for record in csv.DictReader(io.StringIO(text, newline=""), strict=True):
        rows.append({name: _value(name, cell) for name, cell in record.items()})
    return rows


def _value(name: str, cell: str) -> Any:
    if cell == "":
        return None
    if name in _NUMBERS:
        return int(cell)
    if name in _NESTED:
        return json.loads(cell)
    if name == "trailing":
        return bytes.fromhex(cell)
    return nanoseconds(cell) if name == "time" else cell


def limited(resource: str, limit: int) -> list[str]:
    """The command with a limit of the system."""
    program = f"import resource; resource.setrlimit(resource.RLIMIT_{resource}, ({limit}, {limit}))"
    return [sys.executable, "-c", f"{program}\nimport sys; from msmqwire.cli import main; sys.exit(main())"]
