"""Rebuild the queues that change notifications describe, from captures or a lake.

It shows the notifications that each machine received, not what the machine did: a capture does not
have the results of authentication, nor the answers of the directory. Attributes that no notification
has are left out, or null in JSON. A machine is the address that received the notifications.

--directory completes notifications of version 2 from the directory and compares each queue with it;
queues of the directory without notifications come last.

Notifications are sorted in memory, about 600 bytes for each change.

exit status:
  0  every frame was read and every notification decoded
  1  wrong usage, or a file that cannot be read, or is no capture
  2  notifications cannot be decoded or read, frames were malformed, or one of several files is no capture

examples:
  msmqwire replay session.pcap
  msmqwire replay *.pcapng --at 2024-03-04T08:02:00Z
  msmqwire replay session.pcap -T json | jq 'select(.exists) | .pathname'
  msmqwire replay --lake lake --directory enterprise.toml -T json | jq 'select(.directory == "differs")'
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import add_copies, add_format, add_ports, add_quiet, moment, read_options
from msmqwire.cli.console import optional, print_json, say
from msmqwire.cli.counts import report
from msmqwire.cli.enterprise import add_directory, open_directory
from msmqwire.cli.inputs import Inputs, Rows, add_captures_or_lake
from msmqwire.errors import counted, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from msmqwire.directory import Directory, Queue
    from msmqwire.notification.comparison import Comparison
    from msmqwire.notification.replay import Event, NotifiedQueue, Replay


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    add_captures_or_lake(parser)
    add_ports(parser)
    add_copies(parser)
    parser.add_argument(
        "--at", type=moment, metavar="TIME", help="only notifications until this time; UTC without a time zone"
    )
    add_directory(parser, note=", to compare with")
    add_format(parser, ("table", "json"), "table")
    add_quiet(parser)
    # All rows are read
    parser.set_defaults(jobs=1)


def run(options: argparse.Namespace) -> int:
    """Replay; the exit status."""
    optional("pyarrow", "msmqwire replay")
    from msmqwire.notification.replay import COLUMNS, replay

    inputs = Inputs(options, "notifications")
    at = read_options(argparse.Namespace(until=options.at), inputs.captures).until
    directory = None if options.directory is None else open_directory(options.directory)
    with inputs.rows({"notifications": (*COLUMNS, "stream_offset")}) as (rows, counts):
        found = replay(_in_order(rows) if options.lake else _batches(rows), at=at, directory=directory)
    verdicts = _print(options, found.queues, directory)
    status = report(*counts(), quiet=options.quiet)
    if not options.quiet:
        say(
            f"{counted(found.messages, 'notification message')}: {counted(len(found.queues), 'queue')}, "
            f"{_disregarded(found)}, {counted(found.machine_changes, 'change')} of machines"
        )
        _say_verdicts(verdicts)
    # What a receiver cannot decode may have violations in place of faults
    return 2 if {"malformed", "version"} & found.rules.keys() else status


def _batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    return (batch for _, batch in rows)


def _in_order(rows: Rows) -> list[pa.RecordBatch]:
    import pyarrow as pa

    from msmqwire.notification.replay import in_order

    batches = list(_batches(rows))
    return in_order(pa.Table.from_batches(batches)).to_batches() if batches else []


def _disregarded(found: Replay) -> str:
    by_rule = ", ".join(f"{count:,} {rule}" for rule, count in found.rules.items())
    return f"{found.disregarded:,} disregarded" + (f" ({by_rule})" if by_rule else "")


def _print(options: argparse.Namespace, queues: Iterable[NotifiedQueue], directory: Directory | None) -> Counter[str]:
    """Print queues; the number of each verdict, if they are compared with a directory."""
    verdicts: Counter[str] = Counter()
    for notified, comparison in _compared(queues, directory):
        if comparison is not None:
            verdicts[comparison.verdict] += 1
        if options.format == "json":
            print_json(_as_json(notified, comparison))
        else:
            _show(notified, comparison)
    return verdicts


def _compared(
    queues: Iterable[NotifiedQueue], directory: Directory | None
) -> Iterator[tuple[NotifiedQueue | None, Comparison | None]]:
    from msmqwire.notification.comparison import compare

    if directory is None:
        yield from ((notified, None) for notified in queues)
    else:
        yield from ((each.notified, each) for each in compare(queues, directory))


def _say_verdicts(verdicts: Counter[str]) -> None:
    from msmqwire.notification.comparison import Verdict

    if verdicts:
        counts = ", ".join(f"{each.replace('_', ' ')} {verdicts[each]:,}" for each in Verdict if verdicts[each])
        say(f"compared with the directory: {counts}")


_STATES = {True: "exists", False: "deleted", None: "not known to exist"}


def _show(notified: NotifiedQueue | None, comparison: Comparison | None) -> None:
    lines = [] if notified is None else list(_lines(notified))
    if comparison is not None:
        lines += _comparison_lines(comparison)
    for line in lines:
        print(printable(line))
    print(flush=True)


def _lines(notified: NotifiedQueue) -> Iterator[str]:
    from msmqwire.capture.options import time_text

    values = notified.queue.attributes()
    name = _name(notified.queue)
    yield f"{notified.machine}  {name}  {_STATES[notified.exists]}"
    if notified.queue_manager is not None:
        yield f"  queue_manager {notified.queue_manager}"
    yield from (f"  {attribute} {_plain(value)}" for attribute, value in values.items() if value != name)
    for event in notified.history:
        outcome = event.operation if event.applied else f"{event.operation}, ignored ({event.rule})"
        where = f"{event.file} frame {event.frame}, from {event.source}, {event.origin}"
        when = "at an unknown time" if event.time is None else time_text(event.time)
        yield f"  {when} {outcome}: {where}" + (f": {_listed(event.notified)}" if event.notified else "")


def _comparison_lines(comparison: Comparison) -> Iterator[str]:
    if comparison.notified is None:
        assert comparison.held is not None
        yield f"{_name(comparison.held)}  no notification"
        yield f"  identifier {comparison.held.identifier}"
        return
    said = {
        "agrees": "agrees",
        "differs": f"has {_listed(comparison.differences)}",
        "absent": "does not have it",
        "not_deleted": "has it",
    }
    yield f"  directory {said[comparison.verdict]}"


def _name(queue: Queue) -> Any:
    values = queue.attributes()
    return values.get("pathname", values.get("identifier"))


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{attribute} {_plain(value)}" for attribute, value in values.items())


def _as_json(notified: NotifiedQueue | None, comparison: Comparison | None) -> dict[str, Any]:
    from msmqwire.notification.carried_attributes import NOTIFIED

    queue = notified.queue if notified is not None else comparison.held if comparison is not None else None
    values = {} if queue is None else queue.attributes()
    found = {
        "machine": None if notified is None else notified.machine,
        "queue_manager": None if notified is None else notified.queue_manager,
        "exists": None if notified is None else notified.exists,
        **{attribute: values.get(attribute) for attribute in sorted(NOTIFIED)},
        "history": [] if notified is None else [_event_as_json(event) for event in notified.history],
    }
    if comparison is not None:
        found["directory"] = comparison.verdict
        found["differences"] = dict(comparison.differences)
    return found


def _event_as_json(event: Event) -> dict[str, Any]:
    from msmqwire.capture.options import time_text

    return {
        "operation": event.operation,
        "applied": event.applied,
        "rule": event.rule,
        "time": None if event.time is None else time_text(event.time),
        "file": event.file,
        "frame": event.frame,
        "source": event.source,
        "origin": event.origin,
        "notified": dict(event.notified),
    }


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
