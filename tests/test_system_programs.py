"""A comparison that cannot take place is skipped on a desk, and fails where all are required."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from tests.system_programs import capturing, require_node_module, require_program


def capture_without_rights() -> None:
    with capturing(["sh", "-c", "echo You have no permission >&2"], "listening on"):
        pytest.fail("it does not listen")


@pytest.mark.parametrize(
    ("needs", "reason"),
    [
        (lambda: require_program("msmq-shark"), "msmq-shark is not installed"),
        (lambda: require_node_module("msmq-shark"), "msmq-shark is not installed (npm install msmq-shark)"),
        (capture_without_rights, "sh may not capture here: You have no permission\n"),
    ],
)
def test_what_cannot_take_place(needs: Callable[[], object], reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MSMQWIRE_REQUIRE_SYSTEM", raising=False)
    with pytest.raises(pytest.skip.Exception) as skipped:
        needs()
    assert skipped.value.msg == reason
    monkeypatch.setenv("MSMQWIRE_REQUIRE_SYSTEM", "1")
    with pytest.raises(pytest.fail.Exception) as failed:
        needs()
    assert failed.value.msg == f"{reason}, and MSMQWIRE_REQUIRE_SYSTEM is set"


def test_a_capture_ends_with_its_block() -> None:
    command = ["sh", "-c", "echo sh: >&2; echo listening on lo >&2; exec sleep 60"]
    with capturing(command, "listening on") as process:
        assert process.poll() is None
    assert process.returncode == -signal.SIGKILL
