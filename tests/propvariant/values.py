"""Values in the forms that the package takes and gives, from those of the oracle."""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np

from msmqwire.errors import DecodeError
from msmqwire.properties.vartype import TYPE_NAMES
from tests.reference import propvariant
from tests.reference.reader import Fault, MalformedError

VT = {name: code for code, name in TYPE_NAMES.items()}
TYPES = propvariant.TYPES


def read(type_: str, data: bytes) -> tuple[Any, int] | Fault:
    """The oracle over one value."""
    try:
        return propvariant.read(type_, data)
    except MalformedError as error:
        return error.fault


def fault_of(call: Any, *arguments: Any, **options: Any) -> Any:
    """What a call of the package gives, its exception turned into the oracle's fault."""
    try:
        return call(*arguments, **options)
    except DecodeError as error:
        return Fault(error.code, error.field, error.offset)


def given(type_: str, value: Any) -> Any:
    """A value of the oracle as a caller of the package has it."""
    if type_ == "VT_CLSID":
        return uuid.UUID(bytes_le=value)
    if type_ == "VT_CLSID|VT_VECTOR":
        return [uuid.UUID(bytes_le=item) for item in value]
    return value


def plain(type_: str, value: Any) -> Any:
    """A value that the package returned as the oracle has it; its exact type is judged on the way."""
    if type_ in propvariant.NUMBERS:
        assert type(value) is int
        return value
    if type_ == "VT_BOOL":
        assert type(value) is bool
        return value
    if type_ == "VT_LPWSTR":
        assert type(value) is str
        return value
    if type_ == "VT_CLSID":
        assert type(value) is uuid.UUID
        return value.bytes_le
    if type_ == "VT_LPWSTR|VT_VECTOR":
        assert type(value) is tuple
        assert all(type(item) is str for item in value)
        return value
    assert isinstance(value, np.ndarray)
    assert not value.flags.writeable
    if type_ == "VT_UI4|VT_VECTOR":
        assert value.dtype == np.dtype("<u4")
        assert value.ndim == 1
        return tuple(value.tolist())
    assert value.dtype == np.uint8
    if type_ == "VT_CLSID|VT_VECTOR":
        assert value.shape == (len(value), 16)
        return tuple(bytes(item) for item in value)
    assert value.ndim == 1
    return value.tobytes()
