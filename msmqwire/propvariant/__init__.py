"""PROPVARIANT values as change notifications carry them ([MS-MQCN] 2.2.3), usable on their own."""

from __future__ import annotations

from msmqwire.properties.vartype import (
    TYPE_NAMES,
    VT_BLOB,
    VT_BOOL,
    VT_CLSID,
    VT_I1,
    VT_I2,
    VT_I4,
    VT_I8,
    VT_LPWSTR,
    VT_UI1,
    VT_UI2,
    VT_UI4,
    VT_UI8,
    VT_VECTOR,
)
from msmqwire.propvariant._codec import decode, encode, size, view

__all__ = [
    "TYPE_NAMES",
    "VT_BLOB",
    "VT_BOOL",
    "VT_CLSID",
    "VT_I1",
    "VT_I2",
    "VT_I4",
    "VT_I8",
    "VT_LPWSTR",
    "VT_UI1",
    "VT_UI2",
    "VT_UI4",
    "VT_UI8",
    "VT_VECTOR",
    "decode",
    "encode",
    "size",
    "view",
]
