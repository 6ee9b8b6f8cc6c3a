"""One packet at a time: ``decode``, ``encode`` and the packets between them."""

from __future__ import annotations

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
from tests.columns.formats import TOPOLOGY
from tests.mqsd.packets import reply, request
from tests.reference.mqsd_cases import listing
from tests.vectors import get

ROOT = Path(__file__).parent.parent.parent
V1, V2, V3 = (get("mqsd", name).data for name in ("V1-request", "V2-reply-local-site", "V3-reply-other-site"))


@pytest.mark.parametrize("unit", [*range(0x40), 0x100, 0x12C, 0x130, 0x2C00, 0x3000, 0x3031, 0xD800, 0xDC00, 0xFFFF])
def test_every_place_of_a_server_array(unit: int) -> None:
    """Each unit of a list of two servers replaced: flags, names, the comma and the terminator."""
    units = "10nt,01ps\0".encode("utf-16-le")
    head = V3[:28] + len(units).to_bytes(4, "little") + V3[32:64]
    for at in range(0, len(units), 2):
        data = head + units[:at] + unit.to_bytes(2, "little") + units[at + 2 :]
        TOPOLOGY.assert_agrees(data)


@pytest.mark.parametrize("length", [*range(1, 70), 127, 128, 129, 1000, 32000])
def test_names_of_every_length(length: int) -> None:
    """A scan by blocks of units must not care where the end of a name lies in its block."""
    for name in ("a" * length, "\u0100" * length, "\u012c" * (length - 1) + "\ud800"):
        for names in ((name,), (name, "b"), ("b", name, "cc")):
            data = listing(*names)
            assert mqsd.encode(TOPOLOGY.assert_agrees(data, strict=True, transport="udp")) == data


def test_refuses_an_unknown_transport() -> None:
    with pytest.raises(ValueError, match="tcp"):
        mqsd.decode(V1, transport="tcp")  # type: ignore[arg-type]


# --- packets are values ---


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
        *[
            (_reply, {"responding_site_id": GUID, "servers": servers})
            for servers in ("dc1", [b"dc1"], [{"name": "dc1", "port": 1}], [{"ip": True}], [("dc1",)], [""], ["a,b"], 5)
        ],
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
    assert TOPOLOGY.assert_agrees(mqsd.encode(packet), strict=True) == packet


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
