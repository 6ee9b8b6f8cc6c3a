"""What packets of every protocol do as values: other values for some fields."""

from __future__ import annotations

import copy
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.columns import WirePacket
from msmqwire.errors import EncodeError
from tests.cli.support import run

REQUEST = mqsd.TopologyClientRequest(enterprise_id=UUID(int=1), request_id=UUID(int=2), site_id=UUID(int=3))
REPLY = mqsd.TopologyServerReply(
    correlation_id=UUID(int=2),
    connected_networks=[UUID(int=4)],
    responding_site_id=UUID(int=5),
    servers=[mqsd.DirectoryServiceServer("nt4pec")],
)
UPDATE = mqcn.NotificationUpdate(
    command="change",
    guid_identifier=UUID(int=1),
    guid_master_id=UUID(int=2),
    properties=[(115, UUID(int=3)), (105, 10)],
)
CHANGES = mqcn.ChangeNotificationMessage(1, [UPDATE])
MESSAGE = mqqb.UserMessage(
    destination_queue="DIRECT=OS:server\\private$\\orders",
    label="one",
    body=b"first",
    sent_time=datetime(2026, 3, 1, tzinfo=UTC),
    security=mqqb.SecurityHeader(sender_certificate=b"x509"),
)
ACK = mqqb.SessionAck(
    ack_sequence_number=1,
    recoverable_msg_ack_seq_number=0,
    recoverable_msg_ack_flags=0,
    user_msg_sequence_number=0,
    recoverable_msg_seq_number=0,
    window_size=64,
)

#: A packet of each class, and other values for some of its fields.
CHANGED: list[tuple[Any, dict[str, Any]]] = [
    (REQUEST, {"site_id": UUID(int=7)}),
    (REQUEST, {"ipx_networks": [1, 2]}),
    (REPLY, {"servers": (), "responding_site_id": None}),
    (UPDATE, {"guid_identifier": UUID(int=9), "properties": [(115, UUID(int=3)), (105, 11)]}),
    (CHANGES, {"updates": [UPDATE, UPDATE]}),
    (MESSAGE, {"label": "two", "priority": 5}),
    (MESSAGE, {"security": None}),
    (ACK, {"window_size": 32}),
]


each_packet = pytest.mark.parametrize(
    "packet", [REQUEST, REPLY, UPDATE, CHANGES, MESSAGE, ACK], ids=lambda each: type(each).__name__
)


def read_again(packet: Any) -> Any:
    """The packet from its bytes; an update from those of its message."""
    if isinstance(packet, mqcn.NotificationUpdate):
        (update,) = read_again(mqcn.ChangeNotificationMessage(1, [packet])).updates
        return update
    codec = mqsd if packet in (REQUEST, REPLY) or hasattr(packet, "reserved") else mqqb
    codec = mqcn if isinstance(packet, mqcn.ChangeNotificationMessage) else codec
    return codec.decode(codec.encode(packet))


@pytest.mark.parametrize(("packet", "changes"), CHANGED)
def test_a_packet_with_other_values_is_written_with_them(packet: Any, changes: dict[str, Any]) -> None:
    before = repr(packet)
    changed = packet.replace(**changes)
    found = read_again(changed)
    assert type(changed) is type(packet)
    assert found == changed != packet
    for name, value in changes.items():
        if value is None or isinstance(value, str | int | UUID):
            assert getattr(found, name) == value
        else:
            assert list(getattr(found, name)) == list(value)
    assert repr(packet) == before
    assert changed.replace(**{name: getattr(packet, name) for name in changes}) == packet


@each_packet
def test_the_copy_module_replaces_values_as_well(packet: Any) -> None:
    assert isinstance(packet, WirePacket)
    assert packet.__replace__() == packet == packet.replace()
    if sys.version_info >= (3, 13):
        assert copy.replace(packet) == packet


def test_values_that_follow_from_others_follow_from_the_new_ones() -> None:
    changed = MESSAGE.replace(body=b"much longer than before")
    assert changed.allocation_body_size == len(b"much longer than before") != MESSAGE.allocation_body_size
    assert changed.label == "one"
    assert changed.sent_time == MESSAGE.sent_time
    transaction = mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=1)
    assert MESSAGE.replace(transaction=transaction).delivery_mode == "recoverable"


def test_a_decoded_packet_takes_other_values() -> None:
    packet = mqsd.decode(mqsd.encode(REQUEST) + b"more")
    assert packet.replace(site_id=UUID(int=3)) == REQUEST  # without the bytes after its last field


@each_packet
def test_an_unknown_field_is_refused(packet: Any) -> None:
    with pytest.raises(TypeError, match="colour"):
        packet.replace(colour="red")


def test_what_no_sender_may_send_is_refused() -> None:
    with pytest.raises(EncodeError, match=r"(?i)priority"):
        MESSAGE.replace(priority=8)


@each_packet
def test_show_prints_the_byte_map_of_the_command_line(packet: Any, capsys: pytest.CaptureFixture[str]) -> None:
    whole = mqcn.ChangeNotificationMessage(1, [packet]) if isinstance(packet, mqcn.NotificationUpdate) else packet
    codec = next(room for room in (mqsd, mqcn, mqqb) if hasattr(room, type(whole).__name__))
    packet.show()
    printed = capsys.readouterr().out
    assert codec.encode(whole).hex() == "".join(line[8:55].replace(" ", "") for line in printed.splitlines()) or (
        " ..." in printed
    )
    _, output, _ = run("decode", "--hex", codec.encode(whole).hex(), "-T", "table")
    assert printed == output.partition("\n\n")[0] + "\n"


def test_show_of_a_ping(capsys: pytest.CaptureFixture[str]) -> None:
    mqqb.Ping(cookie=7, queue_manager=UUID(int=1)).show()
    assert [line.split()[-2:] for line in capsys.readouterr().out.splitlines()][2] == ["Ping.Cookie", "7"]


def test_a_property_has_the_name_of_its_propid() -> None:
    assert [each.name for each in UPDATE.properties] == ["PROPID_Q_QMID", "PROPID_Q_QUOTA"]
    assert mqcn.PropertyValue(1, None).name == "1"
