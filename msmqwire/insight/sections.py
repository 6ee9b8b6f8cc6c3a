"""The sections of a summary: the groups that each counts, and the rows of tables that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from msmqwire.columns.arrow_arrays import booleans, integers
from msmqwire.columns.plain import plain
from msmqwire.insight._column import NULL_NUMBER, Column
from msmqwire.insight.arrays import numbers, pc, truths
from msmqwire.insight.rows import Rows
from msmqwire.insight.rules import NEGATIVE, probes, shown_managers
from msmqwire.mqqb.framing import SESSION_HEADER_SIZE
from msmqwire.mqqb.session.schema import SESSION_KINDS
from msmqwire.notification.judgement import Outcome
from msmqwire.properties import PROPID_Q_PATHNAME, PROPID_Q_QMID, PROPID_QM_PATHNAME

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROLES = ("client", "directory_server", "queue_manager", "router", "scanner")
_CLIENT, _DIRECTORY_SERVER, _QUEUE_MANAGER, _ROUTER, _SCANNER = (1 << bit for bit in range(len(ROLES)))
EVIDENCE = (
    "discovery request", "discovery reply", "change notification", "message", "forwarded message", *SESSION_KINDS
)  # fmt: skip
_BIT_OF = {name: 1 << bit for bit, name in enumerate(EVIDENCE)}

_TIMES = ("first_seen", "last_seen")


@dataclass(frozen=True)
class Section:
    """One table of a summary.

    Attributes
    ----------
    about : str
        What a row is.
    keys : tuple of str
        The columns whose combinations are the groups.
    values : mapping of str to {"sum", "min", "max", "or"}
        The columns that are aggregated, beside ``rows``, ``first_seen`` and ``last_seen``.
    rows : str
        The name of the count of rows.
    limit : int
        The most groups.
    shown : tuple of str
        The columns of the table before ``frames``; none: those of the groups.
    """

    about: str
    keys: tuple[str, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    rows: str = "rows"
    limit: int = 100_000
    shown: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table before ``frames``."""
        return self.shown or (*self.keys, self.rows, *self.values, *_TIMES)


SECTIONS: dict[str, Section] = {
    "totals": Section("rows and faults of each table and file", ("in_table", "file"), {"faults": "sum"}),
    "hosts": Section(
        "an address, its roles, and the kinds of packets that show them",
        ("address",),
        {"roles": "or", "evidence": "or"},
        rows="packets",
        shown=("address", "roles", "evidence", "packets", *_TIMES),
    ),
    "conversations": Section(
        "what one host sends to another: messages and bytes of their bodies, changes in them, packets of sessions and "
        "of discovery; the number of queues, and the ten that most messages went to",
        ("src", "dst"),
        dict.fromkeys(("messages", "bytes", "changes", "sessions", "discovery"), "sum"),
        rows="packets",
        shown=(
            "src",
            "dst",
            "packets",
            "messages",
            "bytes",
            "changes",
            "sessions",
            "discovery",
            "queue_count",
            "queues",
            *_TIMES,
        ),
    ),
    "timeline": Section(
        "events in the order of time: the first message of a host, probes, refusals, negative acknowledgments, gaps, "
        "faults; equal events of one minute are one row",
        ("event", "minute", "src", "dst", "detail"),
        rows="packets",
        shown=(*_TIMES, "event", "src", "dst", "detail", "packets"),
    ),
    "queue_managers": Section(
        "the addresses and names of a queue manager, and the packets that show them",
        ("queue_manager", "address", "name", "evidence"),
    ),
    "queues": Section(
        "who sends to a queue: messages, acknowledgments included, and bytes of their bodies",
        ("queue", "sender", "source_queue_manager"),
        {"bytes": "sum"},
        rows="messages",
        shown=("queue", "sender", "source_queue_manager", "messages", "bytes", *_TIMES),
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
        shown=(
            "src",
            "src_port",
            "dst",
            "dst_port",
            "packets",
            "messages",
            "bytes",
            "refused",
            "faults",
            "missing_bytes",
            *_TIMES,
        ),
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
    "minutes": Section("rows and faults of each table in each minute", ("minute", "in_table"), {"faults": "sum"}),
}

#: The groups of ``queues``, which tell the queues of conversations and the first message of a host as well.
FLOWS = Section("", ("queue", "sender", "dst", "source_queue_manager"), {"bytes": "sum"})

#: The columns of each table that the sections need.
COLUMNS: dict[str, tuple[str, ...]] = {
    "topology": ("type", "enterprise_id", "request_id", "site_id", "correlation_id"),
    "notifications": (
        "version", "operation", "object", "object_guid", "path_name", "properties", "outcome",
        "rule", "unverified",
    ),
    "messages": (
        "src_port", "dst_port", "stream_offset", "kind", "packet_size", "source_queue_manager", "message_id",
        "hop_count", "label", "destination_queue", "destination_queues", "message_class", "message_class_name",
        "message_size", "ack_sequence_number",
    ),
    "sessions": (
        "src_port", "dst_port", "stream_offset", "kind", "packet_size", "queue_manager", "refused", "client_guid",
        "server_guid", "time_stamp", "operating_system",
    ),
}  # fmt: skip
COLUMNS = {
    table: ("file", "frame", "time", "src", "dst", *columns, "fault", "violations")
    for table, columns in COLUMNS.items()
}


@dataclass(frozen=True)
class Contribution:
    """Rows that belong to a section: its keys and values, without the times.

    ``place`` and ``time`` are those of the rows of the table, unless they are given; ``mask`` selects rows; each counts
    as so many as ``rows`` says.
    """

    section: str
    columns: Mapping[str, Column]
    mask: NDArray[np.bool_] | None = None
    rows: Column | None = None
    place: Column | None = None
    time: Column | None = None


Contributions: TypeAlias = "Iterator[Contribution]"


@lru_cache(maxsize=256)
def _first_of(value: str | int | None) -> Column:
    return Column(pa.array([value], pa.int64() if isinstance(value, int) else pa.string()))


def _all(rows: Rows, value: str | int | None) -> Column:
    """A column with one value in all rows."""
    return _first_of(value).repeated(len(rows))


def _whole(values: NDArray[Any], type: Any = pa.int64()) -> Column:  # noqa: B008 # immutable
    """A column of numbers or booleans."""
    return Column.of_numbers(np.ascontiguousarray(values, np.int64), type)


def _of_table(section: str, table: pa.Table) -> Contributions:
    """The rows of a table, made by ``Rows.table``."""
    if table.num_rows:
        columns = {name: Column(table[name].combine_chunks()) for name in table.schema.names}
        yield Contribution(section, columns, place=columns.pop("place"), time=columns.pop("time"))


def _event(event: str, rows: Rows, mask: NDArray[np.bool_], detail: Column) -> Contributions:
    if mask.any():
        columns = {
            "event": _all(rows, event), "minute": _whole(rows.minute), "src": rows.column("src"),
            "dst": rows.column("dst"), "detail": detail,
        }  # fmt: skip
        yield Contribution("timeline", columns, mask)


def _host(rows: Rows, roles: Column, evidence: Column, mask: NDArray[np.bool_], packets: int = 1) -> Contributions:
    columns = {"address": rows.column("src"), "roles": roles, "evidence": evidence}
    yield Contribution("hosts", columns, mask, _all(rows, packets))


def _conversation(rows: Rows, packets: int = 1, **counts: Column | int) -> Contributions:
    columns = {"src": rows.column("src"), "dst": rows.column("dst")}
    for name in SECTIONS["conversations"].values:
        value = counts.get(name, 0)
        columns[name] = _all(rows, value) if isinstance(value, int) else value
    yield Contribution("conversations", columns, rows=_all(rows, packets))


def _of_every_table(name: str, rows: Rows) -> Contributions:
    table, faults = _all(rows, name), _whole(rows.faults)
    yield Contribution("totals", {"in_table": table, "file": rows.column("file"), "faults": faults})
    minutes = rows.minute
    columns = {"minute": _whole(minutes, pa.int64()), "in_table": table, "faults": faults}
    yield Contribution("minutes", columns, minutes != NULL_NUMBER)
    if rows.faults.any():
        # Few rows have a fault, and texts are made of these alone
        faulty = rows.chosen(rows.faults)
        place, time = Column(faulty.place), faulty.column("time")
        yield from (replace(each, place=place, time=time) for each in _faults(name, faulty))
    if len(rows["violations"].flatten()):
        nothing = pa.scalar(None, pa.string())
        common = {"in_table": name, "problem": "violation", "field": nothing, "src": rows["src"]}
        yield from _of_table("problems", rows.exploded(rows["violations"], "code", **common))


def _faults(name: str, rows: Rows) -> Contributions:
    """The contributions of rows that have a fault each."""
    code, where = (plain(pc.struct_field(rows["fault"], member)) for member in ("code", "field"))
    where = pc.replace_substring_regex(where, r"\[\d+\]", "")
    columns = {
        "in_table": _all(rows, name), "problem": _all(rows, "fault"), "code": Column(code), "field": Column(where),
        "src": rows.column("src"),
    }  # fmt: skip
    yield Contribution("problems", columns)
    is_gap = truths(pc.equal(code, "incomplete"))
    yield from _event("gap", rows, is_gap, Column(where))
    detail = pc.binary_join_element_wise(code, where, " ")
    yield from _event("fault", rows, ~is_gap, Column(detail))


def _of_topology(rows: Rows) -> Contributions:
    is_request, is_reply = rows.equals("type", "request"), rows.equals("type", "reply")
    is_probe, events = _probes("topology", rows)
    roles = np.where(is_request, _CLIENT, _DIRECTORY_SERVER)
    if is_probe.any():
        roles = np.where(is_probe, _SCANNER, roles)
    evidence = np.where(is_request, _BIT_OF["discovery request"], _BIT_OF["discovery reply"])
    yield from _host(rows, _whole(roles), _whole(evidence), is_request | is_reply)
    yield from _conversation(rows, discovery=1)
    columns = {
        "request_id": Column(pc.coalesce(rows["request_id"], rows["correlation_id"])),
        "client": Column.either(is_request, rows.column("src"), rows.column("dst")),
        "requests": _whole(is_request),
        "replies": _whole(is_reply),
    }
    yield Contribution("discovery", columns, ~rows.faults)
    yield from events


def _probes(name: str, rows: Rows) -> tuple[NDArray[np.bool_], list[Contribution]]:
    """Which rows are packets of scanners, and their events."""
    found = np.zeros(len(rows), np.bool_)
    events: list[Contribution] = []
    for rule, mask in probes(name, rows):
        matching = truths(mask)
        found |= matching
        events += _event("probe", rows, matching, _all(rows, rule))
    return found, events


def _of_notifications(rows: Rows) -> Contributions:
    is_first = rows.array("version") == 1
    roles = _whole(np.where(is_first, _DIRECTORY_SERVER, _QUEUE_MANAGER))
    # Anyone can send what no receiver applies
    shows = ~rows.faults & ~truths(pc.equal(rows["outcome"], Outcome.DISREGARDED))
    # Their packets are counted as messages
    yield from _host(rows, roles, _all(rows, _BIT_OF["change notification"]), shows, packets=0)
    yield from _conversation(rows, packets=0, changes=1)
    columns = {
        "machine": rows.column("dst"),
        "sender": rows.column("src"),
        **{name: rows.column(name) for name in ("version", "operation", "object", "rule", "unverified")},
        "applied": Column(pc.equal(rows["outcome"], Outcome.APPLIED)),
    }
    yield Contribution("notifications", columns)
    yield from _event("refusal", rows, rows.has("rule"), rows.column("rule"))
    yield from _of_table("queue_managers", _names(rows, shows))


def _names(rows: Rows, shows: NDArray[np.bool_]) -> pa.Table:
    """The names of queue managers in the properties of their objects and of their queues, of the rows that show any."""
    properties = rows["properties"]
    items, parents = pc.list_flatten(properties), numbers(pc.list_parent_indices(properties))
    ids = numbers(pc.struct_field(items, "id"))

    def of_rows(propid: int, member: str) -> Any:
        """The values of one property, null in rows without it."""
        chosen = np.flatnonzero(ids == propid)
        at = np.full(len(rows), -1, np.int64)
        at[parents[chosen]] = chosen
        return plain(pc.struct_field(items, member)).take(integers(at, at >= 0))

    is_machine = pc.equal(rows["object"], "machine")
    guid = pc.if_else(is_machine, rows["object_guid"], of_rows(PROPID_Q_QMID, "guid"))
    path = pc.coalesce(of_rows(PROPID_QM_PATHNAME, "text"), of_rows(PROPID_Q_PATHNAME, "text"), rows["path_name"])
    name = pc.replace_substring_regex(path, r"\\.*", "")
    return rows.table(
        pc.and_(pc.and_(guid.is_valid(), name.is_valid()), booleans(shows)),
        queue_manager=guid,
        address=pa.scalar(None, pa.string()),
        name=name,
        evidence="change notification",
    )


def _of_messages(rows: Rows) -> Contributions:
    decoded, forwarded = ~rows.faults, rows.array("hop_count") > 0
    roles, evidence = decoded * _QUEUE_MANAGER, decoded * _BIT_OF["message"]
    if forwarded.any():
        roles, evidence = roles | forwarded * _ROUTER, evidence | forwarded * _BIT_OF["forwarded message"]
    is_probe, events = _probes("messages", rows)
    if is_probe.any():
        # A router that forwards one is no scanner
        roles = np.where(is_probe & ~forwarded, _SCANNER, roles)
    yield from _host(rows, _whole(roles), _whole(evidence), decoded | forwarded)
    yield from events
    yield from _managers("messages", rows, _all(rows, "message"))
    size = rows.array("message_size")
    size = np.where(size == NULL_NUMBER, 0, size)
    is_message = _whole(~_are_foreign(rows))
    yield from _conversation(rows, messages=is_message, bytes=_whole(size))
    yield from _queues(rows, size)
    yield from _acknowledgments(rows)
    columns = {name: rows.column(name) for name in SECTIONS["repeated"].keys}
    yield Contribution("repeated", columns, decoded & rows.has("message_id"))
    # [MS-MQMQ] 2.2.20.4; PacketSize of a message does not count it
    packet = rows.array("packet_size") + SESSION_HEADER_SIZE * rows.has("ack_sequence_number")
    yield from _session(rows, packet, is_message, _all(rows, 0))


def _are_foreign(rows: Rows) -> NDArray[np.bool_]:
    """Which rows of messages are bytes of a stream in which no packet begins."""
    if not rows.faults.any():
        return rows.faults
    code = plain(pc.struct_field(rows["fault"], "code"))
    return truths(pc.equal(code, "bad_signature"))


def _acknowledgments(rows: Rows) -> Contributions:
    classes = rows.array("message_class")
    if not (classes > 0).any():
        return
    negative = classes >= NEGATIVE
    columns = {
        "class": rows.column("message_class_name"),
        "code": rows.column("message_class"),
        "negative": _whole(negative, pa.bool_()),
        "queue": rows.column("destination_queue"),
        "sender": rows.column("src"),
    }
    yield Contribution("acknowledgments", columns, classes > 0)
    yield from _event("negative_acknowledgment", rows, negative, columns["class"])


def _queues(rows: Rows, size: NDArray[np.int64]) -> Contributions:
    """Messages of each queue. A message to several queues counts for each."""
    one, several = rows.has("destination_queue"), rows["destination_queues"]
    columns = {"queue": rows.column("destination_queue"), "source_queue_manager": rows.column("source_queue_manager")}
    columns |= {"sender": rows.column("src"), "dst": rows.column("dst"), "bytes": _whole(size)}
    if several.null_count < len(several):
        one &= ~truths(several.is_valid())
        common = {"sender": rows["src"], "dst": rows["dst"], "bytes": integers(size)}
        common["source_queue_manager"] = rows["source_queue_manager"]
        yield from _of_table("flows", rows.exploded(several, "queue", **common))
    yield Contribution("flows", columns, one)


def _of_sessions(rows: Rows) -> Contributions:
    kind = rows["kind"]
    place = numbers(pc.index_in(kind, pa.array(SESSION_KINDS)))
    evidence = np.where(rows.has("kind"), _BIT_OF[SESSION_KINDS[0]] << place, 0)
    is_probe, events = _probes("sessions", rows)
    roles = _whole(np.where(is_probe, _SCANNER, _QUEUE_MANAGER))
    yield from _host(rows, roles, _whole(evidence), rows.has("kind"))
    yield from _conversation(rows, sessions=1)
    yield from _managers("sessions", rows, rows.column("kind"))
    refused = rows.array("refused") == 1
    yield from _session(rows, rows.array("packet_size"), _all(rows, 0), _whole(refused))
    yield from _event("refusal", rows, refused, rows.column("kind"))
    yield from events


def _managers(table: str, rows: Rows, evidence: Column) -> Contributions:
    guid, shown = shown_managers(table, rows)
    columns = {"queue_manager": rows.column("source_queue_manager") if table == "messages" else Column(guid)}
    columns |= {"address": rows.column("src"), "name": _all(rows, None), "evidence": evidence}
    yield Contribution("queue_managers", columns, truths(shown))


def _session(rows: Rows, size: NDArray[np.int64], messages: Column, refused: Column) -> Contributions:
    start = rows.array("stream_offset")
    # The size of a packet with the fault incomplete may be known, but not all of its bytes are there
    size = np.where(rows.has("packet_size") & ~rows.faults, size, 0)
    columns = {name: rows.column(name) for name in SECTIONS["sessions"].keys}
    columns |= {"messages": messages, "bytes": _whole(size), "refused": refused}
    columns |= {"faults": _whole(rows.faults), "start": rows.column("stream_offset"), "end": _whole(start + size)}
    yield Contribution("sessions", columns, start != NULL_NUMBER)


_OF_TABLE: dict[str, Callable[[Rows], Contributions]] = {
    "topology": _of_topology,
    "notifications": _of_notifications,
    "messages": _of_messages,
    "sessions": _of_sessions,
}


def contributions(table: str, rows: Rows) -> Contributions:
    """The rows of a table as rows of sections."""
    yield from _of_every_table(table, rows)
    yield from _OF_TABLE[table](rows)
