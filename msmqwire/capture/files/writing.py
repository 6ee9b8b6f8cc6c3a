"""Writing captures: payloads in new frames, in a pcap file; captured frames as they are, in a pcapng file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_MAGIC_NANOSECONDS = 0xA1B23C4D
# Blocks and options of pcapng
_SECTION, _INTERFACE, _SIMPLE_PACKET, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 3, 6
_BYTE_ORDER = 0x1A2B3C4D
_TIME_RESOLUTION, _TIME_OFFSET = 9, 14
#: Of interfaces for times before 1970, in seconds: the first that 64 bits of nanoseconds have
_EARLIEST = -9_223_372_037
_LINK_RAW = 101
_LARGEST_FRAME = 65535
_TCP, _UDP = 6, 17
_SYN, _RST, _PSH, _ACK = 0x02, 0x04, 0x08, 0x10
_HOP_LIMIT = 64
_SECOND = 1_000_000_000
#: Bytes of a stream in one frame: with the headers of IPv6 and TCP they fit in an Ethernet frame.
_SEGMENT = 1440
#: By the version of IP: only the total length of IPv4 counts its own header
_MOST_IN_DATAGRAM = {4: 65507, 6: 65527}
#: The sequence number of the first byte of a stream, after that of its SYN.
_FIRST_BYTE = 1


@dataclass(frozen=True, slots=True)
class Flow:
    """Sender and receiver: addresses, both of IPv4 or both of IPv6, as text, and ports.

    Raises
    ------
    ValueError
        The addresses or ports are not valid.
    """

    src: str
    src_port: int
    dst: str
    dst_port: int

    def __post_init__(self) -> None:
        if ip_address(self.src).version != ip_address(self.dst).version:
            raise ValueError(f"{self.src} and {self.dst} are not of one version of IP")
        for port in (self.src_port, self.dst_port):
            if not isinstance(port, int) or port not in range(1 << 16):
                raise ValueError(f"{port} is not a port")

    @property
    def reverse(self) -> Flow:
        """The other direction."""
        return Flow(self.dst, self.dst_port, self.src, self.src_port)


def is_writable(time: int) -> bool:
    """Return True if a capture can have a time, in nanoseconds since 1970: its seconds have 32 bits."""
    return 0 <= time < _SECOND << 32


class CaptureWriter:
    """Writes frames without a link layer (LINKTYPE_RAW).

    The first bytes of a stream are preceded by the three packets that open its connection, so that a reader knows
    where both streams begin. A stream is reset only where one of another connection follows on its ports.

    Parameters
    ----------
    file : binary file object
        The header of the capture is written to it at once.

    Examples
    --------
    >>> import io
    >>> from msmqwire import capture
    >>> file = io.BytesIO()
    >>> writer = CaptureWriter(file)
    >>> writer.datagram(1_709_539_200_000_000_000, Flow("192.0.2.1", 50000, "192.0.2.2", 1801), b"payload")
    >>> with capture.open(io.BytesIO(file.getvalue())) as blocks:
    ...     [bytes(payload) for block in blocks for payload in block.payloads]
    [b'payload']
    """

    def __init__(self, file: SupportsWrite[bytes]) -> None:
        self._file = file
        # Sequence numbers of each flow: of its SYN, and of the next byte
        self._first: dict[Flow, int] = {}
        self._written: dict[Flow, int] = {}
        file.write(struct.pack("<IHHiIII", _MAGIC_NANOSECONDS, 2, 4, 0, 0, _LARGEST_FRAME, _LINK_RAW))

    def datagram(self, time: int, flow: Flow, payload: bytes, *, lost: int = 0) -> None:
        """Write a datagram of UDP.

        Parameters
        ----------
        time : int
            Nanoseconds since 1970, UTC.
        lost : int
            The bytes that it had after those in ``payload``, as a snapshot length cuts it.

        Raises
        ------
        ValueError
            The payload is too large for a datagram, or a capture cannot have the time.
        """
        size = len(payload) + lost
        if size > _MOST_IN_DATAGRAM[ip_address(flow.src).version]:
            raise ValueError(f"{size:,} bytes do not fit in a datagram")
        header = struct.pack(">4H", flow.src_port, flow.dst_port, 8 + size, 0)
        self._frame(time, flow, _UDP, header, 6, payload, lost)

    def stream(self, time: int, flow: Flow, data: bytes, *, offset: int | None = None) -> None:
        """Write bytes of a TCP stream, in as many frames as necessary.

        Parameters
        ----------
        time : int
            Nanoseconds since 1970, UTC.
        offset : int, optional
            Where they begin in the stream; by default after the bytes written before. A place before these is one
            in the stream of another connection, on the same ports.

        Raises
        ------
        ValueError
            A capture cannot have the time.
        """
        if flow not in self._written:
            self._open(time, flow)
        if offset is not None:
            if self._first[flow] + _FIRST_BYTE + offset < self._written[flow]:
                self._reopen(time, flow)
            self._written[flow] = self._first[flow] + _FIRST_BYTE + offset
        for start in range(0, len(data), _SEGMENT):
            self._segment(time, flow, _PSH | _ACK, data[start : start + _SEGMENT])

    def is_next(self, flow: Flow, offset: int) -> bool:
        """Return True if bytes at this place of a stream follow its start, or the bytes last written, without a gap."""
        return offset == 0 or self._written.get(flow) == self._first.get(flow, 0) + _FIRST_BYTE + offset

    def _open(self, time: int, flow: Flow) -> None:
        """The three packets that open a connection."""
        back = flow.reverse
        for sender in (flow, back):
            self._first[sender] = self._written[sender] = 0
        for sender, flags in ((flow, _SYN), (back, _SYN | _ACK)):
            # Where both ends are equal, both packets open one stream
            self._written[sender] = self._first[sender]
            self._segment(time, sender, flags, b"")
            self._written[sender] += _FIRST_BYTE
        self._segment(time, flow, _ACK, b"")

    def _reopen(self, time: int, flow: Flow) -> None:
        """Reset a stream and begin another one, in this direction alone.

        The data last written in the other direction may be of the earlier connection or of this one.
        """
        self._segment(time, flow, _RST | _ACK, b"")
        # The SYN of another connection has another number
        self._first[flow] = self._written[flow] = self._written[flow] + 1
        self._segment(time, flow, _SYN, b"")
        self._written[flow] += _FIRST_BYTE

    def _segment(self, time: int, flow: Flow, flags: int, data: bytes) -> None:
        sequence = self._written[flow]
        acknowledged = self._written[flow.reverse] if flags & _ACK else 0
        numbers = (sequence & 0xFFFFFFFF, acknowledged & 0xFFFFFFFF)
        header = struct.pack(">HHIIBBHHH", flow.src_port, flow.dst_port, *numbers, 5 << 4, flags, 0xFFFF, 0, 0)
        self._frame(time, flow, _TCP, header, 16, data)
        self._written[flow] = sequence + len(data)

    def _frame(
        self, time: int, flow: Flow, protocol: int, header: bytes, checksum_at: int, data: bytes, lost: int = 0
    ) -> None:  # fmt: skip
        src, dst = ip_address(flow.src), ip_address(flow.dst)
        size = len(header) + len(data) + lost
        pseudo = src.packed + dst.packed + struct.pack(">II", size, protocol)
        # 0 would say that there is none (RFC 768)
        checksum = _checksum(pseudo + header + data) or 0xFFFF
        body = header[:checksum_at] + checksum.to_bytes(2, "big") + header[checksum_at + 2 :] + data
        frame = _ip_header(src, dst, protocol, size) + body
        seconds, nanoseconds = divmod(time, _SECOND)
        if not is_writable(time):
            raise ValueError(f"a capture has no time of {seconds:,} seconds since 1970")
        self._file.write(struct.pack("<4I", seconds, nanoseconds, len(frame), len(frame) + lost) + frame)


class FrameWriter:
    """Writes captured frames as they are, of any link types, in a pcapng file with nanosecond times.

    Parameters
    ----------
    file : binary file object
        The header of the capture is written to it at once.

    Examples
    --------
    >>> import io
    >>> from msmqwire import capture
    >>> file = io.BytesIO()
    >>> writer = FrameWriter(file)
    >>> writer.frame(1_709_539_200_000_000_000, 1, bytes(60))
    >>> with capture.open(io.BytesIO(file.getvalue())) as blocks:
    ...     [len(block) for block in blocks], blocks.stats.frames
    ([], 1)
    """

    def __init__(self, file: SupportsWrite[bytes]) -> None:
        self._file = file
        self._begin_section()

    def frame(self, time: int | None, link: int, data: bytes, original: int = 0) -> None:
        """Write a frame.

        Parameters
        ----------
        time : int, optional
            Nanoseconds since 1970, UTC; None if it is unknown.
        link : int
            The number of its link type.
        original : int, optional
            The bytes that it had before the snapshot length; default: those in ``data``.
        """
        padded = data + bytes(-len(data) % 4)
        if time is None:
            # Such a block is of the first interface of its section
            if self._interfaces and next(iter(self._interfaces)) != (link, False):
                self._begin_section()
            self._interface(link, early=False)
            self._block(_SIMPLE_PACKET, struct.pack("<I", len(data)) + padded)
            return
        interface = self._interface(link, early=time < 0)
        stamp = time - _EARLIEST * _SECOND if time < 0 else time
        sizes = (len(data), max(original, len(data)))
        header = struct.pack("<5I", interface, stamp >> 32, stamp & 0xFFFFFFFF, *sizes)
        self._block(_ENHANCED_PACKET, header + padded)

    def _begin_section(self) -> None:
        self._interfaces: dict[tuple[int, bool], int] = {}
        self._block(_SECTION, struct.pack("<IHHq", _BYTE_ORDER, 1, 0, -1))

    def _interface(self, link: int, *, early: bool) -> int:
        """The number of the interface of a link type and of times before 1970 or later ones."""
        found = self._interfaces.get((link, early))
        if found is None:
            found = self._interfaces[link, early] = len(self._interfaces)
            offset = struct.pack("<HHq", _TIME_OFFSET, 8, _EARLIEST) if early else b""
            resolution = struct.pack("<HHB3x", _TIME_RESOLUTION, 1, 9)
            self._block(_INTERFACE, struct.pack("<HHI", link, 0, 0) + resolution + offset + bytes(4))
        return found

    def _block(self, kind: int, body: bytes) -> None:
        size = struct.pack("<I", 12 + len(body))
        self._file.write(struct.pack("<I", kind) + size + body + size)


def _ip_header(src: IPv4Address | IPv6Address, dst: IPv4Address | IPv6Address, protocol: int, size: int) -> bytes:
    if src.version == 6:
        return struct.pack(">IHBB", 6 << 28, size, protocol, _HOP_LIMIT) + src.packed + dst.packed
    fields = struct.pack(">BBHHHBB", 4 << 4 | 5, 0, 20 + size, 0, 0, _HOP_LIMIT, protocol)
    addresses = src.packed + dst.packed
    return fields + _checksum(fields + bytes(2) + addresses).to_bytes(2, "big") + addresses


def _checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f">{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
