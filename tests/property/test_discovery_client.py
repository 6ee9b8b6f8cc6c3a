"""The client against the model, event by event: the same actions and variables, whatever happens in which order."""

from __future__ import annotations

import struct
import uuid
from ipaddress import IPv4Interface
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from msmqwire import mqsd
from msmqwire.discovery import Deliver, Discard, DiscoveryClient, NetworkAddress, Send, WaitUntil
from msmqwire.discovery.client import Action, State
from tests.property.discovery_packets import names
from tests.property.editing import guids
from tests.reference.discovery_client import Model, Reply

ENTERPRISE, SITE, NO_RUN = uuid.UUID(int=0xE1), uuid.UUID(int=0x51), uuid.UUID(int=0)


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
            case Discard(reason):
                return ("discard", reason)
            case Deliver(result):
                return ("complete", result.found, result.directory_servers, result.connected_networks)

    @rule(networks=st.lists(st.sampled_from(NETWORKS), max_size=3, unique=True))
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

    # What brings a run on comes up more often than what is disregarded: most rules are of the former kind.

    @rule(reply=replies)
    def reply_as_it_should_be(self, reply: Reply) -> None:
        run = self.model.RequestID or NO_RUN
        self._receive(reply, packed(reply, run), run, self._asked)

    @rule(reply=replies)
    def another_reply(self, reply: Reply) -> None:
        self.reply_as_it_should_be(reply)

    @rule(
        reply=replies,
        network=st.sampled_from([*NETWORKS, None]),
        run=st.integers(0, 20).map(lambda number: uuid.UUID(int=number)),
        damage=st.integers(-400, -1) | st.binary(min_size=1, max_size=3),
        fault=st.integers(0, 2),
    )
    def reply_with_a_fault(
        self, reply: Reply, network: NetworkAddress | None, run: uuid.UUID, damage: int | bytes, fault: int
    ) -> None:
        right = self.model.RequestID or NO_RUN
        data = packed(reply, right)
        if fault == 0:
            self._receive(reply, data, right, network)
        elif fault == 1:
            self._receive(reply, packed(reply, run), run, self._asked)
        else:
            self._receive(None, data[:damage] if isinstance(damage, int) else data + damage, right, self._asked)

    @rule(seconds=st.sampled_from((0.0, 0.1, 7.0, 14.9)))
    def time_goes_by(self, seconds: float) -> None:
        self._wait(seconds)

    @rule(late=st.sampled_from((0.0, 0.0, 60.0)))
    def timer_expires(self, late: float) -> None:
        self._wait((0.0 if self.model.timer is None else self.model.timer - self.now) + late)

    def _wait(self, seconds: float) -> None:
        self.now += seconds
        self.model.tick(self.now)
        self._agree(self.client.tick(self.now))

    @rule(what=st.integers(0, 2))
    def something_of_ours(self, what: int) -> None:
        if what == 0:
            self.model.abandon()
            self._agree(self.client.abandon())
        elif what == 1:
            self.model.ValidLastSuccessfulNetworkAddress = False
            self.client.valid_last_successful_network_address = False
        elif self._asked is not None:
            self._agree(self.client.send_failed(self._asked, "down"))

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
TestDiscovery.settings = settings(stateful_step_count=40)
