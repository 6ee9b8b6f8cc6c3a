"""A slow MS-MQSD client, written from [MS-MQSD] 3.1 as prose: the model that the client is compared with.

Variables have the names of the text, steps its order. A reply is what a test made it from, not bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

TIMEOUT = 15.0


@dataclass(frozen=True)
class Reply:
    """A TopologyServerReply: names of servers (none: DirectoryServiceServerSize is 0), connected networks."""

    names: tuple[str, ...]
    networks: tuple[UUID, ...]

    @property
    def size(self) -> int:
        """DirectoryServiceServerSize, as far as it matters: zero or not."""
        return len(self.names)


@dataclass
class Model:
    """The variables of 3.1.1.2 and the events of 3.1.4 to 3.1.7; each event returns what is to be done."""

    literal: bool
    RequestID: UUID | None = None
    LastSuccessfulNetworkAddress: Any = None
    ValidLastSuccessfulNetworkAddress: bool = False
    LastTopologyServerReply: Reply | None = None
    TopologyServerReplyReceived: bool = False
    NetworkAddressList: list[Any] = field(default_factory=list)
    CurrentNetworkIndex: int = 0
    DirectoryServerList: list[str] = field(default_factory=list)
    ConnectedNetworkIdentifierList: list[UUID] = field(default_factory=list)
    pending: bool = False
    timer: float | None = None
    # Decisions: what an earlier network of the run said is not lost
    kept: Reply | None = None
    kept_remote: Reply | None = None
    done: list[tuple[Any, ...]] = field(default_factory=list)

    def _send(self, now: float) -> None:
        self.CurrentNetworkIndex += 1
        self.LastTopologyServerReply = None
        self._start_timer(now)
        self.done.append(("send", self.NetworkAddressList[self.CurrentNetworkIndex - 1], self.RequestID))

    def _start_timer(self, now: float) -> None:
        self.timer = now + TIMEOUT
        self.done.append(("wait", self.timer))

    def _complete(self, success: bool) -> None:
        self.pending = False
        self.timer = None
        lists = tuple(self.DirectoryServerList), tuple(self.ConnectedNetworkIdentifierList)
        self.done.append(("complete", success, *lists))

    def _mark(self, address: Any) -> None:
        self.LastSuccessfulNetworkAddress = address
        self.ValidLastSuccessfulNetworkAddress = True

    def _populate(self, received: Reply | None) -> None:
        """Both events of 3.1.7. To the letter they look at LastTopologyServerReply only."""
        source = self.LastTopologyServerReply
        servers = source
        if not self.literal:
            if source is None:
                source = received if received is not None else self.kept
            servers = source
            if servers is None or servers.size == 0:
                servers = self.kept_remote
        if servers is not None and servers.size != 0:
            self.DirectoryServerList = list(servers.names)
        self.ConnectedNetworkIdentifierList = [] if source is None else list(source.networks)

    def get_directory_server_list(self, addresses: list[Any], request_id: UUID, now: float) -> None:
        if self.pending:
            return
        self.NetworkAddressList = list(addresses)
        if self.ValidLastSuccessfulNetworkAddress and not any(address.remote_access for address in addresses):
            self._complete(True)
            return
        if not addresses:
            self.ValidLastSuccessfulNetworkAddress = False
            self._complete(False)
            return
        self.pending = True
        self.kept = self.kept_remote = None
        self.RequestID = request_id
        self.CurrentNetworkIndex = 0
        self.TopologyServerReplyReceived = False
        self._send(now)

    def receive(self, reply: Reply | None, correlation_id: UUID | None, address: Any, now: float) -> None:
        """``reply`` is None for one that is improperly formatted."""
        if not self.pending:
            self.done.append(("discard", "late"))
        elif address != self.NetworkAddressList[self.CurrentNetworkIndex - 1]:
            self.done.append(("discard", "other_network"))
        elif reply is None:
            self.done.append(("discard", "malformed"))
        elif correlation_id != self.RequestID:
            self.done.append(("discard", "other_request"))
        else:
            self._received(reply, address, now)

    def _received(self, reply: Reply, address: Any, now: float) -> None:
        last = self.CurrentNetworkIndex == len(self.NetworkAddressList)
        if not last and reply.size == 0:
            self.LastTopologyServerReply = self.kept = reply
            self.TopologyServerReplyReceived = True
            self._mark(address)
            self.timer = None
            self._send(now)
        elif not last and self.LastTopologyServerReply is not None and reply.size != 0:
            self._send(now)
        elif last and reply.size == 0:
            self.timer = None
            self._mark(address)
            self._populate(reply)
            self._complete(True)
        elif self.LastTopologyServerReply is None and reply.size != 0:
            self.LastTopologyServerReply = self.kept = self.kept_remote = reply
            self.TopologyServerReplyReceived = True
            self._mark(address)
            self._start_timer(now)
        elif last and self.LastTopologyServerReply is not None and reply.size != 0:
            self.timer = None
            self._populate(reply)
            self._mark(address)
            self._complete(True)
        else:
            raise AssertionError("the conditions of 3.1.5.2 leave nothing out")

    def tick(self, now: float) -> None:
        if self.timer is None or now < self.timer:
            return
        if self.CurrentNetworkIndex != len(self.NetworkAddressList):
            self._send(now)
        elif self.LastTopologyServerReply is None and not self.TopologyServerReplyReceived:
            self.ValidLastSuccessfulNetworkAddress = False
            self._complete(False)
        else:
            self._populate(None)
            self._complete(True)

    def abandon(self) -> None:
        if self.pending:
            self.pending = False
            self.timer = None
            self.ValidLastSuccessfulNetworkAddress = False
