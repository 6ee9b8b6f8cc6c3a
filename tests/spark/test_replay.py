"""Replay on Spark: what the single machine finds in the same captures, whatever the order of files and machines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pyspark.sql import SparkSession

from msmqwire import mqcn
from msmqwire.capture import read_table
from msmqwire.directory import PrivacyLevel, Queue
from msmqwire.notification.attributes import CREATED_QUEUE
from msmqwire.notification.replay import Event, ToldQueue
from msmqwire.notification.replay import replay as replay_here
from msmqwire.notification.sender import Change, QueueCreation, QueueDeletion, QueueManagerUpdate, QueueUpdate
from msmqwire.spark import pipeline
from msmqwire.spark.replay import QUEUES, replay
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
from tests.spark.rows import as_dicts

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


def expected(told: ToldQueue) -> dict[str, Any]:
    return {
        "machine": told.machine,
        "queue_manager": None if told.queue_manager is None else str(told.queue_manager),
        "exists": told.exists,
        **attributes(told.queue.attributes()),
        "history": [expected_event(event) for event in told.history],
    }


def expected_event(event: Event) -> dict[str, Any]:
    names = ("operation", "applied", "file", "frame", "source")
    return {
        **{name: getattr(event, name) for name in names},
        "time_ns": event.time,
        "origin": str(event.origin),
        "told": attributes(event.told),
    }


def attributes(values: Any) -> dict[str, Any]:
    """All that are told of, null where they were not."""
    found = {name: values.get(name) for name in CREATED_QUEUE.values()}
    return {name: str(value) if isinstance(value, UUID) else value for name, value in found.items()}


def by_machine(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The queues of each machine in their order: which machine comes first is Spark's business."""
    return {machine: [row for row in rows if row["machine"] == machine] for machine in MACHINES}


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return Day(7).write(tmp_path_factory.mktemp("captures"))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, captures: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("lake")
    pipeline.run(spark, captures, path, tables=["notifications"])
    return str(path / "notifications")


def here(captures: list[str], at: int | None = None) -> list[dict[str, Any]]:
    with read_table(captures, "notifications", strict=True) as reader:
        return [expected(queue) for queue in replay_here(reader, at=at).queues]


@pytest.mark.parametrize("at", [None, START + SECOND + STEP, START])
def test_a_lake_says_what_its_captures_say(spark: SparkSession, captures: list[str], lake: str, at: int | None) -> None:
    rows = as_dicts(replay(spark.read.parquet(lake), at=at))
    wanted = here(captures, at)
    assert by_machine(rows) == by_machine(wanted)
    assert len(rows) == len(wanted)
    if at is None:
        states = {(row["exists"], event["applied"]) for row in rows for event in row["history"]}
        assert states >= {(True, True), (False, True), (False, False)}
        assert max(len(row["history"]) for row in rows) > 5


def test_straight_from_captures(spark: SparkSession, captures: list[str]) -> None:
    """The data source has what a lake has, whatever the form of GUIDs."""
    for guid in ("text", "binary"):
        reader = spark.read.format("msmq").option("table", "notifications").option("guid", guid)
        assert by_machine(as_dicts(replay(reader.load(captures)))) == by_machine(here(captures))


def test_columns(spark: SparkSession, lake: str) -> None:
    """One column for each attribute, and nothing that the single machine does not have."""
    queues = replay(spark.read.parquet(lake))
    assert queues.columns == [column.name for column in QUEUES]
    assert set(queues.columns) == {"machine", "queue_manager", "exists", "history", *CREATED_QUEUE.values()}
    types = dict(queues.dtypes)
    assert (types["quota"], types["journaling"], types["security"]) == ("bigint", "boolean", "binary")
    assert (types["privacy_level"], types["identifier"]) == ("string", "string")
    nothing = replay(spark.read.parquet(lake), at=0)
    assert nothing.collect() == []
