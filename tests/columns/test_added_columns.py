"""A field that is added to a schema has a column, or is noticed when the package is imported.

Columns that rows written by hand lack would show what their memory held before: the rows of another capture.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.columns.processes import ROOT


def added(type_: str, at: int, about: str) -> str:
    """The row of a field at a place where there is another, with a column."""
    column = f'Column("added", {type_.replace("u", "UINT")}, "{about}")'
    return f'            WireField("Added", "{type_}", {at}, column={column}),\n'


#: Of each protocol: a line of its schema, the field that is added before it, and what the built package prints: the
#: column of the samples of the protocol, or the error of its import.
ADDED = {
    "requests": (
        "mqsd",
        '            WireField("RequestID", "guid", 20,',
        added("u32", 8, "the second number of EnterpriseID"),
        "[134678021, None, 134678021, None]",
    ),
    "replies": (
        "mqsd",
        '            WireField(\n                "ConnectedNetworkMask", "u32", 24',
        added("u32", 20, "ConnectedNetworkCount"),
        "[None, 1, None, 1]",
    ),
    "sites": (
        "mqsd",
        '            WireField("DirectoryServiceServerArray"',
        added("u32", 8, "the third number of RespondingSiteID"),
        "[None, 741026345, None, None]",
    ),
    "updates": (
        "mqcn",
        '            WireField("GuidMasterId", "guid", 0,',
        added("u32", 0, "the first number of GuidMasterId"),
        "NotificationDecoder does not write the columns added of notifications",
    ),
}


def with_field(folder: Path, protocol: str, line: str, field: str) -> None:
    """Copy the package and what builds it to ``folder``, and add a field to a schema there."""
    for name in ("msmqwire", "build"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.py", "pyproject.toml", "declarations.py", "stubs.py", "README.md"):
        shutil.copy2(ROOT / name, folder / name)
    schema = folder / "msmqwire" / protocol / "schema.py"
    text = schema.read_text("utf-8")
    assert text.count(line) == 1
    schema.write_text(text.replace(line, field + line), "utf-8")


def imported(folder: Path, protocol: str) -> str:
    """The last line that is printed when the column of the samples of a protocol is decoded in ``folder``."""
    program = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); from msmqwire.{protocol}._batch import SAMPLES, decode_batch"
        "; print(decode_batch(SAMPLES).to_arrow()['added'].to_pylist())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_a_schema_that_was_not_built_is_refused(tmp_path: Path) -> None:
    """Its columns have no place in the structures of the kernel."""
    protocol, line, field, _ = ADDED["requests"]
    with_field(tmp_path, protocol, line, field)
    assert imported(tmp_path, protocol).endswith("the kernel of topology was built for other columns: run make build")


@pytest.mark.long
@pytest.mark.parametrize("place", ADDED)
def test_a_field_that_is_added_has_a_column_or_is_refused(tmp_path: Path, place: str) -> None:
    protocol, line, field, expected = ADDED[place]
    with_field(tmp_path, protocol, line, field)
    for program in ("declarations.py", "setup.py build_ext --inplace"):
        command = [sys.executable, *program.split()]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    assert imported(tmp_path, protocol).endswith(expected)
