"""Views never copy, keep what they look into alive, and let go of it."""

from __future__ import annotations

import gc
import random
import sys
from functools import cache
from typing import Any

import numpy as np
import pytest

from msmqwire import Payloads
from msmqwire.columns import allocated_bytes
from tests.columns.formats import Format, each_format
from tests.columns.views import arrays

pytestmark = pytest.mark.usefixtures("everything_is_released")


@cache
def payloads_of(kind: Format) -> list[bytes]:
    return [*kind.cases(500, 7), *kind.whole]


@each_format
def test_every_view_looks_into_the_batch(kind: Format) -> None:
    batch = kind.decode_batch(payloads_of(kind))
    for (name, one), (_, other) in zip(arrays(batch), arrays(batch), strict=True):
        assert not one.size or np.shares_memory(one, other), name
        assert not one.size or not one.flags.owndata, name
    assert np.shares_memory(batch.faults, batch.faults)
    assert np.shares_memory(batch.violations, batch["violations"])


@each_format
def test_columns_cannot_be_written(kind: Format) -> None:
    """Exports and encoders trust them, and Arrow arrays share their memory."""
    batch = kind.decode_batch(payloads_of(kind))
    shown = [array for _, array in arrays(batch)]
    assert len(shown) >= len(kind.table.columns)
    for array in (*shown, batch.faults, batch.violations):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


@each_format
def test_a_view_keeps_its_owner(kind: Format) -> None:
    payloads = payloads_of(kind)[-100:]
    for name in kind.table.names:
        batch = kind.decode_batch(payloads)
        views = [array for path, array in arrays(batch) if path.startswith(name)]
        copies = [array.copy() for array in views]
        held = allocated_bytes()
        del batch
        assert 0 < allocated_bytes() <= held
        churn = [kind.decode_batch(payloads[::-1]) for _ in range(2)]
        for view, copied in zip(views, copies, strict=True):
            np.testing.assert_array_equal(view, copied, name)
        del churn, views, view


@each_format
def test_a_batch_keeps_its_payloads_and_lets_them_go(kind: Format) -> None:
    whole = kind.whole[0]
    data, joined = bytes(bytearray(whole)), bytes(bytearray(whole * 3))
    before = sys.getrefcount(data), sys.getrefcount(joined)
    batches = [
        kind.decode_batch([data, data]),
        kind.decode_batch(joined, offsets=np.arange(4) * len(whole)),
        kind.decode_batch(Payloads(joined, [0, len(whole)])),
    ]
    tables = [batch.to_arrow() for batch in batches]
    assert sys.getrefcount(data) > before[0]
    assert sys.getrefcount(joined) > before[1]
    del batches, tables
    gc.collect()
    assert (sys.getrefcount(data), sys.getrefcount(joined)) == before


@each_format
def test_failed_calls_leave_nothing(kind: Format) -> None:
    data = bytes(bytearray(kind.whole[0]))
    before = sys.getrefcount(data)
    for _ in range(10):
        with pytest.raises(TypeError):
            kind.decode_batch([data, 5])
        with pytest.raises(ValueError, match="offsets"):
            kind.decode_batch(data, offsets=[0, len(data) + 1])
        with pytest.raises(ValueError, match="column"):
            kind.decode_batch([data], columns=["x"])
        with pytest.raises(ValueError, match="guid"):
            kind.decode_batch([data]).to_arrow(guid="hex")
    gc.collect()
    assert sys.getrefcount(data) == before


@each_format
def test_out_drops_the_payloads_it_held(kind: Format) -> None:
    data = bytes(bytearray(kind.whole[0]))
    before = sys.getrefcount(data)
    out = kind.decode_batch([data] * 10)
    kind.look(out)
    kind.decode_batch(payloads_of(kind), out=out)
    gc.collect()
    assert sys.getrefcount(data) == before
    kind.assert_rows(payloads_of(kind), out)


@each_format
def test_a_writable_buffer_is_copied_first(kind: Format) -> None:
    """The batch is of the bytes as they were, and a text or blob read later is too."""
    whole = kind.whole[0]
    payload, joined = bytearray(whole), bytearray(whole * 2)
    array = np.frombuffer(bytearray(whole), np.uint8)
    batches = [
        kind.decode_batch([payload, memoryview(payload), array]),
        kind.decode_batch(joined, offsets=[0, len(whole), 2 * len(whole)]),
    ]
    for writable in (payload, joined):
        writable[:] = bytes(len(writable))
    array[:] = 0
    for count, batch in zip((3, 2), batches, strict=True):
        kind.assert_rows([whole] * count, batch)
    payload.clear()  # nobody holds an export of it


@each_format
def test_growing_leaves_old_views_whole(kind: Format) -> None:
    """A Buffer never moves: a view of a batch that grew shows old bytes, never freed ones."""
    out = kind.decode_batch(payloads_of(kind)[:10])
    shown = [(array, array.copy()) for _, array in arrays(out)]
    kind.decode_batch(payloads_of(kind) * 20, out=out)
    kind.look(out)
    for view, copied in shown:
        assert view.shape == copied.shape
        view.tobytes()
    del shown, view, copied


@each_format
def test_cycles_are_collected(kind: Format) -> None:
    for _ in range(5):
        cycle: list[Any] = [kind.decode_batch(payloads_of(kind))]
        cycle.append(cycle)
        cycle.append(cycle[0][kind.table.names[-3]])
    del cycle


@each_format
def test_memory_is_bounded_by_the_payloads(kind: Format) -> None:
    rng = random.Random(5)
    for payloads in (
        kind.cases(2000, 20240229),
        [rng.randbytes(rng.randint(0, 90)) for _ in range(5000)],
        [b""] * 5000,
    ):
        before = allocated_bytes()
        batch = kind.decode_batch(payloads)
        kind.look(batch)
        least, row, byte = kind.most_memory
        assert allocated_bytes() - before <= least + row * len(payloads) + byte * sum(map(len, payloads))
        del batch
        gc.collect()
        assert allocated_bytes() == before


@each_format
def test_capsules_nobody_takes_are_released(kind: Format) -> None:
    batch = kind.decode_batch(payloads_of(kind))
    batch.__arrow_c_array__()
    held = allocated_bytes()
    for _ in range(20):
        batch.__arrow_c_array__()
        batch.__arrow_c_schema__()
        batch.payloads.__arrow_c_array__()
    assert allocated_bytes() == held


@each_format
def test_arrow_outlives_the_batch(kind: Format) -> None:
    batch = kind.decode_batch(payloads_of(kind))
    table = batch.to_arrow()
    expected = table.to_pylist()
    name = kind.table.names[-3]
    column = table[name]
    del batch
    gc.collect()
    churn = [kind.decode_batch(payloads_of(kind)[::-1]).to_arrow() for _ in range(3)]
    assert table.to_pylist() == expected
    table.validate(full=True)
    del table, churn
    gc.collect()
    assert column.to_pylist() == [row[name] for row in expected]
