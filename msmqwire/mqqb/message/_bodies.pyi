"""Written by `make build` from the annotations in _bodies.pyx; do not edit."""

from typing_extensions import Buffer

def read_body(body: Buffer, body_type: int, encrypted: bool) -> tuple[str, str | None]: ...
