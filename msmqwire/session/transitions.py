"""What a packet or a timer does in each state of a session: [MS-MQQB] 3.1.5 and 3.1.6 as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple, TypeAlias

from msmqwire import mqqb
from msmqwire.session.timers import Timer


class SessionState(StrEnum):
    """SessionState: [MS-MQQB] 3.1.1.3.1."""

    OPEN = "OPEN"
    CLOSED = "CLOSED"
    WAITING_CP_MSG = "WAITING_CP_MSG"
    WAITING_CPR_MSG = "WAITING_CPR_MSG"
    WAITING_EC_MSG = "WAITING_EC_MSG"
    WAITING_ECR_MSG = "WAITING_ECR_MSG"
    WAITING_RECONNECT = "WAITING_RECONNECT"


Packet: TypeAlias = (
    mqqb.UserMessage | mqqb.EstablishConnection | mqqb.ConnectionParameters | mqqb.SessionAck | mqqb.Ping
)

_OPEN = SessionState.OPEN
_CLOSED = SessionState.CLOSED
_WAITING = (
    SessionState.WAITING_EC_MSG, SessionState.WAITING_CP_MSG, SessionState.WAITING_ECR_MSG, SessionState.WAITING_CPR_MSG
)  # fmt: skip


class Transition(NamedTuple):
    """In one of ``states``, on ``event``, call ``method`` of the session.

    The session enters ``target`` then; None leaves its state. ``otherwise`` is the state where the method ends the
    session, or an attempt to connect: an initiator with messages to send enters WAITING_RECONNECT instead of CLOSED
    (S17). ``refusable`` packets can refuse the session, which is closed without the method (S15).
    """

    section: str
    states: tuple[SessionState, ...]
    event: type[Packet] | Timer
    method: str
    target: SessionState | None = None
    otherwise: SessionState | None = None
    refusable: bool = False


TRANSITIONS = (
    Transition(
        "3.1.5.3.1", (SessionState.WAITING_EC_MSG,), mqqb.EstablishConnection,
        "_receive_establish_connection", SessionState.WAITING_CP_MSG, _CLOSED,
    ),
    Transition(
        "3.1.5.3.2", (SessionState.WAITING_ECR_MSG,), mqqb.EstablishConnection,
        "_receive_establish_connection", SessionState.WAITING_CPR_MSG, _CLOSED, refusable=True,
    ),
    Transition(
        "3.1.5.4.1", (SessionState.WAITING_CP_MSG,), mqqb.ConnectionParameters,
        "_receive_connection_parameters", _OPEN, _CLOSED, refusable=True,
    ),
    Transition(
        "3.1.5.4.2", (SessionState.WAITING_CPR_MSG,), mqqb.ConnectionParameters,
        "_receive_connection_parameters", _OPEN, _CLOSED, refusable=True,
    ),
    Transition("3.1.5.5", (_OPEN,), mqqb.SessionAck, "_receive_session_ack", None, _CLOSED, refusable=True),
    Transition("3.1.5.8", (_OPEN,), mqqb.UserMessage, "_receive_user_message", None, _CLOSED),
    Transition(
        "3.1.6.1", (SessionState.WAITING_RECONNECT,), Timer.SESSION_RETRY_CONNECT, "_retry_connect", None, _CLOSED
    ),
    Transition("3.1.6.2", (*_WAITING, _OPEN), Timer.SESSION_CLEANUP, "_close_if_idle", None, _CLOSED),
    Transition("3.1.6.3", (_OPEN,), Timer.SESSION_ACK_WAIT, "_close_if_silent", None, _CLOSED),
    Transition("3.1.6.4", (_OPEN,), Timer.SESSION_ACK_SEND, "_send_owed_ack"),
    Transition("3.1.6.6", _WAITING, Timer.SESSION_INITIALIZATION, "_close_uninitialized", _CLOSED),
)  # fmt: skip
"""Every other packet closes the session ([MS-MQQB] 3.1.5.1); other timers do not run in a state."""

TRANSITION_OF: dict[tuple[SessionState, type[Packet] | Timer], Transition] = {
    (state, each.event): each for each in TRANSITIONS for state in each.states
}
"""The transition of a state and an event."""
