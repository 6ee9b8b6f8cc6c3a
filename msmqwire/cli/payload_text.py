"""The bytes of one payload as logs, honeypots and dumps write them."""

from __future__ import annotations

import binascii
import re
import sys
from itertools import pairwise

from msmqwire.cli.console import CommandError
from msmqwire.errors import printable

_LARGEST = 16 << 20
# The base and the digits of offsets: of xxd, hexdump -C, Wireshark and tcpdump; and of od, octal or decimal
_OFFSETS = ((16, "4,6"), (16, "8"), (8, "7"), (10, "7"))
# A line of a hexdump, its offset first; groups of bytes in it. Their characters follow after two blanks or more, and
# two may be in the middle.
_ROW = r"\s*(?:0x)?([0-9a-fA-F]{%s})((?:[:\s].*)?)"
_GROUP = re.compile(r"( *)((?:[0-9a-fA-F]{2})+)(?=[\s|]|$)")
_IN_LINE = 16
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([0-3]?[0-7]{1,2})|(.?))", re.DOTALL)
_ESCAPED = dict(zip(b"abfnrtv\\'\"", b"\a\b\f\n\r\t\v\\'\"", strict=True))
# A blank between all of them is not a byte, one between some of them is
_ONLY_ESCAPES = re.compile(r"(\\x[0-9a-fA-F]{2}\n?)+|\\x[0-9a-fA-F]{2}([\s:,]+\\x[0-9a-fA-F]{2})*")
# In a rule of Suricata or Snort
_ESCAPED_CONTENT = re.compile(rb'\\([\\";:|])')
# Shorter text may be a word; every packet but a truncated one has this many bytes
_SMALLEST_BASE64 = 16


def payload_of(text: str) -> bytes:
    r"""Return the bytes that an argument, or standard input where it is ``-``, stands for.

    Hexadecimal digits, with white space, colons, commas, hyphens, ``0x`` and ``\x`` between them; a hexdump;
    bytes of Python; text with escapes; the content of a rule, whose digits are between bars; base64.

    >>> payload_of(r"b'\x10\x00LIOR'") == payload_of("|10 00|LIOR") == payload_of("10-00-4C-49-4F-52")
    True
    """
    if text == "-":
        if sys.stdin is None:
            raise CommandError("standard input is closed")
        text = sys.stdin.read(_LARGEST)
    found = {_of_hexdump(text.splitlines(), *of_program) for of_program in _OFFSETS} - {None}
    if len(found) == 1:
        return found.pop() or b""
    for notation in (_of_digits, _of_escapes, _of_content, _of_base64):
        data = notation(text.strip())
        if data is not None:
            return data
    raise CommandError(
        f"{printable(text[:40])!r} is not hexadecimal, nor a hexdump, b'...', text with \\x00 or |00|, or base64"
    )


def _of_hexdump(lines: list[str], base: int, digits: str) -> bytes | None:
    """Return the bytes of a hexdump with offsets of so many digits; None where the offsets are not those of the bytes.

    A line has an offset, bytes and perhaps their characters; the last one may be the offset of the end. ``*`` stands
    for repetitions of the line before it.
    """
    rows: list[tuple[int, str]] = []
    repeated = set()
    for line in filter(str.strip, lines):
        if line.strip() == "*":
            repeated.add(len(rows) - 1)
            continue
        match = re.fullmatch(_ROW % digits, line)
        try:
            rows.append((int(match[1], base), match[2]))  # type: ignore[index]
        except (TypeError, ValueError):
            return None
    sizes = [after - before for (before, _), (after, _) in pairwise(rows)]
    if not sizes and not (rows and rows[0][0] == 0 and rows[0][1].startswith((":", "  "))):
        return None  # one line of digits in groups
    if any(size <= 0 for size in sizes) or sum(sizes) > _LARGEST:
        return None
    width = sizes[0] if sizes and 0 not in repeated else _IN_LINE
    found = bytearray()
    for at, ((_, rest), size) in enumerate(zip(rows, [*sizes, None], strict=True)):
        data = _first_bytes(rest.removeprefix(":"), width)
        if at in repeated and size and data:
            data *= size // len(data)
        if size is not None and len(data) != size:
            return None
        found += data
    return bytes(found)


def _first_bytes(text: str, most: int) -> bytes:
    """Return the bytes of a line of a hexdump, up to its characters."""
    data = bytearray()
    at = 0
    while (group := _GROUP.match(text, at)) and (not data or len(group[1]) <= 1 + (len(data) < most)):
        data += bytes.fromhex(group[2])
        at = group.end()
    return bytes(data)


def _of_digits(text: str) -> bytes | None:
    if "\\x" in text and not _ONLY_ESCAPES.fullmatch(text):
        return None
    try:
        return bytes.fromhex(re.sub(r"0x|\\x|[\s:,-]", "", text))
    except ValueError:
        return None


def _of_escapes(text: str) -> bytes | None:
    r"""Return the bytes of ``b'...'`` or of text with ``\x``; None for other text, or where an escape is unknown."""
    quoted = re.fullmatch(r"""[bB](['"])(.*)\1""", text, re.DOTALL)
    if not (quoted or "\\x" in text) or not text.isascii():
        return None
    data = (quoted[2] if quoted else text).encode("ascii")
    if any((match[3] and match[3][0] not in _ESCAPED) or match[0] == b"\\" for match in _ESCAPE.finditer(data)):
        return None
    return _ESCAPE.sub(_byte, data)


def _byte(match: re.Match[bytes]) -> bytes:
    if match[3]:
        return bytes([_ESCAPED[match[3][0]]])
    return bytes([int(match[1], 16) if match[1] else int(match[2], 8)])


def _of_content(text: str) -> bytes | None:
    """Return the bytes of ``|10 00|LIOR``; None where the bars do not enclose digits."""
    parts = re.split(r"(?<!\\)\|", text.strip('"'))
    if len(parts) < 3 or len(parts) % 2 == 0 or not text.isascii():
        return None
    try:
        return b"".join(
            bytes.fromhex(part) if at % 2 else _ESCAPED_CONTENT.sub(rb"\1", part.encode("ascii"))
            for at, part in enumerate(parts)
        )
    except ValueError:
        return None


def _of_base64(text: str) -> bytes | None:
    compact = "".join(text.split()).translate(str.maketrans("-_", "+/")).rstrip("=")
    try:
        data = binascii.a2b_base64(compact + "=" * (-len(compact) % 4), strict_mode=True)
    except ValueError:
        return None
    return data if len(data) >= _SMALLEST_BASE64 else None
