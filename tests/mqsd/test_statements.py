"""[MS-MQSD] 2.2, row by row. Bytes are put together here by hand, to owe nothing to an encoder."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import numpy as np
import pytest

from msmqwire import mqsd
from msmqwire.errors import DecodeError, EncodeError
from tests.columns.formats import TOPOLOGY
from tests.columns.rows import place_of
from tests.contract.checklist import row
from tests.mqsd.packets import reply, request
from tests.reference.mqsd import TRANSPORTS, Transport
from tests.reference.reader import Fault

IPX_TRANSPORTS: tuple[Transport, ...] = ("unknown", "ipx")

A, B, C = (uuid.UUID(int=0x0102030405060708090A0B0C0D0E0F10 * n) for n in (1, 3, 7))


def request_bytes(tail: bytes = b"", *, version: int = 0, kind: int = 1, reserved: int = 0) -> bytes:
    return struct.pack("<BBH", version, kind, reserved) + A.bytes_le + B.bytes_le + C.bytes_le + tail


def reply_bytes(
    networks: list[uuid.UUID],
    tail: bytes = b"",
    *,
    count: int | None = None,
    mask: int = 0,
    size: int = 0,
    version: int = 0,
    kind: int = 2,
    reserved: int = 0,
) -> bytes:
    head = struct.pack("<BBH", version, kind, reserved) + A.bytes_le
    counts = struct.pack("<III", len(networks) if count is None else count, mask, size)
    return head + counts + b"".join(network.bytes_le for network in networks) + tail


def listing(array: bytes, *, size: int | None = None, networks: int = 1) -> bytes:
    return reply_bytes([B] * networks, C.bytes_le + array, size=len(array) if size is None else size)


def units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def fault(data: bytes, *, strict: bool = False, transport: Transport = "unknown") -> tuple[str, str, int] | None:
    """The fault of a packet, which the single decoder and the batch must agree on."""
    single = TOPOLOGY.decode(data, strict=strict, transport=transport)
    found = place_of(mqsd.decode_batch([data], strict=strict, transport=transport).fault(0))
    expected = tuple(single) if isinstance(single, Fault) else None
    assert found == expected
    return found


def make_request(**changes: Any) -> mqsd.TopologyClientRequest:
    fields: dict[str, Any] = {"enterprise_id": A, "request_id": B, "site_id": C}
    return mqsd.TopologyClientRequest(**fields | changes)


def make_reply(**changes: Any) -> mqsd.TopologyServerReply:
    fields: dict[str, Any] = {"correlation_id": A, "connected_networks": [B]}
    return mqsd.TopologyServerReply(**fields | changes)


# --- 2.2.1 ---


@row("SDW-01")
def test_header() -> None:
    packet = mqsd.decode(b"\x07\x01\x34\x12" + request_bytes()[4:])
    assert (packet.version, packet.type, packet.reserved) == (7, "request", 0x1234)
    for size, field in ((0, "Version"), (1, "Type"), (2, "Reserved"), (3, "Reserved")):
        assert fault(request_bytes()[:size]) == ("truncated", field, min(size, 2))


@row("SDW-02")
def test_client_encodes_zero_version_and_reserved() -> None:
    assert mqsd.encode(make_request())[:4] == b"\0\1\0\0"
    for data in (request_bytes(version=1), request_bytes(reserved=1)):
        with pytest.raises(EncodeError):
            mqsd.encode(mqsd.decode(data))


@row("SDW-03")
def test_server_accepts_any_version_and_reserved() -> None:
    for version in range(256):
        for reserved in (0, 1, 0x8000, 0xFFFF):
            data = request_bytes(version=version, reserved=reserved)
            packet = mqsd.decode(data, strict=True, transport="udp")
            assert (packet.version, packet.reserved) == (version, reserved)
            expected = ("version_nonzero",) * (version != 0) + ("reserved_nonzero",) * (reserved != 0)
            assert packet.violations == expected


@row("SDW-04")
def test_types() -> None:
    assert mqsd.decode(request_bytes()).type == "request"
    assert mqsd.decode(reply_bytes([A])).type == "reply"
    for kind in {*range(256)} - {1, 2}:
        assert fault(request_bytes(kind=kind)) == ("bad_type", "Type", 1)
        assert fault(reply_bytes([A], kind=kind)) == ("bad_type", "Type", 1)


# --- 2.2.2 ---


@row("SDW-05")
def test_ip_request_layout() -> None:
    data = mqsd.encode(make_request())
    assert len(data) == 52
    assert data == request_bytes()
    packet = request(data, strict=True)
    assert (packet.enterprise_id, packet.request_id, packet.site_id) == (A, B, C)
    assert (data[4:20], data[20:36], data[36:52]) == (A.bytes_le, B.bytes_le, C.bytes_le)


@row("SDW-06")
def test_ipx_request_layout() -> None:
    for count in range(1, 33):
        numbers = [0x01020304 * n & 0xFFFFFFFF for n in range(1, count + 1)]
        data = mqsd.encode(make_request(ipx_networks=numbers))
        assert len(data) == 56 + 4 * count
        assert data == request_bytes(struct.pack(f"<I{count}I", count, *numbers))
        packet = request(data, strict=True, transport="ipx")
        assert packet.ipx_networks.tolist() == numbers


@row("SDW-07")
def test_ipx_count_is_1_to_32() -> None:
    for count in (0, 33, 34, 0x100, 0x10000, 0x80000001, 0xFFFFFFFF):
        data = request_bytes(struct.pack("<I", count) + bytes(4 * 40))
        for transport in IPX_TRANSPORTS:
            assert fault(data, transport=transport) == ("bad_count", "IPXNetworkCount", 52)
    for count in (1, 32):
        assert fault(request_bytes(struct.pack("<I", count) + bytes(4 * 40)), transport="ipx") is None
    with pytest.raises(EncodeError):
        mqsd.encode(make_request(ipx_networks=range(33)))


@row("SDW-08")
def test_no_ipx_fields_for_ip() -> None:
    empties: list[Any] = [(), [], np.empty(0, np.uint32)]
    for empty in empties:
        assert len(mqsd.encode(make_request(ipx_networks=empty))) == 52
    packet = request(request_bytes(struct.pack("<II", 1, 5)), transport="udp")
    assert packet.ipx_networks.size == 0
    assert packet.violations == ("ipx_fields_on_ip",)
    with pytest.raises(EncodeError):
        mqsd.encode(packet)


@row("SDW-09")
def test_requests_of_52_to_59_bytes() -> None:
    whole = request_bytes(struct.pack("<II", 1, 0xFFFFFFFF))
    for tail in (whole[52:59], bytes(7), b"\xff" * 7):
        for transport in TRANSPORTS:
            for size in range(8):
                packet = request(request_bytes(tail[:size]), strict=True, transport=transport)
                assert packet == make_request()
                assert (packet.ipx_networks.size, packet.violations) == (0, ())
                assert mqsd.encode(packet) == request_bytes()
    packet = request(whole, strict=True, transport="ipx")
    assert packet.ipx_networks.tolist() == [0xFFFFFFFF]


# --- 2.2.3 ---


@row("SDW-15")
def test_reply_layout() -> None:
    data = mqsd.encode(make_reply(connected_networks=[B, C], connected_network_mask=0x80000001))
    assert data == reply_bytes([B, C], mask=0x80000001)
    packet = reply(data, strict=True, transport="ipx")
    assert packet.correlation_id == A
    assert packet.connected_network_mask == 0x80000001
    assert packet.connected_networks.tobytes() == B.bytes_le + C.bytes_le == data[32:]
    starts = {
        4: "CorrelationID",
        20: "ConnectedNetworkCount",
        24: "ConnectedNetworkMask",
        28: "DirectoryServiceServerSize",
        32: "ConnectedNetworkArray",
    }
    for size in range(4, len(data)):
        start = max(at for at in starts if at <= size)
        assert fault(data[:size]) == ("truncated", starts[start], start)


@row("SDW-16")
def test_network_count_is_1_to_32() -> None:
    for count in (0, 33, 0x100, 0x80000001, 0xFFFFFFFF):
        data = reply_bytes([B] * 40, count=count)
        for size in (24, 28, 32, len(data)):
            assert fault(data[:size]) == ("bad_count", "ConnectedNetworkCount", 20)
    for count in range(1, 33):
        assert fault(reply_bytes([B] * count), strict=True) is None
    for networks in ([], [B] * 33):
        with pytest.raises(EncodeError):
            mqsd.encode(make_reply(connected_networks=networks))


@row("SDW-17")
def test_mask_is_zero_on_ip() -> None:
    for mask in (1, 2, 0x80000000, 0xFFFFFFFF):
        data = reply_bytes([B], mask=mask)
        assert mqsd.decode(data, transport="udp").violations == ("mask_nonzero_on_ip",)
        assert fault(data, strict=True, transport="udp") == ("bad_value", "ConnectedNetworkMask", 24)
    with pytest.raises(DecodeError, match=r"is 0x80000000$"):
        mqsd.decode(reply_bytes([B], mask=0x80000000), strict=True, transport="udp")
    assert mqsd.decode(reply_bytes([B]), strict=True, transport="udp").violations == ()
    assert mqsd.encode(make_reply())[24:28] == bytes(4)


@row("SDW-18")
def test_mask_has_a_bit_for_each_network_on_ipx() -> None:
    for count in (1, 2, 31, 32):
        for bits in (0, count - 1, count, count + 1):
            if bits > 32:
                continue
            mask = (1 << bits) - 1
            for shifted in (mask, mask << (32 - bits) & 0xFFFFFFFF):
                data = reply_bytes([B] * count, mask=shifted)
                good = bits == count
                found = mqsd.decode(data, transport="ipx").violations
                assert found == (() if good else ("mask_count_mismatch",))
                expected = None if good else ("bad_value", "ConnectedNetworkMask", 24)
                assert fault(data, strict=True, transport="ipx") == expected
                assert fault(data, strict=True) == (None if good or bits == 0 else expected)
    with pytest.raises(EncodeError):
        mqsd.encode(make_reply(connected_network_mask=3))


@row("SDW-19")
def test_size_zero_ends_the_reply() -> None:
    packet = reply(reply_bytes([B]), strict=True)
    assert packet.responding_site_id is None
    assert packet.servers == ()
    assert len(mqsd.encode(packet)) == 48
    behind = reply_bytes([B], C.bytes_le + units("10a\0"))
    read = reply(behind)
    assert (read.responding_site_id, read.servers) == (None, ())
    assert read.violations == ("trailing_bytes",)
    assert fault(behind, strict=True) == ("bad_size", "DirectoryServiceServerSize", 48)
    for changes in ({"responding_site_id": C}, {"servers": [mqsd.DirectoryServiceServer("a")]}):
        with pytest.raises(EncodeError):
            mqsd.encode(make_reply(**changes))


@row("SDW-20")
def test_site_and_servers_follow_the_networks() -> None:
    for count in (1, 2, 32):
        data = listing(units("01a\0"), networks=count)
        assert data[32 + 16 * count :][:16] == C.bytes_le
        packet = reply(data, strict=True)
        assert packet.responding_site_id == C
        assert packet.servers == (("a", False, True),)
        assert mqsd.encode(packet) == data
        for size in range(32 + 16 * count, len(data)):
            site, array = 32 + 16 * count, 48 + 16 * count
            expected = ("RespondingSiteID", site) if size < array else ("DirectoryServiceServerArray", array)
            assert fault(data[:size]) == ("truncated", *expected)


@row("SDW-21")
def test_size_counts_the_terminator() -> None:
    data = mqsd.encode(make_reply(responding_site_id=C, servers=[("ab", True, True), ("c", False, False)]))
    assert struct.unpack_from("<I", data, 28) == (2 * (4 + 1 + 3 + 1),)
    assert data[64:] == units("11ab,00c\0")
    array = units("10ab\0")
    assert fault(listing(array, size=len(array) - 2)) == ("bad_terminator", "DirectoryServiceServerArray", 72)
    assert fault(listing(array, size=len(array) + 2)) == ("truncated", "DirectoryServiceServerArray", 64)


@row("SDW-22")
def test_entries_commas_and_one_null() -> None:
    for count in (1, 2, 3, 50):
        names = [f"s{n}" for n in range(count)]
        data = listing(units(",".join("10" + name for name in names) + "\0"))
        packet = reply(data, strict=True)
        assert [server.name for server in packet.servers] == names
    wrong = {
        "10a\0\0": ("bad_terminator", "DirectoryServiceServerArray", 70),
        "10a\00010b\0": ("bad_terminator", "DirectoryServiceServerArray", 70),
        "10ab": ("bad_terminator", "DirectoryServiceServerArray", 72),
        "10a,": ("bad_terminator", "DirectoryServiceServerArray", 72),
        "10a,1": ("bad_terminator", "DirectoryServiceServerArray", 74),
        "10a,10": ("bad_terminator", "DirectoryServiceServerArray", 76),
        "10a,\0": ("bad_flag", "DirectoryServiceServerArray[1]", 72),
        ",10a\0": ("bad_flag", "DirectoryServiceServerArray[0]", 64),
        "10a,,10b\0": ("bad_flag", "DirectoryServiceServerArray[1]", 72),
    }
    for text, expected in wrong.items():
        assert fault(listing(units(text))) == expected, text


@row("SDW-23")
def test_flags_are_zero_or_one() -> None:
    for ip in "01":
        for ipx in "01":
            packet = reply(listing(units(f"{ip}{ipx}a\0")), strict=True)
            assert packet.servers == (("a", ip == "1", ipx == "1"),)
    for wrong in ("\0", "/", "2", "a", ",", "\u0130", "\u3000", "\u3100", "\u0100"):
        first = fault(listing(units(f"10a,{wrong}0b\0")))
        second = fault(listing(units(f"10a,1{wrong}b\0")))
        assert first == ("bad_flag", "DirectoryServiceServerArray[1]", 72)
        assert second == ("bad_flag", "DirectoryServiceServerArray[1]", 74)


@row("SDW-24")
def test_names_are_not_empty() -> None:
    assert len(units("10a\0")) == 8
    assert fault(listing(units("10a\0")), strict=True) is None
    for size in (2, 4, 6):
        assert fault(listing(units("10a\0"), size=size)) == ("bad_size", "DirectoryServiceServerSize", 28)
    assert fault(listing(units("10,10a\0"))) == ("bad_name", "DirectoryServiceServerArray[0]", 68)
    assert fault(listing(units("10a,10\0"))) == ("bad_name", "DirectoryServiceServerArray[1]", 76)
    with pytest.raises(EncodeError):
        mqsd.encode(make_reply(responding_site_id=C, servers=[("", True, False)]))


@row("SDW-25")
def test_every_other_code_unit_is_legal() -> None:
    legal = [unit for unit in range(0x10000) if unit not in (0, 0x2C)]
    names = [units("10") + struct.pack("<H", unit) for unit in legal]
    lists = [units(",").join(names[at : at + 500]) + bytes(2) for at in range(0, len(names), 500)]
    batch = mqsd.decode_batch([listing(each) for each in lists], strict=True)
    assert not len(batch.faults)
    found = batch["servers"].values["name"]
    assert b"".join(found[i].tobytes() for i in range(len(legal))) == struct.pack(f"<{len(legal)}H", *legal)
    for unit in (0x0001, 0x0100, 0x012C, 0xD800, 0xDFFF, 0xFEFF, 0xFFFF):
        data = listing(units("10") + struct.pack("<HH", unit, 0))
        packet = reply(data)
        assert packet.servers[0].name == chr(unit)
        assert mqsd.encode(packet) == data
    for illegal in "\0,":
        with pytest.raises(EncodeError):
            mqsd.encode(make_reply(responding_site_id=C, servers=[(f"a{illegal}b", True, False)]))


@row("SDW-26")
def test_splitting_is_on_code_units() -> None:
    tricky = b"\x61\x2c\x00\x01\x2c\x2c\x00\x2c\x30\x00"  # U+2C61 U+0100 U+2C2C U+2C00 U+0030
    packet = reply(listing(units("10") + tricky + units(",01") + tricky + b"\0\0"), strict=True)
    name = "\u2c61\u0100\u2c2c\u2c000"
    assert packet.servers == ((name, True, False), (name, False, True))


@row("SDW-27")
def test_odd_sizes() -> None:
    """Nor sizes that no array has: an entry and its terminator take 8 bytes."""
    for size in (1, 2, 4, 6, 7, 9, 11, 0x7FFFFFFF, 0xFFFFFFFF):
        data = listing(units("10abc\0"), size=size)
        for end in (32, len(data)):
            assert fault(data[:end]) == ("bad_size", "DirectoryServiceServerSize", 28)


@row("SDW-28")
def test_bytes_behind_the_last_field() -> None:
    for whole in (reply_bytes([B, C]), listing(units("10a,01b\0"))):
        for tail in (b"\0", b"\0\0", bytes(100)):
            assert mqsd.decode(whole + tail).violations == ("trailing_bytes",)
            expected = ("bad_size", "DirectoryServiceServerSize", len(whole))
            assert fault(whole + tail, strict=True, transport="udp") == expected


def test_bytes_after_the_networks_of_a_request() -> None:
    """A server answers all the same (3.2.5.1), so they are no violation."""
    whole = request_bytes(struct.pack("<II", 1, 5))
    for strict in (False, True):
        packet = request(whole + b"more", strict=strict, transport="ipx")
        assert (packet.ipx_networks.tolist(), packet.violations) == ([5], ())
        assert bytes(packet.trailing) == b"more"  # type: ignore[arg-type]


@row("SDW-29")
def test_client_ignores_version_and_reserved() -> None:
    packet = mqsd.decode(reply_bytes([B], version=9, reserved=0x8000), strict=True, transport="udp")
    assert (packet.version, packet.reserved) == (9, 0x8000)
    assert packet.violations == ("version_nonzero", "reserved_nonzero")
