"""The capture columns, which come first in every table read from a capture, and the ports of MSMQ."""

from __future__ import annotations

from dataclasses import dataclass

from msmqwire.capture.frames._rows import ENCAPSULATED, JOINED, STREAMED, TIMED
from msmqwire.columns.schema import ADDRESS, TIMESTAMP, UINT16, UINT32, UINT64, Column, Enumeration, Table
from msmqwire.wire._transport import TRANSPORT_NAMES
from msmqwire.wire.ports import DISCOVERY_PORT, DISCOVERY_SOCKET, PING_PORT, SESSION_PORT

TOPOLOGY_PORTS = frozenset({DISCOVERY_PORT})
TOPOLOGY_SOCKETS = frozenset({DISCOVERY_SOCKET})
MESSAGE_PORTS = frozenset({SESSION_PORT})
PING_PORTS = frozenset({PING_PORT})
DEFAULT_PORTS = TOPOLOGY_PORTS | TOPOLOGY_SOCKETS | MESSAGE_PORTS | PING_PORTS

TRANSPORTS = TRANSPORT_NAMES[1:]  # without "unknown"


@dataclass(frozen=True)
class StreamLimits:
    """Limits of the memory that TCP reassembly uses, and of the time that IP reassembly takes.

    Attributes
    ----------
    ahead : int
        Bytes of one stream that may wait for earlier ones, in at most 1024 segments; then the missing bytes are given
        up.
    memory : int
        Bytes of all streams; above it the streams whose last segment is oldest are evicted.
    streams : int
        Open streams, likewise. Connections, of which the one whose last segment is oldest becomes a row early.
    fragment_seconds : float
        An IP fragment belongs to a datagram whose first fragment was captured no further away than this (RFC 791).
    """

    ahead: int = 1 << 20
    memory: int = 64 << 20
    streams: int = 1 << 16
    fragment_seconds: float = 30

    def __post_init__(self) -> None:
        if self.ahead < 0 or self.memory < 0 or not 1 <= self.streams < 1 << 31:
            raise ValueError(f"{self}: ahead and memory must not be negative, streams must be 1 to 2^31 - 1")
        if not 0 <= self.fragment_seconds < 1 << 32:
            raise ValueError(f"{self}: fragment_seconds must be 0 to 2^32")


@dataclass(frozen=True)
class FileLimits:
    """Limits of what one capture file may use. Each limit that is met is reported in ``CaptureStats``.

    Attributes
    ----------
    memory : int
        Bytes that a decompressor may use: the window of zstd and the dictionary of xz, whose sizes are claims of the
        file. The file is read up to a claim above it. From 64 KiB to 2 GiB; the default reads whatever ``zstd`` and
        ``xz`` write without special options.
    max_bytes : int, optional
        Bytes of each file, after decompression, that are read; then the file counts as truncated. Default: no limit.
    interfaces : int
        Interfaces of a section of pcapng that are kept. Frames of later interfaces count as malformed.
    """

    memory: int = 128 << 20
    max_bytes: int | None = None
    interfaces: int = 1 << 16

    def __post_init__(self) -> None:
        if not (1 << 16 <= self.memory <= 1 << 31 and self.interfaces >= 0 and (self.max_bytes or 0) >= 0):
            raise ValueError(f"{self}: memory must be 64 KiB to 2 GiB, max_bytes and interfaces must not be negative")


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
            "the frame with the payload's first byte, in its own file",
            values="counted",
        ),
        Column("time", TIMESTAMP, "when the frame was captured; null if the file does not say", TIMED),
        Column("src", ADDRESS, "address of the sender"),
        Column("src_port", UINT16, "port of the sender"),
        Column("dst", ADDRESS, "address of the receiver"),
        Column("dst_port", UINT16, "port of the receiver"),
        Column("transport", Enumeration(TRANSPORT_NAMES), "what carried the payload"),
        Column(
            "encapsulation",
            Enumeration(),
            'the encapsulations around its IP packet, the outermost first, as "vxlan" or "gre/ipv4"; null without',
            ENCAPSULATED,
        ),
        Column("stream_offset", UINT64, "TCP: where the payload begins in its stream", STREAMED, values="counted"),
    ),
    presence_bits={"joined": JOINED},
)

OUTCOMES = ("silent", "refused", "reset", "established", "closed")
FIRST_TIMED = 2  # the bit of presence of ``first_time``

# The sender tried to connect; frame and time are those of the last segment between the two
CONNECTIONS = Table(
    name="connections",
    section="RFC 9293 3.5",
    columns=(
        Column("attempts", UINT32, "captured SYN segments of the sender; 0 if only the answer to one was captured"),
        Column(
            "outcome",
            Enumeration(OUTCOMES),
            "no answer; RST as the answer; RST later, before FIN; answered; FIN later",
        ),
        Column(
            "first_time", TIMESTAMP, "when the first segment was captured, `time` being that of the last", FIRST_TIMED
        ),
    ),
)

# The columns that reading a frame elsewhere needs, beside its bytes, which are the payload of its row
FRAMES = Table(
    name="frames",
    section="the capture file",
    columns=(
        *CAPTURE.select(("file", "frame", "time", "src", "dst")),
        Column("link", UINT16, "what its first header is, by the number of its link type in the registry of tcpdump"),
        Column("offset", UINT64, "where its record begins in the file"),
    ),
)

# Every frame, with the columns that writing it elsewhere needs
RECORDS = Table(
    name="records",
    section="the capture file",
    columns=(*FRAMES.columns, Column("length", UINT32, "bytes that it had before the snapshot length")),
)
