"""Seeded MQCN messages for differential tests, fuzz corpus and benchmarks: valid, mutated and random.

A message is made as a list of labelled pieces, so that a mutation can aim at a field as well as at any byte.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.reference.mixture import mixture
from tests.reference.propvariant import TYPE_OF, VECTORS, units_of

#: What has a name in the specification, a piece each.
Piece = tuple[str, bytes]

PROPIDS = tuple(TYPE_OF)
_CREATE = (101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 1101)
_QUEUE = (104, 105, 106, 107, 111, 112, 1101)
_MACHINE = (214, 215, 1201, 206, 207, 216, 220)

#: Unassigned numbers, those of the management groups, and known ones spoilt in their upper bytes.
UNKNOWN = (
    0, 1, 2, 6, 7, 24, 27, 28, 100, 120, 122, 127, 200, 204, 225, 226, 230, 240, 243, 300, 313, 401, 506, 814, 1000,
    1100, 1104, 1200, 1204, 1206, 1304, 1406, 1602, 5100, 5104, 5113, 5203, 5210, 5403, 5408, 6000, 0x10069, 0x1000069,
    0x69000000, 0x7FFFFFFF, 0x80000000, 0x80000069, 0xFFFFFFFF,
)  # fmt: skip
_COUNTS = (0, 1, 2, 3, 5, 255, 256, 0xFFFF, 0x10000, 0x10000000, 0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000,
           0x80000001, 0xFFFFFFFC, 0xFFFFFFFE, 0xFFFFFFFF)  # fmt: skip

#: Code units on which a scan by bytes, by sign or by surrogate pairs would stumble.
_UNITS = (
    0x0001, 0x0061, 0x00FF, 0x0100, 0x0130, 0x0131, 0x017F, 0x212A, 0x2C00, 0x5C00, 0x7F00, 0x7FFF, 0x8000, 0xD800,
    0xDBFF, 0xDC00, 0xDFFF, 0xFEFF, 0xFF00, 0xFFFE, 0xFFFF,
)  # fmt: skip
_NAME = "".join(map(chr, (0x21, *range(0x23, 0x2B), *range(0x2D, 0x3B), *range(0x3C, 0x5C), *range(0x5D, 0x80))))
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_SPOILERS = (
    0x0000, 0x0020, 0x0021, 0x007E, 0x007F, 0x0080, 0x005C, 0x003B, 0x0022, 0x002C, 0x003C, 0x003E, 0x0041, 0x0120,
    0x0130, 0x0131, 0x017F, 0x1E00, 0x212A, 0x3C00, 0xD800, 0xFF1C,
)  # fmt: skip


def _length(rng: random.Random) -> int:
    """Mostly short, some longer than a vector register, a few long."""
    if rng.random() < 0.02:
        return rng.randint(40, 400)
    return rng.choice((0, 1, 2, rng.randint(0, 7), rng.randint(0, 20), rng.randint(15, 34)))


def text(rng: random.Random) -> bytes:
    """A VT_LPWSTR."""
    length = _length(rng)
    if rng.random() < 0.7:
        return units_of("".join(rng.choices(_VISIBLE, k=length))) + b"\0\0"
    if rng.random() < 0.5:
        return struct.pack(f"<{length}H", *rng.choices(_UNITS, k=length)) + b"\0\0"
    return struct.pack(f"<{length}H", *(rng.randint(1, 0xFFFF) for _ in range(length))) + b"\0\0"


_WIDTHS = {
    "VT_I2": 2, "VT_I4": 4, "VT_I1": 1, "VT_UI1": 1, "VT_UI2": 2, "VT_UI4": 4, "VT_I8": 8, "VT_UI8": 8, "VT_CLSID": 16,
}  # fmt: skip


def value(rng: random.Random, type_: str) -> bytes:
    """A value of a type."""
    if width := _WIDTHS.get(type_):
        if width < 16 and rng.random() < 0.3:
            number = rng.choice((0, 1, (1 << 8 * width) - 1, 1 << (8 * width - 1), (1 << (8 * width - 1)) - 1))
            return number.to_bytes(width, "little")
        return rng.randbytes(width)
    if type_ == "VT_BOOL":
        return rng.choice((b"\0\0", b"\xff\xff"))
    if type_ == "VT_LPWSTR":
        return text(rng)
    if type_ in ("VT_BLOB", "VT_UI1|VT_VECTOR"):
        count = rng.choice((0, 1, rng.randint(0, 30), rng.randint(0, 30), rng.randint(0, 200)))
        return struct.pack("<I", count) + rng.randbytes(count)
    count = rng.choice((0, 1, 2, 3, rng.randint(0, 9)))
    if type_ == "VT_LPWSTR|VT_VECTOR":
        return struct.pack("<I", count) + b"".join(text(rng) for _ in range(count))
    return struct.pack("<I", count) + rng.randbytes(count * (4 if type_ == "VT_UI4|VT_VECTOR" else 16))


def queue_name(rng: random.Random) -> str:
    """A QueueName of [MS-MQMQ] 2.1.1, of any version."""
    length = rng.choice((1, rng.randint(1, 20), rng.randint(1, 20), 123, 124))
    if rng.random() < 0.2:
        return "".join(rng.choices(_NAME + '"+,', k=length))
    name = "".join(rng.choices(_NAME, k=length))
    if rng.random() < 0.15:
        name += ";" + "".join(rng.choices(_NAME, k=rng.choice((1, 5, 31, 32))))
    return name


def path_name(rng: random.Random) -> str:
    """A QueuePathName of [MS-MQMQ] 2.1.1."""
    if rng.random() < 0.5:
        return f"srv{rng.randint(0, 99)}\\{rng.choice(('', 'private$' + chr(92)))}orders{rng.randint(0, 999)}"
    computer = "".join(rng.choices(_VISIBLE, k=rng.choice((1, rng.randint(1, 20), 255, 256))))
    middle = rng.choice(("", "", "private$\\", "PRIVATE$\\", "Private$\\", "system$;", "SYSTEM$;", "sYsTeM$;"))
    return f"{computer}\\{middle}{queue_name(rng)}"


def _near_path_name(rng: random.Random) -> str:
    """What is just no QueuePathName, or just one."""
    name = path_name(rng)
    choice = rng.randrange(8)
    if choice == 0:
        return name.replace("\\", "")
    if choice == 1:
        return name + "x" * rng.choice((1, 100, 125))
    if choice == 2:
        return "y" * rng.choice((1, 240, 256)) + name
    if choice == 3:
        return rng.choice(("", "\\", "a", "a\\", "\\q", "a\\private$\\", "a\\system$;", "a\\;", "a\\q;", "a\\q;r;s"))
    if choice == 4:
        return name.replace("$", rng.choice(("", "$$", "$;", "$\\")))
    at = rng.randint(0, len(name))
    return name[:at] + chr(rng.choice([unit for unit in _SPOILERS if unit])) + name[at + (choice == 5) :]


def _ids(rng: random.Random, command: int) -> list[int]:
    """PROPIDs: those of the command, or any."""
    style = rng.random()
    if style < 0.25:
        return rng.choices(PROPIDS, k=rng.choice((0, 1, 2, 3, rng.randint(0, 12))))
    if command == 2:
        return [1403, 1404]
    if command == 0:
        ids = rng.sample(_CREATE, rng.choice((15, 15, 3)))
    elif style < 0.65:
        ids = [115, *rng.sample(_QUEUE, rng.randint(0, 4))]
    else:
        ids = [202, 219, *rng.sample(_MACHINE, rng.randint(0, 4))]
        if rng.random() < 0.3:
            rng.shuffle(ids)
    if rng.random() < 0.1:
        ids.insert(rng.randint(0, len(ids)), rng.choice((126, rng.choice(PROPIDS), rng.choice(ids))))
    return ids


def update(rng: random.Random) -> list[Piece]:
    """A Notification Update that decodes, with or without violations."""
    command = rng.choice((0, 1, 1, 1, 2))
    ids = _ids(rng, command)
    values = [value(rng, TYPE_OF[propid]) for propid in ids]
    if ids == [1403, 1404] and rng.random() < 0.8:
        values = [b"\1", rng.choice((b"\1", b"\1", b"\1", b"\2"))]
    use_guid = (command != 0) ^ (rng.random() < 0.06)
    pieces: list[Piece] = [("Command", bytes((command,))), ("UseGuid", bytes((use_guid,)))]
    if use_guid:
        pieces.append(("GuidIdentifier", rng.randbytes(16)))
    else:
        name = path_name(rng) if rng.random() < 0.9 else _near_path_name(rng)
        pieces.append(("PathName", units_of(name) + b"\0\0"))
    pieces.append(("GuidMasterId", rng.randbytes(16)))
    pieces.append(("Reserved", bytes(24) if rng.random() < 0.8 else rng.randbytes(24)))
    pieces.append(("NumberOfProperties", bytes((len(ids),))))
    pieces.append(("PropertyId", struct.pack(f"<{len(ids)}I", *ids)))
    pieces += [(TYPE_OF[propid], data) for propid, data in zip(ids, values, strict=True)]
    return pieces


def message_of(command: int, *values: tuple[int, bytes], path: str | None = None) -> bytes:
    """A message of one update with these PROPIDs and values; all its GUIDs are zeros."""
    identifier = b"\1" + bytes(16) if path is None else b"\0" + units_of(path) + b"\0\0"
    ids = struct.pack(f"<B{len(values)}I", len(values), *(propid for propid, _ in values))
    update = bytes((command,)) + identifier + bytes(16 + 24) + ids + b"".join(data for _, data in values)
    return b"\1\1" + update


def body_text(rng: random.Random) -> str:
    """A Notification Body that decodes."""
    digits = f"{rng.getrandbits(128):032x}"
    guid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    style = rng.random()
    if style < 0.5:
        server = f"dc{rng.randint(1, 20)}.example.org"
    elif style < 0.9:
        server = "".join(rng.choices(_VISIBLE, k=rng.choice((1, 2, rng.randint(1, 40), 255, 256))))
    else:
        server = rng.choice(
            ("<", "</DomainController>", "a</DomainController></Notification>", "&lt;", "</Notification>")
        )
    name = (
        f"<Notification><Event>{rng.randint(1, 4)}</Event><ObjectGuid>{guid.upper()}</ObjectGuid{rng.choice((' ', ''))}"
        f"><DomainController>{server}</DomainController></Notification>"
    )
    if rng.random() < 0.15:
        return rng.choice((name.lower(), name.upper(), name.swapcase()))
    return name


def pieces(rng: random.Random) -> list[Piece]:
    """A message that decodes, in its pieces."""
    if rng.random() < 0.25:
        tail = rng.choice((b"", b"", b"\0", b"\xff", b"\0\0", b"\0\0\0", b"\0\0\x07"))
        return [("Version", b"\2"), ("Count", b"\1"), ("Body", units_of(body_text(rng))), ("Tail", tail)]
    count = rng.choice((1, 1, 1, 1, 1, 2, 2, 3))
    if rng.random() < 0.01:
        count = rng.choice((0, 0, 9, 20))
    made: list[Piece] = [("Version", b"\1"), ("Count", bytes((count,)))]
    for _ in range(count):
        made += update(rng)
    made.append(("Tail", rng.choice((b"", b"", b"\0", b"\xff"))))
    return made


def _join(made: list[Piece]) -> bytes:
    return b"".join([data for _, data in made])


def valid(rng: random.Random) -> bytes:
    """Any message that decodes."""
    return _join(pieces(rng))


_FEW = ("Version", "Count", "Command", "UseGuid", "NumberOfProperties")


def mutated(rng: random.Random) -> bytes:
    """A message after one to three strokes of bad luck."""
    made = pieces(rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if rng.random() < 0.35:
            made = [("", _mutate_bytes(rng, _join(made)))]
        else:
            at = rng.randrange(len(made))
            name, data = made[at]
            made[at] = name, _mutate_piece(rng, name, data)
    return _join(made)


def _mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    stroke, size = rng.randrange(4), len(data)
    at = rng.randint(0, size)
    if stroke == 0:
        return data[:at]
    if stroke == 1:
        return data + rng.choice((b"\0", b"\0\0", b"\0\0\0", rng.randbytes(rng.randint(1, 40))))
    if stroke == 2 and at < size:
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    return (
        data[:at] + rng.choice((b"", b"\0", b"\0\0", rng.randbytes(rng.randint(1, 8)))) + data[at + rng.randint(0, 3) :]
    )


def _mutate_piece(rng: random.Random, name: str, data: bytes) -> bytes:
    if name in _FEW and data:
        return bytes((rng.choice((0, 1, 2, 3, 255, (data[0] + rng.choice((-1, 1))) & 255)),))
    if name == "PropertyId" and len(data) >= 4:
        at = 4 * rng.randrange(len(data) // 4)
        number = rng.choice(UNKNOWN) if rng.random() < 0.6 else rng.choice(PROPIDS)
        return data[:at] + struct.pack("<I", number) + data[at + 4 :]
    if name == "Body":
        return _mutate_text(rng, data)
    if (name in VECTORS or name == "VT_BLOB") and len(data) >= 4 and rng.random() < 0.7:
        near = struct.unpack_from("<I", data)[0] + rng.choice((-1, 1))
        return struct.pack("<I", rng.choice((near & 0xFFFFFFFF, rng.choice(_COUNTS)))) + data[4:]
    if name in ("PathName", "VT_LPWSTR", "VT_LPWSTR|VT_VECTOR"):
        at = 2 * rng.randint(0, len(data) // 2)
        unit = struct.pack("<H", rng.choice(_SPOILERS))
        return rng.choice((data[:-2], data[:-1], data[:at] + unit + data[at + 2 :], data[:at] + unit + data[at:]))
    return _mutate_bytes(rng, data)


_EDGES = tuple(
    units_of(edge)
    for edge in ("<Notification>", "<Event>", "</Event>", "<ObjectGuid>", "-", "</ObjectGuid", ">", "</Dom", "</Not")
)


def _mutate_text(rng: random.Random, data: bytes) -> bytes:
    """One unit lost, doubled, added or replaced, often where one element ends and the next begins."""
    stroke = rng.randrange(10)
    if stroke == 0:
        return data + rng.choice((data, units_of(" "), units_of("</Notification>"), b"\0\0\0\0", rng.randbytes(6)))
    if stroke == 1:
        return b"\xff\xfe" + data
    if stroke == 2:
        return data[: 2 * rng.randint(0, len(data) // 2)]
    at = 2 * rng.randint(0, len(data) // 2)
    if rng.random() < 0.5:
        edge = rng.choice(_EDGES)
        found = data.find(edge)
        if found >= 0 and found % 2 == 0:
            at = found + rng.choice((-2, 0, len(edge) - 2, len(edge)))
    at = max(0, at)
    unit = struct.pack("<H", rng.choice(_SPOILERS))
    if stroke < 5:
        return data[:at] + data[at + 2 :]
    if stroke < 6:
        return data[:at] + data[at : at + 2] + data[at:]
    if stroke < 8:
        return data[:at] + unit + data[at:]
    return data[:at] + unit + data[at + 2 :]


def noise(rng: random.Random) -> bytes:
    """Random bytes, most of them behind a header that lets them in."""
    data = bytearray(rng.randbytes(rng.choice((rng.randint(0, 80), rng.randint(0, 300)))))
    if len(data) >= 4 and rng.random() < 0.9:
        data[:4] = bytes((rng.choice((1, 1, 1, 2)), rng.choice((1, 1, 2, 0)), rng.randrange(3), rng.randrange(2)))
        if data[3] == 1 and len(data) > 64:
            data[60] = rng.randint(0, 3)
            for at in range(61, min(61 + 4 * data[60], len(data) - 4), 4):
                struct.pack_into("<I", data, at, rng.choice(PROPIDS))
    return bytes(data)


def cases(count: int, seed: int, *, broken: float = 0.5) -> Iterator[bytes]:
    """``count`` payloads, of which the share ``broken`` is malformed."""
    return mixture(count, seed, broken, valid, mutated, noise)
