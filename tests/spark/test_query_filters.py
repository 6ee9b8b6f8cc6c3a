"""Filters of a query over the data source, with the setting by which Spark would pass them to it."""

from __future__ import annotations

from functools import reduce
from itertools import chain

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr, lit

from tests.capture import build
from tests.spark.captures import OTHER

SCHEMA = "frame bigint, time timestamp, time_ns bigint, src string, src_port int, dst string, dst_port int, type string"
CONDITIONS = [
    "time > timestamp'2024-03-04 08:01:00.004' and time < timestamp'2024-03-04 08:01:00.016'",
    "src = '10.20.1.10' and dst_port in (49801, 49803) and type is null",
    "type not in ('reply', 'other') and dst like '%.255'",
]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Rows of all kinds, without a time among them."""
    path = tmp_path_factory.mktemp("captures") / "timeless.pcapng"
    frame = build.ethernet(build.IPV4, build.ipv4(build.udp(b"payload"), source="10.20.1.10", target="10.20.1.11"))
    path.write_bytes(build.section() + build.interface() + build.simple_packet(frame))
    return sorted([OTHER, str(path)])


def load(spark: SparkSession, captures: list[str]) -> DataFrame:
    return spark.read.format("msmq").schema(SCHEMA).load(captures)


def test_filters_of_a_query_are_not_those_of_others(spark: SparkSession, captures: list[str]) -> None:
    """Over one DataFrame, with Spark's setting: several in one query, another one after it, and without a filter."""
    pushing = spark.newSession()
    pushing.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    everything = load(pushing, captures)
    marks = [expr(text).alias(str(number)) for number, text in enumerate(CONDITIONS)]
    unfiltered = load(spark, captures).select("*", *marks).collect()
    queries = [
        everything.where(text).select(lit(number).alias("number"), "src", "frame")
        for number, text in enumerate(CONDITIONS)
    ]
    expected = [
        [(number, row.src, row.frame) for row in unfiltered if row[str(number)]] for number in range(len(CONDITIONS))
    ]
    assert all(expected)
    together = reduce(DataFrame.union, queries).collect()
    assert [tuple(row) for row in together] == list(chain(*expected))
    assert [tuple(row) for row in queries[0].collect()] == expected[0]
    assert everything.count() == len(unfiltered) == 11
