"""What every test runs under."""

from __future__ import annotations

from hypothesis import settings

# A shared or loaded machine must not fail a test for being slow; the number of examples is what we vouch for.
settings.register_profile("msmqwire", deadline=None, max_examples=300, print_blob=True)
settings.load_profile("msmqwire")
