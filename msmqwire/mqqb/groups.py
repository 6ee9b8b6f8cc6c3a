"""The optional headers of a message as values, their fields named as the columns of the messages table are.

At the end stand the keywords of all classes of packets, with their defaults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal
from uuid import UUID

from msmqwire.columns.fields import WireField
from msmqwire.columns.schema import NO_KEYWORD
from msmqwire.errors import EncodeError
from msmqwire.formatname import FormatName
from msmqwire.mqqb.message.classes import MESSAGE_CLASSES
from msmqwire.mqqb.message.readable import BODY_TYPES
from msmqwire.mqqb.message.schema import SENDER_ID_TYPES
from msmqwire.mqqb.schema import MESSAGES, SESSIONS
from msmqwire.mqqb.session.schema import SESSION_KINDS
from msmqwire.wire._sid import sid_text

TransportName = Literal["unknown", "udp", "tcp"]

_SENDER_BITS = 0xF
_BODY_ENCRYPTED = 1 << 5
#: AI of SecurityHeader.Flags.
SECURITY_DATA_PRESENT = 1 << 7


@dataclass(frozen=True, kw_only=True)
class TransactionHeader:
    """The place of a transactional message in its sequence: [MS-MQMQ] 2.2.20.5.

    Attributes
    ----------
    tx_sequence_id : int
        TxSequenceID: the ordinal in the low 32 bits, the time stamp in the high.
    tx_sequence_number : int
        From 1.
    previous_tx_sequence_number : int
        0 for none.
    first_message, last_message, final_ack_required : bool
        FM, LM and FA.
    transaction_id : int
        20 bits.
    connector_queue_manager : uuid.UUID or None
        ConnectorQMGuid.
    """

    tx_sequence_id: int
    tx_sequence_number: int
    previous_tx_sequence_number: int = 0
    first_message: bool = False
    last_message: bool = False
    final_ack_required: bool = False
    transaction_id: int = 0
    connector_queue_manager: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class SecurityHeader:
    """What a sender claims of itself: [MS-MQMQ] 2.2.20.6. None of it is verified.

    Attributes
    ----------
    security_flags : int
        As received; ST in the low four bits, EB 0x20, DE 0x40, AI 0x80.
    security_id, encryption_key, signature, sender_certificate, provider_info : bytes or None
        None when its size is 0.
    """

    security_flags: int = 0
    security_id: bytes | None = None
    encryption_key: bytes | None = None
    signature: bytes | None = None
    sender_certificate: bytes | None = None
    provider_info: bytes | None = None

    @property
    def sender_id_type(self) -> str | None:
        """ST: ``"none"``, ``"sid"``, ``"queue_manager"``, None for another value."""
        type_ = self.security_flags & _SENDER_BITS
        return SENDER_ID_TYPES[type_] if type_ < len(SENDER_ID_TYPES) else None

    @property
    def sender_sid(self) -> str | None:
        """The SID of the sender as text, ``S-1-...``; None when ``security_id`` is not a valid SID."""
        return sid_text(self.security_id) if self.security_id and self.sender_id_type == "sid" else None

    @property
    def body_encrypted(self) -> bool:
        """EB."""
        return bool(self.security_flags & _BODY_ENCRYPTED)


@dataclass(frozen=True, kw_only=True)
class SoapHeader:
    """The SOAP header and body that a message over HTTP carries beside its own body: [MS-MQMQ] 2.2.20.7."""

    soap_header: str = ""
    soap_body: str = ""


@dataclass(frozen=True, kw_only=True)
class CompoundMessageHeader:
    """The HTTP request in which a message came: [MS-MQRR] 2.2.5.1.2.2.

    Attributes
    ----------
    http_body : bytes
        The request, headers included.
    message_body_size, message_body_offset : int
        Where the message body is in ``http_body``.
    """

    http_body: bytes
    message_body_size: int = 0
    message_body_offset: int = 0

    @property
    def compound_body(self) -> bytes:
        """The message body in ``http_body``."""
        return self.http_body[self.message_body_offset : self.message_body_offset + self.message_body_size]


@dataclass(frozen=True, kw_only=True)
class MultiQueueFormatHeader:
    """All the queues of a message that went to several: [MS-MQMQ] 2.2.20.1.

    Attributes
    ----------
    destination_queues, admin_queues, response_queues : tuple of FormatName or str
        A direct name that is no format name is text.
    multi_queue_signature : bytes
    """

    destination_queues: tuple[FormatName | str, ...] = ()
    admin_queues: tuple[FormatName | str, ...] = ()
    response_queues: tuple[FormatName | str, ...] = ()
    multi_queue_signature: bytes = b""

    def __post_init__(self) -> None:
        for name in ("destination_queues", "admin_queues", "response_queues"):
            queues: Any = getattr(self, name)
            if isinstance(queues, str) or not isinstance(queues, Iterable):
                raise EncodeError(name, f"must be many format names, not {type(queues).__name__}")
            object.__setattr__(self, name, tuple(queues))


@dataclass(frozen=True, kw_only=True)
class SessionHeader:
    """The packets of the session that a sender acknowledges, and the number of this packet: [MS-MQMQ] 2.2.20.4."""

    ack_sequence_number: int = 0
    recoverable_msg_ack_seq_number: int = 0
    recoverable_msg_ack_flags: int = 0
    user_msg_sequence_number: int = 0
    recoverable_msg_seq_number: int = 0
    window_size: int = 0


@dataclass(frozen=True, kw_only=True)
class Acknowledgment:
    """The body of an OrderAck or FinalAck packet: [MS-MQQB] 2.2.4.1, 2.2.5.1.

    Attributes
    ----------
    acknowledged_tx_sequence_id, acknowledged_tx_sequence_number, acknowledged_previous_tx_sequence_number : int
    acknowledged_source_queue_manager : uuid.UUID or None
        FinalAck only, as is ``acknowledged_message_id``.
    acknowledged_message_id : int or None
    """

    acknowledged_tx_sequence_id: int
    acknowledged_tx_sequence_number: int
    acknowledged_previous_tx_sequence_number: int
    acknowledged_source_queue_manager: UUID | None = None
    acknowledged_message_id: int | None = None


#: The optional headers of a message: the attribute of each, and the class of its value.
GROUPS: dict[str, type[Any]] = {
    "transaction": TransactionHeader,
    "security": SecurityHeader,
    "compound": CompoundMessageHeader,
    "soap": SoapHeader,
    "multi_queue": MultiQueueFormatHeader,
    "session": SessionHeader,
}
GROUP_FIELDS: dict[type[Any], tuple[str, ...]] = {
    group: tuple([field.name for field in fields(group)]) for group in (*GROUPS.values(), Acknowledgment)
}


#: The keywords of a message that are in no optional header, with their defaults.
MESSAGE_DEFAULTS = {column.name: column.default for column in MESSAGES.columns if column.default is not NO_KEYWORD}
#: The keywords of a message that take a name as well as a number: their numbers by name.
NAMED: dict[str, dict[str, int]] = {
    "body_type": {name: number for number, name in BODY_TYPES.items()},
    "message_class": {name: number for number, name in MESSAGE_CLASSES.items()},
}


def _session_defaults(section: str) -> dict[str, Any]:
    (header,) = (each for each in SESSIONS.headers if each.section == section)
    filled = [row.filled for row in header.fields if isinstance(row, WireField) and row.filled]
    defaults = {column.name: column.default for column in SESSIONS.columns}
    return {name: defaults[name] for name in (*filled, "refused")}


#: The keywords of each packet of sessions.
SESSION_DEFAULTS = {
    kind: _session_defaults(section)
    for kind, section in zip(SESSION_KINDS, ("PINGED", "ESTABLISH", "PARAMETERS", "SESSION"), strict=True)
}
