"""Filters of a query, applied where captures are read: the same rows as where Spark applies them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)
from pyspark.sql.functions import expr, lit

from msmqwire.capture import ReadOptions
from msmqwire.spark.schema import convert
from msmqwire.spark.source.datasource import PushdownReader
from msmqwire.spark.source.options import SourceOptions
from msmqwire.spark.source.pushdown import can_apply, filtered, narrowed, time_bounds
from msmqwire.spark.source.scan import Scan, ScanOptions
from tests.capture import build
from tests.spark.captures import OTHER

SCHEMA = "frame bigint, time timestamp, time_ns bigint, src string, src_port int, dst string, dst_port int, type string"
COLUMNS = {column.name: column for column in ScanOptions().columns("topology")}
# Of the third frame
TIME_NS = 1_709_539_260_004_000_834
TIME = datetime(2024, 3, 4, 8, 1, 0, 4000, UTC)
LATER = TIME + timedelta(milliseconds=6)

# In SQL, and as Spark gives it to a source
CONDITIONS: list[tuple[str, Filter]] = [
    ("time = timestamp'2024-03-04 08:01:00.004'", EqualTo(("time",), TIME)),
    ("time > timestamp'2024-03-04 08:01:00.004'", GreaterThan(("time",), TIME)),
    ("time >= timestamp'2024-03-04 08:01:00.004'", GreaterThanOrEqual(("time",), TIME)),
    ("time >= timestamp'2024-03-04 08:01:00.004001'", GreaterThanOrEqual(("time",), TIME + timedelta(microseconds=1))),
    ("time < timestamp'2024-03-04 08:01:00.010'", LessThan(("time",), LATER)),
    ("time <= timestamp'2024-03-04 08:01:00.010'", LessThanOrEqual(("time",), LATER)),
    ("time <=> timestamp'2024-03-04 08:01:00.004'", EqualNullSafe(("time",), TIME)),
    ("time in (timestamp'2024-03-04 08:01:00.004', timestamp'2024-03-04 08:01:00.010')", In(("time",), (TIME, LATER))),
    ("time is null", IsNull(("time",))),
    ("time_ns = 1709539260004000834", EqualTo(("time_ns",), TIME_NS)),
    ("time_ns > 1709539260004000834", GreaterThan(("time_ns",), TIME_NS)),
    ("time_ns < 1709539260004000834", LessThan(("time_ns",), TIME_NS)),
    ("not time_ns <= 1709539260004000834", Not(LessThanOrEqual(("time_ns",), TIME_NS))),
    ("time_ns >= -9223372036854775808", GreaterThanOrEqual(("time_ns",), -(1 << 63))),
    ("time_ns <= 9223372036854775807", LessThanOrEqual(("time_ns",), (1 << 63) - 1)),
    ("src = '10.20.1.10'", EqualTo(("src",), "10.20.1.10")),
    ("src = '10.020.1.10'", EqualTo(("src",), "10.020.1.10")),
    ("src = '10.20.1.10/32'", EqualTo(("src",), "10.20.1.10/32")),
    ("src = '2001:db8:30::18'", EqualTo(("src",), "2001:db8:30::18")),
    ("src = '2001:DB8:30::18'", EqualTo(("src",), "2001:DB8:30::18")),
    ("src <> '10.20.1.10'", Not(EqualTo(("src",), "10.20.1.10"))),
    ("dst in ('10.30.4.18', '2001:db8:30::18')", In(("dst",), ("10.30.4.18", "2001:db8:30::18"))),
    ("dst in ('10.30.4.18', 'elsewhere')", In(("dst",), ("10.30.4.18", "elsewhere"))),
    ("src like '10.30.%'", StringStartsWith(("src",), "10.30.")),
    ("dst like '%.255'", StringEndsWith(("dst",), ".255")),
    ("src like '%0.1%'", StringContains(("src",), "0.1")),
    ("src_port = 1801", EqualTo(("src_port",), 1801)),
    ("dst_port in (49801, 49803)", In(("dst_port",), (49801, 49803))),
    ("dst_port not in (49801, 49803)", Not(In(("dst_port",), (49801, 49803)))),
    ("type is not null", IsNotNull(("type",))),
    ("type is null", EqualNullSafe(("type",), None)),
    ("type = 'reply'", EqualTo(("type",), "reply")),
    ("type <=> 'reply'", EqualNullSafe(("type",), "reply")),
    ("not type <=> 'reply'", Not(EqualNullSafe(("type",), "reply"))),
    ("type <> 'reply'", Not(EqualTo(("type",), "reply"))),
    ("type > 'reply'", GreaterThan(("type",), "reply")),
    ("type in ('reply', 'request')", In(("type",), ("reply", "request"))),
    ("type not in ('reply', 'other')", Not(In(("type",), ("reply", "other")))),
    ("type not like 're%'", Not(StringStartsWith(("type",), "re"))),
]
# What Spark pushes
PUSHED = [
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


def frames(captures: list[str], options: ScanOptions, conditions: list[Filter]) -> list[tuple[str, int]]:
    """The frames of rows that are left, without Spark."""
    left = []
    for name in captures:
        for _, batch in Scan(options).batches(name):
            rows = filtered(batch, conditions).to_pylist()
            left += [(row["src"], row["frame"]) for row in rows]
    return left


def test_conditions_leave_the_rows_that_they_leave_in_spark(spark: SparkSession, captures: list[str]) -> None:
    marks = [expr(text).alias(str(number)) for number, (text, _) in enumerate(CONDITIONS)]
    rows = load(spark, captures).select("src", "frame", *marks).collect()
    assert len(rows) == 11
    for number, (text, condition) in enumerate(CONDITIONS):
        expected = [(row.src, row.frame) for row in rows if row[str(number)]]
        assert can_apply(condition, COLUMNS)
        assert frames(captures, ScanOptions(), [condition]) == expected, text
        assert frames(captures, narrowed(ScanOptions(), [condition]), [condition]) == expected, text


def test_filters_of_a_query_are_not_those_of_others(spark: SparkSession, captures: list[str]) -> None:
    """Over one DataFrame, with Spark's setting: one after the other, in one query, and without a filter."""
    pushing = spark.newSession()
    pushing.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    everything = load(pushing, captures)
    marks = [expr(text).alias(str(number)) for number, text in enumerate(PUSHED)]
    unfiltered = load(spark, captures).select("*", *marks).collect()
    queries = [
        everything.where(text).select(lit(number).alias("number"), "src", "frame") for number, text in enumerate(PUSHED)
    ]
    for number, query in enumerate(queries):
        expected = [(number, row.src, row.frame) for row in unfiltered if row[str(number)]]
        assert [tuple(row) for row in query.collect()] == expected != []
    together = reduce(DataFrame.union, queries).collect()
    assert len(together) == sum(bool(row[str(number)]) for row in unfiltered for number in range(len(PUSHED)))
    assert everything.count() == len(unfiltered) == 11


def test_what_is_left_to_spark() -> None:
    options = SourceOptions.of({"path": "captures"})
    reader = PushdownReader(options, tuple(COLUMNS[name] for name in ("frame", "time", "src", "src_port", "fault")))
    ours: list[Filter] = [EqualTo(("src",), "10.0.0.1"), Not(IsNull(("time",)))]
    others: list[Filter] = [
        EqualTo(("fault", "code"), "truncated"),  # inside a column
        EqualTo(("version",), 1),  # not among the columns that are read
        In(("src",), ("10.0.0.1", None)),
        EqualTo(("src_port",), 1 << 40),
        EqualTo(("time",), datetime(2024, 3, 4)),
        StringContains(("frame",), "1"),
    ]
    assert list(reader.pushFilters([others[0], *ours, *others[1:]])) == others
    assert reader.filters == tuple(ours)


@pytest.mark.parametrize(
    ("conditions", "wanted"),
    [
        ([GreaterThan(("time_ns",), 5), LessThanOrEqual(("time_ns",), 7)], {"since": 5, "until": 8}),
        ([GreaterThan(("time_ns",), 5), GreaterThan(("time_ns",), 4)], {"since": 5}),
        ([LessThan(("time",), TIME), LessThan(("time_ns",), TIME_NS)], {"until": TIME_NS // 1000 * 1000}),
        ([GreaterThan(("time_ns",), 5), LessThan(("time_ns",), 3)], {}),
        ([EqualTo(("src",), "10.0.0.1"), EqualTo(("dst",), "10.0.0.2")], {"addresses": ("10.0.0.1",)}),
        ([In(("dst",), ("10.0.0.1", "::1"))], {"addresses": ("10.0.0.1", "::1")}),
        ([In(("dst",), ("10.0.0.1", "site"))], {}),
        ([Not(EqualTo(("dst",), "10.0.0.1")), IsNotNull(("time",)), EqualTo(("frame",), 1)], {}),
    ],
)
def test_what_is_not_even_decoded(conditions: list[Filter], wanted: dict[str, Any]) -> None:
    assert narrowed(ScanOptions(), conditions) == ScanOptions(read=ReadOptions(guid="text", **wanted))
    assert narrowed(ScanOptions(mode="FAILFAST"), conditions) == ScanOptions(mode="FAILFAST")


@pytest.mark.parametrize(
    "moment", [datetime(1969, 12, 31, 23, 59, 59, 999999, UTC), datetime(1970, 1, 1, tzinfo=UTC), TIME]
)
@pytest.mark.parametrize("kind", [EqualTo, GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual])
def test_bounds_of_a_time_in_microseconds(moment: datetime, kind: type[Filter]) -> None:
    """They keep every row that the filter leaves; from the first one, and to the last one, that an equal time has."""
    condition = kind(("time",), moment)  # type: ignore[call-arg]
    at = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) * 1000
    times = pa.array(range(at - 2001, at + 2002), pa.timestamp("ns", "UTC"))
    names = (COLUMNS["time"], COLUMNS["time_ns"])
    left = filtered(convert(pa.record_batch({"time": times}), names), [condition]).column("time_ns").to_pylist()
    since, until = time_bounds(condition)
    lower, upper = kind is not LessThan and kind is not LessThanOrEqual, kind not in (GreaterThan, GreaterThanOrEqual)
    assert since == (at if lower else None)
    assert until == ((at if kind is LessThan else at + 1000) if upper else None)
    assert left
    assert since is None or since <= left[0]
    assert until is None or left[-1] < until
    if kind is EqualTo:
        assert (left[0], left[-1] + 1) == (since, until)


def test_a_selection_that_was_asked_for_stays() -> None:
    options = ScanOptions(read=ReadOptions(addresses=["10.0.0.0/8"], since=10, until=20))
    conditions: list[Filter] = [EqualTo(("src",), "10.0.0.1"), GreaterThan(("time_ns",), 5), LessThan(("time_ns",), 30)]
    assert narrowed(options, conditions) == options
