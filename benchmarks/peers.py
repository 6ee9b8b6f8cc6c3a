"""The other ways to read and write the same packets, one library at a time.

A decoder is prepared for a workload and can then be run any number of times. Given ``see``, it also shows
what it decoded, as the columns the workload's truth has; timed runs pass nothing and build no columns they
would not build anyway. Whatever a library would do slowly for no good reason is done for it beforehand:
payloads are cut into ``bytes`` outside the timed part, and the formats are written flat, one per kind of
packet. The slow ones get a sample of the packets, which favours them: a sample stays in the cache.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from benchmarks.workloads import Columns, Workload, ends_of

See = Callable[[Columns], None]
RequestRow = tuple[int, int, bytes, bytes, bytes]
Server = tuple[str, bool, bool]
ReplyRow = tuple[int, int, bytes, int, Sequence[bytes], bytes, Sequence[Server]]

REQUEST = struct.Struct("<BBH16s16s16s")
REPLY = struct.Struct("<BBH16sIII")


class Decoder(Protocol):
    """Decodes the whole workload it was prepared for."""

    def __call__(self, see: See | None = None) -> None: ...


class Encoder(Protocol):
    """Encodes the whole workload it was prepared for; the chunks joined are the workload's bytes."""

    def __call__(self, see: Callable[[Any], None] | None = None) -> None: ...


@dataclass(frozen=True)
class Peer:
    """One way to decode or encode: ``sample`` is the number of packets it is given, 0 for all of them.

    ``prepare`` takes a workload, or the path of a capture and the number of packets to read from it.
    """

    name: str
    prepare: Callable[..., Any]
    sample: int = 0
    target: float | None = None
    note: str = ""


def request_columns(rows: Iterable[RequestRow]) -> Columns:
    """Rows of Python objects as columns."""
    version, kind, enterprise, request, site = zip(*rows, strict=True)
    return {
        "version": np.array(version, np.uint8),
        "type": np.array(kind, np.uint8),
        "enterprise_id": np.frombuffer(b"".join(enterprise), "V16"),
        "request_id": np.frombuffer(b"".join(request), "V16"),
        "site_id": np.frombuffer(b"".join(site), "V16"),
    }


def reply_columns(rows: Iterable[ReplyRow]) -> Columns:
    """Rows of Python objects as columns."""
    version, kind, correlation, mask, networks, site, servers = zip(*rows, strict=True)
    flat = [server for entries in servers for server in entries]
    names = [name for name, _, _ in flat]
    return {
        "version": np.array(version, np.uint8),
        "type": np.array(kind, np.uint8),
        "correlation_id": np.frombuffer(b"".join(correlation), "V16"),
        "connected_network_mask": np.array(mask, np.uint32),
        "network_ends": ends_of(np.array([len(entries) for entries in networks])),
        "connected_networks": np.frombuffer(b"".join(b"".join(entries) for entries in networks), "V16"),
        "responding_site_id": np.frombuffer(b"".join(site), "V16"),
        "server_ends": ends_of(np.array([len(entries) for entries in servers])),
        "server_ip": np.array([ip for _, ip, _ in flat]),
        "server_ipx": np.array([ipx for _, _, ipx in flat]),
        "unit_ends": ends_of(np.array([len(name) for name in names])),
        "name_units": np.frombuffer("".join(names).encode("utf-16-le"), "<u2"),
    }


def split_servers(text: str) -> list[Server]:
    """The entries of a DirectoryServiceServerArray; str.split is far ahead of a loop over code units."""
    return [(entry[2:], entry[0] == "1", entry[1] == "1") for entry in text[:-1].split(",")]


# struct


def struct_requests(work: Workload) -> Decoder:
    """A loop over the payloads, as one writes it first."""
    data, unpack = work.data, REQUEST.unpack_from
    ends = work.offsets.tolist()

    def run(see: See | None = None) -> None:
        rows: list[RequestRow] = []
        for start, end in pairwise(ends):
            if end - start < 52:
                raise ValueError("truncated")
            version, kind, _, enterprise, request, site = unpack(data, start)
            if kind != 1:
                raise ValueError("not a request")
            rows.append((version, kind, enterprise, request, site))
        if see:
            see(request_columns(rows))

    return run


def struct_replies(work: Workload) -> Decoder:
    """A loop over the payloads."""
    data, unpack = work.data, REPLY.unpack_from
    ends = work.offsets.tolist()

    def run(see: See | None = None) -> None:
        rows: list[ReplyRow] = []
        for start, end in pairwise(ends):
            version, kind, _, correlation, count, mask, size = unpack(data, start)
            at = start + 32 + 16 * count
            if kind != 2 or not 1 <= count <= 32 or size % 2 or at + 16 + size > end:
                raise ValueError("not a reply to another site")
            networks = [data[p : p + 16] for p in range(start + 32, at, 16)]
            text = data[at + 16 : at + 16 + size].decode("utf-16-le", "surrogatepass")
            rows.append((version, kind, correlation, mask, networks, data[at : at + 16], split_servers(text)))
        if see:
            see(reply_columns(rows))

    return run


def iter_unpack_requests(work: Workload) -> Decoder:
    """All payloads taken for one array of equal records, nothing checked."""

    def run(see: See | None = None) -> None:
        rows = list(REQUEST.iter_unpack(work.data))
        if see:
            see(request_columns((row[0], row[1], row[3], row[4], row[5]) for row in rows))

    return run


def request_fields(work: Workload) -> list[RequestRow]:
    """What an encoder of requests starts from."""
    return [(row[0], row[1], row[3], row[4], row[5]) for row in REQUEST.iter_unpack(work.data)]


def reply_fields(work: Workload) -> list[ReplyRow]:
    """What an encoder of replies starts from."""
    truth = work.truth
    units = truth["name_units"].astype("<u2").tobytes().decode("utf-16-le")
    unit_ends = truth["unit_ends"].tolist()
    names = [units[a:b] for a, b in pairwise(unit_ends)]
    servers = list(zip(names, truth["server_ip"].tolist(), truth["server_ipx"].tolist(), strict=True))
    networks = truth["connected_networks"].tolist()
    network_ends, server_ends = truth["network_ends"].tolist(), truth["server_ends"].tolist()
    plain = ("version", "type", "correlation_id", "connected_network_mask", "responding_site_id")
    return [
        (version, kind, correlation, mask, networks[a:b], site, servers[c:d])
        for version, kind, correlation, mask, site, a, b, c, d in zip(
            *(truth[name].tolist() for name in plain),
            network_ends[:-1],
            network_ends[1:],
            server_ends[:-1],
            server_ends[1:],
            strict=True,
        )
    ]


def server_text(servers: Sequence[Server]) -> bytes:
    """A DirectoryServiceServerArray on the wire."""
    return (",".join([f"{ip:d}{ipx:d}{name}" for name, ip, ipx in servers]) + "\0").encode("utf-16-le")


def struct_encode_requests(work: Workload) -> Encoder:
    """pack_into one buffer, reused."""
    rows, pack_into = request_fields(work), REQUEST.pack_into
    out = bytearray(len(work.data))

    def run(see: Callable[[Any], None] | None = None) -> None:
        at = 0
        for version, kind, enterprise, request, site in rows:
            pack_into(out, at, version, kind, 0, enterprise, request, site)
            at += 52
        if see:
            see(out)

    return run


def struct_encode_replies(work: Workload) -> Encoder:
    """Pieces joined at the end."""
    rows, pack = reply_fields(work), REPLY.pack

    def run(see: Callable[[Any], None] | None = None) -> None:
        pieces: list[bytes] = []
        for version, kind, correlation, mask, networks, site, servers in rows:
            array = server_text(servers)
            header = pack(version, kind, 0, correlation, len(networks), mask, len(array))
            pieces += (header, *networks, site, array)
        out = b"".join(pieces)
        if see:
            see(out)

    return run


# construct


def construct_formats() -> tuple[Any, Any]:
    """A request and a reply, declared."""
    from construct import Bytes, Int8ul, Int16ul, Int32ul, Struct, this

    request = Struct(
        "version" / Int8ul,
        "type" / Int8ul,
        "reserved" / Int16ul,
        "enterprise_id" / Bytes(16),
        "request_id" / Bytes(16),
        "site_id" / Bytes(16),
    )
    reply = Struct(
        "version" / Int8ul,
        "type" / Int8ul,
        "reserved" / Int16ul,
        "correlation_id" / Bytes(16),
        "count" / Int32ul,
        "mask" / Int32ul,
        "size" / Int32ul,
        "networks" / Bytes(16)[this.count],
        "site_id" / Bytes(16),
        "servers" / Bytes(this.size),
    )
    return request, reply


def construct_requests(work: Workload, *, compiled: bool = False) -> Decoder:
    """Struct.parse of each payload."""
    parser = construct_formats()[0]
    parse = (parser.compile() if compiled else parser).parse
    payloads = work.split()

    def run(see: See | None = None) -> None:
        rows = []
        for payload in payloads:
            p = parse(payload)
            rows.append((p.version, p.type, p.enterprise_id, p.request_id, p.site_id))
        if see:
            see(request_columns(rows))

    return run


def construct_replies(work: Workload) -> Decoder:
    """Struct.parse of each payload; the server list is split as in the struct loop."""
    parse = construct_formats()[1].parse
    payloads = work.split()

    def run(see: See | None = None) -> None:
        rows = []
        for payload in payloads:
            p = parse(payload)
            servers = split_servers(p.servers.decode("utf-16-le", "surrogatepass"))
            rows.append((p.version, p.type, p.correlation_id, p.mask, p.networks, p.site_id, servers))
        if see:
            see(reply_columns(rows))

    return run


def construct_encode_requests(work: Workload) -> Encoder:
    """Struct.build of each packet."""
    build = construct_formats()[0].build
    names = ("version", "type", "enterprise_id", "request_id", "site_id")
    rows = [{"reserved": 0, **dict(zip(names, row, strict=True))} for row in request_fields(work)]

    def run(see: Callable[[Any], None] | None = None) -> None:
        out = b"".join([build(row) for row in rows])
        if see:
            see(out)

    return run


def construct_encode_replies(work: Workload) -> Encoder:
    """Struct.build of each packet."""
    build = construct_formats()[1].build
    rows = reply_fields(work)

    def run(see: Callable[[Any], None] | None = None) -> None:
        pieces = []
        for version, kind, correlation, mask, networks, site, servers in rows:
            array = server_text(servers)
            pieces.append(
                build(
                    {
                        "version": version,
                        "type": kind,
                        "reserved": 0,
                        "correlation_id": correlation,
                        "count": len(networks),
                        "mask": mask,
                        "size": len(array),
                        "networks": networks,
                        "site_id": site,
                        "servers": array,
                    }
                )
            )
        out = b"".join(pieces)
        if see:
            see(out)

    return run


# Kaitai Struct


def kaitai_requests(work: Workload) -> Decoder:
    """The generated reader on each payload."""
    from benchmarks.kaitai.msmq_topology import MsmqTopology

    parse, payloads = MsmqTopology.from_bytes, work.split()

    def run(see: See | None = None) -> None:
        rows = []
        for payload in payloads:
            p = parse(payload)
            rows.append((p.version, p.type, p.enterprise_id, p.request_id, p.site_id))
        if see:
            see(request_columns(rows))

    return run


def kaitai_replies(work: Workload) -> Decoder:
    """The generated reader on each payload; both lists are split as in the struct loop."""
    from benchmarks.kaitai.msmq_topology import MsmqTopology

    parse, payloads = MsmqTopology.from_bytes, work.split()

    def run(see: See | None = None) -> None:
        rows = []
        for payload in payloads:
            p = parse(payload)
            head = (p.version, p.type, p.correlation_id, p.connected_network_mask)
            array = p.connectednetworkarray
            networks = [array[at : at + 16] for at in range(0, len(array), 16)]
            text = p.directoryserviceserverarray.decode("utf-16-le", "surrogatepass")
            rows.append((*head, networks, p.responding_site_id, split_servers(text)))
        if see:
            see(reply_columns(rows))

    return run


# Scapy


def scapy_formats() -> tuple[Any, Any]:
    """A request and a reply as packets of Scapy."""
    from scapy.fields import (
        ByteField,
        FieldLenField,
        FieldListField,
        LEIntField,
        LEShortField,
        StrFixedLenField,
        StrLenField,
    )
    from scapy.packet import Packet

    def header(kind: int) -> list[Any]:
        return [ByteField("version", 0), ByteField("kind", kind), LEShortField("reserved", 0)]

    class TopologyClientRequest(Packet):
        fields_desc = [  # noqa: RUF012
            *header(1),
            StrFixedLenField("enterprise_id", b"", 16),
            StrFixedLenField("request_id", b"", 16),
            StrFixedLenField("site_id", b"", 16),
        ]

    class TopologyServerReply(Packet):
        fields_desc = [  # noqa: RUF012
            *header(2),
            StrFixedLenField("correlation_id", b"", 16),
            FieldLenField("count", None, count_of="networks", fmt="<I"),
            LEIntField("mask", 0),
            FieldLenField("size", None, length_of="servers", fmt="<I"),
            FieldListField("networks", [], StrFixedLenField("", b"", 16), count_from=lambda p: p.count),
            StrFixedLenField("site_id", b"", 16),
            StrLenField("servers", b"", length_from=lambda p: p.size),
        ]

    return TopologyClientRequest, TopologyServerReply


def scapy_requests(work: Workload) -> Decoder:
    """A Packet of each payload."""
    packet, payloads = scapy_formats()[0], work.split()

    def run(see: See | None = None) -> None:
        rows = []
        for payload in payloads:
            p = packet(payload)
            rows.append((p.version, p.kind, p.enterprise_id, p.request_id, p.site_id))
        if see:
            see(request_columns(rows))

    return run


def scapy_replies(work: Workload) -> Decoder:
    """A Packet of each payload; the server list is split as in the struct loop."""
    packet, payloads = scapy_formats()[1], work.split()

    def run(see: See | None = None) -> None:
        rows = []
        for payload in payloads:
            p = packet(payload)
            servers = split_servers(p.servers.decode("utf-16-le", "surrogatepass"))
            rows.append((p.version, p.kind, p.correlation_id, p.mask, p.networks, p.site_id, servers))
        if see:
            see(reply_columns(rows))

    return run


def scapy_encode_requests(work: Workload) -> Encoder:
    """bytes() of a Packet made from fields."""
    packet = scapy_formats()[0]
    names = ("version", "kind", "enterprise_id", "request_id", "site_id")
    rows = [dict(zip(names, row, strict=True)) for row in request_fields(work)]

    def run(see: Callable[[Any], None] | None = None) -> None:
        out = b"".join([bytes(packet(**row)) for row in rows])
        if see:
            see(out)

    return run


# Captures: from the file to the same columns


def dpkt_capture(path: Path, rows_wanted: int) -> Decoder:
    """dpkt takes the frames apart, struct the payloads."""
    import dpkt

    def run(see: See | None = None) -> None:
        rows: list[RequestRow] = []
        with path.open("rb") as file:
            for _, frame in dpkt.pcap.Reader(file):
                payload = dpkt.ethernet.Ethernet(frame).data.data.data
                version, kind, _, enterprise, request, site = REQUEST.unpack_from(payload)
                rows.append((version, kind, enterprise, request, site))
                if len(rows) == rows_wanted:
                    break
        if see:
            see(request_columns(rows))

    return run


def scapy_capture(path: Path, rows_wanted: int) -> Decoder:
    """Scapy takes everything apart."""
    from scapy.layers import l2  # noqa: F401  binds Ethernet to its link type
    from scapy.layers.inet import UDP
    from scapy.utils import PcapReader

    packet = scapy_formats()[0]

    def run(see: See | None = None) -> None:
        rows: list[RequestRow] = []
        with PcapReader(str(path)) as reader:
            for frame in reader:
                p = packet(bytes(frame[UDP].payload))
                rows.append((p.version, p.kind, p.enterprise_id, p.request_id, p.site_id))
                if len(rows) == rows_wanted:
                    break
        if see:
            see(request_columns(rows))

    return run


def struct_capture(path: Path, rows_wanted: int) -> Decoder:
    """By hand, and only for what is in this file: Ethernet, IPv4, UDP, nothing cut."""
    record, ports = struct.Struct("<IIII"), struct.Struct(">HHHH")

    def run(see: See | None = None) -> None:
        rows: list[RequestRow] = []
        with path.open("rb") as file:
            file.read(24)
            while len(rows) < rows_wanted:
                head = file.read(16)
                if len(head) < 16:
                    break
                frame = file.read(record.unpack(head)[2])
                if frame[12:14] != b"\x08\x00" or frame[23] != 17:
                    continue
                udp = 14 + 4 * (frame[14] & 15)
                _, port, length, _ = ports.unpack_from(frame, udp)
                if port != 1801 or length < 60:
                    continue
                version, kind, _, enterprise, request, site = REQUEST.unpack_from(frame, udp + 8)
                rows.append((version, kind, enterprise, request, site))
        if see:
            see(request_columns(rows))

    return run
