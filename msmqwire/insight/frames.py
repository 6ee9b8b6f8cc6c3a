"""Places, times and texts of the rows of a result as text that people read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any

from msmqwire.errors import UNPRINTABLE

# XML has no U+FFFE and U+FFFF
_UNPRINTABLE = re.compile(f"[{UNPRINTABLE}\ufffe\uffff]")
_UNPRINTABLE_IN_LINES = re.compile(rf"(?![\t\n]){_UNPRINTABLE.pattern}")


def printable(value: Any, *, lines: bool = False) -> str:
    """A value as text, with U+FFFD for characters that nothing shows; with ``lines`` its lines and tabs remain.

    Examples
    --------
    >>> printable("a\\r\\nb"), printable("a\\r\\nb\\0", lines=True)
    ('a��b', 'a\\nb�')
    """
    if lines:
        return _UNPRINTABLE_IN_LINES.sub("\ufffd", str(value).replace("\r\n", "\n"))
    return _UNPRINTABLE.sub("\ufffd", str(value))


def frames_text(frames: Iterable[Mapping[str, Any]], *, files: bool = True) -> str:
    """Frames of a row as text: their numbers, after the name of their file, without its folder, if it is wanted."""
    by_file: dict[str, list[str]] = {}
    for each in frames:
        by_file.setdefault(PurePath(each["file"] or "").name, []).append(str(each["frame"]))
    return "; ".join(" ".join([file, *numbers] if files else numbers) for file, numbers in by_file.items())


def seen_text(first: datetime | None, last: datetime | None) -> str:
    """The first and last time of a row as text: to the second, and once if they are equal."""
    if first is None or last is None:
        return ""
    begin, end = f"{first:%Y-%m-%d %H:%M:%S}", f"{last:%Y-%m-%d %H:%M:%S}"
    if begin == end:
        return begin
    return f"{begin} – {end.removeprefix(begin[:11])}"
