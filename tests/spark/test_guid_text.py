"""Text of GUIDs: the function, in SQL and in Python, as Arrow and as pandas UDF."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import SparkSession
from pyspark.sql.functions import col

from msmqwire import spark as msmq
from msmqwire.spark.functions import decode_frame, msmq_guid_text
from tests import vectors

FORMS = ("arrow", "pandas")
GUIDS = [uuid.uuid5(uuid.NAMESPACE_OID, str(number)) for number in range(50)]


@pytest.mark.parametrize("form", FORMS)
def test_both_orders_and_nulls(spark: SparkSession, form: Any) -> None:
    values = [(guid.bytes, guid.bytes_le) for guid in GUIDS]
    frame = spark.createDataFrame([*values, (None, None), (b"short", b"")], "text binary, packet binary")
    texts = frame.select(
        msmq_guid_text("text", form=form).alias("text"),
        msmq_guid_text(col("packet"), order="packet", form=form).alias("packet"),
    )
    expected = [str(guid) for guid in GUIDS] + [None, None]
    assert [tuple(row) for row in texts.collect()] == list(zip(expected, expected, strict=True))


@pytest.mark.parametrize("form", FORMS)
def test_guids_in_sql(spark: SparkSession, form: Any) -> None:
    msmq.register(spark, form=form)
    guid = "X'000102030405060708090a0b0c0d0e0f'"
    texts = spark.sql(f"SELECT msmq_guid_text({guid}), msmq_packet_guid_text({guid}), msmq_guid_text(X'00')").first()
    assert texts is not None
    assert list(texts) == [
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "03020100-0504-0706-0809-0a0b0c0d0e0f",
        None,
    ]


def test_the_text_of_a_binary_column_is_that_of_the_text_column(spark: SparkSession) -> None:
    payloads = spark.createDataFrame([(vector.data,) for vector in vectors.load("mqsd")], "payload binary")
    ids = ["request_id", "site_id"]
    as_text = decode_frame(payloads, "payload", "topology", columns=ids)
    as_bytes = decode_frame(payloads, "payload", "topology", columns=ids, guid="binary")
    written = as_bytes.select(*(msmq_guid_text(name).alias(name) for name in ids))
    assert written.collect() == as_text.collect()


@pytest.mark.parametrize("form", FORMS)
def test_failfast_names_the_row(spark: SparkSession, form: Any) -> None:
    frame = spark.createDataFrame([(GUIDS[0].bytes,), (None,), (b"fifteen bytes..",)], "guid binary").coalesce(1)
    with pytest.raises(
        PythonException, match="bad_size: GUID at byte 0: row 2 of its partition, 15 bytes: 666966 7465656e"
    ):
        frame.select(msmq_guid_text("guid", mode="FAILFAST", form=form)).collect()


def test_settings_are_checked_on_the_driver() -> None:
    with pytest.raises(ValueError, match="order='wire' is not one of 'text', 'packet'"):
        msmq_guid_text("guid", order="wire")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mode='DROPMALFORMED' is not one of PERMISSIVE, FAILFAST"):
        msmq_guid_text("guid", mode="DROPMALFORMED")  # type: ignore[arg-type]
