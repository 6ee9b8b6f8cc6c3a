"""Floods of notifications: repeated, out of order and forged ones among those that count, up to a million of them.

Most floods are of updates. The mixed ones are of all that can be told, and what they leave is what the oracle has.
"""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any
from uuid import UUID

import pytest

from msmqwire.directory import Directory, MemoryDirectory, Queue, QueueManager
from msmqwire.notification.audit import Disregarded, Ignored, Record
from msmqwire.notification.envelope import Envelope
from msmqwire.notification.judgement import Rule
from msmqwire.notification.processor import NotificationProcessor, Profile
from msmqwire.notification.schedule import NotificationServer
from tests.notification import modelled as m
from tests.notification import processing as p
from tests.reference.processor import ReferenceProcessor

QUEUES = 1000
#: Messages made at a time.
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


def processed(processor: NotificationProcessor, sent: list[Sent]) -> list[Record]:
    return [record for each in sent for record in processor.process(each.body, each.envelope)]


def rules(records: Iterable[Record]) -> list[Rule]:
    return [record.rule for record in records if isinstance(record, Ignored | Disregarded)]


@pytest.mark.parametrize("count", [100, 10_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_the_last_genuine_message_to_each_queue_counts(count: int) -> None:
    processor, expected = machine(), dict.fromkeys(range(1, QUEUES + 1), 0)
    for sent in flood(count):
        expected |= [each.quota for each in sent if each.quota]
        assert rules(processed(processor, sent)) == [each.rule for each in sent if each.rule]
    assert processor.processed == count
    assert quotas(processor) == expected
    assert processor.queue_manager == p.HERE


@pytest.mark.long
def test_what_a_flood_takes_is_given_back() -> None:
    (sent,) = flood(2_000)
    batches = [sent[at : at + 250] for at in range(0, len(sent), 250)]
    tracemalloc.start()
    processor, held = machine(), []
    processed(processor, sent)
    for batch in batches:
        processed(processor, batch)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert held[-1] - held[0] < 10_000


#: Of a mixed flood: the queues that there are first, and those that there may be.
FEW, SOME = 40, 80


def path(number: int) -> str:
    return f"here\\q{number}"


def all_kinds(rng: random.Random) -> list[tuple[Any, Envelope]]:
    """Messages as ``wire_and_model`` takes them: of every kind, and of some queues that there are not."""

    def update() -> Any:
        number, quota = rng.randint(1, SOME), rng.randint(0, 3)
        guid = UUID(int=number)
        values = [(Q_QUOTA, quota), (1101, bytes(quota))]
        return rng.choice(
            [
                *[("change", guid, None, [(115, p.MACHINE), *values])] * 4,
                ("change", None, path(number).upper(), [(115, p.MACHINE), *values]),
                *[("create", None, path(number), [(101, guid), (108, "told"), *values])] * 2,
                # To the path of another queue
                ("create", None, path(number + 1), [(101, guid), *values]),
                ("create", None, f"there\\q{number}", [(101, guid), *values]),
                ("delete", guid, None, [(1403, 1), (1404, 1)]),
                ("change", p.MACHINE, None, [(202, p.MACHINE), (QM_QUOTA, quota)]),
                ("create", p.MACHINE, None, [(202, p.MACHINE), (QM_QUOTA, quota)]),
            ]
        )

    one: list[Any] = [[update()] for _ in range(400)]
    several: list[Any] = [[update() for _ in range(5)] for _ in range(50)]
    events: list[Any] = [(rng.randint(1, 3), UUID(int=rng.randint(1, SOME))) for _ in range(100)]
    spoilt: list[Any] = [(b"\3\1", "version"), (b"\1\1\1", "malformed")]
    sent = [(each, p.SIGNED) for each in [*one, *several, *events, *[(4, p.MACHINE)] * 5, *spoilt * 5]]
    return sent + [(each, p.UNSIGNED) for each in rng.sample(one, 20)]


def mixed_directory() -> Directory:
    """Has two queues of three, some of them on another computer or at the path of another queue."""

    def held(number: int) -> Queue:
        where = f"there\\q{number}" if number % 10 == 1 else path(number + 1 if number % 10 == 2 else number)
        return Queue(identifier=UUID(int=number), pathname=where, quota=number, label="read")

    machine = QueueManager.of({**p.HERE.attributes(), "journal_quota": 77})
    return MemoryDirectory([*(held(number) for number in range(1, SOME + 1) if number % 3), machine])


def mixed_machine(profile: Profile) -> tuple[NotificationProcessor, ReferenceProcessor]:
    """A processor and its oracle."""
    queues, directory = [p.queue(UUID(int=number), f"q{number}") for number in range(1, FEW + 1)], mixed_directory()
    return p.processor(queues, directory, profile=profile), p.reference(queues, m.reads_of(directory))


def size_of(root: object) -> int:
    """The bytes of all objects that an object refers to, directly or not; whatever else the process holds."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in seen and not isinstance(each, (type, ModuleType, FunctionType, Directory)):
            seen[id(each)] = each
            waiting += gc.get_referents(each)
    return sum(map(sys.getsizeof, seen.values()))


@pytest.mark.parametrize("profile", [Profile.LATER, pytest.param(Profile.NT_2000, marks=pytest.mark.long)])
def test_a_mixed_flood_takes_no_memory_that_it_does_not_give_back(profile: Profile) -> None:
    """Measured whenever all queues have been deleted; and while a window is open, whatever comes."""
    rng = random.Random(16)
    processor, oracle = mixed_machine(profile)
    server = NotificationServer(processor)
    pool = [m.wire_and_model(each, oracle, profile)[:2] for each in all_kinds(rng)]
    end = p.version_1(*(p.delete(UUID(int=number)) for number in range(1, SOME + 1)))
    now, held, most = 0.0, [], 0
    for _ in range(6):
        for count in (90, 1000):
            for number, (body, envelope) in enumerate(rng.choices(pool, k=count)):
                now += 0.1
                server.receive(bytearray(body), envelope, now=now)
                if number % 10 == 9:
                    most = max(most, size_of(server))
            server.tick(now := now + 1000)
        server.receive(end, p.SIGNED, now=now)
        server.tick(now := now + 1000)
        assert len(processor.queues) == 0
        held.append(size_of(server))
    assert held[-1] <= held[1]
    # A thousand messages take twice as much
    assert most < 120_000
