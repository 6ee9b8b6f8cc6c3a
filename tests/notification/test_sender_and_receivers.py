"""What a directory says to the sender is what the processor and a replay make of its messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from msmqwire import mqqb
from msmqwire.directory import Directory, MemoryDirectory, PrivacyLevel, Queue, Scope
from msmqwire.notification.carried_attributes import CREATED_QUEUE
from msmqwire.notification.envelope import AuthenticationLevel, Envelope, SenderIdentifierType
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.notification.sender import Change, QueueCreation, QueueDeletion, QueueUpdate, Sender
from tests.notification.sent import LEDGER, MACHINE, MANAGER, ORDERS, SERVICE, captured, changed, replayed

TOLD = tuple(CREATED_QUEUE.values())
NAMES = ("one", "two", "three")

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "quota": st.integers(0, 3),
        "journaling": st.booleans(),
        "base_priority": st.integers(-2, 2),
        "privacy_level": st.sampled_from(PrivacyLevel),
        "security": st.binary(max_size=3),
    },
)
STEPS = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans(), VALUES), max_size=12)


class History:
    """A directory with the changes made to it: a step creates a queue, changes or deletes one that is there."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self._created = 0

    def step(self, name: str, deletes: bool, values: dict[str, Any]) -> Change:
        old = self.queues.get(name)
        if old is None:
            self._created += 1
            names = {"identifier": UUID(int=self._created), "pathname": f"ledger\\{name}"}
            # Version 2 has Scope not among what is read ([MS-MQCN] 3.2.5.2): the receiver has the default
            self.queues[name] = changed(ORDERS, scope=Scope.ENTERPRISE, **names, **values)
            return QueueCreation(queue=self.queues[name], queue_manager=LEDGER)
        if deletes:
            return QueueDeletion(queue=self.queues.pop(name), queue_manager=LEDGER)
        self.queues[name] = changed(old, **values)
        return QueueUpdate(old=old, new=self.queues[name], queue_manager=LEDGER)

    def directory(self, _: str | None) -> Directory:
        return MemoryDirectory(self.queues.values())

    def told(self) -> dict[UUID, Queue]:
        return {queue.identifier: queue.only(TOLD) for queue in self.queues.values()}


def received(packet: bytes) -> tuple[memoryview, Envelope]:
    """What a queue manager hands to its processor."""
    message = mqqb.decode(packet, strict=True, transport="tcp")
    assert isinstance(message, mqqb.UserMessage)
    if message.security is None:
        return message.body, Envelope()
    assert message.security.sender_id_type == "queue_manager"
    assert message.security.security_id is not None
    return message.body, Envelope(
        sender_identifier_type=SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER,
        sender_identifier=UUID(bytes_le=message.security.security_id),
    )


def processed(history: History, sender: Sender, steps: list[Any]) -> NotificationProcessor:
    """The processor of the machine that is told of each step when it has been made."""
    processor = NotificationProcessor(
        MACHINE, directory=history.directory, verifier=lambda _: AuthenticationLevel.SIG20, senders=[LEDGER]
    )
    for step in steps:
        for notification in sender.notifications([history.step(*step)]):
            processor.process(*received(mqqb.encode(notification.packet())))
    return processor


@given(STEPS)
def test_the_processor_has_what_the_directory_has(steps: list[Any]) -> None:
    for sender in (SERVICE, MANAGER):
        history = History()
        processor = processed(history, sender, steps)
        assert {queue.identifier: queue.only(TOLD) for queue in processor.queues} == history.told()


@given(STEPS)
def test_a_replay_has_what_the_directory_has(steps: list[Any]) -> None:
    history = History()
    changes = [history.step(*step) for step in steps]
    found = replayed(captured(SERVICE.notifications(changes)))
    assert {each.queue.identifier: each.queue for each in found.queues if each.exists} == history.told()
    assert sum(len(each.history) for each in found.queues) == sum(
        not isinstance(change, QueueUpdate) or change.old != change.new for change in changes
    )
    # Version 2 says which queues there are
    found = replayed(captured(MANAGER.notifications(changes)))
    assert {each.queue.identifier for each in found.queues if each.exists} == history.told().keys()
