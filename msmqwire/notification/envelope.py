"""What a queue manager knows of a message beside its body."""

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
    """AuthenticationLevel of a message ([MS-MQDMPR] 3.1.1.12): what its receiver found, whatever its bits say."""

    NONE = "none"
    SIG10 = "sig10"
    SIG20 = "sig20"
    SIG30 = "sig30"
    XML_SIG = "xml_sig"


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """Who claims to have sent a message.

    There is no authentication level in it: that is for a :data:`Verifier` to say.

    Attributes
    ----------
    sender_identifier : UUID, bytes or None
        A UUID if the type is QueueManagerIdentifier, a security identifier if it is Sid.
    packet : object
        What the verifier needs, such as the packet that the message came in.
    """

    sender_identifier_type: SenderIdentifierType = SenderIdentifierType.NONE
    sender_identifier: UUID | bytes | None = None
    packet: Any = None


#: Verifies the signature of a message and says how it is authenticated ([MS-MQQB] 3.1.5.8.3).
Verifier = Callable[[Envelope], AuthenticationLevel]


def unverified(_: Envelope) -> AuthenticationLevel:
    """The verifier that vouches for nobody."""
    return AuthenticationLevel.NONE
