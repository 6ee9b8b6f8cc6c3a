"""Words that the package does not use: names for loss other than malformed and truncated, and riddles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [
    path
    for folder, endings in (("msmqwire", (".py", ".pyi", ".pyx", ".pxd")), ("docs", (".md",)))
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in endings
]
NOT_USED = {
    r"(?<!--skip-)\b_?damaged": "malformed",
    r"\bcut_files\b": "truncated_files",
    r"\bis no lake\b": "is not a lake",
    r"\b_?heard\b": "what was received, by its name",
    r"\bdef tell\(self, ": "apply",
    r"\b_?unplace\b|\b_TOLD\b|\b_SpoiledError\b": "what it is",
}


@pytest.mark.parametrize("word", NOT_USED)
def test_words_that_are_not_used(word: str) -> None:
    assert len(FILES) > 300
    found = [str(path.relative_to(ROOT)) for path in FILES if re.search(word, path.read_text("utf-8"))]
    assert not found, f"say {NOT_USED[word]}"
