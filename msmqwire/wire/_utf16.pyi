"""Written by `make build` from the annotations in _utf16.pyx; do not edit."""

from typing_extensions import Buffer as BytesLike

def to_utf8(data: BytesLike) -> bytes:
    """UTF-16LE bytes as UTF-8; a lone surrogate becomes U+FFFD, a last odd byte is ignored.

    >>> to_utf8("nt4pec".encode("utf-16-le"))
    b'nt4pec'
    >>> to_utf8(b"\\x00\\xd8").decode()
    '\\ufffd'
    """
