"""Names where they are used: packets, tables of messages and columns of names say the same of a queue."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.formatname import (
    DirectName,
    DistributionListName,
    FormatName,
    PrivateName,
    PublicName,
    decode_elements,
    decode_private_id,
    encode_direct,
    encode_elements,
    parse,
    parse_batch,
)
from tests.formatname.answers import of_batch, row_of

ID = UUID("2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10")
HOST = UUID("00112233-4455-6677-8899-aabbccddeeff")
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
    assert mqqb.decode(packet).response_queue == name
    texts = mqqb.decode_batch([packet], columns=["response_queue"]).to_arrow().column(0)
    assert texts.to_pylist() == [str(name)]
    rows = parse_batch(texts, spx=True).to_arrow(guid="uuid").to_pylist()
    assert of_batch(rows) == [[row_of(name)]]
    assert parse(texts[0].as_py(), spx=True) == name


def test_a_private_destination() -> None:
    name = PrivateName(HOST, 3)
    packet = mqqb.encode(mqqb.UserMessage(destination_queue=name))
    queue_manager = UUID(bytes_le=packet[32:48])
    assert decode_private_id(packet, queue_manager, 64) == name


def test_a_direct_destination() -> None:
    name = DirectName("os", "a04bm02", "q")
    packet = mqqb.encode(mqqb.UserMessage(destination_queue=name))
    packed = encode_direct(name, 48)
    assert packet[64 : 64 + len(packed)] == packed


def test_the_two_writers_of_lists() -> None:
    """The packet codec and the functions of this room know the elements of an MQFAddressHeader each for itself."""
    lists = mqqb.MultiQueueFormatHeader(destination_queues=LISTED)
    packet = mqqb.encode(mqqb.UserMessage(destination_queue=QUEUES[0], multi_queue=lists))
    elements = encode_elements(LISTED)
    header = struct.pack("<IHHI", 12 + len(elements), 0x64, 0, len(LISTED)) + elements
    assert header in packet
    assert decode_elements(packet[packet.index(header) :], len(LISTED))[0] == LISTED
    texts = mqqb.decode_batch([packet], columns=["destination_queues"]).to_arrow().column(0)[0].as_py()
    assert texts == [str(name) for name in LISTED]
