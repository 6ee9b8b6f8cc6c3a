"""Seeded format names and path names, valid and spoilt, for differential tests."""

from __future__ import annotations

import random
from collections.abc import Iterator

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
        text = rng.choice(names)
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
