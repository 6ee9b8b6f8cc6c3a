"""Format names and path names as values: [MS-MQMQ] 2.1.

Names are equal when they name the same queue: GUIDs and numbers compare by value, texts without regard to the case of
ASCII letters. ``str()`` keeps the case of texts, with keywords in upper case and GUIDs in lower case; of a direct name
that a packet has, it is the text as it was sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from msmqwire.errors import FormatNameError
from msmqwire.formatname._scan import scan
from msmqwire.formatname.schema import ProtocolName, QueueTypeName, SuffixName

_LONGEST_REMEMBERED = 1024
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_ASCII_LOWER = str.maketrans({chr(upper): chr(upper + 32) for upper in range(ord("A"), ord("Z") + 1)})


def _folded(text: str | None) -> str:
    return "" if text is None else text.translate(_ASCII_LOWER)


def _with_suffix(text: str, suffix: SuffixName | None) -> str:
    return text if suffix is None else f"{text};{suffix.upper()}"


def _with_subqueue(queue: str, subqueue: str | None) -> str:
    return queue if subqueue is None else f"{queue};{subqueue}"


class Name:
    """The base of format names and path names: checked when made, compared by the queue they name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        self._check()

    def _check(self) -> None:
        """Refuse parts whose text is not a name, or is another name."""
        try:
            text = str(self)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(f"{self!r} has a part of another type, or an unknown keyword") from None
        names = scan(text, extended=True, spx=True, any_letters=True, path_name=isinstance(self, PathName))
        for member in _MEMBERS[type(self)]:
            value, read = getattr(self, member), names[0][member]
            # A bool equals a number and is written as one
            if isinstance(value, bool) or (str(value) == str(read) and value != read):
                raise ValueError(f"{member} must be of type {type(read).__name__}, not {type(value).__name__}")
            if len(names) > 1 or value != read:
                raise ValueError(f"{member}={value!r} makes {text!r}, which names something else")

    def _key(self) -> Hashable:
        """Equal for two names of the same queue."""
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        return tuple([_folded(value) if isinstance(value, str) else value for value in values])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Name):
            return NotImplemented
        return type(self) is type(other) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self), self._key()))


class FormatName(Name, ABC):
    """A format name of any kind: [MS-MQMQ] 2.1.2-2.1.7.

    Attributes
    ----------
    kind : str
        As in the ``kind`` column of a batch, e.g. ``"direct"``.
    """

    __slots__ = ()
    kind: ClassVar[str]

    def text(self, *, private_id_width: int = 1) -> str:
        """The name as text, the numbers of private queues with at least ``private_id_width`` hexadecimal digits."""
        return self._written(private_id_width)

    def __str__(self) -> str:
        return self._written(1)

    @abstractmethod
    def _written(self, private_id_width: int) -> str: ...


@dataclass(frozen=True, eq=False, slots=True)
class DirectName(FormatName):
    """A queue by the address of its computer: [MS-MQMQ] 2.1.2.

    Attributes
    ----------
    protocol : {"tcp", "os", "ipx", "spx", "http", "https"}
        ``spx`` is not in the grammar; order acknowledgments use it ([MS-MQQB] 2.2.4).
    address : str
        ProtocolAddressSpecification, e.g. ``"//host:8080/MSMQ"``.
    queue : str or None
        None for the machine's own queues, which ``suffix`` tells apart. It may have blanks, and letters beyond ASCII.
    queue_type : {"public", "private", "system"}
        ``system`` for the machine's own queues.
    subqueue : str or None
    suffix : {"journal", "deadletter", "deadxact"} or None
    sent : str or None
        The text without ``DIRECT=`` if a packet has the name, which may have slashes, and keywords in any case. Names
        are compared without it.

    Raises
    ------
    FormatNameError
        The parts do not make a direct name. The other classes raise it likewise.
    ValueError
        The parts make the name of another queue: the subqueue ``JOURNAL`` would be read as a suffix.

    Examples
    --------
    >>> str(DirectName("os", "server", "orders", "private"))
    'DIRECT=OS:server\\\\PRIVATE$\\\\orders'
    """

    kind: ClassVar[str] = "direct"

    protocol: ProtocolName
    address: str
    queue: str | None
    queue_type: QueueTypeName = "public"
    subqueue: str | None = None
    suffix: SuffixName | None = None
    sent: str | None = field(default=None, init=False, repr=False)

    def _written(self, private_id_width: int) -> str:
        return f"DIRECT={self.path}"

    @property
    def path(self) -> str:
        """The name without ``DIRECT=``, as packets carry it."""
        if self.sent is not None:
            return self.sent
        place = f"{self.protocol.upper()}:{self.address}"
        if self.queue is None:
            return f"{place}\\SYSTEM${_with_suffix('', self.suffix)}"
        private = "PRIVATE$\\" if self.queue_type == "private" else ""
        return f"{place}\\{private}{_with_suffix(_with_subqueue(self.queue, self.subqueue), self.suffix)}"

    def _key(self) -> Hashable:
        address = self._address_key()
        return self.protocol, address, self.queue_type, _folded(self.queue), _folded(self.subqueue), self.suffix

    def _address_key(self) -> Hashable:
        """The address in lower case, over HTTP with the default port where it has none."""
        address = _folded(self.address)
        if self.protocol not in _DEFAULT_PORTS:
            return address
        host, _, port = address.removesuffix("/msmq").partition("]" if address.startswith("//[") else ":")
        port = port.lstrip(":")
        return host, (port.lstrip("0") or "0") if port else _DEFAULT_PORTS[self.protocol]


@dataclass(frozen=True, eq=False, slots=True)
class _GuidName(FormatName):
    """A name that is a keyword, a GUID and perhaps a suffix."""

    guid: UUID
    suffix: SuffixName | None = None

    def _written(self, private_id_width: int) -> str:
        return _with_suffix(f"{self.kind.upper()}={self.guid}", self.suffix)


class PublicName(_GuidName):
    """A public queue by its identifier: [MS-MQMQ] 2.1.3.

    ``suffix`` can be ``"journal"``, which QUEUE_FORMAT can express and the grammar cannot.

    Examples
    --------
    >>> name = parse("public=2BBBA4EC-8E75-4B43-9C1E-0D2A5A3C2F10")
    >>> str(name)
    'PUBLIC=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10'
    """

    __slots__ = ()
    kind: ClassVar[str] = "public"


@dataclass(frozen=True, eq=False, slots=True)
class PrivateName(FormatName):
    """A private queue by its queue manager and its number there: [MS-MQMQ] 2.1.4.

    Examples
    --------
    >>> name = PrivateName(UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10"), 0x1F)
    >>> str(name)
    'PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10\\\\1F'
    >>> name.text(private_id_width=8)
    'PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10\\\\0000001F'
    """

    kind: ClassVar[str] = "private"

    guid: UUID
    private_id: int
    suffix: SuffixName | None = None

    def _written(self, private_id_width: int) -> str:
        return _with_suffix(f"PRIVATE={self.guid}\\{self.private_id:0{private_id_width}X}", self.suffix)


@dataclass(frozen=True, eq=False, slots=True)
class DistributionListName(FormatName):
    """A distribution list, perhaps with its Active Directory domain: [MS-MQMQ] 2.1.5."""

    kind: ClassVar[str] = "distribution_list"

    guid: UUID
    domain: str | None = None

    def _written(self, private_id_width: int) -> str:
        return f"DL={self.guid}" if self.domain is None else f"DL={self.guid}@{self.domain}"


class MachineName(_GuidName):
    """A computer's own queues: [MS-MQMQ] 2.1.6.

    ``suffix`` is ``"journal"``, ``"deadletter"`` or ``"deadxact"``. The grammar cannot express it; QUEUE_FORMAT cannot
    express a name without it.
    """

    __slots__ = ()
    kind: ClassVar[str] = "machine"


class ConnectorName(_GuidName):
    """A connector queue: [MS-MQMQ] 2.1.6. ``suffix`` can be ``"xactonly"``, which only QUEUE_FORMAT can express."""

    __slots__ = ()
    kind: ClassVar[str] = "connector"


@dataclass(frozen=True, eq=False, slots=True)
class MulticastName(FormatName):
    """The queues that listen on an IPv4 multicast address and port: [MS-MQMQ] 2.1.6.

    Examples
    --------
    >>> str(MulticastName("234.1.1.1", 8001))
    'MULTICAST=234.1.1.1:8001'
    """

    kind: ClassVar[str] = "multicast"

    address: str
    port: int

    def _written(self, private_id_width: int) -> str:
        return f"MULTICAST={self.address}:{self.port}"


@dataclass(frozen=True, eq=False, slots=True)
class MultipleElementName(FormatName):
    """Two or more format names; a message goes to all of them: [MS-MQMQ] 2.1.7.

    Raises
    ------
    FormatNameError
        An element is a machine name, or names a journal or dead-letter queue.
    ValueError
        There are fewer than two elements, or an element has several elements itself.

    Examples
    --------
    >>> name = parse("DIRECT=OS:a\\\\q,MULTICAST=234.1.1.1:8001")
    >>> [element.kind for element in name.elements]
    ['direct', 'multicast']
    """

    kind: ClassVar[str] = "multiple_element"

    elements: tuple[FormatName, ...]

    def _check(self) -> None:
        object.__setattr__(self, "elements", tuple(self.elements))
        single = [isinstance(each, FormatName) and not isinstance(each, MultipleElementName) for each in self.elements]
        if len(single) < 2 or not all(single):
            raise ValueError("a multiple-element name has two or more elements, none with several elements itself")
        scan(str(self), extended=True, spx=True, any_letters=True)

    def _written(self, private_id_width: int) -> str:
        return ",".join([element._written(private_id_width) for element in self.elements])


@dataclass(frozen=True, eq=False, slots=True)
class PathName(Name):
    """A queue by its computer and its name: [MS-MQMQ] 2.1.1.

    Attributes
    ----------
    computer : str
    queue : str
    queue_type : {"public", "private", "system"}
    subqueue : str or None

    Examples
    --------
    >>> parse_path_name("server\\\\private$\\\\orders")
    PathName(computer='server', queue='orders', queue_type='private', subqueue=None)
    """

    kind: ClassVar[str] = "path_name"

    computer: str
    queue: str
    queue_type: QueueTypeName = "public"
    subqueue: str | None = None

    def __str__(self) -> str:
        place = {"public": "", "private": "private$\\", "system": "system$;"}[self.queue_type]
        return f"{self.computer}\\{place}{_with_subqueue(self.queue, self.subqueue)}"


_CLASSES: dict[str, type[FormatName]] = {
    kind.kind: kind
    for kind in (
        DirectName,
        PublicName,
        PrivateName,
        DistributionListName,
        MachineName,
        ConnectorName,
        MulticastName,
    )
}
#: The parts that each kind has.
_MEMBERS: dict[type[Name], tuple[str, ...]] = {
    class_: tuple([each.name for each in fields(class_) if each.init]) for class_ in (*_CLASSES.values(), PathName)
}
AnyName = TypeVar("AnyName", bound=Name)


def _made(class_: type[AnyName], parts: dict[str, Any], sent: str | None = None) -> AnyName:
    """A name of parts that ``scan`` returned, which need no check; ``sent`` as for a direct name."""
    name = object.__new__(class_)
    for member in _MEMBERS[class_]:
        object.__setattr__(name, member, parts[member])
    if class_ is DirectName:
        object.__setattr__(name, "sent", sent)
    return name


def sent_name(path: str) -> DirectName | str:
    """Return the direct name in a packet, parsed from ``path``; the text itself if it is not valid.

    Packets have slashes after ``/MSMQ``, the protocol ``SPX:``, and queues with any letters.
    """
    return _remembered_name(path) if len(path) <= _LONGEST_REMEMBERED else _parsed_name(path)


def _parsed_name(path: str) -> DirectName | str:
    try:
        names = scan(f"DIRECT={path}", http_slashes=True, spx=True, any_letters=True)
    except FormatNameError:
        names = []
    return _made(DirectName, names[0], path) if len(names) == 1 else f"DIRECT={path}"


# The messages of a session are for few queues, whose names are read several times for each
_remembered_name = lru_cache(maxsize=256)(_parsed_name)


def parse(
    text: str, *, extended: bool = False, http_slashes: bool = False, spx: bool = False, any_letters: bool = False
) -> FormatName:
    """Parse a format name: [MS-MQMQ] 2.1.2-2.1.7.

    A comma always separates the elements of a multiple-element name.

    Parameters
    ----------
    text : str
        Keywords, protocols, suffixes and hexadecimal digits in any case.
    extended : bool
        Accept the suffixes that QUEUE_FORMAT can express and the grammar cannot: ``PUBLIC=guid;JOURNAL``,
        ``CONNECTOR=guid;XACTONLY``, and ``;JOURNAL``, ``;DEADLETTER`` and ``;DEADXACT`` after ``MACHINE=guid``.
    http_slashes : bool
        Accept ``/`` for ``\\`` after ``/MSMQ``, as names of queues over HTTP are often written.
    spx : bool
        Accept the protocol ``SPX:``, which order acknowledgments use ([MS-MQQB] 2.2.4).
    any_letters : bool
        Accept blanks, and letters and other printable characters that are not ASCII, within the queue of a direct name:
        real queues have them, and the grammar has not.

    Raises
    ------
    FormatNameError
        The text is not a format name; ``offset`` is its first wrong character.

    Examples
    --------
    >>> parse("direct=os:server\\\\private$\\\\orders;journal")
    DirectName(protocol='os', address='server', queue='orders', queue_type='private', subqueue=None, suffix='journal')
    >>> parse("DIRECT=TCP:10.0.0.256\\\\orders")
    Traceback (most recent call last):
        ...
    msmqwire.errors.FormatNameError: bad_value: ProtocolAddressSpecification at character 18: expected ...
    """
    names = scan(text, extended=extended, http_slashes=http_slashes, spx=spx, any_letters=any_letters)
    elements = tuple([_made(_CLASSES[parts["kind"]], parts) for parts in names])
    if len(elements) == 1:
        return elements[0]
    name = object.__new__(MultipleElementName)
    object.__setattr__(name, "elements", elements)
    return name


def parse_path_name(text: str) -> PathName:
    """Parse a path name: [MS-MQMQ] 2.1.1, with the queue names of all versions of MSMQ.

    Raises
    ------
    FormatNameError
        The text is not a path name; ``offset`` is its first wrong character.
    """
    (parts,) = scan(text, path_name=True)
    return _made(PathName, parts)
