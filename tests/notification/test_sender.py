"""The sender: what it says of a change is what changed, on every way back from the wire."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire import mqqb
from msmqwire.directory import PrivacyLevel, Queue, Scope
from msmqwire.errors import EncodeError
from msmqwire.notification import sender as sender_module
from msmqwire.notification.envelope import AuthenticationLevel
from msmqwire.notification.sender import (
    Change,
    Notification,
    QueueCreation,
    QueueDeletion,
    QueueManagerUpdate,
    QueueUpdate,
    Sender,
    Signature,
)
from msmqwire.properties import by_number
from tests.contract.checklist import row
from tests.notification.sent import (
    BRANCH,
    LEDGER,
    MACHINE,
    MANAGER,
    MASTER,
    ORDERS,
    SERVICE,
    captured,
    changed,
    received,
    rows,
)

CREATION = QueueCreation(queue=ORDERS, queue_manager=LEDGER)
DELETION = QueueDeletion(queue=ORDERS, queue_manager=LEDGER)


def update(**values: Any) -> QueueUpdate:
    return QueueUpdate(old=ORDERS, new=changed(ORDERS, **values), queue_manager=LEDGER)


def machine_update(**values: Any) -> QueueManagerUpdate:
    return QueueManagerUpdate(old=MACHINE, new=changed(MACHINE, **values))


def told(*changes: Change, sender: Sender = SERVICE) -> list[dict[str, Any]]:
    """What the one message says of each change: its properties by the ends of their names."""
    (notification,) = sender.notifications(changes)
    return [{_name(each.id): _value(each.value) for each in item.properties} for item in received(notification).updates]


def _name(propid: int) -> str:
    return by_number(propid).name.removeprefix("PROPID_")


def _value(value: Any) -> Any:
    return value if isinstance(value, int | str | UUID) else bytes(value)


def test_a_creation_says_all_of_a_queue() -> None:
    (said,) = told(CREATION)
    assert said == {
        "Q_TYPE": UUID(int=7),
        "Q_INSTANCE": ORDERS.identifier,
        "Q_BASEPRIORITY": -3,
        "Q_JOURNAL": 1,
        "Q_QUOTA": 4096,
        "Q_JOURNAL_QUOTA": 2048,
        "Q_CREATE_TIME": 1_709_539_200,
        "Q_MODIFY_TIME": 1_709_539_201,
        "Q_SCOPE": 0,
        "Q_SECURITY": b"\1\0\4\x80",
        "Q_PATHNAME": r"ledger\orders",
        "Q_LABEL": "Zürich 𝄞",
        "Q_AUTHENTICATE": 1,
        "Q_PRIV_LEVEL": 2,
        "Q_TRANSACTION": 1,
    }
    other = changed(ORDERS, journaling=False, scope=Scope.ENTERPRISE, privacy_level=PrivacyLevel.NONE)
    (said,) = told(QueueCreation(queue=other, queue_manager=LEDGER))
    assert (said["Q_JOURNAL"], said["Q_SCOPE"], said["Q_PRIV_LEVEL"]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"quota": 1}, {"Q_QUOTA": 1}),
        ({"journaling": False, "label": "untold"}, {"Q_JOURNAL": 0}),
        ({"journal_quota": 0, "base_priority": 5}, {"Q_JOURNAL_QUOTA": 0, "Q_BASEPRIORITY": 5}),
        ({"security": b"\2"}, {"Q_SECURITY": b"\2"}),
        (
            {"authentication": False, "privacy_level": PrivacyLevel.OPTIONAL},
            {"Q_AUTHENTICATE": 0, "Q_PRIV_LEVEL": 1},
        ),
    ],
)
def test_an_update_says_what_changed(values: dict[str, Any], said: dict[str, Any]) -> None:
    assert told(update(**values)) == [{"Q_QMID": LEDGER, **said}]


def test_a_machine_update_says_what_changed() -> None:
    required = {"QM_MACHINE_ID": LEDGER, "QM_FOREIGN": 1}
    assert told(machine_update(queue_manager_quota=9)) == [{**required, "QM_QUOTA": 9}]
    assert told(machine_update(journal_quota=8, security=b"", routing_server=True)) == [
        {**required, "QM_JOURNAL_QUOTA": 8, "QM_SECURITY": b""}
    ]


def test_what_cannot_be_told_is_not_sent() -> None:
    untold: list[Change] = [update(), update(label="other"), machine_update(), machine_update(routing_server=True)]
    assert SERVICE.notifications(untold) == []
    # A queue manager is told to look for itself, whatever changed
    assert len(MANAGER.notifications(untold)) == 2


@row("CNC-01")
def test_version_2_says_where_to_look() -> None:
    changes: list[Change] = [CREATION, update(label="x"), DELETION, machine_update(routing_server=True)]
    notifications = MANAGER.notifications(changes)
    assert [each.body[:2] for each in notifications] == [b"\2\1"] * 4
    assert [tuple(received(each).body or ()) for each in notifications] == [
        (1, ORDERS.identifier, "dc1.example"),
        (2, ORDERS.identifier, "dc1.example"),
        (3, ORDERS.identifier, "dc1.example"),
        (4, LEDGER, "dc1.example"),
    ]
    assert {each.queue_manager for each in notifications} == {LEDGER}
    # An identifier is all that it takes
    short = Queue.of({"identifier": ORDERS.identifier})
    assert MANAGER.notifications([QueueDeletion(queue=short, queue_manager=LEDGER)]) == [notifications[2]]


def test_each_queue_manager_has_its_own_message() -> None:
    branch = QueueCreation(queue=changed(ORDERS, identifier=UUID(int=1)), queue_manager=BRANCH)
    first, second = SERVICE.notifications([CREATION, branch, update(quota=1), DELETION])
    assert (first.queue_manager, second.queue_manager) == (LEDGER, BRANCH)
    assert [each.command for each in received(first).updates] == ["create", "change", "delete"]
    assert [each.command for each in received(second).updates] == ["create"]
    assert {each.guid_master_id for each in first.message.updates} == {MASTER}


def test_messages_are_full_before_there_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [len(each.message.updates) for each in SERVICE.notifications([DELETION] * 600)]
    assert sizes == [255, 255, 90]
    monkeypatch.setattr(sender_module, "MAX_BYTES", 300)
    sizes = [len(received(each).updates) for each in SERVICE.notifications([DELETION] * 9)]
    assert sizes == [4, 4, 1]


def test_large_descriptors_fit_in_packets() -> None:
    changes = [update(security=bytes([number]) * 65_000) for number in range(70)]
    packets = [mqqb.encode(each.packet()) for each in SERVICE.notifications(changes)]
    assert len(packets) == 2
    assert max(map(len, packets)) <= 4 << 20


#: A change of each kind.
CHANGES: list[Change] = [CREATION, update(quota=1), DELETION, machine_update(queue_manager_quota=5)]


def on_the_wire(notification: Notification) -> mqqb.UserMessage:
    packet = mqqb.decode(mqqb.encode(notification.packet()), strict=True)
    assert isinstance(packet, mqqb.UserMessage)
    return packet


@row("CNC-07")
@pytest.mark.parametrize(
    ("msmq_version", "level", "algorithm"),
    [(1, "sig10", 0x8003), (2, "sig20", 0x8003), (3, "sig20", 0x8004), (4, "sig20", 0x8004), (5, "sig20", 0x800E),
     (6, "sig20", 0x800E)],
)  # fmt: skip
@pytest.mark.parametrize("sender", [SERVICE, MANAGER])
def test_properties_of_the_message(sender: Sender, msmq_version: Any, level: str, algorithm: int) -> None:
    for notification in replace(sender, msmq_version=msmq_version).notifications(CHANGES):
        packet = on_the_wire(notification)
        assert (packet.time_to_reach_queue, packet.delivery_mode, packet.message_class) == (300, "express", 0)
        assert (notification.authentication_level, packet.hash_algorithm) == (level, algorithm)
        assert (packet.message_size, packet.privacy_level, packet.transaction) == (len(notification.body), 0, None)
        assert packet.source_queue_manager == sender.queue_manager


@row("CNC-08")
def test_version_1_names_the_queue_manager() -> None:
    for change in CHANGES:
        (notification,) = SERVICE.notifications([change])
        security = on_the_wire(notification).security
        assert security is not None
        assert (security.sender_id_type, security.security_id) == ("queue_manager", LEDGER.bytes_le)
    assert [on_the_wire(each).security for each in MANAGER.notifications(CHANGES)] == [None] * 4


@row("CNC-09")
def test_the_destination_is_the_notify_queue() -> None:
    for notification in SERVICE.notifications(CHANGES) + MANAGER.notifications(CHANGES):
        packet = on_the_wire(notification)
        assert str(packet.destination_queue) == str(notification.destination_queue) == f"PRIVATE={LEDGER}\\3"
        assert (packet.queue_manager_address, packet.notification) == (LEDGER, "plain")


def test_a_signer_is_asked_for_the_level_and_sees_the_message() -> None:
    (notification,) = SERVICE.notifications([DELETION])

    def sign(packet: mqqb.UserMessage, level: AuthenticationLevel) -> Signature:
        assert (bytes(packet.body), level) == (notification.body, AuthenticationLevel.SIG20)
        return Signature(signature=b"signed", sender_certificate=b"certificate", provider_info=b"")

    packet = mqqb.decode(mqqb.encode(notification.packet(sign=sign)), strict=True)
    assert isinstance(packet, mqqb.UserMessage)
    assert packet.security is not None
    assert (packet.security.signature, packet.security.sender_certificate) == (b"signed", b"certificate")
    assert (packet.security.sender_id_type, packet.security.security_id) == ("queue_manager", LEDGER.bytes_le)
    assert packet.security.security_flags & 0xF10 == 0  # AU and AS are no sender's to set
    (second,) = MANAGER.notifications([DELETION])
    assert second.packet().security is None
    signed = second.packet(sign=lambda *_: Signature(signature=b"x")).security
    assert signed is not None
    assert (signed.sender_id_type, signed.security_id) == ("none", None)


def test_through_a_capture() -> None:
    changes: list[Change] = [CREATION, update(quota=7), machine_update(queue_manager_quota=5), DELETION]
    (first, second, third, fourth, *events) = rows(
        captured(SERVICE.notifications(changes)), captured(MANAGER.notifications(changes), port=40001)
    )
    assert [row["operation"] for row in (first, second, third, fourth)] == ["create", "change", "change", "delete"]
    assert [row["object"] for row in (first, second, third, fourth)] == ["queue", "queue", "machine", "queue"]
    assert (first["path_name"], first["object_guid"]) == (r"ledger\orders", None)
    assert [item["int"] for item in second["properties"]] == [None, 7]
    assert {row["master_guid"] for row in (first, second, third, fourth)} == {str(MASTER)}
    assert [(row["operation"], row["object"], row["object_guid"]) for row in events] == [
        ("create", "queue", str(ORDERS.identifier)),
        ("change", "queue", str(ORDERS.identifier)),
        ("change", "machine", str(LEDGER)),
        ("delete", "queue", str(ORDERS.identifier)),
    ]


def without(element: Any, name: str) -> Any:
    return type(element).of({key: value for key, value in element.attributes().items() if key != name})


@pytest.mark.parametrize(
    ("change", "attribute", "reason"),
    [
        (QueueCreation(queue=without(ORDERS, "label"), queue_manager=LEDGER), "label", "was not read"),
        (QueueCreation(queue=without(ORDERS, "pathname"), queue_manager=LEDGER), "pathname", "was not read"),
        (QueueDeletion(queue=without(ORDERS, "identifier"), queue_manager=LEDGER), "identifier", "was not read"),
        (QueueUpdate(old=without(ORDERS, "quota"), new=ORDERS, queue_manager=LEDGER), "quota", "before and after"),
        (QueueUpdate(old=ORDERS, new=without(ORDERS, "quota"), queue_manager=LEDGER), "quota", "before and after"),
        (update(identifier=UUID(int=1)), "identifier", "is not the same object"),
        (update(quota=-1), "quota", "out of the range of VT_UI4"),
        (update(security=bytes(4 << 20)), "security", "4,194,308 bytes do not fit in a message"),
        (update(quota="much"), "quota", ""),
        (update(privacy_level="some"), "privacy_level", "'some' is not a valid"),
        (QueueCreation(queue=changed(ORDERS, label="a\0b"), queue_manager=LEDGER), "label", ""),
        (QueueCreation(queue=changed(ORDERS, pathname="no path"), queue_manager=LEDGER), "pathname", "QueuePathName"),
    ],
)
def test_errors_name_object_and_attribute(change: Change, attribute: str, reason: str) -> None:
    with pytest.raises(EncodeError) as caught:
        SERVICE.notifications([change])
    assert caught.value.field == attribute
    assert reason in caught.value.reason
    name = {"pathname": "no path" if "Path" in reason else str(ORDERS.identifier)}.get(attribute, r"ledger\orders")
    assert name in caught.value.reason


def test_a_server_that_cannot_be_named_is_refused() -> None:
    with pytest.raises(EncodeError, match="DomainController: queue ledger"):
        Sender(queue_manager=LEDGER, domain_controller="two words").notifications([DELETION])


def test_r11_private_queues_are_refused() -> None:
    private = changed(ORDERS, pathname=r"ledger\private$\orders")
    with pytest.raises(EncodeError, match="is a private queue, which is not notified") as caught:
        SERVICE.notifications([QueueCreation(queue=private, queue_manager=LEDGER)])
    assert caught.value.field == "pathname"


@pytest.mark.parametrize("sender", [SERVICE, MANAGER])
def test_an_object_is_no_change(sender: Sender) -> None:
    with pytest.raises(TypeError, match="a Queue is not a change"):
        sender.notifications([ORDERS])  # type: ignore[list-item]


@pytest.mark.parametrize("name", ["queue_manager", "master", "sender_identifier"])
def test_a_sender_has_guids(name: str) -> None:
    given: Any = {"queue_manager": LEDGER, "master": MASTER, name: str(LEDGER)}
    with pytest.raises(ValueError, match=f"{name} is '.*': not a uuid.UUID"):
        Sender(**given)


def test_a_sender_has_one_version() -> None:
    for arguments in ({}, {"master": MASTER, "domain_controller": "dc1"}):
        with pytest.raises(ValueError, match="either a master"):
            Sender(queue_manager=LEDGER, **arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not from 1 to 6"):
        Sender(queue_manager=LEDGER, master=MASTER, msmq_version=7)  # type: ignore[arg-type]


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "journaling": st.booleans(),
        "quota": st.integers(0, 0xFFFFFFFF),
        "base_priority": st.integers(-0x8000, 0x7FFF),
        "journal_quota": st.integers(0, 0xFFFFFFFF),
        "security": st.binary(max_size=40),
        "authentication": st.booleans(),
        "privacy_level": st.sampled_from(PrivacyLevel),
        "label": st.text(max_size=3),
    },
)


@given(VALUES)
def test_whatever_changes(values: dict[str, Any]) -> None:
    new = changed(ORDERS, **values)
    tellable = {name for name, value in values.items() if name != "label" and value != getattr(ORDERS, name)}
    found = SERVICE.notifications([QueueUpdate(old=ORDERS, new=new, queue_manager=LEDGER)])
    assert bool(found) == bool(tellable)
    for each in found:
        (item,) = received(each).updates
        assert len(item.properties) == 1 + len(tellable)
