"""``spark-submit`` of a packed environment to two executors, processes that have nothing else of this package."""

from __future__ import annotations

import json
import shutil
import venv
from collections.abc import Iterator
from importlib.metadata import distribution
from importlib.util import cache_from_source
from pathlib import Path

import pytest
import venv_pack
from packaging.requirements import Requirement

from tests.spark.captures import ROOT
from tests.spark.submit import spark_submit

pytestmark = pytest.mark.long

#: Of distributions: scripts, and what nobody imports
UNUSED = {"..", "include", "tests"}


def copy_distribution(name: str, site: Path) -> None:
    """Put into ``site`` what an installer would: a distribution that is installed here, and what it requires."""
    found = distribution(name)
    home = Path(str(found.locate_file("")))
    for file in map(Path, found.files or ()):
        # pip lists what it has compiled, and not what Python has
        for part in {file, Path(cache_from_source(str(file)))} if file.suffix == ".py" else {file}:
            source, target = home / part, site / part
            if source.exists() and not target.exists() and UNUSED.isdisjoint(file.parts):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)
    for requirement in map(Requirement, found.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            copy_distribution(requirement.name, site)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[Path]:
    """A virtual environment as docs/spark.md has it made: this package and what it needs, and no Spark."""
    directory = tmp_path / "cluster"
    venv.create(directory, symlinks=True)
    (site,) = directory.glob("lib/python*/site-packages")
    for name in ("numpy", "pyarrow", "pandas", "deltalake"):
        copy_distribution(name, site)
    for package in ("msmqwire", "pyspark_msmq"):
        shutil.copytree(ROOT / package, site / package, ignore=shutil.ignore_patterns("*.c"))
    yield directory
    # Hundreds of megabytes
    for folder in tmp_path.iterdir():
        shutil.rmtree(folder, ignore_errors=True)


def test_a_job_on_two_executors(environment: Path, tmp_path: Path) -> None:
    archive = tmp_path / "cluster.tar.gz"
    venv_pack.pack(str(environment), output=str(archive), compress_level=0)
    job = Path(__file__).with_name("cluster_job.py")
    arguments = (job, f"{ROOT}/examples/*.pcap*", tmp_path / "lake")
    variables = {
        "PYTHONPATH": "",
        "PYSPARK_DRIVER_PYTHON": str(environment / "bin" / "python"),
        "PYSPARK_PYTHON": "./environment/bin/python",
    }
    sent = ("--master=local-cluster[2,1,1024]", f"--archives={archive}#environment")
    with spark_submit(*sent, *map(str, arguments), directory=tmp_path, variables=variables) as run:
        output, _ = run.communicate(timeout=600)
    assert run.returncode == 0, output
    counts = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    assert counts == {"executors": 2, "functions": 100, "rows": 200, "read": 14, "pipeline": 39}
