"""What an executor says that lacks this package, or has another version of it."""

from __future__ import annotations

import gc
import json
import re
import site
import subprocess
import sys
import venv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pandas
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import msmqwire
from msmqwire.spark import pipeline
from msmqwire.spark.executors import cloudpickle, sent
from msmqwire.spark.functions import decode_frame, decoder_udf, guid_text_udf
from msmqwire.spark.functions.decoder import Decoder, GuidFormatter, TableFunction
from msmqwire.spark.functions.pandas_forms import pandas_body
from msmqwire.spark.source.datasource import MsmqDataSource, registered
from msmqwire.spark.streams import read_streams
from tests.spark.captures import ROOT, SESSION
from tests.spark.submit import HOME, spark_submit

OTHER = "0.0.9"
LOAD = "import pickle, sys; sys.path[:0] = sys.argv[1:]; pickle.load(sys.stdin.buffer)"


def said(found: str) -> str:
    return (
        rf"ImportError: the driver has msmqwire {msmqwire.__version__}, and \S+ on \S+ has {found}: send executors an "
        r"environment with the version of the driver \(--archives; docs/spark\.md says how\)"
    )


def other_version(folder: Path) -> Path:
    """A folder with a package that says it is of another version."""
    (folder / "msmqwire").mkdir(parents=True)
    (folder / "msmqwire" / "__init__.py").write_text(f'__version__ = "{OTHER}"\n')
    return folder


def sent_objects() -> dict[str, Any]:
    """What Spark pickles, by its use."""
    decoder = Decoder("topology")
    source = MsmqDataSource({"path": str(ROOT / "examples")})
    return {
        "function": sent(decoder.arrow),
        "table function": TableFunction(decoder, ()).handler,
        "text of GUIDs": sent(GuidFormatter().arrow),
        "pandas function": sent(pandas_body(decoder)),
        "pandas text of GUIDs": sent(pandas_body(GuidFormatter())),
        "data source": source.reader(source.schema()),
        "registered data source": registered(),
        "stream": source.streamReader(source.schema()),
    }


@pytest.mark.long
@pytest.mark.parametrize(("version", "found"), [(None, "no msmqwire"), (OTHER, f"msmqwire {OTHER}")])
def test_objects_are_refused(tmp_path: Path, version: str | None, found: str) -> None:
    """In a process that has nothing but the standard library and PySpark."""
    path = [str(HOME.parent)] if version is None else [str(other_version(tmp_path)), str(HOME.parent)]
    for use, one in sent_objects().items():
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", LOAD, *path],
            input=cloudpickle.dumps(one),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 1, use
        assert re.fullmatch(said(found), done.stderr.decode().splitlines()[-1]), use


def test_spark_does_not_warn_of_pandas(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does so of version 3, with which functions of all forms, frames, streams and the pipeline work."""
    monkeypatch.setattr(pandas, "__version__", "3.0.0")
    payloads = spark.createDataFrame([(b"payload",)], "payload binary")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "PySpark does not yet", FutureWarning)
        forms: tuple[Literal["arrow", "pandas"], ...] = ("arrow", "pandas")
        for form in forms:
            payloads.select(decoder_udf("topology", form=form)("payload"), guid_text_udf(form=form)("payload"))
        decode_frame(payloads, "payload", "topology")
        read_streams(spark, SESSION)
        pipeline.run(spark, SESSION, tmp_path / "lake")


def test_workers_do_not_walk_the_package_after_each_task(spark: SparkSession) -> None:
    """Spark's workers collect garbage then; the modules that a task has imported are left out."""
    payloads = spark.createDataFrame([(b"payload",)], "payload binary")
    decode_frame(payloads, "payload", "topology").collect()

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"frozen": [gc.get_freeze_count()]})

    counts = spark.range(0, 8, 1, 1).mapInArrow(count, "frozen long").collect()
    assert min(row.frozen for row in counts) > 10_000


JOB = """
import json, sys
from msmqwire.spark import lake, pipeline, register
from msmqwire.spark.functions import decode_frame, msmq_decode_topology
from msmqwire.spark.source.datasource import registered
from msmqwire.spark.streams import read_streams
from pyspark.sql import SparkSession

captures, folder = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
sources = spark.dataSource
payloads = spark.createDataFrame([(b"payload",)], "payload binary")
payloads.createOrReplaceTempView("payloads")
work = {
    "function": lambda: payloads.select(msmq_decode_topology("payload")).collect(),
    "frame": lambda: decode_frame(payloads, "payload", "topology").collect(),
    "data source": lambda: [sources.register(registered()), spark.read.format("msmq").load(captures).collect()],
    "SQL": lambda: [register(spark), spark.sql("SELECT * FROM msmq_topology(TABLE(payloads))").collect()],
    "streams": lambda: read_streams(spark, captures).collect(),
    "pipeline": lambda: pipeline.run(spark, captures, folder),
}
for use, run in work.items():
    try:
        run()
    except Exception as error:
        print(json.dumps([use, str(error)]))
"""


@pytest.mark.long
def test_executors_of_a_cluster(tmp_path: Path) -> None:
    """Driver and executor are the same Python, whose paths have other versions of the package.

    ``test_objects_are_refused`` is about an executor without the package, too.
    """
    directory = tmp_path / "environment"
    venv.create(directory, symlinks=True)
    (packages,) = directory.glob("lib/python*/site-packages")
    # Of a folder that is named there, the files that name this checkout are not read
    packages.joinpath("packages.pth").write_text("\n".join(site.getsitepackages()))
    job = tmp_path / "job.py"
    job.write_text(JOB)
    path = other_version(tmp_path / "path")
    settings = ("--master=local-cluster[1,1,1024]", f"--conf=spark.executorEnv.PYTHONPATH={path}")
    arguments = (job, f"{ROOT}/examples/*.pcap*", tmp_path / "lake")
    variables = {"PYSPARK_PYTHON": str(directory / "bin" / "python")}
    with spark_submit(*settings, *map(str, arguments), directory=tmp_path, variables=variables) as run:
        output, _ = run.communicate(timeout=600)
    assert run.returncode == 0, output
    errors = dict(json.loads(line) for line in output.splitlines() if line.startswith("["))
    assert list(errors) == ["function", "frame", "data source", "SQL", "streams", "pipeline"]
    for use, error in errors.items():
        assert len(re.findall(said(f"msmqwire {OTHER}"), error)) >= 1, (use, error)
