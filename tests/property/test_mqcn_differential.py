"""The kernel of MQCN and its oracle say the same of 200,000 payloads: half of them valid, half mutated or random."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from msmqwire import mqcn
from tests.mqcn.messages import LENIENT, assert_message, decode, read_all
from tests.mqcn.rows import Expected, assert_arrow, assert_columns
from tests.reference import mqcn as reference
from tests.reference.mqcn_cases import cases

#: Strictly or not, share that is mutated, seed and number of cases: 100,000 of each kind.
WAYS = [
    (False, 0.0, 1, 50_000),
    (True, 0.0, 2, 50_000),
    (False, 1.0, 3, 50_000),
    (True, 1.0, 4, 50_000),
]


def test_there_are_a_hundred_thousand_cases_of_each_kind() -> None:
    for kind in (0.0, 1.0):
        assert sum(count for _, broken, _, count in WAYS if broken == kind) >= 100_000


@pytest.mark.parametrize(("strict", "broken", "seed", "count"), WAYS)
def test_batches_and_the_oracle_agree(strict: bool, broken: float, seed: int, count: int) -> None:
    payloads = list(cases(count, seed, broken=broken))
    assert len(payloads) == count
    expected = Expected(read_all(payloads, strict=strict))
    joined, offsets = b"".join(payloads), np.cumsum([0, *map(len, payloads)])
    batch = mqcn.decode_batch(joined, offsets=offsets, strict=strict)
    assert_columns(batch, expected)
    assert_arrow(batch, expected)
    again = mqcn.decode_batch(payloads, strict=strict, threads=2)
    assert again.to_arrow().equals(batch.to_arrow())
    assert np.array_equal(again.faults, batch.faults)


@pytest.mark.parametrize(("strict", "broken", "seed", "count"), WAYS)
def test_messages_and_the_oracle_agree(strict: bool, broken: float, seed: int, count: int) -> None:
    found: Counter[str] = Counter()
    for data in cases(count // 20, seed + 100, broken=broken):
        expected = reference.read(data, strict=strict)
        message = decode(data, strict=strict)
        assert_message(message, expected)
        if isinstance(expected, reference.Fault) or isinstance(message, reference.Fault):
            found["fault"] += 1
        elif set(expected.found) <= LENIENT:
            found["written"] += 1
            assert mqcn.encode(message, enforce=False) == reference.write(expected, enforce=False), data.hex()
    assert found["written"] > count // 200
    assert broken == 0 or found["fault"] > count // 50


@pytest.mark.parametrize("seed", [5, 6])
def test_encoded_batches_and_the_oracle_agree(seed: int) -> None:
    """What an encoder may write, written by the batch from columns and from messages."""
    good, written = [], []
    for data in cases(10_000, seed, broken=0.2):
        model = reference.read(data)
        if isinstance(model, reference.Message) and set(model.found) <= LENIENT:
            good.append(data)
            written.append(reference.write(model, enforce=False))
    assert len(good) > 5_000
    batch = mqcn.decode_batch(good)
    assert list(map(bytes, mqcn.encode_batch(batch, enforce=False))) == written
    messages = [mqcn.decode(data) for data in good]
    assert list(map(bytes, mqcn.encode_batch(messages, enforce=False))) == written
