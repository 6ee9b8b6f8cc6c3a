"""Messages, a directory that can fail, and the processor beside its oracle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from msmqwire import mqcn
from msmqwire.directory import Directory, MemoryDirectory, Queue, QueueManager
from msmqwire.errors import DirectoryNotConnected
from msmqwire.notification.audit import Changed, Created, Deleted, Disregarded, Ignored, Overflowed, Record
from msmqwire.notification.envelope import AuthenticationLevel, Envelope, SenderIdentifierType
from msmqwire.notification.processor import NotificationProcessor
from tests.reference.processor import DEFAULTS, ReferenceProcessor

MACHINE, MASTER, SENDER = UUID(int=0x100), UUID(int=0x200), UUID(int=0x300)
ORDERS, BILLS, SPARE, ELSEWHERE = (UUID(int=each) for each in (1, 2, 3, 4))
HERE = QueueManager(identifier=MACHINE, computer_name="HERE", qualified_computer_name="here.example")

SIGNED = Envelope(
    sender_identifier_type=SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER, sender_identifier=SENDER, packet="signed"
)
UNSIGNED = Envelope(sender_identifier_type=SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER, sender_identifier=SENDER)
FROM_USER = Envelope(sender_identifier_type=SenderIdentifierType.SID, sender_identifier=b"\1\1", packet="signed")


def verifier(envelope: Envelope) -> AuthenticationLevel:
    """Vouches for what says so, which is good enough for a test."""
    return AuthenticationLevel.SIG20 if envelope.packet == "signed" else AuthenticationLevel.NONE


def queue(identifier: UUID, name: str, **values: Any) -> Queue:
    """A queue here."""
    return Queue(identifier=identifier, pathname=f"here\\{name}", **values)


class Failing(Directory):
    """A directory whose reads fail on demand, and that counts them."""

    def __init__(self, objects: Iterable[Any] = ()) -> None:
        super().__init__()
        self.fails: frozenset[int] = frozenset()
        self.reads = 0
        self._objects = {each.identifier: each for each in objects}

    def put(self, element: Any) -> None:
        self._objects[element.identifier] = element

    def drop(self, identifier: UUID) -> None:
        self._objects.pop(identifier, None)

    def _search(self, element: Any, filters: Any, attributes: Any) -> Iterator[Any]:
        self.reads += 1
        if self.reads in self.fails:
            raise DirectoryNotConnected("no route to the directory")
        return MemoryDirectory(self._objects.values()).read_all(element, filters, attributes)


def update(
    command: Any, guid: UUID | None = None, path: str | None = None, properties: Iterable[tuple[int, Any]] = ()
) -> mqcn.NotificationUpdate:
    """A Notification Update; by default of what MASTER holds."""
    return mqcn.NotificationUpdate(
        command=command, guid_identifier=guid, path_name=path, guid_master_id=MASTER, properties=properties
    )


def change(guid: UUID, *properties: tuple[int, Any]) -> mqcn.NotificationUpdate:
    """An update of a queue."""
    return update("change", guid, properties=[(115, MACHINE), *properties])


def create(guid: UUID, path: str, *properties: tuple[int, Any]) -> mqcn.NotificationUpdate:
    """A creation of a queue."""
    return update("create", path=path, properties=[(101, guid), (103, path), *properties])


def delete(guid: UUID) -> mqcn.NotificationUpdate:
    """A deletion of a queue."""
    return update("delete", guid, properties=[(1403, 1), (1404, 1)])


def machine(guid: UUID, *properties: tuple[int, Any]) -> mqcn.NotificationUpdate:
    """An update of a queue manager."""
    return update("change", guid, properties=[(202, guid), (219, 0), *properties])


def version_1(*updates: mqcn.NotificationUpdate) -> bytes:
    """A body with these updates."""
    return mqcn.encode_body(mqcn.ChangeNotificationMessage(1, updates), enforce=False)


def version_2(event: int, guid: UUID, server: str = "dc1") -> bytes:
    """A body with this event."""
    return mqcn.encode_body(mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(event, guid, server)))


def processor(
    queues: Iterable[Queue] = (), directory: Directory | None = None, **options: Any
) -> NotificationProcessor:
    """The processor of HERE."""
    answers = MemoryDirectory([]) if directory is None else directory
    return NotificationProcessor(HERE, queues, directory=lambda server: answers, **{"verifier": verifier, **options})


def state(of: NotificationProcessor) -> tuple[dict[str, Any], dict[UUID, dict[str, Any]]]:
    """The queue manager and its queues, as far as notifications change them."""
    names = ("queue_manager_quota", "journal_quota", "security")
    return (
        {name: getattr(of.queue_manager, name) for name in names},
        {each.identifier: each.attributes() for each in of.queues},
    )


def reference(queues: Iterable[Queue], read: Any) -> ReferenceProcessor:
    """The oracle, in the state that a processor begins in."""
    return ReferenceProcessor(HERE.attributes(), [DEFAULTS | each.attributes() for each in queues], read)


def reference_state(of: ReferenceProcessor) -> tuple[dict[str, Any], dict[UUID, dict[str, Any]]]:
    """What ``state`` gives, from the oracle."""
    names = ("queue_manager_quota", "journal_quota", "security")
    return {name: of.machine[name] for name in names}, {each["identifier"]: each for each in of.queues}


def outcome(record: Record) -> tuple[Any, ...]:
    """A record as the oracle has it."""
    if isinstance(record, Created):
        return ("created", record.queue.identifier, record.replaced and record.replaced.identifier)
    if isinstance(record, Deleted):
        return ("deleted", record.queue.identifier)
    if isinstance(record, Changed):
        changes = {each.attribute: (each.before, each.after) for each in record.changes}
        return ("changed", "machine" if record.object == "machine" else record.identifier, changes)
    if isinstance(record, Overflowed):
        return ("overflowed", record.dropped)
    assert isinstance(record, Ignored | Disregarded)
    return ("ignored" if isinstance(record, Ignored) else "disregarded", record.rule.value)
