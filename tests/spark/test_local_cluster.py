"""``spark-submit`` to a cluster of two executors, each a process of its own with its own workers."""

from __future__ import annotations

import json
from pathlib import Path

from tests.spark.submit import ROOT, spark_submit


def test_a_job_on_two_executors(tmp_path: Path) -> None:
    job = str(Path(__file__).with_name("cluster_job.py"))
    arguments = ("--master=local-cluster[2,1,1024]", job, f"{ROOT}/examples/*.pcap*", str(tmp_path / "lake"))
    with spark_submit(*arguments, directory=tmp_path) as run:
        output, _ = run.communicate(timeout=600)
    assert run.returncode == 0, output
    counts = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    assert counts == {"executors": 2, "functions": 100, "rows": 200, "read": 14, "pipeline": 39}
