"""Threads that meet at one Batch: ``python -m tests.mqsd.races NAME``, a process that losing may kill."""

from __future__ import annotations

import sys

from msmqwire import Payloads, mqsd
from tests.columns.meetings import write_and_read, write_and_write
from tests.mqsd.rows import assert_columns, read_all
from tests.reference.mqsd_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=31))
SIZES = [Payloads.of([get("mqsd", "V3-reply-other-site").data] * rows) for rows in (100_000, 10, 200_000, 300_000)]

if __name__ == "__main__":
    if sys.argv[1] == "write":
        assert_columns(write_and_write(mqsd.decode_batch, SOME, SIZES), read_all(SOME))
    else:
        write_and_read(mqsd.decode_batch, SOME, SIZES[:3])
