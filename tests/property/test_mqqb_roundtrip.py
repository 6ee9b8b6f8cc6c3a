"""Round trips: what is written is read equal, what is read without a violation is written back as it was."""

from __future__ import annotations

import pickle
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from tests.mqqb.packets import assert_packet, decode, table_of
from tests.property.message_packets import payloads, session_packets, user_messages
from tests.reference import mqqb as reference
from tests.reference.mqqb_writer import WRITABLE, write

# Neither the sender's nor the receiver's: the host is said once
ON_ONE_HOST = mqqb.UserMessage(
    source_queue_manager=UUID(int=1),
    admin_queue=f"PRIVATE={UUID(int=2)}\\1",
    response_queue=f"PRIVATE={UUID(int=2)}\\2",
    positive_arrival_ack=True,
)


def transport_of(packet: Any) -> reference.Transport:
    return "udp" if isinstance(packet, mqqb.Ping) else "tcp"


def assert_round_trip(packet: Any) -> None:
    """The packet, its bytes, the bytes read, pickled, and what the oracle makes of them are all the same."""
    assert packet.violations == ()
    data = mqqb.encode(packet)
    again = mqqb.decode(data, strict=True, transport=transport_of(packet))
    assert again == packet
    assert hash(again) == hash(packet)
    assert repr(again) == repr(packet)
    assert mqqb.encode(again) == data
    assert pickle.loads(pickle.dumps(packet)) == packet
    model = reference.read(data, table_of(data), strict=True, transport=transport_of(packet))
    assert isinstance(model, reference.Packet)
    assert_packet(packet, model)
    assert write(model) == data
    assert write(model, shortest=True) == data


@settings(max_examples=200)
@given(user_messages())
@example(ON_ONE_HOST)
def test_messages_are_decoded_equal(message: mqqb.UserMessage) -> None:
    assert_round_trip(message)


@settings(max_examples=100)
@given(session_packets)
def test_packets_of_sessions_are_decoded_equal(packet: Any) -> None:
    assert_round_trip(packet)


@settings(max_examples=300)
@given(payloads(), st.booleans(), st.sampled_from(reference.TRANSPORTS))
def test_any_payload_is_what_the_oracle_says(data: bytes, strict: bool, transport: reference.Transport) -> None:
    is_ping = transport == "udp" or (transport == "unknown" and data[4:8] != b"LIOR")
    table: reference.Table = "sessions" if is_ping or len(data) < 16 or data[2] & 8 else "messages"
    expected = reference.read(data, table, strict=strict, transport=transport)
    packet = decode(data, strict=strict, transport=transport)
    assert_packet(packet, expected)
    if isinstance(packet, reference.Fault) or isinstance(expected, reference.Fault):
        assert isinstance(packet, reference.Fault)
        assert 0 <= packet.offset <= len(data)
    elif set(packet.violations) - WRITABLE:
        with pytest.raises(EncodeError):
            mqqb.encode(packet)
    else:
        written = mqqb.encode(packet)
        assert mqqb.decode(written, strict=True, transport=transport_of(packet)) == packet
        assert written == write(expected)
