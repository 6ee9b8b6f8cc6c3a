"""Spark sessions whose Python workers run the current interpreter and no file of the current folder."""

from __future__ import annotations

from msmqwire.errors import require

require("pyspark", "msmqwire.spark.session")

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from msmqwire.spark.executors import without_pandas_warning

__all__ = ["local_session", "start_session"]

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

    Workers do not import modules of the current folder, which may hold captures and files of strangers. Send your own
    modules with ``spark.addArtifacts("helper.py", pyfile=True)``, or put their folder into PYTHONPATH.

    Examples
    --------
    >>> spark = local_session(cores=2)  # doctest: +SKIP
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _show_checkout()
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return start_session(builder)


def start_session(builder: SparkSession.Builder, *, elsewhere: bool = False) -> SparkSession:
    """The session of a builder; no process that is started for it runs a file of the current folder.

    Spark starts workers as ``python -m pyspark.daemon``, and Python puts the current folder first on the path of such a
    process: a file ``json.py`` there would be executed. ``elsewhere`` is for a server of Spark Connect, which has its
    own settings.
    """
    if not elsewhere:
        builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", "1")
    # Workers print Spark's warning of pandas 3 as well; data source and functions here run with pandas 3
    warned = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), "ignore:PySpark does not yet:FutureWarning")))
    with environment({"PYTHONSAFEPATH": "1", "PYTHONWARNINGS": warned, **_spark_home()}), without_pandas_warning():
        return builder.getOrCreate()


@contextlib.contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _spark_home() -> dict[str, str]:
    """SPARK_HOME of this pyspark, unless it is set: pyspark would take the folder above the current one if it can."""
    package = Path(pyspark.__file__).parent
    for home in (package / "spark-distribution", package):
        if "SPARK_HOME" not in os.environ and (home / "bin" / "spark-submit").exists():
            return {"SPARK_HOME": str(home)}
    return {}


def _show_checkout() -> None:
    """Add a source checkout to the path of workers: Spark finds no data source of an editable install."""
    home = Path(__file__).parents[2]
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if home.name not in ("site-packages", "dist-packages") and str(home) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), *path)))
