r"""What machines were told of queues, beside what a directory has.

>>> from msmqwire.capture import read_table
>>> from msmqwire.directory import MemoryDirectory
>>> from msmqwire.notification.replay import replay
>>> found = replay(read_table("examples/message-session.pcap", "notifications"))
>>> directory = MemoryDirectory.load("examples/enterprise.toml")
>>> [each.verdict.value for each in compare(found.queues, directory)]
['agrees', 'absent', 'not_told', 'not_told', 'not_told']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from msmqwire.directory.base import Directory, Equal, comparable
from msmqwire.directory.elements import Queue
from msmqwire.notification.attributes import CREATED_QUEUE
from msmqwire.notification.replay import ToldQueue

__all__ = ["Comparison", "Verdict", "compare"]

_TOLD = tuple(CREATED_QUEUE.values())
#: When a directory was last written to; version 1 does not tell of it again after the creation of a queue.
_WRITTEN = "modify_time"


class Verdict(StrEnum):
    """What a machine was told of a queue, measured by what a directory has."""

    AGREES = "agrees"
    """The directory has it so, or does not have it, as the machine was told."""
    DIFFERS = "differs"
    """The directory has attributes with other values."""
    ABSENT = "absent"
    """The directory does not have it, and the machine was not told that it is gone."""
    NOT_DELETED = "not_deleted"
    """The directory has it, and the machine was told that it is gone."""
    NOT_TOLD = "not_told"
    """The directory has it, and no machine was told of it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A queue on both sides.

    Attributes
    ----------
    told : ToldQueue or None
        As a machine was told of it; None if none was.
    held : Queue or None
        As the directory has it, with the attributes that notifications carry; None if it does not have it.
    differences : mapping of str to value
        The attributes that a machine was told otherwise, with the values that the directory has. ModifyTime is not
        among them.
    """

    told: ToldQueue | None
    held: Queue | None
    differences: Mapping[str, Any]

    @property
    def verdict(self) -> Verdict:
        """What the two sides come to."""
        if self.told is None:
            return Verdict.NOT_TOLD
        if self.told.exists is False:
            return Verdict.AGREES if self.held is None else Verdict.NOT_DELETED
        if self.held is None:
            return Verdict.ABSENT
        return Verdict.DIFFERS if self.differences else Verdict.AGREES


def compare(queues: Iterable[ToldQueue], directory: Directory) -> Iterator[Comparison]:
    """Compare queues of a replay with those of a directory.

    Each that was told is found by its Identifier, or by its Pathname if it was told without; behind them come the
    queues of the directory that no machine was told of. A queue that was told to several machines comes several times.

    Raises
    ------
    DirectoryError
        The directory cannot be read.
    """
    heard = set()
    for told in queues:
        known = told.queue.attributes()
        name = "identifier" if "identifier" in known else "pathname"
        held = directory.read_directory(Queue, [Equal(name, known[name])], _TOLD)
        if held is not None:
            heard.add(held.identifier)
        yield Comparison(told, held, {} if told.exists is False or held is None else _differences(known, held))
    for held in directory.read_all(Queue, attributes=_TOLD):
        if held.identifier not in heard:
            yield Comparison(None, held, {})


def _differences(known: Mapping[str, Any], held: Queue) -> dict[str, Any]:
    return {
        name: value
        for name, value in held.attributes().items()
        if name in known and name != _WRITTEN and not _same(name, known[name], value)
    }


def _same(name: str, told: Any, held: Any) -> bool:
    # A directory may have a path in other letters than those it was given
    return bool(comparable(told) == comparable(held) if name == "pathname" else told == held)
