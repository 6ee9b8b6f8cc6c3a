"""msmqwire on Spark: functions over payload columns, the data source ``msmq``, a pipeline from captures to tables.

``register(spark)`` makes them known to a session. ``spark.functions`` needs no registration from Python.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from msmqwire.spark.functions import Form, FunctionMode, decoder_udf
from msmqwire.spark.schema import SparkGuid

__all__ = ["register"]


def register(
    spark: SparkSession,
    *,
    mode: FunctionMode = "PERMISSIVE",
    guid: SparkGuid = "text",
    form: Form = "arrow",
) -> None:
    """Make the functions known to the SQL of this session.

    Parameters
    ----------
    spark : SparkSession
        Classic or Connect.
    mode, guid, form
        Of the functions in SQL, which take no settings there; see ``functions.msmq_decode_topology``. With
        ``form="pandas"`` a null payload gives a struct of nulls.

    Examples
    --------
    >>> register(spark)  # doctest: +SKIP
    >>> spark.sql("SELECT msmq_decode_topology(payload).request_id FROM packets")  # doctest: +SKIP
    """
    spark.udf.register("msmq_decode_topology", decoder_udf("topology", form=form, mode=mode, guid=guid))
