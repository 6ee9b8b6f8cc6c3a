"""What a server answers: [MS-MQSD] 3.2.5.1, and what is decided where it is silent."""

from __future__ import annotations

import dataclasses
import struct
from ipaddress import IPv4Network, IPv6Network
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import mqsd
from msmqwire.discovery.server import LARGEST_REPLY, DiscoveryServer, Policy, Refusal, Site, reply_to
from msmqwire.errors import DecodeError, EncodeError
from msmqwire.mqsd import DirectoryServiceServer, TopologyClientRequest, TopologyServerReply
from tests.contract.checklist import row
from tests.discovery.sites import (
    CLIENT,
    CLIENT_SITE_ID,
    ELSEWHERE,
    ENTERPRISE_ID,
    NETWORK,
    SERVER_SITE_ID,
    V1,
    V2,
    V3,
    networks,
    request,
    server,
    servers,
    site,
    unlimited,
)
from tests.property import discovery_packets
from tests.property.editing import guids


def receive(data: bytes, policy: Policy | None = None, **fields: Any) -> bytes | Refusal:
    return server(policy, **fields).receive(data, CLIENT, 0)


def reply(data: bytes | Refusal) -> TopologyServerReply:
    assert isinstance(data, bytes)
    packet = mqsd.decode(data, strict=True, transport="udp")
    assert isinstance(packet, TopologyServerReply)
    return packet


# --- the printed example ---


def test_a_server_of_the_clients_site_sends_the_printed_reply() -> None:
    assert receive(V1, site_id=CLIENT_SITE_ID) == V2


def test_a_server_of_another_site_sends_the_printed_reply() -> None:
    assert receive(V1) == V3


# --- what is said ---


def counts(answer: bytes) -> tuple[int, int, int]:
    """ConnectedNetworkCount, ConnectedNetworkMask, DirectoryServiceServerSize."""
    found: tuple[int, int, int] = struct.unpack_from("<III", answer, 20)
    return found


def answer_to(data: bytes, **fields: Any) -> bytes:
    """The answer of a server with these fields to a host of its allow list."""
    found = receive(data, unlimited(allowed=(IPv4Network("10.0.0.0/8"),)), **fields)
    assert isinstance(found, bytes)
    return found


@row("SDS-02")
@pytest.mark.parametrize("asking_site", [CLIENT_SITE_ID, SERVER_SITE_ID])
def test_every_connected_network_is_listed(asking_site: UUID) -> None:
    for count in range(1, 33):
        listed = networks(count)
        answer = answer_to(request(asking_site), connected_networks=listed)
        assert counts(answer)[0] == count
        assert answer[32 : 32 + 16 * count] == b"".join(network.bytes_le for network in listed)


@row("SDS-03")
@pytest.mark.parametrize("asking", [V1, request(SERVER_SITE_ID), request(tail=struct.pack("<II", 1, 7))])
def test_the_mask_is_0_for_an_ip_request(asking: bytes) -> None:
    assert counts(answer_to(asking))[1] == 0


@row("SDS-04")
def test_the_mask_has_a_bit_for_each_network_for_an_ipx_request() -> None:
    asking = mqsd.decode(request(tail=struct.pack("<II", 1, 7)), strict=True, transport="ipx")
    assert isinstance(asking, TopologyClientRequest)
    for count in range(1, 33):
        answer = reply_to(asking, site(connected_networks=networks(count)), transport="ipx")
        assert not isinstance(answer, Refusal)
        data = mqsd.encode(answer)
        assert counts(data)[1].bit_count() == counts(data)[0] == count
        assert mqsd.decode(data, strict=True, transport="ipx") == answer
    for wrong in ("IPX", "unknown"):
        with pytest.raises(ValueError, match="not one of 'udp', 'ipx'"):
            reply_to(asking, site(), transport=wrong)  # type: ignore[arg-type]


@row("SDS-05")
@pytest.mark.parametrize("count", [1, 2, 32])
def test_the_own_site_gets_neither_site_nor_servers(count: int) -> None:
    answer = answer_to(request(SERVER_SITE_ID), connected_networks=networks(count))
    assert (counts(answer)[2], len(answer)) == (0, 32 + 16 * count)


@row("SDS-06")
@pytest.mark.parametrize("asking_site", [CLIENT_SITE_ID, UUID(int=0)])
def test_another_site_gets_the_site_and_all_servers(asking_site: UUID) -> None:
    listed = (*servers("first", "second"), DirectoryServiceServer("first", ip=False, ipx=True))
    array = "10first,10second,01first\0".encode("utf-16-le")
    answer = answer_to(request(asking_site), servers=listed)
    assert counts(answer)[2] == len(array)
    assert answer[48:] == SERVER_SITE_ID.bytes_le + array


def test_version_and_reserved_of_a_request_are_ignored_and_those_of_a_reply_are_0() -> None:
    answer = receive(request(head=b"\xff\x01\xff\xff"))
    assert answer == V3
    assert V3[:4] == b"\0\2\0\0"


@pytest.mark.parametrize("tail", [1, 3, 7, 8, 132, 1420])
def test_bytes_behind_the_site_are_ignored(tail: int) -> None:
    assert receive(request(tail=b"\xff" * tail)) == V3


def test_no_site_is_a_site_like_any_other() -> None:
    """A client that belongs to none says NIL."""
    assert receive(request(UUID(int=0))) == V3
    assert receive(request(UUID(int=0)), site_id=UUID(int=0)) == V2


@row("SDS-01")
@pytest.mark.parametrize("odd", [UUID(int=0), UUID(bytes_le=b"\xff" * 16)])
def test_every_guid_of_a_request_may_be_anything(odd: UUID) -> None:
    assert reply(receive(request(odd, request_id=odd, enterprise_id=odd))).correlation_id == odd
    assert reply(receive(request(SERVER_SITE_ID, request_id=odd))).correlation_id == odd


@row("SDS-09")
def test_another_enterprise_is_answered_unless_the_policy_says_to_look() -> None:
    foreign = request(enterprise_id=UUID(int=1))
    assert receive(foreign) == V3
    assert receive(foreign, unlimited(check_enterprise=True)) is Refusal.ENTERPRISE
    assert receive(V1, unlimited(check_enterprise=True)) == V3


# --- what is not answered ---


@pytest.mark.parametrize("size", range(52))
def test_a_request_that_is_cut_is_malformed(size: int) -> None:
    assert receive(V1[:size]) is Refusal.MALFORMED


@pytest.mark.parametrize("kind", [0, 3, 0x7F, 0xFF])
def test_any_other_type_is_malformed(kind: int) -> None:
    assert receive(request(head=bytes((0, kind, 0, 0)))) is Refusal.MALFORMED


@pytest.mark.parametrize("data", [V2, V3, V3[:2], V3[:40], V3 + b"more", b"\1\2" + bytes(1470)])
def test_a_reply_is_never_answered(data: bytes) -> None:
    assert receive(data) is Refusal.REPLY


def test_what_a_server_sends_it_does_not_answer() -> None:
    for number in (1, 7, 32):
        ours = server(unlimited(allowed=(IPv4Network("0.0.0.0/0"),)), connected_networks=networks(number))
        for asking in (V1, request(SERVER_SITE_ID)):
            answer = ours.receive(asking, CLIENT, 0)
            assert isinstance(answer, bytes)
            assert ours.receive(answer, CLIENT, 0) is Refusal.REPLY


@row("SDS-10")
def test_where_no_reply_is_legal_none_is_sent_and_it_is_counted() -> None:
    for count in (0, 33, 100):
        ours = server(connected_networks=networks(count))
        assert [ours.receive(data, CLIENT, 0) for data in (V1, request(SERVER_SITE_ID))] == [Refusal.NO_NETWORKS] * 2
        assert ours.counts.refused[Refusal.NO_NETWORKS] == 2
    # An empty array would have size 0, which says that the server is of the client's site
    ours = server(servers=())
    assert ours.receive(V1, CLIENT, 0) is Refusal.NO_SERVERS
    assert isinstance(ours.receive(request(SERVER_SITE_ID), CLIENT, 0), bytes)
    assert ours.counts.refused[Refusal.NO_SERVERS] == 1


@pytest.mark.parametrize("source", [("10.20.1.25", 0), ("0.0.0.0", 68), ("0.1.2.3", 1801), ("224.0.0.1", 1801)])
def test_a_source_that_is_no_host_is_not_answered(source: tuple[str, int]) -> None:
    assert server().receive(V1, source, 0) is Refusal.SOURCE


@pytest.mark.parametrize("source", [("1.0.0.1", 1), ("223.255.255.254", 65535), ("127.0.0.1", 1801)])
def test_any_host_and_port_is_answered(source: tuple[str, int]) -> None:
    assert server().receive(V1, source, 0) == V3


# --- configuration ---


@pytest.mark.parametrize("name", ["", "a,b", "nul\0", ","])
def test_a_name_that_no_reply_can_carry(name: str) -> None:
    with pytest.raises(EncodeError):
        server(servers=servers(name))


def test_a_configuration_that_fails_leaves_the_old_one() -> None:
    ours = server()
    with pytest.raises(EncodeError):
        ours.configure(site(site_id=CLIENT_SITE_ID, servers=servers("a,b")), unlimited(check_enterprise=True))
    assert ours.receive(V1, CLIENT, 0) == V3
    assert ours.receive(request(enterprise_id=UUID(int=1)), CLIENT, 0) == V3
    assert ours.site == site()


@pytest.mark.parametrize("network", ["10.0.0.0/8", IPv6Network("::/0")])
def test_allowed_sources_are_networks_of_ipv4(network: Any) -> None:
    with pytest.raises(ValueError, match=r"allowed has .*: not an IPv4Network"):
        Policy(allowed=(network,))


def test_a_new_configuration_is_obeyed_at_once_and_counts_go_on() -> None:
    ours = server()
    assert ours.receive(V1, CLIENT, 0) == V3
    ours.configure(site(site_id=CLIENT_SITE_ID), unlimited())
    assert ours.receive(V1, CLIENT, 0) == V2
    assert (ours.counts.own_site, ours.counts.other_sites) == (1, 1)


def test_configuration_cannot_change_behind_the_servers_back() -> None:
    for value, name in ((site(), "site_id"), (Policy(), "allowed")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, None)


# --- counts ---


def test_every_datagram_is_counted_once() -> None:
    ours = server()
    for data in (V1, V1, request(SERVER_SITE_ID), V2, b"", b"\0"):
        ours.receive(data, CLIENT, 0)
    counts = ours.counts
    assert (counts.other_sites, counts.own_site) == (2, 1)
    assert {rule: number for rule, number in counts.refused.items() if number} == {"malformed": 2, "reply": 1}
    assert counts.received == 6


# --- the prepared replies are the replies of the codec ---

_NETWORKS = (IPv4Network("10.20.0.0/16"), IPv4Network("198.51.100.7/32"))
_SITES = st.builds(
    Site,
    enterprise_id=st.just(ENTERPRISE_ID) | guids,
    site_id=st.just(SERVER_SITE_ID) | guids,
    connected_networks=st.lists(guids, max_size=34).map(tuple),
    servers=st.lists(discovery_packets.servers, max_size=20).map(tuple),
)
_REQUESTS = st.builds(
    request,
    st.sampled_from((SERVER_SITE_ID, CLIENT_SITE_ID)),
    request_id=guids,
    enterprise_id=st.sampled_from((ENTERPRISE_ID, UUID(int=0))),
    head=st.builds(struct.pack, st.just("<BBH"), st.integers(0, 255), st.integers(0, 3), st.integers(0, 65535)),
    tail=st.binary(max_size=150),
)


def by_the_codec(data: bytes, site: Site, policy: Policy) -> bytes | Refusal:
    """What a server without prepared replies answers, in the order in which it would find out."""
    if data[1:2] == b"\2":
        return Refusal.REPLY
    try:
        packet = mqsd.decode(data, strict=True, transport="udp")
    except DecodeError:
        return Refusal.MALFORMED
    assert isinstance(packet, TopologyClientRequest)
    if policy.check_enterprise and packet.enterprise_id != site.enterprise_id:
        return Refusal.ENTERPRISE
    answer = reply_to(packet, site)
    if isinstance(answer, Refusal):
        return answer
    encoded = mqsd.encode(answer)
    if len(encoded) > LARGEST_REPLY:
        return Refusal.TOO_LARGE
    return encoded


@given(
    data=_REQUESTS | discovery_packets.payloads(),
    site=_SITES,
    check_enterprise=st.booleans(),
    source=st.sampled_from((CLIENT, ELSEWHERE, ("198.51.100.7", 1), ("198.51.100.8", 1))),
)
@example(data=V1, site=site(), check_enterprise=True, source=CLIENT)
@example(data=request(SERVER_SITE_ID), site=site(), check_enterprise=False, source=ELSEWHERE)
def test_answers_are_byte_for_byte_those_of_the_codec(
    data: bytes, site: Site, check_enterprise: bool, source: tuple[str, int]
) -> None:
    policy = unlimited(allowed=_NETWORKS, check_enterprise=check_enterprise)
    expected = by_the_codec(data, site, policy)
    ours = DiscoveryServer(site, policy)
    assert ours.receive(data, source, 0) == expected
    assert ours.receive(memoryview(data), source, 0) == expected
    if isinstance(expected, bytes):
        answer = reply(expected)
        assert answer.correlation_id.bytes_le == data[20:36]
        assert [bytes(network) for network in answer.connected_networks] == [
            network.bytes_le for network in site.connected_networks
        ]


def test_prepared_replies_know_their_size() -> None:
    ours = server()
    for prepared, sent in ((ours.reply_to_own_site, V2), (ours.reply_to_other_sites, V3)):
        assert not isinstance(prepared, Refusal)
        assert prepared.size == len(sent)
    assert NETWORK.bytes_le in V2
