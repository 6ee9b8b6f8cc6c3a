"""Round trips: what is written is read equal, what is read without a violation is written back as it was."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import mqsd
from msmqwire.errors import EncodeError
from tests.mqsd.rows import decode, packet_row
from tests.property.strategies import packets, payloads, transports
from tests.reference import mqsd as reference
from tests.reference.mqsd import Transport


def _transport(packet: Any) -> Transport:
    """A transport on which the packet breaks no rule: IPX fields go over IPX, no mask goes over IP."""
    if isinstance(packet, mqsd.TopologyClientRequest):
        return "ipx" if len(packet.ipx_networks) else "udp"
    return "ipx" if packet.connected_network_mask else "udp"


@given(packets)
def test_what_is_encoded_is_decoded_equal(packet: Any) -> None:
    data = mqsd.encode(packet)
    ways: tuple[Transport, ...] = ("unknown", _transport(packet))
    for transport in ways:
        again = mqsd.decode(data, strict=True, transport=transport)
        assert again == packet
        assert hash(again) == hash(packet)
        assert mqsd.encode(again) == data
    assert pickle.loads(pickle.dumps(packet)) == packet
    model = reference.read(data, strict=True)
    assert reference.row(model) == packet_row(packet)


@given(payloads(), st.booleans(), transports)
def test_any_payload_is_what_the_oracle_says(data: bytes, strict: bool, transport: Transport) -> None:
    expected = reference.read(data, strict=strict, transport=transport)
    packet = decode(data, strict=strict, transport=transport)
    if isinstance(packet, reference.Fault):
        assert packet == expected
        assert 0 <= packet.offset <= len(data)
        return
    assert packet_row(packet) == reference.row(expected)
    if packet.violations:
        with pytest.raises(EncodeError):
            mqsd.encode(packet)
        return
    written = mqsd.encode(packet)
    assert mqsd.decode(written, strict=True, transport=transport) == packet
    if isinstance(packet, mqsd.TopologyServerReply):
        assert written == data
    else:
        assert data.startswith(written)
