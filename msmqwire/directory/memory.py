"""A directory in memory, loaded from TOML or JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from msmqwire.directory.base import Directory, Equal, Filter, InvalidObjectError, Problem, comparable, matches
from msmqwire.directory.document import read_document
from msmqwire.directory.elements import NAME_ATTRIBUTES, TABLES, DirectoryObject, Element
from msmqwire.errors import DirectoryError

#: Stands in an index for a value that was not read, which may be any.
_UNREAD: Any = object()


class MemoryDirectory(Directory):
    """A directory of the given objects, in their order.

    A read with an EQUALS filter uses an index, built on the first such read of an attribute. Reads from several threads
    are safe. An object that was itself read without some attributes is not valid for a read that needs one of them.

    >>> from uuid import UUID
    >>> from msmqwire.directory import Equal, Site
    >>> zurich = Site(identifier=UUID("9c7a1f2e-0000-4000-8000-000000000001"), name="Zürich")
    >>> directory = MemoryDirectory([zurich])
    >>> directory.read_directory(Site, [Equal("name", "zürich")]) == zurich
    True
    """

    def __init__(self, objects: Iterable[DirectoryObject]) -> None:
        super().__init__()
        self._objects: dict[type[DirectoryObject], list[Any]] = {}
        for each in objects:
            if not isinstance(each, DirectoryObject):
                raise TypeError(f"a {type(each).__name__} is not an object of a directory")
            self._objects.setdefault(type(each), []).append(each)
        self._indexes: dict[tuple[type[DirectoryObject], str], dict[Any, list[Any]]] = {}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> MemoryDirectory:
        """Load a directory from a file: JSON if its name ends in ``.json``, TOML otherwise.

        Raises
        ------
        OSError
            The file cannot be read.
        DirectoryError
            The file or an object in it is not valid; the message names file, entry and attribute.
        """
        document = read_document(path)
        if document.problems:
            more = len(document.problems) - 1
            raise DirectoryError(f"{path}: {document.problems[0]}" + (f" (and {more} more)" if more else ""))
        return cls(document.objects)

    def _search(
        self, element: type[Element], filters: tuple[Filter, ...], attributes: tuple[str, ...] | None
    ) -> Iterator[Element]:
        # An exception ends neither filter nor map, so Read Directory Next continues after an invalid object
        found = filter(partial(_meets, filters=filters), self._candidates(element, filters))
        return found if attributes is None else map(partial(_only, attributes=attributes), found)

    def _candidates(self, element: type[DirectoryObject], filters: tuple[Filter, ...]) -> Sequence[Any]:
        """The smallest known set of objects that contains all those that meet the filters."""
        indexes = [(self._index(element, each.attribute), each.value) for each in filters if isinstance(each, Equal)]
        found = [index.get(comparable(value), ()) for index, value in indexes if _UNREAD not in index]
        return min(found, key=len) if found else self._objects.get(element, ())

    def _index(self, element: type[DirectoryObject], attribute: str) -> dict[Any, list[Any]]:
        """The objects by the value of an attribute; of a list, by each of its members."""
        index = self._indexes.get((element, attribute))
        if index is None:
            index = {}
            is_list = element.is_list(attribute)
            for each in self._objects.get(element, ()):
                value = getattr(each, attribute, _UNREAD)
                for key in dict.fromkeys(map(comparable, value if is_list and value is not _UNREAD else (value,))):
                    index.setdefault(key, []).append(each)
            self._indexes[element, attribute] = index
        return index


def _meets(element: DirectoryObject, filters: tuple[Filter, ...]) -> bool:
    try:
        return matches(element, filters)
    except AttributeError as error:
        raise _unread(element, error) from None


def _only(element: Element, attributes: tuple[str, ...]) -> Element:
    try:
        return element.only(attributes)
    except AttributeError as error:
        raise _unread(element, error) from None


def _unread(element: DirectoryObject, error: AttributeError) -> InvalidObjectError:
    known = element.attributes()
    name = known.get(NAME_ATTRIBUTES.get(type(element), ""), known.get("identifier", ""))
    return InvalidObjectError(Problem(f"{TABLES[type(element)]} {name}", error.name or "", "was not read"))
