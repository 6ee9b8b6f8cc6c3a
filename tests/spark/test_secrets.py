"""Credentials in options are shown nowhere: not by ``repr``, plans, errors, or the event log of Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from msmqwire.capture import ReadOptions
from msmqwire.spark.lake.decoding import Decoding, SourceCalls
from msmqwire.spark.lake.planning import identify
from msmqwire.spark.lake.storage import Storage
from msmqwire.spark.source.options import SourceOptions
from msmqwire.spark.source.scan import ScanOptions
from tests.spark.captures import ROOT
from tests.system_programs import require_program

SECRET = "wJalrXUtnFEMI"
OPTIONS = {"secret_key": SECRET}


@pytest.mark.parametrize(
    "shown",
    [
        ReadOptions(storage_options=OPTIONS),
        ScanOptions(read=ReadOptions(guid="text", storage_options=OPTIONS)),
        SourceOptions.of({"path": "captures", "storageOptions": f'{{"secret_key": "{SECRET}"}}'}),
        Storage.of("s3://lake", OPTIONS),
        SourceCalls(identify, OPTIONS),
        Decoding(
            Storage.of("s3://lake", OPTIONS),
            ScanOptions(read=ReadOptions(guid="text", storage_options=OPTIONS)),
            "snappy",
            "done",
        ),
    ],
    ids=lambda shown: type(shown).__name__,
)
def test_repr(shown: object) -> None:
    assert SECRET not in f"{shown!r} {shown}"
    assert type(shown).__name__ in repr(shown)


def test_an_option_of_a_lake_that_json_cannot_hold() -> None:
    options: Any = {"secret_key": SECRET.encode()}
    storage = Storage.of("s3://lake", options)
    with pytest.raises(ValueError, match=r"^storage option 'secret_key' of type bytes has no form in JSON$"):
        storage.sizes(["x"])


QUERY = f"""
import json, sys
from msmqwire.spark.session import local_session

events = sys.argv[1]
settings = {{
    "spark.eventLog.enabled": "true", "spark.eventLog.dir": "file://" + events, "spark.eventLog.compress": "false",
    "spark.driver.memory": "1g",
}}
spark = local_session(cores=1, settings=settings)
options = json.dumps({{"secret_key": "{SECRET}"}})
reader = spark.read.format("msmq").option("storageOptions", options)
frame = reader.load("examples/other-site.pcapng")
frame.explain("extended")
print(frame.count(), "rows")
for wrong in ("nowhere.pcap", "README.md", "s3://captures/none.pcap"):
    try:
        reader.load(wrong).count()
    except Exception as error:
        print(type(error).__name__, error)
query = (
    spark.readStream.format("msmq").option("storageOptions", options).load("examples/other-site.pcapng")
    .writeStream.format("noop").trigger(availableNow=True).start()
)
query.awaitTermination()
print(query.lastProgress)
spark.stop()
"""


@pytest.mark.long
def test_plans_errors_and_event_logs(tmp_path: Path) -> None:
    require_program("java")
    command = [sys.executable, "-c", QUERY, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Physical Plan" in done.stdout
    assert done.stdout.count("Exception") >= 2
    assert SECRET not in done.stdout + done.stderr
    logs = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(b"SparkListenerJobEnd" in log for log in logs)
    assert not any(SECRET.encode() in log for log in logs)
