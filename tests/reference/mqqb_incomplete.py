"""What is whole of a packet that lost bytes at its end, from the reader of complete packets and the fields' offsets.

Nothing of the kernels is used: a column is whole when its field ends before the first byte that is lost, by the layout
of its header in [MS-MQMQ] 2.2.19, 2.2.20 and [MS-MQQB] 2.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.reference.mqqb import Table, _UserMessage
from tests.reference.mqqb_sessions import Internal, Ping
from tests.reference.mqqb_walk import BASE_SIZE, SESSION_SIZE, Walk

_SESSION = {
    "ack_sequence_number": 2, "recoverable_msg_ack_seq_number": 4, "recoverable_msg_ack_flags": 8,
    "user_msg_sequence_number": 10, "recoverable_msg_seq_number": 12, "window_size": 14,
}  # fmt: skip
#: Where each column's field ends in its header
ENDS: dict[str, dict[str, int]] = {
    "BaseHeader": {
        "priority": 3, "debug_header": 3, "tracing": 4, "base_flags": 4, "packet_size": 12, "time_to_reach_queue": 16,
    },
    "UserHeader": {
        "source_queue_manager": 16, "queue_manager_address": 32, "time_to_be_received": 36, "sent_time": 40,
        "message_id": 44, "hop_count": 45, "delivery_mode": 48, "negative_source_journaling": 46,
        "positive_source_journaling": 46, "sent_over_http": 48, "user_flags": 48,
    },
    "TransactionHeader": {
        "final_ack_required": 1, "first_message": 1, "last_message": 1, "transaction_id": 3, "transaction_flags": 4,
        "tx_sequence_id": 12, "tx_sequence_number": 16, "previous_tx_sequence_number": 20,
    },
    "SecurityHeader": {"security_flags": 2, "sender_id_type": 2, "body_encrypted": 1},
    "MessagePropertiesHeader": {
        "positive_arrival_ack": 1, "positive_receive_ack": 1, "negative_arrival_ack": 1, "negative_receive_ack": 1,
        "properties_flags": 1, "message_class": 4, "message_class_name": 4, "correlation_guid": 20,
        "correlation_ordinal": 24, "body_type": 28, "application_tag": 32, "message_size": 36,
        "allocation_body_size": 40, "privacy_level": 44, "hash_algorithm": 48, "encryption_algorithm": 52,
    },
    "SessionHeader": _SESSION,
    "InternalHeader": {"internal_flags": 4},
    "EstablishConnectionHeader": {"client_guid": 16, "server_guid": 32, "time_stamp": 36, "operating_system": 38},
    "ConnectionParametersHeader": {"recoverable_ack_timeout": 4, "ack_timeout": 8, "window_size": 12},
    "Ping": {"initiator_is_client": 1, "cookie": 8, "queue_manager": 24},
}  # fmt: skip
#: Columns that are all of a field of variable size
FIELDS = {
    "DestinationQueue": "destination_queue", "AdminQueue": "admin_queue", "ResponseQueue": "response_queue",
    "ConnectorType": "connector_type", "ConnectorQMGuid": "connector_queue_manager", "SecurityID": "security_id",
    "EncryptionKey": "encryption_key", "SecurityData.Signature": "signature", "SenderCert": "sender_certificate",
    "ProviderInfo": "provider_info", "Label": "label", "ExtensionData": "extension_data", "MessageBody": "body",
    "DebugHeader.QueueIdentifier": "debug_queue",
}  # fmt: skip


class Incomplete(NamedTuple):
    """The columns that are whole, and the first field that lacks bytes: its name, offset, bytes and those there."""

    values: dict[str, Any]
    field: str
    offset: int
    needed: int
    available: int


def walk(data: bytes, table: Table) -> Walk:
    """A complete packet."""
    if table == "messages":
        return _UserMessage(data)
    return Internal(data) if data[4:8] == b"LIOR" else Ping(data)


def cut(data: bytes, size: int, table: Table) -> Incomplete:
    """What is whole in the first ``size`` bytes of a packet that has all of ``data``, and less than ``size`` is not."""
    packet = walk(data, table)
    taken = list(packet.reader.taken)
    if not isinstance(packet, Ping):
        taken.insert(0, ("BaseHeader", 0, BASE_SIZE))
        if isinstance(packet, _UserMessage) and packet.has_session:
            taken.append(("SessionHeader", packet.size, SESSION_SIZE))
    fields: list[list[Any]] = []
    for name, offset, count in taken:
        if fields and fields[-1][0] == name and fields[-1][1] + fields[-1][2] == offset:
            fields[-1][2] += count  # the size of a name before it
            fields[-1][3] = 2
        else:
            fields.append([name, offset, count, 0])
    values: dict[str, Any] = {}
    for name, offset, count, front in fields:
        for column, end in ENDS.get(name, {}).items():
            if offset + end <= size and packet.values.get(column) is not None:
                values[column] = packet.values[column]
        if offset + count > size:
            needed = front if front and size - offset < front else count
            return Incomplete(with_derived(values, packet, size), name, offset, needed, max(0, size - offset))
        if name in FIELDS and packet.values.get(FIELDS[name]) is not None:
            values[FIELDS[name]] = packet.values[FIELDS[name]]
    return Incomplete(with_derived(values, packet, size), "PacketSize", 8, len(data), size)


def with_derived(values: dict[str, Any], packet: Walk, size: int) -> dict[str, Any]:
    """Add columns that follow from other fields: the kind of a session's packet, a queue that is another one."""
    known = size >= 1 if isinstance(packet, Ping) else isinstance(packet, Internal) and size >= 20
    if known:
        values.update(kind=packet.values["kind"], refused=packet.values["refused"])
    response = packet.values.get("response_queue")
    if response is not None and response.code == 1 and "admin_queue" in values:
        values["response_queue"] = response
    return values
