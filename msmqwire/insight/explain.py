"""What names in the tables mean: faults, violations, columns, judgements, PROPIDs, message classes, rules of detect."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise

from msmqwire.capture import CAPTURE, TABLES
from msmqwire.mqqb.message.classes import MEANINGS, MESSAGE_CLASSES
from msmqwire.notification.judgement import Outcome, Rule, Unverified
from msmqwire.properties import PROPERTIES, TYPE_NAMES, Property
from msmqwire.wire.codes import FAULTS

__all__ = ["Explanation", "explain", "names"]


@dataclass(frozen=True)
class Explanation:
    """What a name means.

    Attributes
    ----------
    kind : str
        ``"fault"``, ``"field"``, ``"violation"``, ``"column"``, ``"outcome"``, ``"rule"`` or ``"unverified"`` of a
        judgement, ``"property"``, ``"message class"``, ``"rule"`` of ``detect``, ``"table"`` or ``"section of a
        summary"``.
    name : str
    where : str
        The table, or the object of a PROPID; empty if it is the same everywhere.
    sentence : str
    section : str
        Of the specification; empty if the sentence has it, or if there is none.
    """

    kind: str
    name: str
    where: str
    sentence: str
    section: str = ""


@cache
def _all() -> tuple[Explanation, ...]:
    return tuple(_every_name())


def _every_name() -> Iterator[Explanation]:
    for code, sentence in FAULTS.items():
        yield Explanation("fault", code, "", sentence)
    for kind in TABLES.values():
        table = kind.table
        yield Explanation("table", table.name, "", ", ".join(table.names), table.section)
        for name, rule in table.rules:
            yield Explanation("violation", name, table.name, f"the broken rule: {rule}")
        for column in table.all_columns:
            yield Explanation("column", column.name, table.name, f"{column.type.name}: {column.meaning}", table.section)
        for field in table.fields:
            yield Explanation("field", field, table.name, "a field that faults name", table.section)
    for column in CAPTURE.columns:
        yield Explanation("column", column.name, "every table", f"{column.type.name}: {column.meaning}")
    for kind_of_name, members in (("outcome", Outcome), ("rule", Rule), ("unverified", Unverified)):
        for member, meaning in _documented(members):
            yield Explanation(kind_of_name, member, "notifications", meaning, "[MS-MQCN] 3.2.5")
    for row in PROPERTIES:
        yield Explanation("property", row.name, row.object, _of_property(row), row.section)
    for number, name in MESSAGE_CLASSES.items():
        sentence = f"MessageClass 0x{number:04X}: {MEANINGS[name]}"
        yield Explanation("message class", name, "messages", sentence, "[MS-MQMQ] 2.2.18.1.6")
    yield from _of_commands()


def _of_commands() -> Iterator[Explanation]:
    """The sections of ``summary`` and the rules of ``detect``."""
    from msmqwire.insight.query_files import SECTIONS
    from msmqwire.insight.rules import RULES

    for name, section in SECTIONS.items():
        yield Explanation("section of a summary", name, "", section.about)
    for each in RULES:
        yield Explanation(
            "rule", each.name, each.severity, f"{each.title}; source: {each.header['source']}", each.reference
        )


def _documented(members: type[StrEnum]) -> Iterator[tuple[str, str]]:
    """The members of an enumeration and the docstrings after them, which only the source has."""
    (definition,) = ast.parse(inspect.getsource(members)).body
    assert isinstance(definition, ast.ClassDef)
    for member, after in pairwise(definition.body):
        match member, after:
            case ast.Assign(value=ast.Constant(value=str(name))), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, text.removesuffix(".").replace("``", "`")


def _of_property(row: Property) -> str:
    values = ", ".join(f"{name} {value}" for name, value in row.values.items())
    return f"PROPID {row.number}, {TYPE_NAMES[row.vt]}" + (f": {values}" if values else "")


def explain(name: str) -> list[Explanation]:
    """The meanings of a name, in any case; a number is a PROPID, or in hexadecimal a message class. Empty if none.

    Examples
    --------
    >>> for each in explain("bad_terminator"):
    ...     print(each.kind, each.sentence)
    fault a text lacks the U+0000 at its end, or has one before it
    >>> [(each.where, each.sentence) for each in explain("105")]
    [('Queue', 'PROPID 105, VT_UI4')]
    """
    wanted = name.strip().lower()
    if wanted.isdecimal():
        numbered = {row.name.lower() for row in PROPERTIES if row.number == int(wanted)}
        return [each for each in _all() if each.kind == "property" and each.name.lower() in numbered]
    if re.fullmatch("0x[0-9a-f]{1,8}", wanted):
        wanted = MESSAGE_CLASSES.get(int(wanted, 16), wanted)
    return [each for each in _all() if each.name.lower() in (wanted, f"propid_{wanted}")]


def names() -> list[str]:
    """The names that have a meaning, in the order of the tables."""
    return [*dict.fromkeys(each.name for each in _all())]
