"""The capture columns, which come first in every table read from a capture, and the ports of MSMQ."""

from __future__ import annotations

from dataclasses import dataclass

from msmqwire.capture.frames.rows import STREAMED, TIMED
from msmqwire.columns.schema import ADDRESS, TIMESTAMP, UINT16, UINT64, Column, Enumeration, Table
from msmqwire.wire.transport import TRANSPORT_NAMES

__all__ = [
    "CAPTURE",
    "DEFAULT_PORTS",
    "FRAMES",
    "MESSAGE_PORTS",
    "PING_PORTS",
    "TOPOLOGY_PORTS",
    "TOPOLOGY_SOCKETS",
    "TRANSPORTS",
    "StreamLimits",
]

# Where MSMQ listens: discovery and messages, ping, and change notifications sent straight to a queue manager
DEFAULT_PORTS = frozenset({1801, 3527, 876})
TOPOLOGY_PORTS = frozenset({1801})  # UDP: [MS-MQSD] 2.1
TOPOLOGY_SOCKETS = frozenset({876})  # IPX: the same
MESSAGE_PORTS = frozenset({1801})  # TCP: [MS-MQQB] 2.1
PING_PORTS = frozenset({3527})  # UDP: the same

TRANSPORTS = TRANSPORT_NAMES[1:]  # without "unknown"


@dataclass(frozen=True)
class StreamLimits:
    """Limits of the memory that TCP reassembly uses.

    Attributes
    ----------
    ahead : int
        Bytes of one stream that may wait for earlier ones, in at most 1024 segments; then the missing bytes are given
        up.
    memory : int
        Bytes of all streams; above it the streams whose last segment is oldest are evicted.
    streams : int
        Open streams, likewise.
    """

    ahead: int = 1 << 20
    memory: int = 64 << 20
    streams: int = 1 << 16

    def __post_init__(self) -> None:
        if self.ahead < 0 or self.memory < 0 or not 1 <= self.streams < 1 << 31:
            raise ValueError(f"{self}: ahead and memory must not be negative, streams must be 1 to 2^31 - 1")


CAPTURE = Table(
    name="capture",
    section="the capture file",
    columns=(
        Column("file", Enumeration(), "the file, as it was named to the reader"),
        Column(
            "frame",
            UINT64,
            "number of the frame in its file, from 1, as Wireshark counts; TCP: of the last captured",
            values="counted",
        ),
        Column(
            "first_frame",
            UINT64,
            "TCP: the frame with the payload's first byte, in its own file; else the same",
            values="counted",
        ),
        Column("time", TIMESTAMP, "when the frame was captured; null if the file does not say", TIMED),
        Column("src", ADDRESS, "address of the sender"),
        Column("src_port", UINT16, "port of the sender"),
        Column("dst", ADDRESS, "address of the receiver"),
        Column("dst_port", UINT16, "port of the receiver"),
        Column("transport", Enumeration(TRANSPORT_NAMES), "what carried the payload"),
        Column("stream_offset", UINT64, "TCP: where the payload begins in its stream", STREAMED, values="counted"),
    ),
)

# What reading a frame elsewhere needs, beside its bytes, which are the payload of its row
FRAMES = Table(
    name="frames",
    section="the capture file",
    columns=(
        *CAPTURE.select(("file", "frame", "time", "src", "dst")),
        Column("link", UINT16, "what its first header is, by the number of its link type in the registry of tcpdump"),
        Column("offset", UINT64, "where its record begins in the file"),
    ),
)
