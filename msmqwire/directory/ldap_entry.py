"""Converts LDAP entries to elements: Create ADM Element From LDAP Values ([MS-MQDSSM] 3.1.6.11)."""

from __future__ import annotations

from typing import Any, Generic
from uuid import UUID

from msmqwire.directory.base import InvalidObjectError, Problem
from msmqwire.directory.elements import (
    REFERENCES,
    DirectoryObject,
    DirectoryServerType,
    Element,
    QueueManager,
    Site,
)
from msmqwire.directory.ldap_connection import Entry, LdapConnection, parent, relative_names
from msmqwire.directory.ldap_schema import (
    CLASSES,
    CONTAINERS,
    DERIVED,
    DIRECTORY_SERVER_TYPE,
    IDENTIFIER,
    MAPPING,
    NAME,
    OFTEN_UNSET,
    Row,
)
from msmqwire.properties.enumerations import Scope

#: If more named objects than this are looked up, all of the class are read at once.
MANY = 1000

#: A queue name of this many UTF-16 code units is the beginning of a longer one and a hash ([MS-MQDSSM] 2.2.5).
LONG_NAME, _HASH = 64, 9

#: Marks a required value that is not set.
_UNSET: Any = object()

_GATES = "site_gate_identifier_list"

_ON_THE_COMPUTER = {"qualified_computer_name": "dNSHostName", "operating_system_version": "operatingSystemVersion"}


class EntryReader(Generic[Element]):
    """Converts the entries of one read to elements of one class; objects that they name are looked up once.

    Parameters
    ----------
    attributes : tuple of str
        The attributes to set.
    named : set of str
        Those of them that were requested by name, so that a missing value is an error.
    problems : list of Problem, optional
        Names of missing objects that are passed over are added to it.
    """

    def __init__(
        self,
        element: type[Element],
        attributes: tuple[str, ...],
        named: frozenset[str],
        connection: LdapConnection,
        problems: list[Problem] | None = None,
    ) -> None:
        self._element = element
        self._attributes = attributes
        self._named = named
        self._connection = connection
        self._problems = [] if problems is None else problems
        self._computers = _NamedObjects(connection, "computer", "", tuple(_ON_THE_COMPUTER.values()))
        self._named_objects: dict[type[DirectoryObject], _NamedObjects] = {
            each: _NamedObjects(connection, CLASSES[each], CONTAINERS.get(each, ""), ("objectGUID",))
            for each in (Site, QueueManager)
        }

    @property
    def names(self) -> frozenset[str]:
        """The attributes to read of an entry: Create LDAP Attribute List ([MS-MQDSSM] 3.1.6.10)."""
        mapping, derived = MAPPING[self._element], DERIVED[self._element]
        mapped = {mapping[name].name for name in self._attributes if name in mapping}
        return frozenset(mapped.union(*(derived[name] for name in self._attributes if name in derived)))

    def element(self, entry: Entry) -> Element:
        """The element of an entry.

        Raises
        ------
        DirectoryError
            A required attribute is not set, a value is not valid, or a named object does not exist.
        """
        values: dict[str, Any] = {}
        self._missing: list[str] = []
        for name in self._attributes:
            row = MAPPING[self._element].get(name)
            value = getattr(self, f"_{name}")(entry) if row is None else self._mapped(entry, name, row)
            if value is not _UNSET:
                values[name] = value
            elif name in self._named or name not in OFTEN_UNSET:
                raise _invalid(entry, name, "is not set")
        element = self._element.of(values)
        if self._missing:
            rest = element if getattr(element, _GATES) else None
            raise _missing_object(entry, _GATES, ", ".join(self._missing), rest)
        return element

    def _mapped(self, entry: Entry, name: str, row: Row) -> Any:
        octets = entry.values.get(row.name, [])
        if not octets:
            return _UNSET if row.required else self._element.__dataclass_fields__[name].default
        try:
            read = [row.syntax.read(each) for each in octets]
        except (ValueError, KeyError):
            raise _invalid(entry, row.name, f"{octets[0][:64]!r} is not a valid {name}") from None
        if row.syntax is NAME:
            read = self._resolved(entry, name, read)
        return tuple(read) if self._element.is_list(name) else read[0]

    def _resolved(self, entry: Entry, attribute: str, names: list[str]) -> list[UUID]:
        # A missing routing server is passed over; a missing site or gate is an error ([MS-MQDSSM] 3.1.6.11), but the
        # link is usable while it has another gate.
        missing_ok = attribute.endswith("routing_server_identifier_list")
        objects = self._named_objects[REFERENCES[attribute]]
        identifiers = [_identifier(objects.get(name)) for name in names]
        for name, identifier in zip(names, identifiers, strict=True):
            if identifier is not None:
                continue
            if attribute == _GATES:
                self._missing.append(name)
            elif missing_ok:
                self._problems.append(_missing_object(entry, attribute, name).problem)
            else:
                raise _missing_object(entry, attribute, name)
        return [identifier for identifier in identifiers if identifier is not None]

    def _on_the_computer(self, attribute: str, computer: str) -> str:
        """A text attribute of the computer object of the machine, empty if it is not set ([MS-MQDSSM] 3.1.6.11.1)."""
        entry = self._computers.get(computer)
        octets = entry.values.get(attribute, []) if entry else []
        return octets[0].decode("utf-8", "replace") if octets else ""

    # Derived attributes, by name.

    def _name(self, _: Entry) -> str:
        return self._connection.root

    def _full_path(self, entry: Entry) -> str:
        return entry.name

    def _directory_path(self, entry: Entry) -> str:
        return f"LDAP://{entry.name}"

    def _scope(self, _: Entry) -> Scope:
        return Scope.ENTERPRISE

    def _computer_name(self, entry: Entry) -> str:
        return _part(entry, 1)

    def _qualified_computer_name(self, entry: Entry) -> Any:
        return self._on_the_computer("dNSHostName", parent(entry.name)) or _UNSET

    def _operating_system_version(self, entry: Entry) -> str:
        return self._on_the_computer("operatingSystemVersion", parent(entry.name))

    def _directory_server_type(self, entry: Entry) -> Any:
        if not self._mapped(entry, "directory_server", MAPPING[QueueManager]["directory_server"]):
            return None
        row = Row("mSMQServiceType", DIRECTORY_SERVER_TYPE)
        return self._mapped(entry, "directory_server_type", row) or DirectoryServerType.STANDALONE

    def _pathname(self, entry: Entry) -> str:
        return f"{_part(entry, 2)}\\{_queue_name(entry)}".lower()

    def _qualified_pathname(self, entry: Entry) -> str:
        host = self._on_the_computer("dNSHostName", parent(entry.name, 2))
        return f"{host}\\{_queue_name(entry)}".lower() if host else ""


class _NamedObjects:
    """Objects that other objects name: each is read once, or all at once if there are many."""

    def __init__(
        self, connection: LdapConnection, object_class: str, container: str, attributes: tuple[str, ...]
    ) -> None:
        self._connection = connection
        self._assertion = f"(objectClass={object_class})"
        self._container = container
        self._attributes = attributes
        self._known: dict[str, Entry | None] = {}
        self._asked = 0

    def get(self, name: str) -> Entry | None:
        """The object with this distinguished name, None if the class has none."""
        if name not in self._known:
            self._asked += 1
            if self._asked == MANY:
                base = self._container + self._connection.root
                entries = self._connection.ask(base, self._assertion, self._attributes)
                self._known |= {entry.name: entry for entry in entries}
        if name not in self._known:
            found = self._connection.ask(name, self._assertion, self._attributes, below=False)
            self._known[name] = found[0] if found else None
        return self._known[name]


def _identifier(entry: Entry | None) -> UUID | None:
    octets = entry.values.get("objectGUID", []) if entry else []
    return IDENTIFIER.read(octets[0]) if octets and len(octets[0]) == 16 else None


def utf16_length(text: str) -> int:
    """The number of UTF-16 code units of a text."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _part(entry: Entry, index: int) -> str:
    """The value of a part of a name such as ``CN=queue,CN=msmq,CN=computer,...`` ([MS-MQDSSM] 2.2.1)."""
    names = relative_names(entry.name)
    if "msmq" not in map(str.lower, names[: max(index, 2)]) or len(names) <= index:
        raise _invalid(
            entry, "distinguishedName", "is not a valid place for an object of its class ([MS-MQDSSM] 2.2.1)"
        )
    return names[index]


def _queue_name(entry: Entry) -> str:
    """The name of a queue ([MS-MQDSSM] 3.1.6.11.2.1).

    (Decision: it is the same in QualifiedPathname, though 3.1.6.11.2.2 keeps backslashes: no QueueName has one, by
    [MS-MQMQ] 2.1.1, and a path with two would name another computer.)
    """
    name = _part(entry, 0)
    if utf16_length(name) == LONG_NAME:
        rest = entry.values.get("mSMQQueueNameExt", [])
        name = name[:-_HASH] + (rest[0].decode("utf-8", "replace") if rest else "")
    return name.replace("\\", "")


def _invalid(entry: Entry, attribute: str, what: str) -> InvalidObjectError:
    return InvalidObjectError(Problem(entry.name, attribute, what))


def _missing_object(
    entry: Entry, attribute: str, names: str, rest: DirectoryObject | None = None
) -> InvalidObjectError:
    return InvalidObjectError(Problem(entry.name, attribute, f"there is no object {names}"), dangling=True, rest=rest)
