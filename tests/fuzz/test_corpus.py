"""Every input of the corpus runs through the Python target and its oracle."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.__main__ import TARGETS as KERNEL_TARGETS
from fuzz.surface import TARGETS

FUZZ = Path(__file__).parents[2] / "fuzz"
CORPUS = FUZZ / "corpus"


@pytest.mark.parametrize("target", TARGETS)
def test_every_input_is_replayed(target: str) -> None:
    inputs = sorted((CORPUS / target).iterdir())
    assert inputs
    for path in inputs:
        try:
            TARGETS[target](path.read_bytes())
        except Exception as error:
            error.add_note(f"with the input {path}")
            raise


def test_every_folder_of_the_corpus_has_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} <= set(TARGETS)


def test_every_target_fuzzes_kernel_and_surface() -> None:
    assert set(KERNEL_TARGETS) == set(TARGETS)
    for name, target in KERNEL_TARGETS.items():
        if target.kernels is not None:
            assert f"fuzz_{name}(" in (FUZZ / f"kernels_{target.kernels}.pyx").read_text("utf-8")
        if target.layout is not None:
            assert f"struct layout {target.layout} =" in (FUZZ / "mutator.c").read_text("utf-8")
        assert (FUZZ / "dictionaries" / f"{name}.dict").is_file()


def test_a_kernel_target_takes_every_input_whole() -> None:
    for path in CORPUS.glob("*/*"):
        assert path.stat().st_size <= KERNEL_TARGETS[path.parent.name].kernel_longest, path
