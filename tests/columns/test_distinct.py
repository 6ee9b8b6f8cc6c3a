"""Distinct values in dictionaries: no capture can choose values that collide."""

from __future__ import annotations

import random
import struct

import pytest

from msmqwire.columns._distinct import address_probes

COUNT = 4096
IPV4, IPV6 = 4, 6
# The factor of many hashes; values that collide under it were made with its inverse
FACTOR = 0x9E3779B97F4A7C15
INVERSE = pow(FACTOR, -1, 1 << 64)


def crafted(name: str) -> bytes:
    numbers = random.Random(7)
    addresses = []
    for i in range(COUNT):
        if name == "random":
            words = numbers.getrandbits(64), numbers.getrandbits(64)
        elif name == "equal by xor":
            words = i << 20, i << 20 ^ 0x1234
        elif name == "rotated":
            words = i, (i << 32 | i >> 32) & (1 << 64) - 1
        elif name == "multiples of the inverse":
            words = i * INVERSE & (1 << 64) - 1, 0
        elif name == "high":
            words = i << 52, 0
        else:
            assert name == "low"
            words = i, 0
        addresses.append(struct.pack("<QQH", *words, IPV6))
    return b"".join(addresses)


@pytest.mark.parametrize("name", ["equal by xor", "rotated", "multiples of the inverse", "high", "low"])
def test_crafted_addresses_cost_no_more_than_random_ones(name: str) -> None:
    ordinary = address_probes(crafted("random"))
    assert COUNT <= ordinary < 2 * COUNT
    assert address_probes(crafted(name)) < 2 * ordinary


def test_repeated_addresses() -> None:
    """The value of the row before costs nothing, another known one a slot or few."""
    one, other = struct.pack("<QQH", 1, 0, IPV4), struct.pack("<QQH", 2, 0, IPV4)
    assert address_probes(one * COUNT) == 1
    assert COUNT <= address_probes((one + other) * (COUNT // 2)) <= 2 * COUNT
