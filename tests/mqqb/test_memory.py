"""Views never copy, keep what they look into alive, and let go of it; a batch is whole at every moment."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from msmqwire import mqqb
from msmqwire.columns import allocated_bytes
from msmqwire.columns.views import FORMAT_NAME_DTYPE
from tests.columns.processes import run
from tests.columns.views import arrays
from tests.mqqb.messages import FULL, TABLES, some
from tests.mqqb.rows import Expected, assert_columns, decode_batch, read_all
from tests.reference.mqqb import Table

WHOLE = mqqb.encode(FULL)


@pytest.fixture(autouse=True)
def _everything_is_released() -> Iterator[None]:
    gc.collect()
    before = allocated_bytes()
    yield
    gc.collect()
    assert allocated_bytes() == before


@pytest.mark.parametrize("table", TABLES)
def test_every_view_looks_into_the_batch_and_keeps_it(table: Table) -> None:
    batch = decode_batch([*some(table), WHOLE], table)
    for (name, one), (_, other) in zip(arrays(batch), arrays(batch), strict=True):
        assert not one.size or np.shares_memory(one, other), name
        assert not one.flags.owndata or not one.size, name
    views = [(name, array, array.copy()) for name, array in arrays(batch)]
    del batch, one, other
    gc.collect()
    churn = [decode_batch(some(table, seed=8), table) for _ in range(3)]
    for name, view, copied in views:
        np.testing.assert_array_equal(view, copied, name)
    del views, view, copied, churn


def test_what_says_where_things_lie_cannot_be_written() -> None:
    """An offset that a caller changed would send an export or an encoder outside the memory of the batch."""
    leading = [
        array
        for name, array in arrays(mqqb.decode_batch([WHOLE]))
        if name.endswith((".offset", ".length", ".offsets")) or array.dtype == FORMAT_NAME_DTYPE
    ]
    assert len(leading) == 2 * 11 + 3 + 3 + 3  # parts, offsets of lists, their items, queues
    for array in leading:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    del leading, array


def test_bodies_keep_the_payload() -> None:
    data = bytes(bytearray(WHOLE))
    before = sys.getrefcount(data)
    batch = mqqb.decode_batch([data])
    label, body, found = batch["label"][0], batch["body"][0], batch.notifications()
    del batch
    gc.collect()
    assert sys.getrefcount(data) > before
    assert label.tobytes().decode("utf-16-le") == FULL.label
    assert np.shares_memory(body, np.frombuffer(data, np.uint8))
    assert bytes(found.payloads[0]) == b"hello"  # type: ignore[arg-type]
    packet: Any = mqqb.decode(data)
    view = packet.body
    del label, body, found, packet
    gc.collect()
    assert bytes(view) == b"hello"
    del view
    gc.collect()
    assert sys.getrefcount(data) == before


def test_out_drops_the_payloads_it_held_and_a_writable_buffer_is_copied() -> None:
    data = bytes(bytearray(WHOLE))
    before = sys.getrefcount(data)
    out = mqqb.decode_batch([data] * 10)
    mqqb.decode_batch(some("messages"), out=out)
    gc.collect()
    assert sys.getrefcount(data) == before
    writable = bytearray(WHOLE)
    mqqb.decode_batch([writable], out=out)
    writable[:] = bytes(len(writable))
    assert out["body"][0].tobytes() == b"hello"


def test_failed_calls_leave_the_batch_as_it_was() -> None:
    payloads = some("messages")
    out = mqqb.decode_batch(payloads)
    wrong: list[dict[str, Any]] = [{"columns": ["no"]}, {"threads": 0}, {"offsets": [1, 0]}]
    for options in wrong:
        with pytest.raises(ValueError, match=r"no|threads|offsets"):
            mqqb.decode_batch(b"ab" if "offsets" in options else payloads, out=out, **options)
    with pytest.raises(TypeError):
        mqqb.decode_batch([WHOLE, "text"], out=out)
    assert_columns(out, Expected(read_all(payloads, "messages"), "messages"))


@pytest.mark.parametrize("meeting", ["write", "read"])
def test_threads_cannot_meet_in_a_batch(meeting: str) -> None:
    """The kernel runs without the GIL: who comes while it writes is refused, to write as to export."""
    run("-m", "tests.mqqb.races", meeting)


OUT_OF_MEMORY = """
import faulthandler, resource
import numpy as np, pyarrow
from msmqwire import Payloads, mqqb
from tests.mqqb.messages import F7, FULL

faulthandler.enable()
whole = mqqb.encode(FULL)
small, big = Payloads.of([whole] * 10), Payloads.of([whole] * 200_000)
unlimited = resource.getrlimit(resource.RLIMIT_AS)
failed = 0
for megabytes in range(5, 200, 20):
    out = mqqb.decode_batch(small)
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + megabytes * 2**20, unlimited[1]))
    try:
        mqqb.decode_batch(big, out=out)
        continue
    except MemoryError:
        failed += 1
    finally:
        resource.setrlimit(resource.RLIMIT_AS, unlimited)
    assert len(out) in (0, len(small)), len(out)
    assert out.to_arrow().num_rows == len(out["message_id"]) == len(out)
    assert len(mqqb.encode_batch(out)) == len(out)
    assert mqqb.decode_batch(small, out=out).to_arrow().num_rows == len(small)
print(failed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")
def test_a_batch_survives_a_lack_of_memory() -> None:
    """When a column cannot be had, the batch holds no rows, never rows without columns."""
    assert int(run("-c", OUT_OF_MEMORY)) >= 3
