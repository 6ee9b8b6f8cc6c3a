"""Both ends of notifications with one configuration, private queues, and queues as a directory has them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.directory import Equal, MemoryDirectory, Queue, QueueManager, QueueManagerDirectory
from msmqwire.directory.base import InvalidObjectError, Problem
from msmqwire.directory.ldap_schema import DERIVED, MAPPING, OFTEN_UNSET
from msmqwire.directory.queues import QueueCollection
from msmqwire.errors import DirectoryError, DirectoryNotConnected, EncodeError
from msmqwire.notification.audit import Changed, Ignored, Overflowed
from msmqwire.notification.envelope import Envelope, trusted
from msmqwire.notification.judgement import Rule
from msmqwire.notification.processor import NotificationProcessor, Profile
from msmqwire.notification.schedule import NotificationServer
from msmqwire.notification.sender import (
    QueueCreation,
    QueueDeletion,
    QueueManagerUpdate,
    QueueUpdate,
    Sender,
    Signature,
)
from tests.notification import processing as p
from tests.notification.sent import LEDGER, MACHINE, MASTER, ORDERS, changed

SERVER, OTHER = UUID(int=0x51), UUID(int=0x52)
PRIVATE = changed(ORDERS, pathname="ledger\\private$\\orders")
VERSIONS: list[dict[str, Any]] = [{"master": MASTER}, {"domain_controller": "dc1"}]


@pytest.mark.parametrize("version", VERSIONS, ids=["version 1", "version 2"])
@pytest.mark.parametrize(
    "change",
    [
        QueueCreation(queue=PRIVATE, queue_manager=LEDGER),
        QueueUpdate(old=PRIVATE, new=changed(PRIVATE, quota=1), queue_manager=LEDGER),
        QueueDeletion(queue=PRIVATE, queue_manager=LEDGER),
    ],
    ids=["create", "update", "delete"],
)
def test_r16_private_queues_are_not_sent(version: dict[str, Any], change: Any) -> None:
    with pytest.raises(EncodeError, match="is a private queue, which is not notified") as caught:
        Sender(queue_manager=SERVER, **version).notifications([change])
    assert caught.value.field == "pathname"


@pytest.mark.parametrize(
    ("sender_identifier", "expected", "applied"),
    [(None, SERVER, True), (None, LEDGER, True), (SERVER, SERVER, True), (None, OTHER, False), (OTHER, SERVER, False)],
)
@pytest.mark.parametrize("how", ["verifier", "senders"])
def test_r17_sender_and_receiver_fit(sender_identifier: UUID | None, expected: UUID, applied: bool, how: str) -> None:
    sender = Sender(queue_manager=SERVER, master=MASTER, sender_identifier=sender_identifier)
    update = QueueUpdate(old=ORDERS, new=changed(ORDERS, quota=7), queue_manager=LEDGER)
    (sent,) = sender.notifications([update])
    assert sent.sender_identifier == (sender_identifier or LEDGER)
    received: Any = mqqb.decode(mqqb.encode(sent.packet(sign=lambda *_: Signature(signature=b"..."))))
    accepts: dict[str, Any] = {"verifier": trusted([expected])}
    if how == "senders":
        accepts = {"verifier": trusted([SERVER, LEDGER, OTHER]), "senders": [expected]}
    processor = NotificationProcessor(MACHINE, [ORDERS], directory=MemoryDirectory([]), **accepts)
    (record,) = processor.process(received.body, Envelope.of(received))
    assert isinstance(record, Changed) == applied


def test_version_2_has_no_sender_identifier() -> None:
    with pytest.raises(ValueError, match="version 2 has no sender identifier"):
        Sender(queue_manager=SERVER, domain_controller="dc1", sender_identifier=SERVER)


def test_an_object_of_which_only_the_identity_is_known() -> None:
    known = ORDERS.only(("identifier",))
    events: list[Any] = [
        QueueCreation(queue=known, queue_manager=LEDGER),
        QueueUpdate(new=known, queue_manager=LEDGER),
        QueueDeletion(queue=known, queue_manager=LEDGER),
        QueueManagerUpdate(new=MACHINE.only(("identifier",))),
    ]
    sent = Sender(queue_manager=SERVER, domain_controller="dc1").notifications(events)
    assert [each.message.body and each.message.body.event for each in sent] == [1, 2, 3, 4]
    service = Sender(queue_manager=SERVER, master=MASTER)
    with pytest.raises(EncodeError, match="was not read"):
        service.notifications([QueueUpdate(new=known, queue_manager=LEDGER)])
    (whole,) = service.notifications([QueueUpdate(new=ORDERS, queue_manager=LEDGER)])
    assert len(whole.message.updates[0].properties) == 8


@pytest.mark.parametrize("failure", [DirectoryNotConnected("no route"), RuntimeError("no memory")])
def test_a_refresh_stays_due_until_it_has_succeeded(failure: Exception) -> None:
    objects = {p.ORDERS: p.queue(p.ORDERS, "orders", quota=3)}
    failing = [failure]

    class Sometimes(MemoryDirectory):
        def _search(self, *query: Any) -> Any:
            if failing:
                raise failing[0]
            return super()._search(*query)

    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")], Sometimes(objects.values())))
    for _ in range(101):
        server.receive(b"\1\0", now=0)
    if isinstance(failure, DirectoryError):
        overflow, ignored = server.tick(60)
        assert isinstance(overflow, Overflowed)
        assert (overflow.dropped, type(ignored)) == (101, Ignored)
        server.receive(b"\1\0", now=61)
    else:
        with pytest.raises(RuntimeError, match="no memory"):
            server.tick(60)
    assert server.overflowed
    failing.clear()
    due: Any = server.deadline
    *_, changed_ = server.tick(due)
    assert isinstance(changed_, Changed)
    assert (server.deadline, server.overflowed) == (None, False)


def test_a_refresh_is_done_although_an_object_is_invalid() -> None:
    """The directory has answered; to read the object again would drop all messages for ever."""

    class Invalid(MemoryDirectory):
        def _search(self, *query: Any) -> Any:
            raise InvalidObjectError(Problem("orders", "security", "is not set"))

    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")], Invalid([])))
    for _ in range(101):
        server.receive(b"\1\0", now=0)
    _, ignored = server.tick(60)
    assert isinstance(ignored, Ignored)
    assert ignored.rule is Rule.DIRECTORY
    assert (server.deadline, server.overflowed, server.processor.unreached) == (None, False, 0)


def as_ldap_reads(element: Any) -> Any:
    """An object with the attributes that a read of all of them over LDAP surely has."""
    kind = type(element)
    return element.only(tuple(sorted((MAPPING[kind].keys() | DERIVED[kind].keys()) - OFTEN_UNSET)))


def test_a_queue_manager_and_queues_as_ldap_reads_them() -> None:
    processor = NotificationProcessor(
        as_ldap_reads(MACHINE), [as_ldap_reads(ORDERS)], directory=MemoryDirectory([]), verifier=p.verifier
    )
    assert processor.queues.at(ORDERS.pathname) is not None
    assert (processor.queue_manager.security, processor.queue_manager.computer_name) == (b"", MACHINE.computer_name)
    with pytest.raises(ValueError, match="were not read: computer_name"):
        NotificationProcessor(
            QueueManager.of({"identifier": LEDGER, "computer_name": "x"}).only(("identifier",)),
            directory=MemoryDirectory([]),
        )


def test_an_event_while_the_directory_is_away_and_the_local_data_is_as_ldap_reads_it() -> None:
    machine, queue = as_ldap_reads(MACHINE), as_ldap_reads(ORDERS)
    local = QueueManagerDirectory(p.Failing([]), machine, [queue])
    local.offline = True
    processor = NotificationProcessor(machine, [queue], directory=local)
    for event, identifier in ((2, ORDERS.identifier), (4, MACHINE.identifier)):
        (record,) = processor.process(p.version_2(event, identifier))
        assert isinstance(record, Ignored)
        assert record.rule is Rule.DIRECTORY


def test_all_queues_of_a_machine() -> None:
    other = changed(ORDERS, identifier=OTHER, pathname="other\\orders")
    directory = MemoryDirectory([MACHINE, ORDERS, other])
    assert directory.queues_of(MACHINE) == [ORDERS]


def test_the_profile_as_text() -> None:
    processor = p.processor(profile="nt_2000")
    assert processor.profile is Profile.NT_2000
    (record,) = processor.process(p.version_2(2, p.ORDERS))
    assert record.rule == "version"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="nt_2001"):
        p.processor(profile="nt_2001")


def test_the_directory_and_the_processor_have_one_copy_of_the_queues() -> None:
    queues = QueueCollection([p.queue(p.ORDERS, "orders")])
    offline = QueueManagerDirectory(p.Failing([]), p.HERE, queues)
    processor = p.processor(queues, offline)
    processor.process(p.version_1(p.change(p.ORDERS, (105, 7)), p.create(p.BILLS, "here\\bills")), p.SIGNED)
    offline.offline = True
    found = {each: offline.read_directory(Queue, [Equal("identifier", each)]) for each in (p.ORDERS, p.BILLS)}
    assert found == {each.identifier: each for each in processor.queues}
    assert [each and each.quota for each in found.values()] == [7, 0xFFFFFFFF]


def test_a_refresh_stays_due_while_local_data_answers_for_the_directory() -> None:
    """[MS-MQDMPR] 3.1.7.1.20: the first failed read makes the directory offline, and local data answers the others."""
    queues = QueueCollection([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")])
    itself = p.Failing([p.HERE, *queues])
    local = QueueManagerDirectory(itself, p.HERE, queues)
    server = NotificationServer(p.processor(queues, local))
    itself.put(p.queue(p.BILLS, "bills", label="new"))
    for _ in range(101):
        server.receive(b"\1\0", now=0)
    itself.fails = frozenset((1,))
    server.tick(60)
    assert (local.offline, itself.reads) == (True, 1)
    server.tick(120)
    assert (server.overflowed, server.deadline, itself.reads) == (True, 180, 1)
    local.offline = False
    _, bills = server.tick(180)
    assert (bills.identifier, bills.changes[0].after) == (p.BILLS, "new")  # type: ignore[attr-defined]
    assert (server.deadline, server.overflowed, itself.reads) == (None, False, 3)
