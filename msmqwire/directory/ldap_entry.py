"""Makes elements of LDAP entries: Create ADM Element From LDAP Values ([MS-MQDSSM] 3.1.6.11)."""

from __future__ import annotations

from typing import Any, Generic
from uuid import UUID

from msmqwire.directory.elements import REFERENCES, DirectoryObject, DirectoryServerType, Element, Scope
from msmqwire.directory.ldap_connection import Entry, LdapConnection, parent, relative_names
from msmqwire.directory.ldap_schema import (
    BOOLEAN,
    CLASSES,
    DERIVED,
    DIRECTORY_SERVER_TYPES,
    IDENTIFIER,
    MAPPING,
    NAME,
    OFTEN_UNSET,
    REQUIRED,
    Row,
)
from msmqwire.errors import DirectoryError

__all__ = ["LONG_NAME", "EntryReader", "utf16_length"]

#: A queue's name of this many UTF-16 code units is the beginning of a longer one and a hash ([MS-MQDSSM] 2.2.5).
LONG_NAME, _HASH = 64, 9

_ON_THE_COMPUTER = {"qualified_computer_name": "dNSHostName", "operating_system_version": "operatingSystemVersion"}


class EntryReader(Generic[Element]):
    """Makes elements of one class out of entries, for one read: what it looks up on the way it looks up once.

    Parameters
    ----------
    attributes : tuple of str
        The attributes to set.
    named : set of str
        Those of them that were asked for by name, and so are not left out.
    """

    def __init__(
        self, element: type[Element], attributes: tuple[str, ...], named: frozenset[str], connection: LdapConnection
    ) -> None:
        self._element = element
        self._attributes = attributes
        self._named = named
        self._connection = connection
        self._computers: dict[str, Entry | None] = {}
        self._identifiers: dict[str, UUID | None] = {}

    @property
    def names(self) -> frozenset[str]:
        """What is read of an entry: Create LDAP Attribute List ([MS-MQDSSM] 3.1.6.10)."""
        mapping, derived = MAPPING[self._element], DERIVED[self._element]
        mapped = {mapping[name].name for name in self._attributes if name in mapping}
        return frozenset(mapped.union(*(derived[name] for name in self._attributes if name in derived)))

    def element(self, entry: Entry) -> Element:
        """The element that an entry is.

        Raises
        ------
        DirectoryError
            An attribute has no value although it must, or one that cannot be read; or it names an object that is not
            there.
        """
        values: dict[str, Any] = {}
        for name in self._attributes:
            row = MAPPING[self._element].get(name)
            value = getattr(self, f"_{name}")(entry) if row is None else self._mapped(entry, name, row)
            if value is not REQUIRED:
                values[name] = value
            elif name in self._named or name not in OFTEN_UNSET:
                raise _wrong(entry, name, "is not set")
        return self._element.of(values)

    def _mapped(self, entry: Entry, name: str, row: Row) -> Any:
        octets = entry.values.get(row.name, [])
        if not octets:
            return row.unset
        try:
            read = [row.syntax.read(each) for each in octets]
        except (ValueError, KeyError):
            raise _wrong(entry, row.name, f"{octets[0][:64]!r} is no value of {name}") from None
        if row.syntax is NAME:
            # A routing server that is not there is passed over, a site or a gate must be there ([MS-MQDSSM] 3.1.6.11).
            missing_ok = name.endswith("routing_server_identifier_list")
            read = self._resolved(entry, name, read, missing_ok)
        return tuple(read) if self._element.is_list(name) else read[0]

    def _resolved(self, entry: Entry, attribute: str, names: list[str], missing_ok: bool) -> list[UUID]:
        identifiers = [self._identifier(name, REFERENCES[attribute]) for name in names]
        for name, identifier in zip(names, identifiers, strict=True):
            if identifier is None and not missing_ok:
                raise _wrong(entry, attribute, f"there is no {name}")
        return [identifier for identifier in identifiers if identifier is not None]

    def _identifier(self, name: str, element: type[DirectoryObject]) -> UUID | None:
        """The identifier of the object of that name and class, None if there is none."""
        if name not in self._identifiers:
            found = self._connection.ask(name, f"(objectClass={CLASSES[element]})", ["objectGUID"], below=False)
            octets = found[0].values.get("objectGUID", [b""])[0] if found else b""
            self._identifiers[name] = IDENTIFIER.read(octets) if len(octets) == 16 else None
        return self._identifiers[name]

    def _on_the_computer(self, attribute: str, computer: str) -> str:
        """A text of the object that stands for the machine, empty if it has none ([MS-MQDSSM] 3.1.6.11.1)."""
        if computer not in self._computers:
            found = self._connection.ask(computer, "(objectClass=*)", _ON_THE_COMPUTER.values(), below=False)
            self._computers[computer] = found[0] if found else None
        entry = self._computers[computer]
        octets = entry.values.get(attribute, []) if entry else []
        return octets[0].decode("utf-8", "replace") if octets else ""

    # What is derived, by the attribute's name.

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
        return self._on_the_computer("dNSHostName", parent(entry.name)) or REQUIRED

    def _operating_system_version(self, entry: Entry) -> str:
        return self._on_the_computer("operatingSystemVersion", parent(entry.name))

    def _directory_server_type(self, entry: Entry) -> Any:
        if not any(map(BOOLEAN.read, entry.values.get("mSMQDsServices", []))):
            return None
        bits = int((entry.values.get("mSMQServiceType") or [b"0"])[0])
        found = [kind for bit, kind in DIRECTORY_SERVER_TYPES.items() if bits & bit]
        return found[-1] if found else DirectoryServerType.STANDALONE

    def _pathname(self, entry: Entry) -> str:
        return f"{_part(entry, 2)}\\{_queue_name(entry)}".lower()

    def _qualified_pathname(self, entry: Entry) -> str:
        host = self._on_the_computer("dNSHostName", parent(entry.name, 2))
        return f"{host}\\{_queue_name(entry)}".lower() if host else ""


def utf16_length(text: str) -> int:
    """How many UTF-16 code units a text has."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _part(entry: Entry, index: int) -> str:
    """The value of a part of a name such as ``CN=queue,CN=msmq,CN=computer,...`` ([MS-MQDSSM] 2.2.1)."""
    names = relative_names(entry.name)
    if "msmq" not in map(str.lower, names[: max(index, 2)]) or len(names) <= index:
        raise DirectoryError(f"{entry.name} is not where an object of its kind stands ([MS-MQDSSM] 2.2.1)")
    return names[index]


def _queue_name(entry: Entry) -> str:
    """The name of a queue ([MS-MQDSSM] 3.1.6.11.2.1)."""
    name = _part(entry, 0)
    if utf16_length(name) == LONG_NAME:
        rest = entry.values.get("mSMQQueueNameExt", [])
        name = name[:-_HASH] + (rest[0].decode("utf-8", "replace") if rest else "")
    return name.replace("\\", "")


def _wrong(entry: Entry, attribute: str, what: str) -> DirectoryError:
    return DirectoryError(f"{entry.name}: {attribute}: {what}")
