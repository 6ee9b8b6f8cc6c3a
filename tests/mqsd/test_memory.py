"""Views never copy, keep what they look into alive, and let go of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from msmqwire import Batch, Payloads, mqsd
from msmqwire.columns import allocated_bytes
from tests.mqsd.rows import assert_columns, read_all
from tests.reference.mqsd_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=7))
MANY = get("mqsd", "reply-many-servers").data


@pytest.fixture(autouse=True)
def _everything_is_released() -> Iterator[None]:
    gc.collect()
    before = allocated_bytes()
    yield
    gc.collect()
    assert allocated_bytes() == before


def arrays(batch: Batch) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every numpy array that a batch shows."""
    for name in mqsd.TOPOLOGY.names:
        column = batch[name]
        if isinstance(column, np.ndarray):
            yield name, column
            continue
        yield name, column.offsets
        if isinstance(column.values, np.ndarray):
            yield name, column.values
        else:
            text = column.values["name"]
            yield from ((name, array) for array in (text.offset, text.length))
            yield from ((name, column.values[flag]) for flag in ("ip", "ipx"))


def test_every_view_looks_into_the_batch() -> None:
    batch = mqsd.decode_batch(SOME)
    for (name, one), (_, other) in zip(arrays(batch), arrays(batch), strict=True):
        assert one.size, name
        assert np.shares_memory(one, other), name
        assert not one.flags.owndata, name
    assert np.shares_memory(batch.faults, batch.faults)
    assert np.shares_memory(batch.violations, batch["violations"])


def test_what_says_where_things_lie_cannot_be_written() -> None:
    """An offset that a caller changed would send an export or an encoder outside the memory of the batch."""
    batch = mqsd.decode_batch(SOME)
    names = batch["servers"].values["name"]
    lists = [batch[name].offsets for name in ("ipx_networks", "connected_networks", "servers")]
    for array in (*lists, names.offset, names.length, batch.faults, batch["type"]):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True


@pytest.mark.parametrize("name", mqsd.TOPOLOGY.names)
def test_a_view_keeps_its_owner(name: str) -> None:
    batch = mqsd.decode_batch(SOME)
    views = [array for column, array in arrays(batch) if column == name]
    copies = [array.copy() for array in views]
    held = allocated_bytes()
    del batch
    gc.collect()
    assert 0 < allocated_bytes() <= held
    churn = [mqsd.decode_batch(SOME[::-1]) for _ in range(3)]
    for view, copied in zip(views, copies, strict=True):
        np.testing.assert_array_equal(view, copied)
    del churn, views


def test_names_keep_the_payload() -> None:
    data = bytes(bytearray(MANY))
    before = sys.getrefcount(data)
    name = mqsd.decode_batch([data])["servers"].values["name"][1]
    gc.collect()
    assert sys.getrefcount(data) > before
    assert name.tobytes() == "bsc1".encode("utf-16-le")
    assert np.shares_memory(name, np.frombuffer(data, np.uint8))
    del name
    gc.collect()
    assert sys.getrefcount(data) == before


def test_a_batch_keeps_its_payloads_and_lets_them_go() -> None:
    data = bytes(bytearray(MANY))
    joined = bytes(bytearray(MANY * 3))
    before = sys.getrefcount(data), sys.getrefcount(joined)
    batches = [
        mqsd.decode_batch([data, data]),
        mqsd.decode_batch(joined, offsets=np.arange(4) * len(MANY)),
        mqsd.decode_batch(Payloads(joined, [0, len(MANY)])),
    ]
    tables = [batch.to_arrow() for batch in batches]
    assert sys.getrefcount(data) > before[0]
    assert sys.getrefcount(joined) > before[1]
    del batches, tables
    gc.collect()
    assert (sys.getrefcount(data), sys.getrefcount(joined)) == before


def test_arrow_outlives_the_batch() -> None:
    batch = mqsd.decode_batch(SOME)
    table = batch.to_arrow()
    expected = table.to_pylist()
    del batch
    gc.collect()
    churn = [mqsd.decode_batch(SOME[::-1]) for _ in range(3)]
    assert table.to_pylist() == expected
    table.validate(full=True)
    column = table["servers"]
    del table, churn
    gc.collect()
    assert column.to_pylist() == [row["servers"] for row in expected]


def test_capsules_nobody_takes_are_released() -> None:
    batch = mqsd.decode_batch(SOME)
    held = allocated_bytes()
    for _ in range(20):
        batch.__arrow_c_array__()
        batch.__arrow_c_schema__()
        batch.payloads.__arrow_c_array__()
    assert allocated_bytes() == held


def test_failed_calls_leave_nothing() -> None:
    data = bytes(bytearray(MANY))
    before = sys.getrefcount(data)
    for _ in range(10):
        with pytest.raises(TypeError):
            mqsd.decode_batch([data, 5])
        with pytest.raises(ValueError, match="offsets"):
            mqsd.decode_batch(data, offsets=[0, len(data) + 1])
        with pytest.raises(ValueError, match="column"):
            mqsd.decode_batch([data], columns=["x"])
        with pytest.raises(ValueError, match="guid"):
            mqsd.decode_batch([data]).to_arrow(guid="hex")  # type: ignore[arg-type]
    gc.collect()
    assert sys.getrefcount(data) == before


def test_out_drops_the_payloads_it_held() -> None:
    data = bytes(bytearray(MANY))
    before = sys.getrefcount(data)
    out = mqsd.decode_batch([data] * 10)
    mqsd.decode_batch(SOME, out=out)
    gc.collect()
    assert sys.getrefcount(data) == before
    assert_columns(out, read_all(SOME))


def test_a_writable_buffer_is_copied_first() -> None:
    """The batch is of the bytes as they were, and a name read later is too."""
    payload = bytearray(MANY)
    joined = bytearray(MANY * 2)
    array = np.frombuffer(bytearray(MANY), np.uint8)
    batches = [
        mqsd.decode_batch([payload, memoryview(payload), array]),
        mqsd.decode_batch(joined, offsets=[0, len(MANY), 2 * len(MANY)]),
    ]
    for writable in (payload, joined):
        writable[:] = bytes(len(writable))
    array[:] = 0
    for batch in batches:
        assert_columns(batch, read_all([MANY] * len(batch)))
        assert batch["servers"].values["name"].text(1) == "bsc1"
    payload.clear()  # nobody holds an export of it


def test_growing_leaves_old_views_whole() -> None:
    """A Buffer never moves: a view of a batch that grew shows old bytes, never freed ones."""
    out = mqsd.decode_batch(SOME[:10])
    view = out["request_id"]
    copied = view.copy()
    mqsd.decode_batch(SOME * 20, out=out)
    np.testing.assert_array_equal(view, copied)
    del view


def test_cycles_are_collected() -> None:
    for _ in range(5):
        cycle: list[Any] = [mqsd.decode_batch(SOME)]
        cycle.append(cycle)
        cycle.append(cycle[0]["servers"])
    del cycle
    gc.collect()


def test_payload_windows() -> None:
    payloads = Payloads.of([MANY, None, b""])
    first = payloads[0]
    assert first is not None
    assert first.readonly
    assert first == MANY
    assert np.shares_memory(np.frombuffer(first, np.uint8), np.frombuffer(MANY, np.uint8))
    assert payloads[1] is None
    assert payloads[2] is not None
    assert bytes(payloads[2]) == b""
    del payloads
    gc.collect()
    assert bytes(first) == MANY
    del first
