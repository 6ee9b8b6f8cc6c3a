"""A sender and a receiver with stores, alone or over a network that loses and cuts."""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from msmqwire import mqqb
from msmqwire.session import (
    Acceptor,
    Incoming,
    Initiator,
    MessageFinished,
    OutgoingSequences,
    SessionState,
    Settings,
    Store,
)
from msmqwire.session.store import adopt
from tests.reference.mqqb_session_packets import ConnectionParameters, Packet, UserMessage
from tests.session.driven import OWN, PEER, WALL_TIME, Driven, response

NAME = "DIRECT=TCP:127.0.0.1\\private$\\orders"
ORDER_QUEUE = "TCP:192.0.2.7\\PRIVATE$\\order_queue$"


def make(number: int, name: str = NAME, **fields: Any) -> partial[mqqb.UserMessage]:
    return partial(mqqb.UserMessage, **{"destination_queue": name, "body": b"%d" % number, **fields})


def commit(store: Store, *numbers: int, final: bool = False, name: str = NAME, **fields: Any) -> list[int]:
    with store.outbox.transaction(final=final) as transaction:
        for number in numbers:
            transaction.add(make(number, name, **fields))
    return transaction.message_ids


class Sender:
    """A process: an initiator with a store."""

    def __init__(self, folder: Path, window: int = 64, wall: float = WALL_TIME) -> None:
        self.folder = folder
        self.wall = wall
        self.store = Store(folder, OWN, wall_clock=lambda: self.wall)
        self.sequences = OutgoingSequences(self.store.outbox, [row.queue for row in self.store.outbox.queues()])
        self.session = Initiator(
            OWN,
            settings=Settings(window_size=window),
            incoming=Incoming(self.store, self.store.message_ids),
            sequences=self.sequences,
            history=self.store.history(),
            accepts=lambda _: False,
            wall_clock=lambda: self.wall,
        )
        self.end = Driven(self.session)

    def commit(self, *numbers: int, **options: Any) -> list[int]:
        found = commit(self.store, *numbers, **options)
        for row in self.store.outbox.queues():
            self.sequences.add(row.queue, self.end.now)
        self.session.sequences_changed(self.end.now)
        return found

    def connect(self, window: int = 64) -> list[UserMessage]:
        """A new session; what is sent on it at once."""
        if self.session.state not in (SessionState.CLOSED, SessionState.WAITING_RECONNECT):
            self.end.events += self.session.connection_lost(self.end.now)
        self.session.connection_made(self.end.now)
        self.end.take()
        packets = self.end.give(response(), ConnectionParameters(window_size=window))
        return [each for each in packets if isinstance(each, UserMessage)]

    def give(self, *packets: Packet) -> list[UserMessage]:
        return [each for each in self.end.give(*packets) if isinstance(each, UserMessage)]

    def wait(self, seconds: float) -> list[UserMessage]:
        return [each for each in self.end.wait(seconds) if isinstance(each, UserMessage)]

    @property
    def finished(self) -> list[tuple[int, int]]:
        events = [each for each in self.end.events if isinstance(each, MessageFinished)]
        return [(each.message_id, each.message_class) for each in events]


def order_ack(of: UserMessage, number: int | None = None, source: UUID = PEER, message_id: int = 1) -> UserMessage:
    """An OrderAck of the receiver for the sequence of a message: [MS-MQQB] 2.2.4."""
    number = of.tx_sequence_number if number is None else number
    assert number is not None
    body = struct.pack("<IIII20x", *of.tx_sequence_id, number, number - 1)
    return UserMessage(
        source.bytes_le,
        message_id,
        body,
        False,
        queue=ORDER_QUEUE,
        label="QM Ordering Ack",
        message_class=0xFF,
        priority=0,
    )


def final_ack(of: UserMessage, message_class: int, message_id: int = 2) -> UserMessage:
    """A FinalAck for a message: [MS-MQQB] 2.2.5."""
    body = struct.pack("<IIII", *of.tx_sequence_id, of.tx_sequence_number, of.tx_previous) + OWN.bytes_le
    body += struct.pack("<I", of.message_id)
    return UserMessage(
        PEER.bytes_le,
        message_id,
        body,
        True,
        queue=ORDER_QUEUE,
        label="QM Ordering Ack",
        message_class=message_class,
        priority=0,
    )


class Receiver:
    """A process: acceptors with a store, whose inbox is read by hand."""

    def __init__(self, folder: Path, wall: float = WALL_TIME) -> None:
        self.folder = folder
        self.wall = wall
        self.store = Store(folder, PEER, wall_clock=lambda: self.wall)
        self.incoming = Incoming(self.store, self.store.message_ids)
        self.session: Acceptor | None = None

    def connect(self, now: float) -> None:
        self.session = Acceptor(PEER, incoming=self.incoming, address="127.0.0.1", wall_clock=lambda: self.wall)
        self.session.connection_made(now)

    @property
    def bodies(self) -> list[bytes]:
        return [bytes(each.received.message.body or b"") for each in self.store.inbox()]


def copied(folder: Path, number: int) -> Path:
    """The folder of a process that was killed, with its files as they are on disk."""
    target = folder.with_name(f"{folder.name.partition('.')[0]}.{number}")
    shutil.copytree(folder, target)
    adopt(target, restored=False)
    return target


class Ends:
    """Both ends, the bytes between them, and the time of their sessions.

    Parameters
    ----------
    folder : Path
    chance : random.Random
    windows : sequence of int
        The sender has one of these.
    """

    def __init__(self, folder: Path, chance: random.Random, windows: Sequence[int] = (64,)) -> None:
        self.chance = chance
        self.windows = windows
        self.sender = Sender(folder / "s", window=chance.choice(windows))
        self.receiver = Receiver(folder / "r")
        self.now = 0.0
        self.kills = self.committed = 0
        self.connected = False
        self._to_receiver, self._to_sender = bytearray(), bytearray()

    def commit(self, count: int, **fields: Any) -> None:
        """Commit messages with the next numbers as bodies."""
        self.sender.end.now = self.now
        self.sender.commit(*range(self.committed + 1, self.committed + count + 1), **fields)
        self.committed += count

    def cut(self) -> None:
        if self.connected:
            self.sender.end.events += self.sender.session.connection_lost(self.now)
            if self.receiver.session is not None:
                self.receiver.session.connection_lost(self.now)
        self._to_receiver.clear()
        self._to_sender.clear()
        self.connected = False

    def connect(self) -> None:
        self.sender.session.connection_made(self.now)
        self.receiver.connect(self.now)
        self.connected = True

    def connect_again(self) -> bool:
        """Connect if there is no session."""
        receiver = self.receiver.session
        if self.connected and receiver and not self.sender.session.is_disconnected and not receiver.is_disconnected:
            return False
        self.cut()
        self.connect()
        return True

    def move(self, *, everything: bool) -> None:
        """Give both what is on its way to them, or a part of it."""
        receiver, sender = self.receiver.session, self.sender.session
        assert receiver is not None
        for data, take, other in ((self._to_receiver, receiver, sender), (self._to_sender, sender, receiver)):
            data += other.data_to_send()
            count = len(data) if everything else self.chance.randrange(len(data) + 1)
            events = take.receive_data(bytes(data[:count]), self.now)
            if take is sender:
                self.sender.end.events += events
            take.messages_stored()
            del data[:count]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.connected:
            assert self.receiver.session is not None
            self.sender.end.events += self.sender.session.handle_deadline(self.now)
            self.receiver.session.handle_deadline(self.now)

    def kill_sender(self) -> None:
        self.cut()
        self.kills += 1
        self.sender = Sender(
            copied(self.sender.folder, self.kills), window=self.chance.choice(self.windows), wall=self.sender.wall
        )

    def kill_receiver(self) -> None:
        self.cut()
        self.kills += 1
        self.receiver = Receiver(copied(self.receiver.folder, self.kills), wall=self.receiver.wall)

    def settle(self) -> None:
        """All goes well until nothing is left to acknowledge."""
        for _ in range(400):
            if self.sender.store.outbox.counts() == (0, 0):
                break
            self.connect_again()
            self.move(everything=True)
            self.wait(0.6)
        assert self.sender.store.outbox.counts() == (0, 0)

    def close(self) -> None:
        self.sender.store.close()
        self.receiver.store.close()
