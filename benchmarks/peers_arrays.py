"""numpy and numba beside the package: the peers that handle columns too.

Both ways are measured: whole columns made fresh (what one writes first), and blocks of the package's size
written into the same arrays again and again (what the package does itself).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers import Decoder, Encoder, See
from benchmarks.workloads import REQUEST, Columns, Workload

BLOCK = 16_384
FIELDS = ("version", "type", "enterprise_id", "request_id", "site_id")


def numpy_views(work: Workload) -> Decoder:
    """A structured dtype over the buffer: nothing is read, and nothing is contiguous."""

    def run(see: See | None = None) -> None:
        table = np.frombuffer(work.data, REQUEST)
        columns: Columns = {name: table[name] for name in FIELDS}
        if see:
            see(columns)

    return run


def numpy_copies(work: Workload) -> Decoder:
    """The same views, each copied into a contiguous column."""

    def run(see: See | None = None) -> None:
        table = np.frombuffer(work.data, REQUEST)
        columns: Columns = {name: table[name].copy() for name in FIELDS}
        if see:
            see(columns)

    return run


def numpy_blocks(work: Workload) -> Decoder:
    """The same copies, block by block into columns that stay in the cache."""
    out: Columns = {name: np.zeros(BLOCK, REQUEST[name]) for name in FIELDS}

    def run(see: See | None = None) -> None:
        table = np.frombuffer(work.data, REQUEST)
        for start in range(0, len(table), BLOCK):
            part = table[start : start + BLOCK]
            for name in FIELDS:
                np.copyto(out[name][: len(part)], part[name])
            if see:
                see({name: column[: len(part)] for name, column in out.items()})

    return run


def numpy_encode_requests(work: Workload) -> Encoder:
    """Contiguous columns written into the fields of a structured array, block by block."""
    columns: Columns = {name: np.ascontiguousarray(work.truth[name]) for name in FIELDS}
    out = np.zeros(BLOCK, REQUEST)

    def run(see: Any = None) -> None:
        for start in range(0, len(work), BLOCK):
            part = out[: min(BLOCK, len(work) - start)]
            for name in FIELDS:
                part[name] = columns[name][start : start + BLOCK]
            if see:
                see(part)

    return run


def numba_request_kernel() -> Any:
    """A loop with the checks of a request, bytes copied as one writes it."""
    import numba

    @numba.njit(nogil=True)
    def kernel(data, offsets, start, stop, version, kind, enterprise, request, site):  # type: ignore[no-untyped-def]
        for i in range(start, stop):
            p = offsets[i]
            if offsets[i + 1] - p < 52 or data[p + 1] != 1:
                return i
            row = i - start
            version[row] = data[p]
            kind[row] = data[p + 1]
            for j in range(16):
                enterprise[row, j] = data[p + 4 + j]
            for j in range(16):
                request[row, j] = data[p + 20 + j]
            for j in range(16):
                site[row, j] = data[p + 36 + j]
        return stop

    return kernel


def numba_words_kernel() -> Any:
    """The same for a reader of assembly: unsigned indices, eight bytes that LLVM merges into one load."""
    import numba

    u = np.uint64

    @numba.njit(nogil=True, inline="always")
    def word(data, at):  # type: ignore[no-untyped-def]
        value = u(0)
        for j in range(u(8)):
            value |= u(data[at + j]) << (u(8) * j)
        return value

    @numba.njit(nogil=True)
    def kernel(data, offsets, start, stop, version, kind, enterprise, request, site):  # type: ignore[no-untyped-def]
        for row in range(u(stop - start)):
            p = u(offsets[u(start) + row])
            size = u(offsets[u(start) + row + u(1)]) - p
            if size < u(52) or data[p + u(1)] != 1:
                return start + row
            version[row] = data[p]
            kind[row] = data[p + u(1)]
            enterprise[row, 0] = word(data, p + u(4))
            enterprise[row, 1] = word(data, p + u(12))
            request[row, 0] = word(data, p + u(20))
            request[row, 1] = word(data, p + u(28))
            site[row, 0] = word(data, p + u(36))
            site[row, 1] = word(data, p + u(44))
        return u(stop)

    return kernel


def numba_requests(work: Workload, *, words: bool = False, block: int = BLOCK) -> Decoder:
    """A compiled loop over blocks, into columns that are reused; ``block=0`` makes whole columns fresh."""
    kernel = numba_words_kernel() if words else numba_request_kernel()
    data = np.frombuffer(work.data, np.uint8)
    item: Any = (np.uint64, 2) if words else (np.uint8, 16)

    def columns(rows: int) -> tuple[npt.NDArray[Any], ...]:
        small = [np.empty(rows, np.uint8) for _ in range(2)]
        return (*small, *(np.empty((rows, item[1]), item[0]) for _ in range(3)))

    kept = columns(block) if block else None
    step = block or len(work)

    def run(see: See | None = None) -> None:
        for start in range(0, len(work), step):
            stop = min(start + step, len(work))
            out = kept or columns(step)
            if kernel(data, work.offsets, start, stop, *out) != stop:
                raise ValueError("not a request")
            if see:
                see({name: column[: stop - start] for name, column in zip(FIELDS, out, strict=True)})

    return run


def numba_reply_kernel() -> Any:
    """A loop over replies: columns, two child tables, names as places in the payload."""
    import numba

    @numba.njit(nogil=True)
    def kernel(  # type: ignore[no-untyped-def]
        data, offsets, start, stop, version, kind, correlation, mask, network_ends, networks, site,
        server_ends, ip, ipx, name_at, name_length,
    ):  # fmt: skip
        network = 0
        server = 0
        network_ends[0] = 0
        server_ends[0] = 0
        for i in range(start, stop):
            p = offsets[i]
            length = offsets[i + 1] - p
            row = i - start
            if length < 32 or data[p + 1] != 2:
                return i
            version[row] = data[p]
            kind[row] = data[p + 1]
            for j in range(16):
                correlation[row, j] = data[p + 4 + j]
            count = data[p + 20] | data[p + 21] << 8 | data[p + 22] << 16 | data[p + 23] << 24
            mask[row] = data[p + 24] | data[p + 25] << 8 | data[p + 26] << 16 | data[p + 27] << 24
            size = data[p + 28] | data[p + 29] << 8 | data[p + 30] << 16 | data[p + 31] << 24
            if count < 1 or count > 32 or size < 8 or size % 2 or size > length - 48 - 16 * count:
                return i
            for k in range(count):
                for j in range(16):
                    networks[network, j] = data[p + 32 + 16 * k + j]
                network += 1
            network_ends[row + 1] = network
            at = 32 + 16 * count
            for j in range(16):
                site[row, j] = data[p + at + j]
            at += 16
            end = at + size
            while at < end:
                if end - at < 8 or data[p + at] & 0xFE != 0x30 or data[p + at + 1] != 0:
                    return i
                if data[p + at + 2] & 0xFE != 0x30 or data[p + at + 3] != 0:
                    return i
                ip[server] = data[p + at] == 0x31
                ipx[server] = data[p + at + 2] == 0x31
                at += 4
                name_at[server] = at
                while at < end and (data[p + at + 1] != 0 or (data[p + at] != 0x2C and data[p + at] != 0)):
                    at += 2
                if at == name_at[server] or at == end or (data[p + at] == 0) != (at + 2 == end):
                    return i
                name_length[server] = (at - name_at[server]) // 2
                server += 1
                at += 2
            server_ends[row + 1] = server
        return stop

    return kernel


def name_units(
    work: Workload,
    first_row: int,
    server_ends: npt.NDArray[Any],
    at: npt.NDArray[Any],
    length: npt.NDArray[Any],
) -> Columns:
    """Names given as places in their payload, as their code units; here all stand at even places."""
    ends = np.concatenate(([0], np.cumsum(length, dtype=np.int64)))
    rows = work.offsets[first_row : first_row + len(server_ends) - 1].astype(np.int64)
    begins = (np.repeat(rows, np.diff(server_ends)) + at) // 2 - ends[:-1]
    units = np.frombuffer(work.data, "<u2")[np.repeat(begins, length) + np.arange(ends[-1])]
    return {"unit_ends": ends, "name_units": units}


def numba_replies(work: Workload) -> Decoder:
    """A compiled loop over blocks, into columns that are reused."""
    kernel, data = numba_reply_kernel(), np.frombuffer(work.data, np.uint8)
    ends = work.offsets[np.append(np.arange(0, len(work), BLOCK), len(work))]
    largest = int(np.diff(ends).max())
    version, kind = np.empty(BLOCK, np.uint8), np.empty(BLOCK, np.uint8)
    correlation, site = np.empty((BLOCK, 16), np.uint8), np.empty((BLOCK, 16), np.uint8)
    mask = np.empty(BLOCK, np.uint32)
    network_ends, server_ends = np.empty(BLOCK + 1, np.int32), np.empty(BLOCK + 1, np.int32)
    networks = np.empty((largest // 16, 16), np.uint8)
    ip, ipx = np.empty(largest // 8, np.bool_), np.empty(largest // 8, np.bool_)
    name_at, name_length = np.empty(largest // 8, np.int32), np.empty(largest // 8, np.int32)
    rows_out = (version, kind, correlation, mask, network_ends, networks, site)
    out = (*rows_out, server_ends, ip, ipx, name_at, name_length)

    def run(see: See | None = None) -> None:
        for start in range(0, len(work), BLOCK):
            stop = min(start + BLOCK, len(work))
            done = kernel(data, work.offsets, start, stop, *out)
            if done != stop:
                raise ValueError("not a reply to another site")
            if see:
                rows = stop - start
                servers = int(server_ends[rows])
                see(
                    {
                        "version": version[:rows],
                        "type": kind[:rows],
                        "correlation_id": correlation[:rows],
                        "connected_network_mask": mask[:rows],
                        "network_ends": network_ends[: rows + 1],
                        "connected_networks": networks[: network_ends[rows]],
                        "responding_site_id": site[:rows],
                        "server_ends": server_ends[: rows + 1],
                        "server_ip": ip[:servers],
                        "server_ipx": ipx[:servers],
                        **name_units(work, start, server_ends[: rows + 1], name_at[:servers], name_length[:servers]),
                    }
                )

    return run
