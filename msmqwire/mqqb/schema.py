"""The columns of the messages and sessions tables, and the names that their faults and violations use.

[MS-MQMQ] 2.2.19-2.2.20 for messages, [MS-MQQB] 2.2 for what sessions are made of.
"""

from __future__ import annotations

from enum import IntFlag

from msmqwire.columns.schema import (
    BOOL,
    BYTES,
    FORMAT_NAME,
    GUID,
    TEXT,
    TIMESTAMP,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Column,
    Enumeration,
    ListOf,
    Table,
)

__all__ = [
    "DELIVERY_MODES",
    "FIELDS",
    "KINDS",
    "MESSAGES",
    "MESSAGE_CLASSES",
    "NOTIFICATION_FORMS",
    "SENDER_ID_TYPES",
    "SESSIONS",
    "SESSION_KINDS",
    "SessionViolation",
    "Violation",
]

# In the order of the enumeration Field in fields.pxd
FIELDS = (
    "BaseHeader",
    "VersionNumber",
    "BaseHeader.Flags",
    "Signature",
    "PacketSize",
    "InternalHeader",
    "InternalHeader.Flags",
    "EstablishConnectionHeader",
    "ConnectionParametersHeader",
    "SessionHeader",
    "Ping",
    "Ping.Signature",
    "UserHeader",
    "UserHeader.Flags",
    "DestinationQueue",
    "AdminQueue",
    "ResponseQueue",
    "ConnectorType",
    "TransactionHeader",
    "ConnectorQMGuid",
    "SecurityHeader",
    "SecurityHeader.SenderCertSize",
    "SecurityID",
    "EncryptionKey",
    "SecurityData.Signature",
    "SenderCert",
    "ProviderInfo",
    "MessagePropertiesHeader",
    "LabelLength",
    "Label",
    "ExtensionData",
    "MessageBody",
    "DebugHeader",
    "DebugHeader.Flags",
    "DebugHeader.QueueIdentifier",
    "SoapHeader",
    "SoapHeader.Header",
    "SoapBody",
    "SoapBody.Body",
    "Destination",
    "Destination.HeaderSize",
    "Destination.HeaderID",
    "Destination.FormatNameList",
    "Administration",
    "Administration.HeaderSize",
    "Administration.HeaderID",
    "Administration.FormatNameList",
    "Response",
    "Response.HeaderSize",
    "Response.HeaderID",
    "Response.FormatNameList",
    "MQFSignatureHeader",
    "MQFSignatureHeader.ID",
    "MQFSignatureHeader.Signature",
)

KINDS = ("user_message", "order_ack", "final_ack")
SESSION_KINDS = ("ping", "establish_connection", "connection_parameters", "session_ack")
DELIVERY_MODES = ("express", "recoverable")
SENDER_ID_TYPES = ("none", "sid", "queue_manager")
NOTIFICATION_FORMS = ("plain", "encrypted")

# [MS-MQMQ] 2.2.18.1.6, without MQMSG_CLASS_
MESSAGE_CLASSES = {
    0x0000: "normal",
    0x0001: "report",
    0x0002: "ack_reach_queue",
    0x00FF: "order_ack",
    0x4000: "ack_receive",
    0x8000: "nack_bad_dst_q",
    0x8001: "nack_deleted",
    0x8002: "nack_reach_queue_timeout",
    0x8003: "nack_q_exceed_quota",
    0x8004: "nack_access_denied",
    0x8005: "nack_hop_count_exceeded",
    0x8006: "nack_bad_signature",
    0x8007: "nack_bad_encryption",
    0x8009: "nack_not_transactional_q",
    0x800A: "nack_not_transactional_msg",
    0x800B: "nack_unsupported_crypto_provider",
    0xC000: "nack_q_deleted",
    0xC001: "nack_q_purged",
    0xC002: "nack_receive_timeout",
    0xC004: "nack_receive_rejected",
}

# The bits of a row's presence above DECODED, as fields.pxd has them
DELIVERY_MODE, DESTINATION, ADMIN, RESPONSE = 1 << 1, 1 << 2, 1 << 3, 1 << 4
CONNECTOR_TYPE, TRANSACTION, CONNECTOR_QM = 1 << 5, 1 << 6, 1 << 7
SECURITY, SENDER_ID_TYPE, SECURITY_ID, ENCRYPTION_KEY = 1 << 8, 1 << 9, 1 << 10, 1 << 11
SIGNATURE, SENDER_CERT, PROVIDER_INFO = 1 << 12, 1 << 13, 1 << 14
PROPERTIES, MESSAGE_CLASS, DEBUG_QUEUE, SOAP, MULTI_QUEUE = 1 << 15, 1 << 16, 1 << 17, 1 << 18, 1 << 19
SESSION, ACKNOWLEDGED, FINAL_ACK, NOTIFICATION = 1 << 20, 1 << 21, 1 << 22, 1 << 23

# and those of the sessions table
PACKET, PING, ESTABLISH, PARAMETERS, SESSION_ACK, WINDOW = 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6


class Violation(IntFlag):
    """Bits of the ``violations`` column of the messages table; with ``strict=True`` the first four are faults."""

    TRAILING_BYTES = 1
    MISSING_PROPERTIES = 2
    DELIVERY_MODE = 4
    EXPRESS_TRANSACTION = 8
    HOP_COUNT = 16
    TRANSACTION_PRIORITY = 32
    TX_SEQUENCE_NUMBER = 64
    SECURITY_FLAGS = 128
    SENDER_ID = 256
    NO_SECURITY_DATA = 512
    LABEL_TERMINATOR = 1024
    ALLOCATION_BODY_SIZE = 2048
    PRIVACY_LEVEL = 4096
    UNRESOLVED_QUEUE = 8192


class SessionViolation(IntFlag):
    """Bits of the ``violations`` column of the sessions table; with ``strict=True`` the first is a fault."""

    TRAILING_BYTES = 1
    TIMEOUT_RANGE = 2
    OPERATING_SYSTEM = 4
    TIME_TO_REACH_QUEUE = 8


MESSAGES = Table(
    name="messages",
    section="[MS-MQMQ] 2.2.20",
    columns=(
        Column(
            "kind", Enumeration(KINDS), "an application's message, or what stands for the OrderAck or FinalAck packet"
        ),
        Column("packet_size", UINT32, "PacketSize: bytes without a SessionHeader behind them"),
        Column("priority", UINT8, "BaseHeader.Flags.PR, 0 to 7"),
        Column("tracing", BOOL, "BaseHeader.Flags.TR"),
        Column("time_to_reach_queue", UINT32, "TimeToReachQueue in seconds; 4294967295 is for ever"),
        Column("source_queue_manager", GUID, "SourceQueueManager"),
        Column("queue_manager_address", GUID, "QueueManagerAddress: the destination's, zeros for a direct name"),
        Column("time_to_be_received", UINT32, "TimeToBeReceived in seconds; 4294967295 is for ever"),
        Column("sent_time", TIMESTAMP, "SentTime, to the second"),
        Column("message_id", UINT32, "MessageID"),
        Column("hop_count", UINT8, "UserHeader.Flags.RC"),
        Column("delivery_mode", Enumeration(DELIVERY_MODES), "UserHeader.Flags.DM; null if neither", DELIVERY_MODE),
        Column("negative_source_journaling", BOOL, "UserHeader.Flags.JN"),
        Column("positive_source_journaling", BOOL, "UserHeader.Flags.JP"),
        Column("sent_over_http", BOOL, "UserHeader.Flags.AH"),
        Column("destination_queue", FORMAT_NAME, "DestinationQueue", DESTINATION),
        Column("admin_queue", FORMAT_NAME, "AdminQueue: where acknowledgments go", ADMIN),
        Column("response_queue", FORMAT_NAME, "ResponseQueue: where answers go", RESPONSE),
        Column("connector_type", GUID, "ConnectorType", CONNECTOR_TYPE),
        Column("first_message", BOOL, "TransactionHeader.Flags.FM: the first of its transaction", TRANSACTION),
        Column("last_message", BOOL, "TransactionHeader.Flags.LM: the last of its transaction", TRANSACTION),
        Column("final_ack_required", BOOL, "TransactionHeader.Flags.FA", TRANSACTION),
        Column("transaction_id", UINT32, "TransactionHeader.Flags.ID, 20 bits", TRANSACTION),
        Column("tx_sequence_id", UINT64, "TxSequenceID: ordinal in the low half, time stamp in the high", TRANSACTION),
        Column("tx_sequence_number", UINT32, "TxSequenceNumber, from 1", TRANSACTION),
        Column("previous_tx_sequence_number", UINT32, "PreviousTxSequenceNumber, 0 for none", TRANSACTION),
        Column("connector_queue_manager", GUID, "ConnectorQMGuid", CONNECTOR_QM),
        Column("security_flags", UINT16, "SecurityHeader.Flags as received: a sender can set any", SECURITY),
        Column(
            "sender_id_type", Enumeration(SENDER_ID_TYPES), "SecurityHeader.Flags.ST; null if another", SENDER_ID_TYPE
        ),
        Column("body_encrypted", BOOL, "SecurityHeader.Flags.EB", SECURITY),
        Column("security_id", BYTES, "SecurityID: a SID, or the GUID of a queue manager", SECURITY_ID),
        Column("encryption_key", BYTES, "EncryptionKey", ENCRYPTION_KEY),
        Column("signature", BYTES, "SecurityData.Signature; nobody has verified it", SIGNATURE),
        Column("sender_certificate", BYTES, "SenderCert", SENDER_CERT),
        Column("provider_info", BYTES, "ProviderInfo", PROVIDER_INFO),
        Column("positive_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.PA", PROPERTIES),
        Column("positive_receive_ack", BOOL, "MessagePropertiesHeader.Flags.PR", PROPERTIES),
        Column("negative_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.NA", PROPERTIES),
        Column("negative_receive_ack", BOOL, "MessagePropertiesHeader.Flags.NR", PROPERTIES),
        Column("label", TEXT, "Label, to its first U+0000", PROPERTIES),
        Column("message_class", UINT16, "MessageClass", PROPERTIES),
        Column(
            "message_class_name",
            Enumeration(tuple(MESSAGE_CLASSES.values())),
            "MessageClass by name, without MQMSG_CLASS_; null if it has none",
            MESSAGE_CLASS,
        ),
        Column(
            "correlation_guid", GUID, "CorrelationID, the first 16 bytes: of an acknowledgment the source", PROPERTIES
        ),
        Column(
            "correlation_ordinal",
            UINT32,
            "CorrelationID, the last 4 bytes: of an acknowledgment the MessageID",
            PROPERTIES,
        ),
        Column("body_type", UINT32, "BodyType, a VARTYPE", PROPERTIES),
        Column("application_tag", UINT32, "ApplicationTag", PROPERTIES),
        Column("message_size", UINT32, "MessageSize, the bytes of the body", PROPERTIES),
        Column("allocation_body_size", UINT32, "AllocationBodySize", PROPERTIES),
        Column("privacy_level", UINT32, "PrivacyLevel: 0 none, 1 40-bit, 3 128-bit, 5 AES", PROPERTIES),
        Column("hash_algorithm", UINT32, "HashAlgorithm", PROPERTIES),
        Column("encryption_algorithm", UINT32, "EncryptionAlgorithm", PROPERTIES),
        Column("extension_data", BYTES, "ExtensionData", PROPERTIES),
        Column("body", BYTES, "MessageBody", PROPERTIES),
        Column("debug_queue", GUID, "DebugHeader.QueueIdentifier: the queue for reports", DEBUG_QUEUE),
        Column("soap_header", TEXT, "SoapHeader.Header, to its first U+0000", SOAP),
        Column("soap_body", TEXT, "SoapHeader.Body, to its first U+0000", SOAP),
        Column("destination_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Destination", MULTI_QUEUE),
        Column("admin_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Administration", MULTI_QUEUE),
        Column("response_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Response", MULTI_QUEUE),
        Column("multi_queue_signature", BYTES, "MultiQueueFormatHeader.Signature", MULTI_QUEUE),
        Column("ack_sequence_number", UINT16, "SessionHeader.AckSequenceNumber", SESSION),
        Column("recoverable_msg_ack_seq_number", UINT16, "SessionHeader.RecoverableMsgAckSeqNumber", SESSION),
        Column("recoverable_msg_ack_flags", UINT32, "SessionHeader.RecoverableMsgAckFlags", SESSION),
        Column("user_msg_sequence_number", UINT16, "SessionHeader.UserMsgSequenceNumber", SESSION),
        Column("recoverable_msg_seq_number", UINT16, "SessionHeader.RecoverableMsgSeqNumber", SESSION),
        Column("window_size", UINT16, "SessionHeader.WindowSize", SESSION),
        Column("acknowledged_tx_sequence_id", UINT64, "acknowledgments: TxSequenceID of the body", ACKNOWLEDGED),
        Column(
            "acknowledged_tx_sequence_number", UINT32, "acknowledgments: TxSequenceNumber of the body", ACKNOWLEDGED
        ),
        Column(
            "acknowledged_previous_tx_sequence_number",
            UINT32,
            "acknowledgments: TxPreviousSequenceNumber of the body",
            ACKNOWLEDGED,
        ),
        Column("acknowledged_source_queue_manager", GUID, "final acknowledgment: SourceGUID of the body", FINAL_ACK),
        Column("acknowledged_message_id", UINT32, "final acknowledgment: MessageID of the body", FINAL_ACK),
        Column(
            "notification",
            Enumeration(NOTIFICATION_FORMS),
            "to the notify queue: whether its body, a change notification, can be read",
            NOTIFICATION,
        ),
    ),
    fields=FIELDS,
    violations=Violation,
)

SESSIONS = Table(
    name="sessions",
    section="[MS-MQQB] 2.2",
    columns=(
        Column("kind", Enumeration(SESSION_KINDS), "which packet"),
        Column("packet_size", UINT32, "PacketSize; null for a ping", PACKET),
        Column("cookie", UINT32, "ping: Cookie, which the answer repeats", PING),
        Column("queue_manager", GUID, "ping: QMGuid", PING),
        Column("initiator_is_client", BOOL, "ping: Flags.RC, the initiator is not a server", PING),
        Column("refused", BOOL, "ping: Flags.RF; else InternalHeader.Flags.CS"),
        Column("client_guid", GUID, "connection: ClientGuid", ESTABLISH),
        Column("server_guid", GUID, "connection: ServerGuid, zeros for a direct name", ESTABLISH),
        Column("time_stamp", UINT32, "connection: TimeStamp in milliseconds", ESTABLISH),
        Column("operating_system", UINT16, "connection: OperatingSystem", ESTABLISH),
        Column("recoverable_ack_timeout", UINT32, "parameters: RecoverableAckTimeout in milliseconds", PARAMETERS),
        Column("ack_timeout", UINT32, "parameters: AckTimeout in milliseconds", PARAMETERS),
        Column("window_size", UINT16, "parameters and acknowledgment: WindowSize in messages", WINDOW),
        Column("ack_sequence_number", UINT16, "acknowledgment: AckSequenceNumber", SESSION_ACK),
        Column("recoverable_msg_ack_seq_number", UINT16, "acknowledgment: RecoverableMsgAckSeqNumber", SESSION_ACK),
        Column("recoverable_msg_ack_flags", UINT32, "acknowledgment: RecoverableMsgAckFlags", SESSION_ACK),
        Column("user_msg_sequence_number", UINT16, "acknowledgment: UserMsgSequenceNumber", SESSION_ACK),
        Column("recoverable_msg_seq_number", UINT16, "acknowledgment: RecoverableMsgSeqNumber", SESSION_ACK),
    ),
    fields=FIELDS,
    violations=SessionViolation,
)
