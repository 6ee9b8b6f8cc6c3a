"""Write the enumerations and structures that kernels are compiled with from the tables of the protocols, and the stubs.

``make build`` runs it, before anything is compiled: it imports Python modules only, numpy and Cython. Each folder has
one file ``_generated.pxd``, which is committed; ``tests/test_declarations.py`` compares. ``stubs.py`` makes the stubs.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from stubs import stubs

PACKAGE = Path(__file__).parent / "msmqwire"


def enumeration(name: str, members: Iterable[str], comment: str = "") -> Iterator[str]:
    """Lines of a ``cdef enum``; a member may have a value."""
    if comment:
        yield f"# {comment}"
    yield f"cdef enum {name}:" if name else "cdef enum:"
    yield from (f"    {member}" for member in members)
    yield ""


def flags(name: str, bits: dict[str, int], comment: str) -> Iterator[str]:
    """Lines of an enumeration of bits; in C, ``1 << 31`` is negative."""
    shown = {value: "0x80000000" if value == 1 << 31 else f"1 << {value.bit_length() - 1}" for value in bits.values()}
    members = (f"{bit} = {shown[value]}" for bit, value in bits.items())
    return enumeration(name, members, comment)


def fault_codes(module: ModuleType) -> Iterator[str]:
    """The codes of faults."""
    names = ["NONE", *(name.upper() for name in module.FAULTS)]
    yield from enumeration("FaultCode", names, "Codes of DecodeError and of the column ``fault``")


def violations(declared: Any, comment: str) -> Iterator[str]:
    """The bits of the violations of a table."""
    return flags(declared.__name__, {each.name: each.value for each in declared}, comment)


def offsets(tables: Iterable[Any], room: str) -> Iterator[str]:
    """Where fields begin in their headers; those that the sources of ``room`` use."""
    from msmqwire.columns.fields import SIZES, WireField

    paths = sorted(path for path in (PACKAGE / room).rglob("*.p[yx][xd]") if path.name != NAME)
    sources = "".join(path.read_text("utf-8") for path in paths)
    used = {*re.findall(r"\w+_AT\b", sources)}
    found = {
        f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=ID)(?=Size)|[.]', '_', row.name).upper()}_AT": row.at
        for table in tables
        for header in table.headers
        for row in header.fields
        if isinstance(row, WireField) and row.at > 0 and row.type in SIZES
    }
    members = [f"{name} = {at}" for name, at in found.items() if name in used]
    if members:
        yield from enumeration("", members, "Where fields begin in their headers")


def protocol(module: ModuleType) -> Iterator[str]:
    """The fields, violations, presence bits, sections and enumerations of the tables of a protocol."""
    from msmqwire.columns.fields import enumerators, section_places

    fields = [name.replace(".", "_") for name in module.FIELDS]
    yield from enumeration("Field", fields, "Fields as the specification names them; the field of a fault")
    tables = [value for value in vars(module).values() if getattr(value, "headers", ())]
    yield from violations(module.Violation, "Bits of the column ``violations``")
    strict = [each.name for each in module.Violation if each.rule.strict]
    yield from enumeration("", [f"DISCARDABLE = {' | '.join(strict)}"], "Faults of strict decoding")
    for table in tables:
        prefix = table.violations.__name__.removesuffix("Violation")
        yield from flags(f"{prefix}Presence", table.presence_bits, f"Bits of the presence of a row of {table.name}")
    sections = section_places(tables)
    sections["SECTION_COUNT"] = max(sections.values()) + 1
    members = [f"{name} = {place}" for name, place in sections.items()]
    yield from enumeration("", members, "Sections of a record: where fixed fields are loaded from")
    yield from offsets(tables, module.__name__.split(".")[1])
    written: list[str] = []
    for member, names in enumerators(tables).items():
        if not set(names) <= set(written):
            count = f"{member.removesuffix('s').upper()}_COUNT"
            yield from enumeration("", [*names, count], f"Places in ``{member}`` of a record")
            written += names
    for name, values in getattr(module, "CODES", {}).items():
        yield from enumeration(name, [value.upper() for value in values])
    for name, numbers in getattr(module, "NUMBERS", {}).items():
        yield from enumeration(name, [f"{each} = {number:#x}" for each, number in numbers.items()])


def protocol_of_rows(module: ModuleType) -> Iterator[str]:
    """As ``protocol``, with the addresses of the columns for kernels that write and read them row by row."""
    from msmqwire.columns.fields import row_columns

    yield from protocol(module)
    (table,) = (value for value in vars(module).values() if getattr(value, "headers", ()))
    yield f"# Where the columns of {table.name} are, as ``find_columns`` says; NULL for one that is not requested"
    yield "cdef struct RowColumns:"
    yield from (f"    {type_}* {name}" for name, type_ in row_columns(table).items())
    yield ""


def kinds(module: ModuleType) -> Iterator[str]:
    """The types of property values."""
    from msmqwire.properties.vartype import TYPE_NAMES

    names = [TYPE_NAMES.get(kind, "VT_NONE").replace("|VT", "") for kind in module.KINDS]
    members = [*(name.replace("VT_", "KIND_") for name in names), "KIND_COUNT"]
    yield from enumeration(
        "ValueKind", members, "The types of values: fixed sizes, values that begin with a count, texts"
    )


def members(module: ModuleType) -> Iterator[str]:
    """The presence bits of a property."""
    bits = {f"IS_{name.upper()}": 1 << place for place, (name, _) in enumerate(module.VALUES)}
    yield from flags("Member", bits, "Bits of the presence of a property: the member that has the value")


def session_violations(module: ModuleType) -> Iterator[str]:
    """The violations of sessions: their names are those of messages, with other bits."""
    yield from violations(module.SessionViolation, "Bits of the column ``violations`` of sessions")


def constants(module: ModuleType) -> Iterator[str]:
    """The constants of a module; bytes as the number that a kernel loads."""
    values = {name: value for name, value in vars(module).items() if name.isupper() and type(value) in (int, bytes)}
    numbers = {
        name: int.from_bytes(each, "little") if isinstance(each, bytes) else each for name, each in values.items()
    }
    yield from enumeration("", [f"{name} = {number:#x}" for name, number in numbers.items()])


#: Each file with the modules of tables and what is written from them.
PARTS: dict[str, tuple[tuple[str, Callable[[ModuleType], Iterator[str]]], ...]] = {
    "wire": (("wire.codes", fault_codes),),
    "properties": (("properties.table", kinds),),
    "mqsd": (("mqsd.schema", constants), ("mqsd.schema", protocol_of_rows)),
    "mqcn": (("mqcn.schema", constants), ("mqcn.schema", protocol_of_rows), ("mqcn.schema", members)),
    "mqqb": (("mqqb.framing", constants), ("mqqb.numbers", constants), ("mqqb.schema", protocol)),
    "mqqb/session": (("mqqb.rules", session_violations),),
}
NAME = "_generated.pxd"


def written() -> dict[Path, str]:
    """The text of each file, written anew."""
    found = {}
    for folder, parts in PARTS.items():
        lines = [line for module, part in parts for line in part(importlib.import_module(f"msmqwire.{module}"))]
        sources = ", ".join(dict.fromkeys(f"{module.rpartition('.')[2]}.py" for module, _ in parts))
        text = "\n".join(lines)
        types = [name for name in ("int32_t", "uint8_t", "uint16_t", "uint32_t") if re.search(rf"\b{name}\b", text)]
        head = [f'"""Written by `make build` from {sources}; do not edit."""', ""]
        if types:
            head += [f"from libc.stdint cimport {', '.join(types)}", ""]
        if "TextSpan" in text:
            head += ["from msmqwire.columns._convert cimport TextSpan", ""]
        found[PACKAGE / folder / NAME] = "\n".join([*head, text.rstrip("\n"), ""])
    return found


def bare_packages() -> None:
    """Let the modules of the package be imported without its ``__init__``, which need the compiled modules."""
    for path in PACKAGE.rglob("__init__.py"):
        name = ".".join(path.parent.relative_to(PACKAGE.parent).parts)
        module: Any = ModuleType(name)
        module.__path__ = [str(path.parent)]
        sys.modules[name] = module


if __name__ == "__main__":
    bare_packages()
    for path, text in {**written(), **stubs()}.items():
        if not path.exists() or path.read_text("utf-8") != text:  # or make would compile again
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(PACKAGE.parent)}")
