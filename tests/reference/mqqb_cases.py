"""A seeded stream of MQQB payloads: packets with every header and every form of a queue, mutations of them, noise.

About as fast as the oracle that reads them. A packet is made of named pieces, so that a mutation can aim at the numbers
that say how long the rest is; PacketSize is set last, so that what is wrong inside is reached.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

from tests.reference.formatname_cases import direct_path
from tests.reference.mixture import mixture
from tests.reference.mqqb import MESSAGE_CLASSES, Table
from tests.reference.propvariant import units_of

Piece = tuple[str, bytes]

# Few, so that a private queue's host is often one that the packet names
_GUIDS = (bytes(16), *(random.Random(k).randbytes(16) for k in range(4)))
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
_UNITS = (1, 0x41, 0x5C, 0x7F, 0x80, 0xFF, 0x100, 0x5C00, 0x6100, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFEFF, 0xFFFF)
_COUNTS = (0, 1, 2, 3, 4, 11, 12, 13, 16, 250, 251, 0xFF, 0xFFFE, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
_NOTIFY = (
    "OS:srv1\\PRIVATE$\\notify_queue$",
    "\\private$\\NOTIFY_QUEUE$",
    "PRIVATE$\\notify_queue$",
    "\\PRIVATE$\\notify_queue",
)
_ORDER = (
    "TCP:10.20.1.25\\PRIVATE$\\order_queue$",
    "spx:0000000A.00A0C9F312AB\\private$\\ORDER_QUEUE$",
    "TCP:fe80::1\\PRIVATE$\\order_queue$",
    "tcp:::ffff:10.0.0.1\\PRIVATE$\\order_queue$",
    "TCP:10.20.1.256\\PRIVATE$\\order_queue$",
    "TCP:10.20.01.2\\PRIVATE$\\order_queue$",
    "TCP:1:2:3:4:5:6:7\\PRIVATE$\\order_queue$",
    "TCP:fe80::1%1\\PRIVATE$\\order_queue$",
    "TCP:server\\PRIVATE$\\order_queue$",
    "SPX:0000000A:00A0C9F312AB\\PRIVATE$\\order_queue$",
    "SPX:0000000A.00A0C9F312AG\\PRIVATE$\\order_queue$",
    "SPX:0000000A.00A0C9F312A\\PRIVATE$\\order_queue$",
    "OS:srv1\\PRIVATE$\\order_queue$",
    "TCP:\\PRIVATE$\\order_queue$",
    "TCP:a\\b\\PRIVATE$\\order_queue$",
    "TCP:a\\PRIVATE$\\order_queue$x",
)


def _guid(rng: random.Random) -> bytes:
    return rng.choice(_GUIDS) if rng.random() < 0.9 else rng.randbytes(16)


def _u32(rng: random.Random) -> int:
    return rng.choice((0, 1, 3, 4, 7, 0x7FFFFFFF, 0xFFFFFFFF, rng.getrandbits(32), rng.getrandbits(8)))


def _text(rng: random.Random, most: int = 30) -> bytes:
    """Code units without a U+0000."""
    length = rng.choice((0, 1, rng.randint(0, most), rng.randint(0, most)))
    if rng.random() < 0.7:
        return units_of("".join(rng.choices(_VISIBLE, k=length)))
    return struct.pack(f"<{length}H", *rng.choices(_UNITS, k=length))


def _padding(rng: random.Random, size: int) -> bytes:
    """What fills up to a multiple of four; any bytes will do."""
    return bytes(-size % 4) if rng.random() < 0.8 else rng.randbytes(-size % 4)


def _padded(rng: random.Random, data: bytes) -> bytes:
    return data + _padding(rng, len(data))


def _direct_name(rng: random.Random) -> bytes:
    style = rng.random()
    if style < 0.3:
        return units_of(direct_path(rng))
    if style < 0.6:
        return units_of(
            f"OS:srv{rng.randint(0, 99)}\\{rng.choice(('', 'private$' + chr(92)))}orders{rng.randint(0, 999)}"
        )
    if style < 0.8:
        return units_of(rng.choice(_NOTIFY + _ORDER))
    return _text(rng)


def _queue(rng: random.Random, type_: int) -> bytes:
    if type_ in (0, 1):
        return b""
    if type_ == 5:
        return _guid(rng)
    if type_ == 7:
        name = _direct_name(rng) + b"\0\0"
        return _padded(rng, struct.pack("<H", len(name)) + name)
    number = struct.pack("<I", rng.choice((0, 3, 4, 5, rng.getrandbits(32))))
    return _guid(rng) + number if type_ == 6 else number


def _transaction(rng: random.Random) -> list[Piece]:
    flags = rng.getrandbits(24) if rng.random() < 0.8 else rng.getrandbits(32)
    number = rng.choice((0, 1, 2, 2, 3, 3, 0xFFFFFFFF, rng.getrandbits(32)))
    previous = max(0, number - 1) if rng.random() < 0.95 else rng.choice((number, 0xFFFFFFFF, _u32(rng)))
    fixed = struct.pack("<IQII", flags, rng.getrandbits(64), number, previous)
    return [("TransactionHeader", fixed), ("ConnectorQMGuid", _guid(rng) if flags & 1 else b"")]


def _provider(rng: random.Random, flags: int, signature_size: int) -> bytes:
    """ProviderInfo that fits DE and the signature, or just does not."""
    if rng.random() < 0.15:
        return rng.randbytes(rng.choice((0, 0, 3, 4, 5, rng.randint(0, 40))))
    if flags & 0x40 or (not signature_size and rng.random() < 0.7):
        return b""
    return rng.randbytes(4) + _text(rng) + rng.choice((*(b"\0\0",) * 12, b"", b"\0\0A\0", b"\0\0\0"))


_CIPHERS = (0x6602, 0x6801, 0x660E, 0x660F, 0x6610)


def _algorithms(rng: random.Random, privacy: int) -> tuple[int, int]:
    """HashAlgorithm and EncryptionAlgorithm that a PrivacyLevel allows, or just does not."""
    if rng.random() < 0.05:
        return rng.choice((0, 0x8000, 0x8005, 0x800D, 0x800F, _u32(rng))), rng.choice((0, 0x660D, 0x6611, *_CIPHERS))
    hash_ = rng.choice((0x8001, 0x8002, 0x8003, 0x8004, 0x8004, 0x800C, 0x800E))
    return hash_, rng.choice({0: _CIPHERS, 5: _CIPHERS[2:]}.get(privacy, _CIPHERS[:2]))


def _security(rng: random.Random) -> list[Piece]:
    kind = rng.choice((0, 1, 1, 1, 2, 2, 2, 3))
    id_size = (0, rng.choice((12, 28)), 16, 5)[kind] if rng.random() < 0.9 else rng.choice((0, 1, 16, 28))
    sizes = [id_size, *(rng.choice((0, 0, 0, 1, 2, 3, 4, rng.randint(0, 70))) for _ in range(3))]
    flags = kind | rng.choice((*(0x80,) * 4, 0xC0, 0xC0, 0xA0, 0, 0x90, 0x180, rng.getrandbits(12) << 4))
    items = [rng.randbytes(size) for size in sizes]
    items.append(_provider(rng, flags, sizes[2]))
    sizes.append(len(items[4]))
    pieces: list[Piece] = [("SecurityHeader", struct.pack("<HHHHII", flags, *sizes))]
    if id_size >= 12 and rng.random() < 0.95:
        items[0] = bytes((1, (id_size - 8) // 4)) + rng.choice((bytes(5) + b"\5", rng.randbytes(6))) + items[0][8:]
    return pieces + [("SecurityData", _padded(rng, item)) for item in items if item]


_TYPED = ((2, 2), (3, 4), (4, 4), (5, 8), (6, 8), (7, 8), (11, 2), (16, 1), (17, 1), (18, 2), (19, 4), (20, 8), (21, 8),
          (22, 4), (23, 4), (64, 8), (72, 16))  # fmt: skip
_DOTNET = bytes.fromhex("0001000000ffffffff01000000000000000b")


_NAMED = (
    b"\x0bMSH|^~\\&|LAB\r\x1c\r", b"MSH|^~\\&|LAB\r", b"UNB\x1dUNOA:3\x1c", b"UNB+UNOC:3+\xfc'",
    b"\0\1\0\1\4\2\x10net.msmq://h/q/r\3\7", b'<?xml version="1.0" encoding="ISO-8859-1"?><a>\xeb</a>',
    "{\"a\":1}".encode("utf-16-be"), _DOTNET[:-1] + b"\6\1\0\0\0\5hello\x0b",
    _DOTNET[:-1] + b"\x0f\1\0\0\0\2\0\0\0\2{}\x0b",
)  # fmt: skip
_HEADERS = (b'{"rbs2-msg-id":"1"}', b"\xef\xbb\xbf<a/>", b'{"a":\0\xff\7')


def _typed_body(rng: random.Random) -> tuple[int, bytes]:
    """A BodyType and a body that fits it, or just not."""
    style = rng.randrange(7)
    if style == 0:
        type_, size = rng.choice(_TYPED)
        return type_, rng.choice((rng.randbytes(size), b"\xff" * size, bytes(size), rng.randbytes(size + 1)))
    if style == 1:
        text = rng.choice(
            ("<a>\u00f6</a>", " <?xml?>", "text", "\ufeff<a/>", "\ufeffa", "a\0", "a\x01", "\0", "{}", "\x7f")
        )
        encoded = text.encode(rng.choice(("utf-8", "utf-16-le", "utf-16-be", "latin-1" if text.isascii() else "utf-8")))
        return rng.choice((0, 8, 30, 31, 0x1011)), encoded[: len(encoded) - rng.choice((0, 0, 0, 1))]
    if style == 2:
        return rng.choice((0, 768)), rng.choice((_DOTNET, _DOTNET[:-1], _DOTNET[:16], b"\1" + _DOTNET[1:]))
    if style == 3:
        return rng.choice((8, 31)), _text(rng) + rng.choice((b"", b"\0\0", b"\0"))
    if style == 4:
        return rng.choice(((0, rng.choice(_NAMED)), (30, rng.choice((b"Zo\xeb", b"\x80\x81\0")))))
    return _u32(rng), rng.randbytes(rng.choice((0, 1, 4, rng.randint(0, 60), rng.randint(0, 200))))


def _properties(
    rng: random.Random, *, label: bytes, class_: int, body: bytes, privacy: int, type_: int = 0, admin: bool = False
) -> list[Piece]:
    extension = rng.randbytes(rng.choice((0, 0, 0, 1, 3, 4, rng.randint(0, 50))))
    if rng.random() < 0.1:
        extension = rng.choice(_HEADERS)
    allocated = len(body) + rng.choice((*(0,) * 8, 4, 16, -1 if body else 0))
    flags = rng.choice((5, 15, rng.getrandbits(4) or 1)) if admin else 0
    flags = flags if rng.random() < 0.95 else rng.getrandbits(8)
    fields = (len(body), allocated, privacy, *_algorithms(rng, privacy), len(extension))
    fixed = struct.pack("<BBH16sIII", flags, len(label) // 2, class_, _guid(rng), _u32(rng), type_, _u32(rng))
    size = len(fixed) + 24 + len(label) + len(extension) + len(body)
    return [
        ("MessagePropertiesHeader", fixed),
        ("Sizes", struct.pack("<6I", *fields)),
        ("Label", label),
        ("ExtensionData", extension),
        ("MessageBody", body + _padding(rng, size)),
    ]


def _label(rng: random.Random) -> bytes:
    style = rng.random()
    if style < 0.3:
        return b""
    text = _text(rng, 249) if style < 0.4 else _text(rng)
    if style > 0.95:
        return text
    return text + b"\0\0" + (text[:20] + b"\0\0" if style > 0.9 else b"")


def _soap(rng: random.Random) -> list[Piece]:
    pieces = []
    for name, id_ in (("SoapHeader", 0x0320), ("SoapBody", 0x0384)):
        text = _text(rng, 60) + rng.choice((b"\0\0", b"\0\0", b"\0\0", b"", b"\0\0a\0\0\0"))
        pieces += [(name, struct.pack("<HHI", id_, rng.choice((0, 0, 7)), len(text) // 2)), ("Text", text)]
    return pieces


def _http(rng: random.Random) -> list[Piece]:
    """What a message sent over HTTP carries: an envelope, the request, both or neither."""
    pieces: list[Piece] = []
    carried = rng.randrange(8)
    if carried & 3:
        text = _text(rng, 60) + rng.choice((b"\0\0", b"\0\0", b"\0\0", b"\0\0", b"", b"\0\0a\0\0\0"))
        header = struct.pack("<HHI", rng.choice((0, 0, 400, 7)), rng.choice((0, 0, 7)), len(text) // 2)
        pieces += [("SRMPEnvelopeHeader", header), ("Envelope", _padded(rng, text))]
    if carried & 6:
        body = rng.choice((b"", b"Message", b"<a>1</a>", rng.randbytes(rng.randint(0, 40))))
        before = b"POST /msmq HTTP/1.1\r\n\r\n" if rng.random() < 0.8 else b""
        data = before + body + rng.choice((b"", b"--"))
        numbers = len(data), len(body), len(before)
        pieces += [
            ("CompoundMessageHeader", struct.pack("<HHIII", 500, rng.choice((0, 0, 7)), *numbers)),
            ("Http", data),
        ]
    return pieces


def _elements(rng: random.Random, count: int) -> bytes:
    data = b""
    for _ in range(count):
        type_ = rng.choice((1, 2, 3, 6))
        data += struct.pack("<H", type_)
        if type_ == 3:
            data += _direct_name(rng) + b"\0\0"
        else:
            data = _padded(rng, data) + _guid(rng) + (struct.pack("<I", rng.getrandbits(8)) if type_ == 2 else b"")
    return data


def _multi_queue(rng: random.Random) -> list[Piece]:
    pieces: list[Piece] = []
    for id_ in (0x0064, 0x00C8, 0x012C):
        count = rng.choice((0, 0, 1, 1, 2, 3, rng.randint(0, 9)))
        data = _elements(rng, count)
        size = len(data)
        if rng.random() < 0.7:
            data = _padded(rng, data)
            size = len(data)
        elif rng.random() < 0.2:
            data += rng.randbytes(4 * rng.randint(0, 3))
            size = len(data)
        pieces.append(("MQFAddressHeader", struct.pack("<IHHI", 12 + size, id_, rng.choice((0, 0, 9)), count)))
        pieces.append(("FormatNameList", _padded(rng, data)))
    signature = rng.randbytes(rng.choice((0, 0, 1, 4, rng.randint(0, 40))))
    return [*pieces, ("MQFSignatureHeader", struct.pack("<HHI", 0x015E, 0, len(signature))), ("Signature", signature)]


def _address(rng: random.Random, flags: int) -> bytes:
    """QueueManagerAddress: mostly what the kind of destination requires."""
    if rng.random() < 0.05:
        return _guid(rng)
    return bytes(16) if flags >> 10 & 7 in (0, 7) else rng.choice(_GUIDS[1:])


def _user_header(rng: random.Random, flags: int) -> list[Piece]:
    lifetime, sent, number = _u32(rng), rng.getrandbits(32), _u32(rng)
    fixed = struct.pack("<16s16sIIII", _guid(rng), _address(rng, flags), lifetime, sent, number, flags)
    names = ("DestinationQueue", "AdminQueue", "ResponseQueue")
    queues = [(name, _queue(rng, flags >> shift & 7)) for name, shift in zip(names, (10, 13, 16), strict=True)]
    return [("UserHeader", fixed), *queues, ("ConnectorType", _guid(rng) if flags & 1 << 22 else b"")]


def _base(rng: random.Random, flags: int, time_to_reach_queue: int) -> Piece:
    if rng.random() < 0.04:
        flags |= rng.getrandbits(16) & 0xFEC0
    reserved = rng.getrandbits(8) if rng.random() < 0.1 else 0
    return "BaseHeader", struct.pack("<BBHIII", 0x10, reserved, flags, 0x524F494C, 0, time_to_reach_queue)


def _session_header(rng: random.Random) -> Piece:
    return "SessionHeader", rng.randbytes(12) + struct.pack("<H", rng.choice((64, 64, 64, 1, 0))) + rng.randbytes(2)


def _special(rng: random.Random) -> list[Piece]:
    """Acknowledgments of transactional messages and change notifications, or what is just none."""
    number = rng.choice((3, 4))
    flags = 1 << 21 | rng.choice((3, 3, 7, 5)) << 10 | rng.choice((0, 0, 1, 2)) << 5
    fixed = struct.pack("<16s16sIIII", _guid(rng), _address(rng, flags), 0, 0, 0, flags)
    queue = {3: struct.pack("<I", number), 5: _guid(rng)}.get(flags >> 10 & 7)
    if queue is None:
        name = units_of(rng.choice(_NOTIFY if number == 3 else _ORDER)) + b"\0\0"
        queue = _padded(rng, struct.pack("<H", len(name)) + name)
    label = rng.choice(("QM Ordering Ack",) * 5 + ("QM Ordering ack", "QM Ordering Ack ", ""))
    body = rng.randbytes(rng.choice((36,) * 6 + (35, 37, 0)))
    if len(body) == 36 and rng.random() < 0.8:
        acknowledged = rng.randint(1, 9)
        body = struct.pack("<QII", 7, acknowledged, acknowledged - 1) + body[16:]
    class_ = rng.choice((0, 0, 2) if number == 3 else (0xFF, 0xFF, 0x4000, 0x8003, 0xC004, 0xFFFF, 0x3FFF, 0))
    terminator = rng.choice((b"\0\0", b"\0\0", b"\0\0", b""))
    privacy = rng.choice((0, 0, 1, 3, 5, 2))
    pieces = _properties(rng, label=units_of(label) + terminator, class_=class_, body=body, privacy=privacy)
    base = _base(rng, rng.choice((0, 0, 0, 0, 3, 0x100)), 0xFFFFFFFF)
    return [base, ("UserHeader", fixed), ("DestinationQueue", queue), *pieces]


def message(rng: random.Random, rare: float = 0.15) -> list[Piece]:
    """A user message that decodes, with or without violations; ``rare`` is the share that has each rare header."""
    if rng.random() < 0.12:
        return _special(rng)
    base, flags = rng.choice((3, 3, 0, rng.randrange(8))), 1 << 21
    if rng.random() < 0.03:
        flags = 0
    flags |= rng.choice((0, 3, 3, 3, 5, 7, 7, 7)) << 10
    flags |= rng.choice((0, 0, 2, 3, 5, 6, 7)) << 13 | rng.choice((0, 0, 1, 2, 3, 4, 4, 5, 6, 7)) << 16
    flags |= rng.choice((0, 0, 0, rng.randrange(32))) | rng.choice((0, 0, 1, 1, 1, 2, 3)) << 5
    flags |= rng.choice((*(0,) * 6, rng.getrandbits(2) << 8, rng.getrandbits(32) & 0xED000380))
    for bit, share in ((19, 0.4), (20, 0.2), (22, 0.1), (23, rare), (25, rare), (28, rare)):
        flags |= (rng.random() < share) << bit
    if flags & 1 << 20 and rng.random() < 0.9:
        base, flags = 0, flags & ~0x60 | 0x20
    pieces = _user_header(rng, flags)
    if flags & 1 << 20:
        pieces += _transaction(rng)
    if flags & 1 << 19:
        pieces += _security(rng)
    if flags & 1 << 21:
        class_ = rng.choice((0, 0, 0, *MESSAGE_CLASSES, rng.getrandbits(16), rng.getrandbits(16) & 0xE1FF))
        type_, body = _typed_body(rng)
        privacy = rng.choice((*(0,) * 10, 1, 3, 5, 2, 4, 6, _u32(rng)))
        admin = bool(flags >> 13 & 7)
        pieces += _properties(
            rng, label=_label(rng), class_=class_, body=body, privacy=privacy, type_=type_, admin=admin
        )
    if rng.random() < rare:
        type_ = rng.choice((0, 1, 1))
        base |= 0x20 | rng.choice((0, 0x100))
        pieces.append(("DebugHeader", struct.pack("<HH", type_ | rng.choice((0, 0, 0xFFFC)), 0) + type_ * _guid(rng)))
    elif rng.random() < 0.03:
        base |= 0x100
    if flags & 1 << 25:
        pieces += _http(rng)
    if flags & 1 << 28:
        pieces += _soap(rng)
    if flags & 1 << 23:
        pieces += _multi_queue(rng)
    if rng.random() < 0.15:
        # After AH alone eight bytes are an SRMPEnvelopeHeader
        longest = 5 if flags & 1 << 25 else 20
        pieces.append(("Padding", rng.randbytes(rng.choice((1, 2, 3, 3, 4, 4, 5, longest)))))
    if rng.random() < 0.2:
        base |= 0x10
        pieces.append(_session_header(rng))
    return [_base(rng, base, _u32(rng)), *pieces]


def session(rng: random.Random) -> list[Piece]:
    """A ping or an internal packet that decodes, with or without violations."""
    kind = rng.randrange(4)
    if kind == 0:
        cookie = rng.choice((0, 4, rng.getrandbits(32)))
        flags = rng.choice((0, 1, 2, 3, rng.getrandbits(16)))
        return [("Ping", struct.pack("<HHI", flags, 0x5548, cookie) + _guid(rng))]
    base, refused = 0xB, rng.choice((0, 0, 0x10))
    if kind == 1:
        base |= 0x10
        content = _session_header(rng)[1]
    elif kind == 2:
        system = rng.choice((0x0310, 0x0310, 0x10, rng.getrandbits(16)))
        reserved = rng.choice((0, 0, 0, 0, 5))
        filler = b"\x5a" * 512 if rng.random() < 0.9 else rng.randbytes(512)
        content = struct.pack("<16s16sIHH", _guid(rng), _guid(rng), _u32(rng), system, reserved) + filler
    else:
        timeouts = (0x1F3, 0x1F4, 1496, 0x4E1F, 0x4E20, 0x1D4C0, 0x1D4C1, _u32(rng))
        reserved = rng.choice((0, 0, 0, 0, 5))
        content = struct.pack("<IIHH", rng.choice(timeouts), rng.choice(timeouts), reserved, rng.getrandbits(16))
    base |= rng.choice((*(0,) * 20, 0x10, 0x20, 0x100))
    internal = struct.pack(
        "<HH", rng.choice((0, 0, 0, 0, 5)), kind | refused | rng.choice((0, 0, rng.getrandbits(11) << 5))
    )
    pieces = [
        _base(rng, base, rng.choice((0xFFFFFFFF,) * 4 + (300,))),
        ("InternalHeader", internal),
        ("Content", content),
    ]
    if rng.random() < 0.15:
        pieces.append(("Padding", rng.randbytes(rng.choice((1, 2, 3, 4, 5)))))
    return pieces


def join(pieces: list[Piece]) -> bytes:
    """The packet, with the PacketSize that its pieces make."""
    data = b"".join([piece for _, piece in pieces])
    name, first = pieces[0]
    if name != "BaseHeader" or len(first) != 16:
        return data
    behind = 16 if pieces[-1][0] == "SessionHeader" else 0
    return data[:8] + struct.pack("<I", len(data) - behind) + data[12:]


MAKERS = {"messages": message, "sessions": session}

#: Pieces with numbers that say what follows, and where these are: offset and width.
_NUMBERS: dict[str, tuple[tuple[int, int], ...]] = {
    "UserHeader": ((45, 1), (46, 1), (44, 4)),
    "DestinationQueue": ((0, 2),),
    "AdminQueue": ((0, 2),),
    "ResponseQueue": ((0, 2),),
    "TransactionHeader": ((0, 1),),
    "SecurityHeader": ((0, 2), (2, 2), (4, 2), (6, 2), (8, 4), (12, 4)),
    "MessagePropertiesHeader": ((0, 1), (1, 1), (2, 2)),
    "Sizes": ((0, 4), (4, 4), (8, 4), (20, 4)),
    "DebugHeader": ((0, 2),),
    "SRMPEnvelopeHeader": ((0, 2), (4, 4), (4, 4)),
    "CompoundMessageHeader": ((0, 2), (4, 4), (8, 4), (12, 4)),
    "SoapHeader": ((0, 2), (4, 4)),
    "SoapBody": ((0, 2), (4, 4)),
    "MQFAddressHeader": ((0, 4), (4, 2), (8, 4)),
    "FormatNameList": ((0, 2), (20, 2), (24, 2)),
    "MQFSignatureHeader": ((0, 2), (4, 4)),
    "InternalHeader": ((2, 1), (2, 2)),
    "Ping": ((0, 2), (2, 2)),
}


def _mutate_number(rng: random.Random, name: str, data: bytes) -> bytes:
    at, width = rng.choice(_NUMBERS[name])
    was = int.from_bytes(data[at : at + width], "little")
    near = was + rng.choice((-4, -2, -1, 1, 2, 4))
    now = rng.choice((near, near, was ^ 1 << rng.randrange(8 * width), rng.choice(_COUNTS)))
    return data[:at] + (now % (1 << 8 * width)).to_bytes(width, "little") + data[at + width :]


def _mutate_bytes(rng: random.Random, data: bytes) -> bytes:
    stroke, size = rng.randrange(5), len(data)
    at = rng.randint(0, size)
    if stroke == 0:
        return data[:at]
    if stroke == 1:
        return data + rng.choice((b"\0", b"\0\0", b"\0\0\0\0", rng.randbytes(rng.randint(1, 40))))
    if stroke == 2 and at < size:
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    if stroke == 3:
        at &= ~1
        return data[:at] + rng.choice((b"\0\0", b"A\0")) + data[at + rng.choice((0, 2)) :]
    return (
        data[:at] + rng.choice((b"", b"\0", b"\0\0", rng.randbytes(rng.randint(1, 8)))) + data[at + rng.randint(0, 3) :]
    )


def mutated(rng: random.Random, table: Table) -> bytes:
    """A packet after one to three strokes of bad luck; mostly they are inside, and PacketSize knows."""
    pieces = message(rng, 0.5) if table == "messages" and rng.random() < 0.5 else MAKERS[table](rng)
    if rng.random() < 0.1:
        pieces = MAKERS["sessions" if table == "messages" else "messages"](rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.choice([k for k, (name, data) in enumerate(pieces) if name in _NUMBERS or data])
        if pieces[at][0] == "CompoundMessageHeader" and rng.random() < 0.3:
            pieces[at:] = [("Truncated", pieces[at][1][: rng.randrange(8, 16)])]
            break
        if rng.random() < 0.3:
            at = max(at, rng.randrange(len(pieces)))
        name, data = pieces[at]
        if name == "FormatNameList" and rng.random() < 0.4:
            pieces[at] = name, data[:-2] + b"A\0"
        elif name in _NUMBERS and data and rng.random() < 0.7:
            pieces[at] = name, _mutate_number(rng, name, data)
        elif name != "BaseHeader" and rng.random() < 0.6:
            pieces[at] = name, _mutate_bytes(rng, data)
        else:
            pieces[max(1, rng.randrange(len(pieces))) :] = []
    data = join(pieces)
    if rng.random() < 0.35:
        data = _mutate_base(rng, data)
    return data


def _mutate_base(rng: random.Random, data: bytes) -> bytes:
    """Somewhere in the packet, and more often than anywhere else in its first sixteen bytes."""
    if len(data) < 16 or rng.random() < 0.5:
        return _mutate_bytes(rng, data)
    stroke = rng.randrange(4)
    if stroke == 0:
        size = struct.unpack_from("<I", data, 8)[0] + rng.choice((-16, -4, -1, 1, 4, 16))
        size = rng.choice((size % (1 << 32), size % (1 << 32), 0, 15, 16, 17, 64, 0x400000, 0x400001, 0xFFFFFFFF))
        return data[:8] + struct.pack("<I", size) + data[12:]
    if stroke == 1:
        return data[:2] + bytes((data[2] ^ 1 << rng.randrange(8),)) + data[3:]
    at = rng.randrange(16)
    return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]


def noise(rng: random.Random) -> bytes:
    """Random bytes, most of them behind a BaseHeader that lets them in."""
    data = bytearray(rng.randbytes(rng.choice((rng.randint(0, 80), rng.randint(0, 300)))))
    if len(data) >= 16 and rng.random() < 0.9:
        struct.pack_into("<BxH4sI", data, 0, 0x10, rng.choice((3, 0xB, 0x1B, 0x33)), b"LIOR", len(data))
    if len(data) >= 64 and rng.random() < 0.9:
        data[61] &= 0x8F
        data[61] |= 0x0C
    return bytes(data)


def cases(count: int, seed: int, table: Table, *, broken: float = 0.5) -> Iterator[bytes]:
    """``count`` payloads for a table, of which the share ``broken`` is malformed."""
    make = MAKERS[table]
    return mixture(count, seed, broken, lambda rng: join(make(rng)), lambda rng: mutated(rng, table), noise)
