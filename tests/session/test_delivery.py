"""Times of messages, and the acknowledgments of one that leaves its queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.formatname import parse
from msmqwire.session import Event, Incoming, MessageIDHistory, MessageLimit, Store
from msmqwire.session.acknowledgments import (
    ACK_RECEIVE,
    NACK_RECEIVE_TIMEOUT,
    is_order_queue,
    is_reached_by,
)
from msmqwire.session.delivery import Delivery, has_expired, removal_answers

PEER, OTHER = UUID(int=1), UUID(int=2)
NAME = "DIRECT=TCP:192.0.2.7\\private$\\orders"
HERE = "DIRECT=TCP:192.0.2.1\\private$\\answers"


def message(**fields: Any) -> mqqb.UserMessage:
    return mqqb.UserMessage(
        **{"destination_queue": NAME, "source_queue_manager": PEER, "message_id": 7, "sent_time": 100, **fields}
    )


@pytest.mark.parametrize(
    ("lifetime", "now", "expired"),
    [(5, 105.9, False), (5, 106.0, True), (0, 100.9, False), (0, 101.0, True), (0xFFFFFFFF, 1e12, False)],
)
def test_a_lifetime_has_whole_seconds(lifetime: int, now: float, expired: bool) -> None:
    assert has_expired(message(), lifetime, now) is expired


TRANSACTION = {"tx_sequence_id": 5, "tx_sequence_number": 2}


@pytest.mark.parametrize(
    ("fields", "message_class", "classes", "is_answered"),
    [
        ({}, ACK_RECEIVE, [], True),
        ({"positive_receive_ack": True}, ACK_RECEIVE, [], True),
        ({"positive_receive_ack": True, "admin_queue": HERE}, ACK_RECEIVE, [ACK_RECEIVE], True),
        ({"positive_receive_ack": True, "admin_queue": HERE}, NACK_RECEIVE_TIMEOUT, [], True),
        ({"negative_receive_ack": True, "admin_queue": HERE}, NACK_RECEIVE_TIMEOUT, [NACK_RECEIVE_TIMEOUT], True),
        ({"negative_receive_ack": True, "admin_queue": HERE}, ACK_RECEIVE, [], True),
        ({"positive_receive_ack": True, "admin_queue": NAME}, ACK_RECEIVE, [], False),
        ({"positive_source_journaling": True}, ACK_RECEIVE, [], True),
        ({"transaction": TRANSACTION}, ACK_RECEIVE, [], True),
        ({"transaction": TRANSACTION, "positive_source_journaling": True}, NACK_RECEIVE_TIMEOUT, [0xC002], True),
        ({"transaction": TRANSACTION, "negative_source_journaling": True}, ACK_RECEIVE, [ACK_RECEIVE], True),
        ({"transaction": {**TRANSACTION, "final_ack_required": True}}, ACK_RECEIVE, [ACK_RECEIVE], True),
        (
            {
                "transaction": {**TRANSACTION, "final_ack_required": True},
                "positive_receive_ack": True,
                "admin_queue": HERE,
            },
            ACK_RECEIVE,
            [ACK_RECEIVE, ACK_RECEIVE],
            True,
        ),
    ],
)
def test_answers_to_a_removal(
    fields: dict[str, Any], message_class: int, classes: list[int], is_answered: bool
) -> None:
    """[MS-MQQB] 3.1.7.2, S42: to the administration queue on the session, and a FinalAck."""
    answers, found = removal_answers(message(**fields), message_class, PEER, "192.0.2.1")
    assert [each.message_class for each in answers] == classes
    assert found is is_answered
    assert [is_order_queue(each.destination_queue) for each in answers] == [
        *[False] * (len(classes) - bool(fields.get("transaction") and classes)),
        *[True] * bool(fields.get("transaction") and classes),
    ]


@pytest.mark.parametrize(
    ("queue", "is_reached"),
    [
        (HERE, True),
        ("DIRECT=TCP:192.0.2.2\\private$\\answers", False),
        ("DIRECT=OS:192.0.2.1\\private$\\answers", False),
        (f"PRIVATE={PEER}\\1f", True),
        (f"PRIVATE={OTHER}\\1f", False),
        (f"PUBLIC={PEER}", False),
    ],
)
def test_queues_of_the_peer(queue: str, is_reached: bool) -> None:
    """S24."""
    assert is_reached_by(parse(queue), PEER, "192.0.2.1") is is_reached


@pytest.mark.parametrize(
    ("queue", "is_it"),
    [
        ("DIRECT=TCP:192.0.2.1\\private$\\Order_Queue$", True),
        ("DIRECT=TCP:192.0.2.1\\order_queue$", False),
        ("DIRECT=TCP:192.0.2.1\\private$\\orders", False),
        (f"PRIVATE={PEER}\\4", True),
        (f"PRIVATE={PEER}\\5", False),
        (f"PUBLIC={PEER}", False),
    ],
)
def test_order_queues(queue: str, is_it: bool) -> None:
    """S44."""
    assert is_order_queue(parse(queue)) is is_it


class Delivered:
    """What becomes of messages of one session."""

    def __init__(self, incoming: Incoming | None = None, **options: Any) -> None:
        self.events: list[Event] = []
        self.history = MessageIDHistory()
        defaults = {"accepts": None, "transactional": None, "limit": None, "sends_insecure_nacks": True}
        self.delivery = Delivery(
            self.events,
            history=self.history,
            incoming=incoming or Incoming(),
            address="192.0.2.1",
            port=1801,
            wall_clock=lambda: 100.0,
            **{**defaults, **options},
        )
        self.delivery.remote_queue_manager = PEER

    def give(self, given: mqqb.UserMessage, *, foreign: bool = False) -> list[object]:
        """The reason of each message that is not delivered, None of one that is."""
        self.events.clear()
        self.delivery.deliver(given, mqqb.encode(given), foreign, 0.0)
        return [getattr(each, "reason", None) for each in self.events]

    def answers(self) -> list[int | str | None]:
        return [answer.message_class for _, answer in self.delivery.stored()[0]]


ASKS = {
    "admin_queue": HERE,
    "positive_arrival_ack": True,
    "negative_arrival_ack": True,
    "positive_receive_ack": True,
    "negative_receive_ack": True,
}


@pytest.mark.parametrize(
    ("fields", "options", "foreign", "reason", "classes"),
    [
        ({}, {}, False, None, [2, ACK_RECEIVE]),
        ({}, {}, True, "other_queue_manager", []),
        ({"destination_queue": "DIRECT=TCP:192.0.2.7\\private$\\order_queue$"}, {}, False, "order_queue", []),
        ({}, {"accepts": lambda _: False}, False, "no_such_queue", [0x8000]),
        ({}, {"accepts": lambda _: True}, False, None, [2, ACK_RECEIVE]),
        ({}, {"transactional": lambda _: True}, False, "not_transactional_message", [0x800A]),
        ({}, {"transactional": lambda _: False}, False, None, [2, ACK_RECEIVE]),
        ({"time_to_reach_queue": 5, "sent_time": 94}, {}, False, "expired", [0x8002]),
        ({"time_to_reach_queue": 5, "sent_time": 95}, {}, False, None, [2, ACK_RECEIVE]),
        ({"time_to_be_received": 0}, {}, False, "not_received_in_time", [2, 0xC002]),
        ({"time_to_be_received": 5, "sent_time": 94}, {}, False, "not_received_in_time", [2, 0xC002]),
        ({"transaction": TRANSACTION}, {"transactional": lambda _: None}, False, None, [2, ACK_RECEIVE]),
        (
            {"transaction": TRANSACTION},
            {"transactional": lambda _: False},
            False,
            "not_transactional_queue",
            [0x8009, 0x8009],
        ),
    ],
)
def test_what_becomes_of_a_message(
    fields: dict[str, Any], options: dict[str, Any], foreign: bool, reason: str | None, classes: list[int]
) -> None:
    """[MS-MQQB] 3.1.5.8, with the acknowledgments that it asks for."""
    end = Delivered(**options)
    assert end.give(message(**ASKS, **fields), foreign=foreign) == [reason]
    assert end.answers() == classes
    assert end.answers() == []


def test_a_message_without_room_is_accepted_later(tmp_path: Path) -> None:
    """Its identifier is forgotten, so that it is no duplicate when there is room."""
    given, size = message(**ASKS), len(mqqb.encode(message(**ASKS)))
    with Store(tmp_path, quota=size) as store:
        end = Delivered(Incoming(store, store.message_ids))
        assert end.give(given) == [None]
        assert end.give(message(message_id=8, **ASKS)) == ["no_room"], "what came before is not committed, and counts"
        end.delivery.stored()
        assert store.waiting == 1
        classes = [mqqb.decode(packet).message_class for _, packet in store.answers(PEER, 0)]  # type: ignore[union-attr]
        assert classes == [2, 0x8003]
        store.remove(store.inbox())
        assert end.give(message(message_id=8, **ASKS)) == [None]
        assert end.give(message(message_id=8, **ASKS)) == ["duplicate"]


def test_messages_that_are_not_stored() -> None:
    """They are accepted when they come again, and the limit counts them no more."""
    limit = MessageLimit(3)
    end = Delivered(limit=limit)
    assert end.give(message(message_id=1)) == end.give(message(message_id=2)) == [None]
    assert limit.remaining == 1
    end.delivery.not_stored()
    assert limit.remaining == 3
    assert end.answers() == []
    assert end.give(message(message_id=1)) == [None]
    assert end.give(message(message_id=1)) == ["duplicate"]
