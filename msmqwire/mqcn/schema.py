"""The table of MS-MQCN: the fields of change notifications, their columns, and the rules that messages can break.

[MS-MQCN] 2.2.4-2.2.6. ``make build`` writes ``_generated.pxd`` from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any, get_args

from msmqwire.columns.fields import Field, Header, Violations, fault_names, packet_table
from msmqwire.columns.schema import BYTES, GUID, INT64, TEXT, UINT32, Enumeration, ListOf, StructOf
from msmqwire.mqcn.property_sets import PROPERTY_SETS
from msmqwire.mqcn.values import Object, Operation
from msmqwire.properties.table import KINDS, NUMBERED
from msmqwire.properties.vartype import TYPE_NAMES

OPERATIONS: tuple[str, ...] = get_args(Operation)
OBJECTS: tuple[str, ...] = get_args(Object)


class Violation(Violations):
    """Bits of the column ``violations`` of notifications; strict decoding makes those in ``STRICT`` faults."""

    NO_UPDATES = "NumberOfUpdateNotifications", "[MS-MQCN] 2.2.4", "a message of version 1 has at least one change"
    TRAILING_BYTES = (
        "Data",
        "[MS-MQCN] 3.3.5.3",
        "one unused byte may follow the last update, a U+0000 and one byte the text of version 2",
        "bad_size",
    )
    PATH_NAME_SYNTAX = (
        "PathName", "[MS-MQMQ] 2.1.1", "PathName is a QueuePathName, of any version of MSMQ", "bad_name",
    )  # fmt: skip
    PROPERTY_COUNT = (
        "NumberOfProperties",
        "[MS-MQCN] 3.2.5.1",
        "a create or change has a property, a delete has two",
        "bad_count",
    )
    USE_GUID = "UseGuid", "[MS-MQCN] 3.3.5.2", "a create has a PathName, a change or delete a GUID"
    PROPERTY_SET = "PropertyId", "[MS-MQCN] 3.3.5.2", "the PROPIDs are those of the command"
    DUPLICATE_PROPERTY = "PropertyId", "[MS-MQCN] 3.3.5.2", "no PROPID is repeated; receivers use the first"


#: The violations that are faults of strict decoding.
STRICT = reduce(or_, [each for each in Violation if each.rule.strict])

#: The members of a property that hold its value: that of its type has it, the others are null.
VALUES = (
    ("int", INT64), ("text", TEXT), ("guid", GUID), ("bytes", BYTES), ("ints", ListOf(UINT32)), ("guids", ListOf(GUID)),
    ("texts", ListOf(TEXT)),
)  # fmt: skip
_PROPERTY = StructOf(
    (
        ("id", UINT32),
        ("name", Enumeration.of({row.number: row.name for row in NUMBERED})),
        ("type", Enumeration.of({vt: TYPE_NAMES[vt] for vt in KINDS if vt})),
        *VALUES,
    ),
    presence=(0, 0, 0, *(1 << place for place in range(len(VALUES)))),
)

_UPDATE = (
    Field(
        "Command", "u8", id="command", names=dict(enumerate(OPERATIONS)), checks={"bad_command": "command > 2"},
    ),
    Field(
        "UseGuid", "u8", id="use_guid",
        checks={
            "bad_use_guid": "use_guid > 1",
            "use_guid": "(command == 0 and use_guid == 1) or (command > 0 and use_guid == 0)",
        },
    ),
    Field("PathName", "string", column="path_name", when="use_guid == 0"),
    Field("GuidIdentifier", "guid", column="object_guid", when="use_guid == 1"),
    Field("GuidMasterId", "guid", column="master_guid"),
    Field("Reserved", "bytes", size="24"),
    Field(
        "NumberOfProperties", "u8", id="property_count",
        checks={
            "property_count": "property_count == 0 or (command == 2 and property_count < 2)",
        },
    ),
    Field(
        "PropertyId", "u32", id="property_id", repeat="property_count",
        names={row.number: row.name for row in NUMBERED},
    ),
    Field("PropertyValue", "value", id="property_value", repeat="property_count"),
)  # fmt: skip

HEADERS = (
    Header(
        "",
        (
            Field(
                "Version", "u8", 0, "version", "Version: 1 from a directory service, 2 from a queue manager",
                store="codes.VERSION", checks={"bad_version": "not (version == 1 or version == 2)"},
            ),
            Field(
                "NumberOfUpdateNotifications", "u8", 1, id="updates",
                checks={
                    "no_updates": "version == 1 and updates == 0",
                    "bad_count": "version == 2 and not (updates == 1)",
                },
            ),
        ),
    ),
    Header(
        "",
        (
            Field("", "u8", -1, "index", "position of the change in its message", store="codes.INDEX"),
            Field(
                "", "u8", -1, "operation", "Command, or the operation of Event", shown=Enumeration(OPERATIONS),
                store="codes.OPERATION",
            ),
            Field(
                "", "u8", -1, "object", "what is changed; null if neither ([MS-MQCN] 3.2.5.1)",
                shown=Enumeration(OBJECTS), store="codes.OBJECT", presence="HAS_OBJECT",
            ),
        ),
        presence="HAS_CHANGE",
    ),
    Header("OBJECT_GUID", (Field("", "guid", 0, "object_guid", "GuidIdentifier or ObjectGuid"),), presence="HAS_GUID"),
    Header(
        "",
        (
            Field(
                "NotificationUpdate", id="notification_update", when="version == 1", repeat="updates", fields=_UPDATE,
            ),
            Field(
                "", "text", -1, "path_name", "PathName of the queue, in place of the GUID", store="parts.PATH_NAME",
                presence="HAS_PATH",
            ),
        ),
    ),
    Header(
        "MASTER_GUID",
        (Field("", "guid", 0, "master_guid", "version 1: the directory server that made the change"),),
        presence="HAS_UPDATE",
    ),
    Header(
        "",
        (
            Field(
                "NotificationBody", "text", when="version == 2", size="left",
                faults=("Event", "ObjectGuid", "DomainController", "NotificationBody", "Data"),
            ),
            Field(
                "", "text", -1, "domain_controller", "version 2: the directory server that has the change",
                store="parts.DOMAIN_CONTROLLER", presence="HAS_BODY",
            ),
            Field(
                "", "", -1, "properties", "version 1: PropertyId and PropertyValue", shown=ListOf(_PROPERTY),
                store="lists.PROPERTIES", presence="HAS_UPDATE",
            ),
            Field(
                "", "bytes", -1, "reserved", "version 1: Reserved, where it is not zeros; receivers ignore it",
                store="parts.RESERVED", presence="HAS_RESERVED",
            ),
        ),
    ),
)  # fmt: skip

FIELDS = fault_names(HEADERS)
#: Enumerations of kernels.
CODES = {"Operation": OPERATIONS, "Object": ("no_object", *OBJECTS)}
BITS = {"PropertySet": PROPERTY_SETS}
NOTIFICATIONS = packet_table("notifications", "[MS-MQCN] 2.2.4", HEADERS, FIELDS, Violation)


def begins_message(row: Mapping[str, Any]) -> bool:
    """Whether a row of the table is the first of its message: its ``index`` is 0 or null."""
    return not row.get("index")
