"""Written by `make build` from the annotations in _utf16.pyx; do not edit."""

from typing_extensions import Buffer as BytesLike

def to_utf8(data: BytesLike) -> bytes: ...
