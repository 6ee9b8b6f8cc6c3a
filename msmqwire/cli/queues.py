"""Queues by the names that people type: paths and format names, of the queue manager that receives."""

from __future__ import annotations

import contextlib
import string
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from msmqwire.cli.console import CommandError
from msmqwire.cli.file_names import file_stem
from msmqwire.errors import FormatNameError

if TYPE_CHECKING:
    from uuid import UUID

    from msmqwire.directory import Queue
    from msmqwire.formatname import DirectName, FormatName
    from msmqwire.mqqb import UserMessage

#: Private queues whose number is fixed: [MS-MQDMPR] 3.1.3.
_NUMBERED = {3: "private$\\notify_queue$", 4: "private$\\order_queue$"}
_ASCII_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


_PREFIX = "formatname:"


def without_prefix(name: str) -> str:
    """Return the name of a queue without ``FormatName:``, with which programs on Windows name it."""
    return name[len(_PREFIX) :] if name[: len(_PREFIX)].lower() == _PREFIX else name


def queue_path(queue: FormatName | str | None) -> str:
    r"""Return the queue as its own queue manager calls it, in lower case, whatever its computer is called.

    >>> from msmqwire.formatname import parse
    >>> [queue_path(parse(name)) for name in (r"DIRECT=OS:a\private$\Orders", r"DIRECT=TCP:10.0.0.1\orders")]
    ['private$\\orders', 'orders']
    """
    from msmqwire.formatname import DirectName, PrivateName

    if isinstance(queue, DirectName):
        place = "private$\\" if queue.queue_type == "private" else ""
        path = f"{place}{queue.queue or 'system$'}"
        return ";".join(part for part in (path, queue.subqueue, queue.suffix) if part).lower()
    if isinstance(queue, PrivateName):
        return _NUMBERED.get(queue.private_id, f"private={queue.private_id:x}")
    return str(queue or "").lower()


class PublicQueues:
    """The public queues of the queue manager that receives, as its directory has them.

    Parameters
    ----------
    queues : iterable of Queue
        None of them without a directory.
    """

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        from msmqwire.formatname import DirectName

        self._names: dict[UUID, DirectName] = {}
        self._transactional: dict[str, bool] = {}
        for queue in queues:
            with contextlib.suppress(FormatNameError):  # no packet has its path
                name = DirectName("os", ".", queue.pathname.rpartition("\\")[2])
                self._names[queue.identifier] = name
                self._transactional[queue_path(name)] = queue.transactional

    def by_path(self, queue: FormatName | str | None) -> FormatName | str | None:
        """Return the queue by its path, where it has a public name that is known."""
        from msmqwire.formatname import PublicName

        return self._names.get(queue.guid, queue) if isinstance(queue, PublicName) and not queue.suffix else queue

    def is_transactional(self, queue: FormatName | str | None) -> bool | None:
        """Return True if a queue is transactional; None if it is not known."""
        return self._transactional.get(queue_path(self.by_path(queue))) if self._transactional else None


def chosen_queues(
    names: Collection[str], public: PublicQueues | None = None, queue_manager: UUID | None = None
) -> Callable[[UserMessage], bool] | None:
    """Return a test whether a message is for one of the queues; None for no names, which choose all.

    A name is a format name or a path, with or without its computer; without ``private$`` it is a public queue or a
    private one.

    Raises
    ------
    CommandError
        A public queue is not known, or a private one is on another queue manager.
    FormatNameError
        A name is not valid.
    """
    from msmqwire.formatname import PrivateName, PublicName, parse

    public = public or PublicQueues()
    paths: set[str] = set()
    for name in map(without_prefix, names):
        if "=" in name.partition("\\")[0]:
            queue = public.by_path(parse(name, extended=True, any_letters=True))
            if isinstance(queue, PublicName):
                raise CommandError(
                    f"{name}: its path is unknown: name the queue by its path, or give its directory and the queue "
                    "manager with --directory and --queue-manager"
                )
            if isinstance(queue, PrivateName) and queue.guid != queue_manager:
                raise CommandError(f"{name} is a queue of another queue manager: name this one with --queue-manager")
            paths.add(queue_path(queue))
            continue
        parts = name.lower().split("\\")
        if not all(parts) or len(parts) > 3:
            raise FormatNameError("bad_text", "QueueName", 0, r"a queue as in private$\orders", name)
        if len(parts) > 1 and parts[-2] == "private$":
            paths.add("\\".join(parts[-2:]))
        else:
            paths |= {parts[-1]} if len(parts) > 1 else {parts[-1], f"private$\\{parts[-1]}"}
    return (lambda message: queue_path(public.by_path(message.destination_queue)) in paths) if paths else None


def kinds_of_queues(
    chosen: Collection[str], transactional: Collection[str], public: PublicQueues, queue_manager: UUID | None
) -> tuple[Callable[[UserMessage], bool] | None, Callable[[UserMessage], bool | None]]:
    """Return tests of messages: for one of the queues, None where all are chosen; and for a transactional queue.

    It is if ``transactional`` names it or the directory says so. Another queue of ``chosen`` is not, and where nothing
    is chosen, all others take both kinds of messages (S24).

    Raises
    ------
    CommandError, FormatNameError
        As ``chosen_queues``.
    """
    is_named = chosen_queues(transactional, public, queue_manager)

    def is_transactional(message: UserMessage) -> bool | None:
        if is_named is not None and is_named(message):
            return True
        known = public.is_transactional(message.destination_queue)
        return False if known is None and chosen else known

    accepts = chosen_queues([*chosen, *transactional], public, queue_manager) if chosen else None
    return accepts, is_transactional


def queue_stem(queue: FormatName | str | None) -> str:
    r"""Return the name of a file for a queue, without its extension; no two queues have the same.

    >>> from msmqwire.formatname import parse
    >>> [queue_stem(parse(name)) for name in (r"DIRECT=OS:a\private$\Orders", r"DIRECT=TCP:10.0.0.1\all_orders")]
    ['private.orders', 'public.all__orders']
    """
    from msmqwire.formatname import DirectName

    kind, name = ("name", str(queue or ""))
    if isinstance(queue, DirectName):
        kind = queue.queue_type
        name = ";".join([queue.queue or "", *filter(None, (queue.subqueue, queue.suffix))])
    # Other letters of two cases are not the same queue, as format names compare
    return file_stem(f"{kind}.{name.translate(_ASCII_LOWER)}")
