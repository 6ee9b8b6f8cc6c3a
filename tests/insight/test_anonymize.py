"""Anonymized captures: sizes, times, faults and violations stay; no name, GUID, address or content does."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn, mqqb
from msmqwire.capture import TABLES, read_tables
from msmqwire.errors import EncodeError
from msmqwire.insight.anonymize import anonymize, anonymize_payload
from msmqwire.insight.pseudonyms import _KEYWORDS, Pseudonyms
from msmqwire.properties import (
    PROPID_Q_LABEL,
    PROPID_Q_QUOTA,
    PROPID_Q_SECURITY,
    PROPID_QM_ENCRYPTION_PK,
    PROPID_QM_OUTFRS_DN,
    PROPID_QM_SITE_IDS,
)
from tests.capture import build
from tests.cli.support import run
from tests.insight.captures import EXAMPLES, FIRST, SECOND, WRITER, datagram, message, stream
from tests.insight.captures import write as write_capture
from tests.vectors import get, load

KEY = b"a key of 16 byte"
GUID_LIKE_A_SID = UUID(bytes_le=bytes.fromhex("0102 8f11 44459078909ea0fc43cd8907"))
PSEUDONYMS = Pseudonyms(KEY)
# What stays: numbers, flags, times, sizes, and what the specification prints
KEPT = {
    "frame", "first_frame", "file", "encapsulation", "src", "dst", "body", "body_text", "body_format", "extension_data",
    "encryption_key", "signature", "sender_certificate", "http_body", "compound_body", "trailing", "security_id",
    "sender_sid", "multi_queue_signature", "ipx_networks",
}  # fmt: skip


def place(fault: dict[str, Any] | None) -> dict[str, Any] | None:
    """A fault without its numbers, which may be of characters or bytes that are replaced."""
    return fault and {name: fault[name] for name in ("code", "field", "offset")}


def of_vectors() -> Iterator[Any]:
    for protocol in ("mqsd", "mqqb"):
        for vector in load(protocol):
            if vector.table in ("topology", "messages", "sessions"):
                yield pytest.param(vector.table, vector.data, id=f"{vector.table}-{vector.name}")


def decoded(table: str, payload: bytes, transport: str) -> dict[str, Any]:
    options = {"transport": transport} if TABLES[table].takes_transport else {}
    row: dict[str, Any] = TABLES[table].decode_batch([payload], **options).to_arrow(guid="text").to_pylist()[0]
    return row


def plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float) or value == [] or value == ""


@pytest.mark.parametrize(("table", "payload"), list(of_vectors()))
def test_a_packet_keeps_all_but_its_names(table: str, payload: bytes) -> None:
    layout = "ping" if payload[2:4] == b"\x48\x55" else table
    transport = "udp" if layout in ("topology", "ping") else "tcp"
    rewritten = anonymize_payload(payload, layout, PSEUDONYMS)
    before = decoded(table, payload, transport)
    if rewritten is None:
        unknown = {"srmp_envelope_terminator", "soap_terminator"} & set(before["violations"] or ())
        lists = before.get("destination_queues") is not None
        assert before["fault"] is not None or before["notification"] == "plain" or unknown or lists
        return
    after = decoded(table, rewritten, transport)
    assert len(rewritten) == len(payload)
    assert (place(after["fault"]), after["violations"]) == (place(before["fault"]), before["violations"])
    for name in before.keys() - KEPT:
        if plain(before[name]) or name.endswith(("_name", "_time")) or name in ("kind", "type", "notification"):
            assert after[name] == before[name], name
        elif isinstance(before[name], str) and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", before[name]):
            assert after[name] == str(PSEUDONYMS.guid(UUID(before[name]))), name


def words_of(value: Any) -> Iterator[str]:
    """The words, GUIDs and contents in the values of a row."""
    if isinstance(value, dict):
        for each in value.values():
            yield from words_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from words_of(each)
    elif isinstance(value, str):
        yield from re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[^\W_]{4,}", value)


NAMED = ("label", "destination_queue", "admin_queue", "response_queue", "servers", "path_name", "domain_controller",
         "destination_queues", "admin_queues", "response_queues", "body_text", "soap_header", "soap_body",
         "srmp_envelope", "source_queue_manager", "queue_manager_address", "object_guid", "master_guid", "properties",
         "enterprise_id", "request_id", "site_id", "correlation_id", "connected_networks", "client_guid", "server_guid",
         "queue_manager", "correlation_guid", "connector_type", "debug_queue", "security_id")  # fmt: skip


def encodings(word: str) -> Iterator[bytes]:
    """A word as a capture may hold it."""
    if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", word):
        yield UUID(word).bytes
        yield UUID(word).bytes_le
    for text in {word, word.upper(), word.lower()} if word.isascii() else {word}:
        for encoding in ("utf-8", "utf-16-le", "utf-16-be"):
            yield text.encode(encoding, "surrogatepass")


@pytest.mark.long
def test_no_name_that_went_in_comes_out(tmp_path: Path) -> None:
    """Every word, GUID and address of every row is searched for in the output, in each encoding."""
    frames, port = [], 20000
    for case in of_vectors():
        table, payload = case.values
        # By accident a conforming packet of a session, with a GUID for its numbers
        if "internal-packet-as-message" in str(case.id):
            continue
        if table == "topology" or payload[2:4] == b"\x48\x55":
            frames.append(datagram(payload, to=1801 if table == "topology" else 3527))
        else:
            frames += stream([payload], port=port)
            port += 1
    secret = message(label="Payroll of Frieda", body=b"<salary>4242</salary>", queue="OS:paymaster\\private$\\wages")
    frames += stream([secret], port=port)
    capture = write_capture(tmp_path / "in.pcap", frames)
    output = io.BytesIO()
    done = anonymize([capture, *EXAMPLES], output, KEY)
    assert done.packets > 250
    assert sum(done.left_out.values()) < 30
    safe = output.getvalue()
    words = set()
    for _, batch in read_tables([capture, *EXAMPLES], guid="text"):
        for row in batch.to_pylist():
            words |= {word for name in NAMED for word in words_of(row.get(name))} | {row["src"], row["dst"]}
    # The tags of [MS-MQCN] 2.2.5, the label of acknowledgments, and the first group of addresses of IPv6
    kept = {"Notification", "Event", "ObjectGuid", "DomainController", "Ordering", str(UUID(int=0)), "fe80", "2001"}
    words = {word for word in words if word.lower() not in _KEYWORDS and word not in kept}
    assert {"Payroll", "Frieda", "salary", "4242", "paymaster", "wages", "nt4pec"} <= words
    searched = 0
    for word in words:
        for form in encodings(word):
            # Four digits or less may be sequence numbers, sizes or times
            if len(form) >= 8 or not word.isdigit():
                assert form not in safe, (word, form)
                searched += 1
    assert searched > 400


def test_a_stream_keeps_its_offsets_and_gaps(tmp_path: Path) -> None:
    frames = stream([message(number=number) for number in range(40)])
    data = [frame for frame in frames if len(frame) > 100]
    lost = data[10]
    capture = write_capture(tmp_path / "x.pcap", [frame for frame in frames if frame is not lost])
    output = io.BytesIO()
    anonymize(capture, output, KEY)

    def offsets(source: Any) -> list[int]:
        return [row["stream_offset"] for _, batch in read_tables(source) for row in batch.to_pylist()]

    assert offsets(io.BytesIO(output.getvalue())) == offsets(capture)


@pytest.mark.parametrize("size", range(1, 17))
def test_the_beginning_of_a_packet_before_a_gap_stays_one(size: int) -> None:
    packet = message()
    frames = [build.segment(packet + packet[:size], 100), build.segment(packet, 100 + 2 * len(packet))]
    capture, output = build.pcap([build.segment(b"", 99, 2), *frames]), io.BytesIO()
    anonymize(io.BytesIO(capture), output, KEY)

    def faults(data: bytes) -> list[Any]:
        rows = [row for _, batch in read_tables(io.BytesIO(data), ["messages"]) for row in batch.to_pylist()]
        return [(row["stream_offset"], row["fault"], row["unrecognized_size"]) for row in rows]

    assert faults(output.getvalue()) == faults(capture)


def test_datagrams_are_of_the_kind_that_they_were(tmp_path: Path) -> None:
    request, reply = WRITER["PRINTED_REQUEST"], WRITER["reply"](FIRST, [SECOND])
    pings = [datagram(WRITER["ping"](4, FIRST), to=3527), datagram(WRITER["ping"](4, SECOND), port=3527, to=40000)]
    capture = write_capture(tmp_path / "x.pcap", [datagram(request), datagram(reply, port=1801, to=40000), *pings])
    output = io.BytesIO()
    assert anonymize(capture, output, KEY).packets == 4
    rows = [(table, row) for table, batch in read_tables(io.BytesIO(output.getvalue())) for row in batch.to_pylist()]
    assert [row["fault"] for _, row in rows] == [None] * 4
    assert [row["type"] for table, row in rows if table == "topology"] == ["request", "reply"]
    assert [(row["kind"], row["cookie"]) for table, row in rows if table == "sessions"] == [("ping", 4)] * 2


@pytest.mark.parametrize(
    ("layout", "payload"),
    [
        ("topology", get("mqsd", "V1-request").data),
        ("topology", WRITER["reply"](FIRST, [SECOND], SECOND, "10alpha,01beta")),
        ("ping", WRITER["ping"](4, FIRST)),
        ("sessions", get("mqqb", "establish-connection").data),
        ("messages", get("mqqb", "plain").data),
        *(
            pytest.param("messages", get("mqqb", name).data, marks=pytest.mark.long)
            for name in ("every-header", "multiple-queues", "soap")
        ),
    ],
)
def test_every_truncation_keeps_its_size_and_fault(layout: str, payload: bytes) -> None:
    transport = "udp" if layout in ("topology", "ping") else "tcp"
    table = "sessions" if layout == "ping" else layout
    for size in range(len(payload)):
        rewritten = anonymize_payload(payload[:size], layout, PSEUDONYMS)
        assert rewritten is not None
        assert len(rewritten) == size
        before, after = (decoded(table, each, transport) for each in (payload[:size], rewritten))
        assert (place(after["fault"]), after["violations"]) == (place(before["fault"]), before["violations"])
        for guid in (FIRST, SECOND):
            assert guid.bytes_le not in rewritten


@pytest.mark.parametrize(
    ("kind", "claim", "pseudonym"),
    [
        (2, FIRST.bytes_le, PSEUDONYMS.guid(FIRST).bytes_le),
        # A SID of 16 bytes: a domain
        (1, bytes.fromhex("010200000000000515000000 efbeadde"), None),
        # A GUID whose first bytes are those of a short SID
        (2, GUID_LIKE_A_SID.bytes_le, PSEUDONYMS.guid(GUID_LIKE_A_SID).bytes_le),
    ],
)
def test_identifiers_of_senders(kind: int, claim: bytes, pseudonym: bytes | None) -> None:
    header = mqqb.SecurityHeader(security_flags=0x80 | kind, security_id=claim)
    packet = mqqb.encode(mqqb.UserMessage(destination_queue="DIRECT=OS:a\\b", security=header))
    rewritten = anonymize_payload(packet, "messages", PSEUDONYMS)
    assert rewritten is not None
    assert decoded("messages", rewritten, "tcp")["security_id"] == (pseudonym or PSEUDONYMS.sid(claim))
    assert claim not in rewritten


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    unread = message(queue="OS:server\\private$\\notify_queue$", body=b"\1\xff", number=2)
    ipx = build.ethernet(0x8137, build.ipx(WRITER["PRINTED_REQUEST"]))
    frames = [*stream([message(), unread, message(number=3), b"GET /secret HTTP/1.0\r\n\r\n"]), ipx]
    output = io.BytesIO()
    done = anonymize(write_capture(tmp_path / "x.pcap", frames), output, KEY)
    assert done.packets == 3
    assert done.left_out == {"transport ipx": 1, "a header or notification that cannot be read": 1}
    rows = [row for _, batch in read_tables(io.BytesIO(output.getvalue())) for row in batch.to_pylist()]
    assert [(row["message_id"], row["unrecognized"]) for row in rows] == [(1, None), (3, None), (None, bytes(24))]


def test_progress_is_in_bytes_read() -> None:
    read: list[int] = []
    anonymize(EXAMPLES[0], io.BytesIO(), KEY, progress=read.append)
    assert read[-1] == EXAMPLES[0].stat().st_size


def test_of_a_packet_of_another_version_the_base_header_stays() -> None:
    packet = message()
    other = b"\x11" + packet[1:]
    assert packet[16]
    assert anonymize_payload(other, "messages", PSEUDONYMS) == other[:16] + bytes(len(other) - 16)


def test_what_cannot_be_rewritten_is_left_out() -> None:
    """A text without its end, a list of queues with bytes that no value has, a notification that cannot be decoded."""
    left_out = {"terminator": 0, "list": 0}
    for vector in load("mqqb"):
        if vector.table == "messages":
            row = decoded("messages", vector.data, "tcp")
            rewritten = anonymize_payload(vector.data, "messages", PSEUDONYMS)
            if row["fault"] is None and {"srmp_envelope_terminator", "soap_terminator"} & set(row["violations"]):
                assert rewritten is None
                left_out["terminator"] += 1
            elif row["fault"] is None and row["destination_queues"] is not None and not is_canonical(vector.data):
                assert rewritten is None
                left_out["list"] += 1
    assert all(left_out.values())
    for body in (b"\1\xff", b"\2\1no text"):
        packet = message(queue="OS:server\\private$\\notify_queue$", body=body)
        assert decoded("messages", packet, "tcp")["notification"] == "plain"
        assert anonymize_payload(packet, "messages", PSEUDONYMS) is None


class Swapped(Pseudonyms):
    """Pseudonyms of GUIDs among which two change places."""

    def __init__(self) -> None:
        super().__init__(bytes(16))
        pseudonyms, pairs = self.guid, {FIRST: SECOND, SECOND: FIRST}
        self.guid = lambda guid: pairs.get(guid) or pseudonyms(guid)  # type: ignore[assignment]


def test_all_queues_of_a_list_are_replaced_at_once() -> None:
    """A pass for each of 200,000 queues of a packet took minutes."""
    lists = mqqb.MultiQueueFormatHeader(destination_queues=(f"PUBLIC={FIRST}", f"PUBLIC={SECOND}"))
    packet = mqqb.encode(
        mqqb.UserMessage(destination_queue=f"PUBLIC={FIRST}", queue_manager_address=SECOND, multi_queue=lists)
    )
    rewritten = anonymize_payload(packet, "messages", Swapped())
    assert rewritten is not None
    (row,) = mqqb.decode_batch([rewritten]).to_arrow().to_pylist()
    assert row["destination_queues"] == [f"PUBLIC={guid}" for guid in (SECOND, FIRST)]


def is_canonical(payload: bytes) -> bool:
    try:
        return mqqb.encode(mqqb.decode(payload)) == payload
    except EncodeError:
        return False


def test_notifications_have_pseudonyms_in_their_values() -> None:
    guid = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
    update = mqcn.NotificationUpdate(
        command="change",
        guid_identifier=guid,
        guid_master_id=guid,
        path_name=None,
        properties=[
            (PROPID_Q_LABEL, "Wages"),
            (PROPID_Q_SECURITY, b"granted"),
            (PROPID_QM_SITE_IDS, [guid, FIRST]),
            (PROPID_QM_OUTFRS_DN, ["alpha", "beta"]),
            (PROPID_QM_ENCRYPTION_PK, b"key"),
            (PROPID_Q_QUOTA, 17),
        ],
    )
    body = mqcn.encode_body(mqcn.ChangeNotificationMessage(1, [update]), enforce=False)
    packet = message(queue="OS:server\\private$\\notify_queue$", body=body)
    rewritten = anonymize_payload(packet, "messages", PSEUDONYMS)
    assert rewritten is not None
    (found,) = mqcn.decode(decoded("messages", rewritten, "tcp")["body"]).updates
    assert found.guid_identifier == found.guid_master_id == PSEUDONYMS.guid(guid)
    label, security, sites, names, public_key, quota = (each[1] for each in found.properties)
    assert (label, bytes(security), bytes(public_key), quota) == (PSEUDONYMS.text("Wages"), bytes(7), bytes(3), 17)
    assert [UUID(bytes_le=bytes(each)) for each in sites] == [PSEUDONYMS.guid(guid), PSEUDONYMS.guid(FIRST)]
    assert names == (PSEUDONYMS.text("alpha"), PSEUDONYMS.text("beta"))


def test_an_acknowledgment_stays_one() -> None:
    acks = [vector for vector in load("mqqb") if vector.table == "messages" and b"Q\0M\0 \0O\0" in vector.data]
    assert acks
    for vector in acks:
        rewritten = anonymize_payload(vector.data, "messages", PSEUDONYMS)
        assert rewritten is not None
        assert decoded("messages", rewritten, "tcp")["kind"] == decoded("messages", vector.data, "tcp")["kind"]


def test_the_command(tmp_path: Path) -> None:
    safe, again, key = tmp_path / "safe.pcap", tmp_path / "again.pcap", tmp_path / "key"
    other = next(path for path in EXAMPLES if path.name == "other-site.pcapng")
    status, _, errors = run("anonymize", str(other), "-o", str(safe), "--key-file", str(key))
    assert (status, errors) == (0, "10 packets written\n")
    assert key.stat().st_mode & 0o777 == 0o600
    assert run("anonymize", str(other), "-o", str(again), "--key-file", str(key))[0] == 0
    assert safe.read_bytes() == again.read_bytes()
    assert run("anonymize", str(other), "-o", str(again), "-q") == (0, "", "")
    assert safe.read_bytes() != again.read_bytes()


def test_what_the_command_refuses(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"short")
    status, _, errors = run("anonymize", str(EXAMPLES[0]), "-o", str(tmp_path / "x"), "--key-file", str(key))
    assert (status, "a key has at least 16 bytes, this file has 5" in errors) == (1, True)
    assert not (tmp_path / "x").exists()
