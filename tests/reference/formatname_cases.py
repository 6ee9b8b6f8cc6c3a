"""Seeded format names and path names, valid and spoilt, for differential tests.

Whole names are made from the rules of the ABNF, others of these and of ``NAMES`` by mutation.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.reference.mqcn_cases import path_name

GUID = "2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10"

#: One of everything that the grammar tells apart.
NAMES = (
    f"PUBLIC={GUID}",
    f"PRIVATE={GUID}\\1F",
    f"PRIVATE={GUID}\\0000000a;JOURNAL",
    f"DL={GUID}",
    f"DL={GUID}@example.com",
    f"MACHINE={GUID}",
    f"CONNECTOR={GUID}",
    "MULTICAST=234.10.200.1:8001",
    "MULTICAST=224.0.0.0:0",
    "DIRECT=OS:server\\orders",
    "DIRECT=OS:server.example.com\\PRIVATE$\\orders;JOURNAL",
    "DIRECT=OS:server\\orders;late;JOURNAL",
    "DIRECT=OS:server\\SYSTEM$;JOURNAL",
    "DIRECT=OS:server\\SYSTEM$;DEADXACT",
    "DIRECT=OS:server\\SYSTEM$;DEADLETTER",
    "DIRECT=OS:server\\SYSTEM$;DEADLETTERS",
    "DIRECT=TCP:10.0.0.1\\orders",
    "DIRECT=TCP:fe80::1:2\\private$\\orders;sub",
    "DIRECT=TCP:::ffff:1.2.3.4\\q",
    "DIRECT=IPX:00000012:00a0234f7500\\orders",
    "DIRECT=SPX:12:a0\\PRIVATE$\\order_queue$",
    "DIRECT=HTTP://server/MSMQ\\orders",
    "DIRECT=HTTPS://[2001:db8::1]:8443/msmq\\private$\\orders;JOURNAL",
    "DIRECT=HTTP://server:/msmq/private$/orders",
    'DIRECT=OS:server\\"old"+name;JOURNAL',
    f"PUBLIC={GUID};JOURNAL",
    f"MACHINE={GUID};DEADXACT",
    f"CONNECTOR={GUID};XACTONLY",
    f"DIRECT=OS:server\\orders,PUBLIC={GUID},MULTICAST=234.1.1.1:1",
    f"DL={GUID}@example.com,PRIVATE={GUID}\\3",
    f"DIRECT=OS:a\\q,MACHINE={GUID}",
    "DIRECT=OS:a\\q,DIRECT=OS:b\\q;JOURNAL",
)
PATH_NAMES = (
    "server\\orders",
    "server\\private$\\orders",
    "server\\private$\\orders;late",
    "server\\system$;orders",
    "server\\system$;orders;late",
    'server\\"old",+name',
    "a\\b\\c",
    "\\private$\\q",
    "s\\private$\\system$;q",
    "s\\private$\\system$;" + "q" * 33,
    "c" * 256 + "\\q",
    "c" * 256 + "\\private$\\q",
    "c\\" + "q" * 124 + ";" + "s" * 32,
)

#: What each rule ends at, or wrongly folds to a letter of a keyword.
CHARACTERS = '\\;,=:./@-{}[]$"+ \t\0\x7f\x80éıſK\ud800😀09afgAFGzZ'
PIECES = (
    "PRIVATE$\\", "SYSTEM$;", ";JOURNAL", ";DEADLETTER", ";DEADXACT", ";XACTONLY", "DIRECT=", "PUBLIC=", "OS:", "TCP:",
    "HTTP://", "/MSMQ", "::", GUID, "255", "256", "x" * 33, "x" * 125, "x" * 257, ",", "1" * 20,
)  # fmt: skip


_OLD = "".join(chr(code) for code in range(0x21, 0x80) if chr(code) not in "\\;,")
_NEW = "".join(each for each in _OLD if each not in '"+')
_COMPUTER = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in "\\,")
_HOST = "".join(each for each in _COMPUTER if each not in "/:[")


def _some(rng: random.Random, characters: str, most: int) -> str:
    """One to ``most`` characters."""
    return "".join(rng.choices(characters, k=rng.choice((1, rng.randint(1, 12), rng.randint(1, most), most))))


def _keyword(rng: random.Random, text: str) -> str:
    """A literal of the ABNF, which has no case."""
    return rng.choice((text, text.lower(), "".join(rng.choice((each, each.lower())) for each in text)))


def direct_path(rng: random.Random) -> str:
    """A direct name without ``DIRECT=``, as packets have it, also with slashes over HTTP and over SPX."""
    protocol = rng.choice(("TCP", "OS", "IPX", "SPX", "HTTP", "HTTPS"))
    separators = "\\/" if protocol.startswith("HTTP") else "\\"
    if protocol == "OS":
        address = _some(rng, _COMPUTER, 256)
    elif protocol == "TCP":
        address = rng.choice((f"10.{rng.randint(0, 255)}.0.1", "fe80::1", f"2001:DB8::{rng.randint(0, 0xFFFF):x}"))
    elif protocol in ("IPX", "SPX"):
        address = f"{rng.getrandbits(32):{rng.choice('xX')}}:{rng.getrandbits(48):{rng.choice('xX')}}"
    else:
        host = rng.choice((_some(rng, _HOST, 256), "[2001:db8::1]", "server"))
        address = f"//{host}{rng.choice(('', ':', ':80', ':08443'))}{_keyword(rng, '/MSMQ')}"
    start = f"{_keyword(rng, protocol)}:{address}{rng.choice(separators)}"
    if rng.random() < 0.15:
        return f"{start}{_keyword(rng, 'SYSTEM$')};{_keyword(rng, rng.choice(('JOURNAL', 'DEADLETTER', 'DEADXACT')))}"
    private = _keyword(rng, "PRIVATE$") + rng.choice(separators) if rng.random() < 0.5 else ""
    queue = _some(rng, _NEW, 124) + ";" + _some(rng, _NEW, 32) if rng.random() < 0.2 else _some(rng, _OLD, 124)
    return f"{start}{private}{queue}{_keyword(rng, ';JOURNAL') if rng.random() < 0.2 else ''}"


def element(rng: random.Random) -> str:
    """One format name of any kind."""
    kind = rng.choice(("DIRECT", "DIRECT", "DIRECT", "PUBLIC", "PRIVATE", "DL", "MACHINE", "CONNECTOR", "MULTICAST"))
    guid = "-".join(f"{rng.getrandbits(4 * digits):0{digits}{rng.choice('xX')}}" for digits in (8, 4, 4, 4, 12))
    journal = _keyword(rng, ";JOURNAL") if rng.random() < 0.3 else ""
    rest = {
        "DIRECT": "",
        "PUBLIC": guid + journal,
        "PRIVATE": f"{guid}\\{rng.getrandbits(32):{rng.choice(('x', 'X', '08x'))}}{journal}",
        "DL": f"{guid}@{_some(rng, _COMPUTER, 255)}" if journal else guid,
        "MACHINE": guid + (rng.choice((";JOURNAL", ";deadletter", ";DEADXACT")) if journal else ""),
        "CONNECTOR": guid + (_keyword(rng, ";XACTONLY") if journal else ""),
        "MULTICAST": f"{rng.randint(224, 239)}.1.{rng.randint(0, 255)}.0:{rng.randint(0, 65535)}",
    }[kind]
    return f"{_keyword(rng, kind)}={rest or direct_path(rng)}"


def valid(rng: random.Random) -> str:
    """A format name, seldom with several elements."""
    return ",".join(element(rng) for _ in range(rng.choice((1, 1, 1, 1, 1, 2, 3))))


_WHOLE = {NAMES: valid, PATH_NAMES: path_name}


def mutations(text: str) -> Iterator[str]:
    """Every text that one character taken out, put in or changed makes of this one."""
    for i in range(len(text) + 1):
        yield text[:i]
        yield text[:i] + text[i + 1 :]
        for character in CHARACTERS:
            yield text[:i] + character + text[i + 1 :]
            yield text[:i] + character + text[i:]


def cases(count: int, seed: int, names: tuple[str, ...] = NAMES) -> Iterator[str]:
    """Names with up to four pieces of themselves, of each other or of the grammar moved about, in any case."""
    rng = random.Random(seed)
    for _ in range(count):
        text = _WHOLE[names](rng) if rng.random() < 0.5 else rng.choice(names)
        for _ in range(rng.randint(0, 4)):
            at, end = sorted((rng.randint(0, len(text)), rng.randint(0, len(text))))
            kind = rng.random()
            if kind < 0.3:
                text = text[:at] + rng.choice(PIECES) + text[at:]
            elif kind < 0.5:
                text = text[:at] + rng.choice(CHARACTERS) + text[at + 1 :]
            elif kind < 0.7:
                text = text[:at] + text[min(end, at + 3) :]
            elif kind < 0.85:
                other = rng.choice(names)
                text = text[:at] + other[rng.randint(0, len(other)) :]
            else:
                text = text[:at] + text[at:end].swapcase() + text[end:]
        yield text
