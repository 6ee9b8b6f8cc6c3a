"""The columns of the notifications table, and the names that its faults and violations use: [MS-MQCN] 2.2.4-2.2.6."""

from __future__ import annotations

from msmqwire.columns.schema import (
    BYTES,
    GUID,
    INT64,
    TEXT,
    UINT8,
    UINT32,
    Column,
    Enumeration,
    ListOf,
    StructOf,
    Table,
)
from msmqwire.mqcn.kernel import STRICT, Field, Object, Operation, Presence, Violation
from msmqwire.mqcn.property_columns import Member
from msmqwire.properties.lookup import KINDS, NUMBERED
from msmqwire.properties.vartype import TYPE_NAMES

__all__ = ["FIELDS", "NOTIFICATIONS", "OBJECTS", "OPERATIONS", "STRICT", "Violation"]

FIELDS = tuple([field.name for field in Field if field.name])
OPERATIONS = tuple(name.lower() for name in Operation.__members__)
OBJECTS = tuple(name.lower() for name in Object.__members__ if name != "NO_OBJECT")

# The value of a property is in the member of its type; the other members are null.
PROPERTY = StructOf(
    (
        ("id", UINT32),
        ("name", Enumeration(("", *(row.name for row in NUMBERED)))),
        ("type", Enumeration(("", *(TYPE_NAMES[vt] for vt in KINDS if vt)))),
        ("int", INT64),
        ("text", TEXT),
        ("guid", GUID),
        ("bytes", BYTES),
        ("ints", ListOf(UINT32)),
        ("guids", ListOf(GUID)),
        ("texts", ListOf(TEXT)),
    ),
    presence=(0, 0, 0, *Member.__members__.values()),
)

NOTIFICATIONS = Table(
    name="notifications",
    section="[MS-MQCN] 2.2.4",
    columns=(
        Column("version", UINT8, "Version: 1 from a directory service, 2 from a queue manager"),
        Column("index", UINT8, "position of the change in its message", Presence.HAS_CHANGE),
        Column("operation", Enumeration(OPERATIONS), "Command, or the operation of Event", Presence.HAS_CHANGE),
        Column(
            "object", Enumeration(OBJECTS), "what is changed; null if neither ([MS-MQCN] 3.2.5.1)", Presence.HAS_OBJECT
        ),
        Column("object_guid", GUID, "GuidIdentifier or ObjectGuid", Presence.HAS_GUID),
        Column("path_name", TEXT, "PathName of the queue, in place of the GUID", Presence.HAS_PATH),
        Column("master_guid", GUID, "version 1: the directory server that made the change", Presence.HAS_UPDATE),
        Column("domain_controller", TEXT, "version 2: the directory server that has the change", Presence.HAS_BODY),
        Column("properties", ListOf(PROPERTY), "version 1: PropertyId and PropertyValue", Presence.HAS_UPDATE),
        Column(
            "reserved", BYTES, "version 1: Reserved, where it is not zeros; receivers ignore it", Presence.HAS_RESERVED
        ),
    ),
    fields=FIELDS,
    violations=Violation,
    rules=(
        ("no_updates", "a message of version 1 has at least one change ([MS-MQCN] 2.2.4)"),
        (
            "trailing_bytes",
            "one unused byte may follow the last update, a U+0000 and one byte the text of version 2 "
            "([MS-MQCN] 3.3.5.3)",
        ),
        ("path_name_syntax", "PathName is a QueuePathName, of any version of MSMQ ([MS-MQMQ] 2.1.1)"),
        ("property_count", "a create or change has a property, a delete has two ([MS-MQCN] 3.2.5.1)"),
        ("use_guid", "a create has a PathName, a change or delete a GUID ([MS-MQCN] 3.3.5.2)"),
        ("property_set", "the PROPIDs are those of the command ([MS-MQCN] 3.3.5.2)"),
        ("duplicate_property", "no PROPID is repeated; receivers use the first ([MS-MQCN] 3.3.5.2)"),
    ),
)
