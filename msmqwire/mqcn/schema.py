"""The table of MS-MQCN: the fields of change notifications, their columns, and the rules that messages can break.

[MS-MQCN] 2.2.4-2.2.6. ``make build`` writes ``_generated.pxd`` from this table.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any, get_args

from msmqwire.columns.fields import SIZES, Header, Violations, WireField, fault_names, packet_table
from msmqwire.columns.schema import (
    BYTES,
    GUID,
    INT64,
    TEXT,
    UINT8,
    UINT32,
    Column,
    Enumeration,
    FaultRule,
    ListOf,
    StructOf,
)
from msmqwire.mqcn.property_sets import PROPERTY_SETS, SENT
from msmqwire.mqcn.values import Object, Operation
from msmqwire.properties.table import KINDS, NUMBERED, by_name
from msmqwire.properties.vartype import TYPE_NAMES

OPERATIONS: tuple[str, ...] = get_args(Operation)
OBJECTS: tuple[str, ...] = get_args(Object)

#: Of one message, and of one update: their counts have one byte.
MAX_UPDATES = MAX_PROPERTIES = 0xFF
#: Code units of DomainController, and their range.
MAX_NAME_UNITS = 256
FIRST_VISIBLE, LAST_VISIBLE = 0x21, 0x7E
#: Bytes of a PROPID and the smallest value.
SMALLEST_PROPERTY = 5
PROPID_D_SCOPE, PROPID_D_OBJTYPE = by_name("PROPID_D_SCOPE").number, by_name("PROPID_D_OBJTYPE").number
SENT_COUNT = len(SENT)


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

#: The members of a property for its value: the member of its type has it, the others are null.
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
    WireField(
        "Command", "u8", id="command", names=dict(enumerate(OPERATIONS)),
        checks={"bad_command": f"command > {len(OPERATIONS) - 1}"},
    ),
    WireField(
        "UseGuid", "u8", id="use_guid",
        checks={
            "bad_use_guid": "use_guid > 1",
            "use_guid": "(command == 0 and use_guid == 1) or (command > 0 and use_guid == 0)",
        },
    ),
    WireField("PathName", "string", fills="path_name", when="use_guid == 0"),
    WireField("GuidIdentifier", "guid", fills="object_guid", when="use_guid == 1"),
    WireField("GuidMasterId", "guid", fills="master_guid"),
    WireField("Reserved", "bytes", size="24"),
    WireField(
        "NumberOfProperties", "u8", id="property_count",
        checks={
            "property_count": "property_count == 0 or (command == 2 and property_count < 2)",
        },
    ),
    WireField(
        "PropertyId", "u32", id="property_id", repeat="property_count",
        names={row.number: row.name for row in NUMBERED},
    ),
    WireField("PropertyValue", "value", id="property_value", repeat="property_count"),
)  # fmt: skip

_SIZES = {row.name: SIZES.get(row.type) or int(row.size or 0) for row in _UPDATE}
#: Where fields of an update are from GuidMasterId on.
RESERVED_AT = _SIZES["GuidMasterId"]
COUNT_AT = RESERVED_AT + _SIZES["Reserved"]
IDS_AT = COUNT_AT + _SIZES["NumberOfProperties"]
#: Bytes of an update with an empty PathName, which ends with U+0000.
SMALLEST_UPDATE = _SIZES["Command"] + _SIZES["UseGuid"] + 2 + IDS_AT

HEADERS = (
    Header(
        "",
        (
            WireField("Version", "u8", 0, checks={"bad_version": "not (version == 1 or version == 2)"}, column=Column(
                "version", UINT8, "Version: 1 from a directory service, 2 from a queue manager", store="codes.VERSION",
            )),
            WireField(
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
            Column("index", UINT8, "position of the change in its message", store="codes.INDEX"),
            Column("operation", Enumeration(OPERATIONS), "Command, or the operation of Event", store="codes.OPERATION"),
            Column(
                "object", Enumeration(OBJECTS), "what is changed; null if neither ([MS-MQCN] 3.2.5.1)",
                bit="HAS_OBJECT", store="codes.OBJECT",
            ),
        ),
        presence="HAS_CHANGE",
    ),
    Header(
        "OBJECT_GUID",
        (
            WireField("GuidIdentifier", "guid", 0, column=Column("object_guid", GUID, "GuidIdentifier or ObjectGuid")),
        ),
        presence="HAS_GUID",
        layout=None,
    ),
    Header(
        "",
        (
            WireField(
                "NotificationUpdate", id="notification_update", when="version == 1", repeat="updates",
                fields=_UPDATE,
            ),
            Column(
                "path_name", TEXT, "PathName of the queue, in place of the GUID", bit="HAS_PATH",
                store="parts.PATH_NAME",
            ),
        ),
    ),
    Header(
        "MASTER_GUID",
        (
            WireField("GuidMasterId", "guid", 0, column=Column(
                "master_guid", GUID, "version 1: the directory server that made the change",
            )),
        ),
        presence="HAS_UPDATE",
        layout=None,
    ),
    Header(
        "",
        (
            WireField(
                "NotificationBody", "text", when="version == 2", size="left",
                faults=("Event", "ObjectGuid", "DomainController", "NotificationBody", "Data"),
            ),
            Column(
                "domain_controller", TEXT, "version 2: the directory server that has the change", bit="HAS_BODY",
                store="parts.DOMAIN_CONTROLLER",
            ),
            Column(
                "properties", ListOf(_PROPERTY), "version 1: PropertyId and PropertyValue", bit="HAS_UPDATE",
                store="lists.PROPERTIES",
            ),
            Column(
                "reserved", BYTES, "version 1: Reserved, where it is not zeros; receivers ignore it",
                bit="HAS_RESERVED", store="parts.RESERVED",
            ),
        ),
    ),
)  # fmt: skip

FIELDS = fault_names(HEADERS)
#: Bytes of Version and NumberOfUpdateNotifications.
HEADER_SIZE = HEADERS[0].size
#: Enumerations of kernels.
CODES = {"Operation": OPERATIONS, "Object": ("no_object", *OBJECTS)}
NUMBERS = {"PropertySet": PROPERTY_SETS}
FAULT_RULES = (
    FaultRule("truncated", "", "the message ends inside the field"),
    FaultRule("bad_version", "Version", "neither 1 nor 2"),
    FaultRule("bad_count", "NumberOfUpdateNotifications", "not 1, in version 2"),
    FaultRule("bad_command", "Command", "above 2"),
    FaultRule("bad_use_guid", "UseGuid", "above 1"),
    FaultRule("bad_terminator", "PathName, PropertyValue", "a text without its U+0000"),
    FaultRule(
        "unknown_property", "PropertyId", "not a PROPID of [MS-MQMQ] 2.3, or 1 to 27, which have two meanings each"
    ),
    FaultRule("bad_count", "PropertyValue", "a blob or vector with a count that exceeds the bytes left"),
    FaultRule(
        "bad_text",
        "NotificationBody, Event, ObjectGuid, DomainController",
        "version 2: text that does not match the grammar of 2.2.5; at the code unit",
    ),
)
NOTIFICATIONS = packet_table("notifications", "[MS-MQCN] 2.2.4", HEADERS, FIELDS, Violation, FAULT_RULES)


def begins_message(row: Mapping[str, Any]) -> bool:
    """Return True if a row of the table is the first of its message: its ``index`` is 0 or null."""
    return not row.get("index")
