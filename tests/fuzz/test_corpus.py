"""Every input of the regression corpus goes through the Python surface and the oracle; none is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.__main__ import TARGETS as KERNEL_TARGETS
from fuzz.surface import TARGETS

FUZZ = Path(__file__).parents[2] / "fuzz"
CORPUS = FUZZ / "corpus"
INPUTS = sorted(path for path in CORPUS.rglob("*") if path.is_file())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: str(path.relative_to(CORPUS)))
def test_an_input_is_replayed(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_target_has_a_corpus() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)


def test_every_target_fuzzes_kernel_and_surface() -> None:
    assert set(KERNEL_TARGETS) == set(TARGETS)
    for target, (form, _) in KERNEL_TARGETS.items():
        assert f"fuzz_{target}(" in (FUZZ / f"kernels_{form}.pyx").read_text("utf-8")
        assert (FUZZ / "dictionaries" / f"{target}.dict").is_file()
