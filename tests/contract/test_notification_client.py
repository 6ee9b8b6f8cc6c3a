"""The checklist of those who send change notifications: [MS-MQCN] 3.3, 1.9."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.directory import PrivacyLevel, Queue, QueueManager
from msmqwire.notification.envelope import AuthenticationLevel
from msmqwire.notification.sender import (
    Change,
    Notification,
    QueueCreation,
    QueueDeletion,
    QueueManagerUpdate,
    QueueUpdate,
    Sender,
)
from tests.contract.checklist import row

HOST, SENDER, MASTER = UUID(int=0x405), UUID(int=0x5E2), UUID(int=0x3A5)
QUEUE = Queue(identifier=UUID(int=5), pathname=r"host\orders")
CHANGED = Queue.of({**QUEUE.attributes(), "quota": 5, "privacy_level": PrivacyLevel.BODY})
MACHINE = QueueManager(identifier=HOST, computer_name="host")
CHANGED_MACHINE = QueueManager.of({**MACHINE.attributes(), "queue_manager_quota": 5})
CHANGES: list[Change] = [
    QueueCreation(queue=QUEUE, queue_manager=HOST),
    QueueUpdate(old=QUEUE, new=CHANGED, queue_manager=HOST),
    QueueDeletion(queue=QUEUE, queue_manager=HOST),
    QueueManagerUpdate(old=MACHINE, new=CHANGED_MACHINE),
]


def version_1(changes: list[Change] = CHANGES, msmq_version: int = 4) -> list[Notification]:
    sender = Sender(queue_manager=SENDER, master=MASTER, msmq_version=msmq_version)  # type: ignore[arg-type]
    return sender.notifications(changes)


def version_2(changes: list[Change] = CHANGES, msmq_version: int = 4) -> list[Notification]:
    sender = Sender(queue_manager=SENDER, domain_controller="dc1", msmq_version=msmq_version)  # type: ignore[arg-type]
    return sender.notifications(changes)


def on_the_wire(notification: Notification) -> mqqb.UserMessage:
    packet = mqqb.decode(mqqb.encode(notification.packet()), strict=True)
    assert isinstance(packet, mqqb.UserMessage)
    return packet


@row("CNC-01")
def test_a_message_of_version_2_carries_one_notification() -> None:
    notifications = version_2()
    assert [each.body[:2] for each in notifications] == [b"\2\1"] * 4
    bodies = [each.message.body for each in notifications]
    assert [body and body.event for body in bodies] == [1, 2, 3, 4]
    assert [body and body.object_guid for body in bodies] == [QUEUE.identifier] * 3 + [HOST]


@row("CNC-07")
@pytest.mark.parametrize(
    ("msmq_version", "level", "algorithm"),
    [
        (1, AuthenticationLevel.SIG10, 0x8003),
        (2, AuthenticationLevel.SIG20, 0x8003),
        (3, AuthenticationLevel.SIG20, 0x8004),
        (4, AuthenticationLevel.SIG20, 0x8004),
        (5, AuthenticationLevel.SIG20, 0x800E),
        (6, AuthenticationLevel.SIG20, 0x800E),
    ],
)
def test_properties_of_the_message(msmq_version: int, level: AuthenticationLevel, algorithm: int) -> None:
    for notification in version_1(msmq_version=msmq_version) + version_2(msmq_version=msmq_version):
        packet = on_the_wire(notification)
        assert (packet.time_to_reach_queue, packet.delivery_mode, packet.message_class) == (300, "express", 0)
        assert (notification.authentication_level, packet.hash_algorithm) == (level, algorithm)
        assert (packet.message_size, packet.privacy_level, packet.transaction) == (len(notification.body), 0, None)
        assert packet.source_queue_manager == SENDER


@row("CNC-08")
def test_version_1_names_the_queue_manager() -> None:
    for change in CHANGES:
        (notification,) = version_1([change])
        security = on_the_wire(notification).security
        assert security is not None
        assert (security.sender_id_type, security.security_id) == ("queue_manager", HOST.bytes_le)
    assert [on_the_wire(each).security for each in version_2()] == [None] * 4


@row("CNC-09")
def test_the_destination_is_the_notify_queue() -> None:
    for notification in version_1() + version_2():
        packet = on_the_wire(notification)
        assert str(packet.destination_queue) == f"PRIVATE={HOST}\\3"
        assert str(notification.destination_queue) == f"PRIVATE={HOST}\\3"
        assert (packet.queue_manager_address, packet.notification) == (HOST, "plain")
