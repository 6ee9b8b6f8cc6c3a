"""The list of explained survivors of ``make mutants``."""

from __future__ import annotations

import pytest

from tests.mutants import entries, mutants_of


@pytest.mark.parametrize("path", sorted({entry["path"] for entry in entries()}))
def test_each_explained_survivor_is_a_mutant(path: str) -> None:
    """An entry of a function that was renamed or removed explains nothing."""
    explained = {(path, entry["function"], entry["change"]) for entry in entries() if entry["path"] == path}
    assert explained <= {mutant.kind() for mutant in mutants_of(path)}
