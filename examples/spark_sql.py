"""Captures in Spark without a pipeline: the data source `msmq`, SQL over it, and the function over a payload column."""

from __future__ import annotations

from pathlib import Path

from msmqwire.spark import register
from msmqwire.spark.session import local_session

spark = local_session(settings={"spark.ui.showConsoleProgress": "false"})
register(spark)

captures = str(Path(__file__).parent / "*.pcap*")
spark.read.format("msmq").option("table", "topology").load(captures).createOrReplaceTempView("topology")
spark.sql("""
    SELECT src AS answered_by, server.name AS directory_server, count(*) AS times
    FROM topology LATERAL VIEW explode(servers) AS server
    GROUP BY ALL ORDER BY directory_server
""").show()

# Payloads that are in a table already, from any source.
payload = bytes.fromhex(
    "0002000003a191f23ce34faba930be3a33e432dd01000000000000000000000062baeae6c6d1db11baac0003ff4e2d22"
)
spark.createDataFrame([(1, payload), (2, payload[:40])], "id int, payload binary").createOrReplaceTempView("payloads")
spark.sql("""
    SELECT id, packet.type, packet.correlation_id, packet.fault
    FROM (SELECT id, msmq_decode_topology(payload) AS packet FROM payloads)
""").show(truncate=False)
spark.stop()
