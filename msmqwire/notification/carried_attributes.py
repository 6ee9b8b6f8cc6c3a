"""The attributes that notifications carry: one row per PROPID ([MS-MQCN] 3.1.1.3).

Which PROPIDs a create and a change have is a matter of the message ([MS-MQCN] 3.3.5.2): ``mqcn.property_sets``. The
names of the attributes in Active Directory are in ``directory.ldap_schema``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from msmqwire.mqcn.property_sets import CREATED, MACHINE_CHANGES, QUEUE_CHANGES
from msmqwire.properties import by_name
from msmqwire.properties.enumerations import PrivacyLevel, Scope

_FLAG = (False, True)

# PROPID, attribute, and for an enumeration what its numbers stand for, from 0
_QUEUE: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("PROPID_Q_TYPE", "type", ()),
    ("PROPID_Q_INSTANCE", "identifier", ()),
    ("PROPID_Q_BASEPRIORITY", "base_priority", ()),
    ("PROPID_Q_JOURNAL", "journaling", _FLAG),
    ("PROPID_Q_QUOTA", "quota", ()),
    ("PROPID_Q_JOURNAL_QUOTA", "journal_quota", ()),
    ("PROPID_Q_CREATE_TIME", "create_time", ()),
    ("PROPID_Q_MODIFY_TIME", "modify_time", ()),
    ("PROPID_Q_SCOPE", "scope", tuple(Scope)),
    ("PROPID_Q_SECURITY", "security", ()),
    ("PROPID_Q_PATHNAME", "pathname", ()),
    ("PROPID_Q_LABEL", "label", ()),
    ("PROPID_Q_AUTHENTICATE", "authentication", _FLAG),
    ("PROPID_Q_PRIV_LEVEL", "privacy_level", tuple(PrivacyLevel)),
    ("PROPID_Q_TRANSACTION", "transactional", _FLAG),
)
_MACHINE: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("PROPID_QM_QUOTA", "queue_manager_quota", ()),
    ("PROPID_QM_JOURNAL_QUOTA", "journal_quota", ()),
    ("PROPID_QM_SECURITY", "security", ()),
    ("PROPID_QM_FOREIGN", "foreign_system", _FLAG),
)

_NUMBERS = {name: by_name(name).number for name, _, _ in (*_QUEUE, *_MACHINE)}


def _attributes(rows: tuple[tuple[str, str, tuple[Any, ...]], ...], propids: frozenset[int]) -> Mapping[int, str]:
    return MappingProxyType({_NUMBERS[name]: attribute for name, attribute, _ in rows if _NUMBERS[name] in propids})


#: The attributes of a created queue by PROPID.
CREATED_QUEUE = _attributes(_QUEUE, CREATED)

#: The attributes of a queue that a receiver is notified of.
NOTIFIED = tuple(CREATED_QUEUE.values())

#: The attributes that an update of a queue may change, by PROPID.
UPDATED_QUEUE = _attributes(_QUEUE, QUEUE_CHANGES)

#: The attributes that an update of a queue manager may change, by PROPID; a receiver ignores PROPID_QM_FOREIGN.
UPDATED_MACHINE = _attributes(_MACHINE[:-1], MACHINE_CHANGES)

#: What the numbers of an attribute stand for, from 0, by PROPID.
MEANINGS: Mapping[int, tuple[Any, ...]] = MappingProxyType(
    {_NUMBERS[name]: values for name, _, values in (*_QUEUE, *_MACHINE) if values}
)

#: The attributes of a queue that version 2 reads from the directory ([MS-MQCN] 3.2.5.2): without Scope, and with two
#: that have no PROPID.
READ_QUEUE = (
    *(attribute for attribute in CREATED_QUEUE.values() if attribute != "scope"),
    "multicast_address",
    "directory_path",
)

#: The attributes of a queue manager that version 2 reads.
READ_MACHINE = tuple(UPDATED_MACHINE.values())
