"""The other ways to read user messages, and the package as it is compared with them.

As in ``peers.py``: payloads are cut into ``bytes`` beforehand, and what a library would do slowly is done for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

import msmqwire
from benchmarks.messages import DIRECT, PUBLIC, Message, message_columns
from benchmarks.ours import BLOCK
from benchmarks.peers import Decoder, Encoder, See
from benchmarks.peers_notifications import gather
from benchmarks.workloads import I64, U8, Columns, Workload, ends_of
from msmqwire import mqqb

BASE = struct.Struct("<BxH4sII")
USER = struct.Struct("<16s16sIIII")
TRANSACTION = struct.Struct("<IQII")
SECURITY = struct.Struct("<HHHHII")
PROPERTIES = struct.Struct("<BBH20sII6I")
SIZES = {3: 4, 5: 16}

# The columns that are compared, beside those that only the check needs
COMPARED = (
    "priority", "source_queue_manager", "queue_manager_address", "sent_time", "message_id", "destination_queue",
    "tx_sequence_number", "security_id", "label", "message_class", "body",
)  # fmt: skip


# The package


def batch_columns(batch: mqqb.MessageBatch, work: Workload, first: int) -> Columns:
    """The columns the peers make as well; texts and bytes are gathered from the payloads."""
    starts = work.offsets[first : first + len(batch)].astype(np.int64)
    queues = batch["destination_queue"]
    names = {
        "sender": (batch["security_id"].offset, batch["security_id"].length),
        "label": (batch["label"].offset, batch["label"].length),
        "body": (batch["body"].offset, batch["body"].length),
    }
    columns: Columns = {
        "priority": batch["priority"],
        "source": np.ascontiguousarray(batch["source_queue_manager"]).view("V16").reshape(-1),
        "address": np.ascontiguousarray(batch["queue_manager_address"]).view("V16").reshape(-1),
        "sent": (batch["sent_time"].view(np.int64) // 1_000_000_000).astype(np.uint32),
        "message_id": batch["message_id"],
        "queue_type": queues["code"],
        "sequence_number": batch["tx_sequence_number"],
        "message_class": batch["message_class"],
    }
    for name, (offset, length) in names.items():
        sizes = length.astype(np.int64)
        columns[f"{name}_ends"] = ends_of(sizes)
        columns[name] = gather(work.data, starts + offset, sizes)
    columns["queue_ends"], columns["queue"] = queue_bytes(queues, work, starts)
    return columns


def queue_bytes(queues: Any, work: Workload, starts: I64) -> tuple[I64, U8]:
    """What says each destination on the wire: a number, a GUID, or the code units of a direct name."""
    parts = []
    for start, queue in zip(starts.tolist(), queues.tolist(), strict=True):
        _, code, _, number, offset, length, guid = queue
        if code == DIRECT:
            parts.append(work.data[start + offset : start + offset + length])
        else:
            parts.append(bytes(guid) if code == PUBLIC else struct.pack("<I", number))
    return ends_of(np.array([len(part) for part in parts])), np.frombuffer(b"".join(parts), np.uint8)


def decoder(work: Workload, columns: tuple[str, ...] | None) -> Decoder:
    """decode_batch over all payloads, its output reused; ``columns=None`` makes the whole table."""
    payloads = msmqwire.Payloads(work.data, work.offsets)
    batch = None

    def run(see: See | None = None) -> None:
        nonlocal batch
        for start in range(0, len(payloads), BLOCK):
            batch = mqqb.decode_batch(payloads[start : start + BLOCK], columns=columns, out=batch)
            if see:
                assert not len(batch.faults)
                see(batch_columns(batch, work, start))

    return run


def encoder(work: Workload) -> Encoder:
    """encode_batch of all messages, decoded beforehand into as many batches as there are blocks."""
    payloads = msmqwire.Payloads(work.data, work.offsets)
    starts = range(0, len(payloads), BLOCK)
    batches = [mqqb.decode_batch(payloads[start : start + BLOCK]) for start in starts]
    encoded = None

    def run(see: Callable[[Any], None] | None = None) -> None:
        nonlocal encoded
        for batch in batches:
            encoded = mqqb.encode_batch(batch, out=encoded)
            if see:
                for payload in encoded:
                    see(payload)

    return run


def shown(work: Workload, read: Callable[[bytes], Message]) -> Decoder:
    """A reader of one message over all payloads."""
    payloads = work.split()

    def run(see: See | None = None) -> None:
        messages = [read(payload) for payload in payloads]
        if see:
            see(message_columns(messages))

    return run


# struct


def struct_message(data: bytes) -> Message:
    """One message, checked as one writes it first; a label is made a string, as all peers do."""
    version, priority, signature, size, _ = BASE.unpack_from(data)
    if version != 0x10 or signature != b"LIOR" or size > len(data):
        raise ValueError("no packet")
    source, address, _, sent, message_id, flags = USER.unpack_from(data, 16)
    queue_type = flags >> 10 & 7
    if queue_type == DIRECT:
        count = int.from_bytes(data[64:66], "little")
        queue = data[66 : 64 + count]
        at = 66 + count + -(2 + count) % 4
    else:
        at = 64 + SIZES[queue_type]
        queue = data[64:at]
    sequence_number, sender = 0, b""
    if flags & 1 << 20:
        _, _, sequence_number, _ = TRANSACTION.unpack_from(data, at)
        at += TRANSACTION.size
    if flags & 1 << 19:
        _, sender_size, *_ = SECURITY.unpack_from(data, at)
        at += SECURITY.size
        sender = data[at : at + sender_size]
        at += sender_size + -sender_size % 4
    _, units, class_, _, _, _, body_size, _, _, _, _, extension = PROPERTIES.unpack_from(data, at)
    at += PROPERTIES.size
    label = data[at : at + 2 * units].decode("utf-16-le").rstrip("\0")
    at += 2 * units + extension
    if at + body_size > size:
        raise ValueError("truncated")
    return Message(
        priority & 7,
        source,
        address,
        sent,
        message_id,
        queue_type,
        queue,
        sequence_number,
        sender,
        label.encode("utf-16-le"),
        class_,
        data[at : at + body_size],
    )


def struct_messages(work: Workload) -> Decoder:
    """A loop over the payloads."""
    return shown(work, struct_message)


# construct


def construct_format() -> Any:
    """A message, declared."""
    from construct import (
        Bytes,
        Const,
        If,
        Int8ul,
        Int16ul,
        Int32ul,
        Int64ul,
        Padding,
        Struct,
        Switch,
        this,
    )

    direct = Struct("count" / Int16ul, "name" / Bytes(this.count - 2), Padding(2), Padding(-(this.count + 2) % 4))
    user = Struct(
        "source" / Bytes(16),
        "address" / Bytes(16),
        "lifetime" / Int32ul,
        "sent" / Int32ul,
        "message_id" / Int32ul,
        "flags" / Int32ul,
        "queue" / Switch(this.flags >> 10 & 7, {3: Bytes(4), 5: Bytes(16), 7: direct}),
    )
    transaction = Struct("flags" / Int32ul, "sequence" / Int64ul, "number" / Int32ul, "previous" / Int32ul)
    security = Struct(
        "flags" / Int16ul,
        "sender_size" / Int16ul,
        "rest" / Bytes(12),
        "sender" / Bytes(this.sender_size),
        Padding(-this.sender_size % 4),
    )
    properties = Struct(
        "flags" / Int8ul,
        "units" / Int8ul,
        "message_class" / Int16ul,
        "correlation" / Bytes(20),
        "body_type" / Int32ul,
        "tag" / Int32ul,
        "body_size" / Int32ul,
        "rest" / Bytes(16),
        "extension_size" / Int32ul,
        "label" / Bytes(2 * this.units),
        "extension" / Bytes(this.extension_size),
        "body" / Bytes(this.body_size),
    )
    return Struct(
        "version" / Const(b"\x10"),
        "reserved" / Int8ul,
        "flags" / Int16ul,
        "signature" / Const(b"LIOR"),
        "size" / Int32ul,
        "time_to_reach_queue" / Int32ul,
        "user" / user,
        "transaction" / If(this.user.flags >> 20 & 1, transaction),
        "security" / If(this.user.flags >> 19 & 1, security),
        "properties" / properties,
    )


def construct_messages(work: Workload) -> Decoder:
    """Struct.parse of each payload."""
    parse = construct_format().parse

    def read(payload: bytes) -> Message:
        packet = parse(payload)
        user, properties = packet.user, packet.properties
        queue_type = user.flags >> 10 & 7
        return Message(
            packet.flags & 7,
            user.source,
            user.address,
            user.sent,
            user.message_id,
            queue_type,
            user.queue.name if queue_type == DIRECT else user.queue,
            packet.transaction.number if packet.transaction else 0,
            packet.security.sender if packet.security else b"",
            properties.label.decode("utf-16-le").rstrip("\0").encode("utf-16-le"),
            properties.message_class,
            properties.body,
        )

    return shown(work, read)


# Kaitai Struct


def kaitai_messages(work: Workload) -> Decoder:
    """The generated reader on each payload."""
    from benchmarks.kaitai.msmq_messages import MsmqMessages

    parse = MsmqMessages.from_bytes

    def read(payload: bytes) -> Message:
        packet = parse(payload)
        queue_type = packet.user_flags >> 10 & 7
        if queue_type == DIRECT:
            destination = packet.destinationqueue_name[:-2]
        elif queue_type == PUBLIC:
            destination = packet.destinationqueue_guid
        else:
            destination = packet.destinationqueue_number.to_bytes(4, "little")
        has_transaction, has_security = packet.user_flags & 1 << 20, packet.user_flags & 1 << 19
        return Message(
            packet.base_flags & 7,
            packet.source_queue_manager,
            packet.queue_manager_address,
            packet.sent,
            packet.message_id,
            queue_type,
            destination,
            packet.tx_sequence_number if has_transaction else 0,
            packet.security_id if has_security else b"",
            packet.label.decode("utf-16-le").rstrip("\0").encode("utf-16-le"),
            packet.message_class,
            packet.body,
        )

    return shown(work, read)
