"""``send`` and ``receive`` against packets written by hand: every ruling on sessions, and what peers do wrong."""

from __future__ import annotations

import io
import json
import socket
import sys
import uuid
from pathlib import Path

import pytest

from msmqwire.cli import main
from tests.cli import receive_scenarios, send_scenarios
from tests.cli.support import msmqwire
from tests.net.session_wire import free_port, in_thread, listener

QUEUE = "DIRECT=TCP:127.0.0.1\\private$\\orders"


@pytest.mark.parametrize("scenario", send_scenarios.SCENARIOS, ids=lambda scenario: scenario.name)
def test_send(scenario: send_scenarios.Scenario) -> None:
    content = () if {"--text", "--body"} & set(scenario.options) else ("--text", "hello")
    timeout = () if "--timeout" in scenario.options else ("--timeout", "20")
    with listener() as listening:
        port = str(listening.getsockname()[1])
        with in_thread(lambda: scenario.play(send_scenarios.Acceptor(listening))):
            done = msmqwire("send", QUEUE, "--port", port, *content, *timeout, *scenario.options)
            listening.shutdown(socket.SHUT_RDWR)  # a script that still waits for a connection fails now
    assert done.returncode == scenario.status, done.stderr.decode()
    assert scenario.error in done.stderr.decode().lower()
    assert done.stderr.count(b"\n") <= 1 or scenario.status in (0, 3)
    assert tuple(json.loads(line)["message_class_name"] for line in done.stdout.splitlines()) == scenario.rows


@pytest.mark.parametrize("scenario", receive_scenarios.SCENARIOS, ids=lambda scenario: scenario.name)
def test_receive(scenario: receive_scenarios.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    peer = receive_scenarios.Initiator(scenario.host, free_port(scenario.host))
    expected = scenario.rows or ("end",)

    def play() -> None:
        scenario.play(peer)
        if not scenario.rows:
            peer.session().write(peer.connection().message(1, b"end"))

    identifier = str(uuid.UUID(bytes_le=receive_scenarios.QUEUE_MANAGER))
    options = ("--port", str(peer.port), "--queue-manager", identifier, "--count", str(len(expected)))
    path, errors = tmp_path / "rows.json", io.StringIO()
    # A file, which recoverable messages reach before their acknowledgment
    with path.open("w", encoding="utf-8") as rows, in_thread(play), monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", rows)
        patch.setattr(sys, "stderr", errors)
        status = main(["receive", *options, "--seconds", "60", *scenario.options])
    assert status == 0, errors.getvalue()
    assert tuple(json.loads(line)["label"] for line in path.read_text("utf-8").splitlines()) == expected


def test_names_are_unique() -> None:
    for table in (send_scenarios.SCENARIOS, receive_scenarios.SCENARIOS):
        names = [scenario.name for scenario in table]
        assert len(set(names)) == len(names)
