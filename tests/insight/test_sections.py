"""What each row of a table adds to the sections of a summary, from rows that are written here."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from msmqwire.capture import ReadOptions, arrow_schema
from msmqwire.insight import COLUMNS, SECTIONS, Summary, summarize
from msmqwire.insight.findings import CapturedRows, Detector
from msmqwire.insight.rules import RULES_BY_NAME
from msmqwire.mqqb.message.classes import MEANINGS, MESSAGE_CLASSES
from msmqwire.properties import PROPID_Q_PATHNAME, PROPID_Q_QMID, PROPID_QM_PATHNAME, PROPID_QM_SITE_ID
from tests.cli.support import run
from tests.insight.captures import FIRST, SECOND, THIRD, WRITER, datagram, message, stream, vector, write

MINUTE = 60_000_000_000
NOBODY = UUID(int=0)
BASE = {"file": "x.pcap", "frame": 1, "time": 0, "src": "10.0.0.1", "dst": "10.0.0.2", "violations": []}
MESSAGE = {
    "src_port": 4000, "dst_port": 1801, "stream_offset": 0, "packet_size": 100, "source_queue_manager": FIRST,
    "message_id": 1, "hop_count": 0, "destination_queue": "q", "message_class": 0, "message_class_name": "normal",
    "message_size": 10,
}  # fmt: skip
SESSION = {
    "src_port": 4000, "dst_port": 1801, "stream_offset": 0, "kind": "connection_parameters", "packet_size": 32,
    "refused": False,
}  # fmt: skip


def add_to(summary: Summary, table: str, *rows: dict[str, Any], guid: Any = "binary") -> None:
    """Add rows, whose missing columns are null."""
    schema = arrow_schema(table, COLUMNS[table], guid=guid, dictionaries=False)
    base = {"messages": MESSAGE, "sessions": SESSION}.get(table, {})
    made = []
    for at, row in enumerate(rows):
        row = {**BASE, "frame": at + 1, **base, **row}
        made.append(
            {
                name: (value.bytes if guid == "binary" else str(value)) if isinstance(value, UUID) else value
                for name, value in row.items()
            }
        )
    summary.add(table, pa.RecordBatch.from_pylist([{**dict.fromkeys(schema.names), **row} for row in made], schema))


def summary_of(table: str, *rows: dict[str, Any], guid: Any = "binary", sections: Any = SECTIONS) -> Summary:
    """The summary of rows, whose missing columns are null."""
    summary = Summary(sections=sections)
    add_to(summary, table, *rows, guid=guid)
    return summary


def rows_of(summary: Summary, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in summary.section(name).select(list(columns)).to_pylist()), key=str)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_as_many_rows_as_its_documentation_says(name: str) -> None:
    assert Summary().limits[name] == (262_144 if name == "repeated" else 100_000)


def test_times_are_counted_by_the_minute_in_which_they_lie() -> None:
    times = (5 * MINUTE + 1, 0, MINUTE - 1, MINUTE, None)
    found = summary_of("sessions", *({"time": time} for time in times))
    minutes = found.section("minutes")["minute"].cast(pa.int64()).to_pylist()
    assert list(zip(minutes, found.section("minutes")["rows"].to_pylist(), strict=True)) == [
        (0, 2), (MINUTE, 1), (5 * MINUTE, 1),
    ]  # fmt: skip
    assert found.rows("sessions") == 5


def test_problems_are_those_of_rows_that_have_one() -> None:
    fault = {"code": "truncated", "field": "Queue[12].Name", "offset": 3}
    found = summary_of("sessions", {"fault": fault}, {"violations": ["a", "b"]}, {"violations": ["a"]})
    assert rows_of(found, "problems", "problem", "code", "field", "rows") == [
        ("fault", "truncated", "Queue.Name", 1), ("violation", "a", None, 2), ("violation", "b", None, 1),
    ]  # fmt: skip
    assert rows_of(found, "totals", "rows", "faults") == [(3, 1)]
    assert rows_of(summary_of("sessions", {}), "problems", "code") == []


@pytest.mark.parametrize(
    ("queue", "changes", "found"),
    [
        ("DIRECT=TCP:10.0.0.3\\private$\\q", {}, True),
        ("DIRECT=tcp:10.0.0.20\\q", {}, True),
        ("DIRECT=TCP:10.0.0.2\\private$\\q", {}, False),
        ("DIRECT=Tcp:10.0.0.2\\q", {}, False),
        # Names that are not compared: of machines, of IPv6, with zeros that may be octal
        ("DIRECT=OS:beta\\q", {}, False),
        ("DIRECT=OS:10.0.0.3\\q", {}, False),
        ("DIRECT=TCP:2001:db8::1\\q", {}, False),
        ("DIRECT=TCP:010.0.0.3\\q", {}, False),
        ("DIRECT=TCP:10.0.0.3\\q", {"dst": "2001:db8::2"}, False),
        ("PRIVATE=DIRECT=TCP:10.0.0.3\\q", {}, False),
        # A host with several addresses acknowledges on the session that there is
        ("DIRECT=TCP:10.0.0.3\\PRIVATE$\\order_queue$", {"message_class": 255}, False),
        ("DIRECT=TCP:10.0.0.3\\q", {"destination_queues": ["a"]}, False),
    ],
)
def test_a_destination_with_another_address_is_a_problem(queue: str, changes: dict[str, Any], found: bool) -> None:
    summary = summary_of("messages", {"destination_queue": queue, **changes}, {"destination_queue": queue, **changes})
    expected = ("messages", "destination", "other_address", "10.0.0.1", f"{queue} received by 10.0.0.2", 2)
    assert rows_of(summary, "problems", "in_table", "problem", "code", "src", "detail", "rows") == [expected] * found


def test_streams_that_were_not_read_are_problems(tmp_path: Path) -> None:
    talks = [stream([message()], port=port) for port in (4001, 4002)]
    elsewhere = [frame.replace(struct.pack(">H", 1801), struct.pack(">H", 2323)) for talk in talks for frame in talk]
    path = write(tmp_path / "x.pcap", [*elsewhere, *stream([message()])])
    summary = summarize(path)
    columns = ("problem", "code", "detail", "rows", "frames")
    assert rows_of(summary, "problems", *columns) == [("not_read", "MSMQ", "port 2323", 2, [])]
    status, output, _ = run("summary", path, "-q", "--table", "problems", "-T", "json")
    assert (status, json.loads(output)["detail"]) == (0, "port 2323")
    assert rows_of(summarize(path, options=ReadOptions(ports={1801, 2323})), "problems", *columns) == []
    assert run("detect", path, "-q")[0] == 0


def test_the_version_of_a_notification_tells_who_sent_it() -> None:
    machine = {"operation": "change", "object": "machine"}
    found = summary_of("notifications", {"version": 1, **machine}, {"version": 2, "src": "10.0.0.5", **machine})
    assert rows_of(found, "hosts", "address", "roles") == [
        ("10.0.0.1", ["directory_server"]), ("10.0.0.5", ["queue_manager"]),
    ]  # fmt: skip


def properties(*values: tuple[int, str, Any]) -> list[dict[str, Any]]:
    types = {field.name: field for field in notification_property()}
    return [{**dict.fromkeys(types), "id": propid, member: value} for propid, member, value in values]


def notification_property() -> Any:
    return arrow_schema("notifications", ["properties"], dictionaries=False).field("properties").type.value_type


def test_names_of_queue_managers_are_in_notifications() -> None:
    queue = properties((PROPID_Q_PATHNAME, "text", "beta\\private$\\q"), (PROPID_Q_QMID, "guid", THIRD.bytes))
    nameless, ownerless = properties((PROPID_QM_SITE_ID, "number", 1)), properties((PROPID_Q_PATHNAME, "text", "x\\q"))
    found = summary_of(
        "notifications",
        # A machine is its own queue manager; a queue names its queue manager in PROPID_Q_QMID
        {"object": "machine", "object_guid": FIRST, "properties": properties((PROPID_QM_PATHNAME, "text", "alpha"))},
        {"object": "queue", "object_guid": SECOND, "properties": queue},
        {"object": "machine", "object_guid": SECOND, "path_name": "gamma", "properties": nameless},
        # Without a GUID or a name there is nothing to tell
        {"object": "queue", "object_guid": FIRST, "properties": ownerless},
        {"object": "machine", "object_guid": THIRD, "properties": nameless},
        {"object": "machine", "object_guid": THIRD, "properties": []},
    )
    assert rows_of(found, "queue_managers", "queue_manager", "name") == [
        (str(FIRST), "alpha"), (str(SECOND), "gamma"), (str(THIRD), "beta"),
    ]  # fmt: skip
    # The name of a machine needs no properties, in whichever rows it comes
    alone = summary_of("notifications", {"object": "machine", "object_guid": THIRD, "path_name": "x"})
    assert rows_of(alone, "queue_managers", "name") == [("x",)]


def test_a_disregarded_notification_shows_nothing_of_its_sender() -> None:
    machine = {"object": "machine", "object_guid": THIRD, "path_name": "x\\", "version": 1}
    for outcome, roles in (("disregarded", []), ("ignored", ["directory_server"]), ("applied", ["directory_server"])):
        found = summary_of("notifications", {**machine, "outcome": outcome})
        assert [row["roles"] for row in found.section("hosts").to_pylist()] == [roles] * bool(roles)
        assert found.section("queue_managers").num_rows == bool(roles)


def test_a_message_with_hops_came_through_a_router() -> None:
    found = summary_of(
        "messages", {"hop_count": 0}, {"hop_count": 1, "src": "10.0.0.7", "source_queue_manager": SECOND}
    )
    assert rows_of(found, "hosts", "address", "roles", "evidence", "packets") == [
        ("10.0.0.1", ["queue_manager"], ["message"], 1),
        ("10.0.0.2", ["receiver"], ["received message"], 2),
        ("10.0.0.7", ["queue_manager", "router"], ["message", "forwarded message"], 1),
    ]
    assert rows_of(found, "queue_managers", "queue_manager", "address", "rows") == [(str(FIRST), "10.0.0.1", 1)]


@pytest.mark.parametrize("guid", ["binary", "text"])
def test_the_guid_of_nobody_is_no_queue_manager(guid: Any) -> None:
    found = summary_of("messages", {"source_queue_manager": NOBODY}, {"source_queue_manager": None}, guid=guid)
    assert rows_of(found, "queue_managers", "queue_manager") == []
    both = {"kind": "establish_connection", "client_guid": FIRST, "server_guid": NOBODY}
    found = summary_of("sessions", both, {**both, "src_port": 1801, "dst_port": 4000}, guid=guid)
    assert rows_of(found, "queue_managers", "queue_manager") == [(str(FIRST),)]


def test_the_side_at_port_1801_is_the_server() -> None:
    both = {"kind": "establish_connection", "client_guid": FIRST, "server_guid": SECOND}
    found = summary_of(
        "sessions",
        {**both, "src": "10.0.0.1", "src_port": 1802},
        {**both, "src": "10.0.0.2", "src_port": 1801},
        {"kind": "ping", "queue_manager": THIRD, "src": "10.0.0.3", "src_port": 3527},
        {"kind": "connection_parameters", "src": "10.0.0.4"},
    )
    assert rows_of(found, "queue_managers", "queue_manager", "address", "evidence") == [
        (str(FIRST), "10.0.0.1", "establish_connection"),
        (str(SECOND), "10.0.0.2", "establish_connection"),
        (str(THIRD), "10.0.0.3", "ping"),
    ]


def test_classes_from_0x8000_are_negative() -> None:
    classes = (0, 1, 0x7FFF, 0x8000, 0x8001)
    found = summary_of("messages", *({"message_class": each, "message_class_name": hex(each)} for each in classes))
    assert sorted(rows_of(found, "classes", "code", "negative")) == [
        (1, False), (0x7FFF, False), (0x8000, True), (0x8001, True),
    ]  # fmt: skip


PRINTED = {
    "enterprise_id": UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22"),
    "request_id": UUID("f291a103-e33c-ab4f-a930-be3a33e432dd"),
    "site_id": UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128"),
}
ADMIN = {"kind": "user_message", "admin_queue": "a"}
MS = 1_000_000


def transactional(number: int, sequence: int = 1 << 63, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "user_message", "message_id": 100 + number, "tx_sequence_id": sequence, "tx_sequence_number": number,
        "previous_tx_sequence_number": number - 1, "final_ack_required": False, "negative_source_journaling": False,
        "positive_source_journaling": False, "properties_flags": 0, **changes,
    }  # fmt: skip


def order_ack(number: int, sequence: int = 1 << 63, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "order_ack", "src": "10.0.0.2", "dst": "10.0.0.1", "source_queue_manager": SECOND, "message_class": 255,
        "queue_manager_address": FIRST, "acknowledged_tx_sequence_id": sequence,
        "acknowledged_tx_sequence_number": number, "message_class_name": "order_ack", **changes,
    }  # fmt: skip


def answer(class_: int, message_id: int, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "user_message", "src": "10.0.0.2", "dst": "10.0.0.1", "source_queue_manager": SECOND,
        "message_class": class_, "message_class_name": MESSAGE_CLASSES[class_], "correlation_guid": FIRST,
        "correlation_ordinal": message_id, "properties_flags": 0, **changes,
    }  # fmt: skip


def test_messages_that_asked_for_acknowledgments_have_their_answers() -> None:
    found = summary_of(
        "messages",
        {**ADMIN, "message_id": 1, "properties_flags": 3, "time": 0},
        {**ADMIN, "message_id": 2, "properties_flags": 12, "time": 0},
        {**ADMIN, "message_id": 3, "properties_flags": 5, "time": 5 * MS},
        {**ADMIN, "message_id": 4, "properties_flags": 15, "time": 0},
        {**ADMIN, "message_id": 5, "properties_flags": 12, "time": 0},
        # Without an administration queue, or without a flag, nothing is asked for
        {"kind": "user_message", "message_id": 6, "properties_flags": 15},
        {**ADMIN, "message_id": 7, "properties_flags": 0},
        # An acknowledgment asks for none
        answer(2, 1, properties_flags=15, admin_queue="a", time=2 * MS),
        answer(2, 1, time=3 * MS),
        answer(0x4000, 1, time=MS * 9 // 2),
        answer(0x8003, 5, time=MS),
        # A message of an application may have any correlation
        answer(0, 3, time=9 * MS),
        answer(2, 3, correlation_guid=THIRD, time=9 * MS),
        answer(0x4000, 4, time=-1),
        # The route of a message is reported, which does not acknowledge it
        answer(1, 3, time=9 * MS),
    )
    columns = ("message_id", "asked", "answered", "answers", "negative", "reached_ms", "received_ms", "negative_ms")
    positive = ["positive_arrival_ack", "positive_receive_ack"]
    negative = ["negative_arrival_ack", "negative_receive_ack"]
    assert rows_of(found, "acknowledgments", *columns) == [
        (1, positive, True, ["ack_reach_queue", "ack_receive"], None, 2.0, 4.5, None),
        # No news is good news
        (2, negative, None, [], None, None, None, None),
        (3, [positive[0], negative[0]], False, [], None, None, None, None),
        # Answered before a copy of it was captured
        (4, positive + negative, True, ["ack_receive"], None, None, None, None),
        (5, negative, True, [], "nack_q_exceed_quota", None, None, 1.0),
    ]
    # What has no answer is first
    assert found.section("acknowledgments")["message_id"].to_pylist() == [3, 1, 4, 5, 2]
    assert found.line("answers") == "5 asked for acknowledgments, 1 never answered in these captures"
    assert found.line("acknowledgments") is None
    assert Summary().line("answers") is None


def test_an_order_ack_answers_its_number_and_those_before_it() -> None:
    other = 1 << 62
    found = summary_of(
        "messages",
        *(transactional(number, time=number * MS) for number in (1, 2, 3, 4)),
        # Sent again on another session and address, then the last one
        transactional(3, time=8 * MS, src="10.0.0.9", src_port=4001),
        transactional(1, other, message_id=201, time=0),
        transactional(2, other, message_id=202, time=0, final_ack_required=True),
        # To a direct name no queue manager is named
        order_ack(2, time=10 * MS, queue_manager_address=NOBODY),
        order_ack(1, time=5 * MS),
        order_ack(3, time=20 * MS, dst="10.0.0.9"),
        # Another queue manager
        order_ack(9, other, time=MS, queue_manager_address=THIRD),
        {
            **order_ack(2, other, time=7 * MS), "kind": "final_ack", "message_class": 0xC001,
            "message_class_name": "nack_q_purged", "acknowledged_source_queue_manager": FIRST,
            "acknowledged_message_id": 202,
        },
    )  # fmt: skip
    columns = ("message_id", "sequence", "number", "previous_number", "answered", "ordered_ms", "negative", "copies")
    assert rows_of(found, "acknowledgments", *columns) == [
        (101, 1 << 63, 1, 0, True, 4.0, None, 1),
        (102, 1 << 63, 2, 1, True, 8.0, None, 1),
        (103, 1 << 63, 3, 2, True, 17.0, None, 1),
        (104, 1 << 63, 4, 3, False, None, None, 1),
        (201, other, 1, 0, False, None, None, 1),
        (202, other, 2, 1, True, None, "nack_q_purged", 1),
    ]
    asked = {row[0]: row[1] for row in rows_of(found, "acknowledgments", "message_id", "asked")}
    assert (asked[104], asked[202]) == (["order_ack"], ["order_ack", "final_ack"])


def test_a_sequence_has_what_was_sent_acknowledged_and_missing() -> None:
    other = 1 << 62
    found = summary_of(
        "messages",
        # The capture begins after 6; 8 and 9 were not captured, 11 expired, 13 was sent again
        *(transactional(number, time=number * MS) for number in (7, 10)),
        transactional(12, previous_tx_sequence_number=10, time=12 * MS),
        *[transactional(13, previous_tx_sequence_number=12, time=13 * MS)] * 2,
        order_ack(10, time=20 * MS),
        # Malformed
        transactional(5, other, previous_tx_sequence_number=1 << 31, message_id=205),
        transactional(1, other, previous_tx_sequence_number=0, message_id=201),
        # Another queue manager
        transactional(1, source_queue_manager=SECOND),
    )
    columns = (
        "source_queue_manager", "sequence", "sent", "first_number", "last_number", "acknowledged", "last_acknowledged",
        "repeated", "missing", "first_missing",
    )  # fmt: skip
    assert rows_of(found, "sequences", *columns) == [
        (str(FIRST), other, 2, 1, 5, 0, None, 0, 3, 2),
        (str(FIRST), 1 << 63, 4, 7, 13, 2, 10, 1, 2, 8),
        (str(SECOND), 1 << 63, 1, 1, 1, 0, None, 0, 0, None),
    ]


def test_a_conforming_sequence_misses_nothing() -> None:
    numbers = [*range(1, 50), *range(30, 50)]  # sent again on a new session
    for rows in (numbers, numbers[20:], numbers[:40]):
        found = summary_of("messages", *(transactional(number) for number in rows), order_ack(60))
        ((sent, acknowledged, missing),) = rows_of(found, "sequences", "sent", "acknowledged", "missing")
        assert (sent, acknowledged, missing) == (len(set(rows)), len(set(rows)), 0)


def test_the_end_of_a_capture_has_answers_without_messages() -> None:
    """The messages were sent before the capture began."""
    found = summary_of("messages", answer(2, 1, time=0), order_ack(5, time=1), transactional(5, time=2))
    assert rows_of(found, "acknowledgments", "number", "answered", "ordered_ms") == [(5, True, None)]
    untimed = summary_of("messages", transactional(1, time=None), order_ack(1, time=None))
    assert rows_of(untimed, "acknowledgments", "answered", "ordered_ms") == [(True, None)]


def test_copies_are_those_of_one_host_to_another() -> None:
    """A router sends each message once more."""
    asks = {**ADMIN, "message_id": 1, "properties_flags": 1}
    found = summary_of(
        "messages", {**asks, "time": 0}, {**asks, "time": 5}, {**asks, "src": "10.0.0.2", "dst": "10.0.0.3", "time": 9}
    )
    assert rows_of(found, "acknowledgments", "src", "dst", "copies") == [("10.0.0.1", "10.0.0.2", 2)]
    assert rows_of(found, "answers", "asked", "repeated") == [(1, 1)]


def test_quantiles_are_those_of_the_first_acknowledgments() -> None:
    summary = Summary()
    for number in range(1, 101):
        add_to(summary, "messages", {**ADMIN, "message_id": number, "properties_flags": 1, "time": 0})
        add_to(summary, "messages", answer(2, number, time=number * MS), answer(2, number, time=number * MS + 7))
    add_to(summary, "messages", {**ADMIN, "message_id": 999, "properties_flags": 3, "time": 0})
    add_to(summary, "messages", {**ADMIN, "message_id": 998, "properties_flags": 3, "destination_queue": "Q"})
    columns = ("asked", "answered", "unanswered", "fastest_ms", "median_ms", "p90_ms", "p99_ms", "slowest_ms")
    assert rows_of(summary, "answers", "queue", *columns) == [
        ("Q", 1, 0, 1, None, None, None, None, None),
        ("q", 101, 100, 1, 1.0, 50.0, 90.0, 99.0, 100.0),
    ]
    assert summary.line("answers") == "102 asked for acknowledgments, 2 never answered in these captures"


def test_bytes_of_a_session_count_the_session_header_of_a_message() -> None:
    """PacketSize of a message does not count it: [MS-MQMQ] 2.2.20.4."""
    found = summary_of(
        "messages",
        {"packet_size": 100, "stream_offset": 500},
        {"packet_size": 100, "stream_offset": 600, "ack_sequence_number": 7},
        {"packet_size": None, "stream_offset": 716},
    )
    columns = ("messages", "packets", "bytes", "refused", "missing_bytes")
    assert rows_of(found, "sessions", *columns) == [(3, 3, 216, 0, 0)]
    found = summary_of(
        "sessions",
        {"packet_size": 32, "refused": None},
        {"packet_size": 32, "stream_offset": 33, "refused": True},
        {"packet_size": None, "stream_offset": 65},
        {"stream_offset": None, "kind": "ping"},
    )
    assert rows_of(found, "sessions", *columns) == [(0, 3, 64, 1, 1)]


def test_a_message_to_several_queues_counts_for_each() -> None:
    found = summary_of(
        "messages",
        {"destination_queues": ["a", "b"], "destination_queue": "a"},
        {"destination_queue": "a", "message_size": None},
        {"destination_queue": None},
    )
    assert rows_of(found, "queues", "queue", "messages", "bytes") == [("a", 2, 10), ("b", 1, 10)]
    found = summary_of("messages", {"destination_queue": "a"}, {"destination_queue": None})
    assert rows_of(found, "queues", "queue", "messages", "bytes") == [("a", 1, 10)]


def test_a_queue_that_two_hosts_have_is_one() -> None:
    found = summary_of("messages", {"dst": "10.0.0.2"}, {"dst": "10.0.0.3"}, {"src": "10.0.0.9"})
    assert rows_of(found, "queues", "queue", "sender", "messages") == [("q", "10.0.0.1", 2), ("q", "10.0.0.9", 1)]


def test_discovery_has_the_packets_that_are_decoded() -> None:
    request = {"type": "request", "request_id": FIRST}
    reply = {"type": "reply", "correlation_id": FIRST, "src": "10.0.0.2", "dst": "10.0.0.1"}
    fault = {"type": None, "fault": {"code": "truncated", "field": "x", "offset": 1}}
    found = summary_of("topology", request, reply, reply, {**request, "request_id": SECOND}, fault)
    assert rows_of(found, "discovery", "request_id", "client", "requests", "replies", "packets") == [
        (str(FIRST), "10.0.0.1", 1, 2, 3), (str(SECOND), "10.0.0.1", 1, 0, 1),
    ]  # fmt: skip


def test_records_have_times_to_the_microsecond() -> None:
    (row,) = summary_of("sessions", {"time": 1_234_567_891}).records("hosts")
    assert row["first_seen"].isoformat() == "1970-01-01T00:00:01.234567+00:00"


def test_the_first_file_is_first_though_its_rows_wait_longer() -> None:
    summary = Summary()
    add_to(summary, "sessions", {"file": "a.pcap"})
    add_to(summary, "messages", *[{"file": "b.pcap"}] * 32_768)
    assert {row["address"]: row["frames"][0]["file"] for row in summary.records("hosts")} == {
        "10.0.0.1": "a.pcap", "10.0.0.2": "b.pcap",
    }  # fmt: skip


def test_a_message_is_repeated_if_it_is_there_twice() -> None:
    found = summary_of("messages", {}, {"message_id": 2}, {"message_id": 2}, {"message_id": None}, {"message_id": None})
    assert rows_of(found, "repeated", "message_id", "copies") == [(2, 2)]


def test_a_host_has_the_roles_of_all_its_packets() -> None:
    summary = summary_of("topology", {"type": "request"}, {"type": "reply"}, {"type": "reply"}, {"type": None})
    for kind in ("ping", "session_ack", None):
        add_to(summary, "sessions", {"kind": kind})
    add_to(summary, "notifications", {"version": 1})
    add_to(summary, "messages", {"fault": {"code": "truncated", "field": "Queue", "offset": 1}})
    roles = ["client", "directory_server", "queue_manager"]
    evidence = ["discovery request", "discovery reply", "change notification", "ping", "session_ack"]
    # A change notification is counted with the message that has it; a fault shows no role
    assert rows_of(summary, "hosts", "address", "roles", "evidence", "packets") == [
        ("10.0.0.1", roles, [*evidence, "malformed packet"], 6)
    ]


@pytest.mark.parametrize(
    ("code", "evidence"),
    [("incomplete", "incomplete packet"), ("bad_signature", "other bytes"), ("bad_size", "malformed packet")],
)
def test_a_host_is_there_that_sent_only_packets_with_faults(code: str, evidence: str) -> None:
    summary = summary_of("messages", {"fault": {"code": code, "field": "x", "offset": 1}})
    assert rows_of(summary, "hosts", "address", "roles", "evidence", "packets") == [("10.0.0.1", [], [evidence], 1)]


def test_an_address_that_messages_were_sent_to_is_a_receiver() -> None:
    summary = summary_of(
        "messages",
        {"dst": "10.0.0.3", "time": 5},
        {"dst": "10.0.0.3", "time": 7},
        {"dst": "10.0.0.3", "time": 8, "src": "10.0.0.4"},
        # An acknowledgment goes to the sender, which receives no messages of applications for it
        {"dst": "10.0.0.1", "src": "10.0.0.3", "message_class": 2},
        {"dst": "10.0.0.5", "fault": {"code": "incomplete", "field": "x", "offset": 1}},
    )
    add_to(summary, "sessions", {"kind": "session_ack", "src": "10.0.0.6", "dst": "10.0.0.1"})
    hosts = {row["address"]: row for row in summary.records("hosts")}
    assert {address: row["roles"] for address, row in hosts.items()} == {
        "10.0.0.1": ["queue_manager"], "10.0.0.3": ["queue_manager", "receiver"], "10.0.0.4": ["queue_manager"],
        "10.0.0.6": ["queue_manager"],
    }  # fmt: skip
    assert (hosts["10.0.0.3"]["packets"], hosts["10.0.0.3"]["last_seen"].microsecond) == (4, 0)
    assert [each["frame"] for each in hosts["10.0.0.3"]["frames"]] == [1, 3, 4]


def test_a_conversation_has_what_one_host_sends_to_another() -> None:
    back = {"src": "10.0.0.2", "dst": "10.0.0.1"}
    summary = summary_of("messages", *({"destination_queue": "often"},) * 3, {}, {"destination_queue": None}, back)
    for number in range(15):
        add_to(summary, "messages", {"destination_queue": f"other{number:02}"})
    add_to(summary, "notifications", {"version": 1})
    add_to(summary, "sessions", {}, back, back)
    add_to(summary, "topology", {"type": "request", **back})
    counts = ("packets", "messages", "bytes", "changes", "sessions", "discovery", "queue_count")
    assert summary.section("conversations").select(["src", *counts]).to_pylist() == [
        dict(zip(("src", *counts), values, strict=True))
        for values in (("10.0.0.1", 21, 20, 200, 1, 1, 0, 17), ("10.0.0.2", 4, 1, 10, 0, 2, 1, 1))
    ]
    first, second = summary.section("conversations")["queues"].to_pylist()
    # Those that most messages went to, and of these the ones with the first frames
    assert first == ["often", *(f"other{number:02}" for number in range(9))]
    assert second == ["q"]


def test_the_timeline_has_events_in_the_order_of_time() -> None:
    fault = {"code": "bad_size", "field": "Queue[3].Name", "offset": 3}
    summary = summary_of(
        "messages",
        {"time": 9 * MINUTE, "src": "10.0.0.3", "source_queue_manager": SECOND, "destination_queue": "late"},
        {"time": 3 * MINUTE + 5, "message_class": 0x8002, "message_class_name": "nack_x"},
        {"time": 4 * MINUTE - 1, "message_class": 0x8002, "message_class_name": "nack_x"},
        {"time": 4 * MINUTE, "message_class": 0x8002, "message_class_name": "nack_x"},
        {"time": 3 * MINUTE, "destination_queue": "first"},
        {"time": 5 * MINUTE, "fault": fault, "destination_queue": None},
        {"time": 6 * MINUTE, "fault": {**fault, "code": "incomplete"}, "destination_queue": None},
        {"time": None, "message_class": 0xC000, "message_class_name": "nack_y"},
    )
    add_to(summary, "sessions", {"time": 1, "refused": True}, {"time": 2, "refused": None})
    add_to(summary, "notifications", {"time": 2 * MINUTE, "rule": "some rule"}, {"time": 0})
    columns = ["first_seen", "event", "src", "detail", "packets"]
    table = (
        summary.section("timeline")
        .select(columns)
        .set_column(0, columns[0], summary.section("timeline")["first_seen"].cast(pa.int64()))
    )
    one, other = "10.0.0.1", "10.0.0.3"
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (1, "refusal", one, "connection_parameters", 1),
        (2 * MINUTE, "finding", one, "refused-notification", 1),
        (2 * MINUTE, "refusal", one, "some rule", 1),
        (3 * MINUTE, "first_message", one, "first", 1),
        (3 * MINUTE + 5, "first_message", one, "q", 1),
        (3 * MINUTE + 5, "negative_acknowledgment", one, "nack_x", 2),
        (4 * MINUTE, "negative_acknowledgment", one, "nack_x", 1),
        (5 * MINUTE, "fault", one, "bad_size Queue.Name", 1),
        (6 * MINUTE, "gap", one, "Queue.Name", 1),
        (9 * MINUTE, "first_message", other, "late", 1),
        (None, "negative_acknowledgment", one, "nack_y", 1),
    ]


def test_the_timeline_of_nothing_is_empty() -> None:
    assert Summary().section("timeline").num_rows == summary_of("sessions", {}).section("timeline").num_rows == 0


@pytest.mark.parametrize(
    ("changes", "roles", "probes"),
    [
        ({}, ["scanner"], 1),
        # A router that forwards the message is not a scanner
        ({"hop_count": 1}, ["queue_manager", "router"], 1),
        ({"label": "pic"}, ["queue_manager"], 0),
        ({"destination_queue": "DIRECT=HTTP://host/msmq/private$/queue"}, ["queue_manager"], 0),
    ],
)
def test_a_host_that_sent_a_valid_message_of_metasploit_is_a_scanner(
    changes: dict[str, Any], roles: list[str], probes: int
) -> None:
    probe = {"label": "poc", "destination_queue": "DIRECT=HTTP://host/msmq/private$/queuejumper", **changes}
    summary = summary_of("messages", probe, {"src": "10.0.0.5", "label": "poc", "source_queue_manager": SECOND})
    found = dict(rows_of(summary, "hosts", "address", "roles"))
    assert found == {"10.0.0.1": roles, "10.0.0.5": ["queue_manager"], "10.0.0.2": ["receiver"]}
    shown = [("10.0.0.1",)] * (roles == ["queue_manager"])
    assert rows_of(summary, "queue_managers", "address") == [*shown, ("10.0.0.5",)]
    events = rows_of(summary, "timeline", "event", "src", "detail")
    assert events.count(("finding", "10.0.0.1", "metasploit-probe")) == probes


def test_a_finding_is_one_event_of_two_hosts() -> None:
    rows = [{"time": number * MINUTE, "src": f"10.0.0.{3 + number % 2}"} for number in range(5)]
    found = rows_of(summary_of("messages", *rows), "timeline", "event", "detail", "src", "packets")
    assert [row[1:] for row in found if row[0] == "finding"] == [
        ("cloned-queue-manager", "10.0.0.3", 3), ("cloned-queue-manager", "10.0.0.4", 2),
    ]  # fmt: skip


def test_events_have_their_meaning() -> None:
    summary = summary_of("messages", {"message_class": 0x8003, "message_class_name": "nack_q_exceed_quota"})
    add_to(summary, "sessions", {"refused": True})
    add_to(summary, "topology", {"type": "request", **PRINTED})
    found = dict(rows_of(summary, "timeline", "event", "meaning"))
    assert found == {
        "first_message": None,
        "negative_acknowledgment": MEANINGS["nack_q_exceed_quota"],
        "refusal": None,
        "finding": RULES_BY_NAME["discovery-probe"].title,
    }


def test_the_timeline_has_the_findings_of_detect(tmp_path: Path) -> None:
    """The end of a packet that began before the capture is not another protocol."""
    talk = [message(body=b"<a/>" * 500), b"GET / HTTP/1.0\r\n\r\n", b"\x01" * 40]
    for name, frames in {"all": stream(talk), "end": stream(talk)[4:], "unknown": stream(talk[2:])}.items():
        path = write(tmp_path / f"{name}.pcap", frames)
        detector = Detector()
        for table, batch in CapturedRows(path):
            detector.add(table, batch)
        shown = rows_of(summarize(path), "timeline", "event", "detail")
        found = {finding.rule for finding in detector.findings()}
        assert {detail for event, detail in shown if event == "finding"} == found
        assert found == ({"other-protocol"} if name != "end" else found)
    assert rows_of(summarize(write(tmp_path / "x.pcap", stream(talk[2:])[4:])), "timeline", "event") == []


@pytest.mark.parametrize("guid", ["binary", "text"])
def test_probes_are_events(guid: Any) -> None:
    summary = summary_of("topology", {"type": "request", **PRINTED}, {"type": "request"}, guid=guid)
    assert rows_of(summary, "timeline", "event", "detail", "packets") == [("finding", "discovery-probe", 1)]


def test_bytes_of_other_protocols_are_no_messages(tmp_path: Path) -> None:
    summary = summarize(write(tmp_path / "x.pcap", stream([message(), b"GET / HTTP/1.0\r\n\r\n"])))
    assert rows_of(summary, "conversations", "packets", "messages") == [(2, 1)]
    assert rows_of(summary, "sessions", "messages") == [(1,)]
    assert rows_of(summary, "problems", "code", "field") == [("bad_signature", "BaseHeader")]


def test_a_scanner_is_no_queue_manager(tmp_path: Path) -> None:
    """A host that sent only probes has that role alone, and shows no queue manager; one that answers does."""
    talk = WRITER["Conversation"]("192.0.2.7", 40001, "10.20.1.25", 1801)
    probe = vector("F3-establish-connection-request")[:60] + bytes(512)
    talk.send(0, probe)
    talk.send(1, probe[:36] + FIRST.bytes_le + probe[52:])
    frames = [*talk.frames, datagram(WRITER["PRINTED_REQUEST"], src="192.0.2.8")]
    summary = summarize(write(tmp_path / "x.pcap", frames))
    assert sorted(rows_of(summary, "hosts", "address", "roles")) == [
        ("10.20.1.25", ["queue_manager"]),
        ("192.0.2.7", ["scanner"]),
        ("192.0.2.8", ["scanner"]),
    ]
    assert [
        row for row in rows_of(summary, "queue_managers", "address", "queue_manager") if row[0] != "10.20.1.25"
    ] == []
