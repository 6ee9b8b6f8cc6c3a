"""Threads that meet at one batch: ``python -m tests.mqqb.races NAME``, a process that losing may kill."""

from __future__ import annotations

import sys

from msmqwire import Payloads, mqqb
from tests.columns.meetings import write_and_read, write_and_write
from tests.mqqb.messages import FULL, some
from tests.mqqb.rows import Expected, assert_columns, read_all

SOME = some("messages")
SIZES = [Payloads.of([mqqb.encode(FULL)] * rows) for rows in (20_000, 10, 40_000, 60_000)]


def notifications(batch: mqqb.MessageBatch) -> None:
    """Bodies at places that are half-written would lead their reader anywhere as well."""
    found = batch.notifications()
    assert len(found.payloads) == len(found.rows)
    assert all(body is not None for body in found.payloads[:100])


if __name__ == "__main__":
    if sys.argv[1] == "write":
        out = write_and_write(mqqb.decode_batch, SOME, SIZES)
        assert_columns(out, Expected(read_all(SOME, "messages"), "messages"))
    else:
        write_and_read(mqqb.decode_batch, SOME, SIZES[:2], notifications)
