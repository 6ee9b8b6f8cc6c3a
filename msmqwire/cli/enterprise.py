"""What commands that look into a directory share: finding machines in it, and lines for people."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError, printable

if TYPE_CHECKING:
    from msmqwire.directory import Directory, QueueManager

__all__ = ["find_machine", "print_json", "print_table", "site_names"]


def find_machine(directory: Directory, text: str) -> QueueManager:
    """The queue manager with this ComputerName or Identifier.

    Raises
    ------
    CommandError
        The directory has none, or several of that name.
    """
    from msmqwire.directory import Equal, QueueManager

    wanted = Equal("computer_name", text)
    with contextlib.suppress(ValueError):
        wanted = Equal("identifier", uuid.UUID(text))
    found = list(directory.read_all(QueueManager, [wanted]))
    if not found:
        what = "ComputerName" if wanted.attribute == "computer_name" else "Identifier"
        raise CommandError(f"no QueueManager in the directory has the {what} {text}")
    if len(found) > 1:
        raise CommandError(f"{len(found)} QueueManagers have the ComputerName {text}: name one by its Identifier")
    return found[0]


def site_names(directory: Directory, identifiers: Iterable[uuid.UUID]) -> list[str]:
    """The names of sites; of one that is not in the directory, the identifier."""
    from msmqwire.directory import Equal, Site

    sites = ((each, directory.read_directory(Site, [Equal("identifier", each)])) for each in identifiers)
    return [str(identifier) if site is None else site.name for identifier, site in sites]


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print columns, each as wide as its widest cell."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
    print("\n".join(lines), flush=True)


def print_json(value: dict[str, Any]) -> None:
    """Print an object as one line of JSON, GUIDs as text."""
    print(json.dumps(value, default=str), flush=True)
