"""msmqwire on Spark: functions over payload columns, the data source ``msmq``, a pipeline from captures to tables.

``register(spark)`` makes them known to a session. Python needs it for nothing: ``spark.functions`` are functions, and
Spark finds ``format("msmq")`` by itself where this package is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from msmqwire.spark.functions import Form, decoder_udf, decoder_udtf, guid_text_udf
from msmqwire.spark.functions.decoder import FunctionMode
from msmqwire.spark.schema import SparkGuid
from msmqwire.spark.source.datasource import MsmqDataSource

if TYPE_CHECKING:
    from msmqwire.columns.guids import GuidOrder

__all__ = ["register"]

# Functions of SQL by the table whose columns they give
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
# Functions of SQL by the order of the bytes of their GUIDs
_GUID_FUNCTIONS: dict[str, GuidOrder] = {"msmq_guid_text": "text", "msmq_packet_guid_text": "packet"}


def register(
    spark: SparkSession,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    form: Form = "arrow",
) -> None:
    """Make the functions known to the SQL of this session, and the data source ``msmq`` where Spark did not find it.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    mode, guid, form
        Of the functions in SQL, which take no settings there; see ``functions.msmq_decode_topology``. With
        ``form="pandas"`` a null payload gives a struct of nulls where a function gives a struct. Table functions are
        Arrow table functions always.

    Examples
    --------
    >>> register(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT msmq_decode_topology(payload).request_id FROM packets")  # doctest: +SKIP
    >>> spark.sql("SELECT request_id FROM msmq_topology(TABLE(SELECT payload FROM packets))")  # doctest: +SKIP
    """
    for function, table in _FUNCTIONS.items():
        spark.udf.register(function, decoder_udf(table, form=form, mode=mode, guid=guid))
    for function, table in _TABLE_FUNCTIONS.items():
        spark.udtf.register(function, decoder_udtf(table, mode=mode, guid=guid))
    for function, order in _GUID_FUNCTIONS.items():
        spark.udf.register(function, guid_text_udf(form=form, mode=mode, order=order))
    spark.dataSource.register(MsmqDataSource)
