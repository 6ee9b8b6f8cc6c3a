"""The two roles of MS-MQSD without I/O: a client that finds directory servers, a server that answers ([MS-MQSD] 3)."""

from __future__ import annotations

from msmqwire.discovery.client import (
    RESPONSE_TIMEOUT,
    Action,
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
from msmqwire.discovery.rates import Rate
from msmqwire.discovery.server import DiscoveryServer, Policy, Refusal, Site, reply_to

__all__ = [
    "RESPONSE_TIMEOUT",
    "Action",
    "Answer",
    "Deliver",
    "Discard",
    "DiscardReason",
    "Discovery",
    "DiscoveryClient",
    "DiscoveryServer",
    "NetworkAddress",
    "Policy",
    "Rate",
    "Refusal",
    "Send",
    "Site",
    "WaitUntil",
    "reply_to",
]


def __dir__() -> list[str]:
    return __all__
