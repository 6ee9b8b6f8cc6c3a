"""The directory that the protocols read: its elements, its queries, and its implementations."""

from __future__ import annotations

from msmqwire.directory.base import (
    Directory,
    Equal,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    NotEqual,
    site_gates,
)
from msmqwire.directory.elements import (
    ConnectedNetwork,
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    OperatingSystemType,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
)
from msmqwire.directory.ldap import LdapDirectory
from msmqwire.directory.memory import MemoryDirectory
from msmqwire.directory.offline import QueueManagerDirectory
from msmqwire.properties.enumerations import PrivacyLevel, Scope

__all__ = [
    "ConnectedNetwork",
    "Directory",
    "DirectoryObject",
    "DirectoryServerType",
    "Enterprise",
    "Equal",
    "Filter",
    "GreaterThan",
    "GreaterThanOrEqual",
    "LdapDirectory",
    "LessThan",
    "LessThanOrEqual",
    "MemoryDirectory",
    "NotEqual",
    "OperatingSystemType",
    "PrivacyLevel",
    "Queue",
    "QueueManager",
    "QueueManagerDirectory",
    "RoutingLink",
    "Scope",
    "Site",
    "site_gates",
]


def __dir__() -> list[str]:
    return __all__
