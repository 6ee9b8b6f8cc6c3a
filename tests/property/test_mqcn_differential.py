"""The codec of MQCN and its oracle agree on many payloads: half of them valid, half mutated or random."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from msmqwire import mqcn
from tests.mqcn.messages import LENIENT, assert_message, decode
from tests.reference import mqcn as reference
from tests.reference.mqcn_cases import cases

#: Whether to decode strictly, the share that is mutated, the seed, and the number of cases.
WAYS = [
    pytest.param(strict, broken, seed, count, marks=marks)
    for count, marks in ((1_000, ()), (2_500, pytest.mark.long))
    for seed, (broken, strict) in enumerate(product((0.0, 1.0), (False, True)), 1)
]


@pytest.mark.parametrize(("strict", "broken", "seed", "count"), WAYS)
def test_messages_and_the_oracle_agree(strict: bool, broken: float, seed: int, count: int) -> None:
    found: Counter[str] = Counter()
    for data in cases(count, seed + 100, broken=broken):
        expected = reference.read(data, strict=strict)
        message = decode(data, strict=strict)
        assert_message(message, expected)
        if isinstance(expected, reference.Fault) or isinstance(message, reference.Fault):
            found["fault"] += 1
        elif set(expected.found) <= LENIENT:
            found["written"] += 1
            assert mqcn.encode(message, enforce=False) == reference.write(expected, enforce=False), data.hex()
    assert found["written"] > 50
    assert broken == 0 or found["fault"] > 250


@pytest.mark.parametrize(("seed", "count"), [(5, 2_000), pytest.param(6, 20_000, marks=pytest.mark.long)])
def test_encoded_batches_and_the_oracle_agree(seed: int, count: int) -> None:
    """From columns and from messages."""
    good, written = [], []
    for data in cases(count, seed, broken=0.2):
        model = reference.read(data)
        if isinstance(model, reference.Message) and set(model.found) <= LENIENT:
            good.append(data)
            written.append(reference.write(model, enforce=False))
    assert len(good) > count // 2
    batch = mqcn.decode_batch(good)
    assert list(map(bytes, mqcn.encode_batch(batch, enforce=False))) == written
    messages = [mqcn.decode(data) for data in good]
    assert list(map(bytes, mqcn.encode_batch(messages, enforce=False))) == written
