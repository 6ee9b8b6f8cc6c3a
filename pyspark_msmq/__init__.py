"""Spark looks here for ``format("msmq")``: in every top-level module whose name begins with ``pyspark_``."""

from __future__ import annotations

from msmqwire.spark.source.datasource import MsmqDataSource as DefaultSource

__all__ = ["DefaultSource"]
