"""The properties of MSMQ directory objects: one table ([MS-MQMQ] 2.3), and each PROPID as a constant.

>>> from msmqwire.properties import PROPID_Q_QUOTA, by_number
>>> PROPID_Q_QUOTA, by_number(105).object
(105, 'Queue')
"""

from __future__ import annotations

from msmqwire.properties._lookup import type_of
from msmqwire.properties.table import NUMBERED, PROPERTIES, Property, by_name, by_number
from msmqwire.properties.vartype import TYPE_NAMES

__all__ = ["NUMBERED", "PROPERTIES", "TYPE_NAMES", "Property", "by_name", "by_number", "type_of"]


def __getattr__(name: str) -> int:
    try:
        return by_name(name).number
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return [*globals(), *(row.name for row in PROPERTIES)]
