"""Arguments that are more than text."""

from __future__ import annotations

import argparse
import datetime
import math
import os
import re
import sys
import uuid

from msmqwire.cli.console import CommandError

__all__ = ["column_names", "guid", "input_file", "port", "ports", "seconds", "time"]


_EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)
# Fractions stand apart, since datetime has no nanoseconds
_TIME = re.compile(r"(\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)?", re.ASCII)


def column_names(text: str) -> list[str]:
    """Names with commas between them, each once."""
    names = [name.strip() for name in text.split(",")]
    if len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(f"{text!r} names a column twice")
    return names


def ports(text: str) -> frozenset[int]:
    """Port numbers with commas between them."""
    numbers = frozenset(int(port) if port.strip().isdecimal() else -1 for port in text.split(","))
    if not all(0 < port < 65536 for port in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of ports from 1 to 65535, as in 1801,3527")
    return numbers


def port(text: str) -> int:
    """A port number."""
    number = int(text) if text.isdecimal() else -1
    if not 0 < number < 65536:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 1 to 65535")
    return number


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


def time(text: str) -> int:
    """A time as the tables show it, in nanoseconds since 1970; UTC unless it says otherwise."""
    match = _TIME.fullmatch(text)
    try:
        if match is None:
            raise ValueError(text)
        moment = datetime.datetime.fromisoformat(match[1])
        zone = datetime.datetime.fromisoformat(f"2000-01-01T00:00{match[3] or 'Z'}").tzinfo
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time, as in 2024-03-04T08:00:00Z") from None
    seconds = (moment.replace(tzinfo=zone) - datetime.datetime.fromtimestamp(0, datetime.UTC)) // datetime.timedelta(
        seconds=1
    )
    return seconds * 1_000_000_000 + int((match[2] or "").ljust(9, "0"))


def input_file(name: str, what: str = "capture") -> str:
    """A file to be read, unless it is plain already that it cannot be.

    Raises
    ------
    CommandError
        It is standard input and that is closed or a terminal, or it is a directory.
    """
    if name == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        if sys.stdin.isatty():
            raise CommandError(f"standard input is a terminal: pipe a {what} into msmqwire, or name a file")
    elif os.path.isdir(name):
        raise CommandError(f"{name} is a directory; name the files in it: {os.path.join(name, '*')}")
    return name
