"""Processing and replaying change notifications ([MS-MQCN] 3.2.5.1).

A slow result does not fail, because a shared machine would fail at random; a wrong one does.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from uuid import UUID

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.comparison import OURS
from benchmarks.ratios import Contender, measure
from benchmarks.report import Report, Target
from benchmarks.scale import Scale
from msmqwire import mqcn
from msmqwire.directory import MemoryDirectory, Queue, QueueManager
from msmqwire.notification.envelope import AuthenticationLevel, Envelope, SenderIdentifierType
from msmqwire.notification.processor import NotificationProcessor
from msmqwire.properties import PROPID_Q_QMID, by_name

pytestmark = pytest.mark.benchmark(timer=time.process_time, warmup=True)

#: Updates a second to decode and apply.
TARGET = Target(25_000)
QUEUES = 10_000
POOL = 20_000
ENVELOPE = Envelope(sender_identifier_type=SenderIdentifierType.QUEUE_MANAGER_IDENTIFIER)
HERE = QueueManager(identifier=UUID(int=1), computer_name="HERE")


def changes(rng: random.Random, guids: list[UUID]) -> list[mqcn.NotificationUpdate]:
    """Updates of one to seven attributes of queues."""
    attributes: dict[str, Callable[[], int | bytes]] = {
        "JOURNAL": lambda: rng.randint(0, 1),
        "QUOTA": lambda: rng.getrandbits(20),
        "BASEPRIORITY": lambda: rng.randint(-10, 10),
        "JOURNAL_QUOTA": lambda: rng.getrandbits(20),
        "AUTHENTICATE": lambda: rng.randint(0, 1),
        "PRIV_LEVEL": lambda: rng.randint(0, 2),
        "SECURITY": lambda: rng.randbytes(120),
    }
    values = {by_name(f"PROPID_Q_{name}").number: make for name, make in attributes.items()}
    return [
        mqcn.NotificationUpdate(
            command="change",
            guid_identifier=rng.choice(guids),
            guid_master_id=UUID(int=2),
            properties=[
                (PROPID_Q_QMID, HERE.identifier),
                *((propid, values[propid]()) for propid in rng.sample(sorted(values), rng.randint(1, 7))),
            ],
        )
        for _ in range(POOL)
    ]


def processor(queues: list[Queue]) -> NotificationProcessor:
    """The processor of a machine with these queues, which trusts everybody."""
    return NotificationProcessor(
        HERE, queues, directory=lambda _: MemoryDirectory([]), verifier=lambda _: AuthenticationLevel.SIG20
    )


def test_apply_updates(benchmark: BenchmarkFixture, scale: Scale, report: Report) -> None:
    rng = random.Random(20240304)
    guids = [UUID(int=rng.getrandbits(128)) for _ in range(QUEUES)]
    queues = [Queue(identifier=guid, pathname=f"here\\queue{number}") for number, guid in enumerate(guids)]
    pool = changes(rng, guids)
    bodies = [
        mqcn.encode_body(mqcn.ChangeNotificationMessage(1, rng.choices(pool, k=rng.randint(1, 3))))
        for _ in range(scale.rows // 20)
    ]
    updates = len(mqcn.decode_batch(bodies, strict=True))
    ours = processor(queues)
    rounds = measure([Contender(OURS, lambda: apply(ours, bodies), updates)], scale.slow_rounds)
    report.section(f"Apply {updates:,} updates to {QUEUES:,} queues, 1-3 a message")
    rate = 1 / rounds.per_packet(OURS)
    report.figure("updates a second", f"{rate:,.0f} target {TARGET.verdict(rate) if report.judge else TARGET}")
    benchmark.extra_info["updates a second"] = round(rate)
    benchmark.pedantic(apply, args=(ours, bodies), rounds=1, iterations=1)


def apply(ours: NotificationProcessor, bodies: list[bytes]) -> None:
    """Decode and apply messages one after the other."""
    for body in bodies:
        ours.process(body, ENVELOPE)
