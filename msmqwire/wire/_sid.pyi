"""Written by `make build` from the annotations in _sid.pyx; do not edit."""

LARGEST_SUB_AUTHORITY_COUNT: int

def sid_text(sid: bytes) -> str | None:
    """A SID as text; None when it is not valid.

    Examples
    --------
    >>> sid_text(bytes.fromhex("010200000000000520000000" "20020000"))
    'S-1-5-32-544'
    """
