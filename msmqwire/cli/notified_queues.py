"""Applies change notifications as a queue manager does, and prints what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.cli.console import CommandError, OutputErrors, json_line, say
from msmqwire.cli.enterprise import DirectorySource, find_queue_manager
from msmqwire.cli.message_files import write_at_once
from msmqwire.cli.target import standard_output
from msmqwire.errors import DirectoryNotConnected

if TYPE_CHECKING:
    from msmqwire.directory import Directory, Queue
    from msmqwire.notification.audit import Record
    from msmqwire.session import MessageReceived


class NotifiedQueues:
    """The public queues of a queue manager, as the directory has them at the start and notifications change them.

    Notifications are applied after the delay of Windows, on the event loop of ``write``, and when ``finish`` is called.

    Parameters
    ----------
    source : str
        The directory. A file is read again when it has changed: a notification of version 2 has no values.
    queue_manager : UUID
        The queue manager that receives.
    trusted_senders : collection of UUID
        The queue managers whose signed messages of version 1 are believed; the signature is not verified.

    Attributes
    ----------
    failed : callable
        Called with the error if a decision cannot be printed while no ``write`` waits for it.

    Raises
    ------
    CommandError
        The directory does not have the queue manager, or two of its queues have one Identifier or one Pathname.
    OSError, DirectoryError
        The directory cannot be read.
    """

    def __init__(self, source: str, queue_manager: UUID, trusted_senders: Collection[UUID]) -> None:
        from msmqwire.notification.envelope import trusted
        from msmqwire.notification.processor import NotificationProcessor
        from msmqwire.notification.schedule import NotificationServer

        self._source = DirectorySource(source)
        directory = self._source.current()
        machine = find_queue_manager(directory, queue_manager)
        try:
            self._processor = NotificationProcessor(
                machine,
                directory.queues_of(machine),
                directory=self._directory_at,
                verifier=trusted(trusted_senders),
            )
        except ValueError as error:
            raise CommandError(f"{source}: {error}; msmqwire directory check finds what else is wrong") from None
        self._server = NotificationServer(self._processor)
        self._paths = {queue.identifier: queue.pathname for queue in self._processor.queues}
        self._lock = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None
        self._unreached = 0
        self._directory: Directory | None = None
        self.failed: Callable[[BaseException], object] = lambda _: None

    async def write(self, received: Sequence[MessageReceived]) -> None:
        """Take notifications, and print a line of JSON for each decision that is due."""
        from msmqwire.notification.envelope import Envelope

        now = asyncio.get_running_loop().time()
        for each in received:
            await self._run(self._server.receive, each.message.body, Envelope.of(each.message), now=now)
        if self._timer is None:
            self._timer = asyncio.create_task(self._apply_when_due())

    async def finish(self) -> None:
        """Apply the notifications that wait, since no process keeps them."""
        if self._timer is not None:
            self._timer.cancel()
        async with self._lock:  # the timer may just read the directory
            due = self._server.deadline
        if due is not None:
            await self._run(self._server.tick, due)
            if self._server.deadline is not None:
                say("the queues are not refreshed: the directory could not be reached")

    async def _apply_when_due(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while (due := self._server.deadline) is not None:
                await asyncio.sleep(due - loop.time())
                await asyncio.shield(self._run(self._server.tick, max(due, loop.time())))
            self._timer = None
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.failed(error)

    async def _run(self, step: Callable[..., list[Record]], *arguments: Any, **options: Any) -> None:
        """Call a method of the server in a thread: it may wait for the directory, and sessions and pings must not."""
        async with self._lock:
            self._directory, self._unreached = None, self._processor.unreached
            self._print(await asyncio.to_thread(step, *arguments, **options))

    def _directory_at(self, _: str | None) -> Directory:
        """Return the directory in place of the server that a notification names; one state for all that is due."""
        if self._processor.unreached > self._unreached:
            raise DirectoryNotConnected("the directory could not be reached just before")
        if self._directory is None:
            self._directory = self._source.current()
        return self._directory

    def _print(self, records: Sequence[Record]) -> None:
        lines = [json_line(self._as_json(each)).encode() + b"\n" for each in _shown(records)]
        if lines:
            with OutputErrors("standard output"):
                write_at_once(standard_output().buffer, b"".join(lines))

    def _as_json(self, record: Record) -> dict[str, Any]:
        from msmqwire.notification.audit import Changed, Created, Deleted, Disregarded, Ignored, Overflowed

        shown: dict[str, Any] = {"message": record.message, "index": record.index}
        match record:
            case Created(queue=queue, replaced=replaced):
                shown |= {"outcome": "created", "object": "queue", **_names(queue), "values": _values(queue)}
                if replaced is not None:
                    shown["replaced"] = _names(replaced)
                    self._paths.pop(replaced.identifier, None)
                self._paths[queue.identifier] = queue.pathname
            case Changed(object=kind, identifier=identifier, changes=changes):
                after = {each.attribute: each.after for each in changes}
                if kind == "queue" and "pathname" in after:
                    self._paths[identifier] = after["pathname"]
                pathname = self._paths.get(identifier) if kind == "queue" else None
                shown |= {"outcome": "changed", "object": kind, "identifier": identifier, "pathname": pathname}
                shown["changes"] = {each.attribute: {"before": each.before, "after": each.after} for each in changes}
            case Overflowed(dropped=dropped):
                shown |= {"outcome": "overflowed", "dropped": dropped}
            case Deleted(queue=queue):
                shown |= {"outcome": "deleted", "object": "queue", **_names(queue)}
                self._paths.pop(queue.identifier, None)
            case Ignored(rule=rule, identifier=identifier, detail=detail):
                shown |= {"outcome": "ignored", "identifier": identifier, "rule": rule, "detail": detail}
            case Disregarded(rule=rule, detail=detail):
                shown |= {"outcome": "disregarded", "rule": rule, "detail": detail}
        return {**shown, "section": record.section}


def _shown(records: Sequence[Record]) -> Iterator[Record]:
    """Yield the records, but not those of a refresh for unchanged queues, nor after the first that was not read."""
    from msmqwire.notification.audit import Changed, Ignored
    from msmqwire.notification.judgement import Rule

    is_unreached = False
    for record in records:
        if record.message is None and isinstance(record, Changed) and not record.changes:
            continue
        if record.message is None and isinstance(record, Ignored) and record.rule is Rule.DIRECTORY:
            if is_unreached:
                continue
            is_unreached = True
        yield record


def _names(queue: Queue) -> dict[str, Any]:
    return {"identifier": queue.identifier, "pathname": queue.pathname}


def _values(queue: Queue) -> dict[str, Any]:
    return {name: value for name, value in queue.attributes().items() if name not in ("identifier", "pathname")}
