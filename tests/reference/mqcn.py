"""The oracle of MQCN ([MS-MQCN] 2.2.4 to 2.2.6): reads one message at a time, with ``struct`` alone.

A message that cannot be decoded gives a ``Fault`` and nothing else: no part of it counts. One that breaks a MUST but
can be decoded carries the names of its violations, those of an update with the update. The fields are read in wire
order and each check is made when its field is read, so the first fault wins; in strict decoding a message without a
fault faults for the first violation that a receiver discards.
"""

from __future__ import annotations

import re
import struct
import uuid
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from tests.reference import propvariant
from tests.reference.reader import Fault, MalformedError, Reader, Span

#: The order of the bits in a batch's ``violations`` column.
VIOLATIONS = (
    "no_updates",
    "trailing_bytes",
    "path_name_syntax",
    "property_count",
    "use_guid",
    "property_set",
    "duplicate_property",
)

#: The columns of the notifications table but ``fault`` and ``violations``, in order.
COLUMNS = (
    "version",
    "index",
    "operation",
    "object",
    "object_guid",
    "path_name",
    "master_guid",
    "domain_controller",
    "properties",
    "reserved",
)

COMMANDS: tuple[Literal["create", "change", "delete"], ...] = ("create", "change", "delete")

# The PROPIDs of each command, 3.3.5.2
CREATE = frozenset((101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 1101))
QUEUE_KEY = frozenset((115,))
QUEUE = QUEUE_KEY | {104, 105, 106, 107, 111, 112, 1101}
MACHINE_KEY = frozenset((202, 219))
MACHINE = MACHINE_KEY | {214, 215, 1201} | {206, 207, 216, 220}
D_SCOPE, D_OBJTYPE = 1403, 1404

_COMPUTER = r"[\x21-\x7E]{1,256}"
_OLD_NAME = r"[\x21-\x3A\x3C-\x5B\x5D-\x7F]"
_NEW_NAME = r"[\x21\x23-\x2A\x2D-\x3A\x3C-\x5B\x5D-\x7F]"
_QUEUE_NAME = rf"(?:{_OLD_NAME}{{1,124}}|{_NEW_NAME}{{1,124}}(?:;{_NEW_NAME}{{1,32}})?)"
#: QueuePathName of [MS-MQMQ] 2.1.1 with the QueueName of any version.
PATH_NAME = re.compile(
    rf"{_COMPUTER}\\(?:(?:private\$\\)?{_QUEUE_NAME}|system\$;{_QUEUE_NAME})", re.IGNORECASE | re.ASCII
)

_MOST_UNITS = 256 + len("\\private$\\") + 124 + len(";") + 32

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_SUFFIX = "</domaincontroller></notification>"
_CLOSING = "</notification>"


class Property(NamedTuple):
    """One PROPID with its value; ``offset`` and ``size`` tell where the value stands, count and terminator included."""

    id: int
    value: Any
    offset: int = -1
    size: int = -1

    @property
    def type(self) -> str:
        """Its type, by its PROPID."""
        return propvariant.TYPE_OF[self.id]


@dataclass(frozen=True)
class Update:
    """Notification Update (2.2.6); ``path_name`` or ``guid_identifier`` is None."""

    command: str
    guid_master_id: bytes
    properties: tuple[Property, ...]
    path_name: Span | None
    guid_identifier: bytes | None
    reserved: Span
    violations: tuple[str, ...] = ()

    @property
    def object(self) -> str | None:
        """3.2.5.1: what the first PROPID is a property of, or what a delete says in its second value."""
        if self.command == "delete":
            if len(self.properties) < 2 or self.properties[1].id != D_OBJTYPE:
                return None
            kind = self.properties[1].value
        elif self.properties:
            first = self.properties[0].id
            kind = (first - 1000) // 100 if first > 1000 else first // 100
        else:
            return None
        return {1: "queue", 2: "machine"}.get(kind)


@dataclass(frozen=True)
class Body:
    """Notification Body (2.2.5)."""

    event: int
    object_guid: bytes
    domain_controller: Span
    violations: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        return {1: "create", 2: "change", 3: "delete", 4: "change"}[self.event]

    @property
    def object(self) -> str:
        return "machine" if self.event == 4 else "queue"


@dataclass(frozen=True)
class Message:
    """Change Notification Message (2.2.4); ``violations`` are those of a message without updates."""

    version: int
    updates: tuple[Update, ...] = ()
    body: Body | None = None
    violations: tuple[str, ...] = field(default=())

    @property
    def found(self) -> tuple[str, ...]:
        """The violations of the message and of all its parts, each once."""
        parts = (self, *self.updates, *((self.body,) if self.body else ()))
        every = {name for part in parts for name in part.violations}
        return tuple(name for name in VIOLATIONS if name in every)


Outcome = Message | Fault | None


#: Members of the struct of a property, and the types of the values that stand there.
MEMBERS = {
    "int": (*propvariant.NUMBERS, "VT_BOOL"),
    "text": ("VT_LPWSTR",),
    "guid": ("VT_CLSID",),
    "bytes": ("VT_BLOB", "VT_UI1|VT_VECTOR"),
    "ints": ("VT_UI4|VT_VECTOR",),
    "guids": ("VT_CLSID|VT_VECTOR",),
    "texts": ("VT_LPWSTR|VT_VECTOR",),
}
NAMES = {row.number: f"PROPID_{row.name}" for row in propvariant.propids() if row.number >= 101}


def members(item: Property) -> dict[str, Any]:
    """The struct of a property: texts and bytes with their places, without counts and terminators."""
    value = item.value
    if item.type == "VT_BOOL":
        value = int(value)
    elif item.type == "VT_LPWSTR":
        value = Span(item.offset, propvariant.units_of(value))
    elif item.type in MEMBERS["bytes"]:
        value = Span(item.offset + 4, value)
    elif item.type == "VT_LPWSTR|VT_VECTOR":
        spans, at = [], item.offset + 4
        for text in value:
            spans.append(Span(at, propvariant.units_of(text)))
            at += len(spans[-1].data) + 2
        value = tuple(spans)
    made = {name: value if item.type in types else None for name, types in MEMBERS.items()}
    return {"id": item.id, "name": NAMES[item.id], "type": item.type, **made}


def rows(outcome: Outcome) -> list[dict[str, Any]]:
    """The rows of the notifications table: one for each change, one for anything else (None is a null payload)."""
    nothing: dict[str, Any] = dict.fromkeys((*COLUMNS, "fault", "violations"))
    if outcome is None:
        return [nothing]
    if isinstance(outcome, Fault):
        return [nothing | {"fault": outcome}]
    if outcome.body is not None:
        body = outcome.body
        return [
            nothing
            | {
                "version": outcome.version,
                "index": 0,
                "operation": body.operation,
                "object": body.object,
                "object_guid": body.object_guid,
                "domain_controller": body.domain_controller,
                "violations": body.violations,
            }
        ]
    if not outcome.updates:
        return [nothing | {"version": outcome.version, "violations": outcome.violations}]
    return [
        nothing
        | {
            "version": outcome.version,
            "index": index,
            "operation": update.command,
            "object": update.object,
            "object_guid": update.guid_identifier,
            "path_name": update.path_name,
            "master_guid": update.guid_master_id,
            "properties": tuple(map(members, update.properties)),
            "reserved": update.reserved if any(update.reserved.data) else None,
            "violations": update.violations,
        }
        for index, update in enumerate(outcome.updates)
    ]


def read(data: bytes, *, strict: bool = False) -> Message | Fault:
    """The message that the payload holds, or why it holds none."""
    reader = Reader(bytes(data))
    discardable: list[Fault] = []
    try:
        message = _read(reader, discardable)
    except MalformedError as error:
        return error.fault
    return discardable[0] if strict and discardable else message


def _read(reader: Reader, discardable: list[Fault]) -> Message:
    """2.2.4; behind the last update one unused byte may stand (3.3.5.3)."""
    version = reader.u8("Version")
    if version not in (1, 2):
        raise MalformedError("bad_version", "Version", 0)
    count = reader.u8("NumberOfUpdateNotifications")
    if version == 2:
        if count != 1:
            raise MalformedError("bad_count", "NumberOfUpdateNotifications", 1)
        return Message(2, body=_read_body(reader.data, discardable))
    updates = [_read_update(reader, discardable) for _ in range(count)]
    trailing: tuple[str, ...] = ()
    if reader.left > 1:
        trailing = ("trailing_bytes",)
        discardable.append(Fault("bad_size", "Data", reader.position))
    if not updates:
        return Message(1, violations=("no_updates", *trailing))
    updates[-1] = replace(updates[-1], violations=trailing + updates[-1].violations)
    return Message(1, tuple(updates))


def _read_update(reader: Reader, discardable: list[Fault]) -> Update:
    """2.2.6, unaligned and packed."""
    start = reader.position
    command = reader.u8("Command")
    if command > 2:
        raise MalformedError("bad_command", "Command", start)
    use_guid = reader.u8("UseGuid")
    if use_guid > 1:
        raise MalformedError("bad_use_guid", "UseGuid", start + 1)
    found = []
    at = reader.position
    path_name = guid = None
    if use_guid:
        guid = reader.take("GuidIdentifier", 16)
    else:
        end = propvariant.end_of_string(reader.data, at)
        if end < 0:
            raise MalformedError("bad_terminator", "PathName", at)
        path_name = Span(at, reader.take("PathName", end - at))
        reader.take("PathName", 2)
        if not PATH_NAME.fullmatch(path_name.text):
            found.append("path_name_syntax")
            discardable.append(Fault("bad_name", "PathName", at + 2 * wrong_unit(path_name.text)))
    master = reader.take("GuidMasterId", 16)
    reserved = Span(reader.position, reader.take("Reserved", 24))
    count_at = reader.position
    count = reader.u8("NumberOfProperties")
    properties = _read_properties(reader, count)
    if count < (2 if command == 2 else 1):
        found.append("property_count")
        discardable.append(Fault("bad_count", "NumberOfProperties", count_at))
    update = Update(COMMANDS[command], master, properties, path_name, guid, reserved)
    if use_guid != (command != 0):
        found.append("use_guid")
    if not _is_of_its_command(update):
        found.append("property_set")
    if len({item.id for item in properties}) < count:
        found.append("duplicate_property")
    return replace(update, violations=tuple(found))


def _length(pattern: str, text: str) -> int:
    """How many characters a text begins with that are of a pattern, as none are at least."""
    found = re.match(pattern, text)
    assert found is not None
    return found.end()


def wrong_unit(path: str) -> int:
    """The first character that cannot stand where it is in a text that is no path name: its length if it ends early.

    The computer ends at the last backslash of the visible characters, or at the ``\\private$`` before that one.
    """
    path = path[: _MOST_UNITS + 1]
    visible = _length(r"[\x21-\x7E]*", path)
    backslash = path.rfind("\\", 0, visible)
    if backslash < 0:
        return min(visible, 256)
    start = backslash + 1
    private = path[:backslash].lower().endswith("\\private$") and backslash > 9
    if private and path[start:].lower().startswith("system$;"):
        private = re.fullmatch(_QUEUE_NAME, path[start:]) is not None
    if backslash == 0 or backslash - 9 * private > 256:
        return min(backslash, 256)
    if not private and path[start:].lower().startswith("system$;"):
        start += 8
    end = start + _length(rf"{_OLD_NAME}{{0,124}}", path[start:])
    if path[end : end + 1] != ";" or end == start or not re.fullmatch(rf"{_NEW_NAME}*", path[start:end]):
        return end
    return end + 1 + _length(rf"{_NEW_NAME}{{0,32}}", path[end + 1 :])


def _read_properties(reader: Reader, count: int) -> tuple[Property, ...]:
    """All PROPIDs are judged before the first value is read."""
    at = reader.position
    ids = struct.unpack(f"<{count}I", reader.take("PropertyId", 4 * count))
    for k, propid in enumerate(ids):
        if propid not in propvariant.TYPE_OF:
            raise MalformedError("unknown_property", f"PropertyId[{k}]", at + 4 * k)
    properties = []
    for k, propid in enumerate(ids):
        at = reader.position
        value, end = propvariant.read(propvariant.TYPE_OF[propid], reader.data, at, f"PropertyValue[{k}]")
        reader.take(f"PropertyValue[{k}]", end - at)
        properties.append(Property(propid, value, at, end - at))
    return tuple(properties)


def _is_of_its_command(update: Update) -> bool:
    """3.3.5.2: the PROPIDs that a sender puts into an update of this command."""
    ids = {item.id for item in update.properties}
    if update.command == "create":
        return ids == CREATE
    if update.command == "delete":
        return [(item.id, item.value) for item in update.properties] == [(D_SCOPE, 1), (D_OBJTYPE, 1)]
    if update.object == "queue":
        return QUEUE_KEY <= ids <= QUEUE
    return update.object == "machine" and MACHINE_KEY <= ids <= MACHINE


def _read_body(data: bytes, discardable: list[Fault]) -> Body:
    """2.2.5 on 16-bit code units: an odd last byte and then one U+0000 may stand behind it (3.3.5.3)."""
    units = struct.unpack_from(f"<{(len(data) - 2) // 2}H", data, 2)
    if units and units[-1] == 0:
        units = units[:-1]
    text = "".join(map(chr, units))  # a character a unit, surrogates too
    folded = text.translate(_LOWER)
    found: tuple[str, ...] = ()
    cut = folded.rfind(_CLOSING) + len(_CLOSING)
    if not folded.endswith(_CLOSING) and cut >= len(_CLOSING):
        text, folded = text[:cut], folded[:cut]
        found = ("trailing_bytes",)

    def bad(field_name: str, at: int) -> MalformedError:
        return MalformedError("bad_text", field_name, 2 + 2 * at)

    def literal(expected: str, at: int) -> int:
        for i, char in enumerate(expected):
            if folded[at + i : at + i + 1] != char:
                raise bad("NotificationBody", at + i)
        return at + len(expected)

    at = literal("<notification><event>", 0)
    event = folded[at : at + 1]
    if event not in ("1", "2", "3", "4"):
        raise bad("Event", at)
    at = literal("</event><objectguid>", at + 1)
    for i in range(36):
        char = folded[at + i : at + i + 1]
        if not (char == "-" if i in (8, 13, 18, 23) else char and char in "0123456789abcdef"):
            raise bad("ObjectGuid", at + i)
    guid = uuid.UUID(folded[at : at + 36]).bytes_le
    at = literal("</objectguid", at + 36)
    if folded[at : at + 1] == " ":
        at += 1
    at = literal("><domaincontroller>", at)
    end = len(folded) - len(_SUFFIX)
    if end < at or not folded.endswith(_SUFFIX):
        raise bad("NotificationBody", len(folded))
    name = text[at:end]
    if not 1 <= len(name) <= 256:
        raise bad("DomainController", at)
    for i, char in enumerate(name):
        if not "\x21" <= char <= "\x7e":
            raise bad("DomainController", at + i)
    if found:
        discardable.append(Fault("bad_size", "Data", 2 + 2 * len(folded)))
    return Body(int(event), guid, Span(2 + 2 * at, propvariant.units_of(name)), found)
