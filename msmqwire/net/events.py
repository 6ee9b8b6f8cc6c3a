"""Events for the log of a server: a name and fields, one JSON object a line or text for people."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

__all__ = ["Event", "JsonLines"]


class Event:
    """What a log record says: a name, and fields that a program can read.

    Examples
    --------
    >>> print(Event("refused", rule="reply", source="192.0.2.7:1801"))
    refused rule=reply source=192.0.2.7:1801
    """

    __slots__ = ("fields", "name")

    def __init__(self, name: str, **fields: object) -> None:
        self.name = name
        self.fields = fields

    def __str__(self) -> str:
        return " ".join((self.name, *(f"{key}={value}" for key, value in self.fields.items())))


class JsonLines(logging.Formatter):
    """A record as a line of JSON: ``time`` (UTC), ``level``, ``event`` and the fields of the event.

    What is no ``Event`` has its text as ``event``. All but ASCII is escaped, so that no line can steer a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": time.removesuffix("+00:00") + "Z", "level": record.levelname.lower()}
        if isinstance(record.msg, Event):
            line |= {"event": record.msg.name, **record.msg.fields}
        else:
            line["event"] = record.getMessage()
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)
