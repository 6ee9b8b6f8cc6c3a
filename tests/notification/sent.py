"""Queues, their senders, and captures of what these send."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from msmqwire import mqcn, mqqb
from msmqwire.capture import read_table
from msmqwire.directory import Directory, PrivacyLevel, Queue, QueueManager, Scope
from msmqwire.notification.envelope import NOTIFY_QUEUE
from msmqwire.notification.replay import COLUMNS, Replay, replay
from msmqwire.notification.sender import Notification, Sender
from tests.capture.build import START, pcap_header, pcap_record, segment

#: Nanoseconds between the frames of a capture.
STEP = 1_000_001

LEDGER, BRANCH = UUID(int=0x1ED6E2), UUID(int=0xB2A2C4)
MASTER, SOURCE = UUID(int=0x3A57E2), UUID(int=0x50C2)
SERVICE = Sender(queue_manager=SOURCE, master=MASTER)
MANAGER = Sender(queue_manager=SOURCE, domain_controller="dc1.example")

ORDERS = Queue(
    identifier=UUID(int=0x02DE25),
    pathname=r"ledger\orders",
    label="Zürich 𝄞",
    create_time=1_709_539_200,
    modify_time=1_709_539_201,
    type=UUID(int=7),
    journaling=True,
    quota=4096,
    journal_quota=2048,
    authentication=True,
    privacy_level=PrivacyLevel.BODY,
    transactional=True,
    security=b"\1\0\4\x80",
    base_priority=-3,
    scope=Scope.SITE,
)
MACHINE = QueueManager(identifier=LEDGER, computer_name="ledger", foreign_system=True, security=b"\1")


#: What a sender claims to be.
FROM_QUEUE_MANAGER = mqqb.SecurityHeader(security_flags=0x82, security_id=LEDGER.bytes_le)
FROM_USER = mqqb.SecurityHeader(security_flags=0x81, security_id=b"\1\1\0\0\0\0\0\5\x12\0\0\0")


def changed(element: Any, **values: Any) -> Any:
    """The same object with other values."""
    return type(element).of({**element.attributes(), **values})


def captured(notifications: Iterable[Notification], **where: Any) -> bytes:
    """A capture of one stream that carries these to one machine; where, as ``captured_packets`` has it."""
    return captured_packets([mqqb.encode(each.packet()) for each in notifications], **where)


def captured_packets(
    packets: Iterable[bytes], machine: str = "10.0.0.2", port: int = 40000, start: int = START
) -> bytes:
    """A capture of one stream to one machine, a packet in each frame behind that of the handshake."""
    frames, sequence = [segment(b"", 99, flags=2, source=port, dst=machine)], 100
    for packet in packets:
        assert len(packet) < 60_000
        frames.append(segment(packet, sequence, source=port, dst=machine))
        sequence += len(packet)
    records = (pcap_record(frame, nano=True, time=start + number * STEP) for number, frame in enumerate(frames))
    return pcap_header(nano=True) + b"".join(records)


def packet_of(body: bytes, security: mqqb.SecurityHeader | None = FROM_QUEUE_MANAGER) -> bytes:
    """A packet to the notify queue with a body that no sender would make."""
    queue = f"PRIVATE={LEDGER}\\{NOTIFY_QUEUE}"
    return mqqb.encode(mqqb.UserMessage(destination_queue=queue, body=body, security=security))


def rows(*captures: bytes) -> list[dict[str, Any]]:
    """The rows of the notifications table, all of them decoded strictly."""
    files: Any = [io.BytesIO(data) for data in captures]
    found = [row for batch in read_table(files, "notifications", strict=True, guid="text") for row in batch.to_pylist()]
    assert all(row["fault"] is None and row["violations"] == [] for row in found)
    return found


def replayed(
    *captures: bytes, at: int | None = None, directory: Directory | None = None, strict: bool = True
) -> Replay:
    """What a replay makes of captures."""
    files: Any = [io.BytesIO(data) for data in captures]
    return replay(read_table(files, "notifications", columns=COLUMNS, strict=strict), at=at, directory=directory)


def received(notification: Notification) -> mqcn.ChangeNotificationMessage:
    """What the receiver of a packet reads, who decodes strictly."""
    packet = mqqb.decode(mqqb.encode(notification.packet()), strict=True, transport="tcp")
    assert isinstance(packet, mqqb.UserMessage)
    assert (packet.notification, packet.violations) == ("plain", ())
    assert bytes(packet.body) == notification.body
    message = mqcn.decode(packet.body, strict=True)
    assert (message, message.violations) == (notification.message, ())
    return message
