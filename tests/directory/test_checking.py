"""What `check` finds wrong with an enterprise, and that it finds nothing wrong with one that is well."""

from __future__ import annotations

import dataclasses
from typing import Any
from uuid import UUID

import pytest

from msmqwire.directory import (
    ConnectedNetwork,
    DirectoryObject,
    DirectoryServerType,
    Enterprise,
    MemoryDirectory,
    Queue,
    QueueManager,
    RoutingLink,
    Site,
)
from msmqwire.directory.checking import check
from msmqwire.directory.elements import ELEMENTS
from tests.directory.enterprise import EXAMPLE

NORTH, SOUTH, GATE, PEER, NOBODY = (UUID(int=number) for number in range(1, 6))


def well() -> dict[str, Any]:
    """Two sites with a link between them, by the names that the cases below change them by."""
    return {
        "enterprise": Enterprise(identifier=UUID(int=100), name="Contoso"),
        "north": Site(identifier=NORTH, name="North"),
        "south": Site(identifier=SOUTH, name="South"),
        "gate": QueueManager(identifier=GATE, computer_name="GATE", site_identifier_list=(NORTH,), routing_server=True),
        "peer": QueueManager(identifier=PEER, computer_name="PEER", site_identifier_list=(SOUTH,), routing_server=True),
        "link": RoutingLink(
            identifier=UUID(int=200),
            actual_cost=7,
            site1_identifier=NORTH,
            site2_identifier=SOUTH,
            site_gate_identifier_list=(GATE, PEER),
        ),
        "queue": Queue(identifier=UUID(int=300), pathname="gate\\orders"),
        "network": ConnectedNetwork(identifier=UUID(int=400), name="Backbone"),
    }


def link(number: int, cost: int, one: UUID = NORTH, two: UUID = SOUTH) -> RoutingLink:
    good: RoutingLink = well()["link"]
    return dataclasses.replace(
        good, identifier=UUID(int=number), actual_cost=cost, site1_identifier=one, site2_identifier=two
    )


def test_nothing_is_wrong() -> None:
    assert check(well().values()) == []
    example = MemoryDirectory.load(EXAMPLE)
    assert check(each for element in ELEMENTS.values() for each in example.read_all(element)) == []
    assert check([]) == []


def test_networks_without_names_do_not_share_one() -> None:
    assert check([ConnectedNetwork(identifier=UUID(int=number)) for number in (1, 2)]) == []
    named = [ConnectedNetwork(identifier=UUID(int=number), name="Backbone") for number in (1, 2)]
    assert [finding.attribute for finding in check(named)] == ["name"]


def test_one_site_needs_neither_gates_nor_links() -> None:
    objects = well()
    for name in ("south", "peer", "link"):
        del objects[name]
    assert check(objects.values()) == []


@pytest.mark.parametrize(
    ("name", "change", "findings"),
    [
        ("link", {"actual_cost": -1}, ["routing_link North - South: actual_cost: -1 is not from 1 to 999,999"]),
        ("link", {"actual_cost": 0}, ["routing_link North - South: actual_cost: 0 is not from 1 to 999,999"]),
        ("link", {"actual_cost": 1_000_000}, [
            "routing_link North - South: actual_cost: 1000000 is not from 1 to 999,999",
        ]),
        ("link", {"site2_identifier": NORTH}, [
            "routing_link North - North: site2_identifier: is the same site as site1_identifier",
            "routing_link North - North: site_gate_identifier_list: PEER is in neither of the sites",
            "site South: no link has a gate in it, so it cannot be reached",
            "site South: no links lead to it from site North",
        ]),
        ("link", {"site2_identifier": NOBODY}, [
            f"routing_link North - ?: site2_identifier: there is no site {NOBODY}",
            "routing_link North - ?: site_gate_identifier_list: PEER is in neither of the sites",
            "site North: no link has a gate in it, so it cannot be reached",
            "site South: no link has a gate in it, so it cannot be reached",
            "site South: no links lead to it from site North",
        ]),
        ("link", {"site_gate_identifier_list": (GATE, NOBODY)}, [
            f"routing_link North - South: site_gate_identifier_list: there is no queue_manager {NOBODY}",
            "site South: no link has a gate in it, so it cannot be reached",
        ]),
        ("link", {"site_gate_identifier_list": (GATE, NORTH)}, [
            f"routing_link North - South: site_gate_identifier_list: there is no queue_manager {NORTH}",
            "site South: no link has a gate in it, so it cannot be reached",
        ]),
        ("peer", {"routing_server": False}, [
            "queue_manager PEER: routing_server: is false, but the machine is a gate of routing_link North - South",
        ]),
        ("peer", {"computer_name": "gate"}, [f"queue_manager gate: computer_name: is also the name of {GATE}"]),
        ("peer", {"site_identifier_list": (SOUTH, NOBODY)}, [
            f"queue_manager PEER: site_identifier_list: there is no site {NOBODY}",
        ]),
        ("peer", {"connected_network_identifier_list": (NOBODY,)}, [
            f"queue_manager PEER: connected_network_identifier_list: there is no connected_network {NOBODY}",
        ]),
        ("peer", {"directory_server_type": DirectoryServerType.STANDALONE}, [
            "queue_manager PEER: directory_server_type: is given, but directory_server is false",
        ]),
        (
            "peer",
            {"journal_quota": -1},
            ["queue_manager PEER: journal_quota: -1 is not an unsigned integer of 32 bits"],
        ),
        ("queue", {"pathname": "nobody\\orders"}, ["queue nobody\\orders: pathname: there is no queue_manager nobody"]),
        (
            "queue",
            {"pathname": "gate\\x\\orders"},
            ["queue gate\\x\\orders: pathname: there is no queue_manager gate\\x"],
        ),
        ("queue", {"pathname": "orders"}, ["queue orders: pathname: names no computer"]),
        ("queue", {"quota": 1 << 32}, ["queue gate\\orders: quota: 4294967296 is not an unsigned integer of 32 bits"]),
        ("queue", {"base_priority": 32_768}, [
            "queue gate\\orders: base_priority: 32768 is not from -32,768 to 32,767",
        ]),
        ("queue", {"base_priority": -32_769}, [
            "queue gate\\orders: base_priority: -32769 is not from -32,768 to 32,767",
        ]),
        ("queue", {"base_priority": -32_768}, []),
        ("queue", {"create_time": 1 << 31}, [
            "queue gate\\orders: create_time: 2147483648 is not from 0 to 2,147,483,647",
        ]),
        ("peer", {"modify_time": -1}, ["queue_manager PEER: modify_time: -1 is not from 0 to 2,147,483,647"]),
        ("peer", {"modify_time": (1 << 31) - 1}, []),
        ("south", {"intra_site_replication_interval": 65_536}, [
            "site South: intra_site_replication_interval: 65536 is not from 0 to 65,535",
        ]),
        ("south", {"inter_site_replication_interval": -1}, [
            "site South: inter_site_replication_interval: -1 is not from 0 to 65,535",
        ]),
        ("south", {"inter_site_replication_interval": 65_535}, []),
        ("south", {"name": "NORTH"}, [f"site NORTH: name: is also the name of {NORTH}"]),
        (
            "enterprise",
            {"identifier": NORTH},
            [f"site North: identifier: {NORTH} is also the identifier of enterprise Contoso"],
        ),
        ("enterprise", {"name": ""}, []),
    ],
)  # fmt: skip
def test_one_thing_is_wrong(name: str, change: dict[str, Any], findings: list[str]) -> None:
    objects = well()
    objects[name] = dataclasses.replace(objects[name], **change)
    assert [*map(str, check(objects.values()))] == findings


@pytest.mark.parametrize(
    ("added", "findings"),
    [
        (link(201, 8), ["routing_link North - South: actual_cost: 8, but another link between these sites costs 7"]),
        (link(201, 8, SOUTH, NORTH), [
            "routing_link South - North: actual_cost: 8, but another link between these sites costs 7",
        ]),
        (link(201, 7), ["routing_link North - South: actual_cost: another link between these sites costs the same"]),
        (Enterprise(identifier=UUID(int=101), name="Fabrikam"), [
            "enterprise Fabrikam: there is more than one enterprise ([MS-MQDSSM] 2.2.3)",
        ]),
        (Site(identifier=NOBODY, name="Far"), [
            "site Far: no link has a gate in it, so it cannot be reached",
            "site Far: no links lead to it from site North",
        ]),
        (QueueManager(identifier=NOBODY, computer_name="LOST"), [
            "queue_manager LOST: site_identifier_list: is empty: it belongs to no site",
        ]),
        (QueueManager(identifier=NOBODY, computer_name="", site_identifier_list=(NORTH,)), [
            f"queue_manager {NOBODY}: computer_name: is empty: no message can be sent to it",
        ]),
        (QueueManager(
            identifier=NOBODY, computer_name="LEAF", site_identifier_list=(NORTH,),
            out_routing_server_identifier_list=(GATE, NOBODY), in_routing_server_identifier_list=(GATE,),
        ), [
            "queue_manager LEAF: out_routing_server_identifier_list: LEAF is not a routing server",
        ]),
        (Queue(identifier=UUID(int=300), pathname="gate\\Invoices"), [
            f"queue gate\\Invoices: identifier: {UUID(int=300)} is also the identifier of queue gate\\orders",
        ]),
        (Queue(identifier=NOBODY, pathname="GATE\\ORDERS"), [
            f"queue GATE\\ORDERS: pathname: is also the name of {UUID(int=300)}",
        ]),
    ],
)  # fmt: skip
def test_one_thing_is_too_much(added: DirectoryObject, findings: list[str]) -> None:
    assert [*map(str, check([*well().values(), added]))] == findings


LEAF, ONE, OTHER = UUID(int=500), UUID(int=401), UUID(int=402)


def networked(
    gate: tuple[UUID, ...], peer: tuple[UUID, ...], leaf: tuple[UUID, ...], **lists: tuple[UUID, ...]
) -> list[str]:
    """The findings of two sites whose gates and whose LEAF, in North, have these networks."""
    objects = well()
    objects["gate"] = dataclasses.replace(objects["gate"], connected_network_identifier_list=gate)
    objects["peer"] = dataclasses.replace(objects["peer"], connected_network_identifier_list=peer)
    others = [ConnectedNetwork(identifier=each, name=str(each)) for each in (ONE, OTHER)]
    machine = QueueManager(
        identifier=LEAF,
        computer_name="LEAF",
        site_identifier_list=(NORTH,),
        connected_network_identifier_list=leaf,
        **lists,  # type: ignore[arg-type]
    )
    return [*map(str, check([*objects.values(), *others, machine]))]


def test_machines_that_cannot_connect_as_routing_requires() -> None:
    """[MS-MQBR] 1.5: a machine and its routing servers, and the gates of neighbouring sites."""
    apart = ["queue_manager LEAF: connected_network_identifier_list: "
             "has no network in common with GATE, a routing server of the machine"]  # fmt: skip
    assert networked((ONE,), (ONE, OTHER), (OTHER,)) == apart
    assert networked((ONE,), (ONE,), (OTHER,), out_routing_server_identifier_list=(GATE,)) == apart
    for gate, leaf in (((ONE, OTHER), (OTHER,)), ((), (OTHER,)), ((ONE,), ())):
        assert networked(gate, (ONE, OTHER), leaf) == []
    assert networked((ONE,), (OTHER,), (ONE,)) == [
        "routing_link North - South: site_gate_identifier_list: GATE and PEER have no network in common",
    ]


def test_a_routing_server_of_another_site() -> None:
    for way in ("out", "in"):
        assert networked((), (), (), **{f"{way}_routing_server_identifier_list": (PEER,)}) == [
            f"queue_manager LEAF: {way}_routing_server_identifier_list: PEER is in none of the machine's sites",
        ]
        assert networked((), (), (), **{f"{way}_routing_server_identifier_list": (GATE,)}) == []


def test_only_its_own_routing_servers_need_a_network_of_the_machine() -> None:
    bridge = QueueManager(
        identifier=NOBODY,
        computer_name="BRIDGE",
        site_identifier_list=(NORTH,),
        connected_network_identifier_list=(ONE, OTHER),
        routing_server=True,
    )
    objects = well()
    objects["gate"] = dataclasses.replace(objects["gate"], connected_network_identifier_list=(ONE,))
    leaf = QueueManager(
        identifier=LEAF,
        computer_name="LEAF",
        site_identifier_list=(NORTH,),
        connected_network_identifier_list=(OTHER,),
        out_routing_server_identifier_list=(NOBODY,),
        in_routing_server_identifier_list=(NOBODY,),
    )
    networks = [ConnectedNetwork(identifier=each, name=str(each)) for each in (ONE, OTHER)]
    assert check([*objects.values(), *networks, bridge, leaf]) == []
    # Without in-routing servers, every routing server of the site sends to the machine itself
    alone = dataclasses.replace(leaf, in_routing_server_identifier_list=())
    (found,) = check([*objects.values(), *networks, bridge, alone])
    assert "no network in common with GATE" in str(found)


def test_two_halves_of_an_enterprise() -> None:
    sites = [Site(identifier=UUID(int=number), name=f"S{number}") for number in range(1, 6)]
    gates = [
        QueueManager(
            identifier=UUID(int=10 + number),
            computer_name=f"G{number}",
            site_identifier_list=(UUID(int=number),),
            routing_server=True,
        )
        for number in range(1, 6)
    ]
    links = [
        RoutingLink(
            identifier=UUID(int=20 + one),
            actual_cost=1,
            site1_identifier=UUID(int=one),
            site2_identifier=UUID(int=two),
            site_gate_identifier_list=(UUID(int=10 + one), UUID(int=10 + two)),
        )
        for one, two in ((1, 2), (3, 4), (4, 5))
    ]
    assert [*map(str, check([*sites, *gates, *links]))] == [
        "site S1: no links lead to it from site S3",
        "site S2: no links lead to it from site S3",
    ]
