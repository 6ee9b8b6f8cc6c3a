"""The columns of the notifications table, and the names that its faults and violations use: [MS-MQCN] 2.2.4-2.2.6."""

from __future__ import annotations

from enum import IntFlag

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
from msmqwire.properties.lookup import KINDS, NUMBERED
from msmqwire.properties.vartype import TYPE_NAMES

__all__ = ["FIELDS", "NOTIFICATIONS", "OBJECTS", "OPERATIONS", "Violation"]

# In the order of the enumeration Field in codec.pxd
FIELDS = (
    "Version",
    "NumberOfUpdateNotifications",
    "Command",
    "UseGuid",
    "PathName",
    "GuidIdentifier",
    "GuidMasterId",
    "Reserved",
    "NumberOfProperties",
    "PropertyId",
    "PropertyValue",
    "Event",
    "ObjectGuid",
    "DomainController",
    "NotificationBody",
    "Data",
)

OPERATIONS = ("create", "change", "delete")
OBJECTS = ("queue", "machine")

# The bits of a presence byte above DECODED, as codec.pxd has them
CHANGE, UPDATE, OBJECT, GUID_IDENTIFIER, PATH_NAME, BODY = 2, 4, 8, 16, 32, 64


class Violation(IntFlag):
    """Bits of the ``violations`` column of the notifications table; with ``strict=True`` 2, 4 and 8 are faults."""

    NO_UPDATES = 1
    TRAILING_BYTES = 2
    PATH_NAME_SYNTAX = 4
    PROPERTY_COUNT = 8
    USE_GUID = 16
    PROPERTY_SET = 32
    DUPLICATE_PROPERTY = 64


# What a property is worth: the value stands in the member that its type calls for, the others are null.
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
    presence=(0, 0, 0, 1, 2, 4, 8, 16, 32, 64),
)

NOTIFICATIONS = Table(
    name="notifications",
    section="[MS-MQCN] 2.2.4",
    columns=(
        Column("version", UINT8, "Version: 1 from a directory service, 2 from a queue manager"),
        Column("index", UINT8, "position of the change in its message", CHANGE),
        Column("operation", Enumeration(OPERATIONS), "Command, or what Event stands for", CHANGE),
        Column("object", Enumeration(OBJECTS), "what is changed; null if neither ([MS-MQCN] 3.2.5.1)", OBJECT),
        Column("object_guid", GUID, "GuidIdentifier or ObjectGuid", GUID_IDENTIFIER),
        Column("path_name", TEXT, "PathName of the queue, where it stands for the GUID", PATH_NAME),
        Column("master_guid", GUID, "version 1: the directory server that the change comes from", UPDATE),
        Column("domain_controller", TEXT, "version 2: the directory server that knows of the change", BODY),
        Column("properties", ListOf(PROPERTY), "version 1: PropertyId and PropertyValue", UPDATE),
    ),
    fields=FIELDS,
    violations=Violation,
)
