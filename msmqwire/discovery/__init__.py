"""MS-MQSD as two roles without I/O: a client that looks for directory servers, a server that answers ([MS-MQSD] 3)."""

from __future__ import annotations

from msmqwire.discovery.client import (
    RESPONSE_TIMEOUT,
    Answer,
    Deliver,
    Discard,
    DiscardReason,
    Discovery,
    DiscoveryClient,
    NetworkAddress,
    Send,
    WaitUntil,
)

__all__ = [
    "RESPONSE_TIMEOUT",
    "Answer",
    "Deliver",
    "Discard",
    "DiscardReason",
    "Discovery",
    "DiscoveryClient",
    "NetworkAddress",
    "Send",
    "WaitUntil",
]
