"""[MS-MQSD] 3.2, row by row: what a discovery server answers. Replies are taken apart by hand."""

from __future__ import annotations

import errno
import socket
import struct
import threading
import uuid
from ipaddress import IPv4Network
from typing import Any

import pytest

from msmqwire import mqsd
from msmqwire.discovery.server import Refusal, reply_to
from msmqwire.mqsd import DirectoryServiceServer, TopologyClientRequest
from msmqwire.net.discovery_server import Address, DiscoveryService
from tests.contract.checklist import row
from tests.discovery.sites import (
    CLIENT,
    CLIENT_SITE_ID,
    REQUEST_ID,
    SERVER_SITE_ID,
    V1,
    V3,
    networks,
    request,
    server,
    servers,
    site,
    unlimited,
)

SECONDS = 60


def answer(data: bytes, **fields: Any) -> bytes:
    """The answer of a server with these fields, to a host of its allow list."""
    found = server(unlimited(allowed=(IPv4Network("10.0.0.0/8"),)), **fields).receive(data, CLIENT, 0)
    assert isinstance(found, bytes)
    return found


def counts(reply: bytes) -> tuple[int, int, int]:
    """ConnectedNetworkCount, ConnectedNetworkMask, DirectoryServiceServerSize."""
    found: tuple[int, int, int] = struct.unpack_from("<III", reply, 20)
    return found


def decoded_request(data: bytes, transport: Any) -> TopologyClientRequest:
    packet = mqsd.decode(data, strict=True, transport=transport)
    assert isinstance(packet, TopologyClientRequest)
    return packet


@row("SDS-01")
def test_correlation_id_is_the_request_id() -> None:
    assert answer(V1)[4:20] == REQUEST_ID.bytes_le
    for other in (uuid.UUID(int=0), uuid.UUID(bytes_le=b"\xff" * 16)):
        for asking_site in (CLIENT_SITE_ID, SERVER_SITE_ID):
            assert answer(request(asking_site, request_id=other))[4:20] == other.bytes_le


@row("SDS-02")
def test_every_connected_network_is_listed() -> None:
    for count in range(1, 33):
        listed = networks(count)
        for asking_site in (CLIENT_SITE_ID, SERVER_SITE_ID):
            reply = answer(request(asking_site), connected_networks=listed)
            assert counts(reply)[0] == count
            assert reply[32 : 32 + 16 * count] == b"".join(network.bytes_le for network in listed)


@row("SDS-03")
def test_mask_is_0_for_an_ip_request() -> None:
    for asking in (V1, request(SERVER_SITE_ID), request(tail=struct.pack("<II", 1, 7))):
        assert counts(answer(asking))[1] == 0


@row("SDS-04")
def test_mask_has_a_bit_for_each_network_for_an_ipx_request() -> None:
    asking = decoded_request(request(tail=struct.pack("<II", 1, 7)), "ipx")
    for count in range(1, 33):
        reply = reply_to(asking, site(connected_networks=networks(count)), transport="ipx")
        assert not isinstance(reply, Refusal)
        data = mqsd.encode(reply)
        assert counts(data)[1].bit_count() == counts(data)[0] == count
        assert mqsd.decode(data, strict=True, transport="ipx") == reply


@row("SDS-05")
def test_a_client_of_the_own_site_is_told_no_site_and_no_servers() -> None:
    for count in (1, 2, 32):
        reply = answer(request(SERVER_SITE_ID), connected_networks=networks(count))
        assert counts(reply)[2] == 0
        assert len(reply) == 32 + 16 * count


@row("SDS-06")
def test_a_client_of_another_site_is_told_the_site_and_all_servers() -> None:
    listed = (*servers("first", "second"), DirectoryServiceServer("third", ip=False, ipx=True))
    array = "10first,10second,01third\0".encode("utf-16-le")
    for asking_site in (CLIENT_SITE_ID, uuid.UUID(int=0)):
        reply = answer(request(asking_site), servers=listed)
        assert counts(reply)[2] == len(array)
        assert reply[48:] == SERVER_SITE_ID.bytes_le + array


@row("SDS-07")
def test_the_reply_goes_to_the_sender() -> None:
    with DiscoveryService(server(), [("127.0.0.1", 0)]) as service:
        (address,) = service.addresses
        clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3)]
        for number, client in enumerate(clients):
            client.settimeout(SECONDS)
            client.sendto(request(request_id=uuid.UUID(int=number)), address)
        service.call(service.stop)
        thread = threading.Thread(target=service.run)
        thread.start()
        for number, client in enumerate(clients):
            with client:
                reply, source = client.recvfrom(2048)
                assert (reply[4:20], source) == (uuid.UUID(int=number).bytes_le, address)
        thread.join(SECONDS)


class BrokenSocket(socket.socket):
    """It receives, but cannot send."""

    def sendto(self, *_: Any) -> int:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")


@row("SDS-08")
def test_after_a_send_error_the_socket_is_reopened_and_without_one_the_server_ends() -> None:
    kinds = [BrokenSocket, socket.socket, BrokenSocket]
    opened: list[socket.socket] = []

    def opener(address: Address) -> socket.socket:
        if not kinds:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        opened.append(kinds.pop(0)(socket.AF_INET, socket.SOCK_DGRAM))
        opened[-1].bind(address)
        opened[-1].setblocking(False)
        return opened[-1]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(SECONDS)
        with DiscoveryService(server(), [("127.0.0.1", 0)], opener=opener) as service:
            (address,) = service.addresses
            thread = threading.Thread(target=service.run)
            thread.start()
            while len(opened) < 2:  # what waited at the first is gone with it
                client.sendto(V1, address)
            client.sendto(V1, address)
            assert client.recvfrom(2048) == (V3, address)
            service.stop()
            thread.join(SECONDS)
        assert opened[0].fileno() == -1
        with DiscoveryService(server(), [("127.0.0.1", 0)], opener=opener) as service:
            client.sendto(V1, service.addresses[0])
            with pytest.raises(OSError, match="already in use"):
                service.run()


@row("SDS-09")
def test_the_enterprise_is_not_compared() -> None:
    assert answer(request(enterprise_id=uuid.UUID(int=7))) == V3
    looking = server(unlimited(check_enterprise=True))
    assert looking.receive(request(enterprise_id=uuid.UUID(int=7)), CLIENT, 0) is Refusal.ENTERPRISE
    assert looking.receive(V1, CLIENT, 0) == V3


@row("SDS-10")
def test_where_no_reply_is_legal_none_is_sent_and_it_is_reported() -> None:
    for count in (0, 33):
        ours = server(connected_networks=networks(count))
        assert [ours.receive(data, CLIENT, 0) for data in (V1, request(SERVER_SITE_ID))] == [Refusal.NO_NETWORKS] * 2
        assert ours.counts.refused[Refusal.NO_NETWORKS] == 2
    ours = server(servers=())
    assert ours.receive(V1, CLIENT, 0) is Refusal.NO_SERVERS
    assert isinstance(ours.receive(request(SERVER_SITE_ID), CLIENT, 0), bytes)
    assert ours.counts.refused[Refusal.NO_SERVERS] == 1
