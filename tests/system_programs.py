"""System programs that some tests need: a test is skipped where its program is missing, or fails in the gate."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from typing import NoReturn

import pytest

#: JVMs of tests live for minutes: quick compilation costs less than good code saves, and Spark's classes are sound.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"


def require_program(name: str) -> str:
    """Path of the program; without it the calling test is skipped, or fails if MSMQWIRE_REQUIRE_SYSTEM is set.

    The gate sets the variable, so that no comparison is left out there.
    """
    # Servers are not on the path of users
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    return path or _missing(f"{name} is not installed")


def require_node_module(name: str) -> str:
    """Path of node, which finds the module; without one of them as ``require_program``."""
    node = require_program("node")
    if subprocess.run([node, "-e", f"require({name!r})"], capture_output=True).returncode:
        _missing(f"{name} is not installed (npm install {name})")
    return node


@contextlib.contextmanager
def capturing(command: Sequence[str], announcement: str) -> Iterator[subprocess.Popen[str]]:
    """Run a capturing program: start after its announcement on standard error, kill at the end.

    Where it may not capture, the calling test is skipped or fails, as with ``require_program``.
    """
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        said = ""
        while announcement not in said:
            line = process.stderr.readline()
            said += line
            if not line:
                _missing(f"{os.path.basename(command[0])} may not capture here: {said}")
        yield process
    finally:
        process.kill()
        process.communicate()


def _missing(reason: str) -> NoReturn:
    if os.environ.get("MSMQWIRE_REQUIRE_SYSTEM"):
        pytest.fail(f"{reason}, and MSMQWIRE_REQUIRE_SYSTEM is set")
    pytest.skip(reason)
