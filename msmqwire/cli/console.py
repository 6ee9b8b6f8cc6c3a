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
    "is_whole",
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


def report(
    stats: CaptureStats,
    rows: int | Mapping[str, int],
    faults: Mapping[str, int],
    *,
    encrypted: int = 0,
    unread: int = 0,
) -> None:
    """Say on standard error what became of every frame: read, decoded, faulty, damaged or lost.

    ``rows`` are those of one table, or of each by its name; ``encrypted`` and ``unread`` are the messages that the
    table of notifications has no rows for.
    """
    say(
        f"{counted(stats.frames, 'frame')}: {_counted_rows(rows)}, {stats.other:,} of other protocols, "
        f"{stats.damaged:,} damaged"
    )
    _report_streams(stats)
    _report_faults("payload", faults)
    if encrypted:
        say(f"{counted(encrypted, 'message')} to the notify queue encrypted, and so without rows")
    if unread:
        say(f"{counted(unread, 'message')} with faults; msmqwire decode --table messages tells which")
    if stats.cut_files:
        say(f"{counted(stats.cut_files, 'compressed file')} not read to the end")
    if stats.bytes_skipped:
        say(f"{counted(stats.bytes_skipped, 'byte')} of {stats.bytes_read:,} skipped")
    for file, offset, what in stats.problems[:_PROBLEMS_SHOWN]:
        say(f"{file}: at byte {offset:,}: {what}")
    if len(stats.problems) > _PROBLEMS_SHOWN:
        say(f"... and {counted(len(stats.problems) - _PROBLEMS_SHOWN, 'more problem')}")


def _counted_rows(rows: int | Mapping[str, int]) -> str:
    if isinstance(rows, int):
        return counted(rows, "row")
    first, *more = [(name, number) for name, number in rows.items() if number] or [("any table", 0)]
    return ", ".join([f"{counted(first[1], 'row')} of {first[0]}", *(f"{number:,} of {name}" for name, number in more)])


def _report_streams(stats: CaptureStats) -> None:
    """What TCP and IP took apart, and what of it could not be put together."""
    streams = stats.streams
    if stats.segments:
        losses = [
            counted(number, one, many)
            for number, one, many in (
                (streams.gaps, "gap", ""),
                (streams.missing, "byte missing", "bytes missing"),
                (streams.conflicts, "conflict", ""),
                (streams.skipped, "byte of no packet", "bytes of no packet"),
                (streams.unfinished, "packet cut short", "packets cut short"),
                (streams.evictions, "stream forgotten", "streams forgotten"),
            )
            if number
        ]
        said = f"{counted(stats.segments, 'segment')} of {counted(streams.streams, 'stream')}"
        say(": ".join([f"{said}, {counted(streams.packets, 'packet')}", *filter(None, [", ".join(losses)])]))
    if stats.fragments or stats.incomplete_datagrams or stats.fragment_conflicts:
        said = counted(stats.fragments, "fragment")
        if stats.incomplete_datagrams:
            said += f", {counted(stats.incomplete_datagrams, 'datagram')} incomplete"
        if stats.fragment_conflicts:
            said += f", {counted(stats.fragment_conflicts, 'conflict')}"
        say(said)


def is_whole(stats: CaptureStats) -> bool:
    """Whether nothing of a capture was lost on the way to its payloads."""
    return not (
        stats.damaged
        or stats.bytes_skipped
        or stats.incomplete_datagrams
        or stats.fragment_conflicts
        or stats.cut_files
        or stats.streams.problems
        or stats.problems
    )
