"""Names of files that are made from texts of packets, which a stranger may have chosen."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache

_LONGEST = 120
_ESCAPED = re.compile(r"[^a-z0-9.-]")
#: Names that Windows gives to devices, with any extension.
_DEVICES = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])(\.|$)")


@lru_cache(maxsize=256)
def file_stem(text: str) -> str:
    r"""Return the name of a file, without its extension, for a text; no two texts have the same.

    It has lower-case letters, digits, ``.``, ``-`` and ``_`` only; ``_`` is written twice, and every other character as
    its number between two of them. It does not begin with ``-`` or ``.``, and is no device of Windows.

    >>> file_stem("private.orders"), file_stem("../$_; rm"), file_stem("-rf"), file_stem("nul.txt")
    ('private.orders', '_2e_._2f__24____3b__20_rm', '_2d_rf', '_6e_ul.txt')
    """
    stem = _ESCAPED.sub(lambda found: "__" if found[0] == "_" else _escaped(found[0]), text) or "_"
    if stem[0] in ".-" or _DEVICES.match(stem):
        stem = _escaped(text[0]) + stem[1:]
    if stem[-1] == ".":
        stem = stem[:-1] + _escaped(".")
    if len(stem) > _LONGEST:
        # Longer than any other, and no escape has "_-"
        digest = hashlib.sha256(text.encode("utf-16-le", "surrogatepass")).hexdigest()
        stem = f"{stem[:_LONGEST]}_-{digest[:32]}"
    return stem


def _escaped(character: str) -> str:
    return f"_{ord(character):x}_"
