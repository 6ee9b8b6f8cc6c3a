"""A driver that follows captures into Parquet, a folder for each batch, and stands still behind one of them.

Its arguments are the captures, the folder of Spark's log, that of the batches, and the number of a batch.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from msmqwire.spark.session import local_session


def follow(spark: SparkSession, captures: str, log: str, sink: str, last: int | None = None) -> None:
    """Follow what there is; behind batch ``last``, which Spark does not know to be written yet, wait to be killed."""

    def write(rows: DataFrame, number: int) -> None:
        rows.write.mode("overwrite").parquet(f"{sink}/{number}")
        if number == last:
            Path(sink, "written").touch()
            threading.Event().wait()

    options = {"table": "messages", "maxBytesPerTrigger": "10k", "splitSize": "5k"}
    rows = spark.readStream.format("msmq").options(**options).load(captures)
    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", log).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    session = local_session("crashing query", cores=1, settings={"spark.driver.memory": "512m"})
    captures, log, sink, last = sys.argv[1:5]
    follow(session, captures, log, sink, int(last))
