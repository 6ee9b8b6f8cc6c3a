"""Classes of packets take what people have: GUIDs as text, names of numbers, mappings, and texts of bodies."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.errors import EncodeError
from msmqwire.properties import PROPID_Q_QMID, PROPID_Q_QUOTA

ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))


def test_guids_are_given_as_text() -> None:
    texts: Any = {"enterprise_id": str(ONE), "request_id": str(TWO).upper(), "site_id": str(THREE)}
    assert mqsd.TopologyClientRequest(**texts) == mqsd.TopologyClientRequest(
        enterprise_id=ONE, request_id=TWO, site_id=THREE
    )
    assert mqqb.UserMessage(source_queue_manager=str(ONE)).source_queue_manager == ONE
    assert mqqb.Ping(cookie=1, queue_manager=str(ONE)).queue_manager == ONE
    body = mqcn.ChangeNotificationMessage(2, body=mqcn.NotificationBody(2, str(ONE), "dc1")).body  # type: ignore[arg-type]
    assert body is not None
    assert body.object_guid == ONE


def test_servers_are_given_by_name_or_fields() -> None:
    servers = [mqsd.DirectoryServiceServer("a"), mqsd.DirectoryServiceServer("b", ip=False, ipx=True)]
    reply = mqsd.TopologyServerReply(
        correlation_id=ONE,
        connected_networks=[str(TWO)],
        responding_site_id=str(THREE),
        servers=["a", {"name": "b", "ip": False, "ipx": True}],
    )
    assert reply == mqsd.TopologyServerReply(
        correlation_id=ONE, connected_networks=[TWO], responding_site_id=THREE, servers=servers
    )


def test_properties_are_given_by_name() -> None:
    update = mqcn.NotificationUpdate(
        command="change",
        guid_identifier=str(ONE),
        guid_master_id=str(TWO),
        properties={"PROPID_Q_QMID": str(THREE), PROPID_Q_QUOTA: 10},
    )
    assert update.properties == ((PROPID_Q_QMID, THREE), (PROPID_Q_QUOTA, 10))
    assert update == mqcn.NotificationUpdate(
        command="change",
        guid_identifier=ONE,
        guid_master_id=TWO,
        properties=[("PROPID_Q_QMID", THREE), (PROPID_Q_QUOTA, 10)],
    )


@pytest.mark.parametrize(
    ("body_type", "number", "encoding"),
    [(None, 31, "utf-16-le"), ("VT_LPWSTR", 31, "utf-16-le"), (8, 8, "utf-16-le"), ("VT_EMPTY", 0, "utf-8")],
)
def test_a_body_is_given_as_text(body_type: Any, number: int, encoding: str) -> None:
    message = mqqb.decode(mqqb.encode(mqqb.UserMessage(body_text="Größe", body_type=body_type)))
    assert isinstance(message, mqqb.UserMessage)
    assert bytes(message.body) == "Größe".encode(encoding)
    assert (message.body_type, message.body_text) == (number, "Größe")
    assert message.replace(body_text="other").body_text == "other"
    assert message.replace(body_text="other").body_type == number or not number


def test_numbers_are_given_by_name_and_headers_by_their_fields() -> None:
    message = mqqb.UserMessage(
        message_class="ack_receive", transaction={"tx_sequence_id": 1, "tx_sequence_number": 2, "first_message": True}
    )
    assert message.message_class == 0x4000
    assert message.transaction == mqqb.TransactionHeader(tx_sequence_id=1, tx_sequence_number=2, first_message=True)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (
        lambda: mqqb.Ping(cookie=1, queue_manager="{1}"),
        EncodeError,
        r"queue_manager: '\{1\}' must be a uuid.UUID",
    ),
    (lambda: mqqb.Ping(cookie=1, queue_manager=5), EncodeError, "queue_manager: 5 must be a uuid.UUID or text"),  # type: ignore[arg-type]
    (lambda: mqqb.UserMessage(lable="a"), TypeError, "no 'lable'; did you mean label"),  # type: ignore[call-arg]
    (lambda: mqqb.UserMessage(body_type="VT_TEXT"), EncodeError, "body_type: 'VT_TEXT' is not the name"),
    (lambda: mqqb.UserMessage(body=b"a", body_text="a"), EncodeError, "body_text: give body or body_text, not both"),
    (lambda: mqqb.UserMessage(body_text=5), EncodeError, "body_text: must be text"),  # type: ignore[arg-type]
    (
        lambda: mqqb.UserMessage(body_text="a\ud800", body_type=0),
        EncodeError,
        "body_text: a body of body_type 0",
    ),
    (lambda: mqqb.UserMessage(body_text="1234", body_type=3), EncodeError, "body_text: a body of body_type 3 cannot"),
    (lambda: mqqb.UserMessage(security={"colour": 1}), TypeError, "SecurityHeader has no 'colour'"),
    (lambda: mqqb.UserMessage(transaction={}), TypeError, "TransactionHeader needs tx_sequence_id, tx_sequence_number"),
    (lambda: mqqb.UserMessage(soap="x"), EncodeError, "soap: must be a SoapHeader or a mapping"),  # type: ignore[arg-type]
    (
        lambda: mqcn.NotificationUpdate(
            command="delete", guid_identifier=ONE, guid_master_id=TWO, properties={"PROPID_Q_COLOUR": 1}
        ),
        EncodeError,
        r"PropertyId\[0\]: 'PROPID_Q_COLOUR' is not the name of a PROPID",
    ),
    (
        lambda: mqsd.TopologyServerReply(
            correlation_id=ONE, connected_networks=[TWO], responding_site_id=THREE, servers=[{"ip": True}]
        ),
        EncodeError,
        "is not a DirectoryServiceServer, its fields or its name",
    ),
]


@pytest.mark.parametrize(("build", "error", "message"), REFUSED)
def test_what_is_refused_names_its_field_and_what_would_be_taken(
    build: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()
