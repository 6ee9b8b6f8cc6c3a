"""Enumerations are declared once, in tables; kernels and stubs agree with them."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

from msmqwire import formatname, mqcn, mqqb, mqsd
from msmqwire.columns import Table
from msmqwire.columns.schema import UINT32, Column, Enumeration
from msmqwire.formatname import _kernel as formatname_kernel
from msmqwire.wire import _transport as transport

TABLES: list[tuple[Table, Any]] = [(formatname.FORMAT_NAMES, formatname_kernel.Field)]
ENUMERATIONS = [
    (transport, "Transport"),
    *((formatname_kernel, name) for name in ("NameKind", "Field", "Expected", "Presence")),
]


@pytest.mark.parametrize(("names", "index"), [(0, "int32"), (1, "int8"), (127, "int8"), (128, "int16")])
def test_the_indices_of_a_dictionary_reach_all_names(names: int, index: str) -> None:
    """An enumeration without names gets them from its batch. Arrow's indices have a sign."""
    enumeration = Enumeration(tuple(map(str, range(names))))
    assert (enumeration.name, enumeration.index) == ("string", index)


@pytest.mark.parametrize(("table", "field"), TABLES)
def test_fields_stand_at_their_numbers(table: Table, field: Any) -> None:
    """A fault names its field by the number that the kernel wrote."""
    assert [*field] == list(range(len(table.fields)))
    assert table.fields == tuple(member.name.replace("_", ".") for member in field)


@pytest.mark.parametrize(("module", "name"), ENUMERATIONS)
def test_a_stub_lists_the_members_of_its_enumeration(module: Any, name: str) -> None:
    stub = ast.parse(
        Path(inspect.getfile(module)).parent.joinpath(module.__name__.rpartition(".")[2] + ".pyi").read_text()
    )
    (listed,) = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == name]
    members = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in listed.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    assert members == {member.name: int(member) for member in getattr(module, name)}
    assert {base.id for base in listed.bases if isinstance(base, ast.Name)} <= {
        base.__name__ for base in getattr(module, name).__mro__
    }


@pytest.mark.parametrize("flags", [mqsd.Violation, mqcn.Violation, mqqb.Violation, mqqb.SessionViolation])
def test_violations_combine_as_flags(flags: Any) -> None:
    first, second, *_ = flags
    both = first | second
    assert isinstance(both, flags)
    assert first in both
    assert both & ~first == second
    assert pickle.loads(pickle.dumps(both)) == both
    assert flags.__doc__


@pytest.mark.parametrize(("bit", "width"), [(0, 1), (1 << 7, 1), (1 << 8, 4), (1 << 31, 4)])
def test_presence_of_a_row_has_room_for_every_bit(bit: int, width: int) -> None:
    columns = (Column("first", UINT32, "", presence=1), Column("last", UINT32, "", presence=bit))
    assert Table("two", "", columns).presence_width == width
