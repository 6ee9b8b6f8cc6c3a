"""All commands tell one story of the change notifications in a capture."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

from msmqwire import mqcn, mqqb
from msmqwire.notification.sender import QueueCreation, QueueDeletion, QueueManagerUpdate, QueueUpdate, Signature
from tests.cli.support import run
from tests.notification.sent import (
    FROM_USER,
    LEDGER,
    MACHINE,
    MANAGER,
    MASTER,
    ORDERS,
    SERVICE,
    captured_packets,
    changed,
    packet_of,
)


def update(*properties: tuple[int, Any], **fields: Any) -> bytes:
    """The body of a message of version 1 with one update."""
    if "path_name" not in fields:
        fields = {"guid_identifier": ORDERS.identifier, **fields}
    made = mqcn.NotificationUpdate(
        **{"command": "change", "guid_master_id": MASTER, "properties": properties, **fields}
    )
    return mqcn.encode_body(mqcn.ChangeNotificationMessage(1, [made]), enforce=False)


GOOD = update((115, LEDGER), (105, 7))
EVENT = mqcn.encode_body(mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(2, ORDERS.identifier, "dc1")))
PRIVATE = "ledger\\private$\\a"
WRONG: list[tuple[str, str, bytes]] = [
    ("disregarded", "sender_type", packet_of(GOOD, None)),
    ("disregarded", "sender_type", packet_of(GOOD, FROM_USER)),
    ("disregarded", "malformed", packet_of(GOOD + bytes(4))),
    ("disregarded", "malformed", packet_of(EVENT + bytes(4), None)),
    ("disregarded", "malformed", packet_of(b"\1\1\0")),
    ("disregarded", "version", packet_of(b"\3\1")),
    ("disregarded", "object_type", packet_of(update((301, "Berlin")))),
    ("disregarded", "object_type", packet_of(update((1403, 1), (1404, 2), command="delete"))),
    ("disregarded", "no_identifier", packet_of(update((103, "ledger\\a"), command="create", path_name="ledger\\a"))),
    ("disregarded", "value", packet_of(update((115, LEDGER), (104, 7)))),
    ("ignored", "private_queue", packet_of(update((101, UUID(int=9)), command="create", path_name=PRIVATE))),
    ("ignored", "machine_created", packet_of(update((202, LEDGER), command="create"))),
]


def conforming() -> list[bytes]:
    """A notification of every kind in either version, as senders sign them."""
    new = changed(ORDERS, quota=9)
    changes: Any = [
        QueueCreation(queue=ORDERS, queue_manager=LEDGER),
        QueueUpdate(old=ORDERS, new=new, queue_manager=LEDGER),
        QueueDeletion(queue=new, queue_manager=LEDGER),
        QueueManagerUpdate(old=MACHINE, new=changed(MACHINE, journal_quota=4)),
    ]
    sent = [each for sender in (SERVICE, MANAGER) for each in sender.notifications(changes)]
    sign = Signature(signature=b"signature")
    return [mqqb.encode(each.packet(message_id=n, sign=lambda *_: sign)) for n, each in enumerate(sent, 1)]


def lines(*words: str | Path) -> list[dict[str, Any]]:
    """The rows that a command prints."""
    status, output, errors = run(*words, "-q", "-T", "json")
    assert status in (0, 2), errors
    return [json.loads(line) for line in output.splitlines()]


def test_all_commands_tell_one_story(tmp_path: Path) -> None:
    path = tmp_path / "both.pcap"
    path.write_bytes(captured_packets([*conforming(), *(packet for _, _, packet in WRONG)]))
    decoded = lines("decode", path, "--table", "notifications")
    applied = [row for row in decoded if row["outcome"] == "applied"]
    assert len(applied) == 8
    wrong = Counter((outcome, rule) for outcome, rule, _ in WRONG)
    assert Counter((row["outcome"], row["rule"]) for row in decoded if row["rule"]) == wrong

    summary: Counter[Any] = Counter()
    for row in lines("summary", path, "--table", "notifications"):
        summary[row["applied"], row["rule"]] += row["changes"]
    rules = Counter(rule for _, rule in wrong.elements())
    assert summary == Counter({(True, None): 8}) + Counter({(False, rule): count for rule, count in rules.items()})
    events = [row for row in lines("summary", path, "--table", "timeline") if row["event"] == "refusal"]
    assert {row["detail"]: row["packets"] for row in events} == rules

    found = lines("detect", path)
    assert {each["rule"] for each in found} == {"refused-notification"}
    evidence = [each["evidence"] for each in found]
    assert {(each["outcome"], each["reason"]): each["packets"] for each in evidence} == wrong
    frames = {row["frame"] for row in decoded if row["rule"]}
    assert {frame for each in found for frame in each["frames"]} == frames

    queues = lines("replay", path)
    history = [event for queue in queues for event in queue["history"]]
    assert sum(event["applied"] for event in history) == sum(row["object"] == "queue" for row in applied)
    assert [event["rule"] for event in history if not event["applied"]] == ["private_queue"]
    by_rule = Counter(rule for outcome, rule in wrong.elements() if outcome == "disregarded")
    status, _, errors = run("replay", path)
    counts = ", ".join(f"{count} {rule}" for rule, count in by_rule.items())
    assert f" {by_rule.total()} disregarded ({counts}), " in errors
    assert errors.endswith(", 2 changes of machines\n")
    assert (status, errors.splitlines()[-2]) == (2, run("decode", path, "-o", tmp_path / "x.jsonl")[2].splitlines()[-1])

    assert run("report", path, "-q", "-o", tmp_path / "report.html")[0] == status
    page = (tmp_path / "report.html").read_text("utf-8")
    for outcome, rule in wrong:
        assert f"outcome {outcome}; reason {rule};" in re.sub(r"<[^>]+>", " ", page).replace("  ", " ")
    for name in {*(outcome for outcome, _ in wrong), *rules, "refused-notification"}:
        assert run("explain", name)[0] == 0
