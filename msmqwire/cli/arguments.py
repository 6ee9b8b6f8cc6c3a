"""Arguments that are more than text."""

from __future__ import annotations

import argparse
import math
import uuid

__all__ = ["column_names", "guid", "port", "ports", "seconds"]


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
