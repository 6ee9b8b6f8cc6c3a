"""Written by `make build` from the annotations in _sid.pyx; do not edit."""

LARGEST_SUB_AUTHORITY_COUNT: int

def sid_text(sid: bytes) -> str | None: ...
