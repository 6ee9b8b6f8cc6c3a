"""Pings: whether a queue manager would accept a session, [MS-MQQB] 2.1.2 and 3.1.7.6 to 3.1.7.8."""

from __future__ import annotations

from uuid import UUID

from msmqwire import mqqb
from msmqwire.errors import DecodeError

PING_RESPONSE_TIMEOUT = 1.0
"""Seconds of the Ping Response Timer: [MS-MQQB] 3.1.2.9."""

_LARGEST_COOKIE = 0xFFFFFFFF


class PingClient:
    """Asks a queue manager whether it would accept a session.

    Attributes
    ----------
    cookie : int
        PingCookie: that of the latest request.

    Examples
    --------
    >>> from uuid import UUID
    >>> client = PingClient(UUID(int=1))
    >>> client.receive(answer_ping(client.request(), UUID(int=2), refuse=False))
    True
    """

    def __init__(self, identifier: UUID) -> None:
        self._identifier = identifier
        self.cookie = 0

    def request(self) -> bytes:
        """Return the next Ping Request: [MS-MQQB] 3.1.7.6."""
        self.cookie = self.cookie + 1 & _LARGEST_COOKIE
        return mqqb.encode(mqqb.Ping(cookie=self.cookie, queue_manager=self._identifier))

    def receive(self, data: bytes) -> bool | None:
        """Return True if a session would be accepted; None for a datagram to ignore: [MS-MQQB] 3.1.7.8."""
        ping = _decode(data)
        return not ping.refused if ping is not None and ping.cookie == self.cookie else None


def answer_ping(data: bytes, identifier: UUID, *, refuse: bool) -> bytes:
    """Return the Ping Response to a datagram, empty for one to ignore: [MS-MQQB] 3.1.7.7."""
    ping = _decode(data)
    if ping is None:
        return b""
    return mqqb.encode(
        mqqb.Ping(
            cookie=ping.cookie,
            queue_manager=identifier,
            initiator_is_client=ping.initiator_is_client,
            refused=refuse,
        )
    )


def _decode(data: bytes) -> mqqb.Ping | None:
    try:
        packet = mqqb.decode(data, transport="udp")
    except DecodeError:
        return None
    return packet if isinstance(packet, mqqb.Ping) else None
