"""The names of columns, by what ``batch[name]`` is; written by `make docs`, do not edit."""

from typing import Literal

# fmt: off
Ascii = Literal[
    "address", "queue", "subqueue", "domain",
]
Bool = Literal[
    "debug_header", "tracing", "negative_source_journaling", "positive_source_journaling", "sent_over_http",
    "first_message", "last_message", "final_ack_required", "body_encrypted", "positive_arrival_ack",
    "positive_receive_ack", "negative_arrival_ack", "negative_receive_ack", "initiator_is_client", "refused",
]
Bytes = Literal[
    "trailing", "reserved", "security_id", "encryption_key", "signature", "sender_certificate", "provider_info",
    "extension_data", "body", "http_body", "compound_body", "multi_queue_signature", "unrecognized",
]
List = Literal[
    "ipx_networks", "connected_networks", "servers", "properties", "destination_queues", "admin_queues",
    "response_queues", "elements",
]
Record = Literal[
    "src", "dst", "fault", "destination_queue", "admin_queue", "response_queue",
]
Text = Literal[
    "path_name", "domain_controller", "label", "srmp_envelope", "soap_header", "soap_body",
]
Time = Literal[
    "time", "sent_time", "first_time",
]
Uint16 = Literal[
    "src_port", "dst_port", "base_flags", "security_flags", "message_class", "message_class_name", "body_type_name",
    "ack_sequence_number", "recoverable_msg_ack_seq_number", "user_msg_sequence_number", "recoverable_msg_seq_number",
    "window_size", "internal_flags", "operating_system", "port",
]
Uint32 = Literal[
    "connected_network_mask", "violations", "packet_size", "time_to_reach_queue", "time_to_be_received", "message_id",
    "user_flags", "transaction_id", "transaction_flags", "tx_sequence_number", "previous_tx_sequence_number",
    "correlation_ordinal", "body_type", "application_tag", "message_size", "allocation_body_size", "privacy_level",
    "hash_algorithm", "encryption_algorithm", "message_body_size", "message_body_offset", "recoverable_msg_ack_flags",
    "acknowledged_tx_sequence_number", "acknowledged_previous_tx_sequence_number", "acknowledged_message_id",
    "unrecognized_size", "cookie", "time_stamp", "recoverable_ack_timeout", "ack_timeout", "attempts", "private_id",
]
Uint64 = Literal[
    "frame", "first_frame", "stream_offset", "tx_sequence_id", "acknowledged_tx_sequence_id",
]
Uint8 = Literal[
    "file", "transport", "encapsulation", "type", "version", "enterprise_id", "request_id", "site_id", "correlation_id",
    "responding_site_id", "index", "operation", "object", "object_guid", "master_guid", "sender_id_type", "outcome",
    "rule", "unverified", "kind", "priority", "source_queue_manager", "queue_manager_address", "hop_count",
    "delivery_mode", "connector_type", "connector_queue_manager", "properties_flags", "correlation_guid",
    "extension_format", "body_format", "debug_queue", "acknowledged_source_queue_manager", "notification",
    "queue_manager", "client_guid", "server_guid", "guid", "protocol", "queue_type", "suffix",
]
Utf8 = Literal[
    "sender_sid", "extension_text", "body_text",
]
