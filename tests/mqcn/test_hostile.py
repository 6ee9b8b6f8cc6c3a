"""Large payloads made to be slow or hungry: time and memory stay in proportion to the bytes."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest

from msmqwire import mqcn
from msmqwire.columns import allocated_bytes
from tests.columns.formats import NOTIFICATIONS
from tests.columns.rows import place_of
from tests.reference.reader import Fault
from tests.vectors import get

UNITS = 1 << 20  # of 2 bytes; the protocol's own limit of a message is 4 MiB
HEAD = b"\1\1\1\1" + bytes(56)
C3 = get("mqcn", "C3-body").data


def path(text: str) -> bytes:
    return b"\1\1\0\0" + text.encode("utf-16-le") + b"\0\0" + bytes(41)


def properties(*ids: int) -> bytes:
    return HEAD + bytes((len(ids),)) + struct.pack(f"<{len(ids)}I", *ids)


def body(name: str) -> bytes:
    return C3[: 2 + 2 * 110] + name.encode("utf-16-le") + C3[2 + 2 * 113 :]


FOUND = {
    "path of backslashes": (path("\\" * UNITS), ("path_name_syntax", "property_count", "property_set")),
    "path of prefixes": (path("a\\private$" * (UNITS // 10)), ("path_name_syntax", "property_count", "property_set")),
    "path of subqueues": (path("a\\" + ";b" * (UNITS // 2)), ("path_name_syntax", "property_count", "property_set")),
    "a text": (properties(108) + "x".encode("utf-16-le") * UNITS + b"\0\0", ("property_set",)),
    "empty texts": (properties(223) + struct.pack("<I", UNITS) + b"\0\0" * UNITS, ("property_set",)),
    "a blob": (properties(117) + struct.pack("<I", UNITS) + bytes(UNITS), ("property_set",)),
    "GUIDs": (properties(207) + struct.pack("<I", UNITS // 8) + bytes(2 * UNITS), ("property_set",)),
    "one property 255 times": (properties(*[1403] * 255) + bytes(255), ("property_set", "duplicate_property")),
    "text behind a body": (C3 + b"<\0" * UNITS, ("trailing_bytes",)),
    "bytes behind an update": (HEAD + bytes(2 * UNITS), ("trailing_bytes", "property_count", "property_set")),
}
FAULTS = {
    "path without an end": (b"\1\1\0\0" + b"a\0" * UNITS, ("bad_terminator", "PathName", 4)),
    "zeros across units": (b"\1\1\0\0" + b"\0\1" * UNITS, ("bad_terminator", "PathName", 4)),
    "texts without an end": (
        properties(224) + struct.pack("<I", UNITS // 2) + b"a\0" * UNITS,
        ("bad_terminator", "PropertyValue[0]", 65),
    ),
    "a long server name": (body("a" * UNITS), ("bad_text", "DomainController", 222)),
    "closings": (body("</Notification>" * (UNITS // 15)), ("bad_text", "DomainController", 222)),
    "suffixes": (body("</DomainController></Notification>" * (UNITS // 34)), ("bad_text", "DomainController", 222)),
    "nearly closings": (
        b"\2\1" + "</Notification".encode("utf-16-le") * (UNITS // 14),
        ("bad_text", "NotificationBody", 4),
    ),
    "a text of brackets": (b"\2\1" + b"<\0" * UNITS, ("bad_text", "NotificationBody", 4)),
}


def timed(call: Any, *arguments: Any) -> tuple[Any, float]:
    start = time.thread_time()
    result = call(*arguments)
    return result, time.thread_time() - start


@pytest.mark.parametrize("name", [*FOUND, *FAULTS])
def test_time_is_in_proportion_to_the_bytes(name: str) -> None:
    """A second is a hundred times what 4 MiB take, and nothing against what a square of them would."""
    data, outcome = (FOUND | FAULTS)[name]
    message, seconds = timed(NOTIFICATIONS.decode, data)
    assert seconds < 1
    batch, seconds = timed(mqcn.decode_batch, [data])
    assert seconds < 1
    _, seconds = timed(lambda: batch["properties"])
    assert seconds < 1
    table, seconds = timed(batch.to_arrow)
    assert seconds < 1
    table.validate(full=True)
    if name in FAULTS:
        assert message == place_of(batch.fault(0)) == outcome
    else:
        assert not isinstance(message, Fault)
        assert message.violations == batch.violation_names(0) == outcome


@pytest.mark.parametrize("name", [*FOUND, *FAULTS])
def test_memory_is_in_proportion_to_the_bytes(name: str) -> None:
    data, _ = (FOUND | FAULTS)[name]
    before = allocated_bytes()
    batch = mqcn.decode_batch([data])
    batch["properties"]
    assert allocated_bytes() - before <= 100_000 + 8 * len(data)
    batch.to_arrow()
    del batch
    assert allocated_bytes() == before


def test_as_many_messages_as_there_can_be() -> None:
    """The smallest payloads, each of them a row."""
    for smallest in (b"", b"\1", b"\1\0", b"\2\1"):
        before = allocated_bytes()
        count = 200_000
        batch, seconds = timed(mqcn.decode_batch, [smallest] * count)
        assert seconds < 1
        assert len(batch) == count
        assert allocated_bytes() - before <= 300 * count
        assert batch.messages[-1] == count
        del batch


def test_the_densest_updates() -> None:
    """255 updates of 59 bytes in each message: more rows than payloads, by the largest factor."""
    update = b"\1\1" + bytes(57)
    data = b"\1\xff" + update * 255
    batch, seconds = timed(mqcn.decode_batch, [data] * 200)
    assert seconds < 1
    assert len(batch) == 200 * 255
    assert batch["index"].reshape(200, 255).tolist() == [list(range(255))] * 200
    assert batch.messages.tolist() == list(range(0, 200 * 255 + 1, 255))
    assert set(batch.violations.tolist()) == {8 + 32}
