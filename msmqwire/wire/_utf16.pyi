"""UTF-16LE to UTF-8."""

from typing_extensions import Buffer

def to_utf8(data: Buffer) -> bytes: ...
