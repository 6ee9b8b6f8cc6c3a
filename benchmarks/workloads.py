"""Seeded packets, made column by column with numpy so that a million of them takes a second or two.

Every workload carries the truth it was made from; the benchmarks compare what they decode with it before
they time anything. The layouts written here ([MS-MQSD] 2.2) share no code with the package.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[np.generic]]

SEED = 20071116
CHUNK = 65_536

REQUEST = np.dtype(
    [
        ("version", "u1"),
        ("type", "u1"),
        ("reserved", "<u2"),
        ("enterprise_id", "V16"),
        ("request_id", "V16"),
        ("site_id", "V16"),
    ]
)

REPLY_HEADER = np.dtype(
    [
        ("version", "u1"),
        ("type", "u1"),
        ("reserved", "<u2"),
        ("correlation_id", "V16"),
        ("count", "<u4"),
        ("mask", "<u4"),
        ("size", "<u4"),
    ]
)

# A classic pcap record of one UDP datagram with a request in it; the frame itself is in network order.
FRAME = np.dtype(
    [
        ("ts_sec", "<u4"),
        ("ts_usec", "<u4"),
        ("incl_len", "<u4"),
        ("orig_len", "<u4"),
        ("eth_dst", "u1", 6),
        ("eth_src", "u1", 6),
        ("ethertype", ">u2"),
        ("version_ihl", "u1"),
        ("tos", "u1"),
        ("total_length", ">u2"),
        ("identification", ">u2"),
        ("fragment", ">u2"),
        ("ttl", "u1"),
        ("protocol", "u1"),
        ("ip_checksum", ">u2"),
        ("src", ">u4"),
        ("dst", ">u4"),
        ("src_port", ">u2"),
        ("dst_port", ">u2"),
        ("udp_length", ">u2"),
        ("udp_checksum", ">u2"),
        ("payload", "V52"),
    ]
)
PCAP_HEADER = np.array(
    [(0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1)],
    dtype="<u4,<u2,<u2,<i4,<u4,<u4,<u4",
).tobytes()

CITIES = [
    "AMS",
    "BER",
    "CHI",
    "DUB",
    "HEL",
    "LON",
    "MAD",
    "NYC",
    "OSL",
    "PAR",
    "ROM",
    "SEA",
    "SIN",
    "TOKYO",
    "WIEN",
]
ROLES = ["DC", "GC", "MQ", "MSMQ", "NT4PEC", "PDC", "BDC", "QM", "ROUTER"]
STYLES = ("{role}{n:02d}", "{city}{role}{n:02d}", "{city}-{role}-{n:02d}", "{city}-{role}{n:02d}-OLD")


@dataclass(frozen=True)
class Workload:
    """Many payloads in one ``bytes`` (never copied by a reader), where each starts, and what they say."""

    data: bytes
    offsets: I32
    truth: Columns = field(repr=False)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def head(self, rows: int) -> Workload:
        """The first rows, for the peers that would need minutes for all of them."""
        if rows >= len(self):
            return self
        offsets = self.offsets[: rows + 1]
        return Workload(self.data[: int(offsets[-1])], offsets, self.expected(0, rows))

    def repeated(self, times: int) -> Workload:
        """The same packets several times over; only the packets, without their truth."""
        size = len(self.data)
        starts = self.offsets[:-1] + size * np.arange(times, dtype=np.int64)[:, None]
        offsets = np.append(starts.reshape(-1), times * size)
        if offsets[-1] > np.iinfo(np.int32).max:
            raise ValueError("the offsets of this workload would not fit into int32")
        return Workload(self.data * times, offsets.astype(np.int32), {})

    def split(self) -> list[bytes]:
        """Each payload as its own object, which some libraries insist on."""
        ends = self.offsets.tolist()
        return [self.data[a:b] for a, b in pairwise(ends)]

    def expected(self, start: int, stop: int) -> Columns:
        """The truth of some rows: columns with one item per row, per network, per server, per code unit and so on."""
        bounds = {"row": (start, stop)}
        for level, parent in LEVELS:
            ends = self.truth.get(f"{level}_ends")
            if ends is not None:
                first, last = bounds[parent]
                bounds[level] = (int(ends[first]), int(ends[last]))
        columns: Columns = {}
        for name, column in self.truth.items():
            first, last = bounds[LEVEL.get(name, "row")]
            if name.endswith("_ends"):
                part = column[first : last + 1]
                columns[name] = part - part[0]
            else:
                columns[name] = column[first:last]
        return columns


# What belongs to what, each level behind the one it belongs to: one whose ends are `<level>_ends`.
LEVELS = (
    ("network", "row"),
    ("server", "row"),
    ("unit", "server"),
    ("update", "row"),
    ("path", "update"),
    ("property", "update"),
    ("content", "property"),
    ("queue", "row"),
    ("sender", "row"),
    ("label", "row"),
    ("body", "row"),
)
# Columns of the truth that do not have one item per row.
LEVEL = {
    "connected_networks": "network",
    "server_ip": "server",
    "server_ipx": "server",
    "unit_ends": "server",
    "name_units": "unit",
    "command": "update",
    "object_guid": "update",
    "master_guid": "update",
    "path_ends": "update",
    "path": "path",
    "property_ends": "update",
    "property_id": "property",
    "number": "property",
    "content_ends": "property",
    "content": "content",
    "queue": "queue",
    "sender": "sender",
    "label": "label",
    "body": "body",
}


class Check:
    """Compares decoded columns with the truth as they come, block by block, and counts what it saw."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.rows = 0

    def __call__(self, columns: Columns) -> None:
        """The next rows; every column of the truth must be there and equal."""
        rows = next(len(column) for name, column in columns.items() if name not in LEVEL and not name.endswith("_ends"))
        for name, want in self.work.expected(self.rows, self.rows + rows).items():
            got = np.ascontiguousarray(columns[name])
            if got.dtype.kind == "V" or want.dtype.kind == "V":
                got, want = as_bytes(got), as_bytes(want)
            if not np.array_equal(got, want):
                raise AssertionError(f"column {name} of rows {self.rows}..{self.rows + rows} is wrong")
        self.rows += rows

    def finish(self) -> None:
        """Fails unless every row was compared."""
        if self.rows != len(self.work):
            raise AssertionError(f"{self.rows} of {len(self.work)} rows were decoded")


def as_bytes(column: npt.NDArray[np.generic]) -> U8:
    """Items of any kind as rows of bytes."""
    flat = np.ascontiguousarray(column)
    return flat.view(np.uint8).reshape(len(flat), -1)


def guids(rng: np.random.Generator, count: int) -> npt.NDArray[np.void]:
    """Random identifiers of 16 bytes."""
    return np.frombuffer(rng.bytes(16 * count), "V16")


def requests(rows: int, seed: int = SEED) -> Workload:
    """TopologyClientRequests in the IP form: 4 enterprises, 64 sites, every RequestID its own."""
    rng = np.random.default_rng(seed)
    enterprises, sites = guids(rng, 4), guids(rng, 64)
    table = np.zeros(rows, REQUEST)
    table["type"] = 1
    for start in range(0, rows, CHUNK):
        part = table[start : start + CHUNK]
        part["enterprise_id"] = enterprises[rng.integers(0, len(enterprises), len(part))]
        part["request_id"] = guids(rng, len(part))
        part["site_id"] = sites[rng.integers(0, len(sites), len(part))]
    data = table.tobytes()
    view = np.frombuffer(data, REQUEST)
    offsets = np.arange(0, 52 * rows + 1, 52, dtype=np.int32)
    return Workload(data, offsets, {name: view[name] for name in REQUEST.names or () if name != "reserved"})


def server_names(rng: np.random.Generator, count: int) -> tuple[U16, I64]:
    """Computer names of 4 to 15 characters: code units padded to 15, and lengths."""
    units = np.zeros((count, 15), np.uint16)
    lengths = np.zeros(count, np.int64)
    for i in range(count):
        style, city, role = (options[rng.integers(len(options))] for options in (STYLES, CITIES, ROLES))
        name = style.format(city=city, role=role, n=int(rng.integers(1, 100)))[:15]
        units[i, : len(name)] = np.frombuffer(name.encode("utf-16-le"), "<u2")
        lengths[i] = len(name)
    return units, lengths


def replies(rows: int, seed: int = SEED) -> Workload:
    """TopologyServerReplies to another site on IP: 1-4 networks, 1-8 servers.

    Every reply is a run of pieces (header, networks, site, server entries with their separator) of at most
    18 code units. The pieces stand in a padded matrix, and a mask takes the padding out, in order.
    """
    rng = np.random.default_rng(seed)
    pool, pool_lengths = server_names(rng, 4096)
    network_pool, site_pool = guids(rng, 256), guids(rng, 64)
    parts = [
        reply_chunk(rng, min(CHUNK, rows - start), pool, pool_lengths, network_pool, site_pool)
        for start in range(0, rows, CHUNK)
    ]
    truth: Columns = {}
    for name in parts[0][2]:
        columns = [part[2][name] for part in parts]
        if name.endswith("_ends"):
            truth[name] = ends_of(np.concatenate([np.diff(column) for column in columns]))
        else:
            truth[name] = np.concatenate(columns)
    sizes = np.concatenate([part[1] for part in parts])
    return Workload(b"".join(part[0] for part in parts), ends_of(sizes).astype(np.int32), truth)


def ends_of(counts: npt.NDArray[np.integer]) -> I64:
    """Counts to boundaries, starting at 0."""
    return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))


def within(counts: I64) -> I64:
    """0, 1, ... for each of the counts, one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def reply_chunk(
    rng: np.random.Generator,
    rows: int,
    pool: U16,
    pool_lengths: I64,
    network_pool: npt.NDArray[np.void],
    site_pool: npt.NDArray[np.void],
) -> tuple[bytes, I64, Columns]:
    """Some replies: their bytes, their sizes, their truth."""
    network_counts = rng.integers(1, 5, rows)
    server_counts = rng.integers(1, 9, rows)
    correlation = guids(rng, rows)
    networks = network_pool[rng.integers(0, len(network_pool), network_counts.sum())]
    site = site_pool[rng.integers(0, len(site_pool), rows)]
    named = rng.integers(0, len(pool), server_counts.sum())
    name_lengths = pool_lengths[named]
    ip = rng.random(len(named)) < 0.95
    ipx = rng.random(len(named)) < 0.10

    first = ends_of(2 + network_counts + server_counts)  # the header pieces, and the end
    network_at = np.repeat(first[:-1] + 1, network_counts) + within(network_counts)
    site_at = first[:-1] + 1 + network_counts
    server_at = np.repeat(site_at + 1, server_counts) + within(server_counts)

    matrix = np.zeros((first[-1], 18), np.uint16)
    lengths = np.zeros(first[-1], np.int64)
    server_units = np.add.reduceat(3 + name_lengths, ends_of(server_counts)[:-1])
    header = np.zeros(rows, REPLY_HEADER)
    header["type"] = 2
    header["correlation_id"], header["count"], header["size"] = correlation, network_counts, 2 * server_units
    for at, piece in ((first[:-1], header), (network_at, networks), (site_at, site)):
        units = piece.view("<u2").reshape(len(at), -1)
        matrix[at, : units.shape[1]] = units
        lengths[at] = units.shape[1]
    entries = np.zeros((len(named), 18), np.uint16)
    entries[:, 0], entries[:, 1] = 0x30 + ip, 0x30 + ipx
    entries[:, 2:17] = pool[named]
    separator = np.full(len(named), 0x2C, np.uint16)
    separator[ends_of(server_counts)[1:] - 1] = 0
    entries[np.arange(len(named)), 2 + name_lengths] = separator
    matrix[server_at] = entries
    lengths[server_at] = 3 + name_lengths

    truth: Columns = {
        "version": np.zeros(rows, np.uint8),
        "type": np.full(rows, 2, np.uint8),
        "correlation_id": correlation,
        "connected_network_mask": np.zeros(rows, np.uint32),
        "network_ends": ends_of(network_counts),
        "connected_networks": networks,
        "responding_site_id": site,
        "server_ends": ends_of(server_counts),
        "server_ip": ip,
        "server_ipx": ipx,
        "unit_ends": ends_of(name_lengths),
        "name_units": pool[named][np.arange(15) < name_lengths[:, None]],
    }
    sizes = 2 * np.add.reduceat(lengths, first[:-1])
    return matrix[np.arange(18) < lengths[:, None]].astype("<u2").tobytes(), sizes, truth


def write_capture(path: Path, work: Workload) -> None:
    """A classic pcap file of requests broadcast over UDP, one per frame, with true checksums."""
    rng = np.random.default_rng(SEED + 1)
    with path.open("wb") as file:
        file.write(PCAP_HEADER)
        for frames in capture_frames(rng, work):
            file.write(frames.tobytes())


def capture_frames(rng: np.random.Generator, work: Workload) -> Iterator[npt.NDArray[np.void]]:
    """The records of the file, a chunk at a time."""
    payloads = np.frombuffer(work.data, "V52")
    for start in range(0, len(payloads), CHUNK):
        part = payloads[start : start + CHUNK]
        frames = np.zeros(len(part), FRAME)
        fill_headers(rng, frames, start, 52)
        frames["payload"] = part
        pseudo_header = 17 + 8 + 52
        frames["udp_checksum"] = checksum(as_bytes(frames)[:, 42:110], pseudo_header)
        yield frames


def fill_headers(
    rng: np.random.Generator, frames: npt.NDArray[np.void], start: int, sizes: int | npt.NDArray[np.integer]
) -> None:
    """Write records from the number ``start`` on, but for payloads, which have these sizes, and the UDP checksum."""
    micros = (start + np.arange(len(frames), dtype=np.uint64)) * np.uint64(731)
    frames["ts_sec"] = 1_195_200_000 + micros // np.uint64(1_000_000)
    frames["ts_usec"] = micros % np.uint64(1_000_000)
    frames["incl_len"] = frames["orig_len"] = 14 + 20 + 8 + sizes
    host = rng.integers(1, 250 * 256, len(frames))
    frames["eth_dst"] = 0xFF
    frames["eth_src"][:, :4] = (0x00, 0x03, 0xFF, 0x4E)
    frames["eth_src"][:, 4], frames["eth_src"][:, 5] = host >> 8, host & 0xFF
    frames["ethertype"] = 0x0800
    frames["version_ihl"], frames["ttl"], frames["protocol"] = 0x45, 128, 17
    frames["total_length"] = 20 + 8 + sizes
    frames["identification"] = np.arange(len(frames))
    frames["src"] = 0x0A010000 + host
    frames["dst"] = 0x0A01FFFF
    frames["src_port"] = rng.integers(1024, 5000, len(frames))
    frames["dst_port"] = 1801
    frames["udp_length"] = 8 + sizes
    frames["ip_checksum"] = checksum(as_bytes(frames)[:, 30:50])


def checksum(rows: U8, extra: int = 0) -> U16:
    """The Internet checksum ([RFC 1071]) of each row, whose own checksum field is still zero."""
    words = np.ascontiguousarray(rows).view(">u2")
    total = words.sum(axis=1, dtype=np.uint32) + np.uint32(extra)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    result: U16 = (~total & 0xFFFF).astype(np.uint16)
    return result
