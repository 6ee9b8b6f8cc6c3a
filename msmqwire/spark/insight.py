"""``msmqwire.insight`` on Spark: each task summarizes its rows, and the driver merges the summaries."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from msmqwire.insight import COLUMNS, Summary
from msmqwire.spark.executors import Sent, sent

__all__ = ["summarize"]


def summarize(tables: Mapping[str, DataFrame], limits: dict[str, int] | None = None) -> Summary:
    """Summarize tables, as ``msmqwire.insight.summarize`` does; only groups leave the tasks.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Tables by name, with at least the columns ``COLUMNS``: those of a lake, or of ``format("msmq")``.
    limits : dict of str to int, optional
        As in ``Summary``; also those of each task.
    """
    summary = Summary(limits)
    for name, frame in tables.items():
        wanted = [*COLUMNS[name], *(["time_ns"] if "time_ns" in frame.columns else [])]
        partials = frame.select(*wanted).mapInArrow(sent(_Partial(name, limits).summary), "partial binary")
        for row in partials.toLocalIterator():
            summary.merge(pickle.loads(row["partial"]))
    return summary


@dataclass(frozen=True)
class _Partial(Sent):
    """Summarizes a partition of a table."""

    name: str
    limits: dict[str, int] | None

    def summary(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The summary of a partition, pickled."""
        summary = Summary(self.limits)
        for batch in batches:
            summary.add(self.name, batch)
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(summary.partial())], pa.binary())], ["partial"])
