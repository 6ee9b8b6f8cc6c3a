r"""Compares the queues in change notifications with the queues of a directory.

>>> from msmqwire.capture import read_table
>>> from msmqwire.directory import MemoryDirectory
>>> from msmqwire.notification.replay import replay
>>> found = replay(read_table("examples/message-session.pcap", "notifications"))
>>> directory = MemoryDirectory.load("examples/enterprise.toml")
>>> [each.verdict.value for each in compare(found.queues, directory)]
['agrees', 'absent', 'not_notified', 'not_notified', 'not_notified']
"""

from __future__ import annotations

from msmqwire.errors import require

require("pyarrow", "msmqwire.notification.comparison")

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from msmqwire.directory.base import Directory, Equal, comparable
from msmqwire.directory.elements import Queue
from msmqwire.notification.carried_attributes import NOTIFIED
from msmqwire.notification.replay import NotifiedQueue

__all__ = ["Comparison", "Verdict", "compare"]

#: Version 1 does not notify of this attribute after the creation of a queue.
_NOT_COMPARED = "modify_time"


class Verdict(StrEnum):
    """How the notifications of a queue compare with a directory."""

    AGREES = "agrees"
    """The directory has the queue as notified, or does not have it after a notified deletion."""
    DIFFERS = "differs"
    """The directory has other values of attributes."""
    ABSENT = "absent"
    """The directory does not have the queue, and no deletion was notified."""
    NOT_DELETED = "not_deleted"
    """The directory has the queue, but its deletion was notified."""
    NOT_NOTIFIED = "not_notified"
    """The directory has the queue, and no machine was notified of it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A queue as notified and as in the directory.

    Attributes
    ----------
    notified : NotifiedQueue or None
        As a machine was notified of it; None if none was.
    held : Queue or None
        As in the directory, with the attributes that notifications carry; None if it is not there.
    differences : mapping of str to value
        The attributes that differ, with the values of the directory; ModifyTime is not compared.
    """

    notified: NotifiedQueue | None
    held: Queue | None
    differences: Mapping[str, Any]

    @property
    def verdict(self) -> Verdict:
        """The result of the comparison."""
        if self.notified is None:
            return Verdict.NOT_NOTIFIED
        if self.notified.exists is False:
            return Verdict.AGREES if self.held is None else Verdict.NOT_DELETED
        if self.held is None:
            return Verdict.ABSENT
        return Verdict.DIFFERS if self.differences else Verdict.AGREES


def compare(queues: Iterable[NotifiedQueue], directory: Directory) -> Iterator[Comparison]:
    """Compare the queues of a replay with the queues of a directory.

    A queue of the replay is looked up by its Identifier, or by its Pathname if no Identifier was notified. The queues
    of the directory that no machine was notified of come last. A queue that several machines were notified of comes
    once for each.

    Raises
    ------
    DirectoryError
        The directory cannot be read.
    """
    notified_identifiers = set()
    for notified in queues:
        known = notified.queue.attributes()
        name = "identifier" if "identifier" in known else "pathname"
        held = directory.read_directory(Queue, [Equal(name, known[name])], NOTIFIED)
        if held is not None:
            notified_identifiers.add(held.identifier)
        yield Comparison(notified, held, {} if notified.exists is False or held is None else _differences(known, held))
    for held in directory.read_all(Queue, attributes=NOTIFIED):
        if held.identifier not in notified_identifiers:
            yield Comparison(None, held, {})


def _differences(known: Mapping[str, Any], held: Queue) -> dict[str, Any]:
    return {
        name: value
        for name, value in held.attributes().items()
        if name in known and name != _NOT_COMPARED and not _same(name, known[name], value)
    }


def _same(name: str, notified: Any, held: Any) -> bool:
    # Paths are compared without regard to case
    return bool(comparable(notified) == comparable(held) if name == "pathname" else notified == held)
