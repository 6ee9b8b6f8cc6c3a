"""GUIDs: as text, and the one of nothing."""

from __future__ import annotations

import re
from uuid import UUID

#: The GUID of nothing, all zero.
NIL = UUID(int=0)

#: The one form: 8-4-4-4-12 hexadecimal digits. ``uuid.UUID`` reads braces, URNs, digits without dashes and more.
PATTERN = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_GUID = re.compile(PATTERN)


def guid_of(text: str) -> UUID | None:
    """The GUID that a text is, or None.

    >>> guid_of("557358d1-9150-9595-4997-b6e611ea26c6"), guid_of("{557358d1-9150-9595-4997-b6e611ea26c6}")
    (UUID('557358d1-9150-9595-4997-b6e611ea26c6'), None)
    """
    return UUID(text) if _GUID.fullmatch(text) else None
