"""The oracle itself, against the golden vectors: an oracle that is wrong would bless a wrong kernel."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.reference import mqsd
from tests.reference.mqsd_cases import cases
from tests.reference.reader import Fault, placeless
from tests.vectors import Vector, load

VECTORS = load("mqsd")
#: The fields that can be truncated: a request that is too short for an IPXNetworkCount has no IPX fields.
FIELDS = (
    "Version", "Type", "Reserved", "EnterpriseID", "RequestID", "SiteID", "IPXNetworkNumberArray", "CorrelationID",
    "ConnectedNetworkCount", "ConnectedNetworkMask", "DirectoryServiceServerSize", "ConnectedNetworkArray",
    "RespondingSiteID", "DirectoryServiceServerArray",
)  # fmt: skip


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_reads_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        assert outcome.transport != "tcp"
        got = mqsd.read(vector.data, strict=outcome.strict, transport=outcome.transport)
        (row,) = placeless(tuple(mqsd.rows(got)))
        found = {name: value for name, value in row.items() if value is not None}
        if outcome.fault is not None:
            assert found == {"fault": outcome.fault}
        else:
            assert outcome.packet is not None
            assert not isinstance(got, Fault)
            expected = {"version": 0, "violations": outcome.violations, **outcome.packet}
            assert got.reserved == expected.pop("reserved", 0)
            assert found == expected


def test_vectors_are_named_once() -> None:
    names = [vector.name for vector in VECTORS]
    assert len(names) == len(set(names)) > 40


@pytest.mark.long
def test_the_cases_reach_every_outcome() -> None:
    """A gate proves that it checked something: every fault and violation of MQSD is among the cases."""
    found: Counter[tuple[str, str]] = Counter()
    for transport in ("udp", "ipx"):
        for data in cases(20_000, 1):
            outcome = mqsd.read(data, transport=transport)
            if isinstance(outcome, Fault):
                found[outcome.code, outcome.field.partition("[")[0]] += 1
            else:
                found.update((outcome.type, name) for name in outcome.violations or ("fine",))
    assert set(found) == {
        *(("truncated", field) for field in FIELDS),
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
