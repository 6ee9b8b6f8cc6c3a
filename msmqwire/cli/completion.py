"""Completion of the command line in shells, written by shtab."""

from __future__ import annotations

import argparse
from typing import Any

from msmqwire.cli.console import optional

_FILES = {"FILE", "OUT", "CAPTURE", "SOURCE"}
_FOLDERS = {"DIR"}


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The completion script for a shell: subcommands, options, choices, files and folders."""
    shtab = optional("shtab", "msmqwire --completion")
    _mark_files(parser, shtab)
    text: str = shtab.complete(parser, shell)
    return text


def _mark_files(parser: argparse.ArgumentParser, shtab: Any) -> None:
    for action in parser._actions:
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
        elif isinstance(action, argparse._SubParsersAction):
            for subparser in action.choices.values():
                _mark_files(subparser, shtab)
