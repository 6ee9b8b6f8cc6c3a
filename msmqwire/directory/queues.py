"""The public queues of one queue manager, by Identifier and by Pathname."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

from msmqwire.directory.elements import Element, Queue
from msmqwire.directory.ldap_schema import DERIVED, MAPPING, OFTEN_UNSET


def completed(element: Element) -> Element:
    """An element with all attributes: the defaults of those that a read of all attributes may leave out over LDAP.

    Raises
    ------
    ValueError
        Other attributes were not read.
    """
    kind, known = type(element), element.attributes()
    always = (MAPPING[kind].keys() | DERIVED[kind].keys()) - OFTEN_UNSET
    if missing := [name for name in kind.attribute_names() if name in always and name not in known]:
        raise ValueError(f"some attributes of {element!r} were not read: {', '.join(missing)}")
    return kind(**known)


class QueueCollection:
    """The public queues that a queue manager has: QueueCollection ([MS-MQDMPR] 3.1.1.1).

    No two queues share an Identifier, and no two share a Pathname, compared without regard to case.

    ``QueueManagerDirectory`` and ``NotificationProcessor`` that are given the same collection share it.

    Raises
    ------
    ValueError
        Two of the queues do, or a queue was read without its Identifier or Pathname.

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
        if not {"identifier", "pathname"} <= queue.attributes().keys():
            raise ValueError(f"identifier or pathname of {queue!r} was not read")
        if queue.identifier in self._queues or queue.pathname.lower() in self._paths:
            raise ValueError(f"a queue {queue.identifier} or {queue.pathname} exists already")
        self._queues[queue.identifier] = queue
        self._paths[queue.pathname.lower()] = queue.identifier

    def update(self, queue: Queue) -> None:
        """Replace the queue that has the same Identifier; the new Pathname must be free or its own."""
        before = self._queues[queue.identifier]
        if queue.pathname != before.pathname:
            if self.at(queue.pathname) not in (None, before):
                raise ValueError(f"a queue {queue.pathname} exists already")
            del self._paths[before.pathname.lower()]
            self._paths[queue.pathname.lower()] = queue.identifier
        self._queues[queue.identifier] = queue

    def remove(self, queue: Queue) -> None:
        """Remove a queue."""
        known = self._queues.pop(queue.identifier)
        del self._paths[known.pathname.lower()]
