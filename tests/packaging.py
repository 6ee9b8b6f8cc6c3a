"""Build sdist and wheel, install the wheel without the checkout, and decode an example: ``make package``.

The wheel is made from the sdist, so the sdist is complete. It is installed twice: with the lowest declared version of
each dependency, and with the newest. Two builds must be equal, byte for byte: both archives are packed twice, and the
extensions are compared with those that the checkout was built with.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "examples" / "other-site.pcapng"
# Spark has no wheel: its lowest version would take minutes to build
EXTRAS = ("tables", "compression", "remote", "net", "ldap", "routing")

CORE = """
import msmqwire
from msmqwire import mqsd
request = mqsd.decode(bytes.fromhex("0001") + bytes(50))
assert mqsd.encode(request) == bytes.fromhex("0001") + bytes(50)
assert mqsd.decode_batch([mqsd.encode(request)] * 3)["correlation_id"].shape == (3, 16)
print(msmqwire.__file__)
"""
EXTRA_MODULES = "import aiohttp, fsspec, ldap3, lz4.frame, psutil, scipy.sparse, msmqwire.net, msmqwire.routing"


def lowest_versions() -> list[str]:
    """The lowest declared version of numpy and of each dependency of the extras, as ``name==version``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *(requirement for extra in EXTRAS for requirement in extras[extra])]
    return sorted(set(_lowest(declared)))


def _lowest(requirements: list[str]) -> Iterator[str]:
    for requirement in requirements:
        found = re.match(r"([\w.-]+)>=([\w.]+)[^;]*(;.*)?$", requirement)
        if found is None:
            raise SystemExit(f"{requirement!r} has no lowest version")
        yield f"{found[1]}=={found[2]}{found[3] or ''}"


def run(folder: Path, *command: str | Path) -> str:
    """Run a command in a folder that holds no sources; its output."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    print("$", *command, flush=True)
    done = subprocess.run(command, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"failed with status {done.returncode}: {done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """Build sdist and wheel; the same sources and SOURCE_DATE_EPOCH give the same bytes, at any time and place."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1735689600")
    run(ROOT, sys.executable, "-m", "build", "--sdist", "--outdir", folder / "dist")
    (sdist,) = (folder / "dist").iterdir()
    shutil.unpack_archive(sdist, folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    run(sources, sys.executable, "-m", "build", "--wheel", "--outdir", folder / "dist")
    # Isolated once, as others build it: each time downloads and installs the requirements of the build
    run(ROOT, sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder / "again")
    # Its extensions are there, so this only packs them: in a new environment, Cython's declarations would be newer
    run(sources, sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "again")
    for archive in (folder / "dist").iterdir():
        assert archive.read_bytes() == (folder / "again" / archive.name).read_bytes(), archive.name
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        extensions = [name for name in packed.namelist() if name.endswith(".so")]
        assert extensions
        for name in extensions:
            assert packed.read(name) == (ROOT / name).read_bytes(), name
    return wheel


def environment(folder: Path, name: str, *requirements: str) -> Path:
    """A new environment with these packages; its folder of commands."""
    run(folder, sys.executable, "-m", "venv", name)
    commands = folder / name / "bin"
    install(folder, commands, *requirements)
    return commands


def install(folder: Path, commands: Path, *requirements: str) -> None:
    """Install packages; nothing is compiled, and Python compiles what the checks import."""
    pip = (commands / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--only-binary", ":all:")
    run(folder, *pip, *requirements)


def check_core(folder: Path, commands: Path) -> None:
    """Decode and encode with numpy alone."""
    location = Path(run(folder, commands / "python", "-c", CORE).strip())
    assert location.is_relative_to(commands.parent), location


def check_tables(folder: Path, commands: Path) -> None:
    """Decode an example to JSON and to Parquet."""
    lines = run(folder, "sh", "-c", f"{commands}/msmqwire decode {SAMPLE.name} --quiet || test $? = 2").splitlines()
    assert [json.loads(line)["frame"] for line in lines] == list(range(2, 12)), lines
    run(folder, "sh", "-c", f"{commands}/msmqwire decode {SAMPLE.name} --quiet -o rows.parquet || test $? = 2")
    count = "import pyarrow.parquet as p; print(p.read_table('rows.parquet').num_rows)"
    assert run(folder, commands / "python", "-c", count).strip() == "10"


def main() -> None:
    """Build, install, decode; any failure ends the program."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = str(build(folder))
        shutil.copy(SAMPLE, folder)

        lowest = lowest_versions()
        commands = environment(folder, "lowest", wheel, *(one for one in lowest if one.startswith("numpy==")))
        check_core(folder, commands)
        install(folder, commands, wheel, *lowest)
        check_tables(folder, commands)
        run(folder, commands / "python", "-c", EXTRA_MODULES)

        commands = environment(folder, "newest", f"{wheel}[{','.join(EXTRAS)}]")
        check_core(folder, commands)
        check_tables(folder, commands)
        run(folder, commands / "python", "-c", EXTRA_MODULES)
    print("sdist and wheel are complete, and two builds are equal; with", *lowest, "and with the newest versions")


if __name__ == "__main__":
    main()
