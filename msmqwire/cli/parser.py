"""The parser of the command line: options between files, errors of one line that say what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Sequence, Set
from functools import partial
from typing import Any, NoReturn

from msmqwire.cli.console import did_you_mean
from msmqwire.errors import printable

# In front of words after -- that begin with a hyphen: argparse reads a line twice, and then takes them for options.
# No argument has a U+0000
_OPERAND = "\0"
# The distance of --since -2h, which argparse takes for an option as well
_DISTANCE = re.compile(r"-\d+(\.\d+)?[dhms]")


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line with exit status 1."""

    def __init__(self, **options: Any) -> None:
        self._commands: Any = None
        super().__init__(**options, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def add_argument(self, *names: Any, **how: Any) -> argparse.Action:
        """Add an argument as argparse does; the error of another word than ``choices`` suggests one of them."""
        if "choices" in how:
            how["type"] = partial(_choice, how["choices"])
        return super().add_argument(*names, **how)

    def add_subparsers(self, **how: Any) -> Any:
        """Add actions as argparse does."""
        self._commands = super().add_subparsers(**how)
        return self._commands

    def error(self, message: str) -> NoReturn:
        """Print the error and end the process."""
        self.exit(1, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Return the options of a subcommand; they may stand between its files."""
        if self._commands is not None:  # actions have their own options
            if arguments and not arguments[0].startswith("-"):
                try:
                    _choice(self._commands.choices, arguments[0])
                except argparse.ArgumentTypeError as error:
                    self.error(str(error))
            options, rest = self.parse_known_args(arguments)
        else:
            options, rest = self.parse_known_intermixed_args(_marked(arguments))
        if rest:
            self.refuse(rest)
        for name, value in vars(options).items():
            setattr(options, name, _unmarked(value))
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
        words = _unmarked(words)
        unknown = [word.partition("=")[0] for word in words if word.startswith("-")] or words
        self.error(f"unknown: {' '.join(words)}{did_you_mean(unknown[0], self.known_options)}")


def _choice(known: Collection[str], word: str) -> str:
    if word not in known:
        raise argparse.ArgumentTypeError(f"no {word}; there is {', '.join(known)}{did_you_mean(word, known)}")
    return word


def _marked(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with options and their distances joined, and operands marked."""
    at = arguments.index("--") + 1 if "--" in arguments else len(arguments)
    words: list[str] = []
    for word in arguments[:at]:
        if words and words[-1].startswith("--") and _DISTANCE.fullmatch(word):
            words[-1] += f"={word}"
        else:
            words.append(word)
    return [*words, *(_OPERAND + word if word.startswith("-") else word for word in arguments[at:])]


def _unmarked(value: Any) -> Any:
    """Return the value of an argument without the marks of operands."""
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    return value.removeprefix(_OPERAND) if isinstance(value, str) else value
