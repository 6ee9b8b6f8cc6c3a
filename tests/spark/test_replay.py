"""Replay of a lake: what the same captures give, whatever the order of files and machines."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from msmqwire import mqcn
from msmqwire.directory import MemoryDirectory, PrivacyLevel, Queue
from msmqwire.notification.replay import COLUMNS, NotifiedQueue, in_order, replay
from msmqwire.notification.sender import Change, QueueCreation, QueueDeletion, QueueManagerUpdate, QueueUpdate
from msmqwire.spark import pipeline
from msmqwire.spark.lake import batches
from tests.capture.build import START, pcap_header
from tests.notification.sent import (
    LEDGER,
    MACHINE,
    MANAGER,
    ORDERS,
    SERVICE,
    STEP,
    captured,
    captured_packets,
    changed,
    packet_of,
)
from tests.spark.rows import read_table

MACHINES = ("10.0.0.2", "10.0.0.3", "10.0.1.2", "10.0.1.3")
FILES = 6
SECOND = 1_000_000_000


class Day:
    """What happens to a few queues of each machine, told in messages of all kinds over several captures."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._queues: dict[str, dict[int, Queue]] = {machine: {} for machine in MACHINES}
        self._streams = 0

    def write(self, folder: Path) -> list[str]:
        """The captures, those of the afternoon by the names that come first; and their names, in order."""
        for number in range(FILES):
            data = b"".join(self._stream(number) for _ in range(8))
            (folder / f"{FILES - number}.pcap").write_bytes(pcap_header(nano=True) + data)
        return sorted(map(str, folder.glob("*.pcap")))

    def _stream(self, hour: int) -> bytes:
        """The records of a stream; streams of one capture are told at the same time."""
        self._streams += 1
        machine = self._random.choice(MACHINES)
        changes = [self._change(machine) for _ in range(self._random.randint(1, 6))]
        where: dict[str, Any] = {"machine": machine, "port": 40_000 + self._streams}
        where["start"] = START + hour * SECOND + self._random.randint(0, 3) * STEP
        kind = self._random.random()
        if kind < 0.1:
            made = captured_packets([packet_of(self._spoilt())], **where)
        elif kind < 0.6:
            made = captured(SERVICE.notifications(changes), **where)
        else:
            made = captured(MANAGER.notifications(changes), **where)
        return made[len(pcap_header(nano=True)) :]

    def _change(self, machine: str) -> Change:
        queues, number = self._queues[machine], self._random.randint(1, 4)
        old = queues.get(number)
        if self._random.random() < 0.1:
            new = changed(MACHINE, queue_manager_quota=self._random.randint(1, 99))
            return QueueManagerUpdate(old=MACHINE, new=new)
        if old is None:
            names = {"identifier": UUID(int=number), "pathname": f"ledger\\queue{number}"}
            queues[number] = changed(ORDERS, **names, quota=self._random.randint(0, 99))
            return QueueCreation(queue=queues[number], queue_manager=LEDGER)
        if self._random.random() < 0.3:
            return QueueDeletion(queue=queues.pop(number), queue_manager=LEDGER)
        values = {"quota": self._random.randint(100, 999), "privacy_level": self._random.choice(list(PrivacyLevel))}
        queues[number] = changed(old, **values, security=self._random.randbytes(3))
        return QueueUpdate(old=old, new=queues[number], queue_manager=LEDGER)

    def _spoilt(self) -> bytes:
        deletion = QueueDeletion(queue=changed(ORDERS, identifier=UUID(int=1)), queue_manager=LEDGER)
        (notification,) = SERVICE.notifications([deletion])
        body = mqcn.encode_body(notification.message)
        return self._random.choice([body[:-4], body + b"\0", b"\1\0", b"\3\1"])


def by_machine(queues: Iterable[NotifiedQueue]) -> dict[str, list[NotifiedQueue]]:
    """The queues of each machine in their order: those of a file come first in a lake."""
    found: dict[str, list[NotifiedQueue]] = {machine: [] for machine in MACHINES}
    for queue in queues:
        found[queue.machine].append(queue)
    return found


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return Day(7).write(tmp_path_factory.mktemp("captures"))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, captures: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("lake")
    pipeline.run(spark, captures, path, tables=["notifications"])
    return str(path)


def here(captures: list[str], **options: Any) -> dict[str, list[NotifiedQueue]]:
    with read_table(captures, "notifications", strict=True) as reader:
        return by_machine(replay(reader, **options).queues)


def of_lake(lake: str, **options: Any) -> dict[str, list[NotifiedQueue]]:
    columns = [*(name for name in COLUMNS if name != "time"), "time_ns", "stream_offset"]
    rows = pa.Table.from_batches(list(batches(lake, "notifications", columns)))
    # Whatever the order of the rows
    return by_machine(replay(in_order(rows[::-1]).to_batches(), **options).queues)


@pytest.mark.parametrize("at", [None, START + SECOND + STEP, START])
def test_a_lake_says_what_its_captures_say(captures: list[str], lake: str, at: int | None) -> None:
    found = of_lake(lake, at=at)
    assert found == here(captures, at=at)
    if at is None:
        queues = [queue for queues in found.values() for queue in queues]
        states = {(queue.exists, event.applied) for queue in queues for event in queue.history}
        assert states >= {(True, True), (False, True), (False, False)}
        assert max(len(queue.history) for queue in queues) > 5


def test_with_a_directory(captures: list[str], lake: str) -> None:
    directory = MemoryDirectory([changed(ORDERS, identifier=UUID(int=number), label="held") for number in (1, 2)])
    found = of_lake(lake, directory=directory)
    assert found == here(captures, directory=directory)
    assert found != here(captures)


@pytest.mark.parametrize("guid", ["text", "binary"])
def test_each_machine_in_a_task(spark: SparkSession, captures: list[str], guid: str) -> None:
    """As the manual has it, of the data source, whatever the form of GUIDs."""

    def events_of(rows: pa.Table) -> pa.Table:
        found = [(each.machine, len(each.history)) for each in replay(in_order(rows).to_batches()).queues]
        return pa.table({"machine": [machine for machine, _ in found], "events": [count for _, count in found]})

    rows = spark.read.format("msmq").option("table", "notifications").option("guid", guid).load(captures)
    tasks = rows.groupBy("dst").applyInArrow(events_of, "machine string, events bigint").collect()
    expected = [(queue.machine, len(queue.history)) for queues in here(captures).values() for queue in queues]
    assert sorted(map(tuple, tasks)) == sorted(expected)
