"""The columns of the messages and sessions tables, and the names that their faults and violations use.

[MS-MQMQ] 2.2.19-2.2.20 for messages, [MS-MQQB] 2.2 for the packets of sessions.
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
    present,
)
from msmqwire.mqqb.kernel import Field, Presence, SessionPresence, Violation
from msmqwire.mqqb.message_classes import MESSAGE_CLASSES
from msmqwire.mqqb.readable import BODY_FORMATS, BODY_TYPES
from msmqwire.mqqb.rules import rules_of
from msmqwire.mqqb.sessions import SessionViolation
from msmqwire.wire.transport import Transport

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
TRANSPORTS = {"unknown": Transport.UNKNOWN.value, "udp": Transport.UDP.value, "tcp": Transport.TCP.value}

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
        Column("debug_header", BOOL, "BaseHeader.Flags.DH: whether there is a DebugHeader, with or without a queue"),
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
        *present(
            Presence.HAS_TRANSACTION,
            Column("first_message", BOOL, "TransactionHeader.Flags.FM: the first of its transaction"),
            Column("last_message", BOOL, "TransactionHeader.Flags.LM: the last of its transaction"),
            Column("final_ack_required", BOOL, "TransactionHeader.Flags.FA"),
            Column("transaction_id", UINT32, "TransactionHeader.Flags.ID, 20 bits"),
            Column("tx_sequence_id", UINT64, "TxSequenceID: ordinal in the low half, time stamp in the high"),
            Column("transaction_flags", UINT32, "TransactionHeader.Flags as received"),
            Column("tx_sequence_number", UINT32, "TxSequenceNumber, from 1"),
            Column("previous_tx_sequence_number", UINT32, "PreviousTxSequenceNumber, 0 for none"),
        ),
        Column("connector_queue_manager", GUID, "ConnectorQMGuid", Presence.HAS_CONNECTOR_QM),
        *present(
            Presence.HAS_SECURITY,
            Column("security_flags", UINT16, "SecurityHeader.Flags as received: a sender can set any"),
            Column(
                "sender_id_type",
                Enumeration(SENDER_ID_TYPES),
                "SecurityHeader.Flags.ST; null if another",
                Presence.HAS_SENDER_ID_TYPE,
            ),
            Column("body_encrypted", BOOL, "SecurityHeader.Flags.EB"),
        ),
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
        *present(
            Presence.HAS_PROPERTIES,
            Column("positive_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.PA"),
            Column("positive_receive_ack", BOOL, "MessagePropertiesHeader.Flags.PR"),
            Column("negative_arrival_ack", BOOL, "MessagePropertiesHeader.Flags.NA"),
            Column("negative_receive_ack", BOOL, "MessagePropertiesHeader.Flags.NR"),
            Column("properties_flags", UINT8, "MessagePropertiesHeader.Flags as received"),
            Column("label", TEXT, "Label, to its first U+0000"),
            Column("message_class", UINT16, "MessageClass"),
            Column(
                "message_class_name",
                Enumeration(tuple(MESSAGE_CLASSES.values())),
                "MessageClass by name, without MQMSG_CLASS_; null if it has none",
                Presence.HAS_MESSAGE_CLASS,
            ),
            Column("correlation_guid", GUID, "CorrelationID, the first 16 bytes: of an acknowledgment the source"),
            Column(
                "correlation_ordinal", UINT32, "CorrelationID, the last 4 bytes: of an acknowledgment the MessageID"
            ),
            Column("body_type", UINT32, "BodyType, a VARTYPE"),
            Column(
                "body_type_name",
                Enumeration(tuple(BODY_TYPES.values())),
                "BodyType by name; null if it has none",
                Presence.HAS_BODY_TYPE_NAME,
                derived=True,
            ),
            Column("application_tag", UINT32, "ApplicationTag"),
            Column("message_size", UINT32, "MessageSize, the bytes of the body"),
            Column("allocation_body_size", UINT32, "AllocationBodySize"),
            Column("privacy_level", UINT32, "PrivacyLevel: 0 none, 1 40-bit, 3 128-bit, 5 AES"),
            Column("hash_algorithm", UINT32, "HashAlgorithm"),
            Column("encryption_algorithm", UINT32, "EncryptionAlgorithm"),
            Column("extension_data", BYTES, "ExtensionData"),
            Column("body", BYTES, "MessageBody"),
            Column(
                "body_format", Enumeration(BODY_FORMATS), "kind of the body, by BodyType and its bytes", derived=True
            ),
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
        *present(
            Presence.HAS_COMPOUND,
            Column("http_body", BYTES, "CompoundMessageHeader.Data, the HTTP request"),
            Column("message_body_size", UINT32, "CompoundMessageHeader.MessageBodySize"),
            Column("message_body_offset", UINT32, "CompoundMessageHeader.MessageBodyOffset"),
            Column("compound_body", BYTES, "the message body in http_body"),
        ),
        *present(
            Presence.HAS_SOAP,
            Column("soap_header", TEXT, "SoapHeader.Header, to its first U+0000"),
            Column("soap_body", TEXT, "SoapHeader.Body, to its first U+0000"),
        ),
        *present(
            Presence.HAS_MULTI_QUEUE,
            Column("destination_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Destination"),
            Column("admin_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Administration"),
            Column("response_queues", ListOf(FORMAT_NAME), "MultiQueueFormatHeader.Response"),
            Column("multi_queue_signature", BYTES, "MultiQueueFormatHeader.Signature"),
        ),
        *present(
            Presence.HAS_SESSION,
            Column("ack_sequence_number", UINT16, "SessionHeader.AckSequenceNumber"),
            Column("recoverable_msg_ack_seq_number", UINT16, "SessionHeader.RecoverableMsgAckSeqNumber"),
            Column("recoverable_msg_ack_flags", UINT32, "SessionHeader.RecoverableMsgAckFlags"),
            Column("user_msg_sequence_number", UINT16, "SessionHeader.UserMsgSequenceNumber"),
            Column("recoverable_msg_seq_number", UINT16, "SessionHeader.RecoverableMsgSeqNumber"),
            Column("window_size", UINT16, "SessionHeader.WindowSize"),
        ),
        *present(
            Presence.HAS_ACKNOWLEDGED,
            Column("acknowledged_tx_sequence_id", UINT64, "acknowledgments: TxSequenceID of the body"),
            Column("acknowledged_tx_sequence_number", UINT32, "acknowledgments: TxSequenceNumber of the body"),
            Column(
                "acknowledged_previous_tx_sequence_number",
                UINT32,
                "acknowledgments: TxPreviousSequenceNumber of the body",
            ),
        ),
        *present(
            Presence.HAS_FINAL_ACK,
            Column("acknowledged_source_queue_manager", GUID, "final acknowledgment: SourceGUID of the body"),
            Column("acknowledged_message_id", UINT32, "final acknowledgment: MessageID of the body"),
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
        *present(
            SessionPresence.IS_PACKET,
            Column("packet_size", UINT32, "PacketSize; null for a ping"),
            Column("base_flags", UINT16, "BaseHeader.Flags as received"),
            Column("internal_flags", UINT16, "InternalHeader.Flags as received"),
        ),
        *present(
            SessionPresence.IS_PING,
            Column("cookie", UINT32, "ping: Cookie, which the answer repeats"),
            Column("queue_manager", GUID, "ping: QMGuid"),
            Column("initiator_is_client", BOOL, "ping: Flags.RC, the initiator is not a server"),
        ),
        Column("refused", BOOL, "ping: Flags.RF; else InternalHeader.Flags.CS"),
        *present(
            SessionPresence.IS_ESTABLISH,
            Column("client_guid", GUID, "connection: ClientGuid"),
            Column("server_guid", GUID, "connection: ServerGuid, zeros for a direct name"),
            Column("time_stamp", UINT32, "connection: TimeStamp in milliseconds"),
            Column("operating_system", UINT16, "connection: OperatingSystem"),
        ),
        *present(
            SessionPresence.IS_PARAMETERS,
            Column("recoverable_ack_timeout", UINT32, "parameters: RecoverableAckTimeout in milliseconds"),
            Column("ack_timeout", UINT32, "parameters: AckTimeout in milliseconds"),
        ),
        Column(
            "window_size", UINT16, "parameters and acknowledgment: WindowSize in messages", SessionPresence.HAS_WINDOW
        ),
        *present(
            SessionPresence.IS_SESSION_ACK,
            Column("ack_sequence_number", UINT16, "acknowledgment: AckSequenceNumber"),
            Column("recoverable_msg_ack_seq_number", UINT16, "acknowledgment: RecoverableMsgAckSeqNumber"),
            Column("recoverable_msg_ack_flags", UINT32, "acknowledgment: RecoverableMsgAckFlags"),
            Column("user_msg_sequence_number", UINT16, "acknowledgment: UserMsgSequenceNumber"),
            Column("recoverable_msg_seq_number", UINT16, "acknowledgment: RecoverableMsgSeqNumber"),
        ),
        Column("trailing", BYTES, "bytes that belong to no known field", SessionPresence.HAS_TRAILING_BYTES),
    ),
    fields=FIELDS,
    violations=SessionViolation,
    rules=rules_of(SessionViolation),
)
