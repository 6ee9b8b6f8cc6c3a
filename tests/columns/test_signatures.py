"""Signatures of packet classes say which values their keywords take."""

from __future__ import annotations

from inspect import Parameter, signature

import pytest

from msmqwire import mqqb
from msmqwire.columns.signature import packet_signature


@pytest.mark.parametrize(
    ("name", "annotation", "default"),
    [
        ("delivery_mode", "Literal['express', 'recoverable']", "express"),
        ("source_queue_manager", "UUID", mqqb.UserMessage().source_queue_manager),
        ("admin_queue", "FormatName | str | None", None),
        ("connector_type", "UUID | None", None),
        ("debug_header", "bool", False),
        ("tracing", "bool", False),
        ("label", "str", ""),
        ("body", "bytes", b""),
        ("body_type", "int", 0),
    ],
)
def test_a_user_message(name: str, annotation: str, default: object) -> None:
    assert signature(mqqb.UserMessage).parameters[name] == Parameter(
        name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


def test_lists() -> None:
    found = signature(mqqb.MultiQueueFormatHeader).parameters["destination_queues"]
    assert found.annotation == "tuple[FormatName | str, ...]"


def test_a_keyword_without_a_default_is_required() -> None:
    found = packet_signature({"one": "int", "two": "str | None"}, {"two": None})
    assert str(found) == "(*, one: 'int', two: 'str | None' = None)"
