"""The resident memory of ``receive`` while many peers send packets that they never complete, and after that."""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.net.session_wire import DEADLINE, Wire
from tests.net.test_session_sockets import MIB, Receiving, deliver, open_files
from tests.reference.mqqb_session_packets import ConnectionParameters, SessionAck, UserMessage

ALMOST = UserMessage(bytes(range(16)), 1, bytes(4 * MIB - 1000)).pack()[:-1]

#: Prints its port, and on a line of standard input how many sessions it ended and messages it stored, and its memory.
SERVER = """
import asyncio, resource, sys
from msmqwire import net

async def main():
    stored = []
    async def store(received):
        stored.extend(received)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with net.serve(store, port=0, max_incomplete_bytes=32 << 20) as server:
        print(server.port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(server.ended_for_memory, len(stored), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)

asyncio.run(main())
"""


def peak(receiving: Receiving) -> int:
    """The most bytes that were resident at any time."""
    status = Path(f"/proc/{receiving.process.pid}/status").read_text("ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmHWM:"))


def flood(port: int, connections: int, data: bytes, then: Callable[[], None]) -> None:
    """Send this on each of many connections at the same time, and close them after a call."""
    opened = [socket.create_connection(("127.0.0.1", port), DEADLINE) for _ in range(connections)]
    with selectors.DefaultSelector() as selector:
        for each in opened:
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
            selector.register(each, selectors.EVENT_WRITE, [0])
        while selector.get_map():
            for key, _ in selector.select(DEADLINE):
                assert isinstance(key.fileobj, socket.socket)
                try:
                    key.data[0] += key.fileobj.send(memoryview(data)[key.data[0] :][: 1 << 18])
                except BlockingIOError:
                    continue
                except ConnectionError:
                    key.data[0] = len(data)
                if key.data[0] == len(data):
                    selector.unregister(key.fileobj)
    then()
    for each in opened:
        each.close()


@pytest.mark.long
def test_1000_packets_without_their_last_byte(tmp_path: Path) -> None:
    with open_files(4096):
        receiving = Receiving(tmp_path)
        try:
            for _ in range(3):
                flood(receiving.port, 1000, ALMOST, partial(deliver, receiving))
                deliver(receiving)
            assert peak(receiving) < (512 + 300) * MIB
            assert receiving.memory() < 300 * MIB
        finally:
            said = receiving.stop()
    assert len(receiving.rows()) == 6
    lines = [line for line in said.splitlines() if "ended for that so far" in line]
    assert lines[0].endswith("of an incomplete packet, and all sessions more than 512 MiB; ended for that so far: 1")
    assert lines[-1].rpartition(": ")[2] in ("1,000", "2,000")


def test_the_session_with_the_most_bytes_is_ended(tmp_path: Path) -> None:
    """As above, of a server with a lower limit; the bytes of sessions that have ended are not kept."""
    program = tmp_path / "program.py"
    program.write_text(SERVER)
    process = subprocess.Popen([sys.executable, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline())
        for _ in range(3):
            flood(port, 60, ALMOST, lambda: None)
        wire = Wire.connect("127.0.0.1", port)
        wire.open_session(ConnectionParameters(window_size=1))
        wire.write(wire.message(1, bytes(4 * MIB - 1000)))
        assert wire.read(SessionAck).header.ack_sequence_number == 1
        wire.close()
        said, _ = process.communicate("\n", timeout=DEADLINE)
    finally:
        process.kill()
        process.wait()
    ended, stored, most = map(int, said.split())
    assert ended >= 3 * (60 - 32 // 4 - 1)
    assert stored == 1
    assert most < (32 + 60) * MIB, f"{most / MIB:.0f} MiB"
