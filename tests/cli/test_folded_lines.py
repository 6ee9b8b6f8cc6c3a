"""Lines of the format ``table`` that are folded: as rich folds them."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from msmqwire.cli.formats.table import _folds

_CONSOLE = Console(file=io.StringIO())


@given(line=st.text("ab  -é→…日", min_size=1, max_size=60), width=st.integers(2, 20))
def test_lines_are_folded_as_rich_folds_them(line: str, width: int) -> None:
    expected = [part.plain.rstrip() for part in Text(line).wrap(_CONSOLE, width, overflow="fold")]
    assert _folds(line, width) == expected
