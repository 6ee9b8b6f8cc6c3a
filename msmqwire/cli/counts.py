"""The counts of a command on standard error: what became of every frame, payload and stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msmqwire.cli.console import counted, say

if TYPE_CHECKING:
    from msmqwire.capture import CaptureStats, TablesReader

__all__ = ["report", "report_faults"]

_PROBLEMS_SHOWN = 10


def report_faults(what: str, faults: Mapping[str, int]) -> None:
    """Print how many payloads or messages had faults, by code."""
    if faults:
        each = ", ".join(f"{code} {count:,}" for code, count in sorted(faults.items(), key=lambda item: -item[1]))
        say(f"{counted(sum(faults.values()), what)} with faults: {each}")


def report(reader: TablesReader, refused: int, *, quiet: bool, payloads: bool = True) -> int:
    """Print what became of every frame and payload, unless ``quiet``; the exit status of reading.

    ``refused`` is the number of files that are no captures. If ``payloads`` is false, payloads that cannot be decoded
    do not count.
    """
    stats, tables = reader.stats, reader.tables.values()
    faults: Counter[str] = sum((table.faults for table in tables if payloads), Counter())
    encrypted = sum(table.encrypted for table in tables if payloads)
    # The faults of messages that may be notifications are in messages, if that is read
    unread = sum(table.unread for table in tables if payloads and "messages" not in reader.tables)
    if not quiet:
        _report_stats(stats, {table.name: table.rows for table in tables}, faults, encrypted, unread)
        if refused:
            say(f"{counted(refused, 'file')} not read")
    lost = stats.lost or stats.bytes_skipped or stats.problems
    return 2 if lost or faults or encrypted or unread or refused else 0


def _report_stats(
    stats: CaptureStats, rows: Mapping[str, int], faults: Mapping[str, int], encrypted: int, unread: int
) -> None:
    """``encrypted`` and ``unread`` count messages that the table ``notifications`` has no rows for."""
    say(
        f"{counted(stats.frames, 'frame')}: {_counted_rows(rows)}, {stats.other:,} of other protocols, "
        f"{stats.damaged:,} damaged"
    )
    for name, number in stats.unsupported_links.items():
        say(f"{counted(number, 'frame')} of link type {name}, not read")
    for name, number in stats.unsupported_encapsulations.items():
        say(f"{counted(number, 'frame')} in an encapsulation that is not read: {name}")
    _report_streams(stats)
    _report_fragments(stats)
    report_faults("payload", faults)
    if encrypted:
        say(f"{counted(encrypted, 'message')} to the notify queue encrypted, and so without rows")
    if unread:
        say(f"{counted(unread, 'message')} with faults; msmqwire decode --table messages shows them")
    if stats.invalid_times:
        say(f"{counted(stats.invalid_times, 'frame')} with a fraction of a second that is a second or more")
    if stats.cut_files:
        say(f"{counted(stats.cut_files, 'compressed file')} not read to the end")
    if stats.bytes_skipped:
        say(f"{counted(stats.bytes_skipped, 'byte')} of {stats.bytes_read:,} skipped")
    for file, offset, what in stats.problems[:_PROBLEMS_SHOWN]:
        say(f"{file}: at byte {offset:,}: {what}")
    if len(stats.problems) > _PROBLEMS_SHOWN:
        say(f"... and {counted(len(stats.problems) - _PROBLEMS_SHOWN, 'more problem')}")


def _counted_rows(rows: Mapping[str, int]) -> str:
    some = [(name, number) for name, number in rows.items() if number]
    first, *more = some or [(next(iter(rows)) if len(rows) == 1 else "any table", 0)]
    return ", ".join([f"{counted(first[1], 'row')} of {first[0]}", *(f"{number:,} of {name}" for name, number in more)])


def _report_streams(stats: CaptureStats) -> None:
    streams = stats.streams
    if not stats.segments:
        return
    losses = (
        (streams.gaps, "gap", ""),
        (streams.missing, "byte missing", "bytes missing"),
        (streams.conflicts, "conflict", ""),
        (streams.uncompared, "segment not compared", "segments not compared"),
        (streams.skipped, "byte of no packet", "bytes of no packet"),
        (streams.unfinished, "packet truncated", "packets truncated"),
        (streams.evictions, "stream forgotten", "streams forgotten"),
    )
    found = ", ".join(counted(number, one, many) for number, one, many in losses if number)
    text = f"{counted(stats.segments, 'segment')} of {counted(streams.streams, 'stream')}"
    say(f"{text}, {counted(streams.packets, 'packet')}" + (f": {found}" if found else ""))


def _report_fragments(stats: CaptureStats) -> None:
    if not (stats.fragments or stats.incomplete_datagrams or stats.fragment_conflicts):
        return
    text = counted(stats.fragments, "fragment")
    if stats.incomplete_datagrams:
        text += f", {counted(stats.incomplete_datagrams, 'datagram')} incomplete"
    if stats.fragment_conflicts:
        text += f", {counted(stats.fragment_conflicts, 'conflict')}"
    say(text)
