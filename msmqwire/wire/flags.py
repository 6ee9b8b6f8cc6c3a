"""Enumerations of bits that a kernel declares, as ``IntFlag``."""

from __future__ import annotations

from enum import IntFlag
from typing import Any


def make_flags(module: dict[str, Any], *names: str) -> None:
    """Replace the enumerations ``names`` of a compiled module by an ``IntFlag`` with the same members.

    Cython makes an IntEnum of ``cpdef enum``, whose members become plain numbers when they are combined.
    """
    for name in names:
        declared = module[name]
        flags = IntFlag(name, [(bit.name, bit.value) for bit in declared], module=module["__name__"])  # type: ignore[misc]
        flags.__doc__ = declared.__doc__
        module[name] = flags
