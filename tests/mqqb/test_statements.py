"""[MS-MQMQ] 2.2.18 to 2.2.20 and [MS-MQQB] 2.2, row by row. Bytes are put together here by hand."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from msmqwire.formatname import PrivateName
from tests import vectors
from tests.columns.formats import MESSAGES
from tests.columns.rows import place_of
from tests.contract.checklist import row
from tests.reference.reader import Fault

SOURCE = uuid.UUID("557358d1-9150-9595-4997-b6e611ea26c6")
TARGET = uuid.UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
OTHER = uuid.UUID("1f742305-be5e-4177-bc77-c4dd7719e474")
SESSION = bytes.fromhex("0300 0200 05000000 0700 0100 4000 0000")
MIB_4 = 0x00400000


def base(
    size: int, flags: int = 3, *, version: int = 0x10, signature: bytes = b"LIOR", seconds: int = 0xFFFFFFFF
) -> bytes:
    return struct.pack("<BxH4sII", version, flags, signature, size, seconds)


def properties(body: bytes = b"body", label: str = "", message_class: int = 0, flags: int = 0) -> bytes:
    text = f"{label}\0".encode("utf-16-le") if label else b""
    numbers = (0, 0, len(body), len(body), 0, 0x8004, 0x6610, 0)
    fixed = struct.pack("<BBH20x8I", flags, len(text) // 2, message_class, *numbers)
    data = fixed + text + body
    return data + bytes(-len(data) % 4)


def message(
    types: tuple[int, int, int] = (3, 0, 0), queues: bytes = b"\5\0\0\0", rest: bytes | None = None, **options: Any
) -> bytes:
    """A user message: DQ, AQ and RQ, the queues they call for, and what follows the UserHeader."""
    flags = 1 << 21 | types[0] << 10 | types[1] << 13 | types[2] << 16
    address = bytes(16) if types[0] in (0, 7) else TARGET.bytes_le
    header = SOURCE.bytes_le + address + struct.pack("<4I", 60, 1_600_000_000, 7, flags) + queues
    content = header + (properties(flags=1 if types[1] else 0) if rest is None else rest)
    return base(16 + len(content), **options) + content


def internal(packet_type: int, content: bytes, flags: int = 0xB) -> bytes:
    return base(20 + len(content), flags) + struct.pack("<HH", 0, packet_type) + content


def direct(name: str, filler: bytes = b"\0\0") -> bytes:
    """A DirectQueueFormatName as it stands in a UserHeader, which begins at a multiple of four."""
    data = f"{name}\0".encode("utf-16-le")
    return struct.pack("<H", len(data)) + data + (filler if len(data) % 4 == 0 else b"")


def fault(data: bytes, *, strict: bool = False, transport: Any = "tcp") -> tuple[str, str, int] | None:
    """The fault of a packet, which the single decoder and the batch must agree on."""
    single = MESSAGES.decode(data, strict=strict, transport=transport)
    if transport == "udp" or len(data) < 4 or data[2] & 8:
        entry = mqqb.decode_session_batch([data], strict=strict, transport=transport).fault(0)
    else:
        entry = mqqb.decode_batch([data], strict=strict).fault(0)
    found = place_of(entry)
    assert found == (tuple(single) if isinstance(single, Fault) else None)
    return found


def _of(is_session: bool, transport: Any) -> dict[str, Any]:
    return {"transport": transport} if is_session else {}


def user_message(data: bytes) -> mqqb.UserMessage:
    packet = mqqb.decode(data, strict=True)
    assert isinstance(packet, mqqb.UserMessage)
    return packet


@row("QB-01")
def test_version_and_signature() -> None:
    assert fault(message()) is None
    for version in (*range(16), *range(17, 256)):
        assert fault(message(version=version)) == ("bad_version", "VersionNumber", 0)
    for signature in (b"ROIL", b"LIOS", b"lior", bytes(4), b"MIOR", b"\xccIOR"):
        assert fault(message(signature=signature)) == ("bad_signature", "Signature", 4)
        assert fault(message(version=0, signature=signature)) == ("bad_version", "VersionNumber", 0)
    assert mqqb.encode(user_message(message()))[:8] == b"\x10\0\3\0LIOR"
    for size in range(16):
        assert fault(message()[:size]) == ("truncated", "BaseHeader", 0)


@row("QB-02")
def test_packet_size_leaves_out_a_session_header_behind_a_message() -> None:
    data = message(flags=0x13)
    assert fault(data[:-1]) == ("truncated", "PacketSize", 8)
    for missing in range(1, 17):
        assert fault((data + SESSION)[:-missing]) == ("truncated", "SessionHeader", len(data))
    packet = user_message(data + SESSION)
    assert packet.packet_size == len(data)
    session = packet.session
    assert session is not None
    assert (session.ack_sequence_number, session.user_msg_sequence_number, session.window_size) == (3, 7, 64)
    assert mqqb.encode(packet) == data + SESSION
    assert fault(data + SESSION + b"\0", strict=True) == ("bad_size", "PacketSize", len(data) + 16)
    # The one in a SessionAck is counted, as [MS-MQQB] 4.1 has it
    ack = internal(1, SESSION, 0x1B)
    assert struct.unpack_from("<I", ack, 8) == (36,)
    assert mqqb.encode(mqqb.decode(ack, strict=True)) == ack
    assert fault(ack[:-1]) == ("truncated", "PacketSize", 8)


@row("QB-03")
def test_the_largest_packet() -> None:
    empty = len(message(rest=properties(b"")))
    for size in (MIB_4 - 4, MIB_4):
        data = message(rest=properties(bytes(size - empty)))
        assert len(data) == size
        packet = user_message(data)
        assert packet.packet_size == size
        assert mqqb.encode(packet) == data
    for more in (1, 4, 16):
        data = message(rest=properties(bytes(MIB_4 - empty + more)))
        assert fault(data) == ("too_large", "PacketSize", 8)
    assert fault(base(0xFFFFFFFF) + bytes(100)) == ("too_large", "PacketSize", 8)
    # A SessionHeader behind it does not count
    assert fault(message(rest=properties(bytes(MIB_4 - empty)), flags=0x13) + SESSION) is None
    with pytest.raises(EncodeError):
        mqqb.encode(
            mqqb.UserMessage(
                source_queue_manager=SOURCE,
                queue_manager_address=TARGET,
                destination_queue=PrivateName(TARGET, 5),
                body=bytes(MIB_4 - empty + 1),
            )
        )


@row("QB-04")
def test_kinds_of_packets() -> None:
    establish = SOURCE.bytes_le + TARGET.bytes_le + struct.pack("<IHH", 5, 0x310, 0) + b"\x5a" * 512
    parameters = struct.pack("<IIHH", 1496, 120000, 0, 64)
    for packet_type, content, flags, kind in (
        (1, SESSION, 0x1B, mqqb.SessionAck),
        (2, establish, 0xB, mqqb.EstablishConnection),
        (3, parameters, 0xB, mqqb.ConnectionParameters),
    ):
        data = internal(packet_type, content, flags)
        packet = mqqb.decode(data, strict=True)
        assert type(packet) is kind
        assert mqqb.encode(packet) == data
        assert place_of(mqqb.decode_batch([data]).fault(0)) == ("bad_type", "BaseHeader.Flags", 2)
    assert fault(internal(1, SESSION, 0xB)) == ("bad_flag", "BaseHeader.Flags", 2)
    for packet_type in (0, *range(4, 16)):
        assert fault(internal(packet_type, establish)) == ("bad_type", "InternalHeader.Flags", 18)
    # Without IN the same bytes are a message, whose UserHeader they do not make
    assert type(mqqb.decode(message())) is mqqb.UserMessage
    assert place_of(mqqb.decode_session_batch([message()]).fault(0)) == ("bad_type", "BaseHeader.Flags", 2)
    assert fault(internal(3, parameters, 3)) == ("truncated", "UserHeader", 16)


@row("QB-05")
def test_types_of_queues() -> None:
    number, public = b"\5\0\0\0", OTHER.bytes_le
    private, name = OTHER.bytes_le + b"\7\0\0\0", direct("OS:srv1\\q")
    layouts = {0: b"", 1: b"", 2: number, 3: number, 4: number, 5: public, 6: private, 7: name}
    for type_ in range(8):
        found = fault(message((type_, 0, 0), layouts[type_]))
        assert found == (None if type_ in (0, 3, 5, 7) else ("bad_flag", "UserHeader.Flags", 60))
        found = fault(message((3, type_, 0), number + layouts[type_]))
        assert found == (None if type_ not in (1, 4) else ("bad_flag", "UserHeader.Flags", 60))
        assert fault(message((3, 0, type_), number + layouts[type_])) is None
    texts = {
        0: None, 1: f"PRIVATE={OTHER}\\7", 2: f"PRIVATE={SOURCE}\\5", 3: f"PRIVATE={TARGET}\\5",
        4: f"PRIVATE={OTHER}\\5", 5: f"PUBLIC={OTHER}", 6: f"PRIVATE={OTHER}\\7", 7: "DIRECT=OS:srv1\\q",
    }  # fmt: skip
    for type_, text in texts.items():
        data = message((3, 6, type_), number + private + layouts[type_])
        column = mqqb.decode_batch([data]).to_arrow()["response_queue"]
        assert column.to_pylist() == [text]
        assert mqqb.encode(user_message(data)) == data


@row("QB-06")
def test_direct_names_are_padded() -> None:
    for length in range(1, 12):
        name = "TCP:1.2.3.4\\" + "q" * length
        data = message((7, 7, 7), direct(name) + direct(name + "a") + direct(name + "rr"))
        packet = user_message(data)
        queues = (packet.destination_queue, packet.admin_queue, packet.response_queue)
        assert [str(queue) for queue in queues] == [f"DIRECT={name}{more}" for more in ("", "a", "rr")]
        assert mqqb.encode(packet) == data
        # Any padding will do, and Count does not count it
        odd = message(
            (7, 7, 7), direct(name, b"\xbe\xef") + direct(name + "a", b"\xff\xff") + direct(name + "rr", b"a\0")
        )
        assert user_message(odd) == packet
        assert mqqb.encode(user_message(odd)) == data
    data = message((7, 0, 0), direct("OS:srv1\\q"))
    for count in (0, 1, 19, 21):
        assert fault(data[:64] + struct.pack("<H", count) + data[66:]) == ("bad_size", "DestinationQueue", 64)
    # With its padding counted a terminator is not the last unit
    for filler in (b"a\0", b"\0\0"):
        data = message((7, 0, 0), direct("OS:srv1\\qq", filler))
        found = fault(data[:64] + struct.pack("<H", 24) + data[66:])
        assert found == ("bad_terminator", "DestinationQueue", 86)


@row("QB-07")
def test_pings() -> None:
    data = struct.pack("<HHI", 1, 0x5548, 4) + SOURCE.bytes_le
    for transport in ("udp", "unknown"):
        ping = mqqb.decode(data, strict=True, transport=transport)
        assert isinstance(ping, mqqb.Ping)
        assert (ping.cookie, ping.queue_manager, ping.initiator_is_client, ping.refused) == (4, SOURCE, True, False)
        assert mqqb.encode(ping) == data
    for signature in (0, 0x4855, 0x5549, 0x5547, 0xD548, 0x5448, 0xFFFF):
        wrong = data[:2] + struct.pack("<H", signature) + data[4:]
        assert fault(wrong, transport="udp") == ("bad_signature", "Ping.Signature", 2)
    for flags in range(0, 0x10000, 257):
        ping = mqqb.decode(struct.pack("<H", flags) + data[2:], strict=True, transport="udp")
        assert isinstance(ping, mqqb.Ping)
        assert (ping.initiator_is_client, ping.refused) == (bool(flags & 1), bool(flags & 2))
    for size in range(24):
        assert fault(data[:size], transport="udp") == ("truncated", "Ping", 0)


def test_acknowledgments() -> None:
    """Not those to a name that holds no address: [MS-MQQB] 2.2.4, 2.2.5."""
    packets = {vector.name: vector.data for vector in vectors.load("mqqb") if "-ack" in vector.name}
    address = "10.20.1.25"
    for other in ("10.20.1.2\u0661", "10.20.1.2\0", "10.20.1.2:", "1" * 10):
        data = packets["order-ack-tcp"].replace(address.encode("utf-16-le"), other.encode("utf-16-le"))
        packets[other] = data
    name, longer = (text.encode("utf-16-le") for text in ("OS:" + "1" * 60, "TCP:" + "1" * 59))
    queue = f"DIRECT={name.decode('utf-16-le')}\\PRIVATE$\\order_queue$"
    order_ack = mqqb.UserMessage(
        destination_queue=queue, label="QM Ordering Ack", priority=0, message_class=0xFF, body=bytes(36)
    )
    packets["longer"] = mqqb.encode(order_ack).replace(name, longer)
    final = packets["final-ack"]
    packets["of an unknown class"] = final[:70] + b"\1" + final[71:]
    ack = packets["order-ack-tcp"]
    for kind, header in {"that says nothing": bytes(4), "with a queue": b"\1\0\0\0" + bytes(16)}.items():
        begin = ack[:2] + struct.pack("<H", 0x20) + ack[4:8] + struct.pack("<I", len(ack + header))
        packets[f"a DebugHeader {kind}"] = begin + ack[12:] + header
    for data in packets.values():
        MESSAGES.assert_agrees(data)
    for kind in ("that says nothing", "with a queue"):
        # BaseHeader.Flags of an OrderAck is 0: this is another message, and stays one when it is written again
        found = mqqb.decode(packets[f"a DebugHeader {kind}"], strict=True)
        assert isinstance(found, mqqb.UserMessage)
        assert (found.kind, found.debug_header, found.acknowledged, found.violations) == (
            "user_message",
            True,
            None,
            (),
        )
        again = mqqb.decode(mqqb.encode(found))
        assert again == found
        assert again.kind == "user_message"


def test_each_violation_says_the_rule_that_it_breaks() -> None:
    for table in (mqqb.MESSAGES, mqqb.SESSIONS):
        assert tuple(name for name, _ in table.rules) == table.violation_names
    rules = dict(mqqb.MESSAGES.rules)
    assert rules["hop_count"] == "UserHeader.Flags: RC is at most 0x1D ([MS-MQMQ] 2.2.19.2)"
    algorithms = "0x8001, 0x8002, 0x8003, 0x8004, 0x800C or 0x800E"
    assert rules["hash_algorithm"] == f"HashAlgorithm: is {algorithms} ([MS-MQMQ] 2.2.19.3)"
