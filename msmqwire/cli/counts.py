"""The counts of a command on standard error: what became of every frame, payload and stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import say
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.capture import TablesReader

_PROBLEMS_SHOWN = 10
_HOSTS_SHOWN = 8


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
    lines += [f"{each.file}: at byte {each.offset:,}: {each.text}" for each in stats.problems[:_PROBLEMS_SHOWN]]
    if len(stats.problems) > _PROBLEMS_SHOWN:
        lines.append(f"... and {counted(len(stats.problems) - _PROBLEMS_SHOWN, 'more problem')}")
    if refused:
        lines.append(f"{counted(refused, 'file')} not read")
    if not any(rows.values()):
        lines += _unselected(reader)
    lost = stats.lost or stats.bytes_skipped or stats.problems
    return lines, 2 if lost or faults or encrypted or unread or refused else 0


def _unselected(reader: TablesReader) -> Iterator[str]:
    """What payloads the captures have, in a line, if the options select none of them.

    The captures are read a second time; standard input cannot be.
    """
    from dataclasses import replace

    import pyarrow.compute

    from msmqwire import capture
    from msmqwire.capture.options import time_text

    compute: Any = pyarrow.compute  # the stubs lack functions
    names: Any = reader.source
    options = reader.options
    selecting = {"--since": options.since, "--until": options.until, "--address": options.addresses}
    given = [option for option, value in selecting.items() if value not in (None, ())]
    if not given or "-" in names:
        return
    every = replace(options, since=None, until=None, addresses=(), columns=None)
    found = 0
    times: list[int] = []
    hosts: set[str] = set()
    read = replace(capture.table_options(reader.tables, every), columns=("time", "src", "dst"))
    with capture.open(names, read) as blocks:
        for block in blocks:
            rows: Any = block.capture.to_arrow()
            found += len(block)
            ends: Any = compute.min_max(rows["time"].cast("int64")).as_py()
            times += [time for time in ends.values() if time is not None]
            hosts.update(*(rows[name].unique().to_pylist() for name in ("src", "dst")))
    if found:
        first = f", from {time_text(min(times))} to {time_text(max(times))}" if times else ""
        more = f" and {len(hosts) - _HOSTS_SHOWN:,} others" if len(hosts) > _HOSTS_SHOWN else ""
        shown = ", ".join(sorted(hosts)[:_HOSTS_SHOWN])
        yield f"{', '.join(given)}: none of {counted(found, 'payload')} is selected{first}, between {shown}{more}"
