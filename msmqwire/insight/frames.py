"""Places and times of the rows of a result as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any


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
