"""Hypothesis strategies for MQSD: packets as a caller makes them, and payloads as a network brings them."""

from __future__ import annotations

import struct

from hypothesis import strategies as st

from msmqwire import mqsd
from tests.property.editing import edit, guids
from tests.reference.propvariant import text_of

units = st.one_of(
    st.integers(0x20, 0x7E), st.integers(1, 0xFFFF), st.sampled_from((0xD800, 0xDC00, 0x012C, 0x0100))
).filter(lambda unit: unit != 0x2C)


names = st.lists(units, min_size=1, max_size=40).map(lambda many: text_of(struct.pack(f"<{len(many)}H", *many)))
servers = st.builds(mqsd.DirectoryServiceServer, names, st.booleans(), st.booleans())

requests = st.builds(
    mqsd.TopologyClientRequest,
    enterprise_id=guids,
    request_id=guids,
    site_id=guids,
    ipx_networks=st.lists(st.integers(0, 0xFFFFFFFF), max_size=32),
)


@st.composite
def replies(draw: st.DrawFn) -> mqsd.TopologyServerReply:
    """Any reply that may be sent: of the local or another site, over IP or IPX."""
    networks = draw(st.lists(guids, min_size=1, max_size=32))
    count = len(networks)
    bits = st.sets(st.integers(0, 31), min_size=count, max_size=count)
    mask = draw(st.just(0) | bits.map(lambda chosen: sum(1 << bit for bit in chosen)))
    listed = draw(st.lists(servers, max_size=8))
    return mqsd.TopologyServerReply(
        correlation_id=draw(guids),
        connected_networks=networks,
        connected_network_mask=mask,
        responding_site_id=draw(guids) if listed else None,
        servers=listed,
    )


packets = requests | replies()


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """A packet with a few edits, or bytes that begin like one."""
    if draw(st.booleans()):
        data = bytearray(mqsd.encode(draw(packets)))
    else:
        head = draw(st.sampled_from((b"", b"\0\1\0\0", b"\0\2\0\0")))
        data = bytearray(head + draw(st.binary(max_size=200)))
    edit(draw, data, (0, 1, 2, 8, 10, 31, 32, 33, 0xFFFFFFFE, 0xFFFFFFFF), places=(20, 24, 28))
    return bytes(data)
