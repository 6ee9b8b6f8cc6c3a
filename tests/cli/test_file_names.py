"""Names of files from texts of packets."""

from __future__ import annotations

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.cli.file_names import file_stem
from msmqwire.cli.queues import queue_stem
from msmqwire.formatname import parse

SAFE = re.compile(r"[a-z0-9_][a-z0-9._-]*")
#: [Naming files](https://learn.microsoft.com/windows/win32/fileio/naming-a-file)
DEVICES = {"con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(10))}
HOSTILE = [
    "",
    ".",
    "..",
    "/",
    "../../etc/passwd",
    "a\0b",
    "\u202e",
    "con",
    "CON",
    "nul.txt",
    "com1",
    "lpt9.tar.gz",
    "~",
    "a.",
]
HOSTILE += [
    "--checkpoint-action=exec=id;x",
    "-rf",
    "$(id)",
    "`id`",
    "a;b",
    "a|b",
    "%PATH%",
    "a b",
    "a\nb",
    "*",
    "?",
    "_",
    "__",
]
HOSTILE += ["_2e_", ".2e_", "a_24_", "a$", "\u212a", "k", "\ud800", "\U0001f600", "ß", "ss", "ﬁ", "fi"]
#: Few characters, of which escapes are made, so that equal names would be found.
CLOSE = st.text("_-.0245afnulco$;\\\u00e9\ud83d\U0001f600", max_size=8)


def check(stem: str) -> None:
    assert SAFE.fullmatch(stem), stem
    assert len(stem) <= 160
    assert not stem.endswith(".")
    assert stem.partition(".")[0] not in DEVICES
    assert stem == stem.lower()


@given(st.text(st.characters(exclude_categories=()), max_size=300))
def test_any_text(text: str) -> None:
    check(file_stem(text))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts(text: str) -> None:
    for each in (text, text * 100, f"{text}{'x' * 300}"):
        check(file_stem(each))
        check(queue_stem(each))


def test_every_character() -> None:
    """Alone and in a text; no two give the same name."""
    texts = [chr(number) for number in range(sys.maxunicode + 1)]
    stems = list(map(file_stem, texts))
    assert all(map(SAFE.fullmatch, stems))
    assert len(set(stems)) == len(stems)
    assert all(SAFE.fullmatch(file_stem(f"a{text}b")) for text in texts[:1000])


@given(CLOSE | st.text(max_size=300), CLOSE | st.text(max_size=300))
def test_no_two_texts_have_one_name(first: str, second: str) -> None:
    assert (file_stem(first) == file_stem(second)) == (first == second)


def test_no_two_hostile_texts_have_one_name() -> None:
    texts = {f"{text}{end}" for text in HOSTILE for end in ("", "_", ".", "x" * 119, "x" * 120, "x" * 200)}
    assert len(set(map(file_stem, texts))) == len(texts)


NAMES = [
    r"DIRECT=OS:a\orders",
    r"DIRECT=OS:a\private$\orders",
    r"DIRECT=OS:a\private$\orders;journal",
    r"DIRECT=OS:a\private$\orders;sub",
    r"DIRECT=OS:a\private$\orders_sub",
    r"DIRECT=OS:a\private$\private=1f",
    r"DIRECT=OS:a\private.orders",
    r"DIRECT=OS:a\public.orders",
    r"DIRECT=OS:a\system$;deadletter",
    r"DIRECT=OS:a\system$;journal",
    "PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10\\1f",
    "PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10\\1f;journal",
    "PRIVATE=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f11\\1f",
    "PUBLIC=2bbba4ec-8e75-4b43-9c1e-0d2a5a3c2f10",
]
#: What packets have in place of a name, and is none.
TEXTS = ["", "DIRECT=OS:a\\\u00c4", "DIRECT=OS:a\\\u00e4", "DIRECT=OS:a\\\u212a", "DIRECT=OS:a\\k\x00"]


def test_two_queues_have_two_files() -> None:
    stems = [queue_stem(parse(name, extended=True)) for name in NAMES] + [queue_stem(name) for name in TEXTS]
    assert len(set(stems)) == len(stems)
    for stem in stems:
        check(stem)


def test_one_queue_has_one_file() -> None:
    names = [
        r"DIRECT=OS:a\private$\Orders",
        r"DIRECT=TCP:10.0.0.1\PRIVATE$\ORDERS",
        r"direct=https://b/msmq\private$\orders",
    ]
    assert {queue_stem(parse(name)) for name in names} == {"private.orders"}
