"""The directory as a queue manager reads it: while that cannot be reached, the queue manager knows of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msmqwire.directory.base import Directory, Equal, Filter
from msmqwire.directory.elements import Element, Queue, QueueManager
from msmqwire.directory.memory import MemoryDirectory
from msmqwire.errors import DirectoryError, DirectoryNotConnected

__all__ = ["DIRECTORY_ONLINE_SECONDS", "QueueManagerDirectory"]

#: How long after it went offline, and after each check in vain, a queue manager checks ([MS-MQDMPR] 3.1.2.5).
DIRECTORY_ONLINE_SECONDS = 60


class QueueManagerDirectory(Directory):
    """A directory behind the DirectoryOffline of a queue manager ([MS-MQDMPR] 3.1.7.1.20).

    Once the directory cannot be reached, single reads of queues and of the local queue manager are answered from what
    is known here, and all others fail at once, until :meth:`check_online` finds the directory again. There is no timer
    in here: whoever owns the clock calls it every ``DIRECTORY_ONLINE_SECONDS`` while ``offline`` is true.

    Attributes
    ----------
    offline : bool
        DirectoryOffline.
    local_queue_manager : QueueManager
        LocalQueueManager.
    queues : tuple of Queue
        Its QueueCollection.
    """

    def __init__(self, directory: Directory, local_queue_manager: QueueManager, queues: Iterable[Queue] = ()) -> None:
        super().__init__()
        self.offline = False
        self.local_queue_manager = local_queue_manager
        self.queues = tuple(queues)
        self._directory = directory

    def read_directory(
        self,
        element: type[Element],
        filters: Iterable[Filter] | None = None,
        attributes: Iterable[str] | None = None,
        *,
        force: bool = False,
    ) -> Element | None:
        """Read Directory; with ``force``, the directory itself even if it is offline.

        Raises
        ------
        DirectoryNotConnected, DirectoryError, ValueError
            As any directory.
        """
        filters = tuple(filters or ())
        attributes = None if attributes is None else tuple(attributes)
        if self.offline and not force:
            local = MemoryDirectory((self.local_queue_manager, *self.queues))
            found = local.read_directory(element, filters, attributes)
            if found is None and element is not Queue:
                raise DirectoryNotConnected(f"offline: {element.__name__} is not read")
            return found
        try:
            return self._directory.read_directory(element, filters, attributes)
        except DirectoryNotConnected:
            self.offline = self.offline or not force
            raise

    def check_online(self) -> bool:
        """Check Directory Online ([MS-MQDMPR] 3.1.7.1.25): whether it is; then what is known here is read afresh."""
        itself = [Equal("identifier", self.local_queue_manager.identifier)]
        try:
            found = self.read_directory(QueueManager, itself, force=True)
        except DirectoryError:
            found = None
        if found is None:
            return False
        self.local_queue_manager = _updated(self.local_queue_manager, found)
        self.offline = False
        self.queues = tuple(map(self._read_again, self.queues))
        return True

    def _read_again(self, queue: Queue) -> Queue:
        try:
            return _updated(queue, self.read_directory(Queue, [Equal("identifier", queue.identifier)]))
        except DirectoryError:
            return queue

    def _search(
        self, element: type[Element], filters: tuple[Filter, ...], attributes: tuple[str, ...] | None
    ) -> Iterator[Element]:
        # Read Directory Begin is passed on whatever the state is ([MS-MQDMPR] 3.1.7.1.21).
        return self._directory.read_all(element, filters, attributes)


def _updated(known: Element, read: Element | None) -> Element:
    return known if read is None else type(known).of({**known.attributes(), **read.attributes()})
