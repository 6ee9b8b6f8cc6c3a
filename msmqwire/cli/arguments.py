"""Arguments that are more than text."""

from __future__ import annotations

import argparse
import math
import os
import sys
import uuid
from collections.abc import Sequence

from msmqwire.cli.console import CommandError

__all__ = ["column_names", "guid", "input_file", "input_files", "moment", "network", "port", "ports", "seconds"]


def column_names(text: str) -> list[str]:
    """Names with commas between them, each once."""
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} names a column twice")
    return names


def ports(text: str) -> frozenset[int]:
    """Port numbers with commas between them."""
    from msmqwire.capture.options import parse_ports

    try:
        return parse_ports(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def port(text: str) -> int:
    """A port number."""
    number = int(text) if text.isdecimal() else -1
    if not 0 < number < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return number


def network(text: str) -> str:
    """An address, or a network with the length of its prefix, as text."""
    from msmqwire.capture.options import parse_network

    try:
        return parse_network(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def moment(text: str) -> int:
    """A time of ISO 8601 as nanoseconds since 1970; without a zone it is UTC, as times are shown."""
    from msmqwire.capture.options import parse_time

    try:
        return parse_time(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def guid(text: str) -> uuid.UUID:
    """A GUID, with or without braces."""
    try:
        return uuid.UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a GUID, as in dcc51bf6-d4ad-4543-8739-71568e8f9128"
        ) from None


def seconds(text: str) -> float:
    """A time that is not over before it begins."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds greater than 0")
    return number


def input_files(names: Sequence[str], what: str = "capture") -> list[str]:
    """Files to be read one after the other, standard input once at most.

    Raises
    ------
    CommandError
        Standard input is among them twice, or one of them is as ``input_file`` has it.
    """
    if names.count("-") > 1:
        raise CommandError(f"- is given twice, but standard input has one {what} only: name files for the others")
    return [input_file(name, what) for name in names]


def input_file(name: str, what: str = "capture") -> str:
    """A file to be read, unless it is plain already that it cannot be.

    Raises
    ------
    CommandError
        It is standard input and that is closed or a terminal, or it is a directory, or on another machine.
    """
    if name == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        if sys.stdin.isatty():
            raise CommandError(f"standard input is a terminal: pipe a {what} into msmqwire, or name a file")
    elif "://" in name:
        raise CommandError(f"{name}: only files of this machine are read here; msmqwire pipeline and Spark read URIs")
    elif os.path.isdir(name):
        raise CommandError(f"{name} is a directory; name the files in it: {os.path.join(name, '*')}")
    return name
