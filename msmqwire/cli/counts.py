"""The counts of a command on standard error: what became of every frame, payload and stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msmqwire.cli.console import say
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.capture import TablesReader

_PROBLEMS_SHOWN = 10


def report(reader: TablesReader, refused: int, *, quiet: bool, payloads: bool = True) -> int:
    """Print what became of every frame and payload, unless ``quiet``; the exit status of reading.

    ``refused`` is the number of files that are no captures. If ``payloads`` is false, payloads that cannot be decoded
    do not count.
    """
    lines, status = counts(reader, refused, payloads=payloads)
    if not quiet:
        say_all(lines)
    return status


def say_all(lines: Iterable[str]) -> None:
    """Print lines to standard error."""
    for line in lines:
        say(line)


def counts(reader: TablesReader, refused: int, *, payloads: bool = True) -> tuple[list[str], int]:
    """The lines and the exit status of ``report``."""
    stats, tables = reader.stats, reader.tables.values()
    faults: Counter[str] = sum((table.faults for table in tables if payloads), Counter())
    encrypted = sum(table.encrypted for table in tables if payloads)
    # The faults of messages that may be notifications are in messages, if that is read
    unread = sum(table.unread for table in tables if payloads and "messages" not in reader.tables)
    rows = {table.name: table.rows for table in tables}
    lines = [*stats.report(rows, faults, encrypted=encrypted, unread=unread)]
    lines += [f"{file}: at byte {offset:,}: {what}" for file, offset, what in stats.problems[:_PROBLEMS_SHOWN]]
    if len(stats.problems) > _PROBLEMS_SHOWN:
        lines.append(f"... and {counted(len(stats.problems) - _PROBLEMS_SHOWN, 'more problem')}")
    if refused:
        lines.append(f"{counted(refused, 'file')} not read")
    lost = stats.lost or stats.bytes_skipped or stats.problems
    return lines, 2 if lost or faults or encrypted or unread or refused else 0
