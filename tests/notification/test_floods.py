"""Floods of notifications: repeated, out of order and forged ones among those that count, up to a million of them."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from msmqwire import mqcn
from msmqwire.notification.audit import Disregarded, Ignored, Record, Rule
from msmqwire.notification.envelope import Envelope
from msmqwire.notification.processor import NotificationProcessor
from tests.notification import processing as p

DISREGARDED = {Rule.SENDER_TYPE, Rule.NOT_AUTHENTICATED, Rule.MALFORMED}
QUEUES = 1000
#: Messages that are decoded and applied together.
BATCH = 50_000
Q_QUOTA, QM_QUOTA = 105, 214


@dataclass(frozen=True)
class Sent:
    """A message, and the rule by which nothing or nothing more of it is applied."""

    body: bytes
    envelope: Envelope
    quota: tuple[int, int] | None = None
    """The queue that it gives another quota, and which."""
    rule: Rule | None = None


def kinds(rng: random.Random) -> list[Sent]:
    """Two genuine changes of each queue, and every way to forge or spoil some of them."""
    changes = [(number, rng.getrandbits(31)) for number in range(1, QUEUES + 1) for _ in range(2)]
    bodies = [p.version_1(p.change(UUID(int=number), (Q_QUOTA, quota))) for number, quota in changes]
    sent = [Sent(body, p.SIGNED, change) for body, change in zip(bodies, changes, strict=True)]
    for body in rng.sample(bodies, 100):
        sent += [
            Sent(body, p.FROM_USER, rule=Rule.SENDER_TYPE),
            Sent(body, Envelope(packet="signed"), rule=Rule.SENDER_TYPE),
            Sent(body, p.UNSIGNED, rule=Rule.NOT_AUTHENTICATED),
            Sent(body[:-3], p.SIGNED, rule=Rule.MALFORMED),
            Sent(
                p.version_1(p.machine(UUID(int=rng.getrandbits(64)), (QM_QUOTA, 1))), p.SIGNED, rule=Rule.OTHER_MACHINE
            ),
            Sent(p.version_1(p.delete(UUID(int=rng.getrandbits(64) + QUEUES))), p.SIGNED, rule=Rule.NOT_FOUND),
        ]
    return sent


def flood(count: int) -> Iterator[list[Sent]]:
    """So many messages in batches: each of the kinds again and again, in any order."""
    rng = random.Random(count)
    pool = kinds(rng)
    for start in range(0, count, BATCH):
        yield rng.choices(pool, k=min(BATCH, count - start))


def machine() -> NotificationProcessor:
    return p.processor([p.queue(UUID(int=number), f"q{number}", quota=0) for number in range(1, QUEUES + 1)])


def quotas(processor: NotificationProcessor) -> dict[int, int]:
    return {queue.identifier.int: queue.quota for queue in processor.queues}


def one_by_one(processor: NotificationProcessor, sent: list[Sent]) -> Iterable[Record]:
    return [record for each in sent for record in processor.process(each.body, each.envelope)]


def at_once(processor: NotificationProcessor, sent: list[Sent]) -> Iterable[Record]:
    batch = mqcn.decode_batch([each.body for each in sent], strict=True)
    audit = processor.process_batch(batch, [each.envelope for each in sent])
    assert audit.disregarded.tolist() == [number for number, each in enumerate(sent) if each.rule in DISREGARDED]
    return audit


def rules(records: Iterable[Record]) -> list[Rule]:
    return [record.rule for record in records if isinstance(record, Ignored | Disregarded)]


@pytest.mark.parametrize(
    ("count", "way"),
    [(100, one_by_one), (100, at_once), (10_000, one_by_one), (10_000, at_once), (1_000_000, at_once)],
)
def test_the_last_genuine_message_to_each_queue_counts(count: int, way: Any) -> None:
    processor, expected = machine(), dict.fromkeys(range(1, QUEUES + 1), 0)
    for sent in flood(count):
        expected |= [each.quota for each in sent if each.quota]
        records = way(processor, sent)
        # Making the records of a million takes longer than all else
        assert count > 10_000 or rules(records) == [each.rule for each in sent if each.rule]
    assert processor.processed == count
    assert quotas(processor) == expected
    assert processor.queue_manager == p.HERE


@pytest.mark.parametrize("way", [one_by_one, at_once])
def test_what_a_flood_takes_is_given_back(way: Any) -> None:
    processor, held = machine(), []
    (sent,) = flood(10_000)
    batches = [sent[at : at + 500] for at in range(0, len(sent), 500)]
    tracemalloc.start()
    for batch in batches:
        way(processor, batch)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    # A value that changes may have changed its size, and nothing else is kept
    assert held[-1] - held[1] < 20_000
