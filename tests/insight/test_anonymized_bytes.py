"""Anonymized captures, byte by byte: what a sender leaves in padding, reserved fields and unknown bytes does not stay.

The rows that a reader finds stay: of packets that lost bytes, of streams on reused ports, of times that no capture has.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest

from msmqwire import mqcn, mqqb
from msmqwire.capture import read_tables
from msmqwire.insight.anonymize import anonymize, anonymize_payload
from msmqwire.insight.layouts import byte_map
from msmqwire.insight.pseudonyms import Pseudonyms
from tests.capture import build
from tests.cli.support import run
from tests.effort import long_cases
from tests.insight.captures import FIRST, WRITER, datagram, message, stream
from tests.insight.captures import write as write_capture
from tests.mqcn.test_statements import QUEUE, body_bytes, message_bytes, update_bytes
from tests.vectors import get

PSEUDONYMS = Pseudonyms(b"a key of 16 byte")
SECRET = "Frieda's wages".encode("utf-16-le")
ROW = ("time", "transport", "stream_offset", "packet_size", "message_id", "message_size", "unrecognized_size", "fault")


def rewritten(payload: bytes, layout: str = "messages") -> bytes:
    """The anonymized payload."""
    found = anonymize_payload(payload, layout, PSEUDONYMS)
    assert found is not None
    assert len(found) == len(payload)
    return found


def anonymized(path: Path) -> bytes:
    """The anonymized capture, which has the rows of the capture."""
    output = io.BytesIO()
    done = anonymize(path, output, b"a key of 16 byte")
    assert not done.left_out
    assert rows(io.BytesIO(output.getvalue())) == rows(path)
    return output.getvalue()


def rows(source: Any) -> list[tuple[Any, ...]]:
    return [
        tuple(row.get(name) for name in ROW)
        for _, batch in read_tables(source, guid="text")
        for row in batch.to_pylist()
    ]


def further(flags: int, data: bytes) -> bytes:
    """A message with further headers."""
    packet = bytearray(message() + data)
    struct.pack_into("<I", packet, 8, len(packet))
    (known,) = struct.unpack_from("<I", packet, 60)
    struct.pack_into("<I", packet, 60, known | flags)
    return bytes(packet)


def test_padding_of_connections_does_not_stay() -> None:
    packet = get("mqqb", "establish-connection").data
    assert len(packet) == 572
    found = rewritten(packet[:60] + (SECRET * 20)[:512], "sessions")
    assert found[60:] == bytes(512)


def test_names_of_providers_have_pseudonyms() -> None:
    security = mqqb.SecurityHeader(security_flags=0x80, provider_info=struct.pack("<I", 24) + SECRET + bytes(2))
    packet = mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", security=security))
    found = mqqb.decode(rewritten(packet))
    assert isinstance(found, mqqb.UserMessage)
    assert found.security is not None
    assert found.security.provider_info == struct.pack("<I", 24) + PSEUDONYMS.text("Frieda's wages\0").encode(
        "utf-16-le"
    )


@pytest.mark.parametrize(
    ("layout", "packet"),
    [
        ("topology", WRITER["PRINTED_REQUEST"]),
        ("topology", WRITER["reply"](FIRST, [FIRST], FIRST, "10alpha")),
        ("ping", WRITER["ping"](4, FIRST)),
        ("sessions", get("mqqb", "establish-connection").data),
        ("messages", get("mqqb", "every-header").data),
    ],
    ids=["request", "reply", "ping", "establish-connection", "message"],
)
def test_the_beginning_of_a_guid_does_not_stay(layout: str, packet: bytes) -> None:
    """Where a packet is truncated, or loses bytes, in a GUID."""
    guids = [part for part in byte_map(layout, packet) if part.field.type == "guid" and any(part.value[:15])]
    assert guids
    for part in guids:
        for size in range(1, 16):
            cut = packet[: part.start + size]
            for lost in (0, len(packet) - len(cut)):
                found = anonymize_payload(cut, layout, PSEUDONYMS, lost)
                assert found is not None
                assert found[part.start :] == bytes(size)


def test_networks_of_ipx_have_pseudonyms_and_bytes_after_them_do_not_stay() -> None:
    request = WRITER["PRINTED_REQUEST"][:52]
    found = rewritten(request + struct.pack("<3I", 2, 0x0A141E28, 0) + b"secrets", "topology")
    assert struct.unpack("<3I", found[52:64]) == (2, PSEUDONYMS.network(0x0A141E28), 0)
    assert found[64:] == bytes(7)
    # An address of this network has the same one
    assert PSEUDONYMS.address("0A141E28.0102030405AB")[:8] == f"{PSEUDONYMS.network(0x0A141E28):08X}"
    for size in range(len(request), len(request) + 12):
        assert len(rewritten((request + struct.pack("<3I", 2, 0x0A141E28, 7))[:size], "topology")) == size


def test_names_of_servers_without_flags_have_pseudonyms() -> None:
    reply = WRITER["reply"](FIRST, [FIRST], FIRST, "PAYROLL,10WAGES")
    found = rewritten(reply, "topology")
    for word in ("PAYROLL", "PA", "WAGES"):
        assert word.encode("utf-16-le") not in found
    assert ",10".encode("utf-16-le") in found


def test_reserved_bytes_of_acknowledgments_do_not_stay() -> None:
    packet = bytearray(get("mqqb", "order-ack").data)
    acknowledgment = mqqb.decode(packet)
    assert isinstance(acknowledgment, mqqb.UserMessage)
    body = bytes(acknowledgment.body)
    assert len(body) == 36
    at = packet.index(body)
    packet[at + 16 : at + 36] = SECRET[:20]
    found = rewritten(bytes(packet))
    assert found[at : at + 36] == body[:16] + bytes(20)


def test_reserved_bytes_of_notifications_do_not_stay() -> None:
    """Receivers ignore Reserved ([MS-MQCN] 2.2.6), so senders may write any bytes; it is not left out."""
    body = message_bytes(update_bytes(reserved=SECRET[:24]), update_bytes())
    packet = message(queue="OS:server\\private$\\notify_queue$", body=body)
    found = mqqb.decode(rewritten(packet))
    assert isinstance(found, mqqb.UserMessage)
    (first, second) = mqcn.decode(found.body, strict=True).updates
    assert first == second
    assert (first.guid_identifier, first.reserved) == (PSEUDONYMS.guid(QUEUE), bytes(24))


@pytest.mark.parametrize("closing", ["</ObjectGuid >", "</ObjectGuid>"])
@pytest.mark.parametrize("tail", ["", "\0"])
def test_the_case_of_a_notification_does_not_matter(closing: str, tail: str) -> None:
    text = body_bytes(closing=closing, name="payroll")[2:].decode("utf-16-le").lower() + tail
    body = b"\2\1" + text.encode("utf-16-le") + b"\7"
    found = mqqb.decode(rewritten(message(queue="OS:server\\private$\\notify_queue$", body=body)))
    assert isinstance(found, mqqb.UserMessage)
    assert mqcn.decode(found.body, strict=True).body == (2, PSEUDONYMS.guid(QUEUE), PSEUDONYMS.text("payroll"))


@pytest.mark.parametrize("letters", ["😀", "e\u0301", "\ue000\ue001", "\ud800", "\u0928\u094d\u0926"])
def test_symbols_and_marks_have_pseudonyms(letters: str) -> None:
    found = PSEUDONYMS.text(f"a {letters} b")
    assert not set(letters) & set(found[2:-2])
    assert len(found.encode("utf-16-le", "surrogatepass")) == len(f"a {letters} b".encode("utf-16-le", "surrogatepass"))
    assert PSEUDONYMS.text("“ – … \u3000?") == "“ – … \u3000?"


def test_bytes_between_and_after_further_headers_do_not_stay() -> None:
    text = "Frieda\0".encode("utf-16-le")
    envelope = struct.pack("<2HI", 0, 0, 7) + text
    soap = struct.pack("<2HI", 800, 0, 7) + text + struct.pack("<2HI", 900, 0, 7) + text
    packet = further(0x12000000, envelope + b"zq" + soap + b"xyj")
    row: Any = mqqb.decode_batch([packet]).to_arrow().to_pylist()[0]
    assert (row["fault"], row["srmp_envelope"], row["soap_body"]) == (None, "Frieda", "Frieda")
    pseudonym = (PSEUDONYMS.text("Frieda") + "\0").encode("utf-16-le")
    start = len(message())
    assert rewritten(packet)[start:] == (envelope + bytes(2) + soap).replace(text, pseudonym) + bytes(3)


@pytest.mark.parametrize("size", [7, 8, 9, 14])
def test_of_a_further_header_with_a_fault_the_numbers_stay(size: int) -> None:
    packet = further(0x10000000, (struct.pack("<2HI", 0, 0, 100) + SECRET)[:size])
    start = len(message())
    found = rewritten(packet)
    assert found[start:] == (packet[start : start + 8] + bytes(size))[:size] if size > 7 else bytes(size)


def test_packets_that_lost_bytes_keep_what_is_whole(tmp_path: Path) -> None:
    frames = stream([message(), message(number=2, label="Payroll", body=SECRET * 300), message(number=3)])
    lost = [frame for frame in frames if len(frame) > 1000][-2]
    path = write_capture(tmp_path / "x.pcap", [frame for frame in frames if frame is not lost])
    assert [row[-1] and row[-1]["field"] for row in rows(path)] == [None, "MessageBody", None]
    output = anonymized(path)
    for secret in (SECRET, "Payroll".encode("utf-16-le")):
        assert secret not in output


@pytest.mark.parametrize(
    "headers", ["every-header", "order-ack", *long_cases(["soap", "multiple-queues", "F7-user-message"])]
)
def test_a_packet_cut_anywhere_keeps_its_fault(headers: str) -> None:
    packet = get("mqqb", headers).data
    for size in range(0, len(packet), 1 if len(packet) < 800 else 16):
        found = anonymize_payload(packet[:size], "messages", PSEUDONYMS, len(packet) - size)
        assert found is None or len(found) == size
        if headers in ("F7-user-message", "soap", "multiple-queues"):
            assert found is not None


@pytest.mark.parametrize("name", ["multiple-queues", "http-envelope-and-request", "http-request-before-soap"])
def test_a_packet_cut_in_further_headers_stays(name: str) -> None:
    """With its numbers, those of a SessionHeader too, and without the names of its complete headers."""
    packet = bytearray(get("mqqb", name).data)
    (start,) = (part.start for part in byte_map("messages", bytes(packet)) if part.name == "further headers")
    packet[2] |= 0x10
    session = bytes(range(1, 17))
    whole = bytes(packet) + session
    secrets = ["srv".encode("utf-16-le"), "orders".encode("utf-16-le"), b"HTTP"]
    secrets += [whole[144:160]] if name == "multiple-queues" else []
    for size in range(start, len(whole), 3):
        found = anonymize_payload(whole[:size], "messages", PSEUDONYMS, len(whole) - size)
        assert found is not None
        assert found[len(packet) :] == session[: max(0, size - len(packet))]
        if name == "multiple-queues" and size >= start + 12:
            assert found[start : start + 12] == whole[start : start + 12]
        assert not [secret for secret in secrets if secret in found[start:]]


def test_datagrams_that_lost_bytes_keep_their_fault(tmp_path: Path) -> None:
    request = WRITER["PRINTED_REQUEST"]
    frames = [datagram(request), build.ethernet(0x86DD, build.ipv6(build.udp(request)), [(0x8100, 5)])]
    records = [build.pcap_record(frame[:-10], original=len(frame)) for frame in frames]
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap_header() + b"".join(records))
    assert [row[-1]["code"] for row in rows(path)] == ["incomplete"] * 2
    anonymized(path)


@pytest.mark.parametrize("size", [1, 2, 4, 5, 7, 8, 15])
def test_packets_of_which_a_few_bytes_are_left_keep_their_fault(tmp_path: Path, size: int) -> None:
    *opening, data, _, _, _ = stream([message()])
    records = [build.pcap_record(frame) for frame in opening]
    records.append(build.pcap_record(data[: 54 + size], original=len(data)))
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap_header() + b"".join(records))
    assert [row[-1]["code"] for row in rows(path)] == ["incomplete"]
    anonymized(path)


def test_a_complete_notification_in_a_packet_that_lost_its_end_stays(tmp_path: Path) -> None:
    body = get("mqcn", "C2-change-queue").data + b" "
    packet = bytearray(message(queue="OS:server\\private$\\notify_queue$", body=body))
    packet[2] |= 0x10  # a SessionHeader, all of which is lost
    path = tmp_path / "x.pcap"
    *opening, data, _, _, _ = stream([bytes(packet) + bytes(12)])
    records = [build.pcap_record(frame) for frame in opening]
    records.append(build.pcap_record(data[:-12], original=len(data)))
    path.write_bytes(build.pcap_header() + b"".join(records))

    def judged(source: Any) -> list[tuple[Any, ...]]:
        columns = "operation", "object", "outcome", "rule", "fault"
        return [
            tuple(row[name] for name in columns)
            for _, batch in read_tables(source, ["notifications"])
            for row in batch.to_pylist()
        ]

    assert [row[-1]["field"] for row in rows(path) if row[-1]] == ["SessionHeader"]
    assert [row[1] for row in judged(path)] == ["queue"]
    assert judged(io.BytesIO(anonymized(path))) == judged(path)


def test_the_body_of_a_message_that_lost_its_end_does_not_stay() -> None:
    packet = message(body=SECRET)
    found = anonymize_payload(packet[:-1], "messages", PSEUDONYMS, 1)
    assert found is not None
    assert SECRET not in found


def test_bytes_of_no_packet_keep_their_number(tmp_path: Path) -> None:
    request = b"GET /frieda HTTP/1.0\r\n" * 300
    path = write_capture(tmp_path / "x.pcap", stream([request, message()]))
    assert rows(path)[0][-2] == len(request)
    assert b"frieda" not in anonymized(path)


def test_a_base_header_with_a_packet_size_that_is_not_allowed_keeps_its_fault(tmp_path: Path) -> None:
    packet = message(body=b"frieda")
    path = write_capture(tmp_path / "x.pcap", stream([packet[:8] + b"\xff" * 4 + packet[12:], message()]))
    numbers = {"value": 0xFFFFFFFF, "needed": 4 << 20}
    assert rows(path)[0][-1] == {"code": "too_large", "field": "PacketSize", "offset": 8, **numbers}
    assert b"frieda" not in anonymized(path)


def test_a_stream_between_equal_ends_keeps_its_offsets(tmp_path: Path) -> None:
    packets = [message(number=number) for number in range(3)]
    path = write_capture(tmp_path / "x.pcap", stream(packets, "192.0.2.1", "192.0.2.1", 1801))
    assert [row[4] for row in rows(path)] == [0, 1, 2]
    anonymized(path)


def test_connections_on_reused_ports_stay_apart(tmp_path: Path) -> None:
    talks = [stream([message(number=10 * talk + number) for number in range(4 - talk)]) for talk in range(3)]
    path = write_capture(tmp_path / "x.pcap", [frame for frames in talks for frame in frames])
    assert [row[4] for row in rows(path)] == [0, 1, 2, 3, 10, 11, 12, 20, 21]
    anonymized(path)


def test_a_connection_on_reused_ports_in_which_the_server_speaks_first(tmp_path: Path) -> None:
    """The client's first packet says that it is another connection, and must not end the server's stream."""
    first, second = (WRITER["Conversation"]("192.0.2.7", 40001, "10.20.1.25", 1801) for _ in range(2))
    first.send(0, message(number=1))
    first.close()
    second.send(1, message(number=2))
    second.send(0, message(number=3))
    second.send(1, b"220 frieda\r\n")
    path = write_capture(tmp_path / "x.pcap", first.frames + second.frames)
    assert [(row[4], row[6]) for row in rows(path)] == [(1, None), (2, None), (3, None), (None, 12)]
    anonymized(path)


def test_bytes_of_no_packet_after_a_packet_that_is_left_out_are_counted(tmp_path: Path) -> None:
    """In one connection, and where another one follows on its ports: readers find no such bytes after a gap."""
    unread = message(queue="OS:server\\private$\\notify_queue$", body=b"\1\xff")
    first, second = (WRITER["Conversation"]("192.0.2.7", 40001, "10.20.1.25", 1801) for _ in range(2))
    for talk, packets in ((first, (unread, b"GET /", message(number=2))), (second, (unread, b"220 "))):
        for packet in packets:
            talk.send(0, packet)
        talk.close()
    path = write_capture(tmp_path / "x.pcap", first.frames + second.frames)
    output = io.BytesIO()
    done = anonymize(path, output, bytes(16))
    assert done.packets == len(rows(io.BytesIO(output.getvalue()))) == 1
    assert done.left_out == {
        "a header or notification that cannot be read": 2,
        "bytes of no packet after one that was left out": 2,
    }
    status, _, errors = run("anonymize", str(path), "-o", str(tmp_path / "safe.pcap"))
    assert status == 2
    assert "2 packets left out: bytes of no packet after one that was left out\n" in errors


def test_times_that_a_capture_cannot_have_are_left_out(tmp_path: Path) -> None:
    frame = datagram(WRITER["PRINTED_REQUEST"])
    frames = build.packet(frame, stamp=5_000_000_000_000_000) + build.packet(frame) + build.simple_packet(frame)
    path = tmp_path / "x.pcapng"
    path.write_bytes(build.section() + build.interface() + frames)
    output = io.BytesIO()
    done = anonymize(path, output, bytes(16))
    assert (done.packets, done.left_out) == (2, {"a time before 1970 or after 2106": 1})


def test_the_command_counts_what_it_cannot_read(tmp_path: Path) -> None:
    path = write_capture(tmp_path / "x.pcap", stream([message(number=number) for number in range(3)]))
    path.write_bytes(path.read_bytes()[:-20])
    status, _, errors = run("anonymize", str(path), "-o", str(tmp_path / "safe.pcap"))
    assert (status, errors.count("not read: ")) == (2, 1)
