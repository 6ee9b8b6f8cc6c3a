"""MessageIDHistoryTable."""

from __future__ import annotations

import pytest

from msmqwire.session import MessageIDHistory
from tests.reference.mqqb_session_packets import UserMessage
from tests.session.peers import OWN, PEER, incoming


def test_source_and_identifier_are_compared() -> None:
    """S3."""
    history = MessageIDHistory()
    assert not history.is_duplicate(incoming(1), 0.0)
    assert history.is_duplicate(incoming(1, recoverable=True), 0.0)
    assert not history.is_duplicate(incoming(2), 0.0)
    assert not history.is_duplicate(UserMessage(OWN.bytes_le, 1).pack(), 0.0)
    assert PEER != OWN


def test_the_longest_unseen_is_forgotten_first() -> None:
    history = MessageIDHistory(size=2)
    for number in (1, 2, 1, 3):
        history.is_duplicate(incoming(number), 0.0)
    assert len(history) == 2
    assert history.is_duplicate(incoming(1), 0.0)
    assert history.is_duplicate(incoming(3), 0.0)
    assert not history.is_duplicate(incoming(2), 0.0)


def test_cleanup_timer() -> None:
    """[MS-MQQB] 3.1.6.7."""
    history = MessageIDHistory(cleanup_timeout=10.0)
    history.is_duplicate(incoming(1), 0.0)
    history.is_duplicate(incoming(2), 9.0)
    assert not history.is_duplicate(incoming(3), 10.5)
    assert len(history) == 2
    assert history.is_duplicate(incoming(2), 11.0)
    assert not history.is_duplicate(incoming(1), 11.0)


def test_forget() -> None:
    history = MessageIDHistory()
    history.is_duplicate(incoming(1), 0.0)
    history.forget(incoming(1))
    assert not history.is_duplicate(incoming(1), 0.0)


def test_size_is_checked() -> None:
    with pytest.raises(ValueError, match="size is 0"):
        MessageIDHistory(size=0)
    smallest = MessageIDHistory(size=1)
    assert [smallest.is_duplicate(incoming(number), 0.0) for number in (1, 1, 2, 1)] == [False, True, False, False]
