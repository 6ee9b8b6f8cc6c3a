r"""The server of MS-MQCN: a message body and its envelope in, changes to the local queues and records of them out.

``NotificationProcessor.process`` takes a message, ``process_batch`` a million; they do the same. Both work at once:
that messages wait and gather is the business of ``msmqwire.notification.schedule``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

from msmqwire.directory.base import Directory, Equal
from msmqwire.directory.elements import Element, Queue, QueueManager
from msmqwire.errors import DecodeError, DirectoryError
from msmqwire.mqcn import NotificationBatch, NotificationBody, NotificationUpdate, decode
from msmqwire.notification.attributes import CREATED_QUEUE, UPDATED_MACHINE, UPDATED_QUEUE
from msmqwire.notification.audit import (
    DISPATCH,
    VERSION_1,
    VERSION_2,
    Changed,
    Ignored,
    Place,
    Record,
    Rule,
)
from msmqwire.notification.batch import BatchAudit, apply_batch
from msmqwire.notification.envelope import AuthenticationLevel, Envelope, SenderIdentifierType, Verifier, unverified
from msmqwire.notification.queues import QueueCollection
from msmqwire.notification.updates import INSTANCE, attributes_of, first_values, pathname_of, refusal

__all__ = ["DirectoryAt", "NotificationProcessor", "Profile"]

#: The directory to read, given the DomainController that a notification names, or None for any.
DirectoryAt = Callable[[str | None], Directory]

_QUEUE_ATTRIBUTES = (
    "type", "identifier", "base_priority", "journaling", "quota", "journal_quota", "create_time", "modify_time",
    "security", "pathname", "label", "authentication", "privacy_level", "transactional", "multicast_address",
    "directory_path",
)  # fmt: skip
_MACHINE_ATTRIBUTES = tuple(UPDATED_MACHINE.values())


class Profile(StrEnum):
    """Whose queue manager is done like ([MS-MQCN] notes <3> and <4>)."""

    NT_2000 = "nt_2000"
    """Windows NT and Windows 2000: version 1 only, and at once."""
    LATER = "later"
    """All others: both versions, after a delay."""


class NotificationProcessor:
    r"""The queue manager's side of change notifications ([MS-MQCN] 3.2.5).

    Parameters
    ----------
    queue_manager : QueueManager
        The local one, with all its attributes.
    queues : iterable of Queue
        Its public queues.
    directory : callable
        Given the DomainController of a notification, or None, the directory to read; it may raise DirectoryError.
        Notifications of version 2 are not authenticated: whether to turn to the server that one names is up to it.
    verifier : callable
        Says how a message is authenticated; by default none is, and so no message of version 1 is applied.
    senders : collection of UUID, optional
        Queue managers to listen to in version 1; without it, all that are authenticated.
    profile : Profile

    Raises
    ------
    ValueError
        The queue manager or a queue was read without some of its attributes, or two queues have one Identifier or one
        Pathname.

    Attributes
    ----------
    queue_manager : QueueManager
        As it is now.
    queues : QueueCollection
        As they are now.
    processed : int
        Messages that were given, those disregarded as well.

    Examples
    --------
    >>> from msmqwire.directory import MemoryDirectory
    >>> here = QueueManager(identifier=UUID(int=1), computer_name="HERE")
    >>> orders = Queue(identifier=UUID("00112233-4455-6677-8899-aabbccddeeff"), pathname="here\\orders")
    >>> processor = NotificationProcessor(here, [orders], directory=lambda server: MemoryDirectory([]))
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
        directory: DirectoryAt,
        verifier: Verifier = unverified,
        senders: Collection[UUID] | None = None,
        profile: Profile = Profile.LATER,
    ) -> None:
        if len(queue_manager.attributes()) < len(QueueManager.attribute_names()):
            raise ValueError(f"some attributes of {queue_manager!r} were not read")
        self.queue_manager = queue_manager
        self.queues = QueueCollection(queues)
        self.profile = profile
        self.processed = 0
        self._directory = directory
        self._verifier = verifier
        self._senders = None if senders is None else frozenset(senders)
        names = (queue_manager.computer_name, queue_manager.qualified_computer_name)
        self._computers = frozenset(name.lower() for name in names if name)

    def process(self, body: bytes | bytearray | memoryview, envelope: Envelope = Envelope()) -> list[Record]:  # noqa: B008
        """Apply one message, or nothing of it.

        Returns
        -------
        list of Record
            One for each change, in order; or one for the message if it was disregarded.
        """
        number = self.processed
        self.processed += 1
        whole = Place(number, None, DISPATCH)
        try:
            message = decode(body, strict=True)
        except DecodeError as error:
            rule = Rule.VERSION if error.code == "bad_version" else Rule.MALFORMED
            return [whole.disregarded(rule, f"{error.code}: {error.field} at byte {error.offset}")]
        if message.body is not None:
            if self.profile is Profile.NT_2000:
                return [whole.disregarded(Rule.VERSION)]
            return [self.apply_event(Place(number, 0, VERSION_2), message.body)]
        if refused := self.envelope_refusal(envelope):
            return [Place(number, None, VERSION_1).disregarded(refused)]
        places = [Place(number, index, VERSION_1) for index in range(len(message.updates))]
        for place, update in zip(places, message.updates, strict=True):
            values = first_values(update.properties)
            if refused := refusal(update.object, update.command, update.path_name, values):
                return [place.disregarded(refused)]
        return [self.apply_update(place, update) for place, update in zip(places, message.updates, strict=True)]

    def process_batch(self, batch: NotificationBatch, envelopes: Envelope | Sequence[Envelope]) -> BatchAudit:
        """Apply the messages of a batch in their order, as :meth:`process` would one by one.

        Changes to queues that exist are applied as columns. The records are made when they are asked for, out of the
        batch: until then it must not be given as ``out`` to another decoding.

        Parameters
        ----------
        batch : NotificationBatch
            Decoded with ``strict=True`` and all columns.
        envelopes : Envelope, or sequence of Envelope
            One for each message; or one for all, which is then verified once.

        Raises
        ------
        ValueError
            The batch was not decoded strictly, or there are other than as many envelopes as messages.
        """
        return apply_batch(self, batch, envelopes)

    def refresh(self) -> list[Record]:
        """Read every queue in the directory again, as if it had been notified that it changed ([MS-MQCN] note <3>)."""
        place = Place(None, None, VERSION_2)
        return [self._queue_changed(place, queue.identifier, None) for queue in self.queues]

    def envelope_refusal(self, envelope: Envelope) -> Rule | None:
        """The rule by which a message of version 1 is disregarded for whom it comes from."""
        if envelope.sender_identifier_type is not SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER:
            return Rule.SENDER_TYPE
        if self._verifier(envelope) is AuthenticationLevel.NONE:
            return Rule.NOT_AUTHENTICATED
        if self._senders is not None and envelope.sender_identifier not in self._senders:
            return Rule.SENDER
        return None

    def is_local(self, pathname: str) -> bool:
        """Whether a path is that of a queue on this computer."""
        computer, _, queue = pathname.partition("\\")
        return bool(queue) and computer.lower() in self._computers

    def apply_update(self, place: Place, update: NotificationUpdate) -> Record:
        """Apply an update of version 1 that is no reason to disregard its message ([MS-MQCN] 3.2.5.1)."""
        if update.command == "delete":
            return self._delete(place, update.guid_identifier)
        if update.object == "machine":
            return self._machine_updated(place, update)
        values = first_values(update.properties)
        if update.command == "create":
            return self._create(place, update, values)
        guid = update.guid_identifier
        slot = self.queues.slot_at(update.path_name or "") if guid is None else self.queues.slot_of(guid)
        if slot is None:
            return place.ignored(Rule.NOT_FOUND, guid, update.path_name or "")
        return self._change(place, slot, attributes_of(Queue, UPDATED_QUEUE, values))

    def apply_event(self, place: Place, body: NotificationBody) -> Record:
        """Apply an event of version 2 ([MS-MQCN] 3.2.5.2)."""
        guid = body.object_guid
        if body.object == "machine":
            return self._machine_changed(place, guid, body.domain_controller)
        if body.operation == "create":
            return self._queue_created(place, guid, body.domain_controller)
        if body.operation == "change":
            return self._queue_changed(place, guid, body.domain_controller)
        return self._delete(place, guid)

    def _create(self, place: Place, update: NotificationUpdate, values: dict[int, Any]) -> Record:
        identifier, pathname = values[INSTANCE], pathname_of(update.path_name, values)
        if not self.is_local(pathname):
            return place.ignored(Rule.OTHER_COMPUTER, identifier, pathname)
        slot = self.queues.slot_of(identifier)
        slot = self.queues.slot_at(pathname) if slot is None else slot
        if slot is not None:
            return self._change(place, slot, attributes_of(Queue, UPDATED_QUEUE, values))
        told = attributes_of(Queue, CREATED_QUEUE, values)
        queue = Queue(**{**told, "pathname": pathname})
        self.queues.add(queue)
        return place.created(queue)

    def _change(self, place: Place, slot: int, values: dict[str, Any]) -> Changed:
        before = self.queues.values(slot, values)
        record = place.changed("queue", self.queues.identifier(slot), before, values)
        if record.changes:
            self.queues.update(slot, values)
        return record

    def _delete(self, place: Place, identifier: UUID | None) -> Record:
        if identifier is None:
            return place.ignored(Rule.NO_GUID)
        slot = self.queues.slot_of(identifier)
        if slot is None:
            return place.ignored(Rule.NOT_FOUND, identifier)
        return place.deleted(self.queues.remove(slot))

    def _machine_updated(self, place: Place, update: NotificationUpdate) -> Record:
        if update.command == "create":
            return place.ignored(Rule.MACHINE_CREATED, update.guid_identifier)
        if update.guid_identifier != self.queue_manager.identifier:
            return place.ignored(Rule.OTHER_MACHINE, update.guid_identifier)
        values = first_values(update.properties)
        return self._change_machine(place, attributes_of(QueueManager, UPDATED_MACHINE, values))

    def _change_machine(self, place: Place, values: dict[str, Any]) -> Changed:
        before = self.queue_manager.attributes()
        record = place.changed("machine", self.queue_manager.identifier, before, values)
        if record.changes:
            self.queue_manager = QueueManager.of({**before, **values})
        return record

    def _queue_created(self, place: Place, guid: UUID, server: str | None) -> Record:
        found = self._read(place, Queue, guid, server, _QUEUE_ATTRIBUTES)
        if isinstance(found, Ignored):
            return found
        if not self.is_local(found.pathname):
            return place.ignored(Rule.OTHER_COMPUTER, guid, found.pathname)
        slot = self.queues.slot_of(guid)
        slot = self.queues.slot_at(found.pathname) if slot is None else slot
        if slot is not None:
            return self._refresh(place, slot, found)
        queue = Queue(**found.attributes())
        self.queues.add(queue)
        return place.created(queue)

    def _queue_changed(self, place: Place, guid: UUID, server: str | None) -> Record:
        found = self._read(place, Queue, guid, server, _QUEUE_ATTRIBUTES)
        if isinstance(found, Ignored):
            return found
        if not self.is_local(found.pathname):
            return place.ignored(Rule.OTHER_COMPUTER, guid, found.pathname)
        slot = self.queues.slot_of(guid)
        return place.ignored(Rule.NOT_FOUND, guid) if slot is None else self._refresh(place, slot, found)

    def _refresh(self, place: Place, slot: int, found: Queue) -> Record:
        if self.queues.slot_at(found.pathname) not in (None, slot):
            return place.ignored(Rule.PATHNAME_TAKEN, found.identifier, found.pathname)
        values = found.attributes()
        del values["identifier"]
        return self._change(place, slot, values)

    def _machine_changed(self, place: Place, guid: UUID, server: str | None) -> Record:
        if guid != self.queue_manager.identifier:
            return place.ignored(Rule.OTHER_MACHINE, guid)
        found = self._read(place, QueueManager, guid, server, _MACHINE_ATTRIBUTES)
        return found if isinstance(found, Ignored) else self._change_machine(place, found.attributes())

    def _read(
        self, place: Place, element: type[Element], guid: UUID, server: str | None, attributes: tuple[str, ...]
    ) -> Element | Ignored:
        """An object with all the attributes asked for, or why there is none."""
        try:
            found = self._directory(server).read_directory(element, [Equal("identifier", guid)], attributes)
        except DirectoryError as error:
            return place.ignored(Rule.DIRECTORY, guid, str(error))
        if found is None:
            return place.ignored(Rule.NOT_IN_DIRECTORY, guid)
        values = found.attributes()
        if missing := [name for name in attributes if name not in values]:
            return place.ignored(Rule.DIRECTORY, guid, f"no {missing[0]}")
        if values.get("identifier", guid) != guid:
            return place.ignored(Rule.DIRECTORY, guid, f"answered with {found.identifier}")
        return found
