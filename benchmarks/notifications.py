"""Seeded change notifications ([MS-MQCN] 2.2.4): messages of 1-3 updates, each of them from a pool made one by one.

As in ``workloads.py`` the truth comes with them, and the layouts share no code with the package.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass

import numpy as np

from benchmarks.workloads import CITIES, I64, ROLES, SEED, Columns, Workload, ends_of, within

POOL = 16_384

#: What each PROPID's value is: a format of ``struct``, or one of these three.
GUID, TEXT, BLOB = "guid", "text", "blob"
FORMS = {
    101: GUID, 102: GUID, 103: TEXT, 104: "B", 105: "L", 106: "h", 107: "L", 108: TEXT, 109: "l", 110: "l",
    111: "B", 112: "L", 113: "B", 114: "B", 115: GUID, 202: GUID, 206: BLOB, 214: "L", 215: "L", 219: "B",
    1101: BLOB, 1201: BLOB, 1403: "B", 1404: "B",
}  # fmt: skip
CREATE = (104, 105, 106, 107, 111, 112, 1101, 102, 101, 109, 110, 114, 103, 108, 113)
QUEUE_CHANGES = (104, 105, 106, 107, 111, 112, 1101)
MACHINE_CHANGES = (214, 215, 1201, 206)

Value = int | str | bytes


@dataclass(frozen=True)
class Update:
    """One change: ``path`` names a queue that is created, ``guid`` any other object."""

    command: int
    path: str | None
    guid: bytes | None
    master: bytes
    properties: list[tuple[int, Value]]


def packed_value(propid: int, value: Value) -> bytes:
    """A value on the wire."""
    form = FORMS[propid]
    if isinstance(value, str):
        return f"{value}\0".encode("utf-16-le")
    if isinstance(value, bytes):
        return value if form == GUID else struct.pack("<I", len(value)) + value
    return struct.pack("<" + form, value)


def packed_update(update: Update) -> bytes:
    """An update on the wire."""
    name = update.guid if update.path is None else f"{update.path}\0".encode("utf-16-le")
    ids = [propid for propid, _ in update.properties]
    head = bytes((update.command, update.path is None)) + (name or b"") + update.master + bytes(24)
    values = b"".join([packed_value(propid, value) for propid, value in update.properties])
    return head + struct.pack(f"<B{len(ids)}I", len(ids), *ids) + values


def random_value(rng: random.Random, propid: int, path: str) -> Value:
    """A value of the size that a directory has."""
    form = FORMS[propid]
    if form == GUID:
        return rng.randbytes(16)
    if form == TEXT:
        return path if propid == 103 else f"{rng.choice(ROLES)} {rng.choice(CITIES)}" * rng.randint(0, 3)
    if form == BLOB:
        return rng.randbytes(rng.choice((20, 28)) if propid == 206 else rng.choice((100, 120, 148, 176)))
    return rng.randrange(1 << (8 * struct.calcsize("<" + form) - 1))


def random_update(rng: random.Random, masters: list[bytes]) -> Update:
    """A create (a quarter of them), a delete (a tenth), or a change of a queue or a machine, as they are sent."""
    computer = f"{rng.choice(CITIES)}-{rng.choice(ROLES)}-{rng.randint(1, 99):02d}"
    path = f"{computer}\\orders_{rng.choice(ROLES).lower()}_{rng.randint(1, 9999)}"
    master, guid = rng.choice(masters), rng.randbytes(16)
    kind = rng.random()
    if kind < 0.25:
        return Update(0, path, None, master, [(propid, random_value(rng, propid, path)) for propid in CREATE])
    if kind < 0.35:
        return Update(2, None, guid, master, [(1403, 1), (1404, 1)])
    if kind < 0.85:
        ids = [115, *rng.sample(QUEUE_CHANGES, rng.randint(1, 7))]
    else:
        ids = [202, 219, *rng.sample(MACHINE_CHANGES, rng.randint(1, 4))]
    return Update(1, None, guid, master, [(propid, random_value(rng, propid, path)) for propid in ids])


def content(value: Value) -> bytes:
    """What a value has of bytes: the code units of a text, nothing for a number."""
    return b"" if isinstance(value, int) else value.encode("utf-16-le") if isinstance(value, str) else value


def update_columns(updates: list[Update]) -> Columns:
    """Updates as columns; values as a number and as bytes, one of which is empty."""
    properties = [item for update in updates for item in update.properties]
    contents = [content(value) for _, value in properties]
    paths = [(update.path or "").encode("utf-16-le") for update in updates]
    numbers = [value if isinstance(value, int) else 0 for _, value in properties]
    return {
        "command": np.array([update.command for update in updates], np.uint8),
        "object_guid": np.frombuffer(b"".join([update.guid or bytes(16) for update in updates]), "V16"),
        "master_guid": np.frombuffer(b"".join([update.master for update in updates]), "V16"),
        "path_ends": ends_of(np.array([len(path) for path in paths])),
        "path": np.frombuffer(b"".join(paths), np.uint8),
        "property_ends": ends_of(np.array([len(update.properties) for update in updates])),
        "property_id": np.array([propid for propid, _ in properties], np.uint32),
        "number": np.array(numbers, np.int64),
        "content_ends": ends_of(np.array([len(part) for part in contents])),
        "content": np.frombuffer(b"".join(contents), np.uint8),
    }


def picked(ends: I64, chosen: I64) -> tuple[I64, I64]:
    """Where the items of the chosen ranges are, and the ends of these ranges behind each other."""
    counts = np.diff(ends)[chosen]
    return np.repeat(ends[chosen], counts) + within(counts), ends_of(counts)


def notifications(rows: int, seed: int = SEED) -> Workload:
    """Messages of version 1 with 1-3 updates of up to 15 properties."""
    rng = random.Random(seed)
    masters = [rng.randbytes(16) for _ in range(64)]
    pool = [random_update(rng, masters) for _ in range(POOL)]
    packed = [packed_update(update) for update in pool]
    have = update_columns(pool)

    numbers = np.random.default_rng(seed)
    counts = numbers.integers(1, 4, rows)
    chosen = numbers.integers(0, POOL, counts.sum())
    parts: list[bytes] = []
    at = 0
    order = chosen.tolist()
    for count in counts.tolist():
        parts.append(b"".join((bytes((1, count)), *[packed[i] for i in order[at : at + count]])))
        at += count

    properties, property_ends = picked(have["property_ends"].astype(np.int64), chosen)
    contents, content_ends = picked(have["content_ends"].astype(np.int64), properties)
    paths, path_ends = picked(have["path_ends"].astype(np.int64), chosen)
    truth: Columns = {
        "version": np.ones(rows, np.uint8),
        "update_ends": ends_of(counts),
        **{name: have[name][chosen] for name in ("command", "object_guid", "master_guid")},
        "path_ends": path_ends,
        "path": have["path"][paths],
        "property_ends": property_ends,
        **{name: have[name][properties] for name in ("property_id", "number")},
        "content_ends": content_ends,
        "content": have["content"][contents],
    }
    sizes = np.array([len(part) for part in parts])
    return Workload(b"".join(parts), ends_of(sizes).astype(np.int32), truth)


def message_columns(messages: list[tuple[int, list[Update]]]) -> Columns:
    """What a peer made of messages, as the columns of the truth."""
    return {
        "version": np.array([version for version, _ in messages], np.uint8),
        "update_ends": ends_of(np.array([len(updates) for _, updates in messages])),
        **update_columns([update for _, updates in messages for update in updates]),
    }
