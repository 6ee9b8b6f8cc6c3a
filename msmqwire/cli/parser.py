"""The parser of the command line: options between files, errors of one line that say what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence, Set
from typing import Any, NoReturn

from msmqwire.cli.console import did_you_mean
from msmqwire.errors import printable

# In front of words after --: argparse forgets which these were, as it reads a line twice. No argument has a U+0000
_OPERAND = "\0"


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with exit status 1."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
        # Words that are values and no options: numbers, and the distances of --since -2h
        self._negative_number_matcher = re.compile(r"-\d+(\.\d+)?[dhms]?$")

    def error(self, message: str) -> NoReturn:
        """Print the error and end the process."""
        self.exit(1, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """The options of a subcommand; they may stand between its files."""
        if self._subparsers is not None:  # actions have their own options
            options, rest = self.parse_known_args(arguments)
        else:
            options, rest = self.parse_known_intermixed_args(_marked(arguments))
        if rest:
            self.refuse(rest)
        return options

    def describe(self, help: str | None) -> None:
        """Take the description and the epilog from a docstring: its first line, and the rest."""
        self.description, _, self.epilog = (help or "").partition("\n\n")

    @property
    def known_options(self) -> Set[str]:
        """The options as they are written."""
        return self._option_string_actions.keys()

    def refuse(self, words: Sequence[str]) -> NoReturn:
        """Say that words are no options."""
        words = [word.removeprefix(_OPERAND) for word in words]
        unknown = [word.partition("=")[0] for word in words if word.startswith("-")] or words
        self.error(f"unknown: {' '.join(words)}{did_you_mean(unknown[0], self.known_options)}")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        return super()._get_value(action, arg_string.removeprefix(_OPERAND))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"no {value}; there is {', '.join(choices)}{did_you_mean(str(value), choices)}"
            )


def _marked(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the words after ``--`` marked as operands."""
    at = arguments.index("--") + 1 if "--" in arguments else len(arguments)
    return [*arguments[:at], *(_OPERAND + word for word in arguments[at:])]
