"""The structures of the kernels for ctypes, read off their declarations, so that they cannot differ from them."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "msmqwire" / "capture"
_TYPES = {"bint": ctypes.c_int, "size_t": ctypes.c_size_t}
_MEMBER = re.compile(r"    (?:const )?(?P<type>\w+)(?P<pointer>\**) (?P<name>\w+)")


def structure(file: str, name: str) -> type[Any]:
    """The ctypes form of a ``cdef struct`` of one of the package's .pxd files; all pointers are ``void*``."""
    text = (FOLDER / file).read_text("utf-8")
    _, _, body = text.partition(f"cdef struct {name}:\n")
    assert body, f"{file} has no struct {name}"
    members = []
    for line in body.split("\n\n\n")[0].splitlines():
        code = line.partition("#")[0].rstrip()
        if not code:
            continue
        member = _MEMBER.fullmatch(code)
        assert member, f"{file}, {name}: {code!r}"
        members.append((member["name"], ctypes.c_void_p if member["pointer"] else _scalar(member["type"])))
    return type(name, (ctypes.Structure,), {"_fields_": members})


def _scalar(name: str) -> Any:
    return _TYPES.get(name) or getattr(ctypes, f"c_{name.removesuffix('_t')}")
