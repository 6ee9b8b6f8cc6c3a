"""What every test runs under."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from msmqwire.columns import allocated_bytes

# A shared or loaded machine must not fail a test for being slow; the number of examples is what we vouch for.
settings.register_profile("msmqwire", deadline=None, max_examples=300, print_blob=True)
settings.load_profile("msmqwire")


@pytest.fixture
def everything_is_released() -> Iterator[None]:
    """No Buffer outlives the test."""
    gc.collect()
    before = allocated_bytes()
    yield
    gc.collect()
    assert allocated_bytes() == before
