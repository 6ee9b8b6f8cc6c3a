"""The package, driven as its manual says for speed: blocks of rows, output reused through ``out=``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import msmqwire
from benchmarks.peers import Decoder, Encoder, See
from benchmarks.peers_arrays import name_units
from benchmarks.workloads import Columns, Workload
from msmqwire import capture, mqsd

BLOCK = 16_384

#: The columns of a batch that are compared with those of a workload from this row on.
Checkable = Callable[[msmqwire.Batch, Workload, int], Columns]


def wire_type(batch: msmqwire.Batch) -> npt.NDArray[np.uint8]:
    """Type as the packet has it; the column counts the names of the enumeration from 0."""
    return batch["type"]


def request_columns(batch: msmqwire.Batch, *_: object) -> Columns:
    """The columns the peers make as well."""
    names = ("version", "enterprise_id", "request_id", "site_id")
    return {"type": wire_type(batch), **{name: batch[name] for name in names}}


def reply_columns(batch: msmqwire.Batch, work: Workload, first_row: int) -> Columns:
    """The columns the peers make as well; names are gathered from the payloads."""
    networks, servers = batch["connected_networks"], batch["servers"]
    names = servers.values["name"]
    plain = ("version", "correlation_id", "connected_network_mask", "responding_site_id")
    return {
        "type": wire_type(batch),
        **{name: batch[name] for name in plain},
        "network_ends": networks.offsets,
        "connected_networks": networks.values,
        "server_ends": servers.offsets,
        "server_ip": servers.values["ip"],
        "server_ipx": servers.values["ipx"],
        **name_units(work, first_row, servers.offsets, names.offset, names.length // 2),
    }


def decoder(work: Workload, columns: tuple[str, ...] | None, checkable: Checkable) -> Decoder:
    """decode_batch over all payloads; ``columns=None`` makes the whole table."""
    payloads = msmqwire.Payloads(work.data, work.offsets)

    def run(see: See | None = None) -> None:
        batch = None
        for start in range(0, len(payloads), BLOCK):
            batch = mqsd.decode_batch(payloads[start : start + BLOCK], columns=columns, out=batch)
            if see:
                assert not len(batch.faults)
                see(checkable(batch, work, start))

    return run


def encoder(work: Workload, columns: tuple[str, ...]) -> Encoder:
    """encode_batch of all packets, decoded beforehand into as many batches as there are blocks."""
    payloads = msmqwire.Payloads(work.data, work.offsets)
    starts = range(0, len(payloads), BLOCK)
    batches = [mqsd.decode_batch(payloads[start : start + BLOCK], columns=columns) for start in starts]

    def run(see: Callable[[Any], None] | None = None) -> None:
        encoded = None
        for batch in batches:
            encoded = mqsd.encode_batch(batch, out=encoded)
            if see:
                for payload in encoded:
                    see(payload)

    return run


def capture_decoder(path: Path) -> Decoder:
    """From the file to request columns; no capture columns, since the peers make none."""

    def run(see: See | None = None) -> None:
        batch = None
        with capture.open(path, columns=()) as blocks:
            for block in blocks:
                batch = mqsd.decode_batch(block.payloads, columns=mqsd.REQUEST_COLUMNS, out=batch)
                if see:
                    see(request_columns(batch))

    return run
