"""Lines of the format ``table`` that are folded: as rich folds them."""

from __future__ import annotations

import io
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from msmqwire.cli.formats.table import _LONGEST_KEPT, _WORD, _folded_lines, _folds

_CONSOLE = Console(file=io.StringIO())


@given(line=st.text("ab  -é→…日", min_size=1, max_size=60), width=st.integers(2, 20))
def test_lines_are_folded_as_rich_folds_them(line: str, width: int) -> None:
    expected = [part.plain.rstrip() for part in Text(line).wrap(_CONSOLE, width, overflow="fold")]
    assert _folds(line, width) == expected


def test_blanks_alone_are_searched_once() -> None:
    """Where they are no word, the search for one begins at each of them again: hours for a text of 4 MiB."""
    assert [match[0] for match in _WORD.finditer(" " * 100)] == [" " * 100]
    assert _folded_lines(" " * 100, 80) == [""]


def test_long_lines_are_not_kept() -> None:
    tracemalloc.start()
    for number in range(20):
        _folded_lines(f"{number} " * _LONGEST_KEPT, 80)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 20_000
