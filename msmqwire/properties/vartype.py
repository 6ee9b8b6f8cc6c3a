"""VARTYPE codes, the types of property values: [MS-MQMQ] 2.2.12."""

from __future__ import annotations

VT_I2 = 2
VT_I4 = 3
VT_BOOL = 11
VT_VARIANT = 12
VT_I1 = 16
VT_UI1 = 17
VT_UI2 = 18
VT_UI4 = 19
VT_I8 = 20
VT_UI8 = 21
VT_LPWSTR = 31
VT_BLOB = 65
VT_CLSID = 72
VT_VECTOR = 0x1000

_SCALARS = {
    code: name for name, code in globals().items() if name.startswith("VT_") and name not in ("VT_VARIANT", "VT_VECTOR")
}
_ELEMENTS = {VT_UI1: "VT_UI1", VT_UI4: "VT_UI4", VT_CLSID: "VT_CLSID", VT_LPWSTR: "VT_LPWSTR", VT_VARIANT: "VT_VARIANT"}
TYPE_NAMES = _SCALARS | {code | VT_VECTOR: f"{name}|VT_VECTOR" for code, name in _ELEMENTS.items()}
"""The name of each type that a PROPID has or [MS-MQCN] 2.2.3 describes. VT_VARIANT|VT_VECTOR has no value codec."""
