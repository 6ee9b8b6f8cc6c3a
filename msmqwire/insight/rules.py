"""The rules of ``detect``: one table, a row for each finding that there can be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import numpy as np
import pyarrow as pa

from msmqwire.columns.arrow_arrays import booleans, integers
from msmqwire.columns.plain import equals_guid, plain
from msmqwire.insight.arrays import numbers, pc, truths
from msmqwire.insight.bodies import executable_kind
from msmqwire.insight.protocols import UNKNOWN, protocol_of
from msmqwire.insight.rows import MINUTE, Rows, has_value, own_managers
from msmqwire.mqqb.message.readable import DOTNET_HEADER
from msmqwire.mqqb.schema import MESSAGES
from msmqwire.wire.ports import SESSION_PORT

if TYPE_CHECKING:
    from numpy.typing import NDArray

Severity = Literal["high", "medium", "low"]
#: The most severe first.
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low")
#: A mask of the matching rows, and the columns of evidence.
Match = tuple[Any, Mapping[str, Any]]

#: The length of an envelope, whose overflow CVE-2023-21554 is.
ENVELOPE = "SRMPEnvelopeHeader.DataLength"
# The lengths of what several headers have; of other fields, the schema has them
_LENGTHS = {
    **{
        f"{queues}.FormatNameList": f"{queues}.ElementCount" for queues in ("Destination", "Administration", "Response")
    },
    "MQFSignatureHeader.Signature": "MQFSignatureHeader.Size",
    "SoapHeader.Header": "SoapHeader.HeaderDataLength",
    "SoapBody.Body": "SoapHeader.BodyDataLength",
}
_WRAPS = 1 << 31
_HOSTS = ("src", "dst")
# The packet of [MS-MQQB] 4.1
_PRINTED_CLIENT = UUID("557358d1-9150-9595-4997-b6e611ea26c6")
_PRINTED_SERVER = UUID("43cd8907-394c-8f11-4445-9078909ea0fc")
_PRINTED_TIME_STAMP = 501140046
_PRINTED_REQUEST = UUID("f291a103-e33c-ab4f-a930-be3a33e432dd")
NEGATIVE = 0x8000  # the lowest class of a negative acknowledgment, [MS-MQMQ] 2.2.18.1.6
_STORM = 100


@dataclass(frozen=True)
class Joined:
    """Groups of evidence that differ in one column only are one finding.

    Attributes
    ----------
    column : str
        That column; in the finding it is a list of its values, if ``shown``.
    values : int
        The fewest values of a finding.
    packets : int
        The fewest packets of each value; values with fewer do not count.
    """

    column: str
    values: int = 1
    packets: int = 1
    shown: bool = True


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A finding that there can be.

    Attributes
    ----------
    name, title, reference : str
        ``reference`` is a CVE where there is one, or else where the behaviour is described.
    source : str
        Where the bytes or the condition of the rule come from.
    tables : tuple of str
        The tables that the rule reads.
    suspects : callable
        Which rows of a batch may match, by tests that cost little; ``match`` judges no other rows.
    match : callable
        For rows of a table, those that match, and the columns of evidence; a finding is made of all rows with the same
        evidence.
    category : str
        Of EVE, one of Suricata's classification.config.
    joined : Joined, optional
        How groups of evidence become findings.
    probe : bool
        Packets of the opposite direction are answers, which belong to the finding.
    suricata : str
        The options of a Suricata rule that finds the same in a packet; empty where none can.
    needs_expected : bool
        Without the servers that the caller expects the rule matches nothing.
    columns : frozenset of str
        The columns that the rule reads, if most rows are suspects: they wait, and many are judged at once.
    """

    name: str
    severity: Severity
    title: str
    reference: str
    source: str
    tables: tuple[str, ...]
    suspects: Callable[[pa.RecordBatch], NDArray[np.bool_]]
    match: Callable[[str, Rows, tuple[str, ...]], Match]
    category: str
    joined: Joined | None = None
    probe: bool = False
    suricata: str = ""
    needs_expected: bool = False
    columns: frozenset[str] = frozenset()

    @property
    def identifier(self) -> int:
        """The number of the rule in Suricata, in the range for local use."""
        return 1_801_001 + RULES.index(self)


_CAPTURE = ("file", "frame", "time", "src", "src_port", "dst", "dst_port")
# The tables of a lake have the nanoseconds of times apart
_EVERY_ROW = frozenset({*_CAPTURE, "time_ns"})
#: The columns that the rules need.
COLUMNS: dict[str, tuple[str, ...]] = {
    "topology": ("type", "enterprise_id", "request_id", "site_id"),
    "notifications": ("outcome", "rule"),
    "messages": (
        "stream_offset", "source_queue_manager", "hop_count", "label", "destination_queue", "message_class",
        "message_class_name", "body", "compound_body", "unrecognized",
    ),
    "sessions": ("queue_manager", "client_guid", "server_guid", "time_stamp", "operating_system"),
}  # fmt: skip
COLUMNS = {table: (*_CAPTURE, *columns, "fault") for table, columns in COLUMNS.items()}


# Suspects: which rows may match


def _with(column: str) -> Callable[[pa.RecordBatch], NDArray[np.bool_]]:
    return lambda batch: has_value(batch.column(column))


def _where(column: str, compare: str, value: Any) -> Callable[[pa.RecordBatch], NDArray[np.bool_]]:
    """Rows whose value in a column compares so with another one."""

    def suspects(batch: pa.RecordBatch) -> NDArray[np.bool_]:
        return truths(getattr(pc, compare)(plain(batch.column(column)), value))

    return suspects


def _with_guid(column: str, guid: UUID) -> Callable[[pa.RecordBatch], NDArray[np.bool_]]:
    return lambda batch: truths(equals_guid(plain(batch.column(column)), guid))


def _with_manager(batch: pa.RecordBatch) -> NDArray[np.bool_]:
    return np.ones(batch.num_rows, np.bool_)


def _with_first_byte(values: bytes) -> Callable[[pa.RecordBatch], NDArray[np.bool_]]:
    """Messages with a body that begins with one of these bytes."""
    wanted = np.zeros(256, np.bool_)
    wanted[list(values)] = True

    def of(column: Any) -> NDArray[np.bool_]:
        _, offsets, data = column.buffers()
        if column.null_count == len(column) or data is None or not data.size:
            return np.zeros(len(column), np.bool_)
        ends = np.frombuffer(offsets, np.int32, len(column) + 1, 4 * column.offset)
        first = np.frombuffer(data, np.uint8)[np.minimum(ends[:-1], data.size - 1)]
        found: NDArray[np.bool_] = wanted[first] & (ends[1:] > ends[:-1])
        return found

    return lambda batch: of(batch.column("body")) | of(batch.column("compound_body"))


# Matches: which of them do


def _hosts(rows: Rows) -> dict[str, Any]:
    return {name: rows[name] for name in _HOSTS}


def _fault(rows: Rows, member: str) -> Any:
    return plain(pc.struct_field(rows["fault"], member))


def _envelope(_: str, rows: Rows, __: tuple[str, ...], *, harmless: bool) -> Match:
    length = _fault(rows, "value")
    # A lake does not have the bytes after the length
    after = rows["after"] if "after" in rows else pa.nulls(len(rows), pa.int64())
    # DataLength counts UTF-16 code units: doubled in 32 bits, the length of a check becomes one that fits the packet
    doubled = numbers(length) * 2
    fits = (numbers(length) >= _WRAPS) & (doubled % (1 << 32) <= numbers(after)) & truths(after.is_valid())
    mask = pc.and_(pc.equal(_fault(rows, "field"), ENVELOPE), booleans(fits if harmless else ~fits))
    return mask, {**_hosts(rows), "length": length}


@cache
def length_fields() -> dict[str, str]:
    """The fields of messages that have a length elsewhere, each with the field that is this length."""
    fields = [field for header in MESSAGES.headers for field in header.on_the_wire()]
    names = {field.id: field.name for field in fields if field.id}
    return {**_LENGTHS, **{field.name: names[field.size] for field in fields if field.size in names}}


def _overflow(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    length = _fault(rows, "value")
    field = pc.replace_substring_regex(_fault(rows, "field"), r"\[\d+\]", "")
    names = pa.array(length_fields().keys(), pa.string()), pa.array(length_fields().values(), pa.string())
    field = pc.coalesce(names[1].take(pc.index_in(field, names[0])), field)
    is_length = pc.is_in(_fault(rows, "code"), pa.array(["truncated", "bad_size", "too_large"]))
    mask = pc.and_(is_length, pc.and_(pc.not_equal(field, ENVELOPE), pc.greater_equal(length, _WRAPS)))
    return mask, {**_hosts(rows), "field": field, "length": length}


def _connection_probe(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    mask = pc.and_(pc.equal(rows["time_stamp"], _PRINTED_TIME_STAMP), pc.equal(rows["operating_system"], 0x310))
    mask = pc.and_(mask, equals_guid(rows["client_guid"], _PRINTED_CLIENT))
    mask = pc.and_(mask, equals_guid(rows["server_guid"], _PRINTED_SERVER))
    # A server may answer with the same packet
    return pc.and_(mask, booleans(~_from_server(rows))), _hosts(rows)


def _from_server(rows: Rows) -> NDArray[np.bool_]:
    """Rows whose sender is the server of the connection: it has port 1801, or if neither side has, the lower port."""
    src, dst = numbers(rows["src_port"]), numbers(rows["dst_port"])
    found: NDArray[np.bool_] = (dst != SESSION_PORT) & ((src == SESSION_PORT) | (src < dst))
    return found


def _metasploit(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    mask = pc.and_(pc.equal(rows["label"], "poc"), pc.ends_with(rows["destination_queue"], "/queuejumper"))
    return mask, {**_hosts(rows), "queue": rows["destination_queue"]}


def _discovery_probe(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    mask = pc.invert(pc.match_substring_regex(rows["dst"], r"\.255$|^ff"))
    for column, guid in (
        ("enterprise_id", UUID("e6eaba61-d1c6-11db-baac-0003ff4e2d22")),
        ("request_id", _PRINTED_REQUEST),
        ("site_id", UUID("dcc51bf6-d4ad-4543-8739-71568e8f9128")),
    ):
        mask = pc.and_(mask, equals_guid(rows[column], guid))
    return mask, _hosts(rows)


def shown_managers(table: str, rows: Rows) -> tuple[Any, Any]:
    """As ``own_managers``, without the rows of packets that scanners send."""
    guid, shown = own_managers(table, rows)
    if table == "sessions":
        # A scanner that sends the printed packet is no queue manager, and a server that repeats it has another GUID
        printed = pc.equal(rows["time_stamp"], _PRINTED_TIME_STAMP)
        sent = [pc.and_(equals_guid(rows["client_guid"], _PRINTED_CLIENT), printed)]
    else:
        sent = [mask for _, mask in probes(table, rows)]
    for mask in sent:
        shown = pc.and_not(shown, pc.fill_null(mask, False))
    return guid, shown


def _cloned(table: str, rows: Rows, _: tuple[str, ...]) -> Match:
    guid, shown = shown_managers(table, rows)
    return shown, {"queue_manager": guid, "address": rows["src"]}


def _dotnet(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    mask = pc.or_kleene(*(pc.match_substring_regex(rows[name], DOTNET_HEADER) for name in ("body", "compound_body")))
    return mask, {**_hosts(rows), "queue": rows["destination_queue"]}


def _executable(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    bodies = zip(rows["body"].to_pylist(), rows["compound_body"].to_pylist(), strict=True)
    kinds = pa.array([executable_kind(body or compound or b"") for body, compound in bodies], pa.string())
    return kinds.is_valid(), {**_hosts(rows), "queue": rows["destination_queue"], "kind": kinds}


def _storm(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    mask = pc.and_(pc.greater_equal(rows["message_class"], NEGATIVE), rows["time"].is_valid())
    minute = integers(numbers(rows["time"]) // MINUTE)
    return mask, {**_hosts(rows), "class": rows["message_class_name"], "minute": minute}


def _other_protocol(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    data = rows["unrecognized"].to_pylist()
    names = pa.array([None if each is None else protocol_of(each) for each in data], pa.string())
    ends = list(zip(*(rows[name].to_pylist() for name in ("src", "src_port", "dst", "dst_port")), strict=True))
    # What a server sends back belongs to the finding of its client
    from_server = _from_server(rows)
    asked = {each for each, server in zip(ends, from_server, strict=True) if not server}
    answers = [(dst, dst_port, src, src_port) in asked for src, src_port, dst, dst_port in ends]
    mask = pc.and_(names.is_valid(), booleans(~(from_server & np.array(answers, np.bool_))))
    mask = pc.and_(mask, pc.fill_null(pc.not_equal(_fault(rows, "field"), "PacketSize"), True))  # of a BaseHeader
    # After the beginning of a stream, or of what was captured of it, bytes that are not recognized may be the rest of a
    # packet
    begins = pc.equal(rows["stream_offset"], 0)
    if "joined" in rows:
        begins = pc.and_not(begins, rows["joined"])
    return pc.and_(mask, pc.or_kleene(pc.not_equal(names, UNKNOWN), begins)), {**_hosts(rows), "protocol": names}


def _unexpected(_: str, rows: Rows, expected: tuple[str, ...]) -> Match:
    known = [ip_network(name, strict=False) for name in expected]
    encoded = rows["src"].dictionary_encode()
    strange = [not _is_among(address, known) for address in encoded.dictionary.to_pylist()] or [False]
    mask = pc.and_(pc.equal(rows["type"], "reply"), booleans(np.array(strange)[numbers(encoded.indices)]))
    return mask, _hosts(rows)


def _is_among(address: str, known: Iterable[Any]) -> bool:
    try:
        return any(ip_address(address) in network for network in known)
    except ValueError:  # IPX
        return False


def _refused(_: str, rows: Rows, __: tuple[str, ...]) -> Match:
    return rows["rule"].is_valid(), {**_hosts(rows), "outcome": rows["outcome"], "reason": rows["rule"]}


_CVE = "CVE-2023-21554"
# ClientGuid, ServerGuid, TimeStamp and OperatingSystem of the packet of [MS-MQQB] 4.1
_CONNECTION = (
    "d1 58 73 55 50 91 95 95 49 97 b6 e6 11 ea 26 c6 07 89 cd 43 4c 39 11 8f 44 45 90 78 90 9e a0 fc 4e ca de 1d 10 03"
)
_LIOR = 'flow:established,to_server; content:"LIOR"; offset:4; depth:4; '

RULES: tuple[Rule, ...] = (
    Rule(
        name="queuejumper-exploit",
        severity="high",
        title="DataLength of an SRMPEnvelopeHeader leaves the packet",
        reference=_CVE,
        source="https://securityintelligence.com/posts/msmq-queuejumper-rce-vulnerability-technical-analysis/",
        tables=("messages",),
        suspects=_with("fault"),
        match=partial(_envelope, harmless=False),
        category="Attempted Administrator Privilege Gain",
    ),
    Rule(
        name="queuejumper-check",
        severity="medium",
        title="DataLength of an SRMPEnvelopeHeader overflows to a length that fits: a check for QueueJumper",
        reference=_CVE,
        source="metasploit-framework: modules/auxiliary/scanner/msmq/cve_2023_21554_queuejumper.rb, message_malformed",
        tables=("messages",),
        suspects=_with("fault"),
        match=partial(_envelope, harmless=True),
        category="Attempted Information Leak",
        probe=True,
        # The envelope begins with <se:Env, and DataLength is the 4 bytes before it
        suricata=_LIOR
        + 'content:"|3c 00 73 00 65 00 3a 00 45 00 6e 00 76 00|"; byte_test:4,>,0x7fffffff,-18,relative,little; '
        + "reference:cve,2023-21554;",
    ),
    Rule(
        name="length-overflow",
        severity="high",
        title="a length of 2 GiB or more that leaves the packet",
        reference="CWE-190",
        source="[MS-MQMQ] 2.2.20, [MS-MQRR] 2.2.5.1.2",
        tables=("messages",),
        suspects=_with("fault"),
        match=_overflow,
        category="Attempted Administrator Privilege Gain",
    ),
    Rule(
        name="connection-probe",
        severity="low",
        title="EstablishConnection packet with the GUIDs printed in [MS-MQQB] 4.1: a scanner looks for MSMQ",
        reference="SANS ISC diary of 2024-06-12, Port 1801 Traffic: Microsoft Message Queue",
        source="nuclei-templates: network/detection/msmq-detect.yaml; the diary shows the same bytes",
        tables=("sessions",),
        suspects=_where("time_stamp", "equal", _PRINTED_TIME_STAMP),
        match=_connection_probe,
        category="Detection of a Network Scan",
        probe=True,
        suricata=f'{_LIOR}content:"|{_CONNECTION}|"; offset:20; depth:38;',
    ),
    Rule(
        name="metasploit-probe",
        severity="medium",
        title="first message of the QueueJumper module of Metasploit",
        reference=_CVE,
        source="metasploit-framework: modules/auxiliary/scanner/msmq/cve_2023_21554_queuejumper.rb, message_normal",
        tables=("messages",),
        suspects=_where("label", "equal", "poc"),
        match=_metasploit,
        category="Detection of a Network Scan",
        probe=True,
        suricata=_LIOR
        + 'content:"/|00|q|00|u|00|e|00|u|00|e|00|j|00|u|00|m|00|p|00|e|00|r|00 00 00|"; '
        + 'content:"p|00|o|00|c|00 00 00|"; distance:0; reference:cve,2023-21554;',
    ),
    Rule(
        name="discovery-probe",
        severity="low",
        title="discovery request with the GUIDs printed in [MS-MQSD] 4, sent to one host",
        reference="[MS-MQSD] 4",
        source="[MS-MQSD] 4.1; a client sends its requests as broadcasts ([MS-MQSD] 3.1.5.1)",
        tables=("topology",),
        suspects=_with_guid("request_id", _PRINTED_REQUEST),
        match=_discovery_probe,
        category="Detection of a Network Scan",
        probe=True,
    ),
    Rule(
        name="cloned-queue-manager",
        severity="medium",
        title="one queue manager GUID at several addresses: cloned machines, or one with several addresses",
        reference="[MS-MQDMPR] 3.1.1.1",
        source="GUIDs in pings, connections, and messages that no routing server has processed",
        tables=("messages", "sessions"),
        suspects=_with_manager,
        # With those that show scanners, which are no queue managers
        columns=_EVERY_ROW
        | {"source_queue_manager", "hop_count", "label", "destination_queue"}
        | {"queue_manager", "client_guid", "server_guid", "time_stamp"},
        match=_cloned,
        category="Misc activity",
        joined=Joined("address", values=2),
    ),
    Rule(
        name="dotnet-binary-body",
        severity="medium",
        title="body written by BinaryFormatter: a program that deserializes it may run code of the sender",
        reference="https://learn.microsoft.com/dotnet/standard/serialization/binaryformatter-security-guide",
        source="[MS-NRBF] 2.6.1, SerializationHeaderRecord",
        tables=("messages",),
        suspects=_with_first_byte(b"\0"),
        match=_dotnet,
        category="Potentially Bad Traffic",
        suricata=_LIOR + 'content:"|00 01 00 00 00 ff ff ff ff 01 00 00 00 00 00 00 00|";',
    ),
    Rule(
        name="unexpected-directory-server",
        severity="high",
        title="discovery reply from a server that is not expected",
        reference="[MS-MQSD] 5.1",
        source="the servers that the caller expects",
        tables=("topology",),
        suspects=_where("type", "equal", "reply"),
        match=_unexpected,
        category="Potentially Bad Traffic",
        needs_expected=True,
    ),
    Rule(
        name="refused-notification",
        severity="high",
        title="change notification that a queue manager must not apply",
        reference="[MS-MQCN] 3.2.5",
        source="the judgement of msmqwire.notification, as far as captures show it",
        tables=("notifications",),
        suspects=_with("rule"),
        columns=_EVERY_ROW | {"outcome", "rule"},
        match=_refused,
        category="Potentially Bad Traffic",
    ),
    Rule(
        name="executable-body",
        severity="medium",
        title="body that is a program of Windows or Linux, or a script with its interpreter",
        reference="CWE-494",
        source="the headers of PE and ELF files, and the first line of scripts",
        tables=("messages",),
        suspects=_with_first_byte(b"M\x7f#"),
        match=_executable,
        category="Executable code was detected",
    ),
    Rule(
        name="negative-acknowledgments",
        severity="low",
        title=f"{_STORM} negative acknowledgments of a class in one minute, or more",
        reference="[MS-MQMQ] 2.2.18.1.6",
        source="message classes with the bit 0x8000",
        tables=("messages",),
        suspects=_where("message_class", "greater_equal", NEGATIVE),
        match=_storm,
        category="Misc activity",
        joined=Joined("minute", packets=_STORM, shown=False),
    ),
    Rule(
        name="other-protocol",
        severity="low",
        title="bytes of another protocol on a port of MSMQ: a scanner, or a program with a wrong port",
        reference="[MS-MQQB] 2.1",
        source="the first bytes of HTTP (RFC 9112, 9113), TLS (RFC 8446), SSH (RFC 4253), SMB ([MS-SMB2] 2.1), "
        "RDP ([MS-RDPBCGR] 2.2.1)",
        tables=("messages",),
        suspects=_with("unrecognized"),
        match=_other_protocol,
        category="Detection of a Network Scan",
        probe=True,
    ),
)
# Of packets that are valid, so that their sender would pass for a client or a queue manager
_PROBES = ("connection-probe", "discovery-probe", "metasploit-probe")


def probes(table: str, rows: Rows) -> Iterator[tuple[str, Any]]:
    """The rules that find packets of scanners in a table, and which rows match each.

    Rules without suspects are left out.
    """
    for rule in RULES:
        if rule.name in _PROBES and table in rule.tables and rule.suspects(rows.batch).any():
            yield rule.name, rule.match(table, rows, ())[0]


def suricata_rules() -> str:
    """The rules that Suricata can express, as a rule file."""
    lines = []
    for rule in RULES:
        if rule.suricata:
            message = json.dumps(f"msmqwire {rule.name}: {rule.title}".replace(";", ",").replace(":", ""))
            options = f"msg:{message}; {rule.suricata} sid:{rule.identifier}; rev:1;"
            lines.append(f"alert tcp any any -> any {SESSION_PORT} ({options})")
    return "\n".join(lines) + "\n"
