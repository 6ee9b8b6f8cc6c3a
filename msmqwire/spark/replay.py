"""``msmqwire.notification.replay`` on Spark: the queues of each machine, from the notifications of a lake.

Machines are independent, so all notifications to a machine go to one task. Spark sorts them by time, on disk if they do
not fit in memory, and the task replays one message after the other. It holds the queues of one machine at a time, with
their histories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any
from uuid import UUID

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import col

from msmqwire.columns.schema import BOOL, BYTES, GUID, INT64, TEXT, Column, ListOf, StructOf
from msmqwire.directory.base import Directory
from msmqwire.directory.elements import Queue
from msmqwire.notification.carried_attributes import NOTIFIED
from msmqwire.notification.judgement import Rule
from msmqwire.notification.replay import COLUMNS, Event, NotifiedQueue, NotifiedQueues, messages_of
from msmqwire.spark.executors import Sent, sent
from msmqwire.spark.schema import arrow_schema, spark_columns, struct_type

__all__ = ["QUEUES", "notified_queues", "replay"]

_TYPES = {UUID: GUID, int: INT64, bool: BOOL, bytes: BYTES}
_ATTRIBUTES = tuple(
    (name, _TYPES.get(Queue.attribute_type(name), TEXT)) for name in Queue.attribute_names() if name in NOTIFIED
)

_EVENT = StructOf(
    (
        ("operation", TEXT),
        ("applied", BOOL),
        ("rule", TEXT),
        ("time_ns", INT64),
        ("file", TEXT),
        ("frame", INT64),
        ("source", TEXT),
        ("origin", TEXT),
        ("version", INT64),
        ("notified", StructOf(_ATTRIBUTES)),
    )
)

#: The columns of a replay: those of ``NotifiedQueue``, the attributes of its queue each in one of its own.
QUEUES = spark_columns(
    (
        Column("machine", TEXT, "the address that the notifications went to"),
        Column("queue_manager", GUID, "the queue manager that hosts the queue, where a notification says"),
        Column("exists", BOOL, "null where only changes were seen"),
        *(Column(name, type_, "as the machine was notified, or null") for name, type_ in _ATTRIBUTES),
        Column("history", ListOf(_EVENT), "the notifications in the order of time"),
    )
)

_SCHEMA = arrow_schema(QUEUES)
# Two messages of a stream may end in the same frame
_ORDER = ("dst", "time_ns", "file", "frame", "stream_offset", "index")
_NEEDED = tuple(dict.fromkeys((*(name for name in COLUMNS if name != "time"), *_ORDER)))
# A few rows to a batch, since histories may be long
_ROWS = 256


def replay(notifications: DataFrame, *, at: int | None = None, directory: Directory | None = None) -> DataFrame:
    """Rebuild the queues of machines from the notifications that they received.

    The result has a row for each queue of each machine, as ``msmqwire.notification.replay.replay`` for the same
    captures in the order of their names. Machines are in any order; the queues of a machine are in the order of their
    first notifications.

    Parameters
    ----------
    notifications : DataFrame
        The table ``notifications`` of a lake, or of the data source ``msmq``.
    at : int, optional
        Nanoseconds since 1970 UTC: ignore later notifications.
    directory : Directory, optional
        Supplies what version 2 omits, as in ``NotifiedQueues``. It is sent to the tasks, so it must be picklable, as
        ``MemoryDirectory`` is.

    Examples
    --------
    >>> queues = replay(spark.read.parquet("lake/notifications"))  # doctest: +SKIP
    >>> queues.where("exists").select("machine", "pathname", "quota").show()  # doctest: +SKIP
    """
    notified = notifications.select(*_NEEDED)
    if at is not None:
        notified = notified.where(col("time_ns").isNull() | (col("time_ns") <= at))
    by_machine = notified.repartition("dst").sortWithinPartitions(*_ORDER)
    return by_machine.mapInArrow(sent(_Replay(directory).queues), struct_type(QUEUES))


def notified_queues(queues: DataFrame) -> Iterator[NotifiedQueue]:
    """The rows of a replay as objects, fetched one partition at a time."""
    return map(_notified_queue, queues.toLocalIterator())


@dataclass(frozen=True)
class _Replay(Sent):
    """Replays the notifications of a partition."""

    directory: Directory | None

    def queues(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The queues of a partition, whose rows are sorted by machine and time."""
        names = ["time" if name == "time_ns" else name for name in _NEEDED]
        messages = messages_of(batch.rename_columns(names) for batch in batches)
        for _, of_machine in groupby(messages, key=lambda message: message.machine):
            queues = NotifiedQueues(self.directory)
            for message in of_machine:
                queues.tell(message)
            rows = (_row(queue) for queue in queues)
            while some := list(islice(rows, _ROWS)):
                yield pa.RecordBatch.from_pylist(some, schema=_SCHEMA)


# In a row, a null attribute is an attribute that no notification set, and GUIDs are text


def _row(notified: NotifiedQueue) -> dict[str, Any]:
    return {
        "machine": notified.machine,
        "queue_manager": _plain(notified.queue_manager),
        "exists": notified.exists,
        **_columns(notified.queue.attributes()),
        "history": [_event_row(event) for event in notified.history],
    }


def _event_row(event: Event) -> dict[str, Any]:
    return {
        "operation": event.operation,
        "applied": event.applied,
        "rule": event.rule,
        "time_ns": event.time,
        "file": event.file,
        "frame": event.frame,
        "source": event.source,
        "origin": _plain(event.origin),
        "version": 1 if isinstance(event.origin, UUID) else 2,
        "notified": _columns(event.notified),
    }


def _columns(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _notified_queue(row: Row) -> NotifiedQueue:
    return NotifiedQueue(
        machine=row.machine,
        queue_manager=None if row.queue_manager is None else UUID(row.queue_manager),
        exists=row.exists,
        queue=Queue.of(_values(row)),
        history=tuple(_event(event) for event in row.history),
    )


def _event(row: Row) -> Event:
    return Event(
        operation=row.operation,
        rule=None if row.rule is None else Rule(row.rule),
        time=row.time_ns,
        file=row.file,
        frame=row.frame,
        source=row.source,
        origin=UUID(row.origin) if row.version == 1 else row.origin,
        notified=_values(row.notified),
    )


def _values(row: Row) -> dict[str, Any]:
    return {name: Queue.attribute_type(name)(row[name]) for name, _ in _ATTRIBUTES if row[name] is not None}
