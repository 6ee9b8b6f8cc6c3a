"""Which queues ``msmqwire receive`` takes messages to, by the names that senders use and by its directory."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli.queues import PublicQueues, kinds_of_queues
from msmqwire.directory import Queue
from msmqwire.mqqb import TransactionHeader, UserMessage, encode
from tests.cli.support import msmqwire, refused
from tests.cli.test_received_messages import acknowledgment
from tests.cli.test_sessions import connected, receiving

MACHINE, ORDERS, BILLS, OTHER, SOURCE, NIL = (uuid.UUID(int=number) for number in (1, 2, 3, 4, 5, 0))
DIRECTORY = rf"""
[[queue_manager]]
identifier = '{MACHINE}'
computer_name = 'here'
[[queue]]
identifier = '{ORDERS}'
pathname = 'here\Orders of the day'
[[queue]]
identifier = '{BILLS}'
pathname = 'HERE\bills'
transactional = true
[[queue]]
identifier = '{OTHER}'
pathname = 'there\bills'
"""
PUBLIC = PublicQueues(
    [
        Queue(identifier=ORDERS, pathname="here\\Orders of the day"),
        Queue(identifier=BILLS, pathname="here\\bills", transactional=True),
    ]
)


def address(queue: str) -> UserMessage:
    manager = NIL if queue.startswith("DIRECT") else MACHINE
    return UserMessage(destination_queue=queue, queue_manager_address=manager)


@pytest.mark.parametrize(
    ("name", "queue", "accepted"),
    [
        ("Orders of the day", f"PUBLIC={ORDERS}", True),
        (r"here\orders of the day", f"PUBLIC={ORDERS}", True),
        (f"PUBLIC={ORDERS}", f"PUBLIC={ORDERS}", True),
        (f"PUBLIC={ORDERS}", r"DIRECT=OS:here\Orders of the Day", True),
        (f"FormatName:PUBLIC={ORDERS}", f"PUBLIC={BILLS}", False),
        (f"PUBLIC={ORDERS}", r"DIRECT=OS:here\private$\orders of the day", False),
        ("orders", f"PUBLIC={OTHER}", False),
        (rf"PRIVATE={MACHINE}\1F", rf"PRIVATE={MACHINE}\1F", True),
        (rf"PRIVATE={MACHINE}\1F", rf"PRIVATE={MACHINE}\20", False),
        ("orders", rf"PRIVATE={MACHINE}\1F", False),
    ],
)
def test_a_queue_by_each_of_its_names(name: str, queue: str, accepted: bool) -> None:
    accepts, _ = kinds_of_queues([name], [], PUBLIC, MACHINE)
    assert accepts is not None
    assert accepts(address(queue)) is accepted


@pytest.mark.parametrize(
    ("chosen", "transactional", "queue", "kind"),
    [
        ([], [], f"PUBLIC={BILLS}", True),
        ([], [], r"DIRECT=OS:here\bills", True),
        ([], [], f"PUBLIC={ORDERS}", False),
        ([], [], r"DIRECT=OS:here\private$\bills", None),
        (["bills"], [], r"DIRECT=OS:here\bills", True),
        (["private$\\bills"], [], r"DIRECT=OS:here\private$\bills", False),
        ([], ["orders of the day"], f"PUBLIC={ORDERS}", True),
    ],
)
def test_the_directory_says_which_queues_are_transactional(
    chosen: Sequence[str], transactional: Sequence[str], queue: str, kind: bool | None
) -> None:
    _, is_transactional = kinds_of_queues(chosen, transactional, PUBLIC, MACHINE)
    assert is_transactional(address(queue)) is kind


@pytest.mark.parametrize("option", ["--queue", "--transactional"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            f"PUBLIC={ORDERS}",
            f"PUBLIC={ORDERS}: its path is unknown: name the queue by its path, or give its directory",
        ),
        (rf"PRIVATE={MACHINE}\1F", "is a queue of another queue manager: name this one with --queue-manager"),
    ],
)
def test_names_that_no_message_would_match(option: str, name: str, reason: str) -> None:
    assert reason in refused("receive", option, name, "--port", "0", "--seconds", "0.1")


def test_the_directory_needs_its_queue_manager(tmp_path: Path) -> None:
    path = tmp_path / "enterprise.toml"
    path.write_text(DIRECTORY)
    assert "--queue-manager GUID" in refused("receive", "--directory", path)
    assert f"has the Identifier {ORDERS}" in refused("receive", "--directory", path, "--queue-manager", str(ORDERS))
    options = ("--directory", path, "--queue-manager", str(MACHINE))
    nameless = tmp_path / "nameless.toml"
    nameless.write_text(DIRECTORY.replace("computer_name = 'here'", "computer_name = ''"))
    assert "no name of" in refused("receive", "--directory", nameless, "--queue-manager", str(MACHINE))
    assert "its path is unknown" in refused("receive", *options, "--queue", f"PUBLIC={OTHER}")


def packet(number: int, queue: str = f"PUBLIC={BILLS}", *, transactional: bool = False) -> bytes:
    transaction = TransactionHeader(tx_sequence_id=1, tx_sequence_number=number) if transactional else None
    fields: dict[str, Any] = {"transaction": transaction, "priority": 0} if transactional else {}
    return encode(
        UserMessage(
            destination_queue=queue,
            queue_manager_address=NIL if queue.startswith("DIRECT") else MACHINE,
            source_queue_manager=SOURCE,
            message_id=number,
            sent_time=0x60000000,
            delivery_mode="recoverable",
            **fields,
        )
    )


def test_rows_of_public_names_are_in_the_file_of_their_path(tmp_path: Path) -> None:
    """A queue of the directory is transactional: plain messages to it are not written, and there is a line."""
    path, rows = tmp_path / "enterprise.toml", tmp_path / "rows"
    path.write_text(DIRECTORY)
    options = ("--directory", str(path), "--queue-manager", str(MACHINE), "--queue", "bills", "-o", str(rows))
    with receiving(*options) as (process, port):
        peer = connected(port)
        peer.write(
            packet(1, transactional=True)
            + packet(2)
            + packet(3)
            + packet(4, "DIRECT=TCP:127.0.0.1\\other")
            + packet(5, "DIRECT=TCP:127.0.0.1\\bills", transactional=True)
        )
        acknowledgment(peer)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=30)[1].decode().splitlines()
    place = "are acknowledged and not written: it"
    assert errors == [
        f"127.0.0.1: messages to PUBLIC={BILLS} {place} takes transactional messages only",
        f"127.0.0.1: messages to DIRECT=TCP:127.0.0.1\\other {place} is not a chosen queue",
        "2 messages received, 2 not transactional message, 1 no such queue",
    ]
    (file,) = rows.iterdir()
    assert file.name == "public.bills.jsonl"
    written = [json.loads(line)["destination_queue"] for line in file.read_text().splitlines()]
    assert written == [f"PUBLIC={BILLS}", "DIRECT=TCP:127.0.0.1\\bills"]


def test_a_queue_with_a_blank_and_other_letters(tmp_path: Path) -> None:
    """From ``send`` to ``receive``, each by the name that people type."""
    name = r"private$\Neue Bücher"
    with receiving("--queue", name, "--count", "1", "-o", str(tmp_path)) as (process, port):
        done = msmqwire("send", rf"127.0.0.1\{name}", "--port", str(port), "--recoverable", "--text", "x", "--quiet")
        assert done == (0, b"", b"")
        process.communicate(timeout=30)
        assert process.returncode == 0
    (file,) = tmp_path.iterdir()
    assert json.loads(file.read_text())["destination_queue"] == r"DIRECT=OS:127.0.0.1\PRIVATE$\Neue Bücher"
