"""What readers of MQQB packets share: columns, violations, values, and the walk over a packet."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tests.reference.propvariant import end_of_string
from tests.reference.reader import Fault, MalformedError, Reader, Span

Table = Literal["messages", "sessions"]
Transport = Literal["unknown", "tcp", "udp"]
TRANSPORTS: tuple[Transport, ...] = ("unknown", "tcp", "udp")

#: The columns of both tables but ``fault`` and ``violations``, in order.
COLUMNS: dict[str, tuple[str, ...]] = {
    "messages": (
        "kind", "packet_size", "priority", "debug_header", "tracing", "base_flags", "time_to_reach_queue",
        "source_queue_manager", "queue_manager_address", "time_to_be_received", "sent_time", "message_id", "hop_count",
        "delivery_mode", "negative_source_journaling", "positive_source_journaling", "sent_over_http", "user_flags",
        "destination_queue", "admin_queue", "response_queue", "connector_type",
        "first_message", "last_message", "final_ack_required", "transaction_id", "tx_sequence_id",
        "transaction_flags", "tx_sequence_number", "previous_tx_sequence_number", "connector_queue_manager",
        "security_flags", "sender_id_type", "body_encrypted", "security_id", "sender_sid", "encryption_key",
        "signature", "sender_certificate", "provider_info",
        "positive_arrival_ack", "positive_receive_ack", "negative_arrival_ack", "negative_receive_ack",
        "properties_flags", "label",
        "message_class", "message_class_name", "correlation_guid", "correlation_ordinal", "body_type",
        "body_type_name", "application_tag", "message_size", "allocation_body_size", "privacy_level", "hash_algorithm",
        "encryption_algorithm", "extension_data", "extension_format", "extension_text", "body",
        "body_format", "body_text", "debug_queue", "srmp_envelope", "http_body",
        "message_body_size", "message_body_offset", "compound_body", "soap_header", "soap_body",
        "destination_queues", "admin_queues", "response_queues", "multi_queue_signature",
        "ack_sequence_number", "recoverable_msg_ack_seq_number", "recoverable_msg_ack_flags",
        "user_msg_sequence_number", "recoverable_msg_seq_number", "window_size",
        "acknowledged_tx_sequence_id", "acknowledged_tx_sequence_number",
        "acknowledged_previous_tx_sequence_number", "acknowledged_source_queue_manager", "acknowledged_message_id",
        "notification", "trailing",
    ),
    "sessions": (
        "kind", "packet_size", "base_flags", "internal_flags",
        "cookie", "queue_manager", "initiator_is_client", "refused", "client_guid",
        "server_guid", "time_stamp", "operating_system", "recoverable_ack_timeout", "ack_timeout", "window_size",
        "ack_sequence_number", "recoverable_msg_ack_seq_number", "recoverable_msg_ack_flags",
        "user_msg_sequence_number", "recoverable_msg_seq_number", "trailing",
    ),
}  # fmt: skip

#: The order of the bits in a batch's ``violations`` column.
VIOLATIONS: dict[str, tuple[str, ...]] = {
    "messages": (
        "trailing_bytes", "missing_properties", "delivery_mode", "express_transaction", "hop_count",
        "transaction_priority", "tx_sequence_number", "security_flags", "sender_id", "no_security_data",
        "label_terminator", "allocation_body_size", "privacy_level", "unresolved_queue", "reserved_flags",
        "srmp_envelope_terminator", "missing_debug_header", "soap_terminator", "sent_over_http",
        "queue_manager_address", "admin_queue_flags", "message_class_value", "hash_algorithm", "encryption_algorithm",
        "window_size", "previous_tx_sequence_number", "crypto_provider", "padding", "acknowledgment",
    ),
    "sessions": (
        "trailing_bytes", "timeout_range", "operating_system", "time_to_reach_queue", "reserved_flags",
        "reserved_nonzero", "connection_refused", "message_flags", "window_size",
    ),
}  # fmt: skip

#: [MS-MQMQ] 2.2.18.1.6
MESSAGE_CLASSES = {
    0x0000: "normal", 0x0001: "report", 0x0002: "ack_reach_queue", 0x00FF: "order_ack", 0x4000: "ack_receive",
    0x8000: "nack_bad_dst_q", 0x8001: "nack_deleted", 0x8002: "nack_reach_queue_timeout",
    0x8003: "nack_q_exceed_quota", 0x8004: "nack_access_denied", 0x8005: "nack_hop_count_exceeded",
    0x8006: "nack_bad_signature", 0x8007: "nack_bad_encryption", 0x8009: "nack_not_transactional_q",
    0x800A: "nack_not_transactional_msg", 0x800B: "nack_unsupported_crypto_provider", 0xC000: "nack_q_deleted",
    0xC001: "nack_q_purged", 0xC002: "nack_receive_timeout", 0xC004: "nack_receive_rejected",
}  # fmt: skip

LIOR, LARGEST_PACKET = 0x524F494C, 0x00400000
BASE_SIZE, SESSION_SIZE, PING_SIZE = 16, 16, 24
IN, SH, NOT_RESERVED = 0x0008, 0x0010, 0x013F  # of BaseHeader.Flags


class Queue(NamedTuple):
    """A queue with the GUID of its host resolved; ``unresolved`` where the packet does not tell the host.

    ``code`` is what says the form on the wire: DQ, AQ, RQ or FormatType.
    """

    form: Literal["public", "private", "direct", "distribution_list", "unresolved"]
    code: int
    guid: bytes | None = None
    number: int | None = None
    name: Span | None = None

    @property
    def text(self) -> str | None:
        """Its format name ([MS-MQMQ] 2.1)."""
        guid = "" if self.guid is None else str(uuid.UUID(bytes_le=self.guid))
        if self.form == "private":
            return f"PRIVATE={guid}\\{self.number:X}"
        if self.name is not None:
            return f"DIRECT={self.name.text}"
        return {"public": f"PUBLIC={guid}", "distribution_list": f"DL={guid}"}.get(self.form)


@dataclass(frozen=True)
class Packet:
    """The columns of a packet that are not null, by name: GUIDs as on the wire, texts and bytes as spans.

    ``queue_types`` are the DQ, AQ and RQ of a message: there is more than one way to say a queue.
    """

    table: Table
    values: dict[str, Any]
    violations: tuple[str, ...] = ()
    queue_types: tuple[int, int, int] = (0, 0, 0)


def shortest_types(packet: Packet) -> tuple[int, int, int]:
    """DQ, AQ and RQ that say each queue in the fewest bytes ([MS-MQMQ] 2.2.19.2); of several hosts the destination."""
    destination, admin, response = (
        packet.values.get(name) for name in ("destination_queue", "admin_queue", "response_queue")
    )
    hosts = {packet.values["queue_manager_address"]: 3}
    types = [_shortest_type(destination, hosts)]
    hosts.setdefault(packet.values["source_queue_manager"], 2)
    types.append(_shortest_type(admin, hosts))
    if admin is not None and admin._replace(code=0) == (response and response._replace(code=0)):
        return types[0], types[1], 1
    if types[1] == 6:
        assert admin is not None
        hosts.setdefault(admin.guid, 4)
    return types[0], types[1], _shortest_type(response, hosts)


def _shortest_type(queue: Queue | None, hosts: dict[bytes, int]) -> int:
    """A private queue's host has a type of its own where it is among ``hosts``."""
    if queue is None:
        return 0
    if queue.form == "private":
        assert queue.guid is not None
        return hosts.get(queue.guid, 6)
    return {"public": 5, "direct": 7, "unresolved": 4}[queue.form]


Outcome = Packet | Fault | None


@dataclass
class Walk:
    """What has been read of a packet so far."""

    table: Table
    reader: Reader
    values: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Fault | None] = field(default_factory=dict)  # violations, and what they are in strict decoding
    queue_types: tuple[int, int, int] = (0, 0, 0)
    payload: bytes = b""

    def note(self, violation: str, condition: object, fault: Fault | None = None) -> None:
        """A violation, if the condition holds."""
        if condition:
            self.found[violation] = fault

    def unpack(self, layout: str, name: str) -> tuple[Any, ...]:
        """The fields of a header of fixed size."""
        return struct.unpack("<" + layout, self.reader.take(name, struct.calcsize("<" + layout)))

    def span(self, name: str, size: int) -> Span:
        """A field of variable size."""
        return Span(self.reader.position, self.reader.take(name, size))

    def pad(self, start: int = 0) -> None:
        """Skip what fills the header that begins at ``start`` up to a multiple of four, as far as it is there."""
        padding = -(self.reader.position - start) % 4
        self.note("padding", padding > self.reader.left)
        self.reader.position += min(padding, self.reader.left)

    def text(self, name: str, units: int) -> Span:
        """Code units up to the first U+0000, or all of them."""
        whole = self.span(name, 2 * units)
        end = end_of_string(whole.data, 0)
        return whole if end < 0 else Span(whole.offset, whole.data[:end])

    def finish(self, size: int, end: int, length: int, field_name: str) -> None:
        """Look for bytes that nothing accounts for: four or more in the packet, or any behind its end."""
        extra = self.reader.position if size - self.reader.position >= 4 else end
        self.note("trailing_bytes", extra < end or end < length, Fault("bad_size", field_name, extra))
        if "trailing_bytes" in self.found:
            self.values["trailing"] = Span(extra, self.payload[extra : length if end < length else size])

    def outcome(self, strict: bool) -> Packet | Fault:
        """The packet, or the first violation that a strict reader faults."""
        names = tuple(name for name in VIOLATIONS[self.table] if name in self.found)
        faults = [fault for name in names if (fault := self.found[name]) is not None]
        if strict and faults:
            return faults[0]
        ordered = {name: self.values[name] for name in COLUMNS[self.table] if self.values.get(name) is not None}
        assert len(ordered) == sum(value is not None for value in self.values.values())
        return Packet(self.table, ordered, names, self.queue_types)


class Framed(Walk):
    """A packet that begins with a BaseHeader ([MS-MQMQ] 2.2.19.1)."""

    def __init__(self, data: bytes, table: Table) -> None:
        if len(data) < BASE_SIZE:
            raise MalformedError("truncated", "BaseHeader", 0)
        version, _, self.flags, signature, self.size, self.time_to_reach_queue = struct.unpack_from("<BBHIII", data)
        self.is_internal, self.has_session = bool(self.flags & IN), bool(self.flags & SH)
        # PacketSize leaves out a SessionHeader behind a user message, not the one in a SessionAck
        self.end = self.size + (SESSION_SIZE if self.has_session and not self.is_internal else 0)
        if version != 0x10:
            raise MalformedError("bad_version", "VersionNumber", 0)
        if signature != LIOR:
            raise MalformedError("bad_signature", "Signature", 4)
        if self.size < BASE_SIZE:
            raise MalformedError("bad_size", "PacketSize", 8)
        if self.size > LARGEST_PACKET:
            raise MalformedError("too_large", "PacketSize", 8)
        if self.size <= len(data) < self.end:
            raise MalformedError("truncated", "SessionHeader", self.size)
        if self.end > len(data):
            raise MalformedError("truncated", "PacketSize", 8)
        if self.is_internal != (table == "sessions"):
            raise MalformedError("bad_type", "BaseHeader.Flags", 2)
        super().__init__(table, Reader(data[: self.size]))
        self.data = data
        self.reader.position = BASE_SIZE
        self.payload = data
        self.values["packet_size"] = self.size
        self.values["base_flags"] = self.flags
        self.note("reserved_flags", self.flags & ~NOT_RESERVED)

    def session_header(self, fields: tuple[Any, ...]) -> None:
        """SessionHeader, 2.2.20.4."""
        names = (
            "ack_sequence_number", "recoverable_msg_ack_seq_number", "recoverable_msg_ack_flags",
            "user_msg_sequence_number", "recoverable_msg_seq_number", "window_size",
        )  # fmt: skip
        self.values.update(zip(names, fields, strict=True))
        self.note("window_size", self.values["window_size"] == 0)


SESSION_HEADER = "HHIHHH2x"
