"""The properties of a message that a queue manager knows besides its body."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.formatname import PrivateName
from msmqwire.mqqb.message.schema import SENDER_ID_TYPES

if TYPE_CHECKING:
    from msmqwire.mqqb import UserMessage

__all__ = [
    "NOTIFY_QUEUE",
    "AuthenticationLevel",
    "Envelope",
    "SenderIdentifierType",
    "Verifier",
    "claimed_senders",
    "trusted",
    "unverified",
]

#: The number of the notify queue among the private queues of every queue manager ([MS-MQCN] 1.9).
NOTIFY_QUEUE = 3

_QUEUE_MANAGER, _GUID_SIZE = SENDER_ID_TYPES.index("queue_manager"), 16


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

    Raises
    ------
    ValueError
        There is no such type.
    """

    sender_identifier_type: SenderIdentifierType = SenderIdentifierType.NONE
    sender_identifier: UUID | bytes | None = None
    packet: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sender_identifier_type", SenderIdentifierType(self.sender_identifier_type))

    @classmethod
    def of(cls, message: UserMessage) -> Envelope:
        """The envelope of a received message: the sender that its SecurityHeader claims; the packet is the message.

        >>> from msmqwire.mqqb import SecurityHeader, UserMessage
        >>> header = SecurityHeader(security_flags=2, security_id=UUID(int=7).bytes_le)
        >>> Envelope.of(UserMessage(security=header)).sender_identifier
        UUID('00000000-0000-0000-0000-000000000007')
        """
        security = message.security
        claim = None if security is None else security.security_id
        kind = None if security is None else security.sender_id_type
        if claim is None or kind is None:
            return cls(packet=message)
        if names_queue_manager(SENDER_ID_TYPES.index(kind), len(claim)):
            sender, type_ = UUID(bytes_le=claim), SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER
            return cls(sender_identifier_type=type_, sender_identifier=sender, packet=message)
        if kind == "sid":
            return cls(sender_identifier_type=SenderIdentifierType.SID, sender_identifier=claim, packet=message)
        return cls(packet=message)


def names_queue_manager(sender_id_type: Any, size: Any) -> Any:
    """Return True if a security identifier of ``size`` bytes names a queue manager.

    Of a number, the place in ``SENDER_ID_TYPES``, or for each of an array of them.
    """
    return (sender_id_type == _QUEUE_MANAGER) & (size == _GUID_SIZE)


#: Verifies the signature of a message and returns how it is authenticated ([MS-MQQB] 3.1.5.8.3).
Verifier = Callable[[Envelope], AuthenticationLevel]


def claimed_senders(envelope: Envelope) -> frozenset[UUID]:
    """The queue managers that a message names as its sender.

    That is SenderIdentifier. [MS-MQCN] 3.3.5.3 has a sender name the receiver there; then the source of the packet is
    one as well.
    """
    claim = envelope.sender_identifier
    if envelope.sender_identifier_type is not SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER or not isinstance(
        claim, UUID
    ):
        return frozenset()
    source = getattr(envelope.packet, "source_queue_manager", None)
    destination = getattr(envelope.packet, "destination_queue", None)
    names_receiver = isinstance(destination, PrivateName) and destination.guid == claim
    return frozenset({claim, source} if names_receiver and isinstance(source, UUID) else {claim})


def unverified(_: Envelope) -> AuthenticationLevel:
    """The verifier that authenticates no message."""
    return AuthenticationLevel.NONE


def trusted(senders: Collection[UUID], level: AuthenticationLevel = AuthenticationLevel.SIG20) -> Verifier:
    """A verifier that believes the claim to come from one of these queue managers if the message has a signature.

    A message comes from the queue manager that it names as its sender, or, where that is the receiver as [MS-MQCN]
    3.3.5.3 has it, from the source of its packet.

    The signature itself is not verified, so anyone who can send packets can forge such a message. Use it only where the
    network or the program that passes the messages admits no other senders.
    """
    known = frozenset(senders)

    def verifier(envelope: Envelope) -> AuthenticationLevel:
        security = getattr(envelope.packet, "security", None)
        signed = security is not None and security.signature is not None
        return level if signed and known & claimed_senders(envelope) else AuthenticationLevel.NONE

    return verifier
