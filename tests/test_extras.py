"""Each public module whose packages are missing says which extra has them."""

from __future__ import annotations

import pytest

from tests.columns.processes import run

PROGRAM = """
import importlib, sys
from tests.layers import reference

missing = sys.argv[1]

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

names = reference()
sys.meta_path.insert(0, Finder())
errors = 0
for name in names:
    try:
        module = importlib.import_module(name)
        for each in module.__all__:
            getattr(module, each)
    except Exception as error:
        assert f"needs {missing}, which is not installed: pip install" in str(error), (name, error)
        errors += 1
print(errors)
"""


@pytest.mark.parametrize("package", ["pyarrow", "duckdb", "pyspark", "deltalake"])
def test_a_missing_package_is_named_with_its_extra(package: str) -> None:
    assert int(run("-c", PROGRAM, package)) > 0
