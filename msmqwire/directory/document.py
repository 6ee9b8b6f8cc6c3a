"""Reads an enterprise from TOML or JSON: tables of objects with their attributes by name."""

from __future__ import annotations

import base64
import enum
import errno
import functools
import json
import os
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from msmqwire.directory.base import Problem, comparable
from msmqwire.directory.elements import (
    ELEMENTS,
    NAME_ATTRIBUTES,
    REFERENCES,
    TABLES,
    DirectoryObject,
    DirectoryServerType,
    OperatingSystemType,
)
from msmqwire.errors import DirectoryError
from msmqwire.properties.enumerations import PrivacyLevel, Scope
from msmqwire.wire.guids import guid_of

#: Marks a value that could not be read.
_NOTHING: Any = object()
#: Most bytes of a file: a million queues of 256 bytes. A device such as /dev/zero has no end.
_MOST_BYTES = 1 << 28
_CHUNK = 1 << 20
#: Most parts of a dotted key of TOML: reading one takes the square of their number, and no table here is so deep.
_MOST_PARTS = 32
_PART = r"""(?:"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|[\w-]++)"""
_NEXT_PART = rf"(?:[ \t]*+\.[ \t]*+{_PART})"
_LONG_TEXT = r'''"""(?:[^"\\]|\\.|"(?!""))*+"*+|''' + r"""'''(?:[^']|'(?!''))*+'*+"""
#: What may have dots in TOML: texts and comments, which are skipped, and keys.
_DOTTED = re.compile(
    rf"{_LONG_TEXT}|#[^\n]*+|(?P<deep>{_PART}{_NEXT_PART}{{{_MOST_PARTS},}})|{_PART}{_NEXT_PART}*+",
    re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Document:
    """The valid objects of a file, and its errors."""

    objects: tuple[DirectoryObject, ...]
    problems: tuple[Problem, ...]


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a file: JSON if its name ends so, TOML otherwise.

    Raises
    ------
    OSError
        It cannot be read.
    DirectoryError
        It is not valid TOML or JSON, or is too large.
    """
    file = Path(path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, "Is a directory; name a file of TOML or JSON", str(file))
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
        is_json = file.suffix.lower() == ".json"
        tables = json.loads(text, object_pairs_hook=_once_each) if is_json else read_toml(text)
    except UnicodeDecodeError:
        raise DirectoryError(f"{file}: is not UTF-8 text; expected TOML or JSON") from None
    except (ValueError, RecursionError) as error:
        raise DirectoryError(f"{file}: {error}") from None
    if not isinstance(tables, dict):
        raise DirectoryError(f"{file}: is not an object of tables such as {', '.join(ELEMENTS)}")
    return _Reader(tables).read()


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file that is read at once, which may be a pipe.

    Raises
    ------
    OSError
        It cannot be read.
    DirectoryError
        It is too large.
    """
    data = bytearray()
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            data += chunk
            if len(data) > _MOST_BYTES:
                raise DirectoryError(
                    f"{os.fspath(path)}: has more than {_MOST_BYTES:,} bytes, the limit of such a file"
                )
    return bytes(data)


def read_toml(text: str) -> dict[str, Any]:
    """The tables of a file of TOML.

    Raises
    ------
    ValueError
        It is not valid, or a dotted key has more than 32 parts.
    RecursionError
        It is nested too deeply.
    """
    for found in _DOTTED.finditer(text):
        if found["deep"]:
            line = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"a key has more than {_MOST_PARTS} parts (at line {line})")
    return tomllib.loads(text)


def _once_each(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object; ValueError if two have one name: ``json`` would drop the first."""
    found = dict(members)
    if len(found) < len(members):
        twice = next(name for name, count in Counter(name for name, _ in members).items() if count > 1)
        raise ValueError(f"{twice!r} is there more than once in one object")
    return found


class _Reader:
    """Turns tables into objects and collects all problems."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self.problems: list[Problem] = []
        self.entries: list[tuple[type[DirectoryObject], str, dict[str, Any]]] = list(self._entries(tables))
        self.named = self._names()

    def read(self) -> Document:
        objects = [self._object(*entry) for entry in self.entries]
        return Document(tuple(each for each in objects if each is not None), tuple(self.problems))

    def _entries(self, tables: dict[str, Any]) -> Iterator[tuple[type[DirectoryObject], str, dict[str, Any]]]:
        """Every entry with its class and its name in messages."""
        for table, content in tables.items():
            if table not in ELEMENTS:
                self._report(table, "", f"is not a table of a directory; those are {', '.join(ELEMENTS)}")
                continue
            entries = content if isinstance(content, list) else [content]
            for number, entry in enumerate(entries, 1):
                name = f"{table} {number}"
                if not isinstance(entry, dict):
                    self._report(name, "", "has no attributes")
                    continue
                title = entry.get(NAME_ATTRIBUTES.get(ELEMENTS[table], ""))
                yield ELEMENTS[table], f"{name} ({title})" if isinstance(title, str) else name, entry

    def _names(self) -> dict[type[DirectoryObject], dict[str, set[UUID]]]:
        """The identifiers of objects by their names in lower case."""
        named: dict[type[DirectoryObject], dict[str, set[UUID]]] = {
            each: defaultdict(set) for each in ELEMENTS.values()
        }
        for element, _, entry in self.entries:
            name, identifier = entry.get(NAME_ATTRIBUTES.get(element, "")), entry.get("identifier")
            guid = guid_of(identifier) if isinstance(identifier, str) else None
            if isinstance(name, str) and guid is not None:
                named[element][comparable(name)].add(guid)
        return named

    def _object(self, element: type[DirectoryObject], title: str, entry: dict[str, Any]) -> DirectoryObject | None:
        """The object, None if a required attribute is missing or invalid."""
        values: dict[str, Any] = {}
        fields = element.__dataclass_fields__
        for name, given in entry.items():
            if name not in fields:
                self._report(title, name, f"is not an attribute; those are {', '.join(fields)}")
                continue
            value = self._value(element, title, name, given)
            if value is not _NOTHING:
                values[name] = value
        needed = [name for name, field in fields.items() if field.default is MISSING and name not in values]
        for name in needed:
            if name not in entry:
                self._report(title, name, "is missing")
        return None if needed else element(**values)

    def _value(self, element: type[DirectoryObject], title: str, name: str, given: Any) -> Any:
        if name in REFERENCES:
            convert: Callable[[Any], Any] = functools.partial(self._reference, REFERENCES[name])
        else:
            convert = _CONVERSIONS[element.attribute_type(name)]
        try:
            if not element.is_list(name):
                return convert(given)
            items = LIST(given)
        except ValueError as error:
            self._report(title, name, str(error))
            return _NOTHING
        members = []
        for member in items:
            try:
                members.append(convert(member))
            except ValueError as error:
                self._report(title, name, str(error))
        return tuple(members)

    def _reference(self, target: type[DirectoryObject], given: Any) -> UUID:
        """The identifier of another object, given as such or by name."""
        if isinstance(given, str) and (guid := guid_of(given)) is not None:
            return guid
        found = self.named[target].get(comparable(given), ()) if isinstance(given, str) else ()
        if len(found) != 1:
            how_many = "no" if not found else "more than one"
            raise ValueError(f"{given!r} is not an identifier, and is the name of {how_many} {TABLES[target]}")
        (guid,) = found
        return guid

    def _report(self, title: str, attribute: str, what: str) -> None:
        self.problems.append(Problem(title, attribute, what))


def _identifier(given: Any) -> UUID:
    guid = guid_of(given) if isinstance(given, str) else None
    if guid is None:
        raise ValueError(f"{given!r} is not an identifier such as 0f8fad5b-d9cb-469f-a165-70867728950e")
    return guid


def _bytes(given: Any) -> bytes:
    try:
        return base64.b64decode(given, validate=True)
    except (TypeError, ValueError):
        raise ValueError(f"{given!r} is not base64 text") from None


def of_type(description: str, *wanted: type) -> Callable[[Any], Any]:
    """A function that returns a value of one of these types, and raises ValueError for any other."""

    def convert(given: Any) -> Any:
        # Not isinstance, which takes true and false for integers.
        if type(given) not in wanted:
            raise ValueError(f"{given!r} is not {description}")
        return given

    return convert


TEXT, INTEGER, FLAG = of_type("text", str), of_type("an integer", int), of_type("true or false", bool)
LIST = of_type("a list", list)


def _member(enumeration: type[enum.StrEnum]) -> Callable[[Any], Any]:
    def convert(given: Any) -> Any:
        if given not in list(enumeration):
            raise ValueError(f"{given!r} is not one of {', '.join(enumeration)}")
        return enumeration(given)

    return convert


_CONVERSIONS: dict[type, Callable[[Any], Any]] = {
    UUID: _identifier,
    bytes: _bytes,
    str: TEXT,
    int: INTEGER,
    bool: FLAG,
    **{each: _member(each) for each in (OperatingSystemType, DirectoryServerType, PrivacyLevel, Scope)},
}
