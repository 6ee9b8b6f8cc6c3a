"""``msmqwire replay``: the queues that the change notifications of a capture describe."""

from __future__ import annotations

import argparse
import datetime
from typing import TYPE_CHECKING, Any

from msmqwire.cli.arguments import input_file, moment
from msmqwire.cli.console import counted, optional, printable, report, say
from msmqwire.cli.enterprise import print_json

if TYPE_CHECKING:
    from msmqwire.notification.replay import Event, ToldQueue

__all__ = ["add", "run"]

_EPILOG = """\
Shown is what machines were told, not what they did: a capture does not say which messages a
receiver could authenticate, nor what the directory answered to it. What no notification says
is left out, or null in JSON. A machine is the address that the notifications went to.

exit status:
  0  every frame was read and every notification decoded
  1  wrong usage, or a file that cannot be read, or is no capture
  2  some notifications cannot be decoded or read, or some frames were damaged

examples:
  msmqwire replay session.pcap
  msmqwire replay *.pcapng --at 2024-03-04T08:02:00Z
  msmqwire replay session.pcap --json | jq 'select(.exists) | .pathname'
"""


def add(subcommands: Any) -> None:
    """Add the subcommand to the parser."""
    parser = subcommands.add_parser(
        "replay",
        help="rebuild the queues that machines were told to have",
        description="Rebuild the queues that machines were told to have, from the change notifications in captures.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="CAPTURE", help="a capture; - is standard input")
    parser.add_argument("--at", type=moment, metavar="TIME", help="as of this time; UTC unless it says otherwise")
    parser.add_argument("--json", action="store_true", help="JSON lines: an object for each queue")
    parser.add_argument("-q", "--quiet", action="store_true", help="no counts on standard error")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Replay; the exit status."""
    optional("pyarrow", "msmqwire replay")
    from msmqwire.capture import read_table
    from msmqwire.notification.replay import COLUMNS, replay

    files = [input_file(name) for name in options.files]
    with read_table(files, "notifications", columns=COLUMNS, strict=True) as reader:
        found = replay(reader, at=options.at)
    for queue in found.queues:
        if options.json:
            print_json(_as_json(queue))
        else:
            _show(queue)
    if not options.quiet:
        report(reader.stats, reader.rows, reader.faults)
        say(
            f"{counted(found.messages, 'notification message')}: {counted(len(found.queues), 'queue')}, "
            f"{found.disregarded:,} disregarded, {counted(found.machine_changes, 'change')} of machines"
        )
        if reader.encrypted:
            say(f"{counted(reader.encrypted, 'message')} encrypted, and not read")
    return 2 if reader.faults or reader.encrypted or reader.stats.damaged or reader.stats.problems else 0


_STATES = {True: "exists", False: "deleted", None: "not known to exist"}


def _show(told: ToldQueue) -> None:
    values = told.queue.attributes()
    name = values.get("pathname", values.get("identifier"))
    lines = [f"{told.machine}  {name}  {_STATES[told.exists]}"]
    if told.queue_manager is not None:
        lines.append(f"  queue_manager {told.queue_manager}")
    lines += [f"  {attribute} {_plain(value)}" for attribute, value in values.items() if value != name]
    for event in told.history:
        said = ", ".join(f"{attribute} {_plain(value)}" for attribute, value in event.told.items())
        outcome = event.operation if event.applied else f"{event.operation}, ignored"
        where = f"{event.file} frame {event.frame}, from {event.source}, {event.origin}"
        lines.append(f"  {_time(event.time)} {outcome}: {where}" + (f": {said}" if said else ""))
    for line in lines:
        print(printable(line))
    print(flush=True)


def _as_json(told: ToldQueue) -> dict[str, Any]:
    from msmqwire.notification.attributes import CREATED_QUEUE

    values = told.queue.attributes()
    return {
        "machine": told.machine,
        "queue_manager": told.queue_manager,
        "exists": told.exists,
        **{attribute: _plain(values.get(attribute)) for attribute in sorted(CREATED_QUEUE.values())},
        "history": [_event_as_json(event) for event in told.history],
    }


def _event_as_json(event: Event) -> dict[str, Any]:
    return {
        "operation": event.operation,
        "applied": event.applied,
        "time": _time(event.time),
        "file": event.file,
        "frame": event.frame,
        "source": event.source,
        "origin": event.origin,
        "told": {attribute: _plain(value) for attribute, value in event.told.items()},
    }


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _time(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{fraction:09}Z"
