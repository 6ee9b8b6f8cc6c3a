"""The sections of a summary: the groups that each counts, and the rows of tables that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from msmqwire.insight.groups import integers, numbers, pc
from msmqwire.insight.rows import Rows, plain
from msmqwire.notification.judgement import Outcome
from msmqwire.properties import PROPID_Q_PATHNAME, PROPID_Q_QMID, PROPID_QM_PATHNAME

__all__ = ["COLUMNS", "SECTIONS", "Section", "contributions", "own_managers"]

_PORT = 1801
_SESSION_HEADER_SIZE = 16  # [MS-MQMQ] 2.2.20.4; PacketSize of a message does not count it
_NO_GUID = ("00000000-0000-0000-0000-000000000000", bytes(16))
_MINUTE = 60_000_000_000

Contribution: TypeAlias = "Iterator[tuple[str, pa.Table]]"


@dataclass(frozen=True)
class Section:
    """One table of a summary.

    Attributes
    ----------
    about : str
        What a row is.
    keys : tuple of str
        The columns whose combinations are the rows.
    values : mapping of str to {"sum", "min", "max"}
        The columns that are aggregated, beside ``rows``, ``first_seen`` and ``last_seen``.
    rows : str
        The name of the count of rows.
    limit : int
        The most rows.
    """

    about: str
    keys: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    rows: str = "rows"
    limit: int = 100_000


SECTIONS: dict[str, Section] = {
    "totals": Section("rows and faults of each table and file", ("in_table", "file"), {"faults": "sum"}),
    "hosts": Section("the roles of an address, and the packets that show them", ("address", "role", "evidence")),
    "queue_managers": Section(
        "the addresses and names of a queue manager, and the packets that show them",
        ("queue_manager", "address", "name", "evidence"),
    ),
    "queues": Section(
        "who sends to a queue: messages, acknowledgments included, and bytes of their bodies",
        ("queue", "sender", "source_queue_manager"),
        {"bytes": "sum"},
        rows="messages",
    ),
    "acknowledgments": Section(
        "messages with a class other than normal: acknowledgments by class, and the queue they went to; negative ones "
        "report messages that were not delivered, or not received",
        ("class", "code", "negative", "queue", "sender"),
        rows="messages",
    ),
    "sessions": Section(
        "packets of one direction of a TCP connection; missing_bytes lie between its first and last packet, in gaps or "
        "in packets with faults",
        ("src", "src_port", "dst", "dst_port"),
        {"messages": "sum", "bytes": "sum", "refused": "sum", "faults": "sum", "start": "min", "end": "max"},
        rows="packets",
    ),
    "repeated": Section(
        "messages that a host sent to another more than once, within as many messages as the limit",
        ("src", "dst", "source_queue_manager", "message_id"),
        rows="copies",
        limit=1 << 18,
    ),
    "discovery": Section(
        "runs of discovery: requests of a client, and replies to them",
        ("request_id", "client"),
        {"requests": "sum", "replies": "sum"},
        rows="packets",
    ),
    "notifications": Section(
        "changes of which a machine was notified, and their judgement: whether they are applied, the rule if they are "
        "not, and what captures do not show, so that a receiver may decide otherwise",
        ("machine", "sender", "version", "operation", "object", "applied", "rule", "unverified"),
        rows="changes",
    ),
    "problems": Section("faults and violations, by rule", ("in_table", "problem", "code", "field", "src")),
    "timeline": Section("rows of each minute and pair of hosts", ("minute", "in_table", "src", "dst")),
}

#: The columns of each table that the sections need.
COLUMNS: dict[str, tuple[str, ...]] = {
    "topology": ("type", "request_id", "correlation_id"),
    "notifications": (
        "version", "operation", "object", "object_guid", "path_name", "properties", "outcome",
        "rule", "unverified",
    ),
    "messages": (
        "src_port", "dst_port", "stream_offset", "kind", "packet_size", "source_queue_manager", "message_id",
        "hop_count", "destination_queue", "destination_queues", "message_class", "message_class_name", "message_size",
        "ack_sequence_number",
    ),
    "sessions": (
        "src_port", "dst_port", "stream_offset", "kind", "packet_size", "queue_manager", "refused", "client_guid",
        "server_guid",
    ),
}  # fmt: skip
COLUMNS = {
    table: ("file", "frame", "time", "src", "dst", *columns, "fault", "violations")
    for table, columns in COLUMNS.items()
}


def _of_every_table(name: str, rows: Rows) -> Contribution:
    fault = rows["fault"]
    yield "totals", rows.table(in_table=name, file=rows["file"], faults=fault.is_valid().cast(pa.int64()))
    minute = integers(numbers(rows["time"]) // _MINUTE * _MINUTE)
    yield (
        "timeline",
        rows.table(rows["time"].is_valid(), minute=minute, in_table=name, src=rows["src"], dst=rows["dst"]),
    )
    common = {"in_table": name, "src": rows["src"]}
    if fault.null_count < len(fault):
        code, where = (plain(pc.struct_field(fault, member)) for member in ("code", "field"))
        where = pc.replace_substring_regex(where, r"\[\d+\]", "")
        yield "problems", rows.table(fault.is_valid(), **common, problem="fault", code=code, field=where)
    broken = rows.exploded(
        rows["violations"], "code", **common, problem="violation", field=pa.scalar(None, pa.string())
    )
    if broken.num_rows:
        yield "problems", broken


def _of_topology(rows: Rows) -> Contribution:
    is_request, is_reply = (pc.equal(rows["type"], type_) for type_ in ("request", "reply"))
    yield "hosts", rows.table(is_request, address=rows["src"], role="client", evidence="discovery request")
    yield "hosts", rows.table(is_reply, address=rows["src"], role="directory_server", evidence="discovery reply")
    yield (
        "discovery",
        rows.table(
            rows.is_decoded(),
            request_id=pc.coalesce(rows["request_id"], rows["correlation_id"]),
            client=pc.if_else(is_request, rows["src"], rows["dst"]),
            requests=is_request.cast(pa.int64()),
            replies=is_reply.cast(pa.int64()),
        ),
    )


def _of_notifications(rows: Rows) -> Contribution:
    version = rows["version"]
    role = pc.if_else(pc.equal(version, 1), "directory_server", "queue_manager")
    decoded = rows.is_decoded()
    yield "hosts", rows.table(decoded, address=rows["src"], role=role, evidence="change notification")
    yield (
        "notifications",
        rows.table(
            machine=rows["dst"],
            sender=rows["src"],
            version=version,
            operation=rows["operation"],
            object=rows["object"],
            applied=pc.equal(rows["outcome"], Outcome.APPLIED),
            rule=rows["rule"],
            unverified=rows["unverified"],
        ),
    )
    yield from _names(rows)


def _names(rows: Rows) -> Contribution:
    """The names of queue managers in the properties of their objects and of their queues."""
    properties = rows["properties"]
    items, parents = pc.list_flatten(properties), numbers(pc.list_parent_indices(properties))
    ids = numbers(pc.struct_field(items, "id"))

    def of_rows(propid: int, member: str) -> Any:
        """The values of one property, null in rows without it."""
        chosen = np.flatnonzero(ids == propid)
        at = np.full(len(rows), -1, np.int64)
        at[parents[chosen]] = chosen
        missing = pc.equal(integers(at), -1)
        return plain(pc.struct_field(items, member)).take(
            pc.if_else(missing, pa.scalar(None, pa.int64()), integers(at))
        )

    if not len(items):
        return
    is_machine = pc.equal(rows["object"], "machine")
    guid = pc.if_else(is_machine, rows["object_guid"], of_rows(PROPID_Q_QMID, "guid"))
    path = pc.coalesce(of_rows(PROPID_QM_PATHNAME, "text"), of_rows(PROPID_Q_PATHNAME, "text"), rows["path_name"])
    name = pc.replace_substring_regex(path, r"\\.*", "")
    yield (
        "queue_managers",
        rows.table(
            pc.and_(guid.is_valid(), name.is_valid()),
            queue_manager=guid,
            address=pa.scalar(None, pa.string()),
            name=name,
            evidence="change notification",
        ),
    )


def _of_messages(rows: Rows) -> Contribution:
    source, sender, decoded = rows["source_queue_manager"], rows["src"], rows.is_decoded()
    is_forwarded = pc.greater(rows["hop_count"], 0)
    yield "hosts", rows.table(decoded, address=sender, role="queue_manager", evidence="message")
    yield "hosts", rows.table(is_forwarded, address=sender, role="router", evidence="forwarded message")
    yield "queue_managers", _manager("messages", rows, "message")
    yield from _queues(rows)
    classes = rows["message_class"]
    yield (
        "acknowledgments",
        rows.table(
            pc.not_equal(classes, 0),
            **{"class": rows["message_class_name"]},
            code=classes.cast(pa.int64()),
            negative=pc.greater_equal(classes, 0x8000),
            queue=rows["destination_queue"],
            sender=sender,
        ),
    )
    yield (
        "repeated",
        rows.table(
            pc.and_(decoded, rows["message_id"].is_valid()),
            src=sender,
            dst=rows["dst"],
            source_queue_manager=source,
            message_id=rows["message_id"].cast(pa.int64()),
        ),
    )
    header = pc.if_else(rows["ack_sequence_number"].is_valid(), _SESSION_HEADER_SIZE, 0)
    yield from _session(rows, pc.add(rows["packet_size"].cast(pa.int64()), header), 1, pa.scalar(0))


def _queues(rows: Rows) -> Contribution:
    """Messages of each queue. A message to several queues counts for each."""
    common = {
        "sender": rows["src"],
        "source_queue_manager": rows["source_queue_manager"],
        "bytes": pc.fill_null(rows["message_size"].cast(pa.int64()), 0),
    }
    one, several = rows["destination_queue"], rows["destination_queues"]
    if several.null_count < len(several):
        yield "queues", rows.exploded(several, "queue", **common)
        yield "queues", rows.table(pc.and_(one.is_valid(), pc.invert(several.is_valid())), queue=one, **common)
    else:
        yield "queues", rows.table(one.is_valid(), queue=one, **common)


def _of_sessions(rows: Rows) -> Contribution:
    kind, sender = rows["kind"], rows["src"]
    yield "hosts", rows.table(kind.is_valid(), address=sender, role="queue_manager", evidence=kind)
    yield "queue_managers", _manager("sessions", rows, kind)
    yield from _session(rows, rows["packet_size"].cast(pa.int64()), 0, rows["refused"])


def own_managers(table: str, rows: Rows) -> tuple[Any, Any]:
    """The GUID of the queue manager at the sender of each row of messages or sessions, and which rows show one."""
    if table == "messages":
        # A message that was forwarded has another source
        guid, shown = rows["source_queue_manager"], pc.equal(rows["hop_count"], 0)
    else:
        # A connection has both GUIDs; the side at port 1801 is the server
        own = pc.if_else(pc.equal(rows["src_port"], _PORT), rows["server_guid"], rows["client_guid"])
        guid = pc.coalesce(rows["queue_manager"], own)
        shown = guid.is_valid()
    nobody = pa.scalar(_NO_GUID[pa.types.is_fixed_size_binary(guid.type)], guid.type)
    return guid, pc.fill_null(pc.and_(shown, pc.not_equal(guid, nobody)), False)


def _manager(table: str, rows: Rows, evidence: Any) -> pa.Table:
    guid, shown = own_managers(table, rows)
    return rows.table(
        shown, queue_manager=guid, address=rows["src"], name=pa.scalar(None, pa.string()), evidence=evidence
    )


def _session(rows: Rows, size: Any, messages: int, refused: Any) -> Contribution:
    start = rows["stream_offset"].cast(pa.int64())
    size = pc.fill_null(size, 0)
    yield (
        "sessions",
        rows.table(
            start.is_valid(),
            src=rows["src"],
            src_port=rows["src_port"],
            dst=rows["dst"],
            dst_port=rows["dst_port"],
            messages=pa.scalar(messages, pa.int64()),
            bytes=size,
            refused=pc.fill_null(refused.cast(pa.int64()), 0),
            faults=rows["fault"].is_valid().cast(pa.int64()),
            start=start,
            end=pc.add(start, size),
        ),
    )


_OF_TABLE: dict[str, Callable[[Rows], Contribution]] = {
    "topology": _of_topology,
    "notifications": _of_notifications,
    "messages": _of_messages,
    "sessions": _of_sessions,
}


def contributions(table: str, rows: Rows) -> Contribution:
    """The rows of a table as rows of sections: pairs of a section and a table with its keys and values."""
    yield from _of_every_table(table, rows)
    yield from _OF_TABLE[table](rows)
