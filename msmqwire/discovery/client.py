"""The MS-MQSD client without I/O: [MS-MQSD] 3.1.

Each event (a request of the higher layer, a datagram, the clock) returns actions (send, wait, deliver). Networks, time
and request GUIDs are arguments, so a run can be repeated exactly. The table ``TRANSITIONS`` says what each event does;
the diagram in the manual is drawn from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from ipaddress import IPv4Address, IPv4Interface
from typing import NamedTuple, TypeAlias
from uuid import UUID

from msmqwire import mqsd
from msmqwire.errors import DecodeError
from msmqwire.wire.guids import NIL

RESPONSE_TIMEOUT = 15.0
"""Seconds of the Wait For Response Timer: [MS-MQSD] 3.1.2.1."""


@dataclass(frozen=True)
class NetworkAddress:
    """A network that this computer is connected to, by the computer's own address there.

    Attributes
    ----------
    address : IPv4Interface
    broadcast : IPv4Address
        The broadcast address of the network.
    interface : str
        The system's name of the interface; empty to let the routing table choose.
    remote_access : bool
        Whether [MS-MQSD] 3.1.4.1 calls this a Remote Access Service address: a dial-up or tunnel connection.
    """

    address: IPv4Interface
    broadcast: IPv4Address
    interface: str = ""
    remote_access: bool = False

    def __str__(self) -> str:
        return f"{self.address} on {self.interface}" if self.interface else str(self.address)


@dataclass(frozen=True)
class Answer:
    """An accepted reply, the network that it arrived on, and its sender as passed to ``receive``."""

    network: NetworkAddress
    source: str
    reply: mqsd.TopologyServerReply


@dataclass(frozen=True)
class Discovery:
    """The result of a run.

    Attributes
    ----------
    found : bool
        Whether a server has answered: in this run or, if ``answers`` is empty, in an earlier run that is still valid.
    directory_servers : tuple of str
        QueueManager.DirectoryServerList: names of directory servers, in the order of the reply.
    connected_networks : tuple of uuid.UUID
        QueueManager.ConnectedNetworkIdentifierList.
    servers_updated : bool
        Whether this run has replaced ``directory_servers``. Servers of the client's own site name no servers, so their
        replies do not.
    answers : tuple of Answer
        The accepted replies in order, at most two for each network.
    discarded : mapping of DiscardReason to int
        Discarded datagrams of this run, by reason.
    unsent : tuple of (NetworkAddress, str)
        Networks to which the request could not be sent, with the error.
    """

    found: bool
    directory_servers: tuple[str, ...]
    connected_networks: tuple[UUID, ...]
    servers_updated: bool
    answers: tuple[Answer, ...]
    discarded: Mapping[DiscardReason, int] = field(hash=False)
    unsent: tuple[tuple[NetworkAddress, str], ...]


# --- Actions ---


@dataclass(frozen=True)
class Send:
    """Broadcast ``data`` on ``network``, to the port of directory servers."""

    network: NetworkAddress
    data: bytes


@dataclass(frozen=True)
class WaitUntil:
    """Call ``tick`` at this time instead of the previous one; after ``Deliver`` no call is needed."""

    time: float


class DiscardReason(StrEnum):
    """Why a datagram was discarded."""

    LATE = "late"
    """No run is under way."""
    OTHER_NETWORK = "other_network"
    """It did not arrive on the network that the last request went to."""
    MALFORMED = "malformed"
    """It violates [MS-MQSD] 2.2.3, or is not a reply."""
    OTHER_REQUEST = "other_request"
    """Its CorrelationID is not the RequestID of this run."""


@dataclass(frozen=True)
class Discard:
    """A datagram was discarded; ``detail`` is the explanation for people, ``source`` the sender."""

    reason: DiscardReason
    detail: str = ""
    source: str = ""


@dataclass(frozen=True)
class Deliver:
    """The run has ended: pass its result to the callers."""

    result: Discovery


Action: TypeAlias = Send | WaitUntil | Discard | Deliver


# --- The table's words ---


class State(Enum):
    """Idle, waiting for the first reply on a network, or waiting for the second one."""

    IDLE = "idle"
    ASKED = "asked"
    ANSWERED = "answered"


class Event(Enum):
    """The events of a client; a local reply is from a server of its own site (DirectoryServiceServerSize is 0)."""

    REQUEST = "request"
    LOCAL_REPLY = "local reply"
    REMOTE_REPLY = "remote reply"
    TIMEOUT = "timeout"
    SEND_FAILED = "send failed"
    ABANDON = "abandon"


class _Occurrence(NamedTuple):
    """An event with its arguments."""

    event: Event
    now: float = 0.0
    request_id: UUID = NIL
    reply: mqsd.TopologyServerReply | None = None


Guard: TypeAlias = Callable[["DiscoveryClient"], bool]
Step: TypeAlias = Callable[["DiscoveryClient", _Occurrence], Action | None]


class Transition(NamedTuple):
    """On ``event`` in one of ``states``, if ``guard`` holds, take the ``steps`` and enter ``target``.

    ``target`` is None if the state does not change; ``section`` is that of [MS-MQSD], or "decision" if it has none.
    """

    rule: str
    section: str
    states: tuple[State, ...]
    event: Event
    guard: Guard
    steps: tuple[Step, ...]
    target: State | None


class DiscoveryClient:
    """The MS-MQSD client of one queue manager.

    Each event is a method that returns the actions to take, in order. Attributes have the names of [MS-MQSD] 3.1.1. A
    client that has been answered sends again only after ``valid_last_successful_network_address`` is set to False.

    Parameters
    ----------
    enterprise_id, site_id : uuid.UUID, optional
        Enterprise.Identifier and Site.Identifier of this computer; nil if it belongs to none. Without a site, every
        server is of another site, and its reply lists the directory servers.
    literal : bool
        Follow the exact words of [MS-MQSD] 3.1.5.2 and 3.1.6.1 even where they lose information: a reply of the own
        site on the last network empties the list of connected networks, and replies on earlier networks are forgotten.
    response_timeout : float
        Seconds to wait for replies on each network.

    Raises
    ------
    ValueError
        ``enterprise_id`` or ``site_id`` is not a UUID, or ``response_timeout`` is below 0.

    Examples
    --------
    >>> from ipaddress import IPv4Address, IPv4Interface
    >>> client = DiscoveryClient()
    >>> lan = NetworkAddress(IPv4Interface("10.20.1.25/24"), IPv4Address("10.20.1.255"), "eth0")
    >>> wait, send = client.get_directory_server_list([lan], request_id=UUID(int=7), now=0.0)
    >>> wait, str(send.network), len(send.data)
    (WaitUntil(time=15.0), '10.20.1.25/24 on eth0', 52)
    >>> reply = mqsd.TopologyServerReply(correlation_id=UUID(int=7), connected_networks=[UUID(int=4)])
    >>> deliver, = client.receive(mqsd.encode(reply), lan, now=0.2)
    >>> deliver.result.found, deliver.result.connected_networks
    (True, (UUID('00000000-0000-0000-0000-000000000004'),))
    """

    def __init__(
        self,
        *,
        enterprise_id: UUID = NIL,
        site_id: UUID = NIL,
        literal: bool = False,
        response_timeout: float = RESPONSE_TIMEOUT,
    ) -> None:
        _check_guids(enterprise_id=enterprise_id, site_id=site_id)
        if not response_timeout >= 0:
            raise ValueError(f"response_timeout is {response_timeout}: below 0")
        self.enterprise_id = enterprise_id
        self.site_id = site_id
        self.literal = literal
        self.response_timeout = response_timeout
        self.state = State.IDLE
        self.deadline: float | None = None
        self.request_id = NIL
        self.last_successful_network_address: NetworkAddress | None = None
        self.valid_last_successful_network_address = False
        self.last_topology_server_reply: mqsd.TopologyServerReply | None = None
        self.topology_server_reply_received = False
        self.network_address_list: tuple[NetworkAddress, ...] = ()
        self.current_network_index = 0
        self.directory_server_list: tuple[str, ...] = ()
        self.connected_network_identifier_list: tuple[UUID, ...] = ()
        self._forget_run()

    @property
    def number_of_network_addresses(self) -> int:
        """NumberOfNetworkAddresses."""
        return len(self.network_address_list)

    # --- Events ---

    def get_directory_server_list(
        self, networks: Sequence[NetworkAddress], *, request_id: UUID, now: float
    ) -> list[Action]:
        """The higher layer requests the list of directory servers: [MS-MQSD] 3.1.4.1.

        During a run this does nothing: the ``Deliver`` of that run answers both requests.

        Parameters
        ----------
        networks : sequence of NetworkAddress
            Every network that the computer is connected to, in the order in which requests are sent.
        request_id : uuid.UUID
            A new GUID that cannot be guessed; replies are recognized by it.
        now : float
            The time in seconds of a monotonic clock.

        Raises
        ------
        ValueError
            ``request_id`` is not a UUID.
        """
        # Before the first step: an exception in the middle would leave the client in a run without a request
        _check_guids(request_id=request_id)
        if self.state is State.IDLE:
            self.network_address_list = tuple(networks)
            self._forget_run()
        return self._handle(_Occurrence(Event.REQUEST, now, request_id))

    def receive(self, data: bytes, network: NetworkAddress | None, *, source: str = "", now: float) -> list[Action]:
        """A datagram arrived on ``network``, or on an unknown one (None): [MS-MQSD] 3.1.5.2.

        ``source`` is shown to people only.
        """
        if self.state is State.IDLE:
            return [Discard(DiscardReason.LATE, "no run is under way", source)]
        asked = self._current_network
        if network != asked:
            return [self._discard(DiscardReason.OTHER_NETWORK, f"the last request went to {asked}", source)]
        try:
            reply = mqsd.decode(data, strict=True, transport="udp")
        except DecodeError as error:
            return [self._discard(DiscardReason.MALFORMED, str(error), source)]
        if not isinstance(reply, mqsd.TopologyServerReply):
            return [self._discard(DiscardReason.MALFORMED, "a request, not a reply", source)]
        if reply.correlation_id != self.request_id:
            return [self._discard(DiscardReason.OTHER_REQUEST, f"CorrelationID is {reply.correlation_id}", source)]
        self._answers.append(Answer(asked, source, reply))
        event = Event.REMOTE_REPLY if reply.servers else Event.LOCAL_REPLY
        return self._handle(_Occurrence(event, now, reply=reply))

    def tick(self, now: float) -> list[Action]:
        """The time is ``now``; before the time of the last ``WaitUntil`` nothing happens: [MS-MQSD] 3.1.6.1."""
        if self.deadline is None or now < self.deadline:
            return []
        return self._handle(_Occurrence(Event.TIMEOUT, now))

    def send_failed(self, network: NetworkAddress, reason: str) -> list[Action]:
        """A ``Send`` failed: that network stays silent, and the timer ends the wait for it."""
        if self.state is not State.IDLE:
            self._unsent.append((network, reason))
        return self._handle(_Occurrence(Event.SEND_FAILED))

    def abandon(self) -> list[Action]:
        """Cancel the run. The next request starts a new one, even if replies have been accepted."""
        return self._handle(_Occurrence(Event.ABANDON))

    def _handle(self, occurrence: _Occurrence) -> list[Action]:
        for transition in TRANSITIONS:
            if self.state in transition.states and occurrence.event is transition.event and transition.guard(self):
                self.state = transition.target or self.state
                actions = (step(self, occurrence) for step in transition.steps)
                return [action for action in actions if action is not None]
        return []

    def _discard(self, reason: DiscardReason, detail: str, source: str) -> Discard:
        self._discarded[reason] += 1
        return Discard(reason, detail, source)

    @property
    def _current_network(self) -> NetworkAddress:
        return self.network_address_list[self.current_network_index - 1]

    # --- Guards ---

    def _always(self) -> bool:
        return True

    def _known(self) -> bool:
        """A server has answered before, and no network is a remote access connection."""
        return self.valid_last_successful_network_address and not any(
            network.remote_access for network in self.network_address_list
        )

    def _no_network(self) -> bool:
        """There is no network; ValidLastSuccessfulNetworkAddress is FALSE already."""
        return not self._known() and not self.network_address_list

    def _new(self) -> bool:
        """There are networks."""
        return not self._known() and not self._no_network()

    def _more(self) -> bool:
        """CurrentNetworkIndex is not NumberOfNetworkAddresses."""
        return self.current_network_index != self.number_of_network_addresses

    def _last(self) -> bool:
        """CurrentNetworkIndex is NumberOfNetworkAddresses."""
        return not self._more()

    def _silent(self) -> bool:
        """As last; LastTopologyServerReply is empty and TopologyServerReplyReceived FALSE."""
        return self._last() and self.last_topology_server_reply is None and not self.topology_server_reply_received

    def _replied(self) -> bool:
        """As last; not silent."""
        return self._last() and not self._silent()

    # --- Steps ---

    def _forget_run(self) -> None:
        # Replies that the specification forgets on the next network, and parts of the result
        self._kept: mqsd.TopologyServerReply | None = None
        self._kept_remote: mqsd.TopologyServerReply | None = None
        self._servers_updated = False
        self._answers: list[Answer] = []
        self._discarded: Counter[DiscardReason] = Counter()
        self._unsent: list[tuple[NetworkAddress, str]] = []

    def _begin(self, occurrence: _Occurrence) -> None:
        """Take the new RequestID; CurrentNetworkIndex := 0, TopologyServerReplyReceived := FALSE."""
        self.request_id = occurrence.request_id
        self.current_network_index = 0
        self.topology_server_reply_received = False

    def _advance(self, _: _Occurrence) -> None:
        """Add 1 to CurrentNetworkIndex; LastTopologyServerReply := empty."""
        self.current_network_index += 1
        self.last_topology_server_reply = None

    def _start_timer(self, occurrence: _Occurrence) -> WaitUntil:
        """Start or restart the timer."""
        self.deadline = occurrence.now + self.response_timeout
        return WaitUntil(self.deadline)

    def _stop_timer(self, _: _Occurrence) -> None:
        """Stop the timer."""
        self.deadline = None

    def _send(self, _: _Occurrence) -> Send:
        """Broadcast a TopologyClientRequest on the network at CurrentNetworkIndex."""
        request = mqsd.TopologyClientRequest(
            enterprise_id=self.enterprise_id, request_id=self.request_id, site_id=self.site_id
        )
        return Send(self._current_network, mqsd.encode(request))

    def _keep(self, occurrence: _Occurrence) -> None:
        """LastTopologyServerReply := the reply; TopologyServerReplyReceived := TRUE."""
        self.last_topology_server_reply = self._kept = occurrence.reply
        if occurrence.event is Event.REMOTE_REPLY:
            self._kept_remote = occurrence.reply
        self.topology_server_reply_received = True

    def _mark(self, _: _Occurrence) -> None:
        """LastSuccessfulNetworkAddress := the network, ValidLastSuccessfulNetworkAddress := TRUE."""
        self.last_successful_network_address = self._current_network
        self.valid_last_successful_network_address = True

    def _unmark(self, _: _Occurrence) -> None:
        """ValidLastSuccessfulNetworkAddress := FALSE."""
        self.valid_last_successful_network_address = False

    def _populate_servers(self, _: _Occurrence) -> None:
        """Replace DirectoryServerList if the reply names servers: 3.1.7.1."""
        # LastTopologyServerReply, where it names servers, is the latest of the replies kept
        source = self.last_topology_server_reply if self.literal else self._kept_remote
        if source is not None and source.servers:
            self.directory_server_list = tuple(server.name for server in source.servers)
            self._servers_updated = True

    def _populate_networks(self, occurrence: _Occurrence) -> None:
        """Replace ConnectedNetworkIdentifierList: 3.1.7.2."""
        source = self._source(occurrence)
        networks = () if source is None else source.connected_networks
        self.connected_network_identifier_list = tuple(UUID(bytes_le=bytes(network)) for network in networks)

    def _source(self, occurrence: _Occurrence) -> mqsd.TopologyServerReply | None:
        """The reply that lists are made from: LastTopologyServerReply, with ``literal`` even if it is empty."""
        if self.last_topology_server_reply is not None or self.literal:
            return self.last_topology_server_reply
        return occurrence.reply if occurrence.reply is not None else self._kept

    def _succeed(self, _: _Occurrence) -> Deliver:
        """Complete: success."""
        return self._delivered(found=True)

    def _fail(self, _: _Occurrence) -> Deliver:
        """Complete: failure."""
        return self._delivered(found=False)

    def _delivered(self, *, found: bool) -> Deliver:
        result = Discovery(
            found,
            self.directory_server_list,
            self.connected_network_identifier_list,
            self._servers_updated,
            tuple(self._answers),
            dict(self._discarded),
            tuple(self._unsent),
        )
        return Deliver(result)


def _check_guids(**guids: UUID) -> None:
    for name, guid in guids.items():
        if not isinstance(guid, UUID):
            raise ValueError(f"{name} is {guid!r}: not a uuid.UUID")


_IDLE, _ASKED, _ANSWERED = State.IDLE, State.ASKED, State.ANSWERED
_Client = DiscoveryClient
_SEND = (_Client._advance, _Client._start_timer, _Client._send)
_POPULATE = (_Client._populate_servers, _Client._populate_networks)

#: At most one transition holds for an event in a state; an event without one is disregarded.
TRANSITIONS: tuple[Transition, ...] = (
    Transition("G1", "3.1.4.1", (_IDLE,), Event.REQUEST, _Client._known, (_Client._succeed,), None),
    Transition("G2", "decision", (_IDLE,), Event.REQUEST, _Client._no_network, (_Client._fail,), None),
    Transition("G3", "3.1.4.1", (_IDLE,), Event.REQUEST, _Client._new, (_Client._begin, *_SEND), _ASKED),
    Transition("G4", "decision", (_ASKED, _ANSWERED), Event.REQUEST, _Client._always, (), None),
    Transition(
        "A", "3.1.5.2", (_ASKED, _ANSWERED), Event.LOCAL_REPLY, _Client._more,
        (_Client._keep, _Client._mark, _Client._stop_timer, *_SEND), _ASKED,
    ),
    Transition("B", "3.1.5.2", (_ANSWERED,), Event.REMOTE_REPLY, _Client._more, _SEND, _ASKED),
    Transition(
        "C", "3.1.5.2", (_ASKED, _ANSWERED), Event.LOCAL_REPLY, _Client._last,
        (_Client._stop_timer, _Client._mark, *_POPULATE, _Client._succeed), _IDLE,
    ),
    Transition(
        "D", "3.1.5.2", (_ASKED,), Event.REMOTE_REPLY, _Client._always,
        (_Client._keep, _Client._mark, _Client._start_timer), _ANSWERED,
    ),
    Transition(
        "E", "3.1.5.2", (_ANSWERED,), Event.REMOTE_REPLY, _Client._last,
        (_Client._stop_timer, *_POPULATE, _Client._mark, _Client._succeed), _IDLE,
    ),
    Transition("T1", "3.1.6.1", (_ASKED, _ANSWERED), Event.TIMEOUT, _Client._more, _SEND, _ASKED),
    Transition(
        "T2", "3.1.6.1", (_ASKED,), Event.TIMEOUT, _Client._silent,
        (_Client._stop_timer, _Client._unmark, _Client._fail), _IDLE,
    ),
    Transition(
        "T3", "3.1.6.1", (_ASKED, _ANSWERED), Event.TIMEOUT, _Client._replied,
        (_Client._stop_timer, *_POPULATE, _Client._succeed), _IDLE,
    ),
    Transition("U1", "decision", (_ASKED, _ANSWERED), Event.SEND_FAILED, _Client._always, (), None),
    Transition(
        "U2", "decision", (_ASKED, _ANSWERED), Event.ABANDON, _Client._always,
        (_Client._stop_timer, _Client._unmark), _IDLE,
    ),
)  # fmt: skip
