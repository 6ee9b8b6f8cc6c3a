"""``msmqwire notify`` and ``receive --notifications``: changes of a directory, over a session."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from msmqwire import mqcn, mqqb
from msmqwire.mqqb import SecurityHeader
from msmqwire.session import Acceptor, Initiator, MessageReceived, Settings
from tests.cli.support import COMMAND, EXAMPLES, msmqwire, refused
from tests.cli.test_sessions import connected, receiving
from tests.net.session_wire import free_port

LEDGER = "ba000000-0000-4000-8000-0000000000c7"
ORDERS, INVOICES, MORE = (f"0e000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 9))
ENTERPRISE = EXAMPLES / "enterprise.toml"


def changed_enterprise(folder: Path) -> Path:
    """The enterprise with one queue changed, one deleted and one created on LEDGER."""
    text = ENTERPRISE.read_text("utf-8")
    start, end = text.index(f'[[queue]]\nidentifier = "{INVOICES}"'), text.index("[[queue]]", text.index(INVOICES))
    text = text[:start] + text[end:]
    text = text.replace('label = "Orders of the day"', 'label = "New"')
    text += f"\n[[queue]]\nidentifier = \"{MORE}\"\npathname = 'ledger\\more'\n"
    path = folder / "new.toml"
    path.write_text(text, "utf-8")
    return path


def notify(port: int, *options: str) -> tuple[int, str]:
    done = msmqwire("notify", "--server", "dc1", "--host", "127.0.0.1", "--port", str(port), *options)
    assert done.stdout == b""
    return done.returncode, done.stderr.decode()


def records(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_differences_are_applied(tmp_path: Path) -> None:
    """Every difference of two states of a directory, at the queue manager that has the first."""
    live = tmp_path / "live.toml"
    live.write_bytes(ENTERPRISE.read_bytes())
    new = changed_enterprise(tmp_path)
    options = ("--notifications", "--directory", str(live), "--queue-manager", LEDGER, "--count", "3")
    with receiving(*options) as (process, port):
        live.write_bytes(new.read_bytes())
        status, text = notify(port, "--before", str(ENTERPRISE), "--directory", str(new))
        assert (status, text) == (0, "3 notifications acknowledged by 1 queue manager\n")
        found = records(process.communicate(timeout=30)[0])
        assert process.returncode == 0
    by_queue = {each["identifier"]: each for each in found}
    assert by_queue[ORDERS]["changes"] == {"label": {"before": "Orders of the day", "after": "New"}}
    assert (by_queue[INVOICES]["outcome"], by_queue[MORE]["outcome"]) == ("deleted", "created")
    assert by_queue[MORE]["pathname"] == "ledger\\more"
    assert {each["section"] for each in found} == {"[MS-MQCN] 3.2.5.2"}


def test_a_machine_that_is_gone_does_not_keep_others_from_their_notifications(tmp_path: Path) -> None:
    new = changed_enterprise(tmp_path)
    depot = "ba000000-0000-4000-8000-0000000000d7"
    tables = re.split(r"(?m)^(?=\[\[)", new.read_text("utf-8"))
    new.write_text("".join(each for each in tables if depot not in each and "depot\\" not in each), "utf-8")
    options = ("--notifications", "--directory", str(ENTERPRISE), "--queue-manager", LEDGER, "--count", "3")
    with receiving(*options) as (process, port):
        status, text = notify(port, "--before", str(ENTERPRISE), "--directory", str(new))
        found = records(process.communicate(timeout=30)[0])
    assert {each["identifier"] for each in found} == {ORDERS, INVOICES, MORE}
    assert status == 1
    assert text == f"msmqwire: queue manager {depot}: the directory has no QueueManager {depot}, the next hop\n"


class Machines:
    """Queue managers at one port; counts its connections, and the most of them at once."""

    def __init__(self) -> None:
        self.open = self.most = self.messages = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        self.open += 1
        self.most = max(self.most, self.open)
        data = await reader.readexactly(572)
        # In a window of 1 each message is acknowledged at once
        acceptor = Acceptor(uuid.UUID(bytes_le=data[36:52]), settings=Settings(window_size=1))
        acceptor.connection_made(loop.time())
        while data:
            events = acceptor.receive_data(data, loop.time())
            if received := sum(isinstance(event, MessageReceived) for event in events):
                self.messages += received
                await asyncio.sleep(0.2)  # until others have connected
            writer.write(acceptor.data_to_send())
            data = await reader.read(4096)
        self.open -= 1
        writer.close()


def test_many_queue_managers_with_few_descriptors(tmp_path: Path) -> None:
    for name, quota in (("old", 1), ("new", 2)):
        machines = [
            f"[[queue_manager]]\nidentifier = '{uuid.UUID(int=number)}'\n"
            f"computer_name = 'm{number}'\njournal_quota = {quota}\n"
            for number in range(1, 31)
        ]
        (tmp_path / f"{name}.toml").write_text("".join(machines))
    peers = Machines()

    async def main() -> tuple[int | None, str]:
        server = await asyncio.start_server(peers.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        command = [*COMMAND, "notify", "--before", tmp_path / "old.toml", "--directory", tmp_path / "new.toml"]
        address = ("--server", "dc1", "--host", "127.0.0.1", "--port", port)
        limited = ("sh", "-c", 'ulimit -n 40; exec "$@"', "sh", *map(str, (*command, *address)))
        async with server:
            running = await asyncio.create_subprocess_exec(*limited, stderr=subprocess.PIPE)
            _, said = await running.communicate()
        return running.returncode, said.decode()

    assert asyncio.run(main()) == (0, "30 notifications acknowledged by 30 queue managers\n")
    assert peers.messages == 30
    assert peers.most <= 5  # an eighth of the descriptors


@pytest.mark.parametrize(
    ("arguments", "outcome"),
    [
        (["delete", "ledger\\orders"], {"outcome": "deleted", "pathname": "ledger\\orders"}),
        (["change", ORDERS], {"outcome": "changed", "changes": {}}),
        (["change", "LEDGER"], {"outcome": "changed", "object": "machine", "changes": {}}),
    ],
)
def test_one_event(arguments: list[str], outcome: dict[str, Any]) -> None:
    options = ("--notifications", "--directory", str(ENTERPRISE), "--queue-manager", LEDGER, "--count", "1")
    with receiving(*options) as (process, port):
        status, _ = notify(port, *arguments, "--directory", str(ENTERPRISE))
        (found,) = records(process.communicate(timeout=30)[0])
    assert status == 0
    assert found.items() >= outcome.items()


@pytest.mark.long
def test_version_1_needs_a_trusted_sender() -> None:
    """A notification with values is disregarded, unless its signed sender is trusted."""
    update = mqcn.NotificationUpdate(
        command="change",
        guid_identifier=uuid.UUID(INVOICES),
        guid_master_id=uuid.UUID(int=1),
        properties=[(115, uuid.UUID(LEDGER)), (105, 7)],
    )
    sender = uuid.UUID(int=9)
    initiator = Initiator()
    initiator.outgoing.add(
        mqqb.UserMessage(
            destination_queue=rf"PRIVATE={LEDGER}\3",
            body=mqcn.encode_body(mqcn.ChangeNotificationMessage(1, [update])),
            security=SecurityHeader(security_flags=0xC2, security_id=sender.bytes_le, signature=b"signature"),
        ),
        0.0,
    )
    packet = initiator.outgoing.waiting.pop().packet
    for trust, outcome in (([], "disregarded"), (["--trust", str(sender)], "changed")):
        options = ("--notifications", "--directory", str(ENTERPRISE), "--queue-manager", LEDGER, "--count", "1")
        with receiving(*options, *trust) as (process, port):
            connected(port).write(packet)
            (found,) = records(process.communicate(timeout=30)[0])
        assert found["outcome"] == outcome
    assert found["changes"] == {"quota": {"before": 65536, "after": 7}}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "name an event and an object"),
        (["change"], "name an event and an object"),
        (["change", "x\\y", "--before", "old.toml"], "name an event and an object"),
        (["create", "ledger\\none"], "no Queue in the directory has the Pathname or the Identifier ledger\\none"),
        (["change", "NOBODY"], "no QueueManager in the directory has the ComputerName NOBODY"),
        (["change", "ledger\\orders"], "name the directory server that queue managers read: --server NAME"),
    ],
)
def test_wrong_usage(arguments: list[str], error: str) -> None:
    done = msmqwire("notify", "--directory", str(ENTERPRISE), *arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    assert error in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_no_answer() -> None:
    status, text = notify(free_port(), "delete", ORDERS, "--directory", str(ENTERPRISE), "--timeout", "1")
    assert status == 1
    assert text.startswith(f"msmqwire: queue manager {LEDGER}: no acknowledgment within 1 s: cannot connect")
    assert text.count("\n") == 1


def test_no_change_is_no_notification() -> None:
    assert notify(1, "--before", str(ENTERPRISE), "--directory", str(ENTERPRISE)) == (
        0,
        "0 notifications acknowledged by 0 queue managers\n",
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--directory", "x"], "--queue-manager GUID"),
        (["--trust", LEDGER], "add --notifications"),
        (["--notifications"], "needs the directory and its queue manager"),
        (["--notifications", "--queue", "q"], "leave out --queue, --transactional, --store and -o"),
        (["--notifications", "--directory", str(ENTERPRISE), "--queue-manager", ORDERS], "no QueueManager in the"),
    ],
)
def test_wrong_usage_of_receive(arguments: list[str], error: str) -> None:
    done = msmqwire("receive", *arguments)
    assert (done.returncode, done.stdout) == (1, b"")
    assert error in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1


def test_two_queues_of_one_path(tmp_path: Path) -> None:
    twice = tmp_path / "twice.toml"
    text = ENTERPRISE.read_text("utf-8")
    twice.write_text(f"{text}\n[[queue]]\nidentifier = \"{MORE}\"\npathname = 'LEDGER\\orders'\n", "utf-8")
    said = refused("receive", "--notifications", "--directory", twice, "--queue-manager", LEDGER)
    assert said.startswith(f"msmqwire: {twice}: a queue {MORE} or LEDGER\\orders exists already; ")
