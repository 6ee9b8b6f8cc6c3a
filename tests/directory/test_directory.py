"""What a directory answers, whether it lives in memory or in an LDAP server: the answers are the same."""

from __future__ import annotations

import copy
import pickle
from typing import Any
from uuid import UUID, uuid4

import pytest

from msmqwire.directory import (
    Directory,
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    Equal,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
    MemoryDirectory,
    NotEqual,
    OperatingSystemType,
    PrivacyLevel,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
    site_gates,
)
from msmqwire.directory.ldap_schema import DERIVED, DIRECTORY_SERVER_TYPES, MAPPING
from msmqwire.errors import DirectoryError
from tests.directory.enterprise import AWKWARD_NAME, LONG_NAME, ROOT, SERVICE_TYPES

ZURICH, BASEL = (UUID(f"51e00000-0000-4000-8000-00000000000{end}") for end in "ab")
KIOSK7 = UUID("ba000000-0000-4000-8000-0000000000a7")
ORDERS = UUID("0e000000-0000-4000-8000-000000000001")


def names_of(element: type[DirectoryObject]) -> tuple[str, ...]:
    """The attributes that both homes have."""
    return (*MAPPING[element], *DERIVED[element])


@pytest.mark.parametrize("element", MAPPING, ids=lambda element: element.__name__)
def test_all_objects_with_all_attributes(
    directory: Directory, memory: MemoryDirectory, element: type[DirectoryObject]
) -> None:
    expected = {each.identifier: each for each in memory.read_all(element, attributes=names_of(element))}
    found = {each.identifier: each for each in directory.read_all(element, attributes=names_of(element))}
    assert found == expected
    assert len(found) > 0


def test_every_attribute_has_a_value_that_is_not_its_default(memory: MemoryDirectory) -> None:
    """A gate proves that it checked something: a wrong name of an attribute would read as the default."""
    for element in MAPPING:
        for name in names_of(element):
            default = element.__dataclass_fields__[name].default
            assert any(getattr(each, name) != default for each in memory.read_all(element)) or name == "scope"


#: [MS-MQDSSM] 3.1.6.11.1, 3.1.6.11.2, 3.1.6.11.4 to 3.1.6.11.6
DEFAULTS: dict[type[DirectoryObject], dict[str, Any]] = {
    Enterprise: {
        "weakened_security": False,
        "non_ldap_capable_queue_manager_notification": True,
        "default_time_to_live": 345_600,
        "old_directory": True,
    },
    Site: {"intra_site_replication_interval": 2, "inter_site_replication_interval": 10, "foreign_site": False},
    RoutingLink: {"description": "", "site_gate_identifier_list": ()},
    QueueManager: {
        "queue_manager_version": "",
        "operating_system_type": OperatingSystemType.OTHER,
        "queue_manager_quota": 0x00100000,
        "journal_quota": 0xFFFFFFFF,
        "foreign_system": False,
        "site_identifier_list": (),
        "out_routing_server_identifier_list": (),
        "in_routing_server_identifier_list": (),
        "routing_server": False,
        "directory_server": False,
        "remote_access_server": False,
        "supporting_server": False,
        "public_encryption_key_list": b"",
    },
    Queue: {
        "label": "",
        "type": UUID(int=0),
        "journaling": False,
        "quota": 0xFFFFFFFF,
        "journal_quota": 0xFFFFFFFF,
        "authentication": False,
        "privacy_level": PrivacyLevel.OPTIONAL,
        "transactional": False,
        "multicast_address": "",
        "base_priority": 0,
    },
}


@pytest.mark.parametrize("element", MAPPING, ids=lambda element: element.__name__)
def test_defaults(element: type[DirectoryObject]) -> None:
    fields = element.__dataclass_fields__
    assert {name: fields[name].default for name, row in MAPPING[element].items() if not row.required} == (
        DEFAULTS[element]
    )


def test_the_bits_of_directory_servers() -> None:
    assert {kind: bit for bit, kind in DIRECTORY_SERVER_TYPES.items()} | {DirectoryServerType.STANDALONE: 0} == (
        SERVICE_TYPES
    )


@pytest.mark.parametrize(
    ("element", "filters"),
    [
        (Queue, [Equal("identifier", ORDERS)]),
        (Queue, [Equal("identifier", UUID(int=0))]),
        (Site, [Equal("identifier", ORDERS)]),
        (Site, [Equal("name", "zurich")]),
        (Site, [Equal("name", "Zurich)(cn=*")]),
        (Site, [Equal("name", "*")]),
        (Site, [Equal("name", "")]),
        (Site, [NotEqual("name", "Zurich")]),
        (Site, [Equal("foreign_site", False)]),
        (Site, [Equal("foreign_site", True)]),
        (Site, [Equal("full_path", f"CN=Basel,CN=Sites,CN=Configuration,{ROOT}")]),
        (Site, [Equal("full_path", "no distinguished name")]),
        (Site, [Equal("full_path", f"cn=Nowhere,{ROOT}")]),
        (Site, [Equal("full_path", f"cn=Zurich,cn=Sites,cn=Configuration,{ROOT}"), Equal("name", "Basel")]),
        (Site, [Equal("inter_site_replication_interval", 10)]),
        (RoutingLink, [LessThan("actual_cost", 3)]),
        (RoutingLink, [LessThanOrEqual("actual_cost", 3)]),
        (RoutingLink, [GreaterThan("actual_cost", 3), NotEqual("actual_cost", 25)]),
        (RoutingLink, [GreaterThanOrEqual("actual_cost", 10)]),
        (RoutingLink, [Equal("actual_cost", 10)]),
        (RoutingLink, [Equal("site1_identifier", ZURICH)]),
        (RoutingLink, [Equal("site_gate_identifier_list", UUID("ba000000-0000-4000-8000-0000000000a2"))]),
        (RoutingLink, [Equal("description", "leased line")]),
        (QueueManager, [Equal("computer_name", "kiosk7")]),
        (QueueManager, [Equal("computer_name", "nobody")]),
        (QueueManager, [Equal("computer_name", "*")]),
        (QueueManager, [Equal("qualified_computer_name", "LEDGER.contoso.example")]),
        (QueueManager, [Equal("site_identifier_list", ZURICH)]),
        (QueueManager, [NotEqual("site_identifier_list", ZURICH)]),
        (QueueManager, [Equal("site_identifier_list", ZURICH), Equal("routing_server", True)]),
        (QueueManager, [Equal("routing_server", False)]),
        (QueueManager, [Equal("in_routing_server_identifier_list", UUID("ba000000-0000-4000-8000-0000000000a3"))]),
        (QueueManager, [Equal("queue_manager_quota", 0xFFFFFFFF)]),
        (QueueManager, [GreaterThan("queue_manager_quota", 8192)]),
        (QueueManager, [Equal("journal_quota", 0xFFFFFFFF)]),
        (QueueManager, [Equal("directory_server_type", DirectoryServerType.PRIMARY_SITE_CONTROLLER)]),
        (QueueManager, [Equal("operating_system_type", OperatingSystemType.WIN_SERVER)]),
        (QueueManager, [Equal("operating_system_type", "other")]),
        (QueueManager, [Equal("remote_access_server", True)]),
        (QueueManager, [LessThan("create_time", 1_000_000_002)]),
        (QueueManager, [Equal("security", b"\x00machine")]),
        (Queue, [Equal("pathname", "LEDGER\\Orders")]),
        (Queue, [Equal("pathname", "ledger")]),
        (Queue, [Equal("pathname", "\\orders")]),
        (Queue, [Equal("pathname", f"depot\\{LONG_NAME}")]),
        (Queue, [Equal("pathname", f"depot\\{AWKWARD_NAME}")]),
        (Queue, [Equal("qualified_pathname", "depot.contoso.example\\deliveries")]),
        (Queue, [Equal("label", "orders of the day")]),
        (Queue, [Equal("label", "")]),
        (Queue, [Equal("type", UUID(int=0))]),
        (Queue, [Equal("type", UUID(int=7))]),
        (Queue, [LessThan("base_priority", 0)]),
        (Queue, [Equal("privacy_level", PrivacyLevel.BODY)]),
        (Queue, [Equal("multicast_address", "234.1.1.1:8001")]),
        (Queue, [Equal("scope", "enterprise")]),
        (Enterprise, [Equal("default_time_to_live", 600)]),
        (Enterprise, [Equal("old_directory", False)]),
        (Enterprise, [Equal("non_ldap_capable_queue_manager_notification", True)]),
    ],
    ids=lambda value: ",".join(f"{each.attribute} {type(each).__name__} {each.value!r}" for each in value)
    if isinstance(value, list)
    else value.__name__,
)  # fmt: skip
def test_filters(
    directory: Directory, memory: MemoryDirectory, element: type[DirectoryObject], filters: list[Filter]
) -> None:
    # The oracle asks every object, without an index and without a server.
    expected = {each.identifier for each in memory.read_all(element) if all(one.met_by(each) for one in filters)}
    found = list(directory.read_all(element, filters, ["identifier"]))
    assert {each.identifier for each in found} == expected
    assert len(found) == len(expected)
    first = directory.read_directory(element, filters, ["identifier"])
    assert first.identifier in expected if first else not expected


def test_the_filters_above_find_something_and_leave_something(memory: MemoryDirectory) -> None:
    """A gate proves that it checked something: of every operator there is a case with and one without results."""
    assert [*memory.read_all(RoutingLink, [LessThan("actual_cost", 3)])]
    assert len([*memory.read_all(RoutingLink, [LessThanOrEqual("actual_cost", 3)])]) == 2
    assert [*memory.read_all(QueueManager, [GreaterThan("queue_manager_quota", 8192)])]
    assert len([*memory.read_all(Queue, [LessThan("base_priority", 0)])]) == 1
    assert [*memory.read_all(Queue, [Equal("pathname", f"depot\\{LONG_NAME}")])]


def test_an_attribute_that_was_not_asked_for_must_not_be_used(directory: Directory) -> None:
    machine = directory.read_directory(QueueManager, [Equal("routing_server", False)], ["computer_name"])
    assert machine is not None
    assert machine.attributes() == {"computer_name": machine.computer_name}
    with pytest.raises(AttributeError, match="routing_server of this QueueManager was not read"):
        machine.routing_server  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'speed'"):
        machine.speed  # type: ignore[attr-defined]  # noqa: B018
    assert "routing_server" not in repr(machine)


def test_an_element_of_some_attributes_is_a_value(directory: Directory) -> None:
    kiosk, again = (directory.read_directory(QueueManager, [Equal("identifier", KIOSK7)], ["identifier"]) for _ in "12")
    assert kiosk == again == pickle.loads(pickle.dumps(kiosk)) == copy.deepcopy(kiosk)
    assert hash(kiosk) == hash(again)
    assert kiosk != directory.read_directory(QueueManager, [Equal("identifier", KIOSK7)])


def test_an_identifier_may_be_given_as_text(directory: Directory) -> None:
    queue = directory.read_directory(Queue, [Equal("identifier", str(ORDERS).upper())], ["identifier"])
    assert queue is not None
    assert queue.identifier == ORDERS


def test_no_filters_and_no_filter_are_the_same(directory: Directory) -> None:
    assert [*directory.read_all(Site, [])] == [*directory.read_all(Site, None)] == [*directory.read_all(Site)]


@pytest.mark.parametrize(
    ("filters", "attributes", "message"),
    [
        ([Equal("nam", "x")], None, "Site has no attribute 'nam'"),
        (None, ["name", "gates"], "Site has no attribute 'gates'"),
        ([Equal("identifier", "not one")], None, "identifier is compared with 'not one', which is not of type UUID"),
        ([Equal("identifier", f"{{{ORDERS}}}")], None, "identifier is compared with '{.*}', which is not of type UUID"),
        ([Equal("identifier", ORDERS.urn)], None, "identifier is compared with 'urn:.*, which is not of type UUID"),
        ([Equal("identifier", ORDERS.hex)], None, "which is not of type UUID"),
        ([Equal("name", 7)], None, "name is compared with 7, which is not of type str"),
        ([LessThan("foreign_site", b"")], None, "not of type bool"),
        ([Equal("foreign_site", "False")], None, "foreign_site is compared with 'False', which is not of type bool"),
        ([Equal("security", "AQID")], None, "which is not of type bytes"),
    ],
)
def test_a_wrong_question(directory: Directory, filters: Any, attributes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        directory.read_directory(Site, filters, attributes)
    with pytest.raises(ValueError, match=message):
        directory.read_directory_begin(Site, filters, attributes)


def test_two_reads_at_once_do_not_disturb_each_other(directory: Directory) -> None:
    first, second = directory.read_directory_begin(Site), directory.read_directory_begin(QueueManager)
    sites, machines = [], []
    while (site := directory.read_directory_next(first)) is not None:
        sites.append(site)
        machines.append(directory.read_directory_next(second))
    directory.read_directory_end(first)
    with pytest.raises(DirectoryError, match="is not the handle of an open read"):
        directory.read_directory_next(first)
    while (machine := directory.read_directory_next(second)) is not None:
        machines.append(machine)
    assert len({each.identifier for each in sites}) == 4
    assert len({each.identifier for each in machines if each is not None}) == 10


def test_site_gates(directory: Directory) -> None:
    machines = {each.identifier: each for each in directory.read_all(QueueManager)}
    gates = site_gates(directory.read_all(RoutingLink), machines)
    assert {each.computer_name for each in gates[ZURICH]} == {"ZURGATE1", "ZURGATE2"}
    assert [each.computer_name for each in gates[BASEL]] == ["BASGATE"]
    assert uuid4() not in gates


def test_an_element_equals_elements_of_its_class_only(memory: MemoryDirectory) -> None:
    (site, *_) = memory.read_all(Site)
    assert site == copy.copy(site)
    assert site.__eq__(site.identifier) is NotImplemented
