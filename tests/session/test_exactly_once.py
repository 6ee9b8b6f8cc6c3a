"""A receiver that ends at every point, with its files as they are on disk then: each message once, and in order."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.cli.message_files import MessageOutput
from msmqwire.errors import StoreError
from msmqwire.net.inbox import Inbox
from msmqwire.session import Acceptor, Incoming, Store
from msmqwire.session.store import adopt
from tests.effort import long_cases
from tests.reference.mqqb_session_packets import ConnectionParameters, Packet, UserMessage
from tests.reference.transactional_sender import TransactionalSender
from tests.session.driven import OWN, PEER, WALL_TIME, Driven, ack, request
from tests.session.kills import Killed, Points, points

__all__ = ["points"]  # a fixture

QUEUE = "TCP:127.0.0.1\\private$\\orders"
ADDRESS = "192.0.2.7"


class Receiver:
    """One process: a store, an output and the session of the peer."""

    def __init__(self, folder: Path, point: Callable[[str], None], **options: Any) -> None:
        self.point = point
        self.store = Store(folder / "store", OWN, wall_clock=lambda: WALL_TIME, quota=options.pop("quota", None))
        self.output = MessageOutput(str(folder / "rows"), None, self.store)
        self.options: dict[str, Any] = {
            "history": self.store.history(),
            "incoming": Incoming(self.store, self.store.message_ids),
        } | options
        self.connect()

    def connect(self, now: float = 0.0) -> None:
        self.session = Acceptor(OWN, address=ADDRESS, wall_clock=lambda: WALL_TIME, **self.options)
        self.session.connection_made(now)
        self.end = Driven(self.session)
        self.end.now = now
        self.first = self.end.give(request(), ConnectionParameters(window_size=self.session.settings.window_size))

    def give(self, *packets: Packet) -> list[Packet]:
        """A read of the session, and its answers."""
        data = b"".join(each.pack() for each in packets)
        self.end.events += self.session.receive_data(data, self.end.now)
        self.session.messages_stored()
        self.point("before the acknowledgment")
        found, self.first = [*self.first, *self.end.take()], []
        self.point("after the acknowledgment")
        return found

    def wait(self) -> list[Packet]:
        """Let OrderAcks come."""
        found, self.first = [*self.first, *self.end.wait(2)], []
        self.point("after the OrderAck")
        return found

    def deliver(self) -> None:
        """Write what is in the inbox."""

        async def run() -> None:
            inbox = Inbox(self.store, self.output.write, None, lambda: None, lambda *_: None)
            inbox.start()
            await inbox.close()
            assert inbox._task is not None
            inbox._task.result()

        asyncio.run(run())


def rows(folder: Path) -> list[dict[str, Any]]:
    path = folder / "rows" / "private.orders.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def bodies(folder: Path) -> list[bytes]:
    return [bytes.fromhex(row["body"]) for row in rows(folder)]


def lives(
    start: Callable[[Path, int | None], Points],
    tmp_path: Path,
    scenario: Callable[[Receiver, Points], None],
    **options: Any,
) -> Iterator[tuple[Path, str, Receiver]]:
    """For each point the folder of a process that ended there, and the next process on a copy of it."""
    for ends_at in itertools.count(1):
        folder = tmp_path / str(ends_at)
        folder.mkdir()
        point = start(folder, ends_at)
        try:
            receiver = Receiver(folder, point, **options)
            scenario(receiver, point)
        except Killed as killed:
            folder.rename(f"{folder}.ended")
            Path(f"{folder}.copy").rename(folder)
            start(folder, None)
            if (folder / "store" / "store.db").exists():
                adopt(folder / "store", restored=False)
            yield folder, str(killed), Receiver(folder, lambda _: None, **options)
        else:
            assert ends_at > 20, "there are points"
            receiver.store.close()
            return


def new_sender(count: int) -> TransactionalSender:
    sender = TransactionalSender(PEER, QUEUE)
    sender.add(*(b"%d" % number for number in range(1, count + 1)))
    return sender


def finish(sender: TransactionalSender, receiver: Receiver) -> None:
    """All that is not acknowledged comes again, and is acknowledged."""
    sender.take(receiver.give(*sender.packets()))
    sender.take(receiver.wait())
    receiver.deliver()
    assert receiver.store.waiting == 0
    receiver.store.close()


@pytest.mark.parametrize("at_once", [5, *long_cases([1, 2, 3])])
def test_a_receiver_that_ends_at_each_point(points: Any, tmp_path: Path, at_once: int) -> None:
    """F4, F5: before and after each commit, fsync, acknowledgment and OrderAck, for each message."""
    senders: list[TransactionalSender] = []

    def scenario(receiver: Receiver, point: Points) -> None:
        senders.append(sender := new_sender(5))
        packets = sender.packets()
        for first in range(0, 5, at_once):
            sender.take(receiver.give(*packets[first : first + at_once]))
            receiver.deliver()
            sender.take(receiver.wait())

    names = set()
    for folder, name, receiver in lives(points, tmp_path, scenario):
        names.add(name)
        sender = senders[-1] if senders else new_sender(5)
        finish(sender, receiver)
        assert bodies(folder) == [b"1", b"2", b"3", b"4", b"5"], name
        assert not sender.unacknowledged, name
        assert len({row["token"] for row in rows(folder)}) == 5
    assert names >= {
        *("before COMMIT", "after COMMIT", "before fsync", "after fsync"),
        *("before the acknowledgment", "after the acknowledgment", "after the OrderAck"),
    }


def test_a_receiver_of_recoverable_messages(points: Any, tmp_path: Path) -> None:
    """F20: by the history of MessageIDs, each message once."""
    packets = [UserMessage(PEER.bytes_le, number, b"%d" % number, True) for number in range(1, 5)]

    def scenario(receiver: Receiver, point: Points) -> None:
        receiver.give(*packets[:2])
        receiver.deliver()
        receiver.give(*packets[1:])
        receiver.deliver()

    for folder, name, receiver in lives(points, tmp_path, scenario):
        receiver.give(*packets)
        receiver.deliver()
        receiver.store.close()
        assert bodies(folder) == [b"1", b"2", b"3", b"4"], name


def test_rejections_and_final_acks(points: Any, tmp_path: Path) -> None:
    """F14, S40, S42, S43: each message has its FinalAck until the sender acknowledges it, under one MessageID."""
    senders: list[TransactionalSender] = []
    classes = {1: 0x4000, 2: 0x8000, 3: 0x4000}
    options = {"accepts": lambda message: message.message_id != 2}

    def scenario(receiver: Receiver, point: Points) -> None:
        senders.append(sender := new_sender(3))
        packets = sender.packets(journaling=0x300)
        for packet in packets:
            sender.take(receiver.give(packet))
            receiver.deliver()
            sender.take(receiver.wait())

    for folder, name, receiver in lives(points, tmp_path, scenario, **options):
        sender = senders[-1] if senders else new_sender(3)
        before = len(sender.final)
        sender.take(receiver.give(*sender.packets(journaling=0x300)))
        receiver.deliver()
        sender.take(receiver.wait())
        receiver.store.close()
        assert bodies(folder) == [b"1", b"3"], name
        assert {number: found for found, number in sender.final} == classes, name
        assert len(sender.final) - before == 3, "until they are acknowledged, they come on each session"


def test_final_acks_that_are_acknowledged(tmp_path: Path) -> None:
    receiver, sender = Receiver(tmp_path, lambda _: None), new_sender(2)
    receiver.give(*sender.packets(journaling=0x300))
    receiver.deliver()
    found = [each for each in receiver.wait() if isinstance(each, UserMessage) and each.recoverable]
    assert len(found) == 2
    assert receiver.store.unanswered == 2
    receiver.connect()  # a loss: the same packets again
    again = [each for each in receiver.wait() if isinstance(each, UserMessage) and each.recoverable]
    assert again == found
    receiver.give(ack(2, 1, 0b11, 0, 0))
    assert receiver.store.unanswered == 0
    receiver.connect()
    assert not [each for each in receiver.wait() if isinstance(each, UserMessage)]
    receiver.store.close()
    with Store(tmp_path / "store") as store:
        assert (store.unanswered, store.answers(PEER, 0)) == (0, [])


def test_messages_that_come_several_times_and_out_of_order(tmp_path: Path) -> None:
    """F10, F11: on two sessions at once, each twice or three times, swapped, with a gap that is filled."""
    for seed in range(5):
        folder, chance = tmp_path / str(seed), random.Random(seed)
        receiver, sender = Receiver(folder, lambda _: None), new_sender(12)
        older = receiver.end, receiver.session
        receiver.connect()
        newer = receiver.end, receiver.session
        packets = sender.packets() * 3
        chance.shuffle(packets)
        for packet in packets:
            receiver.end, receiver.session = chance.choice((older, newer))
            receiver.give(packet)
            if not chance.randrange(4):
                receiver.deliver()
        receiver.end, receiver.session = newer
        for _ in range(3):
            sender.take(receiver.give(*sender.packets()))
            sender.take(receiver.wait())
        receiver.deliver()
        receiver.store.close()
        assert bodies(folder) == [b"%d" % number for number in range(1, 13)]
        assert not sender.unacknowledged


def test_expired_messages_are_bridged(tmp_path: Path) -> None:
    """F12: first, middle and last."""
    for expired in ((1,), (3,), (5,), (1, 2, 4)):
        folder = tmp_path / "".join(map(str, expired))
        receiver, sender = Receiver(folder, lambda _: None), new_sender(5)
        for number in expired:
            sender.expire(number)
        finish(sender, receiver)
        assert bodies(folder) == [b"%d" % number for number in range(1, 6) if number not in expired]


def test_time_in_the_inbox(tmp_path: Path) -> None:
    """S41, S42: a message that expires in the inbox has a negative FinalAck, and no row."""
    receiver, sender = Receiver(tmp_path, lambda _: None), new_sender(2)
    first, second = sender.packets(journaling=0x300)
    first = UserMessage(**{**vars(first), "time_to_be_received": 5, "sent_time": WALL_TIME})
    receiver.give(first, second)
    receiver.store.wall_clock = lambda: WALL_TIME + 6
    receiver.deliver()
    sender.take(receiver.wait())
    receiver.store.close()
    assert bodies(tmp_path) == [b"2"]
    assert sorted(sender.final) == [(0x4000, 2), (0xC002, 1)]


def test_a_quota(tmp_path: Path) -> None:
    """F14: what follows a rejected message is accepted once there is room."""
    size = len(new_sender(1).packets(journaling=0x300)[0].pack())
    receiver, sender = Receiver(tmp_path, lambda _: None, quota=2 * size), new_sender(4)
    packets = sender.packets(journaling=0x300)
    for given in (packets[:3], packets[3:]):
        sender.take(receiver.give(*given))
        receiver.deliver()
        sender.take(receiver.wait())
    receiver.store.close()
    assert bodies(tmp_path) == [b"1", b"2", b"4"]
    assert sorted(sender.final) == [(0x4000, 1), (0x4000, 2), (0x4000, 4), (0x8003, 3)]


def test_a_full_disk(tmp_path: Path) -> None:
    """F15, S34: at each commit nothing is acknowledged; with space again all goes on."""
    receiver, sender = Receiver(tmp_path, lambda _: None), new_sender(4)
    database = receiver.store.database
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    database.execute(f"PRAGMA max_page_count = {pages}")
    sender.unacknowledged = {number: body * 9000 for number, body in sender.unacknowledged.items()}
    with pytest.raises(StoreError, match="full"):
        receiver.give(*sender.packets())
    receiver.session.messages_not_stored()
    receiver.session.connection_lost(0.0)
    assert receiver.store.waiting == 0
    database.execute("PRAGMA max_page_count = 1000000")
    receiver.connect()
    sender.take(receiver.give(*sender.packets()))
    # The rows are written, and cannot be counted
    fails = iter([True, False])
    remove = receiver.store.remove

    def failing(messages: Any, answers: Any = ()) -> None:
        if messages and next(fails, False):
            receiver.store._outputs.clear()
            raise StoreError("full")
        remove(messages, answers)

    receiver.store.remove = failing  # type: ignore[method-assign]
    receiver.deliver()
    assert receiver.store.waiting == 4
    receiver.deliver()
    receiver.store.close()
    assert bodies(tmp_path) == [b"%d" % number * 9000 for number in range(1, 5)]


def test_a_file_that_was_changed(tmp_path: Path) -> None:
    """Rows that are not those of the inbox are left, and the process does not go on."""
    receiver, sender = Receiver(tmp_path, lambda _: None), new_sender(2)
    receiver.give(*sender.packets())
    receiver.deliver()
    receiver.store.close()
    path = tmp_path / "rows" / "private.orders.jsonl"
    before = path.read_bytes() + b"{}\n"
    path.write_bytes(before)
    with pytest.raises(Exception, match="changed after its last message"):
        Receiver(tmp_path, lambda _: None)
    assert path.read_bytes() == before


def test_a_file_that_was_rotated(tmp_path: Path) -> None:
    """A shorter file, or none, is begun again and not filled up."""
    receiver, sender = Receiver(tmp_path, lambda _: None), new_sender(4)
    path = tmp_path / "rows" / "private.orders.jsonl"
    packets = sender.packets()
    receiver.give(*packets[:2])
    receiver.deliver()
    path.unlink()
    receiver.give(packets[2])
    receiver.deliver()
    assert bodies(tmp_path) == [b"3"]
    path.write_bytes(b"x")
    receiver.give(packets[3])
    receiver.deliver()
    receiver.store.close()
    before, row = path.read_bytes().split(b"\n")[:2]
    assert (before, json.loads(row)["body"]) == (b"x", b"4".hex())
    path.unlink()
    receiver = Receiver(tmp_path, lambda _: None)  # the next process
    sender.add(b"5")
    receiver.give(*sender.packets(first=5))
    receiver.deliver()
    receiver.store.close()
    assert bodies(tmp_path) == [b"5"]


@pytest.mark.parametrize("seed", [*range(4), *long_cases(range(4, 60))])
def test_torn_files(tmp_path: Path, seed: int) -> None:
    """F6: the log of the store cut at any byte, and rows that were not synchronised: nothing is lost or doubled.

    What was acknowledged before the last commit is whole; what the cut takes away was not acknowledged.
    """
    chance = random.Random(seed)
    receiver, sender = Receiver(tmp_path / "a", lambda _: None), new_sender(8)
    packets = sender.packets()
    for packet in packets[:4]:
        receiver.give(packet)
        receiver.deliver()
    sender.take(receiver.wait())
    log = tmp_path / "a" / "store" / "store.db-wal"
    synchronized = log.stat().st_size
    receiver.give(*packets[4:])  # not acknowledged: the cut is before that
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copied = tmp_path / "b" / "store" / "store.db-wal"
    data = bytearray(copied.read_bytes())
    del data[chance.randrange(synchronized, len(data) + 1) :]
    if chance.randrange(2) and len(data) > synchronized:
        data[chance.randrange(synchronized, len(data))] ^= 0xFF
    copied.write_bytes(data)
    receiver.store.close()
    adopt(tmp_path / "b" / "store", restored=False)
    finish(sender, Receiver(tmp_path / "b", lambda _: None))
    assert bodies(tmp_path / "b") == [b"%d" % number for number in range(1, 9)]
    assert not sender.unacknowledged
