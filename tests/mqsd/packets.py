"""Discovery packets of the package beside those of the oracle."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

from msmqwire import mqsd
from tests.reference import mqsd as reference
from tests.reference.propvariant import units_of
from tests.reference.reader import Fault, placeless


def request(data: Any, **options: Any) -> mqsd.TopologyClientRequest:
    """A payload that must be a request."""
    packet = mqsd.decode(data, **options)
    assert isinstance(packet, mqsd.TopologyClientRequest)
    return packet


def reply(data: Any, **options: Any) -> mqsd.TopologyServerReply:
    """A payload that must be a reply."""
    packet = mqsd.decode(data, **options)
    assert isinstance(packet, mqsd.TopologyServerReply)
    return packet


def value_of(packet: Any, column: str) -> Any:
    """A column of a packet as the oracle has it, but for where it stands."""
    value = getattr(packet, column, None)
    if isinstance(value, uuid.UUID):
        return value.bytes_le
    if isinstance(value, memoryview):
        return value.tobytes()
    if isinstance(value, np.ndarray):
        return tuple(map(bytes, value)) if value.ndim == 2 else tuple(value.tolist()) or None
    if isinstance(value, tuple):
        return tuple(reference.Server(units_of(name), ip, ipx) for name, ip, ipx in value) or None  # type: ignore[arg-type]
    return value


def assert_discovery_packet(packet: Any, expected: reference.Packet | Fault) -> None:
    """A packet, or the fault in place of one, is what the oracle says."""
    if isinstance(expected, Fault) or isinstance(packet, Fault):
        assert packet == expected
        return
    (row,) = placeless(tuple(reference.rows(expected)))
    for column in reference.COLUMNS:
        assert value_of(packet, column) == row[column], column
    assert packet.reserved == expected.reserved
    assert packet.violations == expected.violations
