"""After ``import msmqwire`` every documented package is there, and loaded when it is used."""

from __future__ import annotations

import re
from pathlib import Path

import msmqwire
from tests.columns.processes import run
from tests.layers import FLOOR

PAGES = [*(Path(__file__).parent.parent / "docs").glob("*.md"), Path(__file__).parent.parent / "README.md"]

LOADED = """
import sys
import msmqwire

before = {name for name in sys.modules if name.startswith("msmqwire.")}
packages = [name for name in dir(msmqwire) if not name.startswith("_") and name[0].islower()]
assert not before, before
assert not {"numpy", "pyarrow", "pyspark"} & {*sys.modules}
print(*packages)
for name in packages:
    assert getattr(msmqwire, name) is sys.modules[f"msmqwire.{name}"], name
assert not {"pyspark", "duckdb", "deltalake", "ldap3"} & {*sys.modules}
"""


def test_each_package_that_the_manual_names_is_reachable() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    imported = {name for line in re.findall(r"from msmqwire import ([\w, ]+)", text) for name in line.split(", ")}
    imported |= {*re.findall(r"(?:from|import) msmqwire\.(\w+)", text)}
    assert {"capture", "net", "insight"} <= imported
    assert {name for name in imported if name[0].islower()} <= {*dir(msmqwire)}


def test_completion_shows_each_package_and_loads_it_when_it_is_used() -> None:
    packages = run("-c", LOADED).split()
    assert {*packages} == FLOOR.keys() - {"wire", "cli", "__version__"}


def test_all_names_are_imported_without_extras() -> None:
    absent = "import sys; sys.modules.update(dict.fromkeys(('pyarrow', 'pyspark', 'duckdb', 'pandas')))"
    assert run("-c", f"{absent}\nfrom msmqwire import *\nprint(session.__name__)") == "msmqwire.session\n"
