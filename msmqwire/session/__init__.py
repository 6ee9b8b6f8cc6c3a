"""Sessions of [MS-MQQB] as state machines without I/O: bytes and times in; bytes, events and the next deadline out."""

from __future__ import annotations

from msmqwire.session.acceptor import Acceptor
from msmqwire.session.events import (
    CloseReason,
    ConnectionWanted,
    Disregarded,
    Event,
    MessageDisregarded,
    MessageExpired,
    MessageFinished,
    MessageNotAnswered,
    MessageReceived,
    MessagesAcknowledged,
    SessionClosed,
    SessionOpened,
)
from msmqwire.session.history import MessageIDHistory
from msmqwire.session.incoming import (
    Changes,
    Incoming,
    MemorySequenceStore,
    SequenceKey,
    SequenceState,
    SequenceStore,
)
from msmqwire.session.initiator import Initiator
from msmqwire.session.limit import MessageLimit
from msmqwire.session.outbox import Outbox
from msmqwire.session.ping import PING_RESPONSE_TIMEOUT, PingClient, answer_ping
from msmqwire.session.receiving import Receiving
from msmqwire.session.sending import Sending
from msmqwire.session.sequences import OutgoingSequences
from msmqwire.session.session import Session
from msmqwire.session.settings import LARGEST_PACKET, Settings
from msmqwire.session.store import InboxMessage, Store
from msmqwire.session.timers import Timer, Timers
from msmqwire.session.transitions import SessionState

__all__ = [
    "LARGEST_PACKET",
    "PING_RESPONSE_TIMEOUT",
    "Acceptor",
    "Changes",
    "CloseReason",
    "ConnectionWanted",
    "Disregarded",
    "Event",
    "InboxMessage",
    "Incoming",
    "Initiator",
    "MemorySequenceStore",
    "MessageDisregarded",
    "MessageExpired",
    "MessageFinished",
    "MessageIDHistory",
    "MessageLimit",
    "MessageNotAnswered",
    "MessageReceived",
    "MessagesAcknowledged",
    "Outbox",
    "OutgoingSequences",
    "PingClient",
    "Receiving",
    "Sending",
    "SequenceKey",
    "SequenceState",
    "SequenceStore",
    "Session",
    "SessionClosed",
    "SessionOpened",
    "SessionState",
    "Settings",
    "Store",
    "Timer",
    "Timers",
    "answer_ping",
]


def __dir__() -> list[str]:
    return __all__
