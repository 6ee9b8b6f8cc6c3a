"""Arguments that are more than text."""

from __future__ import annotations

import argparse

__all__ = ["column_names", "ports"]


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
