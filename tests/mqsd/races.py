"""Threads that meet at one Batch: ``python -m tests.mqsd.races NAME``, a process that losing may kill."""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections import Counter
from typing import Any

from msmqwire import Payloads, mqsd
from tests.mqsd.rows import assert_columns, read_all
from tests.reference.mqsd_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=31))
V3 = get("mqsd", "V3-reply-other-site").data


def _run(*workers: Any) -> None:
    threads = [threading.Thread(target=worker) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write_and_write() -> None:
    """The kernel runs without the GIL: whoever comes second is refused, not let in to take the buffers away."""
    out = mqsd.decode_batch(SOME)
    sizes = [Payloads.of([V3] * rows) for rows in (100_000, 10, 200_000, 300_000)]
    seen: Counter[str] = Counter()

    def write() -> None:
        for i in range(12):
            try:
                mqsd.decode_batch(sizes[i % 4], out=out)
                seen["written"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    _run(write, write, write)
    assert set(seen) == {"written", "BufferError"}, seen
    mqsd.decode_batch(SOME, out=out)
    assert_columns(out, read_all(SOME))


def write_and_read() -> None:
    """An export of half-written offsets would lead its reader anywhere."""
    out = mqsd.decode_batch(SOME)
    sizes = [Payloads.of([V3] * rows) for rows in (200_000, 10, 100_000)]
    rows = {len(payloads) for payloads in sizes} | {len(SOME)}
    seen: Counter[str] = Counter()
    done = threading.Event()
    deadline = time.monotonic() + 3

    def write() -> None:
        while seen["written"] < 20 and time.monotonic() < deadline:
            try:
                mqsd.decode_batch(sizes[seen["written"] % 3], out=out)
                seen["written"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1
        done.set()

    def read() -> None:
        while not done.is_set():
            try:
                table = out.to_arrow()
                table.validate(full=True)
                assert table.num_rows in rows
                del table
                seen["read"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    _run(write, read)
    assert seen["written"]
    assert set(seen) <= {"written", "read", "BufferError"}, seen


if __name__ == "__main__":
    faulthandler.enable()
    {"write": write_and_write, "read": write_and_read}[sys.argv[1]]()
