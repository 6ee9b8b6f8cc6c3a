"""The public queues of one queue manager, by Identifier and by Pathname."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from msmqwire.directory.elements import Queue

__all__ = ["QueueCollection"]


class QueueCollection:
    """The public queues that a queue manager has: QueueCollection ([MS-MQDMPR] 3.1.1.1).

    No two queues share an Identifier, and no two share a Pathname, compared without regard to case.

    Raises
    ------
    ValueError
        Two of the queues do, or a queue was read without some of its attributes.

    Examples
    --------
    >>> queues = QueueCollection([Queue(identifier=UUID(int=1), pathname="here\\\\orders", quota=10)])
    >>> queues.at("HERE\\\\Orders").quota, len(queues)
    (10, 1)
    """

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self._queues: dict[UUID, Queue] = {}
        self._paths: dict[str, UUID] = {}
        for queue in queues:
            self.add(queue)

    def __len__(self) -> int:
        return len(self._queues)

    def __iter__(self) -> Iterator[Queue]:
        return iter(list(self._queues.values()))

    def __contains__(self, identifier: object) -> bool:
        return identifier in self._queues

    def get(self, identifier: UUID) -> Queue | None:
        """The queue with this Identifier."""
        return self._queues.get(identifier)

    def at(self, pathname: str) -> Queue | None:
        """The queue with this Pathname."""
        identifier = self._paths.get(pathname.lower())
        return None if identifier is None else self._queues[identifier]

    def add(self, queue: Queue) -> None:
        """Add a queue."""
        if len(queue.attributes()) < len(Queue.attribute_names()):
            raise ValueError(f"some attributes of {queue!r} were not read")
        if queue.identifier in self._queues or queue.pathname.lower() in self._paths:
            raise ValueError(f"a queue {queue.identifier} or {queue.pathname} exists already")
        self._queues[queue.identifier] = queue
        self._paths[queue.pathname.lower()] = queue.identifier

    def update(self, queue: Queue) -> None:
        """Replace the queue that has the same Identifier; the new Pathname must be free or its own."""
        before = self._queues[queue.identifier]
        if queue.pathname != before.pathname:
            del self._paths[before.pathname.lower()]
            self._paths[queue.pathname.lower()] = queue.identifier
        self._queues[queue.identifier] = queue

    def remove(self, queue: Queue) -> None:
        """Remove a queue."""
        del self._queues[queue.identifier], self._paths[queue.pathname.lower()]
