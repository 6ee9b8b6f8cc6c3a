"""The elements in Active Directory ([MS-MQDSSM] 2.4, 3.1.6.10, 3.1.6.11): one row per attribute.

The syntaxes are those of [MS-ADA2] and [MS-ADA3]. An attribute without a row is not in Active Directory, and a read of
it is an error ([MS-MQDSSM] 3.1.6.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msmqwire.directory.elements import (
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    OperatingSystemType,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
)
from msmqwire.properties.enumerations import PrivacyLevel

#: objectClass by element ([MS-MQDSSM] 3.1.6.15).
CLASSES: dict[type[DirectoryObject], str] = {
    Enterprise: "mSMQEnterpriseSettings",
    Site: "site",
    RoutingLink: "mSMQSiteLink",
    QueueManager: "mSMQConfiguration",
    Queue: "mSMQQueue",
}


#: Where objects stand below the root domain ([MS-MQDSSM] 3.1.6.15); machines and queues are anywhere in it.
CONTAINERS: dict[type[DirectoryObject], str] = {
    Enterprise: "CN=Services,CN=Configuration,",
    Site: "CN=Sites,CN=Configuration,",
    RoutingLink: "CN=MsmqServices,CN=Services,CN=Configuration,",
}


@dataclass(frozen=True, slots=True)
class Syntax:
    """How a value is written.

    Attributes
    ----------
    read : callable
        The value from its octets; raises ValueError or KeyError.
    write : callable or None
        The octets for a comparison by the server; None if servers compare differently than we do.
    """

    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """The source of an attribute of an element.

    Attributes
    ----------
    name : str
        The attribute in Active Directory.
    required : bool
        Whether it is an error if it is not set. Otherwise the value is the default of the element.
    """

    name: str
    syntax: Syntax
    required: bool = False


def _read_time(octets: bytes) -> int:
    """Seconds since 1970 from a GeneralizedTime as Active Directory writes it, ``20260131235959.0Z``."""
    text = octets.decode("ascii")
    if not text.endswith("Z"):
        raise ValueError(f"{text!r} is not in UTC")
    moment = datetime.strptime(text[:-1].partition(".")[0], "%Y%m%d%H%M%S")
    return int(moment.replace(tzinfo=UTC).timestamp())


#: The bits of mSMQServiceType for the types of directory servers ([MS-MQDSSM] 3.1.6.11.1.5).
DIRECTORY_SERVER_TYPES = {
    0x2: DirectoryServerType.BACKUP_SITE_CONTROLLER,
    0x4: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    0x8: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
}


def _read_directory_server_type(octets: bytes) -> DirectoryServerType:
    bits = int(octets)
    found = [kind for bit, kind in DIRECTORY_SERVER_TYPES.items() if bits & bit]
    return found[-1] if found else DirectoryServerType.STANDALONE


def _one_of(members: Mapping[bytes, Any]) -> Syntax:
    by_value = {value: octets for octets, value in reversed(list(members.items()))}
    return Syntax(lambda octets: members[octets.upper()], by_value.__getitem__)


# Booleans are written as 1 and 0 by [MS-MQDSSM], as TRUE and FALSE by LDAP (RFC 4517 3.3.3).
_BOOLEAN_VALUES = {b"TRUE": True, b"FALSE": False, b"1": True, b"0": False}

IDENTIFIER = Syntax(lambda octets: UUID(bytes_le=octets), lambda value: value.bytes_le)
TEXT = Syntax(lambda octets: octets.decode("utf-8"), lambda value: value.encode("utf-8"))
OCTETS = Syntax(bytes)
NAME = Syntax(lambda octets: octets.decode("utf-8"))
INTEGER = Syntax(int, lambda value: b"%d" % value)
#: Active Directory has signed integers only, so "no limit" is -1.
UNSIGNED = Syntax(lambda octets: int(octets) & 0xFFFFFFFF)
BOOLEAN = _one_of(_BOOLEAN_VALUES)
TIME = Syntax(_read_time)
PRIVACY_LEVEL = _one_of({b"0": PrivacyLevel.NONE, b"1": PrivacyLevel.OPTIONAL, b"2": PrivacyLevel.BODY})
OPERATING_SYSTEM_TYPE = _one_of(
    {
        b"0": OperatingSystemType.OTHER,
        b"256": OperatingSystemType.FOREIGN,
        b"512": OperatingSystemType.WIN95,
        b"768": OperatingSystemType.WIN_CLIENT,
        b"1024": OperatingSystemType.WIN_SERVER,
        b"1280": OperatingSystemType.WIN_ENT,
    }
)
# 2 means the default, which is False ([MS-MQDSSM] note <14>).
WEAKENED_SECURITY = Syntax({**_BOOLEAN_VALUES, b"2": False}.__getitem__)
# An integer in Active Directory, which a server does not compare with TRUE.
MIGRATED = Syntax(_BOOLEAN_VALUES.__getitem__)
YES_NO = _one_of({b"Y": True, b"N": False})
OLD_DIRECTORY = _one_of({b"3": True, b"200": False})
REMOTE_ACCESS_SERVER = Syntax(lambda octets: bool(int(octets) & 0x10))
DIRECTORY_SERVER_TYPE = Syntax(_read_directory_server_type)

_IDENTIFIER = Row("objectGUID", IDENTIFIER, required=True)
_SECURITY = Row("nTSecurityDescriptor", OCTETS, required=True)
_CREATED = Row("whenCreated", TIME, required=True)
_CHANGED = Row("whenChanged", TIME, required=True)

#: The attributes of the object itself. Identifiers with the syntax ``NAME`` are stored as the distinguished names of
#: the other objects.
MAPPING: dict[type[DirectoryObject], dict[str, Row]] = {
    Enterprise: {
        "identifier": _IDENTIFIER,
        "weakened_security": Row("mSMQNameStyle", WEAKENED_SECURITY),
        "non_ldap_capable_queue_manager_notification": Row("mSMQCSPName", YES_NO),
        "default_time_to_live": Row("mSMQLongLived", UNSIGNED),
        "old_directory": Row("mSMQVersion", OLD_DIRECTORY),
        "security": _SECURITY,
    },
    Site: {
        "identifier": _IDENTIFIER,
        "name": Row("cn", TEXT, required=True),
        "intra_site_replication_interval": Row("mSMQInterval1", INTEGER),
        "inter_site_replication_interval": Row("mSMQInterval2", INTEGER),
        "foreign_site": Row("mSMQSiteForeign", BOOLEAN),
        "migrated_from_msmq10": Row("mSMQNt4Stub", MIGRATED, required=True),
        "security": _SECURITY,
    },
    RoutingLink: {
        "identifier": _IDENTIFIER,
        "description": Row("description", TEXT),
        "actual_cost": Row("mSMQCost", INTEGER, required=True),
        "site1_identifier": Row("mSMQSite1", NAME, required=True),
        "site2_identifier": Row("mSMQSite2", NAME, required=True),
        "site_gate_identifier_list": Row("mSMQSiteGates", NAME),
    },
    QueueManager: {
        "identifier": _IDENTIFIER,
        "queue_manager_version": Row("mSMQComputerTypeEx", TEXT),
        "operating_system_type": Row("mSMQOSType", OPERATING_SYSTEM_TYPE),
        "create_time": _CREATED,
        "modify_time": _CHANGED,
        "queue_manager_quota": Row("mSMQQuota", UNSIGNED),
        "journal_quota": Row("mSMQJournalQuota", UNSIGNED),
        "foreign_system": Row("mSMQForeign", BOOLEAN),
        "site_identifier_list": Row("mSMQSites", IDENTIFIER),
        "out_routing_server_identifier_list": Row("mSMQOutRoutingServers", NAME),
        "in_routing_server_identifier_list": Row("mSMQInRoutingServers", NAME),
        "routing_server": Row("mSMQRoutingServices", BOOLEAN),
        "directory_server": Row("mSMQDsServices", BOOLEAN),
        "remote_access_server": Row("mSMQServiceType", REMOTE_ACCESS_SERVER),
        "supporting_server": Row("mSMQDependentClientServices", BOOLEAN),
        "public_encryption_key_list": Row("mSMQEncryptKey", OCTETS),
        "security": _SECURITY,
    },
    Queue: {
        "identifier": _IDENTIFIER,
        "label": Row("mSMQLabelEx", TEXT),
        "create_time": _CREATED,
        "modify_time": _CHANGED,
        "type": Row("mSMQQueueType", IDENTIFIER),
        "journaling": Row("mSMQJournal", BOOLEAN),
        "quota": Row("mSMQQueueQuota", UNSIGNED),
        "journal_quota": Row("mSMQQueueJournalQuota", UNSIGNED),
        "authentication": Row("mSMQAuthenticate", BOOLEAN),
        "privacy_level": Row("mSMQPrivacyLevel", PRIVACY_LEVEL),
        "transactional": Row("mSMQTransactional", BOOLEAN),
        "multicast_address": Row("MSMQ-MulticastAddress", TEXT),
        "security": _SECURITY,
        "base_priority": Row("mSMQBasePriority", INTEGER),
    },
}

#: The attributes derived from an object's place in the directory or from several attributes, and the attributes to
#: read for them.
DERIVED: dict[type[DirectoryObject], dict[str, tuple[str, ...]]] = {
    Enterprise: {"name": ()},
    Site: {"full_path": ()},
    RoutingLink: {"full_path": ()},
    QueueManager: {
        "computer_name": (),
        "qualified_computer_name": (),
        "operating_system_version": (),
        "full_path": (),
        "directory_server_type": ("mSMQDsServices", "mSMQServiceType"),
    },
    Queue: {
        "pathname": ("mSMQQueueNameExt",),
        "qualified_pathname": ("mSMQQueueNameExt",),
        "full_path": (),
        "directory_path": (),
        "scope": (),
    },
}

#: Required attributes that are often not set or not readable. A read of all attributes leaves them out if they are not
#: set. (Decision: by [MS-MQDSSM] 3.1.6.11 the read would fail, and with it the routing of the enterprise.)
OFTEN_UNSET = frozenset({"security", "qualified_computer_name", "migrated_from_msmq10"})
