"""What each row of a table adds to the sections of a summary, from rows that are written here."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from msmqwire.capture.tables import arrow_schema
from msmqwire.insight import COLUMNS, SECTIONS, Summary
from msmqwire.properties import PROPID_Q_PATHNAME, PROPID_Q_QMID, PROPID_QM_PATHNAME, PROPID_QM_SITE_ID
from tests.insight.captures import FIRST, SECOND, THIRD

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


def summary_of(table: str, *rows: dict[str, Any], guid: Any = "binary") -> Summary:
    """The summary of rows, whose missing columns are null."""
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
    summary = Summary()
    summary.add(table, pa.RecordBatch.from_pylist([{**dict.fromkeys(schema.names), **row} for row in made], schema))
    return summary


def rows_of(summary: Summary, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in summary.section(name).select(list(columns)).to_pylist()), key=str)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_has_as_many_rows_as_its_documentation_says(name: str) -> None:
    assert Summary().limits[name] == (262_144 if name == "repeated" else 100_000)


def test_times_are_counted_by_the_minute_in_which_they_lie() -> None:
    times = (0, MINUTE - 1, MINUTE, 5 * MINUTE + 1, None)
    found = summary_of("sessions", *({"time": time} for time in times))
    minutes = found.section("timeline")["minute"].cast(pa.int64()).to_pylist()
    assert dict(zip(minutes, found.section("timeline")["rows"].to_pylist(), strict=True)) == {
        0: 2, MINUTE: 1, 5 * MINUTE: 1,
    }  # fmt: skip
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
    assert rows_of(found, "hosts", "address", "role") == [
        ("10.0.0.1", "directory_server"), ("10.0.0.5", "queue_manager"),
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
    nothing = summary_of("notifications", {"object": "machine", "object_guid": THIRD, "path_name": "x"})
    assert rows_of(nothing, "queue_managers", "name") == []


def test_a_message_with_hops_came_through_a_router() -> None:
    found = summary_of(
        "messages", {"hop_count": 0}, {"hop_count": 1, "src": "10.0.0.7", "source_queue_manager": SECOND}
    )
    assert rows_of(found, "hosts", "address", "role") == [
        ("10.0.0.1", "queue_manager"), ("10.0.0.7", "queue_manager"), ("10.0.0.7", "router"),
    ]  # fmt: skip
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


def test_a_message_is_repeated_if_it_is_there_twice() -> None:
    found = summary_of("messages", {}, {"message_id": 2}, {"message_id": 2}, {"message_id": None}, {"message_id": None})
    assert rows_of(found, "repeated", "message_id", "copies") == [(2, 2)]
