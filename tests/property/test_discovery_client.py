"""The client against the model, event by event: the same actions and variables, whatever happens in which order."""

from __future__ import annotations

import struct
import uuid
from ipaddress import IPv4Interface
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from msmqwire import mqsd
from msmqwire.discovery import Deliver, Discard, DiscoveryClient, NetworkAddress, Send, WaitUntil
from msmqwire.discovery.client import Action, State
from tests.property.strategies import guids, names
from tests.reference.discovery_client import Model, Reply

ENTERPRISE, SITE = uuid.UUID(int=0xE1), uuid.UUID(int=0x51)


def _network(number: int, remote_access: bool) -> NetworkAddress:
    own = IPv4Interface(f"10.20.{number}.25/24")
    return NetworkAddress(own, own.network.broadcast_address, f"eth{number}", remote_access)


# Dial-up is rare, so that runs are often answered from memory.
NETWORKS = [_network(number, number == 4) for number in range(5)]
replies = st.builds(
    Reply,
    st.lists(names, max_size=3).map(tuple),
    st.lists(guids, min_size=1, max_size=4).map(tuple),
)


def packed(reply: Reply, correlation_id: uuid.UUID) -> bytes:
    """A reply as bytes, without the encoder."""
    array = "".join(f"10{name}," for name in reply.names)[:-1] + "\0" if reply.names else ""
    data = array.encode("utf-16-le", "surrogatepass")
    head = struct.pack("<BBH16sIII", 0, 2, 0, correlation_id.bytes_le, len(reply.networks), 0, len(data))
    site = uuid.UUID(int=0x52).bytes_le if reply.names else b""
    return head + b"".join(network.bytes_le for network in reply.networks) + site + data


class Discovery(RuleBasedStateMachine):
    """Both clients, fed with the same events."""

    @initialize(literal=st.booleans())
    def begin(self, literal: bool) -> None:
        self.client = DiscoveryClient(enterprise_id=ENTERPRISE, site_id=SITE, literal=literal)
        self.model = Model(literal)
        self.now = 0.0
        self.runs = 0

    def _agree(self, actions: list[Action]) -> None:
        assert [self._plain(action) for action in actions] == self.model.done
        self.model.done.clear()

    def _plain(self, action: Action) -> tuple[Any, ...]:
        match action:
            case WaitUntil(time):
                return ("wait", time)
            case Send(network, data):
                packet = mqsd.decode(data, strict=True, transport="udp")
                assert isinstance(packet, mqsd.TopologyClientRequest)
                assert (packet.enterprise_id, packet.site_id) == (ENTERPRISE, SITE)
                return ("send", network, packet.request_id)
            case Discard():
                return ("discard",)
            case Deliver(result):
                return ("complete", result.found, result.directory_servers, result.connected_networks)

    @rule(networks=st.lists(st.sampled_from(NETWORKS), max_size=4, unique=True))
    def request(self, networks: list[NetworkAddress]) -> None:
        self.runs += 1
        run = uuid.UUID(int=self.runs)
        self.model.get_directory_server_list(networks, run, self.now)
        self._agree(self.client.get_directory_server_list(networks, request_id=run, now=self.now))

    def _receive(self, reply: Reply | None, data: bytes, correlation_id: uuid.UUID, network: Any) -> None:
        self.model.receive(reply, correlation_id, network, self.now)
        self._agree(self.client.receive(data, network, now=self.now))

    @property
    def _asked(self) -> NetworkAddress | None:
        at = self.model.CurrentNetworkIndex
        return self.model.NetworkAddressList[at - 1] if at and self.model.pending else None

    @rule(reply=replies)
    def reply_as_it_should_be(self, reply: Reply) -> None:
        run = self.model.RequestID or uuid.UUID(int=0)
        self._receive(reply, packed(reply, run), run, self._asked)

    @rule(reply=replies, network=st.sampled_from([*NETWORKS, None]))
    def reply_on_some_network(self, reply: Reply, network: NetworkAddress | None) -> None:
        run = self.model.RequestID or uuid.UUID(int=0)
        self._receive(reply, packed(reply, run), run, network)

    @rule(reply=replies, run=st.integers(0, 20))
    def reply_to_some_request(self, reply: Reply, run: int) -> None:
        self._receive(reply, packed(reply, uuid.UUID(int=run)), uuid.UUID(int=run), self._asked)

    @rule(reply=replies, cut=st.integers(1, 400), tail=st.binary(max_size=3))
    def reply_that_is_damaged(self, reply: Reply, cut: int, tail: bytes) -> None:
        run = self.model.RequestID or uuid.UUID(int=0)
        data = packed(reply, run)
        data = data + tail if tail else data[: max(0, len(data) - cut)]
        self._receive(None, data, run, self._asked)

    @rule(seconds=st.sampled_from((0.0, 0.1, 7.0, 14.9, 15.0, 15.1, 60.0)))
    def time_goes_by(self, seconds: float) -> None:
        self.now += seconds
        self.model.tick(self.now)
        self._agree(self.client.tick(self.now))

    @precondition(lambda self: self.model.pending)
    @rule()
    def send_fails(self) -> None:
        assert self._asked is not None
        self._agree(self.client.send_failed(self._asked, "down"))

    @rule()
    def abandon(self) -> None:
        self.model.abandon()
        self._agree(self.client.abandon())

    @rule()
    def ask_anew_next_time(self) -> None:
        self.model.ValidLastSuccessfulNetworkAddress = False
        self.client.valid_last_successful_network_address = False

    @invariant()
    def same_variables(self) -> None:
        client, model = self.client, self.model
        assert (client.state is State.IDLE) == (not model.pending)
        assert client.deadline == model.timer
        assert client.last_successful_network_address == model.LastSuccessfulNetworkAddress
        assert client.valid_last_successful_network_address == model.ValidLastSuccessfulNetworkAddress
        assert client.topology_server_reply_received == model.TopologyServerReplyReceived
        assert list(client.network_address_list) == model.NetworkAddressList
        assert client.current_network_index == model.CurrentNetworkIndex
        assert list(client.directory_server_list) == model.DirectoryServerList
        assert list(client.connected_network_identifier_list) == model.ConnectedNetworkIdentifierList
        kept = client.last_topology_server_reply
        assert (kept is None) == (model.LastTopologyServerReply is None)
        if kept is not None and model.LastTopologyServerReply is not None:
            assert tuple(server.name for server in kept.servers) == model.LastTopologyServerReply.names

    @invariant()
    def waiting_means_a_timer(self) -> None:
        assert (self.client.deadline is None) == (self.client.state is State.IDLE)


TestDiscovery = Discovery.TestCase
TestDiscovery.settings = settings(max_examples=100, stateful_step_count=40)
