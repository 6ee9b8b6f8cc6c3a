"""The server of MS-MQSD: a datagram, its source and the time in, an answer or a named refusal out ([MS-MQSD] 3.2).

``reply_to`` is the protocol: what one request is answered with. ``DiscoveryServer`` is a server on UDP that anybody may
send to, and that nobody can use against others: it answers requests only, at most three bytes for one to whoever is not
on its list, never more than a datagram that crosses an Ethernet whole, and so many in a second.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network
from socket import AF_INET, inet_pton
from typing import Literal

from msmqwire.discovery.rates import NetworkBuckets, Rate, TokenBucket
from msmqwire.mqsd import DirectoryServiceServer, TopologyClientRequest, TopologyServerReply, encode

__all__ = [
    "AMPLIFICATION",
    "DEFAULT_POLICY",
    "LARGEST_REPLY",
    "REQUEST_SIZE",
    "Counts",
    "DiscoveryServer",
    "Policy",
    "Refusal",
    "Reply",
    "Site",
    "reply_to",
]

#: Bytes of a request in its IP form: [MS-MQSD] 2.2.2.
REQUEST_SIZE = 52
#: How many bytes an answer may have for each of the request, where the source is not on the list of those allowed more.
AMPLIFICATION = 3
#: Bytes of the largest answer: with the headers of UDP and IPv4 an Ethernet frame of 1,500.
LARGEST_REPLY = 1472

_MOST_NETWORKS = 32
_NETWORKS_REMEMBERED = 16_384
# A burst is every host of a network of 24 bits, which all start when the power comes back
_NETWORK_RATE, _TOTAL_RATE = Rate(100, burst=256), Rate(1000, burst=2000)
_REQUEST, _REPLY = 1, 2
# Offsets of [MS-MQSD] 2.2.2 and 2.2.3
_ENTERPRISE_ID, _REQUEST_ID, _SITE_ID = slice(4, 20), slice(20, 36), slice(36, 52)
_CORRELATION_ID = slice(4, 20)
# RFC 1122 3.2.1.3: {0, *} and classes D and E are nobody's source
_FIRST_SOURCE, _LAST_SOURCE = 1 << 24, (224 << 24) - 1


class Refusal(StrEnum):
    """Why a datagram has no answer."""

    MALFORMED = "malformed"
    """It is no packet of discovery, or a request of fewer than 52 bytes."""
    REPLY = "reply"
    """It is a reply: who answers those can be made to talk to another server for ever."""
    ENTERPRISE = "enterprise"
    """It is from another enterprise, and the policy says to look."""
    NO_NETWORKS = "no_networks"
    """The server has no connected network, or more than 32: no reply may say so."""
    NO_SERVERS = "no_servers"
    """It is from another site, and no directory server can be named: an empty list would claim the client's site."""
    TOO_LARGE = "too_large"
    """The answer would have more than 1,472 bytes."""
    AMPLIFICATION = "amplification"
    """The answer would have more than three bytes for one, and the source is not on the list of those allowed."""
    SOURCE = "source"
    """Its source is no host's address, or port 0: an answer would go astray."""
    NETWORK_RATE = "network_rate"
    """The network that it comes from has had its answers for now."""
    TOTAL_RATE = "total_rate"
    """All networks together have had their answers for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a server answers from: [MS-MQSD] 3.2.1.1.

    Parameters
    ----------
    enterprise_id : uuid.UUID
        Enterprise.Identifier.
    site_id : uuid.UUID
        Site.Identifier.
    connected_networks : tuple of uuid.UUID
        ConnectedNetworkIdentifierList; 1 to 32, else nobody is answered.
    servers : tuple of DirectoryServiceServer
        DirectoryServerList with the transports that each server speaks; without any, clients of other sites are not
        answered.
    """

    enterprise_id: uuid.UUID
    site_id: uuid.UUID
    connected_networks: tuple[uuid.UUID, ...]
    servers: tuple[DirectoryServiceServer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Whom a server answers, with how much and how often.

    Parameters
    ----------
    allowed : tuple of IPv4Network
        Sources whose answers may have more than three bytes for one of the request.
    check_enterprise : bool
        Answer only clients of the server's own enterprise. [MS-MQSD] 3.2.5.1 does not compare it.
    network_rate, total_rate : Rate
        Answers to each network that requests come from, and to all of them.
    network_prefix : int
        Bits of an address that make its network, 1 to 32.

    Raises
    ------
    ValueError
        A network of fewer bits, or more.
    """

    allowed: tuple[IPv4Network, ...] = ()
    check_enterprise: bool = False
    network_rate: Rate = _NETWORK_RATE
    total_rate: Rate = _TOTAL_RATE
    network_prefix: int = 24

    def __post_init__(self) -> None:
        if not 1 <= self.network_prefix <= 32:
            raise ValueError(f"an IPv4 network has 1 to 32 bits, not {self.network_prefix}")


DEFAULT_POLICY = Policy()


def reply_to(
    request: TopologyClientRequest, site: Site, *, transport: Literal["udp", "ipx"] = "udp"
) -> TopologyServerReply | Refusal:
    """The reply to a request, or why there can be none: [MS-MQSD] 3.2.5.1.

    Raises
    ------
    EncodeError
        A directory server has a name that no reply can carry.

    Examples
    --------
    >>> from uuid import UUID
    >>> site = Site(enterprise_id=UUID(int=1), site_id=UUID(int=3), connected_networks=(UUID(int=4),))
    >>> ours = TopologyClientRequest(enterprise_id=UUID(int=1), request_id=UUID(int=2), site_id=UUID(int=3))
    >>> len(encode(reply_to(ours, site)))
    48
    >>> theirs = TopologyClientRequest(enterprise_id=UUID(int=1), request_id=UUID(int=2), site_id=UUID(int=5))
    >>> reply_to(theirs, site)
    <Refusal.NO_SERVERS: 'no_servers'>
    """
    count = len(site.connected_networks)
    if not 1 <= count <= _MOST_NETWORKS:
        return Refusal.NO_NETWORKS
    own_site = request.site_id == site.site_id
    if not own_site and not site.servers:
        return Refusal.NO_SERVERS
    return TopologyServerReply(
        correlation_id=request.request_id,
        connected_networks=site.connected_networks,
        connected_network_mask=(1 << count) - 1 if transport == "ipx" else 0,
        responding_site_id=None if own_site else site.site_id,
        servers=() if own_site else site.servers,
    )


class Reply:
    """A reply but for its CorrelationID, which is all that differs between the clients of one site.

    Attributes
    ----------
    size : int
        Bytes of the reply.
    smallest_request : int
        Bytes that a request needs to have for this to be no more than three times as much.
    """

    __slots__ = ("_header", "_rest", "size", "smallest_request")

    def __init__(self, encoded: bytes) -> None:
        self._header, self._rest = encoded[: _CORRELATION_ID.start], encoded[_CORRELATION_ID.stop :]
        self.size = len(encoded)
        self.smallest_request = -(-self.size // AMPLIFICATION)

    def to(self, request_id: bytes | memoryview) -> bytes:
        """The reply to one request."""
        return self._header + request_id + self._rest


@dataclass(slots=True)
class Counts:
    """What became of the datagrams that a server was given."""

    own_site: int = 0
    """Clients of the server's site that were answered."""
    other_sites: int = 0
    """Clients of other sites that were answered."""
    refused: dict[Refusal, int] = field(default_factory=lambda: dict.fromkeys(Refusal, 0))
    """Datagrams without an answer, by why."""

    @property
    def received(self) -> int:
        """All of them."""
        return self.own_site + self.other_sites + sum(self.refused.values())


class DiscoveryServer:
    """A server on UDP over IPv4: decides on each datagram by itself, but for how many answers have gone before.

    Parameters
    ----------
    site : Site
        What it answers.
    policy : Policy, optional
        Whom.

    Raises
    ------
    EncodeError
        A directory server has a name that no reply can carry.

    Examples
    --------
    >>> from uuid import UUID
    >>> server = DiscoveryServer(
    ...     Site(enterprise_id=UUID(int=1), site_id=UUID(int=3), connected_networks=(UUID(int=4),))
    ... )
    >>> request = TopologyClientRequest(enterprise_id=UUID(int=1), request_id=UUID(int=2), site_id=UUID(int=3))
    >>> answer = server.receive(encode(request), ("10.20.1.25", 49712), now=0)
    >>> len(answer)
    48
    >>> server.receive(answer, ("10.20.1.25", 49712), now=0)
    <Refusal.REPLY: 'reply'>
    """

    def __init__(self, site: Site, policy: Policy = DEFAULT_POLICY) -> None:
        self.counts = Counts()
        self.policy = policy
        self._networks, self._total = _buckets(policy)
        self.configure(site, policy)

    def configure(self, site: Site, policy: Policy) -> None:
        """Answer something else, or others, from now on.

        Counts stay as they are, and so do the buckets unless their rates have changed.

        Raises
        ------
        EncodeError
            A directory server has a name that no reply can carry. Nothing has changed then.
        """
        self.reply_to_own_site, self.reply_to_other_sites = _prepared(site, own_site=True), _prepared(site)
        if _rates(policy) != _rates(self.policy):
            self._networks, self._total = _buckets(policy)
        self.site, self.policy = site, policy
        self._site_id = site.site_id.bytes_le
        self._enterprise_id = site.enterprise_id.bytes_le if policy.check_enterprise else None
        self._allowed = _by_prefix(policy.allowed)

    def receive(self, datagram: bytes | memoryview, source: tuple[str, int], now: int) -> bytes | Refusal:
        """Answer a datagram, or say why not: [MS-MQSD] 3.2.5.1.

        Parameters
        ----------
        datagram : bytes or memoryview of bytes
        source : (str, int)
            IPv4 address and port that it came from, and that the answer goes to.
        now : int
            Nanoseconds of a clock that does not go back.
        """
        size = len(datagram)
        # Over UDP its size and Type alone make a request: nothing else in it can be wrong, and more is ignored
        if size < REQUEST_SIZE or datagram[1] != _REQUEST:
            return self._refuse(Refusal.REPLY if size > 1 and datagram[1] == _REPLY else Refusal.MALFORMED)
        if self._enterprise_id is not None and datagram[_ENTERPRISE_ID] != self._enterprise_id:
            return self._refuse(Refusal.ENTERPRISE)
        in_own_site = datagram[_SITE_ID] == self._site_id
        reply = self.reply_to_own_site if in_own_site else self.reply_to_other_sites
        if isinstance(reply, Refusal):
            return self._refuse(reply)
        host, port = source
        address = int.from_bytes(inet_pton(AF_INET, host))
        if port == 0 or not _FIRST_SOURCE <= address <= _LAST_SOURCE:
            return self._refuse(Refusal.SOURCE)
        if size < reply.smallest_request and not self._is_allowed(address):
            return self._refuse(Refusal.AMPLIFICATION)
        if not self._networks.take(address, now):
            return self._refuse(Refusal.NETWORK_RATE)
        if not self._total.take(now):
            return self._refuse(Refusal.TOTAL_RATE)
        if in_own_site:
            self.counts.own_site += 1
        else:
            self.counts.other_sites += 1
        return reply.to(datagram[_REQUEST_ID])

    def _refuse(self, refusal: Refusal) -> Refusal:
        self.counts.refused[refusal] += 1
        return refusal

    def _is_allowed(self, address: int) -> bool:
        return any(address >> shift in networks for shift, networks in self._allowed)


def _rates(policy: Policy) -> tuple[Rate, int, Rate]:
    return policy.network_rate, policy.network_prefix, policy.total_rate


def _buckets(policy: Policy) -> tuple[NetworkBuckets, TokenBucket]:
    networks = NetworkBuckets(policy.network_rate, prefix=policy.network_prefix, capacity=_NETWORKS_REMEMBERED)
    return networks, TokenBucket(policy.total_rate)


def _prepared(site: Site, *, own_site: bool = False) -> Reply | Refusal:
    """What every client of the own site, or of any other, is answered."""
    elsewhere = uuid.UUID(int=site.site_id.int ^ 1)
    request = TopologyClientRequest(
        enterprise_id=site.enterprise_id,
        request_id=uuid.UUID(int=0),
        site_id=site.site_id if own_site else elsewhere,
    )
    reply = reply_to(request, site)
    if isinstance(reply, Refusal):
        return reply
    data = encode(reply)
    return Reply(data) if len(data) <= LARGEST_REPLY else Refusal.TOO_LARGE


def _by_prefix(networks: Iterable[IPv4Network]) -> list[tuple[int, frozenset[int]]]:
    """Networks by how far an address is shifted to be one of them, so that a long list costs no more than a short."""
    by_shift: dict[int, set[int]] = {}
    for network in networks:
        shift = network.max_prefixlen - network.prefixlen
        by_shift.setdefault(shift, set()).add(int(network.network_address) >> shift)
    return [(shift, frozenset(found)) for shift, found in sorted(by_shift.items())]
