"""The directory that a command reads, and its queue managers by the names that people type and read."""

from __future__ import annotations

import argparse
import os
import re
from typing import TYPE_CHECKING, Any

from msmqwire.cli.console import CommandError
from msmqwire.errors import DirectoryError, DirectoryNotConnected

if TYPE_CHECKING:
    from uuid import UUID

    from msmqwire.directory import Directory, QueueManager

_SOURCES = "a file of TOML or JSON, or an Active Directory as ldap://HOST or ldaps://HOST"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # not a drive of Windows

_CREDENTIALS = ", in the environment as MSMQWIRE_LDAP_USER and MSMQWIRE_LDAP_PASSWORD"

_LDAP_HELP = """\
environment, for a directory in LDAP:
  MSMQWIRE_LDAP_USER, MSMQWIRE_LDAP_PASSWORD  a simple bind; over ldap: only after StartTLS
  MSMQWIRE_LDAP_BASE                          the root domain, if the server does not name it
  MSMQWIRE_LDAP_CA_FILE                       the authorities to trust, instead of the system's
"""


def add_directory(parser: argparse.ArgumentParser, name: str = "--directory", *, note: str = "", **how: Any) -> None:
    """Add the option or the argument that names a directory; the help ends with what a directory in LDAP needs."""
    parser.add_argument(name, metavar="SOURCE", help=f"an enterprise: {_SOURCES}{note}", **how)
    add_ldap_help(parser)


def add_ldap_help(parser: argparse.ArgumentParser) -> None:
    """End the help of a command with the environment of a directory in LDAP."""
    parser.epilog = f"{(parser.epilog or '').rstrip()}\n\n{_LDAP_HELP}"


def is_url(name: str) -> bool:
    """Return True if the name of a directory is a URL of LDAP.

    Raises
    ------
    CommandError
        It is empty, standard input, or another URL.
    """
    if not name:
        raise CommandError(f"the name of the directory is empty: name {_SOURCES}")
    if name == "-":
        raise CommandError(f"a directory is not read from standard input; name {_SOURCES}")
    scheme = _URL.match(name)
    if scheme is not None and scheme[1].lower() not in ("ldap", "ldaps"):
        # Not the URL, which may hold a password
        raise CommandError(f"no directory is read from {scheme[1]}://; name {_SOURCES}")
    return scheme is not None


def open_directory(name: str) -> Directory:
    """Return the directory in a file or at an LDAP URL.

    Raises
    ------
    OSError, DirectoryError
        The file cannot be read, or is not valid.
    CommandError
        The name is empty, the URL is not valid, or ldap3 is not installed.
    """
    from msmqwire.directory import LdapDirectory, MemoryDirectory

    if not is_url(name):
        return MemoryDirectory.load(name)
    # A variable without a value is not set, as in files of an environment that name all
    names = ("user", "password", "base", "ca_file")
    given = {key: os.environ.get(f"MSMQWIRE_LDAP_{key.upper()}") or None for key in names}
    try:
        return LdapDirectory(name, **given)  # type: ignore[arg-type]
    except (ValueError, ImportError) as error:
        # The library names its parameters
        is_credential = "@" in name or (given["user"] is None) != (given["password"] is None)
        raise CommandError(f"{error}{_CREDENTIALS if is_credential else ''}") from None


class DirectorySource:
    """A directory that a command reads for as long as it runs: a file is read once, and again when it has changed.

    Raises
    ------
    OSError, DirectoryError, CommandError
        As ``open_directory``.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._state: tuple[int, ...] | None = self._file_state()
        self._directory = open_directory(name)

    def current(self) -> Directory:
        """Return the directory as it is now.

        Raises
        ------
        DirectoryNotConnected
            The file cannot be read, or is not valid: another program may be writing it.
        """
        try:
            state = self._file_state()
            if state != self._state:
                self._directory, self._state = open_directory(self._name), state
        except (OSError, DirectoryError) as error:
            self._state = None
            text = f"{self._name}: {error.strerror}" if isinstance(error, OSError) else str(error)
            raise DirectoryNotConnected(text) from error
        return self._directory

    def _file_state(self) -> tuple[int, ...]:
        """Return what changes with the bytes of a file; of a directory in LDAP nothing."""
        if is_url(self._name):
            return ()
        found = os.stat(self._name)
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def find_queue_manager(directory: Directory, identifier: UUID) -> QueueManager:
    """Return the queue manager with this Identifier.

    Raises
    ------
    CommandError
        The directory has none.
    """
    from msmqwire.directory import Equal, QueueManager

    found = directory.read_directory(QueueManager, [Equal("identifier", identifier)])
    if found is None:
        raise CommandError(f"no QueueManager in the directory has the Identifier {identifier}")
    return found


def find_machine(directory: Directory, text: str) -> QueueManager:
    """Return the queue manager with this ComputerName, QualifiedComputerName or Identifier.

    Raises
    ------
    CommandError
        The directory has none, or several of that name.
    """
    from msmqwire.directory import Equal, QueueManager
    from msmqwire.routing.topology import identifier_of, read_queue_managers

    named = read_queue_managers(directory, text)
    found = [
        each
        for machine in named
        for each in directory.read_all(QueueManager, [Equal("identifier", machine.identifier)])
    ]
    if not found:
        what = "ComputerName" if identifier_of(text) is None else "Identifier"
        raise CommandError(f"no QueueManager in the directory has the {what} {text or repr(text)}")
    if len(found) > 1:
        raise CommandError(f"{len(found)} QueueManagers have the ComputerName {text}: name one by its Identifier")
    return found[0]
