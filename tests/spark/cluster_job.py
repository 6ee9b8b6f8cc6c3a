"""What ``spark-submit`` runs on a cluster: rows of the data source, the functions and the pipeline are counted.

Executors have the package in ``environment``, each in its own folder, and nowhere else.
"""

from __future__ import annotations

import json
import os
import sys

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import pandas_udf
from pyspark.sql.types import StringType

from msmqwire.spark import pipeline, register
from msmqwire.spark.functions import decode_frame, msmq_decode_topology


@pandas_udf(StringType())  # type: ignore[call-overload, untyped-decorator]  # its stub asks for a type of function
def executor(rows: pd.Series) -> pd.Series:
    """The folder of the executor that a row is on; where its package is if that is not in there."""
    import msmqwire

    folder = os.getcwd()
    there = msmqwire.__file__.startswith(os.path.join(folder, "environment", ""))
    return rows.map(lambda _: folder if there else msmqwire.__file__)


def main(captures: str, lake: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    # Found without registration
    packets = spark.read.format("msmq").option("table", "topology").load(captures)
    request = bytes.fromhex("0001000061baeae6c6d1db11baac0003ff4e2d2203a191f23ce34faba930be3a33e432ddf61bc5dcadd44345")
    payloads = spark.createDataFrame([(number, request) for number in range(100)], "row int, payload binary")
    payloads = payloads.repartition(4)
    decoded = payloads.select(executor("row").alias("at"), msmq_decode_topology("payload").alias("packet")).collect()
    framed = decode_frame(payloads, "payload", "topology", keep="row", columns=["fault"])
    register(spark)
    payloads.createOrReplaceTempView("payloads")
    in_sql = spark.sql("SELECT fault FROM msmq_topology(TABLE(SELECT payload FROM payloads))")
    counts = {
        "executors": len({row.at for row in decoded}),
        "functions": sum(row.packet.fault.code == "truncated" for row in decoded),
        "rows": framed.select("fault").union(in_sql).where("fault.offset = 36").count(),
        "read": packets.count(),
        "pipeline": pipeline.run(spark, captures, lake).frames,
    }
    print(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
