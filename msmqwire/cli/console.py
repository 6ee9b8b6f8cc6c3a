"""What people read: one-line errors, text made safe for a terminal, the last words of a command."""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from msmqwire.errors import MsmqWireError

if TYPE_CHECKING:
    from msmqwire.capture import CaptureStats

__all__ = [
    "UNPRINTABLE",
    "CommandError",
    "counted",
    "describe_os_error",
    "optional",
    "printable",
    "report",
    "report_bodies",
    "say",
]

#: What a terminal may obey instead of show, as the inside of a bracket expression: controls of C0 and C1, line and
#: paragraph separators, marks that turn the direction of writing.
UNPRINTABLE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UNPRINTABLE = re.compile(f"[{UNPRINTABLE}\ud800-\udfff]")

_PROBLEMS_SHOWN = 10


class CommandError(MsmqWireError):
    """A command cannot go on; the message says why and what to do, in one line."""


def printable(text: str) -> str:
    """The text with everything that could steer a terminal replaced by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def say(text: str) -> None:
    """Print one line to standard error."""
    # That nobody reads it does not make a command fail.
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(printable(text), file=sys.stderr, flush=True)


def describe_os_error(error: OSError) -> str:
    """An error of the system as a sentence, the file first."""
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename else reason


def optional(module: str, purpose: str, extra: str = "tables") -> ModuleType:
    """Import a module that belongs to an extra.

    Raises
    ------
    CommandError
        It is not installed; the message has the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise CommandError(
            f"{purpose} needs {package}, which is not installed: pip install 'msmqwire[{extra}]'"
        ) from None


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts, in the singular or the plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def report_bodies(messages: int, rows: int, faults: Mapping[str, int]) -> None:
    """Say on standard error what became of every message body."""
    say(f"{counted(messages, 'message')}: {counted(rows, 'row')}")
    _report_faults("message", faults)


def _report_faults(what: str, faults: Mapping[str, int]) -> None:
    if faults:
        each = ", ".join(f"{code} {count:,}" for code, count in sorted(faults.items(), key=lambda item: -item[1]))
        say(f"{counted(sum(faults.values()), what)} with faults: {each}")


def report(stats: CaptureStats, rows: int, faults: Mapping[str, int]) -> None:
    """Say on standard error what became of every frame: read, decoded, faulty, damaged or lost."""
    say(
        f"{counted(stats.frames, 'frame')}: {counted(rows, 'row')}, {stats.other:,} of other protocols, "
        f"{stats.damaged:,} damaged"
    )
    _report_faults("payload", faults)
    if stats.bytes_skipped:
        say(f"{counted(stats.bytes_skipped, 'byte')} of {stats.bytes_read:,} skipped")
    for file, offset, what in stats.problems[:_PROBLEMS_SHOWN]:
        say(f"{file}: at byte {offset:,}: {what}")
    if len(stats.problems) > _PROBLEMS_SHOWN:
        say(f"... and {counted(len(stats.problems) - _PROBLEMS_SHOWN, 'more problem')}")
