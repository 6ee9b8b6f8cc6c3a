"""Packets from rows in JSON, as ``msmqwire decode`` writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import IO, Any, TypeAlias
from uuid import UUID

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.capture import TABLES, table_columns
from msmqwire.capture.options import parse_time
from msmqwire.columns.schema import FORMAT_NAME, TIMESTAMP, DataType, ListOf
from msmqwire.formatname import DirectName, FormatNameError, parse
from msmqwire.mqcn.values import EVENTS
from msmqwire.mqqb._encode import DERIVED
from msmqwire.mqqb.groups import GROUP_FIELDS, GROUPS, NAMED, SECURITY_DATA_PRESENT
from msmqwire.mqqb.message._bodies import write_body
from msmqwire.mqqb.message.schema import SENDER_ID_TYPES
from msmqwire.notification.sender import TIME_TO_REACH_QUEUE
from msmqwire.propvariant import VT_LPWSTR

Row: TypeAlias = Mapping[str, Any]

#: Columns that no packet class takes, since they are derived from others.
_DERIVED = DERIVED | {"kind"}
#: Most bytes of a row: of a packet of 4 MiB, its bytes in hexadecimal, and its text with each character escaped.
LONGEST_ROW = 64 << 20
_TOPOLOGY: Mapping[str, Any] = {"request": mqsd.TopologyClientRequest, "reply": mqsd.TopologyServerReply}
_SESSIONS: Mapping[str, type] = {
    "ping": mqqb.Ping,
    "establish_connection": mqqb.EstablishConnection,
    "connection_parameters": mqqb.ConnectionParameters,
    "session_ack": mqqb.SessionAck,
}
_SID = SENDER_ID_TYPES.index("sid")
_NOTIFY_QUEUE = DirectName("os", "localhost", "notify_queue$", queue_type="private")
_NAMES = [
    each.name
    for each in mqqb.MESSAGES.columns
    if (each.type.item if isinstance(each.type, ListOf) else each.type) == FORMAT_NAME
]
_HEADER_OF = {name: header for header, kind in GROUPS.items() for name in GROUP_FIELDS[kind]}
_VALUE_MEMBERS = ("int", "text", "guid", "bytes", "ints", "guids", "texts")


def packet_of(table: str, rows: Sequence[Row]) -> bytes:
    """Return the packet of a row; of notifications, the packet of all rows of a message.

    Raises
    ------
    EncodeError
        No conforming sender writes the packet.
    ValueError, TypeError, KeyError
        A value is not valid for its column, or a required value is missing.
    """
    values = [_values(table, row) for row in rows]
    match table:
        case "topology":
            return mqsd.encode(_topology(values[0]))
        case "sessions":
            return mqqb.encode(_named(_SESSIONS, values[0], "kind")(**_given(values[0])))
        case "messages":
            return mqqb.encode(_message(_message_values(rows[0])))
        case _:
            body = mqcn.encode_body(_notification(values), enforce=False)
            sent: dict[str, Any] = {
                "destination_queue": _NOTIFY_QUEUE,
                "time_to_reach_queue": TIME_TO_REACH_QUEUE,
                "security": _sender(values[0]),
            }
            return mqqb.encode(mqqb.UserMessage(**sent, body=body))


def message_of(row: Row, **fields: Any) -> mqqb.UserMessage:
    """Return the message of a row of ``messages``, with ``fields`` in place of its own; errors as in ``packet_of``."""
    return _message(_message_values(row) | fields)


def row_of(line: bytes) -> dict[str, Any]:
    """Return the row in a line of JSON; a ValueError says what is wrong with it."""
    if len(line) > LONGEST_ROW:
        raise ValueError(f"it has more than {LONGEST_ROW:,} bytes")
    try:
        row = json.loads(line.decode("utf-8-sig", "surrogatepass"))  # json would look for its encoding in each line
    except UnicodeDecodeError:
        raise ValueError("expected JSON lines in UTF-8") from None
    except RecursionError:
        raise ValueError("the object is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"expected a JSON object: {error}") from None
    if not isinstance(row, dict):
        raise ValueError("expected a JSON object")
    return row


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file; of a line that is longer than a row only the beginning, which ``row_of`` refuses."""
    while line := file.readline(LONGEST_ROW + 1):
        yield line
        while len(line) > LONGEST_ROW and not line.endswith(b"\n"):
            line = file.readline(LONGEST_ROW + 1)


@cache
def columns_of(table: str) -> frozenset[str]:
    """Return the columns that a row of a table may have."""
    # Of msmqwire receive, and of decode on request
    others = ("received_time", "token", "message_identifier") if table == "messages" else ()
    return frozenset((*table_columns(table), *others, "fault", "violations"))


def has_invalid_name(row: Row) -> bool:
    """Return True if a message names a queue by a direct name that is not valid: it can be decoded, but not built."""
    values = [row.get(name) for name in _NAMES]
    names = {name for value in values for name in (value if isinstance(value, list) else [value])}
    return any(isinstance(name, str) and name.startswith("DIRECT=") and not _is_valid(name) for name in names)


def _is_valid(name: str) -> bool:
    try:
        parse(name, http_slashes=True, spx=True, any_letters=True)
    except FormatNameError:
        return False
    return True


def check_columns(row: Row, table: str) -> None:
    """Refuse a row with a column that its table does not have, by a ValueError."""
    if more := row.keys() - columns_of(table):
        raise ValueError(f"{', '.join(sorted(more))}: no such column of {table}")


def _values(table: str, row: Row) -> dict[str, Any]:
    """Return the Python values of a row, without nulls."""
    values = {}
    types = _types_of(table)
    for name, value in row.items():
        if value is not None and name in types:
            try:
                values[name] = _value(types[name], value)
            except (ValueError, TypeError, AttributeError) as error:
                raise ValueError(f"{name}: {error}") from None
    return values


@cache
def _types_of(table: str) -> dict[str, DataType]:
    return {column.name: column.type for column in TABLES[table].table.columns}


def _message_values(row: Row) -> dict[str, Any]:
    """Return the values of a row of messages, with those of its ``message_identifier``."""
    values = _values("messages", row)
    identifier = row.get("message_identifier")
    if identifier is not None:
        try:
            manager, number = parse_message_identifier(identifier)
        except ValueError as error:
            raise ValueError(f"message_identifier: {error}") from None
        _agree(values, "source_queue_manager", manager, "message_identifier")
        _agree(values, "message_id", number, "message_identifier")
    return values


def parse_message_identifier(text: Any) -> tuple[UUID, int]:
    r"""Return the parts of a message identifier as Windows prints it; raise ValueError for other text.

    >>> parse_message_identifier(r"{43cd8907-394c-8f11-4445-9078909ea0fc}\103")
    (UUID('43cd8907-394c-8f11-4445-9078909ea0fc'), 103)
    """
    match = re.fullmatch(r"(\{?[0-9a-fA-F-]{36}\}?)\\(\d{1,10})", text) if isinstance(text, str) else None
    if match is None or int(match[2]) >= 1 << 32:
        raise ValueError(rf"{text!r} is not of the form GUID\NUMBER")
    return UUID(match[1]), int(match[2])


def _sender(values: Row) -> mqqb.SecurityHeader | None:
    """Return the header that has the sender of a notification."""
    kind, claim = values.get("sender_id_type"), values.get("security_id")
    if kind is None:
        return None
    if kind not in SENDER_ID_TYPES:
        raise KeyError("sender_id_type")
    flags = SENDER_ID_TYPES.index(kind) | (0 if claim is None else SECURITY_DATA_PRESENT)
    return mqqb.SecurityHeader(security_flags=flags, security_id=claim)


def _named(names: Mapping[str, Any], values: Mapping[str, Any], column: str) -> Any:
    """Return the value of the name in a column."""
    name = values.get(column)
    if not isinstance(name, str) or name not in names:
        raise KeyError(column)
    return names[name]


def time_of(value: Any) -> int:
    """Return the nanoseconds since 1970 of a time in a row; raise ValueError for a value that is not a time."""
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not an ISO 8601 time in text")
    return parse_time(value)


def _value(type_: DataType, value: Any) -> Any:
    # Packets have seconds
    return time_of(value) // 1_000_000_000 if type_ == TIMESTAMP else type_.from_json(value)


def _topology(values: dict[str, Any]) -> mqsd.TopologyClientRequest | mqsd.TopologyServerReply:
    kind = _named(_TOPOLOGY, values, "type")
    if "servers" in values:
        values["servers"] = [_made(mqsd.DirectoryServiceServer, each) for each in values["servers"]]
    elif kind is mqsd.TopologyServerReply:
        values["servers"] = []
    if kind is mqsd.TopologyClientRequest:
        values.pop("trailing", None)  # servers ignore it
    packet: mqsd.TopologyClientRequest | mqsd.TopologyServerReply = _made(
        kind, {name: value for name, value in values.items() if name not in ("type", "version")}
    )
    return packet


def _made(kind: type, values: Mapping[str, Any]) -> Any:
    """Return an object of a class with these arguments; a TypeError says which it needs or does not have."""
    required = _arguments_of(kind)
    if unknown := values.keys() - required.keys():
        raise TypeError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    if missing := [name for name, needed in required.items() if needed and name not in values]:
        raise TypeError(f"{kind.__name__} needs {', '.join(missing)}")
    return kind(**values)


@cache
def _arguments_of(kind: type) -> dict[str, bool]:
    """Return the arguments of a class, and which of them must be given."""
    return {name: each.default is Parameter.empty for name, each in signature(kind).parameters.items()}


def _message(values: dict[str, Any]) -> mqqb.UserMessage:
    """Return a message; it has an optional header if the row has columns of that header."""
    _take_texts(values)
    headers: dict[str, dict[str, Any]] = {}
    for name in values.keys() & _HEADER_OF.keys():
        headers.setdefault(_HEADER_OF[name], {})[name] = values.pop(name)
    made = {header: _made(GROUPS[header], fields) for header, fields in headers.items()}
    return mqqb.UserMessage(**_given(values), **made)


def _take_texts(values: dict[str, Any]) -> None:
    """Make the columns that are missing out of those that say the same as text; both may be there if they agree."""
    for number, numbers in NAMED.items():
        if (name := f"{number}_name") in values:
            if values[name] not in numbers:
                raise ValueError(f"{name}: {values[name]!r} is unknown")
            _agree(values, number, numbers[values[name]], name)
    if "sender_sid" in values and "security_id" in values:
        claim = mqqb.SecurityHeader(security_flags=_SID, security_id=values["security_id"])
        if claim.sender_sid != values["sender_sid"]:
            raise ValueError("sender_sid: it contradicts security_id; change security_id, or both")
    if (headers := values.get("extension_text")) is not None:
        data = values.setdefault("extension_data", headers.encode("utf-8"))
        if mqqb.UserMessage(extension_data=data).extension_text != headers:
            raise ValueError("extension_text: it contradicts extension_data; leave one of them out")
    text = values.get("body_text")
    if text is None or values.get("compound_body"):
        return
    if "body" not in values:
        values.setdefault("body_type", VT_LPWSTR)
        values["body"] = write_body(text, values["body_type"])
    elif mqqb.read_body(values["body"], values.get("body_type", 0), False)[1] != text:
        raise ValueError("body_text: it contradicts body; leave body out to write the text")


def _agree(values: dict[str, Any], column: str, value: Any, of: str) -> None:
    if values.setdefault(column, value) != value:
        raise ValueError(f"{of}: it contradicts {column}, {values[column]}; leave one of them out")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that do not follow from others."""
    return {name: value for name, value in values.items() if name not in _DERIVED}


def _notification(rows: Sequence[dict[str, Any]]) -> mqcn.ChangeNotificationMessage:
    first = rows[0]
    if first["version"] == 2:
        event = EVENTS[first["operation"], first["object"]]
        body = mqcn.NotificationBody(event, first["object_guid"], first["domain_controller"])
        return mqcn.ChangeNotificationMessage(2, body=body)
    return mqcn.ChangeNotificationMessage(1, [_update(row) for row in rows if "operation" in row])


def _update(row: Row) -> mqcn.NotificationUpdate:
    properties = []
    for item in row.get("properties", ()):
        members = [item[name] for name in _VALUE_MEMBERS if name in item]
        if not members:
            raise ValueError(f"properties: {item.get('name') or item['id']} has no value")
        properties.append((item["id"], members[0]))
    return mqcn.NotificationUpdate(
        command=row["operation"],
        guid_identifier=row.get("object_guid"),
        path_name=row.get("path_name"),
        guid_master_id=row["master_guid"],
        properties=properties,
    )
