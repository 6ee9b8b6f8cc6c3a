"""The commands of the manual that send this package to a cluster, in a clone: its executors have only the archive."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import site
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.spark.captures import ROOT
from tests.system_programs import JAVA_OPTIONS, require_program

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SPARK = Path(pyspark.__file__).parent
SECTIONS = (("spark.md", "Sending msmqwire to a cluster"), ("spark.md", "Files of the current folder"))
UNUSED = (".*", "__pycache__", "build", "fuzz", "benchmarks", "tests", "*.c")


def commands(page: str, section: str) -> str:
    """The commands of the console block of a section."""
    text = (ROOT / "docs" / page).read_text("utf-8").split(f"# {section}\n")[1].split("\n#")[0]
    (block,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return re.sub(r"^\$ ", "", block, flags=re.MULTILINE)


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """A clone after ``make run``: its environment has the packages of this one, and the extensions are built."""
    for program in ("java", "make"):
        require_program(program)
    clone = tmp_path / "clone"
    shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*UNUSED))
    home = clone / ".venv"
    venv.create(home, symlinks=True)
    (packages,) = home.glob("lib/python*/site-packages")
    packages.joinpath("packages.pth").write_text("\n".join([str(clone), *site.getsitepackages()]))
    # A cluster on this machine leaves its files in Spark's home
    packages.joinpath("pyspark").mkdir()
    for entry in SPARK.iterdir():
        if entry.name != "work":
            packages.joinpath("pyspark", entry.name).symlink_to(entry)
    for entry in (*SPARK.glob("bin/*"), SPARK / "find_spark_home.py"):
        if not (home / "bin" / entry.name).exists():
            (home / "bin" / entry.name).symlink_to(entry)
    # In the order in which make makes them
    for name in ("venv", "build-release", "built", "spark", "compression"):
        (home / "done" / name).parent.mkdir(exist_ok=True)
        (home / "done" / name).touch()
    yield clone
    # Hundreds of megabytes
    shutil.rmtree(clone)


def test_the_commands_of_the_manual_in_a_clone(clone: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    job = shutil.copy(Path(__file__).with_name("cluster_job.py"), tmp_path / "jobs")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
    }
    sent = ["--master 'local-cluster[2,1,1024]'", *(f"--conf '{name}={value}'" for name, value in settings.items())]
    script = "set -e\n"
    for number, (page, section) in enumerate(SECTIONS):
        text = commands(page, section)
        assert "--master spark://..." in text
        text = text.replace("--master spark://...", " ".join(sent))
        arguments = f"'{clone}/examples/*.pcap*' '{tmp_path}/lake-{number}'"
        script += re.sub(r" job\.py$", f" {job} {arguments}", text, flags=re.MULTILINE)
    ours = ("SPARK_HOME", "PYTHONPATH", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "VIRTUAL_ENV", "MAKEFLAGS")
    variables = {name: value for name, value in os.environ.items() if name not in ours}
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=clone,
        env=variables | {"SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as run:
        try:
            output, _ = run.communicate(timeout=840)
        finally:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGTERM)
    assert run.returncode == 0, output
    counts = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert counts == [{"executors": 2, "functions": 100, "rows": 200, "read": 14, "pipeline": 39}] * len(SECTIONS)
    (size,) = re.findall(r"cluster\.tar\.gz: (\d+) MB", output)
    (said,) = re.findall(r"archive has about (\d+) MB", (ROOT / "docs" / "spark.md").read_text("utf-8"))
    assert 0.75 <= int(size) / int(said) <= 1.25
    with_spark = re.findall(r"pyspark\b(?!_msmq)|duckdb|\brich\b", output.partition(" MB: ")[2].partition("\n")[0])
    assert not with_spark
