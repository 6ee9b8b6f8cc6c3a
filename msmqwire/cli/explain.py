"""Explain codes of faults, violations, columns and PROPIDs, with their sections.

CODE is the code of a fault, a violation, a column, a field that faults name, a table, a PROPID (its
name, with or without PROPID_, or its number), a message class (its name, or its number in hexadecimal)
or a rule of msmqwire detect. Rules, and the tables of msmqwire summary, need pyarrow; other names need no extra.

exit status:
  0  explained
  1  no such name

examples:
  msmqwire explain bad_terminator
  msmqwire explain trailing_bytes mask_count_mismatch
  msmqwire explain PROPID_Q_QUOTA
  msmqwire explain 105 -T json
  msmqwire explain 0x8002
"""

from __future__ import annotations

import argparse
import dataclasses

from msmqwire.cli.arguments import add_format
from msmqwire.cli.console import CommandError, did_you_mean, print_json
from msmqwire.errors import printable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser."""
    parser.add_argument("codes", nargs="+", metavar="CODE", help="a name in the tables, or a number")
    add_format(parser, ("table", "json"), "table")


def run(options: argparse.Namespace) -> int:
    """Explain; the exit status."""
    from msmqwire.insight.explain import explain, names

    for code in options.codes:
        found = explain(code)
        if not found:
            raise CommandError(f"{printable(code)}: no such name{did_you_mean(code, names())}")
        for each in found:
            if options.format == "json":
                print_json(dataclasses.asdict(each))
                continue
            where = f" ({each.where})" if each.where else ""
            print(f"{each.kind} {each.name}{where}: {each.sentence}" + (f" ({each.section})" if each.section else ""))
    return 0
