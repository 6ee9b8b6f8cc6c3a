r"""What machines were told of queues, beside what a directory has.

>>> from msmqwire.capture import read_table
>>> from msmqwire.directory import MemoryDirectory
>>> from msmqwire.notification.replay import replay
>>> found = replay(read_table("examples/message-session.pcap", "notifications"))
>>> directory = MemoryDirectory.load("examples/enterprise.toml")
>>> [(each.told is None, each.held and each.held.pathname) for each in compare(found.queues, directory)]
[(False, None), (False, None), (True, 'ledger\\orders'), (True, 'ledger\\invoices'), (True, 'depot\\deliveries')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msmqwire.directory.base import Directory, Equal, comparable
from msmqwire.directory.elements import Queue
from msmqwire.notification.attributes import CREATED_QUEUE
from msmqwire.notification.replay import ToldQueue

__all__ = ["Comparison", "compare"]

_TOLD = tuple(CREATED_QUEUE.values())
#: When a directory was last written to; version 1 does not tell of it again after the creation of a queue.
_WRITTEN = "modify_time"


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
    def agree(self) -> bool:
        """Whether the machine was told of what the directory has: nothing else, or that there is nothing."""
        if self.told is None or (self.held is None) != (self.told.exists is False):
            return False
        return not self.differences


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
