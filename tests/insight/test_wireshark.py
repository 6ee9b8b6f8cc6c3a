"""The dissector for Wireshark shows the values, names, texts and problems of our rows, on every vector."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from msmqwire import mqcn, mqqb, propvariant
from msmqwire.capture import TABLES, read_tables
from msmqwire.insight.layouts import LAYOUTS
from msmqwire.insight.wireshark import dissector
from msmqwire.mqcn.schema import OPERATIONS
from msmqwire.mqqb.message.classes import MESSAGE_CLASSES
from msmqwire.notification.envelope import NOTIFY_QUEUE
from msmqwire.properties import type_of
from msmqwire.wire.codes import FAULTS
from tests.capture.build import pcap_header, pcap_record, segment
from tests.cli.test_decode_hostile import steering
from tests.insight.captures import EXAMPLES, ROOT, WRITER, datagram, message, stream
from tests.insight.captures import write as write_capture
from tests.insight.test_layouts import cases
from tests.system_programs import require_program
from tests.vectors import get, load

#: The layouts of packets; notifications are bodies of messages.
PACKETS = tuple(layout for layout in LAYOUTS if layout != "notifications")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("wireshark") / "msmq.lua"
    path.write_text(dissector(), "utf-8")
    return path


def tshark(script: Path, capture: Path, *fields: str) -> list[dict[str, list[str]]]:
    """The values of fields in each frame, as tshark shows them."""
    command = [
        require_program("tshark"), "-X", f"lua_script:{script}", "-r", str(capture), "-T", "json",
        *(word for field in (*fields, "_ws.lua.error") for word in ("-e", field)),
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert "Lua" not in done.stderr, done.stderr
    layers = [packet["_source"].get("layers", {}) for packet in json.loads(done.stdout)]
    assert not any("_ws.lua.error" in layer for layer in layers)
    return layers


@cache
def dissected(script: Path, capture: Path) -> dict[str, list[str]]:
    """The values of each field with a column, in the order of the frames."""
    fields = sorted({f"msmq.{name}.{field.shown}" for name in PACKETS for field in LAYOUTS[name] if field.shown})
    fields += ["msmq.messages.destination_queue", "msmq.messages.body_text", "msmq.notifications.version"]
    layers = tshark(script, capture, *fields)
    return {field: [value for layer in layers for value in layer.get(field, [])] for field in fields}


def as_shown(value: Any) -> str:
    """A value as tshark shows it."""
    return value.hex() if isinstance(value, bytes) else str(value)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every vector without a fault, in streams and datagrams."""
    frames, port = [], 20000
    for case in cases():
        layout, payload, row = case.values
        # tshark takes padding that is missing, and bytes after a packet, from the next packet
        if "trailing_bytes" in (row["violations"] or ()):
            continue
        if layout in ("messages", "sessions"):
            frames += stream([payload], port=port)
            port += 1
        else:
            frames.append(datagram(payload, to=3527 if layout == "ping" else 1801))
    return write_capture(tmp_path_factory.mktemp("vectors") / "vectors.pcap", frames)


def rows_of(layout: str, capture: Path) -> list[dict[str, Any]]:
    return [
        row
        for table, batch in read_tables(capture, guid="text")
        if table == ("sessions" if layout == "ping" else layout)
        for row in batch.to_pylist()
        if layout in ("topology", "messages") or (row["kind"] == "ping") == (layout == "ping")
    ]


@pytest.mark.parametrize("layout", PACKETS)
def test_tshark_shows_our_values(script: Path, vectors: Path, layout: str) -> None:
    columns = [field.shown for field in LAYOUTS[layout] if field.shown]
    for capture in (vectors, *EXAMPLES):
        rows = rows_of(layout, capture)
        found = dissected(script, capture)
        shown = {column: found[f"msmq.{layout}.{column}"] for column in columns}
        for column in columns:
            expected = [as_shown(row[column]) for row in rows if row[column] not in (None, b"")]
            if any(row["fault"] for row in rows):
                # tshark shows the fields before the fault
                assert set(expected) <= set(shown[column])
            else:
                assert [value for value in shown[column] if value] == expected, column
        assert rows or capture in EXAMPLES


def test_tshark_shows_queues_and_texts(script: Path, vectors: Path) -> None:
    compared = 0
    for capture in (vectors, *EXAMPLES):
        rows, found = rows_of("messages", capture), dissected(script, capture)
        queues = [row["destination_queue"] for row in rows if row["destination_queue"]]
        # tshark writes the names of queues of any form but those of a distribution list
        assert found["msmq.messages.destination_queue"] == queues
        texts = found["msmq.messages.body_text"]
        assert set(texts) <= {row["body_text"] for row in rows}
        compared += len(texts)
    assert compared >= 3


def test_tshark_shows_texts_beyond_ascii(script: Path, tmp_path: Path) -> None:
    bodies = [
        (0, "<a>Grüße 東京 😀</a>".encode(), "<a>Grüße 東京 😀</a>"),
        (30, "Grüße".encode(), "Grüße"),
        (30, "Grüße".encode("cp1252"), "Grüße"),
        (0, b"<a>\xff</a>", None),
        (8, "Grüße 東京 😀".encode("utf-16-le"), "Grüße 東京 😀"),
    ]
    messages = [
        mqqb.UserMessage(destination_queue=r"DIRECT=OS:a\b", body=body, body_type=kind) for kind, body, _ in bodies
    ]
    frames = [segment(mqqb.encode(each), 1, source=20000 + at) for at, each in enumerate(messages)]
    capture = write_capture(tmp_path / "x.pcap", frames)
    assert [row["body_text"] for row in rows_of("messages", capture)] == [text for _, _, text in bodies]
    layers = tshark(script, capture, "msmq.messages.body_text")
    # Lua cuts text that it converts from windows-1252, so the dissector shows none
    shown = [None if at == 2 else text for at, (_, _, text) in enumerate(bodies)]
    assert [layer.get("msmq.messages.body_text", [None]) for layer in layers] == [[text] for text in shown]


def notified(path: Path, bodies: Iterable[bytes]) -> Path:
    """A capture of messages to the notify queue, each in a connection from a port of its own."""
    packets = [message(queue=NOTIFY_QUEUE, body=body) for body in bodies]
    return write_capture(
        path, [frame for at, packet in enumerate(packets) for frame in stream([packet], port=20000 + at)]
    )


def shown_by_port(script: Path, capture: Path, *fields: str) -> dict[int, dict[str, list[str]]]:
    """The values of fields in the packets from each port."""
    found: defaultdict[int, dict[str, list[str]]] = defaultdict(dict)
    for layer in tshark(script, capture, "tcp.srcport", *fields):
        of_port = found[int(layer["tcp.srcport"][0]) - 20000]
        for field in fields:
            of_port[field] = of_port.get(field, []) + layer.get(field, [])
    return found


def test_tshark_shows_change_notifications(script: Path, tmp_path: Path) -> None:
    vectors = [vector for vector in load("mqcn") if vector.packet is not None]
    judged = {code for field in LAYOUTS["notifications"] for row in (field, *field.fields) for code in row.checks}
    names = ["command", "path_name", "object_guid", "master_guid", "reserved", "property_id"]
    names += [f"properties.{member}" for member in ("int", "guid", "text", "bytes")]
    fields = [f"msmq.notifications.{name}" for name in names]
    capture = notified(tmp_path / "x.pcap", [vector.data for vector in vectors])
    shown = shown_by_port(script, capture, "_ws.expert.message", *fields)
    for number, vector in enumerate(vectors):
        updates = mqcn.decode(vector.data).updates
        properties = [each for update in updates for each in update.properties]
        expected: list[list[Any]] = [
            [OPERATIONS.index(update.command) for update in updates],
            [update.path_name for update in updates if not update.use_guid],
            [update.guid_identifier for update in updates if update.use_guid],
            [update.guid_master_id for update in updates],
            [update.reserved.hex() for update in updates],
            [each.id for each in properties],
            *([each.value for each in properties if isinstance(each.value, kind)] for kind in (int, UUID, str)),
            [
                propvariant.encode(type_of(each.id) or 0, each.value).hex()
                for each in properties
                if isinstance(each.value, np.ndarray | tuple)
            ],
        ]
        found = shown[number]
        assert [found[field] for field in fields] == [[replaced(str(value)) for value in each] for each in expected]
        codes = {text.split(":")[0] for text in found["_ws.expert.message"]} & judged
        assert codes == set(vector.outcomes[0].violations) & judged, vector.name


def replaced(text: str) -> str:
    """A text as Wireshark shows it, which has no lone surrogates."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def test_a_malformed_notification_is_no_error_of_lua(script: Path, tmp_path: Path) -> None:
    corpus = sorted((ROOT / "fuzz" / "corpus" / "notification_message").iterdir())
    bodies = [path.read_bytes() for path in corpus] + [vector.data for vector in load("mqcn")]
    cut = get("mqcn", "C2-change-queue").data[:-1]
    capture = notified(tmp_path / "x.pcap", [cut, *(body for body in bodies if body)])
    shown = shown_by_port(script, capture, "msmq.notifications.version", "_ws.expert.message")
    assert "truncated: PropertyValue[1]" in shown[0]["_ws.expert.message"]
    assert len(shown) > len(bodies) - 9


def test_notifications_are_those_that_can_be_read(script: Path) -> None:
    for capture in EXAMPLES:
        plain = [row for row in rows_of("messages", capture) if row["notification"] == "plain"]
        assert len(dissected(script, capture)["msmq.notifications.version"]) == len(plain)


def test_tshark_shows_what_is_truncated(script: Path, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "x.pcap", [datagram(WRITER["PRINTED_REQUEST"][:30])])
    (layer,) = tshark(script, capture, "msmq.topology.enterprise_id", "msmq.topology.request_id", "_ws.expert.message")
    assert len(layer["msmq.topology.enterprise_id"]) == 1
    assert "msmq.topology.request_id" not in layer
    assert layer["_ws.expert.message"] == ["truncated: RequestID"]


def test_a_frame_cut_anywhere_is_no_error_of_lua(script: Path, tmp_path: Path) -> None:
    """A snapshot length cuts frames in headers, and between two packets of a segment."""
    packet = message()
    records = []
    for cut in range(2 * len(packet)):
        frame = segment(packet * 2, 1, source=20000 + cut)
        records.append(pcap_record(frame[: len(frame) - cut], original=len(frame)))
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap_header() + b"".join(records))
    shown = [layer["_ws.col.Info"][0].count("UserMessage") for layer in tshark(script, path, "_ws.col.Info")]
    assert shown == [2] * len(packet) + [1] * len(packet)


def test_a_size_above_the_limit_is_shown_at_once(script: Path, tmp_path: Path) -> None:
    packet, sizes = message(), (0x400001, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
    frames = [
        segment(packet + packet[:8] + size.to_bytes(4, "little") + packet[12:], 1, source=20000 + at)
        for at, size in enumerate(sizes)
    ]
    capture = write_capture(tmp_path / "x.pcap", frames)
    layers = tshark(script, capture, "msmq.messages.packet_size", "_ws.expert.message")
    for layer, size in zip(layers, sizes, strict=True):
        assert layer["msmq.messages.packet_size"] == [str(len(packet)), str(size)]
        assert layer["_ws.expert.message"][0].startswith("too_large: ")


@pytest.mark.parametrize("layout", PACKETS)
def test_expert_information_is_our_faults_and_violations(script: Path, tmp_path: Path, layout: str) -> None:
    """Each judged code is shown for the vectors that have it, and for no other."""
    table = "sessions" if layout == "ping" else layout
    vectors = [vector for vector in load("mqsd" if table == "topology" else "mqqb") if vector.table == table]
    payloads = [vector.data for vector in vectors]
    rows = TABLES[table].decode_batch(payloads).to_arrow(guid="text").to_pylist()
    judged = {code for field in LAYOUTS[layout] for code in field.checks}
    frames, expected = [], {}
    for number, (payload, row) in enumerate(zip(payloads, rows, strict=True)):
        codes = set(row["violations"] or ()) & judged
        if row["fault"] or "trailing_bytes" in (row["violations"] or ()):
            continue
        if layout in ("messages", "sessions") and payload[4:8] == b"LIOR":
            frames += stream([payload], port=20000 + number)
        elif (payload[2:4] == b"\x48\x55") == (layout == "ping"):
            frames.append(datagram(payload, port=20000 + number, to=3527 if layout == "ping" else 1801))
        else:
            continue
        expected[20000 + number] = codes
    capture = write_capture(tmp_path / "x.pcap", frames)
    shown: defaultdict[int, set[str]] = defaultdict(set)
    for layer in tshark(script, capture, "tcp.srcport", "udp.srcport", "_ws.expert.message"):
        (port,) = layer.get("tcp.srcport") or layer["udp.srcport"]
        shown[int(port)] |= {text.split(":")[0] for text in layer.get("_ws.expert.message", ())} & judged
    assert {port: shown[port] for port in expected} == expected
    if layout in ("messages", "sessions"):
        assert set.union(*expected.values()) == judged - FAULTS.keys()


def test_faults_of_single_fields(script: Path, tmp_path: Path) -> None:
    """A type, a count and a signature that are none."""
    request = WRITER["PRINTED_REQUEST"]
    reply = bytearray(next(vector.data for vector in load("mqsd") if vector.data[1] == 2))
    reply[20:24] = (33).to_bytes(4, "little")
    ping = bytes.fromhex("0000475504000000d1587355509195954997b6e611ea26c6")
    frames = [datagram(request[:1] + b"\3" + request[2:]), datagram(bytes(reply)), datagram(ping, to=3527)]
    layers = tshark(script, write_capture(tmp_path / "x.pcap", frames), "_ws.expert.message")
    found = [[text.split(":")[0] for text in layer["_ws.expert.message"]] for layer in layers]
    assert [codes[0] for codes in found] == ["bad_type", "bad_count", "bad_signature"]


def test_names_flags_and_times(script: Path, tmp_path: Path) -> None:
    capture = write_capture(tmp_path / "x.pcap", stream([message(number=1001, label="Order 0")]))
    command = [require_program("tshark"), "-X", f"lua_script:{script}", "-r", str(capture), "-V", "-O", "msmq"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    for line in (
        'UserMessage 1001 "Order 0" -> DIRECT=OS:server\\private$\\orders',
        "SentTime: Mar  4, 2024 08:00:00",
        "MessageClass: normal (0)",
        "DQ: direct (7)",
        "BodyType: VT_EMPTY (0)",
        "(for ever)",
        "MessageBody as text: <a/>",
    ):
        assert line in shown, (line, shown)


def test_the_info_column(script: Path) -> None:
    session = next(path for path in EXAMPLES if path.name == "message-session.pcap")
    info = [layer["_ws.col.Info"][0] for layer in tshark(script, session, "_ws.col.Info")]
    assert info[0] == "Ping cookie 4"
    assert info[5] == "EstablishConnection"
    assert info[7] == "ConnectionParameters"
    assert info[9].count("UserMessage") == 2
    assert info[12] == 'UserMessage 103 "Order 4711" -> DIRECT=TCP:10.20.1.25\\private$\\orders'
    assert info[14].startswith('UserMessage 8 order_ack "QM Ordering Ack" -> PRIVATE=')
    assert info[15] == "SessionAck 2"


def test_labels_and_queues_steer_no_terminal(script: Path, tmp_path: Path) -> None:
    steers = "\x1b[2J\x07\x7f\x9b31m\r\n\u061c\u200e\u2028\u202e\u2066"
    packet = message(queue=f"OS:{steers}\\q", label=f"a{steers}ä東b")
    capture = write_capture(tmp_path / "x.pcap", stream([packet]))
    for more in ([], ["-V"]):
        command = [require_program("tshark"), "-X", f"lua_script:{script}", "-r", str(capture), *more]
        shown = subprocess.run(command, check=True, capture_output=True, timeout=120).stdout.decode()
        # Of fields, Wireshark itself shows separators of lines as they are
        assert not steering(shown) - ({"\u2028"} if more else set())
        assert 'UserMessage 1 "a�[2J���31m�������ä東b" -> DIRECT=OS:�[2J���31m�������\\q' in shown


@pytest.mark.parametrize("layout", LAYOUTS)
def test_experts_are_warnings_for_violations_and_errors_for_faults(layout: str) -> None:
    table = TABLES["sessions" if layout == "ping" else layout].table
    shown = rf'ProtoExpert.new\("msmq.{layout}.expert.(\w+)", .*?expert.group.(\w+), expert.severity.(\w+)\)'
    found = re.findall(shown, dissector())
    assert found
    for code, group, severity in found:
        expected = ("PROTOCOL", "WARN") if code in table.violation_names else ("MALFORMED", "ERROR")
        assert (group, severity) == expected
        assert code in (*table.violation_names, *FAULTS)


def test_message_classes_have_names() -> None:
    assert "message_class" in dissector()
    assert all(name in dissector() for name in MESSAGE_CLASSES.values())
