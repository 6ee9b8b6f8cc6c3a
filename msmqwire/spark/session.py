"""A Spark session on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

__all__ = ["local_session"]

_SETTINGS = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # 200 partitions after a shuffle are too many for one machine
    "spark.sql.shuffle.partitions": "4",
    # Scalar functions over Parquet run 1.3 to 1.8 times faster without it
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}


def local_session(
    name: str = "msmqwire", *, cores: int | str = "*", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A Spark session on ``local[cores]`` whose Python workers run the current interpreter.

    By default Spark starts the first ``python3`` on the path, which in a virtual environment that was not activated is
    another one. ``settings`` are settings of Spark; they override the settings chosen here.

    Examples
    --------
    >>> spark = local_session(cores=2)  # doctest: +SKIP
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _show_checkout()
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _show_checkout() -> None:
    """Add a source checkout to the path of workers: Spark finds no data source of an editable install."""
    home = Path(__file__).parents[2]
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home.name not in ("site-packages", "dist-packages") and str(home) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), *path)))
