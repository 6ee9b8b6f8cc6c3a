"""What a queue manager does with notifications, rule by rule: [MS-MQCN] 3.2."""

from __future__ import annotations

from itertools import islice
from typing import Any
from uuid import UUID

import pytest

from msmqwire.directory import MemoryDirectory, PrivacyLevel, Queue, Scope
from msmqwire.directory.elements import UNLIMITED
from msmqwire.mqqb import SecurityHeader, UserMessage
from msmqwire.notification.audit import Change, Changed, Created, Deleted, Disregarded, Ignored, Overflowed
from msmqwire.notification.envelope import AuthenticationLevel, Envelope, trusted
from msmqwire.notification.judgement import Rule
from msmqwire.notification.processor import NotificationProcessor, Profile
from msmqwire.notification.schedule import NotificationServer, QueueOpening
from tests.contract.checklist import row
from tests.notification import processing as p

ALL_OF_A_QUEUE = [
    (102, UUID(int=9)), (101, p.SPARE), (106, -3), (104, 1), (105, 10), (107, 20), (109, 30), (110, 40), (114, 0),
    (1101, b"sd"), (103, "here\\spare"), (108, "Label"), (111, 1), (112, 2), (113, 1),
]  # fmt: skip
CHANGED: dict[str, Any] = {
    "base_priority": -3, "journaling": True, "quota": 10, "journal_quota": 20, "security": b"sd",
    "authentication": True, "privacy_level": PrivacyLevel.BODY,
}  # fmt: skip


def rules(records: list[Any]) -> list[Rule]:
    assert all(isinstance(each, Ignored | Disregarded) for each in records)
    return [each.rule for each in records]


def attributes(queue: Queue | None) -> dict[str, Any]:
    assert queue is not None
    return queue.attributes()


def running(messages: list[Any], **options: Any) -> tuple[list[QueueOpening], list[float | None], Any]:
    """A server on a queue of these messages: what was opened, until when it waited, and its records."""
    opened: list[QueueOpening] = []
    waits: list[float | None] = []
    left = iter(messages)

    def dequeue(until: float | None) -> Any:
        waits.append(until)
        return next(left)

    def open_queue(opening: QueueOpening) -> Any:
        opened.append(opening)
        return dequeue

    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")], **options))
    return opened, waits, server.run(open_queue, lambda: 1000.0)


@row("CNS-01")
def test_opens_the_notify_queue() -> None:
    opened, _, records = running([(b"\3\1", Envelope())], profile=Profile.NT_2000)
    next(records)
    assert opened == [
        QueueOpening(format_name=opened[0].format_name, required_access="receive", shared_mode="deny_none")
    ]
    assert str(opened[0].format_name) == f"PRIVATE={p.MACHINE}\\3"


@row("CNS-02")
def test_dequeues_for_its_lifetime() -> None:
    messages = [(b"\3\1", Envelope()), (p.version_1(p.delete(p.ORDERS)), p.SIGNED), (b"", Envelope())]
    _, waits, records = running(messages, profile=Profile.NT_2000)
    assert [type(each) for each in islice(records, 3)] == [Disregarded, Deleted, Disregarded]
    assert waits == [None] * 3


@row("CNS-03")
@pytest.mark.parametrize("envelope", [p.FROM_USER, Envelope(packet="signed")])
def test_sender_type(envelope: Envelope) -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders")])
    assert rules(processor.process(p.version_1(p.delete(p.ORDERS)), envelope)) == [Rule.SENDER_TYPE]
    assert len(processor.queues) == 1


@row("CNS-04")
def test_not_authenticated() -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders")])
    assert rules(processor.process(p.version_1(p.delete(p.ORDERS)), p.UNSIGNED)) == [Rule.NOT_AUTHENTICATED]
    assert len(processor.queues) == 1


@row("CNS-05")
@pytest.mark.parametrize(("first", "value"), [(115, p.MACHINE), (126, "path"), (1101, b"sd"), (1102, b"")])
def test_object_type(first: int, value: Any) -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders")])
    body = p.version_1(p.update("change", p.ORDERS, properties=[(first, value), (105, 7)]))
    assert isinstance(processor.process(body, p.SIGNED)[0], Changed)
    assert attributes(processor.queues.get(p.ORDERS))["quota"] == 7


@row("CNS-06")
@pytest.mark.parametrize(("first", "value"), [(301, "site"), (1403, 1), (5102, 1)])
def test_other_object_types(first: int, value: Any) -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders")])
    body = p.version_1(p.update("change", p.ORDERS, properties=[(first, value), (105, 7)]))
    assert rules(processor.process(body, p.SIGNED)) == [Rule.OBJECT_TYPE]


@row("CNS-07")
def test_a_queue_is_created() -> None:
    processor = p.processor()
    (record,) = processor.process(
        p.version_1(p.update("create", path="here\\spare", properties=ALL_OF_A_QUEUE)), p.SIGNED
    )
    expected = Queue(
        identifier=p.SPARE, pathname="here\\spare", type=UUID(int=9), label="Label", create_time=30, modify_time=40,
        transactional=True, scope=Scope.SITE, **CHANGED,
    )  # fmt: skip
    assert isinstance(record, Created)
    assert record.queue == expected == processor.queues.get(p.SPARE)


@row("CNS-08")
def test_a_queue_is_updated() -> None:
    before = p.queue(p.ORDERS, "orders", label="before")
    processor = p.processor([before])
    body = p.version_1(p.update("change", p.ORDERS, properties=ALL_OF_A_QUEUE))
    (record,) = processor.process(body, p.SIGNED)
    assert isinstance(record, Changed)
    assert {each.attribute: each.after for each in record.changes} == CHANGED
    assert processor.queues.get(p.ORDERS) == Queue(**{**before.attributes(), **CHANGED})


@row("CNS-09")
def test_the_queue_manager_is_updated() -> None:
    processor = p.processor()
    told = [(214, 1), (215, 2), (1201, b"sd"), (206, b""), (207, [p.SPARE]), (216, "other"), (220, 0x100)]
    (record,) = processor.process(p.version_1(p.machine(p.MACHINE, *told)), p.SIGNED)
    assert isinstance(record, Changed)
    assert record.object == "machine"
    after = {**p.HERE.attributes(), "queue_manager_quota": 1, "journal_quota": 2, "security": b"sd"}
    assert processor.queue_manager.attributes() == after
    assert Change("journal_quota", 0xFFFFFFFF, 2) in record.changes


@row("CNS-10")
@pytest.mark.parametrize("object_type", [0, 2, 3, 4, 5, 6, 255])
def test_only_queues_are_deleted(object_type: int) -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")])
    wrong = p.update("delete", p.ORDERS, properties=[(1403, 1), (1404, object_type)])
    assert rules(processor.process(p.version_1(p.delete(p.BILLS), wrong), p.SIGNED)) == [Rule.OBJECT_TYPE]
    assert [each.identifier for each in processor.queues] == [p.ORDERS, p.BILLS]


@row("CNS-11")
def test_a_queue_is_deleted() -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")])
    (record,) = processor.process(p.version_1(p.delete(p.ORDERS)), p.SIGNED)
    assert isinstance(record, Deleted)
    assert [each.identifier for each in processor.queues] == [p.BILLS]


@row("CNS-12")
def test_event_1_reads_and_creates() -> None:
    directory = p.Failing([p.queue(p.ORDERS, "orders", quota=5, multicast_address="1.2.3.4:5")])
    processor = p.processor(directory=directory)
    assert isinstance(processor.process(p.version_2(1, p.ORDERS))[0], Created)
    assert attributes(processor.queues.get(p.ORDERS))["multicast_address"] == "1.2.3.4:5"
    assert directory.reads == 1


@row("CNS-13")
def test_event_2_reads_and_updates() -> None:
    directory = p.Failing([p.queue(p.ORDERS, "orders", label="new", journaling=True)])
    processor = p.processor([p.queue(p.ORDERS, "orders")], directory)
    (record,) = processor.process(p.version_2(2, p.ORDERS))
    assert isinstance(record, Changed)
    assert {each.attribute for each in record.changes} == {"label", "journaling"}


@row("CNS-14")
def test_event_3_deletes_and_reads_nothing() -> None:
    directory = p.Failing()
    processor = p.processor([p.queue(p.ORDERS, "orders")], directory)
    assert isinstance(processor.process(p.version_2(3, p.ORDERS))[0], Deleted)
    assert directory.reads == len(processor.queues) == 0


@row("CNS-15")
@pytest.mark.parametrize(
    "values",
    [
        {"queue_manager_quota": 2},
        {"journal_quota": 3},
        {"security": b"sd"},
        {"queue_manager_quota": 2, "journal_quota": 3, "security": b"sd"},
    ],
)
def test_event_4_reads_and_updates_the_queue_manager(values: dict[str, Any]) -> None:
    held = {**p.HERE.attributes(), **values, "full_path": "CN=moved", "routing_server": True}
    directory = p.Failing([type(p.HERE).of(held)])
    processor = p.processor(directory=directory)
    (record,) = processor.process(p.version_2(4, p.MACHINE))
    assert isinstance(record, Changed)
    assert {each.attribute: (each.before, each.after) for each in record.changes} == {
        name: (getattr(p.HERE, name), value) for name, value in values.items()
    }
    assert processor.queue_manager.attributes() == {**p.HERE.attributes(), **values}
    assert directory.reads == 1


@row("CNS-16")
@pytest.mark.parametrize("version", [0, 3, 255])
def test_other_versions(version: int) -> None:
    body = bytes([version]) + p.version_1(p.delete(p.ORDERS))[1:]
    processor = p.processor([p.queue(p.ORDERS, "orders")])
    assert rules(processor.process(body, p.SIGNED)) == [Rule.VERSION]


@row("CNS-17")
def test_disregarding_is_atomic() -> None:
    processor = p.processor([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")])
    wrong = p.update("change", p.BILLS, properties=[(301, "site")])
    (record,) = processor.process(p.version_1(p.delete(p.ORDERS), p.change(p.BILLS, (105, 1)), wrong), p.SIGNED)
    assert isinstance(record, Disregarded)
    assert record.index == 2
    assert p.ORDERS in processor.queues


@row("CNS-18")
def test_a_created_queue_keeps_its_identifier() -> None:
    processor = p.processor()
    processor.process(p.version_1(p.create(p.SPARE, "here\\spare")), p.SIGNED)
    assert p.SPARE in processor.queues
    assert isinstance(processor.process(p.version_1(p.delete(p.SPARE)), p.SIGNED)[0], Deleted)


@row("CNS-19")
def test_event_4_of_another_machine() -> None:
    directory = p.Failing([type(p.HERE)(identifier=p.SPARE, computer_name="THERE")])
    processor = p.processor(directory=directory)
    assert rules(processor.process(p.version_2(4, p.SPARE))) == [Rule.OTHER_MACHINE]
    assert directory.reads == 0


@row("CNS-20")
@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("event", [1, 2, 4])
def test_a_failed_read_changes_nothing(event: int, fails: bool) -> None:
    directory = p.Failing()
    directory.fails = frozenset([1] if fails else [])
    processor = p.processor([p.queue(p.ORDERS, "orders")], directory)
    before = p.state(processor)
    found = rules(processor.process(p.version_2(event, p.MACHINE if event == 4 else p.ORDERS)))
    assert found == [Rule.DIRECTORY if fails else Rule.NOT_IN_DIRECTORY]
    assert p.state(processor) == before


@row("CNS-21")
@pytest.mark.parametrize(
    ("elapsed", "delay"), [(841, 60), (840, 60), (839, 61), (61, 839), (0, 900), (-5, 900), (100_000, 60)]
)
def test_the_delay(elapsed: float, delay: float) -> None:
    server = NotificationServer(p.processor())
    server.receive(b"", now=1000)
    assert server.deadline == 1060
    assert server.tick(1059.9) == []
    assert len(server.tick(1060)) == 1
    server.receive(b"", now=1060 + elapsed)
    assert server.deadline == 1060 + elapsed + delay


@row("CNS-22")
def test_too_many_messages() -> None:
    directory = p.Failing([p.queue(p.ORDERS, "orders", quota=5), p.queue(p.BILLS, "bills", quota=6)])
    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")], directory))
    for now, count in ((0, 101), (1000, 105)):
        for _ in range(count):
            assert server.receive(p.version_1(p.delete(p.ORDERS)), p.SIGNED, now=now) == []
        overflow, *refreshed = server.tick(now + 60)
        assert isinstance(overflow, Overflowed)
        assert overflow.dropped == count
        assert [type(each) for each in refreshed] == [Changed, Changed]
        assert [each.quota for each in server.processor.queues] == [5, 6]
        assert server.deadline is None
    # Each time the limit is for the messages that wait then
    for _ in range(100):
        server.receive(p.version_1(p.delete(p.ORDERS)), p.SIGNED, now=2000)
    assert isinstance(server.tick(2060)[0], Deleted)


@row("CNS-23")
def test_the_old_profile() -> None:
    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")], profile=Profile.NT_2000))
    assert rules(server.receive(p.version_2(3, p.ORDERS), now=0)) == [Rule.VERSION]
    assert isinstance(server.receive(p.version_1(p.delete(p.ORDERS)), p.SIGNED, now=0)[0], Deleted)
    assert server.deadline is None


def test_the_other_messages_are_processed_after_a_verifier_raised() -> None:
    calls: list[Envelope] = []

    def fails_once(envelope: Envelope) -> AuthenticationLevel:
        calls.append(envelope)
        if len(calls) == 2:
            raise RuntimeError("no certificate store")
        return AuthenticationLevel.SIG20

    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")], verifier=fails_once))
    for quota in (1, 2, 3):
        body = p.version_1(p.update("change", p.ORDERS, properties=[(101, p.ORDERS), (105, quota)]))
        server.receive(body, p.SIGNED, now=1000.0)
    deadline = server.deadline
    assert deadline is not None
    last = p.version_1(p.update("change", p.ORDERS, properties=[(101, p.ORDERS), (105, 4)]))
    with pytest.raises(RuntimeError, match="no certificate store"):
        server.receive(last, p.SIGNED, now=deadline)
    later = server.deadline
    assert later == deadline
    changes = [record.changes[0].after for record in server.tick(deadline) if isinstance(record, Changed)]
    assert changes == [1, 3, 4]
    assert server.deadline is None
    assert server.tick(deadline + 1000) == []


def test_records_before_an_exception_are_returned_with_the_refresh_of_an_overflow() -> None:
    calls: list[Envelope] = []

    def works_once(envelope: Envelope) -> AuthenticationLevel:
        calls.append(envelope)
        if len(calls) > 1:
            raise RuntimeError("no certificate store")
        return AuthenticationLevel.SIG20

    directory = p.Failing([p.queue(p.ORDERS, "orders", quota=5)])
    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")], directory, verifier=works_once))
    body = p.version_1(p.update("change", p.ORDERS, properties=[(101, p.ORDERS), (105, 1)]))
    server.receive(body, p.SIGNED, now=0)
    server.receive(body, p.SIGNED, now=0)
    received, raised = 2, 0
    while not server.overflowed:
        with pytest.raises(RuntimeError, match="no certificate store"):
            server.receive(body, p.SIGNED, now=60)
        received, raised = received + 1, raised + 1
    first, overflow, refreshed = server.tick(60)
    assert [type(each) for each in (first, overflow, refreshed)] == [Changed, Overflowed, Changed]
    assert isinstance(first, Changed)
    assert first.changes[0].after == 1
    assert isinstance(overflow, Overflowed)
    assert overflow.dropped == received - raised - 1


def test_a_received_message_is_processed_with_its_own_envelope_and_a_stock_verifier() -> None:
    body = p.version_1(p.update("change", p.ORDERS, properties=[(101, p.ORDERS), (105, 7)]))

    def received(flags: int, identifier: bytes | None, signature: bytes | None = b"s") -> UserMessage:
        header = SecurityHeader(security_flags=flags, security_id=identifier, signature=signature)
        return UserMessage(destination_queue=f"PRIVATE={p.MACHINE}\\3", body=body, security=header)

    processor = p.processor([p.queue(p.ORDERS, "orders")], verifier=trusted([p.SENDER]))
    refused = [
        UserMessage(body=body),
        received(0xC0, None),
        received(0xC1, b"\1\1\0\0\0\0\0\5\x12\0\0\0"),
        received(0xC2, p.MASTER.bytes_le),
        received(0xC2, p.SENDER.bytes_le, None),
    ]
    found = [processor.process(message.body, Envelope.of(message))[0] for message in refused]
    assert rules(found) == [Rule.SENDER_TYPE] * 3 + [Rule.NOT_AUTHENTICATED] * 2
    assert Envelope.of(refused[2]).sender_identifier == b"\1\1\0\0\0\0\0\5\x12\0\0\0"
    good = received(0xC2, p.SENDER.bytes_le)
    (record,) = processor.process(good.body, Envelope.of(good))
    assert isinstance(record, Changed)
    assert record.changes == (Change("quota", UNLIMITED, 7),)


def test_a_directory_in_place_of_a_callable() -> None:
    orders = p.queue(p.ORDERS, "orders")
    directory = MemoryDirectory([Queue.of({**orders.attributes(), "label": "Orders"})])
    processor = NotificationProcessor(p.HERE, [orders], directory=directory)
    (record,) = processor.process(p.version_2(2, p.ORDERS))
    assert isinstance(record, Changed)
    assert record.changes == (Change("label", "", "Orders"),)
