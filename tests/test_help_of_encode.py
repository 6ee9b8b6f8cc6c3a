"""What ``help()`` of each ``encode`` says about conforming receivers is so."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire import mqcn, mqqb, mqsd
from msmqwire.errors import DecodeError, EncodeError
from tests.columns.formats import MESSAGES


def help_of(function: object) -> str:
    return " ".join((function.__doc__ or "").split())


def test_reply_that_a_client_over_udp_discards() -> None:
    assert "Over UDP a conforming client discards a reply whose ConnectedNetworkMask is not 0" in help_of(mqsd.encode)
    reply = mqsd.TopologyServerReply(
        correlation_id=UUID(int=1), connected_networks=[UUID(int=2)], connected_network_mask=1
    )
    written = mqsd.encode(reply)
    assert mqsd.decode(written, transport="ipx", strict=True) == reply
    with pytest.raises(DecodeError, match="ConnectedNetworkMask"):
        mqsd.decode(written, transport="udp", strict=True)


def test_update_that_a_receiver_ignores_in_part() -> None:
    assert "``property_set``" in help_of(mqcn.encode)
    update = mqcn.NotificationUpdate(
        command="change",
        guid_identifier=UUID(int=1),
        guid_master_id=UUID(int=2),
        properties={"PROPID_QM_QUOTA": 1},
    )
    message = mqcn.ChangeNotificationMessage(1, updates=[update])
    with pytest.raises(EncodeError):
        mqcn.encode(message)
    again = mqcn.decode(mqcn.encode(message, enforce=False), strict=True)
    assert again.updates == message.updates
    assert "property_set" in again.updates[0].violations


def test_violation_that_is_written() -> None:
    """``tests/columns`` encodes packets with each violation; the others are refused."""
    assert "Of the violations it accepts ``unresolved_queue``" in help_of(mqqb.encode)
    assert MESSAGES.accepts == {"unresolved_queue"}
