"""Queue managers and sites of a directory, by the names that people type and read."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msmqwire.cli.console import CommandError

if TYPE_CHECKING:
    from msmqwire.directory import Directory, QueueManager

__all__ = ["find_machine", "site_names"]


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
    """The names of sites; the identifier of a site that the directory does not have."""
    from msmqwire.directory import Equal, Site

    sites = ((each, directory.read_directory(Site, [Equal("identifier", each)])) for each in identifiers)
    return [str(identifier) if site is None else site.name for identifier, site in sites]
