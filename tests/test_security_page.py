"""The page about security names tests and limits that exist."""

from __future__ import annotations

import re
from pathlib import Path

from msmqwire.capture import FileLimits, StreamLimits
from msmqwire.directory import LdapDirectory

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")


def test_every_fault_has_its_test() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 30
    for path, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE), (path, name)


def test_the_limits_are_those_of_the_code() -> None:
    cells = [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", PAGE, re.MULTILINE)]
    rows = {set_by: default for _, default, set_by, *_ in (row for row in cells if len(row) == 5)}
    streams, files = StreamLimits(), FileLimits()
    assert rows["`StreamLimits.ahead`"].startswith(f"{streams.ahead >> 20} MiB")
    assert rows["`StreamLimits.memory`"] == f"{streams.memory >> 20} MiB"
    assert rows["`StreamLimits.streams`"] == f"{streams.streams:,}"
    assert rows["`FileLimits.interfaces`"] == f"{files.interfaces:,}"
    assert rows["`FileLimits.memory`"] == f"{files.memory >> 20} MiB"
    assert files.max_bytes is None
    defaults = LdapDirectory.__init__.__kwdefaults__
    assert defaults is not None
    expected = f"{defaults['timeout']} s, {defaults['size_limit']:,} objects, {defaults['byte_limit'] >> 30} GiB"
    assert rows["`LdapDirectory`"].startswith(expected)
