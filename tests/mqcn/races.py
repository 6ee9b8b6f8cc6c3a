"""Threads that meet at one batch: ``python -m tests.mqcn.races NAME``, a process that losing may kill."""

from __future__ import annotations

import sys

from msmqwire import Payloads, mqcn
from tests.columns.meetings import write_and_read, write_and_write
from tests.mqcn.messages import read_all
from tests.mqcn.rows import Expected, assert_columns
from tests.reference.mqcn_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=31))
SIZES = [Payloads.of([get("mqcn", "create-queue").data] * rows) for rows in (20_000, 10, 40_000, 60_000)]


def gather(batch: mqcn.NotificationBatch) -> None:
    """A property of half-written offsets would lead its reader anywhere as well."""
    values, found = batch.property(105)
    assert len(values) == len(found)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        out = write_and_write(mqcn.decode_batch, SOME, SIZES, times=10)
        assert isinstance(out, mqcn.NotificationBatch)
        assert_columns(out, Expected(read_all(SOME)))
    else:
        write_and_read(mqcn.decode_batch, SOME, SIZES[:2], gather, seconds=4)
