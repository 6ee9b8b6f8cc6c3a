"""Batches that wait, and which of them are handled together."""

from __future__ import annotations

import pyarrow as pa

from msmqwire.insight.waiting import WaitingBatches


def batch(*numbers: int, name: str = "n") -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(numbers, pa.int64())], [name])


def test_at_most_32_batches_wait() -> None:
    waiting = WaitingBatches()
    for number in range(31):
        assert waiting.add(batch(number)) == []
        assert (len(waiting), waiting.rows, waiting.nbytes) == (number + 1, number + 1, 8 * (number + 1))
    assert waiting.add(batch(31)) == [batch(*range(32))]
    assert (len(waiting), waiting.rows, waiting.nbytes) == (0, 0, 0)


def test_fewer_than_32768_rows_wait() -> None:
    waiting = WaitingBatches()
    for rows, few in ((32_766, 1), (32_767, 1)):
        assert waiting.add(batch(*range(rows))) == []
        assert [each.num_rows for each in waiting.add(batch(*[1] * (32_768 - rows)))] == [32_768]
        assert waiting.add(batch(*[1] * few)) == []
        assert [each.num_rows for each in waiting.take()] == [few]


def test_less_than_16_mib_waits() -> None:
    # With two offsets of 4 bytes each
    half, less = (
        pa.RecordBatch.from_arrays([pa.array([size * b"a"])], ["data"]) for size in ((8 << 20) - 8, (8 << 20) - 16)
    )
    for second, ready in ((less, []), (half, [2])):
        waiting = WaitingBatches()
        assert waiting.add(half) == []
        assert [each.num_rows for each in waiting.add(second)] == ready


def test_batches_of_another_schema_follow_those_that_wait() -> None:
    waiting = WaitingBatches()
    assert waiting.add(batch(1)) == waiting.add(batch(2)) == []
    assert waiting.add(batch(3, name="m")) == [batch(1, 2)]
    assert waiting.take() == [batch(3, name="m")]


def test_batches_without_rows_are_not_handled() -> None:
    waiting = WaitingBatches()
    assert waiting.take() == []
    for _ in range(2):
        assert waiting.add(batch()) == []
    assert waiting.take() == []
    assert waiting.add(batch()) == []
    assert waiting.take() == []
