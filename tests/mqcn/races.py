"""Threads that meet at one batch: ``python -m tests.mqcn.races NAME``, a process that losing may kill."""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections import Counter
from typing import Any

from msmqwire import Payloads, mqcn
from tests.mqcn.messages import read_all
from tests.mqcn.rows import Expected, assert_columns
from tests.reference.mqcn_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=31))
CREATE = get("mqcn", "create-queue").data


def _run(*workers: Any) -> None:
    threads = [threading.Thread(target=worker) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def write_and_write() -> None:
    """The kernel runs without the GIL: whoever comes second is refused, not let in to take the buffers away."""
    out = mqcn.decode_batch(SOME)
    sizes = [Payloads.of([CREATE] * rows) for rows in (20_000, 10, 40_000, 60_000)]
    seen: Counter[str] = Counter()

    def write() -> None:
        for i in range(10):
            try:
                mqcn.decode_batch(sizes[i % 4], out=out)
                seen["written"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    _run(write, write, write)
    assert set(seen) == {"written", "BufferError"}, seen
    mqcn.decode_batch(SOME, out=out)
    assert_columns(out, Expected(read_all(SOME)))


def write_and_read() -> None:
    """An export, a column or a property of half-written offsets would lead its reader anywhere."""
    out = mqcn.decode_batch(SOME)
    sizes = [Payloads.of([CREATE] * rows) for rows in (20_000, 10, 10_000)]
    rows = {len(payloads) for payloads in sizes} | {len(out)}
    seen: Counter[str] = Counter()
    done = threading.Event()
    deadline = time.monotonic() + 4

    def write() -> None:
        while seen["written"] < 20 and time.monotonic() < deadline:
            try:
                mqcn.decode_batch(sizes[seen["written"] % 3], out=out)
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

    def gather() -> None:
        while not done.is_set():
            try:
                values, found = out.property(105)
                assert len(values) == len(found)
                seen["gathered"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    _run(write, read, gather)
    assert seen["written"]
    assert set(seen) <= {"written", "read", "gathered", "BufferError"}, seen


if __name__ == "__main__":
    faulthandler.enable()
    {"write": write_and_write, "read": write_and_read}[sys.argv[1]]()
