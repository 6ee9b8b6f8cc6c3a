"""[MS-MQSD] 3.1, row by row: what a client does, from packets put together by hand."""

from __future__ import annotations

import uuid

import pytest

from msmqwire.discovery import Deliver, Discard, DiscoveryClient, Send, WaitUntil
from msmqwire.discovery.client import State
from tests.contract.checklist import row
from tests.discovery.runs import (
    DIAL_UP,
    ENTERPRISE,
    FAR,
    FARTHER,
    NEAR,
    OTHER_RUN,
    RUN,
    SITE,
    A,
    B,
    C,
    client,
    delivered,
    local,
    remote,
    request,
    sent,
    server_names,
    started,
    variables,
)


def found_before() -> DiscoveryClient:
    """A client whose first run has ended well."""
    machine = started(A)
    delivered(machine.receive(local(), A, now=1.0))
    return machine


@row("SDC-01")
def test_initialisation() -> None:
    machine = client()
    assert machine.enterprise_id == ENTERPRISE
    assert machine.valid_last_successful_network_address is False


@row("SDC-02")
def test_known_address_completes_without_sending() -> None:
    machine = found_before()
    (action,) = machine.get_directory_server_list([A, B], request_id=OTHER_RUN, now=2.0)
    assert isinstance(action, Deliver)
    assert action.result.found
    assert machine.request_id == RUN


@row("SDC-03")
def test_remote_access_address_runs_again() -> None:
    machine = found_before()
    wait, send = machine.get_directory_server_list([A, DIAL_UP], request_id=OTHER_RUN, now=2.0)
    assert wait == WaitUntil(17.0)
    assert send == Send(A, request(OTHER_RUN))


@row("SDC-04")
def test_each_run_begins_anew() -> None:
    machine = started(A, B)
    machine.receive(remote(), A, now=1.0)
    machine.tick(16.0)
    machine.tick(31.0)
    machine.valid_last_successful_network_address = False
    _, send = machine.get_directory_server_list([A, B], request_id=OTHER_RUN, now=40.0)
    assert machine.request_id == OTHER_RUN
    # Index 0, and 1 with the sending that follows
    assert (machine.current_network_index, send) == (1, Send(A, request(OTHER_RUN)))
    assert machine.topology_server_reply_received is False


@row("SDC-05")
def test_each_send_advances_empties_and_starts_the_timer() -> None:
    machine = started(A, B, C, at=100.0)
    assert (machine.current_network_index, machine.deadline) == (1, 115.0)
    machine.receive(remote(), A, now=101.0)
    assert machine.last_topology_server_reply is not None
    assert sent(machine.tick(116.0), B, 116.0)
    assert (machine.current_network_index, machine.deadline) == (2, 131.0)
    assert machine.last_topology_server_reply is None


@row("SDC-06")
def test_what_is_sent_and_where() -> None:
    machine = client()
    networks = [A, B, C]
    actions = machine.get_directory_server_list(networks, request_id=RUN, now=0.0)
    for at, network in enumerate(networks, 1):
        _, send = actions
        assert isinstance(send, Send)
        assert send.network == network
        assert send.data[:4] == b"\0\1\0\0"
        assert [uuid.UUID(bytes_le=send.data[start : start + 16]) for start in (4, 20, 36)] == [ENTERPRISE, RUN, SITE]
        assert len(send.data) == 52
        actions = machine.tick(15.0 * at)


@row("SDC-07")
def test_other_network_is_discarded() -> None:
    for data in (local(), remote(), b"junk"):
        machine = started(A, B)
        before = variables(machine)
        (action,) = machine.receive(data, B, now=1.0)
        assert isinstance(action, Discard)
        assert variables(machine) == before


@row("SDC-08")
def test_improper_format_is_discarded() -> None:
    for whole in (local(), remote("10a", "01b")):
        for data in (*(whole[:size] for size in range(len(whole))), whole + b"\0", request()):
            machine = started(A, B)
            before = variables(machine)
            (action,) = machine.receive(data, A, now=1.0)
            assert isinstance(action, Discard)
            assert variables(machine) == before


@row("SDC-09")
def test_other_request_is_discarded() -> None:
    for data in (local(run=OTHER_RUN), remote(run=OTHER_RUN)):
        machine = started(A, B)
        before = variables(machine)
        (action,) = machine.receive(data, A, now=1.0)
        assert isinstance(action, Discard)
        assert variables(machine) == before


@row("SDC-10")
def test_rule_a() -> None:
    machine = started(A, B)
    assert sent(machine.receive(local(), A, now=5.0), B, 5.0)
    assert machine.topology_server_reply_received
    assert (machine.last_successful_network_address, machine.valid_last_successful_network_address) == (A, True)


@row("SDC-11")
def test_rule_b() -> None:
    machine = started(A, B)
    machine.receive(remote("10a"), A, now=1.0)
    assert sent(machine.receive(remote("10b"), A, now=5.0), B, 5.0)


@row("SDC-12")
def test_rule_c() -> None:
    machine = started(A, B)
    machine.tick(15.0)
    machine.receive(remote("10a", networks=[FAR]), B, now=16.0)
    result = delivered(machine.receive(local(), B, now=17.0))
    assert machine.deadline is None
    assert (machine.last_successful_network_address, machine.valid_last_successful_network_address) == (B, True)
    assert result.found
    assert (server_names(machine), machine.connected_network_identifier_list) == (["a"], (FAR,))


@row("SDC-13")
def test_rule_d() -> None:
    for networks in ((A,), (A, B)):
        machine = started(*networks)
        assert machine.receive(remote(), A, now=5.0) == [WaitUntil(20.0)]
        assert machine.last_topology_server_reply is not None
        assert machine.topology_server_reply_received
        assert (machine.last_successful_network_address, machine.valid_last_successful_network_address) == (A, True)
        assert machine.state is State.ANSWERED


@row("SDC-14")
def test_rule_e() -> None:
    machine = started(A)
    machine.receive(remote("10a", networks=[FAR]), A, now=1.0)
    result = delivered(machine.receive(remote("10b", networks=[FARTHER]), A, now=2.0))
    assert result.found
    assert machine.deadline is None
    assert (server_names(machine), machine.connected_network_identifier_list) == (["a"], (FAR,))
    assert (machine.last_successful_network_address, machine.valid_last_successful_network_address) == (A, True)


@row("SDC-15")
def test_timer_with_more_networks() -> None:
    machine = started(A, B)
    assert machine.tick(14.9) == []
    assert sent(machine.tick(15.0), B, 15.0)


@row("SDC-16")
def test_timer_after_silence() -> None:
    machine = started(A, B)
    machine.tick(15.0)
    machine.valid_last_successful_network_address = True
    assert delivered(machine.tick(30.0)).found is False
    assert machine.valid_last_successful_network_address is False


@row("SDC-17")
def test_timer_after_something() -> None:
    machine = started(A)
    machine.receive(remote("10a"), A, now=1.0)
    result = delivered(machine.tick(16.0))
    assert (result.found, result.directory_servers, result.connected_networks) == (True, ("a",), (FAR,))
    machine = started(A, B)
    machine.receive(local(), A, now=1.0)
    assert delivered(machine.tick(16.0)).found


@row("SDC-18")
def test_servers_are_listed_without_their_flags() -> None:
    machine = started(A)
    machine.directory_server_list = ("old",)
    machine.receive(remote("101010", "01a", "00\u2c61\u0100", "11a", "10\ud800"), A, now=1.0)
    machine.tick(16.0)
    assert server_names(machine) == ["1010", "a", "\u2c61\u0100", "a", "\ud800"]


@row("SDC-19")
def test_networks_are_listed() -> None:
    machine = started(A)
    machine.connected_network_identifier_list = (FARTHER,)
    many = [uuid.UUID(int=n) for n in range(32, 0, -1)]
    machine.receive(remote(networks=many), A, now=1.0)
    machine.tick(16.0)
    assert machine.connected_network_identifier_list == tuple(many)


@row("SDC-20")
def test_no_network() -> None:
    machine = client()
    result = delivered(machine.get_directory_server_list([], request_id=RUN, now=0.0))
    assert not result.found
    assert (machine.deadline, machine.state) == (None, State.IDLE)


@row("SDC-21")
def test_local_reply_fills_the_networks() -> None:
    machine = started(A)
    assert delivered(machine.receive(local(NEAR, FAR), A, now=1.0)).connected_networks == (NEAR, FAR)
    machine = started(A, literal=True)
    assert delivered(machine.receive(local(NEAR, FAR), A, now=1.0)).connected_networks == ()


@row("SDC-22")
@pytest.mark.parametrize("literal", [False, True])
def test_reply_of_an_earlier_network_survives(literal: bool) -> None:
    machine = started(A, B, C, literal=literal)
    machine.receive(remote("10a", networks=[FAR]), A, now=1.0)
    machine.tick(16.0)
    machine.tick(31.0)
    result = delivered(machine.tick(46.0))
    assert result.found
    assert (result.directory_servers, result.connected_networks) == (((), ()) if literal else (("a",), (FAR,)))
