"""Programs of the system that some tests compare with: skipped where one is absent, required where we say so."""

from __future__ import annotations

import os
import shutil

import pytest


def require_program(name: str) -> str:
    """Path of the program; without it the calling test is skipped, or fails if MSMQWIRE_REQUIRE_SYSTEM is set.

    A desk without tshark still runs every other test; the gate sets the variable, so that a comparison that did not
    take place is never taken for one that succeeded.
    """
    # Servers are where only administrators have their path.
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is not None:
        return path
    reason = f"{name} is not installed"
    if os.environ.get("MSMQWIRE_REQUIRE_SYSTEM"):
        pytest.fail(f"{reason}, and MSMQWIRE_REQUIRE_SYSTEM is set")
    pytest.skip(reason)
