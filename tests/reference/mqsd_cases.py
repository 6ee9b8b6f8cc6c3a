"""Seeded MQSD payloads for differential tests, fuzz corpus and benchmarks: valid, mutated and random.

100,000 cost two seconds.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.reference.mixture import mixture

_COUNTS = (0, 1, 2, 3, 31, 32, 33, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
_SIZES = (0, 1, 2, 6, 7, 8, 9, 10, 0xFFFE, 0x10000, 0x7FFFFFFE, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)

#: Code units on which a scan by bytes, by sign or by surrogate pairs would stumble.
_UNITS = (
    0x0001, 0x002B, 0x002D, 0x0030, 0x0031, 0x0061, 0x00FF, 0x0100, 0x012C, 0x2C00, 0x2C2C, 0x2C61, 0x7FFF,
    0x8000, 0x802C, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFEFF, 0xFF00, 0xFF2C, 0xFFFE, 0xFFFF,
)  # fmt: skip
_SPOILERS = (0x0000, 0x002C, 0x0030, 0x0031, 0x0032, 0x002F, 0x0130, 0x0100, 0x012C, 0x2C00, 0x3000, 0x3100)


def name_units(rng: random.Random) -> list[int]:
    """The code units of a legal name: mostly short, some longer than a vector register, some nasty."""
    length = rng.choice((1, 2, 3, rng.randint(4, 15), rng.randint(1, 15), rng.randint(16, 40)))
    if rng.random() < 0.01:
        length = rng.randint(41, 300)
    style = rng.random()
    if style < 0.6:
        return [rng.randint(0x41, 0x7A) for _ in range(length)]
    if style < 0.9:
        return [rng.choice(_UNITS) for _ in range(length)]
    return [rng.choice((rng.randint(1, 0x2B), rng.randint(0x2D, 0xFFFF))) for _ in range(length)]


def server_array(rng: random.Random, servers: int) -> bytes:
    """A legal DirectoryServiceServerArray."""
    units: list[int] = []
    for _ in range(servers):
        units += (rng.choice((0x30, 0x31)), rng.choice((0x30, 0x31)), *name_units(rng), 0x2C)
    units[-1] = 0
    return struct.pack(f"<{len(units)}H", *units)


def mask_for(rng: random.Random, count: int) -> int:
    """A mask with ``count`` one bits."""
    return sum(1 << bit for bit in rng.sample(range(32), count))


def request(rng: random.Random, networks: int = 0) -> bytes:
    """A valid request; without networks the IP form."""
    head = b"\0\1\0\0" + rng.randbytes(48)
    return head + struct.pack("<I", networks) + rng.randbytes(4 * networks) if networks else head


def reply(rng: random.Random, networks: int, servers: int, *, masked: bool = False) -> bytes:
    """A valid reply; without servers the local-site form, masked the IPX form."""
    array = server_array(rng, servers) if servers else b""
    mask = mask_for(rng, networks) if masked else 0
    head = b"\0\2\0\0" + rng.randbytes(16) + struct.pack("<III", networks, mask, len(array))
    return head + rng.randbytes(16 * networks) + (rng.randbytes(16) + array if array else b"")


def listing(*names: str) -> bytes:
    """A reply of another site that lists these servers, all of them on IP."""
    array = (",".join(f"10{name}" for name in names) + "\0").encode("utf-16-le", "surrogatepass")
    return b"\0\2\0\0" + bytes(16) + struct.pack("<III", 1, 0, len(array)) + bytes(32) + array


def valid(rng: random.Random) -> bytes:
    """Any valid packet."""
    kind = rng.random()
    if kind < 0.2:
        return request(rng)
    few_or_many = rng.choice((rng.randint(1, 4), rng.randint(1, 32), 1, 32))
    if kind < 0.35:
        return request(rng, few_or_many)
    if kind < 0.5:
        return reply(rng, few_or_many, 0, masked=rng.random() < 0.3)
    return reply(rng, few_or_many, rng.choice((1, 1, 2, rng.randint(1, 8))), masked=rng.random() < 0.2)


def mutated(rng: random.Random) -> bytes:
    """A valid packet after one to three strokes of bad luck."""
    data = bytearray(valid(rng))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        _mutate(rng, data)
    return bytes(data)


def _mutate(rng: random.Random, data: bytearray) -> None:
    stroke = rng.randrange(9)
    size = len(data)
    if stroke == 0:
        del data[rng.randint(0, size) :]
    elif stroke == 1:
        data += rng.choice((b"\0", b"\0\0", rng.randbytes(rng.randint(1, 40))))
    elif stroke == 2 and size:
        data[rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif stroke == 3 and size >= 4:
        data[rng.randrange(4)] = rng.choice((0, 1, 2, 3, 255))
    elif stroke == 4 and size >= 24:
        struct.pack_into("<I", data, 20, rng.choice(_COUNTS))
    elif stroke == 5 and size >= 32:
        _mutate_words(rng, data)
    elif stroke == 6 and size >= 56:
        struct.pack_into("<I", data, 52, rng.choice(_COUNTS))
    elif size >= 66:
        _mutate_array(rng, data, stroke)


def _mutate_words(rng: random.Random, data: bytearray) -> None:
    if rng.random() < 0.3:
        count = struct.unpack_from("<I", data, 20)[0]
        mask = mask_for(rng, count) if 1 <= count <= 32 and rng.random() < 0.5 else rng.getrandbits(32)
        struct.pack_into("<I", data, 24, mask)
    else:
        size = struct.unpack_from("<I", data, 28)[0]
        near = (size + rng.choice((-2, -1, 1, 2))) & 0xFFFFFFFF
        struct.pack_into("<I", data, 28, rng.choice((near, rng.choice(_SIZES))))


def _mutate_array(rng: random.Random, data: bytearray, stroke: int) -> None:
    start = min(48 + 16 * data[20], len(data) - 2)
    places = list(range(start, len(data) - 1, 2))
    if rng.random() < 0.5:  # where an entry starts and ends is where the rules are
        commas = [at for at in places if data[at : at + 2] == b",\0"]
        places = [entry + step for entry in (start - 2, *commas) for step in (0, 2, 4, 6)]
    at = min(rng.choice(places), len(data) - 2)
    unit = struct.pack("<H", rng.choice(_SPOILERS))
    if stroke == 7:
        data[at : at + 2] = unit
    else:
        change = rng.choice((-2, 2))
        data[at : at + (2 if change < 0 else 0)] = b"" if change < 0 else unit
        declared = struct.unpack_from("<I", data, 28)[0]
        if rng.random() < 0.7:
            struct.pack_into("<I", data, 28, (declared + change) & 0xFFFFFFFF)


def noise(rng: random.Random) -> bytes:
    """Random bytes, most of them behind a header that lets them in."""
    data = bytearray(rng.randbytes(rng.choice((rng.randint(0, 64), rng.randint(0, 200)))))
    if len(data) >= 4 and rng.random() < 0.8:
        data[:4] = rng.choice((b"\0\1\0\0", b"\0\2\0\0"))
        if len(data) >= 32 and rng.random() < 0.8:
            mask = rng.choice((0, rng.getrandbits(3)))
            struct.pack_into("<III", data, 20, rng.randint(0, 4), mask, rng.randint(0, 64))
    return bytes(data)


def cases(count: int, seed: int, *, broken: float = 0.5) -> Iterator[bytes]:
    """``count`` payloads, of which the share ``broken`` is malformed."""
    return mixture(count, seed, broken, valid, mutated, noise)
