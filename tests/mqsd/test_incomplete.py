"""Discovery packets that were cut: what is whole is there, at every byte where a snapshot length may cut."""

from __future__ import annotations

import pytest

from msmqwire import Payloads, mqsd
from tests.columns.formats import TOPOLOGY
from tests.columns.rows import shown_row
from tests.effort import first_of
from tests.reference import mqsd as reference
from tests.reference.mqsd_cases import cases
from tests.reference.reader import Fault, Reader
from tests.vectors import load

PACKETS = [vector.data for vector in load("mqsd")] + list(cases(150, 3))
#: The fields of the fixed part of each kind, and where they end
ENDS = {
    "request": {"type": 2, "version": 1, "enterprise_id": 20, "request_id": 36, "site_id": 52},
    "reply": {"type": 2, "version": 1, "correlation_id": 20, "connected_network_mask": 28},
}


@pytest.mark.parametrize("transport", first_of(reference.TRANSPORTS))
def test_every_byte_of_packets(transport: reference.Transport) -> None:
    checked = 0
    for packet in PACKETS:
        outcome = reference.read(packet, transport=transport)
        if isinstance(outcome, Fault) or {"trailing_bytes", "ipx_fields_on_ip"} & set(outcome.violations):
            continue
        reader = Reader(packet)
        reference._read(reader, False, transport)
        if reader.left:  # which a request that is not in the IPX form may have
            continue
        sizes = range(1, len(packet))
        payloads = Payloads.of([packet[:size] for size in sizes], lost=[len(packet) - size for size in sizes])
        rows = mqsd.decode_batch(payloads, transport=transport).to_arrow(guid="uuid").to_pylist()
        (oracle_row,) = TOPOLOGY.rows(outcome)
        whole = shown_row(mqsd.TOPOLOGY, oracle_row, guid="uuid")
        for size, row in zip(sizes, rows, strict=True):
            name, offset, _ = next(field for field in reader.taken if field[1] + field[2] > size)
            assert row.pop("fault").items() >= {"code": "incomplete", "field": name, "offset": offset}.items()
            assert row.pop("violations") is None
            expected = {column for column, end in ENDS[outcome.type].items() if end <= size}
            for column, field in (
                ("connected_networks", "ConnectedNetworkArray"), ("responding_site_id", "RespondingSiteID"),
            ):  # fmt: skip
                ends = [start + count for taken, start, count in reader.taken if taken == field]
                expected |= {column} if ends and ends[0] <= size else set()
            assert {column for column, value in row.items() if value is not None} == expected
            assert all(row[column] == whole[column] for column in expected)
            checked += 1
    assert checked > 1000


def test_a_complete_packet_whose_trailing_bytes_are_lost() -> None:
    for packet in PACKETS:
        outcome = reference.read(packet, transport="udp")
        if isinstance(outcome, Fault) or outcome.violations:
            continue
        batch = mqsd.decode_batch(Payloads.of([packet], lost=[20]), transport="udp")
        assert batch.fault(0) is None
