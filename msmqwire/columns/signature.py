"""Signatures of packet classes, which extension types do not have by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import Parameter, Signature
from typing import Any

from msmqwire.columns.schema import BOOL, BYTES, FORMAT_NAME, GUID, TEXT, DataType, Enumeration, ListOf

_PYTHON_TYPES = {GUID: "UUID", TEXT: "str", BYTES: "bytes", BOOL: "bool", FORMAT_NAME: "FormatName | str"}


def python_type(type_: DataType) -> str:
    """The Python type of a packet's attribute with the column type ``type_``."""
    if isinstance(type_, Enumeration):
        return f"Literal[{', '.join(map(repr, type_.names))}]"
    if isinstance(type_, ListOf):
        return f"Sequence[{python_type(type_.item)}]"
    return next((name for known, name in _PYTHON_TYPES.items() if known == type_), "int")


def packet_signature(types: Mapping[str, str], defaults: Mapping[str, Any]) -> Signature:
    """The signature of a class whose keywords have these types; those without a default (``...``) are required."""

    def parameters() -> Iterator[Parameter]:
        for name, type_ in types.items():
            default = defaults.get(name, ...)
            optional = default is None and not type_.endswith("None")
            yield Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if default is ... else default,
                annotation=f"{type_} | None" if optional else type_,
            )

    return Signature(list(parameters()))
