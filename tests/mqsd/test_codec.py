"""One packet at a time: ``decode``, ``encode`` and the packets between them."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msmqwire import errors, mqsd
from tests.contract.checklist import row
from tests.mqsd.rows import build, packet_row, reply, request
from tests.reference import mqsd as reference
from tests.reference.mqsd import TRANSPORTS, Transport
from tests.vectors import Vector, get, load

ROOT = Path(__file__).parent.parent.parent
VECTORS = load("mqsd")
EXAMPLES = [vector for vector in VECTORS if vector.section == "[MS-MQSD] 4"]
V1, V2, V3 = (vector.data for vector in EXAMPLES)
BOTH = (False, True)


def assert_decodes_like_the_oracle(data: bytes, strict: bool, transport: Transport) -> None:
    expected = reference.read(data, strict=strict, transport=transport)
    if isinstance(expected, reference.Fault):
        with pytest.raises(errors.DecodeError) as caught:
            mqsd.decode(data, strict=strict, transport=transport)
        assert (caught.value.code, caught.value.field, caught.value.offset) == expected
    else:
        packet = mqsd.decode(data, strict=strict, transport=transport)
        assert packet_row(packet) == reference.row(expected)
        assert packet.reserved == expected.reserved


@row("SDW-12", "SDW-13", "SDW-14")
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_decodes_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        if outcome.fault is not None:
            with pytest.raises(errors.DecodeError) as caught:
                mqsd.decode(vector.data, strict=outcome.strict, transport=outcome.transport)
            assert (caught.value.code, caught.value.field, caught.value.offset) == outcome.fault
            continue
        packet = mqsd.decode(vector.data, strict=outcome.strict, transport=outcome.transport)
        assert outcome.packet is not None
        expected = {"version": 0, **outcome.packet}
        assert packet.reserved == expected.pop("reserved", 0)
        assert packet.violations == outcome.violations
        row = packet_row(packet)
        del row["violations"]
        assert {name: value for name, value in row.items() if value is not None} == expected


@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_encodes_vector(vector: Vector) -> None:
    for outcome in vector.outcomes:
        if outcome.fault is not None:
            continue
        packet = mqsd.decode(vector.data, strict=outcome.strict, transport=outcome.transport)
        if packet.violations:
            with pytest.raises(errors.EncodeError):
                mqsd.encode(packet)
            continue
        written = mqsd.encode(packet)
        assert type(written) is bytes
        assert (written == vector.data) is vector.exact
        model = reference.read(vector.data, transport=outcome.transport)
        assert not isinstance(model, reference.Fault)
        assert mqsd.encode(build(model)) == written


@row("SDW-10", "SDW-11")
@pytest.mark.parametrize("strict", BOTH)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("vector", VECTORS, ids=str)
def test_every_truncation(vector: Vector, transport: Transport, strict: bool) -> None:
    for size in range(len(vector.data) + 1):
        assert_decodes_like_the_oracle(vector.data[:size], strict, transport)


@pytest.mark.parametrize("unit", [*range(0x40), 0x100, 0x12C, 0x130, 0x2C00, 0x3000, 0x3031, 0xD800, 0xDC00, 0xFFFF])
def test_every_place_of_a_server_array(unit: int) -> None:
    """Each unit of a list of two servers replaced: flags, names, the comma and the terminator."""
    units = "10nt,01ps\0".encode("utf-16-le")
    head = V3[:28] + len(units).to_bytes(4, "little") + V3[32:64]
    for at in range(0, len(units), 2):
        data = head + units[:at] + unit.to_bytes(2, "little") + units[at + 2 :]
        assert_decodes_like_the_oracle(data, False, "unknown")


@pytest.mark.parametrize("length", [*range(1, 70), 127, 128, 129, 1000, 32000])
def test_names_of_every_length(length: int) -> None:
    """A scan by blocks of units must not care where the end of a name lies in its block."""
    for name in ("a" * length, "\u0100" * length, "\u012c" * (length - 1) + "\ud800"):
        for data in (
            _reply_with_names(name),
            _reply_with_names(name, "b"),
            _reply_with_names("b", name, "cc"),
        ):
            assert_decodes_like_the_oracle(data, True, "udp")
            assert mqsd.encode(mqsd.decode(data)) == data


def _reply_with_names(*names: str) -> bytes:
    servers = tuple(reference.Server(name) for name in names)
    return reference.write(reference.Reply(bytes(16), (bytes(16),), 0, bytes(16), servers))


def test_refuses_an_unknown_transport() -> None:
    with pytest.raises(ValueError, match="tcp"):
        mqsd.decode(V1, transport="tcp")  # type: ignore[arg-type]


# --- packets are values ---


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector.canonical], ids=str)
def test_packets_are_values(vector: Vector) -> None:
    strict = (outcome for outcome in vector.outcomes if outcome.strict and outcome.fault is None)
    transport = next(outcome.transport for outcome in strict if not outcome.violations)
    packet = mqsd.decode(vector.data, transport=transport)
    same = mqsd.decode(bytearray(vector.data), transport=transport)
    model = reference.read(vector.data, transport=transport)
    assert not isinstance(model, reference.Fault)
    pickled = pickle.loads(pickle.dumps(packet))
    for other in (same, build(model), pickled, copy.copy(packet), copy.deepcopy(packet)):
        assert other == packet
        assert (other != packet) is False
        assert hash(other) == hash(packet)
        assert packet_row(other) == packet_row(packet)
        assert repr(other) == repr(packet)
    assert packet != vector.data
    assert packet != None  # noqa: E711
    assert type(packet).__name__ in repr(packet)


def test_packets_that_differ_are_not_equal() -> None:
    packets = [
        mqsd.decode(vector.data, transport=outcome.transport)
        for vector in VECTORS
        for outcome in vector.outcomes
        if outcome.fault is None and not outcome.strict
    ]
    for i, one in enumerate(packets):
        for j, other in enumerate(packets):
            # The bytes after the last field are not part of the value
            if i != j and packet_row(one) | {"trailing": None} != packet_row(other) | {"trailing": None}:
                assert one != other


def test_pickle_keeps_violations() -> None:
    packet = mqsd.decode(get("mqsd", "reply-every-violation").data, transport="udp")
    again = pickle.loads(pickle.dumps(packet))
    assert again == packet
    assert again.violations == packet.violations
    assert len(packet.violations) == 4


def test_packets_cannot_be_changed() -> None:
    packet = mqsd.decode(V3)
    for name in ("correlation_id", "servers", "connected_network_mask", "violations"):
        with pytest.raises(AttributeError):
            setattr(packet, name, None)
    assert not reply(V3).connected_networks.flags.writeable
    assert not request(get("mqsd", "request-ipx-three-networks").data).ipx_networks.flags.writeable


@pytest.mark.parametrize("kind", [mqsd.TopologyClientRequest, mqsd.TopologyServerReply])
def test_a_packet_without_bytes_is_refused(kind: Any) -> None:
    """``__init__`` left out, by ``__new__`` or by a subclass: an exception, never a look at nowhere."""
    program = f"""
from msmqwire import mqsd
class Hollow(mqsd.{kind.__name__}):
    def __init__(self):
        pass
for make in (Hollow, lambda: mqsd.{kind.__name__}.__new__(mqsd.{kind.__name__})):
    for use in (repr, hash, mqsd.encode, lambda packet: packet == packet, lambda packet: packet.version):
        try:
            use(make())
        except Exception:
            pass
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_arrays_of_a_packet_are_views_of_the_callers_buffer() -> None:
    data = get("mqsd", "request-ipx-three-networks").data
    packet = request(data)
    assert packet.ipx_networks.dtype == np.uint32
    assert np.shares_memory(packet.ipx_networks, np.frombuffer(data, np.uint8))
    networks = reply(V3).connected_networks
    assert networks.dtype == np.uint8
    assert networks.shape == (1, 16)
    assert np.shares_memory(networks, np.frombuffer(V3, np.uint8))


def test_a_view_keeps_the_callers_buffer() -> None:
    data = bytes(bytearray(get("mqsd", "reply-many-servers").data))
    before = sys.getrefcount(data)
    networks = reply(data).connected_networks
    gc.collect()
    assert sys.getrefcount(data) > before
    assert networks.tobytes() == data[32:64]
    del networks
    gc.collect()
    assert sys.getrefcount(data) == before


# --- errors speak ---


def test_an_error_says_what_was_needed_and_what_was_there() -> None:
    with pytest.raises(errors.DecodeError) as caught:
        mqsd.decode(V2[:40])
    error = caught.value
    assert (error.code, error.field, error.offset) == ("truncated", "ConnectedNetworkArray", 32)
    assert "16" in error.detail
    assert "8" in error.detail
    assert error.detail in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, str(again)) == (type(error), error.args, str(error))


@pytest.mark.parametrize("vector", [vector for vector in VECTORS if vector.outcomes[0].fault], ids=str)
def test_every_fault_has_its_detail(vector: Vector) -> None:
    with pytest.raises(errors.DecodeError) as caught:
        mqsd.decode(vector.data)
    assert caught.value.detail
    assert caught.value.field in str(caught.value)


def test_the_detail_of_a_terminator_is_not_of_a_code_unit() -> None:
    """What stands at an early terminator is always 0; at the end of an array there is no unit at all."""
    for name in ("reply-servers-early-terminator", "reply-servers-no-terminator-in-a-name"):
        with pytest.raises(errors.DecodeError) as caught:
            mqsd.decode(get("mqsd", name).data)
        assert not re.search(r"unit 0x000[1-9a-f]", caught.value.detail)


# --- what encode refuses ---

GUID = uuid.UUID("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0")


def _request(**changes: Any) -> mqsd.TopologyClientRequest:
    fields: dict[str, Any] = {"enterprise_id": GUID, "request_id": GUID, "site_id": GUID}
    return mqsd.TopologyClientRequest(**fields | changes)


def _reply(**changes: Any) -> mqsd.TopologyServerReply:
    fields: dict[str, Any] = {"correlation_id": GUID, "connected_networks": [GUID]}
    return mqsd.TopologyServerReply(**fields | changes)


def _servers(*names: str) -> dict[str, Any]:
    return {"responding_site_id": GUID, "servers": [mqsd.DirectoryServiceServer(name) for name in names]}


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (_request, {"ipx_networks": range(33)}),
        (_reply, {"connected_networks": []}),
        (_reply, {"connected_networks": [GUID] * 33}),
        (_reply, {"connected_network_mask": 3}),
        (_reply, {"connected_network_mask": 1, "connected_networks": [GUID] * 2}),
        (_reply, {"connected_network_mask": 0xFFFFFFFF}),
        (_reply, {"responding_site_id": GUID}),
        (_reply, {"servers": [mqsd.DirectoryServiceServer("a")]}),
        *[(_reply, _servers(*names)) for names in (("",), ("a", ""), ("a\0",), ("a,b",), ("\0",), (",",))],
    ],
)
def test_the_refusal_of_a_packet_names_its_field(make: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(errors.EncodeError) as caught:
        mqsd.encode(make(**changes))
    assert caught.value.field
    assert caught.value.field in str(caught.value)


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (_request, {"ipx_networks": [0, 0xFFFFFFFF]}),
        (_request, {"ipx_networks": np.arange(32, dtype=np.uint32)}),
        (_reply, {"connected_networks": [GUID] * 32, "connected_network_mask": 0xFFFFFFFF}),
        (_reply, {"connected_network_mask": 0x80000000}),
        (_reply, _servers("\ud800", "\udfff\ud800", "\U0001f600", "\u0100")),
        (_reply, _servers("\u012c", "\uffff", "\ufeff", "\x01")),
        (_reply, _servers("10")),
        (_reply, {"responding_site_id": GUID, "servers": [("a", False, True)]}),
    ],
)
def test_what_encode_accepts_decodes_equal(make: Any, changes: dict[str, Any]) -> None:
    packet = make(**changes)
    data = mqsd.encode(packet)
    assert mqsd.decode(data, strict=True) == packet
    model = reference.read(data, strict=True)
    assert not isinstance(model, reference.Fault)
    assert reference.write(model) == data
    assert packet_row(packet) == reference.row(model)


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (_request, {"ipx_networks": [-1]}),
        (_request, {"ipx_networks": [1 << 32]}),
        (_reply, {"connected_network_mask": 1 << 32}),
        (_reply, {"connected_network_mask": -1}),
    ],
)
def test_numbers_that_do_not_fit_are_refused(make: Any, changes: dict[str, Any]) -> None:
    with pytest.raises((OverflowError, ValueError, errors.EncodeError)):
        mqsd.encode(make(**changes))


@pytest.mark.parametrize(
    ("make", "changes"),
    [
        (_request, {"enterprise_id": "not a guid"}),
        (_request, {"site_id": None}),
        (_reply, {"connected_networks": [b"short"]}),
        (_reply, {"responding_site_id": GUID, "servers": [(1, True, False)]}),
    ],
)
def test_values_of_another_kind_are_refused(make: Any, changes: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError, errors.EncodeError)):
        mqsd.encode(make(**changes))


def test_encode_takes_packets_only() -> None:
    for wrong in (V1, None, "request"):
        with pytest.raises(TypeError):
            mqsd.encode(wrong)  # type: ignore[arg-type]
