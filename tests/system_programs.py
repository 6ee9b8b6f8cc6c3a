"""Programs of the system that some tests compare with: skipped where one is absent, required where we say so."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import NoReturn

import pytest


def require_program(name: str) -> str:
    """Path of the program; without it the calling test is skipped, or fails if MSMQWIRE_REQUIRE_SYSTEM is set.

    A desk without tshark still runs every other test; the gate sets the variable, so that a comparison that did not
    take place is never taken for one that succeeded.
    """
    # Servers are where only administrators have their path.
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return path or _cannot_take_place(f"{name} is not installed")


@contextlib.contextmanager
def capturing(command: Sequence[str], announcement: str) -> Iterator[subprocess.Popen[str]]:
    """A program that captures, from its announcement on standard error on, which is piped; killed at the end.

    Where it may not capture, the calling test is skipped or fails, as ``require_program`` has it.
    """
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""
        while announcement not in said:
            line = process.stderr.readline()
            said += line
            if not line:
                _cannot_take_place(f"{os.path.basename(command[0])} may not capture here: {said}")
        yield process
    finally:
        process.kill()
        process.communicate()


def _cannot_take_place(reason: str) -> NoReturn:
    if os.environ.get("MSMQWIRE_REQUIRE_SYSTEM"):
        pytest.fail(f"{reason}, and MSMQWIRE_REQUIRE_SYSTEM is set")
    pytest.skip(reason)
