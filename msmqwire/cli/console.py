"""Output for people: one-line errors, text without control characters, simple tables."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, TextIO

from msmqwire.errors import MsmqWireError, meant, printable, require, similar

#: Characters without a shape, which can hide or divide text, as the inside of a bracket expression:
#: soft hyphens, zero widths, byte order marks, invisible operators, tags.
INVISIBLE = (
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e007f"
)
_MOST_LINES = 100
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class CommandError(MsmqWireError):
    """A command cannot continue; the message is one line with the cause and the remedy."""


class OutputErrors:
    """Raises an OSError of a block as a CommandError that names the output; a broken pipe stays as it is."""

    def __init__(self, output: str) -> None:
        self._output = output

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            raise CommandError(f"cannot write {self._output}: {error.strerror}") from error


class StandardOutput:
    """Standard output of a command, for ``print`` and for the help of ``argparse``: its errors name it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write; a CommandError if that fails."""
        with OutputErrors("standard output"):
            return self._stream.write(text)

    def flush(self) -> None:
        """Flush; a CommandError if that fails."""
        with OutputErrors("standard output"):
            self._stream.flush()


class ClosedOutput(io.TextIOBase):
    """Standard output of a process that was started without one."""

    def write(self, text: str) -> int:
        """Raise a CommandError."""
        raise CommandError("standard output is closed")


def visible(text: str) -> str:
    """Return the text with escapes in place of characters without a shape, such as ``\\u200b``.

    >>> visible("pay\u200bment \U000e0041")
    'pay\\\\u200bment \\\\U000e0041'
    """
    return _INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)


def say(text: str) -> None:
    """Print one line to standard error."""
    # A closed standard error does not make a command fail
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(printable(text), file=sys.stderr, flush=True)


class FewLines:
    """Lines on standard error about what others cause, and may cause often: the first hundred, and then ``last``."""

    def __init__(self, last: str = "") -> None:
        self._last = last
        self._count = 0
        self._keys: set[object] = set()

    def say(self, text: str, key: object = None) -> None:
        """Print a line, unless there was one with its key, or a hundred others."""
        if self._count >= _MOST_LINES or (key is not None and key in self._keys):
            return
        self._keys.add(key)
        self._count += 1
        say(text)
        if self._count == _MOST_LINES and self._last:
            say(self._last)


def describe_error(error: OSError | MsmqWireError) -> str:
    """Return an error as one line; of an error of the system, the file first."""
    if isinstance(error, MsmqWireError):
        return str(error)
    # deltalake writes its errors for terminals
    reason = error.strerror or " ".join(_COLOUR.sub("", str(error)).split()) or type(error).__name__
    return reason if error.filename is None else f"{error.filename or repr(error.filename)}: {reason}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question that ends an error about an unknown word; empty if no known word is like it."""
    return meant(similar(word, known))


def optional(module: str, purpose: str) -> ModuleType:
    """Import a module of an optional dependency.

    Raises
    ------
    CommandError
        It is not installed; the message has the command that installs it.
    """
    try:
        return require(module, purpose)
    except ModuleNotFoundError as error:
        raise CommandError(str(error)) from None


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print columns, each as wide as its widest cell."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    print("\n".join(lines), flush=True)


def json_line(value: dict[str, Any]) -> str:
    """Return an object as one line of JSON, GUIDs as text, bytes in hexadecimal; it cannot control a terminal."""

    def text(value: object) -> str:
        return value.hex() if isinstance(value, bytes) else str(value)

    # JSON leaves DEL as it is, the one such character of ASCII
    return json.dumps(value, default=text, separators=(",", ":")).replace("\x7f", "\\u007f")


def print_json(value: dict[str, Any]) -> None:
    """Print an object as one line of JSON."""
    print(json_line(value), flush=True)
