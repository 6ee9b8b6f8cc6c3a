"""The properties of a message that a queue manager knows besides its body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

__all__ = ["NOTIFY_QUEUE", "AuthenticationLevel", "Envelope", "SenderIdentifierType", "Verifier", "unverified"]

#: The number of the notify queue among the private queues of every queue manager ([MS-MQCN] 1.9).
NOTIFY_QUEUE = 3


class SenderIdentifierType(StrEnum):
    """SenderIdentifierType of a message ([MS-MQDMPR] 3.1.1.12)."""

    NONE = "none"
    SID = "sid"
    QUEUE_MANAGER_IDENTIFIER = "queue_manager_identifier"


class AuthenticationLevel(StrEnum):
    """AuthenticationLevel of a message ([MS-MQDMPR] 3.1.1.12), as its receiver determined it."""

    NONE = "none"
    SIG10 = "sig10"
    SIG20 = "sig20"
    SIG30 = "sig30"
    XML_SIG = "xml_sig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """The sender that a message claims to have. Whether that is true, a :data:`Verifier` determines.

    Attributes
    ----------
    sender_identifier : UUID, bytes or None
        A UUID if the type is QueueManagerIdentifier, a security identifier if it is Sid.
    packet : object
        Input of the verifier, such as the packet of the message.
    """

    sender_identifier_type: SenderIdentifierType = SenderIdentifierType.NONE
    sender_identifier: UUID | bytes | None = None
    packet: Any = None


#: Verifies the signature of a message and returns how it is authenticated ([MS-MQQB] 3.1.5.8.3).
Verifier = Callable[[Envelope], AuthenticationLevel]


def unverified(_: Envelope) -> AuthenticationLevel:
    """The verifier that authenticates no message."""
    return AuthenticationLevel.NONE
