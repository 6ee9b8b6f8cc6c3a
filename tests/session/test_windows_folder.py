"""``examples/windows/compare.py`` on a folder of the form that ``record.ps1`` makes, here without Windows."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from msmqwire import mqqb, net
from msmqwire.cli.message_bodies import body_of_text
from msmqwire.session import MessageReceived, Store
from tests.capture import build
from tests.cli.support import COMMAND, ROOT, environ
from tests.net.relay import Relay
from tests.net.session_wire import free_port

FORMAT = r"DIRECT=TCP:127.0.0.1\private$\{}"
ACKNOWLEDGMENTS = {"ack_reach_queue": "ReachQueue", "ack_receive": "Receive", "nack_bad_dst_q": "BadDestinationQueue"}
ASKS = dict.fromkeys(
    (
        *("positive_arrival_ack", "negative_arrival_ack", "positive_receive_ack", "negative_receive_ack"),
        *("positive_source_journaling", "negative_source_journaling"),
    ),
    True,
)
REPLIES = [{"label": f"reply-{number}", "body_text": f"text of reply {number}"} for number in range(1, 6)]


class Recorder:
    """The frames of all connections of relays, as a capture of port 1801 has them."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self._ports: dict[socket.socket, int] = {}
        self._sequence: Counter[tuple[socket.socket, bool]] = Counter()

    def watch(self, connection: socket.socket, data: bytes, of_sender: bool) -> None:
        if connection not in self._ports:
            self._ports[connection] = 40_000 + len(self._ports)
            self._segment(connection, b"", True, 0x02)
            self._segment(connection, b"", False, 0x12)
        for start in range(0, len(data), 1400):
            self._segment(connection, data[start : start + 1400], of_sender, 0x18)

    def _segment(self, connection: socket.socket, data: bytes, of_sender: bool, flags: int) -> None:
        ports = [self._ports[connection], build.PORT]
        addresses = ["10.0.0.1", "10.0.0.2"]
        source, target = ports if of_sender else reversed(ports)
        src, dst = addresses if of_sender else reversed(addresses)
        at = self._sequence[connection, of_sender]
        frame = build.segment(data, 1000 + at, flags, source, target, src=src, dst=dst)
        self.frames.append(frame)
        self._sequence[connection, of_sender] += len(data) + (flags & 2 > 0)


def binary(text: str) -> tuple[bytes, int]:
    """A string as BinaryMessageFormatter writes it: [MS-NRBF] 2.1.1.6, 2.5.7."""
    data = text.encode()
    head = bytes.fromhex("0001000000ffffffff01000000000000000601000000")
    return head + bytes([len(data)]) + data + b"\x0b", 768


FORMATTERS: dict[str, Callable[[str], tuple[bytes, int]]] = {
    "xml": lambda text: body_of_text(text, "xml"),
    "activex": lambda text: body_of_text(text, "activex"),
    "binary": binary,
}


async def send_as_windows(folder: Path, port: int) -> None:
    """Each form of ``record.ps1``, with its rows."""
    sent: list[dict[str, Any]] = []
    acknowledgments: list[dict[str, Any]] = []

    async def handle(received: Sequence[MessageReceived]) -> None:
        for each in received:
            message = each.message
            acknowledgments.append(
                {
                    "acknowledgment": ACKNOWLEDGMENTS[message.message_class_name or ""],
                    "correlation_id": f"{message.correlation_guid}\\{message.correlation_ordinal}",
                }
            )

    with Store(folder / "windows") as store:
        async with net.connect("127.0.0.1", port, store=store, handler=handle) as client:

            async def send(queue: str, kind: str, formatter: str, label: str, asks: bool) -> None:
                text = f"text of {label}, with <&> and €"
                body, body_type = FORMATTERS[formatter](text)
                fields: dict[str, Any] = {
                    "destination_queue": FORMAT.format(queue),
                    "label": label,
                    "body": body,
                    "body_type": body_type,
                    **(ASKS | {"admin_queue": FORMAT.format("recorded_admin")} if asks else {}),
                }
                if kind == "transactional":
                    (message_id,) = client.commit([partial(mqqb.UserMessage, **fields)])
                else:
                    message_id = await client.send(mqqb.UserMessage(**fields | {"delivery_mode": kind}))
                sent.append(
                    {
                        "label": label,
                        "queue": fields["destination_queue"],
                        "kind": kind,
                        "formatter": formatter,
                        "text": text,
                        "asks": asks,
                        "missing": queue == "recorded_missing",
                        "message_id": f"{store.identifier}\\{message_id}",
                    }
                )

            for kind in ("express", "recoverable", "transactional"):
                queue = "recorded_tx" if kind == "transactional" else "recorded"
                for formatter in FORMATTERS:
                    await send(queue, kind, formatter, f"{kind}-{formatter}", False)
                await send(queue, kind, "xml", f"{kind}-asks", True)
            for kind in ("recoverable", "transactional"):
                await send("recorded_missing", kind, "xml", f"{kind}-missing", True)
            async with asyncio.timeout(60):
                while len(acknowledgments) < 8:
                    await asyncio.sleep(0.05)
    write(folder / "sent.jsonl", sent)
    write(folder / "acknowledgments.jsonl", acknowledgments)


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@contextlib.contextmanager
def receiving(store: Path, rows: Path, port: int) -> Iterator[None]:
    """``msmqwire receive``, until it has written all."""
    queues = ["--queue", "private$\\recorded", "--transactional", "private$\\recorded_tx", "--insecure-nacks"]
    command = [*COMMAND, "receive", "--store", str(store), "-o", str(rows), "--port", str(port), *queues]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environ()) as receiver:
        try:
            assert receiver.stderr is not None
            assert b"listening" in receiver.stderr.readline()
            yield
            receiver.send_signal(signal.SIGTERM)
            receiver.communicate(timeout=60)
        finally:
            receiver.kill()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up folder: real processes, and a relay in the place of pktmon."""
    folder, recorder = tmp_path_factory.mktemp("recorded"), Recorder()
    write(folder / "replies.jsonl", REPLIES)
    ports = free_port(), free_port()
    for port, direction in zip(ports, ("to", "from"), strict=True):
        relay = Relay(port, 0, 1 << 60, recorder.watch)
        places = (folder / "incoming", folder / "rows") if direction == "to" else (folder / "in", folder / "came")
        with receiving(*places, port), relay.running():
            if direction == "to":
                asyncio.run(send_as_windows(folder, relay.port))
                continue
            for queue, options in (
                ("recorded", ["--recoverable"]),
                ("recorded_tx", ["--transactional", "--store", str(folder / "outgoing")]),
            ):
                command = [*COMMAND, "send", FORMAT.format(queue), "--rows", *options, "--port", str(relay.port)]
                with (folder / "replies.jsonl").open("rb") as source:
                    assert subprocess.run(command, stdin=source, env=environ(), timeout=60).returncode == 0
    came = [
        (f".\\private$\\{path.stem.partition('.')[2]}", row) for path in folder.glob("came/*") for row in read(path)
    ]
    received = [{"queue": queue.replace("__", "_"), "label": row["label"]} for queue, row in came]
    write(folder / "received.jsonl", received)
    (folder / "capture.pcap").write_bytes(build.pcap(recorder.frames))
    write(folder / "events.jsonl", [{"time": "2026-01-01T00:00:00", "level": "Warning", "id": 2028, "text": "a line"}])
    return folder


def compared(folder: Path) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "examples" / "windows" / "compare.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environ())
    assert not done.stderr
    return done.returncode, done.stdout


def test_all_is_as_it_was_sent(recorded: Path) -> None:
    status, output = compared(recorded)
    assert output == ("event log: 2026-01-01T00:00:00 Warning 2028: a line\n14 messages of Windows, 0 differences\n")
    assert status == 0


def change(name: str, change: Callable[[list[dict[str, Any]]], object]) -> Callable[[Path], None]:
    def changed(folder: Path) -> None:
        rows = read(folder / name)
        change(rows)
        write(folder / name, rows)

    return changed


def cut_capture(folder: Path) -> None:
    data = (folder / "capture.pcap").read_bytes()
    (folder / "capture.pcap").write_bytes(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        (change("sent.jsonl", lambda rows: rows[0].update(text="other")), "express-xml: body_text is 'text of"),
        (change("sent.jsonl", lambda rows: rows[0].update(kind="recoverable")), "express-xml: delivery_mode is 'expr"),
        (change("sent.jsonl", lambda rows: rows.append({**rows[0], "label": "new"})), "new: not in the capture"),
        (change("rows/private.recorded__tx.jsonl", lambda rows: rows.reverse()), "transactional messages came as"),
        (change("rows/private.recorded.jsonl", lambda rows: rows.pop()), "recoverable-asks: 0 rows"),
        (change("rows/private.recorded.jsonl", lambda rows: rows.append(rows[0])), "express-xml: 2 rows"),
        (change("acknowledgments.jsonl", lambda rows: rows.pop()), "Windows got"),
        (change("received.jsonl", lambda rows: rows.pop()), "of Windows got ['reply-1'"),
        (cut_capture, "incomplete"),
    ],
)
def test_differences(recorded: Path, tmp_path: Path, changed: Callable[[Path], None], text: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(recorded, folder)
    changed(folder)
    status, output = compared(folder)
    assert status == 1
    assert text in output
