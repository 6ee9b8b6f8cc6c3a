"""The tasks of the pipeline run in this process, one after the other, for tests that are about the rows of a lake.

``test_pipeline.py``, ``test_mission.py`` and others run the pipeline by Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Row, SparkSession

Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class _Numbers:
    """Numbers for tasks, one for each."""

    def __init__(self, numbers: range, task: Task | None = None) -> None:
        self.numbers = numbers
        self.task = task

    def mapInArrow(self, task: Task, schema: str) -> _Numbers:  # noqa: N802 (as Spark calls it)
        assert schema == "result binary"
        return _Numbers(self.numbers, task)

    def collect(self) -> list[Row]:
        """The rows of all tasks, each of which runs a copy of the function, as an executor does."""
        rows: list[Row] = []
        sent = cloudpickle.dumps(self.task)
        for number in self.numbers:
            for batch in cloudpickle.loads(sent)(iter([pa.record_batch({"id": [number]})])):
                rows += (Row(**row) for row in batch.to_pylist())
        return rows


class _Tasks:
    def range(self, start: int, end: int, step: int, partitions: int) -> _Numbers:
        numbers = range(start, end, step)
        assert len(numbers) == partitions
        return _Numbers(numbers)


#: In place of a Spark session, for ``pipeline.run`` alone
TASKS = cast(SparkSession, cast(Any, _Tasks()))
