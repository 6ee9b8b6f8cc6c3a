"""msmqwire on Spark: functions over payload columns, the data source ``msmq``, a pipeline from captures to tables.

``register(spark)`` makes them known to a session. Python needs it for nothing: ``spark.functions`` are functions, and
Spark finds ``format("msmq")`` by itself where this package is installed.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from msmqwire.spark.datasource import MsmqDataSource
from msmqwire.spark.functions import Form, FunctionMode, decoder_udf
from msmqwire.spark.schema import SparkGuid

__all__ = ["register"]

_FUNCTIONS = {
    "msmq_decode_topology": "topology",
    "msmq_decode_notification": "notifications",
    "msmq_parse_format_name": "format_names",
}


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
        ``form="pandas"`` a null payload gives a struct of nulls where a function gives a struct.

    Examples
    --------
    >>> register(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT msmq_decode_topology(payload).request_id FROM packets")  # doctest: +SKIP
    """
    for function, table in _FUNCTIONS.items():
        spark.udf.register(function, decoder_udf(table, form=form, mode=mode, guid=guid))
    spark.dataSource.register(MsmqDataSource)
