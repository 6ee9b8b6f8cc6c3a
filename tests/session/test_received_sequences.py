"""Our receiver of sequences beside the reference: what it accepts, delivers, rejects and acknowledges, and when."""

from __future__ import annotations

import random
import struct
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqqb
from msmqwire.session import Settings, Store
from msmqwire.session.incoming import SequenceKey
from tests.effort import long_cases
from tests.reference.mqqb_session_packets import INFINITE, Packet, UserMessage
from tests.reference.transactional_receiver import FA, JN, JP, OrderAck, TransactionalReceiver
from tests.session.driven import PEER, WALL_TIME
from tests.session.test_exactly_once import Receiver

ORDERS, OTHER, PLAIN, MISSING = (f"TCP:127.0.0.1\\private$\\{name}" for name in ("orders", "other", "plain", "missing"))
SOURCES = PEER, UUID(int=9)
QUOTA = 2000


def is_named(*queues: str) -> Any:
    names = {f"DIRECT={queue}".upper() for queue in queues}
    return lambda message: str(message.destination_queue).upper() in names


def new_receiver(folder: Path) -> Receiver:
    accepts, transactional = is_named(ORDERS, OTHER, PLAIN), is_named(ORDERS, OTHER)
    # FinalAcks that are not acknowledged fill the window
    options = {"accepts": accepts, "transactional": transactional, "settings": Settings(window_size=1000)}
    return Receiver(folder, lambda _: None, quota=QUOTA, **options)


class Messages:
    """Senders whose messages mostly come in order."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._next: Counter[tuple[UUID, str]] = Counter()
        self._sequence: Counter[tuple[UUID, str]] = Counter()
        self._message_id = 0

    def make(self) -> UserMessage:
        chance = self._chance
        queue = chance.choice((ORDERS, ORDERS, ORDERS.upper(), OTHER, PLAIN, MISSING))
        key = chance.choice(SOURCES), queue.upper()
        if not chance.randrange(8):
            self._sequence[key] += 1
            self._next[key] = 0
        self._next[key] += 1
        number = self._next[key]
        previous, sequence = number - 1, 1 + self._sequence[key]
        disorder = chance.randrange(12)
        if disorder == 0:
            number = chance.randrange(1, number + 3)
            previous = chance.randrange(number)
        elif disorder == 1:
            previous = chance.randrange(number)
        elif disorder == 2:
            sequence = max(1, sequence - 1)
        elif disorder == 3:
            self._next[key] += 1  # a gap
        self._message_id += 1
        return UserMessage(
            key[0].bytes_le,
            self._message_id,
            bytes(chance.randrange(1, 300)),
            True,
            queue=queue,
            sent_time=WALL_TIME - chance.choice((0, 50, 200)),
            time_to_reach_queue=chance.choice((INFINITE, INFINITE, 100)),
            time_to_be_received=chance.choice((INFINITE, INFINITE, INFINITE, 0)),
            tx_sequence_number=number,
            tx_previous=previous,
            tx_sequence_id=(sequence % 3, sequence // 3 + 1),
            tx_flags=0xC | chance.choice((0, 0, FA)),
            journaling=chance.choice((0, JN, JP)),
        )


def order_acks(packets: list[Packet]) -> list[tuple[int, int]]:
    """TxSequenceID and TxSequenceNumber of the OrderAcks."""
    found = []
    for packet in packets:
        if isinstance(packet, UserMessage) and packet.message_class == 0xFF:
            ordinal, time_stamp, number, previous = struct.unpack_from("<IIII", packet.body)
            assert previous == number - 1
            assert (packet.priority, packet.recoverable, packet.session_header) == (0, False, None)
            found.append((time_stamp * 2**32 + ordinal, number))
    return found


def final_acks(store: Store) -> list[tuple[int, int]]:
    """Class and MessageID of all FinalAcks: none is acknowledged here."""
    found, last = [], 0
    while page := store.answers(PEER, last):
        last = page[-1][0]
        for _, packet in page:
            message = mqqb.decode(packet, strict=True, transport="tcp")
            assert isinstance(message, mqqb.UserMessage)
            assert message.acknowledged is not None
            found.append((message.message_class or 0, message.acknowledged.acknowledged_message_id or 0))
    return found


@pytest.mark.parametrize("seed", [*range(8), *long_cases(range(8, 60))])
def test_beside_the_reference(tmp_path: Path, seed: int) -> None:
    """S30 to S43 in random schedules: disorder, several sources and queues, expiry, quota, cuts, ends of processes."""
    chance = random.Random(seed)
    messages = Messages(chance)
    receiver = new_receiver(tmp_path)
    reference = TransactionalReceiver(WALL_TIME, (ORDERS, OTHER), (PLAIN,), QUOTA)
    sent, expected, now, rows = Counter[tuple[int, int]](), Counter[tuple[int, int]](), 0.0, 0
    opened = 0.0

    def expect(acks: list[OrderAck]) -> None:
        expected.update((each.id, each.n) for each in acks)

    for _ in range(80):
        # The sender acknowledges nothing, for which a session closes after 20 seconds
        event = chance.randrange(10) if now - opened < 10 else 9
        if event < 5:
            batch = [messages.make() for _ in range(chance.randrange(1, 5))]
            batch += batch[:1] * (not chance.randrange(4))
            sent.update(order_acks(receiver.give(*batch)))
            for each in batch:
                reference.receive(each, now)
        elif event < 7:
            receiver.deliver()
            reference.deliver()
        elif event < 9:
            now += chance.choice((0.25, 0.375, 0.5, 0.75, 1.25))
            sent.update(order_acks(receiver.end.wait(now - receiver.end.now)))
            expect([ack for _, ack in reference.advance(now)])
        else:
            ends = chance.randrange(2)
            if ends:
                receiver.store.close()
                receiver = new_receiver(tmp_path)
                reference.end()
                now = 0.0
            else:
                receiver.session.connection_lost(now)
                receiver.connect(now)
            opened = now
            sent.update(order_acks(receiver.first))
            receiver.first = []
            expect(reference.open(PEER.bytes_le, now))
        assert sent == expected, seed
        states = {
            SequenceKey(UUID(bytes_le=key.source), f"DIRECT={key.queue}"): (each.id, each.n, each.rejects, each.gap)
            for key, each in reference.states.items()
        }
        found = {
            key: (each.sequence_id, each.number, each.rejects, each.gap) for key, each in receiver.store.sequences()
        }
        assert found == states
        assert final_acks(receiver.store) == reference.final
        waiting = [each.received.message.message_id for each in receiver.store.inbox()]
        assert waiting == [each.message_id for each in reference.inbox]
        rows = sum(len(each.read_bytes().splitlines()) for each in (tmp_path / "rows").glob("*.jsonl"))
        assert rows == len(reference.delivered)
    receiver.store.close()
    assert expected
    assert rows
    assert len({kind for kind, _ in reference.final}) > 3
