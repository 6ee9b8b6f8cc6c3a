"""Strategies by table: packets that an encoder takes, and payloads as a network brings them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.property import discovery_packets, message_packets, notifications
from tests.reference.mqqb_walk import LIOR

#: Packets without violations. Only the transport tells a ping with the cookie LIOR from a packet.
PACKETS: dict[str, st.SearchStrategy[Any]] = {
    "topology": discovery_packets.packets,
    "notifications": notifications.messages,
    "messages": message_packets.user_messages(),
    "sessions": message_packets.session_packets.filter(lambda packet: getattr(packet, "cookie", 0) != LIOR),
}
PAYLOADS: dict[str, st.SearchStrategy[bytes]] = {
    "topology": discovery_packets.payloads(),
    "notifications": notifications.payloads(),
    "messages": message_packets.payloads(),
    "sessions": message_packets.payloads(),
}
