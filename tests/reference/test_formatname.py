"""The reference against the ABNF itself: it takes what the regular expressions of the rules match, and nothing else."""

from __future__ import annotations

import pytest

from tests.reference import formatname
from tests.reference.formatname import Options
from tests.reference.formatname_cases import NAMES, PATH_NAMES, cases, mutations


def reads(text: str, extended: bool = False) -> bool:
    try:
        formatname.read(text, Options(extended=extended))
    except formatname.RefusedError:
        return False
    return True


def reads_path(text: str) -> bool:
    try:
        formatname.read_path_name(text)
    except formatname.RefusedError:
        return False
    return True


def test_names_by_the_grammar() -> None:
    texts = [*NAMES, *cases(10_000, seed=63)]
    for text in texts:
        assert reads(text) == formatname.is_format_name(text), text
        assert reads(text, extended=True) == formatname.is_format_name(text, extended=True), text
    assert 1_000 < sum(map(reads, texts)) < 9_000


@pytest.mark.parametrize("name", ["DIRECT=TCP:10.0.0.1\\q;s;JOURNAL", "MULTICAST=224.0.10.200:65535"])
def test_mutations_by_the_grammar(name: str) -> None:
    for text in mutations(name):
        assert reads(text) == formatname.is_format_name(text), text


def test_path_names_by_the_grammar() -> None:
    texts = [*PATH_NAMES, *mutations("s\\private$\\q;s"), *cases(5_000, seed=64, names=PATH_NAMES)]
    for text in texts:
        assert reads_path(text) == formatname.is_path_name(text), text
    assert 500 < sum(map(reads_path, texts)) < len(texts) - 500


def test_every_port_and_octet() -> None:
    """Decision: the comments of 2.1.6 hold, not its rule for Port, which leaves out 20 to 99 and others."""
    for port in (*range(1_200), *range(1_900, 10_100, 7), 59_999, 60_000, 65_499, *range(65_500, 65_536)):
        assert formatname.is_format_name(f"MULTICAST=234.0.0.1:{port}")
    for port in ("00", "01", "65536", "100000", "", "-1", "1 "):
        assert not formatname.is_format_name(f"MULTICAST=234.0.0.1:{port}")
    for octet in range(300):
        assert formatname.is_format_name(f"MULTICAST={octet}.1.2.3:4") == (224 <= octet <= 239)
        assert formatname.is_format_name(f"MULTICAST=239.1.{octet}.3:4") == (octet < 256)
