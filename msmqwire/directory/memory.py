"""A directory in memory, loaded from TOML or JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msmqwire.directory.base import Directory, Equal, Filter, comparable, matches
from msmqwire.directory.document import read_document
from msmqwire.directory.elements import DirectoryObject, Element
from msmqwire.errors import DirectoryError


class MemoryDirectory(Directory):
    """A directory of the given objects, in their order.

    A read with an EQUALS filter uses an index, built on the first such read of an attribute. Reads from several threads
    are safe.

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
        for candidate in self._candidates(element, filters):
            if matches(candidate, filters):
                yield candidate if attributes is None else candidate.only(attributes)

    def _candidates(self, element: type[DirectoryObject], filters: tuple[Filter, ...]) -> Sequence[Any]:
        """The smallest known set of objects that contains all those that meet the filters."""
        found = [
            self._index(element, each.attribute).get(comparable(each.value), ())
            for each in filters
            if isinstance(each, Equal)
        ]
        return min(found, key=len) if found else self._objects.get(element, ())

    def _index(self, element: type[DirectoryObject], attribute: str) -> dict[Any, list[Any]]:
        """The objects by the value of an attribute; of a list, by each of its members."""
        index = self._indexes.get((element, attribute))
        if index is None:
            index = {}
            is_list = element.is_list(attribute)
            for each in self._objects.get(element, ()):
                value = getattr(each, attribute)
                for key in dict.fromkeys(map(comparable, value if is_list else (value,))):
                    index.setdefault(key, []).append(each)
            self._indexes[element, attribute] = index
        return index
