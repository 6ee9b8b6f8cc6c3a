"""Settings of a session: its window, its timers, and limits for what a peer controls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from msmqwire.mqqb import framing, numbers

LARGEST_PACKET = framing.LARGEST_PACKET
"""Bytes of the largest packet that a session takes or gives (S22)."""

_LARGEST_COUNT = 0xFFFF


class Range(NamedTuple):
    """The valid values of a timeout in milliseconds."""

    lowest: int
    highest: int

    def clamp(self, value: int) -> int:
        """Return ``value``, or the bound that it exceeds."""
        return min(max(value, self.lowest), self.highest)


RECOVERABLE_ACK_TIMEOUTS = Range(numbers.LEAST_RECOVERABLE_ACK_TIMEOUT, numbers.LARGEST_ACK_TIMEOUT)
"""[MS-MQQB] 2.2.2.1, 3.1.5.3.2."""

ACK_TIMEOUTS = Range(numbers.LEAST_ACK_TIMEOUT, numbers.LARGEST_ACK_TIMEOUT)
"""[MS-MQQB] 2.2.2.1."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Window, timers and limits of a session.

    The window and the durations of timers have the defaults of Windows ([MS-MQQB] notes <36>, <43> to <45> and <51>).

    Attributes
    ----------
    window_size : int
        WindowSize, from 1 to 65535: the most messages that either side leaves unacknowledged ([MS-MQQB] 3.1.3.2).
        A session uses at most 10,000: Windows remembers no more messages to recognise those that are sent again.
    ack_wait_timeout : int
        AckWaitTimeout in milliseconds, from 20,000 to 120,000. An initiator proposes it, an acceptor adopts it.
    ack_wait_multiple : int
        The Session Ack Wait Timer lasts this many AckWaitTimeouts, 1 or 2. It is 1 by default; Windows has 2 for direct
        format names ([MS-MQQB] 3.1.2.4, note <46>; S20).
    initialization_timeout : float
        Seconds of the Session Initialization Timer (S13).
    cleanup_timeout : float
        Seconds of the Session Cleanup Timer: a session is closed when it expires and no message has come or gone since
        it expired before, thus after one to two periods without a message.
    retry_timeout : float
        The longest Session Retry Connect Timer in seconds. It begins with a hundredth of it and doubles until a message
        is acknowledged (S17).
    max_unacknowledged_bytes : int
        Bytes of messages that are sent before an acknowledgment comes; half as many received are acknowledged at once.
    max_packet_size : int
        Bytes; a larger packet closes the session, and is refused by ``send``.
    send_insecure_nacks : bool
        SendInsecureNacks ([MS-MQQB] 3.1.1.3, 5.1): whether a message to an unknown queue is answered with
        NACK_BAD_DST_Q, which shows strangers the queues that there are.
    """

    window_size: int = 64
    ack_wait_timeout: int = 20_000
    ack_wait_multiple: int = 1
    initialization_timeout: float = 60.0
    cleanup_timeout: float = 300.0
    retry_timeout: float = 5.0
    max_unacknowledged_bytes: int = 32 << 20
    max_packet_size: int = LARGEST_PACKET
    send_insecure_nacks: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.window_size <= _LARGEST_COUNT:
            raise ValueError(f"window_size is {self.window_size}: not from 1 to 65535")
        if self.ack_wait_timeout != ACK_TIMEOUTS.clamp(self.ack_wait_timeout):
            raise ValueError(f"ack_wait_timeout is {self.ack_wait_timeout}: not from 20000 to 120000 milliseconds")
        if self.ack_wait_multiple not in (1, 2):
            raise ValueError(f"ack_wait_multiple is {self.ack_wait_multiple}: not 1 or 2")
        for name in ("initialization_timeout", "cleanup_timeout", "retry_timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}: not above 0")
        if self.max_unacknowledged_bytes < 1:
            raise ValueError(f"max_unacknowledged_bytes is {self.max_unacknowledged_bytes}: not above 0")
        if not 0 < self.max_packet_size <= LARGEST_PACKET:
            raise ValueError(f"max_packet_size is {self.max_packet_size}: not from 1 to {LARGEST_PACKET}")
