"""[MS-MQDMPR] 3.1.7.1.20 to 3.1.7.1.23 and [MS-MQDSSM] 3.1.6.3 to 3.1.6.6, row by row."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from msmqwire import directory
from msmqwire.directory import (
    ConnectedNetwork,
    Directory,
    LdapDirectory,
    MemoryDirectory,
    Queue,
    QueueManager,
    QueueManagerDirectory,
    RoutingLink,
    Site,
)
from msmqwire.errors import DirectoryError, DirectoryNotConnected
from tests.contract.checklist import row

ZURICH, BASEL = uuid.UUID(int=1), uuid.UUID(int=2)
LINKS = [
    RoutingLink(identifier=uuid.UUID(int=10 + cost), actual_cost=cost, site1_identifier=ZURICH, site2_identifier=BASEL)
    for cost in (5, 3, 4, 3)
]
HERE = QueueManager(identifier=uuid.UUID(int=30), computer_name="HERE", site_identifier_list=(ZURICH,))
THERE = QueueManager(identifier=uuid.UUID(int=31), computer_name="THERE", site_identifier_list=(BASEL,))
ORDERS = Queue(identifier=uuid.UUID(int=40), pathname="here\\orders", label="Orders")
ELSEWHERE = Queue(identifier=uuid.UUID(int=41), pathname="there\\orders")


@pytest.fixture
def enterprise() -> MemoryDirectory:
    return MemoryDirectory([*LINKS, HERE, THERE, ORDERS, ELSEWHERE])


class Unreachable(Directory):
    """A directory that cannot be reached, until it can."""

    def __init__(self, reachable: Directory) -> None:
        super().__init__()
        self.reachable = False
        self._directory = reachable

    def _search(self, element: Any, filters: Any, attributes: Any) -> Iterator[Any]:
        if not self.reachable:
            raise DirectoryNotConnected("no route to the directory")
        return self._directory.read_all(element, filters, attributes)


@row("DR-01")
def test_the_first_object_that_meets_all_filters(enterprise: MemoryDirectory) -> None:
    cheap = [directory.LessThan("actual_cost", 5), directory.NotEqual("actual_cost", 4)]
    assert enterprise.read_directory(RoutingLink, cheap) is LINKS[1]
    assert enterprise.read_directory(RoutingLink, None) is LINKS[0]
    assert enterprise.read_directory(RoutingLink, [*cheap, directory.Equal("actual_cost", 5)]) is None


@row("DR-02")
def test_the_operators(enterprise: MemoryDirectory) -> None:
    expected = {
        "Equal": [4],
        "NotEqual": [5, 3, 3],
        "LessThan": [3, 3],
        "GreaterThan": [5],
        "LessThanOrEqual": [3, 4, 3],
        "GreaterThanOrEqual": [5, 4],
    }
    operators = directory.Filter.__subclasses__()
    found = {
        each.__name__: [link.actual_cost for link in enterprise.read_all(RoutingLink, [each("actual_cost", 4)])]
        for each in operators
    }
    assert found == expected


@row("DR-03")
def test_offline(enterprise: MemoryDirectory) -> None:
    away = Unreachable(enterprise)
    local = QueueManagerDirectory(away, HERE, [ORDERS])
    with pytest.raises(DirectoryNotConnected):
        local.read_directory(Queue, [directory.Equal("identifier", ORDERS.identifier)], force=True)
    offline_before = local.offline
    assert not offline_before
    with pytest.raises(DirectoryNotConnected):
        local.read_directory(Queue, [directory.Equal("identifier", ORDERS.identifier)])
    assert local.offline
    # Queues: the local ones, and none is no more than none.
    assert local.read_directory(Queue, [directory.Equal("pathname", "here\\orders")], ["label"]) == ORDERS.only(
        ("label",)
    )
    assert local.read_directory(Queue, [directory.Equal("identifier", ELSEWHERE.identifier)]) is None
    # Queue managers: the local one if it is meant.
    assert local.read_directory(QueueManager, [directory.Equal("computer_name", "here")]) == HERE
    for question in ((QueueManager, [directory.Equal("computer_name", "there")]), (Site, None), (RoutingLink, None)):
        with pytest.raises(DirectoryNotConnected):
            local.read_directory(*question)
    # Even when the directory is back nobody asks it, unless forced to or until it has been checked.
    away.reachable = True
    assert local.read_directory(Queue, [directory.Equal("identifier", ELSEWHERE.identifier)]) is None
    assert local.read_directory(Queue, [directory.Equal("identifier", ELSEWHERE.identifier)], force=True) == ELSEWHERE
    assert local.check_online()
    assert local.read_directory(Queue, [directory.Equal("identifier", ELSEWHERE.identifier)]) == ELSEWHERE


def test_offline_without_what_was_never_read(enterprise: MemoryDirectory) -> None:
    """An attribute that LDAP left out has no local value: the read fails as all others that need the directory."""
    unread = ("security", "qualified_pathname")
    machine = HERE.only(tuple(name for name in HERE.attribute_names() if name not in unread))
    queue = ORDERS.only(tuple(name for name in ORDERS.attribute_names() if name not in unread))
    local = QueueManagerDirectory(Unreachable(enterprise), machine, [queue])
    local.offline = True
    for kind, identifier in ((QueueManager, HERE.identifier), (Queue, ORDERS.identifier)):
        with pytest.raises(DirectoryNotConnected, match=r"offline: \w+ .*: security: was not read"):
            local.read_directory(kind, [directory.Equal("identifier", identifier)], ["security"])
    with pytest.raises(DirectoryNotConnected, match="qualified_pathname"):
        local.read_directory(Queue, [directory.Equal("qualified_pathname", "here.example\\orders")])
    assert local.read_directory(Queue, [directory.Equal("identifier", ORDERS.identifier)], ["label"]) is not None


def test_a_directory_that_is_lost_while_it_is_checked(enterprise: MemoryDirectory) -> None:
    class Once(Unreachable):
        def _search(self, element: Any, filters: Any, attributes: Any) -> Iterator[Any]:
            found = super()._search(element, filters, attributes)
            self.reachable = False
            return found

    away = Once(enterprise)
    local = QueueManagerDirectory(away, HERE, [ORDERS])
    away.reachable = True
    assert not local.check_online()
    assert local.offline


def test_what_is_known_is_read_again_when_the_directory_is_back() -> None:
    """The local queue manager and its queues, but no queue takes the path of another one."""
    bills = Queue(identifier=uuid.UUID(int=42), pathname="here\\bills")
    gone = Queue(identifier=uuid.UUID(int=43), pathname="here\\gone")
    held = [
        QueueManager(identifier=HERE.identifier, computer_name="HERE", journal_quota=7),
        Queue(identifier=ORDERS.identifier, pathname="here\\orders", label="New"),
        Queue(identifier=bills.identifier, pathname="HERE\\Orders", label="Bills"),
    ]
    away = Unreachable(MemoryDirectory(held))
    local = QueueManagerDirectory(away, HERE, [ORDERS, bills, gone])
    local.offline = True
    assert not local.check_online()
    assert (local.offline, local.local_queue_manager) == (True, HERE)
    away.reachable = True
    assert local.check_online()
    assert not local.offline
    assert local.local_queue_manager == held[0]
    assert [*local.queues] == [held[1], bills, gone]


@row("DR-04")
def test_next(enterprise: MemoryDirectory) -> None:
    handle = enterprise.read_directory_begin(QueueManager)
    assert [enterprise.read_directory_next(handle) for _ in range(2)] == [HERE, THERE]
    assert enterprise.read_directory_next(handle) is None
    assert enterprise.read_directory_next(handle) is None
    enterprise.read_directory_end(handle)
    for event in (enterprise.read_directory_next, enterprise.read_directory_end):
        for unknown in (handle, 0, -1):
            with pytest.raises(DirectoryError, match="is not the handle of an open read"):
                event(unknown)


@row("DR-05")
def test_begin_without_matches(enterprise: MemoryDirectory) -> None:
    for element, filters in ((Site, None), (QueueManager, [directory.Equal("computer_name", "nobody")])):
        handle = enterprise.read_directory_begin(element, filters)
        assert enterprise.read_directory_next(handle) is None
        enterprise.read_directory_end(handle)


@row("DR-06")
def test_connected_networks() -> None:
    # No server is asked: there is none at this address.
    active_directory = LdapDirectory("ldap://127.0.0.1:1", base="DC=contoso")
    one = [directory.Equal("identifier", ZURICH)]
    for event in (active_directory.read_directory, active_directory.read_directory_begin, active_directory.read_all):
        for filters in (None, one):
            with pytest.raises(DirectoryError, match="Active Directory has no ConnectedNetwork") as caught:
                event(ConnectedNetwork, filters)
            assert not isinstance(caught.value, DirectoryNotConnected)
