"""What a table is made of: the types of columns, and the one description from which all its schemas come.

A protocol's ``schema.py`` holds one ``Table``. The numpy views, the Arrow export, the Spark schema and the manual's
tables are read off it; nothing else lists columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import IntFlag
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msmqwire.wire.codes import FAULT_NAMES

if TYPE_CHECKING:
    import pyarrow as pa

GuidForm = Literal["uuid", "text", "binary"]


@dataclass(frozen=True)
class Scalar:
    """A type with one value a row: its name here, its numpy dtype and its Arrow format.

    ``width`` is the bytes one value takes in the column's buffer. ``arrow`` is empty where the Arrow form is made by
    conversion (GUIDs, text, addresses) and not by handing out the buffer.
    """

    name: str
    dtype: str
    width: int
    arrow: str = ""


UINT8 = Scalar("uint8", "u1", 1, "C")
UINT16 = Scalar("uint16", "<u2", 2, "S")
UINT32 = Scalar("uint32", "<u4", 4, "I")
UINT64 = Scalar("uint64", "<u8", 8, "L")
INT64 = Scalar("int64", "<i8", 8, "l")
TIMESTAMP = Scalar("timestamp[ns, UTC]", "<M8[ns]", 8, "tsn:UTC")
BOOL = Scalar("bool", "?", 1)
GUID = Scalar("uuid", "u1", 16)
# Code units of the row's own payload: byte offset from the payload's start, and length in bytes.
TEXT = Scalar("string", "span", 8)
# As TEXT, for ASCII values in payloads of UTF-8 text
ASCII = Scalar("string", "ascii span", 8)
# Text that is made when the column is read: ends of UTF-8 texts in the buffer at <path>.text
UTF8 = Scalar("string", "utf8", 4)
# Bytes of the row's own payload, likewise
BYTES = Scalar("binary", "span", 8)
# 16 bytes, the unused ones zero, and the family (4 IPv4, 6 IPv6, 10 IPX) as a u16
ADDRESS = Scalar("address", "address", 18)
# A queue as a packet addresses it; the layout is that of wire/_format_name.pxd
FORMAT_NAME = Scalar("format_name", "format_name", 32)


@dataclass(frozen=True)
class Enumeration:
    """A byte that stands for one of a few names; ``names[value]`` is what a table shows.

    ``names`` is empty where a batch brings its own (``file`` of a capture).
    """

    names: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The type as the manual names it."""
        return "string"


@dataclass(frozen=True)
class ListOf:
    """A list a row: offsets, and the items of all rows one after the other.

    ``smallest`` is how many bytes of a payload an item takes at least, which bounds the items that payloads can hold;
    0 where items are written only after they have been counted.
    """

    item: DataType
    smallest: int = 0

    @property
    def name(self) -> str:
        """The type as the manual names it."""
        return f"list<{self.item.name}>"


@dataclass(frozen=True)
class StructOf:
    """A group of named values.

    ``presence`` has, where members can be null, a bit for each of them: it must be set in the item's presence byte
    for a value to stand there. 0 means in every item; empty, that no member is ever null.
    """

    members: tuple[tuple[str, DataType], ...]
    presence: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """The type as the manual names it."""
        inside = ", ".join(f"{name}: {type_.name}" for name, type_ in self.members)
        return f"struct<{inside}>"


DataType = Scalar | Enumeration | ListOf | StructOf

FAULT_CODE = Enumeration(FAULT_NAMES)
FAULT = StructOf((("code", FAULT_CODE), ("field", Enumeration()), ("offset", UINT32)))


@dataclass(frozen=True)
class Column:
    """One column of a table.

    ``presence`` is the bit of the row's presence that must be set for a value to stand there; 0 means in every row
    that is not null. A ``derived`` column is made from the payloads when it is first read, and its presence with it.
    ``values`` chooses the Parquet encoding: a dictionary for ``repeated`` values, differences between rows for
    ``counted`` numbers, which increase from row to row, and plain for ``distinct`` values.
    """

    name: str
    type: DataType
    about: str
    presence: int = 0
    derived: bool = False
    values: Literal["repeated", "counted", "distinct"] = "repeated"


def present(presence: int, *columns: Column) -> tuple[Column, ...]:
    """Columns of one part of a packet: ``presence`` is the bit of those that have no bit of their own."""
    return tuple([column if column.presence else replace(column, presence=presence) for column in columns])


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """The columns of one table, in order, and the names its faults and violations use.

    Attributes
    ----------
    name : str
        As ``--table`` and Spark's ``table`` option say it.
    section : str
        Where the specification describes what a row is.
    columns : tuple of Column
        Without ``fault`` and ``violations``, which a decoded table has at its end.
    fields : tuple of str
        Field names of faults, by the number that kernels use; empty for a table without faults (capture columns).
    violations : type of IntFlag, or None
        The bits of the ``violations`` column; None for a table without violations (capture columns, format names).
    rules : tuple of (str, str)
        Each violation and the rule that it breaks, with its section.
    headers : tuple of Header
        The fields of packets that the columns are made of; empty for a table of something else.
    presence_bits : dict of str to int
        The bits of the presence of a row, by their names in kernels.
    """

    name: str
    section: str
    columns: tuple[Column, ...]
    fields: tuple[str, ...] = ()
    violations: type[IntFlag] | None = None
    rules: tuple[tuple[str, str], ...] = ()
    headers: tuple[Any, ...] = ()
    presence_bits: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self.names)} columns, {self.section}>"

    @cached_property
    def all_columns(self) -> tuple[Column, ...]:
        """The table as users see it: its columns, then ``fault`` and ``violations`` where there can be any."""
        columns = list(self.columns)
        if self.fields:
            columns.append(Column("fault", FAULT, "why the payload cannot be decoded; null when it was"))
        if self.violations is not None:
            names = Enumeration(self.violation_names)
            columns.append(Column("violations", ListOf(names), "rules of the specification that the packet breaks"))
        return tuple(columns)

    @cached_property
    def presence_width(self) -> int:
        """Bytes of a row's presence: 1, or 4 where the columns need more than eight bits."""
        return 1 if all(column.presence < 1 << 8 for column in self.columns) else 4

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
        return tuple(column.name for column in self.all_columns)

    @cached_property
    def violation_names(self) -> tuple[str, ...]:
        """Names of the violations, by bit."""
        return () if self.violations is None else tuple(flag.name.lower() for flag in self.violations if flag.name)

    @cached_property
    def arrow_schemas(self) -> dict[tuple[Any, ...], pa.Schema]:
        """The schemas of record batches that were made, by what they depend on; filled by the Arrow export."""
        return {}

    def select(self, names: Iterable[str] | None) -> tuple[Column, ...]:
        """The columns called ``names``, in the table's order; all of them for None.

        Raises
        ------
        ValueError
            A name is not a column of this table.
        """
        return _select(self, None if names is None else (names,) if isinstance(names, str) else tuple(names))

    def arrow_schema(
        self, names: Iterable[str] | None = None, *, guid: GuidForm = "binary", dictionaries: bool = True
    ) -> pa.Schema:
        """The Arrow schema of the table, or of the columns called ``names``; needs pyarrow."""
        import pyarrow as pa

        return pa.schema([(column.name, arrow_type(column.type, guid, dictionaries)) for column in self.select(names)])


@lru_cache(maxsize=256)  # several times for every small capture
def _select(table: Table, wanted: tuple[str, ...] | None) -> tuple[Column, ...]:
    if wanted is None:
        return table.all_columns
    known, chosen = frozenset(table.names), frozenset(wanted)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(
            f"{', '.join(map(repr, unknown))}: no such column of {table.name}; it has {', '.join(table.names)}"
        )
    return tuple(column for column in table.all_columns if column.name in chosen)


@cache
def arrow_type(type_: DataType, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
    """The Arrow type of a column's type, with GUIDs in the requested form, and with dictionaries or without.

    Needs pyarrow. Lists have no dictionaries, and their GUIDs are of the type ``binary`` instead of
    ``fixed_size_binary(16)``, which pandas does not take there.
    """
    import pyarrow as pa

    if isinstance(type_, ListOf):
        item = pa.binary() if type_.item == GUID and guid == "binary" else arrow_type(type_.item, guid, False)
        return pa.list_(item)
    if isinstance(type_, StructOf):
        return pa.struct([(name, arrow_type(member, guid, dictionaries)) for name, member in type_.members])
    if dictionaries and (index := index_type(type_)):
        return pa.dictionary(getattr(pa, index)(), pa.string())
    if isinstance(type_, Enumeration) or type_ in (TEXT, ASCII, UTF8, ADDRESS, FORMAT_NAME):
        return pa.string()
    if type_ == BYTES:
        return pa.binary()
    if type_ == GUID:
        return {"uuid": pa.uuid(), "text": pa.string(), "binary": pa.binary(16)}[guid]
    if type_ == TIMESTAMP:
        return pa.timestamp("ns", "UTC")
    made: pa.DataType = getattr(pa, {"bool": "bool_"}.get(type_.name, type_.name))()
    return made


@cache
def index_type(type_: DataType) -> str:
    """The type of the indices of a column that Arrow has as a dictionary; empty for other columns."""
    if isinstance(type_, Enumeration):
        # A batch that brings its own names may be put together with others
        return "int8" if 0 < len(type_.names) < 128 else "int16" if type_.names else "int32"
    return "int32" if type_ in (ADDRESS, FORMAT_NAME) else ""
