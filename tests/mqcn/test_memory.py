"""Views never copy, keep what they look into alive, and let go of it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from msmqwire import Payloads, mqcn
from msmqwire.columns import allocated_bytes
from tests.columns import views
from tests.mqcn.messages import read_all
from tests.mqcn.rows import Expected, assert_columns
from tests.reference.mqcn_cases import cases
from tests.vectors import get

SOME = list(cases(500, seed=7))
MANY = get("mqcn", "change-machine-with-riders").data


@pytest.fixture(autouse=True)
def _everything_is_released() -> Iterator[None]:
    gc.collect()
    before = allocated_bytes()
    yield
    gc.collect()
    assert allocated_bytes() == before


def arrays(batch: mqcn.NotificationBatch) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every numpy array that a batch shows."""
    yield from views.arrays(batch)
    yield "messages", batch.messages


def test_every_view_looks_into_the_batch() -> None:
    batch = mqcn.decode_batch(SOME)
    for (name, one), (_, other) in zip(arrays(batch), arrays(batch), strict=True):
        assert not one.size or np.shares_memory(one, other), name
        assert not one.flags.owndata, name
    assert len(list(arrays(batch))) >= 26


@pytest.mark.parametrize("name", [*mqcn.NOTIFICATIONS.names, "messages"])
def test_a_view_keeps_its_owner(name: str) -> None:
    batch = mqcn.decode_batch(SOME)
    shown = [array for column, array in arrays(batch) if column.partition(".")[0] == name]
    copies = [array.copy() for array in shown]
    held = allocated_bytes()
    del batch
    gc.collect()
    assert 0 < allocated_bytes() <= held
    churn = [mqcn.decode_batch(SOME[::-1]) for _ in range(3)]
    for made in churn:
        made["properties"]
    for view, copied in zip(shown, copies, strict=True):
        np.testing.assert_array_equal(view, copied)


@pytest.mark.parametrize("member", ["text", "bytes", "texts"])
def test_values_keep_the_payload(member: str) -> None:
    data = bytes(bytearray(MANY if member != "texts" else get("mqcn", "values-string-vectors").data))
    before = sys.getrefcount(data)
    values = mqcn.decode_batch([data])["properties"].values
    column = values[member].values if member == "texts" else values[member]
    at = int(np.flatnonzero(column.length)[0])
    value = column[at]
    expected = value.tobytes()
    del values, column
    gc.collect()
    assert sys.getrefcount(data) > before
    assert value.tobytes() == expected
    assert np.shares_memory(value, np.frombuffer(data, np.uint8))
    del value
    gc.collect()
    assert sys.getrefcount(data) == before


def test_a_gathered_property_outlives_its_batch() -> None:
    data = [bytes(bytearray(MANY)) for _ in range(10)]
    first = data[0]
    before = sys.getrefcount(first)
    for propid in (202, 219, 206, 207, 216):
        values, rows = mqcn.decode_batch(data).property(propid)
        gc.collect()
        churn = [mqcn.decode_batch(SOME[::-1]).property(propid) for _ in range(3)]
        assert rows.tolist() == list(range(10))
        if propid == 206:
            assert values[9].tobytes() == bytes.fromhex("010004007f000001")
        elif propid == 216:
            assert values.text(9) == "Windows"
        elif propid == 219:
            assert values.tolist() == [0] * 10
        del values, rows, churn
    gc.collect()
    assert sys.getrefcount(first) == before


def test_a_gathered_property_stays_as_it_was_when_the_batch_is_written_again() -> None:
    out = mqcn.decode_batch([MANY] * 10)
    values, rows = out.property(219)
    guids, _ = out.property(202)
    kept = values.copy(), rows.copy(), guids.copy()
    mqcn.decode_batch(SOME, out=out)
    for array, copied in zip((values, rows, guids), kept, strict=True):
        np.testing.assert_array_equal(array, copied)


def test_a_batch_keeps_its_payloads_and_lets_them_go() -> None:
    data = bytes(bytearray(MANY))
    joined = bytes(bytearray(MANY * 3))
    before = sys.getrefcount(data), sys.getrefcount(joined)
    batches = [
        mqcn.decode_batch([data, data]),
        mqcn.decode_batch(joined, offsets=np.arange(4) * len(MANY)),
        mqcn.decode_batch(Payloads(joined, [0, len(MANY)])),
    ]
    tables = [batch.to_arrow() for batch in batches]
    assert sys.getrefcount(data) > before[0]
    assert sys.getrefcount(joined) > before[1]
    del batches, tables
    gc.collect()
    assert (sys.getrefcount(data), sys.getrefcount(joined)) == before


def test_failed_calls_leave_nothing() -> None:
    data = bytes(bytearray(MANY))
    wrong: Any = [data, 5]
    before = sys.getrefcount(data)
    for _ in range(10):
        with pytest.raises(TypeError):
            mqcn.decode_batch(wrong)
        with pytest.raises(ValueError, match="offsets"):
            mqcn.decode_batch(data, offsets=[0, len(data) + 1])
        with pytest.raises(ValueError, match="column"):
            mqcn.decode_batch([data], columns=["x"])
        with pytest.raises(ValueError, match="guid"):
            mqcn.decode_batch([data]).to_arrow(guid="hex")  # type: ignore[arg-type]
        with pytest.raises((KeyError, ValueError)):
            mqcn.decode_batch([data]).property(7)
    gc.collect()
    assert sys.getrefcount(data) == before


def test_out_drops_the_payloads_it_held() -> None:
    data = bytes(bytearray(MANY))
    before = sys.getrefcount(data)
    out = mqcn.decode_batch([data] * 10)
    out["properties"]
    mqcn.decode_batch(SOME, out=out)
    gc.collect()
    assert sys.getrefcount(data) == before
    assert_columns(out, Expected(read_all(SOME)))


def test_a_writable_buffer_is_copied_first() -> None:
    """The batch is of the bytes as they were, and a text or blob read later is too."""
    payload = bytearray(MANY)
    joined = bytearray(MANY * 2)
    array = np.frombuffer(bytearray(MANY), np.uint8)
    batches = [
        mqcn.decode_batch([payload, memoryview(payload), array]),
        mqcn.decode_batch(joined, offsets=[0, len(MANY), 2 * len(MANY)]),
    ]
    for writable in (payload, joined):
        writable[:] = bytes(len(writable))
    array[:] = 0
    for batch in batches:
        assert_columns(batch, Expected(read_all([MANY] * len(batch))))
        values, _ = batch.property(216)
        assert values.text(1) == "Windows"
    payload.clear()  # nobody holds an export of it


def test_growing_leaves_old_views_whole() -> None:
    """A Buffer never moves: a view of a batch that grew shows old bytes, never freed ones."""
    out = mqcn.decode_batch(SOME[:10])
    shown = [(array, array.copy()) for name, array in arrays(out) if name != "violations"]
    mqcn.decode_batch(SOME * 20, out=out)
    out["properties"]
    for view, copied in shown:
        assert view.shape == copied.shape
        view.sum() if view.dtype.names is None else view.tobytes()
    del shown, view, copied


def test_cycles_are_collected() -> None:
    for _ in range(5):
        cycle: list[Any] = [mqcn.decode_batch(SOME)]
        cycle.append(cycle)
        cycle.append(cycle[0]["properties"])
    del cycle
    gc.collect()
