"""MessageIDHistoryTable."""

from __future__ import annotations

import pytest

from msmqwire.session import MessageIDHistory
from tests.reference.mqqb_session_packets import UserMessage
from tests.session.peers import OWN, PEER, incoming


def is_duplicate(history: MessageIDHistory, packet: bytes, now: float) -> bool:
    return history.first_address(packet, now) is not None


def test_source_and_identifier_are_compared() -> None:
    """S3."""
    history = MessageIDHistory()
    assert not is_duplicate(history, incoming(1), 0.0)
    assert is_duplicate(history, incoming(1, recoverable=True), 0.0)
    assert not is_duplicate(history, incoming(2), 0.0)
    assert not is_duplicate(history, UserMessage(OWN.bytes_le, 1).pack(), 0.0)
    assert PEER != OWN


def test_the_longest_unseen_is_forgotten_first() -> None:
    history = MessageIDHistory(size=2)
    for number in (1, 2, 1, 3):
        is_duplicate(history, incoming(number), 0.0)
    assert len(history) == 2
    assert is_duplicate(history, incoming(1), 0.0)
    assert is_duplicate(history, incoming(3), 0.0)
    assert not is_duplicate(history, incoming(2), 0.0)


def test_cleanup_timer() -> None:
    """[MS-MQQB] 3.1.6.7."""
    history = MessageIDHistory(cleanup_timeout=10.0)
    is_duplicate(history, incoming(1), 0.0)
    is_duplicate(history, incoming(2), 9.0)
    assert not is_duplicate(history, incoming(3), 10.5)
    assert len(history) == 2
    assert is_duplicate(history, incoming(2), 11.0)
    assert not is_duplicate(history, incoming(1), 11.0)


def test_messages_of_an_earlier_process() -> None:
    """They are known until the timer expires first."""
    history = MessageIDHistory(cleanup_timeout=10.0)
    history.remember(PEER.bytes_le + (1).to_bytes(4, "little"), "192.0.2.1")
    assert history.first_address(incoming(2), 0.0) is None
    assert history.first_address(incoming(3), 9.9) is None
    assert len(history) == 3
    assert history.first_address(incoming(4), 10.0) is None
    assert len(history) == 3
    assert not is_duplicate(history, incoming(1), 10.0)


def test_forget() -> None:
    history = MessageIDHistory()
    is_duplicate(history, incoming(1), 0.0)
    history.forget(incoming(1))
    assert not is_duplicate(history, incoming(1), 0.0)


def test_size_is_checked() -> None:
    with pytest.raises(ValueError, match="size is 0"):
        MessageIDHistory(size=0)
    smallest = MessageIDHistory(size=1)
    assert [is_duplicate(smallest, incoming(number), 0.0) for number in (1, 1, 2, 1)] == [False, True, False, False]


def test_the_first_address_is_kept() -> None:
    history = MessageIDHistory()
    found = [history.first_address(incoming(1), 0.0, address) for address in ("10.0.0.1", "10.0.0.2", "10.0.0.3")]
    assert found == [None, "10.0.0.1", "10.0.0.1"]
