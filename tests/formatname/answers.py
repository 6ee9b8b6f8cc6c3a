"""What the package and the reference answer, in one shape: rows of what is there, or (code, field, offset)."""

from __future__ import annotations

from typing import Any

from msmqwire.errors import FormatNameError
from msmqwire.formatname import FormatName, MultipleElementName, PathName, parse, parse_path_name
from tests.reference import formatname as reference

Fault = tuple[str, str, int]
Row = dict[str, Any]

_MEMBERS = ("guid", "private_id", "protocol", "address", "port", "queue_type", "queue", "subqueue", "suffix", "domain")


def row_of(name: FormatName | PathName) -> Row:
    """The members of a name that are there, with the table's columns for keys."""
    row: Row = {"kind": name.kind}
    row.update({member: getattr(name, member, None) for member in _MEMBERS})
    if isinstance(name, PathName):
        row["address"] = name.computer
    return {member: value for member, value in row.items() if value is not None}


def of_parse(text: str, **options: bool) -> list[Row] | Fault:
    """What ``parse`` or, with ``path_names``, ``parse_path_name`` makes of a text: its elements."""
    path_names = options.pop("path_names", False)
    try:
        name = parse_path_name(text) if path_names else parse(text, **options)
    except FormatNameError as error:
        return error.code, error.field, error.offset
    return [row_of(element) for element in name.elements] if isinstance(name, MultipleElementName) else [row_of(name)]


def of_reference(text: str, **options: bool) -> list[Row] | Fault:
    """What the reference makes of it."""
    path_names = options.pop("path_names", False)
    try:
        if path_names:
            return [reference.read_path_name(text)]
        return reference.read(text, reference.Options(**options))
    except reference.RefusedError as error:
        return error.args


def of_batch(rows: list[Row], **options: bool) -> list[list[Row] | Fault | None]:
    """Rows of a table in Python as the same answers; elements are parsed for them."""
    return [_answer(row, options) for row in rows]


def _answer(row: Row, options: dict[str, bool]) -> list[Row] | Fault | None:
    if row["fault"] is not None:
        assert all(value is None for column, value in row.items() if column != "fault")
        return row["fault"]["code"], row["fault"]["field"], row["fault"]["offset"]
    if row["kind"] is None:
        assert all(value is None for value in row.values())
        return None
    if row["kind"] == "multiple_element":
        assert {column for column, value in row.items() if value is not None} == {"kind", "elements"}
        elements = [of_parse(element, **options) for element in row["elements"]]
        assert all(isinstance(element, list) and len(element) == 1 for element in elements)
        return [element[0] for element in elements]  # type: ignore[misc]
    assert row["elements"] is None
    return [{column: value for column, value in row.items() if value is not None}]
