"""The queries of a directory: Read Directory, Begin, Next and End ([MS-MQDMPR] 3.1.7.1.20 to 3.1.7.1.23).

========================  ==================================================
DirectoryOperationResult  Python
========================  ==================================================
Success                   the object, or the handle
ObjectNotFound            None from :meth:`Directory.read_directory`
EndOfData                 None from :meth:`Directory.read_directory_next`
DirectoryNotConnected     :class:`~msmqwire.errors.DirectoryNotConnected`
any other                 :class:`~msmqwire.errors.DirectoryError`
========================  ==================================================
"""

from __future__ import annotations

import enum
import operator
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from msmqwire.directory.elements import (
    ELEMENTS,
    DirectoryObject,
    Element,
    Queue,
    QueueManager,
    RoutingLink,
    computer_of,
)
from msmqwire.errors import DirectoryError
from msmqwire.wire.guids import guid_of


@dataclass(frozen=True, slots=True)
class Problem:
    """An error of an object.

    Attributes
    ----------
    object : str
        Table and number or name of the object.
    attribute : str
        Empty for an error of the complete object.
    what : str
        The description of the error.
    """

    object: str
    attribute: str
    what: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.object, self.attribute, self.what) if part)


class InvalidObjectError(DirectoryError):
    """An object of a directory that is not valid.

    Attributes
    ----------
    problem : Problem
    dangling : bool
        Whether the attribute names a missing object.
    rest : DirectoryObject or None
        The object without the missing ones, if it can be used without them: a routing link without a site gate. No
        filter is applied to it.
    """

    def __init__(self, problem: Problem, *, dangling: bool = False, rest: DirectoryObject | None = None) -> None:
        super().__init__(str(problem))
        self.problem, self.dangling, self.rest = problem, dangling, rest


@dataclass(frozen=True, slots=True)
class Filter:
    """An attribute-filter expression ([MS-MQDMPR] 3.1.7.1.20); use one of its six subclasses.

    A list meets NOT-EQUALS if no member is equal, and any other expression if one of its members does. Texts are
    compared without regard to case, as directories compare names.

    Attributes
    ----------
    attribute : str
        The name of an attribute of the element, such as ``"identifier"``.
    value : object
        The value to compare with.
    """

    attribute: str
    value: Any

    compare: ClassVar[Callable[[Any, Any], bool]]

    def met_by(self, element: DirectoryObject) -> bool:
        """Return True if an element meets the filter."""
        found = getattr(element, self.attribute)
        members = found if isinstance(found, tuple) else () if found is None else (found,)
        wanted, compare = comparable(self.value), type(self).compare
        return any(compare(comparable(member), wanted) for member in members)


class Equal(Filter):
    """EQUALS."""

    __slots__ = ()
    compare = operator.eq


class NotEqual(Filter):
    """NOT-EQUALS."""

    __slots__ = ()

    def met_by(self, element: DirectoryObject) -> bool:
        """Return True if an element meets the filter."""
        return not Equal(self.attribute, self.value).met_by(element)


class LessThan(Filter):
    """LESS-THAN."""

    __slots__ = ()
    compare = operator.lt


class GreaterThan(Filter):
    """GREATER-THAN."""

    __slots__ = ()
    compare = operator.gt


class LessThanOrEqual(Filter):
    """LESS-THAN-OR-EQUAL."""

    __slots__ = ()
    compare = operator.le


class GreaterThanOrEqual(Filter):
    """GREATER-THAN-OR-EQUAL."""

    __slots__ = ()
    compare = operator.ge


def comparable(value: Any) -> Any:
    """The value as filters and indexes compare it: text in lower case."""
    # Not casefold, which can change the number of letters.
    return value.lower() if isinstance(value, str) else value


def matches(element: DirectoryObject, filters: Iterable[Filter]) -> bool:
    """Return True if an element meets every filter."""
    return all(each.met_by(element) for each in filters)


class Directory(ABC):
    """The objects of an enterprise.

    A read names the class of the element, the filters that all must be met (none, or None: every object), and the
    attributes to return (None: all). An invalid query raises ``ValueError``; an error of the directory or of the
    connection to it raises :class:`~msmqwire.errors.DirectoryError`.
    """

    #: The classes of elements that the directory can have.
    elements: ClassVar[tuple[type[DirectoryObject], ...]] = tuple(ELEMENTS.values())
    #: DirectoryOffline ([MS-MQDMPR] 3.1.1.1): whether local data answers in place of the directory.
    offline = False

    def __init__(self) -> None:
        self._reads: dict[int, Iterator[Any]] = {}
        # As itertools.count(1), which Python 3.14 can neither copy nor pickle
        self._handles = iter(range(1, sys.maxsize))

    @abstractmethod
    def _search(
        self, element: type[Element], filters: tuple[Filter, ...], attributes: tuple[str, ...] | None
    ) -> Iterator[Element]:
        """The objects that meet the filters, in the order of the directory.

        The call itself searches, and raises if the search fails. An invalid object raises when the iterator reaches it,
        and does not end the iterator.
        """

    def read_directory(
        self, element: type[Element], filters: Iterable[Filter] | None = None, attributes: Iterable[str] | None = None
    ) -> Element | None:
        """Read Directory: return the first object that meets all filters, or None ([MS-MQDMPR] 3.1.7.1.20).

        Raises
        ------
        DirectoryNotConnected
            The directory cannot be reached, or stopped answering.
        DirectoryError
            The directory has an invalid object.
        ValueError
            The element has no such attribute.
        """
        return next(self.read_all(element, filters, attributes), None)

    def read_all(
        self, element: type[Element], filters: Iterable[Filter] | None = None, attributes: Iterable[str] | None = None
    ) -> Iterator[Element]:
        """Every object that meets all filters: Begin, Next until the end of the data, End.

        Raises
        ------
        DirectoryNotConnected, DirectoryError, ValueError
            As :meth:`read_directory`; the first two also from the iterator, which can be resumed afterwards.
        """
        return self._search(element, *_query(element, filters, attributes))

    def _read_for_check(self, element: type[Element], problems: list[Problem]) -> Iterator[Element]:
        """Every object of a class, as ``read_all``; what a read passes over without an error is added to ``problems``.

        Raises
        ------
        DirectoryNotConnected, DirectoryError
            As :meth:`read_all`.
        """
        return self._search(element, (), None)

    def queues_of(self, queue_manager: QueueManager) -> list[Queue]:
        """The public queues of a queue manager: those with one of its names in their Pathname.

        Raises
        ------
        DirectoryNotConnected, DirectoryError
            As :meth:`read_directory`.
        ValueError
            Neither of its names was read.
        """
        known = queue_manager.attributes()
        names = {known.get(name, "").lower() for name in ("computer_name", "qualified_computer_name")} - {""}
        if not names:
            raise ValueError(f"no name of {queue_manager!r} was read")
        return [each for each in self.read_all(Queue) if computer_of(each.pathname).lower() in names]

    def read_directory_begin(
        self, element: type[Element], filters: Iterable[Filter] | None = None, attributes: Iterable[str] | None = None
    ) -> int:
        """Read Directory Begin: a handle for the objects that meet all filters ([MS-MQDMPR] 3.1.7.1.21).

        An empty result is not an error.

        Raises
        ------
        DirectoryNotConnected, DirectoryError, ValueError
            As :meth:`read_directory`.
        """
        objects = self.read_all(element, filters, attributes)
        handle = next(self._handles)
        self._reads[handle] = objects
        return handle

    def read_directory_next(self, handle: int) -> DirectoryObject | None:
        """Read Directory Next: one more object, None at the end of the data ([MS-MQDMPR] 3.1.7.1.22).

        Raises
        ------
        DirectoryNotConnected
            The directory stopped answering.
        DirectoryError
            There is no such handle, or the directory has an invalid object.
        """
        objects = self._reads.get(handle)
        if objects is None:
            raise DirectoryError(f"{handle!r} is not the handle of an open read")
        return next(objects, None)

    def read_directory_end(self, handle: int) -> None:
        """Read Directory End: close the handle ([MS-MQDMPR] 3.1.7.1.23).

        Raises
        ------
        DirectoryError
            There is no such handle.
        """
        if self._reads.pop(handle, None) is None:
            raise DirectoryError(f"{handle!r} is not the handle of an open read")


def usable(found: Iterator[Element]) -> Iterator[Element]:
    """The objects of a read: without missing site gates, and without objects that name another missing object."""
    while True:
        try:
            yield next(found)
        except StopIteration:
            return
        except InvalidObjectError as error:
            if not error.dangling:
                raise
            if error.rest is not None:
                yield error.rest  # type: ignore[misc]


def _query(
    element: type[DirectoryObject], filters: Iterable[Filter] | None, attributes: Iterable[str] | None
) -> tuple[tuple[Filter, ...], tuple[str, ...] | None]:
    """The validated query: the element has all attributes, and all values have the types of their attributes."""
    filters = tuple(filters or ())
    names = None if attributes is None else tuple(dict.fromkeys(attributes))
    known = element.attribute_names()
    unknown = [name for name in (*(each.attribute for each in filters), *(names or ())) if name not in known]
    if unknown:
        raise ValueError(f"{element.__name__} has no attribute {unknown[0]!r}")
    return tuple(_typed(element, each) for each in filters), names


def _typed(element: type[DirectoryObject], given: Filter) -> Filter:
    """The filter with a value of the attribute's type; identifiers and enumeration members may be given as text."""
    wanted, value = element.attribute_type(given.attribute), given.value
    if isinstance(value, str) and wanted is UUID:
        value = guid_of(value)
    elif isinstance(value, str) and issubclass(wanted, enum.Enum):
        value = next((member for member in wanted if member.value == value), None)
    if not isinstance(value, wanted):
        raise ValueError(f"{given.attribute} is compared with {given.value!r}, which is not of type {wanted.__name__}")
    return type(given)(given.attribute, value)


def site_gates(
    links: Iterable[RoutingLink], queue_managers: Mapping[UUID, QueueManager]
) -> dict[UUID, tuple[QueueManager, ...]]:
    """SiteGateCollection of every site that has gates, by the identifier of the site ([MS-MQDMPR] 3.1.1.7).

    The gates of a site are the gates of its links that belong to the site, each once, in the order of the links.
    (Decision: no directory stores them in one place, and the specification does not say how to find them.)
    """
    gates: dict[UUID, dict[UUID, QueueManager]] = {}
    for link in links:
        for identifier in link.site_gate_identifier_list:
            gate = queue_managers.get(identifier)
            for site in (link.site1_identifier, link.site2_identifier):
                if gate is not None and site in gate.site_identifier_list:
                    gates.setdefault(site, {})[identifier] = gate
    return {site: tuple(found.values()) for site, found in gates.items()}
