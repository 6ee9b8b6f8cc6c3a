"""Completion of the command line in shells, written by shtab."""

from __future__ import annotations

import argparse
from typing import Any

from msmqwire.cli.console import optional

_FILES = {"FILE", "OUT", "CAPTURE", "SOURCE"}
_FOLDERS = {"DIR"}


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script for a shell: subcommands, options, names in tables, files and folders."""
    shtab = optional("shtab", "msmqwire --completion")
    _mark_arguments(parser, shtab, "", _names())
    text: str = shtab.complete(parser, shell)
    return text


def _names() -> dict[tuple[str, str], list[str]]:
    """Return the names that an argument of a subcommand takes, by the subcommand and the argument."""
    optional("pyarrow", "msmqwire --completion")
    from msmqwire.capture import ALL_TABLES
    from msmqwire.cli.decode import ALL
    from msmqwire.insight.explain import names
    from msmqwire.insight.query_files import SECTIONS

    columns = dict.fromkeys(name for kind in ALL_TABLES.values() for name in kind.table.names)
    return {
        ("decode", "table"): [*ALL_TABLES, ALL],
        ("decode", "columns"): [*columns],
        ("summary", "table"): [*SECTIONS],
        ("explain", "codes"): names(),
    }


def _mark_arguments(
    parser: argparse.ArgumentParser, shtab: Any, subcommand: str, names: dict[tuple[str, str], list[str]]
) -> None:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                _mark_arguments(subparser, shtab, name, names)
        elif choices := names.get((subcommand, action.dest)):
            action.choices = choices
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
