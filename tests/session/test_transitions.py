"""Every packet and every timer in every state: the table says what becomes of the session."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from msmqwire import mqqb
from msmqwire.session import (
    Acceptor,
    CloseReason,
    Initiator,
    Session,
    SessionClosed,
    SessionState,
    Settings,
    Timer,
)
from msmqwire.session.transitions import TRANSITION_OF, TRANSITIONS
from tests.reference.mqqb_session_packets import ConnectionParameters, EstablishConnection, SessionAck, SessionHeader
from tests.session.peers import (
    OWN,
    PEER,
    acknowledgment,
    incoming,
    message,
    only,
    open_acceptor,
    open_initiator,
)

#: By the clock of the tests; no timer but Session Ack Wait lasts as long
SETTINGS = Settings(ack_wait_timeout=120_000, cleanup_timeout=100.0, initialization_timeout=50.0)
#: (bytes, the packet has CS): well-formed packets, some of which a session closes over
PACKETS = [
    (EstablishConnection(PEER.bytes_le, bytes(16)).pack(), False),
    (EstablishConnection(OWN.bytes_le, PEER.bytes_le).pack(), False),
    (EstablishConnection(OWN.bytes_le, PEER.bytes_le, refused=True).pack(), True),
    (ConnectionParameters().pack(), False),
    (ConnectionParameters(refused=True).pack(), True),
    (acknowledgment(0), False),
    (acknowledgment(1_000), False),
    (SessionAck(SessionHeader(0, 0, 0, 0, 0, 64), refused=True).pack(), True),
    (incoming(1), False),
    (incoming(1, recoverable=True), False),
    (incoming(1, header=SessionHeader(1_000, 0, 0, 0, 0, 64)), False),
]


def _initiator(*, connected: bool, answered: bool = False) -> Initiator:
    initiator = Initiator(OWN, settings=SETTINGS)
    initiator.open(0.0)
    if connected:
        initiator.connection_made(0.0)
    if answered:
        initiator.receive_data(EstablishConnection(OWN.bytes_le, PEER.bytes_le).pack(), 0.0)
    return initiator


def _acceptor(*, asked: bool = False) -> Acceptor:
    acceptor = Acceptor(OWN, settings=SETTINGS)
    acceptor.connection_made(0.0)
    if asked:
        acceptor.receive_data(EstablishConnection(PEER.bytes_le, bytes(16)).pack(), 0.0)
    return acceptor


SESSIONS: dict[str, tuple[SessionState, Callable[[], Session]]] = {
    "acceptor": (SessionState.CLOSED, lambda: Acceptor(OWN, settings=SETTINGS)),
    "acceptor asked": (SessionState.WAITING_EC_MSG, _acceptor),
    "acceptor agreed": (SessionState.WAITING_CP_MSG, lambda: _acceptor(asked=True)),
    "acceptor open": (SessionState.OPEN, lambda: open_acceptor(Acceptor(OWN, settings=SETTINGS))),
    "initiator": (SessionState.CLOSED, lambda: Initiator(OWN, settings=SETTINGS)),
    "initiator wants": (SessionState.WAITING_RECONNECT, lambda: _initiator(connected=False)),
    "initiator asks": (SessionState.WAITING_ECR_MSG, lambda: _initiator(connected=True)),
    "initiator proposes": (SessionState.WAITING_CPR_MSG, lambda: _initiator(connected=True, answered=True)),
    "initiator open": (SessionState.OPEN, lambda: open_initiator(Initiator(OWN, settings=SETTINGS))),
}
DISCONNECTED = (SessionState.CLOSED, SessionState.WAITING_RECONNECT)


def test_every_state_is_walked() -> None:
    assert {state for state, _ in SESSIONS.values()} == set(SessionState)
    assert len(TRANSITION_OF) == sum(len(each.states) for each in TRANSITIONS), "one transition of a state and an event"
    for each in TRANSITIONS:
        assert any(hasattr(kind, each.method) for kind in (Acceptor, Initiator))


@pytest.mark.parametrize(("data", "refused"), PACKETS)
@pytest.mark.parametrize(("state", "make"), SESSIONS.values(), ids=SESSIONS)
def test_packets(state: SessionState, make: Callable[[], Session], data: bytes, refused: bool) -> None:
    session = make()
    session.data_to_send()
    assert session.state is state
    closed = [each.reason for each in only(session.receive_data(data, 1.0), SessionClosed)]
    transition = TRANSITION_OF.get((state, type(mqqb.decode(data))))
    if state in DISCONNECTED:
        assert (session.state, closed) == (state, []), "nothing is read"
    elif transition is None:
        assert closed == [CloseReason.UNEXPECTED_PACKET]
    elif transition.refusable and refused:
        assert closed == [CloseReason.REFUSED]
        assert session.state is transition.otherwise
    elif closed:
        assert transition.otherwise is SessionState.CLOSED
    else:
        assert session.state is (transition.target or state)
        assert session.is_open == (Timer.SESSION_INITIALIZATION not in session.timers)
    assert bool(closed) == (session.state in DISCONNECTED and state not in DISCONNECTED)


def test_every_transition_of_a_packet_is_taken() -> None:
    """Both to its next state and to the closed one."""
    taken = set()
    for state, make in SESSIONS.values():
        for data, _ in PACKETS:
            session = make()
            session.data_to_send()
            session.receive_data(data, 1.0)
            taken.add((state, type(mqqb.decode(data)), session.state in DISCONNECTED))
    for (state, event), transition in TRANSITION_OF.items():
        if not isinstance(event, Timer):
            assert (state, event, False) in taken
            assert (state, event, transition.otherwise is not None) in taken


@pytest.mark.parametrize("timer", Timer)
@pytest.mark.parametrize(("state", "make"), SESSIONS.values(), ids=SESSIONS)
def test_timers(state: SessionState, make: Callable[[], Session], timer: Timer) -> None:
    """A timer that has no transition in a state does not run there."""
    session = make()
    if session.is_open:
        session.send(message(), 0.0)
        session.receive_data(incoming(1, recoverable=True), 0.0)
    session.data_to_send()
    transition = TRANSITION_OF.get((state, timer))
    assert (timer in session.timers) == (transition is not None)
    if transition is None:
        return
    for each in session.timers:
        if each is not timer:
            session.timers.stop(each)
    closed: list[SessionClosed] = []
    # Cleanup and Ack Wait forgive once what came before
    for _ in range(2):
        deadline = session.next_deadline()
        if timer in session.timers and not closed:
            assert deadline is not None
            closed = only(session.handle_deadline(deadline), SessionClosed)
            assert closed or session.state is (transition.target or state)
    assert bool(closed) == (timer in (Timer.SESSION_INITIALIZATION, Timer.SESSION_CLEANUP, Timer.SESSION_ACK_WAIT))
    assert not closed or SessionState.CLOSED in (transition.target, transition.otherwise)
