"""Decisions where [MS-MQCN] 3.2.5 is silent, repeated notifications, and a failing directory."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn
from msmqwire.directory import MemoryDirectory, Queue, QueueManager
from msmqwire.errors import DirectoryError
from msmqwire.formatname import parse_path_name
from msmqwire.notification.audit import Changed, ChangePlace, Created, Deleted, Disregarded, Ignored, Record
from msmqwire.notification.envelope import AuthenticationLevel, Envelope
from msmqwire.notification.judgement import Rule
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.notification.schedule import WINDOW, NotificationServer
from tests.notification import processing as p


def rule_of(record: Record) -> Rule:
    assert isinstance(record, Ignored | Disregarded)
    return record.rule


def tell(processor: NotificationProcessor, *updates: mqcn.NotificationUpdate) -> list[Record]:
    return processor.process(p.version_1(*updates), p.SIGNED)


def quota(processor: NotificationProcessor, identifier: UUID) -> int:
    queue = processor.queues.get(identifier)
    assert queue is not None
    return queue.quota


@pytest.fixture
def processor() -> NotificationProcessor:
    return p.processor([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")])


def test_p1_all_updates_are_judged_before_one_is_applied(processor: NotificationProcessor) -> None:
    before = p.state(processor)
    (record,) = tell(processor, p.delete(p.ORDERS), p.change(p.BILLS, (104, 2)))
    assert (rule_of(record), record.index) == (Rule.VALUE, 1)
    assert p.state(processor) == before


def test_no_envelope_is_no_sender_to_believe(processor: NotificationProcessor) -> None:
    """The change was applied, past the verifier."""
    body = p.version_1(p.delete(p.ORDERS))
    before = p.state(processor)
    (record,) = processor.process(body, None)
    server = NotificationServer(processor)
    (later,) = [*server.receive(body, None, now=0), *server.tick(1000)]
    assert rule_of(record) is rule_of(later) is Rule.SENDER_TYPE
    assert p.state(processor) == before


def test_a_processor_has_a_directory() -> None:
    with pytest.raises(TypeError, match="directory is None: neither a Directory nor callable"):
        NotificationProcessor(p.HERE, directory=None)  # type: ignore[arg-type]


def test_no_verifier_authenticates_nothing() -> None:
    """The change was applied."""
    processor = NotificationProcessor(p.HERE, [p.queue(p.ORDERS, "orders")], directory=p.Failing(), verifier=None)
    (record,) = tell(processor, p.delete(p.ORDERS))
    assert rule_of(record) is Rule.NOT_AUTHENTICATED


def test_p3_absent_properties_stay_at_their_defaults(processor: NotificationProcessor) -> None:
    tell(processor, p.create(p.SPARE, "here\\spare"))
    assert processor.queues.get(p.SPARE) == Queue(identifier=p.SPARE, pathname="here\\spare")


def test_p3_no_identifier_or_no_path(processor: NotificationProcessor) -> None:
    (record,) = tell(processor, p.update("create", path="here\\spare", properties=[(105, 1)]))
    assert rule_of(record) is Rule.NO_IDENTIFIER
    (record,) = tell(processor, p.update("create", p.SPARE, properties=[(101, p.SPARE), (103, "")]))
    assert rule_of(record) is Rule.NO_PATHNAME


def test_p3_the_property_wins_over_the_field(processor: NotificationProcessor) -> None:
    tell(processor, p.update("create", path="here\\field", properties=[(101, p.SPARE), (103, "here\\property")]))
    assert processor.queues.at("here\\field") is None
    assert processor.queues.at("HERE\\property") is not None


@pytest.mark.parametrize("update", [p.change(p.SPARE, (105, 1)), p.delete(p.SPARE)])
def test_p4_an_unknown_queue_is_ignored_and_holds_nothing_up(
    processor: NotificationProcessor, update: mqcn.NotificationUpdate
) -> None:
    ignored, changed = tell(processor, update, p.change(p.ORDERS, (105, 1)))
    assert rule_of(ignored) is Rule.NOT_FOUND
    assert isinstance(changed, Changed)


def test_p5_a_queue_that_is_there_is_updated(processor: NotificationProcessor) -> None:
    (record,) = tell(processor, p.create(p.ORDERS, "here\\renamed", (105, 1), (108, "label")))
    assert isinstance(record, Changed)
    assert record.identifier == p.ORDERS
    assert processor.queues.get(p.ORDERS) == p.queue(p.ORDERS, "orders", quota=1)
    assert len(processor.queues) == 2


@pytest.mark.parametrize("event", [False, True])
def test_r10_a_created_queue_replaces_the_one_at_its_path(event: bool) -> None:
    orders, spare = p.queue(p.ORDERS, "orders"), p.queue(p.SPARE, "Orders", quota=1)
    processor = p.processor([orders, p.queue(p.BILLS, "bills")], MemoryDirectory([spare]))
    if event:
        (record,) = processor.process(p.version_2(1, p.SPARE))
    else:
        (record,) = tell(processor, p.create(p.SPARE, "here\\Orders", (105, 1)))
    assert isinstance(record, Created)
    assert (record.queue, record.replaced) == (spare, orders)
    assert processor.queues.get(p.ORDERS) is None
    assert processor.queues.at("HERE\\ORDERS") == spare
    old, new = tell(processor, p.delete(p.ORDERS), p.delete(p.SPARE))
    assert rule_of(old) is Rule.NOT_FOUND
    assert isinstance(new, Deleted)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("here\\", Rule.PATHNAME),
        ("here\\" + "q" * 125, Rule.PATHNAME),
        ("here\\a\rb", Rule.PATHNAME),
        ("here\\private$\\spare", Rule.PRIVATE_QUEUE),
        ("HERE\\PRIVATE$\\spare", Rule.PRIVATE_QUEUE),
        ("here\\system$;deadletter", Rule.PRIVATE_QUEUE),
    ],
)
def test_r11_a_path_of_no_public_queue_makes_no_queue(path: str, rule: Rule) -> None:
    processor = p.processor(directory=MemoryDirectory([Queue(identifier=p.SPARE, pathname=path)]))
    told = p.update("create", p.SPARE, properties=[(101, p.SPARE), (103, path)])
    for (record,) in (tell(processor, told), processor.process(p.version_2(1, p.SPARE))):
        assert rule_of(record) is rule
        assert isinstance(record, Ignored)
        assert (record.identifier, record.detail) == (p.SPARE, path)
    assert len(processor.queues) == 0
    known = p.queue(p.SPARE, "spare")
    processor = p.processor([known], MemoryDirectory([Queue(identifier=p.SPARE, pathname=path)]))
    for (record,) in (processor.process(p.version_2(2, p.SPARE)), processor.refresh()):
        assert rule_of(record) is rule
    assert list(processor.queues) == [known]


def test_p6_another_machine_s_quota_is_not_ours(processor: NotificationProcessor) -> None:
    (record,) = tell(processor, p.machine(p.SPARE, (214, 1)))
    assert rule_of(record) is Rule.OTHER_MACHINE
    assert processor.queue_manager == p.HERE


@pytest.mark.parametrize("path", ["there\\spare", "here2\\spare"])
def test_p7_a_queue_of_another_computer(processor: NotificationProcessor, path: str) -> None:
    assert rule_of(tell(processor, p.create(p.SPARE, path))[0]) is Rule.OTHER_COMPUTER


@pytest.mark.parametrize("path", ["HeRe\\spare", "here.EXAMPLE\\spare"])
def test_p7_case_and_qualified_names(processor: NotificationProcessor, path: str) -> None:
    assert isinstance(tell(processor, p.create(p.SPARE, path))[0], Created)


def test_p8_absent_properties_stay_as_they_are(processor: NotificationProcessor) -> None:
    tell(processor, p.change(p.ORDERS, (105, 1), (104, 1)))
    tell(processor, p.change(p.ORDERS, (105, 2)))
    assert processor.queues.get(p.ORDERS) == p.queue(p.ORDERS, "orders", quota=2, journaling=True)


def test_p9_a_list_of_senders() -> None:
    listening = p.processor([p.queue(p.ORDERS, "orders")], senders=[p.BILLS])
    assert rule_of(tell(listening, p.delete(p.ORDERS))[0]) is Rule.SENDER
    listening = p.processor([p.queue(p.ORDERS, "orders")], senders=[p.SENDER])
    assert isinstance(tell(listening, p.delete(p.ORDERS))[0], Deleted)


def test_what_has_no_rule_is_recorded_and_holds_nothing_up(processor: NotificationProcessor) -> None:
    """A created machine, our own, another or one named by its path; and a deletion by a path that a queue has."""
    of_a_machine = [(202, p.MACHINE), (214, 7)]
    updates = [
        p.change(p.ORDERS, (105, 1)),
        p.update("create", p.MACHINE, properties=of_a_machine),
        p.update("create", p.SPARE, properties=of_a_machine),
        p.update("create", path="here\\orders", properties=of_a_machine),
        p.update("delete", path="here\\orders", properties=[(1403, 1), (1404, 1)]),
        p.change(p.BILLS, (105, 2)),
    ]
    bodies = [b"\1\0", p.version_1(*updates)]
    records = [record for body in bodies for record in processor.process(body, p.SIGNED)]

    def ignored(index: int, rule: Rule, identifier: UUID | None, path: str = "") -> Record:
        place = ChangePlace(message=1, index=index, section="[MS-MQCN] 3.2.5.1")
        return Ignored(**place, rule=rule, identifier=identifier, detail=path)

    assert records[1:-1] == [
        ignored(1, Rule.MACHINE_CREATED, p.MACHINE),
        ignored(2, Rule.MACHINE_CREATED, p.SPARE),
        ignored(3, Rule.MACHINE_CREATED, None, "here\\orders"),
        ignored(4, Rule.NO_GUID, None, "here\\orders"),
    ]
    assert [type(each) for each in (records[0], records[-1])] == [Changed, Changed]
    assert processor.queue_manager == p.HERE
    assert list(processor.queues) == [p.queue(p.ORDERS, "orders", quota=1), p.queue(p.BILLS, "bills", quota=2)]


def test_e3_a_queue_of_another_computer_in_the_directory() -> None:
    directory = MemoryDirectory([Queue(identifier=p.ORDERS, pathname="there\\orders")])
    processor = p.processor([p.queue(p.ORDERS, "orders")], directory)
    for event in (1, 2):
        assert rule_of(processor.process(p.version_2(event, p.ORDERS))[0]) is Rule.OTHER_COMPUTER


@pytest.mark.parametrize("computer", ["here\\b", "here\\private$x", "b\\here"])
def test_e3_a_computer_ends_at_the_last_backslash_of_a_path(computer: str) -> None:
    path = f"{computer}\\orders"
    assert parse_path_name(path).computer == computer
    processor = p.processor(directory=MemoryDirectory([Queue(identifier=p.ORDERS, pathname=path)]))
    for body in (p.version_1(p.create(p.ORDERS, path)), p.version_2(1, p.ORDERS)):
        assert rule_of(processor.process(body, p.SIGNED)[0]) is Rule.OTHER_COMPUTER


def test_e4_known_and_unknown_queues() -> None:
    directory = MemoryDirectory([p.queue(p.ORDERS, "orders", label="new"), p.queue(p.SPARE, "spare")])
    processor = p.processor([p.queue(p.ORDERS, "orders")], directory)
    assert isinstance(processor.process(p.version_2(1, p.ORDERS))[0], Changed)
    assert rule_of(processor.process(p.version_2(2, p.SPARE))[0]) is Rule.NOT_FOUND


def test_e5_the_directory_is_told_which_server_knows() -> None:
    asked: list[str | None] = []

    def directory(server: str | None) -> MemoryDirectory:
        asked.append(server)
        return MemoryDirectory([])

    processor = NotificationProcessor(p.HERE, [p.queue(p.ORDERS, "orders")], directory=directory)
    processor.process(p.version_2(2, p.ORDERS, "dc7"))
    processor.refresh()
    assert asked == ["dc7", None]


def test_e6_an_unknown_queue_is_not_deleted(processor: NotificationProcessor) -> None:
    assert rule_of(processor.process(p.version_2(3, p.SPARE))[0]) is Rule.NOT_FOUND


def test_a_directory_that_moves_a_queue_onto_another() -> None:
    processor = p.processor(
        [p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")], MemoryDirectory([p.queue(p.ORDERS, "bills")])
    )
    assert rule_of(processor.process(p.version_2(2, p.ORDERS))[0]) is Rule.PATHNAME_TAKEN


def test_no_verifier_no_version_1() -> None:
    processor = NotificationProcessor(p.HERE, [p.queue(p.ORDERS, "orders")], directory=lambda _: MemoryDirectory([]))
    assert rule_of(tell(processor, p.delete(p.ORDERS))[0]) is Rule.NOT_AUTHENTICATED


def test_the_verifier_is_not_asked_in_vain() -> None:
    asked: list[Envelope] = []

    def verifier(envelope: Envelope) -> AuthenticationLevel:
        asked.append(envelope)
        return AuthenticationLevel.SIG20

    processor = NotificationProcessor(p.HERE, directory=lambda _: MemoryDirectory([]), verifier=verifier)
    for body, envelope in ((b"", p.SIGNED), (p.version_1(p.delete(p.ORDERS)), p.FROM_USER)):
        processor.process(body, envelope)
    assert asked == []


def test_repeated_notifications(processor: NotificationProcessor) -> None:
    created = p.version_1(p.create(p.SPARE, "here\\spare", (105, 1)))
    first, second = processor.process(created, p.SIGNED), processor.process(created, p.SIGNED)
    assert isinstance(first[0], Created)
    assert isinstance(second[0], Changed)
    assert second[0].changes == ()
    assert isinstance(tell(processor, p.delete(p.SPARE))[0], Deleted)
    assert rule_of(tell(processor, p.delete(p.SPARE))[0]) is Rule.NOT_FOUND


def test_the_last_of_two_changes_stays_whatever_came_first(processor: NotificationProcessor) -> None:
    tell(processor, p.change(p.ORDERS, (105, 2)), p.change(p.ORDERS, (105, 1)))
    assert quota(processor, p.ORDERS) == 1


@pytest.mark.parametrize("failing", range(1, 6))
def test_the_directory_fails_at_each_read(failing: int) -> None:
    directory = p.Failing([p.queue(UUID(int=each), f"q{each}", quota=each) for each in range(10, 15)])
    directory.fails = frozenset([failing])
    processor = p.processor([p.queue(UUID(int=each), f"q{each}", quota=0) for each in range(10, 15)], directory)
    records = processor.refresh()
    assert [type(each) for each in records].count(Changed) == 4
    assert rule_of(records[failing - 1]) is Rule.DIRECTORY
    assert quota(processor, UUID(int=9 + failing)) == 0


EVENTS = [p.version_2(event, guid) for event, guid in [(1, p.SPARE), (2, p.ORDERS), (2, p.BILLS), (4, p.MACHINE)]]


@pytest.mark.parametrize("failing", range(1, len(EVENTS) + 1))
def test_the_directory_fails_at_each_read_of_an_event(failing: int) -> None:
    """What could not be read stays as it is, the rest is applied, and being told again mends it."""
    held = [
        p.queue(guid, name, quota=7) for guid, name in ((p.SPARE, "spare"), (p.ORDERS, "orders"), (p.BILLS, "bills"))
    ]
    machine = QueueManager.of({**p.HERE.attributes(), "queue_manager_quota": 7})

    def told(processor: NotificationProcessor) -> list[Record]:
        return [record for body in EVENTS for record in processor.process(body)]

    def start(directory: p.Failing) -> NotificationProcessor:
        return p.processor([p.queue(p.ORDERS, "orders"), p.queue(p.BILLS, "bills")], directory)

    reliable, failed = start(p.Failing([*held, machine])), p.Failing([*held, machine])
    failed.fails = frozenset([failing])
    processor = start(failed)
    wanted, records = told(reliable), told(processor)
    assert rule_of(records.pop(failing - 1)) is Rule.DIRECTORY
    del wanted[failing - 1]
    assert records == wanted
    assert p.state(processor) != p.state(reliable)
    told(processor)
    assert p.state(processor) == p.state(reliable)


def test_no_directory_at_all() -> None:
    def directory(server: str | None) -> Any:
        raise DirectoryError(f"{server} is not one of ours")

    processor = NotificationProcessor(p.HERE, [p.queue(p.ORDERS, "orders")], directory=directory)
    (record,) = processor.process(p.version_2(2, p.ORDERS, "evil"))
    assert isinstance(record, Ignored)
    assert (record.rule, record.detail) == (Rule.DIRECTORY, "evil is not one of ours")


def test_the_window() -> None:
    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")]))
    body = p.version_1(p.change(p.ORDERS, (105, 1)))
    for _ in range(WINDOW):
        server.receive(body, p.SIGNED, now=0)
    assert not server.overflowed
    server.receive(body, p.SIGNED, now=0)
    assert server.overflowed


def test_a_late_clock_does_not_lengthen_the_window() -> None:
    server = NotificationServer(p.processor([p.queue(p.ORDERS, "orders")]))
    server.receive(p.version_1(p.delete(p.ORDERS)), p.SIGNED, now=0)
    assert isinstance(server.receive(b"", now=61)[0], Deleted)
    assert server.deadline == 961


def test_a_flood_takes_no_memory() -> None:
    server = NotificationServer(p.processor())
    for _ in range(10_000):
        server.receive(bytes(1000), now=0)
        assert len(server._pending) <= WINDOW
    assert server._pending == []


def test_half_read_objects_are_refused() -> None:
    half = Queue.of({"identifier": p.ORDERS, "pathname": "here\\orders"})
    with pytest.raises(ValueError, match="not read"):
        p.processor([half])
    with pytest.raises(ValueError, match="not read"):
        NotificationProcessor(p.HERE.only(("identifier",)), directory=lambda _: MemoryDirectory([]))


@pytest.mark.parametrize("other", [p.queue(p.ORDERS, "bills"), p.queue(p.BILLS, "ORDERS")])
def test_no_two_queues_are_one(other: Queue) -> None:
    with pytest.raises(ValueError, match="already"):
        p.processor([p.queue(p.ORDERS, "orders"), other])
