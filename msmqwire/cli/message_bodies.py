"""Bodies of messages as the formatters of Windows programs read them."""

from __future__ import annotations

import json
import re
from xml.parsers import expat

from msmqwire.cli.console import CommandError
from msmqwire.propvariant import VT_LPWSTR, VT_UI1, VT_VECTOR

FORMATS = ("xml", "activex", "json", "bytes")

_VT_EMPTY, _VT_BSTR = 0, 8
_BYTES = VT_VECTOR | VT_UI1
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A parser of XML reads a carriage return as a line feed, unless it is a reference
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#xD;"})


def body_of_text(text: str, format: str | None) -> tuple[bytes, int]:
    r"""Return the body that has a text, and its BodyType; UTF-16 as VT_LPWSTR without a format (S22).

    >>> body_of_text("a & b", "xml")
    (b'<?xml version="1.0"?>\r\n<string>a &amp; b</string>', 0)

    Raises
    ------
    CommandError
        The format cannot have the text.
    """
    match format:
        case "xml":
            if found := _NOT_IN_XML.search(text):
                raise CommandError(f"xml cannot have the character U+{ord(found[0]):04X}; send --format bytes")
            return f'<?xml version="1.0"?>\r\n<string>{text.translate(_ESCAPES)}</string>'.encode(), _VT_EMPTY
        case "activex":
            return text.encode("utf-16-le"), _VT_BSTR
        case "json":
            return body_of_bytes(text.encode(), "json")
        case "bytes":
            return text.encode(), _BYTES
    return text.encode("utf-16-le"), VT_LPWSTR


def body_of_bytes(data: bytes, format: str | None) -> tuple[bytes, int]:
    """Return the body that has these bytes, and its BodyType.

    Raises
    ------
    CommandError
        They are not of the format.
    """
    try:
        match format:
            case "xml":
                expat.ParserCreate().Parse(data, True)
            case "json":
                json.loads(data)
            case _:
                return data, _BYTES
    except (expat.ExpatError, ValueError, RecursionError) as error:
        raise CommandError(f"the body is not {format}: {error}") from None
    return data, _VT_EMPTY
