"""The exceptions of the package, ``MsmqWireError`` the base of them all; and parts of messages."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

__all__ = [
    "CaptureError",
    "CaptureFormatError",
    "CaptureReadError",
    "DecodeError",
    "DirectoryError",
    "DirectoryNotConnected",
    "EncodeError",
    "FormatNameError",
    "LakeError",
    "MsmqWireError",
    "RoutingError",
    "SessionError",
    "StoreError",
]

#: Characters that a terminal may obey instead of show, as the inside of a bracket expression: controls of C0 and C1,
#: line and paragraph separators, marks that change the direction of writing.
UNPRINTABLE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"

_SHOWN_CHARACTERS = 40  # of a name, before the offending character


def counted(number: int, one: str, many: str = "") -> str:
    """A number and its noun, in the singular or the plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def printable(text: str) -> str:
    """The text with U+FFFD in place of characters that could control a terminal."""
    import re

    return re.sub(f"[{UNPRINTABLE}\ud800-\udfff]", "\ufffd", text)


def similar(word: str, known: Iterable[str]) -> list[str]:
    """The known words that an unknown word is like, at most three, the likeliest first."""
    import difflib

    lower = {each.lower(): each for each in known}
    return [lower[found] for found in difflib.get_close_matches(word.strip().lower(), lower, n=3)]


def meant(words: Iterable[str]) -> str:
    """The question whether one of the words was meant; empty without words."""
    found = " or ".join(words)
    return f"; did you mean {found}?" if found else ""


def missing(package: str, purpose: str) -> str:
    """The message for an optional dependency that is not installed, with the command that installs it."""
    import re
    from importlib import metadata

    try:
        requirements = metadata.requires("msmqwire") or []
    except metadata.PackageNotFoundError:
        requirements = []
    pattern = re.compile(rf"({re.escape(package)}(?![\w.-])[^;]*)(?:;.*extra == .(\w+))?")
    found = next(filter(None, map(pattern.match, requirements)), None)
    wanted, extra = (found[1].strip(), found[2]) if found else (package, None)
    named = f", or all of msmqwire[{extra}]" if extra else ""
    return f"{purpose} needs {package}, which is not installed: pip install '{wanted}'{named}"


def require(module: str, purpose: str) -> ModuleType:
    """Import a module of an optional dependency.

    Raises
    ------
    ModuleNotFoundError
        It is not installed; the message has the command that installs it, and the extra of which it is part.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(missing(module.partition(".")[0], purpose), name=error.name) from None


class MsmqWireError(Exception):
    """Base of all errors of this package."""


class DecodeError(MsmqWireError, ValueError):
    """A payload cannot be decoded as its kind.

    Attributes
    ----------
    code : str
        What is wrong, e.g. ``"truncated"``.
    field : str
        Where, by its name in the specification, e.g. ``"ConnectedNetworkArray"``.
    offset : int
        Byte offset in the payload.
    detail : str
        What was needed and what was there, for people.
    value : int or None
        The number that was read: that of the field, or of the length or count that says how many bytes the field has.
    needed : int or None
        The number that was needed: bytes of the field, the bound of a count or a length, or the one right number.
    """

    def __init__(
        self,
        code: str,
        field: str,
        offset: int,
        detail: str = "",
        value: int | None = None,
        needed: int | None = None,
    ) -> None:
        super().__init__(code, field, offset, detail, value, needed)
        self.code = code
        self.field = field
        self.offset = offset
        self.detail = detail
        self.value = value
        self.needed = needed

    def __str__(self) -> str:
        place = f"{self.code}: {self.field} at byte {self.offset}"
        return f"{place}: {self.detail}" if self.detail else place


class EncodeError(MsmqWireError, ValueError):
    """A packet cannot be written because the specification forbids it.

    Attributes
    ----------
    field : str
        The field at fault, by its name in the specification.
    reason : str
        What the specification requires and what was given.
    row : int or None
        The row of a batch, or None for a single packet.
    """

    def __init__(self, field: str, reason: str, row: int | None = None) -> None:
        super().__init__(field, reason, row)
        self.field = field
        self.reason = reason
        self.row = row

    def __str__(self) -> str:
        place = self.field if self.row is None else f"row {self.row}: {self.field}"
        return f"{place}: {self.reason}"


class FormatNameError(MsmqWireError, ValueError):
    """A format name or path name does not follow its grammar.

    Attributes
    ----------
    code : str
        What is wrong, as in faults: ``"truncated"``, ``"bad_type"``, ``"bad_text"``, ``"bad_value"``, ``"too_large"``.
    field : str
        The rule at fault, by its name in the specification, e.g. ``"QueueGuid"``.
    offset : int
        The index in ``text`` of the first character that cannot stand there; ``len(text)`` if the name is truncated.
    expected : str
        What the grammar needs there, for people.
    text : str
        The name.
    """

    def __init__(self, code: str, field: str, offset: int, expected: str, text: str) -> None:
        super().__init__(code, field, offset, expected, text)
        self.code = code
        self.field = field
        self.offset = offset
        self.expected = expected
        self.text = text

    def __str__(self) -> str:
        start = max(self.offset - _SHOWN_CHARACTERS, 0)
        before = ("..." if start else "") + self.text[start : self.offset]
        found = _quoted(self.text[self.offset]) if self.offset < len(self.text) else "the end"
        after = f" after {_quoted(before)}" if before else ""
        return f"{self.code}: {self.field} at character {self.offset}: expected {self.expected}, found {found}{after}"


def _quoted(text: str) -> str:
    # People type the backslashes of a name once
    return repr(text).replace("\\\\", "\\")


class RoutingError(MsmqWireError):
    """The directory has no route."""


class DirectoryError(MsmqWireError):
    """The directory cannot be read, or its answer is not valid."""


class DirectoryNotConnected(DirectoryError):  # noqa: N818 - the name of the specification
    """The directory cannot be reached, or stopped answering."""


class CaptureError(MsmqWireError):
    """A file is not a capture, or cannot be read."""


class CaptureFormatError(CaptureError, ValueError):
    """A file is not a capture, or a checkpoint is not valid."""


class CaptureReadError(CaptureError, OSError):
    """A capture cannot be read to its end: it has changed, is too short, or its file cannot be read."""


class LakeError(MsmqWireError):
    """A lake cannot be read or written: it is not a lake, or it is not as this program left it."""


class SessionError(MsmqWireError):
    """A session with another queue manager cannot deliver its messages."""


class StoreError(MsmqWireError):
    """The store of a queue manager cannot be used, or a transaction could not be written to it."""
