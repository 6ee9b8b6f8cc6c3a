"""The constants of packets in a stream of bytes: [MS-MQMQ] 2.2.19.1, [MS-MQQB] 3.1.5.1.2.

``make build`` writes them into ``_generated.pxd``.
"""

from __future__ import annotations

BASE_HEADER_SIZE = 16
SESSION_HEADER_SIZE = 16
VERSION_NUMBER = 0x10
PACKET_SIGNATURE = b"LIOR"
#: PacketSize of the largest packet.
LARGEST_PACKET = 0x00400000
#: IN and SH of BaseHeader.Flags.
FLAG_INTERNAL = 1 << 3
FLAG_SESSION = 1 << 4


def has_signature(payload: bytes) -> bool:
    """Return True if a payload has the Signature of a BaseHeader, as all packets but pings."""
    return payload[4:8] == PACKET_SIGNATURE
