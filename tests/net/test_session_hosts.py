"""``send`` and ``receive`` on two hosts, with a capture of what they exchange: three readers agree on it."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.insight.interop import write
from tests.cli.support import COMMAND, from_json, msmqwire
from tests.net.hosts import SECONDS, Hosts, surroundings
from tests.system_programs import capturing, require_program

ADDRESSES = {"4": ("10.72.1.10", "10.72.1.20"), "6": ("fd72::10", "fd72::20")}
COUNT = 40
#: Columns that a capture has and a socket has not.
OF_CAPTURES = {
    *("file", "frame", "first_frame", "time", "src", "src_port", "dst", "dst_port"),
    *("transport", "stream_offset", "encapsulation", "unrecognized", "unrecognized_size"),
}
OF_RECEIVERS = {"received_time", "token", "src", "src_port"}


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    require_program("ip")
    with Hosts() as made:
        made.network("net")
        for number, host in enumerate(("sender", "receiver")):
            made.add(host)
            made.connect(host, "net", ADDRESSES["4"][number] + "/24")
            more = made.command(host, "ip", "address", "add", ADDRESSES["6"][number] + "/64", "dev", "eth0")
            subprocess.run(more, check=True, timeout=SECONDS)
        # An IPv6 address is usable once nobody has objected to it
        until = time.monotonic() + SECONDS
        while "tentative" in "".join(
            subprocess.run(made.command(host, "ip", "-6", "address"), capture_output=True, text=True).stdout
            for host in ("sender", "receiver")
        ):
            assert time.monotonic() < until
            time.sleep(0.1)
        yield made


def captured(hosts: Hosts, folder: Path, address: str) -> tuple[list[dict[str, Any]], Path]:
    """Send on one host, receive on another: the rows that were printed, and a capture."""
    path = folder / "session.pcap"
    tcpdump = hosts.command(
        *("receiver", require_program("tcpdump"), "-i", "eth0", "-U", "--immediate-mode", "-Z", "root"),
        *("-w", path, "tcp", "port", "1801"),
    )
    command = hosts.command(
        "receiver", *COMMAND, "receive", "--listen", address, "--count", COUNT, "--seconds", SECONDS
    )
    with capturing(tcpdump, "listening on") as watching, (folder / "rows.json").open("w+b") as rows:
        receiver = subprocess.Popen(command, stdout=rows, **surroundings())
        done = hosts.msmqwire(
            *("sender", "send", f"DIRECT=TCP:{address}\\private$\\orders", "--recoverable", "--count", COUNT),
            *("--label", "first order", "--text", "Grüße", "--timeout", SECONDS),
        )
        receiver.wait(SECONDS)
        assert (done.returncode, receiver.returncode) == (0, 0), done.stderr
        watching.terminate()
        watching.wait(SECONDS)
        rows.seek(0)
        return from_json(rows.read()), path


@pytest.mark.long
@pytest.mark.parametrize("version", ADDRESSES)
def test_capture_of_a_session(hosts: Hosts, tmp_path: Path, version: str) -> None:
    address = ADDRESSES[version][1]
    received, path = captured(hosts, tmp_path, address)
    assert [row["message_id"] for row in received] == list(range(1, COUNT + 1))

    # decode gives the rows that receive printed
    decoded = from_json(msmqwire("decode", path, "--table", "messages", "-T", "json").stdout)
    assert [without(row, OF_CAPTURES) for row in decoded] == [without(row, OF_RECEIVERS) for row in received]
    assert [(row["src"], row["src_port"]) for row in decoded] == [(row["src"], row["src_port"]) for row in received]
    sessions = from_json(msmqwire("decode", path, "--table", "sessions", "-T", "json").stdout)
    kinds = [row["kind"] for row in sessions]
    assert kinds[:4] == ["establish_connection"] * 2 + ["connection_parameters"] * 2
    assert set(kinds[4:]) == {"session_ack"}
    for row in (*decoded, *sessions):
        assert (row["fault"], row["violations"]) == (None, [])

    # tshark with the dissector reads the same
    write(tmp_path)
    fields = ("msmq.messages.message_id", "msmq.sessions.time_stamp", "msmq.sessions.ack_sequence_number")
    script = ["-X", f"lua_script:{tmp_path / 'msmq.lua'}", "-r", str(path), "-T", "json"]
    words = [word for field in fields for word in ("-e", field)]
    shown = subprocess.run(
        [require_program("tshark"), *script, *words], check=True, capture_output=True, timeout=SECONDS
    )
    layers = [packet["_source"].get("layers", {}) for packet in json.loads(shown.stdout)]
    for field, rows in zip(fields, (decoded, sessions, sessions), strict=True):
        column = field.rpartition(".")[2]
        values = [value for layer in layers for value in layer.get(field, [])]
        assert values == [str(row[column]) for row in rows if row[column] is not None]


def without(row: dict[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}
