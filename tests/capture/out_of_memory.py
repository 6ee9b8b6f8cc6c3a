"""Read a capture with less memory than its open streams or datagrams need; run by test_limits.py.

Run as ``python -m tests.capture.out_of_memory FAMILY MEBIBYTES``; prints the MemoryError, or how many datagrams were
incomplete and how many frames malformed.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from itertools import count, islice

from msmqwire import capture
from tests.capture import build
from tests.capture.build import segment

HUGE = build.message(size=4 << 20) + bytes(984)  # the beginning of a packet


def pieces() -> Iterator[bytes]:
    """One stream whose second byte is missing."""
    yield segment(b"\x10", 1)
    yield from (segment(bytes(60_000), 3 + 60_000 * number) for number in count())


def packets() -> Iterator[bytes]:
    """Streams with packets of which 100,000 bytes have come."""
    for number in count():
        for at in range(100):
            yield segment(HUGE if at == 0 else bytes(1000), 1 + 1000 * at, source=number & 0xFFFF)


def flows() -> Iterator[bytes]:
    """A stream for each segment."""
    return (segment(b"", 1, 2, source=number & 0xFFFF, src=f"10.0.{number >> 16}.1") for number in count())


def heads() -> Iterator[bytes]:
    """Streams that are all open before the first byte of a packet comes in each."""
    for payload in (b"", b"\x10"):
        for number in range(4000):
            yield segment(payload, 2, 0, source=number) if payload else segment(b"", 1, 2, source=number)


def datagrams() -> Iterator[bytes]:
    """The last parts of datagrams of 60,000 bytes."""
    for number in count():
        packet = build.ipv4(bytes(1000), fragment=59_000 // 8, source=f"10.0.{number >> 8 & 255}.{number & 255}")
        yield build.ethernet(build.IPV4, packet)


FAMILIES = {
    family.__name__: (family(), most)
    for family, most in (
        (pieces, 700),
        (packets, 40_000),
        (flows, 200_000),
        (heads, 8_000),
        (datagrams, 1_000),
    )
}


def main(name: str, room: int) -> None:
    frames, most = FAMILIES[name]
    with tempfile.TemporaryFile(buffering=0) as file:  # reading it takes no memory
        file.write(build.pcap(islice(frames, most)))
        file.seek(0)
        options = capture.ReadOptions(
            limits=capture.StreamLimits(ahead=1 << 30, memory=1 << 30, streams=1 << 20), columns=(), block_size=1 << 20
        )
        with capture.open(file, options) as blocks, open("/proc/self/statm") as sizes:
            ctypes.CDLL(None).malloc_trim(0)  # what was freed would be used first
            used = int(sizes.read().split()[0]) * resource.getpagesize()
            before = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (used + (room << 20), before[1]))
            try:
                for _ in blocks:
                    pass
            except MemoryError as error:
                os.write(1, str(error).encode())
            else:
                os.write(1, b"%d %d" % (blocks.stats.incomplete_datagrams, blocks.stats.malformed))
            resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
