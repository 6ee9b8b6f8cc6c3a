"""What machines were told beside a directory: every verdict, and what a comparison is not about."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn
from msmqwire.directory import MemoryDirectory
from msmqwire.errors import DirectoryNotConnected
from msmqwire.notification.comparison import Comparison, compare
from msmqwire.notification.sender import Change, QueueCreation, QueueDeletion, QueueUpdate
from msmqwire.properties import PROPID_Q_QMID, PROPID_Q_QUOTA
from tests.notification.processing import Failing
from tests.notification.sent import (
    LEDGER,
    MASTER,
    ORDERS,
    SERVICE,
    captured,
    captured_packets,
    changed,
    packet_of,
    replayed,
)

CREATION = QueueCreation(queue=ORDERS, queue_manager=LEDGER)
DELETION = QueueDeletion(queue=ORDERS, queue_manager=LEDGER)
UPDATE = QueueUpdate(old=ORDERS, new=changed(ORDERS, quota=7), queue_manager=LEDGER)


def compared(held: list[Any], *changes: Change) -> list[Comparison]:
    queues = replayed(captured(SERVICE.notifications(changes))).queues if changes else ()
    return list(compare(queues, MemoryDirectory(held)))


@pytest.mark.parametrize(
    ("held", "changes", "verdict"),
    [
        ([ORDERS], [CREATION], "agrees"),
        ([], [CREATION, DELETION], "agrees"),
        ([changed(ORDERS, quota=7)], [UPDATE], "agrees"),
        ([changed(ORDERS, pathname=r"Ledger\ORDERS", modify_time=1)], [CREATION], "agrees"),
        ([ORDERS], [CREATION, UPDATE], "differs"),
        ([changed(ORDERS, label="ZÜRICH 𝄞")], [CREATION], "differs"),
        ([], [CREATION], "absent"),
        ([], [UPDATE], "absent"),
        ([ORDERS], [CREATION, DELETION], "not_deleted"),
        ([ORDERS], [], "not_notified"),
    ],
)
def test_verdicts(held: list[Any], changes: list[Change], verdict: str) -> None:
    (found,) = compared(held, *changes)
    assert found.verdict == verdict
    assert bool(found.differences) == (verdict == "differs")


def test_differences_are_what_the_directory_has() -> None:
    (found,) = compared([changed(ORDERS, quota=9, journaling=False)], CREATION, UPDATE)
    assert found.differences == {"quota": 9, "journaling": False}
    # Nothing was said of journaling
    (found,) = compared([changed(ORDERS, quota=9, journaling=False)], UPDATE)
    assert found.differences == {"quota": 9}


def test_queues_that_nobody_was_told_of_come_last() -> None:
    others = [changed(ORDERS, identifier=UUID(int=number), pathname=f"ledger\\{number}") for number in (1, 2)]
    found = compared([others[0], ORDERS, others[1]], CREATION)
    assert [each.verdict for each in found] == ["agrees", "not_notified", "not_notified"]
    assert [each.held and each.held.identifier.int for each in found[1:]] == [1, 2]


def test_each_machine_is_measured() -> None:
    first = captured(SERVICE.notifications([CREATION]))
    second = captured(SERVICE.notifications([DELETION]), machine="10.0.0.3", port=40001)
    found = list(compare(replayed(first, second).queues, MemoryDirectory([ORDERS])))
    assert [(each.notified and each.notified.machine, each.verdict.value) for each in found] == [
        ("10.0.0.2", "agrees"),
        ("10.0.0.3", "not_deleted"),
    ]


def test_queues_that_were_told_by_their_paths() -> None:
    update = mqcn.NotificationUpdate(
        command="change",
        path_name=r"LEDGER\orders",
        guid_master_id=MASTER,
        properties=[(PROPID_Q_QMID, LEDGER), (PROPID_Q_QUOTA, 7)],
    )
    body = mqcn.encode_body(mqcn.ChangeNotificationMessage(1, [update]), enforce=False)
    told = replayed(captured_packets([packet_of(body)])).queues
    (found,) = compare(told, MemoryDirectory([changed(ORDERS, quota=7)]))
    assert (found.verdict, found.held and found.held.identifier) == ("agrees", ORDERS.identifier)


def test_a_directory_that_cannot_be_read() -> None:
    failing = Failing([ORDERS])
    failing.fails = frozenset([2])
    found = compare(replayed(captured(SERVICE.notifications([CREATION]))).queues, failing)
    assert next(found).verdict == "agrees"
    with pytest.raises(DirectoryNotConnected):
        next(found)
