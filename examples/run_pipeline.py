"""Captures to a lake of Delta tables through Spark on this machine, and a look at the tables: what `make run` does.

python examples/run_pipeline.py [--lake FOLDER] [CAPTURE ...]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pyspark.sql.functions import col, element_at, split

from msmqwire.spark import pipeline
from msmqwire.spark.lake import read
from msmqwire.spark.session import local_session

parser = argparse.ArgumentParser(description="Decode captures into a lake of Delta tables and show them.")
parser.add_argument("captures", nargs="*", help="captures, folders or globs (default: the samples)")
parser.add_argument("--lake", default="lake", help="the folder of the tables (default: lake)")
options = parser.parse_args()

samples = str(Path(__file__).parent / "*.pcap*")
spark = local_session(settings={"spark.ui.showConsoleProgress": "false"})
summary = pipeline.run(spark, options.captures or samples, options.lake)
print(summary)

# From here on it is Spark as anyone knows it: the lake is Delta tables, by day.
topology = read(spark, options.lake, "topology")
notifications = read(spark, options.lake, "notifications")
messages = read(spark, options.lake, "messages")
sessions = read(spark, options.lake, "sessions")
faults = read(spark, options.lake, "faults")
accounting = read(spark, options.lake, "accounting")
file = element_at(split("file", "/"), -1).alias("file")

print("\ntopology: a row for every discovery packet (some of its columns)")
topology.orderBy("time").select(
    file, "frame", "src", "type", "responding_site_id", col("servers.name").alias("servers"), "violations"
).show(truncate=False)

print("messages: a row for every message, out of TCP streams")
messages.orderBy("time").select("frame", "src", "kind", "destination_queue", "label", "notification").show(truncate=48)

print("notifications: a row for every change in these messages")
notifications.orderBy("time", "stream_offset", "index").select(
    "frame", "version", "operation", "object", "path_name", col("properties.name").alias("properties")
).show(truncate=48)

print("sessions: a row for every ping, and packet with which queue managers keep a session")
sessions.orderBy("time").select("frame", "transport", "src", "dst", "kind").show(truncate=False)

print("faults: a row for every payload that cannot be decoded")
faults.orderBy("time").select(file, "frame", "src", "dst", "code", "field", "offset").show(truncate=False)

print("accounting: a row for every capture; no frame is lost silently")
accounting.orderBy("file").select(
    file, "frames", "payloads", "segments", "fragments", "other", "malformed", "packets", "rows", "faults"
).show(truncate=False)

print(f"The tables are in {options.lake}/. Rows by type, in one line of SQL:")
topology.createOrReplaceTempView("topology")
spark.sql("SELECT type, count(*) AS packets FROM topology GROUP BY type ORDER BY type").show()
spark.stop()
