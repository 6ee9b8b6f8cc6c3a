"""MS-MQQB: the packets in which messages travel ([MS-MQQB] 2.2, [MS-MQMQ] 2.2.20), one at a time or many."""

from __future__ import annotations

from msmqwire.mqqb._batch import MessageBatch, Notifications, decode_batch, decode_session_batch
from msmqwire.mqqb._encode import encode_batch
from msmqwire.mqqb._packet import (
    ConnectionParameters,
    EstablishConnection,
    MessagePacket,
    Ping,
    SessionAck,
    SessionPacket,
    UserMessage,
    decode,
    encode,
)
from msmqwire.mqqb.groups import (
    Acknowledgment,
    CompoundMessageHeader,
    MultiQueueFormatHeader,
    SecurityHeader,
    SessionHeader,
    SoapHeader,
    TransactionHeader,
    TransportName,
)
from msmqwire.mqqb.message._bodies import read_body
from msmqwire.mqqb.rules import SessionViolation, Violation
from msmqwire.mqqb.schema import MESSAGES, SESSIONS

__all__ = [
    "MESSAGES",
    "SESSIONS",
    "Acknowledgment",
    "CompoundMessageHeader",
    "ConnectionParameters",
    "EstablishConnection",
    "MessageBatch",
    "MessagePacket",
    "MultiQueueFormatHeader",
    "Notifications",
    "Ping",
    "SecurityHeader",
    "SessionAck",
    "SessionHeader",
    "SessionPacket",
    "SessionViolation",
    "SoapHeader",
    "TransactionHeader",
    "TransportName",
    "UserMessage",
    "Violation",
    "decode",
    "decode_batch",
    "decode_session_batch",
    "encode",
    "encode_batch",
    "read_body",
]

MESSAGES.codec.update(decode=decode, decode_batch=decode_batch)
SESSIONS.codec.update(decode=decode, decode_batch=decode_session_batch)


def __dir__() -> list[str]:
    return __all__
