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
    UNLIMITED,
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    OperatingSystemType,
    PrivacyLevel,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
)
from msmqwire.wire.guids import NIL

#: The default of an attribute that must be set.
REQUIRED: Any = object()

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
    unset : object
        The value if it is not set; ``REQUIRED`` if that is an error.
    """

    name: str
    syntax: Syntax
    unset: Any = REQUIRED


def _read_time(octets: bytes) -> int:
    """Seconds since 1970 from a GeneralizedTime as Active Directory writes it, ``20260131235959.0Z``."""
    text = octets.decode("ascii")
    if not text.endswith("Z"):
        raise ValueError(f"{text!r} is not in UTC")
    moment = datetime.strptime(text[:-1].partition(".")[0], "%Y%m%d%H%M%S")
    return int(moment.replace(tzinfo=UTC).timestamp())


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

_IDENTIFIER = Row("objectGUID", IDENTIFIER)
_SECURITY = Row("nTSecurityDescriptor", OCTETS)
_CREATED = Row("whenCreated", TIME)
_CHANGED = Row("whenChanged", TIME)

#: The attributes of the object itself. Identifiers with the syntax ``NAME`` are stored as the distinguished names of
#: the other objects.
MAPPING: dict[type[DirectoryObject], dict[str, Row]] = {
    Enterprise: {
        "identifier": _IDENTIFIER,
        "weakened_security": Row("mSMQNameStyle", WEAKENED_SECURITY, False),
        "non_ldap_capable_queue_manager_notification": Row("mSMQCSPName", YES_NO, True),
        "default_time_to_live": Row("mSMQLongLived", INTEGER, 345600),
        "old_directory": Row("mSMQVersion", OLD_DIRECTORY, True),
        "security": _SECURITY,
    },
    Site: {
        "identifier": _IDENTIFIER,
        "name": Row("cn", TEXT),
        "intra_site_replication_interval": Row("mSMQInterval1", INTEGER, 2),
        "inter_site_replication_interval": Row("mSMQInterval2", INTEGER, 10),
        "foreign_site": Row("mSMQSiteForeign", BOOLEAN, False),
        "migrated_from_msmq10": Row("mSMQNt4Stub", MIGRATED),
        "security": _SECURITY,
    },
    RoutingLink: {
        "identifier": _IDENTIFIER,
        "description": Row("description", TEXT, ""),
        "actual_cost": Row("mSMQCost", INTEGER),
        "site1_identifier": Row("mSMQSite1", NAME),
        "site2_identifier": Row("mSMQSite2", NAME),
        "site_gate_identifier_list": Row("mSMQSiteGates", NAME, ()),
    },
    QueueManager: {
        "identifier": _IDENTIFIER,
        "queue_manager_version": Row("mSMQComputerTypeEx", TEXT, ""),
        "operating_system_type": Row("mSMQOSType", OPERATING_SYSTEM_TYPE, OperatingSystemType.OTHER),
        "create_time": _CREATED,
        "modify_time": _CHANGED,
        "queue_manager_quota": Row("mSMQQuota", UNSIGNED, 0x00100000),
        "journal_quota": Row("mSMQJournalQuota", UNSIGNED, UNLIMITED),
        "foreign_system": Row("mSMQForeign", BOOLEAN, False),
        "site_identifier_list": Row("mSMQSites", IDENTIFIER, ()),
        "out_routing_server_identifier_list": Row("mSMQOutRoutingServers", NAME, ()),
        "in_routing_server_identifier_list": Row("mSMQInRoutingServers", NAME, ()),
        "routing_server": Row("mSMQRoutingServices", BOOLEAN, False),
        "directory_server": Row("mSMQDsServices", BOOLEAN, False),
        "remote_access_server": Row("mSMQServiceType", REMOTE_ACCESS_SERVER, False),
        "supporting_server": Row("mSMQDependentClientServices", BOOLEAN, False),
        "public_encryption_key_list": Row("mSMQEncryptKey", OCTETS, b""),
        "security": _SECURITY,
    },
    Queue: {
        "identifier": _IDENTIFIER,
        "label": Row("mSMQLabelEx", TEXT, ""),
        "create_time": _CREATED,
        "modify_time": _CHANGED,
        "type": Row("mSMQQueueType", IDENTIFIER, NIL),
        "journaling": Row("mSMQJournal", BOOLEAN, False),
        "quota": Row("mSMQQueueQuota", UNSIGNED, UNLIMITED),
        "journal_quota": Row("mSMQQueueJournalQuota", UNSIGNED, UNLIMITED),
        "authentication": Row("mSMQAuthenticate", BOOLEAN, False),
        "privacy_level": Row("mSMQPrivacyLevel", PRIVACY_LEVEL, PrivacyLevel.OPTIONAL),
        "transactional": Row("mSMQTransactional", BOOLEAN, False),
        "multicast_address": Row("MSMQ-MulticastAddress", TEXT, ""),
        "security": _SECURITY,
        "base_priority": Row("mSMQBasePriority", INTEGER, 0),
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

#: The bits of mSMQServiceType for the types of directory servers ([MS-MQDSSM] 3.1.6.11.1.5).
DIRECTORY_SERVER_TYPES = {
    0x2: DirectoryServerType.BACKUP_SITE_CONTROLLER,
    0x4: DirectoryServerType.PRIMARY_SITE_CONTROLLER,
    0x8: DirectoryServerType.PRIMARY_ENTERPRISE_CONTROLLER,
}
