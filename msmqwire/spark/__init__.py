"""Spark: functions over payload columns, the data source ``msmq``, and the pipeline from captures to a lake.

``register(spark)`` registers the SQL functions. Python does not need it: import ``functions``; Spark finds
``format("msmq")`` by itself where this package is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from msmqwire.columns.schema import GuidOrder
    from msmqwire.spark.functions import Form
    from msmqwire.spark.functions.decoder import FunctionMode
    from msmqwire.spark.schema import SparkGuid

__all__ = ["register"]

# SQL functions, and the table whose columns they return
_FUNCTIONS = {
    "msmq_decode_topology": "topology",
    "msmq_decode_message": "messages",
    "msmq_decode_notification": "notifications",
    "msmq_parse_format_name": "format_names",
}
_TABLE_FUNCTIONS = {
    "msmq_topology": "topology",
    "msmq_messages": "messages",
    "msmq_notifications": "notifications",
    "msmq_sessions": "sessions",
    "msmq_format_names": "format_names",
}
# SQL functions, and the byte order of their GUIDs
_GUID_FUNCTIONS: dict[str, GuidOrder] = {"msmq_guid_text": "text", "msmq_packet_guid_text": "packet"}


def register(
    spark: SparkSession,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    form: Form = "arrow",
) -> None:
    """Register the functions in the SQL of a session, and the data source ``msmq`` where Spark does not find it.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    mode, guid
        As for ``functions.msmq_decode_topology``.
    form : {"arrow", "pandas"}
        As for ``functions.decoder_udf``. Table functions are always Arrow table functions.

    Examples
    --------
    >>> register(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT msmq_decode_topology(payload).request_id FROM packets")  # doctest: +SKIP
    >>> spark.sql("SELECT request_id FROM msmq_topology(TABLE(SELECT payload FROM packets))")  # doctest: +SKIP
    """
    # A lake is read without Spark, too
    from msmqwire.spark.functions import decoder_udf, decoder_udtf, guid_text_udf
    from msmqwire.spark.source.datasource import registered

    for function, table in _FUNCTIONS.items():
        spark.udf.register(function, decoder_udf(table, form=form, mode=mode, guid=guid))
    for function, table in _TABLE_FUNCTIONS.items():
        spark.udtf.register(function, decoder_udtf(table, mode=mode, guid=guid))
    for function, order in _GUID_FUNCTIONS.items():
        spark.udf.register(function, guid_text_udf(form=form, mode=mode, order=order))
    if not _finds_data_source(spark):
        spark.dataSource.register(registered())


def _finds_data_source(spark: SparkSession) -> bool:
    """Return True if Spark finds the data source by itself: one that is registered runs with the executors' Python."""
    from pyspark.errors import PySparkException

    try:
        # Without a path it fails, if there is one
        _ = spark.read.format("msmq").load().schema
    except PySparkException as error:
        return "DATA_SOURCE_NOT_FOUND" not in str(error)
    return True
