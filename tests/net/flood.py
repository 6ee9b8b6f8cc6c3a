"""Sends a server of discovery more than it wants: ``python -m tests.net.flood PORT SECONDS RATE`` on loopback.

Valid requests of the own site and of others, cut and lengthened ones, replies, other types, noise and empty datagrams,
about half of them valid, in an order that a seed gives. What was sent is written to standard output as JSON. Needs
nothing of the package, and reads no answers: the kernel drops those, at the sender's socket.
"""

from __future__ import annotations

import json
import random
import socket
import sys
import time

HEADER, REPLY_HEADER = b"\0\1\0\0", b"\0\2\0\0"
TICK = 0.002


def datagrams(own_site: bytes, seed: int = 1, number: int = 4096) -> list[tuple[str, bytes]]:
    """So many datagrams to choose from, with what a server makes of each: an answer, or the name of the refusal."""
    chance = random.Random(seed)
    made = []
    for _ in range(number):
        body = chance.randbytes(32)
        kind = chance.choice(("own_site", "other_sites", "longer", "cut", "reply", "type", "noise", "empty"))
        if kind == "own_site":
            made.append(("own_site", HEADER + body + own_site))
        elif kind == "other_sites":
            made.append(("other_sites", HEADER + body + chance.randbytes(16)))
        elif kind == "longer":
            made.append(("own_site", HEADER + body + own_site + chance.randbytes(chance.randrange(1, 1400))))
        elif kind == "cut":
            made.append(("malformed", (HEADER + body + own_site)[: chance.randrange(2, 52)]))
        elif kind == "reply":
            made.append(("reply", REPLY_HEADER + body + chance.randbytes(chance.randrange(60))))
        elif kind == "type":
            made.append(("malformed", bytes((0, chance.randrange(3, 256))) + chance.randbytes(80)))
        elif kind == "noise":
            made.append(("malformed", b"\xff\xff" + chance.randbytes(chance.randrange(200))))
        else:
            made.append(("malformed", b""))
    return made


def flood(port: int, seconds: float, rate: float, own_site: bytes, seed: int = 1) -> dict[str, float]:
    """Send for so long, so many a second as far as the machine manages; how many of each kind, and the time it took."""
    chosen = datagrams(own_site, seed)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.connect(("127.0.0.1", port))
        start = time.perf_counter()
        sent, elapsed = 0, 0.0
        while elapsed < seconds:
            for _ in range(int(elapsed * rate) - sent):
                sender.send(chosen[sent % len(chosen)][1])
                sent += 1
            time.sleep(TICK)
            elapsed = time.perf_counter() - start
    counts = dict.fromkeys(("own_site", "other_sites", "malformed", "reply"), 0)
    for place, (kind, _) in enumerate(chosen):
        counts[kind] += sent // len(chosen) + (place < sent % len(chosen))
    return {**counts, "sent": sent, "seconds": elapsed}


if __name__ == "__main__":
    print(json.dumps(flood(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), bytes.fromhex(sys.argv[4]))))
