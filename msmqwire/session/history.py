"""The messages that were received, so that duplicates are recognised: [MS-MQQB] 3.1.1.3, MessageIDHistoryTable."""

from __future__ import annotations

from collections import OrderedDict

from msmqwire.session.framing import MESSAGE_ID, SOURCE_QUEUE_MANAGER

MOST_REMEMBERED = 10_000
"""How many messages Windows remembers. If a peer sends more of them again, the first are delivered twice."""


class MessageIDHistory:
    """The messages that a queue manager received on all its sessions, in memory.

    Messages are compared by SourceQueueManager and MessageID (S3).

    Parameters
    ----------
    size : int
        The most messages remembered; above it the one that was seen longest ago is forgotten. 10,000 on Windows.
    cleanup_timeout : float
        Seconds of the MessageIDHistory Cleanup Timer: messages not seen for that long are forgotten when it expires.
    """

    def __init__(self, *, size: int = MOST_REMEMBERED, cleanup_timeout: float = 1800.0) -> None:
        if size < 1:
            raise ValueError(f"size is {size}: not above 0")
        self._size = size
        self._cleanup_timeout = cleanup_timeout
        self._cleanup_at: float | None = None
        self._seen: OrderedDict[bytes, tuple[float, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def first_address(self, packet: bytes, now: float, address: str = "") -> str | None:
        """Remember a message; return where it was accepted from before, None if it is not known.

        Call it for messages that are accepted: a message that is not must not hide another with its identifier.
        """
        if self._cleanup_at is not None and now >= self._cleanup_at:
            self._clean_up(now)
        key = packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID]
        _, first = self._seen.get(key, (now, None))
        self._seen[key] = now, address if first is None else first
        self._seen.move_to_end(key)
        if len(self._seen) > self._size:
            self._seen.popitem(last=False)
        if self._cleanup_at is None:
            self._cleanup_at = now + self._cleanup_timeout
        return first

    def remember(self, identifier: bytes, address: str) -> None:
        """Know a message from an earlier process, by the bytes of its SourceQueueManager and MessageID."""
        self._seen[identifier] = float("-inf"), address

    def forget(self, packet: bytes) -> None:
        """Forget a message that could not be stored: it is accepted when it comes again."""
        self._seen.pop(packet[SOURCE_QUEUE_MANAGER] + packet[MESSAGE_ID], None)

    def _clean_up(self, now: float) -> None:
        """Forget old messages, [MS-MQQB] 3.1.6.7, when the next one comes: the size limits what is kept until then."""
        while self._seen and next(iter(self._seen.values()))[0] < now - self._cleanup_timeout:
            self._seen.popitem(last=False)
        self._cleanup_at = now + self._cleanup_timeout if self._seen else None
