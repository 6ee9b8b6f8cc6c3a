"""A driver that follows captures into Parquet, a folder for each batch, and may stand still behind one of them.

Its arguments are the captures, the folder of Spark's log, that of the batches, and perhaps the number of a batch.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from pyspark.sql import DataFrame

from msmqwire.spark.session import local_session


def main(captures: str, log: str, sink: str, batch: str = "") -> None:
    """Follow what there is; behind ``batch``, which Spark does not know to be written yet, wait to be killed."""
    settings = {"spark.driver.memory": "512m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
    spark = local_session("crashing query", cores=1, settings=settings)

    def write(rows: DataFrame, number: int) -> None:
        rows.write.mode("overwrite").parquet(f"{sink}/{number}")
        if str(number) == batch:
            Path(sink, "written").touch()
            threading.Event().wait()

    options = {"table": "messages", "maxBytesPerTrigger": "3k", "splitSize": "1k"}
    rows = spark.readStream.format("msmq").options(**options).load(captures)
    query = rows.writeStream.foreachBatch(write).option("checkpointLocation", log).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
