"""Message packets of the package beside those of the oracle."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from msmqwire import mqqb
from tests.reference import mqqb as reference
from tests.reference.mqqb_walk import Outcome
from tests.reference.reader import Fault, Span

Packet = mqqb.UserMessage | mqqb.EstablishConnection | mqqb.ConnectionParameters | mqqb.SessionAck | mqqb.Ping

#: The groups of a UserMessage, and the columns in each.
GROUPS: dict[str, tuple[str, ...]] = {
    "transaction": (
        "first_message", "last_message", "final_ack_required", "transaction_id", "tx_sequence_id",
        "tx_sequence_number", "previous_tx_sequence_number", "connector_queue_manager",
    ),
    "security": (
        "security_flags", "sender_id_type", "body_encrypted", "security_id", "sender_sid", "encryption_key",
        "signature", "sender_certificate", "provider_info",
    ),
    "compound": ("http_body", "message_body_size", "message_body_offset", "compound_body"),
    "soap": ("soap_header", "soap_body"),
    "multi_queue": ("destination_queues", "admin_queues", "response_queues", "multi_queue_signature"),
    "session": (
        "ack_sequence_number", "recoverable_msg_ack_seq_number", "recoverable_msg_ack_flags",
        "user_msg_sequence_number", "recoverable_msg_seq_number", "window_size",
    ),
    "acknowledged": (
        "acknowledged_tx_sequence_id", "acknowledged_tx_sequence_number",
        "acknowledged_previous_tx_sequence_number", "acknowledged_source_queue_manager", "acknowledged_message_id",
    ),
}  # fmt: skip
GROUP_OF = {column: group for group, columns in GROUPS.items() for column in columns}


def value_of(packet: Any, column: str) -> Any:
    """A column of a packet as the oracle has it, but for where it stands."""
    if isinstance(packet, mqqb.UserMessage) and column in GROUP_OF:
        packet = getattr(packet, GROUP_OF[column])
    value = getattr(packet, column, None)
    if isinstance(value, uuid.UUID):
        return value.bytes_le
    if isinstance(value, memoryview):
        return bytes(value)
    if column == "sent_time":
        assert value == datetime.fromtimestamp(packet.sent_time_seconds, UTC)
        return packet.sent_time_seconds * 1_000_000_000
    if isinstance(value, tuple):
        return tuple(map(_name, value))
    return _name(value) if column in ("destination_queue", "admin_queue", "response_queue") else value


def _name(queue: Any) -> str | None:
    return None if queue is None else str(queue)


def expected_value(value: Any, column: str) -> Any:
    """The oracle's value of a column without its place."""
    if isinstance(value, Span):
        return value.text if column in ("label", "srmp_envelope", "soap_header", "soap_body") else value.data
    if isinstance(value, reference.Queue):
        return value.text
    return tuple(expected_value(item, column) for item in value) if isinstance(value, tuple) else value


def assert_packet(packet: Packet | Fault, expected: Outcome) -> None:
    """A packet, or the fault in place of one, is what the oracle says."""
    if isinstance(expected, Fault) or isinstance(packet, Fault):
        assert packet == expected
        return
    assert expected is not None
    for column in reference.COLUMNS[expected.table]:
        value = expected_value(expected.values.get(column), column)
        assert value_of(packet, column) == value, column
    assert packet.violations == expected.violations
