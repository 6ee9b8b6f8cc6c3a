"""Every input of the regression corpus goes through the Python surface and the oracle; none is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.surface import TARGETS

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(CORPUS)))
def test_an_input_is_replayed(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_target_has_a_corpus() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)
