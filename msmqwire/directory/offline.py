"""A directory as a queue manager reads it: while it cannot be reached, the local data answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msmqwire.directory.base import Directory, Equal, Filter, InvalidObjectError
from msmqwire.directory.elements import Element, Queue, QueueManager
from msmqwire.directory.memory import MemoryDirectory
from msmqwire.directory.queues import QueueCollection
from msmqwire.errors import DirectoryError, DirectoryNotConnected

#: Seconds between checks whether the directory is online again ([MS-MQDMPR] 3.1.2.5).
DIRECTORY_ONLINE_SECONDS = 60


class QueueManagerDirectory(Directory):
    """Wraps a directory with the DirectoryOffline state of a queue manager ([MS-MQDMPR] 3.1.7.1.20).

    Once the directory cannot be reached, single reads of queues and of the local queue manager are answered from local
    data, and all others fail at once, until :meth:`check_online` reaches the directory. The caller must call it every
    ``DIRECTORY_ONLINE_SECONDS`` while ``offline`` is true.

    Attributes
    ----------
    offline : bool
        DirectoryOffline.
    local_queue_manager : QueueManager
        LocalQueueManager.
    queues : QueueCollection
        Its QueueCollection. One that is given is used itself, not copied: a ``NotificationProcessor`` with the same one
        changes the queues that are read here.
    """

    def __init__(self, directory: Directory, local_queue_manager: QueueManager, queues: Iterable[Queue] = ()) -> None:
        super().__init__()
        self.offline = False
        self.local_queue_manager = local_queue_manager
        self.queues = queues if isinstance(queues, QueueCollection) else QueueCollection(queues)
        self._directory = directory

    def read_directory(
        self,
        element: type[Element],
        filters: Iterable[Filter] | None = None,
        attributes: Iterable[str] | None = None,
        *,
        force: bool = False,
    ) -> Element | None:
        """Read Directory; with ``force``, read the directory itself even if it is offline.

        Raises
        ------
        DirectoryNotConnected, DirectoryError, ValueError
            As any directory.
        """
        filters = tuple(filters or ())
        attributes = None if attributes is None else tuple(attributes)
        if self.offline and not force:
            local = MemoryDirectory((self.local_queue_manager, *self.queues))
            try:
                found = local.read_directory(element, filters, attributes)
            except InvalidObjectError as error:
                raise DirectoryNotConnected(f"offline: {error}") from None
            if found is None and element is not Queue:
                raise DirectoryNotConnected(f"offline: {element.__name__} is not read")
            return found
        try:
            return self._directory.read_directory(element, filters, attributes)
        except DirectoryNotConnected:
            self.offline = self.offline or not force
            raise

    def check_online(self) -> bool:
        """Check Directory Online ([MS-MQDMPR] 3.1.7.1.25): whether it is; if so, read the local data again."""
        itself = [Equal("identifier", self.local_queue_manager.identifier)]
        try:
            found = self.read_directory(QueueManager, itself, force=True)
        except DirectoryError:
            found = None
        if found is None:
            return False
        self.local_queue_manager = _updated(self.local_queue_manager, found)
        self.offline = False
        for queue in self.queues:
            self._read_again(queue)
        return not self.offline

    def _read_again(self, queue: Queue) -> None:
        try:
            found = _updated(queue, self.read_directory(Queue, [Equal("identifier", queue.identifier)]))
        except DirectoryError:
            return
        if self.queues.at(found.pathname) in (None, queue):
            self.queues.update(found)

    def _search(
        self, element: type[Element], filters: tuple[Filter, ...], attributes: tuple[str, ...] | None
    ) -> Iterator[Element]:
        # Read Directory Begin does not depend on the state ([MS-MQDMPR] 3.1.7.1.21).
        return self._directory.read_all(element, filters, attributes)


def _updated(known: Element, read: Element | None) -> Element:
    return known if read is None else type(known).of({**known.attributes(), **read.attributes()})
