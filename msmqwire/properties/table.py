"""Every PROPID: name, number, type of its value, object and section that defines it ([MS-MQMQ] 2.3).

This is the only list of PROPIDs: the C index of ``lookup`` and the manual's table come from it. Rows stand in the
order of the specification, so the last number of a section is the row's place in its group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from msmqwire.properties.vartype import (
    VT_BLOB,
    VT_BOOL,
    VT_CLSID,
    VT_I1,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_LPWSTR,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_VARIANT,
    VT_VECTOR,
)

FIRST_UNIQUE = 101
"""Lower numbers belong to the management groups, which share them and never occur in a notification."""


@dataclass(frozen=True, slots=True)
class Property:
    """One PROPID.

    Attributes
    ----------
    name : str
        E.g. ``"PROPID_Q_QUOTA"``.
    number : int
        What stands on the wire.
    vt : int
        VARTYPE code of its value.
    object : str
        The kind of object that has it, e.g. ``"Queue"``.
    section : str
        Where [MS-MQMQ] defines it.
    values : mapping of str to int
        The values that the specification names, by name; empty for most.
    """

    name: str
    number: int
    vt: int
    object: str
    section: str
    values: Mapping[str, int] = field(hash=False)

    def __reduce__(self) -> tuple[Callable[[str], Property], tuple[str]]:
        return by_name, (self.name,)


_Values = Mapping[str, int]
_Row = tuple[str, int, int] | tuple[str, int, int, _Values]

JOURNAL: _Values = MappingProxyType({"MQ_JOURNAL_NONE": 0, "MQ_JOURNAL": 1})
AUTHENTICATE: _Values = MappingProxyType({"MQ_AUTHENTICATE_NONE": 0, "MQ_AUTHENTICATE": 1})
PRIV_LEVEL: _Values = MappingProxyType({"MQ_PRIV_LEVEL_NONE": 0, "MQ_PRIV_LEVEL_OPTIONAL": 1, "MQ_PRIV_LEVEL_BODY": 2})
TRANSACTION: _Values = MappingProxyType({"MQ_TRANSACTIONAL_NONE": 0, "MQ_TRANSACTIONAL": 1})
SCOPE: _Values = MappingProxyType({"MQDS_SITESCOPE": 0, "MQDS_ENTERPRISESCOPE": 1})
FOREIGN: _Values = MappingProxyType({"MSMQ_MACHINE": 0, "FOREIGN_MACHINE": 1})
OPERATING_SYSTEM: _Values = MappingProxyType(
    {
        "MSMQ_OS_NONE": 0,
        "MSMQ_OS_FOREIGN": 0x100,
        "MSMQ_OS_95": 0x200,
        "MSMQ_OS_NTW": 0x300,
        "MSMQ_OS_NTS": 0x400,
        "MSMQ_OS_NTE": 0x500,
    }
)
CLUSTER: _Values = MappingProxyType({"MSMQ_GROUP_NOT_IN_CLUSTER": 0, "MSMQ_GROUP_IN_CLUSTER": 1})
PROTOCOL: _Values = MappingProxyType({"IP_ADDRESS_TYPE": 1, "IPX_ADDRESS_TYPE": 3, "FOREIGN_ADDRESS_TYPE": 5})
OBJECT_TYPE: _Values = MappingProxyType(
    {
        "MQDS_QUEUE": 1,
        "MQDS_MACHINE": 2,
        "MQDS_SITE": 3,
        "MQDS_DELETEDOBJECT": 4,
        "MQDS_CN": 5,
        "MQDS_ENTERPRISE": 6,
        "MQDS_USER": 7,
        "MQDS_ROUTINGLINK": 8,
    }
)
_NO_VALUES: _Values = MappingProxyType({})

# Name, number, type and named values of each PROPID, by object, prefix of its names, and section of its group
_GROUPS: dict[tuple[str, str, str], tuple[_Row, ...]] = {
    ("Queue", "PROPID_Q", "2.3.1"): (
        ("INSTANCE", 101, VT_CLSID),
        ("TYPE", 102, VT_CLSID),
        ("PATHNAME", 103, VT_LPWSTR),
        ("JOURNAL", 104, VT_UI1, JOURNAL),
        ("QUOTA", 105, VT_UI4),
        ("BASEPRIORITY", 106, VT_I2),
        ("JOURNAL_QUOTA", 107, VT_UI4),
        ("LABEL", 108, VT_LPWSTR),
        ("CREATE_TIME", 109, VT_I4),
        ("MODIFY_TIME", 110, VT_I4),
        ("AUTHENTICATE", 111, VT_UI1, AUTHENTICATE),
        ("PRIV_LEVEL", 112, VT_UI4, PRIV_LEVEL),
        ("TRANSACTION", 113, VT_UI1, TRANSACTION),
        ("SCOPE", 114, VT_UI1, SCOPE),
        ("QMID", 115, VT_CLSID),
        ("PARTITIONID", 116, VT_CLSID),
        ("SEQNUM", 117, VT_BLOB),
        ("HASHKEY", 118, VT_UI4),
        ("LABEL_HASHKEY", 119, VT_UI4),
        ("FULL_PATH", 121, VT_LPWSTR),
        ("NAME_SUFFIX", 123, VT_LPWSTR),
        ("PATHNAME_DNS", 124, VT_LPWSTR),
        ("MULTICAST_ADDRESS", 125, VT_LPWSTR),
        ("ADS_PATH", 126, VT_LPWSTR),
        ("SECURITY", 1101, VT_BLOB),
        ("OBJ_SECURITY", 1102, VT_BLOB),
        ("SECURITY_INFORMATION", 1103, VT_UI4),
    ),
    ("QueueManager", "PROPID_QM", "2.3.2"): (
        ("SITE_ID", 201, VT_CLSID),
        ("MACHINE_ID", 202, VT_CLSID),
        ("PATHNAME", 203, VT_LPWSTR),
        ("ENCRYPTION_PK", 205, VT_UI1 | VT_VECTOR),
        ("ADDRESS", 206, VT_BLOB),
        ("CNS", 207, VT_CLSID | VT_VECTOR),
        ("OUTFRS", 208, VT_CLSID | VT_VECTOR),
        ("INFRS", 209, VT_CLSID | VT_VECTOR),
        ("SERVICE", 210, VT_UI4),
        ("QUOTA", 214, VT_UI4),
        ("PARTITIONID", 211, VT_CLSID),
        ("HASHKEY", 212, VT_UI4),
        ("SEQNUM", 213, VT_BLOB),
        ("JOURNAL_QUOTA", 215, VT_UI4),
        ("MACHINE_TYPE", 216, VT_LPWSTR),
        ("CREATE_TIME", 217, VT_I4),
        ("MODIFY_TIME", 218, VT_I4),
        ("FOREIGN", 219, VT_UI1, FOREIGN),
        ("OS", 220, VT_UI4, OPERATING_SYSTEM),
        ("FULL_PATH", 221, VT_LPWSTR),
        ("SITE_IDS", 222, VT_CLSID | VT_VECTOR),
        ("OUTFRS_DN", 223, VT_LPWSTR | VT_VECTOR),
        ("INFRS_DN", 224, VT_LPWSTR | VT_VECTOR),
        ("SERVICE_ROUTING", 227, VT_UI1),
        ("SERVICE_DSSERVER", 228, VT_UI1),
        ("SERVICE_DEPCLIENTS", 229, VT_UI1),
        ("ENCRYPTION_PK_BASE", 231, VT_UI1 | VT_VECTOR),
        ("ENCRYPTION_PK_ENHANCED", 232, VT_UI1 | VT_VECTOR),
        ("PATHNAME_DNS", 233, VT_LPWSTR),
        ("OBJ_SECURITY", 234, VT_BLOB),
        ("SECURITY_INFORMATION", 237, VT_UI4),
        ("ENCRYPT_PKS", 238, VT_BLOB),
        ("SIGN_PKS", 239, VT_BLOB),
        ("OWNER_SID", 241, VT_BLOB),
        ("GROUP_IN_CLUSTER", 242, VT_UI1, CLUSTER),
        ("SECURITY", 1201, VT_BLOB),
        ("SIGN_PK", 1202, VT_BLOB),
        ("ENCRYPT_PK", 1203, VT_BLOB),
        ("UPGRADE_DACL", 1205, VT_BLOB),
    ),
    ("Site", "PROPID_S", "2.3.3"): (
        ("PATHNAME", 301, VT_LPWSTR),
        ("SITEID", 302, VT_CLSID),
        ("GATES", 303, VT_CLSID | VT_VECTOR),
        ("PSC", 304, VT_LPWSTR),
        ("INTERVAL1", 305, VT_UI2),
        ("INTERVAL2", 306, VT_UI2),
        ("PARTITIONID", 307, VT_CLSID),
        ("SEQNUM", 308, VT_BLOB),
        ("FULL_NAME", 309, VT_LPWSTR),
        ("NT4_STUB", 310, VT_UI2),
        ("FOREIGN", 311, VT_UI1),
        ("DONOTHING", 312, VT_UI1),
        ("SECURITY", 1301, VT_BLOB),
        ("PSC_SIGNPK", 1302, VT_BLOB),
        ("SECURITY_INFORMATION", 1303, VT_UI4),
    ),
    ("ConnectedNetwork", "PROPID_CN", "2.3.4"): (
        ("PROTOCOLID", 501, VT_UI1, PROTOCOL),
        ("NAME", 502, VT_LPWSTR),
        ("GUID", 503, VT_CLSID),
        ("PARTITIONID", 504, VT_CLSID),
        ("SEQNUM", 505, VT_BLOB),
        ("SECURITY", 1501, VT_BLOB),
    ),
    ("Enterprise", "PROPID_E", "2.3.5"): (
        ("NAME", 601, VT_LPWSTR),
        ("NAMESTYLE", 602, VT_UI1),
        ("CSP_NAME", 603, VT_LPWSTR),
        ("PECNAME", 604, VT_LPWSTR),
        ("S_INTERVAL1", 605, VT_UI2),
        ("S_INTERVAL2", 606, VT_UI2),
        ("PARTITIONID", 607, VT_CLSID),
        ("SEQNUM", 608, VT_BLOB),
        ("ID", 609, VT_CLSID),
        ("CRL", 610, VT_BLOB),
        ("CSP_TYPE", 611, VT_UI4),
        ("ENCRYPT_ALG", 612, VT_UI4),
        ("SIGN_ALG", 613, VT_UI4),
        ("HASH_ALG", 614, VT_UI4),
        ("LONG_LIVE", 616, VT_UI4),
        ("VERSION", 617, VT_UI2),
        ("SECURITY", 1601, VT_BLOB),
        ("CIPHER_MODE", 615, VT_UI4),
    ),
    ("User", "PROPID_U", "2.3.6"): (
        ("SID", 701, VT_BLOB),
        ("PARTITIONID", 703, VT_CLSID),
        ("SEQNUM", 704, VT_BLOB),
        ("SIGN_CERT", 702, VT_BLOB),
        ("DIGEST", 705, VT_CLSID | VT_VECTOR),
        ("ID", 706, VT_CLSID),
    ),
    ("RoutingLink", "PROPID_L", "2.3.7"): (
        ("NEIGHBOR1", 801, VT_CLSID),
        ("NEIGHBOR2", 802, VT_CLSID),
        ("COST", 803, VT_UI4),
        ("PARTITIONID", 804, VT_CLSID),
        ("SEQNUM", 805, VT_BLOB),
        ("ID", 806, VT_CLSID),
        ("GATES_DN", 807, VT_LPWSTR | VT_VECTOR),
        ("NEIGHBOR1_DN", 808, VT_LPWSTR),
        ("NEIGHBOR2_DN", 809, VT_LPWSTR),
        ("DESCRIPTION", 810, VT_LPWSTR),
        ("FULL_PATH", 811, VT_LPWSTR),
        ("ACTUAL_COST", 812, VT_UI4),
        ("GATES", 813, VT_CLSID | VT_VECTOR),
    ),
    ("Settings", "PROPID_SET", "2.3.8"): (
        ("NAME", 5101, VT_LPWSTR),
        ("SERVICE", 5102, VT_UI4),
        ("QM_ID", 5103, VT_CLSID),
        ("FULL_PATH", 5105, VT_LPWSTR),
        ("NT4", 5106, VT_UI1),
        ("PARTITIONID", 5107, VT_CLSID),
        ("SITENAME", 5108, VT_LPWSTR),
        ("SERVICE_ROUTING", 5109, VT_UI1),
        ("SERVICE_DSSERVER", 5110, VT_UI1),
        ("SERVICE_DEPCLIENTS", 5111, VT_UI1),
        ("OLDSERVICE", 5112, VT_UI4),
    ),
    ("MQUser", "PROPID_MQU", "2.3.9"): (
        ("SID", 5401, VT_BLOB),
        ("SIGN_CERT", 5402, VT_BLOB),
        ("DIGEST", 5405, VT_CLSID | VT_VECTOR),
        ("ID", 5406, VT_CLSID),
        ("SECURITY", 5407, VT_BLOB),
    ),
    ("Computer", "PROPID_COM", "2.3.10"): (
        ("FULL_PATH", 5201, VT_LPWSTR),
        ("SAM_ACCOUNT", 5202, VT_LPWSTR),
        ("ACCOUNT_CONTROL", 5204, VT_UI4),
        ("DNS_HOSTNAME", 5205, VT_LPWSTR),
        ("SID", 5206, VT_BLOB),
        ("SIGN_CERT", 5207, VT_BLOB),
        ("DIGEST", 5208, VT_CLSID | VT_VECTOR),
        ("ID", 5209, VT_CLSID),
    ),
    ("MgmtMachine", "PROPID_MGMT_MSMQ", "2.3.11"): (
        ("ACTIVEQUEUES", 1, VT_LPWSTR | VT_VECTOR),
        ("PRIVATEQ", 2, VT_LPWSTR | VT_VECTOR),
        ("DSSERVER", 3, VT_LPWSTR),
        ("CONNECTED", 4, VT_LPWSTR),
        ("TYPE", 5, VT_LPWSTR),
        ("BYTES_IN_ALL_QUEUES", 6, VT_I8),
    ),
    ("MgmtQueue", "PROPID_MGMT_QUEUE", "2.3.12"): (
        ("PATHNAME", 1, VT_LPWSTR),
        ("FORMATNAME", 2, VT_LPWSTR),
        ("TYPE", 3, VT_LPWSTR),
        ("LOCATION", 4, VT_LPWSTR),
        ("XACT", 5, VT_LPWSTR),
        ("FOREIGN", 6, VT_LPWSTR),
        ("MESSAGE_COUNT", 7, VT_UI4),
        ("BYTES_IN_QUEUE", 8, VT_UI4),
        ("JOURNAL_MESSAGE_COUNT", 9, VT_UI4),
        ("BYTES_IN_JOURNAL", 10, VT_UI4),
        ("STATE", 11, VT_LPWSTR),
        ("NEXTHOPS", 12, VT_LPWSTR | VT_VECTOR),
        ("EOD_LAST_ACK", 13, VT_BLOB),
        ("EOD_LAST_ACK_TIME", 14, VT_I4),
        ("EOD_LAST_ACK_COUNT", 15, VT_UI4),
        ("EOD_FIRST_NON_ACK", 16, VT_BLOB),
        ("EOD_LAST_NON_ACK", 17, VT_BLOB),
        ("EOD_NEXT_SEQ", 18, VT_BLOB),
        ("EOD_NO_READ_COUNT", 19, VT_UI4),
        ("EOD_NO_ACK_COUNT", 20, VT_UI4),
        ("EOD_RESEND_TIME", 21, VT_I4),
        ("EOD_RESEND_INTERVAL", 22, VT_UI4),
        ("EOD_RESEND_COUNT", 23, VT_UI4),
        ("EOD_SOURCE_INFO", 24, VT_VARIANT | VT_VECTOR),
        ("CONNECTION_HISTORY", 25, VT_VARIANT | VT_VECTOR),
        ("SUBQUEUE_COUNT", 26, VT_UI4),
        ("SUBQUEUE_NAMES", 27, VT_LPWSTR | VT_VECTOR),
    ),
    ("DeletedObject", "PROPID_D", "2.3.13"): (
        ("SEQNUM", 1401, VT_BLOB),
        ("PARTITIONID", 1402, VT_CLSID),
        ("SCOPE", 1403, VT_UI1, SCOPE),
        ("OBJTYPE", 1404, VT_UI1, OBJECT_TYPE),
        ("IDENTIFIER", 1405, VT_CLSID),
    ),
}


def _property(object_: str, prefix: str, section: str, row: _Row) -> Property:
    name, number, vt = row[:3]
    values = row[3] if len(row) == 4 else _NO_VALUES
    return Property(f"{prefix}_{name}", number, vt, object_, f"[MS-MQMQ] {section}", values)


PROPERTIES: tuple[Property, ...] = tuple(
    _property(object_, prefix, f"{section}.{place}", row)
    for (object_, prefix, section), rows in _GROUPS.items()
    for place, row in enumerate(rows, 1)
)

#: The types of values in the order of kernels, 0 for none: fixed sizes, values that begin with a count, texts.
KINDS = (
    0, VT_I2, VT_I4, VT_BOOL, VT_I1, VT_UI1, VT_UI2, VT_UI4, VT_I8, VT_UI8, VT_CLSID, VT_BLOB, VT_UI1 | VT_VECTOR,
    VT_UI4 | VT_VECTOR, VT_CLSID | VT_VECTOR, VT_LPWSTR, VT_LPWSTR | VT_VECTOR,
)  # fmt: skip
#: The PROPIDs that can occur in a notification: their numbers are unique and their values can be sized.
NUMBERED = tuple([row for row in PROPERTIES if row.number >= FIRST_UNIQUE and row.vt in KINDS])

_BY_NAME = {row.name: row for row in PROPERTIES}
_BY_NUMBER = {row.number: row for row in PROPERTIES if row.number >= FIRST_UNIQUE}


def by_name(name: str) -> Property:
    """The PROPID called ``name``.

    Raises
    ------
    KeyError
        No PROPID has this name.

    Examples
    --------
    >>> by_name("PROPID_Q_QUOTA").number
    105
    """
    return _BY_NAME[name]


def by_number(number: int) -> Property:
    """The PROPID with this number, 101 or above; of the others only the name says which is meant.

    Raises
    ------
    KeyError
        No PROPID has this number, or more than one.

    Examples
    --------
    >>> by_number(105).name
    'PROPID_Q_QUOTA'
    """
    return _BY_NUMBER[number]
