"""The columns of the messages and sessions tables, and the names that their faults and violations use.

[MS-MQMQ] 2.2.19-2.2.20 for messages, [MS-MQQB] 2.2 for what sessions are made of.
"""

from __future__ import annotations

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
    UTF8,
    Column,
    Enumeration,
    ListOf,
    Table,
)
from msmqwire.mqqb.kernel import Field, Presence, SessionPresence, Violation
from msmqwire.mqqb.message_classes import MESSAGE_CLASSES
from msmqwire.mqqb.readable import BODY_FORMATS, BODY_TYPES
from msmqwire.mqqb.rules import rules_of
from msmqwire.mqqb.sessions import SessionViolation

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
    "TRANSPORTS",
    "SessionViolation",
    "Violation",
]

FIELDS = tuple([field.name.replace("_", ".") for field in Field])
TRANSPORTS = ("unknown", "udp", "tcp")

KINDS = ("user_message", "order_ack", "final_ack")
SESSION_KINDS = ("ping", "establish_connection", "connection_parameters", "session_ack")
DELIVERY_MODES = ("express", "recoverable")
SENDER_ID_TYPES = ("none", "sid", "queue_manager")
NOTIFICATION_FORMS = ("plain", "encrypted")

MESSAGES = Table(
    name="messages",
    section="[MS-MQMQ] 2.2.20",
    columns=(
        Column("kind", Enumeration(KINDS), "an application's message, or an OrderAck or FinalAck packet"),
        Column("packet_size", UINT32, "PacketSize: bytes without the SessionHeader after them"),
        Column("priority", UINT8, "BaseHeader.Flags.PR, 0 to 7"),
        Column("tracing", BOOL, "BaseHeader.Flags.TR"),
        Column("base_flags", UINT16, "BaseHeader.Flags as received"),
        Column("time_to_reach_queue", UINT32, "TimeToReachQueue in seconds; 4294967295 is for ever"),
        Column("source_queue_manager", GUID, "SourceQueueManager"),
        Column("queue_manager_address", GUID, "QueueManagerAddress: the destination's, zeros for a direct name"),
        Column("time_to_be_received", UINT32, "TimeToBeReceived in seconds; 4294967295 is for ever"),
        Column("sent_time", TIMESTAMP, "SentTime, to the second"),
        Column("message_id", UINT32, "MessageID"),
        Column("hop_count", UINT8, "UserHeader.Flags.RC"),
        Column(
            "delivery_mode",
            Enumeration(DELIVERY_MODES),
            "UserHeader.Flags.DM; null if neither",
            Presence.HAS_DELIVERY_MODE,
        ),
        Column("negative_source_journaling", BOOL, "UserHeader.Flags.JN"),
        Column("positive_source_journaling", BOOL, "UserHeader.Flags.JP"),
        Column("sent_over_http", BOOL, "UserHeader.Flags.AH"),
        Column("user_flags", UINT32, "UserHeader.Flags as received"),
        Column("destination_queue", FORMAT_NAME, "DestinationQueue", Presence.HAS_DESTINATION),
        Column("admin_queue", FORMAT_NAME, "AdminQueue: where acknowledgments go", Presence.HAS_ADMIN),
        Column("response_queue", FORMAT_NAME, "ResponseQueue: where answers go", Presence.HAS_RESPONSE),
        Column("connector_type", GUID, "ConnectorType", Presence.HAS_CONNECTOR_TYPE),
        Column(
            "first_message", BOOL, "TransactionHeader.Flags.FM: the first of its transaction", Presence.HAS_TRANSACTION
        ),
        Column(
            "last_message", BOOL, "TransactionHeader.Flags.LM: the last of its transaction", Presence.HAS_TRANSACTION
        ),
        Column("final_ack_required", BOOL, "TransactionHeader.Flags.FA", Presence.HAS_TRANSACTION),
        Column("transaction_id", UINT32, "TransactionHeader.Flags.ID, 20 bits", Presence.HAS_TRANSACTION),
        Column(
            "tx_sequence_id",
            UINT64,
            "TxSequenceID: ordinal in the low half, time stamp in the high",
            Presence.HAS_TRANSACTION,
        ),
        Column("transaction_flags", UINT32, "TransactionHeader.Flags as received", Presence.HAS_TRANSACTION),
        Column("tx_sequence_number", UINT32, "TxSequenceNumber, from 1", Presence.HAS_TRANSACTION),
        Column("previous_tx_sequence_number", UINT32, "PreviousTxSequenceNumber, 0 for none", Presence.HAS_TRANSACTION),
        Column("connector_queue_manager", GUID, "ConnectorQMGuid", Presence.HAS_CONNECTOR_QM),
        Column(
            "security_flags", UINT16, "SecurityHeader.Flags as received: a sender can set any", Presence.HAS_SECURITY
        ),
        Column(
            "sender_id_type",
            Enumeration(SENDER_ID_TYPES),
            "SecurityHeader.Flags.ST; null if another",
            Presence.HAS_SENDER_ID_TYPE,
        ),
        Column("body_encrypted", BOOL, "SecurityHeader.Flags.EB", Presence.HAS_SECURITY),
        Column("security_id", BYTES, "SecurityID: a SID, or the GUID of a queue manager", Presence.HAS_SECURITY_ID),
        Column(
            "sender_sid",
            UTF8,
            "SecurityID as text, S-1-...; null if it is not a valid SID",
            Presence.HAS_SENDER_SID,
            derived=True,
        ),
        Column("encryption_key", BYTES, "EncryptionKey", Presence.HAS_ENCRYPTION_KEY),
        Column("signature", BYTES, "SecurityData.Signature; it has not been verified", Presence.HAS_SIGNATURE),
        Column("sender_certificate", BYTES, "SenderCert", Presence.HAS_SENDER_CERT),
        Column("provider_info", BYTES, "ProviderInfo", Presence.HAS_PROVIDER_INFO),
        Column("positive_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.PA", Presence.HAS_PROPERTIES),
        Column("positive_receive_ack", BOOL, "MessagePropertiesHeader.Flags.PR", Presence.HAS_PROPERTIES),
        Column("negative_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.NA", Presence.HAS_PROPERTIES),
        Column("negative_receive_ack", BOOL, "MessagePropertiesHeader.Flags.NR", Presence.HAS_PROPERTIES),
        Column("properties_flags", UINT8, "MessagePropertiesHeader.Flags as received", Presence.HAS_PROPERTIES),
        Column("label", TEXT, "Label, to its first U+0000", Presence.HAS_PROPERTIES),
        Column("message_class", UINT16, "MessageClass", Presence.HAS_PROPERTIES),
        Column(
            "message_class_name",
            Enumeration(tuple(MESSAGE_CLASSES.values())),
            "MessageClass by name, without MQMSG_CLASS_; null if it has none",
            Presence.HAS_MESSAGE_CLASS,
        ),
        Column(
            "correlation_guid",
            GUID,
            "CorrelationID, the first 16 bytes: of an acknowledgment the source",
            Presence.HAS_PROPERTIES,
        ),
        Column(
            "correlation_ordinal",
            UINT32,
            "CorrelationID, the last 4 bytes: of an acknowledgment the MessageID",
            Presence.HAS_PROPERTIES,
        ),
        Column("body_type", UINT32, "BodyType, a VARTYPE", Presence.HAS_PROPERTIES),
        Column(
            "body_type_name",
            Enumeration(tuple(BODY_TYPES.values())),
            "BodyType by name; null if it has none",
            Presence.HAS_BODY_TYPE_NAME,
            derived=True,
        ),
        Column("application_tag", UINT32, "ApplicationTag", Presence.HAS_PROPERTIES),
        Column("message_size", UINT32, "MessageSize, the bytes of the body", Presence.HAS_PROPERTIES),
        Column("allocation_body_size", UINT32, "AllocationBodySize", Presence.HAS_PROPERTIES),
        Column("privacy_level", UINT32, "PrivacyLevel: 0 none, 1 40-bit, 3 128-bit, 5 AES", Presence.HAS_PROPERTIES),
        Column("hash_algorithm", UINT32, "HashAlgorithm", Presence.HAS_PROPERTIES),
        Column("encryption_algorithm", UINT32, "EncryptionAlgorithm", Presence.HAS_PROPERTIES),
        Column("extension_data", BYTES, "ExtensionData", Presence.HAS_PROPERTIES),
        Column("body", BYTES, "MessageBody", Presence.HAS_PROPERTIES),
        Column(
            "body_format",
            Enumeration(BODY_FORMATS),
            "kind of the body, by BodyType and its bytes",
            Presence.HAS_PROPERTIES,
            derived=True,
        ),
        Column(
            "body_text",
            UTF8,
            "the body as text, compound_body where MessageBody is empty; null if it is encrypted or binary",
            Presence.HAS_BODY_TEXT,
            derived=True,
        ),
        Column("debug_queue", GUID, "DebugHeader.QueueIdentifier: the queue for reports", Presence.HAS_DEBUG_QUEUE),
        Column("srmp_envelope", TEXT, "SRMPEnvelopeHeader.Data, to its first U+0000", Presence.HAS_SRMP_ENVELOPE),
        Column("http_body", BYTES, "CompoundMessageHeader.Data, the HTTP request", Presence.HAS_COMPOUND),
        Column("message_body_size", UINT32, "CompoundMessageHeader.MessageBodySize", Presence.HAS_COMPOUND),
        Column("message_body_offset", UINT32, "CompoundMessageHeader.MessageBodyOffset", Presence.HAS_COMPOUND),
        Column("compound_body", BYTES, "the message body in http_body", Presence.HAS_COMPOUND),
        Column("soap_header", TEXT, "SoapHeader.Header, to its first U+0000", Presence.HAS_SOAP),
        Column("soap_body", TEXT, "SoapHeader.Body, to its first U+0000", Presence.HAS_SOAP),
        Column(
            "destination_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Destination", Presence.HAS_MULTI_QUEUE
        ),
        Column("admin_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Administration", Presence.HAS_MULTI_QUEUE),
        Column("response_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Response", Presence.HAS_MULTI_QUEUE),
        Column("multi_queue_signature", BYTES, "MultiQueueFormatHeader.Signature", Presence.HAS_MULTI_QUEUE),
        Column("ack_sequence_number", UINT16, "SessionHeader.AckSequenceNumber", Presence.HAS_SESSION),
        Column(
            "recoverable_msg_ack_seq_number", UINT16, "SessionHeader.RecoverableMsgAckSeqNumber", Presence.HAS_SESSION
        ),
        Column("recoverable_msg_ack_flags", UINT32, "SessionHeader.RecoverableMsgAckFlags", Presence.HAS_SESSION),
        Column("user_msg_sequence_number", UINT16, "SessionHeader.UserMsgSequenceNumber", Presence.HAS_SESSION),
        Column("recoverable_msg_seq_number", UINT16, "SessionHeader.RecoverableMsgSeqNumber", Presence.HAS_SESSION),
        Column("window_size", UINT16, "SessionHeader.WindowSize", Presence.HAS_SESSION),
        Column(
            "acknowledged_tx_sequence_id",
            UINT64,
            "acknowledgments: TxSequenceID of the body",
            Presence.HAS_ACKNOWLEDGED,
        ),
        Column(
            "acknowledged_tx_sequence_number",
            UINT32,
            "acknowledgments: TxSequenceNumber of the body",
            Presence.HAS_ACKNOWLEDGED,
        ),
        Column(
            "acknowledged_previous_tx_sequence_number",
            UINT32,
            "acknowledgments: TxPreviousSequenceNumber of the body",
            Presence.HAS_ACKNOWLEDGED,
        ),
        Column(
            "acknowledged_source_queue_manager",
            GUID,
            "final acknowledgment: SourceGUID of the body",
            Presence.HAS_FINAL_ACK,
        ),
        Column(
            "acknowledged_message_id", UINT32, "final acknowledgment: MessageID of the body", Presence.HAS_FINAL_ACK
        ),
        Column(
            "notification",
            Enumeration(NOTIFICATION_FORMS),
            "to the notify queue: whether its body, a change notification, can be read",
            Presence.HAS_NOTIFICATION,
        ),
        Column("trailing", BYTES, "bytes that belong to no known header", Presence.HAS_TRAILING),
    ),
    fields=FIELDS,
    violations=Violation,
    rules=rules_of(Violation),
)

SESSIONS = Table(
    name="sessions",
    section="[MS-MQQB] 2.2",
    columns=(
        Column("kind", Enumeration(SESSION_KINDS), "which packet"),
        Column("packet_size", UINT32, "PacketSize; null for a ping", SessionPresence.IS_PACKET),
        Column("base_flags", UINT16, "BaseHeader.Flags as received", SessionPresence.IS_PACKET),
        Column("internal_flags", UINT16, "InternalHeader.Flags as received", SessionPresence.IS_PACKET),
        Column("cookie", UINT32, "ping: Cookie, which the answer repeats", SessionPresence.IS_PING),
        Column("queue_manager", GUID, "ping: QMGuid", SessionPresence.IS_PING),
        Column("initiator_is_client", BOOL, "ping: Flags.RC, the initiator is not a server", SessionPresence.IS_PING),
        Column("refused", BOOL, "ping: Flags.RF; else InternalHeader.Flags.CS"),
        Column("client_guid", GUID, "connection: ClientGuid", SessionPresence.IS_ESTABLISH),
        Column("server_guid", GUID, "connection: ServerGuid, zeros for a direct name", SessionPresence.IS_ESTABLISH),
        Column("time_stamp", UINT32, "connection: TimeStamp in milliseconds", SessionPresence.IS_ESTABLISH),
        Column("operating_system", UINT16, "connection: OperatingSystem", SessionPresence.IS_ESTABLISH),
        Column(
            "recoverable_ack_timeout",
            UINT32,
            "parameters: RecoverableAckTimeout in milliseconds",
            SessionPresence.IS_PARAMETERS,
        ),
        Column("ack_timeout", UINT32, "parameters: AckTimeout in milliseconds", SessionPresence.IS_PARAMETERS),
        Column(
            "window_size", UINT16, "parameters and acknowledgment: WindowSize in messages", SessionPresence.HAS_WINDOW
        ),
        Column("ack_sequence_number", UINT16, "acknowledgment: AckSequenceNumber", SessionPresence.IS_SESSION_ACK),
        Column(
            "recoverable_msg_ack_seq_number",
            UINT16,
            "acknowledgment: RecoverableMsgAckSeqNumber",
            SessionPresence.IS_SESSION_ACK,
        ),
        Column(
            "recoverable_msg_ack_flags",
            UINT32,
            "acknowledgment: RecoverableMsgAckFlags",
            SessionPresence.IS_SESSION_ACK,
        ),
        Column(
            "user_msg_sequence_number", UINT16, "acknowledgment: UserMsgSequenceNumber", SessionPresence.IS_SESSION_ACK
        ),
        Column(
            "recoverable_msg_seq_number",
            UINT16,
            "acknowledgment: RecoverableMsgSeqNumber",
            SessionPresence.IS_SESSION_ACK,
        ),
        Column("trailing", BYTES, "bytes that belong to no known field", SessionPresence.HAS_TRAILING_BYTES),
    ),
    fields=FIELDS,
    violations=SessionViolation,
    rules=rules_of(SessionViolation),
)
