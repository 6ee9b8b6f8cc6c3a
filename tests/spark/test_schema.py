"""Spark's form of the tables."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DecimalType, LongType, ShortType, StringType

from msmqwire import formatname, mqcn, mqsd
from msmqwire.columns.schema import TIMESTAMP, UINT64, Column
from msmqwire.spark.schema import arrow_schema, convert, spark_columns, struct_type

WHEN = Column("seen", TIMESTAMP, "a time")
COLUMNS = (Column("frame", UINT64, "counted by us"), Column("cookie", UINT64, "any 64 bits"), WHEN)


@pytest.mark.parametrize("guid", ["text", "binary"])
def test_both_languages_agree(guid: str) -> None:
    """The Arrow types are those that Spark itself makes of the Spark types: a batch of them passes without a cast."""
    tables = (*mqsd.TOPOLOGY.all_columns, *mqcn.NOTIFICATIONS.columns, *formatname.FORMAT_NAMES.columns, *COLUMNS)
    columns = spark_columns(tables, guid)  # type: ignore[arg-type]
    assert arrow_schema(columns) == to_arrow_schema(struct_type(columns), timezone="UTC")


def test_integers_widen() -> None:
    types = {column.name: column.spark for column in spark_columns((*mqsd.TOPOLOGY.all_columns, *COLUMNS))}
    assert types["version"] == ShortType()
    assert types["connected_network_mask"] == LongType()
    assert types["frame"] == LongType()
    assert types["cookie"] == DecimalType(20, 0)
    assert types["type"] == StringType()


def test_the_largest_values_arrive() -> None:
    largest = pa.record_batch(
        [
            pa.array([2**63 - 1], pa.uint64()),
            pa.array([2**64 - 1], pa.uint64()),
            pa.array([0]).cast(pa.timestamp("ns")),
        ],
        names=["frame", "cookie", "seen"],
    )
    row = convert(largest, spark_columns(COLUMNS)).to_pylist()[0]
    assert int(row["cookie"]) == 2**64 - 1
    assert row["frame"] == 2**63 - 1


def test_a_time_keeps_its_nanoseconds_in_a_column_of_its_own() -> None:
    columns = spark_columns((WHEN,))
    assert [column.name for column in columns] == ["seen", "seen_ns"]
    times = pa.array([1_709_539_200_123_456_789, None]).cast(pa.timestamp("ns", "UTC"))
    rows = convert(pa.record_batch([times], names=["seen"]), columns).to_pylist()
    seen = datetime.datetime(2024, 3, 4, 8, 0, 0, 123456, tzinfo=datetime.UTC)
    assert rows == [{"seen": seen, "seen_ns": 1_709_539_200_123_456_789}, {"seen": None, "seen_ns": None}]


def test_times_before_1970_are_rounded_down() -> None:
    """As days are, so that a day and a time in microseconds never disagree."""
    numbers = [-(2**63) + 1, -1_000_001, -1000, -999, -1, None, 0, 999, 2**63 - 1]
    times = pa.array(numbers).cast(pa.timestamp("ns", "UTC"))
    columns = spark_columns((WHEN,))
    for found in (
        convert(pa.record_batch([times], names=["seen"]), columns),
        convert(pa.table([pa.chunked_array([times[:3], times[3:]])], names=["seen"]), columns),
    ):
        assert found["seen"].cast(pa.int64()).to_pylist() == [None if one is None else one // 1000 for one in numbers]
        assert found["seen_ns"].to_pylist() == numbers


def test_a_guid_form_that_spark_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="guid='uuid' is not one of 'text', 'binary'"):
        spark_columns(mqsd.TOPOLOGY.columns, "uuid")
