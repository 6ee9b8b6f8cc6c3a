"""Events of a server in its log: for programs and for people."""

from __future__ import annotations

import json
import logging
import sys
import uuid
from typing import Any

from msmqwire.net.discovery_server import Event, JsonLines


def line(message: object, *arguments: object, level: int = logging.INFO, error: bool = False) -> dict[str, Any]:
    raised = sys.exc_info() if error else None
    record = logging.LogRecord("msmqwire", level, __file__, 1, message, arguments, raised)
    record.created = 1_709_539_200.25
    text = JsonLines().format(record)
    assert text.isascii()
    assert text.isprintable()
    found: dict[str, Any] = json.loads(text)
    return found


def test_an_event_is_its_name_and_its_fields() -> None:
    site = uuid.UUID(int=7)
    assert line(Event("listening", addresses=["127.0.0.1:1801"], site=site), level=logging.WARNING) == {
        "time": "2024-03-04T08:00:00.250Z",
        "level": "warning",
        "event": "listening",
        "addresses": ["127.0.0.1:1801"],
        "site": str(site),
    }


def test_what_is_no_event_is_text() -> None:
    assert line("%d of %s", 3, "them")["event"] == "3 of them"


def test_what_could_steer_a_terminal_is_escaped() -> None:
    reason = "\x1b[2J\u202e\x9b\n"
    assert line(Event("not_reloaded", reason=reason))["reason"] == reason


def test_an_exception_is_told() -> None:
    try:
        raise OSError("no room")
    except OSError:
        assert line(Event("failed"), error=True)["exception"].endswith("OSError: no room")
