"""The rows of a protocol's table: each field of a packet once.

``schema.py`` of a protocol lists its packets as headers of fields. From these rows come the columns of its table, the
enumerations that its kernel is compiled with (``declarations.py`` writes them), the sources of columns in records,
byte maps, dissectors and the manual. These modules import no compiled module, as they are read before any is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import IntFlag
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from msmqwire.columns.schema import (
    BOOL,
    BYTES,
    GUID,
    TEXT,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    Column,
    DataType,
    FaultRule,
    ListOf,
    Table,
)
from msmqwire.columns.views import SPAN_DTYPE
from msmqwire.wire.codes import FAULTS

_COLUMN_TYPES: dict[str, DataType] = {
    "u8": UINT8, "u16": UINT16, "u32": UINT32, "u64": UINT64, "guid": GUID, "text": TEXT, "bytes": BYTES, "bits": BOOL,
}  # fmt: skip
#: The bytes of the types of fields that have a fixed size.
SIZES = {name: _COLUMN_TYPES[name].width for name in ("u8", "u16", "u32", "u64", "guid")}


class Rule(NamedTuple):
    """What the specification requires of a field; ``strict`` is the fault of strict decoding, if it is one."""

    field: str
    section: str
    requirement: str
    strict: str = ""


class Violations(IntFlag):
    """The violations of a table, each declared as the ``Rule`` that is broken; the first is bit 0."""

    rule: Rule

    def __new__(cls, *rule: str) -> Self:
        """Give the next bit to a rule."""
        member = int.__new__(cls, 1 << len(cls.__members__))
        member._value_ = int(member)
        member.rule = Rule(*rule)
        return member

    @property
    def sentence(self) -> str:
        """The rule that is broken, with its section."""
        return f"{self.rule.requirement} ({self.rule.section})"


@dataclass(frozen=True, eq=False)
class WireField:
    """A field of a packet.

    Attributes
    ----------
    name : str
        The name in the specification.
    type : str
        On the wire: ``u8`` to ``u64``, ``guid``, ``bytes``, ``text`` (UTF-16LE), ``string`` (UTF-16LE up to U+0000),
        ``value`` (of the PROPID at its place in ``property_id``), ``pad`` (up to a multiple of four bytes), or ``bits``
        of a number. Empty for what is not one run of bytes.
    at : int, optional
        Bytes from the start of the header; -1 for a field after others of variable size.
    when, size : str
        Expressions: whether the header has the field, and its bytes. Python and Lua read them alike: the ids of earlier
        numbers, ``has(number, mask)``, ``bits(number, shift, width)``, ``left`` (the bytes that remain), ``position``.
    column : Column, optional
        What is shown of it.
    fills : str
        The column of another row that has the value.
    id : str
        The name of the number in expressions: that of the column unless given.
    repeat : str
        Expression: how many there are one after the other, where it need not be one.
    fields : tuple of WireField
        The fields of each, of what is repeated as a whole.
    bits : (int, int)
        The first bit and the number of bits in the number at ``at``.
    faults : tuple of str
        The names in faults, where they are not that of the field.
    names : mapping of int to str
        The names of the values.
    time : str
        The unit of a duration, or ``unix`` for seconds since 1970.
    checks : mapping of str to str
        Faults and violations that a dissector can find, each with the expression that is true for it.
    parts : tuple of WireField
        The bits of a number, as ``Header.on_the_wire`` gives it.
    """

    name: str
    type: str = ""
    at: int = -1
    when: str = ""
    _: KW_ONLY
    column: Column | None = None
    fills: str = ""
    id: str = ""
    size: str = ""
    repeat: str = ""
    fields: tuple[WireField, ...] = ()
    bits: tuple[int, int] = (0, 0)
    faults: tuple[str, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict)
    time: str = ""
    checks: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[WireField, ...] = ()

    @property
    def filled(self) -> str:
        """The name of the column that is made of the field; empty if none is."""
        return self.column.name if self.column else self.fills

    @property
    def shown(self) -> str:
        """The name of the column that has the value of the wire, not a name or a list of it; empty without one."""
        other = self.column and (self.type == "text" or self.column.type is not _COLUMN_TYPES[self.type])
        return "" if other else self.filled

    @property
    def end(self) -> int:
        """Bytes from the start of the header to the end of a field of fixed size."""
        return self.at + (sum(self.bits) + 7) // 8 if self.type == "bits" else self.at + SIZES[self.type]


def flag(name: str, at: int, bit: int, column: Column | None = None) -> WireField:
    """A bit of the number at ``at``."""
    return WireField(name, "bits", at, column=column, bits=(bit, 1))


@dataclass(frozen=True, eq=False)
class Header:
    """A part of a packet, its fields in the order of their columns.

    Attributes
    ----------
    section : str
        The name by which kernels know where the header begins; empty if no column is loaded from there.
    fields : tuple of WireField or Column
        A column that stands alone is derived, or a reader sets it.
    when : str
        The expression that says whether a packet has the header.
    presence : str
        The bit of the presence of a row that says the same.
    layout : str, optional
        The byte map with the header, where it is not that of the table; None if its bytes are those of another field.
    faults : tuple of str
        The name in faults of a header that is read as a whole, then those of its parts that no field has.
    """

    section: str
    fields: tuple[WireField | Column, ...]
    when: str = ""
    presence: str = ""
    layout: str | None = ""
    faults: tuple[str, ...] = ()

    @property
    def columns(self) -> Iterator[tuple[Column, WireField | None]]:
        """The columns, each with its field if it has one."""
        for row in self.fields:
            if isinstance(row, Column):
                yield row, None
            elif row.column:
                yield row.column, row

    @property
    def size(self) -> int:
        """Bytes from the start of the header to the end of its fields of fixed size."""
        return max(row.end for row in self.on_the_wire() if row.at >= 0)

    def on_the_wire(self) -> Iterator[WireField]:
        """The fields in the order of the wire, each with the whole condition for it; no bits."""
        rows = [row for row in self.fields if isinstance(row, WireField) and self.layout is not None]
        bits = sorted((row for row in rows if row.type == "bits"), key=lambda row: row.bits)
        found = [row for row in rows if row.type != "bits"]
        for each in sorted(found, key=lambda row: row.at if row.at >= 0 else 1 << 16):
            yield replace(
                each,
                id=each.id or (each.filled if each.type in SIZES else ""),
                parts=tuple([bit for bit in bits if bit.at == each.at]),
                when=" and ".join([f"({text})" if " or " in text else text for text in (self.when, each.when) if text]),
            )

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The fields of fixed size as a structured dtype, by their names in the specification."""
        rows = [row for row in self.on_the_wire() if row.at >= 0]
        names = [re.sub("(?<=[a-z])(?=[A-Z])", "_", row.name).lower() for row in rows]
        return np.dtype([(name, _COLUMN_TYPES[row.type].dtype) for name, row in zip(names, rows, strict=True)])


def _may_be_at_fault(header: Header, row: WireField) -> bool:
    """Return True if faults can name a field: in a header that is read as a whole, one that decides what follows."""
    is_part = row.at >= 0 or row.size.isdigit()
    return not (header.faults and is_part) or not FAULTS.keys().isdisjoint(row.checks)


def _names_in_faults(header: Header) -> tuple[str, ...]:
    """The names of a header and its fields in faults, in the order of the wire."""
    rows = [row for each in header.on_the_wire() if each.type != "pad" for row in each.fields or (each,)]
    found = [name for row in rows if _may_be_at_fault(header, row) for name in row.faults or (row.name,)]
    return (*header.faults, *found)


def fault_names(headers: Iterable[Header]) -> tuple[str, ...]:
    """The names of all headers and fields in faults, each once, in the order of the wire."""
    return enumerated(name for header in headers for name in _names_in_faults(header))


def enumerated(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once, without the empty one."""
    return tuple([name for name in dict.fromkeys(names) if name])


def section_places(tables: Iterable[Table]) -> dict[str, int]:
    """The places of sections in a record; sections that no table has together share one."""
    places: dict[str, int] = {}
    for table in tables:
        names = enumerated(header.section for header in table.headers)
        taken = {places[name] for name in names if name in places}
        free = (place for place in range(len(names)) if place not in taken)
        places |= {name: next(free) for name in names if name not in places}
    return places


def enumerators(tables: Iterable[Table]) -> dict[str, tuple[str, ...]]:
    """The members of a record that are arrays, each with the enumerators of its values."""
    stores = [column.store.partition(".") for table in tables for column in table.columns]
    return {
        member: enumerated(name for other, _, name in stores if other == member) for member, _, name in stores if name
    }


@cache  # looked at for every batch
def row_columns(table: Table) -> dict[str, str]:
    """The columns with a value a row that kernels write and read, each with the type of its values in C."""
    types = {column.name: _c_type(column.type) for column in table.columns if not column.derived}
    return {"presence": f"uint{8 * table.presence_width}_t", "violations": "uint32_t", **types}


def _c_type(type_: DataType) -> str:
    if isinstance(type_, ListOf):
        return "int32_t"
    return "TextSpan" if type_.dtype == SPAN_DTYPE else {2: "uint16_t", 4: "uint32_t"}.get(type_.width, "uint8_t")


#: More bytes than any field has: the column has no value.
_NEVER = 0xFFFFFFFF


@cache
def bytes_needed(table: Table) -> NDArray[np.uint32]:
    """How many bytes of the field in an ``incomplete`` fault a column needs to have a value: shape (columns, fields).

    Columns of earlier fields need 0, those of later fields more than the field has. Where the field of the fault is a
    whole header, its columns need the bytes up to the end of their own fields.
    """
    needed = np.full((len(table.names), len(table.fields)), _NEVER, np.uint32)
    rows = [(place, *row) for place, header in enumerate(table.headers) for row in header.columns]
    for place, header in enumerate(table.headers):
        names = _names_in_faults(header)
        for name in names:
            for number, (own_place, column, row) in enumerate(rows):
                own = table.headers[own_place]
                if column.derived:
                    least = _NEVER
                elif row is None:  # the reader sets its bit of presence after the fields that it is made of
                    has_bit = column.bit or (own.presence if own_place < place or not own.section else "")
                    least = 0 if has_bit else _NEVER
                elif name == "PacketSize":  # the end of the packet is missing, after all fields
                    least = 0
                elif own_place != place:
                    least = 0 if own_place < place else _NEVER
                else:
                    least = _bytes_in_header(row, header.faults, names, name)
                needed[number, table.fields.index(name)] = least
    return needed


def _bytes_in_header(row: WireField, whole: tuple[str, ...], names: tuple[str, ...], fault: str) -> int:
    """Return what a field needs that is in the header of the fault; ``whole`` begins with the name of that header."""
    if fault in whole[:1]:
        return row.end if row.at >= 0 else _NEVER
    own = (row.faults or (row.name,))[0]
    if own not in names:
        return 0 if row.at >= 0 else _NEVER
    return 0 if names.index(own) < names.index(fault) else _NEVER


def packet_table(
    name: str,
    section: str,
    headers: tuple[Header, ...],
    fields: tuple[str, ...],
    violations: type[Violations],
    faults: tuple[FaultRule, ...],
    kept: tuple[str, ...] = (),
) -> Table:
    """The table of the columns of packets; ``kept`` are bits of the presence that no column has."""
    rows = [(column, column.bit or header.presence) for header in headers for column, _ in header.columns]
    # Those of derived columns come last, as readers shift the bits of parts that stand together
    names = (*enumerated(bit for _, bit in sorted(rows, key=lambda pair: pair[0].derived)), *kept)
    bits = {name: 2 << i for i, name in enumerate(names)}  # above DECODED of columns/_batch.pxd
    columns = tuple([replace(column, presence=bits.get(bit, 0)) for column, bit in rows])
    return Table(name, section, columns, fields, violations, rules_of(violations), headers, bits, faults)


def rules_of(violations: type[Violations]) -> tuple[tuple[str, str], ...]:
    """The rules of a table: each of its violations and the sentence that it breaks, with its section."""
    return tuple([((each.name or "").lower(), each.sentence) for each in violations])
