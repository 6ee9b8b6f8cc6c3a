"""Build sdist and wheel, and use the wheel as those who install it do, without the checkout: ``make package``.

The wheel is made from the sdist, so the sdist is complete. Two builds must be equal, byte for byte: both archives are
packed twice, and every file is compared with that of the checkout, whose extensions were built before. The programs of
``tests/installed.py`` run in environments with the lowest declared version of each dependency, with no extra, and with
each extra; then every subcommand, every example of the manual and the short tests of what reads files of the package
run with all extras, in the folder that the sdist becomes without the package. The other tests would read the bytes that
they have read in the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

from msmqwire.cli import SUBCOMMANDS
from tests import installed

ROOT = Path(__file__).parent.parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
LOCK = str(ROOT / "requirements.lock")
# Spark has no wheel: its lowest version would take minutes to build
LOWEST = sorted(installed.EXTRAS.keys() - {"spark"})
UV = Path(sys.executable).with_name("uv")
# As in the Makefile, so that the wheel that uv has built there serves here
SPARK = ("--config-settings-package", "pyspark:--build-option=--compression=stored")
# Of what reads files of the package: queries, charts, the dissector; and of processes that import it
SHORT_TESTS = ("insight", "cli/test_start.py", "cli/test_sql.py", "spark/test_query_filters.py")


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    """Run a command in a folder that holds no sources; its output."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    print("$", *command, flush=True)
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"failed with status {done.returncode}: {done.stdout}")
    return done.stdout


def build(folder: Path) -> Path:
    """Build sdist and wheel; the same sources and SOURCE_DATE_EPOCH give the same bytes, at any time and place."""
    os.environ.setdefault("SOURCE_DATE_EPOCH", "1735689600")
    # Others build it with the newest Cython; the extensions that are compared here have that of the lock
    isolated = (sys.executable, "-m", "build", "--installer", "uv")
    run(ROOT, *isolated, "--sdist", "--outdir", folder / "dist", UV_CONSTRAINT=LOCK)
    (sdist,) = (folder / "dist").iterdir()
    shutil.unpack_archive(sdist, folder / "sources", filter="data")
    (sources,) = (folder / "sources").iterdir()
    run(sources, *isolated, "--wheel", "--outdir", folder / "dist", UV_CONSTRAINT=LOCK)
    # Isolated once, as others build it: each time downloads and installs the requirements of the build
    run(ROOT, sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder / "again")
    # Its extensions are there, so this only packs them: in a new environment, Cython's declarations would be newer
    run(sources, sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder / "again")
    for archive in (folder / "dist").iterdir():
        assert archive.read_bytes() == (folder / "again" / archive.name).read_bytes(), archive.name
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        files = [name for name in packed.namelist() if ".dist-info/" not in name]
        assert any(name.endswith(".so") for name in files)
        for name in files:
            assert packed.read(name) == (ROOT / name).read_bytes(), name
    return wheel


def check_archives(folder: Path, wheel: Path) -> None:
    """The sdist has every file of the repository; what the image copies becomes the same wheel, but for extensions."""
    if (ROOT / ".git").exists():
        run(ROOT, sys.executable, "-m", "check_manifest", "--no-build-isolation")
    image = folder / "image"
    image.mkdir()
    (sources,) = (folder / "sources").iterdir()
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    for name in " ".join(copied).split():
        copy = shutil.copytree if (sources / name).is_dir() else shutil.copyfile
        copy(sources / name, image / name)
    build = (UV, "build", "--wheel", "--quiet", "--no-build-isolation")
    run(
        image, *build, MSMQWIRE_BUILD="none", VIRTUAL_ENV=sys.prefix, MSMQWIRE_REPOSITORY="https://example.org/msmqwire"
    )
    (made,) = (image / "dist").glob("*.whl")
    with zipfile.ZipFile(made) as made_here, zipfile.ZipFile(wheel) as packed:
        (metadata,) = (made_here.read(name).decode() for name in made_here.namelist() if name.endswith("/METADATA"))
        files = [{name for name in each.namelist() if not name.endswith(".so")} for each in (made_here, packed)]
    assert files[0] == files[1], files[0] ^ files[1]
    # Links of README are complete on the page of a registry, where it has no other files
    assert "Project-URL: Repository, https://example.org/msmqwire\n" in metadata
    assert re.findall(r"\]\((?!https://)[^)]+\)", metadata) == []
    assert "](https://example.org/msmqwire/raw/HEAD/docs/report.png)" in metadata


def environment(folder: Path, name: str, *requirements: str) -> Path:
    """A new environment with these packages; its folder of commands."""
    run(folder, UV, "venv", "--quiet", "--no-project", "--python", sys.executable, name)
    if requirements:
        install(folder, folder / name / "bin", "--constraint", LOCK, *requirements)
    return folder / name / "bin"


def install(folder: Path, commands: Path, *requirements: str) -> None:
    """Install packages into an environment."""
    run(folder, UV, "pip", "install", "--quiet", "--python", commands / "python", *SPARK, *requirements)


def check(folder: Path, commands: Path, program: str) -> str:
    """Run a program of ``tests/installed.py`` with the commands of the environment; its output."""
    return run(folder, "bash", "-euo", "pipefail", "-c", program, PATH=f"{commands}:{os.environ['PATH']}")


def check_missing(folder: Path, commands: Path, extra: str) -> None:
    """Without the extra, what needs it ends with one line that names it."""
    done = check(folder, commands, f"({installed.MISSING[extra]}) 2>&1 || test $? != 0")
    assert f"msmqwire[{extra}]" in done.splitlines()[-1], (extra, done)


def check_lowest(folder: Path, wheel: Path) -> None:
    """The lowest declared versions of numpy and of the dependencies of extras are enough.

    Of versions that have a wheel for this Python: others would be built from their sources.
    """
    commands = environment(folder, "lowest")
    lowest = ("--only-binary", ":all:", "--resolution", "lowest-direct", "--requirement", str(ROOT / "pyproject.toml"))
    install(folder, commands, *lowest)
    install(folder, commands, "--no-deps", str(wheel))
    check(folder, commands, installed.CORE)
    install(folder, commands, *lowest, *(f"--extra={extra}" for extra in LOWEST))
    for extra in LOWEST:
        if extra != "lake":
            check(folder, commands, installed.EXTRAS[extra])


def check_extras(folder: Path, wheel: Path) -> None:
    """The wheel alone, and with each extra."""
    commands = environment(folder, "alone", str(wheel))
    location = Path(run(folder, commands / "python", "-c", "import msmqwire; print(msmqwire.__file__)").strip())
    assert location.is_relative_to(commands.parent), location
    check(folder, commands, installed.CORE)
    check_missing(folder, commands, "tables")
    for extra, program in installed.EXTRAS.items():
        commands = environment(folder, f"with-{extra}", f"{wheel}[{extra}]")
        check(folder, commands, program)
        if extra == "tables":
            for other in installed.MISSING.keys() - {"tables"}:
                check_missing(folder, commands, other)


def check_everything(folder: Path, wheel: Path) -> None:
    """Each subcommand, the examples of the manual, and tests, with all extras."""
    commands = environment(folder, "everything", f"{wheel}[test]")
    for program in installed.SUBCOMMANDS.values():
        check(folder, commands, program)
    (sources,) = (folder / "sources").iterdir()
    for package in ("msmqwire", "pyspark_msmq"):
        shutil.rmtree(sources / package)
    pytest = (commands / "python", "-m", "pytest", "--numprocesses", "auto", "--dist", "loadfile", "-q")
    # What docs/generate.py reads of the package is in its sources alone
    generated = "tests/test_documentation.py::test_generated_pages_are_up_to_date"
    run(sources, *pytest, "tests/test_documentation.py", "--deselect", generated)
    run(sources, *pytest, "-m", "not long", *(f"tests/{name}" for name in SHORT_TESTS))


def main() -> None:
    """Build, install, use; any failure ends the program."""
    assert installed.SUBCOMMANDS.keys() == SUBCOMMANDS.keys()
    users = {*DECLARED, "test"} - {"bench", "fuzz", "lint", "maintain", "manual", "package", "test", "all"}
    assert installed.EXTRAS.keys() == installed.MISSING.keys() == users
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder)
        shutil.copytree(ROOT / "examples", folder / "examples")
        check_archives(folder, wheel)
        check_lowest(folder, wheel)
        check_extras(folder, wheel)
        check_everything(folder, wheel)
    print("sdist and wheel are complete, two builds are equal, and what they install works")


if __name__ == "__main__":
    main()
