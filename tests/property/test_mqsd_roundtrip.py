"""Round trips: what is written is read equal, what is read without a violation is written back as it was."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import mqsd
from msmqwire.errors import EncodeError
from tests.mqsd.rows import assert_arrow, assert_columns, contents, decode, packet_row, read_all
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


@settings(max_examples=100)
@given(st.lists(packets, max_size=6))
def test_batches_round_trip(many: list[Any]) -> None:
    written = mqsd.encode_batch(many)
    assert contents(written) == [mqsd.encode(packet) for packet in many]
    batch = mqsd.decode_batch(written, strict=True)
    assert contents(mqsd.encode_batch(batch)) == contents(written)
    assert_columns(batch, read_all(contents(written), strict=True))


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


@given(st.lists(st.none() | payloads(), max_size=20), st.booleans(), transports, st.integers(1, 3))
def test_any_batch_is_what_the_oracle_says(
    many: list[bytes | None], strict: bool, transport: Transport, threads: int
) -> None:
    expected = read_all(many, strict=strict, transport=transport)
    for given_as in (many, pa.array(many, pa.binary()), pa.array([b"x", *many], pa.binary_view())[1:]):
        batch = mqsd.decode_batch(given_as, strict=strict, transport=transport, threads=threads)
        assert_columns(batch, expected)
    assert_arrow(batch, expected)
