"""The exceptions of the package: one family, so that a caller can catch ``MsmqWireError`` and mean all of them."""

from __future__ import annotations

__all__ = [
    "CaptureError",
    "DecodeError",
    "DirectoryError",
    "DirectoryNotConnected",
    "EncodeError",
    "FormatNameError",
    "MsmqWireError",
    "RoutingError",
]

_SHOWN_CHARACTERS = 40  # of a name, before the first wrong one


class MsmqWireError(Exception):
    """Base of every error that this package raises on its own account."""


class DecodeError(MsmqWireError):
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
    """

    def __init__(self, code: str, field: str, offset: int, detail: str = "") -> None:
        super().__init__(code, field, offset, detail)
        self.code = code
        self.field = field
        self.offset = offset
        self.detail = detail

    def __str__(self) -> str:
        place = f"{self.code}: {self.field} at byte {self.offset}"
        return f"{place}: {self.detail}" if self.detail else place


class EncodeError(MsmqWireError):
    """A packet cannot be written because the specification forbids it.

    Attributes
    ----------
    field : str
        The field at fault, by its name in the specification.
    reason : str
        What the specification asks for and what was given.
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


class FormatNameError(MsmqWireError):
    """A format name or path name does not follow its grammar.

    Attributes
    ----------
    code : str
        What is wrong, as in faults: ``"truncated"``, ``"bad_type"``, ``"bad_text"``, ``"bad_value"``, ``"too_large"``.
    field : str
        The rule at fault, by its name in the specification, e.g. ``"QueueGuid"``.
    offset : int
        The first wrong character of ``text``; ``len(text)`` where the name is truncated.
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
    # Names are full of backslashes, and people type them once
    return repr(text).replace("\\\\", "\\")


class RoutingError(MsmqWireError):
    """No route can be computed from what the directory says."""


class DirectoryError(MsmqWireError):
    """The directory cannot be read, or answers what cannot be."""


class DirectoryNotConnected(DirectoryError):  # noqa: N818 - the name of the specification
    """The directory cannot be reached, or stopped answering."""


class CaptureError(MsmqWireError):
    """A file is not a capture, or cannot be read as one."""
