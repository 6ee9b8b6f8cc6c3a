"""The fields of messages, by the headers that they stand in: [MS-MQMQ] 2.2.19-2.2.20.

``make build`` writes ``mqqb/_generated.pxd`` from these rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from msmqwire.columns.fields import Field, Header
from msmqwire.columns.schema import BYTES, FORMAT_NAME, TEXT, TIMESTAMP, UINT8, UINT32, UTF8, Enumeration, ListOf
from msmqwire.mqqb.framing import LARGEST_PACKET
from msmqwire.mqqb.message.classes import MESSAGE_CLASSES
from msmqwire.mqqb.message.readable import BODY_FORMATS, BODY_TYPES
from msmqwire.mqqb.numbers import (
    ACKNOWLEDGMENTS,
    ADMIN_CODES,
    AU_OR_AS,
    BODY_ENCRYPTED,
    CIPHERS,
    CLASS_BITS_UNUSED,
    DESTINATION_CODES,
    FOR_EVER,
    HASHES,
    LARGEST_LABEL,
    LARGEST_SENDER_CERT,
    MOST_HOPS,
    PRIVACY_NAMES,
    RC2,
    RC4,
    RESERVED_BASE,
    RESERVED_DEBUG,
    RESERVED_PROPERTIES,
    RESERVED_SECURITY,
    RESERVED_TRANSACTION,
    RESERVED_USER,
    SHA_1,
)
from msmqwire.wire.guids import NIL

KINDS = ("user_message", "order_ack", "final_ack")
DELIVERY_MODES = ("express", "recoverable")
SENDER_ID_TYPES = ("none", "sid", "queue_manager")
NOTIFICATION_FORMS = ("plain", "encrypted")

_QUEUE_FORMS = dict(enumerate((
    "none", "as AdminQueue", "private on the source", "private on the destination", "private on the host of AdminQueue",
    "public", "private", "direct",
)))  # fmt: skip


#: The MQFAddressHeaders of a MultiQueueFormatHeader.
_QUEUE_LISTS = ("Destination", "Administration", "Response")


_AES = tuple(number for number, name in CIPHERS.items() if name.startswith("AES"))


def _none_of(number: str, values: Iterable[int]) -> str:
    """The expression that is true for all but some values of a number."""
    return " and ".join(f"not ({number} == {value:#x})" for value in values)


def _queue(name: str, shift: int, column: str, about: str, presence: str) -> tuple[Field, ...]:
    """A queue, by the code in UserHeader.Flags ([MS-MQMQ] 2.2.19.2)."""
    code, count = f"bits(user_flags, {shift}, 3)", column.replace("queue", "count")
    direct, store, faults = f"{code} == 7", f"queues.{column.upper()}", (name,)
    return (
        Field("", "", -1, column, about, shown=FORMAT_NAME, store=store, presence=presence, default=None),
        Field(f"{name}.Guid", "guid", faults=faults, when=f"{code} == 5 or {code} == 6"),
        Field(f"{name}.Number", "u32", faults=faults, when=f"{code} == 2 or {code} == 3 or {code} == 4 or {code} == 6"),
        Field(f"{name}.Count", "u16", id=count, faults=faults, when=direct),
        Field(f"{name}.Name", "text", faults=faults, when=direct, size=count),
        Field(f"{name}.Padding", "pad", when=direct),
    )


def _blob(name: str, column: str, about: str, size: str, part: str) -> tuple[Field, Field]:
    """Data of the SecurityHeader, up to a multiple of four bytes."""
    when = f"{size} > 0"
    return (
        Field(name, "bytes", -1, column, about, when=when, size=size, store=f"parts.{part}", presence=f"HAS_{part}"),
        Field(f"{name} padding", "pad", when=when),
    )


#: The fields with which every packet begins but a ping.
BASE_START = (
    Field("VersionNumber", "u8", 0, id="version", checks={"bad_version": "not (version == 16)"}),
    Field("BaseHeader.Reserved", "u8", 1),
    Field("Signature", "u32", 4, id="signature", checks={"bad_signature": "not (signature == 0x524F494C)"}),
)
WINDOW_SIZE = Field(
    "SessionHeader.WindowSize",
    "u16",
    12,
    "window_size",
    checks={"window_size": "window_size == 0"},
)


def session_fields(about: str, default: Any = ...) -> tuple[Field, ...]:
    """The fields of the SessionHeader before its WindowSize, with names after ``about`` ([MS-MQMQ] 2.2.20.4)."""
    rows = (
        ("AckSequenceNumber", "u16", 0, "ack_sequence_number"),
        ("RecoverableMsgAckSeqNumber", "u16", 2, "recoverable_msg_ack_seq_number"),
        ("RecoverableMsgAckFlags", "u32", 4, "recoverable_msg_ack_flags"),
        ("UserMsgSequenceNumber", "u16", 8, "user_msg_sequence_number"),
        ("RecoverableMsgSeqNumber", "u16", 10, "recoverable_msg_seq_number"),
    )
    return tuple(
        [
            Field(f"SessionHeader.{name}", type_, at, column, about + name, default=default)
            for name, type_, at, column in rows
        ]
    )


MESSAGE_HEADERS = (
    Header(
        "",
        (
            Field(
                "", column="kind", about="an application's message, or an OrderAck or FinalAck packet",
                shown=Enumeration(KINDS), store="codes.KIND",
            ),
        ),
    ),
    Header(
        "BASE",
        (
            *BASE_START,
            Field(
                "PacketSize", "u32", 8, "packet_size", "PacketSize: bytes without the SessionHeader after them",
                checks={"too_large": f"packet_size > {LARGEST_PACKET:#x}"},
            ),
            Field("PR", "bits", 2, "priority", "BaseHeader.Flags.PR, 0 to 7", bits=(0, 3), shown=UINT8, default=3),
            Field(
                "DH", "bits", 2, "debug_header",
                "BaseHeader.Flags.DH: whether there is a DebugHeader, with or without a queue", bits=(5, 1),
                default=False,
            ),
            Field("TR", "bits", 2, "tracing", "BaseHeader.Flags.TR", bits=(8, 1), default=False),
            Field(
                "BaseHeader.Flags", "u16", 2, "base_flags", "BaseHeader.Flags as received",
                checks={
                    "bad_type": "has(base_flags, 8)",
                    "reserved_flags": f"has(base_flags, {RESERVED_BASE:#x})",
                    "missing_debug_header": "has(base_flags, 0x100) and not has(base_flags, 0x20)",
                },
            ),
            Field(
                "TimeToReachQueue", "u32", 12, "time_to_reach_queue",
                "TimeToReachQueue in seconds; 4294967295 is for ever", time="s", default=FOR_EVER,
            ),
            Field("IN", "bits", 2, bits=(3, 1)),
            Field("SH", "bits", 2, bits=(4, 1)),
        ),
        faults=("BaseHeader",),
    ),
    Header(
        "USER",
        (
            Field("SourceQueueManager", "guid", 0, "source_queue_manager", "SourceQueueManager", default=NIL),
            Field(
                "QueueManagerAddress", "guid", 16, "queue_manager_address",
                "QueueManagerAddress: the destination's, zeros for a direct name", default=NIL,
            ),
            Field(
                "TimeToBeReceived", "u32", 32, "time_to_be_received",
                "TimeToBeReceived in seconds; 4294967295 is for ever", time="s", default=FOR_EVER,
            ),
            Field(
                "SentTime", "u32", 36, "sent_time", "SentTime, to the second", id="sent", shown=TIMESTAMP, time="unix",
                default=0,
            ),
            Field("MessageID", "u32", 40, "message_id", "MessageID", default=0),
            Field("RC", "bits", 44, "hop_count", "UserHeader.Flags.RC", bits=(0, 5), shown=UINT8, default=0),
            Field(
                "DM", "bits", 44, "delivery_mode", "UserHeader.Flags.DM; null if neither", bits=(5, 2),
                shown=Enumeration(DELIVERY_MODES), store="codes.DELIVERY", presence="HAS_DELIVERY_MODE",
                default="express",
            ),
            Field("JN", "bits", 44, "negative_source_journaling", "UserHeader.Flags.JN", bits=(8, 1), default=False),
            Field("JP", "bits", 44, "positive_source_journaling", "UserHeader.Flags.JP", bits=(9, 1), default=False),
            Field("AH", "bits", 44, "sent_over_http", "UserHeader.Flags.AH", bits=(25, 1), default=False),
            Field(
                "UserHeader.Flags", "u32", 44, "user_flags", "UserHeader.Flags as received",
                checks={
                    "bad_flag": " or ".join(
                        [
                            f"bits(user_flags, {shift}, 3) == {code}"
                            for shift, codes in ((10, DESTINATION_CODES), (13, ADMIN_CODES))
                            for code in range(8)
                            if not codes >> code & 1
                        ]
                    ),
                    "missing_properties": "not has(user_flags, 0x200000)",
                    "admin_queue_flags": "not has(user_flags, 0x200000) and bits(user_flags, 13, 3) > 0",
                    "delivery_mode": "bits(user_flags, 5, 2) > 1",
                    "express_transaction": "has(user_flags, 0x100000) and bits(user_flags, 5, 2) == 0",
                    "hop_count": f"bits(user_flags, 0, 5) > {MOST_HOPS:#x}",
                    "transaction_priority": "has(user_flags, 0x100000) and bits(base_flags, 0, 3) > 0",
                    "reserved_flags": f"has(user_flags, {RESERVED_USER:#x})",
                },
            ),
            *_queue("DestinationQueue", 10, "destination_queue", "DestinationQueue", "HAS_DESTINATION"),
            *_queue("AdminQueue", 13, "admin_queue", "AdminQueue: where acknowledgments go", "HAS_ADMIN"),
            *_queue("ResponseQueue", 16, "response_queue", "ResponseQueue: where answers go", "HAS_RESPONSE"),
            Field("DQ", "bits", 44, bits=(10, 3), names=_QUEUE_FORMS),
            Field("AQ", "bits", 44, bits=(13, 3), names=_QUEUE_FORMS),
            Field("RQ", "bits", 44, bits=(16, 3), names=_QUEUE_FORMS),
            Field("SH", "bits", 44, bits=(19, 1)),
            Field("TH", "bits", 44, bits=(20, 1)),
            Field("MP", "bits", 44, bits=(21, 1)),
            Field("CQ", "bits", 44, bits=(22, 1)),
            Field("MQ", "bits", 44, bits=(23, 1)),
            Field("HH", "bits", 44, bits=(28, 1)),
        ),
        faults=("UserHeader",),
    ),
    Header(
        "CONNECTOR",
        (
            Field("ConnectorType", "guid", 0, "connector_type", "ConnectorType", default=None),
        ),
        when="has(user_flags, 0x400000)",
        presence="HAS_CONNECTOR_TYPE",
    ),
    Header(
        "TRANSACTION",
        (
            Field(
                "FM", "bits", 0, "first_message", "TransactionHeader.Flags.FM: the first of its transaction",
                bits=(2, 1),
            ),
            Field(
                "LM", "bits", 0, "last_message", "TransactionHeader.Flags.LM: the last of its transaction", bits=(3, 1),
            ),
            Field("FA", "bits", 0, "final_ack_required", "TransactionHeader.Flags.FA", bits=(1, 1)),
            Field("ID", "bits", 0, "transaction_id", "TransactionHeader.Flags.ID, 20 bits", bits=(4, 20), shown=UINT32),
            Field(
                "TxSequenceID", "u64", 4, "tx_sequence_id",
                "TxSequenceID: ordinal in the low half, time stamp in the high",
            ),
            Field(
                "TransactionHeader.Flags", "u32", 0, "transaction_flags", "TransactionHeader.Flags as received",
                checks={"reserved_flags": f"has(transaction_flags, {RESERVED_TRANSACTION:#x})"},
            ),
            Field(
                "TxSequenceNumber", "u32", 12, "tx_sequence_number", "TxSequenceNumber, from 1",
                checks={"tx_sequence_number": "tx_sequence_number == 0"},
            ),
            Field(
                "PreviousTxSequenceNumber", "u32", 16, "previous_tx_sequence_number",
                "PreviousTxSequenceNumber, 0 for none",
                checks={
                    "previous_tx_sequence_number": (
                        "previous_tx_sequence_number > 0 and previous_tx_sequence_number >= tx_sequence_number"
                    ),
                },
            ),
            Field("CG", "bits", 0, bits=(0, 1)),
        ),
        when="has(user_flags, 0x100000)",
        presence="HAS_TRANSACTION",
        faults=("TransactionHeader",),
    ),
    Header(
        "CONNECTOR_QM",
        (
            Field("ConnectorQMGuid", "guid", 0, "connector_queue_manager", "ConnectorQMGuid"),
        ),
        when="has(user_flags, 0x100000) and has(transaction_flags, 1)",
        presence="HAS_CONNECTOR_QM",
    ),
    Header(
        "SECURITY",
        (
            Field(
                "SecurityHeader.Flags", "u16", 0, "security_flags",
                "SecurityHeader.Flags as received: a sender can set any",
                checks={
                    "security_flags": f"has(security_flags, {AU_OR_AS:#x})",
                    "reserved_flags": f"has(security_flags, {RESERVED_SECURITY:#x})",
                },
            ),
            Field(
                "ST", "bits", 0, "sender_id_type", "SecurityHeader.Flags.ST; null if another", bits=(0, 4),
                shown=Enumeration(SENDER_ID_TYPES), store="codes.SENDER", presence="HAS_SENDER_ID_TYPE",
            ),
            Field("EB", "bits", 0, "body_encrypted", "SecurityHeader.Flags.EB", bits=(5, 1)),
            Field("SecurityHeader.SecurityIDSize", "u16", 2, id="security_id_size"),
            Field("SecurityHeader.EncryptionKeySize", "u16", 4, id="encryption_key_size"),
            Field("SecurityHeader.SignatureSize", "u16", 6, id="signature_size"),
            Field(
                "SecurityHeader.SenderCertSize", "u32", 8, id="sender_cert_size",
                checks={"too_large": f"sender_cert_size > {LARGEST_SENDER_CERT:#x}"},
            ),
            Field(
                "SecurityHeader.ProviderInfoSize", "u32", 12, id="provider_info_size",
                checks={
                    "no_security_data": (
                        "security_id_size + encryption_key_size + signature_size + sender_cert_size "
                        "+ provider_info_size == 0"
                    ),
                },
            ),
            *_blob(
                "SecurityID", "security_id", "SecurityID: a SID, or the GUID of a queue manager", "security_id_size",
                "SECURITY_ID",
            ),
            Field(
                "", column="sender_sid", about="SecurityID as text, S-1-...; null if it is not a valid SID", shown=UTF8,
                derived=True, presence="HAS_SENDER_SID",
            ),
            *_blob("EncryptionKey", "encryption_key", "EncryptionKey", "encryption_key_size", "ENCRYPTION_KEY"),
            *_blob(
                "SecurityData.Signature", "signature", "SecurityData.Signature; it has not been verified",
                "signature_size", "SIGNATURE",
            ),
            *_blob("SenderCert", "sender_certificate", "SenderCert", "sender_cert_size", "SENDER_CERT"),
            *_blob("ProviderInfo", "provider_info", "ProviderInfo", "provider_info_size", "PROVIDER_INFO"),
            Field("AU", "bits", 0, bits=(4, 1)),
            Field("DE", "bits", 0, bits=(6, 1)),
            Field("AI", "bits", 0, bits=(7, 1)),
            Field("AS", "bits", 0, bits=(8, 4)),
        ),
        when="has(user_flags, 0x80000)",
        presence="HAS_SECURITY",
        faults=("SecurityHeader",),
    ),
    Header(
        "PROPERTIES",
        (
            Field(
                "PA", "bits", 0, "positive_arrival_ack", "MessagePropertiesHeader.Flags.PA", bits=(0, 1), default=False,
            ),
            Field(
                "PR", "bits", 0, "positive_receive_ack", "MessagePropertiesHeader.Flags.PR", bits=(1, 1), default=False,
            ),
            Field(
                "NA", "bits", 0, "negative_arrival_ack", "MessagePropertiesHeader.Flags.NA", bits=(2, 1), default=False,
            ),
            Field(
                "NR", "bits", 0, "negative_receive_ack", "MessagePropertiesHeader.Flags.NR", bits=(3, 1), default=False,
            ),
            Field(
                "MessagePropertiesHeader.Flags", "u8", 0, "properties_flags",
                "MessagePropertiesHeader.Flags as received",
                checks={
                    "reserved_flags": f"has(properties_flags, {RESERVED_PROPERTIES:#x})",
                    "admin_queue_flags": (
                        f"bits(user_flags, 13, 3) > 0 and not has(properties_flags, {ACKNOWLEDGMENTS:#x})"
                    ),
                },
            ),
            Field("LabelLength", "u8", 1, id="label_length", checks={"bad_size": f"label_length > {LARGEST_LABEL}"}),
            Field(
                "Label", "text", -1, "label", "Label, to its first U+0000", size="label_length * 2",
                store="parts.LABEL", default="",
            ),
            Field(
                "MessageClass", "u16", 2, "message_class", "MessageClass", names=MESSAGE_CLASSES,
                checks={"message_class_value": f"has(message_class, {CLASS_BITS_UNUSED:#x})"}, default=0,
            ),
            Field(
                "", column="message_class_name",
                about="MessageClass by name, without MQMSG_CLASS_; null if it has none",
                shown=Enumeration.of(MESSAGE_CLASSES), store="numbers.MESSAGE_CLASS",
                presence="HAS_MESSAGE_CLASS",
            ),
            Field(
                "CorrelationID.Guid", "guid", 4, "correlation_guid",
                "CorrelationID, the first 16 bytes: of an acknowledgment the source", default=NIL,
            ),
            Field(
                "CorrelationID.Ordinal", "u32", 20, "correlation_ordinal",
                "CorrelationID, the last 4 bytes: of an acknowledgment the MessageID", default=0,
            ),
            Field("BodyType", "u32", 24, "body_type", "BodyType, a VARTYPE", names=BODY_TYPES, default=0),
            Field(
                "", column="body_type_name", about="BodyType by name; null if it has none",
                shown=Enumeration.of(BODY_TYPES), derived=True, presence="HAS_BODY_TYPE_NAME",
            ),
            Field("ApplicationTag", "u32", 28, "application_tag", "ApplicationTag", default=0),
            Field("MessageSize", "u32", 32, "message_size", "MessageSize, the bytes of the body"),
            Field(
                "AllocationBodySize", "u32", 36, "allocation_body_size", "AllocationBodySize",
                checks={"allocation_body_size": "allocation_body_size < message_size"}, default=0,
            ),
            Field(
                "PrivacyLevel", "u32", 40, "privacy_level", "PrivacyLevel: 0 none, 1 40-bit, 3 128-bit, 5 AES",
                names=PRIVACY_NAMES,
                checks={
                    "privacy_level": (
                        f"{_none_of('privacy_level', PRIVACY_NAMES)} or (privacy_level == 0 "
                        f"and has(user_flags, 0x80000) and has(security_flags, {BODY_ENCRYPTED:#x}))"
                    ),
                },
                default=0,
            ),
            Field(
                "HashAlgorithm", "u32", 44, "hash_algorithm", "HashAlgorithm", names=HASHES,
                checks={"hash_algorithm": _none_of("hash_algorithm", HASHES)}, default=SHA_1,
            ),
            Field(
                "EncryptionAlgorithm", "u32", 48, "encryption_algorithm", "EncryptionAlgorithm", names=CIPHERS,
                checks={
                    "encryption_algorithm": (
                        f"{_none_of('encryption_algorithm', CIPHERS)} "
                        f"or (not ({_none_of('encryption_algorithm', _AES)}) "
                        "and (privacy_level == 1 or privacy_level == 3)) "
                        f"or (not ({_none_of('encryption_algorithm', (RC2, RC4))}) and privacy_level == 5)"
                    ),
                },
                default=RC4,
            ),
            Field("ExtensionSize", "u32", 52, id="extension_size"),
            Field(
                "ExtensionData", "bytes", -1, "extension_data", "ExtensionData", size="extension_size",
                store="parts.EXTENSION_DATA", default=b"",
            ),
            Field(
                "", column="extension_format", about="kind of ExtensionData, by its bytes",
                shown=Enumeration(BODY_FORMATS), derived=True,
            ),
            Field(
                "", column="extension_text",
                about="ExtensionData as text, such as headers of NServiceBus and Rebus; null if it is empty or binary",
                shown=UTF8, derived=True, presence="HAS_EXTENSION_TEXT",
            ),
            Field(
                "MessageBody", "bytes", -1, "body", "MessageBody", size="message_size", store="parts.BODY", default=b"",
            ),
            Field(
                "", column="body_format", about="kind of the body, by BodyType and its bytes",
                shown=Enumeration(BODY_FORMATS), derived=True,
            ),
            Field(
                "", column="body_text",
                about="the body as text, compound_body where MessageBody is empty; null if it is encrypted or binary",
                shown=UTF8, derived=True, presence="HAS_BODY_TEXT",
            ),
        ),
        when="has(user_flags, 0x200000)",
        presence="HAS_PROPERTIES",
        faults=("MessagePropertiesHeader",),
    ),
    Header("", (Field("MessagePropertiesHeader padding", "pad", when="position < packet_size"),)),
    Header(
        "",
        (
            Field(
                "DebugHeader.Flags", "u16", 0, id="debug_flags",
                checks={
                    "bad_flag": "bits(debug_flags, 0, 2) > 1",
                    "reserved_flags": f"has(debug_flags, {RESERVED_DEBUG:#x})",
                },
            ),
            Field("DebugHeader.Reserved", "u16", 2),
        ),
        when="has(base_flags, 0x20)",
        faults=("DebugHeader",),
    ),
    Header(
        "DEBUG_QUEUE",
        (
            Field(
                "DebugHeader.QueueIdentifier", "guid", 0, "debug_queue",
                "DebugHeader.QueueIdentifier: the queue for reports", default=None,
            ),
        ),
        when="has(base_flags, 0x20) and bits(debug_flags, 0, 2) == 1",
        presence="HAS_DEBUG_QUEUE",
    ),
    Header(
        "",
        (
            Field(
                "further headers", "bytes", when="position < packet_size", size="packet_size - position",
                faults=("SRMPEnvelopeHeader.DataLength",),
            ),
        ),
    ),
    Header(
        "",
        (
            Field(
                "", column="srmp_envelope", about="SRMPEnvelopeHeader.Data, to its first U+0000", shown=TEXT,
                store="parts.SRMP_ENVELOPE", default=None,
            ),
        ),
        presence="HAS_SRMP_ENVELOPE",
    ),
    Header(
        "COMPOUND",
        (
            Field(
                "", column="http_body", about="CompoundMessageHeader.Data, the HTTP request", shown=BYTES,
                store="parts.HTTP_BODY",
            ),
            Field("", "u32", 8, "message_body_size", "CompoundMessageHeader.MessageBodySize"),
            Field("", "u32", 12, "message_body_offset", "CompoundMessageHeader.MessageBodyOffset"),
            Field(
                "", column="compound_body", about="the message body in http_body", shown=BYTES,
                store="parts.COMPOUND_BODY",
            ),
        ),
        presence="HAS_COMPOUND",
        faults=(
            "CompoundMessageHeader", "CompoundMessageHeader.HttpBodySize", "CompoundMessageHeader.MessageBodySize",
            "CompoundMessageHeader.MessageBodyOffset",
        ),
    ),
    Header(
        "",
        (
            Field(
                "", column="soap_header", about="SoapHeader.Header, to its first U+0000", shown=TEXT,
                store="parts.SOAP_HEADER",
            ),
            Field(
                "", column="soap_body", about="SoapHeader.Body, to its first U+0000", shown=TEXT,
                store="parts.SOAP_BODY",
            ),
        ),
        presence="HAS_SOAP",
        faults=("SoapHeader", "SoapHeader.Header", "SoapBody", "SoapBody.Body"),
    ),
    Header(
        "",
        (
            Field(
                "", column="destination_queues", about="MultiQueueFormatHeader.Destination", shown=ListOf(FORMAT_NAME),
                store="lists.DESTINATION_QUEUE",
            ),
            Field(
                "", column="admin_queues", about="MultiQueueFormatHeader.Administration", shown=ListOf(FORMAT_NAME),
                store="lists.ADMIN_QUEUE",
            ),
            Field(
                "", column="response_queues", about="MultiQueueFormatHeader.Response", shown=ListOf(FORMAT_NAME),
                store="lists.RESPONSE_QUEUE",
            ),
            Field(
                "", column="multi_queue_signature", about="MultiQueueFormatHeader.Signature", shown=BYTES,
                store="parts.MULTI_QUEUE_SIGNATURE",
            ),
        ),
        presence="HAS_MULTI_QUEUE",
        faults=(
            *[f"{name}{part}" for name in _QUEUE_LISTS for part in ("", ".HeaderSize", ".HeaderID", ".FormatNameList")],
            "MQFSignatureHeader", "MQFSignatureHeader.ID", "MQFSignatureHeader.Signature",
        ),
    ),
    Header(
        "SESSION",
        (
            *session_fields("SessionHeader."),
            replace(WINDOW_SIZE, about="SessionHeader.WindowSize"),
            Field("SessionHeader.Reserved", "u16", 14),
        ),
        when="has(base_flags, 0x10)",
        presence="HAS_SESSION",
        faults=("SessionHeader",),
    ),
    Header(
        "ACKNOWLEDGED",
        (
            Field("", "u64", 0, "acknowledged_tx_sequence_id", "acknowledgments: TxSequenceID of the body"),
            Field("", "u32", 8, "acknowledged_tx_sequence_number", "acknowledgments: TxSequenceNumber of the body"),
            Field(
                "", "u32", 12, "acknowledged_previous_tx_sequence_number",
                "acknowledgments: TxPreviousSequenceNumber of the body",
            ),
        ),
        presence="HAS_ACKNOWLEDGED",
    ),
    Header(
        "FINAL",
        (
            Field("", "guid", 16, "acknowledged_source_queue_manager", "final acknowledgment: SourceGUID of the body"),
            Field("", "u32", 32, "acknowledged_message_id", "final acknowledgment: MessageID of the body"),
        ),
        presence="HAS_FINAL_ACK",
    ),
    Header(
        "",
        (
            Field(
                "", column="notification",
                about="to the notify queue: whether its body, a change notification, can be read",
                shown=Enumeration(NOTIFICATION_FORMS), store="codes.NOTIFICATION",
            ),
        ),
        presence="HAS_NOTIFICATION",
    ),
    Header(
        "",
        (
            Field(
                "", column="trailing", about="bytes that belong to no known header", shown=BYTES,
                store="parts.TRAILING",
            ),
        ),
        presence="HAS_TRAILING",
    ),
)  # fmt: skip
