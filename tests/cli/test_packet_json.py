"""A packet as a dict is the object that ``decode`` writes of it, and what ``encode`` makes the packet of again."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.cli.packets import has_invalid_name, packet_of
from tests.cli.support import msmqwire
from tests.columns.test_packet_values import ACK, CHANGES, MESSAGE, REPLY, REQUEST, UPDATE
from tests.vectors import get, load

PACKETS: dict[str, list[Any]] = {
    "topology": [REQUEST, REPLY, *(mqsd.decode(each.data) for each in load("mqsd") if each.canonical)],
    "messages": [
        MESSAGE,
        *(mqqb.decode(each.data) for each in load("mqqb") if each.canonical and each.table == "messages"),
    ],
    "sessions": [ACK, mqqb.Ping(cookie=7, queue_manager=UUID(int=8))],
}
ONE_OF_EACH = [(table, packet) for table, packets in PACKETS.items() for packet in packets[:3]]


@pytest.mark.parametrize(("table", "packet"), ONE_OF_EACH, ids=lambda each: each if isinstance(each, str) else "")
def test_a_packet_is_the_object_that_decode_writes(table: str, packet: Any) -> None:
    codec = mqsd if table == "topology" else mqqb
    done = msmqwire("decode", "--hex", codec.encode(packet).hex(), "--table", table, "-T", "json")
    assert packet.to_dict() == json.loads(done.stdout)


@pytest.mark.parametrize("table", PACKETS)
def test_a_packet_is_built_from_its_dict(table: str) -> None:
    codec = mqsd if table == "topology" else mqqb
    for packet in PACKETS[table]:
        row = json.loads(json.dumps(packet.to_dict()))
        if "\ufffd" in str(row) or has_invalid_name(row):  # text that JSON does not have, names that are not valid
            continue
        assert codec.decode(packet_of(table, [row])) == packet


def test_a_notification_has_a_row_for_each_change() -> None:
    message = mqcn.ChangeNotificationMessage(1, [UPDATE, UPDATE])
    done = msmqwire("decode", "--hex", mqcn.encode(message).hex(), "--table", "notifications", "-T", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    found = message.to_dict()
    assert found == {"version": 1, "violations": [], "changes": rows}
    assert [row["index"] for row in rows] == [0, 1]
    assert UPDATE.to_dict() == rows[0] == CHANGES.to_dict()["changes"][0]


def test_an_update_has_the_violations_that_it_has_in_its_message() -> None:
    message = mqcn.decode(mqcn.encode(CHANGES) + b"more")
    assert message.updates[0].to_dict()["violations"] == ["trailing_bytes"] == message.to_dict()["violations"]


def test_a_change_of_a_queue_manager_has_one_row() -> None:
    message = mqcn.decode(get("mqcn", "C3-body").data)
    (row,) = message.to_dict()["changes"]
    assert message.body is not None
    assert row["operation"] == message.body.operation
    assert row["object_guid"] == str(message.body.object_guid)
