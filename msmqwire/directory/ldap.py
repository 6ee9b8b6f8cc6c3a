"""A directory in Active Directory, read over LDAP as [MS-MQDSSM] maps it."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterator

from msmqwire.directory.base import Directory, Equal, Filter, Problem, matches
from msmqwire.directory.elements import DirectoryObject, Element, Queue, QueueManager, computer_of
from msmqwire.directory.ldap_connection import Entry, LdapConnection, escape
from msmqwire.directory.ldap_entry import LONG_NAME, EntryReader, utf16_length
from msmqwire.directory.ldap_schema import CLASSES, CONTAINERS, DERIVED, MAPPING
from msmqwire.errors import DirectoryError

#: The attributes that name the computer above an object, and the attribute of the computer with that name.
_HOSTS = {
    "computer_name": "cn",
    "qualified_computer_name": "dNSHostName",
    "pathname": "cn",
    "qualified_pathname": "dNSHostName",
}


class LdapDirectory(Directory):
    """A directory in Active Directory, or in any server that has its schema; needs ldap3 (the extra ``ldap``).

    It connects on first use, keeps the connection, and reconnects if the server has closed it. A read fetches all
    entries before it returns the first object, so a failure is raised at once. Reads from several threads take turns.
    Referrals are not followed: a read whose answer is in part on another server is an error. References to the
    partitions of Active Directory that hold no machines (Configuration, Schema and the DNS zones) do not count.

    The server applies EQUALS filters on identifiers, names, numbers and booleans; all other filters are applied here,
    since servers compare differently.

    Parameters
    ----------
    url : str
        ``ldap://host:389`` or ``ldaps://host:636``.
    user, password : str, optional
        For a simple bind; anonymous without.
    base : str, optional
        The distinguished name of the forest's root domain, ``DC=contoso,DC=example``; by default read from the server.
    start_tls : bool
        Start TLS on an ``ldap:`` connection before any other request. A password always does, unless
        ``password_in_clear`` is given.
    password_in_clear : bool
        Send the password over an ``ldap:`` connection without TLS, for anyone on the network to read.
    ca_file : str, optional
        Certificates of the authorities to trust, instead of the system's. The server's certificate is always verified.
    timeout : int
        Seconds for a connection and one complete answer, all its pages included.
    time_limit : int
        Seconds that the server may search; the default is that of [MS-MQDSSM] 3.1.6.15.
    size_limit : int
        Largest number of objects that a read may find; more are an error.
    byte_limit : int
        Largest number of bytes of one answer, all its pages included; more are an error.
    page_size : int
        Objects in each answer of the server.

    Raises
    ------
    ValueError
        The URL or a limit is not valid, the URL has a password, or only one of user and password is given.
    ImportError
        ldap3 is not installed.
    """

    elements = tuple(CLASSES)

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        base: str | None = None,
        start_tls: bool = False,
        password_in_clear: bool = False,
        ca_file: str | None = None,
        timeout: int = 120,
        time_limit: int = 120,
        size_limit: int = 1_000_000,
        byte_limit: int = 1 << 30,
        page_size: int = 1000,
    ) -> None:
        super().__init__()
        self._connection = LdapConnection(
            url=url,
            user=user,
            password=password,
            base=base,
            start_tls=start_tls,
            password_in_clear=password_in_clear,
            ca_file=ca_file,
            timeout=timeout,
            time_limit=time_limit,
            size_limit=size_limit,
            byte_limit=byte_limit,
            page_size=page_size,
        )

    def __enter__(self) -> LdapDirectory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a later read opens another."""
        self._connection.close()

    def queues_of(self, queue_manager: QueueManager) -> list[Queue]:
        """As :meth:`Directory.queues_of`: the queues are below their queue manager, if its FullPath was read."""
        path = queue_manager.attributes().get("full_path")
        if not path:
            return super().queues_of(queue_manager)
        known = (*MAPPING[Queue], *DERIVED[Queue])
        reader = EntryReader(Queue, known, frozenset(), self._connection)
        entries = self._connection.ask(path, _assertion(Queue, ()), reader.names)
        return list(map(reader.element, entries))

    def _read_for_check(self, element: type[Element], problems: list[Problem]) -> Iterator[Element]:
        """As :meth:`Directory._read_for_check`: missing routing servers are passed over ([MS-MQDSSM] 3.1.6.11)."""
        return self._search(element, (), None, problems)

    def _search(
        self,
        element: type[Element],
        filters: tuple[Filter, ...],
        attributes: tuple[str, ...] | None,
        problems: list[Problem] | None = None,
    ) -> Iterator[Element]:
        if element not in CLASSES:
            raise DirectoryError(f"Active Directory has no {element.__name__} ([MS-MQDSSM] 3.1.6.3)")
        known = (*MAPPING[element], *DERIVED[element])
        named = (*(attributes or ()), *(each.attribute for each in filters))
        for name in named:
            if name not in known:
                raise DirectoryError(f"Active Directory has no {name} of {element.__name__} ([MS-MQDSSM] 3.1.6.20)")
        for each in filters:
            _check_text(each)
        wanted = dict.fromkeys((*(known if attributes is None else attributes), *named))
        reader = EntryReader(element, tuple(wanted), frozenset(named), self._connection, problems)
        entries = self._entries(element, filters, reader.names)
        # An exception ends neither map nor filter, so Read Directory Next continues after an invalid object.
        found = filter(functools.partial(matches, filters=filters), map(reader.element, entries))
        return found if attributes is None else map(operator.methodcaller("only", attributes), found)

    def _entries(
        self, element: type[DirectoryObject], filters: tuple[Filter, ...], names: frozenset[str]
    ) -> list[Entry]:
        """Entries that include all that meet the filters, as few as the server can select."""
        ask, root = self._connection.ask, self._connection.root
        assertion = _assertion(element, filters)
        equal = {each.attribute: each.value for each in filters if isinstance(each, Equal) and each.value}
        if "full_path" in equal:
            return ask(equal["full_path"], assertion, names, below=False)
        for attribute, on_the_computer in _HOSTS.items():
            if attribute in equal:
                host, queue = equal[attribute], ""
                if element is Queue:
                    host = computer_of(equal[attribute])
                    queue = equal[attribute][len(host) + 1 :]
                if queue and utf16_length(queue) < LONG_NAME:
                    assertion = f"(&{assertion}(cn={escape(queue.encode('utf-8'))}))"
                named = f"(&(objectClass=computer)({on_the_computer}={escape(host.encode('utf-8'))}))"
                computers = ask(root, named, ()) if host else []
                return [entry for computer in computers for entry in ask(computer.name, assertion, names)]
        return ask(CONTAINERS.get(element, "") + root, assertion, names)


def _check_text(given: Filter) -> None:
    """LDAP has text in UTF-8, which cannot hold a lone surrogate."""
    try:
        str(given.value).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{given.attribute} is compared with {given.value!r}, which has a lone surrogate") from None


def _assertion(element: type[DirectoryObject], filters: tuple[Filter, ...]) -> str:
    """The filter for the server (RFC 4515): the class, and every EQUALS that the server compares as we do."""
    parts = [f"(objectClass={CLASSES[element]})"]
    for each in filters:
        row = MAPPING[element].get(each.attribute)
        if not isinstance(each, Equal) or row is None or row.syntax.write is None or each.value == "":
            continue
        part = f"({row.name}={escape(row.syntax.write(each.value))})"
        # An attribute that is not set has its default, which the server does not know.
        unset = not row.required and element.__dataclass_fields__[each.attribute].default == each.value
        parts.append(f"(|{part}(!({row.name}=*)))" if unset else part)
    return f"(&{''.join(parts)})"
