"""Traffic as conforming machines send it has no finding of medium or high severity, nor of another protocol."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire import mqqb, mqsd
from msmqwire.capture import read_tables
from msmqwire.discovery import Site, reply_to
from msmqwire.formatname import PrivateName
from msmqwire.insight.findings import CapturedRows, Detector
from msmqwire.notification.sender import (
    Change,
    QueueCreation,
    QueueDeletion,
    QueueManagerUpdate,
    QueueUpdate,
    Sender,
    Signature,
)
from tests.insight.captures import WRITER, datagram, write
from tests.notification.sent import MACHINE, ORDERS, changed
from tests.property.message_packets import user_messages

MACHINES = [(f"10.20.1.{number}", UUID(int=number << 64)) for number in range(10, 14)]
PAIRS = st.permutations(MACHINES).map(lambda each: each[:2])
NETWORK = "10.20.0.0/16"
BROADCAST = "10.20.255.255"
SITES = [UUID(int=number) for number in (7, 8)]
ENTERPRISE, NIL = UUID(int=6), UUID(int=0)
#: Each example is a capture of several conversations
EFFORT = settings(max_examples=min(40, settings().max_examples // 2))


@st.composite
def discovery(draw: st.DrawFn) -> list[bytes]:
    """A broadcast request and the reply of a server of one site or the other."""
    (client, _), (server, _) = draw(PAIRS)
    names = draw(st.lists(st.from_regex(r"\A[A-Z0-9-]{1,15}\Z"), min_size=1, max_size=3))
    site = Site(
        enterprise_id=ENTERPRISE,
        site_id=draw(st.sampled_from(SITES)),
        connected_networks=tuple(draw(st.lists(st.uuids(), min_size=1, max_size=8))),
        servers=tuple(mqsd.DirectoryServiceServer(name) for name in names),
    )
    request = mqsd.TopologyClientRequest(
        enterprise_id=ENTERPRISE, request_id=draw(st.uuids()), site_id=draw(st.sampled_from(SITES))
    )
    reply: Any = reply_to(request, site)
    asked = datagram(mqsd.encode(request), client, BROADCAST, 40000, 1801)
    return [asked, datagram(mqsd.encode(reply), server, client, 1801, 40000)]


@st.composite
def notifications(draw: st.DrawFn, own: UUID, other: UUID) -> mqqb.UserMessage:
    """A signed notification of either version."""
    version: dict[str, Any] = draw(
        st.sampled_from(
            [
                {"master": ENTERPRISE},
                {"master": ENTERPRISE, "sender_identifier": own},
                {"domain_controller": "dc1.example"},
            ]
        )
    )
    values = {"quota": draw(st.integers(0, 9)), "journaling": draw(st.booleans()), "label": "new"}
    machine = changed(MACHINE, identifier=other)
    events: list[Change] = [
        QueueCreation(queue=ORDERS, queue_manager=other),
        QueueUpdate(old=ORDERS, new=changed(ORDERS, **values), queue_manager=other),
        QueueDeletion(queue=ORDERS, queue_manager=other),
        QueueManagerUpdate(old=machine, new=changed(machine, queue_manager_quota=5)),
    ]
    changes = draw(st.lists(st.sampled_from(events), min_size=1, max_size=4))
    sent = draw(st.sampled_from(Sender(queue_manager=own, **version).notifications(changes)))
    return sent.packet(sent_time=1, message_id=1, sign=lambda *_: Signature(signature=b"signature"))


@st.composite
def acknowledgments(draw: st.DrawFn, own: UUID, other: UUID) -> mqqb.UserMessage:
    """A message to an administration queue, or the acknowledgment of a transactional message ([MS-MQQB] 2.2.4)."""
    if draw(st.booleans()):
        return mqqb.UserMessage(
            destination_queue=PrivateName(other, 5),
            source_queue_manager=own,
            message_class=draw(st.sampled_from([2, 0x4000, 0x8003, 0xC001])),
        )
    number = draw(st.integers(1, 0xFFFFFFFF))
    return mqqb.UserMessage(
        destination_queue="DIRECT=TCP:10.20.1.10\\PRIVATE$\\order_queue$",
        source_queue_manager=own,
        label="QM Ordering Ack",
        priority=0,
        message_class=0xFF,
        body_type=0,
        body=struct.pack("<Q2I20x", 1, number, number - 1),
    )


def packets(own: UUID, other: UUID) -> st.SearchStrategy[mqqb.UserMessage]:
    """What a queue manager sends: messages, transactional ones among them, acknowledgments, notifications."""
    messages = user_messages(own).filter(lambda message: message.notification is None)
    return messages | acknowledgments(own, other) | notifications(own, other)


@st.composite
def session(draw: st.DrawFn) -> list[bytes]:
    """A ping, and a connection on which a queue manager sends messages that the other one acknowledges."""
    (client, own), (server, other) = draw(PAIRS)
    port = draw(st.integers(49152, 65535))
    cookie, refused = draw(st.integers(0, 0xFFFFFFFF)), draw(st.booleans())
    ping = mqqb.Ping(cookie=cookie, queue_manager=own)
    answer = mqqb.Ping(cookie=cookie, queue_manager=other, refused=refused)
    frames = [
        datagram(mqqb.encode(ping), client, server, port, 3527),
        datagram(mqqb.encode(answer), server, client, 3527, port),
    ]
    talk = WRITER["Conversation"](client, port, server, 1801)
    about: dict[str, Any] = {"client_guid": own, "time_stamp": draw(st.integers(0, 1000))}
    for end, named in ((0, draw(st.sampled_from([other, NIL]))), (1, other)):  # GUID_NULL for a direct name
        talk.send(end, mqqb.encode(mqqb.EstablishConnection(server_guid=named, **about)))
    parameters = mqqb.ConnectionParameters(recoverable_ack_timeout=500, ack_timeout=20000, window_size=64)
    for end in (0, 1):
        talk.send(end, mqqb.encode(parameters))
    for number, message in enumerate(draw(st.lists(packets(own, other), max_size=4)), 1):
        data = mqqb.encode(message)
        talk.send(0, *(data[at : at + 1460] for at in range(0, len(data), 1460)))
        talk.send(1, mqqb.encode(mqqb.SessionAck(ack_sequence_number=number, window_size=64)))
    talk.close()
    return [*frames, *talk.frames]


def check_findings(frames: list[bytes], path: Path) -> None:
    detector = Detector((NETWORK,))
    for table, batch in CapturedRows(write(path, frames)):
        detector.add(table, batch)
    wrong = [each for each in detector.findings() if each.severity != "low" or each.rule == "other-protocol"]
    assert wrong == []


@EFFORT
@given(st.lists(discovery() | session(), max_size=6))
def test_conforming_traffic_has_no_findings(conversations: list[list[bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pcap"
        check_findings([frame for frames in conversations for frame in frames], path)
        with read_tables(path) as reader:
            for table, batch in reader:
                assert batch.column("fault").null_count == len(batch), table
                assert not any(batch.column("violations").to_pylist()), table


@EFFORT
@given(st.lists(discovery() | session(), min_size=1, max_size=3), st.data())
def test_a_part_of_conforming_traffic_has_no_findings(conversations: list[list[bytes]], data: st.DataObject) -> None:
    """A capture that begins in a connection, lost frames, or has one direction."""
    frames = [frame for frames in conversations for frame in frames]
    start = data.draw(st.integers(0, len(frames) - 1))
    part = {
        "end": frames[start:],
        "one direction": [frame for frame in frames[start:] if frame[26:34] == frames[start][26:34]],
        "some": [frame for frame in frames if data.draw(st.booleans())],
    }[data.draw(st.sampled_from(["end", "one direction", "some"]))]
    with tempfile.TemporaryDirectory() as folder:
        check_findings(part, Path(folder) / "x.pcap")
