"""The oracle of MQQB ([MS-MQMQ] 2.2.18 to 2.2.20, [MS-MQQB] 2.2): reads and writes one packet, with ``struct`` alone.

A payload is read as a row of the messages table or of the sessions table. What cannot be decoded gives a ``Fault`` and
nothing else; what breaks a MUST but can be decoded carries the names of its violations. The fields are read in wire
order and each check is made when its field is read, so the first fault wins; in strict decoding a packet without a
fault faults for the first violation, in the order of the bits, that a receiver discards.
"""

from __future__ import annotations

import ipaddress
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from tests.reference.mqqb_bodies import body_type_name, readable, sid_text
from tests.reference.mqsd import Fault, MalformedError, Reader
from tests.reference.propvariant import end_of_string, text_of

__all__ = [
    "COLUMNS",
    "MESSAGE_CLASSES",
    "TRANSPORTS",
    "VIOLATIONS",
    "Fault",
    "Packet",
    "Queue",
    "Span",
    "Table",
    "Transport",
    "read",
    "row",
]

Table = Literal["messages", "sessions"]
Transport = Literal["unknown", "tcp", "udp"]
TRANSPORTS: tuple[Transport, ...] = ("unknown", "tcp", "udp")

#: The columns of both tables but ``fault`` and ``violations``, in order.
COLUMNS: dict[str, tuple[str, ...]] = {
    "messages": (
        "kind", "packet_size", "priority", "tracing", "base_flags", "time_to_reach_queue",
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
        "encryption_algorithm", "extension_data", "body", "body_format", "body_text",
        "debug_queue", "srmp_envelope", "http_body", "message_body_size", "message_body_offset", "compound_body",
        "soap_header", "soap_body",
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
NOTIFY_QUEUE, ORDER_QUEUE = 3, 4
ACK_LABEL, ACK_SIZE = "QM Ordering Ack", 36
FINAL_ACKS = (  # 2.2.5: the classes that a FinalAck can have
    0x4000, 0x8009, 0x8000, 0x8004, 0x8007, 0x800B, 0x8006, 0x8003, 0xC000, 0xC001, 0xC002,
)  # fmt: skip
HASH_ALGORITHMS = (0x8001, 0x8002, 0x8003, 0x8004, 0x800C, 0x800E)
RC2, AES_256, AES_128, AES_192, RC4 = 0x6602, 0x6610, 0x660E, 0x660F, 0x6801
CIPHERS = {1: (RC2, RC4), 3: (RC2, RC4), 5: (AES_128, AES_192, AES_256)}  # of each PrivacyLevel

#: Direct names of the two private queues that are the same on every host; the literals of ABNF have no case.
_NOTIFY_QUEUE_NAME = re.compile(r".*\\PRIVATE\$\\notify_queue\$", re.IGNORECASE | re.ASCII | re.DOTALL)
_ORDER_QUEUE_NAME = re.compile(r"(TCP|SPX):(.+)\\PRIVATE\$\\order_queue\$", re.IGNORECASE | re.ASCII | re.DOTALL)
_IPX_ADDRESS = re.compile(r"[0-9A-F]{8}\.[0-9A-F]{12}", re.IGNORECASE | re.ASCII)


class Span(NamedTuple):
    """Bytes of the payload, and where they stand in it."""

    offset: int
    data: bytes

    @property
    def text(self) -> str:
        """The same as UTF-16LE code units."""
        return text_of(self.data)


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


Outcome = Packet | Fault | None


def row(outcome: Outcome, table: Table) -> dict[str, Any]:
    """The row of an outcome, with its nulls; None stands for a null payload."""
    values: dict[str, Any] = dict.fromkeys((*COLUMNS[table], "fault", "violations"))
    if isinstance(outcome, Fault):
        values["fault"] = outcome
    elif outcome is not None:
        values.update(outcome.values)
        values["violations"] = outcome.violations
    return values


def read(data: bytes, table: Table, *, strict: bool = False, transport: Transport = "unknown") -> Packet | Fault:
    """The packet that the payload holds, or why it holds none for this table; ``transport`` matters to sessions."""
    data = bytes(data)
    is_ping = transport == "udp" or (transport == "unknown" and data[4:8] != b"LIOR")
    try:
        if table == "messages":
            return _UserMessage(data).packet(strict)
        return (_Ping(data) if is_ping else _Internal(data)).packet(strict)
    except MalformedError as error:
        return error.fault


@dataclass
class _Walk:
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


class _Framed(_Walk):
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


_SESSION_HEADER = "HHIHHH2x"


class _Ping(_Walk):
    """Ping packet, [MS-MQQB] 2.2.7."""

    def __init__(self, data: bytes) -> None:
        super().__init__("sessions", Reader(data))
        self.payload = data
        flags, signature, cookie, guid = self.unpack("HHI16s", "Ping")
        if signature != 0x5548:
            raise MalformedError("bad_signature", "Ping.Signature", 2)
        self.values.update(
            kind="ping", cookie=cookie, queue_manager=guid, initiator_is_client=bool(flags & 1), refused=bool(flags & 2)
        )
        self.finish(PING_SIZE, PING_SIZE, len(data), "Ping")

    packet = _Walk.outcome


class _Internal(_Framed):
    """EstablishConnection, ConnectionParameters and SessionAck packets, [MS-MQQB] 2.2.2, 2.2.3 and 2.2.6."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "sessions")
        reserved, flags = self.unpack("HH", "InternalHeader")
        kind = flags & 0xF
        if kind not in (1, 2, 3):
            raise MalformedError("bad_type", "InternalHeader.Flags", 18)
        if kind == 1 and not self.has_session:
            raise MalformedError("bad_flag", "BaseHeader.Flags", 2)
        self.values["refused"] = bool(flags & 0x10)
        self.values["internal_flags"] = flags
        self.note("reserved_flags", (self.flags & ~NOT_RESERVED) | (flags & 0xFFE0))
        self.note("time_to_reach_queue", self.time_to_reach_queue != 0xFFFFFFFF)
        self.note("reserved_nonzero", reserved)
        self.note("connection_refused", kind == 1 and flags & 0x10)
        self.note("message_flags", self.flags & 0x120 or (kind != 1 and self.has_session))
        if kind == 1:
            self.values["kind"] = "session_ack"
            self.session_header(self.unpack(_SESSION_HEADER, "SessionHeader"))
        elif kind == 2:
            self.establish_connection()
        else:
            self.connection_parameters()
        self.finish(self.size, self.end, len(data), "PacketSize")

    packet = _Walk.outcome

    def establish_connection(self) -> None:
        """2.2.3.1."""
        client, server, time_stamp, system, reserved = self.unpack("16s16sIHH512x", "EstablishConnectionHeader")
        self.note("operating_system", system & 0xFF != 0x10)
        self.note("reserved_flags", "reserved_flags" in self.found or system >> 11)
        self.note("reserved_nonzero", "reserved_nonzero" in self.found or reserved)
        self.values.update(
            kind="establish_connection",
            client_guid=client,
            server_guid=server,
            time_stamp=time_stamp,
            operating_system=system,
        )

    def connection_parameters(self) -> None:
        """2.2.2.1."""
        recoverable, timeout, reserved, window = self.unpack("IIHH", "ConnectionParametersHeader")
        self.note("reserved_nonzero", "reserved_nonzero" in self.found or reserved)
        self.note("timeout_range", not (0x1F4 <= recoverable <= 0x1D4C0) or not (0x4E20 <= timeout <= 0x1D4C0))
        self.values.update(
            kind="connection_parameters",
            recoverable_ack_timeout=recoverable,
            ack_timeout=timeout,
            window_size=window,
        )


_ACKS = (("positive", "arrival"), ("positive", "receive"), ("negative", "arrival"), ("negative", "receive"))


class _UserMessage(_Framed):
    """UserMessage packet, [MS-MQMQ] 2.2.20, the acknowledgments of transactional messages among them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "messages")
        self.values.update(
            priority=self.flags & 7, tracing=bool(self.flags & 0x100), time_to_reach_queue=self.time_to_reach_queue
        )
        self.user_header()
        if self.user_flags & 1 << 20:
            self.transaction_header()
        if self.user_flags & 1 << 19:
            self.security_header()
        if self.user_flags & 1 << 21:
            self.message_properties_header()
        if self.flags & 0x20:
            self.debug_header()
        if self.user_flags & 1 << 25:
            self.http_headers()
            self.note("sent_over_http", not {"srmp_envelope", "http_body"} & self.values.keys())
        if self.user_flags & 1 << 28:
            self.soap_header()
        if self.user_flags & 1 << 23:
            self.multi_queue_format_header()
        if self.has_session:
            self.session_header(struct.unpack_from("<" + _SESSION_HEADER, data, self.size))
        self.note("missing_debug_header", self.flags & 0x120 == 0x100)
        self.judge_queues()
        self.finish(self.size, self.end, len(data), "PacketSize")
        self.values["kind"] = "user_message"
        if self.user_flags & 1 << 21:
            self.acknowledgment()
            self.notification()
            self.body()
        if self.values.get("sender_id_type") == "sid" and "security_id" in self.values:
            self.values["sender_sid"] = sid_text(self.values["security_id"].data)

    packet = _Walk.outcome

    def user_header(self) -> None:
        """2.2.19.2."""
        source, address, lifetime, sent, number, flags = self.unpack("16s16sIIII", "UserHeader")
        self.user_flags = flags
        mode = flags >> 5 & 3
        self.values.update(
            source_queue_manager=source,
            queue_manager_address=address,
            time_to_be_received=lifetime,
            sent_time=sent * 1_000_000_000,
            message_id=number,
            hop_count=flags & 0x1F,
            delivery_mode={0: "express", 1: "recoverable"}.get(mode),
            negative_source_journaling=bool(flags & 1 << 8),
            positive_source_journaling=bool(flags & 1 << 9),
            sent_over_http=bool(flags & 1 << 25),
            user_flags=flags,
        )
        # X1 bit 7, X2 bit 24, X3 bits 26 and 27, X4 bits 29 to 31
        self.note("reserved_flags", any(flags >> bit & 1 for bit in (7, 24, 26, 27, 29, 30, 31)))
        bad_flags = Fault("bad_flag", "UserHeader.Flags", 60)
        self.note("hop_count", flags & 0x1F > 0x1D)
        self.note("delivery_mode", mode > 1, bad_flags)
        self.note("express_transaction", flags & 1 << 20 and mode == 0, bad_flags)
        self.note("missing_properties", not flags & 1 << 21, bad_flags)
        self.note("transaction_priority", flags & 1 << 20 and self.flags & 7)
        self.queue_types = flags >> 10 & 7, flags >> 13 & 7, flags >> 16 & 7
        self.queues(*self.queue_types)
        if flags & 1 << 22:
            self.values["connector_type"] = self.reader.take("ConnectorType", 16)

    def judge_queues(self) -> None:
        """What 2.2.19.2 says of QueueManagerAddress and of AdminQueue beside the other fields."""
        destination, admin, _ = self.queue_types
        has_address = self.values["queue_manager_address"] != bytes(16)
        self.note("queue_manager_address", destination and has_address is (destination == 7))
        wanted = any(self.values.get(f"{sign}_{when}_ack") for sign, when in _ACKS)
        # Not the other way round: the message of [MS-MQQB] 4.1 has flags and no AdminQueue
        self.note("admin_queue_flags", admin and not wanted)

    def queues(self, destination: int, admin: int, response: int) -> None:
        """The three queues of a UserHeader, by the types that its flags give."""
        if destination not in (0, 3, 5, 7) or admin in (1, 4):
            raise MalformedError("bad_flag", "UserHeader.Flags", 60)
        source, address = self.values["source_queue_manager"], self.values["queue_manager_address"]
        self.values["destination_queue"] = self.queue("DestinationQueue", destination, {3: address})
        hosts = {2: source, 3: address}
        admin_queue = self.queue("AdminQueue", admin, hosts)
        self.values["admin_queue"] = admin_queue
        if response == 1:
            self.values["response_queue"] = None if admin_queue is None else admin_queue._replace(code=1)
            return
        if admin_queue is not None and admin_queue.form == "private":
            assert admin_queue.guid is not None
            hosts[4] = admin_queue.guid
        self.values["response_queue"] = self.queue("ResponseQueue", response, hosts)
        self.note("unresolved_queue", response == 4 and 4 not in hosts)

    def queue(self, name: str, type_: int, hosts: dict[int, bytes]) -> Queue | None:
        """One queue; ``hosts`` has the hosts of private queues that only their numbers stand for."""
        if type_ == 0:
            return None
        if type_ == 5:
            return Queue("public", type_, self.reader.take(name, 16))
        if type_ == 6:
            guid, number = self.unpack("16sI", name)
            return Queue("private", type_, guid, number)
        if type_ == 7:
            return Queue("direct", type_, name=self.direct_name(name))
        (number,) = self.unpack("I", name)
        return Queue("private" if type_ in hosts else "unresolved", type_, hosts.get(type_), number)

    def direct_name(self, name: str) -> Span:
        """DirectQueueFormatName, 2.2.18.1.5.2."""
        start = self.reader.position
        count = self.reader.u16(name)
        if count == 0 or count % 2:
            raise MalformedError("bad_size", name, start)
        if count > self.reader.left:
            raise MalformedError("truncated", name, start)
        offset, data = self.span(name, count)
        end = end_of_string(data, 0)
        if end != count - 2:
            raise MalformedError("bad_terminator", name, offset + (count - 2 if end < 0 else end))
        self.pad()
        return Span(offset, data[:end])

    def transaction_header(self) -> None:
        """2.2.20.5."""
        flags, sequence, number, previous = self.unpack("IQII", "TransactionHeader")
        self.note("tx_sequence_number", number == 0)
        self.note("previous_tx_sequence_number", previous and previous >= number)
        self.note("reserved_flags", flags >> 24)
        self.values.update(
            first_message=bool(flags & 4),
            last_message=bool(flags & 8),
            final_ack_required=bool(flags & 2),
            transaction_id=flags >> 4 & 0xFFFFF,
            transaction_flags=flags,
            tx_sequence_id=sequence,
            tx_sequence_number=number,
            previous_tx_sequence_number=previous,
        )
        if flags & 1:
            self.values["connector_queue_manager"] = self.reader.take("ConnectorQMGuid", 16)

    def security_header(self) -> None:
        """2.2.20.6; what is there follows from the sizes, whatever AI says."""
        start = self.reader.position
        flags, *sizes = self.unpack("HHHHII", "SecurityHeader")
        if sizes[3] > 0xFFFF:
            raise MalformedError("too_large", "SecurityHeader.SenderCertSize", start + 8)
        kind, size = flags & 0xF, sizes[0]
        self.note("security_flags", flags & 0x0F10)
        self.note("reserved_flags", flags >> 12)
        self.note("sender_id", kind > 2 or (kind == 0) != (size == 0) or (kind == 2 and size != 16))
        self.note("no_security_data", not any(sizes))
        default_provider = flags & 0x40
        self.note("crypto_provider", sizes[4] if default_provider else sizes[2] and not sizes[4])
        self.values.update(
            security_flags=flags,
            sender_id_type={0: "none", 1: "sid", 2: "queue_manager"}.get(kind),
            body_encrypted=bool(flags & 0x20),
        )
        items = (
            ("security_id", "SecurityID"),
            ("encryption_key", "EncryptionKey"),
            ("signature", "SecurityData.Signature"),
            ("sender_certificate", "SenderCert"),
            ("provider_info", "ProviderInfo"),
        )
        for (column, name), size in zip(items, sizes, strict=True):
            if size:
                self.values[column] = self.span(name, size)
                self.pad()
        if kind == 1 and sizes[0]:
            self.note("sender_id", "sender_id" in self.found or not _is_sid(self.values["security_id"].data))
        if sizes[4] and not default_provider:
            name = self.values["provider_info"].data[4:]
            ends = len(name) % 2 == 0 and end_of_string(name, 0) == len(name) - 2
            self.note("crypto_provider", "crypto_provider" in self.found or not ends)

    def message_properties_header(self) -> None:
        """2.2.19.3."""
        start = self.reader.position
        (
            flags, length, class_, guid, ordinal, body_type, tag, size, allocated, privacy, hash_, cipher, extension,
        ) = self.unpack("BBH16s9I", "MessagePropertiesHeader")  # fmt: skip
        if length > 250:
            raise MalformedError("bad_size", "LabelLength", start + 1)
        label = self.text("Label", length)
        self.note("label_terminator", length and len(label.data) != 2 * length - 2)
        self.note("reserved_flags", flags >> 4)
        self.note("allocation_body_size", allocated < size)
        encrypted = self.values.get("body_encrypted")
        self.note("privacy_level", privacy not in (0, 1, 3, 5) or (encrypted and privacy == 0))
        self.note("message_class_value", class_ & ~0xE1FF)
        self.note("hash_algorithm", hash_ not in HASH_ALGORITHMS)
        self.note("encryption_algorithm", cipher not in CIPHERS.get(privacy, (RC2, RC4, AES_128, AES_192, AES_256)))
        self.values.update(
            positive_arrival_ack=bool(flags & 1),
            positive_receive_ack=bool(flags & 2),
            negative_arrival_ack=bool(flags & 4),
            negative_receive_ack=bool(flags & 8),
            label=label,
            message_class=class_,
            message_class_name=MESSAGE_CLASSES.get(class_),
            correlation_guid=guid,
            correlation_ordinal=ordinal,
            body_type=body_type,
            body_type_name=body_type_name(body_type),
            properties_flags=flags,
            application_tag=tag,
            message_size=size,
            allocation_body_size=allocated,
            privacy_level=privacy,
            hash_algorithm=hash_,
            encryption_algorithm=cipher,
            extension_data=self.span("ExtensionData", extension),
            body=self.span("MessageBody", size),
        )
        self.pad()

    def debug_header(self) -> None:
        """2.2.20.8."""
        start = self.reader.position
        (flags,) = self.unpack("H2x", "DebugHeader")
        if flags & 3 > 1:
            raise MalformedError("bad_flag", "DebugHeader.Flags", start)
        self.note("reserved_flags", flags >> 2)
        if flags & 3:
            self.values["debug_queue"] = self.reader.take("DebugHeader.QueueIdentifier", 16)

    def http_headers(self) -> None:
        """SRMPEnvelopeHeader and CompoundMessageHeader, [MS-MQRR] 2.2.5.1.2; either can be absent."""
        if self.http_header_id() not in (None, 500):
            self.srmp_envelope_header()
        if self.http_header_id() == 500:
            self.compound_message_header()

    def http_header_id(self) -> int | None:
        """The HeaderId of the next header, None where the packet or the headers of other flags follow."""
        if self.reader.left < 8:
            return None
        first, second, third = struct.unpack_from("<HHH", self.reader.data, self.reader.position)
        if self.user_flags & 1 << 28:
            return None if first == 0x0320 else first
        if self.user_flags & 1 << 23 and third == 0x0064 and first + (second << 16) >= 12:
            return None
        return int(first)

    def srmp_envelope_header(self) -> None:
        """2.2.5.1.2.1: DataLength counts code units, the U+0000 at the end among them."""
        start = self.reader.position
        (length,) = self.unpack("4xI", "SRMPEnvelopeHeader")
        if length > self.reader.left // 2:
            raise MalformedError("truncated", "SRMPEnvelopeHeader.DataLength", start + 4)
        text = self.text("SRMPEnvelopeHeader", length)
        self.note("srmp_envelope_terminator", len(text.data) + 2 != 2 * length)
        self.values["srmp_envelope"] = text
        self.pad()

    def compound_message_header(self) -> None:
        """2.2.5.1.2.2."""
        start = self.reader.position
        _, size, body_size, body_offset = self.unpack("4s3I", "CompoundMessageHeader")
        if size > self.reader.left:
            raise MalformedError("truncated", "CompoundMessageHeader.HttpBodySize", start + 4)
        if body_size > size:
            raise MalformedError("bad_size", "CompoundMessageHeader.MessageBodySize", start + 8)
        if body_offset + body_size > size:
            raise MalformedError("bad_size", "CompoundMessageHeader.MessageBodyOffset", start + 12)
        whole = self.span("CompoundMessageHeader", size)
        body = Span(whole.offset + body_offset, whole.data[body_offset : body_offset + body_size])
        self.values.update(
            http_body=whole, message_body_size=body_size, message_body_offset=body_offset, compound_body=body
        )

    def body(self) -> None:
        """What people read of the body."""
        body = self.values["body"].data
        if not body and "compound_body" in self.values:
            body = self.values["compound_body"].data
        if body and (self.values["privacy_level"] or self.values.get("body_encrypted")):
            self.values["body_format"] = "encrypted"
            return
        self.values["body_format"], self.values["body_text"] = readable(body, self.values["body_type"])

    def soap_header(self) -> None:
        """2.2.20.7."""
        sections = (
            ("soap_header", "SoapHeader", "Header", 0x0320),
            ("soap_body", "SoapBody", "Body", 0x0384),
        )
        for column, name, part, expected in sections:
            start = self.reader.position
            section, length = self.unpack("H2xI", name)
            if section != expected:
                raise MalformedError("bad_header", name, start)
            self.values[column] = text = self.text(f"{name}.{part}", length)
            self.note(
                "soap_terminator", "soap_terminator" in self.found or (length and len(text.data) != 2 * length - 2)
            )

    def multi_queue_format_header(self) -> None:
        """2.2.20.1."""
        self.values["destination_queues"] = self.address_header("Destination", 0x0064)
        self.values["admin_queues"] = self.address_header("Administration", 0x00C8)
        self.values["response_queues"] = self.address_header("Response", 0x012C)
        start = self.reader.position
        id_, size = self.unpack("H2xI", "MQFSignatureHeader")
        if id_ != 0x015E:
            raise MalformedError("bad_header", "MQFSignatureHeader.ID", start)
        self.values["multi_queue_signature"] = self.span("MQFSignatureHeader.Signature", size)

    def address_header(self, name: str, expected: int) -> tuple[Queue, ...]:
        """MQFAddressHeader, 2.2.20.2: its elements end where HeaderSize says."""
        start = self.reader.position
        left = self.reader.left
        size, id_, count = self.unpack("IH2xI", name)
        if not 12 <= size <= left:
            raise MalformedError("bad_size", f"{name}.HeaderSize", start)
        if id_ != expected:
            raise MalformedError("bad_header", f"{name}.HeaderID", start + 4)
        whole, self.reader = self.reader, Reader(self.reader.data[: start + size])
        self.reader.position = whole.position
        queues = tuple(self.element(f"{name}.FormatNameList[{k}]", start) for k in range(count))
        whole.position = start + size
        self.reader = whole
        self.pad(start)
        return queues

    def element(self, name: str, header: int) -> Queue:
        """MQFFormatNameElement, 2.2.18.1.4, aligned from the start of its header."""
        start = self.reader.position
        try:
            type_ = self.reader.u16(name)
            if type_ == 3:
                end = end_of_string(self.reader.data, self.reader.position)
                if end < 0:
                    raise MalformedError("bad_terminator", name, start)
                text = self.span(name, end - self.reader.position)
                self.reader.take(name, 2)
                return Queue("direct", type_, name=text)
            if type_ not in (1, 2, 6):
                raise MalformedError("bad_type", name, start)
            self.pad(header)
            guid = self.reader.take(name, 16)
            if type_ == 2:
                return Queue("private", type_, guid, self.reader.u32(name))
            return Queue("public" if type_ == 1 else "distribution_list", type_, guid)
        except MalformedError as error:
            raise MalformedError(error.fault.code, name, start) from None

    def acknowledgment(self) -> None:
        """OrderAck and FinalAck packets, [MS-MQQB] 2.2.4 and 2.2.5."""
        destination, body = self.values["destination_queue"], self.values["body"].data
        if self.flags & NOT_RESERVED or self.values["label"].text != ACK_LABEL or len(body) != ACK_SIZE:
            return
        if not _addresses(destination, ORDER_QUEUE, _is_order_queue):
            return
        class_ = self.values["message_class"]
        if class_ == 0x00FF:
            self.values["kind"] = "order_ack"
        elif class_ >= 0x4000 and self.values["delivery_mode"] == "recoverable":
            self.values["kind"] = "final_ack"
        else:
            return
        sequence, number, previous, guid, id_ = struct.unpack("<QII16sI", body)
        self.values.update(
            acknowledged_tx_sequence_id=sequence,
            acknowledged_tx_sequence_number=number,
            acknowledged_previous_tx_sequence_number=previous,
        )
        others = self.user_flags & 0x12DFE31F
        said = any(self.values[f"{sign}_{when}_ack"] for sign, when in _ACKS) or self.values["body_type"]
        forever = self.time_to_reach_queue == 0xFFFFFFFF
        if self.values["kind"] == "final_ack":
            right = class_ in FINAL_ACKS
        else:
            right = self.values["delivery_mode"] == "express" and previous == number - 1
        self.note("acknowledgment", others or said or number == 0 or previous == 0xFFFFFFFF or not forever or not right)
        if self.values["kind"] == "final_ack":
            self.values.update(acknowledged_source_queue_manager=guid, acknowledged_message_id=id_)

    def notification(self) -> None:
        """Whether a change notification is in the body: it goes to the notify queue, [MS-MQCN] 3.2.1.2.1."""
        if self.values["message_class"] == 0 and _addresses(
            self.values["destination_queue"], NOTIFY_QUEUE, _NOTIFY_QUEUE_NAME.fullmatch
        ):
            self.values["notification"] = "encrypted" if self.values["privacy_level"] else "plain"


def _addresses(queue: Queue | None, number: int, fits: Callable[[str], object]) -> bool:
    """Whether a destination is the private queue of this number, or has such a direct name."""
    if queue is None:
        return False
    if queue.name is not None:
        return bool(fits(queue.name.text))
    return queue.number == number


def _is_sid(data: bytes) -> bool:
    """Whether the bytes are laid out as a SID, [MS-DTYP] 2.4.2.2: at most 15 authorities after the fixed part."""
    return len(data) >= 8 and data[0] == 1 and data[1] <= 15 and len(data) == 8 + 4 * data[1]


def _is_order_queue(name: str) -> bool:
    """orderQueueName, [MS-MQQB] 2.2.4."""
    match = _ORDER_QUEUE_NAME.fullmatch(name)
    if match is None:
        return False
    if match[1].upper() == "SPX":
        return _IPX_ADDRESS.fullmatch(match[2]) is not None
    try:
        return "%" not in match[2] and bool(ipaddress.ip_address(match[2]))
    except ValueError:
        return False
