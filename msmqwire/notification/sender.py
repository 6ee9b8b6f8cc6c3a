r"""The client of [MS-MQCN] 3.3 without I/O: makes the messages that notify queue managers of changes.

>>> from uuid import UUID
>>> from msmqwire.directory import Queue
>>> sender = Sender(queue_manager=UUID(int=1), domain_controller="dc1")
>>> orders = Queue(identifier=UUID(int=2), pathname=r"ledger\orders")
>>> [notification] = sender.notifications([QueueDeletion(queue=orders, queue_manager=UUID(int=3))])
>>> print(notification.destination_queue)
PRIVATE=00000000-0000-0000-0000-000000000003\3
>>> notification.message.body.operation
'delete'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias
from uuid import UUID

from msmqwire.directory.elements import Queue, QueueManager
from msmqwire.errors import EncodeError
from msmqwire.formatname import PrivateName
from msmqwire.mqcn import ChangeNotificationMessage, NotificationBody, NotificationUpdate, encode, encode_body
from msmqwire.mqcn.values import EVENTS
from msmqwire.mqqb import SecurityHeader, UserMessage
from msmqwire.mqqb.groups import SECURITY_DATA_PRESENT
from msmqwire.mqqb.message.schema import SENDER_ID_TYPES
from msmqwire.notification.attributes import MAX_BYTES, display_name, property_value, read_attribute
from msmqwire.notification.carried_attributes import CREATED_QUEUE, UPDATED_MACHINE, UPDATED_QUEUE
from msmqwire.notification.envelope import NOTIFY_QUEUE, AuthenticationLevel
from msmqwire.notification.judgement import Rule, rule_against_pathname
from msmqwire.properties import (
    PROPID_D_OBJTYPE,
    PROPID_D_SCOPE,
    PROPID_Q_QMID,
    PROPID_QM_FOREIGN,
    PROPID_QM_MACHINE_ID,
)

__all__ = [
    "Change",
    "Notification",
    "QueueCreation",
    "QueueDeletion",
    "QueueManagerUpdate",
    "QueueUpdate",
    "Sender",
    "Signature",
]

TIME_TO_REACH_QUEUE = 300
MOST_UPDATES = 0xFF

_MQDS_ENTERPRISESCOPE = 1
_MQDS_QUEUE = 1
_MD5, _SHA_1, _SHA_512 = 0x8003, 0x8004, 0x800E
_SENT_BY_QUEUE_MANAGER = SENDER_ID_TYPES.index("queue_manager")
_DEFAULT_PROVIDER = 0x40


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueCreation:
    """A queue was created in the directory.

    Attributes
    ----------
    queue : Queue
        With all the attributes that a notification carries, or for version 2 with its identifier.
    queue_manager : UUID
        The queue manager that hosts it.
    """

    queue: Queue
    queue_manager: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDeletion:
    """A queue was deleted from the directory: what it was, and the queue manager that hosts it."""

    queue: Queue
    queue_manager: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueUpdate:
    """A queue was changed in the directory.

    Attributes
    ----------
    new : Queue
        What it is; for version 2 its identifier is enough.
    queue_manager : UUID
        The queue manager that hosts it.
    old : Queue or None
        What it was; None if that is not known. Then every attribute of ``new`` counts as changed.
    """

    new: Queue
    queue_manager: UUID
    old: Queue | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueManagerUpdate:
    """A queue manager was changed in the directory: what it is, and what it was, as in ``QueueUpdate``."""

    new: QueueManager
    old: QueueManager | None = None

    @property
    def queue_manager(self) -> UUID:
        """The queue manager to notify."""
        identifier: UUID = read_attribute(self.new, "identifier")
        return identifier


#: What happened in a directory: iOperation and iDirectoryObject of [MS-MQCN] 3.3.4.1.
Change: TypeAlias = QueueCreation | QueueUpdate | QueueDeletion | QueueManagerUpdate


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """The signature of a message, as SecurityHeader carries it ([MS-MQMQ] 2.2.20.6)."""

    signature: bytes
    sender_certificate: bytes | None = None
    provider_info: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A message for the notify queue of a queue manager: [MS-MQCN] 3.3.5.3.

    Attributes
    ----------
    message : ChangeNotificationMessage
    source : UUID
        The queue manager that sends it.
    queue_manager : UUID
        The queue manager that receives it.
    sender_identifier : UUID or None
        SenderIdentifier, of the type QueueManagerIdentifier; None for version 2.
    authentication_level : AuthenticationLevel
        How to sign it.
    hash_algorithm : int
        The hash of the signature.
    time_to_reach_queue : int
        Seconds.
    """

    message: ChangeNotificationMessage
    source: UUID
    queue_manager: UUID
    authentication_level: AuthenticationLevel
    hash_algorithm: int
    time_to_reach_queue: int = TIME_TO_REACH_QUEUE
    sender_identifier: UUID | None = None

    @property
    def destination_queue(self) -> PrivateName:
        """The notify queue of the receiver, for Open Queue with SendAccess and DenyNone ([MS-MQCN] 3.3.3)."""
        return PrivateName(self.queue_manager, NOTIFY_QUEUE)

    @property
    def body(self) -> bytes:
        """The message and the unused byte after it."""
        return encode_body(self.message)

    def packet(
        self,
        *,
        sent_time: datetime | int = 0,
        message_id: int = 0,
        sign: Callable[[UserMessage, AuthenticationLevel], Signature] | None = None,
    ) -> UserMessage:
        """The packet that carries the message.

        Parameters
        ----------
        sent_time : datetime or int
            A time with a time zone, or seconds since 1970.
        message_id : int
            A number of the sender's choice.
        sign : callable, optional
            Signs a packet for ``authentication_level``, with the hash that the packet names. A conforming receiver
            disregards an unsigned packet of version 1.

        Raises
        ------
        EncodeError
            The packet cannot be encoded.
        """

        def packet(signature: Signature | None) -> UserMessage:
            return UserMessage(
                destination_queue=self.destination_queue,
                source_queue_manager=self.source,
                time_to_reach_queue=self.time_to_reach_queue,
                sent_time=sent_time,
                message_id=message_id,
                delivery_mode="express",
                hash_algorithm=self.hash_algorithm,
                body=self.body,
                security=self._security(signature),
            )

        unsigned = packet(None)
        return unsigned if sign is None else packet(sign(unsigned, self.authentication_level))

    def _security(self, signature: Signature | None) -> SecurityHeader | None:
        sender = self.sender_identifier
        if sender is None and signature is None:
            return None
        return SecurityHeader(
            security_flags=SECURITY_DATA_PRESENT
            | (0 if sender is None else _SENT_BY_QUEUE_MANAGER)
            | (0 if signature is None or signature.provider_info else _DEFAULT_PROVIDER),
            security_id=None if sender is None else sender.bytes_le,
            signature=None if signature is None else signature.signature,
            sender_certificate=None if signature is None else signature.sender_certificate,
            provider_info=None if signature is None else signature.provider_info,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """Makes notifications: version 1 for a directory service, version 2 for a queue manager.

    Attributes
    ----------
    queue_manager : UUID
        The queue manager that sends.
    master : UUID or None
        Version 1: the directory service that the changes come from.
    domain_controller : str or None
        Version 2: the directory server where they were made. Exactly one of the two is given.
    sender_identifier : UUID or None
        Version 1: the queue manager that messages name as their sender. None names the receiver of each message, as
        [MS-MQCN] 3.3.5.3 says; the source of the packet is ``queue_manager`` in either case.
    msmq_version : int
        Determines hash and level of signatures ([MS-MQCN] notes <12> and <13>).
    """

    queue_manager: UUID
    master: UUID | None = None
    domain_controller: str | None = None
    sender_identifier: UUID | None = None
    msmq_version: Literal[1, 2, 3, 4, 5, 6] = 4

    def __post_init__(self) -> None:
        if (self.master is None) == (self.domain_controller is None):
            raise ValueError("a sender has either a master, for version 1, or a domain_controller, for version 2")
        if self.sender_identifier is not None and self.master is None:
            raise ValueError("version 2 has no sender identifier, since it is not authenticated")
        for name in ("queue_manager", "master", "sender_identifier"):
            value = getattr(self, name)
            if not isinstance(value, UUID | None):
                raise ValueError(f"{name} is {value!r}: not a uuid.UUID")
        if self.msmq_version not in range(1, 7):
            raise ValueError(f"msmq_version is {self.msmq_version!r}: not from 1 to 6")

    @property
    def version(self) -> Literal[1, 2]:
        """The version of the messages."""
        return 2 if self.master is None else 1

    def notifications(self, changes: Iterable[Change]) -> list[Notification]:
        """The messages for changes that have been made; those for one queue manager in the order of the changes.

        Version 2 has a message for each change. Version 1 has one for up to 255 changes, and none for a change of
        attributes that it cannot carry. An update in which no attribute differs has no message.

        Raises
        ------
        TypeError
            One of them is no change.
        EncodeError
            An attribute, its ``field``, was not read or cannot be sent, or the queue is private, so that it is not
            notified ([MS-MQCN] 1.6); its ``reason`` names the object.
        """
        changes = list(changes)
        for change in changes:
            if not isinstance(change, Change):
                raise TypeError(f"a {type(change).__name__} is not a change")
            _refuse_private(change)
        if self.domain_controller is not None:
            return [
                self._notification(each.queue_manager, _event(each, self.domain_controller))
                for each in changes
                if not isinstance(each, QueueUpdate | QueueManagerUpdate)
                or each.old is None
                or _modified(each.old, each.new)
            ]
        assert self.master is not None
        updates: dict[UUID, list[NotificationUpdate]] = {}
        for change in changes:
            update = _update(change, self.master)
            if update is not None:
                updates.setdefault(change.queue_manager, []).append(update)
        return [
            self._notification(queue_manager, message)
            for queue_manager, each in updates.items()
            for message in _messages(each)
        ]

    def _notification(self, queue_manager: UUID, message: ChangeNotificationMessage) -> Notification:
        algorithm = _MD5 if self.msmq_version <= 2 else _SHA_1 if self.msmq_version <= 4 else _SHA_512
        return Notification(
            message=message,
            source=self.queue_manager,
            queue_manager=queue_manager,
            sender_identifier=(self.sender_identifier or queue_manager) if message.version == 1 else None,
            authentication_level=AuthenticationLevel.SIG10 if self.msmq_version == 1 else AuthenticationLevel.SIG20,
            hash_algorithm=algorithm,
        )


def _refuse_private(change: Change) -> None:
    """EncodeError for a change of a private queue, in either version."""
    queues: tuple[Queue | None, ...] = ()
    if isinstance(change, QueueUpdate):
        queues = (change.old, change.new)
    elif isinstance(change, QueueCreation | QueueDeletion):
        queues = (change.queue,)
    for queue in queues:
        path = None if queue is None else queue.attributes().get("pathname")
        if queue is not None and path and rule_against_pathname(path) is Rule.PRIVATE_QUEUE:
            raise EncodeError("pathname", f"{display_name(queue)}: is a private queue, which is not notified")


def _modified(old: Queue | QueueManager, new: Queue | QueueManager) -> set[str]:
    """The attributes that differ between two states of one object."""
    before, after = old.attributes(), new.attributes()
    if type(old) is not type(new) or read_attribute(old, "identifier") != read_attribute(new, "identifier"):
        raise EncodeError("identifier", f"{display_name(new)}: is not the same object as {display_name(old)}")
    for attribute in before.keys() ^ after.keys():
        raise EncodeError(attribute, f"{display_name(new)}: was not read both before and after the change")
    return {attribute for attribute, value in after.items() if value != before[attribute]}


def _event(change: Change, domain_controller: str) -> ChangeNotificationMessage:
    """The message of version 2 for a change: [MS-MQCN] 3.3.5.1."""
    element: Queue | QueueManager
    match change:
        case QueueCreation():
            event, element = EVENTS["create", "queue"], change.queue
        case QueueUpdate():
            event, element = EVENTS["change", "queue"], change.new
        case QueueDeletion():
            event, element = EVENTS["delete", "queue"], change.queue
        case QueueManagerUpdate():
            event, element = EVENTS["change", "machine"], change.new
    try:
        body = NotificationBody(event, read_attribute(element, "identifier"), domain_controller)
        return ChangeNotificationMessage(2, body=body)
    except EncodeError as error:
        raise EncodeError(error.field, f"{display_name(element)}: {error.reason}") from None


def _update(change: Change, master: UUID) -> NotificationUpdate | None:
    """The update for a change: [MS-MQCN] 3.3.5.2; None if no PROPID carries it."""
    if isinstance(change, QueueCreation):
        properties = _properties(change.queue, CREATED_QUEUE)
        try:
            return NotificationUpdate(
                command="create", path_name=change.queue.pathname, guid_master_id=master, properties=properties
            )
        except EncodeError as error:
            raise EncodeError("pathname", f"{display_name(change.queue)}: {error.reason}") from None
    if isinstance(change, QueueDeletion):
        return NotificationUpdate(
            command="delete",
            guid_identifier=read_attribute(change.queue, "identifier"),
            guid_master_id=master,
            properties=[(PROPID_D_SCOPE, _MQDS_ENTERPRISESCOPE), (PROPID_D_OBJTYPE, _MQDS_QUEUE)],
        )
    table = UPDATED_QUEUE if isinstance(change, QueueUpdate) else UPDATED_MACHINE
    modified = change.new.attributes() if change.old is None else _modified(change.old, change.new)
    changed = {propid: attribute for propid, attribute in table.items() if attribute in modified}
    if not changed and change.old is None:
        raise EncodeError(next(iter(table.values())), f"{display_name(change.new)}: was not read")
    if not changed:
        return None
    if isinstance(change, QueueUpdate):
        required = [(PROPID_Q_QMID, change.queue_manager)]
    else:
        required = [
            (PROPID_QM_MACHINE_ID, change.queue_manager),
            (PROPID_QM_FOREIGN, property_value(change.new, "foreign_system", PROPID_QM_FOREIGN)),
        ]
    return NotificationUpdate(
        command="change",
        guid_identifier=read_attribute(change.new, "identifier"),
        guid_master_id=master,
        properties=[*required, *_properties(change.new, changed)],
    )


def _properties(element: Queue | QueueManager, table: Mapping[int, str]) -> list[tuple[int, Any]]:
    return [(propid, property_value(element, attribute, propid)) for propid, attribute in table.items()]


def _messages(updates: Iterable[NotificationUpdate]) -> Iterator[ChangeNotificationMessage]:
    """The updates in as few messages as possible, in their order."""
    group: list[NotificationUpdate] = []
    free = MAX_BYTES
    for update in updates:
        size = len(encode(ChangeNotificationMessage(1, [update])))
        if group and (size > free or len(group) == MOST_UPDATES):
            yield ChangeNotificationMessage(1, group)
            group, free = [], MAX_BYTES
        group.append(update)
        free -= size
    if group:
        yield ChangeNotificationMessage(1, group)
