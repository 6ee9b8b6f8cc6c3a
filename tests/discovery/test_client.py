"""The client's rules one by one: [MS-MQSD] 3.1, and what was decided where it is silent or contradicts itself."""

from __future__ import annotations

import itertools
import pickle
import uuid
from typing import Any

import pytest

from msmqwire.discovery import Discard, DiscardReason, DiscoveryClient, NetworkAddress, Send, WaitUntil
from msmqwire.discovery.client import TRANSITIONS, Event, State
from tests.contract.checklist import row
from tests.discovery.runs import (
    DIAL_UP,
    ENTERPRISE,
    FAR,
    FARTHER,
    NEAR,
    OTHER_RUN,
    RUN,
    A,
    B,
    C,
    client,
    decoded,
    delivered,
    local,
    remote,
    request,
    sent,
    server_names,
    started,
    variables,
)

# --- The table ---


def _situations() -> list[DiscoveryClient]:
    """A client in every combination of what guards look at."""
    found = []
    both = (False, True)
    for literal, count, known, received, dial_up in itertools.product(both, range(3), both, both, both):
        for state in State:
            for index in range(count + 1) if state is State.IDLE else range(1, count + 1):
                machine = client(literal=literal)
                machine.network_address_list = ((DIAL_UP,) if dial_up else (A,))[:count] + (B,) * (count - 1)
                machine.state, machine.current_network_index = state, index
                machine.valid_last_successful_network_address = known
                machine.topology_server_reply_received = received or state is State.ANSWERED
                machine.last_topology_server_reply = decoded(remote()) if state is State.ANSWERED else None
                found.append(machine)
    return found


def test_at_most_one_rule_holds() -> None:
    """The order of the table has no meaning; and what waits is never left without a rule."""
    used = set()
    for machine in _situations():
        for event in Event:
            rules = [t.rule for t in TRANSITIONS if machine.state in t.states and event is t.event and t.guard(machine)]
            used.update(rules)
            expected = event is Event.REQUEST if machine.state is State.IDLE else True
            assert len(rules) == expected, (machine.state, event, rules)
    assert used == {transition.rule for transition in TRANSITIONS}


def test_every_guard_and_step_explains_itself() -> None:
    for transition in TRANSITIONS:
        for part in (transition.guard, *transition.steps):
            assert part is DiscoveryClient._always or (part.__doc__ or "").strip()


# --- A run begins: 3.1.4.1 ---


@row("SDC-01")
def test_initialisation() -> None:
    machine = client()
    assert machine.enterprise_id == ENTERPRISE
    assert machine.valid_last_successful_network_address is False
    assert (machine.number_of_network_addresses, machine.current_network_index) == (0, 0)
    assert machine.topology_server_reply_received is False
    assert machine.last_topology_server_reply is None


@pytest.mark.parametrize(
    "values",
    [{"enterprise_id": "x"}, {"site_id": None}, {"response_timeout": -1.0}, {"response_timeout": float("nan")}],
)
def test_what_no_client_can_have(values: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(values))} is "):
        DiscoveryClient(**values)


def test_a_wrong_request_id_begins_no_run() -> None:
    machine = client()
    with pytest.raises(ValueError, match="request_id is 'x': not a uuid"):
        machine.get_directory_server_list([A], request_id="x", now=0.0)  # type: ignore[arg-type]
    assert (machine.state, machine.deadline) == (State.IDLE, None)
    assert machine.get_directory_server_list([A], request_id=RUN, now=0.0)


def test_results_can_be_hashed() -> None:
    (deliver,) = started(A).receive(local(), A, now=1.0)
    assert hash(deliver) == hash(pickle.loads(pickle.dumps(deliver)))


@row("SDC-06")
def test_each_network_is_asked_in_turn() -> None:
    """The bytes of each request are compared with one packed by hand."""
    machine = client()
    actions = machine.get_directory_server_list([A, B, C], request_id=RUN, now=3.5)
    for index, network in enumerate((A, B, C), 1):
        assert sent(actions, network, 3.5 + 15 * (index - 1))
        assert machine.network_address_list == (A, B, C)
        assert (machine.number_of_network_addresses, machine.current_network_index) == (3, index)
        assert (machine.request_id, machine.state) == (RUN, State.ASKED)
        assert not machine.topology_server_reply_received
        actions = machine.tick(3.5 + 15 * index)


@row("SDC-04")
def test_each_run_begins_anew() -> None:
    """Networks are replaced, not added: else their number would be wrong."""
    machine = started(A, B)
    machine.receive(remote(), A, now=1.0)
    machine.tick(16.0)
    machine.tick(31.0)
    machine.valid_last_successful_network_address = False
    _, send = machine.get_directory_server_list([C], request_id=OTHER_RUN, now=40.0)
    assert (machine.network_address_list, machine.request_id) == ((C,), OTHER_RUN)
    # Index 0, and 1 with the sending that follows
    assert (machine.current_network_index, send) == (1, Send(C, request(OTHER_RUN)))
    assert machine.topology_server_reply_received is False


@row("SDC-20")
@pytest.mark.parametrize("known", [False, True])
def test_no_network_fails_at_once(known: bool) -> None:
    machine = client()
    machine.last_successful_network_address = A
    # What was found before counts even so: that is looked at first.
    machine.valid_last_successful_network_address = known
    result = delivered(machine.get_directory_server_list([], request_id=RUN, now=0.0))
    assert result.found is known
    assert machine.valid_last_successful_network_address is known
    assert machine.state is State.IDLE
    assert machine.deadline is None


@row("SDC-02")
def test_what_was_found_is_not_asked_for_again() -> None:
    machine = started(A)
    machine.receive(local(NEAR), A, now=1.0)
    before = variables(machine)
    result = delivered(machine.get_directory_server_list([A], request_id=OTHER_RUN, now=2.0))
    assert result.found
    assert result.connected_networks == (NEAR,)
    assert (result.answers, result.servers_updated) == ((), False)
    assert variables(machine) == before
    # Never checked again, unless the caller wants it.
    machine.valid_last_successful_network_address = False
    assert len(machine.get_directory_server_list([A], request_id=OTHER_RUN, now=3.0)) == 2


@row("SDC-03")
def test_remote_access_asks_again() -> None:
    machine = started(A)
    machine.receive(local(), A, now=1.0)
    actions = machine.get_directory_server_list([A, DIAL_UP], request_id=OTHER_RUN, now=2.0)
    assert actions == [WaitUntil(17.0), Send(A, request(OTHER_RUN))]
    assert machine.state is State.ASKED


def test_a_network_is_no_remote_access_connection_by_default() -> None:
    lan = NetworkAddress(A.address, A.broadcast)
    machine = started(lan)
    machine.receive(local(), lan, now=1.0)
    assert delivered(machine.get_directory_server_list([lan], request_id=OTHER_RUN, now=2.0)).found


@pytest.mark.parametrize("answered", [False, True])
def test_request_joins_a_run(answered: bool) -> None:
    machine = started(A)
    if answered:
        machine.receive(remote(), A, now=1.0)
    before = variables(machine)
    assert machine.get_directory_server_list([B], request_id=OTHER_RUN, now=2.0) == []
    assert variables(machine) == before


# --- A datagram is not taken: 3.1.5.2 ---


@row("SDC-07")
@pytest.mark.parametrize("other", [B, None])
@pytest.mark.parametrize("data", [local(), remote(), b"junk"])
def test_reply_on_another_network_is_discarded(data: bytes, other: Any) -> None:
    machine = started(A, B)
    before = variables(machine)
    (discard,) = machine.receive(data, other, source="10.20.2.10:1801", now=1.0)
    assert discard == Discard(
        DiscardReason.OTHER_NETWORK, "the last request went to 10.20.1.25/24 on eth1", source="10.20.2.10:1801"
    )
    assert variables(machine) == before


def test_late_reply_of_an_earlier_network_is_discarded() -> None:
    """One RequestID serves all networks of a run; it is the network that tells replies apart."""
    machine = started(A, B)
    assert sent(machine.tick(15.0), B, 15.0)
    (discard,) = machine.receive(local(), A, now=15.1)
    assert isinstance(discard, Discard)
    assert discard.reason is DiscardReason.OTHER_NETWORK
    assert delivered(machine.receive(local(), B, now=15.2)).discarded == {DiscardReason.OTHER_NETWORK: 1}


MALFORMED = {
    "empty": b"",
    "cut": local()[:-1],
    "no networks": local()[:20] + bytes(4) + local()[24:32],
    "mask on IP": local()[:24] + b"\1" + local()[25:],
    "bytes behind": local() + b"\0",
    "site behind size 0": local() + NEAR.bytes_le,
    "odd size": remote()[:28] + b"\x09" + remote()[29:],
    "no terminator": remote()[:-2] + b"a\0",
    "flag": remote("20far"),
    "empty name": remote("10"),
    "a request": request(),
    "type 3": b"\0\3" + local()[2:],
    **{f"{size} bytes": whole[:size] for whole in (local(), remote("10a", "01b")) for size in range(1, len(whole))},
}


@row("SDC-08")
@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("answered", [False, True])
def test_malformed_reply_is_discarded(data: bytes, answered: bool) -> None:
    machine = started(A)
    if answered:
        machine.receive(remote(), A, now=1.0)
    before = variables(machine)
    (discard,) = machine.receive(data, A, now=2.0)
    assert isinstance(discard, Discard)
    assert discard.reason is DiscardReason.MALFORMED
    assert discard.detail
    assert variables(machine) == before


def test_version_reserved_and_site_are_no_reason_to_discard() -> None:
    machine = started(A)
    assert delivered(machine.receive(b"\7\2\7\7" + local()[4:], A, now=1.0)).found
    machine = started(A)
    theirs = remote().replace(uuid.UUID(int=0x52).bytes_le, machine.site_id.bytes_le)
    assert len(machine.receive(theirs, A, now=1.0)) == 1
    assert machine.state is State.ANSWERED


@row("SDC-09")
@pytest.mark.parametrize("data", [local(run=OTHER_RUN), remote(run=OTHER_RUN), local(run=uuid.UUID(int=0))])
def test_reply_to_another_request_is_discarded(data: bytes) -> None:
    machine = started(A)
    before = variables(machine)
    (discard,) = machine.receive(data, A, now=1.0)
    assert isinstance(discard, Discard)
    assert discard.reason is DiscardReason.OTHER_REQUEST
    assert variables(machine) == before


def test_order_of_the_reasons() -> None:
    machine = started(A, B)
    assert [d.reason for d in machine.receive(b"", B, now=1.0) if isinstance(d, Discard)] == ["other_network"]
    (discard,) = machine.receive(local(run=OTHER_RUN) + b"\0", A, now=1.0)
    assert isinstance(discard, Discard)
    assert discard.reason is DiscardReason.MALFORMED


@pytest.mark.parametrize("fresh", [False, True])
def test_what_comes_when_nobody_waits_is_discarded(fresh: bool) -> None:
    machine = client()
    if not fresh:
        machine = started(A)
        machine.receive(local(), A, now=1.0)
    before = variables(machine)
    for data in (local(), remote(), b""):
        (discard,) = machine.receive(data, A, now=2.0)
        assert isinstance(discard, Discard)
        assert discard.reason is DiscardReason.LATE
    assert machine.tick(1e9) == []
    assert machine.send_failed(A, "too late") == []
    assert machine.abandon() == []
    assert variables(machine) == before


# --- A reply is taken: rules A to E ---


@row("SDC-10")
def test_a_local_reply_with_more_networks() -> None:
    for answered in (False, True):
        machine = started(A, B)
        if answered:
            machine.receive(remote(), A, now=1.0)
        assert sent(machine.receive(local(), A, now=2.0), B, 2.0)
        assert machine.state is State.ASKED
        assert machine.deadline == 17.0
        assert machine.topology_server_reply_received
        assert machine.last_successful_network_address == A
        assert machine.valid_last_successful_network_address
        assert machine.last_topology_server_reply is None
        assert machine.current_network_index == 2


@row("SDC-11")
def test_b_second_remote_reply_with_more_networks() -> None:
    machine = started(A, B)
    machine.receive(remote("10first"), A, now=1.0)
    assert sent(machine.receive(remote("10second"), A, now=2.0), B, 2.0)
    assert machine.state is State.ASKED
    assert machine.last_successful_network_address == A
    # The first one was kept and the second is never read.
    assert machine.tick(17.0)
    assert server_names(machine) == ["first"]


@row("SDC-12")
def test_c_local_reply_on_the_last_network() -> None:
    machine = started(A)
    result = delivered(machine.receive(local(NEAR, FAR), A, source="10.20.1.10:1801", now=1.0))
    assert result.found
    assert result.connected_networks == machine.connected_network_identifier_list == (NEAR, FAR)
    assert (result.directory_servers, result.servers_updated) == ((), False)
    assert [(a.network, a.source, a.reply) for a in result.answers] == [
        (A, "10.20.1.10:1801", decoded(local(NEAR, FAR)))
    ]
    assert machine.last_successful_network_address == A
    assert machine.valid_last_successful_network_address
    assert machine.deadline is None
    assert machine.tick(100.0) == []


def test_c_after_a_remote_reply_populates_from_that_one() -> None:
    """The text is explicit: networks of the other site's server replace ours."""
    for literal in (False, True):
        machine = started(A, literal=literal)
        machine.receive(remote("10x", networks=[FAR]), A, now=1.0)
        result = delivered(machine.receive(local(NEAR), A, now=2.0))
        assert (result.directory_servers, result.connected_networks) == (("x",), (FAR,))
        assert result.servers_updated
        assert len(result.answers) == 2


@row("SDC-13")
def test_d_first_remote_reply_waits_for_another() -> None:
    for networks in ((A,), (A, B)):
        machine = started(*networks)
        (wait,) = machine.receive(remote(), A, now=10.0)
        assert wait.time == machine.deadline == 25.0  # type: ignore[union-attr]
        assert machine.state is State.ANSWERED
        assert machine.last_topology_server_reply == decoded(remote())
        assert machine.topology_server_reply_received
        assert machine.last_successful_network_address == A
        assert machine.valid_last_successful_network_address
        assert server_names(machine) == []
        assert machine.tick(24.9) == []


@row("SDC-14")
def test_e_second_remote_reply_on_the_last_network() -> None:
    machine = started(B, A)
    machine.receive(local(), B, now=0.5)
    machine.receive(remote("10first", "01second", networks=[FAR, FARTHER]), A, now=1.0)
    # The first reply has marked the address, and the second marks it as well
    machine.last_successful_network_address, machine.valid_last_successful_network_address = B, False
    result = delivered(machine.receive(remote("11never", networks=[NEAR]), A, now=2.0))
    assert result.found
    assert result.directory_servers == ("first", "second")
    assert result.connected_networks == (FAR, FARTHER)
    assert machine.last_successful_network_address == A
    assert machine.valid_last_successful_network_address
    assert (machine.deadline, machine.state) == (None, State.IDLE)


# --- The timer: 3.1.6.1 ---


@row("SDC-05", "SDC-15")
def test_t1_asks_on_the_next_network() -> None:
    for answered in (False, True):
        machine = started(A, B)
        if answered:
            machine.receive(remote(), A, now=0.0)
        assert machine.tick(14.999) == []
        assert sent(machine.tick(15.0), B, 15.0)
        assert machine.state is State.ASKED
        assert (machine.last_topology_server_reply, machine.current_network_index) == (None, 2)
        assert machine.deadline == 30.0
        assert machine.valid_last_successful_network_address is answered


@row("SDC-16")
def test_t2_nobody_answered() -> None:
    machine = started(A, B)
    machine.tick(15.0)
    machine.valid_last_successful_network_address = True
    result = delivered(machine.tick(30.0))
    assert not result.found
    assert not machine.valid_last_successful_network_address
    assert machine.state is State.IDLE
    assert machine.deadline is None


@row("SDC-17")
def test_t3_after_a_remote_reply_on_the_last_network() -> None:
    machine = started(A)
    machine.receive(remote("10x"), A, now=1.0)
    result = delivered(machine.tick(16.0))
    assert (result.found, result.directory_servers, result.connected_networks) == (True, ("x",), (FAR,))
    assert machine.last_topology_server_reply is not None
    machine = started(A, B)
    machine.receive(local(), A, now=1.0)
    assert delivered(machine.tick(16.0)).found


@row("SDC-18", "SDC-19")
def test_lists_are_made_anew() -> None:
    machine = started(A)
    machine.directory_server_list, machine.connected_network_identifier_list = ("old",), (FARTHER,)
    many = [uuid.UUID(int=n) for n in range(32, 0, -1)]
    machine.receive(remote("101010", "01a", "00\u2c61\u0100", "11a", "10\ud800", networks=many), A, now=1.0)
    machine.tick(16.0)
    assert server_names(machine) == ["1010", "a", "\u2c61\u0100", "a", "\ud800"]
    assert machine.connected_network_identifier_list == tuple(many)


@row("SDC-22")
@pytest.mark.parametrize("literal", [False, True])
def test_t3_keeps_what_an_earlier_network_said(literal: bool) -> None:
    """Sending empties LastTopologyServerReply; by the letter what it held is lost."""
    machine = started(A, B, C, literal=literal)
    machine.receive(remote("10x", networks=[FAR]), A, now=1.0)
    machine.tick(16.0)
    machine.receive(local(NEAR), B, now=17.0)
    machine.directory_server_list = ("old",)
    machine.connected_network_identifier_list = (FARTHER,)
    result = delivered(machine.tick(32.0))
    assert result.found
    assert result.servers_updated is not literal
    # Networks are of the last reply that was kept, servers of the last that named any.
    assert result.directory_servers == (("old",) if literal else ("x",))
    assert result.connected_networks == (() if literal else (NEAR,))


def test_a_client_is_not_literal_unless_it_is_told_so() -> None:
    assert not DiscoveryClient().literal
    assert DiscoveryClient(literal=True).literal


@row("SDC-21")
@pytest.mark.parametrize("literal", [False, True])
def test_c_with_nothing_before_it(literal: bool) -> None:
    machine = started(A, literal=literal)
    machine.connected_network_identifier_list = (FARTHER,)
    result = delivered(machine.receive(local(NEAR), A, now=1.0))
    assert result.connected_networks == (() if literal else (NEAR,))


@pytest.mark.parametrize("literal", [False, True])
def test_c_keeps_servers_of_an_earlier_network(literal: bool) -> None:
    machine = started(A, B, literal=literal)
    machine.receive(remote("10x"), A, now=1.0)
    machine.tick(16.0)
    result = delivered(machine.receive(local(NEAR), B, now=17.0))
    assert result.directory_servers == (() if literal else ("x",))
    assert result.connected_networks == (() if literal else (NEAR,))


def test_what_was_kept_does_not_outlive_its_run() -> None:
    machine = started(A)
    machine.receive(remote("10x"), A, now=1.0)
    machine.tick(16.0)
    machine.valid_last_successful_network_address = False
    machine.get_directory_server_list([A], request_id=OTHER_RUN, now=20.0)
    machine.directory_server_list = ("old",)
    result = delivered(machine.receive(local(NEAR, run=OTHER_RUN), A, now=21.0))
    assert (result.directory_servers, result.servers_updated) == (("old",), False)
    assert result.connected_networks == (NEAR,)


# --- Not in the text ---


def test_network_that_cannot_be_asked_is_silent() -> None:
    machine = started(A, B)
    before = variables(machine)
    assert machine.send_failed(A, "Network is down") == []
    assert variables(machine) == before
    assert machine.tick(14.0) == []
    assert sent(machine.tick(15.0), B, 15.0)
    assert delivered(machine.receive(local(), B, now=16.0)).unsent == ((A, "Network is down"),)


def test_abandoned_run_leaves_nothing_known() -> None:
    for answered in (False, True):
        machine = started(A)
        if answered:
            machine.receive(remote(), A, now=1.0)
        assert machine.abandon() == []
        assert machine.state is State.IDLE
        assert machine.deadline is None
        assert machine.tick(100.0) == []
        # A reply was marked, lists were not made: the next request must not take them for good.
        assert len(machine.get_directory_server_list([A], request_id=OTHER_RUN, now=101.0)) == 2


def test_a_flood_of_replies_does_not_prolong_a_run() -> None:
    machine = started(A, B)
    machine.receive(remote(), A, now=14.0)
    for number in range(1000):
        machine.receive(remote(run=OTHER_RUN), A, now=14.0 + number / 100)
    assert sent(machine.tick(29.0), B, 29.0)
    machine.receive(remote(), B, now=43.0)
    result = delivered(machine.tick(58.0))
    assert result.discarded == {DiscardReason.OTHER_REQUEST: 1000}
    assert len(result.answers) == 2


@pytest.mark.parametrize("timeout", [0.0, 0.5, 2.0])
def test_response_timeout_is_an_argument(timeout: float) -> None:
    machine = DiscoveryClient(response_timeout=timeout)
    wait, _ = machine.get_directory_server_list([A], request_id=RUN, now=1.0)
    assert wait.time == 1.0 + timeout  # type: ignore[union-attr]
    assert machine.tick(1.0 + timeout) != []
