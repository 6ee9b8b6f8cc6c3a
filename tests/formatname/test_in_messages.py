"""Names where they are used: packets, tables of messages and columns of names say the same of a queue."""

from __future__ import annotations

from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.errors import EncodeError
from msmqwire.formatname import (
    DirectName,
    DistributionListName,
    FormatName,
    MultipleElementName,
    PrivateName,
    PublicName,
    parse,
    parse_batch,
)
from msmqwire.formatname.model import sent_name
from tests.formatname.answers import of_batch, row_of

ID = UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10")
QUEUES: tuple[FormatName, ...] = (
    DirectName("os", "Server", "Orders", "private"),
    DirectName("spx", "12:a0", "order_queue$", "private"),
    DirectName("tcp", "10.0.0.1", "q", subqueue="late", suffix="journal"),
    PublicName(ID),
    PrivateName(ID, 0x1F),
    PrivateName(ID, 0),
    PrivateName(ID, 0xFFFFFFFF),
)
LISTED = (*QUEUES, DistributionListName(ID), DirectName("http", "//server/MSMQ", "q"))


@pytest.mark.parametrize("name", QUEUES, ids=str)
def test_the_table_of_messages_writes_a_name_as_it_writes_itself(name: FormatName) -> None:
    packet = mqqb.encode(mqqb.UserMessage(destination_queue=DirectName("os", "m", "q"), response_queue=name))
    found = mqqb.decode(packet)
    assert isinstance(found, mqqb.UserMessage)
    assert found.response_queue == name
    texts = mqqb.decode_batch([packet], columns=["response_queue"]).to_arrow().column(0)
    assert texts.to_pylist() == [str(name)]
    rows = parse_batch(texts, spx=True).to_arrow(guid="uuid").to_pylist()
    assert of_batch(rows) == [[row_of(name)]]
    assert parse(texts[0].as_py(), spx=True) == name


def test_lists() -> None:
    lists = mqqb.MultiQueueFormatHeader(destination_queues=LISTED)
    packet = mqqb.encode(mqqb.UserMessage(destination_queue=QUEUES[0], multi_queue=lists))
    texts = mqqb.decode_batch([packet], columns=["destination_queues"]).to_arrow().column(0)[0].as_py()
    assert texts == [str(name) for name in LISTED]


@pytest.mark.parametrize(
    "name", [PublicName(ID, "journal"), PrivateName(ID, 3, "journal"), DistributionListName(ID, "d")]
)
def test_a_name_with_a_part_that_packets_lack_is_refused(name: FormatName) -> None:
    lists = mqqb.MultiQueueFormatHeader(destination_queues=(name,))
    with pytest.raises(EncodeError):
        mqqb.encode(mqqb.UserMessage(destination_queue=QUEUES[0], multi_queue=lists))


@pytest.mark.parametrize("path", ["http://h/MSMQ/private$/q", "HTTP://h/msmq/PRIVATE$\\q", "os:m\\private$\\q"])
def test_a_direct_name_keeps_the_spelling_of_its_packet(path: str) -> None:
    found = sent_name(path)
    assert isinstance(found, DirectName)
    assert (found.path, str(found), found.queue, found.queue_type) == (path, f"DIRECT={path}", "q", "private")


def test_a_multiple_element_name_may_have_the_protocol_of_order_acknowledgments() -> None:
    assert str(MultipleElementName((QUEUES[0], QUEUES[1]))) == f"{QUEUES[0]},{QUEUES[1]}"
