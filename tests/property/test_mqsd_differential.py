"""The kernel of MQSD and its oracle say the same of 100,000 payloads, valid, mutated and random."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from msmqwire import errors, mqsd
from tests.mqsd.rows import assert_arrow, assert_columns, contents, decode, packet_row, read_all
from tests.reference import mqsd as reference
from tests.reference.mqsd import Transport
from tests.reference.mqsd_cases import cases

#: Way of decoding, seed and number of cases: 100,000 in all.
WAYS = [
    ("unknown", False, 1, 40_000),
    ("unknown", True, 2, 12_000),
    ("udp", False, 3, 12_000),
    ("udp", True, 4, 12_000),
    ("ipx", False, 5, 12_000),
    ("ipx", True, 6, 12_000),
]


def test_there_are_a_hundred_thousand_cases() -> None:
    assert sum(count for *_, count in WAYS) >= 100_000


@pytest.mark.parametrize(("transport", "strict", "seed", "count"), WAYS)
def test_batches_and_the_oracle_agree(transport: Transport, strict: bool, seed: int, count: int) -> None:
    payloads = list(cases(count, seed))
    outcomes = read_all(payloads, strict=strict, transport=transport)
    assert len(payloads) == count
    joined, offsets = b"".join(payloads), np.cumsum([0, *map(len, payloads)])
    batch = mqsd.decode_batch(joined, offsets=offsets, strict=strict, transport=transport)
    assert_columns(batch, outcomes)
    assert_arrow(batch, outcomes)
    names = batch["servers"].values["name"]
    servers = [server for outcome in outcomes for server in getattr(outcome, "servers", None) or ()]
    for i in range(0, len(servers), 17):
        assert names.text(i) == servers[i].name
    assert_columns(mqsd.decode_batch(payloads, strict=strict, transport=transport, threads=2, out=batch), outcomes)


@pytest.mark.parametrize(("transport", "strict", "seed", "count"), WAYS)
def test_packets_and_the_oracle_agree(transport: Transport, strict: bool, seed: int, count: int) -> None:
    for data in cases(count // 10, seed + 100):
        expected = reference.read(data, strict=strict, transport=transport)
        packet = decode(data, strict=strict, transport=transport)
        if isinstance(expected, reference.Fault) or isinstance(packet, reference.Fault):
            assert packet == expected, data.hex()
            continue
        assert packet_row(packet) == reference.row(expected), data.hex()
        assert packet.reserved == expected.reserved
        if expected.violations:
            with pytest.raises(errors.EncodeError):
                mqsd.encode(packet)
        else:
            assert mqsd.encode(packet) == reference.write(expected), data.hex()


@pytest.mark.parametrize(("transport", "strict", "seed", "count"), WAYS[:2])
def test_encoded_batches_and_the_oracle_agree(transport: Transport, strict: bool, seed: int, count: int) -> None:
    good = []
    written = []
    for data in cases(count // 4, seed + 200):
        packet = reference.read(data, strict=strict, transport=transport)
        if not isinstance(packet, reference.Fault) and not packet.violations:
            good.append(data)
            written.append(reference.write(packet))
    assert len(good) > count // 10
    batch = mqsd.decode_batch(good, strict=strict, transport=transport)
    assert contents(mqsd.encode_batch(batch)) == written
    packets = [mqsd.decode(data, strict=strict, transport=transport) for data in good]
    assert contents(mqsd.encode_batch(packets)) == written


def test_the_cases_reach_every_outcome() -> None:
    """A gate proves that it checked something: every fault and violation of MQSD is among the cases."""
    found: Counter[tuple[str, str]] = Counter()
    for transport in ("udp", "ipx"):
        for outcome in read_all(list(cases(20_000, 1)), transport=transport):
            if isinstance(outcome, reference.Fault):
                found[outcome.code, outcome.field.partition("[")[0]] += 1
            elif outcome is not None:
                found.update((outcome.type, name) for name in outcome.violations or ("fine",))
    assert set(found) == {
        *(("truncated", field) for field in mqsd.TOPOLOGY.fields if field not in ("IPXNetworkCount",)),
        ("bad_type", "Type"),
        ("bad_count", "IPXNetworkCount"),
        ("bad_count", "ConnectedNetworkCount"),
        ("bad_size", "DirectoryServiceServerSize"),
        *((code, "DirectoryServiceServerArray") for code in ("bad_flag", "bad_name", "bad_terminator")),
        *((kind, "fine") for kind in ("request", "reply")),
        *((kind, name) for kind in ("request", "reply") for name in ("version_nonzero", "reserved_nonzero")),
        ("request", "ipx_fields_on_ip"),
        *(("reply", name) for name in ("mask_nonzero_on_ip", "mask_count_mismatch", "trailing_bytes")),
    }
    assert min(found.values()) >= 20, found
