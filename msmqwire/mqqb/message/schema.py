"""The fields of messages, by the headers that they stand in: [MS-MQMQ] 2.2.19-2.2.20.

``make build`` writes ``mqqb/_generated.pxd`` from these rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from msmqwire.columns.fields import Header, WireField, flag
from msmqwire.columns.schema import (
    BOOL,
    BYTES,
    FORMAT_NAME,
    GUID,
    NO_KEYWORD,
    TEXT,
    TIMESTAMP,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    UTF8,
    Column,
    Enumeration,
    ListOf,
)
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


def _queue(name: str, shift: int, column: str, about: str, presence: str) -> tuple[WireField | Column, ...]:
    """A queue, by the code in UserHeader.Flags ([MS-MQMQ] 2.2.19.2)."""
    code, count = f"bits(user_flags, {shift}, 3)", column.replace("queue", "count")
    direct, store, faults = f"{code} == 7", f"queues.{column.upper()}", (name,)
    return (
        Column(column, FORMAT_NAME, about, bit=presence, store=store, default=None),
        WireField(f"{name}.Guid", "guid", faults=faults, when=f"{code} == 5 or {code} == 6"),
        WireField(
            f"{name}.Number",
            "u32",
            faults=faults,
            when=f"{code} == 2 or {code} == 3 or {code} == 4 or {code} == 6",
        ),
        WireField(f"{name}.Count", "u16", id=count, faults=faults, when=direct),
        WireField(f"{name}.Name", "text", faults=faults, when=direct, size=count),
        WireField(f"{name}.Padding", "pad", when=direct),
    )


def _blob(name: str, column: str, about: str, size: str, part: str) -> tuple[WireField, WireField]:
    """Data of the SecurityHeader, up to a multiple of four bytes."""
    when = f"{size} > 0"
    return (
        WireField(
            name,
            "bytes",
            column=Column(column, BYTES, about, bit=f"HAS_{part}", store=f"parts.{part}"),
            when=when,
            size=size,
        ),
        WireField(f"{name} padding", "pad", when=when),
    )


#: The fields with which every packet begins but a ping.
BASE_START = (
    WireField("VersionNumber", "u8", 0, id="version", checks={"bad_version": "not (version == 16)"}),
    WireField("BaseHeader.Reserved", "u8", 1),
    WireField("Signature", "u32", 4, id="signature", checks={"bad_signature": "not (signature == 0x524F494C)"}),
)
WINDOW_SIZE = WireField(
    "SessionHeader.WindowSize", "u16", 12, fills="window_size", checks={"window_size": "window_size == 0"}
)


def session_fields(about: str, default: Any = NO_KEYWORD) -> tuple[WireField, ...]:
    """The fields of the SessionHeader before its WindowSize, with names after ``about`` ([MS-MQMQ] 2.2.20.4)."""
    rows = (
        ("AckSequenceNumber", 0, "ack_sequence_number", UINT16),
        ("RecoverableMsgAckSeqNumber", 2, "recoverable_msg_ack_seq_number", UINT16),
        ("RecoverableMsgAckFlags", 4, "recoverable_msg_ack_flags", UINT32),
        ("UserMsgSequenceNumber", 8, "user_msg_sequence_number", UINT16),
        ("RecoverableMsgSeqNumber", 10, "recoverable_msg_seq_number", UINT16),
    )
    return tuple(
        [
            WireField(
                f"SessionHeader.{name}",
                "u16" if type_ is UINT16 else "u32",
                at,
                column=Column(column, type_, about + name, default=default),
            )
            for name, at, column, type_ in rows
        ]
    )


MESSAGE_HEADERS = (
    Header(
        "",
        (
            Column(
                "kind", Enumeration(KINDS), "an application's message, or an OrderAck or FinalAck packet",
                store="codes.KIND",
            ),
        ),
    ),
    Header(
        "BASE",
        (
            *BASE_START,
            WireField(
                "PacketSize", "u32", 8, checks={"too_large": f"packet_size > {LARGEST_PACKET:#x}"},
                column=Column("packet_size", UINT32, "PacketSize: bytes without the SessionHeader after them"),
            ),
            WireField("PR", "bits", 2, bits=(0, 3), column=Column(
                "priority", UINT8, "BaseHeader.Flags.PR, 0 to 7", default=3,
            )),
            flag("DH", 2, 5, Column(
                "debug_header", BOOL, "BaseHeader.Flags.DH: whether there is a DebugHeader, with or without a queue",
                default=False,
            )),
            flag("TR", 2, 8, Column("tracing", BOOL, "BaseHeader.Flags.TR", default=False)),
            WireField(
                "BaseHeader.Flags", "u16", 2, column=Column("base_flags", UINT16, "BaseHeader.Flags as received"),
                checks={
                    "bad_type": "has(base_flags, 8)",
                    "reserved_flags": f"has(base_flags, {RESERVED_BASE:#x})",
                    "missing_debug_header": "has(base_flags, 0x100) and not has(base_flags, 0x20)",
                },
            ),
            WireField("TimeToReachQueue", "u32", 12, time="s", column=Column(
                "time_to_reach_queue", UINT32, "TimeToReachQueue in seconds; 4294967295 is for ever", default=FOR_EVER,
            )),
            flag("IN", 2, 3),
            flag("SH", 2, 4),
        ),
        faults=("BaseHeader",),
    ),
    Header(
        "USER",
        (
            WireField("SourceQueueManager", "guid", 0, column=Column(
                "source_queue_manager", GUID, "SourceQueueManager", default=NIL,
            )),
            WireField("QueueManagerAddress", "guid", 16, column=Column(
                "queue_manager_address", GUID, "QueueManagerAddress: the destination's, zeros for a direct name",
                default=NIL,
            )),
            WireField("TimeToBeReceived", "u32", 32, time="s", column=Column(
                "time_to_be_received", UINT32, "TimeToBeReceived in seconds; 4294967295 is for ever", default=FOR_EVER,
            )),
            WireField("SentTime", "u32", 36, id="sent", time="unix", column=Column(
                "sent_time", TIMESTAMP, "SentTime, to the second", default=0,
            )),
            WireField("MessageID", "u32", 40, column=Column("message_id", UINT32, "MessageID", default=0)),
            WireField("RC", "bits", 44, bits=(0, 5), column=Column(
                "hop_count", UINT8, "UserHeader.Flags.RC", default=0,
            )),
            WireField("DM", "bits", 44, bits=(5, 2), column=Column(
                "delivery_mode", Enumeration(DELIVERY_MODES), "UserHeader.Flags.DM; null if neither",
                bit="HAS_DELIVERY_MODE", store="codes.DELIVERY", default="express",
            )),
            flag("JN", 44, 8, Column("negative_source_journaling", BOOL, "UserHeader.Flags.JN", default=False)),
            flag("JP", 44, 9, Column("positive_source_journaling", BOOL, "UserHeader.Flags.JP", default=False)),
            flag("AH", 44, 25, Column("sent_over_http", BOOL, "UserHeader.Flags.AH", default=False)),
            WireField(
                "UserHeader.Flags", "u32", 44, column=Column("user_flags", UINT32, "UserHeader.Flags as received"),
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
            WireField("DQ", "bits", 44, bits=(10, 3), names=_QUEUE_FORMS),
            WireField("AQ", "bits", 44, bits=(13, 3), names=_QUEUE_FORMS),
            WireField("RQ", "bits", 44, bits=(16, 3), names=_QUEUE_FORMS),
            flag("SH", 44, 19),
            flag("TH", 44, 20),
            flag("MP", 44, 21),
            flag("CQ", 44, 22),
            flag("MQ", 44, 23),
            flag("HH", 44, 28),
        ),
        faults=("UserHeader",),
    ),
    Header(
        "CONNECTOR",
        (
            WireField("ConnectorType", "guid", 0, column=Column("connector_type", GUID, "ConnectorType", default=None)),
        ),
        when="has(user_flags, 0x400000)",
        presence="HAS_CONNECTOR_TYPE",
    ),
    Header(
        "TRANSACTION",
        (
            flag("FM", 0, 2, Column("first_message", BOOL, "TransactionHeader.Flags.FM: the first of its transaction")),
            flag("LM", 0, 3, Column("last_message", BOOL, "TransactionHeader.Flags.LM: the last of its transaction")),
            flag("FA", 0, 1, Column("final_ack_required", BOOL, "TransactionHeader.Flags.FA")),
            WireField("ID", "bits", 0, bits=(4, 20), column=Column(
                "transaction_id", UINT32, "TransactionHeader.Flags.ID, 20 bits",
            )),
            WireField("TxSequenceID", "u64", 4, column=Column(
                "tx_sequence_id", UINT64, "TxSequenceID: ordinal in the low half, time stamp in the high",
            )),
            WireField(
                "TransactionHeader.Flags", "u32", 0,
                column=Column("transaction_flags", UINT32, "TransactionHeader.Flags as received"),
                checks={"reserved_flags": f"has(transaction_flags, {RESERVED_TRANSACTION:#x})"},
            ),
            WireField(
                "TxSequenceNumber", "u32", 12, column=Column("tx_sequence_number", UINT32, "TxSequenceNumber, from 1"),
                checks={"tx_sequence_number": "tx_sequence_number == 0"},
            ),
            WireField(
                "PreviousTxSequenceNumber", "u32", 16,
                column=Column("previous_tx_sequence_number", UINT32, "PreviousTxSequenceNumber, 0 for none"),
                checks={
                    "previous_tx_sequence_number": (
                        "previous_tx_sequence_number > 0 and previous_tx_sequence_number >= tx_sequence_number"
                    ),
                },
            ),
            flag("CG", 0, 0),
        ),
        when="has(user_flags, 0x100000)",
        presence="HAS_TRANSACTION",
        faults=("TransactionHeader",),
    ),
    Header(
        "CONNECTOR_QM",
        (
            WireField("ConnectorQMGuid", "guid", 0, column=Column("connector_queue_manager", GUID, "ConnectorQMGuid")),
        ),
        when="has(user_flags, 0x100000) and has(transaction_flags, 1)",
        presence="HAS_CONNECTOR_QM",
    ),
    Header(
        "SECURITY",
        (
            WireField(
                "SecurityHeader.Flags", "u16", 0,
                column=Column("security_flags", UINT16, "SecurityHeader.Flags as received: a sender can set any"),
                checks={
                    "security_flags": f"has(security_flags, {AU_OR_AS:#x})",
                    "reserved_flags": f"has(security_flags, {RESERVED_SECURITY:#x})",
                },
            ),
            WireField("ST", "bits", 0, bits=(0, 4), column=Column(
                "sender_id_type", Enumeration(SENDER_ID_TYPES), "SecurityHeader.Flags.ST; null if another",
                bit="HAS_SENDER_ID_TYPE", store="codes.SENDER",
            )),
            flag("EB", 0, 5, Column("body_encrypted", BOOL, "SecurityHeader.Flags.EB")),
            WireField("SecurityHeader.SecurityIDSize", "u16", 2, id="security_id_size"),
            WireField("SecurityHeader.EncryptionKeySize", "u16", 4, id="encryption_key_size"),
            WireField("SecurityHeader.SignatureSize", "u16", 6, id="signature_size"),
            WireField(
                "SecurityHeader.SenderCertSize", "u32", 8, id="sender_cert_size",
                checks={"too_large": f"sender_cert_size > {LARGEST_SENDER_CERT:#x}"},
            ),
            WireField(
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
            Column(
                "sender_sid", UTF8, "SecurityID as text, S-1-...; null if it is not a valid SID", bit="HAS_SENDER_SID",
                derived=True,
            ),
            *_blob("EncryptionKey", "encryption_key", "EncryptionKey", "encryption_key_size", "ENCRYPTION_KEY"),
            *_blob(
                "SecurityData.Signature", "signature", "SecurityData.Signature; it has not been verified",
                "signature_size", "SIGNATURE",
            ),
            *_blob("SenderCert", "sender_certificate", "SenderCert", "sender_cert_size", "SENDER_CERT"),
            *_blob("ProviderInfo", "provider_info", "ProviderInfo", "provider_info_size", "PROVIDER_INFO"),
            flag("AU", 0, 4),
            flag("DE", 0, 6),
            flag("AI", 0, 7),
            WireField("AS", "bits", 0, bits=(8, 4)),
        ),
        when="has(user_flags, 0x80000)",
        presence="HAS_SECURITY",
        faults=("SecurityHeader",),
    ),
    Header(
        "PROPERTIES",
        (
            flag("PA", 0, 0, Column("positive_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.PA", default=False)),
            flag("PR", 0, 1, Column("positive_receive_ack", BOOL, "MessagePropertiesHeader.Flags.PR", default=False)),
            flag("NA", 0, 2, Column("negative_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.NA", default=False)),
            flag("NR", 0, 3, Column("negative_receive_ack", BOOL, "MessagePropertiesHeader.Flags.NR", default=False)),
            WireField(
                "MessagePropertiesHeader.Flags", "u8", 0,
                column=Column("properties_flags", UINT8, "MessagePropertiesHeader.Flags as received"),
                checks={
                    "reserved_flags": f"has(properties_flags, {RESERVED_PROPERTIES:#x})",
                    "admin_queue_flags": (
                        f"bits(user_flags, 13, 3) > 0 and not has(properties_flags, {ACKNOWLEDGMENTS:#x})"
                    ),
                },
            ),
            WireField(
                "LabelLength", "u8", 1, id="label_length", checks={"bad_size": f"label_length > {LARGEST_LABEL}"},
            ),
            WireField("Label", "text", size="label_length * 2", column=Column(
                "label", TEXT, "Label, to its first U+0000", store="parts.LABEL", default="",
            )),
            WireField(
                "MessageClass", "u16", 2, column=Column("message_class", UINT16, "MessageClass", default=0),
                names=MESSAGE_CLASSES, checks={"message_class_value": f"has(message_class, {CLASS_BITS_UNUSED:#x})"},
            ),
            Column(
                "message_class_name", Enumeration.of(MESSAGE_CLASSES),
                "MessageClass by name, without MQMSG_CLASS_; null if it has none", bit="HAS_MESSAGE_CLASS",
                store="numbers.MESSAGE_CLASS",
            ),
            WireField("CorrelationID.Guid", "guid", 4, column=Column(
                "correlation_guid", GUID, "CorrelationID, the first 16 bytes: of an acknowledgment the source",
                default=NIL,
            )),
            WireField("CorrelationID.Ordinal", "u32", 20, column=Column(
                "correlation_ordinal", UINT32, "CorrelationID, the last 4 bytes: of an acknowledgment the MessageID",
                default=0,
            )),
            WireField("BodyType", "u32", 24, names=BODY_TYPES, column=Column(
                "body_type", UINT32, "BodyType, a VARTYPE", default=0,
            )),
            Column(
                "body_type_name", Enumeration.of(BODY_TYPES), "BodyType by name; null if it has none",
                bit="HAS_BODY_TYPE_NAME", derived=True,
            ),
            WireField("ApplicationTag", "u32", 28, column=Column(
                "application_tag", UINT32, "ApplicationTag", default=0,
            )),
            WireField("MessageSize", "u32", 32, column=Column(
                "message_size", UINT32, "MessageSize, the bytes of the body",
            )),
            WireField(
                "AllocationBodySize", "u32", 36, checks={"allocation_body_size": "allocation_body_size < message_size"},
                column=Column("allocation_body_size", UINT32, "AllocationBodySize", default=0),
            ),
            WireField(
                "PrivacyLevel", "u32", 40, names=PRIVACY_NAMES,
                checks={
                    "privacy_level": (
                        f"{_none_of('privacy_level', PRIVACY_NAMES)} or (privacy_level == 0 "
                        f"and has(user_flags, 0x80000) and has(security_flags, {BODY_ENCRYPTED:#x}))"
                    ),
                },
                column=Column("privacy_level", UINT32, "PrivacyLevel: 0 none, 1 40-bit, 3 128-bit, 5 AES", default=0),
            ),
            WireField(
                "HashAlgorithm", "u32", 44, column=Column("hash_algorithm", UINT32, "HashAlgorithm", default=SHA_1),
                names=HASHES, checks={"hash_algorithm": _none_of("hash_algorithm", HASHES)},
            ),
            WireField(
                "EncryptionAlgorithm", "u32", 48,
                column=Column("encryption_algorithm", UINT32, "EncryptionAlgorithm", default=RC4), names=CIPHERS,
                checks={
                    "encryption_algorithm": (
                        f"{_none_of('encryption_algorithm', CIPHERS)} "
                        f"or (not ({_none_of('encryption_algorithm', _AES)}) "
                        "and (privacy_level == 1 or privacy_level == 3)) "
                        f"or (not ({_none_of('encryption_algorithm', (RC2, RC4))}) and privacy_level == 5)"
                    ),
                },
            ),
            WireField("ExtensionSize", "u32", 52, id="extension_size"),
            WireField("ExtensionData", "bytes", size="extension_size", column=Column(
                "extension_data", BYTES, "ExtensionData", store="parts.EXTENSION_DATA", default=b"",
            )),
            Column("extension_format", Enumeration(BODY_FORMATS), "kind of ExtensionData, by its bytes", derived=True),
            Column(
                "extension_text", UTF8,
                "ExtensionData as text, such as headers of NServiceBus and Rebus; null if it is empty or binary",
                bit="HAS_EXTENSION_TEXT", derived=True,
            ),
            WireField("MessageBody", "bytes", size="message_size", column=Column(
                "body", BYTES, "MessageBody", store="parts.BODY", default=b"",
            )),
            Column(
                "body_format", Enumeration(BODY_FORMATS), "kind of the body, by BodyType and its bytes", derived=True,
            ),
            Column(
                "body_text", UTF8,
                "the body as text, compound_body where MessageBody is empty; null if it is encrypted or binary",
                bit="HAS_BODY_TEXT", derived=True,
            ),
        ),
        when="has(user_flags, 0x200000)",
        presence="HAS_PROPERTIES",
        faults=("MessagePropertiesHeader",),
    ),
    Header("", (WireField("MessagePropertiesHeader padding", "pad", when="position < packet_size"),)),
    Header(
        "",
        (
            WireField(
                "DebugHeader.Flags", "u16", 0, id="debug_flags",
                checks={
                    "bad_flag": "bits(debug_flags, 0, 2) > 1",
                    "reserved_flags": f"has(debug_flags, {RESERVED_DEBUG:#x})",
                },
            ),
            WireField("DebugHeader.Reserved", "u16", 2),
        ),
        when="has(base_flags, 0x20)",
        faults=("DebugHeader",),
    ),
    Header(
        "DEBUG_QUEUE",
        (
            WireField("DebugHeader.QueueIdentifier", "guid", 0, column=Column(
                "debug_queue", GUID, "DebugHeader.QueueIdentifier: the queue for reports", default=None,
            )),
        ),
        when="has(base_flags, 0x20) and bits(debug_flags, 0, 2) == 1",
        presence="HAS_DEBUG_QUEUE",
    ),
    Header(
        "",
        (
            WireField(
                "further headers", "bytes", when="position < packet_size", size="packet_size - position",
                faults=("SRMPEnvelopeHeader.DataLength",),
            ),
        ),
    ),
    Header(
        "",
        (
            Column(
                "srmp_envelope", TEXT, "SRMPEnvelopeHeader.Data, to its first U+0000", store="parts.SRMP_ENVELOPE",
                default=None,
            ),
        ),
        presence="HAS_SRMP_ENVELOPE",
    ),
    Header(
        "COMPOUND",
        (
            Column("http_body", BYTES, "CompoundMessageHeader.Data, the HTTP request", store="parts.HTTP_BODY"),
            WireField("MessageBodySize", "u32", 8, column=Column(
                "message_body_size", UINT32, "CompoundMessageHeader.MessageBodySize",
            )),
            WireField("MessageBodyOffset", "u32", 12, column=Column(
                "message_body_offset", UINT32, "CompoundMessageHeader.MessageBodyOffset",
            )),
            Column("compound_body", BYTES, "the message body in http_body", store="parts.COMPOUND_BODY"),
        ),
        presence="HAS_COMPOUND",
        layout=None,
        faults=(
            "CompoundMessageHeader", "CompoundMessageHeader.HttpBodySize", "CompoundMessageHeader.MessageBodySize",
            "CompoundMessageHeader.MessageBodyOffset",
        ),
    ),
    Header(
        "",
        (
            Column("soap_header", TEXT, "SoapHeader.Header, to its first U+0000", store="parts.SOAP_HEADER"),
            Column("soap_body", TEXT, "SoapHeader.Body, to its first U+0000", store="parts.SOAP_BODY"),
        ),
        presence="HAS_SOAP",
        faults=("SoapHeader", "SoapHeader.Header", "SoapBody", "SoapBody.Body"),
    ),
    Header(
        "",
        (
            Column(
                "destination_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Destination",
                store="lists.DESTINATION_QUEUE",
            ),
            Column(
                "admin_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Administration", store="lists.ADMIN_QUEUE",
            ),
            Column(
                "response_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Response", store="lists.RESPONSE_QUEUE",
            ),
            Column(
                "multi_queue_signature", BYTES, "MultiQueueFormatHeader.Signature", store="parts.MULTI_QUEUE_SIGNATURE",
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
            replace(WINDOW_SIZE, column=Column("window_size", UINT16, "SessionHeader.WindowSize"), fills=""),
            WireField("SessionHeader.Reserved", "u16", 14),
        ),
        when="has(base_flags, 0x10)",
        presence="HAS_SESSION",
        faults=("SessionHeader",),
    ),
    Header(
        "ACKNOWLEDGED",
        (
            WireField("Acknowledged.TxSequenceID", "u64", 0, column=Column(
                "acknowledged_tx_sequence_id", UINT64, "acknowledgments: TxSequenceID of the body",
            )),
            WireField("Acknowledged.TxSequenceNumber", "u32", 8, column=Column(
                "acknowledged_tx_sequence_number", UINT32, "acknowledgments: TxSequenceNumber of the body",
            )),
            WireField("Acknowledged.PreviousTxSequenceNumber", "u32", 12, column=Column(
                "acknowledged_previous_tx_sequence_number", UINT32,
                "acknowledgments: TxPreviousSequenceNumber of the body",
            )),
        ),
        presence="HAS_ACKNOWLEDGED",
        layout=None,
    ),
    Header(
        "FINAL",
        (
            WireField("Acknowledged.SourceGUID", "guid", 16, column=Column(
                "acknowledged_source_queue_manager", GUID, "final acknowledgment: SourceGUID of the body",
            )),
            WireField("Acknowledged.MessageID", "u32", 32, column=Column(
                "acknowledged_message_id", UINT32, "final acknowledgment: MessageID of the body",
            )),
        ),
        presence="HAS_FINAL_ACK",
        layout=None,
    ),
    Header(
        "",
        (
            Column(
                "notification", Enumeration(NOTIFICATION_FORMS),
                "to the notify queue: whether its body, a change notification, can be read", store="codes.NOTIFICATION",
            ),
        ),
        presence="HAS_NOTIFICATION",
    ),
    Header(
        "",
        (
            Column("trailing", BYTES, "bytes that belong to no known header", store="parts.TRAILING"),
        ),
        presence="HAS_TRAILING",
    ),
)  # fmt: skip
