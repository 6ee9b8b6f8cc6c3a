"""Write the archive for the executors of a Spark cluster: an environment with msmqwire, without Spark, DuckDB and rich.

python examples/cluster_archive.py [ARCHIVE]

It has the packages that are installed for the Python that runs this script. ``make cluster`` runs it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

# What tasks import: functions, data source and pipeline; deltalake for lakes at a URI
NEEDED = ("numpy", "pandas", "pyarrow", "deltalake")
# Captures that are compressed by these
OPTIONAL = ("lz4", "backports.zstd")
OURS = ("msmqwire", "pyspark_msmq")
# Parts of packages that are not imported
UNUSED = {"..", "include", "tests", "__pycache__"}
SOURCES = shutil.ignore_patterns("*.c", "*.h", "*.html", "*.pxd", "*.pyi", "*.pyx", "__pycache__")


def with_requirements(names: list[str]) -> Iterator[str]:
    """The distributions with these names, and the installed ones that they require."""
    waiting, seen = list(names), set[str]()
    while waiting:
        if (name := waiting.pop()) in seen or not is_installed(name):
            continue
        seen.add(name)
        yield name
        # Such as "numpy>=1.26.0; python_version < '3.14'"
        requires = (one for one in distribution(name).requires or () if "extra ==" not in one)
        waiting += filter(None, (re.match(r"[\w.-]*", one)[0] for one in requires))  # type: ignore[index]


def copy_files(name: str, site: Path) -> None:
    """Copy the files of an installed distribution."""
    found = distribution(name)
    for file in map(Path, found.files or ()):
        source, target = Path(str(found.locate_file(str(file)))), site / file
        if UNUSED.isdisjoint(file.parts) and source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def is_installed(name: str) -> bool:
    """True if there is such a distribution."""
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


parser = argparse.ArgumentParser(description="Write the archive for the executors of a Spark cluster.")
parser.add_argument("archive", nargs="?", default="cluster.tar.gz", help="default: cluster.tar.gz")
archive = Path(parser.parse_args().archive)

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    packages = sorted(with_requirements([*NEEDED, *OPTIONAL]))
    for package in packages:
        copy_files(package, site)
    for package in OURS:
        # Of an editable install the list of files has none of them
        spec = find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        shutil.copytree(spec.submodule_search_locations[0], site / package, ignore=SOURCES)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz", compresslevel=6) as packed:
        packed.add(folder, ".")
print(f"{archive}: {archive.stat().st_size / 1e6:.0f} MB: {', '.join([*OURS, *packages])}")
for package in (*NEEDED, *OPTIONAL):
    if package not in packages:
        print(f"without {package}, which is not installed")
