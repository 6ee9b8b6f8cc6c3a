"""The oracle of MQQB ([MS-MQMQ] 2.2.18 to 2.2.20, [MS-MQQB] 2.2): reads one packet at a time, with ``struct`` alone.

A payload is read as a row of the messages table or of the sessions table. What cannot be decoded gives a ``Fault`` and
nothing else; what breaks a MUST but can be decoded carries the names of its violations. The fields are read in wire
order and each check is made when its field is read, so the first fault wins; in strict decoding a packet without a
fault faults for the first violation, in the order of the bits, that a receiver discards.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Callable
from typing import Any

from tests.reference.mqqb_bodies import body_type_name, readable, readable_extension, sid_text
from tests.reference.mqqb_sessions import Internal, Ping
from tests.reference.mqqb_walk import (
    COLUMNS,
    MESSAGE_CLASSES,
    NOT_RESERVED,
    SESSION_HEADER,
    TRANSPORTS,
    VIOLATIONS,
    Framed,
    Outcome,
    Packet,
    Queue,
    Table,
    Transport,
    Walk,
)
from tests.reference.propvariant import end_of_string
from tests.reference.reader import Fault, MalformedError, Reader, Span

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
    "rows",
]

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


def rows(outcome: Outcome, table: Table) -> list[dict[str, Any]]:
    """The row of an outcome, with its nulls; None stands for a null payload."""
    row: dict[str, Any] = dict.fromkeys((*COLUMNS[table], "fault", "violations"))
    if isinstance(outcome, Fault):
        row["fault"] = outcome
    elif outcome is not None:
        row.update(outcome.values, violations=outcome.violations)
    return [row]


def read(data: bytes, table: Table, *, strict: bool = False, transport: Transport = "unknown") -> Packet | Fault:
    """The packet that the payload holds, or why it holds none for this table; ``transport`` matters to sessions."""
    data = bytes(data)
    is_ping = transport == "udp" or (transport == "unknown" and data[4:8] != b"LIOR")
    try:
        if table == "messages":
            return _UserMessage(data).packet(strict)
        return (Ping(data) if is_ping else Internal(data)).packet(strict)
    except MalformedError as error:
        return error.fault


_ACKS = (("positive", "arrival"), ("positive", "receive"), ("negative", "arrival"), ("negative", "receive"))


class _UserMessage(Framed):
    """UserMessage packet, [MS-MQMQ] 2.2.20, the acknowledgments of transactional messages among them."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data, "messages")
        self.values.update(
            priority=self.flags & 7,
            debug_header=bool(self.flags & 0x20),
            tracing=bool(self.flags & 0x100),
            time_to_reach_queue=self.time_to_reach_queue,
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
            self.session_header(struct.unpack_from("<" + SESSION_HEADER, data, self.size))
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

    packet = Walk.outcome

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
        """What people read of ExtensionData and of the body."""
        extension = readable_extension(self.values["extension_data"].data)
        self.values["extension_format"], self.values["extension_text"] = extension
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
