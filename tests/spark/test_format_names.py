"""The function over format names, in SQL and in Python, as Arrow and as pandas UDF, against the reference."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from msmqwire import spark as msmq
from msmqwire.formatname import FORMAT_NAMES
from msmqwire.spark.functions import msmq_parse_format_name
from tests.formatname.answers import of_reference
from tests.reference.formatname_cases import GUID, NAMES, PATH_NAMES, cases
from tests.spark.rows import as_dicts, spark_value

FORMS = ("arrow", "pandas")
LIST = f"DIRECT=OS:server\\orders,PUBLIC={GUID}"


def text_frame(spark: SparkSession, texts: list[str | None]) -> DataFrame:
    return spark.createDataFrame(list(enumerate(texts)), "row int, text string").repartition(2)


def parsed(frame: DataFrame, **settings: Any) -> list[dict[str, Any] | None]:
    names = frame.select("row", msmq_parse_format_name("text", **settings).alias("name"))
    return [row["name"] for row in as_dicts(names.orderBy("row"))]


def expected(text: str | None, guid: str = "text", **options: bool) -> dict[str, Any] | None:
    """The row of the table that the reference's answer calls for."""
    if text is None:
        return None
    answer = of_reference(text, **options)
    row: dict[str, Any] = dict.fromkeys(FORMAT_NAMES.names)
    if isinstance(answer, tuple):
        row["fault"] = dict(zip(("code", "field", "offset"), answer, strict=True))
    elif len(answer) > 1:
        row.update(kind="multiple_element", elements=text.split(","))
    else:
        row.update(answer[0])
    return {column: spark_value(value, guid) for column, value in row.items()}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("settings", [{}, {"guid": "binary"}], ids=str)
def test_names_are_the_rows_of_the_reference(spark: SparkSession, form: str, settings: dict[str, Any]) -> None:
    texts = [text for text in (*NAMES, None, "", *cases(500, seed=91)) if text is None or text.isprintable()]
    assert parsed(text_frame(spark, texts), form=form, **settings) == [expected(text, **settings) for text in texts]


@pytest.mark.parametrize("form", FORMS)
def test_the_switches_reach_the_workers(spark: SparkSession, form: Any) -> None:
    frame = text_frame(spark, list(NAMES))
    options = {"extended": True, "http_slashes": True, "spx": True}
    assert parsed(frame, form=form, **options) == [expected(text, **options) for text in NAMES]
    paths = text_frame(spark, list(PATH_NAMES))
    assert parsed(paths, form=form, path_names=True) == [expected(text, path_names=True) for text in PATH_NAMES]


@pytest.mark.parametrize("form", FORMS)
def test_names_in_sql(spark: SparkSession, form: Any) -> None:
    msmq.register(spark, form=form)
    text_frame(spark, [LIST, "DIRECT=OS:server\\orders;JOURNAL", "PUBLIC=?"]).createOrReplaceTempView("names")
    rows = spark.sql(
        "SELECT name.kind, name.queue, name.suffix, size(name.elements) AS elements, name.fault.offset FROM"
        " (SELECT row, msmq_parse_format_name(text) AS name FROM names) ORDER BY row"
    )
    assert [tuple(row) for row in rows.collect()] == [
        ("multiple_element", None, None, 2, None),
        ("direct", "orders", "journal", None, None),
        (None, None, None, None, 7),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_failfast_shows_the_text(spark: SparkSession, form: Any) -> None:
    frame = spark.createDataFrame([(text,) for text in (LIST, None, "PUBLIC=é")], "text string").coalesce(1)
    names = frame.select(msmq_parse_format_name(col("text"), form=form, mode="FAILFAST", columns=["kind"]))
    with pytest.raises(PythonException) as caught:
        names.collect()
    assert "bad_text: QueueGuid at byte 7: row 2 of its partition, 'PUBLIC=é'" in str(caught.value)
