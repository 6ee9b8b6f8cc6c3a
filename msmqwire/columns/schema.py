"""What a table is made of: the types of columns, and the one description from which all its schemas come.

A protocol's ``schema.py`` holds one ``Table``. The numpy views, the Arrow export, the Spark schema and the manual's
tables are read off it; nothing else lists columns.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from enum import IntFlag
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np

from msmqwire.columns.views import (
    ADDRESS_DTYPE,
    FORMAT_NAME_DTYPE,
    SPAN_DTYPE,
    AsciiColumn,
    BytesColumn,
    ListColumn,
    TextColumn,
    Utf8Column,
)
from msmqwire.wire.codes import FAULT_NAMES
from msmqwire.wire.guids import guid_of

if TYPE_CHECKING:
    from uuid import UUID

    import pyarrow as pa

GuidForm = Literal["uuid", "text", "binary"]
GuidOrder = Literal["text", "packet"]
#: What the values of a column are like, by which Parquet files encode them; see ``Column``.
Values = Literal["repeated", "counted", "distinct"]


class DataType:
    """The type of a column: what its values are in numpy, Arrow, Spark, Python, JSON and Parquet.

    Attributes
    ----------
    name : str
        As the manual names it.
    dtype : numpy.dtype
        Of the buffer that a kernel writes, with one value a row.
    view : type, optional
        The class of ``batch[name]``, where that is not an array of ``dtype``.
    python : str
        The annotation of an attribute of packets.
    values : {"repeated", "counted", "distinct"}
        As for ``Column``, where a column does not say it.
    index : str
        The Arrow type of indices, where an Arrow array is a dictionary of texts; empty for other types.
    in_payload : bool
        Whether values are bytes of the payload of their row.
    """

    name: str
    dtype: np.dtype[Any]
    view: type[Any] | None = None
    python: str = "int"
    values: Values = "repeated"
    index: str = ""
    in_payload: bool = False

    @property
    def width(self) -> int:
        """Bytes of one row in the buffer of the column."""
        return self.dtype.itemsize

    def arrow(self, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
        """The type in Arrow, with GUIDs in the requested form, and with dictionaries or without; needs pyarrow."""
        import pyarrow as pa

        indices: Any = _named(self.index or "string")
        return pa.dictionary(indices, pa.string()) if dictionaries and self.index else pa.string()

    def spark(self, guid: GuidForm = "text") -> pa.DataType:
        """The Arrow type in Spark, which has no unsigned integers, nanoseconds or UUIDs."""
        return self.arrow(guid, dictionaries=False)

    def from_json(self, value: Any) -> Any:
        """The value that a packet takes, from the value in a row of JSON."""
        return value


def _named(name: str) -> pa.DataType:
    import pyarrow as pa

    made: dict[str, pa.DataType] = {
        "decimal": pa.decimal128(20, 0),
        "timestamp[ns, UTC]": pa.timestamp("ns", "UTC"),
        "timestamp[us, UTC]": pa.timestamp("us", "UTC"),
    }
    find: Any = pa.type_for_alias  # whose stub knows constants only
    return made[name] if name in made else find(name)


@dataclass(frozen=True)
class Scalar(DataType):
    """A type with one value a row.

    ``in_arrow`` and ``in_spark`` name the types there where they are others. ``format`` is that of the Arrow C data
    interface where the buffer of the column is handed out; empty where it is converted. ``parse`` reads JSON.
    """

    name: str
    dtype: np.dtype[Any]
    format: str = ""
    in_arrow: str = ""
    in_spark: str = ""
    view: type[Any] | None = None
    python: str = "int"
    values: Values = "repeated"
    index: str = ""
    in_payload: bool = False
    parse: Callable[[Any], Any] | None = None

    def arrow(self, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
        """Return the type in Arrow; needs pyarrow."""
        return super().arrow(guid, dictionaries) if self.index else _named(self.in_arrow or self.name)

    def spark(self, guid: GuidForm = "text") -> pa.DataType:
        """Return the Arrow type in Spark."""
        return _named(self.in_spark or self.in_arrow or self.name)

    def from_json(self, value: Any) -> Any:
        """Return the value that a packet takes, from a value in JSON."""
        return value if self.parse is None else self.parse(value)


class Guid(Scalar):
    """A GUID: 16 bytes in the order of packets."""

    def arrow(self, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
        """The type of the requested form."""
        import pyarrow as pa

        return {"uuid": pa.uuid(), "text": pa.string(), "binary": pa.binary(16)}[guid]

    def spark(self, guid: GuidForm = "text") -> pa.DataType:
        """Text, or 16 bytes."""
        return _named("string" if guid == "text" else "binary")


def _guid(text: str) -> UUID:
    found = guid_of(text)
    if found is None:
        raise ValueError(f"{text!r} is not a GUID")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, not {value!r}")
    return value


@dataclass(frozen=True)
class Enumeration(DataType):
    """A number that stands for one of a few names.

    ``numbers`` are those of ``names``: the protocol's own where it has any, else from 0. ``null``, of which all bits
    are set, stands in rows without a value and is the number of no name. ``names`` is empty where a batch brings its
    own (``file`` of a capture).
    """

    names: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    null: int = field(init=False, compare=False)
    name = "string"

    def __post_init__(self) -> None:
        count = len(self.names)
        numbers = self.numbers or tuple(range(count))
        dtype: np.dtype[np.unsignedinteger] = np.dtype(np.uint8 if max(numbers, default=0) < 0xFF else np.uint16)
        vars(self).update(
            numbers=numbers,
            dtype=dtype,
            null=int(np.iinfo(dtype).max),
            # Batches that bring their own names may be put together
            index="int8" if 0 < count < 128 else "int16" if count else "int32",
            python=f"Literal[{', '.join(map(repr, self.names))}]" if count < 9 else "str",
        )

    @classmethod
    def of(cls, names: Mapping[int, str]) -> Self:
        """The enumeration of names by their numbers."""
        return cls(tuple(names.values()), tuple(names))

    @cached_property
    def by_number(self) -> dict[int, str]:
        """The names by their numbers."""
        return dict(zip(self.numbers, self.names, strict=True))

    @cached_property
    def by_name(self) -> dict[str, int]:
        """The numbers by their names."""
        return dict(zip(self.names, self.numbers, strict=True))

    def from_json(self, value: Any) -> str:
        """A name, which need not be one of ``names``."""
        if not isinstance(value, str):
            raise TypeError(f"expected a name, not {value!r}")
        return value


@dataclass(frozen=True)
class Flags(DataType):
    """A list of names, of at most 32, each of which stands for a bit."""

    names: tuple[str, ...]
    name = "list<string>"
    dtype = np.dtype(np.uint32)

    def arrow(self, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
        """The list of the names."""
        import pyarrow as pa

        return pa.list_(pa.string())

    def spark(self, guid: GuidForm = "text") -> pa.DataType:
        """The list of the names, whose items are called as Spark calls them."""
        import pyarrow as pa

        return pa.list_(pa.field("element", pa.string()))


@dataclass(frozen=True)
class ListOf(DataType):
    """A list a row: offsets, and the items of all rows one after the other.

    ``smallest`` is how many bytes of a payload an item takes at least, which bounds the items that payloads can hold;
    0 where items are written only after they have been counted.
    """

    item: DataType
    smallest: int = 0
    dtype = np.dtype(np.int32)
    view = ListColumn

    def __post_init__(self) -> None:
        item = self.item
        vars(self).update(name=f"list<{item.name}>", python=f"Sequence[{item.python}]", in_payload=item.in_payload)

    def arrow(self, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
        """A list without dictionaries.

        GUIDs in it are of the type ``binary`` instead of ``fixed_size_binary(16)``, which pandas does not take there.
        """
        import pyarrow as pa

        bare = self.item == GUID and guid == "binary"
        return pa.list_(pa.binary() if bare else self.item.arrow(guid, dictionaries=False))

    def spark(self, guid: GuidForm = "text") -> pa.DataType:
        """A list whose items are called as Spark calls them."""
        import pyarrow as pa

        return pa.list_(pa.field("element", self.item.spark(guid)))

    def from_json(self, value: Any) -> Any:
        """A list of the items."""
        if not isinstance(value, list):
            raise TypeError(f"expected a list, not {value!r}")
        return [self.item.from_json(each) for each in value]


@dataclass(frozen=True)
class StructOf(DataType):
    """A group of named values, each with a buffer of its own.

    ``presence`` has, where members can be null, a bit for each of them: it must be set in the item's presence byte
    for a value to stand there. 0 means in every item; empty, that no member is ever null.
    """

    members: tuple[tuple[str, DataType], ...]
    presence: tuple[int, ...] = ()
    dtype = np.dtype([])

    def __post_init__(self) -> None:
        inside = ", ".join(f"{name}: {type_.name}" for name, type_ in self.members)
        vars(self).update(name=f"struct<{inside}>", in_payload=any(member.in_payload for _, member in self.members))

    def arrow(self, guid: GuidForm = "binary", dictionaries: bool = True) -> pa.DataType:
        """A struct of the members."""
        import pyarrow as pa

        return pa.struct([(name, member.arrow(guid, dictionaries)) for name, member in self.members])

    def spark(self, guid: GuidForm = "text") -> pa.DataType:
        """A struct of the members."""
        import pyarrow as pa

        return pa.struct([(name, member.spark(guid)) for name, member in self.members])

    def from_json(self, value: Any) -> Any:
        """A dict of the members that are not null."""
        if not isinstance(value, Mapping):
            raise TypeError(f"expected an object, not {value!r}")
        if unknown := value.keys() - {name for name, _ in self.members}:
            raise ValueError(f"no member is called {', '.join(sorted(unknown))}")
        return {name: type_.from_json(value[name]) for name, type_ in self.members if value.get(name) is not None}


UINT8 = Scalar("uint8", np.dtype(np.uint8), "C", in_spark="int16")
UINT16 = Scalar("uint16", np.dtype(np.uint16), "S", in_spark="int32")
UINT32 = Scalar("uint32", np.dtype(np.uint32), "I", in_spark="int64")
UINT64 = Scalar("uint64", np.dtype(np.uint64), "L", in_spark="decimal")
INT64 = Scalar("int64", np.dtype(np.int64), "l")
# In Spark without nanoseconds, beside a column that has them
TIMESTAMP = Scalar(
    "timestamp[ns, UTC]",
    np.dtype("M8[ns]"),
    "tsn:UTC",
    in_spark="timestamp[us, UTC]",
    python="datetime",
    values="counted",
)
BOOL = Scalar("bool", np.dtype(np.bool_), python="bool")
GUID = Guid("uuid", np.dtype((np.uint8, 16)), python="UUID", parse=_guid)
# Code units of the row's own payload: byte offset from the payload's start, and length in bytes
TEXT = Scalar("string", SPAN_DTYPE, view=TextColumn, python="str", in_payload=True, parse=_text)
# As TEXT, for ASCII values in payloads of UTF-8 text
ASCII = Scalar("string", SPAN_DTYPE, view=AsciiColumn, python="str", in_payload=True, parse=_text)
# Text that is made when the column is read: ends of UTF-8 texts in the buffer at <path>.text
UTF8 = Scalar("string", np.dtype(np.int32), view=Utf8Column, python="str", parse=_text)
# Bytes of the row's own payload, likewise
BYTES = Scalar(
    "binary", SPAN_DTYPE, view=BytesColumn, python="bytes", values="distinct", in_payload=True, parse=bytes.fromhex
)
# 16 bytes, the unused ones zero, and the family (4 IPv4, 6 IPv6, 10 IPX) as a u16
ADDRESS = Scalar("address", ADDRESS_DTYPE, in_arrow="string", python="str", index="int32")
# A queue as a packet addresses it; the layout is that of wire/_format_name.pxd
FORMAT_NAME = Scalar(
    "format_name", FORMAT_NAME_DTYPE, in_arrow="string", python="FormatName | str", index="int32", in_payload=True
)

FAULT_CODE = Enumeration(FAULT_NAMES[1:], tuple(range(1, len(FAULT_NAMES))))
FAULT = StructOf(
    (("code", FAULT_CODE), ("field", Enumeration()), ("offset", UINT32), ("value", INT64), ("needed", INT64))
)


#: Defaults of columns: a class of packets requires the keyword, or has no such keyword.
REQUIRED: Any = ...
NO_KEYWORD: Any = object()


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    name : str
    type : DataType
    about : str
        Its meaning.
    presence : int
        The bit of the row's presence that must be set for a value to stand there; 0 means in every row that is not
        null.
    derived : bool
        Whether it is made from the payloads when it is first read, and its presence with it.
    values : {"repeated", "counted", "distinct"}, optional
        The Parquet encoding: a dictionary for ``repeated`` values, differences between rows for ``counted`` numbers,
        which increase from row to row, and plain for ``distinct`` values; if it is None, the type chooses.
    bit : str
        The name of ``presence`` in a packet, where it is not that of the header.
    store : str
        Where the record of a packet has the value, if not in the bytes of a header: an array and the enumerator of its
        place, as in ``parts.LABEL``.
    default : object
        That of the keyword that a class of packets has for the column.
    """

    name: str
    type: DataType
    about: str
    presence: int = 0
    derived: bool = False
    values: Values | None = None
    bit: str = ""
    store: str = ""
    default: Any = NO_KEYWORD

    @property
    def meaning(self) -> str:
        """``about``, and the values of an enumeration that has few."""
        names = self.type.by_number if isinstance(self.type, Enumeration) else {}
        if not 0 < len(names) <= 20:
            return self.about
        return f"{self.about}; one of {', '.join([f'`{name}` ({number})' for number, name in names.items()])}"


def present(presence: int, *columns: Column) -> tuple[Column, ...]:
    """Columns of one part of a packet: ``presence`` is the bit of those that have no bit of their own."""
    return tuple([column if column.presence else replace(column, presence=presence) for column in columns])


#: The former names of columns and their names now, by table. Requests for a column may use its former name for one
#: release: delete it after that.
FORMER_NAMES: dict[str, dict[str, str]] = {}


def current_names(table: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of columns, with a warning for each that is a former name."""
    former = FORMER_NAMES.get(table, {})
    found = tuple(names)
    for name in former.keys() & set(found):
        warnings.warn(
            f"column {name!r} of {table} is now called {former[name]!r}; the next release refuses the former name",
            FutureWarning,
            stacklevel=3,
        )
    return tuple([former.get(name, name) for name in found]) if former else found


class FaultRule(NamedTuple):
    """A condition under which fields have a fault; codes and fields are separated by commas, no field is any field."""

    codes: str
    fields: str
    condition: str


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
    faults : tuple of FaultRule
        When which field has which fault, in the order of the checks.
    headers : tuple of Header
        The fields of packets that the columns are made of; empty for a table of something else.
    presence_bits : dict of str to int
        The bits of the presence of a row, by their names in kernels.
    codec : dict of str to callable
        ``decode`` and ``decode_batch`` of the packets in rows, which the package of the protocol adds; empty where rows
        are not of packets. Where packets have PROPIDs, also ``property`` and ``property_size``, which read a value.
    """

    name: str
    section: str
    columns: tuple[Column, ...]
    fields: tuple[str, ...] = ()
    violations: type[IntFlag] | None = None
    rules: tuple[tuple[str, str], ...] = ()
    headers: tuple[Any, ...] = ()
    presence_bits: dict[str, int] = field(default_factory=dict)
    faults: tuple[FaultRule, ...] = ()
    codec: dict[str, Callable[..., Any]] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        return f"<Table {self.name}: {len(self.names)} columns, {self.section}>"

    @cached_property
    def all_columns(self) -> tuple[Column, ...]:
        """The table as users see it: its columns, then ``fault`` and ``violations`` where there can be any."""
        columns = list(self.columns)
        if self.fields:
            columns.append(Column("fault", FAULT, "why the payload cannot be decoded; null when it was"))
        if self.violations is not None:
            names = Flags(self.violation_names)
            columns.append(Column("violations", names, "rules of the specification that the packet breaks"))
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
    def places(self) -> dict[str, int]:
        """The place of each column among all columns."""
        return {name: place for place, name in enumerate(self.names)}

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
        if names is None:
            return _select(self, None)
        return _select(self, current_names(self.name, (names,) if isinstance(names, str) else names))

    def ordered(self, names: Iterable[str] | None) -> tuple[Column, ...]:
        """The columns called ``names``, in this order; for a set and for None, in the table's order.

        Raises
        ------
        ValueError
            A name is not a column of this table.
        """
        if names is None or isinstance(names, Set | str):
            return self.select(names)
        return _ordered(self, current_names(self.name, names))

    def arrow_schema(
        self, names: Iterable[str] | None = None, *, guid: GuidForm = "binary", dictionaries: bool = True
    ) -> pa.Schema:
        """The Arrow schema of the table, or of the columns called ``names``; needs pyarrow."""
        import pyarrow as pa

        return pa.schema([(column.name, column.type.arrow(guid, dictionaries)) for column in self.ordered(names)])


@lru_cache(maxsize=256)
def _ordered(table: Table, wanted: tuple[str, ...]) -> tuple[Column, ...]:
    found = {column.name: column for column in _select(table, wanted)}
    return tuple(found[name] for name in dict.fromkeys(wanted))


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
