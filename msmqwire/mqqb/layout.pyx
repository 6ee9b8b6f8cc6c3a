"""The columns of both tables by the bytes they are made of: [MS-MQMQ] 2.2.19-2.2.20, [MS-MQQB] 2.2."""

from libc.stddef cimport size_t

from msmqwire.columns.layout cimport BITS, COPY, LIST, SECONDS, VALUE, Layout, place_of, section
from msmqwire.mqqb.kernel cimport (
    ACKNOWLEDGED, ADMIN_QUEUE, BASE, BODY, COMPOUND, COMPOUND_BODY, CONNECTOR, CONNECTOR_QM, DEBUG_QUEUE, DELIVERY,
    DESTINATION_QUEUE, ENCRYPTION_KEY, ESTABLISH, EXTENSION_DATA, FINAL, HAS_RESPONSE_CODE, HTTP_BODY, IS_ESTABLISH,
    IS_PARAMETERS, IS_PING, IS_SESSION_ACK, KIND, LABEL, MESSAGE_CLASS, MULTI_QUEUE_SIGNATURE, NOTIFICATION,
    PARAMETERS, PINGED, PROPERTIES, PROVIDER_INFO, REFUSED, RESPONSE_QUEUE, SECURITY, SECURITY_ID, SENDER,
    SENDER_CERT, SESSION, SIGNATURE, SOAP_BODY, SOAP_HEADER, SRMP_ENVELOPE, TRAILING, TRANSACTION, USER, WINDOW,
    Packet,
)

from msmqwire.mqqb.schema import MESSAGES, SESSIONS

cdef Packet RECORD  # only the offsets of its fields are used


cdef tuple derived(size_t which):
    return VALUE, place_of(&RECORD, &RECORD.derived[which])


cdef tuple part(size_t which):
    return VALUE, place_of(&RECORD, &RECORD.parts[which])


cdef tuple queue(size_t which):
    return VALUE, place_of(&RECORD, &RECORD.queues[which])


cdef tuple queues(size_t which):
    """A list whose items are written when all have been counted."""
    return LIST, place_of(&RECORD, &RECORD.list_counts[which]), 0, which


MESSAGE_LAYOUT = Layout(MESSAGES, {
    "kind": derived(KIND),
    "packet_size": section(COPY, BASE, (8,)),
    "priority": section(BITS, BASE, (2, 0, 7)),
    "debug_header": section(BITS, BASE, (2, 5, 1)),
    "tracing": section(BITS, BASE, (2, 8, 1)),
    "base_flags": section(COPY, BASE, (2,)),
    "time_to_reach_queue": section(COPY, BASE, (12,)),
    "source_queue_manager": section(COPY, USER, (0,)),
    "queue_manager_address": section(COPY, USER, (16,)),
    "time_to_be_received": section(COPY, USER, (32,)),
    "sent_time": section(SECONDS, USER, (36,)),
    "message_id": section(COPY, USER, (40,)),
    "hop_count": section(BITS, USER, (44, 0, 0x1F)),
    "delivery_mode": derived(DELIVERY),
    "negative_source_journaling": section(BITS, USER, (44, 8, 1)),
    "positive_source_journaling": section(BITS, USER, (44, 9, 1)),
    "sent_over_http": section(BITS, USER, (44, 25, 1)),
    "user_flags": section(COPY, USER, (44,)),
    "destination_queue": queue(DESTINATION_QUEUE),
    "admin_queue": queue(ADMIN_QUEUE),
    "response_queue": queue(RESPONSE_QUEUE),
    "connector_type": section(COPY, CONNECTOR, (0,)),
    "first_message": section(BITS, TRANSACTION, (0, 2, 1)),
    "last_message": section(BITS, TRANSACTION, (0, 3, 1)),
    "final_ack_required": section(BITS, TRANSACTION, (0, 1, 1)),
    "transaction_id": section(BITS, TRANSACTION, (0, 4, 0xFFFFF)),
    "tx_sequence_id": section(COPY, TRANSACTION, (4,)),
    "transaction_flags": section(COPY, TRANSACTION, (0,)),
    "tx_sequence_number": section(COPY, TRANSACTION, (12,)),
    "previous_tx_sequence_number": section(COPY, TRANSACTION, (16,)),
    "connector_queue_manager": section(COPY, CONNECTOR_QM, (0,)),
    "security_flags": section(COPY, SECURITY, (0,)),
    "sender_id_type": derived(SENDER),
    "body_encrypted": section(BITS, SECURITY, (0, 5, 1)),
    "security_id": part(SECURITY_ID),
    "encryption_key": part(ENCRYPTION_KEY),
    "signature": part(SIGNATURE),
    "sender_certificate": part(SENDER_CERT),
    "provider_info": part(PROVIDER_INFO),
    "positive_arrival_ack": section(BITS, PROPERTIES, (0, 0, 1)),
    "positive_receive_ack": section(BITS, PROPERTIES, (0, 1, 1)),
    "negative_arrival_ack": section(BITS, PROPERTIES, (0, 2, 1)),
    "negative_receive_ack": section(BITS, PROPERTIES, (0, 3, 1)),
    "properties_flags": section(COPY, PROPERTIES, (0,)),
    "label": part(LABEL),
    "message_class": section(COPY, PROPERTIES, (2,)),
    "message_class_name": derived(MESSAGE_CLASS),
    "correlation_guid": section(COPY, PROPERTIES, (4,)),
    "correlation_ordinal": section(COPY, PROPERTIES, (20,)),
    "body_type": section(COPY, PROPERTIES, (24,)),
    "application_tag": section(COPY, PROPERTIES, (28,)),
    "message_size": section(COPY, PROPERTIES, (32,)),
    "allocation_body_size": section(COPY, PROPERTIES, (36,)),
    "privacy_level": section(COPY, PROPERTIES, (40,)),
    "hash_algorithm": section(COPY, PROPERTIES, (44,)),
    "encryption_algorithm": section(COPY, PROPERTIES, (48,)),
    "extension_data": part(EXTENSION_DATA),
    "body": part(BODY),
    "debug_queue": section(COPY, DEBUG_QUEUE, (0,)),
    "srmp_envelope": part(SRMP_ENVELOPE),
    "http_body": part(HTTP_BODY),
    "message_body_size": section(COPY, COMPOUND, (8,)),
    "message_body_offset": section(COPY, COMPOUND, (12,)),
    "compound_body": part(COMPOUND_BODY),
    "soap_header": part(SOAP_HEADER),
    "soap_body": part(SOAP_BODY),
    "destination_queues": queues(DESTINATION_QUEUE),
    "admin_queues": queues(ADMIN_QUEUE),
    "response_queues": queues(RESPONSE_QUEUE),
    "multi_queue_signature": part(MULTI_QUEUE_SIGNATURE),
    "ack_sequence_number": section(COPY, SESSION, (0,)),
    "recoverable_msg_ack_seq_number": section(COPY, SESSION, (2,)),
    "recoverable_msg_ack_flags": section(COPY, SESSION, (4,)),
    "user_msg_sequence_number": section(COPY, SESSION, (8,)),
    "recoverable_msg_seq_number": section(COPY, SESSION, (10,)),
    "window_size": section(COPY, SESSION, (12,)),
    "acknowledged_tx_sequence_id": section(COPY, ACKNOWLEDGED, (0,)),
    "acknowledged_tx_sequence_number": section(COPY, ACKNOWLEDGED, (8,)),
    "acknowledged_previous_tx_sequence_number": section(COPY, ACKNOWLEDGED, (12,)),
    "acknowledged_source_queue_manager": section(COPY, FINAL, (16,)),
    "acknowledged_message_id": section(COPY, FINAL, (32,)),
    "notification": derived(NOTIFICATION),
    "trailing": part(TRAILING),
}, sizeof(Packet), presence={"response_queue": HAS_RESPONSE_CODE})

SESSION_LAYOUT = Layout(SESSIONS, {
    "kind": derived(KIND),
    "packet_size": section(COPY, BASE, (8,)),
    "base_flags": section(COPY, BASE, (2,)),
    "internal_flags": section(COPY, BASE, (18,)),
    "cookie": section(COPY, PINGED, (4,)),
    "queue_manager": section(COPY, PINGED, (8,)),
    "initiator_is_client": section(BITS, PINGED, (0, 0, 1)),
    "refused": derived(REFUSED),
    "client_guid": section(COPY, ESTABLISH, (0,)),
    "server_guid": section(COPY, ESTABLISH, (16,)),
    "time_stamp": section(COPY, ESTABLISH, (32,)),
    "operating_system": section(COPY, ESTABLISH, (36,)),
    "recoverable_ack_timeout": section(COPY, PARAMETERS, (0,)),
    "ack_timeout": section(COPY, PARAMETERS, (4,)),
    "window_size": section(COPY, WINDOW, (0,)),
    "ack_sequence_number": section(COPY, SESSION, (0,)),
    "recoverable_msg_ack_seq_number": section(COPY, SESSION, (2,)),
    "recoverable_msg_ack_flags": section(COPY, SESSION, (4,)),
    "user_msg_sequence_number": section(COPY, SESSION, (8,)),
    "recoverable_msg_seq_number": section(COPY, SESSION, (10,)),
    "trailing": part(TRAILING),
}, sizeof(Packet), whole={
    "kind": IS_PING | IS_ESTABLISH | IS_PARAMETERS | IS_SESSION_ACK,
    "refused": IS_PING | IS_ESTABLISH | IS_PARAMETERS | IS_SESSION_ACK,
})
