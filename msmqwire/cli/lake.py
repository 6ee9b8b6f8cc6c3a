"""Delete rows of a lake, merge its small files, delete files that it does not need, list its runs, check or repair it.

LAKE is the folder or the URI of a lake that msmqwire pipeline has made. Credentials of a URI
come from the environment, as deltalake reads it: AWS_ACCESS_KEY_ID and so on. Runs of the
pipeline may write to the lake meanwhile.

delete deletes rows that meet all given conditions. They do not come back: not by another run, by
pipeline --overwrite, when their capture grows, or by repair. The files that had them go with vacuum.

exit status:
  0  done; of check: the lake is sound
  1  wrong usage, or no lake
  2  of check: a log or a file is missing or malformed, or the rows of a capture are not those in
     accounting, and no other writer has deleted or added them

examples:
  msmqwire lake optimize lake
  msmqwire lake vacuum lake --hours 24 --dry-run
  msmqwire lake history s3://captures/lake
  msmqwire lake check lake
  msmqwire lake repair lake --dry-run
  msmqwire lake restore lake --run 12
  msmqwire lake delete lake --before 2024-03-01 --yes
  msmqwire lake delete lake --address 10.20.1.9 --dry-run
  msmqwire lake delete lake --where "label = 'payroll'"
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from datetime import date

from msmqwire.cli.arguments import add_addresses, hours
from msmqwire.cli.console import CommandError, optional, say
from msmqwire.errors import counted, printable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the actions to the parser."""
    actions = parser.add_subparsers(required=True, metavar="ACTION", dest="action")
    for act, name, text in (
        (_optimize, "optimize", "merge the small files of every table into large ones"),
        (_vacuum, "vacuum", "delete the files that no table has had for some time"),
        (_history, "history", "list the runs, the last one first"),
        (_check, "check", "compare the files and rows of every table with accounting"),
        (_delete, "delete", "delete rows by day, capture, address or condition"),
        (_restore, "restore", "take all tables back to their state after a run"),
        (_repair, "repair", "remove rows that are there twice; mark captures that lack rows to be read again"),
    ):
        action = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        action.set_defaults(act=act)
        action.add_argument("lake", metavar="LAKE", help="the folder or URI of the lake")
        if name == "vacuum":
            action.add_argument(
                "--hours", type=hours, default=168, metavar="N", help="how long to keep them (default: 168, a week)"
            )
        if name == "delete":
            _add_conditions(action)
        if name == "restore":
            action.add_argument("--run", dest="number", type=int, required=True, metavar="N", help="as history has it")
        if name in ("vacuum", "delete", "restore", "repair"):
            help = "change nothing, only say what would be done"
            action.add_argument("-n", "--dry-run", action="store_true", help=help)
        if name in ("delete", "restore", "repair"):
            action.add_argument("-y", "--yes", action="store_true", help="do not ask")


def _add_conditions(action: argparse.ArgumentParser) -> None:
    action.add_argument("--before", type=_day, metavar="DAY", help="rows of days before 2024-03-01, in UTC")
    action.add_argument(
        "--capture",
        dest="captures",
        action="append",
        metavar="FILE",
        help="rows of this capture, by name or fingerprint, as accounting has it; may be repeated",
    )
    add_addresses(action, "rows")
    action.add_argument(
        "--where",
        metavar="SQL",
        help="rows that meet a condition in DuckDB's SQL; notifications and faults of a message go with it",
    )


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a day, as in 2024-03-01") from None


def run(options: argparse.Namespace) -> int:
    """Look after a lake; the exit status."""
    optional("deltalake", "msmqwire lake")
    status: int = options.act(options)
    return status


def _optimize(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    for table, (before, after) in lake.optimize(options.lake).items():
        print(f"{table}: {counted(before, 'file')}, now {after:,}")
    return 0


def _vacuum(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    gone = lake.vacuum(options.lake, hours=options.hours, dry_run=options.dry_run)
    for name in gone:
        print(printable(name))
    say(f"{counted(len(gone), 'file')} {'to delete' if options.dry_run else 'deleted'}")
    return 0


def _history(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    for one in lake.history(options.lake):
        print(
            f"{one.number}  {one.committed:%Y-%m-%dT%H:%M:%SZ}  {counted(one.captures, 'capture')}, "
            f"{counted(one.rows, 'row')}" + (f", {counted(one.deleted, 'row')} deleted" if one.deleted else "")
        )
    return 0


def _check(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    problems = lake.check(options.lake)
    with suppress(lake.LakeError):  # among the problems
        for act in lake.acts(options.lake):
            print(printable(act))
    for problem in problems:
        print(printable(problem))
    say(f"{counted(len(problems), 'problem')} found")
    return 2 if problems else 0


def _delete(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    conditions = {name: getattr(options, name) for name in ("before", "captures", "addresses", "where")}
    try:
        counts = lake.delete(options.lake, **conditions, dry_run=True)
    except ValueError:
        raise CommandError("name the rows to delete: --before, --capture, --address or --where") from None
    if options.yes and not options.dry_run:
        counts = lake.delete(options.lake, **conditions)
    for table, count in counts.items():
        if count:
            print(f"{table}: {counted(count, 'row')}")
    rows = counted(sum(counts.values()), "row")
    if options.dry_run:
        say(f"{rows} to delete")
        return 0
    if not options.yes and any(counts.values()):
        _ask(f"Delete {rows}?")
        rows = counted(sum(lake.delete(options.lake, **conditions).values()), "row")
    say(f"{rows} deleted; msmqwire lake vacuum deletes the files that have them")
    return 0


def _ask(question: str) -> None:
    """Ask on a terminal; a CommandError unless the answer is yes."""
    if not sys.stdin.isatty():
        raise CommandError("nothing is changed: give --yes where no terminal can ask")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise CommandError("nothing is changed")


def _restore(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    try:
        done = lake.restore(options.lake, options.number, dry_run=True)
    except ValueError as error:
        raise CommandError(str(error)) from None
    for line in done:
        print(printable(line))
    if done and not options.dry_run:
        if not options.yes:
            _ask(f"Restore run {options.number}?")
        done = lake.restore(options.lake, options.number)
    say(f"{counted(len(done), 'change')} {'to make' if options.dry_run else 'made'}")
    return 0


def _repair(options: argparse.Namespace) -> int:
    from msmqwire.spark import lake

    done = lake.repair(options.lake, dry_run=True)
    for line in done:
        print(printable(line))
    if done and not options.dry_run:
        # To remove a row that is there twice loses nothing
        if not options.yes and not all(line.endswith(": removed") for line in done):
            _ask(f"Do {counted(len(done), 'repair')}?")
        done = lake.repair(options.lake)
    say(f"{counted(len(done), 'repair')} {'to do' if options.dry_run else 'done'}")
    return 0
