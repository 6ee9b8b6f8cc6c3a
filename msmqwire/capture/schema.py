"""The columns that say where a payload of a capture comes from; they stand in front of every table read from one."""

from __future__ import annotations

from msmqwire.columns.schema import ADDRESS, TIMESTAMP, UINT16, UINT64, Column, Enumeration, Table

__all__ = ["CAPTURE", "DEFAULT_PORTS", "TOPOLOGY_PORTS", "TRANSPORTS"]

# Where MSMQ listens: discovery and messages, ping, and change notifications sent straight to a queue manager
DEFAULT_PORTS = frozenset({1801, 3527, 876})
TOPOLOGY_PORTS = frozenset({1801})  # [MS-MQSD] 2.1

TRANSPORTS = ("udp", "tcp", "ipx")

# The bits of a presence byte above DECODED, as frames.pxd has them
TIMED, STREAMED = 2, 4

CAPTURE = Table(
    name="capture",
    section="the capture file",
    columns=(
        Column("file", Enumeration(), "the file, as it was named to the reader"),
        Column("frame", UINT64, "number of the frame in its file, from 1, as Wireshark counts"),
        Column("time", TIMESTAMP, "when the frame was captured; null if the file does not say", TIMED),
        Column("src", ADDRESS, "address of the sender"),
        Column("src_port", UINT16, "port of the sender"),
        Column("dst", ADDRESS, "address of the receiver"),
        Column("dst_port", UINT16, "port of the receiver"),
        Column("transport", Enumeration(TRANSPORTS), "what carried the payload"),
        Column("stream_offset", UINT64, "TCP: where the payload begins in its stream", STREAMED),
    ),
)
