"""Threads that meet at one batch; losing may kill the process, so that they meet in one of their own."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msmqwire import Batch, Payloads

__all__ = ["write_and_read", "write_and_write"]

Decode = Callable[..., Batch]


def _run(workers: Sequence[Callable[[], None]]) -> None:
    faulthandler.enable()
    threads = [threading.Thread(target=worker) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write_and_write(decode: Decode, some: list[bytes], sizes: Sequence[Payloads], times: int = 12) -> Batch:
    """The kernel runs without the GIL: whoever comes second is refused, not let in to take the buffers away."""
    out = decode(some)
    seen: Counter[str] = Counter()

    def write() -> None:
        for i in range(times):
            try:
                decode(sizes[i % len(sizes)], out=out)
                seen["written"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    _run([write] * 3)
    assert set(seen) == {"written", "BufferError"}, seen
    return decode(some, out=out)


def write_and_read(
    decode: Decode, some: list[bytes], sizes: Sequence[Payloads], *readers: Callable[[Any], object], seconds: float = 3
) -> None:
    """An export, or what else is made of half-written offsets, would lead its reader anywhere."""
    out = decode(some)
    rows = {len(payloads) for payloads in sizes} | {len(out)}
    seen: Counter[str] = Counter()
    done = threading.Event()
    deadline = time.monotonic() + seconds

    def write() -> None:
        while seen["written"] < 20 and time.monotonic() < deadline:
            try:
                decode(sizes[seen["written"] % len(sizes)], out=out)
                seen["written"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1
        done.set()

    def export(batch: Batch) -> None:
        table = batch.to_arrow()
        table.validate(full=True)
        assert table.num_rows in rows

    def reading(reader: Callable[[Any], object]) -> Callable[[], None]:
        def read() -> None:
            while not done.is_set():
                try:
                    reader(out)
                    seen["read"] += 1
                except Exception as error:
                    seen[type(error).__name__] += 1

        return read

    _run([write, *(reading(reader) for reader in (export, *readers))])
    assert seen["written"]
    assert set(seen) <= {"written", "read", "BufferError"}, seen
