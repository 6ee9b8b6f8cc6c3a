"""What a receiver answers to administration queues, when messages expire, and what it says of each message."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from msmqwire import mqqb
from msmqwire.session import MessageNotAnswered, MessageReceived
from tests.cli.support import EXAMPLES, process
from tests.net.session_wire import Wire, in_thread, listener
from tests.reference.mqqb_session_packets import (
    SessionAck,
    SessionHeader,
    UserMessage,
)
from tests.session.driven import PEER, WALL_TIME, Driven, open_acceptor

ADDRESS = "192.0.2.7"
ADMIN = f"TCP:{ADDRESS}\\private$\\admin"
LEDGER = uuid.UUID("ba000000-0000-4000-8000-0000000000c7")
PA, PR, NA, NR = 1, 2, 4, 8
REACHED, RECEIVED, REACH_TIMEOUT, RECEIVE_TIMEOUT = 0x0002, 0x4000, 0x8002, 0xC002
#: Whole seconds before the wall clock of the machine.
NOW = int(WALL_TIME)


def opened(address: str = ADDRESS, **options: Any) -> Driven:
    return open_acceptor(address=address, **options)


def message(**fields: Any) -> UserMessage:
    return UserMessage(PEER.bytes_le, 5, b"body", **{"sent_time": NOW, "admin_queue": ADMIN, **fields})


def answers(end: Driven, sent: UserMessage) -> list[UserMessage]:
    return [packet for packet in end.give(sent) if isinstance(packet, UserMessage)]


@pytest.mark.parametrize("asked", range(16))
@pytest.mark.parametrize(
    ("times", "sent"),
    [
        ({}, {PA: REACHED, PR: RECEIVED}),
        ({"time_to_be_received": 0}, {PA: REACHED, NR: RECEIVE_TIMEOUT}),
        ({"time_to_be_received": 5, "sent_time": NOW - 6}, {PA: REACHED, NR: RECEIVE_TIMEOUT}),
        ({"time_to_be_received": 5, "sent_time": NOW - 5}, {PA: REACHED, PR: RECEIVED}),
        ({"time_to_reach_queue": 5, "sent_time": NOW - 6}, {NA: REACH_TIMEOUT}),
        ({"time_to_reach_queue": 5, "sent_time": NOW - 5}, {PA: REACHED, PR: RECEIVED}),
    ],
    ids=["stored", "never to be received", "not received in time", "received in time", "late", "in time"],
)
@pytest.mark.parametrize("recoverable", [False, True])
def test_what_a_message_asks_for(recoverable: bool, times: dict[str, int], sent: dict[int, int], asked: int) -> None:
    """[MS-MQQB] 3.1.7.15, 3.1.7.2: lifetimes count from SentTime, and a TimeToBeReceived of 0 is over."""
    end = opened()
    found = answers(end, message(recoverable=recoverable, acknowledgments=asked, priority=6, **times))
    assert [each.message_class for each in found] == [of for bit, of in sent.items() if asked & bit]
    assert end.delivered == ([5] if PR in sent else [])
    for each in found:
        assert (each.queue, each.priority, each.recoverable) == (ADMIN, 6, recoverable)
        assert each.body == (b"body" if each.message_class >= 0x8000 else b"")


@pytest.mark.parametrize(
    ("address", "queue", "is_answered"),
    [
        (ADDRESS, ADMIN, True),
        (ADDRESS, "TCP:192.0.2.8\\private$\\admin", False),
        (ADDRESS, "OS:sender\\private$\\admin", False),
        ("2001:db8::1", "TCP:2001:DB8:0::1\\admin", True),
        ("fe80::1%eth0", "TCP:fe80::1\\admin", True),
        (ADDRESS, "31", True),  # a private queue of the source
    ],
)
def test_administration_queues_of_the_session(address: str, queue: str, is_answered: bool) -> None:
    """S24: one that is elsewhere is not answered, and reported."""
    end = opened(address)
    found = answers(end, message(acknowledgments=PA, admin_queue=queue))
    assert [each.message_class for each in found] == [REACHED] * is_answered
    unanswered = [event.message_class for event in end.events if isinstance(event, MessageNotAnswered)]
    assert unanswered == [REACHED] * (not is_answered)


def test_nothing_is_answered_before_the_message_is_stored() -> None:
    """S34: a message that is lost is not answered at all."""
    end = opened()
    end.session.receive_data(message(acknowledgments=PA | PR).pack(), 0.0)
    end.session.messages_not_stored()
    end.session.connection_lost(0.0)
    assert end.take() == []


def test_an_answer_names_its_message() -> None:
    end = opened()
    end.session.receive_data(message(acknowledgments=PA).pack(), 0.0)
    data = end.session.data_to_send()
    (found,) = (each for each in packets_of(data) if isinstance(each, mqqb.UserMessage))
    assert (found.message_class_name, found.correlation_guid, found.correlation_ordinal) == ("ack_reach_queue", PEER, 5)
    assert str(found.response_queue) == r"DIRECT=TCP:127.0.0.1\private$\orders"
    assert found.admin_queue is None  # no answer is answered


def packets_of(data: bytes) -> list[Any]:
    found = []
    while data:
        size = int.from_bytes(data[8:12], "little") + 16 * (data[2] >> 3 & 1 and data[2] >> 4 & 1 == 0)
        found.append(mqqb.decode(data[:size]))
        data = data[size:]
    return found


def test_where_and_when_a_message_was_received() -> None:
    end = opened(port=49152)
    end.give(message())
    (event,) = (each for each in end.events if isinstance(each, MessageReceived))
    assert (event.address, event.port, event.received_time) == (ADDRESS, 49152, WALL_TIME)
    assert event.token == f"{PEER}:5"


def test_notifications_are_not_signed() -> None:
    """[MS-MQCN] 3.3.5.3 asks for Sig20, which is left out: the packet says so."""
    packets: list[bytes] = []
    with listener() as listening:

        def play() -> None:
            wire = Wire(listening.accept()[0])
            wire.identifier = LEDGER.bytes_le
            wire.accept_session()
            packets.append(wire.read_packet())
            wire.write(SessionAck(SessionHeader(1, 0, 0, 0, 0)))
            wire.read_to_end()

        port = str(listening.getsockname()[1])
        options = (
            "--directory",
            EXAMPLES / "enterprise.toml",
            "--server",
            "dc1",
            "--host",
            "127.0.0.1",
            "--port",
            port,
        )
        with in_thread(play):
            done = process("notify", "delete", "ledger\\orders", *options)
            assert done.returncode == 0, done.stderr
    (sent,) = (mqqb.decode(packet, strict=True) for packet in packets)
    assert isinstance(sent, mqqb.UserMessage)
    assert sent.notification is not None
    security = sent.security
    assert security is None or not security.signature
