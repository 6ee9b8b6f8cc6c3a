"""One name and columns of names against the reference, which is written from the ABNF: no text may tell them apart."""

from __future__ import annotations

from typing import Any

import pytest

from msmqwire.formatname import parse_batch
from tests.effort import long_cases
from tests.formatname.answers import of_batch, of_parse, of_reference
from tests.reference.formatname_cases import NAMES, PATH_NAMES, cases, mutations

OPTIONS: tuple[dict[str, bool], ...] = (
    {},
    {"extended": True},
    {"extended": True, "spx": True, "http_slashes": True},
)


def assert_agreement(texts: list[str], **options: Any) -> None:
    expected = [of_reference(text, **options) for text in texts]
    assert {type(answer) for answer in expected} == {list, tuple}, "all of one kind: these cases prove little"
    for text, answer in zip(texts, expected, strict=True):
        assert of_parse(text, **options) == answer, text
    rows: list[dict[str, Any]] = parse_batch(texts, **options).to_arrow(guid="uuid").to_pylist()
    for text, got, answer in zip(texts, of_batch(rows, **options), expected, strict=True):
        assert got == answer, text


@pytest.mark.parametrize("name", [*NAMES[::8], *long_cases(name for name in NAMES if name not in NAMES[::8])])
def test_every_mutation_of_one_character(name: str) -> None:
    assert_agreement([name, "", *mutations(name)], spx=True, extended=True, http_slashes=True)


@pytest.mark.parametrize(
    "name", [*PATH_NAMES[::3], *long_cases(name for name in PATH_NAMES if name not in PATH_NAMES[::3])]
)
def test_every_mutation_of_one_character_of_a_path_name(name: str) -> None:
    assert_agreement(list(mutations(name)), path_names=True)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_many_mutations(options: dict[str, bool]) -> None:
    assert_agreement(list(cases(5_000, seed=61)), **options)


def test_many_mutations_of_path_names() -> None:
    assert_agreement(list(cases(5_000, seed=62, names=PATH_NAMES)), path_names=True)
