"""One packet of every format: many payloads against the oracle, and round trips."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import mqqb, mqsd
from tests.columns.formats import FORMATS, MESSAGES, NOTIFICATIONS, SESSIONS, TOPOLOGY, Format, assert_value, rebuilt
from tests.property.message_packets import user_messages
from tests.property.strategies import PACKETS, PAYLOADS
from tests.reference.mqqb_walk import shortest_types
from tests.reference.reader import Fault

#: Payloads of the short run, and of the long run: the oracle of messages is slow.
COUNTS = {"topology": (750, 6_000), "notifications": (1_000, 2_500), "messages": (125, 2_500), "sessions": (125, 2_500)}
WAYS = [
    pytest.param(kind, strict, broken, 401 + seed, COUNTS[str(kind)][long], marks=pytest.mark.long if long else ())
    for long in (False, True)
    for kind in FORMATS
    for seed, (broken, strict) in enumerate(product((0.0, 1.0), (False, True)))
]

# Neither the sender's nor the receiver's: the host is said once
ON_ONE_HOST = mqqb.UserMessage(
    source_queue_manager=UUID(int=1),
    admin_queue=f"PRIVATE={UUID(int=2)}\\1",
    response_queue=f"PRIVATE={UUID(int=2)}\\2",
    positive_arrival_ack=True,
)


def transport_of(kind: Format, data: bytes) -> dict[str, str]:
    """What a payload travels on: a packet of MQQB is read as what it is, one of MQSD by its size."""
    if kind is TOPOLOGY:
        return {"transport": kind.transports[len(data) % 3]}
    return {"transport": "tcp" if data[4:8] == b"LIOR" else "udp"} if kind.codec is mqqb else {}


@pytest.mark.parametrize(("kind", "strict", "broken", "seed", "count"), WAYS, ids=str)
def test_packets_and_the_oracle_agree(kind: Format, strict: bool, broken: float, seed: int, count: int) -> None:
    found: Counter[str] = Counter()
    for data in kind.cases(count, seed, broken=broken):
        packet = kind.assert_agrees(data, strict=strict, **transport_of(kind, data))
        fault = isinstance(packet, Fault)
        found["fault" if fault else "written" if kind.accepts.issuperset(packet.violations) else "refused"] += 1
    assert found["written"] > count // 100
    assert broken == 0 or found["fault"] > count // 5


def transports_for(packet: Any) -> list[dict[str, str]]:
    """Transports on which a packet breaks no rule: IPX fields go over IPX, no mask goes over IP."""
    if isinstance(packet, mqsd.TopologyClientRequest):
        return [{}, {"transport": "ipx" if len(packet.ipx_networks) else "udp"}]
    if isinstance(packet, mqsd.TopologyServerReply):
        return [{}, {"transport": "ipx" if packet.connected_network_mask else "udp"}]
    if type(packet).__module__.startswith("msmqwire.mqqb"):
        return [{}, {"transport": "udp" if isinstance(packet, mqqb.Ping) else "tcp"}]
    return [{}]


@pytest.mark.parametrize("kind", FORMATS, ids=str)
@given(data=st.data())
def test_what_is_encoded_is_decoded_equal(kind: Format, data: st.DataObject) -> None:
    packet = data.draw(PACKETS[str(kind)])
    assert packet.violations == ()
    written = kind.codec.encode(packet)
    for transport in transports_for(packet):
        again = kind.assert_agrees(written, strict=True, **transport)
        assert again == packet
        assert hash(again) == hash(packet)
        assert repr(again) == repr(packet)
    assert_value(packet)
    assert rebuilt(packet) == packet == packet.replace()


@pytest.mark.parametrize("kind", [TOPOLOGY, NOTIFICATIONS, SESSIONS], ids=str)
@given(data=st.data(), strict=st.booleans())
def test_any_payload_is_what_the_oracle_says(kind: Format, data: st.DataObject, strict: bool) -> None:
    payload = data.draw(PAYLOADS[str(kind)])
    way = {"transport": data.draw(st.sampled_from(kind.transports))} if kind.transports else {}
    kind.assert_agrees(payload, strict=strict, **way)


@given(user_messages())
@example(ON_ONE_HOST)
def test_queues_are_written_in_the_fewest_bytes(message: mqqb.UserMessage) -> None:
    model = MESSAGES.read(mqqb.encode(message))
    assert model.queue_types == shortest_types(model)
