"""Packets to rows in JSON and back: the same bytes, but for what JSON and format names spell in one way only."""

from __future__ import annotations

import io
import json
from typing import Any, Literal

from hypothesis import given

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.cli.formats.json_lines import Writer
from msmqwire.cli.packets import Row, packet_of
from msmqwire.cli.target import Sink
from msmqwire.columns import Batch
from tests.property.discovery_packets import packets
from tests.property.message_packets import session_packets, user_messages
from tests.property.notifications import messages


def rows_of(batch: Batch) -> list[Row]:
    """The rows as the command writes them."""
    written = batch.to_arrow(guid="text", dictionaries=False)
    file = io.BytesIO()
    Writer(Sink(file, "rows"), written.schema).write(written)
    return [json.loads(line) for line in file.getvalue().splitlines()]


def is_plain(packet: Any) -> bool:
    """Whether text in it is text: a surrogate alone is U+FFFD in every table."""
    return "\\ud" not in repr(packet).lower()


@given(packets.filter(is_plain))
def test_topology(packet: Any) -> None:
    data = mqsd.encode(packet)
    assert packet_of("topology", rows_of(mqsd.decode_batch([data]))) == data


@given(user_messages().filter(is_plain))
def test_messages(packet: mqqb.UserMessage) -> None:
    (row,) = rows_of(mqqb.decode_batch([mqqb.encode(packet)]))
    again = mqqb.decode(packet_of("messages", [row]), strict=True)
    (same,) = rows_of(mqqb.decode_batch([mqqb.encode(again)]))
    assert same == row


@given(session_packets)
def test_sessions(packet: Any) -> None:
    transport: Literal["udp", "tcp"] = "udp" if isinstance(packet, mqqb.Ping) else "tcp"
    data = mqqb.encode(packet)
    assert packet_of("sessions", rows_of(mqqb.decode_session_batch([data], transport=transport))) == data


@given(messages.filter(is_plain))
def test_notifications(message: Any) -> None:
    body = mqcn.encode_body(message, enforce=False)
    packet = mqqb.decode(packet_of("notifications", rows_of(mqcn.decode_batch([body]))), strict=True)
    assert isinstance(packet, mqqb.UserMessage)
    assert packet.notification == "plain"
    assert bytes(packet.body) == body
