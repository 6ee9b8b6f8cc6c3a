"""Replay: what machines were told of queues, by the rules of [MS-MQCN] 3.2.5, and nothing that they were not told."""

from __future__ import annotations

import io
import tracemalloc
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from msmqwire import mqcn
from msmqwire.capture import read_table
from msmqwire.directory import MemoryDirectory, PrivacyLevel, Queue
from msmqwire.errors import DirectoryNotConnected
from msmqwire.notification.carried_attributes import CREATED_QUEUE
from msmqwire.notification.envelope import AuthenticationLevel, Envelope, SenderIdentifierType
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.notification.replay import NotifiedQueue, Replay, replay
from msmqwire.notification.sender import Change, QueueCreation, QueueDeletion, QueueManagerUpdate, QueueUpdate
from msmqwire.properties import PROPID_Q_INSTANCE, PROPID_Q_JOURNAL, PROPID_Q_QMID, PROPID_Q_QUOTA
from tests.capture.build import START
from tests.notification.processing import Failing
from tests.notification.sent import (
    LEDGER,
    MACHINE,
    MANAGER,
    MASTER,
    ORDERS,
    SERVICE,
    STEP,
    captured,
    captured_packets,
    changed,
    packet_of,
    replayed,
)

CREATION = QueueCreation(queue=ORDERS, queue_manager=LEDGER)
DELETION = QueueDeletion(queue=ORDERS, queue_manager=LEDGER)
TOLD = Queue.of({name: getattr(ORDERS, name) for name in CREATED_QUEUE.values()})
ONLY_NAMED = ORDERS.only(("identifier", "pathname"))


def update(**values: Any) -> QueueUpdate:
    return QueueUpdate(old=ORDERS, new=changed(ORDERS, **values), queue_manager=LEDGER)


def service(*changes: Change, **where: Any) -> bytes:
    """A capture of messages of version 1, one for each change."""
    return captured([each for change in changes for each in SERVICE.notifications([change])], **where)


def sent(*messages: mqcn.ChangeNotificationMessage | bytes, port: int = 40000) -> bytes:
    """A capture of messages that no sender would make."""
    bodies = (each if isinstance(each, bytes) else mqcn.encode_body(each, enforce=False) for each in messages)
    return captured_packets(map(packet_of, bodies), port=port)


def message(*updates: dict[str, Any]) -> mqcn.ChangeNotificationMessage:
    return mqcn.ChangeNotificationMessage(
        1, [mqcn.NotificationUpdate(**{"guid_master_id": MASTER, "command": "change", **each}) for each in updates]
    )


def change(*properties: tuple[int, Any], **more: Any) -> dict[str, Any]:
    if "path_name" not in more:
        more = {"guid_identifier": ORDERS.identifier, **more}
    return {"properties": properties, **more}


def only(found: Replay) -> NotifiedQueue:
    (queue,) = found.queues
    return queue


def outcomes(queue: NotifiedQueue) -> list[tuple[str, bool]]:
    return [(event.operation, event.applied) for event in queue.history]


def test_a_creation_tells_all() -> None:
    queue = only(replayed(service(CREATION)))
    assert (queue.machine, queue.exists, queue.queue, queue.queue_manager) == ("10.0.0.2", True, TOLD, None)
    (event,) = queue.history
    assert (event.operation, event.applied, event.frame, event.time) == ("create", True, 2, START + STEP)
    assert (event.source, event.origin, event.notified) == ("10.0.0.1", MASTER, TOLD.attributes())


def test_a_life() -> None:
    queue = only(replayed(service(CREATION, update(quota=1), update(privacy_level=PrivacyLevel.NONE), DELETION)))
    assert outcomes(queue) == [("create", True), ("change", True), ("change", True), ("delete", True)]
    assert [event.notified for event in queue.history[1:]] == [
        {"quota": 1},
        {"privacy_level": PrivacyLevel.NONE},
        {},
    ]
    assert (queue.exists, queue.queue_manager) == (False, LEDGER)
    assert queue.queue == changed(TOLD, quota=1, privacy_level=PrivacyLevel.NONE)


def test_as_of_any_time() -> None:
    data = service(CREATION, update(quota=1), DELETION)
    found = [replayed(data, at=START + STEP * frame) for frame in range(4)]
    assert found[0].queues == ()
    assert [(only(each).exists, only(each).queue.quota) for each in found[1:]] == [
        (True, 4096),
        (True, 1),
        (False, 1),
    ]
    assert only(replayed(data, at=START + STEP * 2 - 1)).queue.quota == 4096
    assert [each.messages for each in found] == [0, 1, 2, 3]


def test_time_orders_captures() -> None:
    late, early = service(DELETION, port=40001, start=START + 60 * 10**9), service(CREATION)
    queue = only(replayed(late, early))
    assert outcomes(queue) == [("create", True), ("delete", True)]
    assert [event.time for event in queue.history] == [START + STEP, START + 60 * 10**9 + STEP]
    # Of one time, the order of the captures holds
    late = service(DELETION, port=40001)
    assert outcomes(only(replayed(early, late))) == [("create", True), ("delete", True)]
    assert outcomes(only(replayed(late, early))) == [("delete", True), ("create", True)]


def test_changes_alone_do_not_make_a_queue() -> None:
    queue = only(replayed(service(update(quota=1))))
    assert (queue.exists, queue.queue) == (None, Queue.of({"identifier": ORDERS.identifier, "quota": 1}))
    assert only(replayed(service(DELETION))).exists is False


def test_what_was_deleted_is_not_changed() -> None:
    queue = only(replayed(service(CREATION, DELETION, update(quota=1), DELETION)))
    assert outcomes(queue) == [("create", True), ("delete", True), ("change", False), ("delete", False)]
    assert queue.queue == TOLD


def test_a_name_is_free_after_a_deletion() -> None:
    other = changed(ORDERS, identifier=UUID(int=1), pathname=r"LEDGER\Orders")
    again = QueueCreation(queue=other, queue_manager=LEDGER)
    first, second = replayed(service(CREATION, DELETION, again)).queues
    assert (first.exists, first.queue.identifier) == (False, ORDERS.identifier)
    assert (second.exists, second.queue.identifier) == (True, UUID(int=1))
    assert outcomes(only(replayed(service(CREATION, DELETION, CREATION))))[-1] == ("create", True)


def test_machines_are_told_apart() -> None:
    first = service(CREATION)
    second = service(update(quota=1), machine="10.0.0.3", port=40001)
    assert [(each.machine, each.exists) for each in replayed(first, second).queues] == [
        ("10.0.0.2", True),
        ("10.0.0.3", None),
    ]


def version_2(*changes: Change) -> bytes:
    return captured(MANAGER.notifications(changes), port=40001)


def test_version_2_says_that_and_not_what() -> None:
    queue = only(replayed(service(CREATION), version_2(update(label="x"))))
    assert (queue.exists, queue.queue) == (True, ONLY_NAMED)
    assert [event.origin for event in queue.history] == [MASTER, "dc1.example"]
    queue = only(replayed(version_2(CREATION)))
    assert (queue.exists, queue.queue) == (True, Queue.of({"identifier": ORDERS.identifier}))
    assert only(replayed(version_2(update(label="x")))).exists is None
    queue = only(replayed(version_2(CREATION, DELETION, update(label="x"))))
    assert (queue.exists, outcomes(queue)[-1]) == (False, ("change", False))


def test_machines_are_no_queues() -> None:
    changes = [QueueManagerUpdate(old=MACHINE, new=changed(MACHINE, queue_manager_quota=1))]
    found = replayed(service(*changes), version_2(*changes))
    assert (found.queues, found.messages, found.machine_changes, found.disregarded) == ((), 2, 2, 0)
    created = change((202, LEDGER), command="create", guid_identifier=LEDGER)
    assert replayed(sent(message(created)), strict=False).machine_changes == 0


GOOD = change((PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, 1))


@pytest.mark.parametrize(
    "bad",
    [
        change((1403, 1)),
        change((PROPID_Q_QMID, LEDGER), (PROPID_Q_JOURNAL, 2)),
        change((1403, 1), (1404, 2), command="delete"),
        change((PROPID_Q_QUOTA, 1), command="create", guid_identifier=ORDERS.identifier),
        change((PROPID_Q_INSTANCE, ORDERS.identifier), command="create", guid_identifier=ORDERS.identifier),
    ],
    ids=["object type", "value", "deleted machine", "creation without identifier", "creation without path"],
)
def test_a_message_is_disregarded_as_a_whole(bad: dict[str, Any]) -> None:
    for updates in ([GOOD, bad], [bad, GOOD]):
        found = replayed(sent(message(*updates), message(GOOD)))
        assert (found.messages, found.disregarded) == (2, 1)
        assert outcomes(only(found)) == [("change", True)]


def test_what_cannot_be_decoded_is_counted() -> None:
    malformed = mqcn.encode(message(GOOD, GOOD))[:-1]
    for body in (malformed, b"\3\1", mqcn.encode_body(message(GOOD)) + b"\0"):
        found = replayed(sent(body))
        assert (found.queues, found.messages, found.disregarded) == ((), 1, 1)
    assert replayed(sent(b"\1\0")) == Replay(queues=(), messages=1, rules={}, machine_changes=0)


def test_violations_that_a_receiver_discards_are_none_of_the_reader_s_choice() -> None:
    """Decoded strictly they are faults, and otherwise violations: nobody applies such a message."""
    twice = change((PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, 1), (PROPID_Q_QUOTA, 2))
    for body in (mqcn.encode_body(message(GOOD)) + b"\0", mqcn.encode_body(message(GOOD, GOOD)) + b"\0"):
        assert replayed(sent(body), strict=False) == replayed(sent(body))
    found = replayed(sent(message(twice)), strict=False)
    assert (found.disregarded, found) == (0, replayed(sent(message(twice))))


def test_a_path_that_was_left_names_nothing() -> None:
    named = change((PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, 1), path_name=r"ledger\orders")
    first, second = replayed(
        service(CREATION, DELETION, start=START - 9 * STEP), sent(message(named), port=50000)
    ).queues
    assert (first.exists, first.queue.quota) == (False, 4096)
    assert (second.exists, second.queue.pathname) == (None, r"ledger\orders")


def test_messages_of_one_time_are_told_by_frames() -> None:
    """Reassembly may give the later of two frames first."""
    created, deleted = (
        pa.Table.from_batches(read_table(io.BytesIO(data), "notifications"))
        for data in (service(CREATION), service(DELETION, port=40001))
    )
    rows = pa.concat_tables([deleted, created]).drop_columns(["time", "frame"])
    rows = rows.append_column("time", pa.array([START, START])).append_column("frame", pa.array([9, 3]))
    assert outcomes(only(replay(rows.to_batches()))) == [("create", True), ("delete", True)]


def test_version_2_with_a_directory() -> None:
    directory = MemoryDirectory([changed(ORDERS, quota=77)])
    told = only(replayed(version_2(CREATION), directory=directory))
    assert (told.exists, told.queue) == (True, changed(TOLD, quota=77))
    assert told.history[0].notified == {}
    changes: list[Change] = [CREATION, update(label="x")]
    assert only(replayed(version_2(*changes), directory=directory)).queue == changed(TOLD, quota=77)
    assert only(replayed(version_2(*changes, DELETION), directory=directory)).exists is False
    empty = MemoryDirectory([])
    assert only(replayed(version_2(CREATION), directory=empty)) == only(replayed(version_2(CREATION)))


def test_a_directory_that_cannot_be_read() -> None:
    failing = Failing()
    failing.fails = frozenset([1])
    with pytest.raises(DirectoryNotConnected):
        replayed(version_2(CREATION), directory=failing)


def test_queues_by_path() -> None:
    named = change((PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, 1), path_name=r"LEDGER\orders")
    queue = only(replayed(service(CREATION), sent(message(named), port=50000)))
    assert (queue.queue.quota, queue.queue.pathname) == (1, r"ledger\orders")
    queue = only(replayed(sent(message(named))))
    assert (queue.exists, queue.queue) == (None, Queue.of({"pathname": r"LEDGER\orders", "quota": 1}))
    # [MS-MQCN] 3.2.5.1 deletes by GuidIdentifier alone
    deleted = change((1403, 1), (1404, 1), command="delete", path_name=r"LEDGER\orders")
    queue = only(replayed(service(CREATION), sent(message(deleted), port=50000)))
    assert (queue.exists, outcomes(queue)[-1]) == (True, ("delete", False))


def test_the_first_of_two_properties_counts() -> None:
    twice = change((PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, 1), (PROPID_Q_QUOTA, 2))
    assert only(replayed(sent(message(twice)))).queue.quota == 1


RENAMED = changed(ORDERS, identifier=UUID(int=0x99), pathname=r"Ledger\ORDERS", quota=5)


@pytest.mark.parametrize("later", [[], [DELETION], [QueueDeletion(queue=RENAMED, queue_manager=LEDGER)]])
def test_r10_a_created_queue_replaces_the_one_at_its_path(later: list[Change]) -> None:
    data = service(CREATION, QueueCreation(queue=RENAMED, queue_manager=LEDGER), *later)
    old, new = replayed(data).queues
    assert (old.exists, old.queue.identifier) == (False, ORDERS.identifier)
    gone = later == [QueueDeletion(queue=RENAMED, queue_manager=LEDGER)]
    assert (new.exists, new.queue.quota) == (not gone, 5)
    assert outcomes(old) == [
        ("create", True),
        ("replaced", True),
        *([("delete", False)] if later == [DELETION] else []),
    ]
    assert outcomes(new) == [("create", True), *([("delete", True)] if gone else [])]


def test_r10_a_creation_of_a_known_queue_does_not_move_it() -> None:
    moved = QueueCreation(queue=changed(ORDERS, pathname=r"ledger\moved", quota=5), queue_manager=LEDGER)
    queue = only(replayed(service(CREATION, moved)))
    assert (queue.queue.pathname, queue.queue.quota) == (ORDERS.pathname, 5)


def test_r11_a_path_of_no_public_queue_makes_no_queue() -> None:
    creation = message({"command": "create", "properties": [(PROPID_Q_INSTANCE, ORDERS.identifier), (103, "a b")],
                        "guid_identifier": ORDERS.identifier})  # fmt: skip
    queue = only(replayed(sent(creation)))
    assert (queue.exists, outcomes(queue)) == (None, [("create", False)])


def test_ignored_creations_at_one_path_are_of_different_queues() -> None:
    def create(number: int, path: str) -> dict[str, Any]:
        return {"command": "create", "path_name": path, "properties": [(PROPID_Q_INSTANCE, UUID(int=number))]}

    private, public = r"ledger\private$\a", r"ledger\a"
    updates = [
        change((PROPID_Q_QUOTA, 1), path_name=private),
        *(create(number, private) for number in (1, 2)),
        *(create(number, public) for number in (1, 2)),
    ]
    found = {each.queue.identifier.int: each.exists for each in replayed(sent(message(*updates))).queues}
    assert found == {1: False, 2: True}


def test_what_only_ignored_notifications_name_is_not_replaced() -> None:
    directory = MemoryDirectory([ORDERS])
    ignored = message({"command": "delete", "path_name": ORDERS.pathname, "properties": [(1403, 1), (1404, 1)]})
    moved = [message(change((PROPID_Q_QMID, LEDGER))), step(2, 0, ORDERS.identifier, "", False)]
    for later in ([step(1, 0, ORDERS.identifier, "", False)], moved):
        named, queue = replayed(sent(ignored, *later), directory=directory).queues
        assert (named.exists, outcomes(named)) == (None, [("delete", False)])
        assert (queue.exists, queue.queue.pathname) == (None if later is moved else True, ORDERS.pathname)


IDENTIFIERS, PATHS = (
    (UUID(int=1), UUID(int=2), UUID(int=3)),
    (r"ledger\a", r"LEDGER\A", r"ledger\b", r"ledger\private$\a"),
)


def step(command: str | int, number: int, guid: UUID, path: str, by_path: bool) -> bytes:
    """A body: of version 1 for a command, of version 2 for an event."""
    if isinstance(command, int):
        return mqcn.encode_body(mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(command, guid, "dc1")))
    properties: list[tuple[int, Any]] = [(PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, number)]
    if command == "create":
        properties = [(PROPID_Q_INSTANCE, guid), (103, path), (PROPID_Q_QUOTA, number)]
    if command == "delete":
        properties = [(1403, 1), (1404, 1)]
    named = {"path_name": path} if by_path else {"guid_identifier": guid}
    return mqcn.encode_body(message({"command": command, "properties": properties, **named}), enforce=False)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("create", "change", "delete", 1, 2, 3)),
            *map(st.sampled_from, (IDENTIFIERS, PATHS)),
            st.booleans(),
        ),
        max_size=8,
    ),
    st.permutations(PATHS[1:]),
)
@example(
    [
        ("create", IDENTIFIERS[0], PATHS[3], False),
        ("create", IDENTIFIERS[1], PATHS[3], False),
        ("create", IDENTIFIERS[0], PATHS[0], False),
        ("create", IDENTIFIERS[1], PATHS[0], False),
    ],
    PATHS[1:],
)
# A creation of version 2 of a queue that is known, and that the directory has at the path of another one
@example(
    [
        ("create", IDENTIFIERS[0], PATHS[2], False),
        ("create", IDENTIFIERS[1], PATHS[0], False),
        (1, IDENTIFIERS[0], PATHS[0], False),
    ],
    PATHS[1:],
)
# An ignored notification does not show that there is a queue at its path
@example(
    [
        ("delete", IDENTIFIERS[0], PATHS[0], True),
        ("create", IDENTIFIERS[0], PATHS[2], False),
        (2, IDENTIFIERS[0], PATHS[0], False),
    ],
    PATHS[1:],
)
def test_replay_and_processor_agree_on_every_sequence(steps: list[tuple[Any, ...]], places: list[str]) -> None:
    bodies = [step(command, number, *rest) for number, (command, *rest) in enumerate(steps)]
    directory = MemoryDirectory(
        Queue(identifier=guid, pathname=path, quota=77) for guid, path in zip(IDENTIFIERS, places, strict=True)
    )
    processor = NotificationProcessor(MACHINE, directory=directory, verifier=lambda _: AuthenticationLevel.SIG20)
    for body in bodies:
        processor.process(body, Envelope(sender_identifier_type=SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER))
    rebuilt = replayed(sent(*bodies), directory=directory).queues
    found = {each.queue.identifier: each.queue for each in rebuilt if each.exists}
    assert found.keys() == {queue.identifier for queue in processor.queues}
    for queue in processor.queues:
        told = found[queue.identifier]
        assert (told.pathname, told.quota) == (queue.pathname, queue.quota)


def test_what_was_told_can_be_hashed() -> None:
    found = replayed(service(CREATION, update(quota=7)))
    assert len({found, *found.queues, *found.queues[0].history}) == 4


def test_the_properties_of_a_large_batch_are_not_in_memory_at_once() -> None:
    """A lake is read as one batch, in the order of its messages."""
    updates = [change(*[(PROPID_Q_QUOTA, 7)] * 255)] * 20
    rows = pa.Table.from_batches(read_table(io.BytesIO(sent(*[message(*updates)] * 25)), "notifications"))
    (batch,) = rows.combine_chunks().to_batches()
    tracemalloc.start()
    try:
        assert replay([batch]).messages == 25
        assert tracemalloc.get_traced_memory()[1] < 16 << 20  # 50 MiB of Python objects for all rows
    finally:
        tracemalloc.stop()
