"""The columns of both tables by the bytes they are made of: [MS-MQMQ] 2.2.19-2.2.20, [MS-MQQB] 2.2."""

from libc.stddef cimport size_t

from msmqwire.columns.convert cimport TextSpan
from msmqwire.mqqb.packet cimport (
    ACKNOWLEDGED, ADMIN_QUEUE, BASE, BODY, CONNECTOR, CONNECTOR_QM, DEBUG_QUEUE, DELIVERY, DESTINATION_QUEUE,
    ENCRYPTION_KEY, ESTABLISH, EXTENSION_DATA, FINAL, KIND, LABEL, MESSAGE_CLASS, MULTI_QUEUE_SIGNATURE,
    NOTIFICATION, PARAMETERS, PINGED, PROPERTIES, PROVIDER_INFO, REFUSED, RESPONSE_QUEUE, SECURITY, SECURITY_ID,
    SENDER, SENDER_CERT, SESSION, SIGNATURE, SOAP_BODY, SOAP_HEADER, TRANSACTION, USER, WINDOW,
)
from msmqwire.wire.format_name cimport FormatName

cdef size_t[QUEUE_LIST + 1] WIDTHS
WIDTHS[:] = [2, 4, 8, 16, 1, 4, 8, 1, sizeof(TextSpan), sizeof(FormatName), 4]

MESSAGE_SOURCES = {
    "kind": (CONCLUDED, KIND),
    "packet_size": (COPY_4, BASE, 8),
    "priority": (BITS_1, BASE, 2, 0, 7),
    "tracing": (BITS_1, BASE, 2, 8, 1),
    "time_to_reach_queue": (COPY_4, BASE, 12),
    "source_queue_manager": (COPY_16, USER, 0),
    "queue_manager_address": (COPY_16, USER, 16),
    "time_to_be_received": (COPY_4, USER, 32),
    "sent_time": (SECONDS, USER, 36),
    "message_id": (COPY_4, USER, 40),
    "hop_count": (BITS_1, USER, 44, 0, 0x1F),
    "delivery_mode": (CONCLUDED, DELIVERY),
    "negative_source_journaling": (BITS_1, USER, 44, 8, 1),
    "positive_source_journaling": (BITS_1, USER, 44, 9, 1),
    "sent_over_http": (BITS_1, USER, 44, 25, 1),
    "destination_queue": (QUEUE_NAME, DESTINATION_QUEUE),
    "admin_queue": (QUEUE_NAME, ADMIN_QUEUE),
    "response_queue": (QUEUE_NAME, RESPONSE_QUEUE),
    "connector_type": (COPY_16, CONNECTOR, 0),
    "first_message": (BITS_1, TRANSACTION, 0, 2, 1),
    "last_message": (BITS_1, TRANSACTION, 0, 3, 1),
    "final_ack_required": (BITS_1, TRANSACTION, 0, 1, 1),
    "transaction_id": (BITS_4, TRANSACTION, 0, 4, 0xFFFFF),
    "tx_sequence_id": (COPY_8, TRANSACTION, 4),
    "tx_sequence_number": (COPY_4, TRANSACTION, 12),
    "previous_tx_sequence_number": (COPY_4, TRANSACTION, 16),
    "connector_queue_manager": (COPY_16, CONNECTOR_QM, 0),
    "security_flags": (COPY_2, SECURITY, 0),
    "sender_id_type": (CONCLUDED, SENDER),
    "body_encrypted": (BITS_1, SECURITY, 0, 5, 1),
    "security_id": (SPAN, SECURITY_ID),
    "encryption_key": (SPAN, ENCRYPTION_KEY),
    "signature": (SPAN, SIGNATURE),
    "sender_certificate": (SPAN, SENDER_CERT),
    "provider_info": (SPAN, PROVIDER_INFO),
    "positive_arrival_ack": (BITS_1, PROPERTIES, 0, 0, 1),
    "positive_receive_ack": (BITS_1, PROPERTIES, 0, 1, 1),
    "negative_arrival_ack": (BITS_1, PROPERTIES, 0, 2, 1),
    "negative_receive_ack": (BITS_1, PROPERTIES, 0, 3, 1),
    "label": (SPAN, LABEL),
    "message_class": (COPY_2, PROPERTIES, 2),
    "message_class_name": (CONCLUDED, MESSAGE_CLASS),
    "correlation_guid": (COPY_16, PROPERTIES, 4),
    "correlation_ordinal": (COPY_4, PROPERTIES, 20),
    "body_type": (COPY_4, PROPERTIES, 24),
    "application_tag": (COPY_4, PROPERTIES, 28),
    "message_size": (COPY_4, PROPERTIES, 32),
    "allocation_body_size": (COPY_4, PROPERTIES, 36),
    "privacy_level": (COPY_4, PROPERTIES, 40),
    "hash_algorithm": (COPY_4, PROPERTIES, 44),
    "encryption_algorithm": (COPY_4, PROPERTIES, 48),
    "extension_data": (SPAN, EXTENSION_DATA),
    "body": (SPAN, BODY),
    "debug_queue": (COPY_16, DEBUG_QUEUE, 0),
    "soap_header": (SPAN, SOAP_HEADER),
    "soap_body": (SPAN, SOAP_BODY),
    "destination_queues": (QUEUE_LIST, DESTINATION_QUEUE),
    "admin_queues": (QUEUE_LIST, ADMIN_QUEUE),
    "response_queues": (QUEUE_LIST, RESPONSE_QUEUE),
    "multi_queue_signature": (SPAN, MULTI_QUEUE_SIGNATURE),
    "ack_sequence_number": (COPY_2, SESSION, 0),
    "recoverable_msg_ack_seq_number": (COPY_2, SESSION, 2),
    "recoverable_msg_ack_flags": (COPY_4, SESSION, 4),
    "user_msg_sequence_number": (COPY_2, SESSION, 8),
    "recoverable_msg_seq_number": (COPY_2, SESSION, 10),
    "window_size": (COPY_2, SESSION, 12),
    "acknowledged_tx_sequence_id": (COPY_8, ACKNOWLEDGED, 0),
    "acknowledged_tx_sequence_number": (COPY_4, ACKNOWLEDGED, 8),
    "acknowledged_previous_tx_sequence_number": (COPY_4, ACKNOWLEDGED, 12),
    "acknowledged_source_queue_manager": (COPY_16, FINAL, 16),
    "acknowledged_message_id": (COPY_4, FINAL, 32),
    "notification": (CONCLUDED, NOTIFICATION),
}

SESSION_SOURCES = {
    "kind": (CONCLUDED, KIND),
    "packet_size": (COPY_4, BASE, 8),
    "cookie": (COPY_4, PINGED, 4),
    "queue_manager": (COPY_16, PINGED, 8),
    "initiator_is_client": (BITS_1, PINGED, 0, 0, 1),
    "refused": (CONCLUDED, REFUSED),
    "client_guid": (COPY_16, ESTABLISH, 0),
    "server_guid": (COPY_16, ESTABLISH, 16),
    "time_stamp": (COPY_4, ESTABLISH, 32),
    "operating_system": (COPY_2, ESTABLISH, 36),
    "recoverable_ack_timeout": (COPY_4, PARAMETERS, 0),
    "ack_timeout": (COPY_4, PARAMETERS, 4),
    "window_size": (COPY_2, WINDOW, 0),
    "ack_sequence_number": (COPY_2, SESSION, 0),
    "recoverable_msg_ack_seq_number": (COPY_2, SESSION, 2),
    "recoverable_msg_ack_flags": (COPY_4, SESSION, 4),
    "user_msg_sequence_number": (COPY_2, SESSION, 8),
    "recoverable_msg_seq_number": (COPY_2, SESSION, 10),
}


cdef Source source_of(dict sources, str column):
    cdef Source source
    cdef tuple described = (*sources[column], 0, 0, 0)
    source.form = described[0]
    source.place = described[1]
    source.offset = described[2]
    source.shift = described[3]
    source.mask = described[4]
    source.column = NULL
    return source


cdef size_t width_of(const Source* source) noexcept:
    """Bytes of a row in the column."""
    return WIDTHS[<size_t>source.form]
