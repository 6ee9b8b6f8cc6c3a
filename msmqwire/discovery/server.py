"""The MS-MQSD server without I/O: answers a datagram or refuses it with a named reason ([MS-MQSD] 3.2).

``reply_to`` is the protocol: the reply to one request. ``DiscoveryServer`` is a UDP server that is of no use to those
who flood others: it answers requests only, at a limited rate, and with a limited number of bytes to each source address
and each source network in ten seconds.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv4Network
from socket import AF_INET, inet_pton
from typing import Any, Literal

from msmqwire.discovery.rates import ByteWindow, Rate, TokenBuckets
from msmqwire.mqsd import (
    HEADER_DTYPE,
    REPLY_DTYPE,
    REQUEST_DTYPE,
    TOPOLOGY,
    DirectoryServiceServer,
    TopologyClientRequest,
    TopologyServerReply,
    encode,
)
from msmqwire.mqsd.schema import MAX_NETWORKS

#: Bytes of a request in its IP form: [MS-MQSD] 2.2.2.
REQUEST_SIZE = REQUEST_DTYPE.itemsize
#: Bytes of the largest answer: no UDP datagram over IPv4 has more.
LARGEST_REPLY = 65_507

_NETWORKS_REMEMBERED = 16_384
# The burst allows for every host of a /24 network that starts at once, as after a power failure
_NETWORK_RATE, _TOTAL_RATE = Rate(100, burst=256), Rate(1000, burst=2000)
# Room for the largest answer, and for 256 hosts with answers of 2,048 bytes; to a flood, 52 and 420 kbit/s
_ADDRESS_BYTES, _NETWORK_BYTES = 1 << 16, 1 << 19
# One in so many tokens of the total rate is for allowed sources only, so that forged sources cannot take them all
_KEPT = 4
_TYPES = {name: number for number, name in TOPOLOGY.headers[0].fields[0].names.items()}
_REQUEST, _REPLY = _TYPES[TopologyClientRequest.__name__], _TYPES[TopologyServerReply.__name__]


def _field(layout: Any, name: str) -> slice:
    """The bytes of a packet that have a field."""
    dtype, offset = layout.fields[name][:2]
    return slice(offset, offset + dtype.itemsize)


_TYPE = _field(HEADER_DTYPE, "type").start
_ENTERPRISE_ID, _REQUEST_ID = _field(REQUEST_DTYPE, "enterprise_id"), _field(REQUEST_DTYPE, "request_id")
_SITE_ID, _CORRELATION_ID = _field(REQUEST_DTYPE, "site_id"), _field(REPLY_DTYPE, "correlation_id")
# RFC 1122 3.2.1.3: {0, *} and addresses of classes D and E are not valid sources
_FIRST_SOURCE, _LAST_SOURCE = 1 << 24, (224 << 24) - 1


class Refusal(StrEnum):
    """Why a datagram has no answer."""

    MALFORMED = "malformed"
    """It is not a discovery packet, or a request shorter than 52 bytes."""
    REPLY = "reply"
    """It is a reply: two servers that answered replies would do so forever."""
    ENTERPRISE = "enterprise"
    """It is from another enterprise, and the policy checks the enterprise."""
    NO_NETWORKS = "no_networks"
    """The server has no connected network, or more than 32: no valid reply can list them."""
    NO_SERVERS = "no_servers"
    """It is from another site, and there is no directory server to list: an empty list would mean the client's site."""
    TOO_LARGE = "too_large"
    """The answer would have more than 65,507 bytes, which no UDP datagram has."""
    SOURCE = "source"
    """Its source is not the address of a host, or port 0: it cannot be answered."""
    ADDRESS_BYTES = "address_bytes"
    """The limit of bytes to the source address in ten seconds is reached."""
    NETWORK_BYTES = "network_bytes"
    """The limit of bytes to the source network in ten seconds is reached."""
    NETWORK_RATE = "network_rate"
    """The rate limit of the source network is reached."""
    TOTAL_RATE = "total_rate"
    """The rate limit of all networks together is reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The site that a server answers for: [MS-MQSD] 3.2.1.1.

    Parameters
    ----------
    enterprise_id : uuid.UUID
        Enterprise.Identifier.
    site_id : uuid.UUID
        Site.Identifier.
    connected_networks : tuple of uuid.UUID
        ConnectedNetworkIdentifierList; without 1 to 32 of them no request is answered.
    servers : tuple of DirectoryServiceServer
        DirectoryServerList with the transports of each server; if empty, clients of other sites are not answered.
    """

    enterprise_id: uuid.UUID
    site_id: uuid.UUID
    connected_networks: tuple[uuid.UUID, ...]
    servers: tuple[DirectoryServiceServer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Which sources a server answers, with how many bytes and how often.

    Parameters
    ----------
    allowed : tuple of IPv4Network
        Sources for which a quarter of the burst of ``total_rate`` is kept.
    check_enterprise : bool
        Answer only clients of the server's own enterprise, which [MS-MQSD] 3.2.5.1 does not require.
    network_rate, total_rate : Rate
        Rate limits for each source network and for all of them.
    network_prefix : int
        Number of address bits that identify a network, 1 to 32.
    address_bytes, network_bytes : int
        The most bytes that are sent to one source address, and to one source network, in any ten seconds.

    Raises
    ------
    ValueError
        ``network_prefix`` is not 1 to 32, a number of bytes is below 1, or ``allowed`` has something else
        than networks of IPv4.
    """

    allowed: tuple[IPv4Network, ...] = ()
    check_enterprise: bool = False
    network_rate: Rate = _NETWORK_RATE
    total_rate: Rate = _TOTAL_RATE
    network_prefix: int = 24
    address_bytes: int = _ADDRESS_BYTES
    network_bytes: int = _NETWORK_BYTES

    def __post_init__(self) -> None:
        if not 1 <= self.network_prefix <= 32:
            raise ValueError(f"network_prefix is {self.network_prefix}: not from 1 to 32")
        for network in self.allowed:
            if not isinstance(network, IPv4Network):
                raise ValueError(f"allowed has {network!r}: not an IPv4Network")
        for name in ("address_bytes", "network_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}: below 1")


DEFAULT_POLICY = Policy()


def reply_to(
    request: TopologyClientRequest, site: Site, *, transport: Literal["udp", "ipx"] = "udp"
) -> TopologyServerReply | Refusal:
    """Return the reply to a request, or the reason to send no reply: [MS-MQSD] 3.2.5.1.

    Raises
    ------
    EncodeError
        The name of a directory server cannot be encoded.
    ValueError
        The transport is another one.

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
    if transport not in ("udp", "ipx"):
        raise ValueError(f"transport={transport!r} is not one of 'udp', 'ipx'")
    count = len(site.connected_networks)
    if not 1 <= count <= MAX_NETWORKS:
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
    """An encoded reply without its CorrelationID, the only field that differs between clients of one site.

    Attributes
    ----------
    size : int
        Bytes of the reply.
    """

    __slots__ = ("_header", "_rest", "size")

    def __init__(self, encoded: bytes) -> None:
        self._header, self._rest = encoded[: _CORRELATION_ID.start], encoded[_CORRELATION_ID.stop :]
        self.size = len(encoded)

    def to(self, request_id: bytes | memoryview) -> bytes:
        """The reply to one request."""
        return self._header + request_id + self._rest


@dataclass(slots=True)
class Counts:
    """Counts of the datagrams that a server received."""

    own_site: int = 0
    """Answers to clients of the server's site."""
    other_sites: int = 0
    """Answers to clients of other sites."""
    refused: dict[Refusal, int] = field(default_factory=lambda: dict.fromkeys(Refusal, 0))
    """Refused datagrams by reason."""

    @property
    def received(self) -> int:
        """All datagrams."""
        return self.own_site + self.other_sites + sum(self.refused.values())


class DiscoveryServer:
    """A server on UDP over IPv4; apart from the rate limits, each datagram is judged on its own.

    Parameters
    ----------
    site : Site
        The site to answer for.
    policy : Policy, optional
        Sources, sizes and rates of answers.

    Attributes
    ----------
    unanswerable : frozenset of str
        Source addresses to refuse, such as the broadcast addresses of the local networks.

    Raises
    ------
    EncodeError
        The name of a directory server cannot be encoded.

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
        self.unanswerable: frozenset[str] = frozenset()
        self.policy = policy
        self._networks, self._total = _buckets(policy)
        self._bytes = ByteWindow(prefix=policy.network_prefix)
        self.configure(site, policy)

    def configure(self, site: Site, policy: Policy) -> None:
        """Replace site and policy.

        Counts are kept, and so are the token buckets unless their rates change, and the bytes sent unless the size of a
        network changes.

        Raises
        ------
        EncodeError
            The name of a directory server cannot be encoded. The old configuration stays.
        """
        self.reply_to_own_site, self.reply_to_other_sites = _prepared(site, own_site=True), _prepared(site)
        if _rates(policy) != _rates(self.policy):
            self._networks, self._total = _buckets(policy)
        if policy.network_prefix != self.policy.network_prefix:
            self._bytes = ByteWindow(prefix=policy.network_prefix)
        self._total.keep(_kept(policy))
        self.site, self.policy = site, policy
        self._site_id = site.site_id.bytes_le
        self._enterprise_id = site.enterprise_id.bytes_le if policy.check_enterprise else None
        self._allowed = _by_prefix(policy.allowed)

    def receive(self, datagram: bytes | memoryview, source: tuple[str, int], now: int) -> bytes | Refusal:
        """The answer to a datagram, or the reason to refuse it: [MS-MQSD] 3.2.5.1.

        Parameters
        ----------
        datagram : bytes or memoryview of bytes
        source : (str, int)
            IPv4 address and port of the sender, which the answer goes to.
        now : int
            Nanoseconds of a monotonic clock.
        """
        size = len(datagram)
        # Over UDP only size and Type make a request: no other field can be wrong, and more bytes are ignored
        if size < REQUEST_SIZE or datagram[_TYPE] != _REQUEST:
            return self._refuse(Refusal.REPLY if size > 1 and datagram[_TYPE] == _REPLY else Refusal.MALFORMED)
        if self._enterprise_id is not None and datagram[_ENTERPRISE_ID] != self._enterprise_id:
            return self._refuse(Refusal.ENTERPRISE)
        in_own_site = datagram[_SITE_ID] == self._site_id
        reply = self.reply_to_own_site if in_own_site else self.reply_to_other_sites
        if isinstance(reply, Refusal):
            return self._refuse(reply)
        host, port = source
        address = int.from_bytes(inet_pton(AF_INET, host))
        if port == 0 or not _FIRST_SOURCE <= address <= _LAST_SOURCE or host in self.unanswerable:
            return self._refuse(Refusal.SOURCE)
        allowed = any(address >> shift in networks for shift, networks in self._allowed)
        if self._bytes.to_address(address, now) + reply.size > self.policy.address_bytes:
            return self._refuse(Refusal.ADDRESS_BYTES)
        if self._bytes.to_network(address, now) + reply.size > self.policy.network_bytes:
            return self._refuse(Refusal.NETWORK_BYTES)
        if not self._networks.take(address, now):
            return self._refuse(Refusal.NETWORK_RATE)
        if not self._total.take(address, now, privileged=allowed):
            return self._refuse(Refusal.TOTAL_RATE)
        self._bytes.add(address, reply.size, now)
        if in_own_site:
            self.counts.own_site += 1
        else:
            self.counts.other_sites += 1
        return reply.to(datagram[_REQUEST_ID])

    def _refuse(self, refusal: Refusal) -> Refusal:
        self.counts.refused[refusal] += 1
        return refusal


def _rates(policy: Policy) -> tuple[Rate, int, Rate]:
    return policy.network_rate, policy.network_prefix, policy.total_rate


def _buckets(policy: Policy) -> tuple[TokenBuckets, TokenBuckets]:
    """The buckets of networks, and the one of all networks together."""
    networks = TokenBuckets(policy.network_rate, prefix=policy.network_prefix, capacity=_NETWORKS_REMEMBERED)
    return networks, TokenBuckets(policy.total_rate, kept=_kept(policy))


def _kept(policy: Policy) -> int:
    """The tokens of the total burst that are for allowed networks only."""
    return policy.total_rate.burst // _KEPT if policy.allowed else 0


def _prepared(site: Site, *, own_site: bool = False) -> Reply | Refusal:
    """The answer to every client of the own site, or of any other site."""
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
    """Network numbers by the shift that turns an address into one: long lists are searched as fast as short ones."""
    by_shift: dict[int, set[int]] = {}
    for network in networks:
        shift = network.max_prefixlen - network.prefixlen
        by_shift.setdefault(shift, set()).add(int(network.network_address) >> shift)
    return [(shift, frozenset(found)) for shift, found in sorted(by_shift.items())]
