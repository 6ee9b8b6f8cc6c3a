"""The counts of a command on standard error: what became of every frame, payload and stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import say
from msmqwire.errors import counted

if TYPE_CHECKING:
    from msmqwire.capture import TablesReader
    from msmqwire.capture.stats import FrameCounts

_PROBLEMS_SHOWN = 10
_HOSTS_SHOWN = 8


def report(lines: Iterable[str], status: int, *, quiet: bool) -> int:
    """Print lines to standard error, unless ``quiet``; the exit status."""
    for line in () if quiet else lines:
        say(line)
    return status


def counts(reader: TablesReader, refused: int, *, payloads: bool = True) -> tuple[list[str], int]:
    """Return what became of every frame and payload of captures, in lines, and the exit status of reading.

    ``refused`` is the number of files that are no captures. If ``payloads`` is false, payloads that cannot be decoded
    do not count.
    """
    stats, tables = reader.stats, reader.tables.values()
    rows = {table.name: table.rows for table in tables}
    faults: Counter[str] = sum((table.faults for table in tables), Counter())
    encrypted, unread = sum(table.encrypted for table in tables), sum(table.unread for table in tables)
    problems = [f"{each.file}: at byte {each.offset:,}: {each.text}" for each in stats.problems]
    lines, status = described(stats, rows, faults, encrypted, unread, problems, payloads=payloads)
    if refused:
        lines.append(f"{counted(refused, 'file')} not read")
    if not any(rows.values()):
        lines += [*_unselected(reader), *_ports_without_frames(reader)]
    return lines, 2 if refused else status


def described(
    stats: FrameCounts,
    rows: Mapping[str, int],
    faults: Mapping[str, int],
    encrypted: int,
    unread: int,
    problems: Sequence[str],
    *,
    payloads: bool,
) -> tuple[list[str], int]:
    """Return the lines and the exit status of counts, as of ``counts``."""
    if not payloads:
        faults, encrypted, unread = {}, 0, 0
    elif "messages" in rows:  # which has the faults of messages that may be notifications
        unread = 0
    lines = [*stats.report(rows, faults, encrypted=encrypted, unread=unread), *problems[:_PROBLEMS_SHOWN]]
    if len(problems) > _PROBLEMS_SHOWN:
        lines.append(f"... and {counted(len(problems) - _PROBLEMS_SHOWN, 'more problem')}")
    lost = stats.lost or stats.bytes_skipped or stats.nothing_read or problems
    return lines, 2 if lost or faults or encrypted or unread else 0


def _unselected(reader: TablesReader) -> Iterator[str]:
    """Yield what payloads the captures have, in a line, if the options select none of them.

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


def _ports_without_frames(reader: TablesReader) -> Iterator[str]:
    """Yield which ports were read, in a line, if no frame has one of them; not where other options select frames."""
    from msmqwire import capture
    from msmqwire.capture.options import ports_text

    stats, options = reader.stats, reader.options
    selects = options.addresses or options.since is not None or options.until is not None
    if selects or not stats.other or stats.other < stats.frames:
        return
    ports = capture.table_options(reader.tables, options).ports or {}
    read = "; ".join(f"{name.upper()} {ports_text(some)}" for name, some in ports.items() if some)
    yield f"no frame has a port that is read ({read}): --ports reads others"
