"""Seeded user messages ([MS-MQMQ] 2.2.20): each of them from a pool made one by one.

As in ``workloads.py`` the truth comes with them, and the layouts share no code with the package.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

import numpy as np

from benchmarks.notifications import packed_update, picked, random_update
from benchmarks.workloads import CITIES, I64, ROLES, SEED, Columns, Workload, ends_of

POOL = 4_096
NOTIFICATIONS = 0.1  # the share of change notifications

PRIVATE, PUBLIC, DIRECT = 3, 5, 7
SID = bytes.fromhex("010500000000000515000000ad4a9ebd36d9fa3d63a656dae8030000")


@dataclass(frozen=True)
class Message:
    """What is compared of a message; ``queue`` are the bytes that say the destination, of a direct name its units."""

    priority: int
    source: bytes
    address: bytes
    sent: int
    message_id: int
    queue_type: int
    queue: bytes
    sequence_number: int
    sender: bytes
    label: bytes
    message_class: int
    body: bytes


def padded(data: bytes) -> bytes:
    """The data up to a multiple of four bytes."""
    return data + bytes(-len(data) % 4)


def packed_message(message: Message) -> bytes:
    """A message on the wire."""
    flags = 1 << 21 | message.queue_type << 10 | bool(message.sender) << 19
    queue = message.queue
    if message.queue_type == DIRECT:
        queue = padded(struct.pack("<H", len(queue) + 2) + queue + b"\0\0")
    transaction = b""
    if message.sequence_number:
        flags |= 1 << 20 | 1 << 5
        transaction = struct.pack("<IQII", 0x1E, 7, message.sequence_number, message.sequence_number - 1)
    security = b""
    if message.sender:
        kind = 2 if len(message.sender) == 16 else 1
        security = padded(struct.pack("<HHHHII", 0x80 | kind, len(message.sender), 0, 0, 0, 0) + message.sender)
    label = message.label + b"\0\0" if message.label else b""
    sizes = (len(message.body), len(message.body), 0, 0x8004, 0x6610, 0)
    properties = struct.pack("<BBH20xII", 0, len(label) // 2, message.message_class, 8, 0) + struct.pack("<6I", *sizes)
    user = message.source + message.address + struct.pack("<4I", 86400, message.sent, message.message_id, flags) + queue
    content = user + transaction + security + padded(properties + label + message.body)
    return struct.pack("<BxH4sII", 0x10, message.priority, b"LIOR", 16 + len(content), 345600) + content


def random_body(rng: random.Random) -> bytes:
    """Mostly some hundred bytes of text, sometimes a few thousand."""
    words = [f"<{rng.choice(ROLES)}>{rng.choice(CITIES)}</{rng.choice(ROLES)}>" for _ in range(8)]
    size = rng.choice((rng.randint(40, 200), rng.randint(100, 600), rng.randint(100, 600), rng.randint(500, 4000)))
    text = "".join(words) * (size // 100 + 1)
    return text[:size].encode() if rng.random() < 0.5 else text[: size // 2].encode("utf-16-le")


def random_message(rng: random.Random, managers: list[bytes]) -> Message:
    """A message of an application (a fifth of them transactional) or a change notification."""
    source, address = rng.choice(managers), rng.choice(managers)
    sent, number = 1_700_000_000 + rng.randrange(1 << 20), rng.getrandbits(32)
    if rng.random() < NOTIFICATIONS:
        body = b"\1\1" + packed_update(random_update(rng, managers))
        queue = struct.pack("<I", 3)
        return Message(3, source, address, sent, number, PRIVATE, queue, 0, source, b"", 0, body)
    queue_type = rng.choice((DIRECT, DIRECT, DIRECT, PUBLIC, PRIVATE))
    if queue_type == DIRECT:
        name = f"OS:{rng.choice(CITIES)}-{rng.randint(1, 99):02d}\\private$\\{rng.choice(ROLES)}_{rng.randint(1, 99)}"
        queue, address = name.encode("utf-16-le"), bytes(16)
    else:
        queue = rng.randbytes(16 if queue_type == PUBLIC else 4)
    sequence_number = rng.randrange(1, 1000) if rng.random() < 0.2 else 0
    label = f"{rng.choice(ROLES)} {rng.choice(CITIES)} {rng.randint(1, 9999)}" if rng.random() < 0.7 else ""
    class_ = rng.choice((0, 0, 0, 0, 0, 0, 2, 0x4000))
    return Message(
        0 if sequence_number else 3,
        source,
        address,
        sent,
        number,
        queue_type,
        queue,
        sequence_number,
        SID if rng.random() < 0.5 else b"",
        label.encode("utf-16-le"),
        class_,
        random_body(rng),
    )


def message_columns(messages: list[Message]) -> Columns:
    """Messages as columns."""
    parts = {name: [getattr(message, name) for message in messages] for name in ("queue", "sender", "label", "body")}
    return {
        "priority": np.array([message.priority for message in messages], np.uint8),
        "source": np.frombuffer(b"".join([message.source for message in messages]), "V16"),
        "address": np.frombuffer(b"".join([message.address for message in messages]), "V16"),
        "sent": np.array([message.sent for message in messages], np.uint32),
        "message_id": np.array([message.message_id for message in messages], np.uint32),
        "queue_type": np.array([message.queue_type for message in messages], np.uint8),
        "sequence_number": np.array([message.sequence_number for message in messages], np.uint32),
        "message_class": np.array([message.message_class for message in messages], np.uint16),
        **{f"{name}_ends": ends_of(np.array([len(part) for part in every])) for name, every in parts.items()},
        **{name: np.frombuffer(b"".join(every), np.uint8) for name, every in parts.items()},
    }


def user_messages(rows: int, seed: int = SEED) -> Workload:
    """Messages of applications with a share of change notifications."""
    rng = random.Random(seed)
    managers = [rng.randbytes(16) for _ in range(64)]
    pool = [random_message(rng, managers) for _ in range(POOL)]
    packed = [packed_message(message) for message in pool]
    have = message_columns(pool)
    chosen: I64 = np.random.default_rng(seed).integers(0, POOL, rows)
    parts = [packed[i] for i in chosen.tolist()]
    truth: Columns = {}
    for name, column in have.items():
        if f"{name}_ends" in have:
            indices, ends = picked(have[f"{name}_ends"].astype(np.int64), chosen)
            truth[f"{name}_ends"], truth[name] = ends, column[indices]
        elif not name.endswith("_ends"):
            truth[name] = column[chosen]
    return Workload(b"".join(parts), ends_of(np.array([len(part) for part in parts])).astype(np.int32), truth)
