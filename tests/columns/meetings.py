"""Threads that meet at one batch: ``python -m tests.columns.meetings TABLE``.

Losing may kill the process, so that they meet in one of their own.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from msmqwire import Batch, Payloads
from tests.columns.formats import FORMATS, Format


def _run(workers: Sequence[Callable[[], None]]) -> None:
    faulthandler.enable()
    threads = [threading.Thread(target=worker) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _sizes(kind: Format, megabytes: Sequence[float]) -> list[Payloads]:
    """Payloads that take long enough to decode for somebody to come in between."""
    return [Payloads.of([kind.whole[0]] * (int(size * 1e6) // len(kind.whole[0]) or 1)) for size in megabytes]


def write_and_write(kind: Format) -> None:
    """The kernel runs without the GIL: whoever comes second is refused, not let in to take the buffers away."""
    some = kind.cases(500, 31)
    sizes = _sizes(kind, (15, 0, 30, 45))
    out = kind.decode_batch(some)
    seen: Counter[str] = Counter()

    def write() -> None:
        for i in range(12):
            try:
                kind.decode_batch(sizes[i % len(sizes)], out=out)
                seen["written"] += 1
            except Exception as error:
                seen[type(error).__name__] += 1

    _run([write] * 3)
    assert set(seen) == {"written", "BufferError"}, seen
    kind.assert_rows(some, kind.decode_batch(some, out=out))


def write_and_read(kind: Format, seconds: float = 4) -> None:
    """An export, or what else is made of half-written offsets, would lead its reader anywhere."""
    out = kind.decode_batch(kind.cases(500, 31))
    sizes = _sizes(kind, (10, 0, 20))
    rows = {len(kind.expected(kind.whole[:1]).rows) * len(payloads) for payloads in sizes} | {len(out)}
    seen: Counter[str] = Counter()
    done = threading.Event()
    deadline = time.monotonic() + seconds

    def write() -> None:
        while seen["written"] < 20 and time.monotonic() < deadline:
            try:
                kind.decode_batch(sizes[seen["written"] % len(sizes)], out=out)
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

    _run([write, reading(export), reading(kind.look)])
    assert seen["written"]
    assert set(seen) <= {"written", "read", "BufferError"}, seen


if __name__ == "__main__":
    wanted = next(each for each in FORMATS if str(each) == sys.argv[1])
    write_and_write(wanted)
    write_and_read(wanted)
