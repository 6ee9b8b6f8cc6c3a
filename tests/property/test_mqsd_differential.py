"""The codec of MQSD and its oracle agree on many payloads: valid, mutated and random."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from msmqwire import errors, mqsd
from tests.mqsd.rows import contents, decode, packet_row, read_all
from tests.reference import mqsd as reference
from tests.reference.mqsd import TRANSPORTS, Transport
from tests.reference.mqsd_cases import cases

#: Transport, strictly or not, seed and number of cases.
WAYS = [
    pytest.param(transport, strict, seed, count, marks=marks)
    for count, marks in ((500, ()), (4_000, pytest.mark.long))
    for seed, (transport, strict) in enumerate(product(TRANSPORTS, (False, True)), 101)
]


@pytest.mark.parametrize(("transport", "strict", "seed", "count"), WAYS)
def test_packets_and_the_oracle_agree(transport: Transport, strict: bool, seed: int, count: int) -> None:
    for data in cases(count, seed):
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


@pytest.mark.parametrize(("strict", "seed"), [(False, 201), (True, 202)])
def test_encoded_batches_and_the_oracle_agree(strict: bool, seed: int) -> None:
    good = []
    written = []
    for data in cases(2_000, seed):
        packet = reference.read(data, strict=strict)
        if not isinstance(packet, reference.Fault) and not packet.violations:
            good.append(data)
            written.append(reference.write(packet))
    assert len(good) > 500
    batch = mqsd.decode_batch(good, strict=strict)
    assert contents(mqsd.encode_batch(batch)) == written
    packets = [mqsd.decode(data, strict=strict) for data in good]
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
