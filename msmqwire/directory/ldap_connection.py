"""A connection to an LDAP server: opened on demand, verified, bounded in time and size, without referrals.

ldap3 bounds the wait for each packet only and collects all of an answer before it returns. ``_BoundedSocket`` and
``LdapConnection._count`` therefore check deadline, bytes, entries and referrals while an answer arrives.
"""

from __future__ import annotations

import contextlib
import re
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

from msmqwire.errors import DirectoryError, DirectoryNotConnected, require

# Result codes (RFC 4511 4.1.9).
_SUCCESS, _NO_SUCH_OBJECT, _INVALID_DN_SYNTAX, _BUSY, _UNAVAILABLE = 0, 32, 34, 51, 52

_PAGED_RESULTS = "1.2.840.113556.1.4.319"

#: Owner, group and DACL of a security descriptor: only administrators may read the SACL ([MS-ADTS] 3.1.1.3.4.1.11).
_SECURITY_DESCRIPTOR_PARTS = 0x7

#: A part of a distinguished name, up to a comma that is not escaped (RFC 4514 3).
_PART = re.compile(r"(?:\\.|[^\\,])+", re.DOTALL)
_ESCAPED = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)


#: Partitions of Active Directory that have no machines and no queues ([MS-ADTS] 3.1.1.1.5), as a search refers to them.
_OTHER_PARTITIONS = ("cn=configuration,", "cn=schema,cn=configuration,", "dc=domaindnszones,", "dc=forestdnszones,")

#: References in one answer; Active Directory sends one for each partition.
_MOST_REFERENCES = 100


def ldap3(module: str = "ldap3") -> ModuleType:
    """The optional LDAP library; ModuleNotFoundError with the command that installs it if it is missing."""
    return require(module, "a directory in LDAP")


def escape(octets: bytes) -> str:
    """The octets as a value in a filter, all of them escaped (RFC 4515 3)."""
    escaped: str = ldap3("ldap3.utils.conv").escape_bytes(octets)
    return escaped


def parent(name: str, levels: int = 1) -> str:
    """The distinguished name of an ancestor."""
    return ",".join(_PART.findall(name)[levels:])


def relative_names(name: str) -> list[str]:
    r"""The values of the parts of a distinguished name, the last part first (RFC 4514 3).

    >>> relative_names(r"CN=orders\2C new,CN=msmq,CN=LEDGER,DC=contoso")
    ['orders, new', 'msmq', 'LEDGER', 'contoso']
    """
    # Not the parser of ldap3, which mistakes the comma after an escaped space for an escaped one.
    values = (part.partition("=")[2] for part in _PART.findall(name))
    return [_ESCAPED.sub(_unescape, value.encode("utf-8")).decode("utf-8", "replace") for value in values]


def _unescape(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode("ascii")) if len(match[1]) == 2 else match[1]


@dataclass(frozen=True, slots=True)
class Entry:
    """An object of an LDAP server: its distinguished name, and the octets of its attributes by name.

    An attribute that the server sent without values has None in ldap3.
    """

    name: str
    values: Mapping[str, list[bytes] | None]


class _BoundedSocket:
    """A socket with a deadline and a limit of bytes for all that it receives."""

    def __init__(self, raw: Any, limits: _Limits) -> None:
        self.raw, self._limits = raw, limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)

    def recv(self, size: int) -> bytes:
        self.raw.settimeout(self._limits.left())
        data: bytes = self.raw.recv(size)
        self._limits.take(len(data))
        return data

    def sendall(self, data: bytes) -> None:
        self.raw.settimeout(self._limits.left())
        self.raw.sendall(data)


class _Limits:
    """The seconds and bytes that are left for one answer."""

    def __init__(self, seconds: float, octets: int) -> None:
        self._deadline = time.monotonic() + seconds
        self._seconds, self._octets, self._octets_left = seconds, octets, octets
        self.entries = self.references = 0
        self.exceeded = ""

    def left(self) -> float:
        """The seconds until the deadline; TimeoutError after it."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"timed out: no complete answer within {self._seconds:,} seconds")
        return left

    def take(self, octets: int) -> None:
        """Count bytes; OSError, which ldap3 expects of a socket, if they are too many."""
        self._octets_left -= octets
        if self._octets_left < 0:
            self.exceeded = f"an answer of more than {self._octets:,} bytes"
            raise OSError(self.exceeded)


def _address(url: str) -> str:
    """A URL as ldap3 takes it: it takes the slash after a host for a part of its name or of its port."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
        is_ldap = url.lower().startswith(("ldap://", "ldaps://"))
        if is_ldap and parts.hostname and parts.path in ("", "/") and "?" not in url:
            return f"{parts.scheme}://{parts.netloc.removesuffix(':')}"
    except ValueError:
        pass
    raise ValueError(f"{url!r} is not a URL such as ldap://host:389 or ldaps://host:636")


@dataclass(kw_only=True, eq=False, repr=False)  # a repr would show the password
class LdapConnection:
    """Sends one request at a time to a server; the parameters are those of ``LdapDirectory``."""

    url: str
    user: str | None
    password: str | None
    base: str | None
    start_tls: bool
    password_in_clear: bool
    ca_file: str | None
    timeout: int
    time_limit: int
    size_limit: int
    byte_limit: int
    page_size: int

    def __post_init__(self) -> None:
        url, tls = self.url, self.url.lower().startswith("ldaps://")
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise ValueError("a URL with a user or a password is refused: pass user= and password=")
        self._address = _address(url)
        if self.start_tls and tls:
            raise ValueError(f"{url!r} uses TLS already: start_tls is for ldap:")
        if self.password is not None and not (tls or self.password_in_clear):
            self.start_tls = True
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password must be given together")
        if min(self.timeout, self.time_limit, self.size_limit, self.byte_limit, self.page_size) < 1:
            raise ValueError("timeout, time_limit, size_limit, byte_limit and page_size must be 1 or more")
        self._library = ldap3()
        self._connection: Any = None
        self._limits = _Limits(self.timeout, self.byte_limit)
        self._lock = threading.RLock()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                # The unbind may fail if the server is gone; the socket must be closed nevertheless.
                for close in (connection.unbind, connection.strategy.close):
                    with contextlib.suppress(self._library.core.exceptions.LDAPExceptionError, OSError):
                        close()

    @property
    def root(self) -> str:
        """The distinguished name of the forest's root domain ([MS-ADTS] 3.1.1.3.2.16).

        Raises
        ------
        DirectoryNotConnected
            The server does not answer.
        DirectoryError
            Its answer does not name one.
        """
        if self.base is None:
            asked = ("rootDomainNamingContext", "namingContexts")
            entries = self.ask("", "(objectClass=*)", asked, below=False)
            for attribute in asked:
                names = (entries[0].values.get(attribute) if entries else None) or []
                if len(names) == 1:
                    try:
                        self.base = names[0].decode("utf-8")
                    except UnicodeDecodeError:
                        raise DirectoryError(f"{self.url}: {attribute} {names[0][:64]!r} is not UTF-8") from None
                    return self.base
            raise DirectoryError(f"{self.url} does not name its root domain: pass base=")
        return self.base

    def ask(self, base: str, assertion: str, attributes: Iterable[str], *, below: bool = True) -> list[Entry]:
        """The entries that meet a filter, at a distinguished name and (unless ``below`` is false) below it.

        Raises
        ------
        DirectoryNotConnected
            The server cannot be reached, refuses the user, is busy, or stopped answering.
        DirectoryError
            The answer is an error or a referral, or has more entries or bytes than the limit; or there is no root
            domain.
        """
        question = (base, assertion, list(attributes), below)
        with self._lock:
            self._limits = _Limits(self.timeout, self.byte_limit)
            kept = self._connection is not None
            try:
                return self._attempt(*question)
            except DirectoryNotConnected as error:
                silent = error.__cause__ is not None and isinstance(error.__cause__.__context__, TimeoutError)
                # Retried only if the server closed an idle connection, not after a timeout or "busy".
                if not kept or silent or self._connection is not None:
                    raise
            return self._attempt(*question)

    def _attempt(self, base: str, assertion: str, attributes: list[str], below: bool) -> list[Entry]:
        try:
            if self._connection is None:
                self._open()
            self._bound(self._connection)
            return self._pages(base, assertion, attributes, below)
        except DirectoryError:
            raise
        # The decoder of the library raises all kinds of exceptions on an invalid answer.
        except Exception as error:
            self.close()
            if self._limits.exceeded:
                raise DirectoryError(f"{self.url}: {self._limits.exceeded}") from None
            raise DirectoryNotConnected(f"{self.url}: {str(error) or type(error).__name__}") from error

    def _bound(self, connection: Any) -> None:
        """Apply the limits of this answer to the socket."""
        raw = getattr(connection.socket, "raw", connection.socket)
        connection.socket = _BoundedSocket(raw, self._limits)

    def _count(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Count an entry, or refuse a referral, as it arrives."""
        if answer["type"] == "searchResEntry":
            self._limits.entries += 1
            if self._limits.entries > self.size_limit:
                # Closing the connection ends the search on the server.
                self.close()
                raise DirectoryError(f"{self.url}: more than {self.size_limit:,} objects")
        elif answer["type"] == "searchResRef":
            self._limits.references += 1
            names = [unquote(urlsplit(url).path.removeprefix("/")).lower() for url in answer["uri"]]
            known = all(name.startswith(_OTHER_PARTITIONS) for name in names)
            if not known or self._limits.references > _MOST_REFERENCES:
                self.close()
                where = "another server has a part of the answer, and references are not followed"
                raise DirectoryError(f"{self.url}: {where}: {', '.join(answer['uri'])[:256]}")
        return answer

    def _pages(self, base: str, assertion: str, attributes: list[str], below: bool) -> list[Entry]:
        library, connection = self._library, self._connection
        controls = None
        if "nTSecurityDescriptor" in attributes:
            controls = library.protocol.microsoft.security_descriptor_control(sdflags=_SECURITY_DESCRIPTOR_PARTS)
        entries: list[Entry] = []
        cookie = None
        while True:
            connection.search(
                base,
                assertion,
                library.SUBTREE if below else library.BASE,
                library.DEREF_NEVER,
                attributes or [library.NO_ATTRIBUTES],
                time_limit=self.time_limit,
                controls=controls,
                paged_size=self.page_size if below else None,
                paged_cookie=cookie,
            )
            result = connection.result
            if result["result"] in (_NO_SUCH_OBJECT, _INVALID_DN_SYNTAX):
                if base == self.base:
                    raise DirectoryError(f"{self.url}: there is no {base}, the root domain")
                return []
            if result["result"] != _SUCCESS:
                kind = DirectoryNotConnected if result["result"] in (_BUSY, _UNAVAILABLE) else DirectoryError
                raise kind(f"{self.url}: {result['description']}: {result['message'] or 'the server gives no reason'}")
            entries += (
                Entry(each["dn"], each["raw_attributes"]) for each in connection.response if "raw_attributes" in each
            )
            self._limits.left()
            cookie = result.get("controls", {}).get(_PAGED_RESULTS, {}).get("value", {}).get("cookie")
            if not cookie:
                return entries

    def _open(self) -> None:
        library, limits = self._library, self._limits
        try:
            tls = library.Tls(validate=ssl.CERT_REQUIRED, ca_certs_file=self.ca_file)
        except library.core.exceptions.LDAPSSLConfigurationError:  # which does not name the file
            raise OSError(f"the file of authorities, {self.ca_file}, does not exist") from None
        wrap = tls.wrap_socket

        def wrap_bounded(connection: Any, do_handshake: bool = False) -> None:
            # The timeout of a socket in Python bounds its complete handshake.
            connection.socket = getattr(connection.socket, "raw", connection.socket)
            connection.socket.settimeout(limits.left())
            wrap(connection, do_handshake)
            self._bound(connection)

        tls.wrap_socket = wrap_bounded
        server = library.Server(self._address, tls=tls, get_info=library.NONE, connect_timeout=limits.left())

        def addresses() -> Iterator[Any]:
            # ldap3 gives each of them the same time, and leaves the sockets of those that fail open
            for each in server.address_info:
                if connection.socket is not None:
                    connection.socket.close()
                server.connect_timeout = limits.left()
                yield each

        server.candidate_addresses = addresses
        self._connection = connection = library.Connection(
            server,
            self.user,
            self.password,
            # Requests are serialized here; the thread-safe strategy copies every answer.
            client_strategy=library.SYNC,
            auto_referrals=False,
            check_names=False,
            read_only=True,
            receive_timeout=self.timeout,
        )
        decode = connection.strategy.decode_response_fast
        connection.strategy.decode_response_fast = lambda message: self._count(decode(message))
        try:
            connection.open()
        except library.core.exceptions.LDAPSocketOpenError as error:
            # That of several addresses has a list of errors
            raise OSError(connection.last_error or str(error)) from error
        self._bound(connection)
        if self.start_tls:
            connection.start_tls()
        if not connection.bind():
            result = connection.result
            self.close()
            raise DirectoryNotConnected(f"{self.url}: {result['description']}: {result['message'] or 'refused'}")
