"""Applies change notifications as a queue manager does, and prints what changed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from msmqwire.cli.console import CommandError, OutputErrors, json_line
from msmqwire.cli.enterprise import is_url, open_directory
from msmqwire.cli.message_files import write_at_once
from msmqwire.cli.target import standard_output
from msmqwire.errors import DirectoryError

if TYPE_CHECKING:
    from msmqwire.directory import Directory, Queue
    from msmqwire.notification.audit import Record
    from msmqwire.session import MessageReceived


class NotifiedQueues:
    """The public queues of a queue manager, as the directory has them at the start and notifications change them.

    Parameters
    ----------
    source : str
        The directory. A file is read again for each notification of version 2, which names an object and no values.
    queue_manager : UUID
        The queue manager that receives.
    trusted_senders : collection of UUID
        The queue managers whose signed messages of version 1 are believed; the signature is not verified.

    Raises
    ------
    CommandError
        The directory does not have the queue manager, or two of its queues have one Identifier or one Pathname.
    OSError, DirectoryError
        The directory cannot be read.
    """

    def __init__(self, source: str, queue_manager: UUID, trusted_senders: Collection[UUID]) -> None:
        from msmqwire.directory import Equal, QueueManager
        from msmqwire.notification.envelope import trusted
        from msmqwire.notification.processor import NotificationProcessor

        directory = open_directory(source)
        machine = directory.read_directory(QueueManager, [Equal("identifier", queue_manager)])
        if machine is None:
            raise CommandError(f"no QueueManager in the directory has the Identifier {queue_manager}")

        def directory_at(_: str | None) -> Directory:
            # The server that a notification names is not trusted
            if is_url(source):
                return directory
            try:
                return open_directory(source)
            except OSError as error:
                raise DirectoryError(f"{source}: {error.strerror}") from error

        try:
            self._processor = NotificationProcessor(
                machine,
                directory.queues_of(machine),
                directory=directory_at,
                verifier=trusted(trusted_senders),
            )
        except ValueError as error:
            raise CommandError(f"{source}: {error}; msmqwire directory check finds what else is wrong") from None

    async def write(self, received: Sequence[MessageReceived]) -> None:
        """Apply messages, and print a line of JSON for each decision."""
        from msmqwire.notification.envelope import Envelope

        for each in received:
            # It may wait for the directory, and pings and other sessions must not; one batch is written at a time
            records = await asyncio.to_thread(self._processor.process, each.message.body, Envelope.of(each.message))
            for record in records:
                with OutputErrors("standard output"):
                    write_at_once(standard_output().buffer, json_line(self._as_json(record)).encode() + b"\n")

    def _as_json(self, record: Record) -> dict[str, Any]:
        from msmqwire.notification.audit import Changed, Created, Deleted, Disregarded, Ignored

        shown: dict[str, Any] = {"message": record.message, "index": record.index}
        match record:
            case Created(queue=queue, replaced=replaced):
                shown |= {"outcome": "created", "object": "queue", **_names(queue), "values": _values(queue)}
                if replaced is not None:
                    shown["replaced"] = _names(replaced)
            case Changed(object=kind, identifier=identifier, changes=changes):
                queue_or_none = self._processor.queues.get(identifier) if kind == "queue" else None
                pathname = None if queue_or_none is None else queue_or_none.pathname
                shown |= {"outcome": "changed", "object": kind, "identifier": identifier, "pathname": pathname}
                shown["changes"] = {each.attribute: {"before": each.before, "after": each.after} for each in changes}
            case Deleted(queue=queue):
                shown |= {"outcome": "deleted", "object": "queue", **_names(queue)}
            case Ignored(rule=rule, identifier=identifier, detail=detail):
                shown |= {"outcome": "ignored", "identifier": identifier, "rule": rule, "detail": detail}
            case Disregarded(rule=rule, detail=detail):
                shown |= {"outcome": "disregarded", "rule": rule, "detail": detail}
        return {**shown, "section": record.section}


def _names(queue: Queue) -> dict[str, Any]:
    return {"identifier": queue.identifier, "pathname": queue.pathname}


def _values(queue: Queue) -> dict[str, Any]:
    return {name: value for name, value in queue.attributes().items() if name not in ("identifier", "pathname")}
