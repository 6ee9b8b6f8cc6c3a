"""``msmqwire encode``: what decode wrote in JSON decodes to the same rows again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqqb, mqsd
from msmqwire.capture.files.writing import CaptureWriter, Flow
from msmqwire.notification.sender import Change, QueueCreation, QueueDeletion, QueueUpdate
from tests.capture.build import START
from tests.cli.support import EXAMPLES, V1, msmqwire, refused, run
from tests.mqqb.messages import FULL
from tests.notification.sent import LEDGER, MANAGER, ORDERS, SERVICE, captured, changed

Row = dict[str, Any]
#: What a capture of its own says of a row, and what is spelled in one way only.
ELSEWHERE = {"file", "frame", "first_frame"}
SPELLED = {"destination_queue", "admin_queue", "response_queue"}


def decoded(path: Path, table: str) -> list[Row]:
    done = msmqwire("decode", path, "--table", table, "-T", "json", "-q")
    return [json.loads(line) for line in done.stdout.splitlines()]


def comparable(rows: list[Row]) -> list[Row]:
    """Rows of all tables in one order, but for what another capture makes different."""
    found = [
        {
            name: value.lower() if name in SPELLED and value else value
            for name, value in row.items()
            if name not in ELSEWHERE
        }
        for row in rows
    ]
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def encoded(tmp_path: Path, rows: list[Row], *options: str, status: int = 0) -> Path:
    """The capture of rows."""
    lines, path = tmp_path / "rows.jsonl", tmp_path / "encoded.pcap"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found, _, errors = run("encode", lines, "-o", path, *options)
    assert found == status, errors
    return path


def written(tmp_path: Path, *packets: bytes) -> Path:
    path = tmp_path / "packets.pcap"
    with path.open("wb") as file:
        writer = CaptureWriter(file)
        for number, packet in enumerate(packets):
            writer.stream(START + number, Flow("10.0.0.1", 50000, "10.0.0.2", 1801), packet)
    return path


@pytest.mark.parametrize("name", ["local-site.pcap", "message-session.pcap"])
def test_a_whole_capture(tmp_path: Path, name: str) -> None:
    rows = decoded(EXAMPLES / name, "all")
    again = decoded(encoded(tmp_path, rows), "all")
    assert len(rows) > 3
    assert comparable(again) == comparable(rows)
    times = [row["time"] for row in again if row["table"] == rows[-1]["table"]]
    assert times == sorted(times)


def test_what_no_sender_writes_is_left_out(tmp_path: Path) -> None:
    rows = decoded(EXAMPLES / "other-site.pcapng", "topology")
    good = [row for row in rows if row["fault"] is None and not row["violations"] and row["transport"] != "ipx"]
    assert 0 < len(good) < len(rows)
    assert comparable(decoded(encoded(tmp_path, rows, status=2), "topology")) == comparable(good)


def test_messages_with_names_that_are_not_valid_are_left_out(tmp_path: Path) -> None:
    """Nothing else of their capture is lost; a wrong name that was written by hand is an error."""
    names = ["DIRECT=OS:two words\\orders", "DIRECT=OS:server\\private$\\orders", "DIRECT="]
    rows = decoded(EXAMPLES / "message-session.pcap", "all")
    message = next(row for row in rows if row["table"] == "messages" and row["notification"] is None)
    lists = [message | {"message_id": 9 + number, "destination_queue": name} for number, name in enumerate(names)]
    elements = ["PRIVATE=557358d1-9150-9595-4997-b6e611ea26c6\\5", names[0]]
    lists.append(message | {"destination_queues": elements, "admin_queues": [], "response_queues": []})
    again = decoded(encoded(tmp_path, [*rows, *lists], status=2), "messages")
    assert len(again) == len([row for row in rows if row["table"] == "messages"]) + 1
    _, _, said = run("encode", tmp_path / "rows.jsonl", "-o", tmp_path / "encoded.pcap")
    assert said.endswith("packets written, 3 rows left out\n")
    by_hand = {"table": "messages", "destination_queue": names[0]}
    assert "is not a format name" in refused("encode", "-T", "hex", input=json.dumps(by_hand).encode())


def test_requests_with_bytes_that_servers_ignore(tmp_path: Path) -> None:
    path, request = tmp_path / "padded.pcap", V1.data + b"\1\2\3"
    with path.open("wb") as file:
        CaptureWriter(file).datagram(START, Flow("10.0.0.1", 50000, "10.0.0.2", 1801), request)
    (row,) = decoded(path, "topology")
    assert (row["trailing"], row["violations"]) == ("010203", [])
    (again,) = decoded(encoded(tmp_path, [row]), "topology")
    assert again["trailing"] is None
    assert comparable([again | {"trailing": row["trailing"]}]) == comparable([row])


@pytest.mark.parametrize("valid", [False, True])
def test_notifications_are_left_out_with_their_message(tmp_path: Path, valid: bool) -> None:
    """A capture with a message that carries notifications, and one that carries none."""
    capture = EXAMPLES / "message-session.pcap"
    messages, changes = decoded(capture, "messages"), decoded(capture, "notifications")
    carrier = next(row for row in messages if row["notification"])
    place = ("frame", "stream_offset")
    carried = [row for row in changes if all(row[column] == carrier[column] for column in place)]
    rows = [carrier | {"table": "messages"}, *(row | {"table": "notifications"} for row in carried)]
    if not valid:
        rows[0]["violations"] = ["label_terminator"]
    other = next(row for row in messages if row["notification"] is None)
    path = encoded(tmp_path, [*rows, other | {"table": "messages"}], status=0 if valid else 2)
    assert len(decoded(path, "notifications")) == (len(carried) if valid else 0)
    _, _, said = run("encode", tmp_path / "rows.jsonl", "-o", path)
    assert said == ("2 packets written\n" if valid else f"1 packet written, {len(rows)} rows left out\n")


def test_every_header_of_a_message(tmp_path: Path) -> None:
    plain = mqqb.UserMessage(destination_queue="DIRECT=OS:server\\private$\\q", body=b"\0\1", label="ä")
    rows = decoded(written(tmp_path, mqqb.encode(FULL), mqqb.encode(plain)), "messages")
    assert all(rows[0][name] for name in ("soap_header", "destination_queues", "tx_sequence_id", "security_id"))
    assert comparable(decoded(encoded(tmp_path, rows, "--table", "messages"), "messages")) == comparable(rows)


def test_every_packet_of_a_session(tmp_path: Path) -> None:
    packets = [
        mqqb.EstablishConnection(client_guid=LEDGER, time_stamp=7, refused=True),
        mqqb.ConnectionParameters(recoverable_ack_timeout=1496, ack_timeout=120_000, window_size=64),
        mqqb.SessionAck(ack_sequence_number=1, window_size=64),
    ]
    rows = decoded(written(tmp_path, *map(mqqb.encode, packets)), "sessions")
    rows.append({**rows[0], "kind": "ping", "cookie": 5, "queue_manager": str(LEDGER), "transport": "udp"})
    guids_and_numbers = ("client_guid", "server_guid", "time_stamp", "operating_system", "packet_size", "stream_offset")
    for name in (*guids_and_numbers, "base_flags", "internal_flags"):
        rows[-1][name] = None
    rows[-1] |= {"dst_port": 3527, "initiator_is_client": True}
    assert comparable(decoded(encoded(tmp_path, rows, "--table", "sessions"), "sessions")) == comparable(rows)


def test_notifications_alone_come_in_messages_of_their_own(tmp_path: Path) -> None:
    changes: list[Change] = [
        QueueCreation(queue=ORDERS, queue_manager=LEDGER),
        QueueUpdate(old=ORDERS, new=changed(ORDERS, quota=7), queue_manager=LEDGER),
        QueueDeletion(queue=ORDERS, queue_manager=LEDGER),
    ]
    path = tmp_path / "sent.pcap"
    for sender in (SERVICE, MANAGER):
        path.write_bytes(captured(sender.notifications(changes)))
        rows = decoded(path, "notifications")
        again = decoded(encoded(tmp_path, rows, "--table", "notifications"), "notifications")
        assert comparable([{**row, "stream_offset": 0} for row in again]) == comparable(
            [{**row, "stream_offset": 0} for row in rows]
        )


def test_rows_out_of_which_some_were_taken(tmp_path: Path) -> None:
    """Of notifications of several messages, and beside a message that carries none of them: no row is lost."""
    capture = EXAMPLES / "message-session.pcap"
    changes, messages = decoded(capture, "notifications"), decoded(capture, "messages")
    updates = [row | {"table": "notifications"} for row in changes if row["version"] == 1 and row["index"] != 0]
    updates += [row | {"table": "notifications"} for row in changes if row["version"] == 2]
    again = decoded(encoded(tmp_path, updates), "notifications")
    assert len(again) == len(updates) > 1
    other = next(row for row in messages if row["notification"] is None)
    rows = [row | {"table": "notifications"} for row in changes] + [other | {"table": "messages"}]
    path = encoded(tmp_path, rows)
    assert len(decoded(path, "notifications")) == len(changes)


def test_by_hand(tmp_path: Path) -> None:
    """What a packet does not need may be left out, and so may where it was."""
    guids = {name: str(UUID(int=number)) for number, name in enumerate(("enterprise_id", "request_id", "site_id"), 1)}
    (row,) = decoded(encoded(tmp_path, [{"type": "request", **guids}]), "topology")
    assert {name: row[name] for name in guids} == guids
    assert (row["src"], row["dst"], row["dst_port"], row["time"]) == (
        "192.0.2.1",
        "192.0.2.2",
        1801,
        "1970-01-01T00:00:00.000000000Z",
    )
    deletion = {"version": 2, "operation": "delete", "object": "queue", "object_guid": guids["site_id"]}
    path = encoded(tmp_path, [{"table": "notifications", **deletion, "domain_controller": "dc1"}])
    (row,) = decoded(path, "notifications")
    assert {name: row[name] for name in deletion} == deletion


GUID = str(UUID(int=7))
MESSAGE = {"source_queue_manager": GUID, "message_id": 1, "destination_queue": "DIRECT=OS:server\\private$\\orders"}


@pytest.mark.parametrize(
    ("given", "body", "body_type"),
    [
        ({"body_text": "Größe"}, "Größe".encode("utf-16-le"), 31),
        ({"body_text": "<order/>", "body_type": 0}, b"<order/>", 0),
        ({"body_text": "17", "body_type_name": "VT_BSTR"}, "17".encode("utf-16-le"), 8),
        ({"body_text": "", "body": "", "body_type": 0}, b"", 0),
        ({"body_text": "17", "body": "11000000", "body_type": 3}, b"\x11\0\0\0", 3),
    ],
)
def test_a_body_may_be_text(tmp_path: Path, given: dict[str, Any], body: bytes, body_type: int) -> None:
    given = {name: value for name, value in given.items() if value != ""}
    (row,) = decoded(encoded(tmp_path, [{**MESSAGE, **given}]), "messages")
    assert (row["body"], row["body_type"]) == (body.hex(), body_type)
    assert row["body_text"] == given.get("body_text")


def test_an_edited_text_is_written_or_refused(tmp_path: Path) -> None:
    """A text that was changed in a row is never lost in silence."""
    path, output = tmp_path / "rows.jsonl", tmp_path / "out.pcap"
    rows = [row for row in decoded(EXAMPLES / "message-session.pcap", "messages") if row["body_text"]]
    assert rows
    for row in rows:
        edited = {**row, "body_text": row["body_text"] + " "}
        path.write_text(json.dumps(edited))
        assert "body_text: it contradicts body" in refused("encode", path, "-o", output)
        del edited["body"]
        (again,) = decoded(encoded(tmp_path, [edited]), "messages")
        assert again["body_text"] == edited["body_text"]


def test_the_table_follows_from_the_columns(tmp_path: Path) -> None:
    for name in ("local-site.pcap", "message-session.pcap"):
        for table in ("topology", "notifications", "messages", "sessions"):
            rows = decoded(EXAMPLES / name, table)
            if rows:
                assert len(decoded(encoded(tmp_path, rows), table)) >= len(rows)


def test_hexadecimal_digits() -> None:
    request = mqsd.TopologyClientRequest(enterprise_id=UUID(int=1), request_id=UUID(int=2), site_id=UUID(int=3))
    row = {"type": "request", "enterprise_id": UUID(int=1), "request_id": UUID(int=2), "site_id": UUID(int=3)}
    text = json.dumps(row, default=str) + "\n\n"
    done = msmqwire("encode", "-T", "hex", input=text.encode())
    assert (done.returncode, done.stdout.decode()) == (0, mqsd.encode(request).hex() + "\n")
    assert done.stderr == b"1 packet written\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2: expected a JSON object: Expecting property name"),
        ("[]", "line 2: expected a JSON object"),
        ('{"table": "faults"}', "there is no table faults"),
        ('{"type": "request", "typ": 1}', "no table has its columns; topology, which has most of them, has no typ"),
        ('{"table": "topology", "typ": "request"}', "typ: no such column of topology"),
        ("{}", "its columns are those of topology and of notifications"),
        ('{"kind": "pong", "cookie": 1}', "has no kind 'pong'"),
        ('{"table": "topology"}', "type is missing"),
        ('{"label": "x", "body": "31", "body_text": "2"}', "body_text: it contradicts body; leave body out"),
        ('{"label": "x", "body_text": "five", "body_type": 3}', "a body of body_type 3 cannot have this text"),
        ('{"label": "x", "body_type_name": "VT_I4", "body_type": 8}', "body_type_name: it contradicts body_type, 8"),
        ('{"label": "x", "body_type_name": "VT_X"}', "body_type_name: 'VT_X' is unknown"),
        ('{"label": "x", "security_id": "00", "sender_sid": "S-1-1-0"}', "sender_sid: it contradicts security_id"),
        ('{"type": "request"}', "line 2: TopologyClientRequest needs enterprise_id, request_id, site_id"),
        ('{"type": "reply", "site_id": null}', "TopologyServerReply needs correlation_id, connected_networks"),
        ('{"type": "reply", "trailing": "00"}', "TopologyServerReply has no trailing"),
        ('{"type": "reply", "servers": [{"nam": "mq1"}]}', "line 2: servers: no member is called nam"),
        ('{"type": "reply", "servers": [{"ip": true}]}', "DirectoryServiceServer needs name"),
        ('{"type": "reply", "servers": ["mq1"]}', "line 2: servers: expected an object, not 'mq1'"),
        ('{"table": "sessions", "kind": "ping", "cookie": 1, "time": 5}', "time: 5 is not an ISO 8601 time in text"),
        ('{"table": "messages", "sent_time": 5}', "line 2: sent_time: 5 is not an ISO 8601 time in text"),
        ('{"table": "messages", "transaction_id": 5}', "TransactionHeader needs tx_sequence_id, tx_sequence_number"),
        ('{"type": "rep"}', "type is missing or has an unknown name"),
        ("[" * 100_000, "nested too deeply"),
        ('{"table": "sessions", "kind": "pong"}', "kind is missing or has an unknown name"),
        ('{"table": "sessions", "kind": "ping", "cookie": 1, "queue_manager": "?"}', "'?' is not a GUID"),
        ('{"table": "messages", "body": "zz"}', "non-hexadecimal"),
        ('{"table": "messages", "destination_queue": "nowhere"}', "line 2: "),
        ('{"table": "messages", "sent_time": "yesterday"}', "is not an ISO 8601 time"),
        ('{"table": "notifications", "version": 1, "operation": "delete"}', "master_guid is missing"),
        ('{"label": "x", "message_class_name": []}', "line 2: message_class_name: expected a name, not []"),
        ('{"label": "x", "admin_queues": "0g"}', "line 2: admin_queues: expected a list, not '0g'"),
        ('{"type": "reply", "servers": ["a"]}', "line 2: servers: expected an object, not 'a'"),
        ('{"label": "x", "time": 5}', "line 2: time: 5 is not an ISO 8601 time"),
        ('{"label": "x", "src": 5}', "line 2: src: 5 is not an address"),
        ('{"label": "x", "dst": true}', "line 2: dst: True is not an address"),
        ('{"label": "x", "transport": "udp"}', "line 2: transport: tcp carries this packet, not udp"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, line: str, complaint: str) -> None:
    path, output = tmp_path / "rows.jsonl", tmp_path / "out.pcap"
    path.write_text(f"\n{line}\n")
    assert complaint in refused("encode", path, "-o", output)
    assert not output.exists()


def test_a_place_that_no_frame_can_have(tmp_path: Path) -> None:
    (row, *_) = decoded(EXAMPLES / "local-site.pcap", "topology")
    path = tmp_path / "rows.jsonl"
    for wrong, complaint in (
        ({"dst": "::1"}, "one version of IP"),
        ({"src_port": -1}, "line 1: -1 is not a port"),
        ({"src": "x"}, "'x'"),
        ({"src": 5}, "line 1: src: 5 is not an address"),
        ({"time": "noon"}, "line 1: time: 'noon' is not an ISO 8601 time"),
    ):
        path.write_text(json.dumps({**row, **wrong}))
        assert complaint in refused("encode", path, "-o", tmp_path / "out.pcap")
        assert complaint in refused("encode", path, "-T", "hex")
