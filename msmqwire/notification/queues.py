"""The public queues of one queue manager, kept so that a million changes to them need not make a million objects.

What a notification of version 1 may change stands in columns, a row for each queue; :class:`Queue` objects are made
when somebody asks for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from msmqwire.directory.elements import Queue
from msmqwire.notification.attributes import UPDATED_QUEUE, enumeration

__all__ = ["QueueCollection", "to_python", "to_wire"]

_FIRST_ROOM = 64


def to_python(name: str, value: Any) -> Any:
    """The value of a changeable attribute, from what its column has."""
    values = enumeration(Queue, name)
    return bytes(value) if name == "security" else int(value) if values is None else values[value]


def to_wire(name: str, value: Any) -> Any:
    """What the column of a changeable attribute has, from its value."""
    values = enumeration(Queue, name)
    return value if values is None else values.index(value)


class QueueCollection:
    """The public queues that a queue manager has: QueueCollection ([MS-MQDMPR] 3.1.1.1).

    No two have one Identifier, and no two one Pathname, which is compared without regard to case.

    Raises
    ------
    ValueError
        Two of the queues do, or one was read without some of its attributes.

    Examples
    --------
    >>> queues = QueueCollection([Queue(identifier=UUID(int=1), pathname="here\\\\orders", quota=10)])
    >>> queues.at("HERE\\\\Orders").quota, len(queues)
    (10, 1)
    """

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self._slots: dict[bytes, int] = {}
        self._paths: dict[str, int] = {}
        self._queues: list[Queue | None] = []
        self._free: list[int] = []
        self._columns: dict[str, NDArray[Any]] = {
            name: np.zeros(_FIRST_ROOM, object if name == "security" else np.int64) for name in UPDATED_QUEUE.values()
        }
        for queue in queues:
            self.add(queue)

    def __len__(self) -> int:
        return len(self._slots)

    def __iter__(self) -> Iterator[Queue]:
        return iter([self.queue(slot) for slot in self._slots.values()])

    def __contains__(self, identifier: object) -> bool:
        return isinstance(identifier, UUID) and identifier.bytes_le in self._slots

    def get(self, identifier: UUID) -> Queue | None:
        """The queue with this Identifier."""
        slot = self.slot_of(identifier)
        return None if slot is None else self.queue(slot)

    def at(self, pathname: str) -> Queue | None:
        """The queue with this Pathname."""
        slot = self.slot_at(pathname)
        return None if slot is None else self.queue(slot)

    def slot_of(self, identifier: UUID) -> int | None:
        """Where the queue with this Identifier stands in the columns."""
        return self._slots.get(identifier.bytes_le)

    def slot_at(self, pathname: str) -> int | None:
        """Where the queue with this Pathname stands in the columns."""
        return self._paths.get(pathname.lower())

    def slots_of(self, identifiers: Iterable[bytes]) -> NDArray[np.int64]:
        """Where queues stand in the columns, by Identifiers in wire order; -1 for those there are not."""
        find = self._slots.get
        return np.fromiter((find(each, -1) for each in identifiers), np.int64)

    def identifier(self, slot: int) -> UUID:
        """The Identifier of a queue."""
        return self._at(slot).identifier

    def queue(self, slot: int) -> Queue:
        """A queue as it is now."""
        return Queue.of({**self._at(slot).attributes(), **self.changeable(slot)})

    def changeable(self, slot: int) -> dict[str, Any]:
        """What notifications of version 1 may change of a queue, by name."""
        return {name: to_python(name, column[slot]) for name, column in self._columns.items()}

    def values(self, slot: int, names: Iterable[str]) -> dict[str, Any]:
        """Some attributes of a queue as they are now, by name."""
        columns, queue = self._columns, self._at(slot)
        return {
            name: to_python(name, columns[name][slot]) if name in columns else getattr(queue, name) for name in names
        }

    def column(self, name: str) -> NDArray[Any]:
        """A changeable attribute of all queues by their slots, as the wire has it; to be written to as well."""
        return self._columns[name]

    def add(self, queue: Queue) -> None:
        """One more queue."""
        if len(queue.attributes()) < len(Queue.attribute_names()):
            raise ValueError(f"some attributes of {queue!r} were not read")
        if queue.identifier.bytes_le in self._slots or queue.pathname.lower() in self._paths:
            raise ValueError(f"there is a queue {queue.identifier} or {queue.pathname} already")
        slot = self._free.pop() if self._free else self._grow()
        self._slots[queue.identifier.bytes_le] = self._paths[queue.pathname.lower()] = slot
        self._put(slot, queue)

    def update(self, slot: int, values: Mapping[str, Any]) -> None:
        """Give a queue other values; its Pathname must be free, and its Identifier stays."""
        if values.keys() <= self._columns.keys():
            for name, value in values.items():
                self._columns[name][slot] = to_wire(name, value)
            return
        before = self._at(slot)
        queue = Queue.of({**before.attributes(), **self.changeable(slot), **values, "identifier": before.identifier})
        del self._paths[before.pathname.lower()]
        self._paths[queue.pathname.lower()] = slot
        self._put(slot, queue)

    def remove(self, slot: int) -> Queue:
        """Take a queue away, and return what it was."""
        queue = self.queue(slot)
        del self._slots[queue.identifier.bytes_le], self._paths[queue.pathname.lower()]
        self._queues[slot] = None
        self._columns["security"][slot] = b""
        self._free.append(slot)
        return queue

    def _at(self, slot: int) -> Queue:
        queue = self._queues[slot]
        assert queue is not None, "a slot is that of a queue"
        return queue

    def _put(self, slot: int, queue: Queue) -> None:
        self._queues[slot] = queue
        for name, column in self._columns.items():
            column[slot] = to_wire(name, getattr(queue, name))

    def _grow(self) -> int:
        slot = len(self._queues)
        self._queues.append(None)
        if slot == len(self._columns["quota"]):
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate([column, np.zeros_like(column)])
        return slot
