"""Queries as files: a header of comments, then one SELECT over the tables of ``tables``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from msmqwire.errors import MsmqWireError

if TYPE_CHECKING:
    import pyarrow as pa

_FOLDER = Path(__file__).with_name("queries")
_HEADER = re.compile(r"--[ \t]*([a-z_]+):[ \t]*(.*)")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"[a-z0-9_]+(-[a-z0-9_]+)*")
#: The most rows of a section.
LIMIT = 100_000
_LARGEST_FILE = 1 << 20


class QueryFileError(MsmqWireError):
    """A query cannot be used; the message is one line with its file, and the line and column where they are known."""


@dataclass(frozen=True)
class Query:
    """A query and its header.

    Attributes
    ----------
    name : str
        The name of its file.
    path, text : str
    header : mapping of str to str
    lines : mapping of str to int
        The line of each entry of the header.
    """

    name: str
    path: str
    text: str
    header: Mapping[str, str]
    lines: Mapping[str, int]

    @property
    def title(self) -> str:
        """What a row of the result is, or what a rule finds."""
        return self.header["title"]

    @property
    def packaged(self) -> bool:
        """Whether it is a query of the package."""
        return Path(self.path).parent.parent == _FOLDER

    def error(self, message: str, line: int = 1, column: int = 1) -> QueryFileError:
        """Return an error at a place of the file."""
        return QueryFileError(f"{self.path}:{line}:{column}: {message}")

    def refuse(self, entry: str, message: str) -> QueryFileError:
        """Return an error about an entry of the header."""
        return self.error(f"{entry}: {message}", self.lines.get(entry, 1))


@dataclass(frozen=True)
class Section(Query):
    """A table of a summary.

    Attributes
    ----------
    limit : int
        The most rows.
    """

    limit: int = LIMIT

    @property
    def about(self) -> str:
        """What a row is."""
        return self.title

    @property
    def count(self) -> str | None:
        """The column with the number of packets of a row."""
        return self.header.get("count")

    def line(self, result: pa.Table) -> str | None:
        """Return the line of the header ``line``, with the sums of the columns that it names; None without rows.

        Raises
        ------
        QueryFileError
            The result has no such column.
        """
        if not result.num_rows or "line" not in self.header:
            return None

        def total(named: re.Match[str]) -> str:
            if named[1] not in result.schema.names:
                raise self.refuse("line", f"the result has no column {named[1]}")
            return f"{sum(filter(None, result[named[1]].to_pylist())):,}"

        return _PLACEHOLDER.sub(total, self.header["line"])


def read_queries(folder: str | Path, entries: Iterable[str], needed: Iterable[str]) -> list[Query]:
    """Read the queries of a folder, in the order of their names.

    Parameters
    ----------
    folder : str or path
    entries, needed : iterable of str
        The entries that a header may have, and those that it must have.

    Raises
    ------
    QueryFileError
        A file has a mistake, or the folder no queries.
    OSError
    """
    known, required = tuple(entries), tuple(needed)
    paths = sorted(path for path in Path(folder).iterdir() if path.suffix == ".sql")
    if not paths:
        raise QueryFileError(f"{folder}: has no file NAME.sql")
    return [_read(path, known, required) for path in paths]


def _read(path: Path, entries: tuple[str, ...], needed: tuple[str, ...]) -> Query:
    if not _NAME.fullmatch(path.stem):
        raise QueryFileError(f"{path}:1:1: a name has lower-case letters, digits, _ and -")
    if path.stat().st_size > _LARGEST_FILE:
        raise QueryFileError(f"{path}:1:1: is larger than {_LARGEST_FILE:,} bytes")
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise QueryFileError(f"{path}:1:1: is not UTF-8 text") from None
    header: dict[str, str] = {}
    lines: dict[str, int] = {}
    query = Query(path.stem, str(path), text, MappingProxyType(header), MappingProxyType(lines))
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("--"):
            if line.strip():
                break
            continue
        entry = _HEADER.fullmatch(line.rstrip())
        if entry is None:
            continue
        name, value = entry.groups()
        if name not in entries:
            raise query.error(f"no entry is called {name}; there is {', '.join(entries)}", number)
        # An entry may continue on further lines of its name
        header[name] = f"{header[name]} {value}" if name in header else value
        lines.setdefault(name, number)
    for name in needed:
        if not header.get(name):
            raise query.error(f"the header has no entry {name}")
    return query


_SECTION = ("title", "about", "position", "count", "limit", "line")


def read_sections(folder: str | Path) -> dict[str, Section]:
    """Read sections, in the order of their positions; errors as in ``read_queries``."""
    found = []
    for query in read_queries(folder, _SECTION, ("title",)):
        numbers = {}
        for entry, default in (("limit", LIMIT), ("position", LIMIT)):
            text = query.header.get(entry, str(default))
            if not text.isdecimal() or not 0 < int(text) < 1 << 31:
                raise query.refuse(entry, f"{text} is no positive number")
            numbers[entry] = int(text)
        found.append((numbers["position"], Section(**vars(query), limit=numbers["limit"])))
    return {section.name: section for _, section in sorted(found, key=lambda each: (each[0], each[1].name))}


@lru_cache(maxsize=1)
def sections() -> Mapping[str, Section]:
    """Return the sections of a summary."""
    return MappingProxyType(read_sections(_FOLDER / "sections"))


RULES_FOLDER = _FOLDER / "rules"
#: The tables of a summary, by their names.
SECTIONS: Mapping[str, Section] = sections()
#: The files of tables that are queries over others, by their names.
VIEW_FILES: Mapping[str, Query] = MappingProxyType(
    {query.name: query for query in read_queries(_FOLDER / "views", ("title", "about"), ("title", "about"))}
)
#: The files of columns that are expressions, GROUP-COLUMN.sql: of every table, of those of streams, or of one table.
COLUMN_FILES: tuple[Query, ...] = tuple(read_queries(_FOLDER / "columns", ("title",), ("title",)))
