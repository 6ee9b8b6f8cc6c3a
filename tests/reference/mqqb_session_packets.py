"""The packets of a session, written and read with ``struct`` alone: [MS-MQQB] 2.2, [MS-MQMQ] 2.2.19 and 2.2.20.

Every field can be given, right or wrong: a test can write packets that no implementation would send.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple

SIGNATURE = 0x524F494C
IN, SH = 0x0008, 0x0010  # BaseHeader.Flags
SESSION_ACK, ESTABLISH_CONNECTION, CONNECTION_PARAMETERS = 1, 2, 3  # InternalHeader.Flags.PT
CS = 0x0010  # InternalHeader.Flags
INFINITE = 0xFFFFFFFF
GUID_NULL = bytes(16)
SE = 0x0100  # EstablishConnectionHeader.OperatingSystem
OPERATING_SYSTEM = 0x0010 | SE
PING_SIGNATURE = 0x5548
RC, RF = 1, 2  # Ping.Flags
LARGEST_PACKET = 4 << 20
SESSION_HEADER_SIZE = 16


class MalformedPacketError(Exception):
    """Bytes that are no packet of 2.2."""


class SessionHeader(NamedTuple):
    """SessionHeader, [MS-MQMQ] 2.2.20.4."""

    ack_sequence_number: int = 0
    recoverable_msg_ack_seq_number: int = 0
    recoverable_msg_ack_flags: int = 0
    user_msg_sequence_number: int = 0
    recoverable_msg_seq_number: int = 0
    window_size: int = 64

    def pack(self) -> bytes:
        return struct.pack("<HHIHHHH", *self, 0)


@dataclass(frozen=True)
class EstablishConnection:
    """EstablishConnection packet, 2.2.3."""

    client_guid: bytes
    server_guid: bytes
    time_stamp: int = 0
    operating_system: int = OPERATING_SYSTEM
    refused: bool = False
    padding: bytes = b"\x5a" * 512

    def pack(self) -> bytes:
        header = struct.pack(
            "<16s16sIHH", self.client_guid, self.server_guid, self.time_stamp, self.operating_system, 0
        )
        return internal(ESTABLISH_CONNECTION, header + self.padding, refused=self.refused)


@dataclass(frozen=True)
class ConnectionParameters:
    """ConnectionParameters packet, 2.2.2; both timeouts in milliseconds."""

    recoverable_ack_timeout: int = 500
    ack_timeout: int = 20000
    window_size: int = 64
    refused: bool = False

    def pack(self) -> bytes:
        header = struct.pack("<IIHH", self.recoverable_ack_timeout, self.ack_timeout, 0, self.window_size)
        return internal(CONNECTION_PARAMETERS, header, refused=self.refused)


@dataclass(frozen=True)
class SessionAck:
    """SessionAck packet, 2.2.6."""

    header: SessionHeader
    refused: bool = False

    def pack(self) -> bytes:
        return internal(SESSION_ACK, self.header.pack(), refused=self.refused)


@dataclass(frozen=True)
class UserMessage:
    """UserMessage packet, [MS-MQMQ] 2.2.20, with the fields that a session looks at."""

    source_queue_manager: bytes
    message_id: int
    body: bytes = b""
    recoverable: bool = False
    queue: str = "TCP:127.0.0.1\\private$\\orders"
    queue_manager_address: bytes = GUID_NULL
    label: str = ""
    sent_time: int = 0x60000000
    time_to_reach_queue: int = INFINITE
    body_type: int = 0
    tx_sequence_number: int | None = None  # None: no TransactionHeader
    session_header: SessionHeader | None = None
    time_to_be_received: int = INFINITE
    priority: int = 3
    message_class: int = 0
    tx_sequence_id: tuple[int, int] = (1, 1)  # Ordinal and TimeStamp
    tx_previous: int | None = None  # None: the number before
    tx_flags: int = 0xC  # FM, LM; FA is 2
    journaling: int = 0  # JN is 0x100, JP 0x200
    acknowledgments: int = 0  # PA, PR, NA, NR are 1, 2, 4, 8
    admin_queue: str = ""  # direct; a number is a private queue of the source

    def pack(self) -> bytes:
        """A direct name with DQ 7; any other text is a number of a private queue with DQ 3."""
        direct = not self.queue.isdigit()
        transactional = self.tx_sequence_number is not None
        flags = self.recoverable << 5 | (7 if direct else 3) << 10 | transactional << 20 | 1 << 21 | self.journaling
        if self.admin_queue:
            flags |= (2 if self.admin_queue.isdigit() else 7) << 13
        user = struct.pack(
            "<16s16sIIII",
            self.source_queue_manager,
            self.queue_manager_address,
            self.time_to_be_received,
            self.sent_time,
            self.message_id,
            flags,
        )
        for queue in filter(None, (self.queue, self.admin_queue)):
            user += _queue(queue)
        if self.tx_sequence_number is not None:
            previous = max(0, self.tx_sequence_number - 1) if self.tx_previous is None else self.tx_previous
            user += struct.pack("<IIIII", self.tx_flags, *self.tx_sequence_id, self.tx_sequence_number, previous)
        label = self.label.encode("utf-16-le") + b"\0\0" if self.label else b""
        size = len(self.body)
        properties = struct.pack("<BBH16sI", self.acknowledgments, len(label) // 2, self.message_class, bytes(16), 0)
        properties += struct.pack("<8I", self.body_type, 0, size, size, 0, 0x8003, 0x6602, 0)
        content = user + padded(properties + label + self.body)
        has_session = self.session_header is not None
        base = base_header(SH if has_session else 0, 16 + len(content), self.time_to_reach_queue, self.priority)
        return base + content + (self.session_header.pack() if self.session_header is not None else b"")


Packet = EstablishConnection | ConnectionParameters | SessionAck | UserMessage


def _queue(name: str) -> bytes:
    if name.isdigit():
        return struct.pack("<I", int(name))
    text = name.encode("utf-16-le") + b"\0\0"
    return padded(struct.pack("<H", len(text)) + text)


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def base_header(flags: int, size: int, time_to_reach_queue: int = INFINITE, priority: int = 3) -> bytes:
    """BaseHeader, [MS-MQMQ] 2.2.19.1."""
    return struct.pack("<BBHIII", 0x10, 0, priority | flags, SIGNATURE, size, time_to_reach_queue)


def internal(packet_type: int, content: bytes, *, refused: bool = False) -> bytes:
    """A packet with an InternalHeader, 2.2.1."""
    flags = IN | (SH if packet_type == SESSION_ACK else 0)
    return base_header(flags, 20 + len(content)) + struct.pack("<HH", 0, packet_type | CS * refused) + content


def first_packet(data: bytes) -> tuple[bytes, bytes]:
    """The first packet of a stream and what follows it; no packet where it is not all there (3.1.5.1.2, 3.1.5.1.3)."""
    if len(data) < 16:
        return b"", data
    version, _, flags, signature, size = struct.unpack_from("<BBHII", data)
    if version != 0x10 or signature != SIGNATURE or not 20 <= size <= LARGEST_PACKET:
        raise MalformedPacketError("BaseHeader")
    end = size + (SESSION_HEADER_SIZE if flags & (IN | SH) == SH else 0)
    return (data[:end], data[end:]) if end <= len(data) else (b"", data)


def read(data: bytes) -> Packet:
    """One whole packet (3.1.5.1.1)."""
    try:
        return _read_internal(data) if data[2] & IN else _read_user_message(data)
    except struct.error as error:
        raise MalformedPacketError(str(error)) from error


def _read_internal(data: bytes) -> Packet:
    base_flags, _, _, _, flags = struct.unpack_from("<2xHIIIxxH", data)
    refused = bool(flags & CS)
    if flags & 15 == ESTABLISH_CONNECTION:
        client, server, time_stamp, system, padding = struct.unpack_from("<16s16sIHxx512s", data, 20)
        return EstablishConnection(client, server, time_stamp, system, refused, padding)
    if flags & 15 == CONNECTION_PARAMETERS:
        recoverable_timeout, timeout, window = struct.unpack_from("<IIxxH", data, 20)
        return ConnectionParameters(recoverable_timeout, timeout, window, refused)
    if flags & 15 == SESSION_ACK and base_flags & SH:
        return SessionAck(_session_header(data, 20), refused=refused)
    raise MalformedPacketError("InternalHeader.Flags.PT")


def _session_header(data: bytes, offset: int) -> SessionHeader:
    return SessionHeader(*struct.unpack_from("<HHIHHHxx", data, offset))


def _read_user_message(data: bytes) -> UserMessage:
    """The fields of UserMessage; a SecurityHeader and what else no test sends is malformed."""
    base_flags, size, time_to_reach_queue = struct.unpack_from("<2xH4xII", data)
    source, address, time_to_be_received, sent_time, number, flags = struct.unpack_from("<16s16sIIII", data, 16)
    if flags & 0xFF000000 | flags & 1 << 19 or not flags & 1 << 21:
        raise MalformedPacketError("UserHeader.Flags")
    queue_type, position = flags >> 10 & 7, 64
    if queue_type == 7:
        (length,) = struct.unpack_from("<H", data, position)
        queue = data[position + 2 : position + length].decode("utf-16-le")
        position += 2 + length + -(2 + length) % 4
    elif queue_type == 3:
        queue = str(struct.unpack_from("<I", data, position)[0])
        position += 4
    elif queue_type == 5:
        queue = data[position : position + 16].hex()
        position += 16
    else:
        raise MalformedPacketError("UserHeader.Flags.DQ")
    for shift in (13, 16):  # AdminQueue and ResponseQueue
        if flags >> shift & 7 == 7:
            (length,) = struct.unpack_from("<H", data, position)
            position += 2 + length + -(2 + length) % 4
        elif flags >> shift & 7:
            position += {2: 4, 3: 4, 5: 16, 6: 20}[flags >> shift & 7]
    tx_sequence_number, tx_previous, tx_sequence_id, tx_flags = None, None, (1, 1), 0xC
    if flags & 1 << 20:
        tx_flags, *pair, tx_sequence_number, tx_previous = struct.unpack_from("<5I", data, position)
        tx_flags &= 0xF  # without the identifier of the transaction
        tx_sequence_id = pair[0], pair[1]
        position += 20
    properties = struct.unpack_from("<BBH16s9I", data, position)
    label_length, message_class, body_type, size_of_body, extension = (properties[index] for index in (1, 2, 5, 7, 12))
    label = data[position + 56 : position + 56 + 2 * label_length].decode("utf-16-le").rstrip("\0")
    start = position + 56 + 2 * label_length + extension
    if start + size_of_body > size:
        raise MalformedPacketError("MessagePropertiesHeader.MessageSize")
    return UserMessage(
        source, number, data[start : start + size_of_body], flags >> 5 & 3 == 1, queue, address, label, sent_time,
        time_to_reach_queue, body_type, tx_sequence_number, _session_header(data, size) if base_flags & SH else None,
        time_to_be_received, base_flags & 7, message_class, tx_sequence_id, tx_previous, tx_flags,
    )  # fmt: skip


@dataclass(frozen=True)
class Ping:
    """Ping packet, 2.2.7."""

    flags: int
    cookie: int
    guid: bytes
    signature: int = PING_SIGNATURE

    def pack(self) -> bytes:
        return struct.pack("<HHI16s", self.flags, self.signature, self.cookie, self.guid)

    def answer(self, guid: bytes, *, refused: bool = False) -> Ping:
        """The Ping Response to this request (3.1.7.7)."""
        return Ping(self.flags & RC | RF * refused, self.cookie, guid)


def read_ping(data: bytes) -> Ping | None:
    """A ping; None for what must be ignored."""
    if len(data) != 24:
        return None
    flags, signature, cookie, guid = struct.unpack("<HHI16s", data)
    return Ping(flags, cookie, guid) if signature == PING_SIGNATURE else None
