"""A Spark session on this machine, for those who have no cluster to ask for one."""

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
    # Tables of this size need no 200 partitions after a shuffle
    "spark.sql.shuffle.partitions": "4",
    # Scalar functions over Parquet run 1.3 to 1.8 times faster without it
    "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
}


def local_session(
    name: str = "msmqwire", *, cores: int | str = "*", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """A session on ``local[cores]`` whose Python workers run this very interpreter.

    Spark would start whatever ``python3`` is first on the path, which is not that of a virtual environment unless it
    was activated. ``settings`` are Spark's and win over the ones chosen here.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _show_checkout()
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _show_checkout() -> None:
    """Put a checkout on the path of workers.

    Spark looks for data sources in the folders of the path, and an editable install is in none.
    """
    home = Path(__file__).parents[2]
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home.name not in ("site-packages", "dist-packages") and str(home) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), *path)))
