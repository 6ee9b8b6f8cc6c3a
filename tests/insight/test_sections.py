"""What each row of a table adds to the sections of a summary, from rows that are written here."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from msmqwire.capture.table_rows import arrow_schema
from msmqwire.insight import COLUMNS, SECTIONS, Summary, summarize
from msmqwire.properties import PROPID_Q_PATHNAME, PROPID_Q_QMID, PROPID_QM_PATHNAME, PROPID_QM_SITE_ID
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
        ("10.0.0.7", ["queue_manager", "router"], ["message", "forwarded message"], 1),
    ]
    assert rows_of(found, "queue_managers", "queue_manager", "address") == [(str(FIRST), "10.0.0.1")]


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
    assert sorted(rows_of(found, "acknowledgments", "code", "negative")) == [
        (1, False), (0x7FFF, False), (0x8000, True), (0x8001, True),
    ]  # fmt: skip


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
    (row,) = summary_of("messages", {"time": 1_234_567_891}).records("hosts")
    assert row["first_seen"].isoformat() == "1970-01-01T00:00:01.234567+00:00"


def test_the_first_file_is_first_though_its_rows_wait_longer() -> None:
    summary = Summary()
    add_to(summary, "sessions", {"file": "a.pcap"})
    add_to(summary, "messages", *[{"file": "b.pcap"}] * 32_768)
    assert [row["frames"][0]["file"] for row in summary.records("hosts")] == ["a.pcap"]


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
    # A change notification is counted with the message that has it
    assert rows_of(summary, "hosts", "address", "roles", "evidence", "packets") == [("10.0.0.1", roles, evidence, 5)]


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
        {"time": 9 * MINUTE, "src": "10.0.0.3", "destination_queue": "late"},
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
        (2 * MINUTE, "refusal", one, "some rule", 1),
        (3 * MINUTE, "first_message", one, "first", 1),
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
    assert found == {"10.0.0.1": roles, "10.0.0.5": ["queue_manager"]}
    shown = [("10.0.0.1",)] * (roles == ["queue_manager"])
    assert rows_of(summary, "queue_managers", "address") == [*shown, ("10.0.0.5",)]
    events = rows_of(summary, "timeline", "event", "src", "detail")
    assert events.count(("probe", "10.0.0.1", "metasploit-probe")) == probes


@pytest.mark.parametrize("guid", ["binary", "text"])
def test_probes_are_events(guid: Any) -> None:
    example = {
        "enterprise_id": UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22"),
        "request_id": UUID("f291a103-e33c-ab4f-a930-be3a33e432dd"),
        "site_id": UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128"),
    }
    summary = summary_of("topology", {"type": "request", **example}, {"type": "request"}, guid=guid)
    assert rows_of(summary, "timeline", "event", "detail", "packets") == [("probe", "discovery-probe", 1)]


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
