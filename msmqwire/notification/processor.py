r"""The server of MS-MQCN: applies message bodies to the local queues and returns a record of every decision.

Messages are applied at once; ``msmqwire.notification.schedule`` delays them as Windows does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from enum import StrEnum
from typing import Any
from uuid import UUID

from msmqwire.directory.base import Directory, Equal
from msmqwire.directory.elements import Element, Queue, QueueManager, computer_of
from msmqwire.directory.queues import QueueCollection, completed
from msmqwire.errors import DirectoryError, DirectoryNotConnected
from msmqwire.mqcn import NotificationBody, NotificationUpdate
from msmqwire.notification.attributes import notified_attributes
from msmqwire.notification.audit import (
    DISPATCH,
    VERSION_1,
    VERSION_2,
    Change,
    Changed,
    ChangePlace,
    Created,
    Deleted,
    Disregarded,
    Ignored,
    Record,
)
from msmqwire.notification.carried_attributes import READ_MACHINE, READ_QUEUE, UPDATED_QUEUE
from msmqwire.notification.envelope import Envelope, Verifier, unverified
from msmqwire.notification.judgement import JudgedMessage, Outcome, Rule, first_values, judge, rule_against_pathname

__all__ = [
    "DirectoryAt",
    "NotificationProcessor",
    "Profile",
    "Record",
]

#: The directory to read, given the DomainController that a notification names, or None for any.
DirectoryAt = Callable[[str | None], Directory]


class Profile(StrEnum):
    """The Windows versions that a queue manager imitates ([MS-MQCN] notes <3> and <4>)."""

    NT_2000 = "nt_2000"
    """Windows NT and Windows 2000: version 1 only, without delay."""
    LATER = "later"
    """Later versions: both versions of messages, after a delay."""


_VERSIONS = {Profile.NT_2000: (1,), Profile.LATER: (1, 2)}


class NotificationProcessor:
    r"""The queue manager's side of change notifications ([MS-MQCN] 3.2.5).

    Parameters
    ----------
    queue_manager : QueueManager
        The local one, as ``Directory.read_directory`` reads it without a list of attributes.
    queues : iterable of Queue, or QueueCollection
        Its public queues, as ``Directory.queues_of`` reads them. A QueueCollection is used itself, not copied, so that
        a ``QueueManagerDirectory`` has the same queues.
    directory : Directory or callable
        The directory to read, whatever server a notification names; or a callable that returns the directory, given
        the DomainController of a notification or None, and may raise DirectoryError. Notifications of version 2 are not
        authenticated, so the callable decides whether to trust the named server.
    verifier : callable, optional
        Returns how a message is authenticated. The default authenticates none, so no message of version 1 is applied.
    senders : collection of UUID, optional
        The queue managers accepted as senders of version 1; by default all that are authenticated.
    profile : Profile or str

    Raises
    ------
    TypeError
        The directory is neither a Directory nor callable.
    ValueError
        The queue manager or a queue was read without some of its attributes, two queues have one Identifier or one
        Pathname, or the profile is unknown.

    Attributes
    ----------
    queue_manager : QueueManager
        Its current attributes.
    queues : QueueCollection
        The current queues.
    processed : int
        The number of messages processed so far, disregarded ones included.
    unreached : int
        The number of reads so far for which the directory could not be reached, also where local data answered.

    Examples
    --------
    >>> from msmqwire.directory import MemoryDirectory
    >>> here = QueueManager(identifier=UUID(int=1), computer_name="HERE")
    >>> orders = Queue(identifier=UUID("00112233-4455-6677-8899-aabbccddeeff"), pathname="here\\orders")
    >>> processor = NotificationProcessor(here, [orders], directory=MemoryDirectory([]))
    >>> deleted = "<Notification><Event>3</Event><ObjectGuid>00112233-4455-6677-8899-AABBCCDDEEFF</ObjectGuid >"
    >>> deleted += "<DomainController>dc1</DomainController></Notification>"
    >>> processor.process(b"\2\1" + deleted.encode("utf-16-le"))[0].queue.pathname
    'here\\orders'
    >>> len(processor.queues)
    0
    """

    def __init__(
        self,
        queue_manager: QueueManager,
        queues: Iterable[Queue] = (),
        *,
        directory: Directory | DirectoryAt,
        verifier: Verifier | None = None,
        senders: Collection[UUID] | None = None,
        profile: Profile | str = Profile.LATER,
    ) -> None:
        if not isinstance(directory, Directory) and not callable(directory):
            raise TypeError(f"directory is {directory!r}: neither a Directory nor callable")
        self.queue_manager = completed(queue_manager)
        self.queues = queues if isinstance(queues, QueueCollection) else QueueCollection(queues)
        for queue in self.queues:
            self.queues.update(completed(queue))
        self.profile = Profile(profile)
        self.processed = self.unreached = 0
        self._directory: DirectoryAt = (lambda _: directory) if isinstance(directory, Directory) else directory
        # For judge, None takes every message as authenticated
        self._verifier = unverified if verifier is None else verifier
        self._senders = None if senders is None else frozenset(senders)
        names = (self.queue_manager.computer_name, self.queue_manager.qualified_computer_name)
        self._computers = frozenset(name.lower() for name in names if name)

    def process(self, body: bytes | bytearray | memoryview, envelope: Envelope | None = None) -> list[Record]:
        """Apply one message, completely or not at all; without an envelope it names no sender.

        Returns
        -------
        list of Record
            One for each change, in order; or one for the message if it was disregarded.
        """
        number = self.processed
        self.processed += 1
        # For judge, None is a sender that is not known, and no reason to disregard a message
        envelope = Envelope() if envelope is None else envelope
        judged = judge(body, envelope, verifier=self._verifier, trusted=self._senders, versions=_VERSIONS[self.profile])
        message = judged.message
        if message is None or judged.changes[0].outcome is Outcome.DISREGARDED:
            return [_disregarded(number, judged)]
        if message.body is not None:
            return [self._apply_event(ChangePlace(message=number, index=0, section=VERSION_2), message.body)]
        return [
            self._apply_update(
                ChangePlace(message=number, index=index, section=VERSION_1), update, judged.changes[index].rule
            )
            for index, update in enumerate(message.updates)
        ]

    def refresh(self) -> list[Record]:
        """Read every queue from the directory, as if each had been notified as changed ([MS-MQCN] note <3>)."""
        place = ChangePlace(message=None, index=None, section=VERSION_2)
        return [self._read_queue(place, queue.identifier, None) for queue in self.queues]

    def _rule_against_computer(self, pathname: str) -> Rule | None:
        """The rule by which a queue on another computer is ignored."""
        return None if computer_of(pathname).lower() in self._computers else Rule.OTHER_COMPUTER

    def _apply_update(self, place: ChangePlace, update: NotificationUpdate, rule: Rule | None) -> Record:
        """Apply an update of version 1, unless it is ignored by a rule ([MS-MQCN] 3.2.5.1)."""
        guid, path = update.guid_identifier, update.path_name or ""
        values = notified_attributes(update.object, update.command, path, first_values(update.properties))
        if rule is not None:
            created = update.command == "create" and update.object == "queue"
            identifier, path = (values["identifier"], values["pathname"]) if created else (guid, path)
            return Ignored(**place, rule=rule, identifier=identifier, detail=path)
        if update.object == "machine":
            if guid != self.queue_manager.identifier:
                return Ignored(**place, rule=Rule.OTHER_MACHINE, identifier=guid)
            return self._change_machine(place, values)
        if update.command == "create":
            return self._create(place, values)
        if guid is not None and update.command == "delete":
            return self._delete(place, guid)
        queue = self.queues.at(path) if guid is None else self.queues.get(guid)
        if queue is None:
            return Ignored(**place, rule=Rule.NOT_FOUND, identifier=guid, detail=path)
        return self._change(place, queue, values)

    def _apply_event(self, place: ChangePlace, body: NotificationBody) -> Record:
        """Apply an event of version 2 ([MS-MQCN] 3.2.5.2)."""
        guid = body.object_guid
        if body.object == "machine":
            return self._machine_changed(place, guid, body.domain_controller)
        if body.operation == "delete":
            return self._delete(place, guid)
        return self._read_queue(place, guid, body.domain_controller, created=body.operation == "create")

    def _create(self, place: ChangePlace, values: dict[str, Any]) -> Record:
        identifier, pathname = values["identifier"], values["pathname"]
        if rule := self._rule_against_computer(pathname):
            return Ignored(**place, rule=rule, identifier=identifier, detail=pathname)
        known = self.queues.get(identifier)
        if known is not None:
            return self._change(place, known, {name: values[name] for name in UPDATED_QUEUE.values() if name in values})
        return self._add(place, Queue(**values))

    def _add(self, place: ChangePlace, queue: Queue) -> Created:
        """Add a queue, in place of one that has its Pathname under another Identifier."""
        replaced = self.queues.at(queue.pathname)
        if replaced is not None:
            self.queues.remove(replaced)
        self.queues.add(queue)
        return Created(**place, queue=queue, replaced=replaced)

    def _change(self, place: ChangePlace, queue: Queue, values: dict[str, Any]) -> Changed:
        changes = _changes(queue, values)
        if changes:
            self.queues.update(replace(queue, **values))
        return Changed(**place, object="queue", identifier=queue.identifier, changes=changes)

    def _delete(self, place: ChangePlace, identifier: UUID) -> Record:
        queue = self.queues.get(identifier)
        if queue is None:
            return Ignored(**place, rule=Rule.NOT_FOUND, identifier=identifier)
        self.queues.remove(queue)
        return Deleted(**place, queue=queue)

    def _change_machine(self, place: ChangePlace, values: dict[str, Any]) -> Changed:
        changes = _changes(self.queue_manager, values)
        if changes:
            self.queue_manager = replace(self.queue_manager, **values)
        return Changed(**place, object="machine", identifier=self.queue_manager.identifier, changes=changes)

    def _read_queue(self, place: ChangePlace, guid: UUID, server: str | None, *, created: bool = False) -> Record:
        """Apply the state that a queue has in the directory; only one that was created may be new."""
        found = self._read(place, Queue, guid, server, READ_QUEUE)
        if isinstance(found, Ignored):
            return found
        known = self.queues.get(guid)
        rule = rule_against_pathname(found.pathname) or self._rule_against_computer(found.pathname)
        if rule is None and known is not None and self.queues.at(found.pathname) not in (None, known):
            rule = Rule.PATHNAME_TAKEN
        if rule is not None:
            return Ignored(**place, rule=rule, identifier=guid, detail=found.pathname)
        if known is not None:
            return self._change(place, known, found.attributes())
        if not created:
            return Ignored(**place, rule=Rule.NOT_FOUND, identifier=guid)
        return self._add(place, Queue(**found.attributes()))

    def _machine_changed(self, place: ChangePlace, guid: UUID, server: str | None) -> Record:
        if guid != self.queue_manager.identifier:
            return Ignored(**place, rule=Rule.OTHER_MACHINE, identifier=guid)
        found = self._read(place, QueueManager, guid, server, READ_MACHINE)
        return found if isinstance(found, Ignored) else self._change_machine(place, found.attributes())

    def _read(
        self, place: ChangePlace, element: type[Element], guid: UUID, server: str | None, attributes: tuple[str, ...]
    ) -> Element | Ignored:
        """Return an object with all requested attributes, or the reason why none was found."""
        try:
            directory = self._directory(server)
            found = directory.read_directory(element, [Equal("identifier", guid)], attributes)
            self.unreached += directory.offline
        except DirectoryError as error:
            self.unreached += isinstance(error, DirectoryNotConnected)
            return Ignored(**place, rule=Rule.DIRECTORY, identifier=guid, detail=str(error))
        if found is None:
            return Ignored(**place, rule=Rule.NOT_IN_DIRECTORY, identifier=guid)
        values = found.attributes()
        problem = ""
        if missing := [name for name in attributes if name not in values]:
            problem = f"the answer has no {missing[0]}"
        elif values.get("identifier", guid) != guid:
            problem = f"the answer is {found.identifier}"
        return Ignored(**place, rule=Rule.DIRECTORY, identifier=guid, detail=problem) if problem else found


def _disregarded(number: int, judged: JudgedMessage) -> Disregarded:
    """Return the record of a message that is not applied."""
    rule, fault = judged.changes[0].rule, judged.fault
    assert rule is not None
    section = DISPATCH if fault or rule is Rule.VERSION else VERSION_1
    detail = f"{fault.code}: {fault.field} at byte {fault.offset}" if fault else ""
    return Disregarded(message=number, index=judged.cause, section=section, rule=rule, detail=detail)


def _changes(element: Queue | QueueManager, values: dict[str, Any]) -> tuple[Change, ...]:
    """Return the attributes whose values differ from the element's."""
    return tuple(
        Change(name, before, value) for name, value in values.items() if (before := getattr(element, name)) != value
    )
