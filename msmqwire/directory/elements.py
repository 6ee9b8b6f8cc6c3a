"""The elements of the abstract data model that a directory holds ([MS-MQDMPR] 3.1.1).

The attributes are those that the specification calls directory attributes, with its names in snake_case.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from msmqwire.properties.enumerations import PrivacyLevel, Scope
from msmqwire.wire.guids import NIL

Element = TypeVar("Element", bound="DirectoryObject")

#: No limit: the default of the quotas ([MS-MQDSSM] 3.1.6.11.1, 3.1.6.11.2).
UNLIMITED = 0xFFFFFFFF


#: The highest ActualCost of a routing link ([MS-MQDMPR] 3.1.1.8).
HIGHEST_COST = 999_999


class OperatingSystemType(enum.StrEnum):
    """OperatingSystemType of a queue manager ([MS-MQDMPR] 3.1.1.1)."""

    FOREIGN = "foreign"
    WIN95 = "win95"
    WIN_CLIENT = "win_client"
    WIN_SERVER = "win_server"
    WIN_ENT = "win_ent"
    OTHER = "other"


class DirectoryServerType(enum.StrEnum):
    """DirectoryServerType of a queue manager that is a directory server ([MS-MQDMPR] 3.1.1.1)."""

    STANDALONE = "standalone"
    BACKUP_SITE_CONTROLLER = "backup_site_controller"
    PRIMARY_SITE_CONTROLLER = "primary_site_controller"
    PRIMARY_ENTERPRISE_CONTROLLER = "primary_enterprise_controller"


#: The types of attributes by their annotations.
_TYPES: dict[str, type] = {
    annotation.format(each.__name__): each
    for each in (UUID, str, int, bool, bytes, OperatingSystemType, DirectoryServerType, PrivacyLevel, Scope)
    for annotation in ("{}", "tuple[{}, ...]", "{} | None")
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DirectoryObject:
    """The base class of all elements ([MS-MQDMPR] 3.1.1).

    An element that was read with an attribute list has these attributes only; the others raise AttributeError, since
    their values are undefined and must not be used ([MS-MQDMPR] 3.1.7.1.20).

    Attributes
    ----------
    identifier : UUID
        Identifies the object and never changes.
    """

    identifier: UUID

    def __post_init__(self) -> None:
        # Filters and comparisons of elements know a list by its tuple
        for name in _lists(type(self)):  # type: ignore[arg-type] # a class can be hashed
            value = getattr(self, name)
            if not isinstance(value, tuple):
                object.__setattr__(self, name, tuple(value))

    @classmethod
    def attribute_names(cls) -> tuple[str, ...]:
        """The names of the attributes, ``identifier`` first."""
        return tuple(cls.__dataclass_fields__)

    @classmethod
    def attribute_type(cls, name: str) -> type:
        """The type of an attribute's value, or of the members of a list."""
        return _TYPES[str(cls.__dataclass_fields__[name].type)]

    @classmethod
    def is_list(cls, name: str) -> bool:
        """Return True if an attribute is a list."""
        return str(cls.__dataclass_fields__[name].type).startswith("tuple[")

    @classmethod
    def of(cls: type[Element], values: Mapping[str, Any]) -> Element:
        """An element with the attributes given, and no others.

        >>> of = Site.of({"identifier": NIL, "name": "Zürich"})
        >>> of
        Site(identifier=UUID('00000000-0000-0000-0000-000000000000'), name='Zürich')
        """
        element: Element = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(element, name, value)
        return element

    def attributes(self) -> dict[str, Any]:
        """The attributes that were read, by name."""
        return {name: getattr(self, name) for name in self.attribute_names() if _is_set(self, name)}

    def only(self: Element, names: tuple[str, ...]) -> Element:
        """The element with these attributes only."""
        return type(self).of({name: getattr(self, name) for name in names})

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, DirectoryObject)
        return self.attributes() == other.attributes()

    def __hash__(self) -> int:
        return hash(self.identifier) if _is_set(self, "identifier") else hash(type(self))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.attributes().items())
        return f"{type(self).__name__}({values})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).of, (self.attributes(),)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in self.attribute_names():
                # Without the object: Python would suggest other names
                raise AttributeError(f"{name} of this {type(self).__name__} was not read", name=name)
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}", name=name, obj=self)


@cache
def _lists(element: type[DirectoryObject]) -> tuple[str, ...]:
    return tuple([name for name in element.attribute_names() if element.is_list(name)])


def _is_set(element: DirectoryObject, name: str) -> bool:
    try:
        object.__getattribute__(element, name)
    except AttributeError:
        return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Enterprise(DirectoryObject):
    """The enterprise that all sites belong to ([MS-MQDMPR] 3.1.1.6).

    Attributes
    ----------
    default_time_to_live : int
        Seconds in which a message must reach its queue.
    security : bytes
        A security descriptor, empty if there is none.
    """

    name: str = ""
    weakened_security: bool = False
    non_ldap_capable_queue_manager_notification: bool = True
    default_time_to_live: int = 345600
    old_directory: bool = True
    security: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Site(DirectoryObject):
    """A part of the enterprise with good connections between its machines ([MS-MQDMPR] 3.1.1.7).

    Attributes
    ----------
    primary_site_controller : str
        NetBIOS name of a machine. Active Directory has neither this nor ``public_signing_key_list``.
    intra_site_replication_interval, inter_site_replication_interval : int
        Seconds.
    """

    name: str
    primary_site_controller: str = ""
    intra_site_replication_interval: int = 2
    inter_site_replication_interval: int = 10
    full_path: str = ""
    foreign_site: bool = False
    public_signing_key_list: bytes = b""
    migrated_from_msmq10: bool = False
    security: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class RoutingLink(DirectoryObject):
    """A link between two sites and its cost ([MS-MQDMPR] 3.1.1.8).

    Attributes
    ----------
    actual_cost : int
        From 1 to 999,999.
    site_gate_identifier_list : tuple of UUID
        The queue managers of either site that act as its gates.
    """

    description: str = ""
    full_path: str = ""
    actual_cost: int
    site1_identifier: UUID
    site2_identifier: UUID
    site_gate_identifier_list: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class QueueManager(DirectoryObject):
    """A machine that hosts queues ([MS-MQDMPR] 3.1.1.1).

    Attributes
    ----------
    computer_name : str
        NetBIOS name; ``qualified_computer_name`` is the DNS name.
    create_time, modify_time : int
        Seconds since 1970, UTC.
    queue_manager_quota, journal_quota : int
        The values of the directory, never converted: [MS-MQDMPR] has the first in bytes and the second in kilobytes,
        other documents differ.
    connected_network_identifier_list : tuple of UUID
        Not in Active Directory.
    directory_server_type : DirectoryServerType or None
        None if ``directory_server`` is false.
    public_encryption_key_list : bytes
        An MQDSPUBLICKEYS structure, empty if there is none.
    """

    computer_name: str
    qualified_computer_name: str = ""
    queue_manager_version: str = ""
    operating_system_version: str = ""
    operating_system_type: OperatingSystemType = OperatingSystemType.OTHER
    create_time: int = 0
    modify_time: int = 0
    queue_manager_quota: int = 0x00100000
    journal_quota: int = UNLIMITED
    foreign_system: bool = False
    full_path: str = ""
    site_identifier_list: tuple[UUID, ...] = ()
    connected_network_identifier_list: tuple[UUID, ...] = ()
    out_routing_server_identifier_list: tuple[UUID, ...] = ()
    in_routing_server_identifier_list: tuple[UUID, ...] = ()
    directory_server: bool = False
    remote_access_server: bool = False
    routing_server: bool = False
    supporting_server: bool = False
    directory_server_type: DirectoryServerType | None = None
    public_encryption_key_list: bytes = b""
    security: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Queue(DirectoryObject):
    r"""A public queue ([MS-MQDMPR] 3.1.1.2).

    Attributes
    ----------
    pathname, qualified_pathname : str
        ``machine\queue``, with the NetBIOS name and with the DNS name of the machine.
    type : UUID
        The kind of service that the queue provides, defined by applications.
    quota, journal_quota : int
        Kilobytes.
    """

    pathname: str
    qualified_pathname: str = ""
    label: str = ""
    create_time: int = 0
    modify_time: int = 0
    type: UUID = NIL
    journaling: bool = False
    quota: int = UNLIMITED
    journal_quota: int = UNLIMITED
    authentication: bool = False
    privacy_level: PrivacyLevel = PrivacyLevel.OPTIONAL
    transactional: bool = False
    multicast_address: str = ""
    security: bytes = b""
    base_priority: int = 0
    full_path: str = ""
    directory_path: str = ""
    scope: Scope = Scope.ENTERPRISE


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ConnectedNetwork(DirectoryObject):
    """A network whose machines reach each other directly ([MS-MQDMPR] 3.1.1.9); not in Active Directory."""

    name: str = ""
    security: bytes = b""


def computer_of(pathname: str) -> str:
    r"""The computer in the path of a public queue: what precedes the last backslash, or empty text without one.

    The name of a computer may contain backslashes, that of a queue may not ([MS-MQMQ] 2.1.1).

    >>> computer_of(r"ledger\orders")
    'ledger'
    """
    return pathname.rpartition("\\")[0]


#: The elements by their names in files and messages.
ELEMENTS: dict[str, type[DirectoryObject]] = {
    "enterprise": Enterprise,
    "connected_network": ConnectedNetwork,
    "site": Site,
    "queue_manager": QueueManager,
    "routing_link": RoutingLink,
    "queue": Queue,
}

#: The names of the elements, by class.
TABLES: dict[type[DirectoryObject], str] = {element: table for table, element in ELEMENTS.items()}

#: The attribute that names an object for people.
NAME_ATTRIBUTES: dict[type[DirectoryObject], str] = {
    Enterprise: "name",
    ConnectedNetwork: "name",
    Site: "name",
    QueueManager: "computer_name",
    Queue: "pathname",
}

#: The attributes that hold identifiers of other objects, and the class of these objects.
REFERENCES: dict[str, type[DirectoryObject]] = {
    "site1_identifier": Site,
    "site2_identifier": Site,
    "site_identifier_list": Site,
    "site_gate_identifier_list": QueueManager,
    "out_routing_server_identifier_list": QueueManager,
    "in_routing_server_identifier_list": QueueManager,
    "connected_network_identifier_list": ConnectedNetwork,
}
